"""
Patients: few labels, missing values
====================================

This example uses made-up laboratory values of patients, and many were never measured. One illness
is labelled, in forty patients; another has never been noticed. `docs/medical.md` does the same with
a public table.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from eqsep import Detector
from eqsep.plots import ANOMALY_COLOUR, NORMAL_COLOUR, ScoreHistogramDisplay


def patients(n, *, seed, tsh=0.0, t4=0.0):
    """Made-up patients with their TSH (log scale) and T4 shifted by this much."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    need = rng.normal(size=n)
    X = pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "tsh": np.exp(0.5 + 0.4 * need + tsh + rng.normal(0, 0.2, n)),
            "t4": 100 - 12 * need + t4 + rng.normal(0, 6, n),
            "ferritin": np.exp(4 + rng.normal(0, 0.6, n)),
        }
    )
    X.loc[rng.uniform(size=n) < 0.3, "ferritin"] = np.nan  # not ordered
    return X.round(2)


healthy = patients(2_000, seed=0)
over = {"tsh": -1.6, "t4": 50.0}  # labelled: the gland produces too much
under = {"tsh": 2.0, "t4": -40.0}  # never noticed so far
X = pd.concat([healthy, patients(40, seed=1, **over)], ignore_index=True)
y = np.repeat(["normal", "overactive"], [2_000, 40])
X.head(3)

# %%
# One in a hundred healthy patients may be called in by mistake
# -------------------------------------------------------------

detector = Detector(false_alarm_rate=0.01, n_landmarks=400, random_state=0).fit(X, y)
parts = {
    "normal": patients(1_000, seed=2),
    "overactive": patients(100, seed=3, **over),
    "underactive": patients(100, seed=4, **under),
}
kind = np.repeat(list(parts), [len(rows) for rows in parts.values()])
new = pd.concat(list(parts.values()), ignore_index=True)
display = ScoreHistogramDisplay.from_estimator(detector, new, kind)
display.ax_.set_title("scores of new patients", pad=16)
called = {name: float(detector.predict(rows).mean()) for name, rows in parts.items()}
print({name: f"{share:.0%}" for name, share in called.items()})

# %%
# Why was this patient called in?
# -------------------------------
#
# Nobody has labelled an underactive gland, so the model has no name for it. The explanation shows
# which values are unusual.

print(detector.predict_kind(parts["underactive"][:1])[0])
print(detector.explain(parts["underactive"][:1], top=2)[0])

# %%
# Both values together
# --------------------
#
# A missing value does not raise an alarm if it is missing for healthy patients too.

figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
for name, colour in (("normal", NORMAL_COLOUR), ("underactive", ANOMALY_COLOUR)):
    rows = parts[name]
    ax.scatter(rows["tsh"], rows["t4"], s=9, color=colour, alpha=0.5, label=name)
ax.set(xscale="log", xlabel="TSH", ylabel="T4", title="an illness that nobody has labelled")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(fontsize="small")
lacking = float(detector.predict(parts["normal"].assign(ferritin=np.nan)).mean())
print(f"called, if ferritin is missing everywhere: {lacking:.1%}")
