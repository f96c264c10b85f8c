"""What a run found, as Markdown and as one self-contained HTML page: from results on disk alone."""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from paper.cells import Cell, Results, write_text
from paper.claims import CLAIMS, HEADLINES, NAME, Claims
from paper.claims.claim import Told, tell
from paper.comparison import CIRCLES, OTHER_MARGINS, Comparison, Line, Shift, compare
from paper.figures import FIGURES, Figure
from paper.plan import Plan, Table
from paper.provenance import Provenance
from paper.tables import TABLES
from paper.verdicts import JUDGED, LEVEL, WORDS

HOLDS = {"agrees": "holds", "differs": "does not hold"}  # any other verdict: open
MARKDOWN, HTML = "reproduction.md", "reproduction.html"


@dataclass(frozen=True)
class Picture:
    """A figure as the bytes of a PNG, or why there is none."""

    name: str
    title: str
    caption: str
    png: bytes = b""
    missing: str = ""

    @property
    def source(self) -> str:
        """The PNG within the page itself."""
        return "data:image/png;base64," + b64encode(self.png).decode()


@dataclass(frozen=True)
class Headline:
    """A main claim of the paper: whether it holds, by which figure, and where the claim stands.

    `again` is whether it holds with the plan's second protocol; empty where that says nothing.
    """

    says: str
    word: str
    again: str
    figure: str
    link: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that a page shows.

    `lacking` of the `planned` cells have no result yet. `again` has the verdicts on claims with the
    second protocol, where its cells are planned, and `at_margins` those with the first protocol at
    `OTHER_MARGINS`. `archive` is the SHA-256 of the archive that has all of them.
    """

    plan: Plan
    comparisons: tuple[Comparison, ...]
    pictures: tuple[Picture, ...]
    claims: tuple[Told, ...]
    provenance: Provenance
    planned: int
    lacking: int
    again: Mapping[str, str] = field(default_factory=dict)
    at_margins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    archive: str = ""

    @property
    def protocol(self) -> str:
        """The protocol whose verdicts are counted table by table: the first that was run."""
        return self.plan.protocols[0]

    @property
    def headlines(self) -> tuple[Headline, ...]:
        """The main claims, in the order of the paper: the first screen of the page."""
        found = {told.claim.name: told for told in self.claims}
        return tuple(
            Headline(
                says=says,
                word=HOLDS.get(found[name].verdict.word, "open"),
                again=HOLDS.get(self.again[name], "open") if name in self.again else "",
                figure=_decisive(found[name]),
                link=f"claim-{anchor(name)}",
            )
            for name, says in HEADLINES.items()
            if name in found
        )

    def counted(self, word: str, *, protocol: str = "paper") -> int:
        """How many figures of all tables have this verdict by the protocol."""
        return sum(table.count(word, protocol=protocol) for table in self.comparisons)

    @property
    def summary(self) -> tuple[str, ...]:
        """What comes first, in a sentence for each protocol and one of what chance would pass."""
        published = sum(len(table.lines) for table in self.comparisons)
        published -= self.counted("ours alone", protocol=self.protocol)
        told = [self._verdicts(protocol) for protocol in self.plan.protocols]
        by_chance = sum(table.passed_by_chance for table in self.comparisons)
        no_evidence = sum(
            table.agreeing_as_chance(protocol=self.protocol) for table in self.comparisons
        )
        missing = sum(table.missing(protocol=self.protocol) for table in self.comparisons)
        return (
            f"{published} published figures: {self.printed_again} appear in a second table as well "
            f"and {missing} have no figure of ours (other data, skipped, or not run).",
            *told,
            f"A constant or random score would agree with {by_chance}; {no_evidence} of these are "
            f"among those that agree with ours under the {self.protocol} protocol.",
            *self.claims_summary,
        )

    def _verdicts(self, protocol: str) -> str:
        """How many figures have each verdict, with and without repeats, and how many methods."""
        agree, differ, open_ = (self.counted(word, protocol=protocol) for word in JUDGED)
        close, near = (
            sum(table.count_near(word, protocol=protocol) for table in self.comparisons)
            for word in ("differs", "cannot tell")
        )
        tested = [word for word in self._tested(protocol) if word in JUDGED]
        final = sum(table.count_final(protocol=protocol) for table in self.comparisons)
        distinct = [line.by(protocol).word for line in self.distinct]
        methods = self.methods(protocol)
        exact = [s.verdict.word for s in methods if s.is_exact]
        pooled = [s.verdict.word for s in methods if not s.is_exact]
        return (
            f"Under the {protocol} protocol {agree} agree with ours, {differ} differ and {open_} "
            f"cannot be judged. The two means are within the margin in {close} of those that "
            f"differ and {near} of those that cannot be judged; {final} of the latter would stay "
            "open with any number of our runs, if our means stay where they are. Of "
            f"{len(tested)} figures that are judged by a test {tested.count('differs')} differ; if "
            f"all were equal, at most {int(LEVEL * len(tested))} would on average. With "
            f"{self._at_other_margins(protocol)}. Counting each figure once: {_counted(distinct)}. "
            f"Judging each method as a whole, once, by the mean of its areas ({len(pooled)} means "
            f"of runs): {_counted(pooled)}. Of {len(exact)} deterministic methods "
            f"{exact.count('agrees')} have all areas as printed."
        )

    def methods(self, protocol: str) -> tuple[Shift, ...]:
        """Each method as a whole, without those whose figures are all in another table as well."""
        found = [shift for table in self.comparisons for shift in table.shifts[protocol]]
        return tuple(
            shift
            for i, shift in enumerate(found)
            if not any(
                shift.measured < other.measured or (shift.measured == other.measured and j < i)
                for j, other in enumerate(found)
            )
        )

    def _at_other_margins(self, protocol: str) -> str:
        """How many figures agree and differ with other margins: how much the choice matters."""
        told = []
        for place, times in enumerate(OTHER_MARGINS):  # in words
            agree, differ, open_ = (
                sum(table.count_at(word, place, protocol=protocol) for table in self.comparisons)
                for word in JUDGED
            )
            told.append(
                f"{times} the margin {agree} agree, {differ} differ and {open_} cannot be judged"
            )
        return ", with ".join(told)

    def _tested(self, protocol: str) -> list[str]:
        """The verdicts on means of runs or draws, where others are equal when rounded or not."""
        return [
            line.by(protocol).word
            for table in self.comparisons
            for entry, line in zip(TABLES[table.name].entries(), table.lines, strict=True)
            if entry.measurement.seeds > 1 or entry.measurement.dataset == CIRCLES
        ]

    @property
    def distinct(self) -> tuple[Line, ...]:
        """The printed figures without those that the paper has in a table before."""
        found: dict[tuple[Any, ...], Line] = {}
        for table in self.comparisons:
            for entry, line in zip(TABLES[table.name].entries(), table.lines, strict=True):
                if entry.published.is_printed:
                    found.setdefault((entry.study, entry.measurement, entry.published), line)
        return tuple(found.values())

    @property
    def printed_again(self) -> int:
        """How many figures the paper has in a table before: the same of the same measurement."""
        entries = [e for table in self.comparisons for e in TABLES[table.name].entries()]
        return sum(e.published.is_printed for e in entries) - len(self.distinct)

    @property
    def claims_summary(self) -> tuple[str, ...]:
        """How many claims of order there are, and the verdicts on them; nothing without any."""
        if not self.claims:
            return ()
        words = self.claim_words
        margins = ", with ".join(
            f"{times} the margin {_counted(at[name] for name in words)}"
            for times, at in self.at_margins.items()
        )
        told = (
            f"Of {len(words)} claims that compare figures, under the {self.protocol} protocol "
            f"{_counted(words.values())} and {sum(word not in JUDGED for word in words.values())} "
            f"lack data or have not been run. With {margins}."
        )
        again = {n: word for n, word in self.again.items() if n in words and word in JUDGED}
        if not again:
            return (told,)
        both = [word for name, word in again.items() if words[name] == "agrees"]
        return (
            told,
            f"Under the {self.plan.protocols[1]} protocol {len(again)} of these claims were "
            f"measured as well: {_counted(again.values())}. They include {len(both)} that agree "
            f"under the {self.protocol} protocol; {len(both) - both.count('agrees')} of the "
            f"{len(both)} no longer agree, and {both.count('differs')} of them differ.",
        )

    @property
    def claim_words(self) -> dict[str, str]:
        """The verdicts on the claims that count, by name."""
        return {t.claim.name: t.verdict.word for t in self.claims if t.claim.is_counted}


def cells_of(name: str, plan: Plan) -> list[Cell]:
    """The cells of a table or a figure, or of all claims."""
    parts: dict[str, Table | Figure | Claims] = {**TABLES, **FIGURES, NAME: CLAIMS}
    return parts[name].cells(plan)


def report(
    names: Iterable[str], plan: Plan, out: Path, *, commit: str = "", draw: bool = True
) -> Report:
    """Read the results of the tables and figures of these names, judge and draw them.

    They are judged as by the code of `commit`, and pictures are blank unless they are to be drawn.
    """
    results, names = Results(out, commit=commit), list(names)
    has_claims = NAME in names
    cells = {cell for name in names for cell in cells_of(name, plan)}
    lacking = sum(results.of(cell) is None for cell in cells)
    comparisons = tuple(compare(TABLES[name], plan, results) for name in names if name in TABLES)
    pictures = tuple(
        _picture(FIGURES[name], plan, results, draw=draw) for name in names if name in FIGURES
    )
    return Report(
        plan=plan,
        comparisons=comparisons,
        pictures=pictures,
        claims=CLAIMS.told(plan, results) if has_claims else (),
        provenance=Provenance.of(results.made(), commit=commit),
        planned=len(cells),
        lacking=lacking,
        again=_again(cells, plan, results) if has_claims else {},
        at_margins={
            times: {
                told.claim.name: told.verdict.word
                for told in CLAIMS.told(plan, results, margins=margins)
            }
            for times, margins in OTHER_MARGINS.items()
        }
        if has_claims
        else {},
    )


def _again(cells: set[Cell], plan: Plan, results: Results) -> dict[str, str]:
    """The verdicts with the second protocol, on claims with nothing that the page lacks."""
    if len(plan.protocols) < 2:
        return {}
    second = replace(plan, protocols=plan.protocols[1:])
    told = (
        tell(claim, second, results) for claim in CLAIMS.claims if cells >= {*claim.cells(second)}
    )
    return {one.claim.name: one.verdict.word for one in told}


def write_pages(found: Report, out: Path) -> tuple[Path, Path]:
    """Write the Markdown and the HTML page into the folder `out`, each whole or not at all."""
    return write_text(out / MARKDOWN, markdown(found)), write_text(out / HTML, html(found))


def html(found: Report) -> str:
    """The page as one file: styles and pictures are in it, nothing is fetched."""
    page = _template("page.html.jinja", autoescape=True)
    return page.render(found=found, words=WORDS, number=number, anchor=anchor)


def markdown(found: Report) -> str:
    """The same without pictures."""
    page = _template("page.md.jinja", autoescape=False)
    return page.render(found=found, words=WORDS, number=number, cell=_markdown_cell)


def anchor(name: str) -> str:
    """The name of a claim within an address.

    Examples
    --------
    >>> anchor("RQ1, NSL-KDD, overall")
    'rq1-nsl-kdd-overall'
    """
    return "-".join(re.findall(r"[a-z0-9]+", name.lower()))


def _counted(words: Iterable[str]) -> str:
    """How many verdicts there are of each kind, as words."""
    counts = Counter(words)
    agree, differ, open_ = (counts[word] for word in JUDGED)
    return f"{agree} agree, {differ} differ, {open_} cannot be judged"


def _decisive(told: Told) -> str:
    """How many contrasts agree, and the one with the least evidence for it."""
    judged = [line for line in told.lines if line.doubt is not None]
    if len(judged) < len(told.lines):
        return told.verdict.reason
    hardest = max(judged, key=lambda line: line.doubt or 0.0)
    shown = "least evidence:" if len({line.doubt for line in judged}) > 1 else "for example,"
    words = told.verdict.reason
    if told.claim.relation == "no worse":
        words += f"; ours is lower in {sum((line.apart or 0.0) < 0 for line in judged)}"
    return f"{words}; {shown} {hardest.words}: {hardest.ours}"


def number(value: float | None, digits: int) -> str:
    """A signed number, or a dash.

    Examples
    --------
    >>> number(0.0123, 2), number(None, 2)
    ('+0.01', '–')
    """
    return "–" if value is None else f"{value:+.{digits}f}"


def lines_of(comparison: Comparison) -> list[tuple[str, ...]]:
    """The lines of a table as words, for a terminal."""
    return [_words(line) for line in comparison.lines]


def _words(line: Line) -> tuple[str, ...]:
    return (
        line.row,
        line.column,
        line.published,
        line.paper or "–",
        line.verdict.word,
        line.corrected or "–",
        line.corrected_verdict.word,
    )


def _picture(figure: Figure, plan: Plan, results: Results, *, draw: bool) -> Picture:
    cells = figure.cells(plan)
    found = {(cell.dataset, cell.method): results.of(cell) for cell in cells}
    words = (figure.name, figure.title, figure.caption)
    drawn = {at: result for at, result in found.items() if result and "values" in result}
    if len(drawn) < len(found):
        reasons = {result["skipped"] for result in found.values() if result and "skipped" in result}
        return Picture(*words, missing="; ".join(sorted(reasons)) or "not run yet")
    if not draw:
        return Picture(*words)
    from paper.figures.drawing import png

    return Picture(*words, png=png(figure.draw(drawn)))


def _template(name: str, *, autoescape: bool) -> Template:
    environment = Environment(
        autoescape=autoescape, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(files(__package__).joinpath(name).read_text("utf-8"))


def _markdown_cell(text: str) -> str:
    """`text` within a Markdown table, where a bar would end the cell."""
    return " ".join(text.replace("|", "\\|").split())
