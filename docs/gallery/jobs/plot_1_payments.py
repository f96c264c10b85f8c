"""
Fraud triage: which payments to look at first
=============================================

`eqsep.Detector` takes a table as it is: dates, names, booleans, numbers with heavy tails, and
missing values. This example uses made-up card payments with six kinds of fraud and error. Two kinds
are labelled; the detector never sees the other four.
"""

import numpy as np
from matplotlib import pyplot as plt

from eqsep import Detector
from eqsep.datasets import make_mixed_demo
from eqsep.plots import ANOMALY_COLOUR, ScoreHistogramDisplay

seen = ("takeover", "skimming")
old, new = (make_mixed_demo(n_samples=3_000, as_frame=True, random_state=seed) for seed in (0, 1))
old.X.head(4)

# %%
# Fit, with one false alarm in a hundred allowed
# ----------------------------------------------

learnt = np.isin(old.kind, ["normal", *seen])
detector = Detector(false_alarm_rate=0.01, random_state=0).fit(old.X[learnt], old.kind[learnt])
alarm = detector.predict(new.X) == 1

display = ScoreHistogramDisplay.from_estimator(detector, new.X, new.kind)
display.ax_.set_title("scores of new payments", pad=16)

# %%
# The right-hand side shows the share of each kind that raises an alarm. No detector finds every
# unseen kind: card testing, a few cents paid online, is too close to small normal payments.
#
# The fifty to look at first
# --------------------------
#
# If you can review fifty payments a day, take those with the highest scores.

first = np.argsort(-detector.score_samples(new.X))[:50]
names, times = np.unique(new.kind[first], return_counts=True)
print(dict(zip(names.tolist(), times.tolist(), strict=True)))

# %%
# Which kind, and why
# -------------------
#
# `predict_kind` names the seen kind that an alarm resembles, or answers "unseen". `explain` turns
# the row into the nearest normal row, column by column. A column's contribution is how much the
# score drops when that column is changed.

rows = new.X[(new.kind == "money mule") & alarm][:1]
print(detector.predict_kind(rows)[0])
explanation = detector.explain(rows, top=4)[0]
print(explanation)

# %%
# The contributions add up to the score, so we can plot them as steps from the nearest normal row.

steps = [("nearest normal row", explanation.base)]
steps += [
    (f"{reason.column} = {reason.value}\n(normal: {reason.normal_value})", reason.contribution)
    for reason in explanation.reasons
]
steps += [("all other columns", explanation.rest)]
parts = np.array([part for _, part in steps])
starts = np.append(0, parts.cumsum()[:-1])

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.barh([name for name, _ in steps], parts, left=starts, color=ANOMALY_COLOUR)
ax.axvline(detector.threshold_, color="black", linestyle="--", label="threshold")
ax.axvline(explanation.score, color="grey", linestyle=":", label="score of the row")
ax.invert_yaxis()
ax.set(title="a money mule, a kind that was never shown", xlabel="score")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(fontsize="small", loc="upper right")
