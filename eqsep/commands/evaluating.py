"""`eqsep evaluate`: every kind in turn is the seen one; what is found of the others?"""

import shlex
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Shown
from rich.text import Text
from sklearn.base import BaseEstimator

from eqsep.checks import DataWarning, check_columns, check_labels, warn_of
from eqsep.commands.inputs import InputSpec
from eqsep.detector import Detector
from eqsep.errors import UserError, quoted
from eqsep.evaluation import Interval, anomaly_score, leave_one_kind_out
from eqsep.evaluation.peers import PEERS, training_data
from eqsep.report.evaluations import PARTS, EvaluationReport, evaluation_report
from eqsep.tables import TableEncoder
from eqsep.tables.reading import Table


class _OnRows(BaseEstimator):
    """An estimator that is given the numbers of rows and takes these of a table."""

    def __init__(self, table: Table, make: Callable[[], Any], *, normal_only: bool = False):
        self.table = table
        self.make = make
        self.normal_only = normal_only

    def __sklearn_clone__(self) -> Self:
        return type(self)(self.table, self.make, normal_only=self.normal_only)  # one table for all

    def fit(self, rows: np.ndarray, y: np.ndarray) -> Self:
        used, *labels = training_data(rows, y, normal_only=self.normal_only)
        self.classes_ = np.arange(2)
        self.fitted_ = self.make().fit(self.table.take(used[:, 0]), *labels)
        return self

    def decision_function(self, rows: np.ndarray) -> np.ndarray:
        return self.fitted_.scores(self.table.take(rows[:, 0]))


class _Encoded:
    """A method for matrices of numbers, on the encoded table."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, table: Table, *labels: np.ndarray) -> Self:
        self.encoder = TableEncoder().fit(table)
        self.estimator.fit(self.encoder.transform(table), *labels)
        return self

    def scores(self, table: Table) -> np.ndarray:
        return anomaly_score(self.estimator, self.encoder.transform(table))


class _Ours:
    """The detector on the table as it is."""

    def __init__(self, **settings: Any) -> None:
        self.detector = Detector(**settings)

    def fit(self, table: Table, *labels: np.ndarray) -> Self:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # all rows are checked at once
            self.detector.fit(table, *labels)
        return self

    def scores(self, table: Table) -> np.ndarray:
        return self.detector.decision_function(table)


_PEERS = {
    name.lower().replace(" ", "-"): PEERS[name]
    for name in ("XGBoost", "random forest", "isolation forest")
}


def evaluate_files(
    spec: InputSpec,
    settings: dict[str, Any],
    *,
    against: str = "",
    on_method: Callable[[str], None] = lambda name: None,  # noqa: ARG005
) -> EvaluationReport:
    """Leave-one-kind-out results of the detector, and of the methods it is set against.

    Parameters
    ----------
    settings : dict
        Parameters of the detector; its `random_state` also divides the rows.
    against : str
        Names of other methods, with commas between them.
    on_method : callable
        Told the name of each method as it begins.
    """
    names = peers_of(against)
    rows, labels = spec.read()
    assert labels is not None  # the option is required
    known = np.flatnonzero(labels.texts != None)  # noqa: E711  element by element
    rows, kinds = rows.take(known), labels.texts[known].astype(str)
    anomalous = sorted(set(kinds.tolist()) - {labels.normal})
    if len(anomalous) < 2:
        raise UserError(
            f"An evaluation takes two kinds of anomaly or more, and column {labels.name!r} holds "
            f"{quoted(anomalous) or 'none'}: one is seen, and the others are looked for."
        )
    counts = labels.take(known).counts
    warn_of([*check_columns(rows, (kinds != labels.normal).astype(int)), *check_labels(counts)])
    seed = settings["random_state"]
    makers: dict[str, Callable[[], Any]] = {"eqsep": lambda: _Ours(**settings)}
    for name in names:
        build = partial(_PEERS[name].build, random_state=seed)
        build()  # refuses what is not installed before the work
        makers[name] = lambda build=build: _Encoded(build())  # type: ignore[misc]
    results = {}
    for name, make in makers.items():
        on_method(name)
        results[name] = leave_one_kind_out(
            _OnRows(rows, make, normal_only=name in names and _PEERS[name].normal_only),
            np.arange(rows.n_rows)[:, None],
            kinds,
            normal=labels.normal,
            random_state=seed,
        )
    on_method("intervals")
    command = _command(spec, settings, against=against)
    return evaluation_report(
        results,
        counts=counts,
        title=f"Kinds seen and unseen: {', '.join(Path(path).name for path in spec.paths)}",
        command=command,
    )


def _command(spec: InputSpec, settings: dict[str, Any], *, against: str) -> str:
    """The words that make the same evaluation again."""
    options = [("--label", spec.label), ("--normal", spec.normal)]
    options += [("--drop", name) for name in spec.drop] + [("--names", name) for name in spec.names]
    options += [("--against", against or None), ("--delimiter", spec.layout.delimiter)]
    asked = settings["unlabelled"]
    options += [("--unlabelled", None if asked == "auto" else asked)]
    options += [("--landmarks", settings.get("n_landmarks"))]
    options += [("--random-state", settings["random_state"])]
    words = [word for name, value in options if value is not None for word in (name, str(value))]
    bare = [] if spec.layout.header else ["--no-header"]
    return shlex.join(["eqsep", "evaluate", *spec.paths, *words, *bare, "--report", "report.html"])


def peers_of(against: str) -> list[str]:
    """The methods that are named, each once; refuses others.

    Examples
    --------
    >>> peers_of("xgboost, isolation-forest")
    ['xgboost', 'isolation-forest']
    """
    names = list(dict.fromkeys(name.strip() for name in against.split(",") if name.strip()))
    unknown = [name for name in names if name not in _PEERS]
    if unknown:
        raise UserError(
            f"--against {quoted(unknown)} is no known method: expected some of {', '.join(_PEERS)}."
        )
    return names


def tell_results(console: Console, results: EvaluationReport) -> None:
    """A table: for each seen kind, and for the mean of them, what every method gets."""
    console.print(
        "Average precision with 95% intervals. One kind at a time is seen in training; chance is "
        "the share of anomalies."
    )
    shown = Shown(box=SIMPLE_HEAD, padding=0)
    for column in ("", *PARTS):
        shown.add_column(column, no_wrap=column != "")
    for kind in results.kinds:
        shown.add_row(Text(f"seen: {kind}", style="bold"))
        for method in results.methods:
            parts = results.cells[method, kind].parts
            shown.add_row(f"  {method}", *(_with_ends(parts[part]) for part in PARTS))
        chance = results.cells[results.methods[0], kind].parts
        shown.add_row("  chance", *(f"{chance[part].prevalence:.3f}" for part in PARTS))
    shown.add_row(Text(f"mean over {len(results.kinds)} kinds", style="bold"))
    for method in results.methods:
        means = results.means[method]
        shown.add_row(f"  {method}", *(f"{means[part]:.3f}" for part in PARTS))
    console.print(shown)


def _with_ends(interval: Interval) -> Text:
    """The value and the ends of its interval, in a form in which brackets are no markup."""
    return Text(f"{interval.value:.3f} [{interval.low:.2f}, {interval.high:.2f}]")
