"""Online selection: each row is decided on as it arrives, and few of the alarms are false.

LORD with decaying memory (Rebjock, Kurt, Januschowski and Callot, 2021) selects a row if its
p-value is at most fdr (1 / m + sum over earlier alarms, s rows ago, of d^s gamma_s), with d = 1 - 1
/ m for a memory of m rows. Rules without one hardly select rows (`bench/online.py`).
"""

from typing import Any

import numpy as np

from eqsep.checks import warn_of
from eqsep.detector.calibration import checked_fdr
from eqsep.detector.detector import Detector
from eqsep.errors import UserError

_SCALE = 0.07720838  # so that all gamma sum up to 1
_FORGOTTEN = 40  # memories after which an alarm counts nothing


class OnlineSelector:
    """Selects anomalies as rows arrive, with a bounded share of false alarms.

    Parameters
    ----------
    detector : Detector
        Fitted without groups or times.
    fdr : float, default=0.1
        The share of the alarms in the memory that may be false, on average.
    memory : int, default=None
        For about how many rows an alarm counts. The default is fdr (n + 1), for n held-out normal
        rows: the longest memory with which a single row can be selected.

    Attributes
    ----------
    rows, alarms : int
        How many rows have arrived, and how many were selected.

    Examples
    --------
    >>> from eqsep import Detector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2500, 2))
    >>> detector = Detector(n_landmarks=50, bandwidth=1.0, random_state=0).fit(X)
    >>> selector = OnlineSelector(detector, fdr=0.1)
    >>> selector.memory, round(selector.level, 4)
    (50, 0.0054)
    >>> selector.select([[0.0, 0.0], [9.0, 0.0], [0.5, 0.0]])
    array([False,  True, False])
    """

    def __init__(self, detector: Detector, *, fdr: float = 0.1, memory: int | None = None) -> None:
        model = detector.model_
        self.fdr, n = checked_fdr(fdr), model.n_calibrating()
        warn_of([] if model.caution is None else [model.caution])
        longest = int(self.fdr * (n + 1) + 1e-9)
        self.memory = longest if memory is None else int(memory)
        if not 2 <= self.memory <= longest:
            least = 2 if memory is None else self.memory
            raise UserError(
                f"A memory of {max(least, 2):,} rows needs {max(least, 2) / self.fdr - 1:,.0f} "
                f"held-out normal rows to select any row, and there are {n:,}.",
                hint="Add normal rows, or allow a higher fdr.",
                topic="short_memory",
            )
        self.detector, self.rows, self.alarms = detector, 0, 0
        self._places = np.empty(0)  # of the alarms that still count

    @property
    def level(self) -> float:
        """The p-value up to which the next row is selected."""
        place = self.rows + 1
        ago = place - self._places
        bonus = (np.power(1 - 1 / self.memory, ago) * _shares(ago)).sum()
        base = max(float(_shares(np.array([place]))[0]), 1 / self.memory)
        return self.fdr * (base + float(bonus))

    def select(self, X: Any) -> np.ndarray:
        """Which rows of a table are selected, taken in order."""
        return self.decide(self.detector.p_value(X))

    def decide(self, p: np.ndarray) -> np.ndarray:
        """The same for rows with these p-values."""
        mask = np.zeros(len(p), dtype=bool)
        for i, value in enumerate(p.tolist()):
            mask[i] = value <= self.level + 1e-12
            self.rows += 1
            if mask[i]:
                self._places = np.append(self._places, self.rows)
            if len(self._places) and self.rows - self._places[0] > _FORGOTTEN * self.memory:
                self._places = self._places[1:]
        self.alarms += int(mask.sum())
        return mask


def _shares(k: np.ndarray) -> np.ndarray:
    weights: np.ndarray = _SCALE * np.log(np.maximum(k, 2)) / (k * np.exp(np.sqrt(np.log(k))))
    return weights
