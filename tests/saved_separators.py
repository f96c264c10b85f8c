"""Separators of all makes, to be saved, and the rows they are asked about."""

import warnings

from sklearn.base import clone

from eqsep import (
    DeepSAD,
    EqualitySeparator,
    KernelEqualitySeparator,
    NegativeSampling,
    NetworkSeparator,
    TwinSeparator,
)
from eqsep.activations import GaussianBump, Sigmoid, TanhBump
from eqsep.datasets import make_gaussians
from eqsep.kernels import RBF, Exponential, Laplacian, PairwiseKernel
from eqsep.losses import LogisticLoss
from eqsep.networks import Training
from eqsep.solvers import BFGS, LBFGS

BRIEF = Training(epochs=3, batch_size=16, validation_fraction=0)
ESTIMATORS = {
    "linear": EqualitySeparator(random_state=0),
    "linear, pieces": EqualitySeparator(
        head=TanhBump(0.5), loss=LogisticLoss(), solver=LBFGS(max_iter=500), random_state=0
    ),
    "closed": KernelEqualitySeparator(n_landmarks=20, random_state=0),
    "closed, kernel": KernelEqualitySeparator(kernel=Exponential(), landmarks=[[0.0, 1.0], [2, 3]]),
    "bump": KernelEqualitySeparator(closed=False, n_landmarks=15, random_state=0),
    "bump, polynomial": KernelEqualitySeparator(
        kernel=PairwiseKernel("polynomial", {"degree": 2, "gamma": 0.1}),
        separator=EqualitySeparator(solver=BFGS(), random_state=0),
        closed=False,
        n_landmarks=9,
        random_state=0,
    ),
    "twin": TwinSeparator(separator=EqualitySeparator(n_init=3), random_state=0),
    "negative sampling": NegativeSampling(
        EqualitySeparator(head=GaussianBump(0.7)), ratio=1, random_state=0
    ),
    "network": NetworkSeparator(
        hidden=(5, 4), batch_norm=True, learn_sigma=True, n_members=3, training=BRIEF,
        random_state=0,
    ),
    "network, closed": NetworkSeparator(n_members=2, hidden=(6,), training=BRIEF, random_state=0),
    "network, rbf": NetworkSeparator(
        head="rbf", activation="rbf", hidden=[6], n_members=2, training=BRIEF, random_state=0,
        score_by="distance",
    ),
    "network, halfspace": NetworkSeparator(
        head="halfspace", activation="leaky_relu", n_members=2, training=BRIEF, random_state=0
    ),
    "network, formula": NetworkSeparator(
        activation=Sigmoid(), hidden=(5,), n_members=2, training=BRIEF, random_state=0
    ),
    "deep SAD": DeepSAD(
        hidden=(8,), code=4, pretraining=BRIEF, training=BRIEF, n_members=2, random_state=0
    ),
    "deep SAD, linear code": DeepSAD(
        hidden=(8,), code=4, linear_code=True, pretraining=BRIEF, training=BRIEF, random_state=0
    ),
}  # fmt: skip
KERNELS = {
    f"{word}, {type(kernel).__name__}": KernelEqualitySeparator(
        kernel=kernel, closed=closed, n_landmarks=12, random_state=0
    )
    for word, closed in {"closed": True, "bump": False}.items()
    for kernel in (RBF(0.5), Exponential(0.4), Laplacian())
}
SPLIT = make_gaussians(noise_multiplier=1.0, n_samples=80, random_state=0)
ROWS = SPLIT.X_test


def fitted(estimator):
    """A copy of the estimator, fitted to the training rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # narrow layers, few steps: not what is tested here
        return clone(estimator).fit(SPLIT.X_train, SPLIT.y_train)
