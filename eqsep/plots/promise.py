"""Promised against measured false alarms."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from eqsep.detector.detector import Detector
from eqsep.evaluation.promises import Promise, kept_promises
from eqsep.plots.look import FAINT, INK, NORMAL_COLOUR, frame, new_axes


class PromiseDisplay:
    """The share of new normal rows that raise an alarm, against the share that was promised.

    The band is where 95 of 100 measured shares lie if the promise is kept; bars are the intervals
    of what was measured.

    Parameters
    ----------
    promises : sequence of Promise
        As `eqsep.evaluation.kept_promises` gives them.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    measured_ : matplotlib ErrorbarContainer

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> detector = Detector(random_state=0).fit(X[:600])
    >>> display = PromiseDisplay.from_estimator(detector, X[600:], ax=Figure().subplots())
    >>> display.ax_.get_xlabel()
    'promised share of false alarms'
    """

    def __init__(self, *, promises: Sequence[Promise]) -> None:
        self.promises = promises

    @classmethod
    def from_estimator(
        cls, estimator: Detector, X: Any, *, ax: Axes | None = None
    ) -> "PromiseDisplay":
        """Draw the promises of a fitted `Detector` against normal rows it has not learnt."""
        model = estimator.model_
        promises = kept_promises(model.scores(X), calibration=model.calibration.ordered)
        return cls(promises=promises).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> "PromiseDisplay":
        """Draw on `ax`, or on a new figure; what is 0 is drawn at the lower edge."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        rate, measured, low, high = (
            np.array([getattr(p, name) for p in self.promises])
            for name in ("rate", "measured", "low", "high")
        )
        floor = rate.min() / 4
        least, most = (
            np.maximum([getattr(p, name) for p in self.promises], floor)
            for name in ("least_expected", "most_expected")
        )
        self.ax_.fill_between(rate, least, most, color=FAINT, alpha=0.45, linewidth=0)
        self.ax_.plot(rate, rate, color=INK, linewidth=1, linestyle="--")
        at = np.maximum(measured, floor)
        self.measured_ = self.ax_.errorbar(
            rate,
            at,
            yerr=[at - np.maximum(low, floor), np.maximum(high, floor) - at],
            color=NORMAL_COLOUR,
            marker="o",
            markersize=5,
            linestyle="none",
            elinewidth=1.4,
        )
        self.ax_.set(xscale="log", yscale="log")
        self.ax_.minorticks_off()
        self.ax_.set_xticks(rate, [f"{r:.3g}%" for r in 100 * rate])
        self.ax_.set_yticks(rate, [f"{r:.3g}%" for r in 100 * rate])
        self.ax_.set_ylim(floor, max(float(high.max()), float(most.max())) * 1.2)
        frame(
            self.ax_,
            title=title,
            x_label="promised share of false alarms",
            y_label="measured",
        )
        return self
