"""`eqsep evaluate`: every kind in turn is the seen one; what is found of the others?"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import typer
from rich.console import RenderableType
from rich.text import Text
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline

from eqsep import evaluation
from eqsep.arrays import objects
from eqsep.checks import check_columns, check_dependence, check_labels, warn_of
from eqsep.cli import options
from eqsep.cli.console import Screen, interval, opt, print_warnings, progress, table
from eqsep.cli.inputs import InputSpec, LabelColumn
from eqsep.cli.project import shown_kind
from eqsep.cli.test import name_lines, percent, print_report
from eqsep.detector import Detector
from eqsep.detector.holdout import Grouping
from eqsep.errors import Note, UserError, quoted, warn
from eqsep.evaluation import LeaveOneKindOut, NamesTried
from eqsep.evaluation.names import try_names
from eqsep.evaluation.peers import PEERS, training_data
from eqsep.labels import WITHOUT
from eqsep.progress import phase
from eqsep.report.evaluations import EvaluationReport, evaluation_report
from eqsep.tables import TableEncoder
from eqsep.tables.reading import RowGroups, Table

Parameters = dict[str, Any]
_MIN_ROWS_OF_KIND = 2  # rows of a kind: one to train and one to test on


@options.reads_tables
def evaluate(
    context: typer.Context,
    spec: InputSpec = options.columns(label=options.LABEL, **options.TRAINING),
    seen: list[str] | None = opt(None, "KIND", "Use only this kind as the seen one."),
    unlabelled: str = options.UNLABELLED,
    clean: bool = options.CLEAN,
    against: list[str] | None = opt(
        None, "METHODS", "Compare with xgboost, random-forest, isolation-forest; repeatable."
    ),
    false_alarm_rate: float = opt(
        0.01, "SHARE", "Share of normal rows that may raise an alarm, where names are measured."
    ),
    confidence: float | None = options.CONFIDENCE,
    unseen_rate: float = options.UNSEEN_RATE,
    landmarks: int | None = options.LANDMARKS,
    bandwidth: float | None = options.BANDWIDTH,
    random_state: int = options.SEED,
    report: Path | None = options.REPORT,
) -> None:
    """Fit with one seen kind at a time, and measure how well the others are found."""
    options.check_report_out(report, spec.paths)
    model = {"n_landmarks": landmarks, "bandwidth": bandwidth, "random_state": random_state}
    settings: Parameters = model | {"unlabelled": options.trust(unlabelled, clean=clean)}
    rates: Parameters = {"false_alarm_rate": false_alarm_rate, "unseen_rate": unseen_rate}
    rates["confidence"] = confidence
    methods = ",".join(against or ())
    with print_warnings(), progress("eqsep evaluate", "reading"):
        results = evaluate_files(spec, settings, rates, against=methods, seen=seen or ())
    print_report(results, print_results, context, report)


@dataclass(repr=False, eq=False)
class _OnRows(BaseEstimator):
    """An estimator that takes rows of a table by number, and learns those `without` a label too."""

    table: Table
    estimator: Any
    normal_only: bool
    without: Sequence[int]
    is_detector: bool

    def __sklearn_clone__(self) -> Self:
        return replace(self)  # one table for all

    def fit(self, rows: np.ndarray, y: np.ndarray) -> Self:
        used, *labels = training_data(rows, y, normal_only=self.normal_only)
        places = used[:, 0]
        if len(self.without):
            without = self._unlabelled(places)
            places = np.concatenate([places, without])
            labels = [objects([*y.tolist(), *[None] * len(without)])]
        self.classes_ = np.arange(2)
        self.fitted_ = clone(self.estimator)
        # All rows are checked at once, and no threshold is measured.
        fit = self.fitted_.fit_quietly if self.is_detector else self.fitted_.fit
        fit(self.table.take(places), *labels)
        return self

    def _unlabelled(self, places: np.ndarray) -> np.ndarray:
        """The rows without a label; where rows are in groups, those of groups that train."""
        without, groups = np.array(self.without, dtype=int), self.table.groups
        if groups is None:
            return without
        units = _grouping(groups).units(groups, key=0)
        return without[np.isin(units[without], units[places])]

    def decision_function(self, rows: np.ndarray) -> np.ndarray:
        return evaluation.anomaly_score(self.fitted_, self.table.take(rows[:, 0]))


_METHODS = ("XGBoost", "random forest", "isolation forest")
_PEERS = {name.lower().replace(" ", "-"): PEERS[name] for name in _METHODS}


def evaluate_files(
    spec: InputSpec, settings: Parameters, rates: Parameters, *, against: str, seen: Sequence[str]
) -> EvaluationReport:
    """Leave-one-kind-out results of the detector, its names at these `rates`, and other methods."""
    names = options.method_names(against, _PEERS)
    Detector(**settings, **rates).check_parameters()
    rows, labels = spec.read()
    assert labels is not None  # the option is required
    if seen:
        labels.seen(seen)  # refuses other words
    said = objects(labels.called if text == labels.normal else text for text in labels.texts)
    labels = replace(labels, texts=said, normal=labels.called)
    tested = _TestedRows.of(labels, settings["unlabelled"])
    texts = labels.texts[tested.places].tolist()
    kinds = np.array([tested.normal if text is None else text for text in texts])
    scarce = [kind for kind, n in Counter(kinds.tolist()).items() if n < _MIN_ROWS_OF_KIND]
    if scarce:
        warn(Note(f"Left out: {quoted(scarce)}, with one row each. An evaluation needs two."))
        kept = ~np.isin(kinds, scarce)
        tested, kinds = replace(tested, places=tested.places[kept]), kinds[kept]
    if set(kinds.tolist()) <= {tested.normal}:
        raise UserError(
            f"An evaluation needs labelled anomalies, but column {labels.name!r} holds only "
            f"{labels.normal!r}: label some by kind."
        )
    counts = tested.counts(labels)
    among = rows.take(tested.places)
    anomalous = sorted(set(kinds.tolist()) - {tested.normal})
    code = np.searchsorted(anomalous, kinds) + 1
    code[kinds == tested.normal] = 0
    why = "The figures here are too good, as neighbours of these rows are learnt. Expect less"
    dependent = [  # rows are divided one by one
        replace(found, message=f"{found.message.split('. ')[0]}. {why} in another run or day.")
        for found in check_dependence(among, code)
    ]
    warn_of([*check_columns(among, code, anomalous), *check_labels(counts), *dependent])
    seed, ours = settings["random_state"], settings | {"unlabelled": tested.asked}
    estimators: dict[str, Any] = {"eqsep": Detector(**ours)}
    for name in names:
        estimators[name] = make_pipeline(TableEncoder(), _PEERS[name].build(random_state=seed))
    measure: Callable[..., LeaveOneKindOut] = evaluation.cross_validate_kind
    if len(set(kinds.tolist())) > 2:
        measure = partial(evaluation.leave_one_kind_out, seen=list(seen) or None)
    groups: dict[str, np.ndarray] = {}
    if among.groups is not None:
        by_group, by_time = (name is not None for name in among.groups.columns)
        groups |= {"groups": among.groups.group} if by_group else {}
        groups |= {"time": among.groups.time} if by_time else {}
    results = {}
    for number, (name, estimator) in enumerate(estimators.items(), 1):
        phase(f"{name} ({number} of {len(estimators)})")
        is_peer = name in _PEERS
        normal_only = is_peer and _PEERS[name].normal_only
        without = () if is_peer else tested.without
        results[name] = measure(
            _OnRows(
                rows,
                estimator,
                normal_only=normal_only,
                without=without,
                is_detector=not is_peer,
            ),
            tested.places[:, None],
            kinds,
            normal=tested.normal,
            random_state=seed,
            **groups,
        )
    phase("names")
    named = Detector(**settings | rates | {"unlabelled": "auto"})
    tried = try_names(named, among, kinds, normal=tested.normal, random_state=seed)
    phase("intervals")
    report = evaluation_report(
        results,
        counts=counts,
        doubted=tested.doubted,
        unit="" if among.groups is None else _grouping(among.groups).unit,
        title=f"Kinds seen and unseen: {', '.join(Path(path).name for path in spec.paths)}",
    )
    return replace(report, names=tried, called=shown_kind)


def _grouping(groups: RowGroups) -> Grouping:
    """Whole groups where there are some, else blocks of time."""
    return Grouping.of(groups, whole=groups.columns[0] is not None)


@dataclass(frozen=True)
class _TestedRows:
    """Which rows are measured on, and what stands for normal: if need be rows without a label."""

    places: np.ndarray
    without: Sequence[int]
    normal: str
    asked: str
    doubted: bool

    @classmethod
    def of(cls, labels: LabelColumn, asked: str) -> Self:
        missing = np.array([text is None for text in labels.texts], dtype=bool)
        labelled = bool((labels.texts == labels.normal).any())
        if labelled and asked != "trusted":
            doubted = asked == "doubted" and not missing.any()
            places, without = np.flatnonzero(~missing), np.flatnonzero(missing).tolist()
            return cls(places, without, labels.normal, asked, doubted)
        normal = labels.normal if labelled or asked == "trusted" else WITHOUT
        asked = "trusted" if asked == "trusted" else "doubted"
        return cls(np.arange(len(missing)), (), normal, asked, asked == "doubted")

    def counts(self, labels: LabelColumn) -> dict[str, int]:
        """The rows of each kind, the normal one first and those without a label last."""
        counts = labels.counts
        if self.normal == WITHOUT or self.without:
            return counts
        return {self.normal: counts.pop(self.normal, 0) + counts.pop(WITHOUT, 0)} | counts


def print_results(console: Screen, results: EvaluationReport) -> None:
    """A table: for each seen kind, and for the mean of them, what every method gets."""
    how = "Every row is scored by a model that has not learnt it"
    if len(results.looked_for) > 1:
        how = "One kind at a time is seen in training, all unseen ones are taken together"
        _print_means(console, results)
    console.print(f"Average precision with 95% intervals. {how}; chance is the share of anomalies.")
    for note in results.notes:
        console.print(note, markup=False)
    console.print(table(("", *results.headings), _cells(results), left=1 + len(results.parts)))
    if results.names is not None:
        _print_names(console, results.names)
    else:
        enough = f"rows in enough {results.unit}s" if results.unit else "enough rows"
        why = f"no kind of anomaly has {enough} to learn half of them and name the others"
        console.print_line(f"Names are not measured: {why}.")


def _print_names(console: Screen, tried: NamesTried) -> None:
    """How alarms are named: with all kinds seen, and "unseen" with some left out."""
    console.print("Names, by a model of half of the rows on the other half:")
    console.print_lines(name_lines(tried.seen), width=13)
    lines = {
        ", ".join(map(shown_kind, kinds)): percent(share, "alarm")
        if share.total
        else one.none_found
        for one, (kinds, share) in zip(tried.left_out, tried.power.items(), strict=True)
    }
    if lines:
        console.print_line("Alarms named unseen, by models that have not learnt their kinds:")
        console.print_lines(lines, width=max(map(len, lines)))


def _cells(results: EvaluationReport) -> Iterator[tuple[RenderableType, ...]]:
    for kind in results.kinds:
        yield (Text(f"seen: {shown_kind(kind)}", style="bold"),)
        for method in results.methods:
            parts = results.cells[method, kind].parts
            yield f"  {method}", *(interval(parts[part], ".3f") for part in results.parts)
        chance = results.cells[results.methods[0], kind].parts
        yield "  chance", *(f"{chance[part].prevalence:.3f}" for part in results.parts)
    if len(results.kinds) > 1:
        yield (Text(f"mean over {len(results.kinds)} seen kinds", style="bold"),)
        for method in results.methods:
            means = results.means[method]
            yield f"  {method}", *(f"{means[part]:.3f}" for part in results.parts)


def _print_means(console: Screen, results: EvaluationReport) -> None:
    """For each method the mean over kinds, in how many cells it leads, and what it is better at."""
    console.print("Mean over kinds, each by itself: a rare kind counts as much as a common one.")
    n_cells, several = len(results.by_kind(results.methods[0])), len(results.methods) > 1
    for method in results.methods:
        parts = sorted(results.mean_over_kinds(method).items())
        means = ", ".join(f"{part} {mean:.3f}" for part, mean in parts)
        leads = f"; leads in {results.leads(method)} of {n_cells} cells" if several else ""
        console.print(f"  {method:16} {means}{leads}", markup=False)
    for method in results.methods[1:]:
        found = [
            f"{shown_kind(kind)} ({'' if seen == kind else f'{shown_kind(seen)} '}seen) {own:.3f} "
            f"against {first:.3f}"
            for seen, kind, own, first in results.better_at(method)
        ]
        console.print_line(f"{method} is better at: {'; '.join(found) or 'nothing'}.")
    if not several:
        console.print("To see what a forest is better at, pass --against random-forest.")
    console.print()
