"""What the text proves or counts: Boolean functions, VC dimensions and closing numbers."""

from collections.abc import Callable

import numpy as np

from eqsep.evaluation.peers import PEERS
from eqsep.separators.linear import EqualitySeparator
from eqsep.theory import is_closed, shatters, vc_dimension
from paper.cells import Cell, Measured, Study
from paper.claims.claim import Claim, Contrast, Value
from paper.plan import Measurement
from paper.theory import WITNESSES

_CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
_FUNCTIONS = [[code >> corner & 1 for corner in range(4)] for code in range(16)]
_DRAWS = 200  # of random normals
_DIMENSIONS = (1, 2, 3)
_CLOSED_IN = (2, 3, 5)
BOOLEAN, SHATTERING, CLOSED = "Boolean functions", "shattering", "closed regions"


def _learnt(fit: Callable[..., object]) -> int:
    """How many of the 16 Boolean functions of two inputs a model has right at all four corners."""
    return sum(bool(np.all(fit(_CORNERS, np.array(y)) == y)) for y in _FUNCTIONS)


def _equality(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return EqualitySeparator(random_state=0).fit(X, y).predict(X)


def _halfspace(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    if len(set(y)) == 1:
        return y  # all plane, or none of it
    return PEERS["logistic regression"].build(C=100.0).fit(X, y).predict(X)


def _on_curve(n: int) -> list[list[int]]:
    """2n + 1 points of the moment curve: a plane that meets any n of them misses the others."""
    return [[t**k for k in range(1, n + 1)] for t in range(2 * n + 1)]


def measure(cell: Cell) -> Measured:
    """Counts without chance; closed regions over random normals from seed 0."""
    if cell.dataset == BOOLEAN:
        return {"learnt": [_learnt({"ES": _equality, "halfspace": _halfspace}[cell.method])]}, {}
    family, dimension = cell.method.rsplit(" in R^", 1)
    n = int(dimension)
    if cell.dataset == SHATTERING:
        points = WITNESSES.get((family, n), _on_curve(n))
        found = len(points) if shatters(points, family) else 0
        return {"shattered": [found], "proved bound": [vc_dimension(family, n).upper]}, {}
    rng = np.random.default_rng(0)

    def share_closed(k: int) -> float:
        draws = rng.standard_normal((_DRAWS, k, n))
        return float(np.mean([bool(is_closed(normals, family=family)) for normals in draws]))

    return {f"closed by {k}": [share_closed(k)] for k in (n - 1, n, n + 1)}, {}


STUDY = Study("theory", measure)


def _value(label: str, dataset: str, method: str, key: str) -> Value:
    return Value(label, STUDY.name, Measurement(dataset, method, key, seeds=1))


def _learnt_by(method: str) -> Value:
    return _value(f"functions of 16 that one {method} learns", BOOLEAN, method, "learnt")


def _shattered(family: str, n: int) -> Value:
    return _value(f"shattered in R^{n}", SHATTERING, f"{family} in R^{n}", "shattered")


def _bound(family: str, n: int) -> Value:
    return _value(f"proved bound in R^{n}", SHATTERING, f"{family} in R^{n}", "proved bound")


def _closed(family: str, n: int, k: int) -> Value:
    label = f"share of {k} {family} separators of R^{n} that enclose a region"
    return _value(label, CLOSED, f"{family} in R^{n}", f"closed by {k}")


CLAIMS = [
    Claim(
        "XOR",
        "One neuron learns XOR, and with it every Boolean function of two inputs; no halfspace "
        "does.",
        (
            Contrast(_learnt_by("ES"), "same", 16.0),
            Contrast(_learnt_by("halfspace"), "below", 16.0),
        ),
    ),
    Claim(
        "VC dimension",
        "The VC dimension of strict equality separators is 2n + 1.",
        tuple(Contrast(_shattered("strict-equality", n), "same", 2.0 * n + 1) for n in _DIMENSIONS),
        note="So many points are shattered, by exact arithmetic; that no more can be is proved in "
        "docs/vc_dimension.md, and not measured.",
    ),
    Claim(
        "VC dimension with a margin",
        "The VC dimension of equality separators with a margin is at most 2n + 3.",
        (
            Contrast(_bound("epsilon-equality", 2), "below", 2 * 2 + 3.5),
            Contrast(_shattered("epsilon-equality", 3), "below", 2 * 3 + 3.5),
        ),
        note="That no seven points of R^2 are shattered is proved; ten points of R^3 are, by exact "
        "arithmetic: docs/vc_dimension.md.",
    ),
    Claim(
        "VC dimension without flipping",
        "If the normal class has to lie within the margin, the VC dimension is n + 1, as of "
        "halfspaces.",
        tuple(Contrast(_shattered("hyper-ridge", n), "below", n + 1.5) for n in (2, 3)),
        note="Five points of R^2 and eight of R^3 are shattered by exact arithmetic: "
        "docs/vc_dimension.md.",
    ),
    Claim(
        "closing numbers",
        "It takes n equality separators, or n + 1 halfspaces, to enclose a region of R^n.",
        tuple(
            contrast
            for n in _CLOSED_IN
            for contrast in (
                Contrast(_closed("equality", n, n - 1), "same", 0.0),
                Contrast(_closed("equality", n, n), "same", 1.0),
                Contrast(_closed("halfspace", n, n), "same", 0.0),
                Contrast(_closed("halfspace", n, n + 1), "above", 0.0),
            )
        ),
        note=f"Of {_DRAWS} draws of normals at random.",
    ),
]
