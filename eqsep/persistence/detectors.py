"""The detector: all of its parts must fit together before one is built."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eqsep.detector.feature_map import Packing, deviations, name_columns
from eqsep.detector.solving import leaf_votes
from eqsep.persistence.codecs import (
    BOUND,
    FLAG,
    LABEL,
    POSITIVE,
    RATE,
    TEXTS,
    Codec,
    EstimatorCodec,
    RecordCodec,
    Schema,
    array,
    bounded,
    check,
    check_names,
    either,
    entries,
    instance,
    sized,
    word,
)
from eqsep.persistence.container import damaged
from eqsep.persistence.encoders import EncoderCodec
from eqsep.persistence.groupings import GROUPINGS
from eqsep.persistence.naming import KEY, KIND_ROWS, KindRowsCodec, check_kind_rows
from eqsep.tables.fitted import output_weights

_SINGLE, _DOUBLE = "float32", "float64"
_COUNT = Schema(
    "a finite number of at least 0",
    lambda value, sizes: (type(value) is float and value == 0) or POSITIVE.accepts(value, sizes),
)
_FEATURE_MAP: Mapping[str, Schema] = {
    "encoder": instance("encoder.TableEncoder", "fitted.FittedEncoder"),
    "landmarks": bounded("m", "k", dtype=_SINGLE),
    "is_normal": array("m", kinds="b"),
    "kernel": instance("kernels.Laplacian"),
    "holdout_columns": array(None, kinds="i"),
    "holdout_key": KEY,
    "holdout_bound": BOUND,
    "anomaly_bound": BOUND,
    "held_kinds": TEXTS,
    "doubted": FLAG,
    "likeness_weight": _COUNT,
    "ellipsoid": either(word(None), instance("ellipsoid.Ellipsoid")),
    "trees": either(word(None), instance("trees.Trees")),
    "vote_weight": _COUNT,
    "grouping": either(word(None), instance("grouping.Grouping")),
}
_OPTIONAL: Mapping[str, Schema] = {  # not in older files
    "windows": either(word(None), instance("windows.Windows")),
    "kind_bounds": either(word(None), entries(BOUND)),
}
_MOST_POWERS, _POWERS = 16, frozenset(2**i for i in range(16))
_BOUNDS = ("holdout_bound", "anomaly_bound")
_DERIVED = ("n_features_in_", "feature_names_in_", "classes_", "leaf_votes_", "device")


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
        parts |= {} if value.windows is None else {"windows": value.windows}
        bounds: dict[str, Any] = {bound: np.uint64(parts[bound]) for bound in _BOUNDS}
        if value.kind_bounds is not None:
            bounds["kind_bounds"] = {k: np.uint64(v) for k, v in value.kind_bounds.items()}
        return parts | bounds | {"held_kinds": list(value.held_kinds)}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        check_names(parts, name, required=_FEATURE_MAP, optional=_OPTIONAL)
        parts = dict.fromkeys(_OPTIONAL) | parts
        check(parts, {**_FEATURE_MAP, **_OPTIONAL}, name, sizes={})
        encoder, columns = parts["encoder"], parts["holdout_columns"].astype(int)
        if int((output_weights(encoder) > 0).sum()) != parts["landmarks"].shape[1]:
            damaged("its landmarks have not the columns that its table has")
        inside = len(columns) and columns[0] >= 0 and columns[-1] < encoder.n_features_in_
        if len(columns) and not (inside and (np.diff(columns) > 0).all()):
            damaged("the columns that decide which rows calibrate are not those of its table")
        ellipsoid = parts["ellipsoid"]
        if ellipsoid is not None and len(ellipsoid.centre) != len(deviations(encoder)):
            damaged("its ellipsoid has not the columns of numbers that its table has")
        trees, n_axes = parts["trees"], 0 if ellipsoid is None else ellipsoid.axes.shape[1]
        if trees is not None and trees.n_columns > len(Packing.of(encoder).first) + n_axes:
            damaged("its trees look at columns that its table has not")
        windows = parts.get("windows")
        if windows is not None and not set(windows.names) <= set(
            getattr(encoder, "feature_names_in_", ())
        ):
            damaged("its windows have not the columns that its table has")
        if not POSITIVE.accepts(parts["kernel"].gamma, {}):
            damaged("the gamma of its kernel is no number above 0")
        bounds: dict[str, Any] = {bound: int(parts[bound]) for bound in _BOUNDS}
        of_kinds = parts["kind_bounds"]
        bounds["kind_bounds"] = of_kinds and {k: int(v) for k, v in of_kinds.items()}
        kinds = tuple(parts["held_kinds"])
        return self.cls(name)(**parts | bounds | {"holdout_columns": columns, "held_kinds": kinds})


@dataclass(frozen=True)
class TreesCodec(RecordCodec):
    """Trees, in which a way down must end: the nodes below a node come after it."""

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        made = super().decode(parts, name)
        n, inner = len(made.column), np.flatnonzero(made.column >= 0)
        below = np.concatenate([made.left[inner], made.right[inner]])
        leads_on = (below > np.tile(inner, 2)).all() and (below < n).all()
        if not len(made.root) or made.root.min() < 0 or made.root.max() >= n or not leads_on:
            damaged("a node of its trees leads nowhere")
        if (made.column < -1).any():
            damaged("a node of its trees looks at no column")
        leaves = made.left[made.column < 0]
        if not np.array_equal(np.sort(leaves), np.arange(len(leaves))):
            damaged("the leaves of its trees are not numbered")
        numbers = ("root", "column", "left", "right")
        return replace(made, **{part: parts[part].astype(np.int32) for part in numbers})


@dataclass(frozen=True)
class StatisticsCodec(Codec):
    """Sums over rows; of a symmetric matrix, the lower triangle alone."""

    def encode(self, value: Any) -> dict[str, Any]:
        sums = {"gram": _triangle(value.gram), "anomalous": _triangle(value.anomalous)}
        return {"moment": value.moment, "weight": value.weight, "leaves": value.leaves} | sums

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        gram = either(bounded("m", "m", dtype=_DOUBLE), bounded(None, dtype=_DOUBLE))
        moment, weight = bounded("m", "t", dtype=_DOUBLE), bounded("t", dtype=_DOUBLE)
        schemas = {"moment": moment, "gram": gram, "weight": weight}
        schemas["anomalous"] = either(word(None), gram)
        schemas["leaves"] = either(word(None), bounded(None, "t", dtype=_DOUBLE))
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
        if len(made.groups) not in (0, len(made.rows)) or made.groups.dtype != np.uint64:
            damaged("its held-out rows have more groups, or fewer, than there are")
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
        if "promised_confidence_" not in parts:  # in older files
            detector.promised_confidence_ = None
        if "caution_" not in parts:  # in older files
            detector.caution_ = None
        check_kind_rows(detector, there="kind_rows_" in parts)
        if detector.feature_map_.likeness_weight and detector.statistics_.anomalous is None:
            damaged("the sums of its anomalous rows are not there")
        trees, leaves = detector.feature_map_.trees, detector.statistics_.leaves
        if (0 if trees is None else trees.n_leaves) != (0 if leaves is None else len(leaves)):
            damaged("the leaves of its trees have not one sum each")
        detector.leaf_votes_ = leaf_votes(detector.feature_map_, detector.statistics_)
        labels = detector.labels_.labels
        name_columns(detector)
        by_number = labels is not None and not labels.by_name
        detector.classes_ = labels.classes if by_number else np.arange(2)
        return detector


DETECTORS: dict[str, Codec] = {
    "detector.Detector": DetectorCodec(
        "eqsep.detector.detector",
        (
            {
                "normal": either(word(None), LABEL),
                "false_alarm_rate": RATE,
                "confidence": either(word(None), RATE),
                "unseen_rate": RATE,
                "alpha": POSITIVE,
                "unlabelled": word("auto", "trusted", "doubted"),
                "unlabelled_weight": POSITIVE,
                "feature_map": either(word(None, True), instance("feature_map.FeatureMap")),
                "feature_map_": sized(
                    "feature_map.FeatureMap", lambda made: made.landmarks.shape, "m", "k"
                ),
                "labels_": sized("labels.RowLabels", lambda read: (1 + len(read.kinds),), "t"),
                "one_class_": FLAG,
                "promised_rate_": RATE,
                "statistics_": sized(
                    "nystroem.Statistics", lambda sums: sums.moment.shape, "m", "t"
                ),
                "coef_": bounded("m", "t", dtype=_DOUBLE),
                "calibration_": sized(
                    "scoring.Calibration", lambda held: held.rows.shape, None, "k"
                ),
            },
        ),
        {
            "anomaly_coef_": bounded("m", dtype=_DOUBLE),
            "promised_confidence_": either(word(None), RATE),
            "caution_": either(word(None), instance("checks.Finding")),
            "left_out_": TEXTS,  # columns that the command was told to leave out
            "kind_rows_": instance("naming.KindRows"),
        },
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
            "groups": array(None, kinds="u"),
        },
    ),
    "detector.KindRows": KindRowsCodec("eqsep.detector.naming", KIND_ROWS),
    **GROUPINGS,
    "engine.Ellipsoid": RecordCodec(
        "eqsep.engine.ellipsoid",
        {
            "centre": bounded("d", dtype=_DOUBLE),
            "axes": bounded("d", "r", dtype=_DOUBLE),
            **dict.fromkeys(("edge", "tail"), POSITIVE),
            "weight": _COUNT,
        },
    ),
    "engine.Trees": TreesCodec(
        "eqsep.engine.trees",
        {
            "root": array("trees", kinds="i"),
            **dict.fromkeys(("column", "left", "right"), array("nodes", kinds="i")),
            "limit": bounded("nodes", dtype=_SINGLE),
        },
    ),
    "separators.Statistics": StatisticsCodec("eqsep.engine.nystroem"),
    "tables.TableEncoder": EncoderCodec("eqsep.tables.encoder"),
}
ANSWERING_PIECES: dict[str, Codec] = {  # the same parts, read as what learns nothing
    "detector.Detector": replace(
        DETECTORS["detector.Detector"], home="eqsep.detector.answers", called="FittedDetector"
    ),
    "tables.TableEncoder": EncoderCodec("eqsep.tables.fitted", called="FittedEncoder"),
}
