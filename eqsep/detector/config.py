"""Config: every number that a fit depends on."""

from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from eqsep.errors import UserError
from eqsep.schemas import Schema, check_parts
from eqsep.tables.batches import ANOMALIES, SAMPLE

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

    n_landmarks: int = 1400
    bandwidth: float = 0.15
    doubted_bandwidth: float = 2.0
    powers: tuple[int, ...] = (1, 2, 4, 8, 16)
    alpha: float = 0.1
    unlabelled_weight: float = 0.01
    n_trees: int = 50
    vote_weight: float = 0.5
    doubted_vote_weight: float = 1.0
    min_leaf: int = 1
    doubted_min_leaf: int = 3
    max_tree_normal: int = 8000
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
    max_sample: int = SAMPLE
    max_sample_anomalies: int = ANOMALIES

    def __post_init__(self) -> None:
        for name, least in {"n_landmarks": 2, "n_folds": 2}.items():
            check_whole(name, getattr(self, name), least=least)
        for name in ("bandwidth", "doubted_bandwidth", "alpha", "unlabelled_weight"):
            check_positive(name, getattr(self, name))

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
        check_parts(state, dict.fromkeys(names, _PART), "Config", optional=names)
        return cls(**state | ({"powers": tuple(state["powers"])} if "powers" in state else {}))


def _is_part(value: Any, sizes: dict[str, int]) -> bool:  # noqa: ARG001
    if type(value) is list:
        return 0 < len(value) < 16 and all(type(p) is int and 0 < p < 2**16 for p in value)
    return type(value) in (int, float) and bool(np.isfinite(value)) and value >= 0


_PART = Schema("a finite number of at least 0, or a list of powers", _is_part)


def check_whole(name: str, value: Any, *, least: int) -> None:
    """Refuse a parameter that is not a whole number of at least so much."""
    if not isinstance(value, Integral) or value < least:
        raise UserError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def check_unlabelled(value: Any) -> None:
    """Refuse a word on rows without a label that has no meaning."""
    if value not in UNLABELLED_ROWS:
        raise UserError(f"unlabelled must be one of {list(UNLABELLED_ROWS)}, got {value!r}.")


def check_positive(name: str, value: Any) -> None:
    """Refuse a parameter that is not a number above 0."""
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise UserError(f"{name} must be a number above 0, got {value!r}.")
