"""The detector and the encoder of its table: all parts must fit together before one is built."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eqsep.detector.feature_map import deviations
from eqsep.persistence.codecs import (
    FLAG,
    LABEL,
    LARGE,
    NUMBER,
    POSITIVE,
    TEXTS,
    WHOLE,
    Codec,
    EstimatorCodec,
    RecordCodec,
    Schema,
    array,
    bounded,
    check,
    check_names,
    either,
    instance,
    items,
    sized,
    word,
)
from eqsep.persistence.container import damaged
from eqsep.tables.column import LARGEST
from eqsep.tables.encoder import encoder_of, output_weights, state_of

_SINGLE, _DOUBLE = "float32", "float64"
_RATE = Schema(
    "a number between 0 and 1",
    lambda value, sizes: POSITIVE.accepts(value, sizes) and bool(value < 1),
)
_COUNT = Schema(
    "a finite number of at least 0",
    lambda value, sizes: (type(value) is float and value == 0) or POSITIVE.accepts(value, sizes),
)
_KEY = Schema(
    "a whole number of 32 bits",
    lambda value, sizes: type(value) is int and 0 <= value < 2**32,  # noqa: ARG005
)
_BOUND = Schema(
    "an unsigned number of 64 bits",
    lambda value, sizes: isinstance(value, np.uint64),  # noqa: ARG005
)
_FEATURE_MAP: Mapping[str, Schema] = {
    "encoder": instance("encoder.TableEncoder"),
    "landmarks": bounded("m", "k", dtype=_SINGLE),
    "is_normal": array("m", kinds="b"),
    "kernel": instance("kernels.Laplacian"),
    "holdout_columns": array(None, kinds="i"),
    "holdout_key": _KEY,
    "holdout_bound": _BOUND,
    "anomaly_bound": _BOUND,
    "held_kinds": TEXTS,
    "doubted": FLAG,
    "likeness_weight": _COUNT,
    "ellipsoid": either(word(None), instance("ellipsoid.Ellipsoid")),
}
_MOST_POWERS, _POWERS = 16, frozenset(2**i for i in range(16))
_BOUNDS = ("holdout_bound", "anomaly_bound")
_DERIVED = ("n_features_in_", "feature_names_in_", "classes_", "device")  # a file goes anywhere


POWERS = Schema(
    "a list of powers of two in rising order",
    lambda value, sizes: (  # noqa: ARG005
        type(value) is list
        and 0 < len(value) < _MOST_POWERS
        and all(type(p) is int and p in _POWERS for p in value)
        and value == sorted(set(value))
    ),
)


@dataclass(frozen=True)
class LaplacianCodec(RecordCodec):
    """A Laplacian kernel; its powers as a list."""

    def encode(self, value: Any) -> dict[str, Any]:
        parts = super().encode(value)
        return parts | {"powers": list(parts["powers"])}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        made = super().decode(parts, name)
        return replace(made, powers=tuple(made.powers))


@dataclass(frozen=True)
class FeatureMapCodec(Codec):
    """A feature map; bounds, of which all 64 bits may be set, as NumPy's numbers."""

    def encode(self, value: Any) -> dict[str, Any]:
        parts = {part: getattr(value, part) for part in _FEATURE_MAP}
        bounds = {bound: np.uint64(parts[bound]) for bound in _BOUNDS}
        return parts | bounds | {"held_kinds": list(value.held_kinds)}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        check_names(parts, name, required=_FEATURE_MAP)
        check(parts, _FEATURE_MAP, name, sizes={})
        encoder, columns = parts["encoder"], parts["holdout_columns"].astype(int)
        if int((output_weights(encoder) > 0).sum()) != parts["landmarks"].shape[1]:
            damaged("its landmarks have not the columns that its table has")
        inside = len(columns) and columns[0] >= 0 and columns[-1] < encoder.n_features_in_
        if len(columns) and not (inside and (np.diff(columns) > 0).all()):
            damaged("the columns that decide which rows calibrate are not those of its table")
        ellipsoid = parts["ellipsoid"]
        if ellipsoid is not None and len(ellipsoid.centre) != len(deviations(encoder)):
            damaged("its ellipsoid has not the columns of numbers that its table has")
        if not POSITIVE.accepts(parts["kernel"].gamma, {}):
            damaged("the gamma of its kernel is no number above 0")
        bounds = {bound: int(parts[bound]) for bound in _BOUNDS}
        kinds = tuple(parts["held_kinds"])
        return self.cls(name)(**parts | bounds | {"holdout_columns": columns, "held_kinds": kinds})


@dataclass(frozen=True)
class StatisticsCodec(Codec):
    """Sums over rows; of a symmetric matrix, the lower triangle alone."""

    def encode(self, value: Any) -> dict[str, Any]:
        sums = {"gram": _triangle(value.gram), "anomalous": _triangle(value.anomalous)}
        return {"moment": value.moment, "weight": value.weight} | sums

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        gram = either(bounded("m", "m", dtype=_DOUBLE), bounded(None, dtype=_DOUBLE))
        moment, weight = bounded("m", "t", dtype=_DOUBLE), bounded("t", dtype=_DOUBLE)
        schemas = {"moment": moment, "gram": gram, "weight": weight}
        schemas["anomalous"] = either(word(None), gram)
        check_names(parts, name, required=schemas)
        check(parts, schemas, name, sizes={})
        if (parts["weight"] < 0).any():
            damaged("a weight of its rows is below 0")
        n = len(parts["moment"])
        sums = {part: _whole(parts[part], n=n) for part in ("gram", "anomalous")}
        return self.cls(name)(**parts | sums)


def _triangle(gram: np.ndarray | None) -> np.ndarray | None:
    """The lower triangle, if that is all."""
    if gram is None or not np.array_equal(gram, gram.T):
        return gram
    return gram[np.tril_indices(len(gram))]


def _whole(gram: np.ndarray | None, *, n: int) -> np.ndarray | None:
    """The symmetric matrix of which `gram` may be the lower triangle."""
    if gram is None or gram.ndim == 2:
        return gram
    if len(gram) != n * (n + 1) // 2:
        damaged("the matrix of its sums is no triangle")
    whole, (i, j) = np.empty((n, n)), np.tril_indices(n)
    whole[i, j] = whole[j, i] = gram
    return whole


@dataclass(frozen=True)
class RowLabelsCodec(Codec):
    """How labels are read: the kinds and the classes. Rows have no part in it."""

    def encode(self, value: Any) -> dict[str, Any]:
        return {"kinds": list(value.kinds), "labels": value.labels}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        schemas = {"kinds": TEXTS, "labels": either(word(None), instance("labels.Labels"))}
        check_names(parts, name, required=schemas)
        check(parts, schemas, name, sizes={})
        kinds, labels = parts["kinds"], parts["labels"]
        if "" in kinds or (kinds and labels is None):
            damaged("its kinds of anomaly have no name, or no normal class beside them")
        named = labels is not None and labels.by_name
        if named and {labels.classes.dtype.kind, labels.kinds.dtype.kind} != {"U"}:
            damaged("its labels are said to be names, and are numbers")
        return self.cls(name)(np.empty(0, dtype=int), tuple(kinds), labels)


@dataclass(frozen=True)
class CalibrationCodec(RecordCodec):
    """Held-out rows, if any, and the score of each; in older files none are anomalies."""

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        made = super().decode(parts, name)
        if "anomaly_rows" not in parts:
            made = replace(made, anomaly_rows=made.rows[:0])
        pairs = ((made.rows, made.scores), (made.anomaly_rows, made.anomaly_scores))
        if any(len(rows) != len(scores) for rows, scores in pairs):
            damaged("its held-out rows have more scores, or fewer, than there are")
        return made


@dataclass(frozen=True)
class DetectorCodec(EstimatorCodec):
    """A detector. What follows from its parts is not in the file.

    `feature_map` is True in the file where it is the `feature_map_` of the same detector.
    """

    def encode(self, value: Any) -> dict[str, Any]:
        parts = super().encode(value)
        given = parts["feature_map"]
        if given is not None and "feature_map_" in parts and given.is_same(parts["feature_map_"]):
            parts["feature_map"] = True
        return {part: parts[part] for part in parts if part not in _DERIVED}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        detector = super().decode(parts, name)
        if detector.feature_map is True:
            if "feature_map_" not in parts:
                damaged("a detector is to use a feature map that is not there")
            detector.feature_map = detector.feature_map_
        if "feature_map_" not in parts:
            return detector
        if "anomaly_coef_" not in parts:  # in older files
            detector.anomaly_coef_ = np.zeros(len(detector.coef_))
        if detector.feature_map_.likeness_weight and detector.statistics_.anomalous is None:
            damaged("the sums of its anomalous rows are not there")
        encoder, labels = detector.feature_map_.encoder, detector.labels_.labels
        detector.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            detector.feature_names_in_ = encoder.feature_names_in_
        by_number = labels is not None and not labels.by_name
        detector.classes_ = labels.classes if by_number else np.arange(2)
        return detector


_FORMS = Schema(
    'a list of "quantile", "standard" or both',
    lambda value, sizes: value in (["quantile"], ["standard"], ["quantile", "standard"]),  # noqa: ARG005
)
_CYCLES = Schema(
    'a list of "hour", "weekday", both or none',
    lambda value, sizes: value in ([], ["hour"], ["weekday"], ["hour", "weekday"]),  # noqa: ARG005
)
_DICT = Schema("a dict", lambda value, sizes: type(value) is dict)  # noqa: ARG005
_REASONS = Schema(
    "a dict of strings",
    lambda value, sizes: (  # noqa: ARG005
        type(value) is dict and all(type(reason) is str for reason in value.values())
    ),
)
_ENCODER_PARTS = {
    "parameters": _DICT,
    "names": either(word(None), TEXTS),
    "dropped": _REASONS,
    "columns": items(either(word(None), _DICT), least=1),
}
_ENCODER_PARAMETERS = {
    "numeric_encoding": word("quantile", "standard", "both"),
    "max_categories": WHOLE,
    "min_count": WHOLE,
    "max_new": NUMBER,
}
_NUMBER = {
    "kind": word("number"),
    "unit": word("number", "duration"),
    "forms": _FORMS,
    "ranks": array(3, "knots"),
    "centre": NUMBER,
    "scale": POSITIVE,
    "with_missing": FLAG,
}
_COLUMNS: Mapping[str, Mapping[str, Schema]] = {
    "number": _NUMBER,
    "date": {"kind": word("date"), "elapsed": _DICT, "cycles": _CYCLES},
    "category": {
        "kind": word("category"),
        "frequent": TEXTS,
        "rare": TEXTS,
        "with_missing": FLAG,
        "boolean": FLAG,
    },
}


@dataclass(frozen=True)
class EncoderCodec(Codec):
    """A fitted `TableEncoder`: its state, knots and ranks of each column as an array."""

    def encode(self, value: Any) -> dict[str, Any]:
        state = state_of(value)
        names = state["names"]
        return {
            "parameters": state["parameters"],
            "names": None if names is None else [str(name) for name in names],
            "dropped": {str(name): reason for name, reason in state["dropped"].items()},
            "columns": [None if c is None else _packed(c) for c in state["columns"]],
        }

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        _checked(parts, _ENCODER_PARTS, name)
        _checked(parts["parameters"], _ENCODER_PARAMETERS, "parameters")
        columns = [None if c is None else _unpacked(c) for c in parts["columns"]]
        _check_names_of_columns(parts["names"], parts["dropped"], columns)
        encoder = encoder_of(parts | {"columns": columns})
        _check_weights(encoder)
        return encoder


def _checked(parts: dict[str, Any], schemas: Mapping[str, Schema], name: str) -> None:
    check_names(parts, name, required=schemas)
    check(parts, schemas, name, sizes={})


def _packed(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a column as it is in the file."""
    if state["kind"] == "date":
        return state | {"elapsed": _packed(state["elapsed"])}
    if state["kind"] == "category":
        return state | {part: [str(n) for n in state[part]] for part in ("frequent", "rare")}
    ranks = np.array([state["knots"], state["low"], state["high"]], dtype=np.float64)
    others = {key: state[key] for key in state if key not in ("knots", "low", "high")}
    return others | {"ranks": ranks}


def _unpacked(column: dict[str, Any]) -> dict[str, Any]:
    """The state of a column, once it is known to be one."""
    kind = column.get("kind")
    if type(kind) is not str or kind not in _COLUMNS:
        damaged("a column of its table is of no known kind")
    _checked(column, _COLUMNS[kind], f"{kind} column")
    if kind == "number":
        return _number(column)
    if kind == "date":
        _checked(column["elapsed"], _NUMBER | {"unit": word("date")}, "date column")
        return column | {"elapsed": _number(column["elapsed"])}
    if set(column["frequent"]) & set(column["rare"]):
        damaged("a name in its table is both frequent and rare")
    return column


def _number(column: dict[str, Any]) -> dict[str, Any]:
    knots, low, high = column["ranks"].astype(np.float64)
    ranks = np.column_stack([low, high]).ravel()
    with np.errstate(invalid="ignore"):  # a NaN that signals
        in_order = bool((np.diff(knots) > 0).all() and (np.diff(ranks) >= 0).all())
        in_range = np.abs(knots).max() <= LARGEST and ranks[0] >= 0 and ranks[-1] <= 1
    if not (in_order and in_range and abs(column["centre"]) <= LARGEST):
        damaged("the numbers of a column of its table are not finite, or not in order")
    learnt = {"knots": knots.tolist(), "low": low.tolist(), "high": high.tolist()}
    sizes = {"centre": float(column["centre"]), "scale": float(column["scale"])}
    return {key: column[key] for key in column if key != "ranks"} | learnt | sizes


def _check_names_of_columns(names: Any, dropped: dict[str, str], columns: list[Any]) -> None:
    """Refuse names that are not those of the columns, and reasons to drop others than dropped."""
    names = [f"x{i}" for i in range(len(columns))] if names is None else names
    if len(names) != len(columns):
        damaged("the columns of its table have more names, or fewer, than there are")
    if {name for name, column in zip(names, columns, strict=True) if column is None} != set(
        dropped
    ):
        damaged("the columns dropped from its table are not those with a reason")


def _check_weights(encoder: Any) -> None:
    """Refuse outputs that would not be finite, and a table of which nothing counts."""
    try:
        weights = output_weights(encoder).tolist()
    except ZeroDivisionError:  # two values that are no deviation apart
        weights = [math.nan]
    if not all(0 <= weight <= math.sqrt(LARGE) for weight in weights) or not any(weights):
        damaged("the columns of its table cannot be weighed")


DETECTORS: dict[str, Codec] = {
    "detector.Detector": DetectorCodec(
        "eqsep.detector.detector",
        (
            {
                "normal": either(word(None), LABEL),
                "false_alarm_rate": _RATE,
                "alpha": POSITIVE,
                "unlabelled": word("auto", "trusted", "doubted"),
                "unlabelled_weight": POSITIVE,
                "feature_map": either(word(None, True), instance("feature_map.FeatureMap")),
                "feature_map_": sized(
                    "feature_map.FeatureMap", lambda made: made.landmarks.shape, "m", "k"
                ),
                "labels_": sized("labels.RowLabels", lambda read: (1 + len(read.kinds),), "t"),
                "one_class_": FLAG,
                "promised_rate_": _RATE,
                "statistics_": sized(
                    "nystroem.Statistics", lambda sums: sums.moment.shape, "m", "t"
                ),
                "coef_": bounded("m", "t", dtype=_DOUBLE),
                "calibration_": sized(
                    "scoring.Calibration", lambda held: held.rows.shape, None, "k"
                ),
            },
        ),
        {"anomaly_coef_": bounded("m", dtype=_DOUBLE)},
    )
}
DETECTOR_PIECES: dict[str, Codec] = {
    "detector.FeatureMap": FeatureMapCodec("eqsep.detector.feature_map"),
    "detector.Answers": RowLabelsCodec("eqsep.labels", called="RowLabels"),
    "detector.Calibration": CalibrationCodec(
        "eqsep.detector.scoring",
        {
            **dict.fromkeys(("rows", "anomaly_rows"), bounded(None, "k", dtype=_SINGLE)),
            **dict.fromkeys(("scores", "anomaly_scores"), bounded(None, dtype=_DOUBLE)),
            "n_anomalies": _COUNT,
        },
    ),
    "engine.Ellipsoid": RecordCodec(
        "eqsep.engine.ellipsoid",
        {
            "centre": bounded("d", dtype=_DOUBLE),
            "axes": bounded("d", "r", dtype=_DOUBLE),
            **dict.fromkeys(("edge", "tail"), POSITIVE),
            "weight": _COUNT,
        },
    ),
    "separators.Statistics": StatisticsCodec("eqsep.engine.nystroem"),
    "tables.TableEncoder": EncoderCodec("eqsep.tables.encoder"),
}
