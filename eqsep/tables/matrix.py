"""Learnt columns side by side as a matrix: all numbers in one compiled pass, names by codes."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from eqsep.engine.compiled import compiled, in_threads
from eqsep.tables.column import LARGEST, Column, column_of, objects
from eqsep.tables.encodings import (
    DEVIATION,
    MISSING,
    RANK,
    Category,
    Date,
    Learnt,
    Number,
    beyond,
    deviation,
    encode_numbers,
    place_names,
    rank,
)

_AT_ONCE = 512  # rows, which stay in the processor's cache while column by column is encoded
_NUMBERS = {int, float, bool, type(None)}  # types of values that need no reading
_NAMES = {str, bool, type(None)}
Output = tuple[int, float]  # where it goes, and what it is
Coded = tuple[np.ndarray, np.ndarray]  # the name of each row by its code, and each code's output


class Numbers(NamedTuple):
    """All columns of numbers, and the time elapsed of dates, as `encode_numbers` takes them."""

    sources: list[int]
    reads: list[str]
    ranks: tuple[np.ndarray, np.ndarray]
    scales: np.ndarray
    outputs: tuple[np.ndarray, ...]


class Encoding:
    """Learnt columns side by side as a matrix, each row for itself to the last bit.

    Parameters
    ----------
    columns : sequence of Number, Category, Date or None
        None is a column that was dropped.
    weights : ndarray of shape (n_outputs,)
        What each output is multiplied by; those of 0 are left out.
    dtype : type
        Of the matrix.
    names : list of str, default=None
        The columns' names, where they have some.

    Examples
    --------
    >>> size = Number.learn(column_of("size", np.array([1.0, 2.0, 4.0])), unit="number",
    ...                     forms=["quantile"])
    >>> encoding = Encoding([size], np.ones(1), np.float32)
    >>> encoding.of_plain(np.array([[3.0], [np.nan]]))
    array([[ 0.75],
           [-2.  ]], dtype=float32)
    """

    def __init__(
        self,
        columns: Sequence[Learnt | None],
        weights: np.ndarray,
        dtype: type[np.floating],
        names: list[str] | None = None,
    ) -> None:
        self._columns, self._weights, self._dtype, self._names = columns, weights, dtype, names

    def __reduce__(self) -> tuple[Any, ...]:  # without what is made from the rest
        return type(self), (self._columns, self._weights, self._dtype, self._names)

    def of_table(self, columns: Sequence[Column], n_rows: int) -> np.ndarray:
        """The matrix of a table with these columns.  -> (n_rows, n_outputs)"""
        return self._matrix(n_rows, *self.read(columns))

    def read(self, columns: Sequence[Column]) -> tuple[list[np.ndarray], list[Coded]]:
        """The numbers of a table by column, and for each column of names its codes."""
        sources = zip(self.numbers.sources, self.numbers.reads, strict=True)
        numbers = [columns[j].numbers(reads) for j, reads in sources]
        coded = []
        for j, category, _ in self.categories:
            names, rows = columns[j].names(truths=category.boolean)
            coded.append((rows, category.places(names)))
        return numbers, coded

    @cached_property
    def n_outputs(self) -> int:
        """How many outputs count."""
        return int(np.count_nonzero(self._weights))

    def of_plain(self, X: Any) -> np.ndarray | None:
        """The matrix of a list of dicts or an array of numbers, of which no table is made.

        None where it is something else, its columns are not those of training, or a value is not
        plain and must be read with more care.
        """
        if isinstance(X, np.ndarray):
            fits = X.ndim == 2 and X.shape[1] == len(self._columns) and len(X)
            return self._of_array(X) if fits and self._names is None else None
        if not isinstance(X, list) or not X or type(X[0]) is not dict or self._names is None:
            return None
        if not all(type(row) is dict and row.keys() == self._named for row in X):
            return None
        return self._of_dicts(X)

    def _of_array(self, X: np.ndarray) -> np.ndarray | None:
        if X.dtype.kind not in "iuf" or set(self.numbers.reads) != {"number"} or self.categories:
            return None
        return self._matrix(len(X), _bounded(X.T[self.numbers.sources]), [])

    def _of_dicts(self, X: list[dict[str, Any]]) -> np.ndarray | None:
        """The matrix of rows with these columns, all of them."""
        numbers_of, names_of = self._values
        numbers = list(chain.from_iterable(map(numbers_of, X)))
        if not _NUMBERS.issuperset(map(type, numbers)):
            return None
        names = list(zip(*map(names_of, X), strict=True))
        if not _NAMES.issuperset(map(type, chain.from_iterable(names))):
            return None
        try:
            by_column = np.array(numbers, dtype=float).reshape(len(X), -1).T
        except OverflowError:  # an integer beyond all floats
            return None
        by_column = _bounded(by_column)
        if self.dates:
            there, sources = iter(by_column), self.numbers.sources
            columns = [self._elapsed(j, X) if j in self.dates else next(there) for j in sources]
            by_column = np.array(columns)
        out = self._matrix(len(X), by_column, None)
        for own, (category, known, new) in zip(names, self._known, strict=True):
            for i, name in enumerate(category.plain_names(own)):
                place, height = known.get(name, new)
                out[i, place] = height
        return out

    def _elapsed(self, j: int, X: list[dict[str, Any]]) -> np.ndarray:
        assert self._names is not None  # dicts have names
        name = self._names[j]
        return column_of(name, objects([row[name] for row in X])).numbers("date")

    def _matrix(self, n: int, numbers: Any, coded: list[Coded] | None) -> np.ndarray:
        """From numbers by column, and for each column of names codes and the output of each.

        Without codes, names are left out.
        """
        _, _, ranks, scales, outputs = self.numbers
        out = np.zeros((n, self.n_outputs), self._dtype)  # row by row
        encode = compiled(encode_numbers, calls=(beyond, deviation, rank))
        is_matrix = isinstance(numbers, np.ndarray)

        def fill(part: slice) -> None:
            for start in range(part.start, part.stop, _AT_ONCE):
                some = slice(start, min(start + _AT_ONCE, part.stop))
                if len(numbers):
                    whole = is_matrix and some == slice(0, n)
                    X = numbers if whole else np.array([column[some] for column in numbers])
                    encode(X, X.view(np.int64), ranks, scales, outputs, out[some])
                for (rows, places), (_, _, to) in zip(coded or (), self.categories, strict=False):
                    compiled(place_names)(rows[some], places, *to, out[some])

        in_threads(fill, n, steps=out.size)
        for j, (date, places, weights) in self.dates.items():
            x = numbers[self.numbers.sources.index(j)]
            out[:, places] = date.circles(x) * weights
        return out

    @cached_property
    def _named(self) -> set[str]:
        return set(self._names or [])

    @cached_property
    def _values(self) -> tuple[Callable[[dict[str, Any]], Any], ...]:
        """Of a row that is a dict its numbers, and its names, in the order of the columns."""
        numbers = [j for j in self.numbers.sources if j not in self.dates]
        return _getter(self._names, numbers), _getter(self._names, [j for j, *_ in self.categories])

    @cached_property
    def _known(self) -> list[tuple[Category, dict[str | None, Output], Output]]:
        """Each column of names with the only output that is not 0 for each, and for new ones."""
        found = []
        for _, category, (places, heights) in self.categories:
            outputs = list(zip(places.tolist(), heights.tolist(), strict=True))
            names = [*category.frequent, *category.rare, None]
            known = {
                name: outputs[at] for name, at in zip(names, category.places(names), strict=True)
            }
            found.append((category, known, outputs[-1]))
        return found

    @cached_property
    def _placed(self) -> list[tuple[int, Learnt, np.ndarray, np.ndarray]]:
        """Each column that is kept: where its outputs go (-1: nowhere), and what they count."""
        counts = self._weights > 0
        place, end, placed = np.where(counts, np.cumsum(counts) - 1, -1), 0, []
        for j, column in enumerate(self._columns):
            if column is not None:
                start, end = end, end + len(column.outputs)
                placed.append((j, column, place[start:end], self._weights[start:end]))
        return placed

    @cached_property
    def numbers(self) -> Numbers:
        """The columns of numbers, and the time elapsed of dates."""
        sources, reads, tables, scales, outputs = [], [], [], [], []
        for j, column, place, weight in self._placed:
            if column.number is not None:
                sources.append(j)
                reads.append(column.reads)
                tables.append(column.number.ranks)
                scales.append(column.number.scales)
                outputs.append(_outputs(column.number, place, weight))
        first = np.cumsum([0, *(table.shape[1] for table in tables)])
        ranks = np.concatenate(tables, axis=1) if tables else np.empty((5, 0))
        placed = tuple(np.array(part) for part in zip(*outputs, strict=True))
        return Numbers(sources, reads, (ranks, first), np.array(scales), placed)

    @cached_property
    def categories(self) -> list[tuple[int, Category, tuple[np.ndarray, np.ndarray]]]:
        """Each column of names, where its outputs go, and what they are."""
        return [
            (j, column, (place, column.heights * weight))
            for j, column, place, weight in self._placed
            if isinstance(column, Category)
        ]

    @cached_property
    def dates(self) -> dict[int, tuple[Date, np.ndarray, np.ndarray]]:
        """The columns of dates, where their circles go, and what these count."""
        found = {}
        for j, column, place, weight in self._placed:
            if isinstance(column, Date):
                n = len(column.elapsed.outputs)
                found[j] = (column, place[n:], weight[n:])
        return found


def _getter(names: list[str] | None, places: list[int]) -> Callable[[dict[str, Any]], Any]:
    """The function from a row that is a dict to the values of some columns."""
    wanted = [] if names is None else [names[j] for j in places]
    return itemgetter(*wanted) if len(wanted) > 1 else lambda row: [row[n] for n in wanted]


def _bounded(columns: Any) -> np.ndarray:
    X = np.array(columns, dtype=float, order="C")
    np.maximum(X, -LARGEST, out=X)
    np.minimum(X, LARGEST, out=X)
    return X


def _outputs(
    number: Number, place: np.ndarray, weight: np.ndarray
) -> tuple[list[int], list[float], list[float]]:
    """Of rank, deviation and missing: where they go, what they count, and are where missing."""
    places, weights, missing = [-1, -1, -1], [0.0, 0.0, 1.0], [0.0, 0.0]
    forms = [*number.forms, *["missing"] * number.with_missing]
    for form, at, counts in zip(forms, place, weight, strict=False):  # circles come after
        output = {"quantile": RANK, "standard": DEVIATION, "missing": MISSING}[form]
        places[output], weights[output] = int(at), float(counts)
        if output != MISSING:
            missing[output] = number.missing(form) * float(counts)
    return places, weights, missing
