"""Real data as the paper's methods see it: shuffled once, standardised by the training rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from eqsep.datasets import TrainTestSplit
from paper.cells import Skipped


def loaded(load: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a loader returns; without its files the cell is skipped, with the loader's reason."""
    try:
        return load(*arguments, **options)
    except FileNotFoundError as error:
        raise Skipped(str(error)) from error


def scaled(split: TrainTestSplit, *, random_state: int = 0) -> TrainTestSplit:
    """The training rows in random order, all columns standardised by them.

    The scaling is scikit-learn's, which leaves a column that is constant in training as it is; the
    networks' own takes it out, so a service that was never trained on would go unnoticed.
    """
    order = np.random.default_rng(random_state).permutation(len(split.X_train))
    scaling = StandardScaler().fit(split.X_train)
    return TrainTestSplit(
        X_train=scaling.transform(split.X_train[order]),
        kind_train=split.kind_train[order],
        X_test=scaling.transform(split.X_test),
        kind_test=split.kind_test,
        feature_names=split.feature_names,
    )


def first_rows(split: TrainTestSplit, n: int) -> TrainTestSplit:
    """At most `n` training rows: the first ones, which are in random order."""
    return TrainTestSplit(
        X_train=split.X_train[:n],
        kind_train=split.kind_train[:n],
        X_test=split.X_test,
        kind_test=split.kind_test,
        feature_names=split.feature_names,
    )
