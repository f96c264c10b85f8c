"""Config: every number that a fit depends on."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Self

from eqsep import schemas
from eqsep.engine.kernels import are_powers
from eqsep.errors import ParameterError

UNLABELLED_ROWS = ("auto", "trusted", "doubted")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every number that a fit depends on, with its default.

    Pass them as ``Detector(config=Config(n_trees=100))``. Those that begin with `doubted_` replace
    their namesakes if rows that are not labelled anomalous may be anomalies, those that begin with
    `unlabelled_` if no anomaly is labelled.

    Attributes
    ----------
    n_landmarks : int
    bandwidth, doubted_bandwidth : float
        Kernel bandwidth, in units of the median distance between landmarks.
    powers : tuple of int
        The kernel is the mean of exp(-p ||x - c||_1 / (4 bandwidth)) over these powers of two.
    alpha : float
        Ridge penalty, in units of the loss of one row.
    unlabelled_weight : float
        Weight of a row without a label, learnt as normal, if it is neither trusted nor doubted.
    n_trees : int
        Trees that vote on whether a row is like the labelled anomalies.
    vote_weight, doubted_vote_weight : float
        Weight of their vote in the score.
    tree_columns, max_tree_columns : float, int
        The share of the columns that a split is chosen from, and their maximum number.
    min_leaf, doubted_min_leaf : int
        The minimum number of rows in a leaf.
    max_tree_normal, max_tree_anomalous : int
        The maximum number of rows of each class that a tree is grown on.
    excess_weight, unlabelled_excess_weight, doubted_excess_weight : float
        What a power of ten by which rows so far from the ellipsoid of normal ones are rarer adds to
        the score, at most.
    likeness_weight, likeness_ridge : float
        Weight, and n times the ridge penalty, of likeness to n anomalies if rows are doubted.
    normality_weight : float
        The share of the residual that is of the surface of rows that look normal alone.
    n_references : int
        Normal rows that the distance to the nearest one is measured to.
    nearest_weight, unlabelled_nearest_weight, doubted_nearest_weight : float
        What a power of ten by which so distant rows are rarer adds to the score.
    n_surprise_trees : int
        Trees that predict columns from the others, in all.
    surprise_weight, unlabelled_surprise_weight, doubted_surprise_weight : float
        What a power of ten by which so surprising rows are rarer adds to the score.
    isolated_share, doubted_isolated_share : float
        The share of rows that nobody has looked at, and that do not count as looking normal; the
        latter where rows are to be doubted and no anomaly is labelled.
    max_held_out, max_held_out_in_groups, max_held_out_anomalies : int
        The most rows that a first fit holds out: normal rows one by one, normal rows in whole
        groups, and labelled anomalies if rows are doubted.
    n_folds, n_trees_per_fold : int
        Folds, and trees per fold, of the cross-conformal test that names alarms.
    max_kind_rows, max_near_rows : int
        The most rows of a kind that are kept to name alarms, and that distances are measured to.
    max_sample, max_sample_anomalies : int
        The most rows of a stream that decide the plan, and the most anomalies beyond their share.
    """

    n_landmarks: int = 1000
    bandwidth: float = 0.5
    doubted_bandwidth: float = 2.0
    powers: tuple[int, ...] = (1, 2, 4, 8, 16)
    alpha: float = 0.1
    unlabelled_weight: float = 0.01
    n_trees: int = 70
    tree_columns: float = 0.7
    max_tree_columns: int = 100
    vote_weight: float = 2.0
    doubted_vote_weight: float = 4.0
    min_leaf: int = 1
    doubted_min_leaf: int = 3
    max_tree_normal: int = 4000
    max_tree_anomalous: int = 2000
    excess_weight: float = 0.24
    unlabelled_excess_weight: float = 0.12
    doubted_excess_weight: float = 0.05
    likeness_weight: float = 0.5
    likeness_ridge: float = 300.0
    normality_weight: float = 0.5
    n_references: int = 2000
    nearest_weight: float = 0.12
    unlabelled_nearest_weight: float = 0.2
    doubted_nearest_weight: float = 0.08
    n_surprise_trees: int = 80
    surprise_weight: float = 0.03
    unlabelled_surprise_weight: float = 0.02
    doubted_surprise_weight: float = 0.01
    isolated_share: float = 0.1
    doubted_isolated_share: float = 0.3
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
            name, value, least = (
                field.name,
                getattr(self, field.name),
                _MINIMA.get(field.name, 1),
            )
            is_number = isinstance(value, Real) and 0 <= float(value) < math.inf
            if isinstance(field.default, int):
                is_whole = isinstance(value, Integral) and not isinstance(value, bool)
                fits, expected = is_whole and value >= least, f"a whole number of at least {least}"
            elif name == "powers":
                fits = type(value) is tuple and are_powers(value)
                expected = "a tuple of powers of two in rising order"
            elif name == "tree_columns":
                fits, expected = is_number and 0 < value <= 1, "a number above 0, at most 1"
            elif name in _SHARES:
                fits, expected = is_number and value < 1, "a number of at least 0, below 1"
            elif name in _ABOVE_0:
                fits, expected = is_number and value > 0, "a number above 0"
            else:
                fits, expected = is_number, "a number of at least 0"
            if not fits:
                raise ParameterError(name, expected=expected, got=value)

    @classmethod
    def fast(cls) -> Self:
        """Few landmarks and trees, for tests and examples where precision does not matter."""
        return cls(
            n_landmarks=200,
            n_trees=10,
            n_trees_per_fold=8,
            n_references=500,
            n_surprise_trees=20,
        )

    @contextmanager
    def as_default(self) -> Iterator[Self]:
        """A context in which all detectors of this process without a config use this one."""
        _defaults.append(self)
        try:
            yield self
        finally:
            _defaults.remove(self)

    @classmethod
    def default(cls) -> "Config":
        """The config of detectors without one: the innermost of `as_default`, or all defaults."""
        return _defaults[-1] if _defaults else cls()

    def for_rows(self, *, doubted: bool, labelled: bool = True) -> Self:
        """The config with the numbers for such rows in place of their namesakes."""
        prefix = "doubted_" if doubted else "" if labelled else "unlabelled_"
        known = vars(self)
        return replace(self, **{n: known[prefix + n] for n in _REPLACED if prefix + n in known})

    def state(self) -> dict[str, Any]:
        """The parts of a model file."""
        return vars(self) | {"powers": list(self.powers)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The config of these parts."""
        schemas.check_names(state, "Config", required=[field.name for field in fields(cls)])
        powers = state["powers"]
        try:
            return cls(**state | {"powers": tuple(powers) if type(powers) is list else None})
        except ParameterError as error:
            schemas.damaged(f"its config is invalid: {str(error).rstrip('.')}")


_MINIMA = {
    "n_landmarks": 2,
    "n_folds": 2,
    "n_surprise_trees": 0,
}  # of whole numbers; 1 for others
_ABOVE_0 = ("bandwidth", "doubted_bandwidth", "alpha", "unlabelled_weight", "likeness_ridge")
_SHARES = ("isolated_share", "doubted_isolated_share")
_REPLACED = (  # where rows are doubted, or no anomaly is labelled
    "bandwidth",
    "vote_weight",
    "min_leaf",
    "excess_weight",
    "nearest_weight",
    "surprise_weight",
)
_defaults: list[Config] = []  # those of `Config.as_default` that are open
