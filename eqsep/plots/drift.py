"""A watch over time: the bet that rows have changed, the alarms, and the columns that move."""

from itertools import cycle

import numpy as np
from matplotlib.axes import Axes

from eqsep.monitor import History
from eqsep.plots.look import FAINT, INK, KIND_COLOURS, NORMAL_COLOUR, as_text, frame, new_axes

_COLUMNS = 4  # that have moved most are drawn
_FEW = 200  # rows before which a share of alarms is mostly chance


class DriftDisplay:
    """An episode of a `Monitor` over its rows.

    Parameters
    ----------
    history : History
    quantity : {"martingale", "alarms", "shifts"}
        The capital of the bet against exchangeability, the share of rows so far that raised an
        alarm, or how far the means of columns have moved, in standard errors.
    limit : float
        1 / delta, the promised rate, or from how many standard errors on a column has moved.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, *, history: History, quantity: str, limit: float) -> None:
        self.history = history
        self.quantity = quantity
        self.limit = limit

    def plot(self, *, ax: Axes | None = None) -> "DriftDisplay":
        """Draw on `ax`, or on a new figure."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        lines, labels = (
            {"martingale": 1, "alarms": 1, "shifts": 2}[self.quantity],
            {
                "martingale": "martingale",
                "alarms": "share of alarms",
                "shifts": "standard errors",
            },
        )
        for sign in (1, -1)[:lines]:
            self.ax_.axhline(sign * self.limit, color=INK, linewidth=1, linestyle="--")
        getattr(self, f"_{self.quantity}")()
        frame(self.ax_, x_label="rows", y_label=labels[self.quantity])
        return self

    def _martingale(self) -> None:
        self.ax_.plot(self.history.rows, self.history.martingale, color=NORMAL_COLOUR, linewidth=2)
        self.ax_.set_yscale("log")

    def _alarms(self) -> None:
        shown = self.history.rows >= _FEW
        rows, alarms = self.history.rows[shown], self.history.alarms[shown]
        self.ax_.plot(rows, alarms / rows, color=NORMAL_COLOUR, linewidth=2)
        self.ax_.set_ylim(0, None)

    def _shifts(self) -> None:
        rows, shifts = self.history.shift_rows, self.history.shifts
        far = {name: np.abs(moves[-1]) if len(moves) else 0.0 for name, moves in shifts.items()}
        colours = cycle((NORMAL_COLOUR, *KIND_COLOURS))
        most = sorted(shifts, key=lambda name: -far[name])[:_COLUMNS]
        for name, colour in zip(most, colours, strict=False):
            label = as_text(name)
            self.ax_.plot(rows, shifts[name], color=colour, marker="o", markersize=3, label=label)
        self.ax_.axhline(0, color=FAINT, linewidth=1)
        if len(rows):
            self.ax_.legend(frameon=False, fontsize="small")
