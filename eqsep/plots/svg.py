"""Figures as a part of an HTML page, in the colours of the page."""

import re
from io import StringIO
from xml.sax.saxutils import escape, quoteattr

import matplotlib as mpl
from matplotlib.figure import Figure

from eqsep.plots.look import FAINT, INK, KIND_COLOURS, NORMAL_COLOUR

# What a page must define, for light and for dark.
VARIABLES = {
    INK: "--ink",
    FAINT: "--faint",
    NORMAL_COLOUR: "--normal",
    **{colour: f"--kind{i + 1}" for i, colour in enumerate(KIND_COLOURS)},
}
_COLOUR = re.compile("|".join(VARIABLES), re.IGNORECASE)
_OF = {colour.lower(): f"var({name})" for colour, name in VARIABLES.items()}


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
    file = StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(file, format="svg")
    whole = file.getvalue()
    box = re.search(r'viewBox="([^"]+)"', whole)
    assert box is not None  # matplotlib always writes one
    body = whole[whole.index("<defs>") : whole.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="(?!p[0-9a-f]{10}|m[0-9a-f]{10})[^"]*"', "", body)
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)  # it would hold for all the page
    body = re.sub(r'font-family: [^;"]*;? ?', "", body)  # the letters are the page's
    body = re.sub(r"<[^>]+>", _rounded, body)
    body = re.sub(r"\s+", " ", body)
    body = _COLOUR.sub(lambda found: _OF[found[0].lower()], body)
    title = f"<title>{escape(text)}</title>"
    return f'<svg role="img" aria-label={quoteattr(text)} viewBox="{box[1]}">{title}{body}</svg>'


def _rounded(tag: re.Match[str]) -> str:
    """A tag with its coordinates to two digits."""
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", tag[0])
