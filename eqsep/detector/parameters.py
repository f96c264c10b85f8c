"""The parameters of a detector: what none can be fitted with is refused."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from eqsep.detector.choosing import given_bandwidth
from eqsep.detector.feature_map import FeatureMap
from eqsep.detector.naming import checked_unseen_rate
from eqsep.detector.promise import checked_promise
from eqsep.detector.windows import check_window
from eqsep.errors import ParameterError, UserError

DEVICES = ("cpu", "cuda", "auto")
UNLABELLED_ROWS = ("auto", "trusted", "doubted")


def check_parameters(detector: Any) -> None:
    """Refuse what no detector can be fitted with."""
    checked_promise(detector)
    checked_unseen_rate(detector.unseen_rate)
    if not isinstance(detector.n_landmarks, Integral) or detector.n_landmarks < 2:
        raise ParameterError(
            "n_landmarks", expected="a whole number of at least 2", got=detector.n_landmarks
        )
    bandwidth = given_bandwidth(detector)
    for name, value in (
        ("alpha", detector.alpha),
        ("unlabelled_weight", detector.unlabelled_weight),
        ("bandwidth", 1.0 if bandwidth is None else bandwidth),
    ):
        if not isinstance(value, Real) or not 0 < float(value) < np.inf:
            raise ParameterError(name, expected="a number above 0", got=value)
    if detector.unlabelled not in UNLABELLED_ROWS:
        raise ParameterError(
            "unlabelled", expected=f"one of {list(UNLABELLED_ROWS)}", got=detector.unlabelled
        )
    if detector.device not in DEVICES:
        raise ParameterError("device", expected=f"one of {list(DEVICES)}", got=detector.device)
    if not isinstance(detector.feature_map, FeatureMap | None):
        raise UserError(
            f"feature_map must be the feature_map_ of a fitted detector, got a "
            f"{type(detector.feature_map).__name__}."
        )
    if detector.window is not None:
        check_window(detector)
    _check_doubt(detector)


def _check_doubt(detector: Any) -> None:
    """Refuse a word on unlabelled rows that the feature map contradicts."""
    asked, given = detector.unlabelled, detector.feature_map
    if given is None or asked == "auto" or (asked == "doubted") == given.doubted:
        return
    taken = "doubted" if given.doubted else "trusted"
    raise UserError(
        f"Rows are to be {asked}, and they are {taken} in the feature map: that is settled at the "
        f"first fit.",
        hint=f"Leave out unlabelled=, or fit the detector that feature_map is from again, with "
        f"unlabelled={asked!r} and labelled anomalies.",
        topic="contrary_trust",
    )
