"""Whether a published figure and ours agree: a test that could fail, and a word for its outcome.

Both figures are means of few runs. They *agree* where two one-sided tests show that they lie within
a margin of each other, and *differ* where they do not and a two-sided test tells them apart. Where
neither is so, the runs are too few or too far apart: one *cannot tell*. The printed mean and its
deviation may be off by half a unit of the last digit, which counts against agreement and against a
difference. A method without chance on the same rows must give the same figure, rounded.
"""

from dataclasses import dataclass, replace
from math import inf, sqrt

from scipy import stats

from paper.published import Ours, Published, constant_area

MARGIN = 0.02  # of areas and shares: what a reader would take for the same figure
RELATIVE_MARGIN = 0.2  # of figures below 0.1, such as areas of rare kinds: this share of them
LEVEL = 0.05  # of each one-sided test, and of the two-sided one
JUDGED = {
    "agrees": f"the two lie within {MARGIN:g} of each other, or {RELATIVE_MARGIN:.0%} of a "
    f"published figure below {MARGIN / RELATIVE_MARGIN:g}, by two one-sided tests at {LEVEL:.0%}; "
    "for a deterministic method, they are equal when rounded",
    "differs": f"they do not, and a two-sided test at {LEVEL:.0%} separates them, as it would one "
    "in twenty equal figures; for a deterministic method, they are not equal when rounded",
    "cannot tell": "neither: the runs are too few or too far apart",
}
MISSING = {
    "other data": "ours comes from other data, so it says nothing about the published figure",
    "skipped": "something that the measurement needs is missing",
    "not run": "it has not been measured yet",
}
WORDS = {**JUDGED, "ours alone": "the paper has no such figure", **MISSING}


@dataclass(frozen=True)
class Verdict:
    """A word of `WORDS`, and why.

    `is_final` says of a figure of which one cannot tell that no number of our runs would change
    that: the published spread alone is too wide.
    """

    word: str
    reason: str
    is_final: bool = False


@dataclass(frozen=True)
class Terms:
    """What a figure is compared by.

    Attributes
    ----------
    runs : int
        How many runs the published mean is of; 1 is a method without chance.
    rounding : float
        Half a unit of the last digit that is printed.
    by_draw : Ours, default=None
        Where both have one data set of their own, drawn at random: ours over several draws of it.
    one_draw : bool, default=False
        Whether both have one data set of their own, and ours was not drawn again: the verdict
        leaves that out of account, and says how far apart draws would have to be to undo it.
    margins : float, default=1.0
        How many times the usual margin counts as the same figure.
    """

    runs: int
    rounding: float = 0.0005
    by_draw: Ours | None = None
    one_draw: bool = False
    margins: float = 1.0


def margin_of(mean: float) -> float:
    """How far from a published mean a figure may be to agree with it.

    Examples
    --------
    >>> margin_of(0.9), round(margin_of(0.022), 4)
    (0.02, 0.0044)
    """
    return min(MARGIN, RELATIVE_MARGIN * abs(mean))


def judge(published: Published, ours: Ours, terms: Terms) -> Verdict:
    """Compare what was measured with what was published.

    Examples
    --------
    >>> judge(Published(0.90, 0.01), Ours(0.905, 0.01, 20), Terms(runs=20)).reason
    'apart by +0.005, give or take 0.007'
    >>> judge(Published(0.90, 0.01), Ours(0.86, 0.01, 20), Terms(runs=20)).word
    'differs'
    >>> judge(Published(0.90, 0.1), Ours(0.905, 0.01, 20), Terms(runs=3)).word
    'cannot tell'
    """
    if published.mean is None:
        if published.least is None:
            return Verdict("ours alone", "not in the paper")
        return _judge_claim(published.least, ours)
    apart = ours.mean - published.mean
    if terms.runs == 1 and terms.by_draw is None:
        word = "agrees" if abs(apart) <= terms.rounding + 1e-9 else "differs"
        return Verdict(word, f"apart by {apart:+.3f}, deterministic")
    widest = _widest(published, ours, terms)
    margin = terms.margins * margin_of(published.mean)
    error, freedom = standard_error(widest, ours, terms)
    one_sided, two_sided = _quantiles(freedom)
    word = _word(apart, error, freedom, margin=margin, rounding=terms.rounding)
    told = f"apart by {apart:+.3f}, give or take {two_sided * error + terms.rounding:.3f}"
    if margin < MARGIN:
        told += f", with a margin of {margin:.3f}"
    if word == "cannot tell":
        alone = standard_error(widest, replace(ours, std=0.0, n=1), _of_theirs(terms))
        if _word(apart, *alone, margin=margin, rounding=terms.rounding) == word:
            return Verdict(word, f"{told}; no number of our runs can decide it", is_final=True)
    if terms.one_draw and word != "cannot tell":
        room = margin - abs(apart) if word == "agrees" else abs(apart)
        quantile = one_sided if word == "agrees" else two_sided
        least = sqrt(max(((room - terms.rounding) / quantile) ** 2 - error**2, 0.0) / 2)
        told += (
            f"; of one draw of the rows each, and a deviation of {least:.3f} between draws would"
        )
        told += " undo it"
    return Verdict(word, told)


def _word(apart: float, error: float, freedom: float, *, margin: float, rounding: float) -> str:
    """The verdict on a difference of two means with this standard error."""
    one_sided, two_sided = _quantiles(freedom)
    if abs(apart) + rounding + one_sided * error <= margin + 1e-9:
        return "agrees"
    return "differs" if abs(apart) - rounding - two_sided * error > 1e-9 else "cannot tell"


def _quantiles(freedom: float) -> tuple[float, float]:
    """Of the one-sided tests and of the two-sided one."""
    one_sided, two_sided = (stats.t.ppf(1 - share, freedom) for share in (LEVEL, LEVEL / 2))
    return float(one_sided), float(two_sided)


def _of_theirs(terms: Terms) -> Terms:
    """With the spread of their draw alone: `standard_error` counts that of both."""
    if terms.by_draw is None:
        return terms
    return replace(terms, by_draw=replace(terms.by_draw, std=terms.by_draw.std / sqrt(2)))


def _widest(published: Published, ours: Ours, terms: Terms) -> Published:
    """With the largest deviation that is printed so, and with ours where none is printed."""
    std = ours.std if published.std is None else published.std + terms.rounding
    return replace(published, std=std)


def standard_error(published: Published, ours: Ours, terms: Terms) -> tuple[float, float]:
    """The standard error of the difference of two means, and Welch's degrees of freedom.

    Deviations are taken as printed, over n: a mean's standard error is that over the root of n - 1.

    Examples
    --------
    >>> error, freedom = standard_error(Published(0.9, 0.03), Ours(0.9, 0.03, 10), Terms(runs=10))
    >>> round(error, 4), round(freedom, 1)
    (0.0141, 18.0)
    """
    parts = [
        (std**2 / (n - 1), n - 1)
        for std, n in ((published.std or 0.0, terms.runs), (ours.std, ours.n))
        if n > 1
    ]
    if terms.by_draw is not None:  # theirs is a draw as well as ours
        between = terms.by_draw.std**2 * terms.by_draw.n / (terms.by_draw.n - 1)
        parts.append((2 * max(between - ours.std**2, 0.0), terms.by_draw.n - 1))
    variance = sum(part for part, _ in parts)
    if variance <= 0:
        return 0.0, 1.0
    return sqrt(variance), variance**2 / sum(part**2 / n for part, n in parts)


def _judge_claim(least: float, ours: Ours) -> Verdict:
    """Whether a share of members, by its exact interval, or else a mean is at least so much."""
    if not ours.is_share:
        error = ours.std / sqrt(ours.n - 1) if ours.n > 1 else inf
        reach = float(stats.t.ppf(1 - LEVEL, max(ours.n - 1, 1))) * error
        low, high, told = ours.mean - reach, ours.mean + reach, f"{ours.mean:.3f}"
    else:
        successes = round(ours.mean * ours.n)
        failures = ours.n - successes
        low = stats.beta.ppf(LEVEL, successes, failures + 1) if successes else 0.0
        high = stats.beta.ppf(1 - LEVEL, successes + 1, failures) if failures else 1.0
        told = f"{successes} of {ours.n}"
    word = "agrees" if low >= least else "differs" if high < least else "cannot tell"
    return Verdict(word, f"{told}, between {low:.2f} and {high:.2f}; {least:g} claimed")


def chance_passes(published: Published, terms: Terms, prevalence: float | None) -> bool:
    """Whether a score that knows nothing would agree: a constant one, or one drawn at random.

    Examples
    --------
    >>> chance_passes(Published(0.717, 0.0), Terms(runs=1), 0.4345)  # (1 + 0.4345) / 2
    True
    """
    if prevalence is None or published.mean is None:
        return False
    areas = (constant_area(prevalence), prevalence)
    return any(
        judge(published, Ours(area, 0.0, max(terms.runs, 1)), terms).word == "agrees"
        for area in areas
    )
