"""How far apart two ways to the same score may be."""

import numpy as np


def rounding(detector, X, *, step=1e-6, others=1e-5):
    """The rounding of each row's score, where sums over landmarks differ by a `step`.

    A root near 0 is coarser than its number; `others` is the rounding of all other terms.
    """
    values = detector.model_.score.values(detector.plan_.encode(X))
    roots = [values[name] for name in ("residual", "normality") if name in values]
    return others + np.max([np.sqrt(part + step) - np.sqrt(part) for part in roots], axis=0)
