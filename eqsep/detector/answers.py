"""Labels as a detector takes them: normal, a kind of anomaly, or missing."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.arrays import to_numpy
from eqsep.labels import Labels, column, listed, read_labels

UNLABELLED = -1


@dataclass(frozen=True)
class Answers:
    """What is known of each row.

    Attributes
    ----------
    code : ndarray of int of shape (n_rows,)
        0 where a row is normal, the place in `kinds` plus one where it is of that kind, and
        `UNLABELLED` where nothing is known.
    kinds : tuple of str
        The kinds of anomaly, in the order in which they were first seen.
    labels : Labels or None
        How labels are read from here on; None while no label was ever given.
    """

    code: np.ndarray
    kinds: tuple[str, ...]
    labels: Labels | None

    @property
    def is_anomaly(self) -> np.ndarray:
        """1.0 where a row is of a known kind."""
        return (self.code > 0).astype(float)


def read_answers(y: Any, *, n_rows: int, normal: Any, known: "Answers | None" = None) -> Answers:
    """The labels `y` of `n_rows` rows; None, or a missing one, says that nothing is known.

    Parameters
    ----------
    normal : label or None
        Which label is normal; None means 0, False or "normal", whichever occurs.
    known : Answers or None
        What earlier labels were: later ones are read the same way, and may name more kinds.

    Examples
    --------
    >>> answers = read_answers(["normal", None, "smurf"], n_rows=3, normal=None)
    >>> answers.code.tolist(), answers.kinds
    ([0, -1, 1], ('smurf',))
    """
    labels = known.labels if known else None
    kinds = known.kinds if known else ()
    y, missing = _missing(y, n_rows)
    if len(y) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y "
            f"has {len(y)} labels. Pass one label a row, None where it is not known."
        )
    code = np.full(n_rows, UNLABELLED)
    if missing.all():
        return Answers(code, kinds, labels)
    given = column(y[~missing])
    if labels is None:
        labels = read_labels(given, normal=normal, one_class=True)
    labels = labels.including(given)
    names = np.where(labels.encode(given) == 1, _names(given, labels), "")
    kinds = (*kinds, *(name for name in dict.fromkeys(names.tolist()) if name not in ("", *kinds)))
    place = {name: i for i, name in enumerate(("", *kinds))}
    code[~missing] = [place[name] for name in names.tolist()]
    return Answers(code, kinds, labels)


def _names(given: np.ndarray, labels: Labels) -> np.ndarray:
    """What each label is called as a kind: its own name, or "anomaly" for a number."""
    return given.astype(str) if labels.by_name else np.full(len(given), "anomaly")


def _missing(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The labels as an array, and which of them are missing."""
    if y is None:
        return np.full(n_rows, None), np.ones(n_rows, dtype=bool)
    y = to_numpy(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = column(y)  # warns, as scikit-learn does
    if y.dtype.kind == "f":
        return y, np.isnan(y)
    if y.dtype.kind == "O" and y.ndim == 1:
        missing = np.array([v is None or v != v or type(v).__name__ == "NAType" for v in y])
        return y, missing.astype(bool)
    return y, np.zeros(len(y), dtype=bool)


def check_answers(answers: Answers, *, normal: Any) -> None:
    """Refuse labels among which no row can stand for the normal ones."""
    if (answers.code <= 0).any():
        return
    wanted = "0, False or 'normal'" if normal is None else repr(normal)
    found = listed(np.array(answers.kinds))
    raise ValueError(
        f"Normal rows are needed, got one class only: every label ({found}) is a "
        f"kind of anomaly, and none is {wanted}. Say which label is normal: normal=..., or add "
        f" rows that are normal or without a label."
    )
