"""Scores over the plane: logical functions, linear examples, closed regions, and the circles."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier

from eqsep.activations import GaussianBump, Head, RadialBasis, Sigmoid
from eqsep.datasets import make_gaussians, make_hyperplane, make_logic
from eqsep.evaluation import anomaly_score
from eqsep.evaluation.peers import PEERS
from eqsep.separators.linear import EqualitySeparator
from paper.cells import Cell, Measured, Study
from paper.measures import score_grid
from paper.methods import DETERMINISTIC, linear_svm
from paper.plan import Drawn, Figure, Measurement
from paper.tables import circle_networks, circles

HALFSPACE, EQUALITY, HIDDEN = "halfspace", "equality", "two hidden halfspaces"
_STARTS = 20


def measure(cell: Cell) -> Measured:
    """The accuracy on the rows, and the score over the plane around them."""
    if cell.dataset == "closed region":
        return {}, {"heat_map": score_grid(_CLOSED[cell.method], low=-2.5, high=2.5)}
    X, y = _DATA[cell.dataset]()
    model = _MODELS[cell.method](X, y)
    score = _signed(model, X)
    accuracy = float(np.mean((score > 0) == y))
    low, high = float(np.floor(X.min() - 0.5)), float(np.ceil(X.max() + 0.5))
    drawn = score_grid(lambda rows: _signed(model, rows), low=low, high=high)
    kind = np.where(y == 1, "anomaly", "normal").tolist()
    drawn |= {"X": np.round(X, 3).tolist(), "kind": kind}
    return {"accuracy": [accuracy]}, {"heat_map": drawn}


def _signed(model: Any, X: np.ndarray) -> np.ndarray:
    """A score whose 0 decides; of a probability, how far it is above 1/2."""
    return anomaly_score(model, X) - (0.0 if hasattr(model, "decision_function") else 0.5)


def _halfspace(X: np.ndarray, y: np.ndarray) -> Any:
    # Not an SVM: on XOR, where no line is of use, its decision value is 0 up to rounding.
    return PEERS["logistic regression"].build(C=100.0).fit(X, y)


def _hidden_halfspaces(X: np.ndarray, y: np.ndarray) -> MLPClassifier:
    """Two sigmoid units and one on top: the best of several starts."""
    starts = (
        MLPClassifier((2,), activation="logistic", solver="lbfgs", alpha=1e-4, random_state=seed)
        for seed in range(_STARTS)
    )
    return min((model.fit(X, y) for model in starts), key=lambda model: model.loss_)


_MODELS: dict[str, Callable[..., Any]] = {
    HALFSPACE: _halfspace,
    EQUALITY: lambda X, y: EqualitySeparator(random_state=0).fit(X, y),
    HIDDEN: _hidden_halfspaces,
    "SVM": lambda X, y: linear_svm(0).fit(X, y),
    "ES": lambda X, y: EqualitySeparator(margin_class=0, random_state=0).fit(X, y),
}


def _rows(split: Any) -> tuple[np.ndarray, np.ndarray]:
    return split.X_train, split.y_train


_DATA: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "AND": lambda: make_logic("and"),
    "OR": lambda: make_logic("or"),
    "XOR": lambda: make_logic("xor"),
    "two Gaussians": lambda: _rows(make_gaussians(random_state=0)),
    "a line": lambda: _rows(make_hyperplane(n_features=2, noise=0.2, random_state=0)),
}


def _meet(head: Head, normals: list[list[float]], bias: float) -> Callable[..., np.ndarray]:
    """Where all units of a kind say normal."""
    return lambda X: 0.5 - head(X @ np.transpose(normals) + bias).min(axis=1)


_CLOSED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "normal data: a circle": lambda X: 0.5 - RadialBasis(gamma=np.log(2))(np.hypot(*X.T)),
    "2 equality separators: a parallelogram": _meet(
        GaussianBump(1.05), [[1.0, 0.2], [-0.2, 1.0]], 0.0
    ),
    "3 halfspaces: a triangle": _meet(Sigmoid(), [[0.0, 2.0], [-1.732, -1.0], [1.732, -1.0]], 2.1),
}

STUDY = Study("regions", measure)
_LOGIC = [
    *((name, how) for name in ("AND", "OR", "XOR") for how in (HALFSPACE, EQUALITY)),
    ("XOR", HIDDEN),
]
_LINEAR = [(data, how) for data in ("two Gaussians", "a line") for how in ("SVM", "ES")]


def _draw(results: Drawn, *, n_columns: int = 4) -> Any:
    from paper.figures.drawing import heat_map_figure

    def title(dataset: str, method: str) -> str:
        accuracy = results[dataset, method]["values"].get("accuracy")
        if accuracy is None:
            return method
        return f"{dataset} by {method}:\n{accuracy[0]:.0%} right"

    panels = [(title(*at), result["more"]["heat_map"]) for at, result in results.items()]
    return heat_map_figure(panels, n_columns=n_columns)


def _measurements(names: list[tuple[str, str]]) -> tuple[Measurement, ...]:
    return tuple(Measurement(dataset, method, "", seeds=1) for dataset, method in names)


def _draw_circles(results: Drawn) -> Any:
    from paper.figures.drawing import heat_map_figure

    return heat_map_figure(
        [(method, result["more"]["heat_map"]) for (_, method), result in results.items()]
    )


def _shallow(method: str) -> Measurement:
    return Measurement("circles", method, "", seeds=1 if method in DETERMINISTIC else 20)


FIGURES = [
    Figure(
        "logic",
        "Logical functions",
        "AND and OR by a halfspace and by an equality separator; XOR by the latter alone, or by "
        "two hidden halfspaces.",
        STUDY.name,
        _measurements(_LOGIC),
        _draw,
    ),
    Figure(
        "linear_examples",
        "The two linear examples",
        "Rows that a halfspace separates, and rows that none does: normal ones on a line.",
        STUDY.name,
        _measurements(_LINEAR),
        _draw,
    ),
    Figure(
        "closed_regions",
        "Closed regions",
        "What encloses normal data in a circle: two equality separators, or three halfspaces.",
        STUDY.name,
        _measurements([("closed region", name) for name in _CLOSED]),
        _draw,
    ),
    Figure(
        "heat_maps",
        "Heat maps of shallow models",
        "From the first seed. The normal circle is the middle one; the outer circle is trained on, "
        "the inner one is not.",
        circles.STUDY.name,
        tuple(map(_shallow, circles.DRAWN)),
        _draw_circles,
    ),
    Figure(
        "network_heat_maps",
        "Heat maps of networks",
        "The first member of each: a halfspace over bumps, an equality separator over RBFs, an RBF "
        "separator over RBFs.",
        circle_networks.STUDY.name,
        tuple(Measurement("circles", name, "") for name in circle_networks.ONE_DRAWN),
        _draw_circles,
    ),
    Figure(
        "ensembles",
        "Ensembles",
        "The mean output of all members, equality separators over bumps with sigma 0.5.",
        circle_networks.STUDY.name,
        tuple(Measurement("circles", name, "") for name in circle_networks.ALL_DRAWN),
        _draw_circles,
    ),
]
