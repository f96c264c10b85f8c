"""Term: one way in which a row can be anomalous. Terms are chosen with the plan and never change.

A term says what rows add to its sums, and solves from them a function of encoded rows. Sums add up
exactly over rows, in any order and division, so learning and forgetting are `+` and `-`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.arrays import same_parts
from eqsep.detector.config import Config
from eqsep.engine.backends import Backend
from eqsep.tables.encoder import Encoder, Packing

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False, kw_only=True)
class Sums(schemas.Kept):
    """What rows add up to for one term: arrays by name."""

    symmetric: Arrays = field(default_factory=dict)  # matrices that equal their transpose
    totals: Arrays = field(default_factory=dict)  # of any shape
    by_class: Arrays = field(default_factory=dict)  # last axis: normal rows, then each kind

    SCHEMAS: ClassVar = dict.fromkeys(
        ("symmetric", "totals", "by_class"), schemas.entries(schemas.SUM)
    )

    def __add__(self, other: Self) -> Self:
        return self._with(other, np.add)

    def __sub__(self, other: Self) -> Self:
        return self._with(other, np.subtract)

    def _with(self, other: Self, combine: Callable[..., np.ndarray]) -> Self:
        def both(ours: Arrays, theirs: Arrays) -> Arrays:
            return {name: combine(ours[name], theirs[name]) for name in ours}

        return type(self)(
            symmetric=both(self.symmetric, other.symmetric),
            totals=both(self.totals, other.totals),
            by_class=both(self.by_class, other.by_class),
        )

    def with_classes(self, change: Callable[[np.ndarray], np.ndarray]) -> Self:
        """The sums with a change of the classes, the last axis of what is summed by class."""
        changed = {name: change(array) for name, array in self.by_class.items()}
        return type(self)(symmetric=self.symmetric, totals=self.totals, by_class=changed)

    def state(self) -> dict[str, Any]:
        """The parts of a model file; of a symmetric matrix, the lower triangle alone."""
        lower = {name: a[np.tril_indices(len(a))] for name, a in self.symmetric.items()}
        return {"symmetric": lower, "totals": dict(self.totals), "by_class": dict(self.by_class)}

    @classmethod
    def from_state(cls, state: dict[str, Any], **others: Any) -> Self:
        """The sums of these parts."""
        schemas.check_parts(state, cls.SCHEMAS, "Sums")
        symmetric = {name: _square(lower) for name, lower in state["symmetric"].items()}
        return cls(**state | {"symmetric": symmetric}, **others)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array by its form and name."""
        forms = {form: getattr(self, form) for form in self.SCHEMAS}
        return {
            f"{form}.{name}": array.shape
            for form, arrays in forms.items()
            for name, array in arrays.items()
        }


def _square(lower: np.ndarray) -> np.ndarray:
    """The symmetric matrix with this lower triangle."""
    n = int((2 * lower.size) ** 0.5)
    if lower.ndim != 1 or len(lower) != n * (n + 1) // 2:
        schemas.damaged("the matrix of its sums is not a triangle")
    whole, (i, j) = np.empty((n, n)), np.tril_indices(n)
    whole[i, j] = whole[j, i] = lower
    return whole


@dataclass(frozen=True, eq=False, kw_only=True)
class FirstRows:
    """The encoded rows that terms are chosen from, and all that the choice depends on."""

    rows: np.ndarray  # float32
    is_anomaly: np.ndarray
    kinds: tuple[str, ...]  # of the anomalies
    weight: np.ndarray | None
    encoder: Encoder
    config: Config  # with the values for doubted rows, if they are
    doubted: bool  # whether rows that stand for normal ones may be anomalies
    isolation: str  # what becomes of isolated rows that nobody has looked at
    isolated: np.ndarray  # which rows are such rows
    rng: np.random.RandomState
    key: int  # decides which of many rows are looked at
    chosen: Mapping[str, "Term"] = field(default_factory=dict)  # the terms before, by name

    @cached_property
    def packed(self) -> np.ndarray:
        """The rows as kernel and trees see them."""
        packed: np.ndarray = self.encoder.pack(self.rows)
        return packed

    @property
    def describing(self) -> np.ndarray:
        """Which rows say what is normal: those that are not anomalous, nor isolated."""
        return np.asarray((self.is_anomaly == 0) & ~self.isolated)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsToSum:
    """Encoded rows to learn, one class each."""

    rows: np.ndarray
    target: np.ndarray  # (n, 1 + n_kinds): 1 at the class of the row
    weight: np.ndarray
    isolated: np.ndarray  # whether it is isolated, and nobody has looked at it
    backend: Backend

    @property
    def looks_normal(self) -> np.ndarray:
        """Which rows are normal and not isolated."""
        return np.asarray((self.target[:, 0] > 0) & ~self.isolated)

    def take(self, places: np.ndarray) -> "RowsToSum":
        """The subset at these places."""
        parts = (self.rows, self.target, self.weight, self.isolated)
        rows, target, weight, isolated = (part[places] for part in parts)
        return RowsToSum(
            rows=rows, target=target, weight=weight, isolated=isolated, backend=self.backend
        )


@dataclass(eq=False)
class EncodedRows:
    """Encoded rows to score, with what several terms see of them, computed once."""

    rows: Any  # an array, or a tensor
    pack: Packing
    backend: Backend
    _views: dict[int, Any] = field(default_factory=dict)

    @cached_property
    def packed(self) -> Any:
        """The rows as kernel and trees see them.  -> (n, n_packed)"""
        return self.pack(self.rows)

    def once(self, owner: "Term", view: Callable[[Any, Backend], Any]) -> Any:
        """What `view` makes of the rows, for a term that others ask for it too."""
        if id(owner) not in self._views:
            self._views[id(owner)] = view(self.rows, self.backend)
        return self._views[id(owner)]


@dataclass(frozen=True, eq=False, kw_only=True)
class LearntSums:
    """What terms are solved from."""

    of_terms: Mapping[str, Sums]
    weight: np.ndarray  # of the normal rows, then of each kind
    kinds: tuple[str, ...]
    config: Config
    doubted: bool

    @property
    def n_anomalies(self) -> float:
        """The weight of the anomalous rows."""
        return float(self.weight[1:].sum())


class TermFunction(ABC):
    """A term with what was solved for it: one number for each encoded row."""

    @property
    def landmark_coef(self) -> np.ndarray | None:
        """The coefficients of the functions over landmarks that it looks at, if any.  (m, q)"""
        return None

    @abstractmethod
    def __call__(self, rows: EncodedRows, at_landmarks: Any) -> Any:
        """The values of rows; `at_landmarks` holds Σ_j a_j k(x, c_j) of its functions.  -> (n,)"""

    def state(self) -> dict[str, Any]:
        """What a model file holds of it, beside the sums."""
        return {}


class Term(schemas.Kept, ABC):
    """One way in which a row can be anomalous, as a frozen dataclass."""

    name: ClassVar[str]  #: under which the formula knows its values
    weight: float = 1.0  #: in the score
    NOT_COMPARED: ClassVar[tuple[str, ...]] = ()  # fields that do not change what rows score

    @classmethod
    @abstractmethod
    def choose(cls, first: FirstRows) -> Self | None:
        """The term for the first rows; None where it has nothing to say."""

    @abstractmethod
    def accumulate(self, rows: RowsToSum) -> Sums:
        """What these rows add to the sums."""

    @abstractmethod
    def solve(self, learnt: LearntSums) -> TermFunction:
        """The function that the sums of all learnt rows give."""

    def solved(self, learnt: LearntSums, state: dict[str, Any]) -> TermFunction:
        """The same from what a model file holds of the function."""
        schemas.check_parts(state, {}, type(self))
        return self.solve(learnt)

    def is_same(self, other: "Term") -> bool:
        """Whether rows with the same sums get the same values."""
        names = [name for name in self.SCHEMAS if name not in self.NOT_COMPARED]
        return type(self) is type(other) and all(
            same_parts(getattr(self, name), getattr(other, name)) for name in names
        )

    @classmethod
    def load(cls, state: dict[str, Any], *, encoder: Encoder, before: Mapping[str, "Term"]) -> Self:
        """The term of these parts, for rows of an encoder; `before` has the terms before it."""
        del encoder, before
        return cls.from_state(state)
