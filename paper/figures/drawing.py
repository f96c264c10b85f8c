"""From numbers to pictures: panels of heat maps, panels of curves, and the bytes of a PNG."""

from collections.abc import Sequence
from io import BytesIO
from itertools import cycle
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from eqsep.plots import ANOMALY_COLOUR, NORMAL_COLOUR, RegionDisplay
from paper.measures import axes

_COLOURS = (NORMAL_COLOUR, ANOMALY_COLOUR, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_STYLES = ("-", "--", "-.", ":")
_SIDE = 3.4  # inches


class Curve(NamedTuple):
    """y against x, with a band of one standard deviation where there is one."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    std: Sequence[float] | None = None


class CurvePanel(NamedTuple):
    """One picture of curves."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]


def heat_map_figure(panels: Sequence[tuple[str, dict[str, Any]]], *, n_columns: int = 4) -> Figure:
    """A heat map for each title and grid: blue is normal, orange is not, the line decides."""
    figure, panel_axes = _empty_panels(len(panels), n_columns, aspect=1.15)
    for ax, (title, grid) in zip(panel_axes, panels, strict=True):
        score = np.array(grid["score"])
        xx0, xx1 = axes(grid["low"], grid["high"], len(score))
        display = RegionDisplay(xx0=xx0, xx1=xx1, score=score).plot(ax=ax, title=title)
        if "X" in grid:
            display.add_rows(grid["X"], y=grid["kind"])
        ax.set_aspect("equal")
        ax.set(xlim=(grid["low"], grid["high"]), ylim=(grid["low"], grid["high"]))
    return figure


def curve_figure(panels: Sequence[CurvePanel], *, n_columns: int = 2) -> Figure:
    """A picture of curves for each panel."""
    figure, panel_axes = _empty_panels(len(panels), n_columns, aspect=0.85)
    for ax, panel in zip(panel_axes, panels, strict=True):
        looks = zip(cycle(_COLOURS), cycle(_STYLES), strict=True)
        for curve, (colour, style) in zip(panel.curves, looks, strict=False):
            ax.plot(curve.x, curve.y, color=colour, linestyle=style, label=curve.label)
            if curve.std is not None:
                low, high = np.subtract(curve.y, curve.std), np.add(curve.y, curve.std)
                ax.fill_between(curve.x, low, high, color=colour, alpha=0.12, linewidth=0)
        ax.set(xlabel=panel.x_label, ylabel=panel.y_label)
        ax.set_title(panel.title, loc="left", fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize="small")
    return figure


def png(figure: Figure, *, dpi: int = 100) -> bytes:
    """The figure as the bytes of a PNG in 256 colours: a page holds a dozen of them."""
    drawn, small = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    with Image.open(drawn) as picture:
        colours = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
    colours.save(small, format="PNG", optimize=True)
    return small.getvalue()


def _empty_panels(n: int, n_columns: int, *, aspect: float) -> tuple[Figure, list[Any]]:
    n_columns = min(n, n_columns)
    n_rows = ceil(n / n_columns)
    size = (_SIDE * n_columns, _SIDE * aspect * n_rows)
    figure = Figure(figsize=size, layout="constrained")
    panel_axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
    for ax in panel_axes[n:]:
        ax.remove()
    return figure, panel_axes[:n]
