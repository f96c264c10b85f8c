"""The names that alarms are given against the labels of their rows, and the promise of names."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.signal import convolve
from scipy.stats import betabinom

from eqsep.detector.model import Model
from eqsep.evaluation.promises import Share
from eqsep.labels import OR, UNSEEN

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class NamedKind:
    """The alarms among the rows of one label, by the names that they are given.

    Examples
    --------
    >>> pump = NamedKind("pump", 9, {"pump": 3, "valve or pump": 2, "valve": 1, "unseen": 1})
    >>> pump.alarms, pump.alone, pump.among, pump.other, pump.unseen
    (7, 3, 2, 1, 1)
    """

    kind: str
    rows: int  #: Alarms and others.
    given: dict[str, int]  #: The alarms with each name, "a", "a or b" or "unseen", most first.

    @property
    def alarms(self) -> int:
        """How many of the rows raise an alarm."""
        return sum(self.given.values())

    @property
    def alone(self) -> int:
        """The alarms with one name, that of the kind."""
        return self.given.get(self.kind, 0)

    @property
    def among(self) -> int:
        """The alarms with several names, that of the kind among them."""
        own = f"{OR}{self.kind}{OR}"  # a kind may have OR in its name
        return sum(n for names, n in self.given.items() if own in OR + names + OR) - self.alone

    @property
    def unseen(self) -> int:
        """The alarms that are called "unseen"."""
        return self.given.get(UNSEEN, 0)

    @property
    def other(self) -> int:
        """The alarms with names of other kinds only."""
        return self.alarms - self.alone - self.among - self.unseen


@dataclass(frozen=True)
class NamesPromise:
    """The rate at which rows of a seen kind may be called "unseen", and the rate among new rows."""

    rate: float
    kinds: tuple[str, ...]  #: Those with rows here, and with enough learnt rows to promise it.
    called: Share  #: Of all rows of these kinds, those that are called "unseen".
    #: At most this share is called so, with 95 % confidence, if the promise is kept. None if rows
    #: come in groups, in which they are alike: a count of rows cannot tell.
    most_expected: float | None

    @property
    def verdict(self) -> str | None:
        """Whether the promise is kept, as far as chance lets one tell."""
        if self.most_expected is None:
            return None
        kept = self.called.value <= self.most_expected
        return "as promised" if kept else "more than chance explains"


@dataclass(frozen=True)
class Names:
    """The names that alarms are given, label by label."""

    kinds: tuple[NamedKind, ...]  #: Every label, the normal one too, in alphabetical order.
    normal: str
    seen: tuple[str, ...]  #: The kinds that the detector has learnt.
    promise: NamesPromise | None  #: None without one, or without rows that it covers.

    @property
    def alone(self) -> Share:
        """Of the alarms of seen kinds, those with the right name alone."""
        return self._share(self.seen, ("alone",))

    @property
    def among(self) -> Share:
        """Of the alarms of seen kinds, those with the right name among theirs, or alone."""
        return self._share(self.seen, ("alone", "among"))

    @property
    def unseen_right(self) -> Share:
        """Of the alarms of unseen kinds, those that are called "unseen"."""
        names = {one.kind for one in self.kinds} - {self.normal, *self.seen}
        return self._share(names, ("unseen",))

    def _share(self, names: Collection[str], counts: Sequence[str]) -> Share:
        """Of the alarms of the kinds with these names, those in some of their counts."""
        kinds = [one for one in self.kinds if one.kind in names]
        hits = sum(getattr(one, count) for one in kinds for count in counts)
        return Share.counted(hits, sum(one.alarms for one in kinds))


def names_given(
    model: Model, kind: np.ndarray, alarm: np.ndarray, given: np.ndarray, *, normal: str
) -> Names:
    """The names that alarms are `given`, as `Model.kind_of` names rows, by their label `kind`."""
    kinds = []
    for name in np.unique(kind).tolist():
        own = kind == name
        counts = Counter(given[alarm & own].tolist())
        kinds.append(NamedKind(name, int(own.sum()), dict(counts.most_common())))
    return Names(tuple(kinds), normal, model.kinds, _promise(model, kinds))


def _promise(model: Model, kinds: Iterable[NamedKind]) -> NamesPromise | None:
    """The promise for the kinds with enough rows, if any."""
    if not model.namer.has_promise:
        return None
    rate, rows = float(model.promise.unseen_rate), model.evidence.kinds
    learnt = {name: rows.n_units(name) for name in model.kinds}
    rank = {name: math.floor(rate * (n + 1) + 1e-9) for name, n in learnt.items()}
    promised = [one for one in kinds if rank.get(one.kind, 0) > 0]
    called = Share.counted(sum(one.unseen for one in promised), sum(one.rows for one in promised))
    if not called.total:
        return None
    chances = []  # of each count of new rows at least as unlike a kind as its k-th of n
    for one in promised:
        k, n = rank[one.kind], learnt[one.kind]
        chances.append(betabinom(one.rows, k, n + 1 - k).pmf(np.arange(one.rows + 1)))
    below = np.cumsum(reduce(convolve, chances))  # of all together
    most = int(np.searchsorted(below, (1 + _CONFIDENCE) / 2)) / called.total
    names = tuple(one.kind for one in promised)
    return NamesPromise(rate, names, called, None if len(rows.groups) else most)
