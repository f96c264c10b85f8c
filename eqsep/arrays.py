"""Arrays of any library: NumPy through scikit-learn's checks, torch tensors as they are."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import array_api_compat
import numpy as np

from eqsep.errors import MissingExtraError, ParameterError, UserError


class WithoutCaches:
    """A frozen dataclass that is copied and sent without what it has computed from its fields."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


def namespace(*arrays: Any) -> Any:
    """The array API namespace (NumPy, torch, …) of `arrays`."""
    if all(type(array) is np.ndarray for array in arrays):
        return _numpy()
    return array_api_compat.array_namespace(*arrays)


@cache
def _numpy() -> Any:
    return array_api_compat.array_namespace(np.empty(0))


def device(x: Any) -> Any:
    """Where the array `x` lives: "cpu" for NumPy, a torch device for a tensor."""
    return array_api_compat.device(x)


def resolve_device(device: str) -> Any:
    """The torch device of this name; "auto" is the GPU if there is one, else the CPU."""
    try:
        import torch
    except ModuleNotFoundError as error:
        message = f"device={device!r} needs PyTorch. Install it with: pip install 'eqsep[nn]'"
        raise MissingExtraError(message) from error
    known = ("auto", "cpu", "cuda")
    if device not in known:
        raise ParameterError("device", expected=f"one of {known}", got=device)
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("device='cuda' was asked for, but torch sees no GPU. Use device='auto'.")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


def is_foreign(X: Any) -> bool:
    """Whether `X` is an array of a library other than NumPy (a torch tensor, say)."""
    if type(X) is np.ndarray:
        return False
    return array_api_compat.is_array_api_obj(X) and not array_api_compat.is_numpy_array(X)


def to_numpy(x: Any) -> np.ndarray:
    """`x` as a NumPy array in main memory."""
    return np.asarray(array_api_compat.to_device(x, "cpu") if is_foreign(x) else x)


def objects(values: Iterable[Any]) -> np.ndarray:
    """The values as an array of objects."""
    listed = list(values)
    out = np.empty(len(listed), dtype=object)
    out[:] = listed
    return out


def same_parts(one: Any, other: Any) -> bool:
    """Whether two records of one class, or plain values, hold the same numbers."""
    if not is_dataclass(one) or not is_dataclass(other):
        return np.array_equal(one, other)
    return type(one) is type(other) and all(
        same_parts(getattr(one, part.name), getattr(other, part.name)) for part in fields(one)
    )


def validate_rows(estimator: Any, X: Any, *, reset: bool, dtype: Any = np.float64) -> Any:
    """The rows `X` as a table of finite numbers; an array of another library stays what it is."""
    if not is_foreign(X):
        from sklearn.utils.validation import validate_data  # takes more than a second

        return validate_data(estimator, X, reset=reset, dtype=dtype)
    xp, name = namespace(X), type(estimator).__name__
    if X.ndim != 2 or 0 in X.shape:
        raise UserError(
            f"{name} expects rows in a 2D array with at least one row and one column, "
            f"got shape {tuple(X.shape)}. Reshape a single row with X[None, :]."
        )
    if not xp.isdtype(X.dtype, "real floating"):
        raise UserError(f"{name} expects floating-point tensors, got {X.dtype}. Use X.double().")
    if not bool(xp.all(xp.isfinite(X))):
        raise UserError(f"Input X of {name} contains NaN or infinity. Impute or drop those rows.")
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise UserError(
            f"X has {X.shape[1]} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def check_weight(sample_weight: Any, *, n: int) -> np.ndarray:
    """One finite weight >= 0 a row, not all of them zero; by default ones."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(to_numpy(sample_weight), dtype=np.float64)
    if weight.shape != (n,):
        raise UserError(
            f"sample_weight.shape == {weight.shape}, expected ({n},): one weight for each row."
        )
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise UserError(
            "sample_weight must be finite, not negative and not all zero; "
            f"got values from {weight.min()} to {weight.max()}."
        )
    return weight
