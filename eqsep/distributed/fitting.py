"""A detector fitted on a cluster."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from eqsep.detector.detector import Detector
from eqsep.detector.evidence import Evidence
from eqsep.detector.first_fit import (
    FirstFit,
    Fit,
    StreamSummary,
    Taught,
    read,
    seed_of,
    summarise,
    with_columns,
)
from eqsep.detector.plan import Plan
from eqsep.distributed.cluster import check_no_windows, cluster
from eqsep.distributed.mapping import total
from eqsep.distributed.units import units_of
from eqsep.errors import ParameterError, quoted
from eqsep.labels import RowLabels
from eqsep.tables.batches import Source


def fit(
    dataset: Any,
    label: str | None = None,
    *,
    groups: str | None = None,
    time: str | None = None,
    address: str | None = None,
    cpus_per_task: float = 1,
    **parameters: Any,
) -> Detector:
    """A detector fitted by the processes of a Ray cluster.

    Coefficients, held-out rows and threshold are those of `Detector.fit` with the same plan
    (`plan=...`), up to rounding. The plan is chosen from a sample of all rows, which depends
    on `random_state` and on how the rows are divided into files or blocks, not on how many
    processes there are.

    Parameters
    ----------
    dataset : ray.data.Dataset, pyarrow.dataset.Dataset, str or path
        The rows. A path is one of Parquet, CSV or Arrow files, or a folder of them; all machines
        must reach it. A file is read where it is worked on: Parquet in parts, others whole.
    label : str, default=None
        The name of the column of labels; without one all rows are normal.
    groups, time : str, default=None
        The names of the columns of groups and of times, as in `Detector.fit`.
    address : str, default=None
        The host and port of the cluster's head, "auto" for the cluster that runs on this machine,
        "local" for processes of this machine. None is the cluster that this process has joined, or
        "local". What is started is ended.
    cpus_per_task : float, default=1
        The processors that Ray sets aside for a task, and the threads it computes with.
    **parameters
        Those of `Detector`.
    """
    grouped = partial(with_columns, groups=groups, time=time)

    def on_cluster(first: FirstFit, rng: np.random.RandomState) -> Fit:
        check_no_windows(first.window if first.plan is None else first.plan.windows)
        summarising = _Summarising(
            normal=first.normal,
            seed=seed_of(rng),
            most=first.config.max_sample,
            most_anomalies=first.config.max_sample_anomalies,
            labels_alone=first.plan is not None,
            grouped=grouped,
        )
        with cluster(address):
            units = units_of(dataset, label)
            _check_there(units.names, groups=groups, time=time)

            def gather_all(plan: Plan, known: RowLabels) -> Taught:
                gathering = _Gathering(first=first, plan=plan, known=known, grouped=grouped)
                evidence = total(units, gathering, add, cpus=cpus_per_task)
                assert evidence is not None  # the summary has seen rows
                return plan, evidence

            summary = total(units, summarising, _merged, cpus=cpus_per_task)
            return first.to_summary(summary or summarising.empty(0), rng, gather_all)

    return Detector(**parameters).fit_by(on_cluster)


@dataclass(frozen=True, kw_only=True)
class _Summarising:
    """From the rows of a unit to a summary of them."""

    normal: Any
    seed: int
    most: int
    most_anomalies: int
    labels_alone: bool
    grouped: Callable[[Source], Source]

    def empty(self, number: int) -> StreamSummary:
        """One that has seen nothing yet."""
        rng = np.random.default_rng([self.seed, number])
        return StreamSummary(
            normal=self.normal, rng=rng, most=self.most, most_anomalies=self.most_anomalies
        )

    def __call__(self, source: Source, number: int) -> StreamSummary | None:
        summary = self.empty(number)
        summarise(summary, self.grouped(source), labels_alone=self.labels_alone)
        return summary if summary.n_rows else None


@dataclass(frozen=True, kw_only=True)
class _Gathering:
    """From the rows of a unit to what they teach under the plan."""

    first: FirstFit
    plan: Plan
    known: RowLabels
    grouped: Callable[[Source], Source]

    def __call__(self, source: Source, number: int) -> Evidence | None:  # noqa: ARG002
        found = (
            self.first.gather_batch(self.plan, table, y, known=self.known)
            for table, y in read(self.grouped(source))
        )
        first = next(found, None)
        return None if first is None else reduce(add, found, first)


def _check_there(names: list[str] | None, **given: str | None) -> None:
    """Refuse groups and times that are not among the columns, where these are known."""
    for word, name in given.items():
        if names is not None and name is not None and name not in names:
            raise ParameterError(word, expected=f"a column ({quoted(names)})", got=name)


def _merged(summary: StreamSummary, later: StreamSummary) -> StreamSummary:
    summary.merge(later)
    return summary
