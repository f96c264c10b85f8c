"""Rows that come again in a file are not scored again.

Logs repeat themselves: of the 4.9 million rows of KDD Cup 1999, 1.07 million are distinct
(Tavallaee et al., 2009). What a row is told depends on its values alone, so that it is kept under a
key of them, of 128 bits, and read off where the same values are written again.
"""

from collections.abc import Callable, Sequence
from secrets import randbits
from threading import Lock

import numpy as np
import pyarrow as pa

from eqsep.commands.keys import KeyTable, mixed_numbers, mixed_texts
from eqsep.commands.writing import as_column
from eqsep.errors import UserError
from eqsep.tables.reading import arrow_numbers

MOST = 2**20  # rows that are kept
WORTH = 1 / 16  # the share of rows that came before below which looking ends, in the long run
_TEXTS = {pa.string(): np.int32, pa.large_string(): np.int64}
_LONG = {"b": np.uint64, "u": np.uint64, "i": np.int64, "f": np.float64}
_MISSING = np.uint64(1)

Verdicts = dict[str, np.ndarray]


class Repeats:
    """What was told of rows, by the values of some of their columns.

    Several threads may ask at once; where two ask for the same new row, both score it.

    Parameters
    ----------
    verdicts : callable
        From a table to what is told of each row: arrays of numbers, truth values or names.

    Examples
    --------
    >>> repeats = Repeats(lambda new: {"first": np.arange(len(new))})
    >>> repeats(pa.table({"x": ["5", "7", "5"]}), ["x"])
    {'first': array([0, 1, 0])}
    >>> repeats(pa.table({"x": ["6", "7"]}), ["x"])
    {'first': array([0, 1])}
    """

    def __init__(self, verdicts: Callable[[pa.Table], Verdicts]) -> None:
        self._verdicts = verdicts
        self._factors = np.array([randbits(64) | 1 for _ in range(2)], dtype=np.uint64)
        self._lock, self._table = Lock(), KeyTable(most=MOST)
        self._told: dict[str, np.ndarray] = {}
        self._tried = self._found = 0

    def __call__(self, table: pa.Table, columns: Sequence[str]) -> Verdicts:
        """What is told of the rows of a table, by the values of these columns."""
        keys = self._keys(table, columns) if self._is_worth_it() else None
        if keys is None:
            return self._verdicts(table)
        with self._lock:
            places = self._table.places(keys)
            told = {name: values[places] for name, values in self._told.items()}
        new = np.flatnonzero(places < 0)
        self._tried, self._found = self._tried + len(places), self._found + len(places) - len(new)
        if not len(new):
            return told
        some = KeyTable(most=len(new))
        first = new[some.add(keys[new])]
        try:
            found = self._verdicts(
                table if len(first) == len(table) else table.take(as_column(first, pa.int64()))
            )
        except UserError:
            return self._verdicts(table)  # which says it of the row of the table
        self._keep(keys[first], found)
        again = some.places(keys[new])
        if not told:
            return {name: values[again] for name, values in found.items()}
        for name, values in found.items():
            told[name][new] = values[again]
        return told

    def _is_worth_it(self) -> bool:
        return self._tried < 2 * MOST or self._found > WORTH * self._tried

    def _keep(self, keys: np.ndarray, found: Verdicts) -> None:
        with self._lock:
            n = len(self._table)
            added = self._table.add(keys)
            for name, values in found.items():
                held = self._told.get(name, values[:0])
                if n + len(added) > len(held):
                    grown = np.empty(2 * (n + len(added)), values.dtype)
                    grown[:n] = held[:n]
                    held = self._told[name] = grown
                held[n : n + len(added)] = values[added]

    def _keys(self, table: pa.Table, columns: Sequence[str]) -> np.ndarray | None:
        """Two numbers for each row, the same for the same values; None where some have none."""
        fields = [table.schema.field(name) for name in columns]
        written = hash(tuple((str(f.type), str(f.metadata)) for f in fields))
        keys = np.full((len(table), 2), written % 2**64, dtype=np.uint64)
        for name in columns:
            column = table.column(name)
            column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            if column.null_count:
                keys[arrow_numbers(column.is_null())] += _MISSING
            if column.type in _TEXTS:
                _, offsets, data = column.buffers()
                here = slice(column.offset, column.offset + len(column) + 1)
                ends = np.frombuffer(offsets, _TEXTS[column.type])[here]
                texts = np.frombuffer(data or b"", np.uint8)
                mixed_texts(ends, texts, self._factors, keys)
            elif _is_plain(column):
                x = arrow_numbers(column)
                mixed_numbers(x.astype(_LONG[x.dtype.kind]), self._factors, keys)
            else:
                return None
        return keys


def _is_plain(column: pa.Array) -> bool:
    """Whether its values are numbers, or truth values, that NumPy holds alike."""
    if pa.types.is_floating(column.type):
        return True
    is_whole = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    return is_whole and not column.null_count
