"""
Bump activations and networks
=============================

The same idea within a network: a hidden unit with a *bump* answers near its hyperplane and falls
silent far away on both sides. The networks need PyTorch, `pip install "eqsep[nn]"`.
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
from eqsep.theory import network_closedness

z = np.linspace(-4, 4, 400)
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for unit in (GaussianBump(), TanhBump(), Sigmoid(), LeakyReLU()):
    line = "-" if unit.family == "equality" else "--"
    ax.plot(z, unit(z), line, label=type(unit).__name__)
ax.set(xlabel="signed distance z", ylim=(-0.2, 1.6), title="bumps, and what is usual")
ax.legend(fontsize="small")
ax.spines[["top", "right"]].set_visible(False)

# %%
# Five members, trained as one
# ----------------------------
#
# One bump network depends on where it starts. An ensemble is an axis of the arrays, so five members
# train in one batched product, each with its own start and its own early stop. Normal rows lie on a
# circle, the seen anomalies on a smaller one within; a larger one around both is not seen. Leaky
# ReLUs with a halfspace head are the usual classifier.

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
# The other way round it is harder: where the outer circle is seen and the inner one is not, nothing
# makes a network leave a hole in the middle. Bumps rank the inner circle above chance, and flag
# none of it.

print("unseen   network     average precision (chance)  flagged")
for name, network in networks.items():
    score = clone(network).fit(circles.X_train, circles.y_train).decision_function(circles.X_test)
    inner = circles.y_test == 1
    area = average_precision_score(inner, score)
    print(f"inner    {name:12}{area:.2f} ({inner.mean():.2f})  {np.mean(score[inner] > 0):20.0%}")

# %%
# Is the region closed?
# ---------------------
#
# `network_closedness` looks at the layers of a fitted network, member by member, and says what it
# answers far away.

print(network_closedness(networks["bumps"]))

# %%
# The width of the bumps can be learnt
# ------------------------------------
#
# With `learn_sigma=True` every hidden layer learns its own, here by epoch.

learning = NetworkSeparator(learn_sigma=True, **shared).fit(*seen)
display = HistoryDisplay.from_estimator(learning)
display.ax_.set_title("a thin line is a member")

# %%
# The modules of `eqsep.networks` are ordinary torch modules, to use in a model of your own: see the
# page on networks and ensembles.
