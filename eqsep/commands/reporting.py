"""`eqsep fit --report`: what was learnt, and what a second fit finds among rows it never saw."""

import warnings as python_warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from eqsep.checks import Finding, check_columns
from eqsep.commands.inputs import InputSpec
from eqsep.commands.label_columns import LabelColumn
from eqsep.commands.reading import files_of
from eqsep.commands.streams import STANDARD_INPUT
from eqsep.commands.training_data import TrainingData, is_large
from eqsep.commands.wording import in_command
from eqsep.detector import Detector
from eqsep.detector.holdout import Grouping
from eqsep.errors import UserError
from eqsep.labels import NORMAL
from eqsep.report import HeldOut, Usage, detector_report, write_report
from eqsep.report.measured import LaterRows
from eqsep.tables.reading import RowGroups, Table

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
    warnings: Sequence[str],
) -> None:
    """Write the report of a fit, measured on rows that are held out of a second one."""
    known = _known_rows(spec, detector, data)
    report = detector_report(
        detector,
        _held_out(detector, known),
        counts={_called(kind, data.labels): n for kind, n in data.counts.items()},
        title=f"Anomalies in {', '.join(Path(name).name for name in spec.paths)}",
        warnings=_weighed(warnings, known, detector),
        usage=Usage(
            model=str(model),
            label=spec.label or "kind",
            options=spec.label_words(),
            words=in_command,
        ),
    )
    asked = dict.fromkeys(spec.drop, "by --drop")
    learnt = replace(report.learnt, dropped=report.learnt.dropped | asked)
    write_report(replace(report, learnt=learnt), path)


def _weighed(warnings: Sequence[str], known: "_Known", detector: Detector) -> list[str | Finding]:
    """What was warned of; the findings on columns as such, so that the page can order them."""
    seen = np.isin(known.kind.astype(str), list(detector.kinds_))
    code = np.where(seen, 1, np.where(known.kind == known.normal, 0, -1))
    there = [column for column in known.table.columns if len(column.values)]
    found = [
        finding
        for finding in check_columns(replace(known.table, columns=there), code)
        if any(finding.message in text for text in warnings)
    ]
    others = [text for text in warnings if not any(one.message in text for one in found)]
    return [*found, *others]


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


def _known_rows(spec: InputSpec, detector: Detector, data: TrainingData) -> _Known:
    """The rows of the fit, and those of unseen kinds where the files can be read once more."""
    table, labels = data.sample, data.labels
    large = is_large(spec.paths)
    if large and detector.plan_.windows is not None:
        raise UserError(
            "The model is written. Its report would be measured on a sample of these large files, "
            "whose rows have no windows: measure with eqsep test on files of their own."
        )
    again = not large and STANDARD_INPUT not in files_of(spec.paths)
    if spec.seen and again and detector.plan is None:
        table, labels = replace(spec, seen=()).read()
    numbered = not large and (again or not spec.seen)
    kind, normal, y = _kinds(labels, table.n_rows)
    if detector.plan_.labels.unlabelled_is_normal:  # rows without a label are the normal ones
        kind = np.where(kind == None, normal, kind)  # noqa: E711  one by one
    return _Known(table=table, kind=kind, normal=normal, y=y, numbered=numbered, all_rows=not large)


def _kinds(labels: LabelColumn | None, n_rows: int) -> tuple[np.ndarray, str, np.ndarray | None]:
    """What a detector calls the kind of each row, the normal one, and its labels."""
    if labels is None:
        return np.full(n_rows, NORMAL, dtype=object), NORMAL, None
    kind = np.array([t if t is None else _called(t, labels) for t in labels.texts], dtype=object)
    return kind, _called(labels.normal, labels), labels.y


def _called(text: str, labels: LabelColumn | None) -> str:
    """What a label is called on the page: a kind by its name, 0 and 1 in words."""
    if labels is not None and labels.are_numbers:
        return _NUMBERS.get(text, text)
    return text


def _held_out(detector: Detector, known: _Known) -> HeldOut:
    """A part of the rows, and a second detector that has learnt the others."""
    unseen = sorted({k for k in known.kind if k not in (None, known.normal, *detector.kinds_)})
    near = np.zeros(len(known.kind), dtype=bool)
    if known.table.groups is None:
        test = _chosen(known.kind, unseen, normal=known.normal)
    else:
        grouping = detector.plan_.holdout.grouping
        assert grouping is not None  # the rows were learnt with their groups
        is_normal = known.kind == known.normal
        test, near = _chosen_groups(grouping, known.table.groups, is_normal)
        test |= np.isin(known.kind.astype(str), unseen)
    train = np.flatnonzero(~test & ~near & ~np.isin(known.kind.astype(str), unseen))
    rows = np.flatnonzero(test & (known.kind != None))  # noqa: E711  one by one
    _check_enough(known, rows, train, grouping=detector.plan_.holdout.grouping)
    trial = Detector(**detector.get_params(deep=False))
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore")  # said of the first fit already
        trial.fit(known.table.take(train), None if known.y is None else known.y[train])
    return HeldOut(
        known.table.take(rows),
        known.kind[rows].astype(str),
        normal=known.normal,
        doubted=detector.plan_.labels.doubts_calibration,
        names=_row_names(detector, known, rows),
        detector=trial,
        usual=known.table.take(np.flatnonzero(known.kind == known.normal)),
        note=_note(known, trial, n_train=len(train), n_test=len(rows), unseen=unseen),
        later=_later(detector, known),
    )


def _later(detector: Detector, known: _Known) -> LaterRows | None:
    """The last rows, and a detector of those before; None where no times are known, or few rows."""
    groups = known.table.groups
    if groups is None or groups.columns[1] is None:
        return None
    is_normal = known.kind == known.normal
    after = groups.time > np.quantile(groups.time[is_normal], 1 - _HELD)
    shown = np.isin(known.kind.astype(str), [known.normal, *detector.kinds_])
    before = np.flatnonzero(~after & (shown | (known.kind == None)))  # noqa: E711  one by one
    rows = np.flatnonzero(after & (known.kind != None))  # noqa: E711
    if not is_normal[rows].any():
        return None
    trial = Detector(**detector.get_params(deep=False))
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore")
        try:
            trial.fit(known.table.take(before), None if known.y is None else known.y[before])
        except UserError:  # too few of some sort came first
            return None
    return LaterRows(known.table.take(rows), known.kind[rows].astype(str), trial, len(before))


def _check_enough(
    known: _Known, rows: np.ndarray, train: np.ndarray, *, grouping: Grouping | None
) -> None:
    """Refuse a report where too few normal rows are left to fit to, or to measure on."""
    learnt, held = (part[known.kind[part] == known.normal] for part in (train, rows))
    what, needed = "normal row", 2
    if grouping is not None and known.table.groups is not None:
        units = grouping.units(known.table.groups, key=0)
        learnt, held = np.unique(units[learnt]), np.unique(units[held])
        what, needed = grouping.unit, 3
    if len(held) and len(learnt) >= needed - 1:
        return
    of = "" if needed == 2 else " with normal rows"
    raise UserError(
        f"The model is written, but no report: it is measured on normal rows that a second fit "
        f"does not learn, which takes {needed} {what}s{of} at least, got "
        f"{len(held) + len(learnt):,}. Add normal rows, or leave out --report."
    )


def _chosen(kind: np.ndarray, unseen: Sequence[str], *, normal: str) -> np.ndarray:
    """Which rows are held out: a share of each kind, and all of those that were not shown.

    Of the normal rows and of kinds that have two, one at least.
    """
    rng = np.random.default_rng(0)
    test = np.zeros(len(kind), dtype=bool)
    for name in sorted({k for k in kind if k is not None}):
        rows = rng.permutation(np.flatnonzero(kind == name))
        share = 1.0 if name in unseen else _HELD
        most = _MOST_NORMAL if name == normal else _MOST_OF_A_KIND
        least = 1 if name == normal or len(rows) > 1 else 0
        test[rows[: min(max(int(share * len(rows)), least), most)]] = True
    return test


def _chosen_groups(
    grouping: Grouping, groups: RowGroups, is_normal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are held out where whole groups are, and which lie in gaps beside them.

    Those of a share of the groups that have normal rows, one at least where two are left.
    """
    units = grouping.units(groups, key=0)
    hashes = np.unique(units[is_normal])
    bound = hashes[max(min(int(_HELD * len(hashes)), len(hashes) - 2), int(len(hashes) > 2))]
    test = units < bound
    return test, ~test & grouping.near(groups, key=0, bound=int(bound))


def _row_names(detector: Detector, known: _Known, rows: np.ndarray) -> list[str]:
    """By an id, where a column holds ids; else by the number in the files, where it is known."""
    ids = [c for c in known.table.columns if c.name in detector.plan_.encoder.dropped]
    if ids and len(ids[0].values):
        texts = ids[0].texts()
        return [f"{ids[0].name} {texts[i]}" for i in rows]
    return [f"row {i + 1:,}" if known.numbered else "a held-out row" for i in rows.tolist()]


def _note(
    known: _Known, trial: Detector, *, n_train: int, n_test: int, unseen: Sequence[str]
) -> str:
    whole = "rows" if known.all_rows else "rows that were drawn first, as the files are large,"
    n_all = len(known.kind)
    apart = n_all - n_train - n_test
    text = (
        f"Of {n_all:,} {whole} {n_test:,} were held out and measured by a second detector that was "
        f"fitted alike to the other {n_train:,}; its threshold is {trial.threshold_:.3f}."
    )
    if apart:
        text += f" {apart:,} too near to these, or without a label, are in neither."
    text += " The model itself was fitted to all rows: to more than what is measured here."
    if unseen:
        text += f" The kinds that were not shown, {', '.join(unseen)}, are in the test alone."
    return text
