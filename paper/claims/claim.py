"""A claim: a sentence of the paper that compares figures, and what the results say of it.

A claim is a list of contrasts, each of two figures or of one and a number. A one-sided test at 5 %
decides whether a contrast *agrees* with the sentence, one of the contrary at 5 % over the number of
tests whether it *differs*; where neither does one *cannot tell*. The contrary of "within 0.02 of"
is to be more than that apart. A claim agrees where as many
contrasts do as it needs, and differs where too many do for that. Where some may fail, the 5 % of
the first test are divided by one more than those, or a claim would hold by the luck of the others.
One that needs all of them also differs where their mean does: forty figures that are each a little
below a number are so together.
The same tests are made of the published means, so that it is seen what they bear by themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scipy import stats

from paper.cells import Cell, Result, Results
from paper.comparison import CIRCLES
from paper.measures import METRICS
from paper.plan import Measurement, Plan
from paper.published import Ours, Published
from paper.tables import TABLES
from paper.tables.mvtec import STAND_IN
from paper.verdicts import LEVEL, MARGIN, Terms, Verdict, standard_error

SEEN = 0.0005  # figures without chance that are closer than this are the same, as printed
ENOUGH = 10  # runs on either side for an interval of ours to say something
RELATIONS = {
    "above": "is above",
    "below": "is below",
    "same": f"is within {MARGIN:g} of",
    "no worse": f"is no more than {MARGIN:g} below",
    "chosen": "is at least",
}


@dataclass(frozen=True)
class Value:
    """A figure that a claim speaks of.

    Attributes
    ----------
    label : str
    study : str
        The study whose cell measures it.
    measurement : Measurement
    published : Ours, default=None
        The mean, the deviation and the number of runs that the paper has, where it has one.
    rounding : float, default=0.0
        Half a unit of the last digit of the published mean.
    read : callable, default=None
        From a cell's result to the numbers; those under the measurement's key by default.
    """

    label: str
    study: str
    measurement: Measurement
    published: Ours | None = None
    rounding: float = 0.0
    read: Callable[[Result], Sequence[float]] | None = None

    def cell(self, plan: Plan) -> Cell:
        """The cell that measures it, by the first protocol of the plan."""
        return self.measurement.cell(self.study, plan, plan.protocols[0])

    def numbers(self, result: Result, plan: Plan) -> Sequence[float]:
        """One for each repetition."""
        if self.read is not None:
            return self.read(result)
        at = self.measurement.key.format(metric=METRICS[plan.protocols[0]])
        return result["values"].get(at, [])


def of(table: str, row: str, column: str) -> Value:
    """A figure of a published table.

    Examples
    --------
    >>> of("thyroid", "Overall", "HS").published
    Ours(mean=0.615, std=0.032, n=3)
    """
    planned = TABLES[table]
    measurement, figure = planned.measurement(row, column), planned.published.rows[row][column]
    published = None
    if figure is not None and figure.mean is not None:
        published = Ours(figure.mean, figure.std or 0.0, measurement.seeds)
    rounding = planned.published.rounding
    return Value(f"{row}, {column}", planned.study.name, measurement, published, rounding)


@dataclass(frozen=True)
class Contrast:
    """What a claim says of two figures, in a word of `RELATIONS`.

    `paired` figures are of the same draws, seed by seed. A setting is "chosen" over another if its
    mean is not lower, by however little: that is how cross-validation chooses.
    """

    left: Value
    relation: str
    right: Value | float
    paired: bool = False

    @property
    def values(self) -> tuple[Value, ...]:
        return (self.left, self.right) if isinstance(self.right, Value) else (self.left,)

    @property
    def words(self) -> str:
        """The contrast as a sentence."""
        right = self.right.label if isinstance(self.right, Value) else f"{self.right:g}"
        return f"{self.left.label} {RELATIONS[self.relation]} {right}"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, in a few words, and the contrasts that it comes to.

    `needed` is how many of them must agree; all by default. `note` is what else must be known.
    `is_counted` is false of what the paper does not say, or of a sentence that is judged twice.
    """

    name: str
    says: str
    contrasts: tuple[Contrast, ...]
    needed: int | None = None
    note: str = ""
    is_counted: bool = True

    @property
    def relation(self) -> str:
        """The one that all contrasts have in common; nothing where they have not."""
        relations = {contrast.relation for contrast in self.contrasts}
        return relations.pop() if len(relations) == 1 else ""

    @property
    def spare(self) -> int:
        """How many of the contrasts need not agree."""
        return len(self.contrasts) - (self.needed or len(self.contrasts))

    @property
    def judges_mean(self) -> bool:
        """Whether the mean of all contrasts says something of it: it needs them all, one way."""
        one_sided = self.relation in ("above", "below", "no worse")
        return self.needed is None and one_sided and len(self.contrasts) > 1

    @property
    def n_tests(self) -> int:
        """Over how many tests the level of the contrary is divided."""
        return len(self.contrasts) + self.judges_mean

    def cells(self, plan: Plan) -> list[Cell]:
        """The cells behind it, each once."""
        found = (value.cell(plan) for contrast in self.contrasts for value in contrast.values)
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Line:
    """A contrast with the figures of both sides and the word for it, ours and published.

    `apart` is how far our left figure is above the right one, and `doubt` how likely a difference
    that supports the contrast as much is where the contrast is not so: the smaller, the more
    evidence. Both are None where nothing was judged.
    """

    words: str
    ours: str
    verdict: str
    published: str
    published_verdict: str
    apart: float | None = None
    doubt: float | None = None


@dataclass(frozen=True)
class Told:
    """What the results say of a claim, and what the published figures do."""

    claim: Claim
    verdict: Verdict
    published: Verdict
    lines: tuple[Line, ...]


def tell(claim: Claim, plan: Plan, results: Results, *, margins: float = 1.0) -> Told:
    """Judge a claim by the results of its cells, and by the published figures.

    `margins` is how many times the usual margin counts as the same figure.
    """
    needed, margin = claim.needed or len(claim.contrasts), margins * MARGIN
    lines = tuple(_line(contrast, claim, plan, results, margin) for contrast in claim.contrasts)
    ours = _together([line.verdict for line in lines], needed)
    if ours.word == "cannot tell" and claim.judges_mean:
        apart, n = _mean_of(claim, plan, results), claim.n_tests
        if apart and _word(chances(claim.relation, apart, 0.0, margin=margin), n=n) == "differs":
            ours = Verdict("differs", f"{ours.reason}; their mean, apart by {apart}, differs")
    published = _together([line.published_verdict for line in lines], needed)
    return Told(claim, ours, published, lines)


def _mean_of(claim: Claim, plan: Plan, results: Results) -> Ours | None:
    """The mean of all differences, run by run; None where contrasts have not as many runs."""
    pairs = []
    for contrast in claim.contrasts:
        left, *right = (v.numbers(results.of(v.cell(plan)) or {}, plan) for v in contrast.values)
        pairs.append((left, *right) if right else (left, [contrast.right] * len(left)))
    lengths = {len(side) for sides in pairs for side in sides}
    if len(lengths) > 1 or min(lengths) < 2:
        return None
    apart = [[a - b for a, b in zip(*sides, strict=True)] for sides in pairs]
    return Ours.of([sum(run) / len(run) for run in zip(*apart, strict=True)])


def _line(contrast: Contrast, claim: Claim, plan: Plan, results: Results, margin: float) -> Line:
    found = [results.of(value.cell(plan)) for value in contrast.values]
    printed = [value.published for value in contrast.values]
    line = Line(contrast.words, "", _missing(found), "", "none")
    if not line.verdict:
        sides = [v.numbers(r, plan) for v, r in zip(contrast.values, found, strict=True) if r]
        line = _judged(line, contrast, sides, claim, margin)
    if all(printed):
        # A printed deviation may be off by half a unit of its last digit, as the mean may.
        widest = [
            replace(v.published, std=v.published.std + v.rounding * (v.published.n > 1))
            for v in contrast.values
            if v.published
        ]
        right = widest[1] if len(widest) > 1 else contrast.right
        rounding = sum(value.rounding for value in contrast.values)
        n, spare = len(claim.contrasts), claim.spare
        word = judged(contrast.relation, widest[0], right, n=n, spare=spare, rounding=rounding)
        line = replace(line, published=" and ".join(map(str, printed)), published_verdict=word)
    return line


def _missing(found: Sequence[Result | None]) -> str:
    """Why there is nothing to judge, in a word of the verdicts; nothing where there is."""
    if any(result is None for result in found):
        return "not run"
    if any("skipped" in result for result in found if result):
        return "skipped"
    sources = [result["more"].get("source", "") for result in found if result]
    return "other data" if STAND_IN in sources else ""


def _judged(
    line: Line, contrast: Contrast, sides: Sequence[Sequence[float]], claim: Claim, margin: float
) -> Line:
    """The line with the word for measured numbers, and with the figures in words."""
    if not all(len(side) for side in sides):
        return replace(line, verdict="skipped", ours="no run came so far")
    figures = [Ours.of(side) for side in sides]
    told = " and ".join(map(str, figures))
    left, right = figures[0], figures[1] if len(figures) > 1 else contrast.right
    if contrast.paired and len(sides) == 2 and len(sides[0]) > 1:
        left, right = Ours.of([a - b for a, b in zip(*sides, strict=True)]), 0.0
        told += f", apart by {left}"
    found = chances(contrast.relation, left, right, margin=margin)
    word = _word(found, n=claim.n_tests, spare=claim.spare)
    apart, *_ = _difference(left, right)
    if word == "cannot tell" and all(len(side) >= ENOUGH for side in sides):
        told += "" if right == 0.0 else f", apart by {apart:.3f}"
        told += _interval(contrast, left, right)
    return replace(line, verdict=word, ours=told, apart=apart, doubt=found[0])


def _interval(contrast: Contrast, left: Ours, right: Any) -> str:
    """The interval of our difference, and the published one if that lies outside.

    Of the circles the interval is of one draw, and the published difference of another one.
    """
    apart, error, freedom = _difference(left, right)
    reach = float(stats.t.ppf(1 - LEVEL / 2, freedom)) * error
    told = f", 95 % interval [{apart - reach:.3f}, {apart + reach:.3f}]"
    printed, other = (_printed(side) for side in (contrast.left, contrast.right))
    is_drawn = contrast.left.measurement.dataset == CIRCLES
    if printed is not None and other is not None and not is_drawn:
        theirs = printed - other
        if abs(theirs - apart) > reach + sum(value.rounding for value in contrast.values):
            told += f", which excludes the published {theirs:+.3f}"
    return told


def _printed(side: Value | float) -> float | None:
    """The published mean of a figure, or the number that a figure is compared with."""
    if isinstance(side, Value):
        return side.published.mean if side.published else None
    return side


def judged(
    relation: str, left: Any, right: Any, *, n: int = 1, spare: int = 0, rounding: float = 0.0
) -> str:
    """ "agrees", "differs" or "cannot tell": of two means, or of a mean and a number.

    `n` is how many tests a claim has, and `spare` how many of its contrasts need not agree.
    `rounding`, by which the difference may be off, counts against agreement and against the
    contrary.

    Examples
    --------
    >>> judged("above", Ours(0.95, 0.01, 5), Ours(0.90, 0.01, 5))
    'agrees'
    >>> judged("above", Ours(0.95, 0.1, 5), 0.9), judged("below", Ours(0.95, 0.01, 5), 0.9)
    ('cannot tell', 'differs')
    >>> judged("same", Ours(0.901, 0.01, 20), Ours(0.9, 0.01, 20))
    'agrees'
    """
    return _word(chances(relation, left, right, rounding=rounding), n=n, spare=spare)


def _word(found: tuple[float, float], *, n: int, spare: int = 0) -> str:
    """The word for what `chances` has found."""
    agrees, differs = found
    if agrees <= LEVEL / (spare + 1):
        return "agrees"
    return "differs" if differs <= LEVEL / n else "cannot tell"


def _difference(left: Any, right: Any) -> tuple[float, float, float]:
    """Of two means, or of a mean and a number, with its standard error and freedom."""
    other = right if isinstance(right, Ours) else Ours(float(right), 0.0, 1)
    error, freedom = standard_error(
        Published(other.mean, other.std), left, Terms(runs=max(other.n, 1))
    )
    return left.mean - other.mean, error, freedom


def chances(
    relation: str, left: Any, right: Any, *, rounding: float = 0.0, margin: float = MARGIN
) -> tuple[float, float]:
    """How likely so clear a difference is where the contrast is not so, and where it is.

    Zeros and ones of figures without chance.

    Examples
    --------
    >>> round(chances("above", Ours(0.95, 0.1, 5), 0.9)[0], 2), chances("above", Ours(1, 0, 1), 0.9)
    (0.19, (0.0, 1.0))
    """
    apart, error, freedom = _difference(left, right)
    if error == 0:
        word = _exactly(relation, apart, rounding, margin)
        return float(word != "agrees"), float(word != "differs")

    def beyond(limit: float) -> float:
        """How likely so large a difference is where the true one is no larger than the limit."""
        return float(stats.t.sf((apart - rounding - limit) / error, freedom))

    def short_of(limit: float) -> float:
        return float(stats.t.cdf((apart + rounding - limit) / error, freedom))

    return {
        "above": (beyond(0), short_of(0)),
        "below": (short_of(0), beyond(0)),
        "same": (
            max(beyond(-margin), short_of(margin)),
            2 * min(beyond(margin), short_of(-margin)),
        ),
        "no worse": (beyond(-margin), short_of(-margin)),
        "chosen": (float(apart < rounding), short_of(0)),
    }[relation]


def _exactly(relation: str, apart: float, rounding: float, margin: float) -> str:
    """The word for figures without chance that are so far apart, give or take the rounding."""
    possible = (apart - rounding, apart + rounding)
    is_so = {
        "above": [x > SEEN for x in possible],
        "below": [x < -SEEN for x in possible],
        "same": [abs(x) <= margin for x in (*possible, apart)],
        "no worse": [x >= -margin for x in possible],
        "chosen": [x >= 0 for x in possible],
    }[relation]
    if all(is_so):
        return "agrees"
    return "cannot tell" if any(is_so) else "differs"


def _together(words: Sequence[str], needed: int) -> Verdict:
    """The verdict on a claim, of those on its contrasts."""
    n, agree, differ = len(words), words.count("agrees"), words.count("differs")
    for lacking in ("not run", "skipped", "other data", "none"):
        if lacking in words:
            return Verdict(lacking, f"{words.count(lacking)} of {n} contrasts: {lacking}")
    told = f"{agree} of {n} agree, {differ} differ" + ("" if needed == n else f"; needs {needed}")
    if agree >= needed:
        return Verdict("agrees", told)
    return Verdict("differs" if n - differ < needed else "cannot tell", told)
