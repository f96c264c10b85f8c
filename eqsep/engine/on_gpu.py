"""Sums over tensors in single precision on a GPU, through digits that are summed exactly."""

from typing import Any

import numpy as np

from eqsep.engine.fused import AT_ONCE, SCALE, digits_of, products, squares
from eqsep.engine.kernels import LocalKernel

SCORED_AT_ONCE = 2**20  # rows


def summed(
    kernel: LocalKernel, landmarks: Any, X: Any, target: np.ndarray, weight: np.ndarray
) -> tuple[Any, Any]:
    """Σ w k kᵀ and Σ w t k in double precision, of kernel values rounded to 1 / 32,512.

    Weights and targets are rounded likewise, in units of the largest one.
    """
    import torch

    m, tall = landmarks.shape[0], np.reshape(target, (len(weight), -1))
    double = {"dtype": torch.float64, "device": X.device}
    heaviest, furthest = float(weight.max(initial=0)) or 1.0, float(np.abs(tall).max()) or 1.0
    root = torch.as_tensor(np.sqrt(weight / heaviest), **double)
    pull = torch.as_tensor(tall / furthest, **double)
    gram, moment = torch.zeros((m, m), **double), torch.zeros((m, tall.shape[1]), **double)
    digits = kernel.digits_at(landmarks)
    for start in range(0, X.shape[0], AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        scale = root[rows] * SCALE
        k = digits(X[rows], scale)
        t = digits_of(pull[rows], scale, n=k.high.shape[1])
        gram += squares(k)[:m, :m]
        moment += products(k, t)[:m, : tall.shape[1]]
    unit = heaviest / SCALE**2
    return gram * unit, (moment * (unit * furthest)).reshape(m, *target.shape[1:])


def combined(kernel: LocalKernel, landmarks: Any, X: Any, coef: Any) -> Any:
    """Σ_j a_j k(x, c_j) of each row.  (n, d) -> (n,)"""
    import torch

    sums = kernel.sums_at(landmarks, coef.to(X.dtype))
    parts = [sums(X[i : i + SCORED_AT_ONCE]) for i in range(0, X.shape[0], SCORED_AT_ONCE)]
    return torch.cat(parts) if parts else X[:, 0]
