"""Kernels to combine or extend, by their public names; `eqsep.engine.kernels` has the formulas."""

from eqsep.engine.kernels import (
    LOCAL_KERNELS,
    RBF,
    Exponential,
    FunctionKernel,
    Kernel,
    Laplacian,
    LocalKernel,
    PairwiseKernel,
    as_kernel,
)

__all__ = ["LOCAL_KERNELS", "RBF", "Exponential", "FunctionKernel", "Kernel", "Laplacian"]
__all__ += ["LocalKernel", "PairwiseKernel", "as_kernel"]
