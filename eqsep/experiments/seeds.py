"""One seed in, two independent ones out: a model must not start from the numbers of its data."""

from typing import NamedTuple

import numpy as np


class Seeds(NamedTuple):
    """The seed that draws the rows, and the one that starts the model.

    The synthetic problems draw a standard normal hyperplane before their rows. A model that starts
    from a standard normal draw of the same seed would start from that very hyperplane.
    """

    data: int
    model: int


def seeds_of(seed: int) -> Seeds:
    """Both seeds of a repetition.

    Examples
    --------
    >>> first, second = seeds_of(0), seeds_of(1)
    >>> len({*first, *second})
    4
    """
    return Seeds(*(int(word) for word in np.random.SeedSequence(seed).generate_state(2)))
