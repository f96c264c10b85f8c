"""Separating hyperplanes, exactly decided: does one plane of a family realise a labelling?"""

import numpy as np
from numpy.typing import ArrayLike

from eqsep.errors import UserError
from eqsep.theory.checks import look_up
from eqsep.theory.families import FAMILIES
from eqsep.theory.planes import Hyperplane
from eqsep.theory.rational import as_rationals, homogeneous


def separating_hyperplane(
    X: ArrayLike, y: ArrayLike, *, family: str = "epsilon-equality", exact: bool = False
) -> Hyperplane | None:
    """The plane of a family that gives every point its label, or None where there is none.

    The answer is a theorem about the numbers in X as they stand: planes are checked and refusals
    proved in integer arithmetic. The time grows fast with the points for slabs, whose outside
    points may each lie on either side; this is for tens of points, not thousands.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        The points: numbers, `fractions.Fraction`, or decimals as text such as "0.1".
    y : array-like of shape (n_points,)
        Their labels, 0 or 1.
    family : {"epsilon-equality", "hyper-ridge", "strict-equality", "halfspace"}
        The planes: slabs around either class, slabs around class 1 only, strict equality with
        either class on the plane, or class 1 on the side w.x + b >= 0.
    exact : bool, default=False
        Return the plane in Fractions, as it was checked, rather than rounded to floats.

    Returns
    -------
    Hyperplane or None
        Named tuple (w, b, epsilon, margin_class). epsilon is 0 for strict equality and halfspaces.

    Examples
    --------
    >>> from eqsep.theory import separating_hyperplane
    >>> corners, xor = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> separating_hyperplane(corners, xor, family="halfspace") is None
    True
    >>> separating_hyperplane(corners, xor, family="strict-equality")
    Hyperplane(w=array([-0.5, -0.5]), b=0.5, epsilon=0.0, margin_class=1)
    """
    chosen = look_up(family, FAMILIES)
    points = as_rationals(X)
    plane = chosen.separate(homogeneous(points), check_labels(y, len(points)))
    return plane if plane is None or exact else plane.as_floats()


def check_labels(y: ArrayLike, n_points: int) -> list[int]:
    """One label 0 or 1 a point, or an error that says what came."""
    labels = np.asarray(y)
    if labels.shape != (n_points,) or not np.isin(labels, (0, 1)).all():
        raise UserError(f"y must hold a label 0 or 1 for each of the {n_points} points, got {y!r}.")
    return labels.astype(int).tolist()
