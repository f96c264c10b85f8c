"""`eqsep fit`, `learn`, `merge` and `export`: from labelled rows to a model file."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from eqsep.commands.columns import counters, decimal_commas, giveaways
from eqsep.commands.console import Screen, counted
from eqsep.commands.dates import dates_learnt
from eqsep.commands.labelled import Labelled
from eqsep.commands.labelling import WITHOUT, Labels, odd_labels, y_for
from eqsep.commands.models import check_model_out, labelled_rows, load_detector
from eqsep.commands.parts import read_divided, read_parts
from eqsep.commands.reading import check_not_read
from eqsep.commands.text_files import Layout
from eqsep.detector import Detector
from eqsep.distributed import fit
from eqsep.distributed.cluster import cluster
from eqsep.errors import UserError
from eqsep.tables.reading import Table

_KINDS = {
    "number": "number",
    "duration": "duration",
    "text": "name",
    "boolean": "name",
    "date": "date",
}
_HIGH = 0.97  # a threshold above which little is left for anomalies


@dataclass(frozen=True)
class Fitted:
    """A fitted detector, the rows of each kind it has learnt, and what to look at.

    Attributes
    ----------
    first : Table or None
        Rows that it has learnt: all of them, or those it began with; None where it learnt on.
    labels : Labels or None
        Theirs.
    dropped : sequence of str
        Columns that were left out as asked; the detector knows those it left out itself.
    """

    detector: Detector
    counts: dict[str, int]
    warnings: list[str]
    first: Table | None = None
    labels: Labels | None = None
    dropped: Sequence[str] = ()


def fit_files(
    data: Labelled, out: Path, settings: dict[str, Any], *, like: Path | None, ray: str | None
) -> Fitted:
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
    check_not_read(out, data.paths if like is None else [*data.paths, like])
    base = None if like is None else load_detector(like)
    read = read_parts if ray is None else read_divided
    with _step("reading") as say, nullcontext() if ray is None else cluster(ray):
        parts = read(data, base, random_state=settings["random_state"])
        labels = parts.labels
        found = counters(parts.first) + decimal_commas(parts.first, names=data.names)
        if labels is not None:
            found += giveaways(parts.first, labels) + odd_labels(parts.counts)
        say(f"learning {counted(parts.n_rows, 'row')}")
        detector = Detector(normal=parts.normal, **settings)
        if base is not None:
            same = {name: getattr(base, name) for name in ("alpha", "unlabelled_weight")}
            detector.set_params(feature_map=base.feature_map_, **same)
        if ray is None:
            detector.fit(parts.rows, parts.y)
        else:
            detector = fit(parts.rows, **detector.get_params(deep=False))
        say("writing")
        detector.save(out)
    found += dates_learnt(detector, parts.first) + _far_normal_rows(detector)
    return Fitted(detector, parts.counts, found, parts.first, labels, data.drop)


def _far_normal_rows(detector: Detector) -> list[str]:
    """A sentence where the threshold is so high that anomalies hardly get above it."""
    if detector.threshold_ < _HIGH:
        return []
    return [
        f"The threshold, {detector.threshold_:.3f}, is near 1, which is the score of rows that are "
        f"far from everything: so far out lie more than {detector.false_alarm_rate:.2%} of the "
        f"normal rows. Few anomalies will raise an alarm. Leave out columns of codes or ids with "
        f"--drop, take more --landmarks, or allow a higher --false-alarm-rate."
    ]


def learn_files(
    model: Path, paths: Sequence[str], label: str, *, layout: Layout, out: Path
) -> Fitted:
    """Teach a model more labelled rows and write what it knows then."""
    check_model_out(out)
    check_not_read(out, paths)  # the model itself may learn on
    detector = load_detector(model, rows=paths)
    with _step("reading") as say:
        rows, column = labelled_rows(paths, label, detector, layout=layout)
        y = y_for(detector, column, name=label)
        known = [str(kind) for kind in (detector.normal, *detector.kinds_) if kind is not None]
        say(f"learning {counted(rows.n_rows, 'row')}")
        detector.partial_fit(rows, y)
        detector.save(out)
    counts = Counter(sorted(WITHOUT if text is None else str(text) for text in y))
    return Fitted(detector, dict(counts), odd_labels(counts, known=known))


def merge_models(models: Sequence[Path], out: Path) -> Detector:
    """Put together what several models have learnt, each from rows of its own."""
    check_model_out(out)
    if len(models) < 2:
        raise UserError(f"Merging takes two models or more, got {len(models)}.")
    check_not_read(out, models)
    first, *others = (load_detector(path) for path in models)
    for path, other in zip(models[1:], others, strict=True):
        if not first.feature_map_.is_same(other.feature_map_):
            raise UserError(
                f"{models[0]} and {path} have not the same encoding and landmarks, so they cannot "
                f"be merged. Fit the second with eqsep fit … --like {models[0]}."
            )
        first.merge(other)
    first.save(out)
    return first


def tell_fitted(console: Console, fitted: Fitted, out: Path) -> None:
    """The summary at the end of a fit."""
    detector, counts = fitted.detector, fitted.counts
    held = len(detector.calibration_.scores)
    rate = detector.false_alarm_rate
    lines = {
        "rows": f"{sum(counts.values()):,}: "
        + ", ".join(f"{n:,} {kind}" for kind, n in counts.items()),
        "columns": _columns(fitted),
        "seen kinds": ", ".join(sorted(detector.kinds_)) or "none",
        "threshold": f"{detector.threshold_:.3f}",
        "promise": _promise(rate, detector.calibration_.least_rate, held),
        "model": f"{out} ({out.stat().st_size / 1e6:.1f} MB)",
    }
    for name, text in lines.items():
        console.print(f"{name:11} {text}", markup=False, soft_wrap=True)


def _columns(fitted: Fitted) -> str:
    """How many columns of each kind are used, and which were left out."""
    encoder = fitted.detector.feature_map_.encoder
    kinds = Counter(_KINDS[learnt.reads] for learnt in encoder.columns_ if learnt is not None)
    shown = ", ".join(
        counted(kinds[kind], kind) for kind in dict.fromkeys(_KINDS.values()) if kinds[kind]
    )
    left_out = [*encoder.dropped_, *fitted.dropped]
    return f"{kinds.total()}: {shown}" + f"; without {', '.join(left_out)}" * bool(left_out)


def _promise(rate: float, least: float, held: int) -> str:
    by = counted(held, "held-out normal row")
    if least > rate + 1e-12:
        verb = "is" if held == 1 else "are"
        return f"none: {by} {verb} too few for false alarms at {rate:.2%}"
    return f"{rate:.2%} of new normal rows raise an alarm, on average (by {by})"


@contextmanager
def _step(first: str) -> Iterator[Callable[[str], None]]:
    """What is being done, on the screen, where there is one."""
    console = Screen(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(first, total=None)
        yield lambda text: bar.update(task, description=text)
