"""Pictures of separators: the only module that imports matplotlib."""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure

from eqsep.evaluation import anomaly_score

# Blue and vermilion of Okabe and Ito: told apart under every common colour blindness.
NORMAL_COLOUR, ANOMALY_COLOUR = "#0072B2", "#D55E00"
_KIND_COLOURS = (ANOMALY_COLOUR, "#CC79A7", "#009E73", "#E69F00")
_KIND_MARKERS = ("^", "s", "D", "v", "P")  # one more than colours: twenty kinds look different
_INK = "#333333"
SCORE_COLOURS = LinearSegmentedColormap.from_list(
    "eqsep", ["#8EC1E2", "#D3E6F3", "#FCFBFA", "#FBE3D1", "#F2B184"]
)
_NAMES = {0: "normal (0)", 1: "anomaly (1)"}


class RegionDisplay:
    """The score of an estimator over the plane, the line where it decides, and the rows.

    Blue is normal (a score below 0), orange anomalous; the line is the decision boundary. It is
    recommended to use :meth:`from_estimator` to create a display.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n, n)
        The grid.
    score : ndarray of shape (n, n)
        The score on the grid, larger for the more anomalous.
    feature_names : pair of str
        The labels of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the display was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    surface_ : matplotlib QuadMesh
        The heat map.
    boundary_ : matplotlib ContourSet or None
        The line score = 0; None where the score has one sign over the whole plane.

    Examples
    --------
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

    def __init__(
        self,
        *,
        xx0: np.ndarray,
        xx1: np.ndarray,
        score: np.ndarray,
        feature_names: Sequence[str] = ("x1", "x2"),
    ) -> None:
        self.xx0 = xx0
        self.xx1 = xx1
        self.score = score
        self.feature_names = feature_names

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
        """Draw what a fitted estimator makes of the plane around the rows `X`.

        Parameters
        ----------
        estimator : fitted scikit-learn estimator
            Scored by `eqsep.evaluation.anomaly_score`.
        X : array or pandas frame of shape (n_rows, 2)
            The rows; the picture reaches a third of their range beyond them.
        y : array-like of shape (n_rows,), default=None
            0 or 1, or the kind of each row; without it the rows are not drawn.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        title : str, default=None
            The title; the estimator's name by default.
        grid_resolution : int, default=200
            The number of grid points along each axis.

        Returns
        -------
        RegionDisplay
        """
        rows = np.asarray(X, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise ValueError(
                f"RegionDisplay draws rows of exactly 2 features, got an array of shape "
                f"{rows.shape}. Choose two columns and fit the estimator on them."
            )
        low, high = rows.min(axis=0), rows.max(axis=0)
        beyond = np.where(high > low, (high - low) / 3, 1.0)
        xx0, xx1 = np.meshgrid(*np.linspace(low - beyond, high + beyond, grid_resolution).T)
        grid = np.column_stack([xx0.ravel(), xx1.ravel()])
        names = getattr(X, "columns", None)
        score = anomaly_score(estimator, grid if names is None else type(X)(grid, columns=names))
        display = cls(
            xx0=xx0,
            xx1=xx1,
            score=np.asarray(score).reshape(xx0.shape),
            feature_names=("x1", "x2") if names is None else tuple(map(str, names)),
        )
        display.plot(ax=ax, title=type(estimator).__name__ if title is None else title)
        return display if y is None else display.add_rows(rows, y=y)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> "RegionDisplay":
        """Draw the score and its decision boundary.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        title : str, default=None
            The title.

        Returns
        -------
        RegionDisplay
        """
        if ax is None:
            ax = _new_axes()
        self.surface_ = ax.pcolormesh(
            self.xx0,
            self.xx1,
            self.score,
            cmap=SCORE_COLOURS,
            norm=_centred(self.score),
            shading="gouraud",
            rasterized=True,
        )
        crosses = self.score.min() < 0 < self.score.max()
        self.boundary_ = (
            ax.contour(self.xx0, self.xx1, self.score, levels=[0], colors=_INK, linewidths=1.4)
            if crosses
            else None
        )
        ax.set_xlabel(self.feature_names[0], color=_INK)
        ax.set_ylabel(self.feature_names[1], color=_INK)
        ax.set_title(title or "", loc="left", fontsize="medium", color=_INK)
        ax.tick_params(color=_INK, labelcolor=_INK, labelsize="small")
        ax.spines[:].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def add_rows(self, X: Any, *, y: Any) -> "RegionDisplay":
        """Draw rows on the plotted display, a colour and a shape for each class or kind.

        Parameters
        ----------
        X : array of shape (n_rows, 2)
            The rows.
        y : array-like of shape (n_rows,)
            0 or 1, or the kind of each row.

        Returns
        -------
        RegionDisplay
        """
        X, y = np.asarray(X, dtype=float), np.asarray(y)
        labels = sorted(np.unique(y).tolist(), key=lambda label: not _is_normal(label))
        anomalous = zip(cycle(_KIND_COLOURS), cycle(_KIND_MARKERS), strict=True)
        for label in labels:
            colour, marker = (NORMAL_COLOUR, "o") if _is_normal(label) else next(anomalous)
            self.ax_.scatter(
                X[y == label, 0],
                X[y == label, 1],
                s=34,
                c=colour,
                marker=marker,
                edgecolors="white",
                linewidths=0.8,
                label=_NAMES.get(label, str(label)),
                zorder=3,
            )
        self.ax_.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.12),
            ncols=len(labels),
            fontsize="small",
            frameon=False,
            labelcolor=_INK,
        )
        return self


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
            raise ValueError(f"quantity must be one of {sorted(drawn)}, got {quantity!r}.")
        curves, label = drawn[quantity]
        if not curves:
            raise ValueError("This network has no bumps in its hidden layers. Draw 'loss' instead.")
        return cls(curves=curves, label=label).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> "HistoryDisplay":
        """Draw on `ax`, or on a new figure."""
        self.ax_ = _new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        colours = cycle((NORMAL_COLOUR, *_KIND_COLOURS))
        for (name, curve), colour in zip(self.curves.items(), colours, strict=False):
            epochs = np.arange(1, len(curve) + 1)
            self.ax_.plot(epochs, curve, color=colour, alpha=0.25, linewidth=0.8)
            under_way = ~np.isnan(curve)
            mean = np.where(under_way, curve, 0).sum(axis=1) / under_way.sum(axis=1)
            self.ax_.plot(epochs, mean, color=colour, linewidth=2.2, label=name)
        self.ax_.set(xlabel="epoch", ylabel=self.label)
        self.ax_.legend(frameon=False)
        return self


class Panel(NamedTuple):
    """One picture of a figure: a fitted estimator, the rows to draw, and a title."""

    estimator: Any
    X: Any
    y: Any
    title: str


def region_figure(panels: Iterable[Panel], *, n_columns: int = 2) -> Figure:
    """A figure with one `RegionDisplay` for each panel.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from eqsep.datasets import make_logic
    >>> data = {name: make_logic(name) for name in ("and", "or")}
    >>> panels = [Panel(SVC().fit(X, y), X, y, name) for name, (X, y) in data.items()]
    >>> [ax.get_title(loc="left") for ax in region_figure(panels).axes]
    ['and', 'or']
    """
    panels = list(panels)
    n_rows = ceil(len(panels) / n_columns)
    figure = Figure(figsize=(4.6 * n_columns, 4.4 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        RegionDisplay.from_estimator(panel.estimator, panel.X, y=panel.y, ax=ax, title=panel.title)
        ax.set_aspect("equal")
    for ax in axes[len(panels) :]:
        ax.remove()
    return figure


def check_figure_path(path: str | os.PathLike[str]) -> Path:
    """`path`, if a figure can be written there: an existing folder and a known ending.

    Examples
    --------
    >>> check_figure_path("regions.png").suffix
    '.png'
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"Cannot write {path}: expected an existing folder, and there is no {path.parent}. "
            f"Create it first, or choose another."
        )
    known = sorted(FigureCanvasAgg.get_supported_filetypes())
    if path.suffix[1:].lower() not in known:
        raise ValueError(
            f"Cannot write {path}: expected a name that ends in one of {known}, "
            f"got {path.suffix!r}. Take .png."
        )
    return path


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: int = 150) -> Path:
    """Write `figure` to `path`, whole or not at all, and return the path.

    The picture is written beside its place and then moved there, so that no reader and no
    interruption meets half of it. The ending of the name decides the format.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_figure(Figure(), Path(folder, "empty.png")).name
    'empty.png'
    """
    path = check_figure_path(path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".eqsep-") as folder:
        whole = Path(folder, path.name)
        figure.savefig(whole, dpi=dpi)
        whole.replace(path)
    return path


def _is_normal(label: Any) -> bool:
    return label in (0, "normal")


def _centred(score: np.ndarray) -> TwoSlopeNorm:
    """Colours that change at 0; the rare extremes share the last colour."""
    low, high = np.percentile(score, [2, 95])
    reach = max(abs(low), abs(high)) or 1.0
    return TwoSlopeNorm(0, vmin=low if low < 0 else -reach, vmax=high if high > 0 else reach)


def _new_axes() -> Axes:
    # pyplot keeps a register of figures: it is asked only where the caller brought no axes.
    from matplotlib import pyplot as plt

    return plt.subplots(layout="constrained")[1]
