"""Rows on a sphere and anomalies around it, for the tests of the kernel separator."""

import numpy as np


def problem(n=120, d=3, *, seed=0):
    """Normal rows near the unit sphere, anomalies farther out."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), (np.arange(n) % 4 == 0).astype(int)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X * (1 + 1.5 * y[:, None]) + 0.05 * rng.normal(size=(n, d)), y


def relative(a, b):
    return np.linalg.norm(np.asarray(a) - np.asarray(b)) / np.linalg.norm(np.asarray(b))
