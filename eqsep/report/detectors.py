"""The report of a detector: all parts of it, as records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.detector import ColumnClosedness, Detector, closedness_by_column
from eqsep.errors import UserError
from eqsep.labels import WITHOUT
from eqsep.report.alarms import Alarm, top_alarms
from eqsep.report.learnt import Learnt, learnt_by
from eqsep.report.measured import Measured, measured_on
from eqsep.tables.reading import read_table

_SEVERAL = 3  # columns that others drown: worth a warning
_MOST_VARIED = 5_000  # normal rows whose range is taken


@dataclass(frozen=True)
class HeldOut:
    """Rows that a detector has not learnt, and their kinds.

    Attributes
    ----------
    X : table
    kind : array-like of str
        The kind of each row.
    normal : str, default="normal"
        The label of the normal rows; the page calls them "normal", and says once what they are
        labelled.
    doubted : bool, default=False
        Whether these may be anomalies that nobody has noticed, as rows without a label may: then
        alarms among them need not be false ones.
    names : sequence of str or None
        What each row is called; by default its number.
    detector : Detector or None
        The one that is measured on them; by default that of the report.
    note : str
        Which rows they are, in a sentence or two.
    usual : table or None
        More normal rows, learnt or not: what is far out is measured by their range. By default
        the normal ones among `X`.
    """

    X: Any
    kind: Any
    normal: str = "normal"
    doubted: bool = False
    names: Sequence[str] | None = None
    detector: Detector | None = None
    note: str = ""
    usual: Any = None


@dataclass(frozen=True)
class Usage:
    """How the model is used from here on: its file, a file of new rows, the column of labels."""

    model: str = "model.eqsep"
    rows: str = "new.csv"
    label: str = "kind"


@dataclass(frozen=True)
class DetectorReport:
    """All that the page of a detector shows.

    Attributes
    ----------
    title : str
    learnt : Learnt
    measured : Measured or None
        None where no row was held out.
    note : str
        Which rows were measured on.
    alarms : tuple of Alarm
        Among the held-out rows.
    closedness : tuple of ColumnClosedness
    warnings : tuple of str
        What to look at in the data.
    usage : Usage
    """

    title: str
    learnt: Learnt
    measured: Measured | None
    note: str
    alarms: tuple[Alarm, ...]
    closedness: tuple[ColumnClosedness, ...]
    warnings: tuple[str, ...]
    usage: Usage

    template = "detector.html.jinja"


def detector_report(
    detector: Detector,
    held: HeldOut,
    *,
    counts: Mapping[str, int] | None = None,
    title: str = "A detector of anomalies",
    warnings: Sequence[str] = (),
    usage: Usage | None = None,
) -> DetectorReport:
    """Measure a fitted detector on held-out rows, and gather what there is to tell of it.

    Parameters
    ----------
    detector : Detector
    held : HeldOut
        Normal rows among them; kinds of anomaly are measured where there are any.
    counts : mapping of str to int, default=None
        How many rows of each kind were learnt, where that is known.
    title : str
    warnings : sequence of str
        What to look at in the data.
    usage : Usage, default=None
        For the lines that show how to go on.

    Examples
    --------
    >>> from eqsep import Detector
    >>> from eqsep.datasets import make_mixed_demo
    >>> old, new = (make_mixed_demo(n_samples=600, random_state=seed) for seed in (0, 1))
    >>> detector = Detector(n_landmarks=50, false_alarm_rate=0.05, random_state=0)
    >>> report = detector_report(detector.fit(old.X, old.kind), HeldOut(new.X, new.kind))
    >>> report.measured.together["seen"].rows, len(report.closedness)
    (60, 10)
    """
    table = read_table(held.X, name="detector_report")
    kind = np.asarray(held.kind).astype(str)
    names = held.names or [f"row {i:,}" for i in range(1, table.n_rows + 1)]
    normal = np.flatnonzero(kind == held.normal)
    if not len(normal):
        raise UserError(
            f"A report measures false alarms, and no held-out row is {held.normal!r}: the kinds "
            f"are {sorted(set(kind.tolist()))}. Say which is the normal one: normal=..."
        )
    word = held.normal if "normal" in kind else "normal"  # unless another kind has that name
    counts = {word if name == held.normal else name: n for name, n in (counts or {}).items()}
    learnt = learnt_by(detector, normal=held.normal, counts=counts)
    if held.doubted:
        word = learnt.doubted or WITHOUT
    kind = np.where(kind == held.normal, word, kind)
    trial = held.detector or detector
    usual = table.take(normal) if held.usual is None else read_table(held.usual, name="usual")
    varied = np.random.default_rng(0).permutation(usual.n_rows)[:_MOST_VARIED]
    closedness = closedness_by_column(detector, usual.take(varied))
    return DetectorReport(
        title=title,
        learnt=learnt,
        measured=measured_on(trial, table, kind, normal=word, doubted=held.doubted),
        note=held.note,
        alarms=top_alarms(trial, table, kind, names=names),
        closedness=closedness,
        warnings=(*warnings, *_caution(detector, warnings), *_drowned(closedness)),
        usage=usage or Usage(),
    )


def _caution(detector: Detector, warnings: Sequence[str]) -> list[str]:
    """What the fit has found that breaks the promise, unless it is among the warnings."""
    caution = detector.caution_
    if caution is None or any(caution.message in warning for warning in warnings):
        return []
    return [f"{caution.message} {caution.option}"]


def _drowned(closedness: Sequence[ColumnClosedness]) -> list[str]:
    """A sentence where several columns of numbers are drowned by the others."""
    names = [column.column for column in closedness if column.is_drowned]
    if len(names) < _SEVERAL:
        return []
    return [
        f"In {len(names)} columns ({', '.join(names)}) one strange value alone raises an alarm "
        f"only far beyond those of normal rows, or never: the other columns drown it. Leave out "
        f"columns that have no part in what goes wrong, such as ids, operators' names or dates, "
        f"with --drop COLUMN."
    ]
