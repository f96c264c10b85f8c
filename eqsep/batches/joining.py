"""Batches of one table as one table again; what does not fit together is an error."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eqsep.errors import UserError
from eqsep.labels import listed
from eqsep.tables.column import Column, objects
from eqsep.tables.reading import RowGroups, Table, read_table

_TEXTS = {"text", "mixed"}
_OUTPUTS = 100  # of a column of names, at most


def tables(batches: Iterable[tuple[Any, Any]], *, name: str) -> Iterator[tuple[Table, Any]]:
    """Each batch as a table with the columns of the first one, in its order, and its labels."""
    wanted: list[str] | None = None
    named = True
    for number, (X, y) in enumerate(batches, 1):
        table = read_table(X, name=name)
        columns = {column.name: column for column in table.columns}
        if wanted is None:
            wanted, named = list(columns), table.named
        apart = sorted(set(wanted) ^ set(columns))
        if apart or table.named is not named:
            why = f"{listed(np.array(apart))} not in both" if apart else "one has names of columns"
            raise UserError(
                f"Batch {number} does not have the columns of the batches before it: {why}.",
                hint="Pass batches of one table, with None where a value is not known.",
                topic="unlike_batches",
            )
        yield replace(table, columns=[columns[column] for column in wanted]), y


def width(table: Table) -> int:
    """About how many numbers a row is encoded as."""
    return sum(min(len(c.names()[0]), _OUTPUTS) if c.kind in _TEXTS else 2 for c in table.columns)


def joined(parts: Sequence[Table]) -> Table:
    """Tables of the same columns below each other.

    A column without any value in one of them is of the kind it has in the others.

    Examples
    --------
    >>> parts = [read_table([{"a": a}], name="joined") for a in (1, None)]
    >>> joined(parts).columns
    [Column(name='a', kind='number', values=array([ 1., nan]))]
    """
    columns = [_joined([part.columns[j] for part in parts]) for j in range(len(parts[0].columns))]
    groups = RowGroups.join([part.groups for part in parts])
    n_rows, weight = [part.n_rows for part in parts], None
    if any(part.weight is not None for part in parts):
        weights = zip((part.weight for part in parts), n_rows, strict=True)
        weight = np.concatenate([np.ones(n) if w is None else w for w, n in weights])
    return Table(columns, parts[0].named, sum(n_rows), groups, weight)


def _joined(parts: list[Column]) -> Column:
    name = parts[0].name
    kinds = {part.kind for part in parts}
    if len(kinds) > 1:
        kinds = {part.kind for part in parts if not part.is_empty} or {"number"}
    if kinds == _TEXTS:
        kinds = {"mixed"}
    if len(kinds) > 1:
        found = " and ".join(sorted(kinds))
        raise UserError(
            f"Column {name!r} is not of one kind in all batches: it is a column of {found}. Write "
            f"it alike in all of them."
        )
    kind = kinds.pop()
    values = np.concatenate([_as(part, kind) for part in parts])
    return Column(name, kind, values, all(p.categorical for p in parts), parts[0].notation)


def _as(column: Column, kind: str) -> np.ndarray:
    """The values of a column that has none, or is text, among those of a kind."""
    if column.kind == kind or (kind == "mixed" and column.kind == "text"):
        return column.values
    n = len(column.values)
    return objects([None] * n) if kind in _TEXTS else np.full(n, np.nan)
