"""The promised rate of false alarms against the measured one, over random divisions of real rows.

    python bench/promise.py                              200 divisions of each table
    python bench/promise.py --splits 20                  fewer
    python bench/promise.py ann-thyroid --splits 2000    more, of one table
    python bench/promise.py --planted 0.01 0.05 0.1      with anomalies among the normal rows
    python bench/promise.py --half-labelled --splits 5   tables where anomalies look normal, too
    python bench/promise.py --fdr 0.05 0.1 0.2           false discoveries in a batch
    python bench/promise.py --bandwidth 0.25             given, so that a fit takes a moment
    python bench/promise.py --by group                   new runs of a process, new tiles
    python bench/promise.py --by time                    runs of a test bench, block by block

Each time half of the normal rows (at most 6,000) and half of the first kind are fitted with the
Detector, and the other normal rows (at most 4,000) raise false alarms at the promised rate, or do
not. Printed are the mean share over the divisions, its standard error, and how many of these the
promise is away.

With anomalies planted, nothing is labelled normal. A third of the anomalies of all kinds (at most
300) is labelled, of another third as many as make the share stand without a label among the
normal rows, and of the last third (at most 1,000) the share that is caught is counted. Where
anomalies are too few for the share, there are fewer normal rows. Each rate is printed three times:
by all rows that calibrate ("all"), by those that count ("trimmed"), and by those that are normal
in truth ("normal"), which nobody knows.

With --half-labelled the tables are those of ADBench and ODDBench. Half of the anomalies among
three fifths of at most 6,000 rows are labelled, and no other row. Where 100 or more are labelled,
the share of the other normal rows that raise an alarm is printed as above, by all rows that
calibrate and by those that count, with the mean over the divisions of all tables, and the number of
those in which the share is more than three standard errors above the promise.

With --fdr the other normal rows (at most 1,800) and anomalies of all kinds that were not fitted (at
most 200) are one batch, from which Detector.select takes some. Printed are the mean share of
normal rows among those, its standard error and how many of these it is above the one allowed, and
the share of the anomalies that are selected.

By group half of the groups of normal rows is fitted, and the share of rows of each other group that
raise an alarm is counted: where the Detector knows the groups, which then calibrate as a whole, and
where it does not. Printed is the mean over the groups, each of which counts the same, and beside
the promise the least that hierarchical conformal prediction keeps with J held-out groups, which is
1 / (J + 1) below; then the same where all rows of a new group are at hand and its own share counts
("whole groups", p_value(X, groups=...)), which is to be the rate itself. Embedded tiles are taken
by their first principal components.

By time the normal rows of each run of a test bench are a division: first one block of 20 rows in
four is left out, and the share of alarms counted there, beside those that were fitted; then the
first 300 rows are fitted, and the share counted in the rows that follow. The last figures are the
same of the runs in which the fit has not warned, that rows change over time or are in runs.
"""

import argparse
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from cells import measured
from sklearn.decomposition import PCA
from tasks import DATA_HOME, TABLES, Rows, rows_of

from eqsep import Detector
from eqsep.datasets import make_process
from eqsep.detector.calibration import Calibration
from eqsep.errors import EqsepWarning

RATES = (0.01, 0.05, 0.1)
MOST_NORMAL, MOST_SEEN, MOST_FRESH, MOST_LABELLED = 6000, 1000, 4000, 300
FEWEST_LABELLED, HALF_RATE, ERRORS = 100, 0.05, 3
MOST_BATCH = (1800, 200)  # normal and anomalous rows from which some are selected
NAMES = ("ann-thyroid", "shuttle", "satimage/1")
WAYS = ("all", "trimmed", "normal")
GROUPED = ("process", "magnetic-tile")
GROUP_RATES = (0.05, 0.1)
TIME_RATES = (0.1, 0.2)  # of 300 rows 17 blocks calibrate
COMPONENTS = 50  # of embedded tiles
FIRST, BLOCK, BESIDE = 300, 20, 3  # rows of a run that are fitted, of a block, and of its gap
N_RUNS, RUN_ROWS, SPREAD = 400, 40, 0.03  # of the process
AT_ONCE = 100  # divisions that are measured and kept together


@dataclass(frozen=True)
class Cell:
    """Some divisions of one table, drawn by the seeds from `first` on."""

    table: str
    data: str
    first: int
    splits: int
    n_landmarks: int
    bandwidth: float | None

    def detector(self, split: int) -> Detector:
        """One that is to be fitted to a division."""
        return Detector(n_landmarks=self.n_landmarks, bandwidth=self.bandwidth, random_state=split)


@dataclass(frozen=True)
class PlantedCell(Cell):
    """The same with a share of anomalies among the normal rows."""

    planted: float


@dataclass(frozen=True)
class BatchCell(Cell):
    """The same, of which the rows that are not fitted are a batch to select from."""

    fdr: tuple[float, ...]


def measure(cell: Cell) -> dict[str, list[list[float]]]:
    """The share of false alarms at each rate, division by division."""
    rows = rows_of(cell.data)
    normal = np.flatnonzero(rows.kind == "normal")
    seen = np.flatnonzero(rows.kind == TABLES[cell.data].kinds[0])
    shares = []
    for split in range(cell.first, cell.first + cell.splits):
        rng = np.random.default_rng(split)
        fresh, known = np.split(rng.permutation(normal), [len(normal) // 2])
        train = np.concatenate(
            [known[:MOST_NORMAL], rng.permutation(seen)[: len(seen) // 2][:MOST_SEEN]]
        )
        part, test = rows.at(train), rows.at(fresh[:MOST_FRESH])
        p = cell.detector(split).fit(part.frame, part.kind).p_value(test.frame)
        shares.append([float(np.mean(p <= rate)) for rate in RATES])
    return {"shares": shares}


def shuffled(rows: Rows, split: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of the normal rows and of the anomalies, each in an order of this division."""
    rng = np.random.default_rng(split)
    is_normal = rows.kind == "normal"
    return rng.permutation(np.flatnonzero(is_normal)), rng.permutation(np.flatnonzero(~is_normal))


def measure_planted(cell: PlantedCell) -> dict[str, list[list[list[float]]]]:
    """The shares of false alarms and of anomalies caught, by way and rate, for each division."""
    rows = rows_of(cell.data)
    alarms, caught = [], []
    for split in range(cell.first, cell.first + cell.splits):
        normal, anomalous = shuffled(rows, split)
        labelled, hidden, later = np.array_split(anomalous, 3)
        fresh, known = np.split(normal, [len(normal) // 2])
        odds = max(cell.planted, 1e-6) / (1 - cell.planted)  # 0 plants none
        known = known[: min(MOST_NORMAL, int(len(hidden) / odds))]
        unlabelled = np.concatenate([known, hidden[: round(len(known) * odds)]])
        labelled, fresh, later = labelled[:MOST_LABELLED], fresh[:MOST_FRESH], later[:MOST_SEEN]
        part = rows.at(np.concatenate([unlabelled, labelled]))
        y = np.concatenate([np.full(len(unlabelled), None), rows.kind[labelled]])
        detector = cell.detector(split).fit(part.frame, y)
        thresholds = [
            [way.threshold(rate) for rate in RATES] for way in _calibrations(detector, part, y)
        ]
        for found, places in ((alarms, fresh), (caught, later)):
            score = detector.score_samples(rows.at(places).frame)
            found.append([[float(np.mean(score > t)) for t in of_way] for of_way in thresholds])
    return {"alarms": alarms, "caught": caught}


def measure_half_labelled(cell: Cell) -> dict[str, list[list[float]]]:
    """By all rows and by those that count: the shares of false alarms and of anomalies caught."""
    with np.load(DATA_HOME / cell.data) as table:
        X, is_anomaly = table["X"], table["y"].ravel() == 1
    found = []
    for split in range(cell.first, cell.first + cell.splits):
        rng = np.random.default_rng(split)
        rows = rng.permutation(len(X))[:MOST_NORMAL]
        known, fresh = np.split(rows, [3 * len(rows) // 5])
        labelled = is_anomaly[known] & (rng.random(len(known)) < 0.5)
        if labelled.sum() < FEWEST_LABELLED:
            continue
        detector = cell.detector(split).fit(X[known], np.where(labelled, "anomaly", None))
        scores = [detector.score_samples(X[fresh[is_anomaly[fresh] == a]]) for a in (False, True)]
        for calibration in (Calibration(detector.calibration_.scores), detector.calibration_):
            threshold = calibration.threshold(HALF_RATE)
            alarms = [float(np.mean(score > threshold)) for score in scores]
            found.append([*alarms, 1 / len(scores[0]) + 1 / calibration.n_units])
    return {"found": found}


def measure_batch(cell: BatchCell) -> dict[str, list[list[float]]]:
    """The shares of false discoveries and of anomalies selected, by rate, for each division."""
    rows = rows_of(cell.data)
    false, found = [], []
    for split in range(cell.first, cell.first + cell.splits):
        normal, anomalous = shuffled(rows, split)
        fresh, known = np.split(normal, [len(normal) // 2])
        is_seen = rows.kind[anomalous] == TABLES[cell.data].kinds[0]
        seen = anomalous[is_seen][: is_seen.sum() // 2][:MOST_SEEN]
        others = anomalous[~np.isin(anomalous, seen)]
        part = rows.at(np.concatenate([known[:MOST_NORMAL], seen]))
        batch = rows.at(np.concatenate([fresh[: MOST_BATCH[0]], others[: MOST_BATCH[1]]]))
        detector = cell.detector(split).fit(part.frame, part.kind)
        is_normal = batch.kind == "normal"
        masks = [detector.select(batch.frame, fdr=fdr) for fdr in cell.fdr]
        false.append([float(is_normal[mask].mean()) if mask.any() else 0.0 for mask in masks])
        found.append([float(mask[~is_normal].mean()) for mask in masks])
    return {"false": false, "found": found}


@dataclass(frozen=True)
class GroupedCell(Cell):
    """Divisions by group; `knows` says whether the detector is told the groups."""

    knows: bool


@cache
def grouped_rows(name: str) -> Rows:
    """Normal rows in groups: runs of a process with set points of their own, or of a table."""
    if name != "process":
        rows = rows_of(name)
        rows = rows.at(np.flatnonzero(rows.kind == "normal"))
        parts = PCA(COMPONENTS, random_state=0).fit_transform(rows.matrix)
        return Rows(pd.DataFrame(parts).add_prefix("pc"), parts, rows.kind, rows.group)
    runs = {"n_normal_runs": N_RUNS, "n_fault_runs": 0, "n_rows": RUN_ROWS}
    table = make_process(**runs, setpoint_spread=SPREAD, as_frame=True, random_state=0)
    return Rows(table.X, table.X.to_numpy(), table.kind, table.groups)


def measure_grouped(cell: GroupedCell) -> dict[str, Any]:
    """The share of false alarms in new groups, each of which counts the same, by division and way.

    The ways are rows one by one and, where the groups are known, whole groups.
    """
    rows, shares = grouped_rows(cell.data), []
    names = np.unique(rows.group)
    for split in range(cell.first, cell.first + cell.splits):
        fitted = np.random.default_rng(split).permutation(names)[: len(names) // 2]
        is_known = np.isin(rows.group, fitted)
        part, test = (rows.at(np.flatnonzero(is_known == known)) for known in (True, False))
        detector = cell.detector(split).set_params(false_alarm_rate=min(GROUP_RATES))
        detector.fit(part.frame, groups=part.group if cell.knows else None)
        n_units = detector.calibration_.n_units
        ways = [detector.p_value(test.frame)]
        if cell.knows:
            ways.append(detector.p_value(test.frame, groups=test.group))
        groups = np.unique(test.group, return_inverse=True)[1]
        size = np.bincount(groups)
        shares.append(
            [
                [float(np.mean(np.bincount(groups, p <= rate) / size)) for rate in GROUP_RATES]
                for p in ways
            ]
        )
    return {"shares": shares, "held": n_units}


@dataclass(frozen=True)
class TimedCell:
    """The runs of a test bench, each with its own fits; `knows` says whether times are told."""

    table: str
    data: str
    n_landmarks: int
    bandwidth: float | None
    knows: bool


def measure_timed(cell: TimedCell) -> dict[str, list[list[float]]]:
    """The shares of false alarms between fitted blocks and after them, by run, and what is said."""
    between, after, said = [], [], []
    for path in sorted((DATA_HOME / "skab").glob("*/*.csv")):
        run = pd.read_csv(path, sep=";")
        if "anomaly" not in run:
            continue
        rows = run[run["anomaly"] == 0].drop(columns=["datetime", "anomaly", "changepoint"])
        place = np.arange(len(rows))
        left = place // BLOCK % 4 == 2
        near = ~left & (np.roll(left, BESIDE) | np.roll(left, -BESIDE))
        between.append(_rates(cell, rows, ~left & ~near, left)[0])
        shares, changes = _rates(cell, rows, place < FIRST, place >= FIRST)
        after.append(shares)
        said.append(changes)
    return {"between": between, "after": after, "said": said}


def _rates(
    cell: TimedCell, rows: pd.DataFrame, fitted: np.ndarray, tested: np.ndarray
) -> tuple[list[float], bool]:
    """The share of tested rows that raise an alarm, by rate, and whether the fit warns of it."""
    settings = {"n_landmarks": cell.n_landmarks, "bandwidth": cell.bandwidth, "random_state": 0}
    detector = Detector(**settings, false_alarm_rate=min(TIME_RATES))
    detector.fit(rows[fitted], time=np.flatnonzero(fitted) if cell.knows else None)
    p = detector.p_value(rows[tested])
    return [float(np.mean(p <= rate)) for rate in TIME_RATES], detector.caution_ is not None


def _calibrations(detector: Detector, part: Rows, y: np.ndarray) -> Iterable[Calibration]:
    """By all rows that calibrate, by those that count, and by those that are normal in truth."""
    model, plan = detector.model_, detector.plan_
    table = plan.align(part.frame)
    labels = plan.labels.read(y, n_rows=table.n_rows, known=model.evidence.labels)
    held_out = plan.holdout.split(table, labels, encoder=plan.encoder).held_out & np.equal(y, None)
    normal = model.scores(part.frame)[held_out & (part.kind == "normal")]
    return Calibration(model.calibration.scores), model.calibration, Calibration(normal)


def divisions(
    make: Callable[..., Any], options: argparse.Namespace, name: str, *more: Any
) -> list[Any]:
    """The cells of all divisions of a table."""
    settings = (options.landmarks, options.bandwidth, *more)
    return [
        make(name, first, min(AT_ONCE, options.splits - first), *settings)
        for first in range(0, options.splits, AT_ONCE)
    ]


def text_of(shares: np.ndarray, rate: float) -> str:
    """The mean over the divisions, its standard error, and how many of them it is away."""
    mean, error = shares.mean(), shares.std(ddof=1) / np.sqrt(len(shares))
    away = f" ({(mean - rate) / error:+.1f})" if error else ""
    return f"{mean:.4f} ± {error:.4f}{away}"


def tell(options: argparse.Namespace) -> None:
    """False alarms where the normal rows are normal."""
    print(f"{'':<14}" + "".join(f"{f'promised {rate:g}':>30}" for rate in RATES))
    for name in options.tables:
        cells = divisions(lambda *a: Cell("promise", *a), options, name)
        shares = np.concatenate([measured(cell, measure)["shares"] for cell in cells])
        texts = (text_of(shares[:, i], rate) for i, rate in enumerate(RATES))
        print(f"{name:<14}" + "".join(f"{text:>30}" for text in texts), flush=True)


def tell_grouped(options: argparse.Namespace) -> None:
    """False alarms in new groups, where the groups are known and where they are not."""
    print(f"{'':<27}" + "".join(f"{f'promised {rate:g}':>26}" for rate in GROUP_RATES))
    for name in options.tables:
        for knows in (True, False):
            cells = divisions(lambda *a: GroupedCell("promise-groups", *a), options, name, knows)
            found = [measured(cell, measure_grouped) for cell in cells]
            shares = np.concatenate([part["shares"] for part in found])
            lines = {
                by: [text_of(shares[:, way, i], rate) for i, rate in enumerate(GROUP_RATES)]
                for way, by in enumerate(("by groups", "whole groups") if knows else ("by rows",))
            }
            if knows:
                held = found[0]["held"]
                lines[f"J = {held}"] = [f"at least {r - 1 / (held + 1):.4f}" for r in GROUP_RATES]
            for by, texts in lines.items():
                print(f"{name:<14}{by:<13}" + "".join(f"{t:>26}" for t in texts), flush=True)


def tell_timed(options: argparse.Namespace) -> None:
    """False alarms in runs: in blocks between those that were fitted, and in rows that follow."""
    print(f"{'':<31}" + "".join(f"{f'promised {rate:g}':>26}" for rate in TIME_RATES))
    for knows in (True, False):
        cell = TimedCell("promise-time", "skab", options.landmarks, options.bandwidth, knows)
        found = measured(cell, measure_timed)
        between, after, said = (np.array(found[part]) for part in ("between", "after", "said"))
        words = {"between": between, "that follow": after, "and not said": after[~said]}
        for word, shares in words.items():
            texts = (
                text_of(shares[:, i], rate) if len(shares) > 1 else f"{len(shares)} runs"
                for i, rate in enumerate(TIME_RATES)
            )
            by = "by blocks" if knows else "by rows"
            head = f"{by:<11}{word:<13}{len(shares):>3} "
            print(f"{head:<31}" + "".join(f"{text:>26}" for text in texts), flush=True)


def tell_planted(options: argparse.Namespace) -> None:
    """False alarms, and the anomalies caught, where some of the normal rows are anomalies."""
    print(f"{'':<27}" + "".join(f"{f'promised {rate:g}, caught':>38}" for rate in RATES))
    for name in options.tables:
        for planted in options.planted:
            cells = divisions(lambda *a: PlantedCell("planted", *a), options, name, planted)
            found = [measured(cell, measure_planted) for cell in cells]
            alarms, caught = (
                np.concatenate([part[key] for part in found]) for key in ("alarms", "caught")
            )
            for way, word in enumerate(WAYS):
                texts = (
                    f"{text_of(alarms[:, way, i], rate)}  {caught[:, way, i].mean():.3f}"
                    for i, rate in enumerate(RATES)
                )
                head = f"{name if not way else '':<13}{f'{planted:.0%}' if not way else '':>4}"
                print(f"{head} {word:<9}" + "".join(f"{t:>38}" for t in texts), flush=True)


def tell_half_labelled(options: argparse.Namespace) -> None:
    """False alarms, and the anomalies caught, where half of the anomalies are labelled."""
    print(f"{'':<24}divisions" + "".join(f"{f'{way}, caught':>20}" for way in WAYS[:2]))
    gathered = []
    for path in sorted(DATA_HOME.glob("[ao]d*bench/*.npz")):
        data = str(path.relative_to(DATA_HOME))
        cells = divisions(lambda *a: Cell("half-labelled", *a), options, data)
        found = [one for cell in cells for one in measured(cell, measure_half_labelled)["found"]]
        if found:
            gathered.append(np.reshape(found, (-1, 2, 3)))
            _tell_half(path.stem[:22], gathered[-1])
    found = np.concatenate(gathered)
    _tell_half("mean", found)
    above = found[:, :, 0] - HALF_RATE
    error = np.sqrt(HALF_RATE * (1 - HALF_RATE) * found[:, :, 2])
    n_above = (above > ERRORS * error).sum(axis=0)
    print(f"far above {HALF_RATE:g}:{'':<19}" + "".join(f"{n:>20}" for n in n_above))


def _tell_half(name: str, found: np.ndarray) -> None:
    alarms = (f"{alarm:.3f}  {caught:.3f}" for alarm, caught, _ in found.mean(axis=0))
    print(f"{name:<24}{len(found):>9}" + "".join(f"{text:>20}" for text in alarms), flush=True)


def tell_batches(options: argparse.Namespace) -> None:
    """False discoveries, and the anomalies selected, in batches."""
    print(f"{'':<14}" + "".join(f"{f'allowed {fdr:g}, selected':>38}" for fdr in options.fdr))
    for name in options.tables:
        cells = divisions(lambda *a: BatchCell("fdr", *a), options, name, tuple(options.fdr))
        found = [measured(cell, measure_batch) for cell in cells]
        false, caught = (
            np.concatenate([part[key] for part in found]) for key in ("false", "found")
        )
        texts = (
            f"{text_of(false[:, i], fdr)}  {caught[:, i].mean():.3f}"
            for i, fdr in enumerate(options.fdr)
        )
        print(f"{name:<14}" + "".join(f"{text:>38}" for text in texts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help="as named in tasks.py; process with --by group")
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--landmarks", type=int, default=300)
    parser.add_argument("--bandwidth", type=float, help="chosen by each fit where it is not given")
    parser.add_argument("--planted", type=float, nargs="*", default=(), help="shares of anomalies")
    parser.add_argument("--half-labelled", action="store_true", help="and no row normal")
    parser.add_argument("--fdr", type=float, nargs="*", default=(), help="of false discoveries")
    parser.add_argument("--by", choices=("row", "group", "time"), default="row")
    options = parser.parse_args()
    warnings.simplefilter("ignore", EqsepWarning)
    of = "Runs of a test bench" if options.by == "time" else f"{options.splits} divisions"
    print(f"{of}, {options.landmarks} landmarks: share of false alarms")
    ways = {tell_grouped: options.by == "group", tell_timed: options.by == "time"}
    ways |= {tell_planted: options.planted, tell_half_labelled: options.half_labelled}
    ways |= {tell_batches: options.fdr, tell: True}
    options.tables = options.tables or (GROUPED if options.by == "group" else NAMES)
    next(way for way, asked in ways.items() if asked)(options)


if __name__ == "__main__":
    main()
