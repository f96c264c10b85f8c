"""The demonstration of the theory: XOR by one neuron, an unseen circle, closing numbers."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone

from eqsep.datasets import TrainTestSplit, make_circles, make_logic
from eqsep.datasets.synthetic import LOGIC_NAMES
from eqsep.evaluation import anomaly_score, average_precision_by_kind
from eqsep.evaluation.peers import PEERS
from eqsep.separators.kernel import KernelEqualitySeparator
from eqsep.separators.linear import EqualitySeparator
from eqsep.theory import closing_number, closing_probability

FAR = 1e6  # both coordinates of the far point
FAMILIES = ("rbf", "equality", "halfspace")
Drawing: TypeAlias = tuple[Any, Any, Any, str]  # estimator, X, y, title

_CLOSED, _SVC = "KernelEqualitySeparator", "SVC"
_WIDTHS: dict[str, dict[str, float]] = {"default": {}, "8": {"gamma": 8.0}, "16": {"gamma": 16.0}}
_DRAWN = ((_CLOSED, "8"), (_SVC, "8"))  # one width for both
_CIRCLE_NAMES = {"normal": "normal", "outer": "seen (outer)", "inner": "unseen (inner)"}


@dataclass(frozen=True)
class Corner:
    """A corner of the unit square."""

    x1: int
    x2: int
    y: int  # XOR
    predicted: int
    distance: float  # to the line


@dataclass(frozen=True)
class CirclesResult:
    """A method on the circles: how it ranks the unseen circle, and what it flags at score 0."""

    method: str
    gamma: str  # of its kernel as given, "default", or "" without a kernel
    average_precision: float
    flagged: float  # the share of the unseen circle
    false_alarms: float  # the share of the test normals
    flags_far: bool


@dataclass(frozen=True)
class Closing:
    """How many separators of a family close a region, and how likely random ones do."""

    n_features: int
    family: str
    number: int
    at_n: float  # the `closing_probability` of n separators
    at_n_plus_1: float
    at_2n: float


@dataclass(frozen=True)
class TheoryDemo:
    """All results of the demonstration."""

    xor: tuple[Corner, ...]
    fitted: tuple[str, ...]  # the functions that one separator fits without a mistake
    functions: tuple[str, ...]  # all Boolean functions of two inputs
    prevalence: float  # of the unseen circle in the test: what a random score gets there
    circles: tuple[CirclesResult, ...]  # methods that saw only the outer circle
    closing: tuple[Closing, ...]
    panels: tuple[Drawing, ...]


def run_theory(*, random_state: int = 0) -> TheoryDemo:
    """Fit a few separators on built-in data: a few seconds, no files and no network."""
    linear = EqualitySeparator(random_state=random_state)
    logic = {name: clone(linear).fit(*make_logic(name)) for name in LOGIC_NAMES}
    circles = make_circles(random_state=random_state)
    methods = _methods(random_state).items()
    models = {name: model.fit(circles.X_train, circles.y_train) for name, model in methods}
    results = {name: _result(*name, model, circles) for name, model in models.items()}
    functions = [
        (logic[name], *make_logic(name), f"{name.upper()} by one equality separator")
        for name in ("xor", "and")
    ]
    return TheoryDemo(
        xor=_corners(logic["xor"]),
        fitted=tuple(name for name, model in logic.items() if model.score(*make_logic(name)) == 1),
        functions=tuple(logic),
        prevalence=float(circles.y_test.mean()),
        circles=tuple(results.values()),
        closing=tuple(_closing(n, family) for n in (2, 3, 10) for family in FAMILIES),
        panels=(*functions, *(_panel(results[name], models[name], circles) for name in _DRAWN)),
    )


def _corners(model: EqualitySeparator) -> tuple[Corner, ...]:
    X, y = make_logic("xor")
    return tuple(
        Corner(x1=int(a), x2=int(b), y=int(c), predicted=int(p), distance=float(d))
        for (a, b), c, p, d in zip(X, y, model.predict(X), model.distance(X), strict=True)
    )


def _methods(random_state: int) -> dict[tuple[str, str], BaseEstimator]:
    """Estimators by method and gamma: both kernel methods at the same three widths."""
    closed = KernelEqualitySeparator(kernel="rbf", closed=True, random_state=random_state)
    return {
        (method, gamma): clone(model).set_params(**width)
        for method, model in {_CLOSED: closed, _SVC: PEERS["SVC"].build()}.items()
        for gamma, width in _WIDTHS.items()
    } | {("IsolationForest", ""): PEERS["isolation forest"].build(random_state=random_state)}


def _result(
    method: str, gamma: str, model: BaseEstimator, circles: TrainTestSplit
) -> CirclesResult:
    score, unseen = anomaly_score(model, circles.X_test), circles.kind_test == "inner"
    return CirclesResult(
        method=method,
        gamma=gamma,
        average_precision=average_precision_by_kind(score, circles.kind_test)["inner"],
        flagged=float(np.mean(score[unseen] > 0)),
        false_alarms=float(np.mean(score[~unseen] > 0)),
        flags_far=bool(anomaly_score(model, np.array([[FAR, FAR]]))[0] > 0),
    )


def _closing(n_features: int, family: str) -> Closing:
    counts = (n_features, n_features + 1, 2 * n_features)
    chances = (closing_probability(family, n_features, k) for k in counts)
    return Closing(n_features, family, closing_number(family, n_features), *chances)


def _panel(result: CirclesResult, model: BaseEstimator, circles: TrainTestSplit) -> Drawing:
    kind = np.concatenate([circles.kind_train, circles.kind_test])
    return (
        model,
        np.concatenate([circles.X_train, circles.X_test]),
        np.array([_CIRCLE_NAMES[name] for name in kind]),
        f"{result.method}, gamma={result.gamma}\nflags {result.flagged:.0%} of the unseen circle",
    )
