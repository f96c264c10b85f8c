"""From the sums of a fit to what it has learnt: coefficients over landmarks, votes of leaves."""

from dataclasses import replace
from typing import Any

import numpy as np

from eqsep.engine.nystroem import Statistics
from eqsep.engine.trees import anomalous_shares

RIDGE = 300.0  # the penalty of g for one labelled anomaly
FEW = 100  # labelled anomalies: below, doubted rows are followed less closely


def solved(detector: Any, statistics: Statistics) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The coefficients of f and of each kind's function, those of g, and the votes of leaves.

    The ridge penalty of f is alpha, and where rows are doubted up to ten times that if few
    anomalies are labelled: most of them are among the rows that f is to be 1 at. g is the
    regression of "labelled anomaly" with balanced classes; the fewer anomalies, the stronger its
    penalty: 300 over their number, at least 1.
    """
    n_anomalies = float(statistics.weight[1:].sum())
    doubt = min(max(FEW / max(n_anomalies, 1.0), 1.0), 10.0)
    coef: np.ndarray = statistics.solve(
        detector.alpha * (doubt if detector.feature_map_.doubted else 1.0)
    )
    votes = leaf_votes(detector.feature_map_, statistics)
    if statistics.anomalous is None or not n_anomalies:
        return coef, np.zeros(len(coef)), votes
    balanced = statistics.balanced
    anomalous = replace(balanced, moment=balanced.moment[:, 1:].sum(axis=1))
    return coef, anomalous.solve(max(RIDGE / n_anomalies, 1.0)), votes


def leaf_votes(feature_map: Any, statistics: Statistics) -> np.ndarray:
    """The share of anomalies in each leaf of the trees.

    Where rows are doubted, labelled anomalies are some of all: then the mean of this share and of
    the one with balanced classes.
    """
    if statistics.leaves is None:
        return np.empty(0)
    votes = anomalous_shares(statistics.leaves)
    if feature_map.doubted:
        votes = (votes + anomalous_shares(statistics.leaves, balanced=True)) / 2
    return votes
