"""A detector fitted on a cluster."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

from eqsep.detector.detector import Detector
from eqsep.detector.evidence import Evidence, Gather
from eqsep.detector.sources import Summary, SummaryRequest, Tally, no_rows, read, with_columns
from eqsep.distributed.cluster import check_no_windows, cluster
from eqsep.distributed.units import Units, total, units_of
from eqsep.errors import ParameterError, quoted
from eqsep.tables.batches import Batches


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
        The name of the label column; without one, nobody has looked at the rows.
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
    plan = parameters.get("plan")
    check_no_windows(parameters.get("window") if plan is None else plan.windows)
    with cluster(address):
        units = units_of(dataset, label)
        for word, name in {"groups": groups, "time": time}.items():
            if units.names is not None and name is not None and name not in units.names:
                expected = f"a column ({quoted(units.names)})"
                raise ParameterError(word, expected=expected, got=name)
        grouped = partial(with_columns, groups=groups, time=time)
        return Detector(**parameters).fit_from(RowsOnCluster(units, cpus_per_task, grouped))


@dataclass(frozen=True)
class RowsOnCluster:
    """Units of rows as a source: each task tallies, or gathers from, the rows of one."""

    units: Units
    cpus: float = 1  # of a task
    grouped: Callable[[Batches], Batches] = with_columns  # adds the columns of groups and times

    def summary(self, wanted: SummaryRequest) -> Summary:
        work = partial(_tally, wanted=wanted, grouped=self.grouped)
        tally = total(self.units, work, Tally.merge, cpus=self.cpus)
        if tally is None:
            raise no_rows()
        return tally.summary()

    def total(self, gather: Gather) -> Evidence:
        work = partial(_evidence, gather=gather, grouped=self.grouped)
        evidence = total(self.units, work, add, cpus=self.cpus)
        assert evidence is not None  # the summary has seen rows
        return evidence


def _tally(
    batches: Batches, number: int, *, wanted: SummaryRequest, grouped: Callable[[Batches], Batches]
) -> Tally | None:
    """The labels of a unit, and a sample of its rows."""
    tally = Tally(normal=wanted.normal, config=wanted.config, seed=[wanted.seed, number])
    tally.read(grouped(batches), labels_alone=wanted.labels_alone)
    return tally if tally.n_rows else None


def _evidence(
    batches: Batches, _: int, *, gather: Gather, grouped: Callable[[Batches], Batches]
) -> Evidence | None:
    """What the rows of a unit teach."""
    found = (gather(table, y) for table, y in read(grouped(batches)))
    first = next(found, None)
    return None if first is None else reduce(add, found, first)
