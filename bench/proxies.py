"""What stands for a kind that nobody has seen: which proxy predicts how a bandwidth does on one.

    python bench/proxies.py                    what is missing, then the table
    python bench/proxies.py --tables shuttle   some tables

The Detector chooses its kernel's bandwidth from the training rows. On each task of tasks.py every
one is fitted and tested; beside it stands what each proxy says of it, from training
rows alone. The table has, for each proxy, the mean rank correlation with average precision on the
unseen kinds, and the average precision reached by the one that it would choose. Each task leaves
one JSON in .cache/bench/, which a second run reads.
"""

import argparse
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from cells import measured
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.metrics import average_precision_score
from tasks import TABLES, divide, rows_of

from eqsep import Detector
from eqsep.detector import CalibrationWarning
from eqsep.detector.bandwidth import INVERSE_BANDWIDTHS, MIDDLE, POWERS, SEEN
from eqsep.engine.loops import mean_of_powers
from eqsep.engine.manhattan import manhattan
from eqsep.evaluation import OVERALL, average_precision_by_kind

MOST_NORMAL, MOST_ANOMALOUS, LANDMARKS, ALPHA = 4000, 2000, 1000, 0.1


@dataclass(frozen=True)
class Cell:
    """A task."""

    table: str
    data: str
    seen: str


def measure(cell: Cell) -> dict[str, Any]:
    """For each bandwidth: average precision on the test rows, and what the proxies say."""
    rows = rows_of(cell.data)
    division = divide(rows.kind, rows.group, seen=cell.seen)
    train, test = rows.at(division.train), rows.at(division.test)
    y = (train.kind != "normal").astype(int)
    tested = []
    for inverse in INVERSE_BANDWIDTHS:
        detector = Detector(bandwidth=1 / float(inverse), random_state=0).fit(train.frame, y)
        by_kind = average_precision_by_kind(detector.decision_function(test.frame), test.kind)
        others = [v for kind, v in by_kind.items() if kind not in (cell.seen, OVERALL)]
        tested.append(
            {
                "seen": by_kind[cell.seen],
                "unseen": float(np.mean(others)),
                "overall": by_kind[OVERALL],
            }
        )
    feature_map = detector.feature_map_
    says = proxies(feature_map.rows(train.frame), y, feature_map.source)
    return {"tested": tested, "proxies": says}


def proxies(Z: np.ndarray, is_anomaly: np.ndarray, source: np.ndarray) -> dict[str, list[float]]:
    """What each proxy says of each bandwidth, from a third of the rows that is held out."""
    rng = np.random.RandomState(0)
    normal = rng.permutation(np.flatnonzero(is_anomaly == 0))
    anomalous = rng.permutation(np.flatnonzero(is_anomaly == 1))
    held, others = np.split(normal, [min(len(normal) // 3, 2000)])
    held_seen, known = np.split(anomalous, [min(len(anomalous) // 3, 500)])
    others, known = others[:MOST_NORMAL], known[:MOST_ANOMALOUS]
    third = known[: LANDMARKS // 3]
    C = Z[np.concatenate([others[: LANDMARKS - len(third)], third])]
    between = manhattan(C, C)
    median = np.median(between[between > 0])
    cluster = KMeans(min(4, len(known)), n_init=2, random_state=0).fit_predict(Z[known])
    low, high = Z[others].min(axis=0), Z[others].max(axis=0)
    groups = {
        "held-out rows of the seen kind": Z[held_seen],
        "normal rows, a fifth of the columns exchanged": exchanged(Z, held, others, source, 0.2),
        "normal rows, half of the columns exchanged": exchanged(Z, held, others, source, 0.5),
        "normal rows, all columns exchanged": exchanged(Z, held, others, source, 1.0),
        "uniform rows in the range of training": rng.uniform(low, high, (2000, Z.shape[1])).astype(
            np.float32
        ),
    }
    train = np.concatenate([others, known])
    target = np.repeat([1.0, 0.0], [len(others), len(known)])
    cluster_left_out = "a cluster of the seen kind left out"
    least_normal = "held-out normal rows score low"
    says: dict[str, list[float]] = {name: [] for name in (*groups, cluster_left_out, least_normal)}
    distances = {name: manhattan(rows, C) / median for name, rows in groups.items()}
    near, fresh = manhattan(Z[train], C) / median, manhattan(Z[held], C) / median
    for inverse in INVERSE_BANDWIDTHS:
        k = kernel(inverse, near).astype(float)
        gram, moment = k.T @ k, k.T @ target
        coef = solved(gram, moment)
        normal_score = np.abs(1 - kernel(inverse, fresh) @ coef)
        for name, d in distances.items():
            says[name].append(precision(normal_score, np.abs(1 - kernel(inverse, d) @ coef)))
        left_out = []
        for c in np.unique(cluster):
            part = k[len(others) :][cluster == c]
            without = solved(gram - part.T @ part, moment)
            unseen = np.abs(1 - part @ without)
            left_out.append(precision(np.abs(1 - kernel(inverse, fresh) @ without), unseen))
        says[cluster_left_out].append(float(np.mean(left_out)))
        says[least_normal].append(-float(normal_score.mean()))
    return says


def kernel(inverse, distance):
    """As the Detector's, of distances in units of the median one."""
    return mean_of_powers(np.exp(-inverse / MIDDLE * distance), POWERS)


def exchanged(Z, held, others, source, share):
    """Held-out normal rows with that share of the table's columns from other normal rows."""
    rng = np.random.RandomState(1)
    columns, place = np.unique(source, return_inverse=True)
    chosen = rng.uniform(size=(len(held), len(columns))) < share
    giver = others[rng.randint(len(others), size=(len(held), len(columns)))]
    given = Z[giver[:, place], np.arange(Z.shape[1])]
    out = np.where(chosen[:, place], given, Z[held])
    return out[(out != Z[held]).any(axis=1)]


def solved(gram, moment):
    return np.linalg.solve(gram + ALPHA * np.eye(len(gram)), moment)


def precision(normal, anomalous):
    if not len(anomalous):
        return 0.0
    y = np.repeat([0, 1], [len(normal), len(anomalous)])
    return float(average_precision_score(y, np.concatenate([normal, anomalous])))


def table(results: list[dict[str, Any]]) -> str:
    """The mean over tables of each proxy's correlation, and of what its choice reaches."""
    names = list(results[0]["proxies"])
    seen, half = names[0], names[2]
    choices = {name: lambda says, name=name: np.array(says[name]) for name in names}
    for part in (0.3, SEEN, 1.5):
        choices[f"half exchanged + {part:g} of the seen kind"] = lambda says, part=part: (
            np.array(says[half]) + part * np.array(says[seen])
        )
    lines = [f"{'':<50}{'correlation':>12}{'seen':>8}{'unseen':>8}{'overall':>8}"]
    for name, choice in choices.items():
        rows = []
        for result in results:
            says = choice(result["proxies"])
            unseen = [tested["unseen"] for tested in result["tested"]]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a constant proxy correlates with nothing
                rho = np.nan_to_num(spearmanr(says, unseen).statistic)
            best = result["tested"][int(np.argmax(says))]
            rows.append((rho, best["seen"], best["unseen"], best["overall"]))
        lines.append(_line(name, _over_tables(results, rows)))
    for i, inverse in enumerate(INVERSE_BANDWIDTHS):
        rows = [tuple(r["tested"][i][k] for k in ("seen", "unseen", "overall")) for r in results]
        lines.append(_line(f"always {1 / inverse:g}", (np.nan, *_over_tables(results, rows))))
    rows = [tuple(max(r["tested"], key=lambda t: t["unseen"]).values()) for r in results]
    lines.append(
        _line("the best for unseen kinds, from the test", (np.nan, *_over_tables(results, rows)))
    )
    return "\n".join(lines)


def _over_tables(results, rows):
    """The mean over tables of the mean over their tasks."""
    data = np.array([result["data"] for result in results])
    return np.mean([np.mean(np.array(rows)[data == d], axis=0) for d in np.unique(data)], axis=0)


def _line(name, numbers):
    first, *others = numbers
    text = "" if np.isnan(first) else f"{first:.2f}"
    return f"{name:<50}{text:>12}" + "".join(f"{x:8.3f}" for x in others)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    chosen = parser.parse_args().tables
    warnings.simplefilter("ignore", CalibrationWarning)
    cells = [Cell("proxies", data, seen) for data in chosen for seen in TABLES[data].kinds]
    print(table([measured(cell, measure) for cell in cells]))


if __name__ == "__main__":
    main()
