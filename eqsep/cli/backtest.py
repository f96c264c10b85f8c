"""`eqsep backtest`: labelled rows replayed in time order."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import typer
from rich.console import RenderableType
from rich.table import Table as Shown
from rich.text import Text

from eqsep import evaluation
from eqsep.cli import inputs, options
from eqsep.cli.console import Screen, flag, interval, opt, print_warnings, progress, table
from eqsep.cli.inputs import InputSpec, load_detector
from eqsep.cli.project import shown_kind
from eqsep.cli.test import print_report
from eqsep.detector import Detector, learnt_before
from eqsep.detector.calibration import NO_PROMISE
from eqsep.errors import UserError, counted, did_you_mean, quoted
from eqsep.evaluation import Backtest, Contender, Fixed, Learning, Retrained, Schedule
from eqsep.evaluation.peers import PEERS
from eqsep.labels import NORMAL, natural_order, with_counts
from eqsep.progress import phase
from eqsep.report.timelines import BacktestReport
from eqsep.tables.reading import Table, UnreadableError

_LINES = 20  # periods that are printed; of more, several are one line
_PEERS = {name.lower().replace(" ", "-"): PEERS[name] for name in ("random forest", "XGBoost")}


@dataclass(frozen=True, kw_only=True)
class Rivals:
    """Who runs: the detector with its settings, methods that are retrained, a fixed model."""

    refit: int = opt(0, "N", "Fit again every N periods; 0 is never.", min=0)
    pending: bool = flag("--pending", "Learn rows before their labels arrive, as unlabelled.")
    against: str = opt(
        "random-forest", "METHODS", "Compare with random-forest,xgboost (retrained), or ''"
    )
    shadow: Path | None = opt(None, "MODEL", "Compare with this model, which does not learn.")
    landmarks: int | None = options.LANDMARKS
    random_state: int = options.SEED

    def contenders(self, model: Detector | None) -> dict[str, Contender]:
        """All of them by name, the detector first; refuses unknown ones."""
        names = options.method_names(self.against, _PEERS)
        seed = self.random_state
        detector = Detector(n_landmarks=self.landmarks, random_state=seed)
        detector.check_parameters()
        ours = Learning(detector, refit=self.refit, pending=self.pending)
        found: dict[str, Contender] = {"eqsep": ours}
        found |= {name: Retrained(_PEERS[name].build(random_state=seed)) for name in names}
        if model is not None and self.shadow is not None:
            found[f"shadow {self.shadow.name}"] = Fixed(model)
        return found


@options.reads_tables
def backtest(
    context: typer.Context,
    spec: InputSpec = options.columns(
        label=options.LABEL,
        **{name: options.TRAINING[name] for name in ("normal", "drop", "categorical", "ordered")},
    ),
    time: str | None = opt(None, "COLUMN", "Time of each row: a date or a number."),
    every: str = opt("1d", "SPAN", "Length of a period: 1d, 12h, or a number of rows."),
    delay: str = opt("7d", "SPAN", "Time until the label of a row is known."),
    verdict: str | None = opt(None, "SPAN", "Delay of verdicts on alarms, if shorter."),
    alarms: int = opt(50, "N", "Number of highest scores to check in each period."),
    first: int = opt(500, "N", "Number of labelled rows for the first model."),
    *,
    rivals: Rivals,
    report: Path | None = options.REPORT,
) -> None:
    """Replay labelled rows in time order: what would have been caught, with late labels?"""
    options.check_report_out(report, [*spec.paths, rivals.shadow])
    schedule = Schedule(every=every, delay=delay, verdict=verdict, alarms=alarms, first=first)
    with print_warnings(), progress("eqsep backtest", "reading"):
        found = backtest_files(spec, time, schedule, rivals)
    print_report(found, _print_backtest, context, report)


def backtest_files(
    spec: InputSpec, time: str | None, schedule: Schedule, rivals: Rivals
) -> BacktestReport:
    """Play the labelled rows of files back, in the order of the column `time`, or as they are."""
    if (time is None) != spec.ordered:
        raise UserError("A backtest needs the order of rows: pass either --time or --ordered.")
    if time is not None and time in (spec.label, *spec.drop):
        raise UserError(f"Column {time!r} cannot be two of --label, --time and --drop.")
    model = None if rivals.shadow is None else load_detector(rivals.shadow, rows=spec.paths)
    contenders = rivals.contenders(model)
    rows, labels = spec.read()
    assert labels is not None  # the option is required
    at = np.arange(rows.n_rows) if time is None else _times(rows, time)
    kept = [column for column in rows.columns if column.name != time]
    rows = replace(rows, columns=kept, groups=None)
    known = np.flatnonzero([text is not None for text in labels.texts])
    notes = []
    if len(known) < rows.n_rows:
        notes.append(f"Left out: {counted(rows.n_rows - len(known), 'row')} without a label.")
    rows, texts = rows.take(known), labels.texts[known]
    kind = np.where(texts == labels.normal, NORMAL, texts).astype(str)
    kinds = sorted(set(kind.tolist()), key=natural_order)
    if NORMAL not in kinds or len(kinds) < 2:
        raise UserError(
            f"A backtest needs rows labelled normal and anomalous, but column {spec.label!r} holds "
            f"{with_counts(Counter(kind.tolist()))}. Label both"
            f"{', ' + inputs.or_name_normal(spec.normal) if NORMAL not in kinds else ''}."
        )
    if model is not None:
        notes += _check_shadow(model, rows, kind, str(rivals.shadow), time=time)
    phase("playing back")
    found = evaluation.backtest(contenders, rows, kind, time=at[known], schedule=schedule)
    counts = Counter(sorted(kind.tolist()))
    return BacktestReport(
        title=f"{', '.join(Path(path).name for path in spec.paths)}, replayed",
        found=found,
        counts={NORMAL: counts.pop(NORMAL)} | dict(counts),
        notes=tuple(notes),
    )


def _times(rows: Table, time: str) -> np.ndarray:
    """The values of the column of times: dates, or numbers."""
    columns = {column.name: column for column in rows.columns}
    if time not in columns:
        raise UserError(
            f"--time {time!r} is not a column: the columns are {quoted(columns)}."
            f"{did_you_mean([time], list(columns))}"
        )
    column = columns[time]
    if column.kind == "number":
        return column.values
    try:
        seconds = column.numbers("date")
    except UnreadableError as error:
        raise UserError(
            f"--time expects dates, or numbers to sort rows by, but column {column.name!r} holds "
            f"{column.texts()[error.row]!r} in row {error.row + 1}."
        ) from error
    if np.isnan(seconds).any():
        row = int(np.flatnonzero(np.isnan(seconds))[0])
        raise UserError(
            f"Column {column.name!r} has no time in row {row + 1}: fill it in, or leave it out."
        )
    dates: np.ndarray = np.round(1e6 * seconds).astype("M8[us]")
    return dates


def _check_shadow(
    model: Detector, rows: Table, kind: np.ndarray, name: str, *, time: str | None
) -> list[str]:
    """Refuse a model that learns from the times; note if it has learnt the rows already."""
    encoder = model.plan_.encoder
    if time is not None and time in (encoder.names or ()) and time not in encoder.dropped:
        raise UserError(
            f"{name} was fitted with column {time!r}, which only sorts the rows here: fit it with "
            f"--drop {time}."
        )
    if learnt_before(model, rows, np.where(kind == NORMAL, "normal", kind)).are_learnt:
        return [
            f"{name} has learnt some of these rows and so knows the future of others: its figures "
            f"are too good."
        ]
    return []


def _print_backtest(console: Screen, report: BacktestReport) -> None:
    """What each method caught, when it first caught each kind, and period by period."""
    found = report.found
    tested = sum(one.rows for one in found.periods)
    lines = [
        f"{counted(tested, 'row')} in {counted(len(found.periods), 'period')}, after "
        f"{found.waited:,} before the first model.",
        report.setting,
        *report.notes,
    ]
    for line in lines:
        console.print_line(line)
    columns = ["", "looked at", "precision", "recall", "false alarms", "promised", "learning"]
    console.print(table(columns, _methods(found), wrapped=len(columns)))
    some_early = any(one.early.total for kinds in found.kinds.values() for one in kinds)
    early = "; in brackets, among rows before its first label" * some_early
    console.print(f"When each kind was caught{early}:")
    console.print(_kinds(found))
    console.print("Anomalies, and those that were caught:")
    columns = ["from", "rows", "labels known", "anomalies", *found.methods]
    rows = []
    for one in found.folded(_LINES):
        counts = (one.rows, one.known, one.anomalies, *(one.caught[m] for m in found.methods))
        rows.append((one.name, *(f"{n:,}" for n in counts)))
    console.print(table(columns, rows, wrapped=len(columns)))


def _methods(found: Backtest) -> Iterator[tuple[RenderableType, ...]]:
    for name in found.methods:
        false: tuple[RenderableType, ...] = ("–", "–")
        if name in found.false_alarms:
            kept = found.promises.get(name)
            promised = "–"
            if kept is not None:
                promised = f"{kept.rate:.2%}: {kept.verdict}" if kept.rank else NO_PROMISE
            false = (interval(found.false_alarms[name], ".2%"), promised)
        caught = (found.precision[name], found.recall[name])
        shares = (interval(share, ".1%") for share in caught)
        looked = f"{found.precision[name].total:,}"
        yield Text(name), looked, *shares, *false, f"{found.seconds[name]:.1f} s"


def _kinds(found: Backtest) -> Shown:
    shown = table(("kind", "first replayed"), (), wrapped=2)
    for method in found.methods:
        shown.add_column(Text(method))
    for place, one in enumerate(found.kinds[found.methods[0]]):
        cells = []
        for method in found.methods:
            own = found.kinds[method][place]
            early = f" ({own.early.count} of {own.early.total})" if own.early.total else ""
            cells.append(Text(f"{own.recall.count} of {own.recall.total}{early}: {own.told}"))
        shown.add_row(Text(shown_kind(one.kind)), one.first, *cells)
    return shown
