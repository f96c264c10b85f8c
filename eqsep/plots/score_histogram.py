"""The scores of each kind beside the threshold."""

from collections.abc import Collection
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from eqsep.evaluation.kinds import ScoreHistogram, score_histogram
from eqsep.plots.look import FAINT, INK, as_text, frame, looks, new_axes

_HEIGHT = 0.82  # of the highest bar, where kinds are one apart


class ScoreHistogramDisplay:
    """The scores of each kind, one above the other, and the threshold that all share.

    Each kind is drawn to its own highest bar. At the right stands the share above the threshold.

    Parameters
    ----------
    histogram : ScoreHistogram
        As `eqsep.evaluation.score_histogram` gives it; its first kind is the normal one.
    seen : collection of str or None
        The kinds that were seen in training.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : dict of str to matplotlib PolyCollection
    threshold_ : matplotlib Line2D or None

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> display = ScoreHistogramDisplay.from_predictions(
    ...     [0.1, 0.5, 0.9], ["normal", "normal", "scan"], threshold=0.6, ax=Figure().subplots()
    ... )
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['normal', 'scan']
    """

    def __init__(self, *, histogram: ScoreHistogram, seen: Collection[str] | None = None) -> None:
        self.histogram = histogram
        self.seen = seen

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, kind: Any, *, normal: str = "normal", ax: Axes | None = None
    ) -> "ScoreHistogramDisplay":
        """Draw the scores of a fitted detector and its threshold.

        Parameters
        ----------
        estimator : Detector
            Or any estimator with `score_samples`, larger for the more anomalous, and `threshold_`.
        X : table
            Rows that it has not learnt.
        kind : array-like of str of shape (n_rows,)
        """
        return cls.from_predictions(
            estimator.score_samples(X),
            kind,
            normal=normal,
            threshold=estimator.threshold_,
            seen=getattr(estimator, "kinds_", None),
            ax=ax,
        )

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
        """Draw scores, larger for the more anomalous."""
        histogram = score_histogram(score, kind, normal=normal, threshold=threshold)
        return cls(histogram=histogram, seen=seen).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> "ScoreHistogramDisplay":
        """Draw on `ax`, or on a new figure."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
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
                self.ax_.annotate(
                    f"{self.histogram.above[name]:.1%}",
                    (1.01, base + 0.2),
                    xycoords=("axes fraction", "data"),
                    fontsize="small",
                    color=INK,
                )
        self.threshold_ = self._threshold()
        self.ax_.set_yticks([0.3 - i for i in range(len(kinds))], [self._named(k) for k in kinds])
        self.ax_.set(ylim=(-len(kinds) + 0.9, 1.0), xlim=(edges[0], edges[-1]))
        frame(self.ax_, title=title, x_label="score")
        self.ax_.spines["left"].set_visible(False)
        self.ax_.tick_params(axis="y", length=0)
        return self

    def _named(self, name: str) -> str:
        if self.seen is None or name == next(iter(self.histogram.shares)):
            return as_text(name)
        return f"{as_text(name)}\n({'seen' if name in self.seen else 'unseen'})"

    def _threshold(self) -> Line2D | None:
        at = self.histogram.threshold
        if at is None:
            return None
        self.ax_.annotate(
            "above it", (1.01, 1.0), xycoords="axes fraction", fontsize="small", color=INK
        )
        first, last = self.histogram.edges[[0, -1]]
        self.ax_.annotate(
            f" threshold {at:.3f} ",
            (at, 1.0),
            xycoords=("data", "axes fraction"),
            ha="right" if at > (first + last) / 2 else "left",  # not over the words beside it
            fontsize="small",
            color=INK,
        )
        return self.ax_.axvline(at, color=INK, linestyle="--", linewidth=1.1)
