"""
When is the normal region closed?
=================================

A kind that nobody has seen may appear anywhere. So the region that a model calls normal should be
*closed*: its volume should be finite, so that any row far enough away is flagged. How many
separators does that take?
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from eqsep import Detector, KernelEqualitySeparator
from eqsep.datasets import make_circles, make_mixed_demo
from eqsep.plots import ANOMALY_COLOUR, NORMAL_COLOUR, ClosednessDisplay
from eqsep.theory import closing_number, closing_probability, is_closed

for family in ("rbf", "equality", "halfspace"):
    print(f"{family:9}", [closing_number(family, n) for n in (1, 2, 10, 100)])

# %%
# Slabs close a region where halfspaces do not
# --------------------------------------------
#
# The number of slabs (the margins of equality separators) and the number of halfspaces differ by
# only one. But random slabs are far more likely to leave no way out than random halfspaces. Slabs
# only need normals that span the space, and random normals do. Halfspaces must also surround the
# region.

figure, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
for n, colour in ((2, NORMAL_COLOUR), (10, ANOMALY_COLOUR), (30, "#009E73")):
    k = np.arange(1, 91)
    for family, line in (("equality", "-"), ("halfspace", "--")):
        chance = [closing_probability(family, n, int(i)) for i in k]
        ax.plot(k, chance, line, color=colour, label=f"{family}, {n} columns")
ax.set(xlabel="separators", ylabel="probability", title="random normals leave no way out")
ax.legend(fontsize="x-small", loc="center right")
ax.spines[["top", "right"]].set_visible(False)

# %%
# `is_closed` checks given normals and gives a reason: a direction in which an open region never
# ends.

corner = is_closed([[1, 0], [0, 1]], family="halfspace")
print(bool(corner), "escapes along", corner.escape)
print(bool(is_closed([[1, 0], [0, 1]], family="equality")))

# %%
# What models say far away
# ------------------------
#
# Normal rows lie on a circle, and the seen anomalies on a smaller one inside it. We move away from
# the centre in 64 directions and count, at each distance, in how many of them a row is called
# normal.
# With a local kernel and no bias, f falls to 0 and the score goes to 1. A support vector machine
# with an RBF kernel falls back on its bias, which may call everything normal, and a forest extends
# its outermost cells forever.

circles = make_circles(noise=0.1, n_samples=400, random_state=0)
X, y = circles.X_test, circles.y_test
models = {
    "Detector": Detector(random_state=0, n_landmarks=200),
    "kernel separator, gamma 8": KernelEqualitySeparator(gamma=8),
    "SVC, gamma 8": SVC(gamma=8),
    "random forest": RandomForestClassifier(random_state=0),
}
angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
directions = np.column_stack([np.cos(angle), np.sin(angle)])
radii = np.geomspace(0.3, 1_000, 40)
rows = (radii[:, None, None] * directions).reshape(-1, 2)
share = {
    name: (model.fit(X, y).predict(rows) == 0).reshape(40, 64).mean(axis=1)
    for name, model in models.items()
}

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for name, values in share.items():
    ax.plot(radii, values, label=name)
ax.set(xscale="log", xlabel="distance from the centre", ylabel="share of directions")
ax.set_title("called normal (the normal circle has radius 1)")
ax.legend(fontsize="small")
ax.spines[["top", "right"]].set_visible(False)

# %%
# Closed does not mean small: the detector's region is wider than the circle, but it does end.
#
# Along the columns of a table
# ----------------------------
#
# Ask the same of a detector on a table of payments: what if one column of normal rows goes far out,
# while the others stay as they are? If the line is above the threshold, half of the rows raise an
# alarm. One odd value among many usual ones is not always enough.

payments = make_mixed_demo(n_samples=3_000, as_frame=True, random_state=0)
detector = Detector(n_landmarks=400, random_state=0).fit(payments.X, payments.kind)
usual = payments.X[payments.kind == "normal"]
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
for ax, column in zip(axes, ("amount", "distance_km", "country"), strict=True):
    ClosednessDisplay.from_estimator(detector, usual, column=column, ax=ax)
