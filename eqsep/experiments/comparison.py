"""Published beside ours: what the results on disk say of every figure of a table."""

from dataclasses import dataclass

from eqsep.experiments.areas import METRICS
from eqsep.experiments.cell import Result
from eqsep.experiments.provenance import Provenance
from eqsep.experiments.reasons import with_reason
from eqsep.experiments.results import Results
from eqsep.experiments.table import Entry, Plan, Table
from eqsep.experiments.verdict import Ours, Verdict, in_stds, judge


@dataclass(frozen=True)
class Line:
    """A published figure, ours by both protocols, and the verdict on the paper's.

    `in_stds` is the difference in published standard deviations, None where that is not a number.
    """

    row: str
    column: str
    published: str
    paper: str
    difference: float | None
    in_stds: float | None
    verdict: Verdict
    corrected: str


@dataclass(frozen=True)
class Comparison:
    """All lines of a table, with what a reader must know of it."""

    name: str
    title: str
    label: str
    positive: str
    note: str
    changes: str
    lines: tuple[Line, ...]
    provenance: Provenance

    def count(self, word: str) -> int:
        """How many lines have this verdict."""
        return sum(line.verdict.word == word for line in self.lines)


def compare(table: Table, plan: Plan, results: Results) -> Comparison:
    """Judge every figure of a table by the results of its cells, by both protocols."""
    lines = tuple(
        _line(entry, {name: results.of(entry.cell(plan, name)) for name in METRICS})
        for entry in table.entries()
    )
    told, made = table.published, results.made(table.cells(plan))
    return Comparison(
        table.name,
        told.title,
        told.label,
        told.positive,
        table.note,
        table.changes,
        lines,
        Provenance.of(made),
    )


def _line(entry: Entry, results: dict[str, Result | None]) -> Line:
    ours = {protocol: _ours(entry, protocol, result) for protocol, result in results.items()}
    paper, corrected = ours["paper"], ours["corrected"]
    published = entry.published
    apart = None
    if paper is not None and published.mean is not None:
        apart = round(paper.mean - published.mean, 4)
    return Line(
        entry.row,
        entry.column,
        str(published),
        "" if paper is None else str(paper),
        apart,
        None if paper is None else in_stds(published, paper),
        _verdict(entry, results["paper"], paper),
        "" if corrected is None else str(corrected),
    )


def _ours(entry: Entry, protocol: str, result: Result | None) -> Ours | None:
    if result is None or "values" not in result:
        return None
    values = result["values"].get(entry.key(protocol), [])
    return Ours.of(values) if values else None


def _verdict(entry: Entry, result: Result | None, ours: Ours | None) -> Verdict:
    if result is None:
        return Verdict("not run", "run it: eqsep reproduce " + entry.table)
    if "skipped" in result:
        return Verdict("skipped", result["skipped"])
    if ours is None:
        lacks = result["more"].get("lacks", "no member performed well enough to be counted")
        return Verdict("skipped", lacks)
    return with_reason(entry, judge(entry.published, ours), result)
