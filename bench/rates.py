"""How many anomalies are caught where few normal rows raise an alarm."""

import numpy as np


def recall_by_kind(
    score: np.ndarray, kind: np.ndarray, *, false_alarm_rate: float
) -> dict[str, float]:
    """The share of each kind's rows above the threshold that this share of normal rows exceeds.

    The threshold is one of the normal scores; where many of these are equal, fewer rows exceed it.
    """
    threshold = np.quantile(score[kind == "normal"], 1 - false_alarm_rate, method="higher")
    return {
        str(name): float(np.mean(score[kind == name] > threshold))
        for name in np.unique(kind)
        if name != "normal"
    }
