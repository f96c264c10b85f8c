"""
The threshold and the promise
=============================

A score needs a threshold. The detector sets it with normal rows that it held out of the fit. A new
normal row is equally likely to take any rank among them. So *on average* the share of false alarms
is the promised one, whatever the data, as long as new normal rows come from the same source.
"""

import numpy as np
from matplotlib import pyplot as plt

from eqsep import Detector
from eqsep.datasets import make_mixed_demo
from eqsep.plots import ANOMALY_COLOUR, NORMAL_COLOUR, PromiseDisplay

old, new = (make_mixed_demo(n_samples=4_000, as_frame=True, random_state=seed) for seed in (0, 1))
learnt = np.isin(old.kind, ["normal", "takeover", "skimming"])
detector = Detector(n_landmarks=200, random_state=0).fit(old.X[learnt], old.kind[learnt])
score, normal = detector.score_samples(new.X), new.kind == "normal"
print(f"threshold {detector.threshold_:.3f} from {len(detector.calibration_.scores)} held-out rows")

# %%
# You can change the rate after the fit, because `false_alarm_rate` only moves the threshold.

for rate in (0.005, 0.01, 0.05, 0.1):
    detector.false_alarm_rate = rate
    alarms = np.mean(score[normal] > detector.threshold_)
    found = np.mean(score[~normal] > detector.threshold_)
    print(f"promised {rate:5.1%}, measured {alarms:5.1%}, anomalies found {found:4.0%}")

# %%
# The band holds the measured share in 95 of 100 cases, given how many rows were held out and how
# many are measured.

figure, ax = plt.subplots(figsize=(5.6, 4), layout="constrained")
PromiseDisplay.from_estimator(detector, new.X[normal], ax=ax)
ax.set_title("new normal payments")

# %%
# p-values
# --------
#
# `p_value` is the probability that a new normal row scores at least as high as this one. About a
# share p of new normal rows has a p-value of p or less, so they lie on the diagonal. Anomalies do
# not. A row raises an alarm at rate a if its p-value is at most a, so you can keep the p-values
# and choose the rate later.

p_value = detector.p_value(new.X)
figure, ax = plt.subplots(figsize=(5.6, 4), layout="constrained")
for name, rows, colour in (
    ("normal", normal, NORMAL_COLOUR),
    ("seen kinds", np.isin(new.kind, ["takeover", "skimming"]), ANOMALY_COLOUR),
    ("unseen kinds", ~np.isin(new.kind, ["normal", "takeover", "skimming"]), "#CC79A7"),
):
    ax.ecdf(p_value[rows], color=colour, label=name)
ax.axline((0, 0), slope=1, color="grey", linestyle=":", label="as promised")
ax.set(xlabel="p-value", ylabel="share of rows at or below", title="p-values of new payments")
ax.legend(fontsize="small", loc="lower right")

# %%
# On average, not each time
# -------------------------
#
# The threshold depends on which rows were held out, so a single fit has slightly more or fewer
# false alarms. The fewer rows are held out, the more it varies. Each point below is a fit to
# different normal rows, measured on the same new ones.

usual = make_mixed_demo(n_samples=30_000, as_frame=True, random_state=2)
usual = usual.X[usual.kind == "normal"]
rates = {}
for n in (500, 1_000, 2_000):
    one_class = Detector(n_landmarks=60, bandwidth=0.5, false_alarm_rate=0.05, random_state=0)
    pieces = [usual[i * n : (i + 1) * n] for i in range(12)]
    rates[n] = [one_class.fit(piece).predict(new.X[normal]).mean() for piece in pieces]
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for place, values in enumerate(rates.values()):
    spread = np.linspace(-0.2, 0.2, len(values))
    ax.scatter(place + spread, values, color=NORMAL_COLOUR, s=18)
    ax.hlines(np.mean(values), place - 0.3, place + 0.3, color="black")
ax.axhline(0.05, color="grey", linestyle=":")
names = [f"{n:,} rows" for n in rates]
ax.set(xticks=range(len(rates)), xticklabels=names, ylabel="share of false alarms", ylim=(0, None))
ax.set_title("promised 5 %; bars are means")
ax.spines[["top", "right"]].set_visible(False)
