"""Config: every number that a fit depends on."""

from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from eqsep.engine.kernels import are_powers
from eqsep.errors import ParameterError
from eqsep.schemas import check_names, damaged

UNLABELLED_ROWS = ("auto", "trusted", "doubted")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every number that a fit depends on, and its defaults.

    `Detector` takes the common ones as parameters of their own; the others come by
    ``Detector(config=Config(n_trees=100))``. The values that begin with `doubted_` stand in for
    their namesakes where rows that nobody has called anomalous may be anomalies.

    Attributes
    ----------
    n_landmarks : int
    bandwidth, doubted_bandwidth : float
        Of the kernel, in units of the median distance between landmarks.
    powers : tuple of int
        The kernel is the mean of exp(-p ||x - c||_1 / (4 bandwidth)) over these powers of two.
    alpha : float
        The ridge penalty, in units of the loss of one row.
    unlabelled_weight : float
        What a row without a label counts, as a normal one, where it is neither trusted nor doubted.
    n_trees : int
        Trees that vote on whether a row is like the labelled anomalies.
    vote_weight, doubted_vote_weight : float
        What their vote counts in the score.
    tree_columns : float
        The share of the columns among which a split is chosen, each with a random limit.
    min_leaf, doubted_min_leaf : int
        The fewest rows of a leaf.
    max_tree_normal, max_tree_anomalous : int
        The most rows of each class that a tree is grown on.
    ellipsoid_step, doubted_ellipsoid_step : float
        What a step beyond the ellipsoid of normal rows counts.
    likeness_weight : float
        What likeness to labelled anomalies counts where rows are doubted.
    likeness_ridge : float
        The ridge penalty of likeness, for one labelled anomaly; for n it is this over n.
    few_anomalies : int
        With fewer labelled ones than this, doubted rows are followed less closely.
    max_held_out : int
        The most normal rows that a first fit holds out to calibrate.
    max_held_out_in_groups : int
        The same where whole groups are held out.
    max_held_out_anomalies : int
        The most labelled anomalies that are held out where rows are doubted.
    n_folds, n_trees_per_fold : int
        Of the cross-conformal test by which alarms are named.
    max_kind_rows : int
        The most rows of a kind that are kept to name alarms by; fewer where rows are wide.
    max_near_rows : int
        Of these, the most to which distances are taken.
    max_sample, max_sample_anomalies : int
        The most rows of a stream from which a plan is chosen, and of how many anomalies among them
        there may be more than their share.
    """

    n_landmarks: int = 1000
    bandwidth: float = 0.5
    doubted_bandwidth: float = 2.0
    powers: tuple[int, ...] = (1, 2, 4, 8, 16)
    alpha: float = 0.1
    unlabelled_weight: float = 0.01
    n_trees: int = 70
    tree_columns: float = 0.7
    vote_weight: float = 0.3
    doubted_vote_weight: float = 1.0
    min_leaf: int = 1
    doubted_min_leaf: int = 3
    max_tree_normal: int = 4000
    max_tree_anomalous: int = 2000
    ellipsoid_step: float = 0.05
    doubted_ellipsoid_step: float = 0.05 / 3
    likeness_weight: float = 0.3
    likeness_ridge: float = 300.0
    few_anomalies: int = 100
    max_held_out: int = 19_999
    max_held_out_in_groups: int = 10_000
    max_held_out_anomalies: int = 200
    n_folds: int = 5
    n_trees_per_fold: int = 40
    max_kind_rows: int = 1000
    max_near_rows: int = 250
    max_sample: int = 100_000
    max_sample_anomalies: int = 6000

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if isinstance(field.default, int):
                check_whole(name, value, least=_LEAST.get(name, 1))
            elif name == "tree_columns":
                check_share(name, value)
            elif name in _ABOVE_0:
                check_positive(name, value)
            elif isinstance(field.default, float):
                check_at_least_0(name, value)
        if type(self.powers) is not tuple or not are_powers(self.powers):
            expected = "a tuple of powers of two in rising order"
            raise ParameterError("powers", expected=expected, got=self.powers)

    @classmethod
    def fast(cls) -> Self:
        """Few landmarks and trees, for tests and examples in which precision is not the point."""
        return cls(n_landmarks=200, n_trees=10, n_trees_per_fold=8)

    def for_rows(self, *, doubted: bool) -> Self:
        """The config with the values for doubted rows in the place of their namesakes."""
        if not doubted:
            return self
        begin = "doubted_"
        names = [field.name for field in fields(self) if field.name.startswith(begin)]
        return replace(self, **{name.removeprefix(begin): getattr(self, name) for name in names})

    def state(self) -> dict[str, Any]:
        """The parts of a model file."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return own | {"powers": list(self.powers)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The config of these parts; what an older file lacks has its default."""
        names = [field.name for field in fields(cls)]
        check_names(state, "Config", required=(), optional=names)
        powers = state.get("powers")
        try:
            return cls(**state | ({"powers": tuple(powers)} if type(powers) is list else {}))
        except ParameterError as error:
            damaged(f"its config cannot be: {str(error).rstrip('.')}")


_LEAST = {"n_landmarks": 2, "n_folds": 2, "few_anomalies": 0}  # of whole numbers; of others 1
_ABOVE_0 = ("bandwidth", "doubted_bandwidth", "alpha", "unlabelled_weight", "likeness_ridge")


def check_whole(name: str, value: Any, *, least: int) -> None:
    """Refuse a parameter that is not a whole number of at least so much."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(name, expected=f"a whole number of at least {least}", got=value)


def check_unlabelled(value: Any) -> None:
    """Refuse a word on rows without a label that has no meaning."""
    if value not in UNLABELLED_ROWS:
        expected = f"one of {list(UNLABELLED_ROWS)}"
        raise ParameterError("unlabelled", expected=expected, got=value)


def check_positive(name: str, value: Any) -> None:
    """Refuse a parameter that is not a number above 0."""
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ParameterError(name, expected="a number above 0", got=value)


def check_share(name: str, value: Any) -> None:
    """Refuse a parameter that is not a number above 0 and at most 1."""
    if not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise ParameterError(name, expected="a number above 0 and at most 1", got=value)


def check_at_least_0(name: str, value: Any) -> None:
    """Refuse a parameter that is not a number of at least 0."""
    if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ParameterError(name, expected="a number of at least 0", got=value)
