"""The detector, and what it is made of: all parts must fit together before one is built."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.persistence.container import damaged
from eqsep.persistence.expected import (
    FLAG,
    LABEL,
    POSITIVE,
    TEXTS,
    Expected,
    array,
    bounded,
    either,
    instance,
    sized,
    word,
)
from eqsep.persistence.known import Estimator, Known, Record, check, check_names

_SINGLE, _DOUBLE = "float32", "float64"
_RATE = Expected(
    "a number between 0 and 1",
    lambda value, sizes: POSITIVE.holds(value, sizes) and bool(value < 1),
)
_KEY = Expected(
    "a whole number of 32 bits",
    lambda value, sizes: type(value) is int and 0 <= value < 2**32,  # noqa: ARG005
)
_CUT = Expected(
    "an unsigned number of 64 bits",
    lambda value, sizes: isinstance(value, np.uint64),  # noqa: ARG005
)
_FEATURE_MAP: Mapping[str, Expected] = {
    "encoder": instance("encoder.TableEncoder"),
    "landmarks": bounded("m", "k", dtype=_SINGLE),
    "is_normal": array("m", kinds="b"),
    "kernel": instance("kernels.Laplacian"),
    "hashed": array(None, kinds="i"),
    "key": _KEY,
    "cut": _CUT,
}
_DERIVED = ("n_features_in_", "feature_names_in_", "classes_", "device")  # a file goes anywhere


@dataclass(frozen=True)
class FeatureMapKind(Known):
    """A feature map; `cut`, of which all 64 bits may be set, as NumPy's number."""

    def parts(self, value: Any) -> dict[str, Any]:
        parts = {part: getattr(value, part) for part in _FEATURE_MAP}
        return parts | {"cut": np.uint64(value.cut)}

    def built(self, parts: dict[str, Any], name: str) -> Any:
        check_names(parts, name, required=_FEATURE_MAP)
        check(parts, _FEATURE_MAP, name, sizes={})
        encoder, hashed = parts["encoder"], parts["hashed"].astype(int)
        if int((encoder.weights_ > 0).sum()) != parts["landmarks"].shape[1]:
            damaged("its landmarks have not the columns that its table has")
        if len(hashed) and not (
            hashed[0] >= 0 and hashed[-1] < encoder.n_features_in_ and (np.diff(hashed) > 0).all()
        ):
            damaged("the columns that decide which rows calibrate are not those of its table")
        if not POSITIVE.holds(parts["kernel"].gamma, {}):
            damaged("the width of its kernel is no number above 0")
        return self.cls(name)(**parts | {"hashed": hashed, "cut": int(parts["cut"])})


@dataclass(frozen=True)
class StatisticsKind(Known):
    """Sums over rows; of a symmetric matrix, the lower triangle alone."""

    def parts(self, value: Any) -> dict[str, Any]:
        gram = value.gram
        if np.array_equal(gram, gram.T):
            gram = gram[np.tril_indices(len(gram))]
        return {"gram": gram, "moment": value.moment, "weight": value.weight}

    def built(self, parts: dict[str, Any], name: str) -> Any:
        gram = either(bounded("m", "m", dtype=_DOUBLE), bounded(None, dtype=_DOUBLE))
        moment, weight = bounded("m", "t", dtype=_DOUBLE), bounded("t", dtype=_DOUBLE)
        expected = {"moment": moment, "gram": gram, "weight": weight}
        check_names(parts, name, required=expected)
        check(parts, expected, name, sizes={})
        if (parts["weight"] < 0).any():
            damaged("a weight of its rows is below 0")
        return self.cls(name)(**parts | {"gram": _whole(parts["gram"], n=len(parts["moment"]))})


def _whole(gram: np.ndarray, *, n: int) -> np.ndarray:
    """The symmetric matrix of which `gram` may be the lower triangle."""
    if gram.ndim == 2:
        return gram
    if len(gram) != n * (n + 1) // 2:
        damaged("the matrix of its sums is no triangle")
    whole, (i, j) = np.empty((n, n)), np.tril_indices(n)
    whole[i, j] = whole[j, i] = gram
    return whole


@dataclass(frozen=True)
class AnswersKind(Known):
    """How labels are read: the kinds and the classes. Rows have no part in it."""

    def parts(self, value: Any) -> dict[str, Any]:
        return {"kinds": list(value.kinds), "labels": value.labels}

    def built(self, parts: dict[str, Any], name: str) -> Any:
        expected = {"kinds": TEXTS, "labels": either(word(None), instance("labels.Labels"))}
        check_names(parts, name, required=expected)
        check(parts, expected, name, sizes={})
        kinds, labels = parts["kinds"], parts["labels"]
        if "" in kinds or (kinds and labels is None):
            damaged("its kinds of anomaly have no name, or no normal class beside them")
        named = labels is not None and labels.by_name
        if named and {labels.classes.dtype.kind, labels.kinds.dtype.kind} != {"U"}:
            damaged("its labels are said to be names, and are numbers")
        return self.cls(name)(np.empty(0, dtype=int), tuple(kinds), labels)


@dataclass(frozen=True)
class CalibrationKind(Record):
    """Held-out rows, if any, and the score of each."""

    def built(self, parts: dict[str, Any], name: str) -> Any:
        calibration = super().built(parts, name)
        if len(calibration.rows) != len(calibration.scores):
            damaged("its held-out rows have more scores, or fewer, than there are")
        return calibration


@dataclass(frozen=True)
class DetectorKind(Estimator):
    """A detector. What follows from its parts is not in the file.

    `feature_map` is True in the file where it is the `feature_map_` of the same detector.
    """

    def parts(self, value: Any) -> dict[str, Any]:
        parts = super().parts(value)
        given = parts["feature_map"]
        if given is not None and "feature_map_" in parts and given.is_same(parts["feature_map_"]):
            parts["feature_map"] = True
        return {part: parts[part] for part in parts if part not in _DERIVED}

    def built(self, parts: dict[str, Any], name: str) -> Any:
        detector = super().built(parts, name)
        if detector.feature_map is True:
            if "feature_map_" not in parts:
                damaged("a detector is to use a feature map that is not there")
            detector.feature_map = detector.feature_map_
        if "feature_map_" not in parts:
            return detector
        encoder, labels = detector.feature_map_.encoder, detector.answers_.labels
        detector.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            detector.feature_names_in_ = encoder.feature_names_in_
        by_number = labels is not None and not labels.by_name
        detector.classes_ = labels.classes if by_number else np.arange(2)
        return detector


DETECTORS: dict[str, Known] = {
    "detector.Detector": DetectorKind(
        "eqsep.detector.detector",
        (
            {
                "normal": either(word(None), LABEL),
                "false_alarm_rate": _RATE,
                "alpha": POSITIVE,
                "unlabelled_weight": POSITIVE,
                "feature_map": either(word(None, True), instance("feature_map.FeatureMap")),
                "feature_map_": sized(
                    "feature_map.FeatureMap", lambda made: made.landmarks.shape, "m", "k"
                ),
                "answers_": sized("answers.Answers", lambda read: (1 + len(read.kinds),), "t"),
                "one_class_": FLAG,
                "promised_rate_": _RATE,
                "statistics_": sized(
                    "statistics.Statistics", lambda sums: sums.moment.shape, "m", "t"
                ),
                "coef_": bounded("m", "t", dtype=_DOUBLE),
                "calibration_": sized(
                    "calibration.Calibration", lambda held: held.rows.shape, None, "k"
                ),
            },
        ),
    )
}
DETECTOR_PIECES: dict[str, Known] = {
    "detector.FeatureMap": FeatureMapKind("eqsep.detector.feature_map"),
    "detector.Answers": AnswersKind("eqsep.detector.answers"),
    "detector.Calibration": CalibrationKind(
        "eqsep.detector.calibration",
        {"rows": bounded(None, "k", dtype=_SINGLE), "scores": bounded(None, dtype=_DOUBLE)},
    ),
    "separators.Statistics": StatisticsKind("eqsep.engine.statistics"),
}
