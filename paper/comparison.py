"""Published beside ours: what the results on disk say of every figure, and why some do not hold."""

from dataclasses import dataclass

from paper.cells import Result, Results
from paper.measures import METRICS
from paper.plan import Entry, Plan, Table
from paper.provenance import Provenance
from paper.published import STDS, Ours, Published, Verdict, in_stds, judge
from paper.tables import circle_networks, gaussians, hyperplane
from paper.tables.mvtec import STAND_IN

_CONSTANT = (
    "a constant score gets this, (1 + share of attacks) / 2 by trapezoid: no detector is measured"
)
_CONSTANT_ROWS = {
    "nsl_kdd": ("OVS",),
    "nsl_kdd_full": ("OVS-RBF", "OVS-Lin", "OVS-Lin-ES (ours)"),
}
# The studies whose repetitions start anew, and what helps.
_STARTS = {
    hyperplane.STUDY.name: "; from several starts: see corrected",
    gaussians.STUDY.name: "; from several starts: see corrected",
    circle_networks.STUDY.name: "",
}
_FEW = 0.1  # of the rows may have the highest score in common
_HS_SAD = (
    "it depends on the training rows: on 20,000 of them Privilege is 0.081±0.029 and Access "
    "0.481±0.027, less than two such deviations off (python -m paper.settings)"
)
_ES_NS = (
    "it depends on the rows that are held out to stop on: other ones move Probe by about half of "
    "this (python -m paper.settings)"
)
_OCSVM = (
    "it depends on nu, here the share of attacks in training as the text says "
    "(python -m paper.settings OCSVM-A)"
)
# By table and row, of figures that are off: what the difference comes from.
_FOUND: dict[tuple[str, str], str] = {
    ("toy_shallow", "OCSVM"): (
        "it depends on the draw of the 100 rows: over 20 draws it is 0.796±0.047 (python -m "
        "paper.settings OCSVM)"
    ),
    ("separation", "ES (LL), 2 layers"): (
        "nearly all members pass this mark; the paper's other one is that outputs are 0.30 apart"
    ),
    ("nsl_kdd", "OCSVM"): _OCSVM,
    ("nsl_kdd_full", "OCSVM-N"): (
        "it depends on nu, here as printed for the circles (python -m paper.settings OCSVM-N)"
    ),
    ("nsl_kdd_full", "OCSVM-A"): _OCSVM,
    ("nsl_kdd", "ES-NS (ours)"): _ES_NS,
    ("nsl_kdd_full", "ES-NS (ours)"): _ES_NS,
    ("nsl_kdd", "HS-SAD"): _HS_SAD,
    ("nsl_kdd_full", "HS-SAD"): _HS_SAD,
}


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
        return Verdict("not run", "run it: python -m paper " + entry.table)
    if "skipped" in result:
        return Verdict("skipped", result["skipped"])
    if ours is None:
        lacks = result["more"].get("lacks", "no member performed well enough to be counted")
        return Verdict("skipped", lacks)
    return with_reason(entry, judge(entry.published, ours), result)


def with_reason(entry: Entry, verdict: Verdict, result: Result) -> Verdict:
    """The verdict with what is known beyond the difference."""
    if entry.row in _CONSTANT_ROWS.get(entry.table, ()):
        return Verdict("constant", _CONSTANT)
    source = result["more"].get("source", "")
    if source == STAND_IN:
        return Verdict("other data", f"{source}: the published ones are not public")
    if verdict.word in ("holds", "ours alone"):
        return verdict
    found = (
        _FOUND.get((entry.table, entry.row))
        or _failed_starts(entry, result)
        or _tied_starts(entry, result)
        or _silent(result)
        or _spread(entry, result)
    )
    return Verdict(verdict.word, f"{verdict.reason}: {found}") if found else verdict


def _failed_starts(entry: Entry, result: Result) -> str:
    """In words, how many single starts failed, where the others hold."""
    if entry.study not in _STARTS or not entry.measurement.key.startswith("{metric}"):
        return ""
    values = result["values"][entry.key("paper")]
    good = [v for v in values if judge(entry.published, Ours.of([v])).word != "below"]
    if not good or judge(entry.published, Ours.of(good)).word != "holds":
        return ""
    failed = f"{len(values) - len(good)} of {len(values)} single starts end in a poor minimum"
    return f"{failed}, the others give {Ours.of(good)}{_STARTS[entry.study]}"


def _tied_starts(entry: Entry, result: Result) -> str:
    """In words, how many starts give their highest score to many rows, where the others hold."""
    shares = result["more"].get("tied at the top", [])
    values = result["values"][entry.key("paper")]
    untied = [v for v, share in zip(values, shares, strict=False) if share <= _FEW]
    if not untied or judge(entry.published, Ours.of(untied)).word != "holds":
        return ""
    tied = f"{len(values) - len(untied)} of {len(values)} starts give their highest score to up to"
    return (
        f"{tied} {max(shares):.0%} of the rows, which the trapezoid flatters; the others give "
        f"{Ours.of(untied)}"
    )


def _silent(result: Result) -> str:
    """In words, how many rows a network cannot tell apart, where they are the most."""
    silent = result["more"].get("silent", 0.0)
    if silent <= 0.5:
        return ""
    return (
        f"{silent:.0%} of the test rows leave the first layer of RBFs silent, so little or nothing "
        "tells them apart, and an area then says little: likely the cause, not a proven one"
    )


def _spread(entry: Entry, result: Result) -> str:
    """In words, that the difference is one between starts, where it is."""
    ours = Ours.of(result["values"][entry.key("paper")])
    if judge(Published(entry.published.mean, ours.std), ours).word != "holds":
        return ""
    return (
        f"within {STDS:g} standard deviations of our own {ours.n} starts, where the published one "
        f"is {entry.published.std or 0:.3f}"
    )
