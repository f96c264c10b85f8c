"""The transformer from mixed tables to matrices of floats."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from eqsep.errors import EqsepWarning, UserError, warn
from eqsep.renames import DEPRECATED, parameter, parameters
from eqsep.tables.column import Column
from eqsep.tables.decodings import described
from eqsep.tables.encodings import Category, Date, Number
from eqsep.tables.matrix import Encoding
from eqsep.tables.reading import Table, read_table

_FORMS = {
    "quantile": ["quantile"],
    "standard": ["standard"],
    "both": ["quantile", "standard"],
}
_FEW = 20  # distinct names: so few are never ids, however few the rows
_CONVERT = "If these are numbers or dates stored as text, convert them"
_KEEPS_IDS = "a TableEncoder of your own keeps ids with max_new=1."


class ColumnMatchWarning(EqsepWarning):
    """The columns of a table are not named as those of training, or there are more of them."""


class DroppedColumnWarning(EqsepWarning):
    """Columns were left out: constant or empty ones, or ids."""


class TableEncoder(TransformerMixin, BaseEstimator):
    """Mixed tables as matrices of floats, in which whatever training did not have stays visible.

    Parameters
    ----------
    numeric_encoding : {"quantile", "standard", "both"}, default="quantile"
        How numbers are encoded: by their rank among the training values, by their robust
        deviations from the median, or by both side by side.
    max_categories : int, default=100
        The most frequent names of a column that have an output of their own.
    min_count : int, default=2
        The rows that a name needs for an output of its own. Names below it, and those beyond
        `max_categories`, share the output "rare".
    max_new : float, default=0.5
        A column of names is dropped, with a warning, where the estimated chance that the next row
        brings a new name is above this, as it is for ids. The estimate is the share of values
        that occur once; columns of at most 20 names are always kept.
    columns : str
        The old name of `numeric_encoding`.

    Attributes
    ----------
    columns_ : list of Number, Category, Date or None
        What was learnt of each input column; None where it was dropped.
    dropped_ : dict
        The reason for each dropped column, by its name.
    source_ : ndarray of shape (n_outputs,)
        The index of the input column from which each output comes.
    notation_ : dict
        How text wrote the columns that are not written plainly, where they come from such a file.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the table of the fit has names.

    Notes
    -----
    **Tables.** Frames of pandas and polars, tables of pyarrow, arrays, lists of rows and of dicts.
    Columns with names are matched by name, in any order: a missing one is an error, another one
    is ignored with a warning. Where only one of the two tables has names, columns are matched by
    position, with a warning. In a list of dicts, a key that some rows lack is a missing value.

    **Numbers.** The rank lies in [0, 1] within the range of training, and beyond it goes on
    towards -1 or 2. Standard values are linear up to 8 deviations, and grow by their logarithm
    beyond. Infinity is larger than every number, and counts as 1e300. A column that never varied
    is at 0.5 (0 on the standard scale), and any other value jumps away from it.

    **Missing values.** Where training has them, they are at 0.5 (or 0) and one more output says
    so. Where it has none, a missing value is outside everything that training had: a rank of -2,
    or 8 deviations below the least value.

    **Names.** Categories, truth values and strings: one output for each frequent one, one for the
    rare, one for missing (where training has them), and one for new names, which is 2 for them:
    a new name is farther from every name than these are from each other. A column without any
    value in training is one of names too, so that a value in it is new.

    **Dates.** The time elapsed as a number; sine and cosine of the time of day where that varies,
    and of the weekday where a week is spanned. Times with a zone are taken in UTC. Dates later
    than training are beyond its range, and encoded so: leave a column out that only dates the
    rows. Durations and times of day are numbers, in seconds.

    **Other types than in training.** Text in a column of numbers or dates is parsed, numbers in a
    column of names are named; what cannot be read is an error that says which column and value.

    Examples
    --------
    >>> rows = [{"size": 1.0, "shape": "round"}, {"size": 2.0, "shape": "round"},
    ...         {"size": 4.0, "shape": "flat"}, {"size": 8.0, "shape": "flat"}]
    >>> encoder = TableEncoder().fit(rows)
    >>> encoder.get_feature_names_out().tolist()
    ['size:quantile', 'shape=flat', 'shape=round', 'shape:new']
    >>> encoder.transform([{"shape": "oblong", "size": 3.0}])
    array([[0.5, 0. , 0. , 2. ]])
    >>> encoder.describe("size:quantile", 0.5)
    'size = 3'
    """

    columns_: list[Number | Category | Date | None]

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  scikit-learn's contract
        """Learn each column of the table `X`."""
        self._check_parameters()
        table = read_table(X, name=type(self).__name__)
        dropped = self.reasons_to_drop(table)
        forms = self._forms()
        learnt = [None if c.name in dropped else self._learn(c, forms) for c in table.columns]
        if len(dropped) == len(learnt):
            told = (
                f"There is no column to encode: expected one that is not an id, got "
                f"{_listed(dropped)}. {_CONVERT}, a decimal comma to a point too"
            )
            raise UserError(f"{told}; {_KEEPS_IDS}", command=f"{told}.")
        if dropped:
            told = f"Columns were dropped: {_listed(dropped)}. {_CONVERT}"
            warn(DroppedColumnWarning(f"{told}; {_KEEPS_IDS}", command=f"{told}."))
        names = [column.name for column in table.columns] if table.named else None
        self._record(learnt, dropped=dropped, names=names)
        self.notation_ = {c.name: c.notation for c in table.columns if c.notation}
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The table as a matrix of floats.  (n, d) -> (n, n_outputs)"""
        table = aligned(self, X)
        return self._encodings[0].of_table(table.columns, table.n_rows)

    def reasons_to_drop(self, X: Any) -> dict[str, str]:
        """Which columns of the table a fit drops, and why."""
        table = read_table(X, name=type(self).__name__)
        reasons = {column.name: self._reason_to_drop(column) for column in table.columns}
        return {name: reason for name, reason in reasons.items() if reason}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The outputs' names: the column's, then "=name", or ":" and what the output says."""
        check_is_fitted(self)
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
        check_is_fitted(self)
        outputs = self.get_feature_names_out().tolist()
        if isinstance(column, str) and column not in outputs:
            raise UserError(f"There is no output {column!r}: expected one of {outputs}.")
        j = outputs.index(column) if isinstance(column, str) else range(len(outputs))[column]
        source = int(self.source_[j])
        learnt = self.columns_[source]
        assert learnt is not None  # a dropped column is the source of nothing
        first = int(np.searchsorted(self.source_, source))
        return f"{self._names()[source]} {described(learnt, j - first, float(value))}"

    def _check_parameters(self) -> None:
        for name in ("max_categories", "min_count"):
            count = getattr(self, name)
            if not isinstance(count, int | np.integer) or count < 1:
                raise UserError(f"{name} must be a whole number of at least 1, got {count!r}.")
        if not 0 <= self.max_new <= 1:
            raise UserError(f"max_new must be a chance between 0 and 1, got {self.max_new!r}.")

    def _forms(self) -> list[str]:
        encoding = self.numeric_encoding
        if self.columns != DEPRECATED:
            encoding = parameter(self, "numeric_encoding")
        if encoding not in _FORMS:
            raise UserError(f"numeric_encoding must be one of {list(_FORMS)}, got {encoding!r}.")
        return list(_FORMS[encoding])

    def _reason_to_drop(self, column: Column) -> str | None:
        if column.kind not in ("text", "mixed") or len(set(column.names()[0]) - {None}) <= _FEW:
            return None
        chance = column.share_of_new()
        if chance <= self.max_new:
            return None
        return f"{chance:.0%} of its values occur once, as ids do"

    def _learn(self, column: Column, forms: list[str]) -> Number | Category | Date:
        if column.is_empty or column.kind in ("text", "mixed", "boolean"):
            return Category.learn(
                column, max_categories=int(self.max_categories), min_count=int(self.min_count)
            )
        if column.kind == "date":
            return Date.learn(column, forms=forms)
        return Number.learn(column, unit=column.kind, forms=forms)

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
        name = type(self).__name__
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
            told = (
                f"Columns {absent} are missing: {type(self).__name__} was fitted with them, and "
                f"got {list(given)}. Add them,"
            )
            raise UserError(
                f"{told} with None where a value is not known.",
                command=f"{told} empty where a value is not known.",
            )
        extra = [name for name in given if name not in names]
        if extra:
            warn(ColumnMatchWarning(f"Columns {extra} were not there in training and are ignored."))
        empty = np.empty(0, dtype=object)  # a dropped column need not be there
        return [given.get(name, Column(name, "text", empty)) for name in names]


def aligned(encoder: TableEncoder, X: Any) -> Table:
    """The table with its columns as those of the fit: the same ones, in the same order."""
    check_is_fitted(encoder)
    table = read_table(X, name=type(encoder).__name__)
    named = hasattr(encoder, "feature_names_in_")
    return replace(table, columns=encoder._matched(table), named=named)


def encoded(encoder: TableEncoder, X: Any) -> np.ndarray:
    """A table as weighted outputs in single precision, without those that count nothing."""
    plain = encoded_values(encoder, X)
    if plain is not None:
        return plain
    table = aligned(encoder, X)
    return encoder._encodings[1].of_table(table.columns, table.n_rows)


def encoded_values(encoder: TableEncoder, X: Any) -> np.ndarray | None:
    """The same of a list of dicts or an array of numbers, of which no table is made.

    None where columns are not those of the fit or a value must be read with more care: a table says
    what is wrong, or reads it.
    """
    return encoder._encodings[1].of_plain(X)


def output_weights(encoder: TableEncoder) -> np.ndarray:
    """What each output counts in a distance between rows; 0 where another one says it all."""
    return encoder._weights


def output_groups(encoder: TableEncoder) -> np.ndarray:
    """A number for each output; those with the same one rise together with a column's value.

    Between two rows their differences have one sign, so that absolute values add up.

    Examples
    --------
    >>> rows = [[1.0, True], [2.0, False], [4.0, True]]
    >>> output_groups(TableEncoder(numeric_encoding="both").fit(rows))
    array([0, 0, 1, 2, 3])
    """
    groups = [np.array(column.groups) for column in encoder.columns_ if column is not None]
    if not groups:
        return np.zeros(0, dtype=int)
    starts = np.cumsum([0, *(group[-1] + 1 for group in groups[:-1])])
    return np.concatenate([start + group for start, group in zip(starts, groups, strict=True)])


def state_of(encoder: TableEncoder) -> dict[str, Any]:
    """All that was set and learnt, as dicts, lists, strings and numbers.

    Examples
    --------
    >>> encoder = TableEncoder().fit([[1.0], [2.0]])
    >>> encoder_of(state_of(encoder)).transform([[1.5]])
    array([[0.5]])
    """
    check_is_fitted(encoder)
    return {
        "parameters": parameters(encoder),
        "names": encoder._names() if hasattr(encoder, "feature_names_in_") else None,
        "dropped": dict(encoder.dropped_),
        "columns": [None if c is None else c.state() for c in encoder.columns_],
        "notation": dict(encoder.notation_),
    }


def encoder_of(state: dict[str, Any]) -> TableEncoder:
    """The fitted encoder of which `state` is the state."""
    encoder = TableEncoder(**state["parameters"])
    columns = [None if c is None else _column_of(c) for c in state["columns"]]
    encoder._record(columns, dropped=dict(state["dropped"]), names=state["names"])
    encoder.notation_ = dict(state["notation"])
    return encoder


def _listed(dropped: dict[str, str]) -> str:
    return "; ".join(f"{name!r}: {reason}" for name, reason in dropped.items())


def _column_of(state: dict[str, Any]) -> Number | Category | Date:
    fields = {key: value for key, value in state.items() if key != "kind"}
    if state["kind"] == "date":
        return Date(_number(fields["elapsed"]), fields["cycles"])
    return _number(fields) if state["kind"] == "number" else Category(**fields)


def _number(state: dict[str, Any]) -> Number:
    return Number(**{key: value for key, value in state.items() if key != "kind"})
