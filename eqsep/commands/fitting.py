"""`eqsep fit`, `learn`, `merge` and `export`: from labelled rows to a model file."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from eqsep.commands.columns import check_numbers, counters, giveaways
from eqsep.commands.labelling import Labels, read_labels, y_for
from eqsep.commands.models import check_model_out, labelled_rows, load_detector, model_rows
from eqsep.commands.reading import whole
from eqsep.commands.telling import listed
from eqsep.commands.text_files import Layout
from eqsep.detector import Detector
from eqsep.tables.reading import Table, read_table


@dataclass(frozen=True)
class Labelled:
    """Which files hold the rows, and what their columns are.

    Attributes
    ----------
    label : str or None
        The column of labels; without one all rows are normal.
    normal : str or None
        The label of normal rows.
    seen : sequence of str
        The kinds of anomaly to learn; rows of others are left out. Nothing is all of them.
    drop, names : sequence of str
        Columns that are left out, and columns that hold names whatever they look like.
    """

    paths: Sequence[str]
    layout: Layout
    label: str | None = None
    normal: str | None = None
    seen: Sequence[str] = ()
    drop: Sequence[str] = ()
    names: Sequence[str] = ()

    def read(self, like: Detector | None = None) -> tuple[Table, Labels | None]:
        """The rows without what is left out, and their labels; read `like` a model, or anew."""
        self._check()
        if like is None:
            table, column = self._inferred()
            rows = read_table(table, name="Detector")
        elif self.label is None:
            rows, column = model_rows(self.paths, like, layout=self.layout), None
        else:
            rows, column = labelled_rows(self.paths, self.label, like, layout=self.layout)
        if self.label is None or column is None:
            return rows, None
        labels = read_labels(column, name=self.label, normal=self.normal)
        if self.seen:
            kept = np.flatnonzero(labels.seen(self.seen))
            return rows.take(kept), Labels(labels.texts[kept], labels.normal, labels.column)
        return rows, labels

    def _check(self) -> None:
        if self.label is None and (self.normal is not None or self.seen):
            raise ValueError("--normal and --seen speak of labels: pass their column as --label.")
        if self.label in (*self.drop, *self.names):
            raise ValueError(
                f"Column {self.label!r} holds the labels: it is not to --drop or name."
            )
        both = [name for name in self.names if name in self.drop]
        if both:
            raise ValueError(f"Column {listed(both)} cannot be both --names and --drop.")

    def _inferred(self) -> tuple[pa.Table, pa.ChunkedArray | None]:
        texts = [*self.names, *([] if self.label is None else [self.label])]
        table = whole(self.paths, layout=self.layout, as_text=texts, but=self.drop)
        labels = None
        if self.label is not None:
            labels = table.column(self.label)
            table = table.drop_columns([self.label])
        check_numbers(table, names=self.names)
        for name in self.names:
            column = table.column(name)
            if not pa.types.is_dictionary(column.type):
                place = table.schema.get_field_index(name)
                table = table.set_column(place, name, column.dictionary_encode())
        return table, labels


@dataclass(frozen=True)
class Fitted:
    """A fitted detector, the rows of each kind it has learnt, and what to look at."""

    detector: Detector
    counts: dict[str, int]
    warnings: list[str]


def fit_files(data: Labelled, out: Path, settings: dict[str, Any], *, like: Path | None) -> Fitted:
    """Fit a detector to the rows of files and write it.

    Parameters
    ----------
    settings : dict
        Parameters of the detector.
    like : Path or None
        A model whose encoding and landmarks are used, so that both can be merged.
    """
    check_model_out(out)
    base = None if like is None else load_detector(like)
    with _step("reading") as say:
        rows, labels = data.read(base)
        found = counters(rows) + ([] if labels is None else giveaways(rows, labels))
        say(f"learning {rows.n_rows:,} rows")
        detector = Detector(
            normal=None if labels is None or labels.are_numbers else labels.normal, **settings
        )
        if base is not None:
            same = {name: getattr(base, name) for name in ("alpha", "unlabelled_weight")}
            detector.set_params(feature_map=base.feature_map_, **same)
        detector.fit(rows, None if labels is None else labels.y)
        say("writing")
        detector.save(out)
    counts = {"normal": rows.n_rows} if labels is None else labels.counts
    return Fitted(detector, counts, found)


def learn_files(
    model: Path, paths: Sequence[str], label: str, *, layout: Layout, out: Path
) -> Fitted:
    """Teach a model more labelled rows and write what it knows then."""
    check_model_out(out)
    detector = load_detector(model)
    with _step("reading") as say:
        rows, column = labelled_rows(paths, label, detector, layout=layout)
        y = y_for(detector, column, name=label)
        say(f"learning {rows.n_rows:,} rows")
        detector.partial_fit(rows, y)
        detector.save(out)
    names = ["without a label" if text is None else str(text) for text in y]
    kinds, counts = np.unique(names, return_counts=True)
    return Fitted(detector, dict(zip(kinds.tolist(), counts.tolist(), strict=True)), [])


def merge_models(models: Sequence[Path], out: Path) -> Detector:
    """Put together what several models have learnt, each from rows of its own."""
    check_model_out(out)
    if len(models) < 2:
        raise ValueError(f"Merging takes two models or more, got {len(models)}.")
    first, *others = (load_detector(path) for path in models)
    for path, other in zip(models[1:], others, strict=True):
        if not first.feature_map_.is_same(other.feature_map_):
            raise ValueError(
                f"{models[0]} and {path} have not the same encoding and landmarks, so they cannot "
                f"be merged. Fit the second with eqsep fit … --like {models[0]}."
            )
        first.merge(other)
    first.save(out)
    return first


def tell_fitted(console: Console, fitted: Fitted, out: Path) -> None:
    """The summary at the end of a fit."""
    detector, counts = fitted.detector, fitted.counts
    encoder = detector.feature_map_.encoder
    used = encoder.n_features_in_ - len(encoder.dropped_)
    held = len(detector.calibration_.scores)
    rate = detector.false_alarm_rate
    lines = {
        "rows": f"{sum(counts.values()):,}: "
        + ", ".join(f"{n:,} {kind}" for kind, n in counts.items()),
        "columns": f"{used}"
        + (f", without {', '.join(encoder.dropped_)}" * bool(encoder.dropped_)),
        "seen kinds": ", ".join(sorted(detector.kinds_)) or "none",
        "threshold": f"{detector.threshold_:.3f}",
        "promise": _promise(rate, detector.calibration_.least_rate, held),
        "model": f"{out} ({out.stat().st_size / 1e6:.1f} MB)",
    }
    for name, text in lines.items():
        console.print(f"{name:11} {text}", markup=False, soft_wrap=True)


def _promise(rate: float, least: float, held: int) -> str:
    if least > rate + 1e-12:
        return f"none: {held:,} held-out normal rows are too few for false alarms at {rate:.2%}"
    return (
        f"{rate:.2%} of new normal rows raise an alarm, on average (by {held:,} held-out normal "
        f"rows)"
    )


@contextmanager
def _step(first: str) -> Iterator[Callable[[str], None]]:
    """What is being done, on the screen, where there is one."""
    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(first, total=None)
        yield lambda text: bar.update(task, description=text)
