"""A detector fitted on a cluster."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from eqsep.batches import sampling
from eqsep.batches.sources import Source
from eqsep.detector.detector import Detector
from eqsep.detector.parameters import check_parameters
from eqsep.detector.pieces import Piece, Terms, piece_of
from eqsep.detector.streaming import add_all, read, seed_of, start_surveyed
from eqsep.detector.survey import Survey
from eqsep.distributed.cluster import cluster
from eqsep.distributed.mapping import total
from eqsep.distributed.units import units_of

_NAME = "Detector"


def fit(
    dataset: Any,
    label: str | None = None,
    *,
    address: str | None = None,
    cpus_per_task: float = 1,
    **parameters: Any,
) -> Detector:
    """A detector fitted by the processes of a Ray cluster.

    Coefficients, held-out rows and threshold are those of `Detector.fit` under the same terms
    (`feature_map=...`), up to rounding. The terms are agreed on from a sample of all rows, which
    depends on `random_state` and on how the rows are divided into files or blocks, not on how many
    processes there are.

    Parameters
    ----------
    dataset : ray.data.Dataset, pyarrow.dataset.Dataset, str or path
        The rows. A path is one of Parquet, CSV or Arrow files, or a folder of them; all machines
        must reach it. A file is read where it is worked on: Parquet in parts, others whole.
    label : str, default=None
        The name of the column of labels; without one all rows are normal.
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
    setup = detector.setup()
    surveying = _Surveying(
        setup.normal, seed_of(setup), sampling.SAMPLE, labels_alone=setup.feature_map is not None
    )
    with cluster(address):
        units = units_of(dataset, label)

        def sums(terms: Terms) -> tuple[Terms, Piece]:
            piece = total(units, _Summing(terms), add, cpus=cpus_per_task)
            assert piece is not None  # the survey has seen rows
            return terms, piece

        survey = total(units, surveying, _merged, cpus=cpus_per_task) or surveying.survey(0)
        return detector.begin(*start_surveyed(setup, survey, sums))


@dataclass(frozen=True)
class _Surveying:
    """From the rows of a unit to a survey of them."""

    normal: Any
    seed: int
    most: int
    labels_alone: bool

    def survey(self, number: int) -> Survey:
        """One that has seen nothing yet."""
        rng = np.random.default_rng([self.seed, number])
        return Survey(normal=self.normal, rng=rng, most=self.most)

    def __call__(self, source: Source, number: int) -> Survey | None:
        survey = self.survey(number)
        add_all(survey, source, labels_alone=self.labels_alone, name=_NAME)
        return survey if survey.n_rows else None


@dataclass(frozen=True)
class _Summing:
    """From the rows of a unit to what they teach under the terms."""

    terms: Terms

    def __call__(self, source: Source, number: int) -> Piece | None:  # noqa: ARG002
        return reduce(_added, self._pieces(source), None)

    def _pieces(self, source: Source) -> Iterator[Piece]:
        return (piece_of(self.terms, table, y) for table, y in read(source, name=_NAME))


def _added(piece: Piece | None, more: Piece) -> Piece:
    return more if piece is None else piece + more


def _merged(survey: Survey, later: Survey) -> Survey:
    survey.merge(later)
    return survey
