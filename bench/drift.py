"""How soon the monitor says that rows have changed, and how often it does where they have not.

    python bench/drift.py                  1,000 shuffled streams, 50 streams of each kind of drift
    python bench/drift.py --streams 100    fewer shuffled ones

A detector is fitted to 3,000 rows of six columns that move together. Streams without drift are
3,000 further rows in random order; printed is the share of them that is called changed, which delta
bounds. Then 1,000 rows as before are followed by 2,000 that drift: the mean of one column moves by
one deviation at once; the same over all 2,000 rows, step by step; or two columns no longer move
together, while the values of each are as before. Printed is the delay in rows until it is said,
the median and the worst of the streams, and in how many of them it was never said.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np

from eqsep import Detector, Monitor
from eqsep.errors import EqsepWarning

DELTAS = (0.01, 0.05)
QUIET, LATER, COLUMNS = 1000, 2000, 6
Draw = Callable[[np.random.Generator], np.ndarray]


def usual(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows whose columns are two hidden numbers and some noise."""
    loadings = np.random.default_rng(0).normal(size=(2, COLUMNS))
    return rng.normal(size=(n, 2)) @ loadings + 0.3 * rng.normal(size=(n, COLUMNS))


def jump(rng: np.random.Generator) -> np.ndarray:
    """The mean of a column is another at once."""
    return usual(rng, LATER) + np.eye(COLUMNS)[0] * usual(rng, LATER)[:, 0].std()


def slope(rng: np.random.Generator) -> np.ndarray:
    """The same, by and by."""
    away = np.linspace(0, 1, LATER)[:, None] * np.eye(COLUMNS)[0]
    return usual(rng, LATER) + away * usual(rng, LATER)[:, 0].std()


def apart(rng: np.random.Generator) -> np.ndarray:
    """A column has the values of other rows."""
    X = usual(rng, LATER)
    X[:, 0] = rng.permutation(X[:, 0])
    return X


DRIFTS: dict[str, Draw] = {"jump": jump, "slope": slope, "apart": apart}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--drifting", type=int, default=50)
    options = parser.parse_args()
    warnings.simplefilter("ignore", EqsepWarning)
    detector = Detector(n_landmarks=300, random_state=0)
    detector.fit(usual(np.random.default_rng(1), 3000))

    highest = []
    for seed in range(options.streams):
        X = usual(np.random.default_rng(100 + seed), QUIET + LATER)
        fresh = Detector(n_landmarks=20, bandwidth=1.0, random_state=seed)  # held-out rows anew
        fresh.fit(usual(np.random.default_rng(10_000 + seed), 600))
        highest.append(Monitor(fresh).update(X).highest)
    for delta in DELTAS:
        share = np.mean(np.array(highest) >= 1 / delta)
        print(f"no drift  delta {delta:<5} called changed: {share:.3f} of {len(highest):,} streams")
    for name, draw in DRIFTS.items():
        for delta in DELTAS:
            delays = []
            for seed in range(options.drifting):
                rng = np.random.default_rng(50_000 + seed)
                X = np.vstack([usual(rng, QUIET), draw(rng)])
                broken = Monitor(detector, delta=delta).update(X).broken_at
                delays.append(np.inf if broken is None else broken - QUIET)
            late = np.array(delays)
            seen = late[np.isfinite(late)]
            print(
                f"{name:<9} delta {delta:<5} delay {np.median(late):>6.0f} rows, at worst "
                f"{seen.max(initial=0):>6.0f}; never said in {np.isinf(late).sum()} of {len(late)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
