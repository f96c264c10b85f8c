"""
Intrusion: attacks that nobody has met
======================================

This example uses made-up network connections: duration, bytes, service, and how often the same host
tried before. Floods are labelled. Scans and data leaks come later, and the
model has no labels for them. `docs/network_intrusion.md` does the same with NSL-KDD.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from eqsep import Detector
from eqsep.plots import ANOMALY_COLOUR, NORMAL_COLOUR, PrecisionRecallByKindDisplay
from eqsep.tables import TableEncoder


def connections(n, *, seed):
    rng = np.random.default_rng(seed)
    service = rng.choice(["http", "smtp", "dns", "ssh"], n, p=[0.6, 0.2, 0.15, 0.05])
    size = np.select([service == "dns", service == "smtp"], [4.5, 8.0], 9.0)
    return pd.DataFrame(
        {
            "service": service,
            "seconds": np.exp(rng.normal(0, 1, n)),
            "bytes_out": np.exp(rng.normal(size - 2, 0.7)),
            "bytes_in": np.exp(rng.normal(size, 0.7)),
            "tries": rng.poisson(2, n) + 1,
            "refused": rng.beta(1, 20, n),
        }
    ).round(2)


def attack(n, kind, *, seed):
    rng = np.random.default_rng(seed)
    rows = connections(n, seed=seed)
    if kind == "flood":
        return rows.assign(tries=rng.geometric(0.02, n), bytes_in=np.exp(rng.normal(3, 1, n)))
    if kind == "scan":
        return rows.assign(refused=rng.beta(20, 2, n))
    return rows.assign(bytes_out=np.exp(rng.normal(15, 0.5, n)).round())  # a leak


def day(n, *, seed, kinds):
    parts = [connections(n, seed=seed)]
    parts += [attack(60, kind, seed=seed + i) for i, kind in enumerate(kinds, start=1)]
    labels = np.repeat(["normal", *kinds], [n, *[60] * len(kinds)])
    return pd.concat(parts, ignore_index=True), labels


monday, labels = day(3_000, seed=0, kinds=["flood"])
tuesday, truth = day(2_000, seed=10, kinds=["flood", "scan", "leak"])
monday.head(3)

# %%
# Compared with a classifier
# --------------------------
#
# Both models have seen floods. The forest learns only how floods differ from normal connections.

detector = Detector(n_landmarks=400, random_state=0).fit(monday, labels)
forest = make_pipeline(TableEncoder(), RandomForestClassifier(random_state=0))
models = {"detector": detector, "random forest": forest.fit(monday, labels != "normal")}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    PrecisionRecallByKindDisplay.from_estimator(model, tuesday, truth, seen=["flood"], ax=ax)
    ax.set_title(name)

# %%
# What raises an alarm on Tuesday
# -------------------------------

caught = {
    name: [float(np.mean(model.predict(tuesday)[truth == kind])) for kind in np.unique(truth)]
    for name, model in models.items()
}
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
places = np.arange(4)
for shift, (name, colour) in enumerate(
    {"detector": ANOMALY_COLOUR, "random forest": NORMAL_COLOUR}.items()
):
    ax.bar(places + 0.4 * shift, caught[name], width=0.38, color=colour, label=name)
ax.set_xticks(places + 0.2, np.unique(truth))
ax.set(title="share that raises an alarm; only floods were labelled", ylim=(0, 1.05))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(fontsize="small")

# %%
# One of the leaks, explained:

print(detector.explain(tuesday[truth == "leak"][:1], top=2)[0])
