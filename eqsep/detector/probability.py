"""The chance that a row is an anomaly, from where its score lies among those of normal rows."""

from typing import Any

import numpy as np

TINY = 1e-12  # a score that no other one is between 0 and


def survival(calibration: Any, score: np.ndarray) -> np.ndarray:
    """The share of new normal rows that score higher than each score: a p-value without steps.

    At a score of the calibration set it is the weight of those that score as high, over n + 1; in
    between it is linear, and beyond the highest it falls as 1 / s. So it is within 1 / (n + 1) of
    the p-value, and tells rows apart that share one.

    Parameters
    ----------
    calibration : Calibration
    score : ndarray of shape (n_rows,)

    Examples
    --------
    >>> from eqsep.detector.scoring import Calibration
    >>> calibration = Calibration(np.zeros((3, 1)), np.array([0.1, 0.2, 0.4]))
    >>> survival(calibration, np.array([0.0, 0.1, 0.3, 0.4, 0.8])).tolist()
    [1.0, 0.75, 0.375, 0.25, 0.125]
    """
    counting = calibration.counting
    order = np.argsort(calibration.scores[counting], kind="stable")
    ordered, first = np.unique(calibration.scores[counting][order], return_index=True)
    as_high = np.cumsum(calibration.weights[order][::-1])[::-1][first]
    there = ordered > 0  # at 0, the least score, all are as high
    highest = max(ordered[-1], TINY) if len(ordered) else 0.5  # without any, the threshold
    share = np.append(1.0, as_high[there] / (calibration.n_units + 1))
    score = np.asarray(score, dtype=float)
    beyond = highest / np.maximum(score, highest)
    found: np.ndarray = np.interp(score, np.append(0.0, ordered[there]), share) * beyond
    return found


def probabilities(detector: Any, score: np.ndarray) -> np.ndarray:
    """The chances that rows with these scores are normal, and anomalous.  (n,) -> (n, 2)

    c / (q + c) for an anomaly, where q is what `survival` says and c what it says of the threshold.
    """
    calibration, threshold = detector.calibration_, max(detector.threshold_, 0.0)
    q, c = (survival(calibration, np.atleast_1d(s)) for s in (score, threshold))
    chances: np.ndarray = np.column_stack([q, np.broadcast_to(c, q.shape)]) / (q + c)[:, None]
    return chances
