"""A test bench for water circulation, run by run: the protocol of SKAB's leaderboard.

    python bench/skab.py
    python bench/skab.py --in-time --false-alarm-rate 0.1

34 runs, each with a fault in it. A Detector is fitted to the first 400 rows of a run, which are
normal, and all rows of that run are scored. F1, the share of normal rows that raise an alarm and
that of anomalous rows that raise none, in per cent, over the rows of all runs; beside them the rows
of the leaderboard (https://github.com/waico/SKAB). Rows of a run are no shuffled ones, and later
ones are unlike the first, so no promised rate holds there: printed is, too, in how many runs the
fit warns of that.

The runs are looked for in $EQSEP_DATA/skab, then in ../shared/data/skab.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from tasks import DATA_HOME

from eqsep import Detector
from eqsep.checks import DependentRowsWarning
from eqsep.detector import CalibrationWarning

FIRST = 400  # rows that are learnt
WARNS = (DependentRowsWarning, CalibrationWarning)  # that the rate is none to rely on
FOLDERS = ("valve1", "valve2", "other")
PUBLISHED = {  # F1, false alarms, missed
    "Conv-AE": (0.78, 13.6, 28.0),
    "MSET": (0.78, 39.7, 14.1),
    "T-squared+Q": (0.76, 26.6, 24.9),
    "LSTM-AE": (0.74, 30.0, 25.9),
    "T-squared": (0.66, 19.2, 42.6),
    "isolation forest": (0.29, 2.6, 82.9),
}


def run_of(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The sensors of a run, and which of its rows are anomalous."""
    with path.open(newline="") as file:
        rows = np.array([row[1:10] for row in csv.reader(file, delimiter=";")][1:], dtype=float)
    return rows[:, :8], rows[:, 8] == 1


def figures(alarm: np.ndarray, is_anomaly: np.ndarray) -> tuple[float, float, float]:
    """F1, false alarms and missed rows, the latter two in per cent of what they are of."""
    found, false = np.sum(alarm & is_anomaly), np.sum(alarm & ~is_anomaly)
    missed = np.sum(~alarm & is_anomaly)
    f1 = found / (found + (false + missed) / 2)
    return float(f1), 100 * false / np.sum(~is_anomaly), 100 * missed / np.sum(is_anomaly)


def line(name: str, values: tuple[float, float, float]) -> str:
    f1, false, missed = values
    return f"{name:28}{f1:8.2f}{false:14.1f}{missed:10.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--false-alarm-rate", type=float, default=0.01)
    parser.add_argument("--in-time", action="store_true", help="fit(..., time=): blocks calibrate")
    args = parser.parse_args()
    paths = [p for folder in FOLDERS for p in sorted((DATA_HOME / "skab" / folder).glob("*.csv"))]
    if not paths:
        print(f"Nothing to measure: no runs in {DATA_HOME / 'skab'}.")
        return
    alarms, truths, told = [], [], 0
    for path in paths:
        X, is_anomaly = run_of(path)
        detector = Detector(false_alarm_rate=args.false_alarm_rate, random_state=0)
        told_of_time = {"time": np.arange(FIRST)} if args.in_time else {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            detector.fit(X[:FIRST], **told_of_time)
        told += any(issubclass(w.category, WARNS) for w in caught)
        alarms.append(detector.predict(X) == 1)
        truths.append(is_anomaly)
    ours = figures(np.concatenate(alarms), np.concatenate(truths))
    print(f"{'':28}{'F1':>8}{'false alarms':>14}{'missed':>10}")
    print(line(f"eqsep, promised {args.false_alarm_rate:.0%}", ours))
    for name, values in PUBLISHED.items():
        print(line(f"published: {name}", values))
    print(f"In {told} of {len(paths)} runs the fit warns that this rate is none to rely on.")


if __name__ == "__main__":
    main()
