"""
A margin and a regression
=========================

If normal rows obey a linear relation, why not use regression? Predict one column from the others,
and call a row anomalous if it lies far from the prediction. Support vector regression even has a
margin, the tube within which a row costs nothing. An equality separator differs in three ways: it
uses labels of anomalous rows, it does not need a column to predict, and it does not ask *where* on
the line a row lies.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.base import BaseEstimator
from sklearn.metrics import average_precision_score
from sklearn.svm import SVR

from eqsep import EqualitySeparator
from eqsep.plots import RegionDisplay

# %%
# Labels
# ------
#
# Of 220 rows, 120 lie along a line and 100 above one end of it. Regression on all rows treats these
# 100 like the others, and its line tilts. Without them it finds the line, but then labels were used
# to choose its rows. The separator gets all rows with their labels. It should also flag anomalies
# that it has never seen, on the other side of the line.


class TubeScore(BaseEstimator):
    """The distance of a row beyond the tube of a support vector regression."""

    def __init__(self, epsilon=0.5):
        self.epsilon = epsilon

    def fit(self, X):
        self.regression_ = SVR(kernel="linear", C=10, epsilon=self.epsilon).fit(X[:, :1], X[:, 1])
        return self

    def decision_function(self, X):
        return np.abs(X[:, 1] - self.regression_.predict(X[:, :1])) - self.epsilon


rng = np.random.default_rng(0)
kind = np.repeat(["normal", "seen", "unseen"], [120, 100, 60])
level = rng.uniform(np.where(kind == "seen", 1.5, -3), 3)
gap = np.repeat([0.0, 2.5, -2.5], [120, 100, 60]) + rng.normal(0, 0.4, size=280)
rows = np.column_stack([level, 0.5 * level + gap])
known, normal = kind != "unseen", kind == "normal"

models = {
    "regression on all rows": TubeScore().fit(rows[known]),
    "regression on normal rows": TubeScore().fit(rows[normal]),
    "separator, with labels": EqualitySeparator(margin_class="normal", random_state=0).fit(
        rows[known], kind[known]
    ),
}
areas = {
    name: average_precision_score(~normal, model.decision_function(rows))
    for name, model in models.items()
}
figure, axes = plt.subplots(1, 3, figsize=(12, 4.3), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    title = f"{name}: {areas[name]:.2f}"
    RegionDisplay.from_estimator(model, rows, y=kind, ax=ax, title=title)

# %%
# The numbers are average precisions over both kinds of anomaly.
#
# No column to predict
# --------------------
#
# A regression measures distances along the column that it predicts, so you have to choose that
# column. If we rotate the line together with all rows, regression works until the line is steep,
# and fails when it is vertical, because then one column says nothing about the other. The separator
# measures distances across its line, whatever its direction.

angles = np.linspace(0, 90, 10)
turned = {"regression on normal rows": [], "separator, with labels": []}
flat = np.column_stack([level, gap])
for angle in np.deg2rad(angles):
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    X = flat @ turn
    fitted = {
        "regression on normal rows": TubeScore().fit(X[normal]),
        "separator, with labels": EqualitySeparator(margin_class="normal", random_state=0).fit(
            X[known], kind[known]
        ),
    }
    for name, model in fitted.items():
        area = average_precision_score(~normal, model.decision_function(X))
        turned[name].append(area)

figure, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
for name, values in turned.items():
    ax.plot(angles, values, "o-", label=name)
ax.set(xlabel="angle of the line, in degrees", ylabel="average precision", ylim=(0.5, 1.02))
ax.set_title("the same rows, rotated")
ax.legend(fontsize="small")
ax.spines[["top", "right"]].set_visible(False)

# %%
# Where on the line
# -----------------
#
# A regression predicts a number, the response. A separator decides whether a row belongs to the
# line: from one end to the other its score stays below 0, while the responses differ.

ends = np.array([-3.0, 0.0, 3.0])
on_line = models["separator, with labels"].decision_function(np.column_stack([ends, 0.5 * ends]))
responses = models["regression on normal rows"].regression_.predict(ends[:, None])
print("scores along the line:", np.round(on_line, 2))
print("responses of the regression:", np.round(responses, 2))
