"""Rows that were learnt before: noticed by those that are held out, which a detector keeps.

A normal row is held out by a hash of its values alone. So of rows that were learnt before, those
that would be held out now are among the held-out ones already; of new rows they are not. By such a
hash rows of the seen kinds are kept, too, by which alarms are named: of anomalies these tell.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.detector.fitting import context_of
from eqsep.detector.naming import KindRows, has_promise
from eqsep.errors import EqsepWarning, warn
from eqsep.labels import RowLabels
from eqsep.tables.reading import Table, read_table

_ALIKE = 0.02  # the share of new rows that may be equal to learnt ones, whatever the table
_FEWEST, _MOST_OF = 3, 0.9  # anomalies that are landmarks: so many, and this share, are no chance
_SURE = 0.01  # the chance at which more than that is no chance any more


class RepeatedRowsWarning(EqsepWarning):
    """Rows are learnt that were learnt before: they count twice."""


@dataclass(frozen=True)
class Repeats:
    """How many rows that are to be held out are held out already.

    Attributes
    ----------
    checked, found : int
        Rows that are to be held out, and those among them that are.
    by_chance : float
        The share that is found of new rows, as values of this table repeat: an upper bound, from
        how many held-out rows are equal.
    """

    checked: int
    found: int
    by_chance: float

    @property
    def share(self) -> float:
        """The share of the rows that was learnt before, beyond what repeats by chance."""
        if not self.checked or self.by_chance >= 1:
            return 0.0
        return max(self.found / self.checked - self.by_chance, 0.0) / (1 - self.by_chance)

    @property
    def are_learnt(self) -> bool:
        """Whether some were learnt before, beyond reasonable doubt."""
        from scipy.stats import binom  # half a second: scoring does not wait for it

        chance = self.by_chance + _ALIKE
        return chance < 1 and float(binom.sf(self.found - 1, self.checked, chance)) < _SURE


def learnt_before(detector: Any, X: Any, y: Any = None) -> Repeats:
    """Whether a fitted detector has learnt these rows, or some of them.

    Parameters
    ----------
    detector : Detector
    X : table
    y : array-like of shape (n_rows,), default=None
        The labels of the rows. Only normal ones can be told, and rows without a label where these
        count as normal.

    Examples
    --------
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> detector = Detector(n_landmarks=50, bandwidth=1.0, random_state=0).fit(X[:600])
    >>> [learnt_before(detector, rows).share for rows in (X[:300], X[600:])]
    [1.0, 0.0]
    """
    feature_map = detector.feature_map_
    table = feature_map.aligned(read_table(X, name=type(detector).__name__))
    labels = context_of(detector).row_labels(y, n_rows=table.n_rows)
    places = held_normal(detector, table, labels)
    return repeats(detector, feature_map.rows(table.take(places)))


def held_normal(detector: Any, table: Table, labels: RowLabels) -> np.ndarray:
    """The places of the rows of an aligned table that calibrate: normal ones, held out.

    Where groups are held out, and rows come without theirs, all normal ones may be.
    """
    normal = labels.code == 0
    if detector.feature_map_.grouping is not None and table.groups is None:
        return np.flatnonzero(normal)
    _, held, _ = detector.feature_map_.divided(table, labels)
    return np.flatnonzero(held & normal)


def repeats(detector: Any, rows: np.ndarray) -> Repeats:
    """How many of these rows, encoded, which are to be held out, the detector holds out already."""
    share = detector.feature_map_.holdout_bound / 2**64  # of rows that are held out
    return _compared(_as_bytes(rows), known=_as_bytes(detector.calibration_.rows), share=share)


def _compared(rows: Iterable[bytes], *, known: Iterable[bytes], share: float) -> Repeats:
    """How many rows are among the known ones, which are a share of those that were learnt."""
    there, given = Counter(known), Counter(rows)
    twice, more = sum(n == 2 for n in there.values()), sum(n for n in there.values() if n > 2)
    chance = (2 * twice / max(share, 1e-9) + more) / max(there.total(), 1)
    return Repeats(given.total(), (there & given).total(), min(chance, 1.0))


def warn_of_repeats(detector: Any, rows: np.ndarray, anomalies: np.ndarray, kept: KindRows) -> None:
    """Warn where rows, encoded, show that some were learnt before.

    Of normal ones those that are to be held out do. Of anomalies those that are `kept` to name
    alarms by; in a model of an older file, which has none, those that have become landmarks in the
    first fit: of few anomalies all.
    """
    found = repeats(detector, rows)
    no_kept, landmarks = not has_promise(detector), set(_as_bytes(detector.feature_map_.landmarks))
    again = sum(row in landmarks for row in _as_bytes(anomalies))
    if no_kept and not len(rows) and again >= max(_FEWEST, _MOST_OF * len(anomalies)):
        _warn(
            f"{again:,} of the {len(anomalies):,} anomalies were learnt before: they are landmarks "
            f"of the first fit.",
            instead="Learn rows once; forget(X, y) takes them out again.",
        )
    for kind, known in _repeated_kinds(detector, kept):
        _warn(
            f"About {known.share:.0%} of the rows of kind {kind!r} were learnt before: of "
            f"{known.checked:,} that are to be kept for names, {known.found:,} are kept already.",
            instead="Learn rows once; forget(X, y) takes them out again.",
        )
    if found.are_learnt:
        _warn(
            f"About {found.share:.0%} of the normal rows were learnt before: of {found.checked:,} "
            f"that are to be held out, {found.found:,} are held out already.",
            instead="Learn rows once; forget(X, y) takes them out again.",
        )


def warn_of_common_rows(detector: Any, other: Any) -> None:
    """Warn where the held-out rows of two detectors show that both have learnt the same rows."""
    more, less = sorted((detector, other), key=lambda one: -len(one.calibration_.rows))
    found = repeats(more, less.calibration_.rows)
    if found.are_learnt:
        _warn(
            f"The two have learnt the same rows: of {found.checked:,} held-out rows of the one, "
            f"{found.found:,} are those of the other.",
            instead="Merge detectors that have learnt rows of their own.",
        )


def _warn(what: str, *, instead: str) -> None:
    message = f"{what} Such rows count twice then, and the promised rate of false alarms suffers."
    warn(RepeatedRowsWarning(message, hint=instead))


def _repeated_kinds(detector: Any, kept: KindRows) -> Iterator[tuple[str, Repeats]]:
    """The kinds of which some of the rows that are to be kept are kept already."""
    bounds, own = detector.feature_map_.kind_bounds or {}, detector.kind_rows_
    for kind in np.unique(kept.kind).tolist():
        given, known = (_as_bytes(one.rows[one.kind == kind]) for one in (kept, own))
        found = _compared(given, known=known, share=bounds.get(kind, 2**64) / 2**64)
        if found.found >= _FEWEST and found.are_learnt:
            yield kind, found


def _as_bytes(rows: np.ndarray) -> Iterable[bytes]:
    return map(bytes, np.ascontiguousarray(rows))
