"""Boolean functions as data: the corners of the unit cube and a label for each."""

from collections.abc import Sequence
from itertools import product
from numbers import Integral

import numpy as np

from eqsep.errors import UserError

# The place of a name is the number of its function: the truth table over (0, 0), (0, 1), (1, 0),
# (1, 1), read as a binary number. "and" is 0001 = 1, "xor" is 0110 = 6, "nand" is 1110 = 14.
LOGIC_NAMES = (
    "false",
    "and",
    "not implies",
    "x1",
    "not implied by",
    "x2",
    "xor",
    "or",
    "nor",
    "xnor",
    "not x2",
    "implied by",
    "not x1",
    "implies",
    "nand",
    "true",
)


def make_logic(name: str | int | Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """A Boolean function of d inputs: the 2^d corners of the unit cube and the value at each.

    Parameters
    ----------
    name : str, int or sequence of int
        A name from the table below, in any case; its number; or a truth table of any d inputs,
        that is 2^d values 0 or 1, one for each corner in lexicographic order. The number is the
        truth table read as a binary number.

        ====== ============== == == == ==
        number name           00 01 10 11
        ====== ============== == == == ==
        0      false          0  0  0  0
        1      and            0  0  0  1
        2      not implies    0  0  1  0
        3      x1             0  0  1  1
        4      not implied by 0  1  0  0
        5      x2             0  1  0  1
        6      xor            0  1  1  0
        7      or             0  1  1  1
        8      nor            1  0  0  0
        9      xnor           1  0  0  1
        10     not x2         1  0  1  0
        11     implied by     1  0  1  1
        12     not x1         1  1  0  0
        13     implies        1  1  0  1
        14     nand           1  1  1  0
        15     true           1  1  1  1
        ====== ============== == == == ==

    Returns
    -------
    X : ndarray of shape (2^d, d)
        The corners in lexicographic order: (0, 0), (0, 1), (1, 0), (1, 1) for two inputs.
    y : ndarray of int of shape (2^d,)
        The value of the function at each corner.

    Examples
    --------
    >>> X, y = make_logic("xor")
    >>> X
    array([[0., 0.],
           [0., 1.],
           [1., 0.],
           [1., 1.]])
    >>> y
    array([0, 1, 1, 0])
    >>> make_logic([0, 1, 1, 0, 1, 0, 0, 1])[0].shape  # the parity of three inputs
    (8, 3)
    """
    y = _truth_table(name)
    n_inputs = len(y).bit_length() - 1
    return np.array(list(product((0.0, 1.0), repeat=n_inputs))), y


def _truth_table(function: str | int | Sequence[int]) -> np.ndarray:
    """The values of `function`, one for each corner."""
    if isinstance(function, str):
        return _numbered(_number_of(function))
    if isinstance(function, Integral):
        return _numbered(int(function))
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


def _number_of(name: str) -> int:
    folded = name.strip().lower()
    if folded not in LOGIC_NAMES:
        raise UserError(
            f"Unknown Boolean function {name!r}: expected one of {', '.join(LOGIC_NAMES)}. "
            f"Pass a truth table for any other function."
        )
    return LOGIC_NAMES.index(folded)


def _numbered(number: int) -> np.ndarray:
    """The four binary digits of `number`, the first one for the corner (0, 0)."""
    if not 0 <= number < len(LOGIC_NAMES):
        raise UserError(
            f"The Boolean functions of two inputs are numbered 0 to 15, got {number}. "
            f"Take one of these, a name ({', '.join(LOGIC_NAMES)}), or a truth table."
        )
    return np.array([number >> place & 1 for place in (3, 2, 1, 0)])
