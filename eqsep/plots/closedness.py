"""The score as one column of normal rows goes far out."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from eqsep.detector.closedness import NEAR, NEW_NAME, ColumnClosedness, closedness_by_column
from eqsep.detector.detector import Detector
from eqsep.errors import UserError
from eqsep.plots.look import (
    ANOMALY_COLOUR,
    FAINT,
    INK,
    NORMAL_COLOUR,
    as_text,
    frame,
    new_axes,
)

_LONGEST, _SHORT = 16, 6  # letters of a name on the axis, and of a number next to two others


class ClosednessDisplay:
    """The score of normal rows in which one column takes other values, and the threshold.

    Where the line is above the threshold, half of the rows raise an alarm; the band holds eight
    tenths of them. Numbers run from minus to plus infinity; the grey part is the range of the
    normal rows, drawn so that equally many of them lie in equal parts, and the paler one half a
    range on either side: an alarm that rings beyond it rings late.

    Parameters
    ----------
    closedness : ColumnClosedness
        As `eqsep.detector.closedness_by_column` gives it.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    score_ : matplotlib Line2D
        The median of the scores.
    threshold_ : matplotlib Line2D

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> detector = Detector(random_state=0).fit(X)
    >>> display = ClosednessDisplay.from_estimator(detector, X, column="x1", ax=Figure().subplots())
    >>> bool(display.score_.get_ydata()[0] > detector.threshold_)
    True
    """

    def __init__(self, *, closedness: ColumnClosedness) -> None:
        self.closedness = closedness

    @classmethod
    def from_estimator(
        cls,
        estimator: Detector,
        X: Any,
        *,
        column: str,
        random_state: Any = 0,
        ax: Axes | None = None,
    ) -> "ClosednessDisplay":
        """Draw what the score of a fitted `Detector` does along one column.

        Parameters
        ----------
        estimator : Detector
        X : table
            Normal rows.
        column : str
            The column that is varied, by its name: x0, x1, … where the table has no names.
        random_state : int, RandomState or None, default=0
            Decides which rows are varied.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        """
        found = {c.column: c for c in closedness_by_column(estimator, X, random_state=random_state)}
        if column not in found:
            raise UserError(
                f"The detector has learnt no column {column!r}: expected one of {list(found)}."
            )
        return cls(closedness=found[column]).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> "ClosednessDisplay":
        """Draw on `ax`, or on a new figure."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        told = self.closedness
        self.threshold_ = self.ax_.axhline(
            told.threshold, color=INK, linestyle="--", linewidth=1.0, zorder=1
        )
        if told.position is None:
            self._names()
        else:
            self._numbers(told.position)
        self.ax_.set_ylim(0, max(1.05, float(told.score.max()) * 1.05))
        frame(self.ax_, title=as_text(told.column) if title is None else title, y_label="score")
        return self

    def _numbers(self, position: np.ndarray) -> None:
        low, median, high = self.closedness.score.T
        near = NEAR / (1 + NEAR)
        self.ax_.axvspan(-near, 1 + near, color=FAINT, alpha=0.2, linewidth=0)
        self.ax_.axvspan(0, 1, color=FAINT, alpha=0.3, linewidth=0)
        self.ax_.fill_between(position, low, high, color=NORMAL_COLOUR, alpha=0.25, linewidth=0)
        (self.score_,) = self.ax_.plot(position, median, color=NORMAL_COLOUR, linewidth=1.8)
        least, middle, most = (
            _shortened(self.closedness.values[int(np.argmin(np.abs(position - at)))])
            for at in (0, 0.5, 1)
        )
        if max(map(len, (least, middle, most))) <= _SHORT:
            shown = ["−∞", least, middle if least != middle != most else "", most, "∞"]
            self.ax_.set_xticks([-1, 0, 0.5, 1, 2], shown)
        else:  # two dates take all the room there is
            self.ax_.set_xticks([0, 1], [least, most])
            for label, side in zip(self.ax_.get_xticklabels(), ("right", "left"), strict=True):
                label.set(horizontalalignment=side)
        self.ax_.set_xlim(-1, 2)

    def _names(self) -> None:
        low, median, high = self.closedness.score.T
        at = np.arange(len(median))
        self.ax_.vlines(at, low, high, color=NORMAL_COLOUR, alpha=0.4, linewidth=5)
        (self.score_,) = self.ax_.plot(
            at, median, color=NORMAL_COLOUR, marker="o", markersize=5, linestyle="none"
        )
        new = [i for i, name in enumerate(self.closedness.values) if name == NEW_NAME]
        self.ax_.plot(at[new], median[new], color=ANOMALY_COLOUR, marker="^", linestyle="none")
        names = [_shortened(name) for name in self.closedness.values]
        self.ax_.set_xticks(at, names, rotation=30, ha="right", rotation_mode="anchor")
        self.ax_.set_xlim(-0.5, len(at) - 0.5)


def _shortened(name: str) -> str:
    return as_text(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…")
