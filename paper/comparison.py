"""Published beside ours: what the results on disk say of every figure, by each protocol."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from paper.cells import Result, Results
from paper.measures import METRICS
from paper.plan import Entry, Measurement, Plan, Table
from paper.provenance import Provenance
from paper.published import Ours, Published
from paper.reasons import reason_for
from paper.tables.circles import BY_DRAW
from paper.tables.mvtec import STAND_IN
from paper.verdicts import MISSING, Terms, Verdict, chance_passes, judge, margin_of

_UNKNOWN = ("differs", "cannot tell")
_ENOUGH = 10  # runs to see from how figures vary together
OTHER_MARGINS = {"half": 0.5, "twice": 2.0}  # times the margin: how much the choice matters
CIRCLES = "circles"  # the data set that is drawn once, for all starts


@dataclass(frozen=True, kw_only=True)
class Line:
    """A published figure and ours, by each protocol with a verdict of its own.

    `margin` is how far apart two means may be to agree, `at_margins` has the words by protocol at
    `OTHER_MARGINS`, and `passes_by_chance` says whether a score that knows nothing would agree with
    the published one.
    """

    row: str
    column: str
    published: str
    margin: float
    paper: str
    difference: float | None
    verdict: Verdict
    corrected: str
    corrected_difference: float | None
    corrected_verdict: Verdict
    at_margins: Mapping[str, tuple[str, ...]]
    passes_by_chance: bool

    def by(self, protocol: str) -> Verdict:
        """The verdict by the protocol."""
        return self.verdict if protocol == "paper" else self.corrected_verdict

    def is_near(self, protocol: str) -> bool:
        """Whether the two means are within the margin, whatever a test can tell of it."""
        apart = self.difference if protocol == "paper" else self.corrected_difference
        return apart is not None and abs(apart) <= self.margin


@dataclass(frozen=True, kw_only=True)
class Shift:
    """The areas of a method in a table taken together, by a protocol: is there a common shift?

    `below` and `above` count the figures of ours that are so when rounded as printed. `measured`
    says what the figures measure, by study, and `is_exact` that the method has no chance.
    """

    method: str
    measured: frozenset[tuple[str, Measurement]]
    is_exact: bool
    figures: int
    below: int
    above: int
    published: str
    ours: str
    difference: float
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All lines of a table, with what a reader must know of it; `shifts` are by protocol."""

    name: str
    title: str
    label: str
    positive: str
    note: str
    changes: str
    lines: tuple[Line, ...]
    shifts: Mapping[str, tuple[Shift, ...]]
    provenance: Provenance

    def count(self, word: str, *, protocol: str = "paper") -> int:
        """How many lines have this verdict by the protocol."""
        return sum(line.by(protocol).word == word for line in self.lines)

    def count_near(self, word: str, *, protocol: str = "paper") -> int:
        """Of how many of these the two means are within the margin of each other."""
        lines = (line for line in self.lines if line.by(protocol).word == word)
        return sum(line.is_near(protocol) for line in lines)

    def count_at(self, word: str, place: int, *, protocol: str = "paper") -> int:
        """How many lines have this verdict at one of `OTHER_MARGINS`."""
        return sum(line.at_margins[protocol][place] == word for line in self.lines)

    def count_final(self, *, protocol: str = "paper") -> int:
        """Of how many no number of our runs can tell."""
        return sum(line.by(protocol).is_final for line in self.lines)

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
        name=table.name,
        title=published.title,
        label=published.label,
        positive=published.positive,
        note=table.note,
        changes=table.changes,
        lines=lines,
        shifts={name: tuple(_shifts(table, plan, results, name)) for name in plan.protocols},
        provenance=Provenance.of(made, commit=results.commit),
    )


def _shifts(table: Table, plan: Plan, results: Results, protocol: str) -> Iterator[Shift]:
    """The methods that have several areas in the table, each judged by the mean of them all."""
    by_method: dict[str, list[tuple[Entry, Result]]] = {}
    for entry in table.entries():
        result = results.of(entry.cell(plan, protocol))
        is_area = table.prevalence(entry.row, entry.column) is not None
        if not result or not _ours(entry, protocol, result) or not is_area:
            continue
        if entry.published.mean is not None and result["more"].get("source", "") != STAND_IN:
            by_method.setdefault(entry.measurement.method, []).append((entry, result))
    for method, found in by_method.items():
        if len(found) > 1:
            yield _shift(table, method, found, protocol)


def _shift(
    table: Table, method: str, found: Sequence[tuple[Entry, Result]], protocol: str
) -> Shift:
    """The means over the figures, ours run by run.

    The deviation of the published mean is at most the mean of the published deviations. It is as
    much less as ours is, where our runs are enough to see that: figures that have nothing to do
    with each other vary less together, and those of one data set do not.
    """
    entries = [entry for entry, _ in found]
    terms = [terms_of(table, entry, result, protocol) for entry, result in found]
    values = [result["values"][entry.key(protocol)] for entry, result in found]
    means, stds = [e.published.mean for e in entries], [e.published.std for e in entries]
    ours = Ours.of([fmean(run) for run in zip(*values, strict=True)])
    spread = fmean(Ours.of(one).std for one in values)
    less = min(ours.std / spread, 1.0) if ours.n >= _ENOUGH and spread > 0 else 1.0
    published = Published(
        fmean(mean for mean in means if mean is not None),
        None if None in stds else less * fmean(std for std in stds if std is not None),
    )
    apart = [fmean(v) - (mean or 0.0) for v, mean in zip(values, means, strict=True)]
    rounding = terms[0].rounding
    below, above = (sum(sign * a > rounding + 1e-9 for a in apart) for sign in (-1, 1))
    draws = [result["values"].get(entry.key(protocol) + BY_DRAW) for entry, result in found]
    by_draw = Ours.of([fmean(d) for d in zip(*draws, strict=True)]) if all(draws) else None
    is_exact = terms[0].runs == 1 and by_draw is None
    if is_exact:
        word = "differs" if below + above else "agrees"
        verdict = Verdict(word, f"{len(found) - below - above} of {len(found)} equal when rounded")
    else:
        verdict = judge(published, ours, replace(terms[0], by_draw=by_draw))
    return Shift(
        method=method,
        measured=frozenset((entry.study, entry.measurement) for entry in entries),
        is_exact=is_exact,
        figures=len(found),
        below=below,
        above=above,
        published=str(published),
        ours=str(ours),
        difference=fmean(apart),
        verdict=verdict,
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
    ours, verdicts, at_margins = {}, {}, {}
    for protocol in METRICS:
        result = results[protocol]
        terms = terms_of(table, entry, result, protocol)
        ours[protocol] = _ours(entry, protocol, result)
        verdicts[protocol] = _verdict(entry, result, ours[protocol], terms)
        others = (replace(terms, margins=times) for times in OTHER_MARGINS.values())
        at_margins[protocol] = tuple(
            _verdict(entry, result, ours[protocol], other).word for other in others
        )
    terms, told = terms_of(table, entry, None, "paper"), verdicts["paper"]
    if told.word in _UNKNOWN:
        none = "open: no reason is known" if told.word == "differs" else ""
        reason = reason_for(entry, results, terms) or none
        told = replace(told, reason=f"{told.reason}: {reason}" if reason else told.reason)
    paper, difference = _told(entry, ours["paper"])
    corrected, corrected_difference = _told(entry, ours["corrected"])
    prevalence = table.prevalence(entry.row, entry.column)
    return Line(
        row=entry.row,
        column=entry.column,
        published=str(entry.published),
        margin=margin_of(entry.published.mean or 1.0),
        paper=paper,
        difference=difference,
        verdict=told,
        corrected=corrected,
        corrected_difference=corrected_difference,
        corrected_verdict=verdicts["corrected"],
        at_margins=at_margins,
        passes_by_chance=chance_passes(entry.published, terms, prevalence),
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
