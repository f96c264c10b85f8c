"""
Learning on, and merging sites
==============================

A detector stores what it knows as sums over rows. Sums add up, so learning in pieces, or at several
sites that never share a row, gives the same result as one fit to all rows.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt

from eqsep import Detector
from eqsep.datasets import make_mixed_demo
from eqsep.evaluation import average_precision_by_kind
from eqsep.plots import ANOMALY_COLOUR, NORMAL_COLOUR

table, test = (make_mixed_demo(n_samples=4_000, as_frame=True, random_state=s) for s in (0, 1))
X, kind = table.X, table.kind
first = slice(0, 1_000)
start = Detector(n_landmarks=400, random_state=0).fit(X[first], kind[first])

# %%
# Three sites
# -----------
#
# The sites agree on a plan: how columns are encoded, and the landmarks, which are rows of the first
# fit. Each site learns its own rows, and only model files are exchanged.

shared = start.plan_
sites = [
    Detector(plan=shared).fit(X[rows], kind[rows])
    for rows in (slice(0, 1_500), slice(1_500, 2_800), slice(2_800, 4_000))
]
merged = sites[0].merge(sites[1]).merge(sites[2])
whole = Detector(plan=shared).fit(X, kind)

one, other = whole.score_samples(test.X), merged.score_samples(test.X)
print(f"largest difference of {len(one):,} scores: {np.abs(one - other).max():.1e}")

figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.scatter(one, other, s=8, color=NORMAL_COLOUR)
ax.axline((0, 0), slope=1, color="grey", linewidth=0.8)
ax.set(xlabel="score, one fit to all rows", ylabel="score, three sites merged")
ax.set_title("new payments")

# %%
# A kind that is labelled later
# -----------------------------
#
# Suppose that nobody labels money mules at first. Rows arrive in pieces of 500, and the label
# appears with the fourth piece. The detector learns the new kind without forgetting the others.

follower = Detector(n_landmarks=400, random_state=0)
history = {"money mule": [], "skimming": []}
for i, rows in enumerate(np.array_split(np.arange(4_000), 8)):
    known = rows if i >= 3 else rows[kind[rows] != "money mule"]
    with warnings.catch_warnings():  # it warns if no landmark is near a new kind
        warnings.simplefilter("ignore")
        follower.partial_fit(X.iloc[known], kind[known])
    areas = average_precision_by_kind(follower.score_samples(test.X), test.kind)
    for name in history:
        history[name].append(areas[name])
print(follower.kinds_)

figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
for (name, values), colour in zip(history.items(), (ANOMALY_COLOUR, NORMAL_COLOUR), strict=True):
    ax.plot(range(1, 9), values, marker="o", color=colour, label=name)
ax.axvspan(3.5, 8.2, color="#F3EDE6", zorder=0, label="money mules are labelled")
ax.set(xlabel="pieces learnt", ylabel="average precision", ylim=(0, 1.05), xlim=(0.8, 8.2))
ax.set_title("new payments, by kind")
ax.legend(fontsize="small", loc="lower right")
ax.spines[["top", "right"]].set_visible(False)

# %%
# Forgetting
# ----------
#
# You can remove rows again, as if they had never been learnt: for a moving window, or because
# somebody asks for it. (A landmark that was taken from such a row stays.)

last = slice(2_800, 4_000)
merged.forget(X[last], kind[last])
without = Detector(plan=shared).fit(X[:2_800], kind[:2_800])
left = np.abs(merged.score_samples(test.X) - without.score_samples(test.X)).max()
print(f"largest difference from never having learnt them: {left:.1e}")
