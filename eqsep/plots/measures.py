"""What a detector finds: precision and scores by kind, promises, and how far names are right."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from eqsep import evaluation
from eqsep.detector.detector import Detector
from eqsep.evaluation import OVERALL, Curve, MeasuredPromise, Reliability, ScoreHistogram
from eqsep.plots.look import FAINT, INK, NORMAL_COLOUR, Display, Style, as_text, below, frame, looks

_HEIGHT = 0.82  # of the highest bar, where kinds are one apart
_SMALL_TEXT: Style = {"fontsize": "small", "color": INK}
_DOTS: Style = {"color": NORMAL_COLOUR, "marker": "o", "markersize": 5, "linestyle": "none"}


@dataclass(kw_only=True, repr=False, eq=False)
class PrecisionRecallByKindDisplay(Display):
    """Precision against recall of each kind of anomaly, against all normal rows.

    A solid line is a seen kind, a dashed one an unseen kind. The number is the average precision.
    `lines_` holds the line of each kind.

    >>> from matplotlib.figure import Figure
    >>> display = PrecisionRecallByKindDisplay.from_predictions(
    ...     [0.1, 0.5, 0.9, 0.3], ["normal", "normal", "scan", "flood"], seen=["scan"],
    ...     ax=Figure().subplots(),
    ... )
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['flood, unseen: 0.500', 'scan, seen: 1.000']
    """

    curves: Mapping[str, Curve]  #: From `precision_recall_by_kind`; "overall" is not drawn.
    seen: Collection[str] | None = None  #: Kinds seen in training; if None, all lines are solid.

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        kind: Any,
        *,
        normal: str = "normal",
        seen: Collection[str] | None = None,
        ax: Axes | None = None,
    ) -> "PrecisionRecallByKindDisplay":
        """Draw how well a fitted estimator finds each kind among rows that it has not learnt.

        By default, the kinds `seen` in training are the detector's `kinds_`.
        """
        seen = getattr(estimator, "kinds_", None) if seen is None else seen
        score = evaluation.anomaly_score(estimator, X)
        return cls.from_predictions(score, kind, normal=normal, seen=seen, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        score: Any,
        kind: Any,
        *,
        normal: str = "normal",
        seen: Collection[str] | None = None,
        ax: Axes | None = None,
    ) -> "PrecisionRecallByKindDisplay":
        """Draw how well scores (larger is more anomalous) find each kind."""
        curves = evaluation.precision_recall_by_kind(score, kind, normal=normal)
        return cls(curves=curves, seen=seen).plot(ax=ax)

    def _draw(self, title: str | None) -> None:
        self.lines_: dict[str, Line2D] = {}
        curves = {name: curve for name, curve in self.curves.items() if name != OVERALL}
        for name, look in looks(curves, normal=OVERALL).items():
            curve = curves[name]
            is_seen = self.seen is None or name in self.seen
            word = "" if self.seen is None else ", seen" if is_seen else ", unseen"
            label = f"{as_text(name)}{word}: {curve.average_precision:.3f}"
            dash = {"linestyle": "-" if is_seen else (0, (4, 2)), "linewidth": 1.6}
            marks = {"marker": look.marker, "markevery": 0.25, "markersize": 4, "clip_on": False}
            style: Style = {"color": look.colour, "drawstyle": "steps-pre", **dash, **marks}
            points = curve.recall, curve.precision
            (self.lines_[name],) = self.ax_.plot(*points, label=label, **style)
        self.ax_.set(xlim=(0, 1), ylim=(0, 1.02))
        frame(self.ax_, title=title, x_label="recall", y_label="precision")
        self.ax_.legend(handlelength=2.6, borderaxespad=0, **below(0, -0.2, loc="upper left"))


@dataclass(kw_only=True, repr=False, eq=False)
class ScoreHistogramDisplay(Display):
    """The scores of each kind, one above the other, and the threshold that all share.

    Each kind is scaled to its highest bar. The share above the threshold is on the right.
    `bars_` holds the bars of each kind, `threshold_` the line, or None.

    >>> from matplotlib.figure import Figure
    >>> display = ScoreHistogramDisplay.from_predictions(
    ...     [0.1, 0.5, 0.9], ["normal", "normal", "scan"], threshold=0.6, ax=Figure().subplots()
    ... )
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['normal', 'scan']
    """

    histogram: ScoreHistogram  #: From `eqsep.evaluation.score_histogram`; the normal kind first.
    seen: Collection[str] | None = None  #: Kinds seen in training.

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, kind: Any, *, normal: str = "normal", ax: Axes | None = None
    ) -> "ScoreHistogramDisplay":
        """Draw the scores of rows that a fitted detector has not learnt, and its threshold.

        The `estimator` may be any with `score_samples` and `threshold_`.
        """
        score, limit = estimator.score_samples(X), estimator.threshold_
        seen = getattr(estimator, "kinds_", None)
        return cls.from_predictions(score, kind, normal=normal, threshold=limit, seen=seen, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        score: Any,
        kind: Any,
        *,
        normal: str = "normal",
        threshold: float | None = None,
        seen: Collection[str] | None = None,
        ax: Axes | None = None,
    ) -> "ScoreHistogramDisplay":
        """Draw scores (larger is more anomalous)."""
        histogram = evaluation.score_histogram(score, kind, normal=normal, threshold=threshold)
        return cls(histogram=histogram, seen=seen).plot(ax=ax)

    def _draw(self, title: str | None) -> None:
        edges, shares = self.histogram.edges, self.histogram.shares
        kinds = list(shares)
        self.bars_: dict[str, PolyCollection] = {}
        for place, (name, look) in enumerate(looks(kinds, normal=kinds[0]).items()):
            base = -float(place)
            top = base + _HEIGHT * shares[name] / max(shares[name].max(), 1e-300)
            self.ax_.axhline(base, color=FAINT, linewidth=0.6, zorder=1)
            self.bars_[name] = self.ax_.fill_between(
                edges, np.append(top, base), base, step="post", color=look.colour, linewidth=0
            )
            if self.histogram.threshold is not None:
                share, at = f"{self.histogram.above[name]:.1%}", (1.01, base + 0.2)
                self.ax_.annotate(share, at, xycoords=("axes fraction", "data"), **_SMALL_TEXT)
        self.threshold_ = self._threshold()
        self.ax_.set_yticks([0.3 - i for i in range(len(kinds))], [self._named(k) for k in kinds])
        self.ax_.set(ylim=(-len(kinds) + 0.9, 1.0), xlim=(edges[0], edges[-1]))
        frame(self.ax_, title=title, x_label="score")
        self.ax_.spines["left"].set_visible(False)
        self.ax_.tick_params(axis="y", length=0)

    def _named(self, name: str) -> str:
        if self.seen is None or name == next(iter(self.histogram.shares)):
            return as_text(name)
        return f"{as_text(name)}\n({'seen' if name in self.seen else 'unseen'})"

    def _threshold(self) -> Line2D | None:
        at = self.histogram.threshold
        if at is None:
            return None
        self.ax_.annotate("above it", (1.01, 1.0), xycoords="axes fraction", **_SMALL_TEXT)
        side = "right" if at > self.histogram.edges[[0, -1]].mean() else "left"  # not over words
        where: Style = {"xycoords": ("data", "axes fraction"), "ha": side}
        self.ax_.annotate(f" threshold {at:.3f} ", (at, 1.0), **where, **_SMALL_TEXT)
        return self.ax_.axvline(at, color=INK, linestyle="--", linewidth=1.1)


@dataclass(kw_only=True, repr=False, eq=False)
class PromiseDisplay(Display):
    """The share of new normal rows that raise an alarm, against the share that was promised.

    If the promise is kept, 95 of 100 measured shares lie in the band. Bars are intervals. A
    share of 0 is drawn at the lower edge. `measured_` holds the dots and bars.

    >>> from matplotlib.figure import Figure
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> detector = Detector(random_state=0).fit(X[:600])
    >>> display = PromiseDisplay.from_estimator(detector, X[600:], ax=Figure().subplots())
    >>> display.ax_.get_xlabel()
    'promised share of false alarms'
    """

    promises: Sequence[MeasuredPromise]  #: From `eqsep.evaluation.kept_promises`.

    @classmethod
    def from_estimator(cls, estimator: Detector, X: Any, *, ax: Axes | None = None) -> Self:
        """Draw the promises of a fitted `Detector` against normal rows it has not learnt."""
        model = estimator.model_
        promises = evaluation.kept_promises(model.scores(X), calibration=model.calibration.ordered)
        return cls(promises=promises).plot(ax=ax)

    def _draw(self, title: str | None) -> None:
        shares = ("rate", "measured", "low", "high", "least_expected", "most_expected")
        rate, measured, low, high, least, most = (
            np.array([getattr(p, name) for p in self.promises]) for name in shares
        )
        floor = rate.min() / 4
        least, most = np.maximum(least, floor), np.maximum(most, floor)
        self.ax_.fill_between(rate, least, most, color=FAINT, alpha=0.45, linewidth=0)
        self.ax_.plot(rate, rate, color=INK, linewidth=1, linestyle="--")
        at = np.maximum(measured, floor)
        bars = [at - np.maximum(low, floor), np.maximum(high, floor) - at]
        self.measured_ = self.ax_.errorbar(rate, at, yerr=bars, elinewidth=1.4, **_DOTS)
        self.ax_.set(xscale="log", yscale="log")
        self.ax_.minorticks_off()
        self.ax_.set_xticks(rate, [f"{r:.3g}%" for r in 100 * rate])
        self.ax_.set_yticks(rate, [f"{r:.3g}%" for r in 100 * rate])
        self.ax_.set_ylim(floor, max(float(high.max()), float(most.max())) * 1.2)
        frame(self.ax_, title=title, x_label="promised share of false alarms", y_label="measured")


@dataclass(kw_only=True, repr=False, eq=False)
class ReliabilityDisplay(Display):
    """The share of correct names, against their probability.

    A larger dot stands for more names. `points_` holds the dots.

    >>> from matplotlib.figure import Figure
    >>> found = Reliability.of(np.array([0.95, 0.95, 0.55]), np.array([True, True, False]))
    >>> ReliabilityDisplay(found=found).plot(ax=Figure().subplots()).ax_.get_ylabel()
    'share that is right'
    """

    found: Reliability

    def _draw(self, title: str | None) -> None:
        probability, right, n = np.array(self.found.points).T
        self.ax_.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--")
        self.ax_.plot(probability, right, color=NORMAL_COLOUR, linewidth=1)
        size = 15 + 85 * n / n.max()
        self.points_ = self.ax_.scatter(probability, right, s=size, color=NORMAL_COLOUR)
        self.ax_.set(xlim=(0, 1.04), ylim=(-0.04, 1.04))
        label = "probability of the name"
        frame(self.ax_, title=title, x_label=label, y_label="share that is right")
