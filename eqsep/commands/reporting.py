"""`eqsep fit --report`: what was learnt, and what a second fit finds among rows it never saw."""

import warnings as python_warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from eqsep.commands.fitting import Fitted
from eqsep.commands.labelled import Labelled
from eqsep.commands.labelling import Labels
from eqsep.commands.models import check_folder
from eqsep.commands.parts import is_large
from eqsep.commands.reading import check_not_read, files_of
from eqsep.commands.text_files import STANDARD_INPUT
from eqsep.detector import Detector
from eqsep.errors import UserError
from eqsep.report import HeldOut, Usage, detector_report, write_report
from eqsep.tables.reading import Table

_HELD = 0.3  # the share of each kind that is kept from the second detector
_MOST_NORMAL, _MOST_OF_A_KIND = 20_000, 5_000
_NUMBERS = {"0": "normal", "1": "anomaly"}  # as a detector calls them


def check_report_out(
    path: Path | None, reads: Sequence[str | Path], *, beside: Path | None = None
) -> None:
    """Refuse before the work, not after it, a place where no report can be written."""
    if path is None:
        return
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no file: pass the name of a file for the report.")
    if beside is not None and path.resolve() == beside.resolve():
        raise UserError(f"--report and --out are both {path}: pass two names.")
    check_folder(path)
    check_not_read(path, reads)


def report_fit(
    data: Labelled, fitted: Fitted, model: Path, path: Path, *, warnings: Sequence[str]
) -> None:
    """Measure on rows held out of a second fit, and write the report of the first."""
    known = _known_rows(data, fitted)
    held = _held_out(fitted.detector, known)
    shown = {_called(kind, fitted.labels): n for kind, n in fitted.counts.items()}
    report = detector_report(
        fitted.detector,
        held,
        counts=shown,
        title=f"Anomalies in {', '.join(Path(name).name for name in data.paths)}",
        warnings=warnings,
        usage=Usage(model=str(model), label=data.label or "kind"),
    )
    asked = dict.fromkeys(fitted.dropped, "by --drop")
    learnt = replace(report.learnt, dropped=report.learnt.dropped | asked)
    write_report(replace(report, learnt=learnt), path)


@dataclass(frozen=True)
class _Known:
    """Rows and their kinds, None where there is no label.

    Attributes
    ----------
    y : ndarray or None
        Labels as a detector takes them.
    numbered : bool
        Whether rows are in the order of the files, and none is left out.
    all_rows : bool
        Whether they are all the rows there are.
    """

    table: Table
    kind: np.ndarray
    normal: str
    y: np.ndarray | None
    numbered: bool
    all_rows: bool


def _known_rows(data: Labelled, fitted: Fitted) -> _Known:
    """The rows of the fit, and those of unseen kinds where the files can be read once more."""
    assert fitted.first is not None  # a fit keeps them
    table, labels = fitted.first, fitted.labels
    large = is_large(data.paths)
    again = not large and STANDARD_INPUT not in files_of(data.paths)
    if data.seen and again and fitted.detector.feature_map is None:
        table, labels = replace(data, seen=()).read()
    numbered = not large and (again or not data.seen)
    kind, normal, y = _kinds(labels, table.n_rows)
    if fitted.detector.one_class_:  # rows without a label are the normal ones
        kind = np.where(kind == None, normal, kind)  # noqa: E711  one by one
    return _Known(table, kind, normal, y, numbered, all_rows=not large)


def _kinds(labels: Labels | None, n_rows: int) -> tuple[np.ndarray, str, np.ndarray | None]:
    """What a detector calls the kind of each row, the normal one, and its labels."""
    if labels is None:
        return np.full(n_rows, "normal", dtype=object), "normal", None
    kind = np.array([t if t is None else _called(t, labels) for t in labels.texts], dtype=object)
    return kind, _called(labels.normal, labels), labels.y


def _called(text: str, labels: Labels | None) -> str:
    """What a label is called on the page: a kind by its name, 0 and 1 in words."""
    if labels is not None and labels.are_numbers:
        return _NUMBERS.get(text, text)
    return text


def _held_out(detector: Detector, known: _Known) -> HeldOut:
    """A part of the rows, and a second detector that has learnt the others."""
    unseen = sorted({k for k in known.kind if k not in (None, known.normal, *detector.kinds_)})
    test = _chosen(known.kind, unseen, normal=known.normal)
    train = np.flatnonzero(~test & ~np.isin(known.kind.astype(str), unseen))
    rows = np.flatnonzero(test)
    trial = Detector(**detector.get_params(deep=False))
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore")  # said of the first fit already
        trial.fit(known.table.take(train), None if known.y is None else known.y[train])
    return HeldOut(
        known.table.take(rows),
        known.kind[rows].astype(str),
        normal=known.normal,
        names=_row_names(detector, known, rows),
        detector=trial,
        usual=known.table.take(np.flatnonzero(known.kind == known.normal)),
        note=_note(known, trial, n_train=len(train), n_test=len(rows), unseen=unseen),
    )


def _chosen(kind: np.ndarray, unseen: Sequence[str], *, normal: str) -> np.ndarray:
    """Which rows are held out: a share of each kind, and all of those that were not shown."""
    rng = np.random.default_rng(0)
    test = np.zeros(len(kind), dtype=bool)
    for name in sorted({k for k in kind if k is not None}):
        rows = rng.permutation(np.flatnonzero(kind == name))
        share = 1.0 if name in unseen else _HELD
        most = _MOST_NORMAL if name == normal else _MOST_OF_A_KIND
        least = 1 if name == normal else 0
        test[rows[: min(max(int(share * len(rows)), least), most)]] = True
    return test


def _row_names(detector: Detector, known: _Known, rows: np.ndarray) -> list[str]:
    """By an id, where a column holds ids; else by the number in the files, where it is known."""
    ids = [c for c in known.table.columns if c.name in detector.feature_map_.encoder.dropped_]
    if ids and len(ids[0].values):
        texts = ids[0].texts()
        return [f"{ids[0].name} {texts[i]}" for i in rows]
    return [f"row {i + 1:,}" if known.numbered else "a held-out row" for i in rows.tolist()]


def _note(
    known: _Known, trial: Detector, *, n_train: int, n_test: int, unseen: Sequence[str]
) -> str:
    whole = "rows" if known.all_rows else "rows that were drawn first, as the files are large,"
    text = (
        f"Measured on {n_test:,} held-out {whole} by a second detector that was fitted alike to "
        f"{n_train:,} others; its threshold is {trial.threshold_:.3f}. The model itself has learnt "
        f"all rows: more than what is measured here."
    )
    if unseen:
        text += f" The kinds that were not shown, {', '.join(unseen)}, are in the test alone."
    return text
