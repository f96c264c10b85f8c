"""The share of false alarms among all of a stream, decided on row by row.

    python bench/online.py                 200 streams of three tables, a minute
    python bench/online.py --rules         and rules without a memory (pip install online-fdr)

A detector is fitted once to 2,000 normal rows and 200 anomalies of a table, and the others are
scored. Every stream
draws held-out rows anew among these, so that it has a calibration set of its own, and 4,000 rows
to decide on, of which a share is anomalous. Printed are, as means over streams: the share of false
alarms as the rule counts it, in its memory and with one alarm to begin with, over all rows of the
stream, which `fdr` bounds; the share among all alarms of the stream, which it does not; and the
share of the anomalies that is selected.
"""

import argparse
import warnings
from dataclasses import replace

import numpy as np
from scipy.signal import lfilter
from tasks import rows_of

from eqsep import Detector
from eqsep.detector.calibration import Calibration
from eqsep.errors import EqsepWarning
from eqsep.monitor import OnlineSelector

TABLES = ("nsl-kdd", "shuttle", "ann-thyroid")
STREAM, LEARNT, LABELLED = 4_000, 2_000, 200
ANOMALOUS = (0.0, 0.01, 0.05)


def scores_of(table: str) -> tuple[Detector, np.ndarray, np.ndarray]:
    """A detector, and the scores of normal rows and anomalies that it has not learnt."""
    rows = rows_of(table)
    rng = np.random.default_rng(0)
    normal = rng.permutation(np.flatnonzero(rows.kind == "normal"))
    anomalous = rng.permutation(np.flatnonzero(rows.kind != "normal"))
    learnt = np.concatenate([normal[:LEARNT], anomalous[:LABELLED]])
    detector = Detector(n_landmarks=300, bandwidth=0.5, random_state=0)
    detector.fit(rows.matrix[learnt], rows.kind[learnt])
    rest = (normal[LEARNT:][:20_000], anomalous[LABELLED:][:20_000])
    scored = (detector.score_samples(rows.matrix[places]) for places in rest)
    return detector, *scored


def stream(
    normal: np.ndarray, anomalous: np.ndarray, *, share: float, n: int, rng: np.random.Generator
) -> tuple[Calibration, np.ndarray, np.ndarray]:
    """Held-out rows, the scores of a stream, and which of its rows are normal."""
    drawn = rng.permutation(normal)[: n + STREAM]
    held, rest = drawn[:n], drawn[n:]
    length = len(rest)
    is_normal = rng.random(length) >= share
    score = np.where(is_normal, rest, rng.choice(anomalous, length))
    return Calibration(held), score, is_normal


def online_rules(fdr: float) -> dict[str, object]:
    """Rules without a memory, by the package online-fdr."""
    from online_fdr.p_values import Addis, LordPlusPlus, Saffron

    half = fdr / 2
    return {
        "LORD++": LordPlusPlus(alpha=fdr, wealth=half),
        "SAFFRON": Saffron(alpha=fdr, wealth=half, lambda_=0.5),
        "ADDIS": Addis(alpha=fdr, wealth=half, lambda_=0.25, tau=0.5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--held-out", type=int, default=999)
    parser.add_argument("--fdr", type=float, default=0.1)
    parser.add_argument("--rules", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", EqsepWarning)
    print(f"{options.streams} streams, {options.held_out} held-out rows, fdr {options.fdr}")
    print(f"{'':14}anomalous  rule       in memory  of all alarms  found")
    for table in TABLES:
        detector, normal, anomalous = scores_of(table)
        for share in ANOMALOUS:
            found: dict[str, list[tuple[float, float, float]]] = {}
            for seed in range(options.streams):
                rng = np.random.default_rng(seed)
                calibration, score, is_normal = stream(
                    normal, anomalous, share=share, n=options.held_out, rng=rng
                )
                model = replace(detector.model_, calibration=calibration)
                selector = OnlineSelector(detector.with_model(model), fdr=options.fdr)
                p = calibration.p_value(score)
                masks = {"eqsep": selector.decide(p)}
                if options.rules:
                    masks |= {
                        name: np.array([rule.test_one(value) for value in p.tolist()])
                        for name, rule in online_rules(options.fdr).items()
                    }
                fading = [1, 1 / selector.memory - 1]
                for name, mask in masks.items():
                    false = mask & is_normal
                    found.setdefault(name, []).append(
                        (
                            np.mean(lfilter([1], fading, false) / (lfilter([1], fading, mask) + 1)),
                            false.sum() / max(mask.sum(), 1),
                            (mask & ~is_normal).sum() / max((~is_normal).sum(), 1),
                        )
                    )
            for name, values in found.items():
                memory, pooled, caught = np.mean(values, axis=0)
                error = np.std(values, axis=0)[0] / np.sqrt(len(values))
                print(
                    f"{table:<14}{share:>9.0%}  {name:<9}{memory:.3f} ± {error:.3f}"
                    f"{pooled:>15.3f}{caught:>7.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
