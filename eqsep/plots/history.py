"""A training, epoch by epoch."""

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from eqsep.errors import ParameterError, UserError
from eqsep.plots.look import KIND_COLOURS, NORMAL_COLOUR, frame, new_axes


class HistoryDisplay:
    """What a training did epoch by epoch: the width of the bumps of each layer, or the losses.

    A thin line is a member, the thick one the mean of those still under way.

    Parameters
    ----------
    curves : dict of str -> ndarray of shape (epochs, k)
        What is drawn, by name.
    label : str
        The label of the vertical axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> display = HistoryDisplay(curves={"layer 1": np.array([[0.5, 0.5], [0.6, 0.4]])}, label="σ")
    >>> display.plot(ax=Figure().subplots()).ax_.get_xlabel()
    'epoch'
    """

    def __init__(self, *, curves: Mapping[str, np.ndarray], label: str) -> None:
        self.curves = curves
        self.label = label

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, quantity: str = "sigma", ax: Axes | None = None
    ) -> "HistoryDisplay":
        """Draw the history of a fitted `NetworkSeparator` or `DeepSAD`.

        Parameters
        ----------
        quantity : {"sigma", "loss"}, default="sigma"
            The widths of the hidden bumps by layer, or the losses in training and on the rows
            held out, if any were.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        """
        history = estimator.history_
        losses = {"training": history.loss, "held out": history.validation_loss}
        drawn = {
            "sigma": (
                {f"layer {i + 1}": history.sigma[:, i] for i in range(history.sigma.shape[1])},
                "width of the bumps, σ",
            ),
            "loss": ({n: c for n, c in losses.items() if not np.isnan(c).all()}, "loss"),
        }
        if quantity not in drawn:
            raise ParameterError("quantity", expected=f"one of {sorted(drawn)}", got=quantity)
        curves, label = drawn[quantity]
        if not curves:
            raise UserError("This network has no bumps in its hidden layers. Draw 'loss' instead.")
        return cls(curves=curves, label=label).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> "HistoryDisplay":
        """Draw on `ax`, or on a new figure."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        colours = cycle((NORMAL_COLOUR, *KIND_COLOURS))
        for (name, curve), colour in zip(self.curves.items(), colours, strict=False):
            epochs = np.arange(1, len(curve) + 1)
            self.ax_.plot(epochs, curve, color=colour, alpha=0.25, linewidth=0.8)
            under_way = ~np.isnan(curve)
            mean = np.where(under_way, curve, 0).sum(axis=1) / under_way.sum(axis=1)
            self.ax_.plot(epochs, mean, color=colour, linewidth=2.2, label=name)
        frame(self.ax_, x_label="epoch", y_label=self.label)
        self.ax_.legend(frameon=False)
        return self
