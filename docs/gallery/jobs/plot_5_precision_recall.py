"""
Precision and recall by kind
============================

A single number over all anomalies hides how a model does on kinds that it was not trained on. So
measure each kind separately, against all normal rows.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.pipeline import make_pipeline

from eqsep import Detector
from eqsep.datasets import make_mixed_demo
from eqsep.evaluation import anomaly_score, average_precision_interval, leave_one_kind_out
from eqsep.plots import ANOMALY_COLOUR, NORMAL_COLOUR, PrecisionRecallByKindDisplay
from eqsep.tables import TableEncoder

seen = ("takeover", "skimming")
old, new = (make_mixed_demo(n_samples=3_000, as_frame=True, random_state=seed) for seed in (0, 1))
learnt = np.isin(old.kind, ["normal", *seen])
X, y = old.X[learnt], old.kind[learnt]

detector = Detector(n_landmarks=200, random_state=0)
forest = make_pipeline(TableEncoder(), RandomForestClassifier(50, random_state=0))
models = {"detector": detector.fit(X, y), "random forest": forest.fit(X, y != "normal")}

# %%
# The curves of each kind
# -----------------------
#
# The numbers are average precisions. A random forest is a strong classifier, and just as good on
# the kinds it was shown. But it has no reason to call a row anomalous just because it has never
# seen anything like it.

figure, axes = plt.subplots(1, 2, figsize=(9, 5.2), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    PrecisionRecallByKindDisplay.from_estimator(model, new.X, new.kind, seen=seen, ax=ax)
    ax.set_title(name)

# %%
# How sure are these numbers?
# ---------------------------
#
# The rows of each kind are resampled many times, and the interval holds 95 % of the results. Chance
# is the result of a score without any information.

intervals = average_precision_interval(anomaly_score(detector, new.X), new.kind, random_state=0)
for kind, interval in intervals.items():
    print(f"{kind:14}{interval}")

# %%
# One seen kind at a time
# -----------------------
#
# Were the two seen kinds a lucky choice? Train on each kind in turn as the only seen one, and look
# at the mean over all others.

isolation = make_pipeline(TableEncoder(), IsolationForest(n_estimators=50, random_state=0))
methods = {"detector": detector, "random forest": forest, "isolation": isolation}
tables = {
    name: leave_one_kind_out(method, old.X[:1_200], old.kind[:1_200], random_state=0)
    for name, method in methods.items()
}
print(tables["detector"])

# %%
# The isolation forest ignores labels, so it gains nothing from them. The random forest gains on the
# seen kind, and pays for it on the others.

figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
place = np.arange(len(tables))
for shift, part, colour in ((-0.2, "seen", ANOMALY_COLOUR), (0.2, "unseen", NORMAL_COLOUR)):
    values = [getattr(table.mean, part) for table in tables.values()]
    bars = ax.bar(place + shift, values, width=0.38, color=colour, label=f"{part} kinds")
    ax.bar_label(bars, fmt="{:.2f}", padding=2, fontsize="small")
ax.set(xticks=place, xticklabels=tables, ylim=(0, 1.15), title="mean average precision")
ax.legend(ncols=2, fontsize="small", loc="upper right")
ax.spines[["top", "right"]].set_visible(False)
