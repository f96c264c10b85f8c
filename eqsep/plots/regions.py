"""Where a score is normal: over the plane, and along one column that goes far out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from eqsep.detector.closedness import NEAR, ColumnClosedness, closedness_by_column
from eqsep.detector.detector import Detector
from eqsep.detector.model import NEW_NAME
from eqsep.errors import UserError
from eqsep.evaluation import anomaly_score
from eqsep.plots import look
from eqsep.plots.look import Display, Style, as_text, below, frame, is_normal, looks

_NAMES = {0: "normal (0)", 1: "anomaly (1)"}
_LONGEST_NAME = 16  # letters of a name on the axis
_SHORT_NUMBER = 6  # letters of a number next to two others


@dataclass(kw_only=True, repr=False, eq=False)
class RegionDisplay(Display):
    """The score of an estimator over the plane, the line where it decides, and the rows.

    Blue is normal (a score below 0), orange anomalous. `surface_` holds the heat map, `boundary_`
    the line where the score is 0; None if the score has one sign over the whole plane.

    >>> from matplotlib.figure import Figure
    >>> from sklearn.svm import SVC
    >>> from eqsep.datasets import make_circles
    >>> circles = make_circles(random_state=0)
    >>> svc = SVC().fit(circles.X_train, circles.y_train)
    >>> display = RegionDisplay.from_estimator(
    ...     svc, circles.X_train, y=circles.kind_train, ax=Figure().subplots()
    ... )
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['normal', 'outer']
    """

    xx0: np.ndarray  #: The grid, (n, n).
    xx1: np.ndarray
    score: np.ndarray  #: On the grid, larger for the more anomalous.
    feature_names: Sequence[str] = ("x1", "x2")  #: The labels of the axes.

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        y: Any = None,
        ax: Axes | None = None,
        title: str | None = None,
        grid_resolution: int = 200,
    ) -> "RegionDisplay":
        """Draw the score of a fitted estimator over the plane, a third beyond the range of rows.

        Rows have two columns. `y` (0, 1 or the kind of each row) decides how they are drawn. By
        default, the title is the estimator's name and the figure is new. The score is that of
        `eqsep.evaluation.anomaly_score`, at `grid_resolution` points along each axis.
        """
        rows = np.asarray(X, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise UserError(
                f"RegionDisplay draws rows of exactly 2 features, got an array of shape "
                f"{rows.shape}. Choose two columns and fit the estimator on them."
            )
        low, high = rows.min(axis=0), rows.max(axis=0)
        beyond = np.where(high > low, (high - low) / 3, 1.0)
        xx0, xx1 = np.meshgrid(*np.linspace(low - beyond, high + beyond, grid_resolution).T)
        grid = np.column_stack([xx0.ravel(), xx1.ravel()])
        names = getattr(X, "columns", None)
        score = anomaly_score(estimator, grid if names is None else type(X)(grid, columns=names))
        axes = ("x1", "x2") if names is None else tuple(map(str, names))
        score = np.asarray(score).reshape(xx0.shape)
        display = cls(xx0=xx0, xx1=xx1, score=score, feature_names=axes)
        display.plot(ax=ax, title=type(estimator).__name__ if title is None else title)
        return display if y is None else display.add_rows(rows, y=y)

    def _draw(self, title: str | None) -> None:
        ax, surface = self.ax_, (self.xx0, self.xx1, self.score)
        style: Style = {"cmap": look.SCORE_COLOURS, "shading": "gouraud", "rasterized": True}
        self.surface_ = ax.pcolormesh(*surface, norm=_centred(self.score), **style)
        self.boundary_ = None
        if self.score.min() < 0 < self.score.max():
            self.boundary_ = ax.contour(*surface, levels=[0], colors=look.INK, linewidths=1.4)
        frame(ax, title=title, x_label=self.feature_names[0], y_label=self.feature_names[1])
        ax.spines[:].set_visible(False)

    def add_rows(self, X: Any, *, y: Any) -> "RegionDisplay":
        """Draw rows on the plotted display, a colour and a shape for each class or kind in `y`."""
        X, y = np.asarray(X, dtype=float), np.asarray(y)
        labels = sorted(np.unique(y).tolist(), key=lambda label: not is_normal(label))
        for label, (colour, marker) in looks(labels).items():
            name, rows = _NAMES.get(label, as_text(str(label))), X[y == label]
            style: Style = {"s": 34, "edgecolors": "white", "linewidths": 0.8, "zorder": 3}
            self.ax_.scatter(rows[:, 0], rows[:, 1], c=colour, marker=marker, label=name, **style)
        self.ax_.legend(ncols=len(labels), **below(0.5, -0.12, loc="upper center"))
        return self


def _centred(score: np.ndarray) -> TwoSlopeNorm:
    """Colours that change at 0; the rare extremes share the last colour."""
    low, high = np.percentile(score, [2, 95])
    reach = max(abs(low), abs(high)) or 1.0
    return TwoSlopeNorm(0, vmin=low if low < 0 else -reach, vmax=high if high > 0 else reach)


@dataclass(kw_only=True, repr=False, eq=False)
class ClosednessDisplay(Display):
    """The score of normal rows in which one column takes other values, and the threshold.

    Where the line is above the threshold, at least half of the rows raise an alarm; the band holds
    80 % of them. Numbers run from minus to plus infinity. The grey part is the range of the normal
    rows, with equally many of them in equal parts. The paler part is half a range on either side:
    an alarm beyond it is late. `score_` holds the line, `threshold_` that of the threshold.

    >>> from matplotlib.figure import Figure
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> detector = Detector(random_state=0).fit(X)
    >>> display = ClosednessDisplay.from_estimator(detector, X, column="x1", ax=Figure().subplots())
    >>> bool(display.score_.get_ydata()[0] > detector.threshold_)
    True
    """

    closedness: ColumnClosedness  #: From `eqsep.detector.closedness_by_column`.

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
        """Draw the score of a fitted `Detector` along one column of normal rows.

        Columns are called x0, x1, … without names; `random_state` decides which rows are varied.
        """
        found = {c.column: c for c in closedness_by_column(estimator, X, random_state=random_state)}
        if column not in found:
            raise UserError(f"No column {column!r} was learnt: expected one of {list(found)}.")
        return cls(closedness=found[column]).plot(ax=ax)

    def _draw(self, title: str | None) -> None:
        column = self.closedness
        self.threshold_ = self.ax_.axhline(
            column.threshold, color=look.INK, linestyle="--", linewidth=1.0, zorder=1
        )
        if column.position is None:
            self._names()
        else:
            self._numbers(column.position)
        self.ax_.set_ylim(0, max(1.05, float(column.score.max()) * 1.05))
        frame(self.ax_, title=as_text(column.column) if title is None else title, y_label="score")

    def _numbers(self, position: np.ndarray) -> None:
        low, median, high = self.closedness.score.T
        near = NEAR / (1 + NEAR)
        self.ax_.axvspan(-near, 1 + near, color=look.FAINT, alpha=0.2, linewidth=0)
        self.ax_.axvspan(0, 1, color=look.FAINT, alpha=0.3, linewidth=0)
        self.ax_.fill_between(
            position, low, high, color=look.NORMAL_COLOUR, alpha=0.25, linewidth=0
        )
        (self.score_,) = self.ax_.plot(position, median, color=look.NORMAL_COLOUR, linewidth=1.8)
        least, middle, most = (
            _shortened(self.closedness.values[int(np.argmin(np.abs(position - at)))])
            for at in (0, 0.5, 1)
        )
        if max(map(len, (least, middle, most))) <= _SHORT_NUMBER:
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
        self.ax_.vlines(at, low, high, color=look.NORMAL_COLOUR, alpha=0.4, linewidth=5)
        (self.score_,) = self.ax_.plot(
            at, median, color=look.NORMAL_COLOUR, marker="o", markersize=5, linestyle="none"
        )
        new = [i for i, name in enumerate(self.closedness.values) if name == NEW_NAME]
        self.ax_.plot(at[new], median[new], color=look.ANOMALY_COLOUR, marker="^", linestyle="none")
        names = [_shortened(name) for name in self.closedness.values]
        self.ax_.set_xticks(at, names, rotation=30, ha="right", rotation_mode="anchor")
        self.ax_.set_xlim(-0.5, len(at) - 0.5)


def _shortened(name: str) -> str:
    return as_text(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…")
