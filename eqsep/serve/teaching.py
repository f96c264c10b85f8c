"""What operations make of a detector, and a hash of all that it holds."""

import copy
import hashlib
import threading
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from eqsep.detector import Detector
from eqsep.errors import EqsepWarning, UserError
from eqsep.serve.log import LEARN, Lesson, Row

_ONE_AT_A_TIME = threading.Lock()  # warnings are caught for all threads


def digest(detector: Detector) -> str:
    """A hash of all that a detector has learnt: sums, kept rows, kinds, and what is fixed."""
    sums, fixed, kept = detector.statistics_, detector.feature_map_, detector.kind_rows_
    of_kinds = sorted(zip(kept.kind.tolist(), map(bytes, kept.rows), strict=True))
    told = (detector.kinds_, detector.threshold_, of_kinds)  # in whatever order they were learnt
    learnt = hashlib.sha256(repr(told).encode())
    arrays = [sums.gram, sums.moment, sums.weight, sums.anomalous, sums.leaves]
    arrays += [detector.calibration_.rows, fixed.landmarks]
    arrays += [detector.coef_, detector.anomaly_coef_, detector.leaf_votes_]
    for array in arrays:
        learnt.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return learnt.hexdigest()


def label_for(detector: Detector, label: str) -> Any:
    """A label as the detector knows it: its own normal one, or its number."""
    labels = detector.labels_.labels
    if labels is None or labels.by_name:
        normal = "normal" if labels is None else labels.classes[0]
        return normal if label == "normal" else label
    names = {"normal": labels.classes[0]} | {str(kind): kind for kind in labels.kinds}
    if label not in names:
        raise UserError(
            f"This model was fitted to labels that are numbers, and knows {sorted(names)} alone: "
            f"{label!r} cannot be learnt. Fit anew with names of kinds as labels."
        )
    return names[label]


def done(
    detector: Detector, operation: str, more: Lesson | Detector
) -> tuple[Detector, tuple[str, ...]]:
    """Another detector, which the operation has made of this one, and what it warned of."""
    made = copy.copy(detector)  # what is learnt takes the place of what was there
    with _ONE_AT_A_TIME, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if isinstance(more, Detector):
            made.merge(more)
        elif operation == LEARN:
            made.partial_fit(**_told(more, detector))
        else:
            made.forget(**_told(more, detector))
    told = (str(one.message) for one in caught if issubclass(one.category, EqsepWarning))
    return made, tuple(dict.fromkeys(told))


def nameless(detector: Detector) -> Detector:
    """A copy that learns and scores the same, and keeps no rows of kinds to name alarms by."""
    made = copy.copy(detector)
    made.feature_map_ = replace(detector.feature_map_, kind_bounds=None)
    return made


def rows_for(detector: Detector, rows: list[Row]) -> list[Any]:
    """Rows with the columns that the detector knows; others, an entity's say, are left out.

    Examples
    --------
    >>> detector = Detector(bandwidth=1.0, n_landmarks=9).fit([{"x": i % 7} for i in range(200)])
    >>> rows_for(detector, [{"x": 1, "card": "c7"}])
    [{'x': 1}]
    """
    feature_map = detector.feature_map_
    names = [*feature_map.table_columns]
    if not hasattr(feature_map.encoder, "feature_names_in_"):  # fitted to an array
        return [[row.get(name) for name in names] for row in rows]
    known = {*names, *(() if feature_map.grouping is None else feature_map.grouping.columns)}
    if all(row.keys() <= known for row in rows):
        return rows
    return [{name: value for name, value in row.items() if name in known} for row in rows]


def _told(lesson: Lesson, detector: Detector) -> dict[str, Any]:
    """A lesson as the methods of a detector take it."""
    labels = [label_for(detector, label) for label in lesson.labels]
    return {"X": rows_for(detector, lesson.rows), "y": labels, "judged": lesson.judged}


def check_servable(name: str, detector: Any) -> None:
    if not name or len(name) > 100 or not name.isprintable() or "/" in name:
        raise UserError(
            f"{name!r} cannot be a model's name: expected 1 to 100 printable characters, no slash."
        )
    if not isinstance(detector, Detector) or not hasattr(detector, "feature_map_"):
        raise UserError(
            f"A service needs a fitted Detector, got {type(detector).__name__}: fit one with "
            f"eqsep fit."
        )
    if detector.feature_map_.windows is not None:
        raise UserError(
            "A model with windows reads the rows of a run in order, which a service of single rows "
            "does not keep. Score files with eqsep score, or fit without windows."
        )
