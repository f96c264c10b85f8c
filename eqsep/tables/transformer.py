"""`TableEncoder`: the encoder as a transformer of scikit-learn."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from eqsep.errors import ParameterError, UserError, warn
from eqsep.tables.encoder import BOTH, Encoder
from eqsep.tables.reading import read_table

_FORMS = {"quantile": ("quantile",), "standard": ("standard",), "both": BOTH}


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # of scikit-learn
    """Encodes mixed tables as matrices of floats in which values unseen in training stay visible.

    Parameters
    ----------
    numeric_encoding : {"quantile", "standard", "both"}, default="quantile"
        Numbers as ranks among the training values, as robust deviations from the median, or both.
    max_categories : int, default=100
        How many names of a column get their own output, at most; the most frequent first.
    min_count : int, default=2
        How many rows a name needs for its own output. Other names share the output "rare".
    max_new : float, default=0.5
        Drop a column of more than 20 names, with a warning, if more than this share of its values
        occur once, as ids do. This share estimates how often the next row brings a new name.

    Attributes
    ----------
    encoder_ : Encoder
        What was learnt.
    columns_ : list of Number, Category, Date or None
        The same by input column; None if it was dropped.
    dropped_ : dict
        The reason for each dropped column, by its name.
    source_ : ndarray of shape (n_outputs,)
        The index of the input column that each output comes from.
    notation_ : dict
        The notation of text columns that are not written plainly.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the table of the fit has names other than the numbers 0, 1, …

    Notes
    -----
    **Tables.** As for a `Detector`. Columns with names, kept as text, are matched by name in any
    order: a missing one is an error, an unknown one is ignored with a warning. If only one of the
    two tables has names, they are matched by position, with a warning; the numbers 0, 1, … of a
    frame are positions and names. In a list of dicts, a key that some rows lack is a missing value.

    **Numbers.** Ranks lie in [0, 1] within the range of training, and approach -1 or 2 beyond it.
    Standard values are linear up to 8 deviations and logarithmic beyond. Infinity counts as 1e300.
    A constant column is at 0.5 (standard: 0), and any other value jumps away from it.

    **Missing values.** If training has them, they are at 0.5 (standard: 0), and one more output
    marks them. If not, they lie outside the training range: a rank of -2, or 8 deviations below
    the lowest value.

    **Names.** Categories, booleans and strings: one output for each frequent name, one for
    rare names, one for missing ones if training has them, and one for new names, which is 2 for
    them: a new name is farther from every known name than known names are from each other. A column
    without values in training is a column of names, so any value in it is new.

    **Dates.** The time elapsed as a number, and sine and cosine of the time of day, if it varies,
    and of the weekday, if a week is spanned. Times with a zone are converted to UTC. Dates later
    than training are beyond its range: leave out a column that only dates the rows. Durations and
    times of day are numbers, in seconds.

    **Other types than in training.** Text in a column of numbers or dates is parsed, numbers in a
    column of names are named; a value that cannot be read is an error.

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

    def __init__(
        self,
        *,
        numeric_encoding: str = "quantile",
        max_categories: int = 100,
        min_count: int = 2,
        max_new: float = 0.5,
    ) -> None:
        self.numeric_encoding = numeric_encoding
        self.max_categories = max_categories
        self.min_count = min_count
        self.max_new = max_new

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for name in ("allow_nan", "categorical", "string", "sparse"):
            setattr(tags.input_tags, name, True)
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  scikit-learn's contract
        """Learn each column of the table `X`."""
        for name in ("max_categories", "min_count"):
            count = getattr(self, name)
            if not isinstance(count, int | np.integer) or count < 1:
                raise ParameterError(name, expected="a whole number of at least 1", got=count)
        if not 0 <= self.max_new <= 1:
            raise ParameterError("max_new", expected="a chance between 0 and 1", got=self.max_new)
        if self.numeric_encoding not in _FORMS:
            expected = f"one of {list(_FORMS)}"
            raise ParameterError("numeric_encoding", expected=expected, got=self.numeric_encoding)
        keeps_ids = "; to keep ids, pass max_new=1"
        encoder = Encoder.learn(
            read_table(X, name=type(self).__name__),
            forms=_FORMS[self.numeric_encoding],
            max_categories=int(self.max_categories),
            min_count=int(self.min_count),
            max_new=self.max_new,
            keeps_ids=keeps_ids,
        )
        if (dropped := encoder.dropped_warning(keeps_ids=keeps_ids)) is not None:
            warn(dropped)
        self.encoder_, self.columns_ = encoder, list(encoder.columns)
        self.dropped_, self.notation_ = dict(encoder.dropped), dict(encoder.notation)
        self.source_ = encoder.output_source
        self.n_features_in_ = len(encoder.columns)
        if encoder.names is not None:
            self.feature_names_in_ = np.array(encoder.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The table as a matrix of floats.  (n, d) -> (n, n_outputs)"""
        check_is_fitted(self)
        return self.encoder_.transform(X, name=type(self).__name__)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the outputs: the column, then "=name", or ":" and what the output means."""
        check_is_fitted(self)
        names = self.encoder_.column_names
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
        found = [
            f"{name}{output}"
            for name, column in zip(names, self.columns_, strict=True)
            if column is not None
            for output in column.outputs
        ]
        return np.array(found, dtype=object)

    def describe(self, column: int | str, value: float) -> str:
        """What a value of an output (by position or name) means, in the table's units."""
        outputs = self.get_feature_names_out().tolist()
        if isinstance(column, str) and column not in outputs:
            raise UserError(f"Unknown output {column!r}: expected one of {outputs}.")
        j = outputs.index(column) if isinstance(column, str) else range(len(outputs))[column]
        return self.encoder_.describe(j, value)
