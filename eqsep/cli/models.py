"""What is in a model file, models merged and exported, and rows that a model learns or forgets."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa

from eqsep import detector as detecting
from eqsep.arrays import objects
from eqsep.checks import Finding, warn_of
from eqsep.cli import console, inputs, options
from eqsep.cli.console import Screen, format_counts, in_command, opt, print_warnings, progress
from eqsep.cli.inputs import InputSpec, LabelColumn, load_detector
from eqsep.cli.project import shown_kind
from eqsep.detector import Detector, RepeatedRowsWarning, learning
from eqsep.detector.calibration import CONFIDENCE
from eqsep.detector.holdout import groups_needed
from eqsep.detector.model import Model
from eqsep.detector.namer import COVERAGE, rows_for
from eqsep.errors import UserError, counted, quoted
from eqsep.files import changed_alone
from eqsep.io.files import check_not_read, files_of
from eqsep.io.writing import check_table_out, output_format, shortened, table_writer
from eqsep.labels import NORMAL, WITHOUT, natural_order
from eqsep.persistence.container import origin
from eqsep.persistence.files import content_hash
from eqsep.report.learnt import ALL_UNSEEN, SOME_DOUBTED, assumed, divided_rows, trust_in
from eqsep.tables.reading import Table, text_of


def merge(
    models: list[Path] = console.arg(..., "MODEL", "Models fitted to different rows."),
    out: Path = opt(..., "MODEL", "The model to write.", "--out"),
    again: bool = options.AGAIN,
) -> None:
    """Merge what several models have learnt; fit them with eqsep fit --like."""
    options.check_model_out(out, models)
    if len(models) < 2:
        raise UserError(f"Merging takes two models or more, got {len(models)}.")
    with print_warnings():
        first, *others = (load_detector(path) for path in models)
        for path, other in zip(models[1:], others, strict=True):
            if not first.plan_.is_same(other.plan_):
                raise UserError(
                    f"{models[0]} and {path} do not have the same encoding and landmarks, so they "
                    f"cannot be merged. Fit the second with eqsep fit … --like {models[0]}."
                )
            merged = learning.merge(first.model_, other.model_)
            warn_of(without_repeats(merged.findings, again=again))
            first.with_model(merged.model)
        first.save(out)
    held = counted(len(first.calibration_.scores), "held-out normal row")
    Screen().print_line(f"{len(models)} models, {held}: {out}")


def info(model: Path = options.MODEL) -> None:
    """Show a model's columns, kinds, rows, settings, promise and origin."""
    with print_warnings():
        detector = load_detector(model)
    console = Screen()
    print_summary(console, detector, {}, model)
    made_by, version = origin(model.read_bytes())
    found, caution = detector.model_, detector.caution_
    console.print_lines(
        ({} if caution is None else {"caution": in_command(caution.warning())})
        | {"learnt": _rows(found)}
        | _names(found)
        | {
            "landmarks": f"{len(found.plan.kernel.landmarks):,}",
            "settings": _settings(detector),
            "written by": f"eqsep {made_by}, format {version}",
            "content": f"sha256 {content_hash(found)}",
        }
    )


def export(
    model: Path = options.MODEL, onnx: Path = opt(..., "FILE", "The ONNX graph to write.")
) -> None:
    """Write a model as an ONNX graph that turns columns into alarms."""
    options.check_model_out(onnx, [model])
    with print_warnings():
        load_detector(model).to_onnx(onnx)
    Screen().print_line(f"ONNX graph: {onnx}")


def without_repeats(findings: Iterable[Finding], *, again: bool) -> list[Finding]:
    """The other findings; refuses rows that were learnt before, unless they are learnt again."""
    found = list(findings)
    others = [one for one in found if not issubclass(one.category, RepeatedRowsWarning)]
    if len(others) < len(found) and not again:
        repeats = next(one.warning() for one in found if one not in others)
        raise UserError(repeats.message, hint=repeats.hint, topic=repeats.topic)
    return others


def normal_word(model: Model) -> str:
    return next(iter(inputs.normal_words(model)), NORMAL)


def print_summary(
    console: Screen,
    detector: Detector,
    counts: Mapping[str, int],
    out: Path,
    *,
    gone: Mapping[str, int] | None = None,
    normal: str | None = None,
    new: bool = False,
) -> None:
    """Rows learnt by kind, or gone, and the threshold; the file calls normal rows `normal`."""
    model = detector.model_
    labels, word = model.evidence.labels.reader, normal_word(model)
    several = " or ".join(inputs.normal_words(model)) if model.other_normal else None
    normal = normal or several or (NORMAL if labels is None or labels.by_name else word)
    trusted = normal if counts or normal in (word, several) else f"as {normal}"
    both = [(rows or {}).items() for rows in (counts, gone)]
    counts, gone = ({normal if k == word else k: n for k, n in rows} for rows in both)
    instead = _OTHERWISE.get(assumed(detector)) if new else None
    if labels is None and detector.unlabelled != "trusted":
        counts, gone = ({WITHOUT: sum(rows.values())} if rows else {} for rows in (counts, gone))
    lines = {
        name: f"{sum(rows.values()):,}: {format_counts(_called(model, rows, normal))}"
        for name, rows in (("rows", counts), ("forgotten", gone))
        if rows
    }
    lines |= {
        "columns": _columns(model),
        **_groups(model, counts if new else {}),
        "seen kinds": (", ".join(map(shown_kind, sorted(model.kinds, key=natural_order))) or "none")
        + _rare(model) * bool(counts),
        "normal": trust_in(detector, counts, normal=trusted),
        **({"otherwise": f"pass {instead}"} if instead else {}),
        "threshold": f"{model.threshold:.3f}",
        "promise": _promise(model),
        **_interval(model),
        "model": f"{out} ({out.stat().st_size / 1e6:.1f} MB)",
    }
    console.print_lines(lines)


_OTHERWISE = {
    ALL_UNSEEN: "--clean if these rows are known to be normal, --unlabelled doubted if many may be "
    "anomalies",
    SOME_DOUBTED: "--clean if the rows without a label are known to be normal",
}


def _called(model: Model, counts: Mapping[str, int], normal: str) -> dict[str, int]:
    """Counts by what the model calls each label, with the label where that is another word."""
    labels, words = model.evidence.labels.reader, {normal: NORMAL, normal_word(model): NORMAL}
    if labels is not None and not labels.by_name:
        words |= {text_of(label): model.kinds[0] for label in labels.kinds if model.kinds}
    names = {label: words.get(label, label) for label in counts}
    return {
        name if name == label else f"{name} ({label})": counts[label]
        for label, name in names.items()
    }


def _rare(model: Model) -> str:
    """The kinds with too few rows for prediction sets by kind, the rarest first."""
    rate, unit = 1 - COVERAGE, model.plan.holdout.unit
    short = sorted(model.namer.short_kinds(rate).items(), key=lambda kind: (kind[1], kind[0]))
    if not short:
        return ""
    few = ", ".join(f"{shown_kind(kind)} ({n:,})" for kind, n in short[:3])
    more = f" and {len(short) - 3} more" * (len(short) > 3)
    return f"; too rare for a promise by kind ({counted(rows_for(rate), unit)} needed): {few}{more}"


def _columns(model: Model) -> str:
    """How many columns of each kind are used, and which were left out."""
    encoder, windows = model.plan.encoder, model.plan.windows
    learnt = (column for column in model.plan.table_columns.values() if column)
    names = {"text": "name", "boolean": "name"}
    kinds = Counter(names.get(column.reads, column.reads) for column in learnt)
    order = ("number", "duration", "name", "date")
    shown = ", ".join(counted(kinds[kind], kind) for kind in order if kinds[kind])
    left_out = [name or "(no name)" for name in (*encoder.dropped, *model.left_out)]
    text = f"{kinds.total()}: {shown}" + f"; without {', '.join(left_out)}" * bool(left_out)
    if windows is not None:
        text += f"; for {len(windows.windowed)} of them also the mean, deviation and slope over "
        text += f"{windows.length} rows, and the change"
    return text


def _promise(model: Model) -> str:
    calibration, grouping = model.calibration, model.plan.holdout.grouping
    rate, confidence = model.promise.false_alarm_rate, model.promise.confidence
    held, doubted = len(calibration.counting), model.plan.labels.doubts_calibration
    on = counted(held, "held-out row" if doubted else "held-out normal row")
    if grouping is not None:
        held = calibration.n_units
        on = f"{counted(held, f'held-out {grouping.unit}')} of {on.replace('held-out ', '')}"
    if calibration.n_left_out:
        on += f", without {calibration.n_left_out:,} taken for anomalies"
    certainly = "" if confidence is None else f" with a confidence of {confidence:.4g}"
    if not model.rank:
        verb = "is" if held == 1 else "are"
        return f"none: {on} {verb} too few for false alarms at {rate:.2%}{certainly}"
    text = f"{rate:.2%} of new normal rows raise an alarm,{certainly or ' on average'}"
    text += f" (calibrated on {on})"
    if grouping is not None:
        text = text.replace("rows", f"rows of {grouping.promised}", 1)
        if grouping.edges and grouping.columns[0] is not None:
            text += f"; none for new groups, which takes {groups_needed(rate):,} groups or more"
    if model.promises_at_most:
        text = f"at most {text}"
    return f"{text}; fewer if some of these are anomalies" if doubted else text


def _interval(model: Model) -> dict[str, str]:
    """What luck may make of the promise in one model; nothing where there is none."""
    promise = model.promise.false_alarm_rate, model.promise.confidence
    if model.plan.holdout.grouping or not model.rank:
        return {}
    mean, low, high = model.calibration.interval(*promise)
    doubted = model.plan.labels.doubts_calibration
    ends = f"at most {high:.2%}" if doubted else f"{low:.2%} to {high:.2%}"
    average = "" if model.promise.confidence is None else f", {mean:.2%} on average"
    models = f"{100 * CONFIDENCE:g} of 100 models like this one"
    return {"interval": f"{ends} for {models}{average}"}


_FEW_ROWS = 100  # of which parts are shown
_GIVEN_APART = {
    "groups": "given apart from the table",
    "times": "by the order of rows, or given apart",
}
_SHOWN_ELSEWHERE = (
    *("normal", "false_alarm_rate", "confidence", "unseen_rate"),
    *("plan", "device", "config"),
)


def _groups(model: Model, counts: Mapping[str, int]) -> dict[str, str]:
    """Which columns say what rows belong together, and when; and what becomes of those of a fit."""
    grouping = model.plan.holdout.grouping
    if grouping is None:
        return {}
    columns = [
        f"{word} by column {name!r}" if name else f"{word} {otherwise}"
        for (word, otherwise), name in zip(_GIVEN_APART.items(), grouping.columns, strict=True)
        if name is not None
    ]
    shaping, held, between = divided_rows(model, counts)
    near = f", {between:,} too near to these in time are left out" * bool(between)
    line = f"{shaping:,} rows shape the score, {held:,} set the threshold{near}"
    learnt = ", not learnt" * any(grouping.columns)
    found = {"held out by": f"{grouping.unit}; {' and '.join(columns)}{learnt}"}
    return found | ({"divided": line} if shaping else {})


def _rows(model: Model) -> str:
    """How many rows of each kind the sums are over, by their weight, and how many are held out."""
    kinds = zip(map(shown_kind, (NORMAL, *model.kinds)), model.n_learnt.tolist(), strict=True)
    learnt = ", ".join(
        f"{round(weight, 2 if weight < _FEW_ROWS else 0):,.12g} {kind}" for kind, weight in kinds
    )
    rows = model.evidence.held_out
    held = {NORMAL: len(rows.normal), "anomalous": len(rows.anomalies)}
    return f"{learnt}; held out {format_counts({k: n for k, n in held.items() if n}) or 0}"


def _settings(detector: Detector) -> str:
    """The parameters of the fit that are not shown elsewhere, those that were set first."""
    config, params = detector.model_.config, detector.get_params(deep=False)
    given = {k: v for k, v in params.items() if k not in _SHOWN_ELSEWHERE}
    defaults = Detector().get_params(deep=False)
    order = sorted(given, key=lambda name: (given[name] == defaults[name], name))
    values = {k: getattr(config, k, None) if given[k] is None else given[k] for k in order}
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _names(model: Model) -> dict[str, str]:
    """How often rows of seen kinds may be called unseen, and kinds too rare for their own sets."""
    if not model.kinds:
        return {}
    rate, expected = model.promise.unseen_rate, model.namer.expected
    promise = f"{100 * rate:.4g}% of the rows of seen kinds may be called unseen"
    named = "" if expected is None else f"; {expected}"
    return {"names": f"{promise}{named}{_rare(model)}"}


_LABEL = opt(None, "COLUMN", "The column with the labels that the rows were learnt with.")
_SEEN_KIND = opt(None, "KIND", "Leave out rows of kinds other than this one; repeatable.")
_JUDGED = console.flag(
    "--judged", "Rows were judged because they raised an alarm: do not calibrate with them."
)
_RESULTS = ("row", "score", "p_value")  # of suspects


@options.reads_tables
def learn(
    model: Path = options.MODEL,
    spec: InputSpec = options.columns(
        label=options.LABEL, normal=options.NORMAL_HERE, seen=_SEEN_KIND
    ),
    out: Path = options.MODEL_OUT,
    judged: bool = _JUDGED,
    again: bool = options.AGAIN,
) -> None:
    """Teach a model more labelled rows; its landmarks do not change."""
    with print_warnings(), _changed("eqsep learn", model, spec, out=out) as (detector, table, y):
        if y is not None and not detector.plan_.labels.unlabelled_is_normal:
            inputs.check_some_label(y, name=str(spec.label))
        learned = learning.learn(detector.model_, table, y, judged=judged)
        warn_of(without_repeats(learned.findings, again=again))
        detector.with_model(learned.model)
        warn_of(learned.model.check_threshold())
    normal = " or ".join(spec.normal or inputs.normal_words(detector.model_)) or NORMAL
    print_summary(Screen(), detector, _counts(table, y), out, normal=normal)


@options.reads_tables
def forget(
    model: Path = options.MODEL,
    spec: InputSpec = options.columns(label=_LABEL, normal=options.NORMAL_HERE, seen=_SEEN_KIND),
    out: Path = options.MODEL_OUT,
    judged: bool = _JUDGED,
) -> None:
    """Make a model unlearn rows, as if it had never learnt them; its landmarks stay."""
    with print_warnings(), _changed("eqsep forget", model, spec, out=out) as (detector, table, y):
        inputs.check_labelled(detector.model_.evidence.labels, spec.label)
        detector.forget(table, y, judged=judged)
    normal = " or ".join(spec.normal or inputs.normal_words(detector.model_)) or NORMAL
    print_summary(Screen(), detector, {}, out, gone=_counts(table, y), normal=normal)


@contextmanager
def _changed(
    command: str, model: Path, spec: InputSpec, *, out: Path
) -> Iterator[tuple[Detector, Table, np.ndarray | None]]:
    """A model to change, with the rows of files and their labels; it is written afterwards."""
    spec.check()
    options.check_model_out(out, spec.paths)  # the model itself may learn on
    alone: AbstractContextManager[None] = nullcontext()
    if model.is_file() and model.resolve() == out.resolve():  # or another command's rows are lost
        wait = f"Note: {model} is being changed by another command: waiting for it."
        alone = changed_alone(model, on_wait=lambda: console.print_stderr(wait))
    with alone, progress(command, "reading") as job:
        detector = load_detector(model, rows=spec.paths)
        plan = detector.plan_
        spec = spec.grouped_like(plan)

        def choose(there: list[str]) -> list[str]:
            used = list(spec.columns(plan)(there))
            inputs.note_extra(detector.model_, there, used)
            return used

        rows, table = spec.read_like(plan, choose)
        rows = rows if plan.windows is None else plan.windows.transform(rows)
        y = spec.labels_for(detector.model_, table)
        if y is not None and spec.seen:  # as eqsep fit --seen leaves the others out
            texts = objects(None if label is None else str(label) for label in y)
            labels = LabelColumn(texts, normal_word(detector.model_), str(spec.label))
            kept = np.flatnonzero(labels.seen(spec.seen))
            rows, y = rows.take(kept), y[kept]
        job.phase("changing the model", rows.n_rows, "rows")
        yield detector, rows, y
        job.phase("writing")
        detector.save(out)


def _counts(rows: Table, y: np.ndarray | None) -> dict[str, int]:
    labels = [None] * rows.n_rows if y is None else y
    kinds = (WITHOUT if label is None else str(label) for label in labels)
    return dict(Counter(sorted(kinds, key=natural_order)))


@options.reads_tables
def suspects(
    model: Path = options.MODEL,
    spec: InputSpec = options.columns(label=_LABEL, normal=options.NORMAL_HERE),
    most: int = opt(20, "N", "Maximum number of rows to list."),
    out: str = options.TABLE_OUT,
    form: str | None = options.FORM,
) -> None:
    """List learnt rows that are likely to be unlabelled anomalies, for review."""
    spec.check()
    options.check_most(most)
    kind = output_format(out, form)
    check_table_out(out)
    check_not_read(out, [model, *files_of(spec.paths)])
    with print_warnings():
        detector = load_detector(model, rows=spec.paths)
        found = _suspects(detector, spec, most=most)
        with table_writer(out, kind) as write:
            write(shortened(found, kind))
    text = _listed(detector, found.num_rows)
    console.print_written(f"{text}." if out == "-" else text, out)


def _suspects(detector: Detector, spec: InputSpec, *, most: int) -> pa.Table:
    """The number, score and p-value of suspects among learnt rows, then the row as in its file."""
    plan, known = detector.plan_, detector.model_.evidence.labels
    inputs.check_labelled(known, spec.label)
    spec = spec.grouped_like(plan)
    rows, table = spec.read_like(plan, inputs.all_columns(plan, spec.not_learnt))
    taken = [name for name in table.schema.names if name in _RESULTS]
    if taken:
        raise UserError(f"Column {quoted(taken)} has the name of a result: rename it.")
    places = detecting.suspects(detector, rows, spec.labels_for(detector.model_, table), n=most)
    score = detector.score_samples(rows.take(places)) if len(places) else np.empty(0)
    values = (places + 1, score, detector.calibration_.p_value(score))
    results = dict(zip(_RESULTS, map(pa.array, values), strict=True))
    picked = table.take(pa.array(places, pa.int64()))
    return pa.table(results | {name: picked.column(name) for name in table.schema.names})


def _listed(detector: Detector, n: int) -> str:
    """How many rows are listed, of how many, and why if there are none."""
    held = len(detector.calibration_.scores)
    if n:
        return f"{counted(n, 'row')}, the highest score first, of {held:,} that were held out"
    if not detector.plan_.labels.unlabelled_is_normal:
        return (
            "No row to list: rows labelled normal set the threshold, and only rows without a "
            "label are suspects. To label more, look at the highest scores of new rows (eqsep "
            "score --most 20) and teach what you find with eqsep learn --judged"
        )
    return (
        "No row to list: none of these set the threshold without a label. Pass the rows that "
        "were learnt, with the labels that they had"
    )
