"""
One neuron and XOR
==================

A single neuron with a sigmoid cannot compute XOR: no line puts the right corners of a square on
each side, so it gets at most three of the four corners right. An equality separator asks whether a
point lies *on* its line. Two opposite corners do, and the other two do not.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression

from eqsep import EqualitySeparator
from eqsep.datasets import make_logic
from eqsep.plots import RegionDisplay

X, y = make_logic("xor")
models = {
    "sigmoid: which side?": LogisticRegression(C=1e3).fit(X[:3], y[:3]),
    "bump: on the line?": EqualitySeparator(random_state=0).fit(X, y),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    right = np.sum(model.predict(X) == y)
    RegionDisplay.from_estimator(model, X, y=y, ax=ax, title=f"{name}  {right} of 4 right")

# %%
# Every Boolean function of two inputs
# ------------------------------------
#
# Either class may lie in the margin: `margin_class="auto"` tries both and keeps the one with the
# lower loss. So one neuron learns all of them, including XOR and its negation.

names = ("and", "or", "nand", "nor", "xor", "xnor")
neurons = {name: EqualitySeparator(random_state=0).fit(*make_logic(name)) for name in names}
for name, neuron in neurons.items():
    X, y = make_logic(name)
    inside = ("normal", "anomalous")[neuron.margin_class_]
    print(f"{name:5} {neuron.score(X, y):4.0%} right, the {inside} class in the margin")

# %%
# A relation that should hold
# ---------------------------
#
# A practical use is two meters that should agree. They can disagree in two ways, both anomalous,
# and only one was ever labelled. A halfspace learns *too large*. A margin learns *not equal*.

rng = np.random.default_rng(0)
level = rng.uniform(0, 10, size=260)
gap = np.repeat([0.0, 2.5, -2.5], [200, 30, 30]) + rng.normal(0, 0.3, size=260)
meters = np.column_stack([level, level + gap])
kind = np.repeat(["normal", "seen: too large", "unseen: too small"], [200, 30, 30])
known = kind != "unseen: too small"

margin = EqualitySeparator(margin_class="normal", random_state=0).fit(meters[known], kind[known])
halfspace = LogisticRegression().fit(meters[known], (kind != "normal")[known])
found = {
    "halfspace": halfspace.predict(meters[~known]).mean(),
    "margin": (margin.decision_function(meters[~known]) > 0).mean(),
}

figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for ax, (name, model) in zip(axes, {"halfspace": halfspace, "margin": margin}.items(), strict=True):
    title = f"{name}: {found[name]:.0%} of the unseen kind flagged"
    RegionDisplay.from_estimator(model, meters, y=kind, ax=ax, title=title)
