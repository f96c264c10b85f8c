"""Records as SVG, by the displays of `eqsep.plots`."""

from collections.abc import Collection, Sequence

from matplotlib.figure import Figure

from eqsep.detector import ColumnClosedness
from eqsep.evaluation import OVERALL, Backtest, Curve, MeasuredPromise, Reliability, ScoreHistogram
from eqsep.plots import BacktestDisplay, ClosednessDisplay, DriftDisplay, ReliabilityDisplay
from eqsep.plots.figures import inline_svg
from eqsep.plots.look import Display
from eqsep.plots.measures import PrecisionRecallByKindDisplay, PromiseDisplay, ScoreHistogramDisplay
from eqsep.report.timelines import WatchReport

_WIDTH = 3.8  # inches: letters are readable on a telephone


def _drawn(display: Display, height: float, *, name: str, text: str, width: float = _WIDTH) -> str:
    figure = Figure(figsize=(width, height), layout="constrained")
    display.plot(ax=figure.subplots())
    return inline_svg(figure, name=name, text=text)


def curves(found: dict[str, Curve], *, seen: Collection[str], name: str) -> str:
    """Precision against recall, a line for each kind."""
    kinds = {kind: curve for kind, curve in found.items() if kind != OVERALL}
    areas = ", ".join(
        f"{kind} ({'seen' if kind in seen else 'unseen'}) {curve.average_precision:.3f}"
        for kind, curve in kinds.items()
    )
    text = f"Precision against recall by kind; average precision: {areas}."
    display = PrecisionRecallByKindDisplay(curves=found, seen=seen)
    return _drawn(display, 2.7 + 0.19 * len(kinds), name=name, text=text)


def scores(histogram: ScoreHistogram, *, seen: Collection[str], name: str) -> str:
    """The scores of each kind and the threshold."""
    shares = ", ".join(f"{kind} {share:.1%}" for kind, share in histogram.above.items())
    text = f"Scores by kind, and the threshold {histogram.threshold:.3f}; above it: {shares}."
    display = ScoreHistogramDisplay(histogram=histogram, seen=seen)
    return _drawn(display, 1.1 + 0.42 * len(histogram.shares), name=name, text=text)


def promises(kept: Sequence[MeasuredPromise], *, name: str) -> str:
    """Promised against measured false alarms."""
    pairs = ", ".join(f"{p.rate:.2%}: {p.measured:.2%}" for p in kept)
    text = f"False alarms, promised and measured share: {pairs}."
    return _drawn(PromiseDisplay(promises=kept), 2.9, name=name, text=text)


def reliability(found: Reliability, *, name: str) -> str:
    """How often names are right, by their probability."""
    pairs = ", ".join(f"{p:.2f}: {right:.2f}" for p, right, _ in found.points)
    text = f"Probability of names, and the share of right names: {pairs}."
    return _drawn(ReliabilityDisplay(found=found), 2.9, name=name, text=text)


def closedness(column: ColumnClosedness, *, name: str) -> str:
    """The score as one column goes far out."""
    ends = ", ".join(f"{end.where} {end.alarm:.0%}" for end in column.ends)
    text = f"Score against values of {column.column}; share of rows that raise an alarm: {ends}."
    return _drawn(ClosednessDisplay(closedness=column), 1.9, name=name, text=text, width=2.9)


def backtest(found: Backtest, *, name: str) -> str:
    """Anomalies so far, and those that each method had caught."""
    caught = ", ".join(f"{method} {found.recall[method].count:,}" for method in found.methods)
    total = sum(one.anomalies for one in found.periods)
    text = f"Anomalies over time, {total:,} in all; caught: {caught}."
    return _drawn(BacktestDisplay(found=found), 2.9, name=name, text=text)


def drift(report: WatchReport, quantity: str, *, name: str) -> str:
    """An episode over time: the martingale, the share of alarms, or the columns that move."""
    watched = report.watched
    limit, now = {
        "martingale": (1 / report.delta, f"The martingale, {watched.martingale:.3g} at the end"),
        "alarms": (report.rate, f"The share of alarms so far, {watched.alarm_rate:.2%} at the end"),
        "shifts": (report.recent.far, "Columns that have moved most, in standard errors"),
    }[quantity]
    display = DriftDisplay(history=report.history, quantity=quantity, limit=limit)
    return _drawn(display, 2.5, name=name, text=f"{now}, over {watched.rows:,} rows.")
