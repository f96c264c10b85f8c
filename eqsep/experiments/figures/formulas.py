"""Curves of formulas: the two bumps with their derivatives, and the two losses."""

from typing import Any

import numpy as np

from eqsep.activations import GaussianBump, TanhBump
from eqsep.experiments.cell import Cell, Measured, Study
from eqsep.experiments.figures.figure import Drawn, Figure
from eqsep.experiments.table import Place
from eqsep.losses import LogisticLoss, SquaredLoss

_BUMPS = {"Gaussian": GaussianBump(1.0), "tanh": TanhBump(1.0)}
_LOSSES = {"squared": SquaredLoss(), "logistic": LogisticLoss()}
_CLASSES = {"negative class": 0.0, "positive class": 1.0}


def measure(cell: Cell) -> Measured:
    """z, and what a formula gives there."""
    z = np.linspace(-4, 4, 161)
    z = z[z != 0] if cell.method == "logistic" else z  # the negative class: infinite at 0
    y = {"output": _output, "derivative": _slope}.get(cell.dataset, _loss)(cell, z)
    return {}, {"x": z.round(4).tolist(), "y": np.round(y, 5).tolist()}


def _output(cell: Cell, z: np.ndarray) -> np.ndarray:
    return _BUMPS[cell.method](z)


def _slope(cell: Cell, z: np.ndarray) -> np.ndarray:
    return _BUMPS[cell.method].slope(z)


def _loss(cell: Cell, z: np.ndarray) -> np.ndarray:
    target = np.full_like(z, _CLASSES[cell.dataset])
    return _LOSSES[cell.method](z, target, head=GaussianBump(1.0))


STUDY = Study("formulas", measure)


def _draw(results: Drawn) -> Any:
    from eqsep.experiments.figures.drawing import Curve, CurvePanel, curve_figure

    def curves(dataset: str) -> list[Curve]:
        return [
            Curve(method, result["more"]["x"], result["more"]["y"])
            for (name, method), result in results.items()
            if name == dataset
        ]

    names = dict.fromkeys(dataset for dataset, _ in results)
    return curve_figure([CurvePanel(name, "z", "", curves(name)) for name in names])


def _places(datasets: Any, methods: Any) -> tuple[Place, ...]:
    return tuple(Place(d, m, "", seeds=1) for d in datasets for m in methods)


FIGURES = [
    Figure(
        "bumps",
        "Two bumps and their derivatives",
        "The Gaussian bump and tanh((sigma / z)²), sigma = 1.",
        STUDY.name,
        _places(("output", "derivative"), _BUMPS),
        _draw,
    ),
    Figure(
        "losses",
        "Squared against logistic loss",
        "As functions of z, through a Gaussian bump with sigma = 1, for both classes.",
        STUDY.name,
        _places(_CLASSES, _LOSSES),
        _draw,
    ),
]
