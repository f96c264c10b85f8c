"""The rows with the highest scores, of as many as there are."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa


class Highest:
    """The highest scores so far, at most so many; None is all.

    Examples
    --------
    >>> import numpy as np
    >>> highest = Highest(2)
    >>> highest.entering(np.array([0.1, 0.5, 0.3])), highest.entering(np.array([0.4, 0.2, 0.1]))
    (array([1, 2]), array([0]))
    """

    def __init__(self, most: int | None) -> None:
        self.most = most
        self._scores = np.empty(0)

    def entering(self, scores: np.ndarray) -> np.ndarray:
        """Which of further rows are among the highest now; of equal ones the first stay."""
        both = np.concatenate([self._scores, scores])
        order = np.argsort(-both, kind="stable")[: self.most]
        before, self._scores = len(self._scores), both[order]
        return np.sort(order[order >= before] - before)


def ranked(tables: Iterable[pa.Table], *, most: int) -> Iterator[pa.Table]:
    """One table: the rows of all of them with the highest scores, in falling order."""
    held: pa.Table | None = None
    for table in tables:
        both = table if held is None else pa.concat_tables([held, table])
        order = np.argsort(-both.column("score").to_numpy(), kind="stable")[:most]
        held = both.take(pa.array(order, pa.int64())).combine_chunks()
    if held is not None:
        yield held
