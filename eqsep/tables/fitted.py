"""What an encoder of tables does once it is fitted: it matches columns and encodes rows."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from eqsep.arrays import check_is_fitted
from eqsep.errors import EqsepWarning, UserError, warn
from eqsep.renames import DEPRECATED, parameters
from eqsep.tables.column import Column
from eqsep.tables.decodings import described
from eqsep.tables.encodings import Category, Date, Number
from eqsep.tables.matrix import Encoding
from eqsep.tables.reading import Table, read_table

_CALLED = "TableEncoder"  # in messages


class ColumnMatchWarning(EqsepWarning):
    """The columns of a table are not named as those of training, or there are more of them."""


class FittedEncoder:
    """A `TableEncoder` that has learnt its columns, and learns no others: without scikit-learn.

    Its parameters and attributes are those of `TableEncoder`.
    """

    columns_: list[Number | Category | Date | None]
    dropped_: dict[str, str]
    source_: np.ndarray
    notation_: dict[str, Any]
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        *,
        numeric_encoding: str = "quantile",
        max_categories: int = 100,
        min_count: int = 2,
        max_new: float = 0.5,
        columns: str = DEPRECATED,
    ):
        self.numeric_encoding = numeric_encoding
        self.columns = columns
        self.max_categories = max_categories
        self.min_count = min_count
        self.max_new = max_new

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The outputs' names: the column's, then "=name", or ":" and what the output says."""
        check_is_fitted(self, "columns_")
        names = self._names()
        if input_features is not None:
            given = [str(name) for name in input_features]
            if len(given) != self.n_features_in_:
                raise UserError(
                    f"input_features should have length equal to number of features "
                    f"({self.n_features_in_}), got {len(given)}"
                )
            if hasattr(self, "feature_names_in_") and given != names:
                raise UserError(f"input_features is not equal to feature_names_in_: got {given}.")
            names = given
        return np.array(
            [
                f"{name}{output}"
                for name, learnt in zip(names, self.columns_, strict=True)
                if learnt is not None
                for output in learnt.outputs
            ],
            dtype=object,
        )

    def describe(self, column: int | str, value: float) -> str:
        """What a value of an output says, in the words and units of the table.

        Parameters
        ----------
        column : int or str
            The output, by position or by its name.
        value : float
            A value as `transform` gives it.
        """
        check_is_fitted(self, "columns_")
        outputs = self.get_feature_names_out().tolist()
        if isinstance(column, str) and column not in outputs:
            raise UserError(f"There is no output {column!r}: expected one of {outputs}.")
        j = outputs.index(column) if isinstance(column, str) else range(len(outputs))[column]
        source = int(self.source_[j])
        learnt = self.columns_[source]
        assert learnt is not None  # a dropped column is the source of nothing
        first = int(np.searchsorted(self.source_, source))
        return f"{self._names()[source]} {described(learnt, j - first, float(value))}"

    def _record(self, learnt: list[Any], *, dropped: dict[str, str], names: Any) -> None:
        self.columns_, self.dropped_ = learnt, dropped
        self.n_features_in_ = len(learnt)
        counts = [0 if c is None else len(c.outputs) for c in learnt]
        self.source_ = np.repeat(np.arange(len(learnt)), counts)
        self._weights = np.array([weight for c in learnt if c is not None for weight in c.weights])
        ones = np.ones(len(self._weights))
        plain = Encoding(learnt, ones, np.float64, names)
        self._encodings = plain, Encoding(learnt, self._weights, np.float32, names)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _names(self) -> list[str]:
        return list(
            getattr(self, "feature_names_in_", [f"x{i}" for i in range(len(self.columns_))])
        )

    def _matched(self, table: Table) -> list[Column]:
        """The columns of the table in the order of the fit."""
        name = _CALLED
        fitted_with_names = hasattr(self, "feature_names_in_")
        if fitted_with_names and table.named:
            return self._by_name(table)
        if len(table.columns) != self.n_features_in_:
            raise UserError(
                f"X has {len(table.columns)} features, but {name} is expecting "
                f"{self.n_features_in_} features as input."
            )
        if fitted_with_names or table.named:
            has, was = ("has", "without") if table.named else ("does not have valid", "with")
            warn(
                ColumnMatchWarning(
                    f"X {has} feature names, but {name} was fitted {was} feature names: columns "
                    f"are matched by position."
                )
            )
        return [
            Column(n, c.kind, c.values) for n, c in zip(self._names(), table.columns, strict=True)
        ]

    def _by_name(self, table: Table) -> list[Column]:
        given = {column.name: column for column in table.columns}
        names = dict.fromkeys(self._names())
        wanted = [name for name in names if name not in self.dropped_]
        absent = [name for name in wanted if name not in given]
        if absent:
            raise UserError(
                f"Columns {absent} are missing: {_CALLED} was fitted with them, and "
                f"got {list(given)}.",
                hint="Add them, with None where a value is not known.",
                topic="missing_columns",
            )
        extra = [name for name in given if name not in names]
        if extra:
            warn(ColumnMatchWarning(f"Columns {extra} were not there in training and are ignored."))
        empty = np.empty(0, dtype=object)  # a dropped column need not be there
        return [given.get(name, Column(name, "text", empty)) for name in names]


Encoder = TypeVar("Encoder", bound=FittedEncoder)


def aligned(encoder: FittedEncoder, X: Any) -> Table:
    """The table with its columns as those of the fit: the same ones, in the same order."""
    if not hasattr(encoder, "columns_"):
        check_is_fitted(encoder, "columns_")
    table = read_table(X, name=_CALLED)
    named = hasattr(encoder, "feature_names_in_")
    return replace(table, columns=encoder._matched(table), named=named)


def encoded(encoder: FittedEncoder, X: Any) -> np.ndarray:
    """A table as weighted outputs in single precision, without those that count nothing."""
    plain = encoded_values(encoder, X)
    if plain is not None:
        return plain
    table = aligned(encoder, X)
    return encoder._encodings[1].of_table(table.columns, table.n_rows)


def encoded_values(encoder: FittedEncoder, X: Any) -> np.ndarray | None:
    """The same of a list of dicts or an array of numbers, of which no table is made.

    None where columns are not those of the fit or a value must be read with more care: a table says
    what is wrong, or reads it.
    """
    return encoder._encodings[1].of_plain(X)


def output_weights(encoder: FittedEncoder) -> np.ndarray:
    """What each output counts in a distance between rows; 0 where another one says it all."""
    return encoder._weights


def output_groups(encoder: FittedEncoder) -> np.ndarray:
    """A number for each output; those with the same one rise together with a column's value.

    Between two rows their differences have one sign, so that absolute values add up.

    Examples
    --------
    >>> from eqsep.tables import TableEncoder
    >>> rows = [[1.0, True], [2.0, False], [4.0, True]]
    >>> output_groups(TableEncoder(numeric_encoding="both").fit(rows))
    array([0, 0, 1, 2, 3])
    """
    groups = [np.array(column.groups) for column in encoder.columns_ if column is not None]
    if not groups:
        return np.zeros(0, dtype=int)
    starts = np.cumsum([0, *(group[-1] + 1 for group in groups[:-1])])
    return np.concatenate([start + group for start, group in zip(starts, groups, strict=True)])


def state_of(encoder: FittedEncoder) -> dict[str, Any]:
    """All that was set and learnt, as dicts, lists, strings and numbers.

    Examples
    --------
    >>> from eqsep.tables import TableEncoder
    >>> encoder = TableEncoder().fit([[1.0], [2.0]])
    >>> with_state(TableEncoder(), state_of(encoder)).transform([[1.5]])
    array([[0.5]])
    """
    check_is_fitted(encoder, "columns_")
    return {
        "parameters": parameters(encoder),
        "names": encoder._names() if hasattr(encoder, "feature_names_in_") else None,
        "dropped": dict(encoder.dropped_),
        "columns": [None if c is None else c.state() for c in encoder.columns_],
        "notation": dict(encoder.notation_),
    }


def with_state(encoder: Encoder, state: dict[str, Any]) -> Encoder:
    """The encoder, once it has learnt what `state` says."""
    columns = [None if c is None else _column_of(c) for c in state["columns"]]
    encoder._record(columns, dropped=dict(state["dropped"]), names=state["names"])
    encoder.notation_ = dict(state["notation"])
    return encoder


def _column_of(state: dict[str, Any]) -> Number | Category | Date:
    fields = {key: value for key, value in state.items() if key != "kind"}
    if state["kind"] == "date":
        return Date(_number(fields["elapsed"]), fields["cycles"])
    return _number(fields) if state["kind"] == "number" else Category(**fields)


def _number(state: dict[str, Any]) -> Number:
    return Number(**{key: value for key, value in state.items() if key != "kind"})
