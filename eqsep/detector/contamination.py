"""Anomalies among the rows that calibrate: how many there are at least, and which rows still count.

Rows without a label may be anomalies. Such rows raise the threshold, so that fewer anomalies are
found. How much anomalies are like the seen kinds, and how high they score, is known from labelled
ones that were held out of the fit too.
"""

import math

import numpy as np

LEVELS = (0.5, 0.75, 0.9)  # shares of the held-out anomalies, those most alike, that are counted
ALLOWED = 0.01  # the share of rows that may be normal and as much like the seen kinds
FEWEST, MOST = 10, 200  # labelled anomalies that are held out
COMMON = 20  # rows from which on a kind has some to spare


def held_out_anomalies(n: int) -> int:
    """How many of `n` labelled anomalies to hold out: a tenth, at most 200; none of less than 100.

    Examples
    --------
    >>> [held_out_anomalies(n) for n in (99, 100, 5000)]
    [0, 10, 200]
    """
    return min(n // 10, MOST) if n // 10 >= FEWEST else 0


def anomalies_among(likeness: np.ndarray, anomaly_likeness: np.ndarray) -> float:
    """How many of the rows that are so much like the seen kinds are anomalies of these, at least.

    Where S is the share of such anomalies that are alike by t or more, x = (the rows that are, less
    one in a hundred of all rows, which may be normal) / S rows are anomalies. The variance of x is
    (1 - S) / S times x, by which anomalies are here, plus x² / m, by which m held-out ones tell S.
    The answer is x less one standard error, the least for three t: where normal rows are as much
    like the seen kinds as anomalies are, the higher t say so.

    Parameters
    ----------
    likeness : ndarray of shape (n,)
        Of the rows that calibrate.
    anomaly_likeness : ndarray of shape (m,)
        Of labelled anomalies that were held out too.

    Examples
    --------
    >>> rows = np.concatenate([np.linspace(0, 0.3, 900), np.linspace(0.5, 1, 100)])
    >>> round(anomalies_among(rows, np.linspace(0.5, 1, 99)))
    68
    >>> anomalies_among(rows[:900], np.linspace(0.5, 1, 99))
    0.0
    """
    m, highest = len(anomaly_likeness), np.sort(anomaly_likeness)[::-1]
    if not m:
        return 0.0
    least = math.inf
    for level in LEVELS:
        place = math.ceil(level * m)
        share = place / (m + 1)
        alike = np.sum(likeness >= highest[place - 1]) - ALLOWED * len(likeness)
        x = max(float(alike), 0.0) / share
        least = min(least, x - math.sqrt((1 - share) / share * (x + x**2 / m)))
    return max(least, 0.0)


def counting(scores: np.ndarray, anomaly_scores: np.ndarray, n_anomalies: float) -> np.ndarray:
    """Which rows still count once the anomalies among them are left out.

    Of the rows that score t or more, as many are left out as are anomalies: all that there are,
    times the share of held-out anomalies that score t or more, rounded down. Which rows these are
    nobody can say; for the threshold their number above each score is enough.

    Examples
    --------
    >>> counting(np.array([0.2, 0.9, 0.8, 0.1]), np.array([0.7, 0.85, 0.9]), 1.5).tolist()
    [True, True, False, True]
    """
    order = np.argsort(-scores, kind="stable")
    below = np.searchsorted(np.sort(anomaly_scores), scores[order], side="left")
    share = (len(anomaly_scores) - below) / (len(anomaly_scores) + 1)
    normal = np.maximum(np.arange(1, len(scores) + 1) - np.floor(n_anomalies * share), 1)
    normal = np.minimum.accumulate(normal[::-1])[::-1]  # no more of them above a higher score
    counts = np.empty(len(scores), dtype=bool)
    counts[order] = np.diff(normal, append=np.inf) > 0
    return counts
