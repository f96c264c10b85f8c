"""The parameters of a kernel separator: refused where they cannot be, or cannot be merged."""

from typing import Any

from sklearn.base import clone

from eqsep.engine.kernels import Kernel, as_kernel
from eqsep.errors import UserError


def checked_kernel(separator: Any) -> Kernel:
    """The kernel, before it has seen landmarks; refuses parameters that cannot be."""
    kernel = as_kernel(separator.kernel, gamma=separator.gamma)
    if separator.closed and not kernel.is_local:
        raise UserError(
            f"closed=True needs a local kernel ('rbf', 'exponential', 'laplacian', or a "
            f"FunctionKernel with is_local=True), got {kernel!r}: where a kernel does not "
            f"vanish far away, nothing closes the normal region. Or set closed=False."
        )
    if separator.closed and separator.separator is not None:
        raise UserError("separator goes with closed=False: a closed fit has none.")
    if not separator.alpha >= 0 or not separator.target <= 0:
        raise UserError(
            f"alpha must be at least 0 and target at most 0, got alpha={separator.alpha!r} and "
            f"target={separator.target!r}."
        )
    for name in ("chunk_size", "n_landmarks"):
        value = getattr(separator, name)
        if value is not None and not value >= 1:
            raise UserError(f"{name} must be at least 1, got {value!r}.")
    if separator.landmarks is not None and separator.n_landmarks is not None:
        raise UserError("landmarks and n_landmarks were both given: one of them says it all.")
    own: Kernel = clone(kernel)
    return own


def check_mergeable(separator: Any, other: Any) -> None:
    """Refuse separators whose sums do not add up to those of one separator."""
    for name in ("closed", "alpha", "target", "kernel_", "landmarks_"):
        mine, others = getattr(separator, name), getattr(other, name)
        if not _same(mine, others):
            raise UserError(
                f"Only separators with the same {name} can be merged: this has {mine!r}, the "
                f"other {others!r}. Give both the landmarks_ and the kernel_ of one of them."
            )
    if separator.classes_[0] != other.classes_[0]:
        raise UserError(
            f"Only separators with the same normal label can be merged: this has "
            f"{separator.classes_[0]!r}, the other {other.classes_[0]!r}."
        )


def _same(a: Any, b: Any) -> bool:
    if not hasattr(a, "shape"):
        return bool(a == b)
    return type(a) is type(b) and a.shape == b.shape and bool((a == b).all())
