"""Batches of numeric rows: some of them to choose landmarks from, then all of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from eqsep.arrays import namespace
from eqsep.errors import UserError
from eqsep.labels import column, may_be_normal
from eqsep.tables.batches import LabelledRows, Source, Strata, prefetched, sample_size

Rows = LabelledRows[Any]  # an array of rows, of any library


@dataclass(frozen=True)
class Stream:
    """What a fit to batches begins with.

    Attributes
    ----------
    rows : Rows
        Those among which landmarks are chosen: a sample of all, or the first ones.
    is_whole : bool
        Whether these are all rows.
    labels : ndarray
        The labels that occur, of all rows or of the first ones.
    batches : iterator of Rows
        All rows.
    """

    rows: Rows
    is_whole: bool
    labels: np.ndarray
    batches: Iterator[Rows]


def begin(
    source: Source, check: Callable[[Any], Any], *, normal: Any, rng: np.random.Generator
) -> Stream:
    """Read batches once for a sample, or the first ones where they cannot be read again.

    Parameters
    ----------
    check : callable
        From the rows of a batch to an array; refuses what is not one.
    normal : label or None
        As of the separator: rows that may have it are sampled apart from the others.
    """

    def batches() -> Iterator[Rows]:
        return prefetched(_checked(X, y, check) for X, y in source)

    if not source.again:
        return _first(batches())
    strata: Strata[Rows] | None = None
    labels: set[Any] = set()
    for rows in batches():
        distinct, code = np.unique(rows.y, return_inverse=True)
        labels |= set(distinct.tolist())
        if strata is None:
            strata = Strata(sample_size(rows.rows.shape[1]), _joined)
        is_normal = np.array([may_be_normal(k, normal=normal) for k in distinct.tolist()])[code]
        strata.add(rows, is_normal=is_normal, rng=rng)
    if strata is None:
        raise _no_rows()
    return Stream(strata.sample(), strata.is_whole, np.array(sorted(labels)), batches())


def _first(batches: Iterator[Rows]) -> Stream:
    first: list[Rows] = []
    n_rows, is_whole = 0, True
    for rows in batches:
        first.append(rows)
        n_rows += len(rows.y)
        if n_rows > sample_size(rows.rows.shape[1]):
            is_whole = False
            break
    if not first:
        raise _no_rows()
    rows = _joined(first)
    return Stream(rows, is_whole, np.unique(rows.y), chain(first, batches))


def _checked(X: Any, y: Any, check: Callable[[Any], Any]) -> Rows:
    X, y = check(X), column(y)
    if X.shape[0] != len(y):
        raise UserError(
            f"Found input variables with inconsistent numbers of samples: a batch has "
            f"{X.shape[0]} rows and {len(y)} labels. Pass one label a row."
        )
    return LabelledRows(X, y, np.arange(len(y)))


def _joined(parts: list[Rows]) -> Rows:
    return LabelledRows.join(parts, lambda arrays: namespace(arrays[0]).concat(arrays, axis=0))


def _no_rows() -> UserError:
    return UserError("There are no rows: expected at least one batch with some.")
