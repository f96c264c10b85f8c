"""Kinds and scores at the door: what every measure refuses."""

from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from eqsep.errors import UserError
from eqsep.labels import is_missing

OVERALL = "overall"


def anomalous_kinds(kind: np.ndarray, normal: Any) -> list[Any]:
    """The kinds of anomaly in order, names or numbers as they are.

    Examples
    --------
    >>> anomalous_kinds(np.array(["scan", "normal", "flood"]), "normal")
    ['flood', 'scan']
    """
    return [name for name in np.unique(kind).tolist() if name != normal]


def check_kinds(kind: np.ndarray, *, normal: str) -> None:
    """Refuse kinds that are not known, or leave nothing to compare."""
    if missing := sum(map(is_missing, kind.tolist())):
        raise UserError(
            f"Expected the kind of every row, and {missing:,} of {len(kind):,} are missing. Leave "
            f"rows out whose kind is not known: X[known], kind[known]."
        )
    found = np.unique(kind).tolist()
    if normal not in found:
        raise UserError(
            f"Expected rows of the normal kind {normal!r}, found only {found}. "
            f"Name the normal kind: normal=..."
        )
    if len(found) < 2:
        raise UserError(
            f"Expected anomalous rows beside {normal!r}, found none. Add rows of some kind."
        )
    if OVERALL in found:
        raise UserError(
            f"No kind may be called {OVERALL!r}: it names the result of all kinds together. "
            f"Rename that kind."
        )


def checked_scores(score: Any, kind: Any, *, normal: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores and kinds as arrays, one of each for every row, with something to compare.

    Examples
    --------
    >>> checked_scores([1, 2], ["normal", "scan"], normal="normal")
    (array([1., 2.]), array(['normal', 'scan'], dtype='<U6'))
    """
    score, kind = np.asarray(column_or_1d(score), dtype=float), np.asarray(column_or_1d(kind))
    if len(score) != len(kind):
        raise UserError(
            f"Expected one score for each row: got {len(score)} scores and {len(kind)} kinds. "
            f"Score and name the same rows."
        )
    if not np.isfinite(score).all():
        raise UserError(
            f"Scores must be finite: {np.sum(~np.isfinite(score))} of {len(score)} are NaN or "
            f"infinite. Find the rows that the estimator could not score, or drop them."
        )
    check_kinds(kind, normal=normal)
    return score, kind
