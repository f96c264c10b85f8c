"""What happened over time: a training by epoch, a watch by row, and a backtest by period."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from eqsep.errors import ParameterError, UserError
from eqsep.evaluation import Backtest
from eqsep.monitor import History
from eqsep.plots.look import FAINT, INK, KIND_COLOURS, NORMAL_COLOUR, Display, as_text, frame

_LINES = (NORMAL_COLOUR, *KIND_COLOURS)
_COLUMNS = 4  # that have moved most are drawn
_DRIFT_LABELS = {"alarms": "share of alarms", "shifts": "standard errors"}
_MIN_ROWS_OF_SHARE = 200  # rows before which a share of alarms is mostly chance


@dataclass(kw_only=True, repr=False, eq=False)
class HistoryDisplay(Display):
    """A training epoch by epoch: the width of the bumps of each layer, or the losses.

    A thin line is one member; the thick line is the mean of those still in training.

    >>> from matplotlib.figure import Figure
    >>> display = HistoryDisplay(curves={"layer 1": np.array([[0.5, 0.5], [0.6, 0.4]])}, label="σ")
    >>> display.plot(ax=Figure().subplots()).ax_.get_xlabel()
    'epoch'
    """

    curves: Mapping[str, np.ndarray]  #: (epochs, k), by name.
    label: str  #: Of the vertical axis.

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, quantity: str = "sigma", ax: Axes | None = None
    ) -> "HistoryDisplay":
        """Draw the history of a fitted `NetworkSeparator` or `DeepSAD`.

        The quantity is "sigma", the widths of the hidden bumps by layer, or "loss", the losses in
        training and on held-out rows.
        """
        history = estimator.history_
        losses = {"training": history.loss, "held out": history.validation_loss}
        widths = {f"layer {i + 1}": history.sigma[:, i] for i in range(history.sigma.shape[1])}
        drawn = {
            "sigma": (widths, "width of the bumps, σ"),
            "loss": ({n: c for n, c in losses.items() if not np.isnan(c).all()}, "loss"),
        }
        if quantity not in drawn:
            raise ParameterError("quantity", expected=f"one of {sorted(drawn)}", got=quantity)
        curves, label = drawn[quantity]
        if not curves:
            raise UserError("This network has no bumps in its hidden layers. Draw 'loss' instead.")
        return cls(curves=curves, label=label).plot(ax=ax)

    def _draw(self, title: str | None) -> None:
        for (name, curve), colour in zip(self.curves.items(), cycle(_LINES), strict=False):
            epochs = np.arange(1, len(curve) + 1)
            self.ax_.plot(epochs, curve, color=colour, alpha=0.25, linewidth=0.8)
            under_way = ~np.isnan(curve)
            mean = np.where(under_way, curve, 0).sum(axis=1) / under_way.sum(axis=1)
            self.ax_.plot(epochs, mean, color=colour, linewidth=2.2, label=name)
        frame(self.ax_, title=title, x_label="epoch", y_label=self.label)
        self.ax_.legend(frameon=False)


@dataclass(kw_only=True, repr=False, eq=False)
class DriftDisplay(Display):
    """An episode of a `Monitor` over its rows."""

    history: History
    #: "martingale", the capital of the bet against exchangeability; "alarms", their share so far;
    #: or "shifts", how far the means of columns have moved, in standard errors.
    quantity: str
    limit: float  #: 1 / delta, the promised rate, or the standard errors of a moved column.

    def _draw(self, title: str | None) -> None:
        self.ax_.axhline(self.limit, color=INK, linewidth=1, linestyle="--")
        rows = self.history.rows
        if self.quantity == "martingale":
            self.ax_.plot(rows, self.history.martingale, color=NORMAL_COLOUR, linewidth=2)
            self.ax_.set_yscale("log")
        elif self.quantity == "alarms":
            shown = rows >= _MIN_ROWS_OF_SHARE
            share = self.history.alarms[shown] / rows[shown]
            self.ax_.plot(rows[shown], share, color=NORMAL_COLOUR, linewidth=2)
            self.ax_.set_ylim(0, None)
        else:
            self.ax_.axhline(-self.limit, color=INK, linewidth=1, linestyle="--")
            self._shifts()
        label = _DRIFT_LABELS.get(self.quantity, self.quantity)
        frame(self.ax_, title=title, x_label="rows", y_label=label)

    def _shifts(self) -> None:
        rows, shifts = self.history.shift_rows, self.history.shifts
        far = {name: np.abs(moves[-1]) if len(moves) else 0.0 for name, moves in shifts.items()}
        most = sorted(shifts, key=lambda name: -far[name])[:_COLUMNS]
        for name, colour in zip(most, _LINES, strict=False):
            label = as_text(name)
            self.ax_.plot(rows, shifts[name], color=colour, marker="o", markersize=3, label=label)
        self.ax_.axhline(0, color=FAINT, linewidth=1)
        if len(rows):
            self.ax_.legend(frameon=False, fontsize="small")


@dataclass(kw_only=True, repr=False, eq=False)
class BacktestDisplay(Display):
    """Anomalies so far, and how many of them were looked at, with a line for each method.

    A tick at the lower edge marks the first row of a kind.
    """

    found: Backtest

    def _draw(self, title: str | None) -> None:
        periods = self.found.periods
        at = np.arange(1, len(periods) + 1)
        come = np.cumsum([one.anomalies for one in periods])
        self.ax_.fill_between(at, come, color=FAINT, alpha=0.35, linewidth=0)
        self.ax_.plot(at, come, color=INK, linewidth=1, linestyle="--", label="anomalies")
        for method, colour in zip(self.found.methods, cycle(_LINES), strict=False):
            caught = np.cumsum([one.caught[method] for one in periods])
            self.ax_.plot(at, caught, color=colour, linewidth=2, label=as_text(method))
        for one in self.found.kinds[self.found.methods[0]]:
            self.ax_.plot([one.appeared] * 2, [0, 0.03 * max(come[-1], 1)], color=INK, linewidth=1)
        places = np.unique(np.linspace(0, len(periods) - 1, 3).astype(int))
        self.ax_.set_xticks(at[places], [as_text(periods[i].name) for i in places.tolist()])
        self.ax_.set_ylim(0, None)
        frame(self.ax_, title=title, y_label="so far")
        self.ax_.legend(frameon=False, fontsize="small")
