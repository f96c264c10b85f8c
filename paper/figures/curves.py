"""Curves: of formulas, of areas against noise, and of sigma against epochs."""

from typing import Any

import numpy as np

from eqsep.activations import GaussianBump, TanhBump
from eqsep.losses import LogisticLoss, SquaredLoss
from paper.cells import Cell, Measured, Result, Study
from paper.measures import METRICS
from paper.plan import Drawn, Figure, Measurement
from paper.tables import circle_networks, gaussians, hyperplane

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


def _draw_formulas(results: Drawn) -> Any:
    from paper.figures.drawing import Curve, CurvePanel, curve_figure

    def curves(dataset: str) -> list[Curve]:
        return [
            Curve(method, result["more"]["x"], result["more"]["y"])
            for (name, method), result in results.items()
            if name == dataset
        ]

    names = dict.fromkeys(dataset for dataset, _ in results)
    return curve_figure([CurvePanel(name, "z", "", curves(name)) for name in names])


def _formula_measurements(datasets: Any, methods: Any) -> tuple[Measurement, ...]:
    return tuple(Measurement(d, m, "", seeds=1) for d in datasets for m in methods)


_ROWS_IN_WORDS = {"100": "100 rows", "20d": "700 rows"}


def _curve(label: str, points: list[tuple[float, Result]]) -> Any:
    """Mean and standard deviation of the protocol's area of the normal class, by noise."""
    from paper.figures.drawing import Curve

    areas = [
        result["values"][f"{METRICS[result['cell']['protocol']]}, normal"] for _, result in points
    ]
    mean, std = [float(np.mean(a)) for a in areas], [float(np.std(a)) for a in areas]
    return Curve(label, [x for x, _ in points], mean, std)


def _area_figure(panels: list[tuple[str, list[Any]]], x_label: str) -> Any:
    from paper.figures.drawing import CurvePanel, curve_figure

    return curve_figure(
        [CurvePanel(t, x_label, "area, normal as positive", curves) for t, curves in panels]
    )


def _draw_hyperplane(results: Drawn) -> Any:
    def curve(loss: str, rows: str) -> Any:
        points = [
            (float(noise), results[hyperplane.dataset(rows, 35, noise), f"ES, {loss}"])
            for noise in hyperplane.NOISES
        ]
        return _curve(_ROWS_IN_WORDS[rows], points)

    panels = [(loss, [curve(loss, rows) for rows in hyperplane.ROWS]) for loss in ("LL", "MSE")]
    return _area_figure(panels, "standard deviation of the noise")


def _draw_gaussians(results: Drawn) -> Any:
    def curve(label: str, method: str, multipliers: tuple[str, ...], d: int) -> Any:
        points = [(float(k), results[gaussians.dataset(k, d), method]) for k in multipliers]
        return _curve(label, points)

    dimensions = 30 if any(dataset.startswith("30") for dataset, _ in results) else 2
    multipliers = gaussians.WIDE if dimensions == 30 else gaussians.MULTIPLIERS
    panels = []
    for loss, sigmas in _SIGMAS[dimensions].items():
        names = {"SVM": "SVM"} | {f"ES, sigma={s}": gaussians.method(loss, s) for s in sigmas}
        curves = [curve(label, name, multipliers, dimensions) for label, name in names.items()]
        panels.append((loss, curves))
    return _area_figure(panels, "noise multiplier")


# As in the paper's figures, which leave some out to be clearer.
_SIGMAS: dict[int, dict[str, tuple[str, ...]]] = {
    2: {"MSE": ("0.5", "5.0", "10.0"), "LL": ("0.1", "0.5")},
    30: {"MSE": ("10.0",), "LL": ("0.5",)},
}


def _draw_sigma(results: Drawn) -> Any:
    from paper.figures.drawing import Curve, CurvePanel, curve_figure

    panels = []
    for (_, method), result in results.items():
        epoch, *layers = np.array(result["more"]["sigma"]).T.tolist()
        curves = [Curve(f"layer {i + 1}", epoch, sigma) for i, sigma in enumerate(layers)]
        panels.append(CurvePanel(method, "epoch", "sigma", curves))
    return curve_figure(panels)


def _gaussian_measurements(d: int, multipliers: tuple[str, ...]) -> tuple[Measurement, ...]:
    methods = [gaussians.method(loss, s) for loss, some in _SIGMAS[d].items() for s in some]
    return tuple(
        Measurement(gaussians.dataset(k, d), method, "")
        for k in multipliers
        for method in ("SVM", *methods)
    )


FIGURES = [
    Figure(
        "bumps",
        "Two bumps and their derivatives",
        "The Gaussian bump and tanh((sigma / z)²), sigma = 1.",
        STUDY.name,
        _formula_measurements(("output", "derivative"), _BUMPS),
        _draw_formulas,
    ),
    Figure(
        "losses",
        "Squared against logistic loss",
        "As functions of z, through a Gaussian bump with sigma = 1, for both classes.",
        STUDY.name,
        _formula_measurements(_CLASSES, _LOSSES),
        _draw_formulas,
    ),
    Figure(
        "hyperplane_35",
        "Hyperplane in 35 dimensions",
        "The area by noise, with a constant number of rows and with 20 rows a dimension.",
        hyperplane.STUDY.name,
        tuple(
            Measurement(hyperplane.dataset(rows, 35, noise), f"ES, {loss}", "")
            for loss in ("LL", "MSE")
            for rows in hyperplane.ROWS
            for noise in hyperplane.NOISES
        ),
        _draw_hyperplane,
    ),
    Figure(
        "gaussians_sigma",
        "Two Gaussians by sigma",
        "The area by noise multiplier for both losses; bands are one standard deviation.",
        gaussians.STUDY.name,
        _gaussian_measurements(2, gaussians.MULTIPLIERS),
        _draw_gaussians,
    ),
    Figure(
        "gaussians_30",
        "Two Gaussians in 30 dimensions",
        "Squared loss with sigma 10 and logistic loss with sigma 0.5, beside a linear SVM.",
        gaussians.STUDY.name,
        _gaussian_measurements(30, gaussians.WIDE),
        _draw_gaussians,
    ),
    Figure(
        "sigma_by_layer",
        "Sigma by layer and epoch",
        "The widths of the hidden bumps of the best member, up to its best epoch.",
        circle_networks.STUDY.name,
        tuple(Measurement("circles", name, "") for name in circle_networks.SIGMA_DRAWN),
        _draw_sigma,
    ),
]
