"""What lessons make of a detector, and a hash of all that it holds."""

import copy
import hashlib
import threading
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from eqsep.detector import Detector
from eqsep.detector.audit import rows_to_learn
from eqsep.detector.evidence import gather
from eqsep.detector.model import Model
from eqsep.errors import EqsepWarning, UserError
from eqsep.labels import NORMAL
from eqsep.serve.log import LEARN, Lesson, Row

_ONE_AT_A_TIME = threading.Lock()  # warnings are caught for all threads


def digest(model: Model) -> str:
    """A hash of all that a model has learnt: its evidence, its score, and its landmarks."""
    evidence, score = model.evidence, model.score
    sums, kept = evidence.sums, evidence.kinds
    kind_rows = sorted(zip(kept.kind.tolist(), map(bytes, kept.rows), strict=True))
    content = (model.kinds, model.threshold, kind_rows)  # in whatever order they were learnt
    learnt = hashlib.sha256(repr(content).encode())
    arrays = [sums.gram, sums.moment, sums.weight, sums.anomalous, sums.leaves]
    arrays += [evidence.held_out.normal, model.plan.terms.landmarks]
    arrays += [score.coef, score.likeness_coef, score.leaf_votes]
    for array in arrays:
        learnt.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return learnt.hexdigest()


def _labels_for(model: Model, labels: Sequence[str]) -> list[Any]:
    """Labels as the model knows them: its own normal one, or its numbers."""
    known = model.evidence.labels.labels
    if known is None or known.by_name:
        normal = NORMAL if known is None else known.classes[0]
        return [normal if label == NORMAL else label for label in labels]
    numbers = {NORMAL: known.classes[0]} | {str(kind): kind for kind in known.kinds}
    for label in labels:
        if label not in numbers:
            raise UserError(
                f"This model was fitted to labels that are numbers, and knows {sorted(numbers)} "
                f"alone: {label!r} cannot be learnt. Fit again with names of kinds as labels."
            )
    return [numbers[label] for label in labels]


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
            made.partial_fit(**_arguments(more, detector.model_))
        else:
            made.forget(**_arguments(more, detector.model_))
    messages = (str(one.message) for one in caught if issubclass(one.category, EqsepWarning))
    return made, tuple(dict.fromkeys(messages))


def after_learning(model: Model, lesson: Lesson) -> Model:
    """The model once it has learnt a lesson, which is not checked for anything to warn of.

    Scores come at once; what tells the kinds apart is made when a name is first asked for.
    """
    table, labels = rows_to_learn(
        model, rows_for(model, lesson.rows), _labels_for(model, lesson.labels)
    )
    more = gather(model.plan, table, labels, judged=lesson.judged)
    return model.taught(model.evidence + more)


def rows_for(model: Model, rows: list[Row]) -> list[Any]:
    """Rows with the columns that the model knows; others, an entity's say, are left out.

    Examples
    --------
    >>> detector = Detector(bandwidth=1.0, n_landmarks=9).fit([{"x": i % 7} for i in range(200)])
    >>> rows_for(detector.model_, [{"x": 1, "card": "c7"}])
    [{'x': 1}]
    """
    plan = model.plan
    names, grouping = [*plan.table_columns], plan.holdout.grouping
    if plan.encoder.names is None:  # fitted to an array
        return [[row.get(name) for name in names] for row in rows]
    known = {*names, *(() if grouping is None else grouping.columns)}
    if plan.windows is not None:
        known |= {*plan.windows.added}
        if len({plan.windows.added[0] in row for row in rows}) > 1:
            raise UserError("Expected windows with every row, or with none, where runs are whole.")
    if all(row.keys() <= known for row in rows):
        return rows
    return [{name: value for name, value in row.items() if name in known} for row in rows]


def _arguments(lesson: Lesson, model: Model) -> dict[str, Any]:
    """A lesson as the methods of a detector take it."""
    rows, labels = rows_for(model, lesson.rows), _labels_for(model, lesson.labels)
    return {"X": rows, "y": labels, "judged": lesson.judged}


def check_servable(name: str, detector: object) -> None:
    """Refuse a name that a model cannot have, and what is not a detector for single rows."""
    if not name or len(name) > 100 or not name.isprintable() or "/" in name:
        raise UserError(
            f"{name!r} cannot be a model's name: expected 1 to 100 printable characters, no slash."
        )
    if not isinstance(detector, Detector) or not hasattr(detector, "model_"):
        raise UserError(
            f"A service needs a fitted Detector, got {type(detector).__name__}: fit one with "
            f"eqsep fit."
        )
    grouping = detector.plan_.holdout.grouping
    if detector.plan_.windows is not None and grouping is not None and grouping.columns[0] == "":
        raise UserError(
            "The windows of this model are taken run by run, and its groups were not a column of "
            "the fit, so rows cannot say which run they are of. Fit it with groups='COLUMN'."
        )
