"""A detector's parameters: refused at the door where they cannot be."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from eqsep.detector.feature_map import FeatureMap
from eqsep.errors import UserError

DEVICES = ("cpu", "cuda", "auto")


def checked_rate(rate: float) -> float:
    """A rate of false alarms as a number between 0 and 1."""
    if not isinstance(rate, Real) or not 0 < rate < 1:
        told = (
            f"must be a number between 0 and 1, got {rate!r}. "
            f"0.01 lets one normal row in a hundred raise an alarm."
        )
        raise UserError(f"false_alarm_rate {told}", command=f"--false-alarm-rate {told}")
    return float(rate)


def check_parameters(detector: Any) -> None:
    """Refuse what no detector can be fitted with."""
    checked_rate(detector.false_alarm_rate)
    if not isinstance(detector.n_landmarks, Integral) or detector.n_landmarks < 2:
        told = f"must be a whole number of at least 2, got {detector.n_landmarks!r}."
        raise UserError(f"n_landmarks {told}", command=f"--landmarks {told}")
    for name in ("alpha", "unlabelled_weight", "width"):
        value: float | None = getattr(detector, name)
        if name == "width" and value is None:
            continue
        if not isinstance(value, Real) or not 0 < value < np.inf:
            raise UserError(f"{name} must be a number above 0, got {value!r}.")
    if detector.device not in DEVICES:
        raise UserError(f"device must be one of {list(DEVICES)}, got {detector.device!r}.")
    if not isinstance(detector.feature_map, FeatureMap | None):
        raise UserError(
            f"feature_map must be the feature_map_ of a fitted detector, got a "
            f"{type(detector.feature_map).__name__}."
        )
