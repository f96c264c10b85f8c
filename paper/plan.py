"""Tables and figures as data: what is run, and the cell that measures each published figure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eqsep.errors import UserError
from paper.cells import Cell, Result, Study
from paper.measures import METRICS
from paper.published import Published, PublishedTable, published_tables

PROTOCOLS = tuple(METRICS)
QUICK_SEEDS = 5
# Ours by study and method ("" is any other), where more than the paper's cost little: so many that
# our own error hardly matters. Elsewhere ours are as many as the paper's.
OWN_SEEDS = {
    **{(study, ""): 200 for study in ("hyperplane", "gaussians", "wide_gaussians", "circles")},
    **{("nsl_kdd", method): 200 for method in ("IsoF-A", "IsoF-N")},
    ("thyroid", ""): 30,
}
Drawn = Mapping[tuple[str, str], Result]  # by data set and method


@dataclass(frozen=True)
class Plan:
    """What is run: which protocols, how many seeds (those of `OWN_SEEDS` unless given), how big.

    Examples
    --------
    >>> circles = Measurement("circles", "RF", "", seeds=20)
    >>> [plan.seeds_of("circles", circles) for plan in (Plan(), Plan(quick=True), Plan(seeds=2))]
    [200, 5, 2]
    """

    protocols: tuple[str, ...] = PROTOCOLS
    seeds: int | None = None
    quick: bool = False

    def __post_init__(self) -> None:
        unknown = set(self.protocols) - set(PROTOCOLS)
        if unknown or not self.protocols:
            raise UserError(
                f"Unknown protocol {', '.join(sorted(unknown)) or 'none'}: expected "
                f"{' or '.join(PROTOCOLS)}, or both."
            )
        if self.seeds is not None and self.seeds < 1:
            raise UserError(f"seeds must be at least 1, got {self.seeds}. Leave it out for all.")

    def seeds_of(self, study: str, measurement: "Measurement") -> int:
        """How many seeds to take; one of a method without chance."""
        published = measurement.seeds
        if published == 1:
            return 1
        if self.seeds is not None:
            return self.seeds
        own = OWN_SEEDS.get((study, measurement.method), OWN_SEEDS.get((study, ""), 0))
        return min(published, QUICK_SEEDS) if self.quick else max(published, own)


@dataclass(frozen=True)
class Measurement:
    """How a published figure is measured: data set, method, the paper's number of runs, the key.

    `{metric}` in the key stands for the area that the protocol reads.
    """

    dataset: str
    method: str
    key: str
    seeds: int = 20

    def cell(self, study: str, plan: Plan, protocol: str) -> Cell:
        """The cell of a study that measures it."""
        seeds = plan.seeds_of(study, self)
        return Cell(study, self.dataset, self.method, protocol, seeds, plan.quick)


@dataclass(frozen=True)
class Entry:
    """A published figure and its cell by each protocol; `key` is where a cell's result holds it."""

    table: str
    row: str
    column: str
    published: Published
    measurement: Measurement
    study: str

    def cell(self, plan: Plan, protocol: str) -> Cell:
        """The cell that measures the figure."""
        return self.measurement.cell(self.study, plan, protocol)

    def key(self, protocol: str) -> str:
        """Where the cell's result holds the figure."""
        return self.measurement.key.format(metric=METRICS[protocol])


@dataclass(frozen=True)
class Table:
    """A published table and how each of its figures is measured.

    Attributes
    ----------
    name : str
        As in `published_tables()`.
    study : Study
    measurement : callable
        From a row and a column to a `Measurement`.
    note : str
        What a reader must know to compare, in a sentence or two.
    changes : str
        What the corrected protocol changes, likewise.
    prevalence : callable
        From a row and a column to the share of positive rows in the test; None where the figure is
        no area. A constant score has the area (1 + share) / 2 by the trapezoid, one that is drawn
        at random the share.
    """

    name: str
    study: Study
    measurement: Callable[[str, str], Measurement]
    note: str = ""
    changes: str = ""
    prevalence: Callable[[str, str], float | None] = lambda row, column: None  # noqa: ARG005

    @property
    def published(self) -> PublishedTable:
        return published_tables()[self.name]

    def entries(self) -> Iterator[Entry]:
        """Every published figure with its measurement."""
        for row, column, value in self.published.figures():
            yield Entry(
                self.name, row, column, value, self.measurement(row, column), self.study.name
            )

    def cells(self, plan: Plan) -> list[Cell]:
        """The cells behind the table, each once."""
        found = (e.cell(plan, protocol) for protocol in plan.protocols for e in self.entries())
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Attributes
    ----------
    name, title, caption : str
    study : str
        The study whose cells it draws.
    measurements : tuple of Measurement
    draw : callable
        From results by data set and method to a matplotlib figure.
    """

    name: str
    title: str
    caption: str
    study: str
    measurements: tuple[Measurement, ...]
    draw: Callable[[Drawn], Any]

    def cells(self, plan: Plan) -> list[Cell]:
        """Its cells, by the first protocol of the plan."""
        found = (one.cell(self.study, plan, plan.protocols[0]) for one in self.measurements)
        return list(dict.fromkeys(found))
