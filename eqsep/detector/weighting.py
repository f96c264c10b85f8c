"""What rows count, where somebody says so: `sample_weight`.

A weight of 2 is the row twice in whatever is summed up over learnt rows. Who is held out is decided
without weights, and a held-out row calibrates once, whatever its weight: so the promise is kept for
rows as they come, not as they are weighted. A row of weight 0 is not there.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from eqsep.arrays import check_weight
from eqsep.batches.sources import Source
from eqsep.errors import ParameterError, UserError, quoted
from eqsep.labels import label_objects
from eqsep.tables.reading import Table, read_table


def weighted(table: Table, y: Any, sample_weight: Any) -> tuple[Table, Any]:
    """The table with the weight of each row, and the labels; without rows of weight 0.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,) or str
        Weights, or the name of the column of the table that holds them.

    Examples
    --------
    >>> table = read_table([{"x": 1.0, "w": 2.0}, {"x": 3.0, "w": 0.0}], name="Detector")
    >>> table, y = weighted(table, ["normal", "leak"], "w")
    >>> table.n_rows, [column.name for column in table.columns], table.weight, y.tolist()
    (1, ['x'], array([2.]), ['normal'])
    """
    if isinstance(sample_weight, str):
        columns = {column.name: column for column in table.columns}
        if sample_weight not in columns:
            expected = f"a column ({quoted(columns)})"
            raise ParameterError("sample_weight", expected=expected, got=sample_weight)
        kept = [column for column in table.columns if column.name != sample_weight]
        table = replace(table, columns=kept)
        sample_weight = columns[sample_weight].numbers("number")
    weight = check_weight(sample_weight, n=table.n_rows)
    there = np.flatnonzero(weight > 0)
    if len(there) == len(weight):
        return replace(table, weight=weight), y
    y = y if y is None else label_objects(y, table.n_rows)[there]
    return replace(table, weight=weight).take(there), y


def with_weight_column(source: Source, column: Any, *, name: str) -> Source:
    """The same batches, with the weight of each row from the column of this name."""
    if not isinstance(column, str):
        raise UserError(
            f"{name} was given batches of rows, so sample_weight must be the name of a column, or "
            f"None; got {type(column).__name__}."
        )

    def read() -> Iterator[tuple[Table, Any]]:
        for X, y in source:
            table = read_table(X, name=name)
            if not _all_zero(table, column):
                yield weighted(table, y, column)

    return replace(source, read=read, read_labels=read)


def _all_zero(table: Table, column: str) -> bool:
    """Whether no row of a batch counts: others may."""
    values = [c.numbers("number") for c in table.columns if c.name == column]
    return bool(values) and not np.any(values[0])
