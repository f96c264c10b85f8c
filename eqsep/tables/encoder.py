"""The transformer from mixed tables to matrices of floats."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from eqsep.errors import EqsepWarning, ParameterError, UserError, warn
from eqsep.renames import DEPRECATED, parameter
from eqsep.tables.column import Column
from eqsep.tables.encodings import Category, Date, Number
from eqsep.tables.fitted import FittedEncoder, aligned, with_state
from eqsep.tables.reading import read_table

_FORMS = {
    "quantile": ["quantile"],
    "standard": ["standard"],
    "both": ["quantile", "standard"],
}
_FEW = 20  # distinct names: so few are never ids, however few the rows
_CONVERT = "If these are numbers or dates stored as text, convert them"
_KEEPS_IDS = "to keep ids, pass a TableEncoder with max_new=1."


class DroppedColumnWarning(EqsepWarning):
    """Columns were left out: constant or empty ones, or ids."""


class TableEncoder(FittedEncoder, TransformerMixin, BaseEstimator):
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
            raise UserError(
                f"There is no column to encode: expected one that is not an id, got "
                f"{_listed(dropped)}.",
                hint=f"{_CONVERT}, a decimal comma to a point too; {_KEEPS_IDS}",
                topic="no_column",
            )
        if dropped:
            message = f"Columns were dropped: {_listed(dropped)}."
            warn(DroppedColumnWarning(message, hint=f"{_CONVERT}; {_KEEPS_IDS}"))
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

    def _check_parameters(self) -> None:
        for name in ("max_categories", "min_count"):
            count = getattr(self, name)
            if not isinstance(count, int | np.integer) or count < 1:
                raise ParameterError(name, expected="a whole number of at least 1", got=count)
        if not 0 <= self.max_new <= 1:
            raise ParameterError("max_new", expected="a chance between 0 and 1", got=self.max_new)

    def _forms(self) -> list[str]:
        encoding = self.numeric_encoding
        if self.columns != DEPRECATED:
            encoding = parameter(self, "numeric_encoding")
        if encoding not in _FORMS:
            raise ParameterError(
                "numeric_encoding", expected=f"one of {list(_FORMS)}", got=encoding
            )
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


def encoder_of(state: dict[str, Any]) -> TableEncoder:
    """The fitted encoder of which `state` is the state."""
    return with_state(TableEncoder(**state["parameters"]), state)


def _listed(dropped: dict[str, str]) -> str:
    return "; ".join(f"{name!r}: {reason}" for name, reason in dropped.items())
