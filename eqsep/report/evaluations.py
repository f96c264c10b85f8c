"""The report of an evaluation: each kind seen in turn, several methods side by side."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from eqsep.detector.namer import kind_text
from eqsep.evaluation import OVERALL, Curve, Difference, Interval, precision_recall_by_kind
from eqsep.evaluation.kinds import average_precision_difference, average_precision_interval
from eqsep.evaluation.left_out import LeaveOneKindOut, SeenKind, Tested
from eqsep.evaluation.names import NamesTried
from eqsep.labels import WITHOUT

PARTS = ("seen", "unseen", "overall")
_ROWS_FOR_FIGURES = 30  # of a kind: with fewer, its figures depend on single rows
_MIN_ROWS_OF_KIND = 10  # with fewer, its figures mean nothing
_RESAMPLES = 200


@dataclass(frozen=True)
class MethodOnKind:
    """How a method that saw one kind of anomaly does on the test rows."""

    parts: dict[str, Interval]  # average precision: "seen", all "unseen" kinds, "overall"
    by_kind: dict[str, Interval]
    gain: dict[str, Difference]  # of the first method over this one by part; empty for the first


@dataclass(frozen=True)
class EvaluationReport:
    """All that the page of an evaluation shows."""

    title: str
    normal: str  #: The label of normal rows; the page calls them "normal".
    counts: dict[str, int]  #: The rows of each kind.
    doubted: bool  #: Whether rows that stand for normal ones may be anomalies.
    methods: tuple[str, ...]
    kinds: tuple[str, ...]
    cells: dict[tuple[str, str], MethodOnKind]  #: By method and seen kind.
    means: dict[str, dict[str, float]]  #: By method and part, over the seen kinds.
    curves: dict[str, dict[str, Curve]]  #: Of the first method, by the seen kind.
    command: str  #: The command that makes this report again.
    unit: str = ""  #: What is kept whole, "group" or "time block"; else empty.
    names: NamesTried | None = None  #: Of the first method; None with too few rows.
    called: Callable[[str], str] = kind_text  #: Turns a kind into text.

    template = "evaluation.html.jinja"

    @property
    def looked_for(self) -> tuple[str, ...]:
        """All kinds of anomaly, seen or not."""
        return tuple(self.cells[self.methods[0], self.kinds[0]].by_kind)

    @property
    def parts(self) -> tuple[str, ...]:
        """What could be measured: with only one kind, nothing unseen."""
        return PARTS if len(self.looked_for) > 1 else PARTS[:1]

    @property
    def headings(self) -> tuple[str, ...]:
        """What each part measures: the rows of all unseen kinds are taken together."""
        return tuple("unseen, together" if part == "unseen" else part for part in self.parts)

    def by_kind(self, method: str) -> dict[tuple[str, str], float]:
        """Average precision of each kind against all normal rows, by the seen kind and this one."""
        pairs = product(self.kinds, self.looked_for)
        return {(seen, kind): self.cells[method, seen].by_kind[kind].value for seen, kind in pairs}

    def mean_over_kinds(self, method: str) -> dict[str, float]:
        """The mean over "seen" and over "unseen" kinds; rare kinds count as much as common ones."""
        values: dict[str, list[float]] = {}
        for (seen, kind), value in self.by_kind(method).items():
            values.setdefault("seen" if seen == kind else "unseen", []).append(value)
        return {part: float(np.mean(found)) for part, found in values.items()}

    def leads(self, method: str) -> int:
        """In how many pairs of a seen kind and a kind to find it beats all others."""
        others = [self.by_kind(other) for other in self.methods if other != method]
        own = self.by_kind(method).items()
        return sum(all(value > other[cell] for other in others) for cell, value in own)

    def better_at(self, method: str, *, most: int = 3) -> list[tuple[str, str, float, float]]:
        """Where a method is furthest ahead of the first: seen kind, kind, its value, the first's.

        Kinds with fewer than 10 rows are left out.
        """
        first = self.by_kind(self.methods[0])
        ahead = [(*cell, v, first[cell]) for cell, v in self.by_kind(method).items()]
        enough = {
            kind
            for kind in self.looked_for
            if self.counts.get(kind, _ROWS_FOR_FIGURES) >= _MIN_ROWS_OF_KIND
        }
        ahead = [one for one in ahead if one[2] > one[3] and one[1] in enough]
        return sorted(ahead, key=lambda one: one[3] - one[2])[:most]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures mean, and what could not be measured, in sentences."""
        notes = []
        if self.doubted:
            rows = WITHOUT if self.normal == WITHOUT else f"labelled {self.normal}"
            n = self.counts[WITHOUT if self.normal == WITHOUT else "normal"]
            notes.append(
                f"{n:,} rows {rows} count as normal, and some may be anomalies that nobody has "
                f"noticed. Finding these counts as a false alarm, so with truly normal rows every "
                f"figure would be as high or higher."
            )
        elif WITHOUT in self.counts:
            notes.append(
                f"Only {self.methods[0]} learns the {self.counts[WITHOUT]:,} rows {WITHOUT}, as in "
                f"a fit; nothing is measured on them."
            )
        if len(self.looked_for) == 1:
            notes.append(
                f"All labelled anomalies are of one kind, {self.called(self.kinds[0])}, so unseen "
                f"kinds could not be measured. Give each kind its own name, or label anomalies of "
                f"a second kind, and evaluate again."
            )
        counts = {kind: self.counts.get(kind, _ROWS_FOR_FIGURES) for kind in self.looked_for}
        few = [f"{self.called(kind)} ({n})" for kind, n in counts.items() if n < _ROWS_FOR_FIGURES]
        if few:
            notes.append(
                f"Fewer than {_ROWS_FOR_FIGURES} rows: {', '.join(few)}. Their figures depend on "
                f"single rows, and with fewer than 10 rows their intervals do, too."
            )
        if self.unit:
            notes.append(
                f"A {self.unit} is either in training or in the test, never in both. Intervals "
                f"assume independent rows; they are too narrow if rows of a {self.unit} are alike."
            )
            absent = [k for k in self.counts if k not in ("normal", WITHOUT, *self.looked_for)]
            alone = [kind for kind in self.looked_for if kind not in self.kinds]
            for what, which in (
                ("Never in the test", absent),
                ("Not the seen kind in turn", alone),
            ):
                notes += [f"{what}: {', '.join(map(self.called, which))}."] * bool(which)
        return tuple(notes)

    def told_apart(self, method: str, part: str) -> tuple[int, int]:
        """For how many seen kinds the first method is significantly ahead of another, or behind."""
        gains = [self.cells[method, kind].gain[part] for kind in self.kinds]
        return sum(gain.low > 0 for gain in gains), sum(gain.high < 0 for gain in gains)


def evaluation_report(  # noqa: PLR0913  results and what is known about them
    results: Mapping[str, LeaveOneKindOut],
    *,
    counts: Mapping[str, int],
    doubted: bool = False,
    unit: str = "",
    title: str = "Leave one kind out",
    command: str = "",
    random_state: Any = 0,
) -> EvaluationReport:
    """Intervals, differences and curves of leave-one-kind-out results, by the name of the method.

    All results are for the same rows and division, and are compared with the first. `counts` are
    the rows of each kind, the normal one first; `random_state` is for the intervals.
    """
    first = next(iter(results.values())).results
    tested = {result.kind: _tested(result) for result in first}
    normal = tested[first[0].kind].normal
    means = {name: result.mean for name, result in results.items()}
    curve = partial(precision_recall_by_kind, normal=normal)
    return EvaluationReport(
        title=title,
        normal=normal,
        counts={"normal" if name == normal != WITHOUT else name: n for name, n in counts.items()},
        doubted=doubted,
        methods=tuple(results),
        kinds=tuple(tested),
        cells={
            (method, own.kind): _cell(own, base, random_state)
            for method, result in results.items()
            for own, base in zip(result.results, first, strict=True)
        },
        means={name: {part: getattr(mean, part) for part in PARTS} for name, mean in means.items()},
        curves={kind: curve(rows.score, rows.kind) for kind, rows in tested.items()},
        command=command,
        unit=unit,
    )


def _cell(own: SeenKind, base: SeenKind, random_state: Any) -> MethodOnKind:
    tested = _tested(own)
    kind = tested.kind
    draws = {"normal": tested.normal, "n_resamples": _RESAMPLES, "random_state": random_state}
    rows = {"overall": np.ones(len(kind), dtype=bool), "unseen": kind != own.kind}
    rows["seen"] = np.isin(kind, (own.kind, tested.normal))

    def intervals(part: str) -> dict[str, Interval]:
        return average_precision_interval(tested.score[rows[part]], kind[rows[part]], **draws)

    def gain(part: str) -> Difference:
        scores = {"first": _tested(base).score[rows[part]], "own": tested.score[rows[part]]}
        return average_precision_difference(scores, kind[rows[part]], **draws)[OVERALL]

    by_kind = intervals("overall")
    parts = {"seen": by_kind[own.kind], "overall": by_kind.pop(OVERALL)}
    if len(by_kind) > 1:
        parts["unseen"] = intervals("unseen")[OVERALL]
    return MethodOnKind(parts, by_kind, {} if own is base else {part: gain(part) for part in parts})


def _tested(result: SeenKind) -> Tested:
    assert result.tested is not None  # only a mean has none
    return result.tested
