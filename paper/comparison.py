"""Published beside ours: what the results on disk say of every figure, by each protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from paper.cells import Result, Results
from paper.measures import METRICS
from paper.plan import Entry, Plan, Table
from paper.provenance import Provenance
from paper.published import Ours
from paper.reasons import reason_for
from paper.tables.circles import BY_DRAW
from paper.tables.mvtec import STAND_IN
from paper.verdicts import MARGIN, MISSING, Terms, Verdict, chance_passes, judge

_UNKNOWN = ("differs", "cannot tell")
CIRCLES = "circles"  # the data set that is drawn once, for all starts


@dataclass(frozen=True)
class Line:
    """A published figure and ours, by each protocol with a verdict of its own.

    `passes_by_chance` says whether a score that knows nothing would agree with it.
    """

    row: str
    column: str
    published: str
    paper: str
    difference: float | None
    verdict: Verdict
    corrected: str
    corrected_difference: float | None
    corrected_verdict: Verdict
    passes_by_chance: bool

    def by(self, protocol: str) -> Verdict:
        """The verdict by the protocol."""
        return self.verdict if protocol == "paper" else self.corrected_verdict

    def is_near(self, protocol: str) -> bool:
        """Whether the two means are within the margin, whatever a test can tell of it."""
        apart = self.difference if protocol == "paper" else self.corrected_difference
        return apart is not None and abs(apart) <= MARGIN


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

    def count(self, word: str, *, protocol: str = "paper") -> int:
        """How many lines have this verdict by the protocol."""
        return sum(line.by(protocol).word == word for line in self.lines)

    def count_near(self, word: str, *, protocol: str = "paper") -> int:
        """Of how many of these the two means are within the margin of each other."""
        lines = (line for line in self.lines if line.by(protocol).word == word)
        return sum(line.is_near(protocol) for line in lines)

    def missing(self, *, protocol: str = "paper") -> int:
        """How many published figures nothing of ours stands beside."""
        return sum(self.count(word, protocol=protocol) for word in MISSING)

    @property
    def passed_by_chance(self) -> int:
        """With how many published figures a score that knows nothing would agree."""
        return sum(line.passes_by_chance for line in self.lines)

    def agreeing_as_chance(self, *, protocol: str = "paper") -> int:
        """How many of these agree with ours: they are no evidence for a method."""
        lines = (line for line in self.lines if line.passes_by_chance)
        return sum(line.by(protocol).word == "agrees" for line in lines)


def compare(table: Table, plan: Plan, results: Results) -> Comparison:
    """Judge every figure of a table by the results of its cells, by both protocols."""
    lines = tuple(
        _line(table, entry, _results_of(entry, plan, results)) for entry in table.entries()
    )
    published, made = table.published, results.made(table.cells(plan))
    return Comparison(
        table.name,
        published.title,
        published.label,
        published.positive,
        table.note,
        table.changes,
        lines,
        Provenance.of(made),
    )


def _results_of(entry: Entry, plan: Plan, results: Results) -> dict[str, Result | None]:
    """The result by each protocol; of one-vs-set, under "machine" that of the SVM it stands on."""
    found = {name: results.of(entry.cell(plan, name)) for name in METRICS}
    cell = entry.cell(plan, "paper")
    if cell.method == "OVS-RBF-ES":
        found["machine"] = results.of(replace(cell, method="SVM-RBF"))
    return found


def terms_of(table: Table, entry: Entry, result: Result | None, protocol: str) -> Terms:
    """By what a figure is compared: the runs and digits of the paper, and draws of the circles."""
    values = (result or {}).get("values", {}).get(entry.key(protocol) + BY_DRAW)
    by_draw = Ours.of(values) if values else None
    one_draw = by_draw is None and entry.measurement.dataset == CIRCLES
    return Terms(entry.measurement.seeds, table.published.rounding, by_draw, one_draw)


def _line(table: Table, entry: Entry, results: Mapping[str, Result | None]) -> Line:
    ours, verdicts = {}, {}
    for protocol in METRICS:
        result = results[protocol]
        terms = terms_of(table, entry, result, protocol)
        ours[protocol] = _ours(entry, protocol, result)
        verdicts[protocol] = _verdict(entry, result, ours[protocol], terms)
    terms, told = terms_of(table, entry, None, "paper"), verdicts["paper"]
    if told.word in _UNKNOWN and (reason := reason_for(entry, results, terms)):
        told = Verdict(told.word, f"{told.reason}: {reason}")
    return Line(
        entry.row,
        entry.column,
        str(entry.published),
        *_told(entry, ours["paper"]),
        told,
        *_told(entry, ours["corrected"]),
        verdicts["corrected"],
        chance_passes(entry.published, terms, table.prevalence(entry.row, entry.column)),
    )


def _told(entry: Entry, ours: Ours | None) -> tuple[str, float | None]:
    """Ours in words, and how far above the published mean it is."""
    if ours is None:
        return "", None
    mean = entry.published.mean
    return str(ours), None if mean is None else ours.mean - mean


def _ours(entry: Entry, protocol: str, result: Result | None) -> Ours | None:
    if result is None or "values" not in result:
        return None
    values = result["values"].get(entry.key(protocol), [])
    return Ours.of(values) if values else None


def _verdict(entry: Entry, result: Result | None, ours: Ours | None, terms: Terms) -> Verdict:
    if result is None:
        return Verdict("not run", "run it: python -m paper " + entry.table)
    if "skipped" in result:
        return Verdict("skipped", result["skipped"])
    if ours is None:
        lacks = result["more"].get("lacks", "no member performed well enough to be counted")
        return Verdict("skipped", lacks)
    source = result["more"].get("source", "")
    if source == STAND_IN:
        return Verdict("other data", f"{source}: the published ones are not public")
    return judge(entry.published, ours, terms)
