"""A detector fitted on a cluster."""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from eqsep.batches import sampling
from eqsep.batches.sources import Source
from eqsep.detector.detector import Detector, recorded
from eqsep.detector.fitting import FitContext, PartialStatistics, accumulate
from eqsep.detector.parameters import check_parameters
from eqsep.detector.streams import StreamSummary, fit_summarised, read, seed_of, summarise
from eqsep.detector.windows import with_group_columns
from eqsep.distributed.cluster import check_no_windows, cluster
from eqsep.distributed.mapping import total
from eqsep.distributed.units import units_of
from eqsep.errors import ParameterError, quoted

_NAME = "Detector"


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

    Coefficients, held-out rows and threshold are those of `Detector.fit` with the same feature map
    (`feature_map=...`), up to rounding. The feature map is chosen from a sample of all rows, which
    depends on `random_state` and on how the rows are divided into files or blocks, not on how many
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
    detector = Detector(**parameters)
    check_parameters(detector)
    given = detector.feature_map
    check_no_windows(detector.window if given is None else given.windows)
    rng = check_random_state(detector.random_state)
    summarising = _Summarising(
        detector.normal,
        seed_of(rng),
        sampling.SAMPLE,
        labels_alone=detector.feature_map is not None,
        beside=(groups, time),
    )
    with cluster(address):
        units = units_of(dataset, label)
        _check_there(units.names, groups=groups, time=time)

        def sums(context: FitContext) -> tuple[FitContext, PartialStatistics]:
            partial = total(units, _Accumulating(context, (groups, time)), add, cpus=cpus_per_task)
            assert partial is not None  # the summary has seen rows
            return context, partial

        summary = total(units, summarising, _merged, cpus=cpus_per_task) or summarising.empty(0)
        return recorded(detector, *fit_summarised(detector, rng, summary, sums))


@dataclass(frozen=True)
class _Summarising:
    """From the rows of a unit to a summary of them."""

    normal: Any
    seed: int
    most: int
    labels_alone: bool
    beside: tuple[str | None, str | None]

    def empty(self, number: int) -> StreamSummary:
        """One that has seen nothing yet."""
        rng = np.random.default_rng([self.seed, number])
        return StreamSummary(normal=self.normal, rng=rng, most=self.most)

    def __call__(self, source: Source, number: int) -> StreamSummary | None:
        summary = self.empty(number)
        source = with_group_columns(source, *self.beside, name=_NAME)
        summarise(summary, source, labels_alone=self.labels_alone, name=_NAME)
        return summary if summary.n_rows else None


@dataclass(frozen=True)
class _Accumulating:
    """From the rows of a unit to what they teach in the context."""

    context: FitContext
    beside: tuple[str | None, str | None]

    def __call__(self, source: Source, number: int) -> PartialStatistics | None:  # noqa: ARG002
        batches = read(with_group_columns(source, *self.beside, name=_NAME), name=_NAME)
        partials = (accumulate(self.context, table, y) for table, y in batches)
        return reduce(_added, partials, None)


def _check_there(names: list[str] | None, **given: str | None) -> None:
    """Refuse groups and times that are none of the columns, where these are known."""
    for word, name in given.items():
        if names is not None and name is not None and name not in names:
            raise ParameterError(word, expected=f"a column ({quoted(names)})", got=name)


def _added(partial: PartialStatistics | None, more: PartialStatistics) -> PartialStatistics:
    return more if partial is None else partial + more


def _merged(summary: StreamSummary, later: StreamSummary) -> StreamSummary:
    summary.merge(later)
    return summary
