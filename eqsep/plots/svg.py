"""Figures as a part of an HTML page, in the colours of the page."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.text import Text

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
_REFERENCE = re.compile(r"^#(.+)$|^url\(#(.+)\)$")
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # control characters


def inline_svg(figure: Figure, *, name: str, text: str) -> str:
    """The figure as an `<svg>` element, with words as words and colours as variables of the page.

    Parameters
    ----------
    figure : matplotlib Figure
    name : str
        Another one for every figure of a page: ids begin with it.
    text : str
        What the picture shows, for those who cannot see it.

    Examples
    --------
    >>> svg = inline_svg(Figure(figsize=(2, 1)), name="empty", text="Nothing.")
    >>> "Nothing." in svg, "http" in svg
    (True, False)
    """
    figure.patch.set_visible(False)
    for ax in figure.axes:
        ax.patch.set_visible(False)
    for words in figure.findobj(Text):
        if same_color(words.get_color(), "black"):  # as legends are, and dark pages
            words.set_color(INK)
    file = StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), _glyphs_of_the_page():
        figure.savefig(file, format="svg")
    svg = ElementTree.fromstring(_NO_XML.sub("\ufffd", file.getvalue()))
    for parent in list(svg.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):  # a style would hold for all the page
                parent.remove(child)
    referenced = _references(svg)
    for element in svg.iter():
        _simplify(element, referenced=referenced)
    svg.attrib = {"role": "img", "aria-label": text, "viewBox": svg.attrib["viewBox"]}
    title = ElementTree.Element("title")
    title.text = text
    svg.insert(0, title)
    return ElementTree.tostring(svg, encoding="unicode")


@contextmanager
def _glyphs_of_the_page() -> Iterator[None]:
    """Words stay words, and the page has letters that the font here may lack."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
        yield


def _references(svg: ElementTree.Element) -> set[str]:
    """The ids that something in the figure points to, by href or by url."""
    values = (value for element in svg.iter() for value in element.attrib.values())
    found = (_REFERENCE.search(value) for value in values)
    return {match[1] or match[2] for match in found if match}


def _simplify(element: ElementTree.Element, *, referenced: set[str]) -> None:
    """Names without their namespace, needed ids alone, no blanks between the elements."""
    element.tag = _local(element.tag)
    element.attrib = {
        _local(name): _plain(value)
        for name, value in element.attrib.items()
        if name != "id" or value in referenced
    }
    if "style" in element.attrib:
        declarations = element.attrib["style"].split("; ")
        kept = [one for one in declarations if not one.startswith("font-family:")]
        element.attrib["style"] = "; ".join(kept)  # the letters are the page's
    if not (element.text or "").strip():
        element.text = None
    if not (element.tail or "").strip():
        element.tail = None


def _plain(value: str) -> str:
    """An attribute on one line, with coordinates to two digits and the colours of the page."""
    rounded = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", " ".join(value.split()))
    return _COLOUR.sub(lambda colour: _OF[colour[0].lower()], rounded)


def _local(name: str) -> str:
    """A name without its namespace: HTML knows those of SVG by themselves."""
    return name.rpartition("}")[2]
