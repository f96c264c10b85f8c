"""`eqsep fit`, `learn`, `forget` and `merge`: from labelled rows to a model file."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from eqsep.arrays import objects
from eqsep.commands.console import counted, progress, tell, told_counts
from eqsep.commands.inputs import InputSpec
from eqsep.commands.label_columns import LabelColumn, check_labelled, check_some_label, y_for
from eqsep.commands.reading import check_not_read, load_detector
from eqsep.commands.training_data import (
    TrainingData,
    is_large,
    read_on_cluster,
    read_training_data,
)
from eqsep.commands.writing import check_model_out
from eqsep.detector import Detector, RepeatedRowsWarning
from eqsep.detector.calibration import CONFIDENCE
from eqsep.detector.holdout import groups_needed
from eqsep.detector.model import Model
from eqsep.detector.namer import rows_for
from eqsep.detector.plan import Plan
from eqsep.distributed import fit
from eqsep.distributed.cluster import check_no_windows, cluster
from eqsep.errors import UserError
from eqsep.files import changed_alone
from eqsep.labels import NORMAL, WITHOUT
from eqsep.report.learnt import trust_in
from eqsep.tables.reading import Table, text_of

_KINDS = {
    "number": "number",
    "duration": "duration",
    "text": "name",
    "boolean": "name",
    "date": "date",
}
_SAME = ("alpha", "unlabelled", "unlabelled_weight")  # of models that are to be merged
Say = Callable[[str], None]


def fit_files(
    spec: InputSpec, out: Path, settings: dict[str, Any], *, like: Path | None, ray: str | None
) -> tuple[Detector, TrainingData]:
    """Fit a detector to the rows of files and write it.

    Parameters
    ----------
    settings : dict
        Parameters of the detector.
    like : Path or None
        A model whose encoding and landmarks are used, so that both can be merged.
    ray : str or None
        The cluster whose processes read and learn the rows; else this one does.
    """
    check_model_out(out)
    _check_unlabelled(spec, settings, like=like)
    check_not_read(out, spec.paths if like is None else [*spec.paths, like])
    base = None if like is None else load_detector(like)
    plan = None if base is None else base.plan_
    _check_window(spec, plan, ray=ray)
    if base is None:
        settings = settings | {"window": spec.window}
    else:
        same = {name: getattr(base, name) for name in _SAME}
        settings = settings | same | {"plan": base.plan_}
        spec = spec.grouped_like(base.plan_)
    with progress("reading") as say:
        fit = _fit_here if ray is None else partial(_fit_on_cluster, address=ray)
        detector, data = fit(spec, plan, settings, say)
        say("writing")
        left_out = tuple(dict.fromkeys(spec.drop))  # for eqsep info, from the file
        detector = detector.with_model(replace(detector.model_, left_out=left_out))
        detector.save(out)
    return detector, data


def _check_unlabelled(spec: InputSpec, settings: dict[str, Any], *, like: Path | None) -> None:
    """Refuse a word on rows without a label where it would not be heard."""
    if settings["unlabelled"] == "auto":
        return
    if spec.label is None:
        raise UserError("--unlabelled speaks of labels: pass their column as --label.")
    if like is not None:
        raise UserError(
            f"--unlabelled and --like contradict each other: what such rows are taken for is said "
            f"by {like}. Leave out --unlabelled, or fit that model anew with it."
        )


def _check_window(spec: InputSpec, plan: Plan | None, *, ray: str | None) -> None:
    """Refuse windows that a model has settled, or that nobody could take."""
    has_windows = spec.window if plan is None else plan.windows
    if plan is not None and spec.window is not None:
        raise UserError(
            "--window and --like contradict each other: windows are those of that model. Leave out "
            "--window."
        )
    if ray is not None:
        check_no_windows(has_windows)
    if has_windows is not None and spec.seen and is_large(spec.paths):
        raise UserError(
            "--seen leaves rows out, and of files as large as these they are left out before "
            "windows are taken: leave out --seen, or pass files of less than 256 MB."
        )


def _fit_here(
    spec: InputSpec, like: Plan | None, settings: dict[str, Any], say: Say
) -> tuple[Detector, TrainingData]:
    data = read_training_data(spec, like, random_state=settings["random_state"])
    say(f"learning {counted(data.n_rows, 'row')}")
    return Detector(normal=data.normal, **settings).fit(data.rows, data.y), data


def _fit_on_cluster(
    spec: InputSpec, like: Plan | None, settings: dict[str, Any], say: Say, *, address: str
) -> tuple[Detector, TrainingData]:
    with cluster(address):
        data = read_on_cluster(spec, like, random_state=settings["random_state"])
        say(f"learning {counted(data.n_rows, 'row')}")
        return fit(data.rows, normal=data.normal, **settings), data


@contextmanager
def _repeats_refused(*, again: bool) -> Iterator[None]:
    """Refuse rows that were learnt before, unless they are to be learnt `again`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if again else "error", RepeatedRowsWarning)
        try:
            yield
        except RepeatedRowsWarning as found:
            raise UserError(found.message, hint=found.hint, topic=found.topic) from found


def learn_files(
    model: Path, spec: InputSpec, *, out: Path, again: bool = False, judged: bool = False
) -> tuple[Detector, dict[str, int]]:
    """Teach a model more labelled rows and write what it knows then; the rows of each kind.

    Parameters
    ----------
    again : bool
        Whether rows may be learnt that were learnt before.
    judged : bool
        Whether rows were judged because they raised an alarm, so that none calibrates.
    """

    def learn(detector: Detector, rows: Table, y: np.ndarray | None) -> None:
        if y is not None and not detector.plan_.labels.unlabelled_is_normal:
            check_some_label(y, name=str(spec.label))
        with _repeats_refused(again=again):
            detector.partial_fit(rows, y, judged=judged)

    return _changed(model, spec, learn, out=out)


def forget_files(
    model: Path, spec: InputSpec, *, out: Path, judged: bool = False
) -> tuple[Detector, dict[str, int]]:
    """Let a model unlearn rows, with the labels they had, and write what it knows then."""

    def forget(detector: Detector, rows: Table, y: np.ndarray | None) -> None:
        check_labelled(detector.model_.evidence.labels, spec.label)
        detector.forget(rows, y, judged=judged)

    return _changed(model, spec, forget, out=out)


def _changed(
    model: Path,
    spec: InputSpec,
    change: Callable[[Detector, Table, np.ndarray | None], None],
    *,
    out: Path,
) -> tuple[Detector, dict[str, int]]:
    """The model when rows of files have changed it, written, and the rows of each kind."""
    check_model_out(out)
    check_not_read(out, spec.paths)  # the model itself may learn on
    with _alone(model, out), progress("reading") as say:
        detector = load_detector(model, rows=spec.paths)
        plan, known = detector.plan_, detector.model_.evidence.labels
        spec = spec.grouped_like(plan)
        (rows, column), y = spec.read_like(plan), None
        if column is not None:
            y = y_for(known, column, name=str(spec.label), **spec.told)
            if spec.seen:
                rows, y = _of_seen(rows, y, detector, spec)
        say(counted(rows.n_rows, "row"))
        change(detector, rows, y)
        detector.save(out)
    labels = [None] * rows.n_rows if y is None else y
    return detector, dict(Counter(sorted(WITHOUT if k is None else str(k) for k in labels)))


def _alone(model: Path, out: Path) -> AbstractContextManager[None]:
    """Let nobody else change a model that is to be replaced: what he learns would be lost."""
    if not model.is_file() or model.resolve() != out.resolve():
        return nullcontext()
    wait = f"Note: {model} is being changed by another command: waiting for it."
    return changed_alone(model, on_wait=lambda: tell(wait))


def _of_seen(
    rows: Table, y: np.ndarray, detector: Detector, spec: InputSpec
) -> tuple[Table, np.ndarray]:
    """Rows but those of kinds that are not to be seen, as `eqsep fit --seen` leaves them out."""
    labels = LabelColumn(
        objects(None if label is None else str(label) for label in y),
        _normal_word(detector.model_),
        str(spec.label),
    )
    kept = np.flatnonzero(labels.seen(spec.seen))
    return rows.take(kept), y[kept]


def _normal_word(model: Model) -> str:
    """What a model calls normal rows."""
    labels = model.evidence.labels.labels
    return NORMAL if labels is None else text_of(labels.classes[0])


def merge_models(models: Sequence[Path], out: Path, *, again: bool = False) -> Detector:
    """Put together what several models have learnt, each from rows of its own."""
    check_model_out(out)
    if len(models) < 2:
        raise UserError(f"Merging takes two models or more, got {len(models)}.")
    check_not_read(out, models)
    first, *others = (load_detector(path) for path in models)
    for path, other in zip(models[1:], others, strict=True):
        if not first.plan_.is_same(other.plan_):
            raise UserError(
                f"{models[0]} and {path} have not the same encoding and landmarks, so they cannot "
                f"be merged. Fit the second with eqsep fit … --like {models[0]}."
            )
        with _repeats_refused(again=again):
            first.merge(other)
    first.save(out)
    return first


def tell_fitted(
    console: Console,
    detector: Detector,
    counts: Mapping[str, int],
    out: Path,
    *,
    gone: Mapping[str, int] | None = None,
) -> None:
    """The summary of a model, at the end of a fit with the number of rows of each kind.

    Rows that were forgotten are `gone`.
    """
    model = detector.model_
    normal = _normal_word(model)
    lines = {"rows": _by_kind(counts), "forgotten": _by_kind(gone or {})}
    lines = {name: text for name, text in lines.items() if text}
    lines |= {
        "columns": _columns(model),
        "seen kinds": (", ".join(sorted(model.kinds)) or "none") + _rare(model) * bool(counts),
        "normal": trust_in(detector, counts, normal=normal),
        "threshold": f"{model.threshold:.3f}",
        "promise": _promise(model),
        **_interval(model),
        "model": f"{out} ({out.stat().st_size / 1e6:.1f} MB)",
    }
    for name, text in lines.items():
        console.print(f"{name:11} {text}", markup=False, soft_wrap=True)


def _by_kind(counts: Mapping[str, int]) -> str:
    """How many rows there are, and of each kind; nothing where there is none."""
    return f"{sum(counts.values()):,}: {told_counts(counts)}" if counts else ""


def _rare(model: Model) -> str:
    """The kinds with too few rows for the promise of names, the rarest first; if there are any."""
    rate, grouping = model.promise.unseen_rate, model.plan.holdout.grouping
    short = sorted(model.namer.short_kinds(rate).items(), key=lambda kind: (kind[1], kind[0]))
    if not short or not model.namer.has_promise:  # that of an older file is without for all kinds
        return ""
    unit = "row" if grouping is None else grouping.unit
    few = ", ".join(f"{kind} ({n:,})" for kind, n in short[:3])
    more = f" and {len(short) - 3} more" * (len(short) > 3)
    needed = counted(rows_for(rate), unit)
    return f"; names without a promise, which takes {needed}: {few}{more}"


def _columns(model: Model) -> str:
    """How many columns of each kind are used, and which were left out."""
    encoder, windows = model.plan.encoder, model.plan.windows
    learnt = (column for column in model.plan.table_columns.values() if column)
    kinds = Counter(_KINDS[column.reads] for column in learnt)
    shown = ", ".join(
        counted(kinds[kind], kind) for kind in dict.fromkeys(_KINDS.values()) if kinds[kind]
    )
    left_out = [*encoder.dropped, *model.left_out]
    text = f"{kinds.total()}: {shown}" + f"; without {', '.join(left_out)}" * bool(left_out)
    if windows is not None:
        text += f"; of {len(windows.windowed)} also mean, deviation and slope of {windows.length} "
        text += "rows, and change"
    return text


def _promise(model: Model) -> str:
    calibration, grouping = model.calibration, model.plan.holdout.grouping
    rate, confidence = model.promise.false_alarm_rate, model.promise.confidence
    held, doubted = len(calibration.scores) - calibration.n_left_out, _is_doubted(model)
    by = counted(held, "held-out row" if doubted else "held-out normal row")
    if grouping is not None:
        held = calibration.n_units
        by = f"{counted(held, f'held-out {grouping.unit}')} of {by.replace('held-out ', '')}"
    if calibration.n_left_out:
        by += f" beside {calibration.n_left_out:,} taken for anomalies"
    certainly = "" if confidence is None else f" with a confidence of {confidence:.4g}"
    if not calibration.rank(rate, confidence):
        verb = "is" if held == 1 else "are"
        return f"none: {by} {verb} too few for false alarms at {rate:.2%}{certainly}"
    text = f"{rate:.2%} of new normal rows raise an alarm,{certainly or ' on average'} (by {by})"
    if grouping is not None:
        text = text.replace("rows", f"rows of {grouping.promised}", 1)
        if grouping.edges and grouping.columns[0] is not None:
            text += f"; nothing of new groups, which takes {groups_needed(rate):,} groups or more"
    if doubted or certainly or grouping is not None:
        text = f"at most {text}"
    return f"{text}; fewer, the more of these are anomalies" if doubted else text


def _interval(model: Model) -> dict[str, str]:
    """What luck may make of the promise in one model; nothing where there is none."""
    promise = model.promise.false_alarm_rate, model.promise.confidence
    if model.plan.holdout.grouping or not model.calibration.rank(*promise):
        return {}
    mean, low, high = model.calibration.interval(*promise)
    ends = f"at most {high:.2%}" if _is_doubted(model) else f"{low:.2%} to {high:.2%}"
    average = "" if model.promise.confidence is None else f", {mean:.2%} on average"
    models = f"{100 * CONFIDENCE:g} of 100 models like this one"
    return {"interval": f"{ends} for {models}{average}"}


def _is_doubted(model: Model) -> bool:
    return model.plan.labels.doubts_calibration
