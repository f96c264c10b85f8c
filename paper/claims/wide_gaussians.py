"""Two Gaussian clouds in 5 to 30 dimensions, of which the text has a sentence and one figure."""

from functools import partial
from typing import Any

from eqsep.datasets import make_gaussians
from paper.cells import Cell, Measured, Study
from paper.claims.claim import Claim, Contrast, Value
from paper.measures import areas_over_draws
from paper.methods import equality, linear_svm
from paper.plan import Measurement
from paper.tables import gaussians

FIGURE = 30  # the dimensions of the figure, whose cells are those of the other study
DIMENSIONS = (5, 10, 15, 20, 25, FIGURE)
MULTIPLIERS = ("1.0", "4.0", "7.0", "10.0", "13.0", "16.0", "19.0")
SIGMAS = {"MSE": "10.0", "LL": "0.5"}  # as the text says
PROBLEMS: dict[str, dict[str, Any]] = {
    gaussians.dataset(k, d): {"noise_multiplier": float(k), "n_features": d}
    for k in MULTIPLIERS
    for d in DIMENSIONS
}


def measure(cell: Cell) -> Measured:
    """Both areas on clouds of its own for each seed, the normal class as positive."""
    draw = partial(make_gaussians, **PROBLEMS[cell.dataset], protocol=cell.protocol)
    makers = {"SVM": linear_svm} | {
        gaussians.method(loss, sigma): equality(loss, sigma=float(sigma), protocol=cell.protocol)
        for loss, sigma in SIGMAS.items()
    }
    return areas_over_draws(draw, makers[cell.method], n_seeds=cell.seeds), {}


def seconds(cell: Cell) -> float:
    """Roughly, on one core."""
    return cell.seeds * (0.01 if cell.method == "SVM" else 0.05)


STUDY = Study("wide_gaussians", measure, seconds)


def _value(name: str, d: int, multiplier: str) -> Value:
    method = name if name == "SVM" else gaussians.method(name, SIGMAS[name])
    study = gaussians.STUDY.name if d == FIGURE else STUDY.name
    at = Measurement(gaussians.dataset(multiplier, d), method, "{metric}, normal")
    return Value(f"{name}, {d} dimensions, noise multiplier {multiplier}", study, at)


_PLACES = [(d, k) for d in DIMENSIONS for k in MULTIPLIERS]
CLAIMS = [
    *(
        Claim(
            f"above 0.99, {loss}",
            f"In 5 to 30 dimensions the mean area is above 0.99 ({words} loss).",
            tuple(Contrast(_value(loss, d, k), "above", 0.99) for d, k in _PLACES),
        )
        for loss, words in {"MSE": "squared", "LL": "logistic"}.items()
    ),
    Claim(
        "wide and competitive",
        "In 5 to 30 dimensions equality separators are not significantly worse than the SVM.",
        tuple(
            Contrast(_value(loss, d, k), "no worse", _value("SVM", d, k), paired=True)
            for loss in SIGMAS
            for d, k in _PLACES
        ),
    ),
    *(
        Claim(
            f"losses in {d} dimensions",
            f"The {words} loss is the better one in {many} dimensions.",
            tuple(
                Contrast(_value(better, d, k), "above", _value(worse, d, k), paired=True)
                for k in MULTIPLIERS
            ),
            note=f"Taken for {d} dimensions.",
        )
        for d, words, many, better, worse in (
            (5, "squared", "few", "MSE", "LL"),
            (FIGURE, "logistic", "many", "LL", "MSE"),
        )
    ),
]
