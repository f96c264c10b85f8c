"""
Bump activations and networks
=============================

The same idea works inside a network: a hidden unit with a *bump* activation responds near its
hyperplane and fades to zero far away on both sides. The networks need PyTorch:
`pip install "eqsep[nn]"`.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.metrics import average_precision_score

from eqsep import NetworkSeparator
from eqsep.activations import GaussianBump, LeakyReLU, Sigmoid, TanhBump
from eqsep.datasets import make_circles
from eqsep.networks import Training
from eqsep.plots import HistoryDisplay, RegionDisplay

z = np.linspace(-4, 4, 400)
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for unit in (GaussianBump(), TanhBump(), Sigmoid(), LeakyReLU()):
    line = "-" if unit.family == "equality" else "--"
    ax.plot(z, unit(z), line, label=type(unit).__name__)
ax.set(xlabel="signed distance z", ylim=(-0.2, 1.6), title="bumps and common activations")
ax.legend(fontsize="small")
ax.spines[["top", "right"]].set_visible(False)

# %%
# Five members, trained as one
# ----------------------------
#
# A single bump network depends on its initial weights. An ensemble is an axis of the arrays, so
# five members train in one batched product, each with its own initial weights and its own early
# stop. Normal rows lie on a circle, and the seen anomalies on a smaller one inside it. A larger
# circle around both is unseen. Leaky ReLUs with a halfspace head are the usual kind of classifier.

circles = make_circles(noise=0.1, random_state=0)
rows = np.concatenate([circles.X_train, circles.X_test])
names = {"normal": "normal", "inner": "seen (inner)", "outer": "unseen (outer)"}
kind = np.array([names[name] for name in (*circles.kind_train, *circles.kind_test)])
seen, unseen = (circles.X_test, circles.y_test), circles.X_train[circles.y_train == 1]
shared = {"hidden": (30,), "n_members": 5, "training": Training(epochs=100), "random_state": 0}
networks = {
    "leaky ReLU": NetworkSeparator(activation="leaky_relu", head="halfspace", **shared),
    "bumps": NetworkSeparator(activation="bump", head="equality", **shared),
}

figure, axes = plt.subplots(1, 2, figsize=(9, 4.9), layout="constrained")
found = {}
for ax, (name, network) in zip(axes, networks.items(), strict=True):
    found[name] = float(np.mean(network.fit(*seen).decision_function(unseen) > 0))
    title = f"{name}: {found[name]:.0%} of the unseen circle flagged"
    RegionDisplay.from_estimator(network, rows, y=kind, ax=ax, title=title)
    ax.set_aspect("equal")

# %%
# The opposite case is harder. If the outer circle is seen and the inner one is not, nothing forces
# a network to leave a hole in the middle. Bumps rank the inner circle above chance, but flag none
# of it.

print("unseen   network     average precision (chance)  flagged")
for name, network in networks.items():
    score = clone(network).fit(circles.X_train, circles.y_train).decision_function(circles.X_test)
    inner = circles.y_test == 1
    area = average_precision_score(inner, score)
    print(f"inner    {name:12}{area:.2f} ({inner.mean():.2f})  {np.mean(score[inner] > 0):20.0%}")

# %%
# The width of the bumps can be learnt
# ------------------------------------
#
# With `learn_sigma=True`, every hidden layer learns its own width. The plot shows it by epoch.

learning = NetworkSeparator(learn_sigma=True, **shared).fit(*seen)
display = HistoryDisplay.from_estimator(learning)
display.ax_.set_title("thin lines are members")

# %%
# The modules of `eqsep.networks` are ordinary torch modules that you can use in your own models:
# see the page on networks and ensembles.
