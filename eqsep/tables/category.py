"""A learnt column of names: one output for each frequent one, and one for those never seen."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from eqsep.tables.column import NAME_WEIGHT, Column

FAR = 2.0  # a name never seen is farther from every seen one than those are from each other


@dataclass(frozen=True)
class Category:
    """Names as outputs of 0 and 1, with rare names pooled and new ones at `FAR`.

    Attributes
    ----------
    frequent : list of str
        The names that have an output of their own, the most frequent first.
    rare : list of str
        The names of training that share one output.
    with_missing : bool
        Whether training had missing values, which then have an output; else they are new.
    boolean : bool
        Whether the names are "False" and "True", which 0 and 1 are read as.
    """

    frequent: list[str]
    rare: list[str]
    with_missing: bool
    boolean: bool = False

    kind = "category"

    @classmethod
    def learn(cls, column: Column, *, max_categories: int, min_count: int) -> Self:
        """Count the names."""
        counts = _counts(column)
        with_missing = counts.total() < len(column.values)
        names = sorted(counts, key=lambda name: (-counts[name], name))
        frequent = [name for name in names[:max_categories] if counts[name] >= min_count]
        if column.kind == "boolean":  # two names are never too many, nor a truth too rare
            frequent = sorted(names)
        return cls(frequent, names[len(frequent) :], with_missing, column.kind == "boolean")

    @property
    def reads(self) -> str:
        """The kind of column that the values are read as."""
        return "boolean" if self.boolean else "text"

    @property
    def outputs(self) -> list[str]:
        """What follows the column's name in the names of the outputs."""
        known = [f"={name}" for name in self.frequent]
        return [*known, *[":rare"] * bool(self.rare), *[":missing"] * self.with_missing, ":new"]

    @property
    def weights(self) -> list[float]:
        """What each output counts in a distance between rows."""
        return [NAME_WEIGHT] * len(self.outputs)

    @property
    def groups(self) -> list[int]:
        """Outputs of one group rise together: each is one of its own."""
        return list(range(len(self.outputs)))

    def value(self, outputs: np.ndarray) -> str:
        """The name that the outputs of one row encode."""
        told = self.outputs[int(np.argmax(outputs))]
        return told.removeprefix("=") if told.startswith("=") else told.removeprefix(":")

    def encode(self, column: Column) -> np.ndarray:
        """The outputs side by side.  (n,) -> (n, k)"""
        place, height = self.places(column)
        out = np.zeros((len(place), len(self.outputs)))
        out[np.arange(len(place)), place] = height
        return out

    def places(self, column: Column) -> tuple[np.ndarray, np.ndarray]:
        """The only output of each row that is not 0, and what it is.  (n,) -> (n,), (n,)"""
        names, rows = column.names(truths=self.boolean)
        new = len(self.outputs) - 1
        place: dict[str | None, int] = {name: i for i, name in enumerate(self.frequent)}
        place |= dict.fromkeys(self.rare, len(self.frequent))
        if self.with_missing:
            place[None] = new - 1
        code = np.array([place.get(name, new) for name in names], dtype=np.intp)
        return code[rows], np.where(code == new, FAR, 1.0)[rows]

    def describe(self, output: int, value: float) -> str:
        """What the encoded value says."""
        told = self.outputs[output]
        yes = value > 0.5
        if told.startswith("=") and output < len(self.frequent):
            return f"= {told[1:]}" if yes else f"is not {told[1:]}"
        said = {":rare": "rare", ":missing": "missing", ":new": "new"}[told]
        return f"is {said}" if yes else f"is not {said}"

    def state(self) -> dict[str, Any]:
        """Plain data from which `from_state` makes the same again."""
        return asdict(self) | {"kind": self.kind}


def share_of_new(column: Column) -> float:
    """Good and Turing's estimate of the chance that the next value is one never seen."""
    counts = _counts(column)
    return sum(c == 1 for c in counts.values()) / max(counts.total(), 1)


def _counts(column: Column) -> Counter[str]:
    """How often each name occurs."""
    names, rows = column.names()
    times = np.bincount(rows, minlength=len(names)).tolist()
    return Counter({name: n for name, n in zip(names, times, strict=True) if name is not None})
