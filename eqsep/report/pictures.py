"""Records as SVG, by the displays of `eqsep.plots`."""

from collections.abc import Collection

from matplotlib.figure import Figure

from eqsep.detector import ColumnClosedness
from eqsep.evaluation import OVERALL, Backtest, Curve
from eqsep.plots import (
    BacktestDisplay,
    ClosednessDisplay,
    DriftDisplay,
    PrecisionRecallByKindDisplay,
    PromiseDisplay,
    ScoreHistogramDisplay,
)
from eqsep.plots.svg import inline_svg
from eqsep.report.measured import Measured
from eqsep.report.watches import WatchReport

_WIDTH = 3.8  # inches: so that letters are readable on a telephone


def curves_picture(curves: dict[str, Curve], *, seen: Collection[str], name: str) -> str:
    """Precision against recall, a line for each kind."""
    kinds = {kind: curve for kind, curve in curves.items() if kind != OVERALL}
    figure = Figure(figsize=(_WIDTH, 2.7 + 0.19 * len(kinds)), layout="constrained")
    PrecisionRecallByKindDisplay(curves=curves, seen=seen).plot(ax=figure.subplots())
    areas = ", ".join(
        f"{kind} ({'seen' if kind in seen else 'unseen'}) {curve.average_precision:.3f}"
        for kind, curve in kinds.items()
    )
    return inline_svg(
        figure, name=name, text=f"Precision against recall by kind; average precision: {areas}."
    )


def scores_picture(measured: Measured, *, name: str) -> str:
    """The scores of each kind and the threshold."""
    histogram = measured.histogram
    figure = Figure(figsize=(_WIDTH, 1.1 + 0.42 * len(histogram.shares)), layout="constrained")
    seen = [one.kind for one in measured.seen]
    ScoreHistogramDisplay(histogram=histogram, seen=seen).plot(ax=figure.subplots())
    shares = ", ".join(f"{kind} {share:.1%}" for kind, share in histogram.above.items())
    return inline_svg(
        figure,
        name=name,
        text=f"Scores by kind, and the threshold {histogram.threshold:.3f}; above it: {shares}.",
    )


def promises_picture(measured: Measured, *, name: str) -> str:
    """Promised against measured false alarms."""
    figure = Figure(figsize=(_WIDTH, 2.9), layout="constrained")
    PromiseDisplay(promises=measured.promises).plot(ax=figure.subplots())
    pairs = ", ".join(f"{p.rate:.2%}: {p.measured:.2%}" for p in measured.promises)
    return inline_svg(
        figure, name=name, text=f"False alarms, the promised share and the measured one: {pairs}."
    )


def closedness_picture(column: ColumnClosedness, *, name: str) -> str:
    """The score as one column goes far out."""
    figure = Figure(figsize=(2.9, 1.9), layout="constrained")
    ClosednessDisplay(closedness=column).plot(ax=figure.subplots())
    ends = ", ".join(f"{end.where} {end.alarm:.0%}" for end in column.ends)
    return inline_svg(
        figure,
        name=name,
        text=f"The score as {column.column} takes other values; rows that raise an alarm: {ends}.",
    )


def backtest_picture(found: Backtest, *, name: str) -> str:
    """Anomalies so far, and those that each method had caught."""
    figure = Figure(figsize=(_WIDTH, 2.9), layout="constrained")
    BacktestDisplay(found=found).plot(ax=figure.subplots())
    caught = ", ".join(f"{method} {found.recall[method].count:,}" for method in found.methods)
    total = sum(one.anomalies for one in found.periods)
    return inline_svg(
        figure, name=name, text=f"Anomalies over time, {total:,} in the end; caught: {caught}."
    )


def drift_picture(report: WatchReport, quantity: str, *, name: str) -> str:
    """An episode over time: the martingale, the share of alarms, or the columns that move."""
    limits = {"martingale": 1 / report.delta, "alarms": report.rate, "shifts": report.recent.far}
    limit = limits[quantity]
    figure = Figure(figsize=(_WIDTH, 2.5), layout="constrained")
    DriftDisplay(history=report.history, quantity=quantity, limit=limit).plot(ax=figure.subplots())
    now = {
        "martingale": f"The martingale, {report.watched.martingale:.3g} in the end",
        "alarms": f"The share of alarms so far, {report.watched.alarm_rate:.2%} in the end",
        "shifts": "Columns that have moved most, in standard errors",
    }[quantity]
    return inline_svg(figure, name=name, text=f"{now}, over {report.watched.rows:,} rows.")
