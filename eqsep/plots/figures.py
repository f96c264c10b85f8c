"""Figures as files, and as a part of an HTML page in its colours."""

import os
import re
import warnings
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.text import Text

from eqsep.errors import UserError
from eqsep.files import written_whole
from eqsep.plots.look import FAINT, INK, KIND_COLOURS, NORMAL_COLOUR

# The variables of CSS that a page must define, for light and for dark.
VARIABLES = {
    INK: "ink",
    FAINT: "faint",
    NORMAL_COLOUR: "normal",
    **{colour: f"kind{i + 1}" for i, colour in enumerate(KIND_COLOURS)},
}
_OF = {colour.lower(): f"var(--{name})" for colour, name in VARIABLES.items()}
_COLOUR = re.compile("|".join(_OF), re.IGNORECASE)
_LONG_NUMBER = re.compile(r"\d+\.\d{3,}")
_REFERENCE = re.compile(r"^#(.+)$|^url\(#(.+)\)$")  # to an id, by href or by url
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # control characters


def check_figure_path(path: str | os.PathLike[str]) -> Path:
    """`path`, if a figure can be written there: an existing folder and a known ending."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"Cannot write {path}: folder {path.parent} does not exist. "
            f"Create it first, or choose another."
        )
    known = sorted(FigureCanvasAgg.get_supported_filetypes())
    if path.suffix[1:].lower() not in known:
        raise UserError(
            f"Cannot write {path}: expected a name that ends in one of {known}, "
            f"got {path.suffix!r}. Take .png."
        )
    return path


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: int = 150) -> Path:
    """Write `figure` to `path` in the format of its ending, or not at all, and return the path.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_figure(Figure(), Path(folder, "empty.png")).name
    'empty.png'
    """
    path = check_figure_path(path)
    with written_whole(path) as file:
        figure.savefig(file, dpi=dpi, format=path.suffix[1:].lower())
    return path


def inline_svg(figure: Figure, *, name: str, text: str) -> str:
    """The figure as `<svg>` in the page's colours; ids begin with `name`, `text` is read aloud."""
    figure.patch.set_visible(False)
    for ax in figure.axes:
        ax.patch.set_visible(False)
    for words in figure.findobj(Text):
        if same_color(words.get_color(), "black"):  # as legends are, also on dark pages
            words.set_color(INK)
    file = StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        # Text stays text, and the page has letters that the font here may lack: Matplotlib says so
        # by warnings alone.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
        figure.savefig(file, format="svg")
    svg = ElementTree.fromstring(_NO_XML.sub("\ufffd", file.getvalue()))
    for parent in list(svg.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):  # a style would apply to the whole page
                parent.remove(child)
    values = (value for element in svg.iter() for value in element.attrib.values())
    found = (_REFERENCE.search(value) for value in values)
    referenced = {match[1] or match[2] for match in found if match}
    for element in svg.iter():
        _simplify(element, referenced=referenced)
    svg.attrib = {"role": "img", "aria-label": text, "viewBox": svg.attrib["viewBox"]}
    svg.insert(0, ElementTree.Element("title"))
    svg[0].text = text
    return ElementTree.tostring(svg, encoding="unicode")


def _simplify(element: ElementTree.Element, *, referenced: set[str]) -> None:
    """Drop namespaces, ids that nothing refers to, fonts, and blanks between elements."""
    element.tag = _local(element.tag)
    element.attrib = {
        _local(name): _plain(value)
        for name, value in element.attrib.items()
        if name != "id" or value in referenced
    }
    if style := element.attrib.get("style"):
        kept = (one for one in style.split("; ") if not one.startswith("font-family:"))
        element.attrib["style"] = "; ".join(kept)
    if not (element.text or "").strip():
        element.text = None
    if not (element.tail or "").strip():
        element.tail = None


def _plain(value: str) -> str:
    """An attribute on one line, with coordinates to two digits and the colours of the page."""
    rounded = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", " ".join(value.split()))
    return _COLOUR.sub(lambda colour: _OF[colour[0].lower()], rounded)


def _local(name: str) -> str:
    """A name without its namespace, which HTML does not need."""
    return name.rpartition("}")[2]
