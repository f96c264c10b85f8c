"""`eqsep fit`: from labelled rows to a model file, and a report of what it finds."""

import gzip
import shlex
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from eqsep.arrays import objects
from eqsep.checks import DataWarning, Finding
from eqsep.cli import inputs, options
from eqsep.cli.console import Screen, in_command, opt, print_warnings, progress, sentence
from eqsep.cli.inputs import InputSpec, LabelColumn
from eqsep.cli.models import print_summary
from eqsep.cli.project import NAME, current_project, known_label, quoted_column, shown_kind
from eqsep.detector import Detector
from eqsep.detector.holdout import Grouping
from eqsep.detector.plan import Plan
from eqsep.detector.runs import Runs
from eqsep.detector.sources import RowsInMemory, SampledBefore, Source, batches_of, source_of
from eqsep.distributed.cluster import check_no_windows, cluster
from eqsep.distributed.fitting import RowsOnCluster
from eqsep.distributed.units import Divided, as_units, total, units_of
from eqsep.errors import UserError, quoted
from eqsep.files import FORMATS, ending_of
from eqsep.io.files import cast, count_values, files_of, joined, no_rows
from eqsep.io.inference import annotated, understood, written
from eqsep.io.notation import Notation
from eqsep.io.notes import without_notes
from eqsep.io.streams import STANDARD_INPUT, stamp_of
from eqsep.labels import NORMAL, may_be_normal, natural_order
from eqsep.progress import reported_to
from eqsep.report import DetectorReport, HeldOut, Usage, detector_report, write_report
from eqsep.report.advice import NEAR_CHANCE
from eqsep.report.measured import LaterRows
from eqsep.tables import batches
from eqsep.tables.batches import LabelledRows, Strata, sample_size, width
from eqsep.tables.reading import RowGroups, Table, read_table

_SAME = ("alpha", "unlabelled", "unlabelled_weight")  # of models that are to be merged

LARGE = 2**28  # bytes of text from which on files are learnt in batches
ROWS_AT_ONCE = 100_000  # of a batch
_PACKED = 5  # how many bytes of text one of a Parquet file stands for
_NUMBER = 8  # bytes of a number


@dataclass(frozen=True)
class TrainingData:
    """Rows to fit a detector to (a table or batches), and a sample with labels to look at."""

    sample: Table
    source: Source
    counts: dict[str, int]
    labels: LabelColumn | None = None
    normal: str | None = None  # where labels are names
    of_all_kinds: tuple[Table, LabelColumn | None] | None = None  # those that are not seen too


_LABEL_OPTION = opt(None, "COLUMN", "The label column; without it, nobody has looked at the rows.")
_SEEN_OPTION = opt(None, "KIND", "Learn only this kind of anomaly; repeatable.")


@options.reads_tables
def fit(
    spec: InputSpec = options.columns(label=_LABEL_OPTION, seen=_SEEN_OPTION, **options.TRAINING),
    out: Path = options.MODEL_OUT,
    unlabelled: str = options.UNLABELLED,
    clean: bool = options.CLEAN,
    false_alarm_rate: float = opt(
        0.01, "SHARE", "Share of new normal rows that may raise an alarm."
    ),
    confidence: float | None = options.CONFIDENCE,
    unseen_rate: float = options.UNSEEN_RATE,
    like: Path | None = opt(None, "MODEL", "Use this model's encoding, to merge later."),
    landmarks: int | None = options.LANDMARKS,
    bandwidth: float | None = options.BANDWIDTH,
    random_state: int = options.SEED,
    report: Path | None = options.REPORT,
    ray: str | None = options.RAY,
) -> None:
    """Learn normal rows and the labelled kinds of anomaly from files."""
    options.check_report_out(report, [*spec.paths, like], model=out)
    options.check_model_out(out, [*spec.paths, like])
    model = {"n_landmarks": landmarks, "bandwidth": bandwidth, "random_state": random_state}
    rates = {"false_alarm_rate": false_alarm_rate, "unseen_rate": unseen_rate}
    unlabelled = options.trust(unlabelled, clean=clean)
    settings = model | rates | {"confidence": confidence, "unlabelled": unlabelled}
    with print_warnings(look=_look(spec, out)) as warned:
        detector, data = fit_files(spec, out, settings, like=like, ray=ray)
    console = Screen()
    normal = None if data.labels is None else data.labels.called
    print_summary(console, detector, data.counts, out, normal=normal, new=True)
    console.print_lines(_drafted_label(spec, detector))
    if report is not None:
        with progress("eqsep fit", "measuring for the report"), reported_to(None):
            made = write_fit_report(report, spec, detector, data, model=out, warned=warned)
        for step in made.answer.steps:
            console.print_lines({"caution": step.why} if step.what == NEAR_CHANCE else {})
        console.print_lines({"report": str(report)})


def fit_files(
    spec: InputSpec, out: Path, settings: dict[str, Any], *, like: Path | None, ray: str | None
) -> tuple[Detector, TrainingData]:
    """Fit a detector to the rows of files, encoded as by `like`, and write it."""
    _check_unlabelled(settings, like=like)
    plan, more = None, {"window": spec.window}
    if like is not None:
        base = inputs.load_detector(like)
        plan = base.plan_
        more = {name: getattr(base, name) for name in _SAME} | {"plan": plan}
        spec = spec.grouped_like(plan)
    settings = settings | more
    _check_window(spec, plan, ray=ray)
    seed = settings["random_state"]
    with progress("eqsep fit", "reading") as job:
        if ray is None:
            data = read_training_data(spec, plan, random_state=seed)
            detector = Detector(normal=data.normal, **settings).fit_from(data.source)
        else:
            with cluster(ray):
                data = read_on_cluster(spec, plan, random_state=seed)
                detector = Detector(normal=data.normal, **settings).fit_from(data.source)
        job.phase("writing")
        model = replace(  # which says how the files of the fit were read
            detector.model_,
            left_out=tuple(dict.fromkeys(spec.drop)),
            label_column=spec.label or "",
            other_normal=data.labels.other_normal if data.labels else tuple(spec.normal[1:]),
        )
        detector = detector.with_model(model)
        detector.save(out)
    return detector, data


def _look(spec: InputSpec, out: Path) -> str:
    """The command that shows normal rows with high scores among those that were learnt."""
    project = current_project.get()
    model = [] if project is not None and project.model == str(out) else [str(out)]
    keep = ["--keep", quoted_column(spec.label or ""), "--out", "scores.csv"]  # kinds score higher
    more = ["--most", "20"] if spec.label is None else keep
    return shlex.join(["eqsep", "score", *model, *spec.paths, *more])


def _drafted_label(spec: InputSpec, detector: Detector) -> dict[str, str]:
    """A caution if the project file has a draft of the label, and the column is learnt."""
    project = current_project.get()
    label = "" if project is None or spec.label else project.drafted.get("label", "")
    why = f'{NAME} drafts label = "{label}", still commented out, so it is learnt as a column'
    learnt = detector.plan_.table_columns.get(label) is not None and label
    return {"caution": f"{why}. Uncomment it, or add {label!r} to drop."} if learnt else {}


def _check_unlabelled(settings: dict[str, Any], *, like: Path | None) -> None:
    """Refuse --unlabelled and --clean where they would have no effect."""
    if settings["unlabelled"] != "auto" and like is not None:
        raise UserError(
            f"{like} settles --unlabelled and --clean: leave them out, or fit that model again."
        )


def _check_window(spec: InputSpec, plan: Plan | None, *, ray: str | None) -> None:
    """Refuse windows that a model has settled, or that cannot be computed."""
    has_windows = spec.window if plan is None else plan.windows
    if plan is not None and spec.window is not None:
        raise UserError("--window and --like contradict each other: leave out --window.")
    if ray is not None:
        check_no_windows(has_windows)
        if spec.ordered:
            raise UserError("--ordered and --ray contradict each other: files are read separately.")
    if (has_windows is not None or spec.ordered) and spec.seen and is_large(spec.paths):
        raise UserError(
            "With files this large, --seen leaves rows out before windows are computed: leave out "
            "--seen, or pass files of less than 256 MB."
        )


_HELD = 0.3  # the share of each kind that is kept from the second detector
_MOST_NORMAL, _MOST_OF_A_KIND = 20_000, 5_000
_NUMBERS = {"0": NORMAL, "1": "anomaly"}  # as a detector calls them


def write_fit_report(
    path: Path,
    spec: InputSpec,
    detector: Detector,
    data: TrainingData,
    *,
    model: Path,
    warned: Sequence[Warning],
) -> DetectorReport:
    """Write the report of a fit, measured on rows that are held out of a second one."""
    found = [w for w in warned if isinstance(w, DataWarning)]
    findings = [Finding.of(warning) for warning in found]
    others = [sentence(w) for w in warned if not isinstance(w, DataWarning)]
    label, words = spec.label or "", spec.label_words()
    project, folder = current_project.get(), None
    if project is not None and project.model == str(model):
        by_file = not label or project.gives("label")
        folder = str(project.path.parent) if by_file else None
    usage = Usage(str(model), label=label, options=words, folder=folder)
    usage = replace(usage, words=in_command, called=shown_kind)
    report = detector_report(
        detector,
        _held_out(spec, detector, _known_rows(spec, detector, data)),
        counts={_called(kind, data.labels): n for kind, n in data.counts.items()},
        title=f"Anomalies in {', '.join(Path(name).name for name in spec.paths)}",
        warnings=[*findings, *others],
        usage=usage,
    )
    by_file = project is not None and project.gives("drop")
    asked = dict.fromkeys(spec.drop, f"by drop in {NAME}" if by_file else "by --drop")
    learnt = replace(report.learnt, dropped=report.learnt.dropped | asked)
    write_report(replace(report, learnt=learnt), path, label=known_label())
    return report


@dataclass(frozen=True)
class _Known:
    """Rows and their kinds, None without a label; and labels as a detector takes them."""

    table: Table
    kind: np.ndarray
    normal: str
    y: np.ndarray | None
    numbered: bool  # whether all rows are there, in the order of the files
    all_rows: bool

    @property
    def has_label(self) -> np.ndarray:
        return np.array([kind is not None for kind in self.kind], dtype=bool)

    @property
    def is_normal(self) -> np.ndarray:
        return self.kind == self.normal

    def of_kinds(self, kinds: Iterable[str]) -> np.ndarray:
        return np.isin(self.kind.astype(str), list(kinds))

    def fitted(self, like: Detector, rows: np.ndarray) -> Detector:
        """A detector with the parameters of another, fitted to some of the rows."""
        trial = Detector(**like.get_params(deep=False))
        trial.fit_quietly(self.table.take(rows), None if self.y is None else self.y[rows])
        return trial


def _known_rows(spec: InputSpec, detector: Detector, data: TrainingData) -> _Known:
    """The rows of the fit, and those of unseen kinds if they were read."""
    table, labels = data.sample, data.labels
    large = is_large(spec.paths)
    if large and detector.plan_.windows is not None:
        raise UserError(
            "The model is written, but no report: it would use a sample of these large files, and "
            "sampled rows have no windows. Measure with eqsep test on other files."
        )
    if detector.plan is None and data.of_all_kinds is not None:
        table, labels = data.of_all_kinds
    numbered = not large and (detector.plan is None or not spec.seen)
    kind, normal = _kinds(detector, table, labels)
    return _Known(
        table=table,
        kind=kind,
        normal=normal,
        y=None if labels is None else labels.y,
        numbered=numbered,
        all_rows=not large,
    )


def _kinds(detector: Detector, table: Table, labels: LabelColumn | None) -> tuple[np.ndarray, str]:
    """The kind of each row, None without a label, and which one is normal."""
    normal = NORMAL if labels is None else _called(labels.normal, labels)
    texts = [normal] * table.n_rows if labels is None else labels.texts
    without = normal if detector.plan_.labels.unlabelled_is_normal else None
    return objects(without if text is None else _called(text, labels) for text in texts), normal


def _called(text: str, labels: LabelColumn | None) -> str:
    """What a label is called on the page: a kind by its name, 0 and 1 in words."""
    if labels is None:
        return text
    called = labels.called if text == labels.normal else text
    return _NUMBERS.get(text, text) if labels.are_numbers else called


def _held_out(spec: InputSpec, detector: Detector, known: _Known) -> HeldOut:
    """A part of the rows, and a second detector that has learnt the others."""
    grouping = detector.plan_.holdout.grouping
    others = {kind for kind in known.kind if kind not in (None, known.normal, *detector.kinds_)}
    unseen = sorted(others, key=natural_order)
    if known.table.groups is None or grouping is None:
        test = near = _chosen(known.kind, unseen, normal=known.normal)
    else:
        test, near = _chosen_groups(grouping, known.table.groups, known.is_normal)
        test |= known.of_kinds(unseen)
    train = np.flatnonzero(~test & ~near & ~known.of_kinds(unseen))
    rows = np.flatnonzero(test & known.has_label)
    _check_enough(known, rows, train, grouping=grouping)
    trial = known.fitted(detector, train)
    return HeldOut(
        known.table.take(rows),
        known.kind[rows].astype(str),
        normal=known.normal,
        doubted=detector.plan_.labels.doubts_calibration,
        names=_row_names(spec, detector, known, rows),
        detector=trial,
        usual=known.table.take(np.flatnonzero(known.is_normal)),
        note=_note(known, trial, n_train=len(train), n_test=len(rows), unseen=unseen),
        later=_later(detector, known),
    )


def _later(detector: Detector, known: _Known) -> LaterRows | None:
    """The last rows, and a detector of those before; None if times are unknown, or rows too few."""
    groups = known.table.groups
    if groups is None or groups.columns[1] is None:
        return None
    after = groups.time > np.quantile(groups.time[known.is_normal], 1 - _HELD)
    shown = known.of_kinds([known.normal, *detector.kinds_])
    before = np.flatnonzero(~after & (shown | ~known.has_label))
    rows = np.flatnonzero(after & known.has_label)
    if not known.is_normal[rows].any():
        return None
    try:
        trial = known.fitted(detector, before)
    except UserError:  # too few of some sort came first
        return None
    return LaterRows(known.table.take(rows), known.kind[rows].astype(str), trial, len(before))


def _check_enough(
    known: _Known, rows: np.ndarray, train: np.ndarray, *, grouping: Grouping | None
) -> None:
    """Refuse a report where too few normal rows are left to fit to, or to measure on."""
    learnt, held = (part[known.is_normal[part]] for part in (train, rows))
    what, needed = "normal row", 2
    if grouping is not None and known.table.groups is not None:
        units = grouping.units(known.table.groups, key=0)
        learnt, held = np.unique(units[learnt]), np.unique(units[held])
        what, needed = grouping.unit, 3
    if len(held) and len(learnt) >= needed - 1:
        return
    of = "" if needed == 2 else " with normal rows"
    raise UserError(
        f"The model is written, but no report: it is measured on normal rows held out of a second "
        f"fit, which takes at least {needed} {what}s{of}, got {len(held) + len(learnt):,}. Add "
        f"normal rows, or leave out --report."
    )


def _chosen(kind: np.ndarray, unseen: Sequence[str], *, normal: str) -> np.ndarray:
    """Which rows are held out: a share of each kind, and all of the unseen ones."""
    rng = np.random.default_rng(0)
    test = np.zeros(len(kind), dtype=bool)
    for name in sorted({k for k in kind if k is not None}, key=natural_order):
        rows = rng.permutation(np.flatnonzero(kind == name))
        share = 1.0 if name in unseen else _HELD
        most = _MOST_NORMAL if name == normal else _MOST_OF_A_KIND
        least = 1 if name == normal or len(rows) > 1 else 0
        test[rows[: min(max(int(share * len(rows)), least), most)]] = True
    return test


def _chosen_groups(
    grouping: Grouping, groups: RowGroups, is_normal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are held out where whole groups are, and which lie in gaps next to them."""
    units = grouping.units(groups, key=0)
    hashes = np.unique(units[is_normal])  # a share of the groups, at least one if two are left
    bound = hashes[max(min(int(_HELD * len(hashes)), len(hashes) - 2), int(len(hashes) > 2))]
    test = units < bound
    return test, ~test & grouping.near(groups, key=0, bound=int(bound))


def _row_names(spec: InputSpec, detector: Detector, known: _Known, rows: np.ndarray) -> list[str]:
    """What rows are called by their columns; else by their number in the files, if it is known."""
    called = inputs.naming_columns(detector.plan_.encoder.dropped)
    columns = [c for c in known.table.columns if c.name in called and len(c.values)]
    table = pa.table({c.name: c.texts() for c in columns})
    if called and known.numbered and STANDARD_INPUT not in files_of(spec.paths):
        with without_notes():  # the first reading has noted how
            found = inputs.pieces_for(
                None,
                spec.paths,
                lambda there: [c for c in called if c in there],
                layout=spec.layout,
                bad_rows=spec.bad_rows,
            )
            again = joined([part for _, part in found])  # with the columns that are left out
        table = again if again.num_rows == known.table.n_rows else table
    other = "row {}" if known.numbered else "a held-out row"
    return inputs.row_names(table, rows, other=other)


def _note(known: _Known, trial: Detector, n_train: int, n_test: int, unseen: Sequence[str]) -> str:
    whole = "rows" if known.all_rows else "sampled rows"
    n_all = len(known.kind)
    text = (
        f"These figures come from a copy of the detector that was fitted to {n_train / n_all:.0%} "
        f"of the {whole} ({n_train:,} of {n_all:,}) and tested on {n_test:,} others: the model "
        f"itself has learnt more rows. The copy's threshold is {trial.threshold_:.3f}; which "
        f"anomalies raise an alarm is counted at the model's."
    )
    if apart := n_all - n_train - n_test:
        others = "" if known.has_label.all() else ", or without a label,"
        text += f" {apart:,} rows too near to these{others} are in neither."
    if unseen:
        text += f" The kinds that were not shown, {', '.join(unseen)}, are in the test alone."
    return text


def read_training_data(spec: InputSpec, like: Plan | None, *, random_state: int) -> TrainingData:
    """The rows of files: all at once, or in batches if the files are large."""
    if is_large(spec.paths):
        spec.check()
        stamps = {file: stamp_of(file) for file in files_of(spec.paths)}
        sample = sample_files(spec, like, np.random.default_rng(random_state))
        return _in_batches(spec, like, sample, partial(_read_twice, stamps=stamps))
    rows, labels = everything = spec.read(like)
    if labels is not None and spec.seen:
        seen = np.flatnonzero(labels.seen(spec.seen))
        rows, labels = rows.take(seen), labels.take(seen)
    if labels is None:
        source, counts = RowsInMemory(rows, None), {NORMAL: rows.n_rows}
        return TrainingData(sample=rows, source=source, counts=counts)
    return TrainingData(
        sample=rows,
        source=RowsInMemory(rows, labels.y),
        counts=labels.counts,
        labels=labels,
        normal=None if labels.are_numbers else labels.normal,
        of_all_kinds=everything,
    )


def _read_twice(reader: "_Reader", *, stamps: Mapping[str, Any]) -> Source:
    """The files as a source; windows need the rows before a row, so a sample has none yet."""
    reader = replace(reader, stamps=stamps)
    windows = reader.spec.window if reader.like is None else reader.like.windows
    return source_of(batches_of(reader, None, None, None, None, window=windows))


def read_on_cluster(spec: InputSpec, like: Plan | None, *, random_state: int) -> TrainingData:
    """The rows of files, which the processes of the cluster that was joined read file by file."""
    spec.check()
    files = files_of(spec.paths)
    if STANDARD_INPUT in files:
        raise UserError("Standard input cannot be read on a cluster: pass files.")
    files = [str(Path(file).resolve()) for file in files]  # processes have other folders

    def draw(file: str, number: int) -> FileSample:
        rng = np.random.default_rng([random_state, number])
        return sample_files(replace(spec, paths=[file]), like, rng)

    sample = total(as_units(files, str), draw, FileSample.merge) or FileSample()
    return _in_batches(
        spec, like, sample, lambda reader: RowsOnCluster(units_of(Divided(files, reader.of)))
    )


def is_large(paths: Sequence[str]) -> bool:
    """Whether files are too large for memory; standard input, which is read once, never is."""
    files = files_of(paths)
    return STANDARD_INPUT not in files and sum(map(_size, files)) > LARGE


def _size(file: str) -> int:
    """About how many bytes of text a file holds; no more are counted than make it large."""
    size = Path(file).stat().st_size
    if FORMATS.get(ending_of(file)) == "parquet" and Path(file).is_file():
        return max(size * _PACKED, _NUMBER * count_values(file))
    if not file.endswith(".gz") or size > LARGE or not Path(file).is_file():
        return size
    size = 0
    with suppress(OSError, EOFError, zlib.error), gzip.open(file, "rb") as text:
        while size <= LARGE and (part := text.read(2**20)):
            size += len(part)
    return size


@dataclass(frozen=True)
class FileRows:
    """Rows of files, a table for each piece that was read, in the types that its file has."""

    parts: list[tuple[str, pa.Table]]

    def take(self, rows: np.ndarray) -> "FileRows":
        kept, start = [], 0
        for file, table in self.parts:
            low, high = np.searchsorted(rows, (start, start + table.num_rows))
            if low < high:
                kept.append((file, table.take(pa.array(rows[low:high] - start))))
            start += table.num_rows
        return FileRows(kept)

    def by_file(self) -> tuple[list[pa.Table], np.ndarray]:
        """The rows of each file as one table, and the positions that these rows have here."""
        tables: dict[str, list[pa.Table]] = {}
        for file, table in self.parts:
            tables.setdefault(file, []).append(table)
        number = {file: i for i, file in enumerate(tables)}
        files = [number[file] for file, table in self.parts for _ in range(table.num_rows)]
        found = [pa.concat_tables(parts) for parts in tables.values()]
        return found, np.argsort(files, kind="stable")


def _joined(parts: list[LabelledRows[FileRows]]) -> LabelledRows[FileRows]:
    return LabelledRows.join(parts, lambda all_: FileRows([p for rows in all_ for p in rows.parts]))


@dataclass
class FileSample:
    """Rows sampled at random, and how often each label is written in all rows; samples merge."""

    counts: Counter[str | None] = field(default_factory=Counter)
    strata: Strata[LabelledRows[FileRows]] | None = None
    n_rows: int = 0

    def merge(self, later: "FileSample") -> "FileSample":
        self.counts.update(later.counts)
        if self.strata is None:
            self.strata = later.strata
        elif later.strata is not None:
            self.strata.merge(later.strata, moved=lambda rows: rows.after(self.n_rows))
        self.n_rows += later.n_rows
        return self


def sample_files(spec: InputSpec, like: Plan | None, rng: np.random.Generator) -> FileSample:
    sample = FileSample()
    for file, table in inputs.pieces_for(
        like, spec.paths, spec.columns(like), layout=spec.layout, bad_rows=spec.bad_rows
    ):
        labels = spec.written_labels(table)
        sample.counts.update(labels.tolist())
        if spec.label is not None:
            table = table.drop_columns([spec.label])
        if sample.strata is None:
            size, most = sample_size(table.num_columns), batches.ANOMALIES
            sample.strata = Strata(size, _joined, most_others=most)
        positions = np.arange(sample.n_rows, sample.n_rows + len(labels))
        rows = LabelledRows(FileRows([(file, table)]), labels, positions)
        normal = [_may_be_normal(text, spec.normal) for text in labels]
        sample.strata.add(rows, is_normal=np.array(normal, dtype=bool), rng=rng)
        sample.n_rows += len(labels)
        if len(sample.counts) > 10 * inputs.MOST_KINDS:
            break  # refused when they are read
    return sample


def _may_be_normal(text: str | None, normal: Sequence[str]) -> bool:
    if text is None or not normal:
        return text is None or may_be_normal(inputs.as_label(text, ["0"]), normal=None)
    return any(inputs.as_label(word, [text]) == text for word in normal)


def _in_batches(
    spec: InputSpec,
    like: Plan | None,
    sample: FileSample,
    source_of_rows: Callable[["_Reader"], Source],
) -> TrainingData:
    if sample.strata is None or not sample.n_rows:
        raise no_rows(spec.paths)
    sampled = sample.strata.sample()
    tables, order = sampled.rows.by_file()
    rows = _typed(spec, tables, like).take(np.argsort(sampled.positions[order]))
    if spec.ordered:
        groups = Runs().in_order(rows.groups, rows.n_rows)
        rows = replace(rows, groups=replace(groups, time=np.sort(sampled.positions).astype(float)))
    kinds = {c.name: ("text" if c.is_empty else c.kind, c.notation) for c in rows.columns}
    reader, is_whole = _Reader(spec, like, kinds), sample.strata.is_whole
    if spec.label is None:
        y, written = objects([None] * rows.n_rows), Counter({None: sample.n_rows})
        source = _sampled(source_of_rows(reader), reader, rows, y, written, is_whole=is_whole)
        return TrainingData(sample=rows, source=source, counts={NORMAL: sample.n_rows})
    words = objects(sample.counts)  # labels as they are written
    column = pa.chunked_array([pa.array(words, pa.string())])
    labels = spec.read_labels(column, times=sample.counts.values())
    if spec.seen:
        kept = labels.seen(spec.seen)
        words, labels = words[kept], labels.take(kept)
    text = dict(zip(words, labels.texts, strict=True))
    label_of = dict(zip(words, labels.y, strict=True))
    counts, counted = Counter[str | None](), Counter[Any]()
    for word in words:
        counts[text[word]] += sample.counts[word]
        counted[label_of[word]] += sample.counts[word]
    in_order = sampled.y[np.argsort(sampled.positions)]
    there = np.flatnonzero([word in text for word in in_order])
    rows, y = rows.take(there), objects(label_of[word] for word in in_order[there])
    reader = replace(reader, labels=label_of)
    normal = None if labels.are_numbers else labels.normal
    return TrainingData(
        sample=rows,
        source=_sampled(
            source_of_rows(reader), reader, rows, y, counted, is_whole=is_whole, normal=normal
        ),
        labels=replace(labels, texts=objects(text[word] for word in in_order[there])),
        counts=labels.ordered(counts),
        normal=normal,
    )


def _sampled(
    source: Source,
    reader: "_Reader",
    rows: Table,
    y: np.ndarray,
    counts: Counter[Any],
    *,
    is_whole: bool,
    normal: str | None = None,
) -> Source:
    """The source with the sample that gave its columns their types, unless rows get windows."""
    spec, like = reader.spec, reader.like
    if (spec.window if like is None else like.windows) is not None:
        return source
    sample, size = LabelledRows(rows, y, np.arange(rows.n_rows)), sample_size(width(rows))
    if rows.n_rows > size:  # which take more room once they are encoded
        join = partial(LabelledRows.join, rows=batches.joined)
        strata = Strata[LabelledRows[Table]](size, join, most_others=batches.ANOMALIES)
        is_normal = np.array([may_be_normal(label, normal=normal) for label in y.tolist()])
        strata.add(sample, is_normal=is_normal, rng=np.random.default_rng(0))
        sample, is_whole = strata.sample(), False
        sample = sample.take(np.argsort(sample.positions))
    return SampledBefore(source, counts, sample, is_whole, given=spec.label is not None)


def _typed(spec: InputSpec, tables: list[pa.Table], like: Plan | None) -> Table:
    names = spec.grouped.names
    groups = joined([table.select(names) for table in tables])
    values = [table.drop_columns(names) for table in tables]
    if like is not None:
        return spec.grouped.attach(inputs.as_read(joined(values), like), groups)
    typed = joined([understood(table, spec.layout, as_text=spec.names) for table in values])
    return spec.grouped.attach(spec.typed(typed), groups)


@dataclass(frozen=True)
class _Reader:
    """All rows in batches each time it is called, in the types of the plan `like` or of `kinds`."""

    spec: InputSpec
    like: Plan | None
    kinds: Mapping[str, tuple[str, dict[str, Any] | None]]
    labels: Mapping[str | None, Any] | None = None  # by what is written; others are left out
    stamps: Mapping[str, Any] = field(default_factory=dict)  # of the files when first read

    def of(self, file: str) -> "_Reader":
        return replace(self, spec=replace(self.spec, paths=[file]))

    def __call__(self) -> Iterator[tuple[Table, np.ndarray | None]]:
        waiting: list[tuple[pa.Table, np.ndarray]] = []
        spec, runs = self.spec, Runs()
        columns = spec.columns(self.like)
        changed = [file for file, stamp in self.stamps.items() if stamp_of(file) != stamp]
        if changed:
            raise UserError(
                f"{quoted(changed)} has changed since it was first read (large files are read "
                f"twice). Try again when nobody writes to it."
            )
        for _, table in inputs.pieces_for(
            self.like, spec.paths, columns, layout=spec.layout, bad_rows=spec.bad_rows
        ):
            written = spec.written_labels(table)
            if self.labels is not None:
                there = np.array([text in self.labels for text in written], dtype=bool)
                table, written = table.filter(pa.array(there)), written[there]
            waiting.append((self._cast(table), written))
            if sum(len(labels) for _, labels in waiting) >= ROWS_AT_ONCE:
                yield self._batch(waiting, runs)
                waiting = []
        if waiting:
            yield self._batch(waiting, runs)

    def _cast(self, table: pa.Table) -> pa.Table:
        if self.like is not None:
            return table
        columns, fields = [], []
        for name, (kind, known) in self.kinds.items():
            field = table.schema.field(name)
            column = cast(table.column(name), kind, written(field, known))
            if name in self.spec.names:
                column = column.cast(pa.string()).dictionary_encode()
            field = pa.field(name, column.type)
            columns.append(column)
            fields.append(annotated(field, Notation.of(known)) if known else field)
        for name in self.spec.grouped.names:
            columns.append(table.column(name))
            fields.append(table.schema.field(name))
        return pa.table(columns, schema=pa.schema(fields))

    def _batch(
        self, waiting: list[tuple[pa.Table, np.ndarray]], runs: Runs
    ) -> tuple[Table, np.ndarray | None]:
        table = joined([table for table, _ in waiting])
        values, plan = table.drop_columns(self.spec.grouped.names), self.like
        rows = inputs.as_read(values, plan) if plan else read_table(values, name="Detector")
        rows = self.spec.in_order(self.spec.grouped.attach(rows, table), runs)
        if self.labels is None:
            return rows, None
        written = np.concatenate([labels for _, labels in waiting])
        return rows, objects(self.labels[text] for text in written)
