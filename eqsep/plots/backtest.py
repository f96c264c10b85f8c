"""A backtest over time: how many anomalies had come, and how many each method had caught."""

from itertools import cycle

import numpy as np
from matplotlib.axes import Axes

from eqsep.evaluation import Backtest
from eqsep.plots.look import FAINT, INK, KIND_COLOURS, NORMAL_COLOUR, as_text, frame, new_axes


class BacktestDisplay:
    """Anomalies so far, and those among them that were looked at, a line for each method.

    A tick at the lower edge is the first row of a kind.

    Parameters
    ----------
    found : Backtest

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, *, found: Backtest) -> None:
        self.found = found

    def plot(self, *, ax: Axes | None = None) -> "BacktestDisplay":
        """Draw on `ax`, or on a new figure."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        periods = self.found.periods
        at = np.arange(1, len(periods) + 1)
        come = np.cumsum([one.anomalies for one in periods])
        self.ax_.fill_between(at, come, color=FAINT, alpha=0.35, linewidth=0)
        self.ax_.plot(at, come, color=INK, linewidth=1, linestyle="--", label="anomalies")
        colours = cycle((NORMAL_COLOUR, *KIND_COLOURS))
        for method, colour in zip(self.found.methods, colours, strict=False):
            caught = np.cumsum([one.caught[method] for one in periods])
            self.ax_.plot(at, caught, color=colour, linewidth=2, label=as_text(method))
        for one in self.found.kinds[self.found.methods[0]]:
            self.ax_.plot([one.appeared] * 2, [0, 0.03 * max(come[-1], 1)], color=INK, linewidth=1)
        places = np.unique(np.linspace(0, len(periods) - 1, 3).astype(int))
        self.ax_.set_xticks(at[places], [as_text(periods[i].name) for i in places.tolist()])
        self.ax_.set_ylim(0, None)
        frame(self.ax_, y_label="so far")
        self.ax_.legend(frameon=False, fontsize="small")
        return self
