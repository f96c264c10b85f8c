"""A test bench for water circulation, run by run: the protocol of SKAB's leaderboard.

    python bench/skab.py
    python bench/skab.py --in-time --false-alarm-rate 0.1
    python bench/skab.py --sensors

34 runs, each with a fault in it. A Detector is fitted to the first 400 rows of a run, which are
normal, and all rows of that run are scored. F1, the share of normal rows that raise an alarm and
that of anomalous rows that raise none, in per cent, over the rows of all runs; beside them the rows
of the leaderboard (https://github.com/waico/SKAB). Rows of a run are no shuffled ones, and later
ones are unlike the first, so no promised rate holds there: printed is, too, in how many runs the
fit warns of that.

--sensors prints the same with windows of the last rows, with a threshold by later rows than those
that are learnt, and with alarms that must persist: all 24 combinations of four windows, two
thresholds and three rules. Nothing of them is chosen by the labels.

The runs are looked for in $EQSEP_DATA/skab, then in ../shared/data/skab.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from tasks import DATA_HOME

from eqsep import Detector
from eqsep.checks import DependentRowsWarning, DriftWarning
from eqsep.detector import CalibrationWarning, PersistentAlarms

FIRST = 400  # rows that are learnt
LEARNT = 280  # of these, where the later ones set the threshold
WINDOWS, RULES = (None, 5, 10, 20), ((1, 1), (3, 5), (8, 10))
WARNS = (DependentRowsWarning, DriftWarning, CalibrationWarning)  # that no rate is to rely on
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


def line(name: str, values: tuple[float, float, float], *, digits: int = 3) -> str:
    f1, false, missed = values
    return f"{name:44}{f'{f1:.{digits}f}':8}{false:12.1f}{missed:10.1f}"


def above(X: np.ndarray, window: int | None, *, forwards: bool, rate: float) -> np.ndarray:
    """Which rows of a run are above the threshold of its first ones.

    With `forwards` the last of these set it, and not rows in between; a window apart, since none of
    a learnt row is then in the window of one of these.
    """
    detector = Detector(window=window, false_alarm_rate=rate, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said of single fits is said above
        detector.fit(X[: LEARNT if forwards else FIRST])
    score = detector.score_samples(X)
    if not forwards:
        return score > detector.threshold_
    later = np.sort(score[LEARNT + (window or 0) : FIRST])
    rank = max(int(rate * (len(later) + 1)), 1)  # the highest, where they are few
    return score > later[-rank]


def show_sensors(paths: list[Path], *, rate: float) -> None:
    """All windows, thresholds and rules."""
    runs = [run_of(path) for path in paths]
    truth = np.concatenate([is_anomaly for _, is_anomaly in runs])
    for window in WINDOWS:
        for forwards in (False, True):
            found = [above(X, window, forwards=forwards, rate=rate) for X, _ in runs]
            for rule in RULES:
                alarm = np.concatenate([PersistentAlarms(*rule).update(each) for each in found])
                words = [f"window of {window}" if window else "rows alone"]
                words += ["later rows calibrate"] * forwards
                words += ["{} of {}".format(*rule)] * (rule != (1, 1))
                print(line(", ".join(words), figures(alarm, truth)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--false-alarm-rate", type=float, default=0.01)
    parser.add_argument("--in-time", action="store_true", help="fit(..., time=): blocks calibrate")
    parser.add_argument("--sensors", action="store_true", help="windows, and alarms that persist")
    args = parser.parse_args()
    paths = [p for folder in FOLDERS for p in sorted((DATA_HOME / "skab" / folder).glob("*.csv"))]
    if not paths:
        print(f"Nothing to measure: no runs in {DATA_HOME / 'skab'}.")
        return
    print(f"{'':44}{'F1':8}{'false alarms':>12}{'missed':>10}")
    if args.sensors:
        show_sensors(paths, rate=args.false_alarm_rate)
    else:
        show_rows(paths, rate=args.false_alarm_rate, in_time=args.in_time)
    for name, values in PUBLISHED.items():
        print(line(f"published: {name}", values, digits=2))


def show_rows(paths: list[Path], *, rate: float, in_time: bool) -> None:
    """Rows alone, and in how many runs the fit warns."""
    alarms, truths, told = [], [], 0
    for path in paths:
        X, is_anomaly = run_of(path)
        detector = Detector(false_alarm_rate=rate, random_state=0)
        told_of_time = {"time": np.arange(FIRST)} if in_time else {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            detector.fit(X[:FIRST], **told_of_time)
        told += any(issubclass(w.category, WARNS) for w in caught)
        alarms.append(detector.predict(X) == 1)
        truths.append(is_anomaly)
    ours = figures(np.concatenate(alarms), np.concatenate(truths))
    print(line(f"eqsep, promised {rate:.0%}", ours))
    print(f"In {told} of {len(paths)} runs the fit warns that this rate is none to rely on.")


if __name__ == "__main__":
    main()
