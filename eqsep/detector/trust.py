"""Trust: what the labels of a first fit say of rows that nobody has called anomalous.

Such a row is labelled normal or has no label. It is trusted to be normal, or doubted: it may be an
anomaly that nobody has noticed.
"""

from typing import Any

import numpy as np

from eqsep.detector.holdout import held_out
from eqsep.detector.scoring import STEP
from eqsep.errors import UserError
from eqsep.labels import UNLABELLED, RowLabels, listed, read_row_labels


def opened(
    detector: Any, labels: RowLabels, counts: np.ndarray, *, given: bool
) -> tuple[RowLabels, bool]:
    """The first labels, and whether rows without one are normal; refused where none can be.

    Each of the labels is that of so many rows. By default rows without a label are normal ones
    where none is labelled so, and where they are trusted always. Where they are doubted, they are
    unless enough rows are labelled normal for these alone to set the threshold.
    """
    refuse_labels(labels, counts, normal=detector.normal, given=given)
    n_normal = int(counts[labels.code == 0].sum())
    enough = held_out(n_normal) + 1 >= max(STEP, 1 / detector.false_alarm_rate)
    alone = enough and bool((labels.code == UNLABELLED).any())
    one_class = {"auto": not n_normal, "trusted": True, "doubted": not alone}[detector.unlabelled]
    return labels.trusting_unlabelled() if one_class else labels, one_class


def is_doubted(detector: Any, labels: RowLabels, *, one_class: bool) -> bool:
    """Whether rows that are learnt as normal ones may be anomalies, of which some are labelled.

    By default rows that are labelled normal are trusted, and those without a label are not.
    """
    asked = {"auto": one_class, "trusted": False, "doubted": True}
    return asked[detector.unlabelled] and bool(labels.kinds)


def is_calibration_doubted(detector: Any) -> bool:
    """Whether rows by which a fitted detector sets its threshold may be anomalies.

    Where rows are doubted and these are not, all of them are labelled normal, and rows without a
    label are learnt alone.
    """
    return bool(detector.feature_map_.doubted and detector.one_class_)


def refuse_labels(labels: RowLabels, counts: np.ndarray, *, normal: Any, given: bool) -> None:
    """Refuse the labels of a first fit where no row stands for the normal ones, or none says.

    Labels that are `given`, and all of them missing, are more often a mistake than a choice. So are
    labels of which none is normal, where the rows without one, which would have to be, are few, or
    a kind is called as the normal rows are but for case and blanks.

    Parameters
    ----------
    counts : ndarray of shape (n,)
        How many rows each of the labels stands for.
    """
    if given and labels.labels is None:
        raise UserError(
            "There is no label: all of them are missing.",
            hint="Pass y=None to learn all rows as normal ones, or check where the labels were "
            "lost.",
            topic="no_label",
        )
    unlabelled, labelled = (int(counts[labels.code == UNLABELLED].sum()), int(counts.sum()))
    labelled -= unlabelled
    if (labels.code == 0).any() or not labelled:
        return
    wanted = "0, False or 'normal'" if normal is None else repr(normal)
    found = f"every label ({listed(np.array(labels.kinds))}) is a kind of anomaly"
    if not unlabelled:
        raise _normal_unsaid(
            f"Normal rows are needed, got one class only: {found}, and none is {wanted}.",
            "add rows that are normal or without a label.",
        )
    alike = {kind.strip().casefold() for kind in labels.kinds}
    if labelled >= unlabelled or str(normal).strip().casefold() in alike:
        raise _normal_unsaid(
            f"No label is {wanted}: {found}, of {labelled:,} rows, and {unlabelled:,} rows have "
            f"none.",
            "add rows without a label, if these are to be the normal ones.",
        )


def _normal_unsaid(message: str, other: str) -> UserError:
    """The error where no label is the normal one, and what else can be done about it."""
    hint = f"Say which label is normal, normal=..., or {other}"
    return UserError(message, hint=hint, topic="no_normal_label", other=other)


def accuracy(detector: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """The share of labelled rows that a fitted detector tells right, normal from anomalous."""
    from sklearn.metrics import accuracy_score  # slow to import

    alarm = detector.decision_function(X) > 0
    labels = read_row_labels(y, n_rows=len(alarm), normal=detector.normal, known=detector.labels_)
    known = labels.code != UNLABELLED
    weight = None if sample_weight is None else np.asarray(sample_weight)[known]
    return float(accuracy_score(labels.code[known] > 0, alarm[known], sample_weight=weight))
