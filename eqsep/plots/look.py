"""What all pictures share: the class of displays, colours, markers and axes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import cycle
from typing import Any, NamedTuple, Self

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from eqsep.errors import visible

# Blue and vermilion of Okabe and Ito: distinct under every common colour blindness.
NORMAL_COLOUR, ANOMALY_COLOUR = "#0072B2", "#D55E00"
KIND_COLOURS = (ANOMALY_COLOUR, "#CC79A7", "#009E73", "#E69F00", "#7E57C2", "#8D6E63", "#8F8F00")
KIND_MARKERS = ("^", "s", "D", "v", "P")  # five to seven colours: 35 kinds look different
INK, FAINT = "#333333", "#B8BCC2"
Style = dict[str, Any]  # keywords of a call of matplotlib
SCORE_COLOURS = LinearSegmentedColormap.from_list(
    "eqsep", ["#8EC1E2", "#D3E6F3", "#FCFBFA", "#FBE3D1", "#F2B184"]
)


class Display(ABC):
    """A picture in scikit-learn's style: it holds what is drawn, and `plot` draws it."""

    ax_: Axes

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        if ax is None:
            # pyplot keeps a register of figures, so it is used only if the caller brings no axes.
            from matplotlib import pyplot as plt

            ax = plt.subplots(layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(title)
        return self

    @abstractmethod
    def _draw(self, title: str | None) -> None:
        """Draw on `self.ax_`."""


class Look(NamedTuple):
    """How a class or kind is drawn."""

    colour: str
    marker: str


def is_normal(label: Any) -> bool:
    """Whether a label is the usual one of normal rows."""
    return label in (0, "normal")


def as_text(name: str) -> str:
    """A name as it is: dollars do not begin mathematics, and control characters are visible."""
    return visible(name).replace("$", r"\$")


def looks(labels: Iterable[Any], *, normal: Any = None) -> dict[Any, Look]:
    """A colour and a marker for each label, blue dots for the normal one."""
    anomalous: Iterator[tuple[str, str]] = zip(cycle(KIND_COLOURS), cycle(KIND_MARKERS))
    found = {}
    for label in labels:
        usual = is_normal(label) if normal is None else label == normal
        found[label] = Look(NORMAL_COLOUR, "o") if usual else Look(*next(anomalous))
    return found


def below(x: float, y: float, *, loc: str) -> Style:
    """How a legend is drawn below the axes."""
    look = {"fontsize": "small", "frameon": False, "labelcolor": INK}
    return {"loc": loc, "bbox_to_anchor": (x, y), **look}


def frame(ax: Axes, *, title: str | None = None, x_label: str = "", y_label: str = "") -> None:
    """Axes with two thin sides, and words in ink."""
    ax.set_title(title or "", loc="left", fontsize="medium", color=INK)
    ax.set_xlabel(x_label, color=INK)
    ax.set_ylabel(y_label, color=INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(INK)
    ax.tick_params(which="both", color=INK, labelcolor=INK, labelsize="small")
