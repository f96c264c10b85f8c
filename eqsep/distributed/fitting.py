"""A detector fitted on a cluster."""

from collections.abc import Callable
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from eqsep.detector import first_fit
from eqsep.detector.detector import Detector
from eqsep.detector.evidence import Evidence
from eqsep.detector.first_fit import FirstFit, Fit, StreamSummary, Taught
from eqsep.detector.plan import Plan
from eqsep.distributed.cluster import check_no_windows, cluster
from eqsep.distributed.units import total, units_of
from eqsep.errors import ParameterError, quoted
from eqsep.labels import RowLabels
from eqsep.tables.batches import Source

_Grouped = Callable[[Source], Source]  # adds the columns of groups and times


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
    """Fit a detector with the processes of a Ray cluster.

    The result is that of `Detector.fit` with the same plan (`plan=...`), up to rounding. The plan
    is chosen from a sample of all rows, which depends on `random_state` and on how the rows are
    divided into files or blocks, but not on the number of processes.

    Parameters
    ----------
    dataset : ray.data.Dataset, pyarrow.dataset.Dataset, str or path
        The rows. A path is that of Parquet, CSV or Arrow files, or of a folder of them; all
        machines must reach it.
    label : str, default=None
        The name of the label column; without one, all rows are normal.
    groups, time : str, default=None
        The names of the columns of groups and of times, as in `Detector.fit`.
    address : str, default=None
        The host and port of the cluster's head, "auto" for the cluster that runs on this machine,
        or "local" for processes of this machine alone, which end with the fit. None is the cluster
        that this process has joined, or that RAY_ADDRESS names; else "local".
    cpus_per_task : float, default=1
        The processors, and so the threads, of a task.
    **parameters
        Those of `Detector`.
    """
    grouped = partial(first_fit.with_columns, groups=groups, time=time)

    def on_cluster(first: FirstFit, rng: np.random.RandomState) -> Fit:
        check_no_windows(first.window if first.plan is None else first.plan.windows)
        most, most_anomalies = first.config.max_sample, first.config.max_sample_anomalies
        settings = {"normal": first.normal, "most": most, "most_anomalies": most_anomalies}
        new = partial(_new_summary, seed=first_fit.seed_of(rng), settings=settings)
        labels_alone = first.plan is not None
        summarise_unit = partial(_summary, new=new, grouped=grouped, labels_alone=labels_alone)
        with cluster(address):
            units = units_of(dataset, label)
            for word, name in {"groups": groups, "time": time}.items():
                if units.names is not None and name is not None and name not in units.names:
                    expected = f"a column ({quoted(units.names)})"
                    raise ParameterError(word, expected=expected, got=name)

            def gather_all(plan: Plan, known: RowLabels) -> Taught:
                given: Any = {"first": first, "plan": plan, "known": known, "grouped": grouped}
                evidence = total(units, partial(_evidence, **given), add, cpus=cpus_per_task)
                assert evidence is not None  # the summary has seen rows
                return plan, evidence

            summary = total(units, summarise_unit, _merged, cpus=cpus_per_task)
            return first.to_summary(new(0) if summary is None else summary, rng, gather_all)

    return Detector(**parameters).fit_by(on_cluster)


def _new_summary(number: int, *, seed: int, settings: dict[str, Any]) -> StreamSummary:
    return StreamSummary(rng=np.random.default_rng([seed, number]), **settings)


def _summary(
    source: Source, number: int, *, new: Callable[..., Any], grouped: _Grouped, labels_alone: bool
) -> StreamSummary | None:
    """A summary of the rows of a unit."""
    summary: StreamSummary = new(number)
    first_fit.summarise(summary, grouped(source), labels_alone=labels_alone)
    return summary if summary.n_rows else None


def _evidence(
    source: Source, _: int, *, first: FirstFit, plan: Plan, known: RowLabels, grouped: _Grouped
) -> Evidence | None:
    """What the rows of a unit teach under the plan."""
    batches = first_fit.read(grouped(source))
    found = (first.gather_batch(plan, table, y, known=known) for table, y in batches)
    start = next(found, None)
    return None if start is None else reduce(add, found, start)


def _merged(summary: StreamSummary, later: StreamSummary) -> StreamSummary:
    summary.merge(later)
    return summary
