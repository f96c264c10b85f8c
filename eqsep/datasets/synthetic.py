"""The paper's synthetic problems: Boolean functions, a hyperplane, two Gaussians, three circles.

`protocol="corrected"` draws what the paper's text describes, or what is right where the text
slips; `protocol="paper"` draws what produced the published numbers.
"""

from collections.abc import Sequence
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from eqsep.datasets.records import TrainTestSplit, for_protocol, numbered, split_of
from eqsep.errors import UserError

_RANGE = 10.0  # coordinates on the hyperplane and of the uniform anomalies lie in [-10, 10]

# The published generator squares the radius that the text names.
_CIRCLE_RADII = {
    "corrected": {"normal": 1.0, "outer": 2.0, "inner": 0.5},
    "paper": {"normal": 1.0, "outer": 4.0, "inner": 0.25},
}
# Whether the test rows are the training rows before noise was added to them.
_SAME_POINTS = {"corrected": False, "paper": True}
# Where the means of the two Gaussians lie, in every coordinate, by either protocol.
_MEANS = {"normal": 1.0, "other gaussian": -1.0}
# The place of a name is its truth table over (0, 0), (0, 1), (1, 0), (1, 1) as a binary number.
LOGIC_NAMES = (
    *("false", "and", "not implies", "x1", "not implied by", "x2", "xor", "or"),
    *("nor", "xnor", "not x2", "implied by", "not x1", "implies", "nand", "true"),
)


def make_logic(name: str | int | Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """A Boolean function of d inputs: the 2^d corners of the unit cube and the value at each.

    Parameters
    ----------
    name : str, int or sequence of int
        A function of two inputs by name, in any case: "false", "and", "not implies", "x1", "not
        implied by", "x2", "xor", "or", "nor", "xnor", "not x2", "implied by", "not x1", "implies",
        "nand" or "true"; or by its place in this list, from 0. Or a truth table of any d inputs,
        that is 2^d values 0 or 1.

    Returns
    -------
    X : ndarray of shape (2^d, d)
        The corners in lexicographic order: (0, 0), (0, 1), (1, 0), (1, 1) for two inputs.
    y : ndarray of int of shape (2^d,)
        The value of the function at each corner.

    Examples
    --------
    >>> make_logic("xor")[1]
    array([0, 1, 1, 0])
    >>> make_logic([0, 1, 1, 0, 1, 0, 0, 1])[0].shape  # the parity of three inputs
    (8, 3)
    """
    y = _truth_table(name)
    return np.array(list(product((0.0, 1.0), repeat=len(y).bit_length() - 1))), y


def make_hyperplane(
    *,
    n_samples: int = 100,
    n_features: int = 5,
    noise: float = 0.0,
    anomaly_fraction: float = 0.1,
    protocol: str = "corrected",
    random_state: Any = None,
) -> TrainTestSplit:
    """Normal rows on a random hyperplane w.x + b = 0, anomalies uniform in the cube around it.

    w and b are standard normal, and coordinates uniform on [-10, 10], but for the last one of a
    normal row. This is the paper's first linear problem: no halfspace separates the classes.

    Parameters
    ----------
    n_samples : int, default=100
        The number of training rows, and of test rows.
    n_features : int, default=5
        At least 2.
    noise : float, default=0.0
        The standard deviation of the Gaussian noise added to every coordinate.
    anomaly_fraction : float, default=0.1
        The share of anomalies in training and in test.
    protocol : {"corrected", "paper"}, default="corrected"
        "corrected": the test rows are fresh rows of the same hyperplane and cube, with the same
        noise. "paper": the test rows are the training rows *without* the noise.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    TrainTestSplit
        With the kinds "normal" and "uniform".

    Examples
    --------
    >>> make_hyperplane(n_features=3, noise=0.5, random_state=0)
    TrainTestSplit(3 features; train: 90 normal, 10 uniform; test: 90 normal, 10 uniform)
    """
    same_points = for_protocol(protocol, _SAME_POINTS)
    _check_shape(n_features, noise=noise)
    rng = check_random_state(random_state)
    weights, bias = rng.standard_normal(n_features), rng.standard_normal()

    def draw() -> tuple[np.ndarray, np.ndarray]:
        kind = _kinds(n_samples, anomaly_fraction, anomaly="uniform", rng=rng)
        X = rng.uniform(-_RANGE, _RANGE, size=(n_samples, n_features))
        on_plane = kind == "normal"
        X[on_plane, -1] = -(bias + X[on_plane, :-1] @ weights[:-1]) / weights[-1]
        return X, kind

    def perturbed(X: np.ndarray) -> np.ndarray:
        return X + noise * rng.standard_normal(X.shape)

    clean, kind = draw()
    X_train = perturbed(clean)
    if same_points:
        return _split((X_train, kind), (clean, kind))
    fresh, fresh_kind = draw()
    return _split((X_train, kind), (perturbed(fresh), fresh_kind))


def make_gaussians(
    *,
    n_samples: int = 100,
    n_features: int = 2,
    noise_multiplier: float = 1.0,
    anomaly_fraction: float = 0.1,
    protocol: str = "corrected",
    random_state: Any = None,
) -> TrainTestSplit:
    """Two Gaussian clouds: the normal one around (1, ..., 1), the other around (-1, ..., -1).

    With two features both have the covariance k [[0.2, 0.1], [0.1, 0.2]], otherwise 0.1 k I, where
    k is the noise multiplier. This is the paper's second linear problem: a halfspace's home ground.

    Parameters
    ----------
    n_samples, anomaly_fraction, random_state
        As in `make_hyperplane`.
    n_features : int, default=2
    noise_multiplier : float, default=1.0
        The k of the covariance: the larger, the more the clouds overlap.
    protocol : {"corrected", "paper"}, default="corrected"
        Both draw the same rows. For more than two features the paper's text has means of zero, with
        which the clouds would be one; its published figures come from +1 and -1, as here.

    Returns
    -------
    TrainTestSplit
        With the kinds "normal" and "other gaussian".

    Examples
    --------
    >>> make_gaussians(n_features=10, random_state=0)
    TrainTestSplit(10 features; train: 90 normal, 10 other gaussian;
        test: 90 normal, 10 other gaussian)
    """
    means = for_protocol(protocol, {"corrected": _MEANS, "paper": _MEANS})
    _check_shape(n_features, at_least=1, noise_multiplier=noise_multiplier)
    rng = check_random_state(random_state)
    correlated = 0.1 if n_features == 2 else 0.0  # the paper's matrix is 0.1 I + 0.1 in two dims
    covariance = noise_multiplier * (0.1 * np.eye(n_features) + correlated)

    def draw() -> tuple[np.ndarray, np.ndarray]:
        kind = _kinds(n_samples, anomaly_fraction, anomaly="other gaussian", rng=rng)
        centred = rng.multivariate_normal(np.zeros(n_features), covariance, size=n_samples)
        return centred + np.array([[means[name]] for name in kind]), kind

    return _split(draw(), draw())


def make_circles(
    *,
    n_samples: int = 100,
    noise: float = 0.0,
    anomaly_fraction: float = 0.25,
    protocol: str = "corrected",
    random_state: Any = None,
) -> TrainTestSplit:
    """Normal rows on the unit circle, training anomalies outside it, test anomalies inside it.

    The paper's toy problem of seen and unseen anomalies: a model that only divides the normal
    circle from the outer one calls the whole disc normal, and with it the inner circle.

    Parameters
    ----------
    n_samples, noise, anomaly_fraction, random_state
        As in `make_hyperplane`, with a quarter of anomalies by default.
    protocol : {"corrected", "paper"}, default="corrected"
        "corrected": the outer circle has radius 2 and the inner one 0.5, as the text says. "paper":
        4 and 0.25, since the published generator squares the radius.

    Returns
    -------
    TrainTestSplit
        With the kinds "normal", "outer" (only in training) and "inner" (only in test).

    Examples
    --------
    >>> make_circles(random_state=0)
    TrainTestSplit(2 features; train: 75 normal, 25 outer; test: 25 inner, 75 normal)
    """
    radii = for_protocol(protocol, _CIRCLE_RADII)
    _check_shape(2, noise=noise)
    rng = check_random_state(random_state)

    def draw(anomaly: str) -> tuple[np.ndarray, np.ndarray]:
        kind = _kinds(n_samples, anomaly_fraction, anomaly=anomaly, rng=rng)
        angle = rng.uniform(0, 2 * np.pi, size=n_samples)
        radius = np.array([[radii[name]] for name in kind])
        circle = radius * np.column_stack([np.cos(angle), np.sin(angle)])
        return circle + noise * rng.standard_normal(circle.shape), kind

    return _split(draw("outer"), draw("inner"))


def _truth_table(function: str | int | Sequence[int]) -> np.ndarray:
    """The values of `function`, one for each corner."""
    if isinstance(function, str):
        name = function.strip().lower()
        if name not in LOGIC_NAMES:
            raise UserError(
                f"Unknown Boolean function {function!r}: expected one of {', '.join(LOGIC_NAMES)}. "
                f"Pass a truth table for any other function."
            )
        function = LOGIC_NAMES.index(name)
    if isinstance(function, Integral):
        number = int(function)
        if not 0 <= number < len(LOGIC_NAMES):
            raise UserError(
                f"The Boolean functions of two inputs are numbered 0 to 15, got {number}. "
                f"Take one of these, a name ({', '.join(LOGIC_NAMES)}), or a truth table."
            )
        function = [int(digit) for digit in f"{number:04b}"]
    values = np.asarray(function)
    size = values.size
    if values.ndim != 1 or size < 2 or size & (size - 1):
        raise UserError(
            f"A truth table of d inputs has 2^d values (2, 4, 8, ...), got an array of shape "
            f"{values.shape}. List one value for each corner, from (0, ..., 0) to (1, ..., 1)."
        )
    if not np.isin(values, (0, 1)).all():
        raise UserError(
            f"A truth table holds only 0 and 1, got {np.unique(values).tolist()}. "
            f"Threshold the values first, for example values > 0."
        )
    return values.astype(int)


def _kinds(n_samples: int, fraction: float, *, anomaly: str, rng: Any) -> np.ndarray:
    """`n_samples` kinds in random order, the given fraction of them anomalous."""
    n_anomalies = round(n_samples * fraction)
    if not 0 < n_anomalies < n_samples:
        raise UserError(
            f"n_samples={n_samples} and anomaly_fraction={fraction} leave {n_anomalies} anomalies: "
            f"expected at least one normal and one anomalous row. Draw more rows, or choose a "
            f"fraction between 0 and 1."
        )
    return rng.permutation(np.repeat(["normal", anomaly], [n_samples - n_anomalies, n_anomalies]))


def _check_shape(n_features: int, *, at_least: int = 2, **spread: float) -> None:
    if n_features < at_least:
        raise UserError(f"n_features must be at least {at_least}, got {n_features}. Raise it.")
    for name, value in spread.items():
        if not 0 <= value < np.inf:
            raise UserError(
                f"{name} must be a finite number, zero or more, got {value}. It scales the spread."
            )


def _split(
    train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray]
) -> TrainTestSplit:
    return split_of(train, test, numbered("x", train[0]))
