"""How Sphinx builds these pages: `make docs`, with no network."""

import re
from collections.abc import Callable

from docutils.nodes import SkipNode
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

from eqsep import __version__

project = "eqsep"
version = release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "gallery"]
default_role = "code"  # `name` in a docstring is code
toc_object_entries_show_parents = "hide"

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # names, not the long values behind them
autodoc_typehints = "none"  # the docstrings state types
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "capture_repr": ("_repr_html_",),  # tables, and no names of objects
    "min_reported_time": 3600,  # seconds on a page are those of the machine that built it
}

html_theme = "pydata_sphinx_theme"
html_title = "eqsep"
html_static_path = ["_static"]
html_css_files = ["eqsep.css"]
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False
html_sidebars = {"index": []}  # elsewhere the pages of the section
html_theme_options = {
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "show_prev_next": True,
}
html_math_renderer = "mathml"

_BAR_OR_REFERENCE = re.compile(r"(?<!\\)\||(?<=\w)_(?!\w)")
_LITERAL = re.compile(r"(``.+?``|`[^`]+`)")
_EXAMPLE = re.compile(r"\]\((?:\.\./)?gallery/(\w+/plot_\w+)\.py\)")


def setup(app: Sphinx) -> None:
    """Formulas as MathML, which needs no script; docstrings and links read as they are written."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )
    app.connect("autodoc-process-docstring", _as_written, priority=900)  # after numpydoc
    app.connect("source-read", _to_pages)


def _to_pages(app, docname: str, source: list[str]) -> None:  # noqa: ARG001
    """Links to scripts of the gallery lead to their pages."""
    source[0] = _EXAMPLE.sub(r"](auto_gallery/\1.rst)", source[0])


def _as_written(app, what, name, obj, options, lines: list[str]) -> None:  # noqa: ARG001
    """Escape |z| and coef_ in prose, which reStructuredText would take for references."""
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example and not line.lstrip().startswith(("..", ":", "===")):
            parts = _LITERAL.split(line)
            parts[::2] = [_BAR_OR_REFERENCE.sub(r"\\\g<0>", part) for part in parts[::2]]
            lines[i] = "".join(parts)


def _renderer(before: str, after: str, *, as_block: bool) -> Callable:
    def render(visitor, node) -> None:
        tex = re.sub(r"\\dots\b", r"\\ldots", node.astext())  # the one command it lacks
        try:
            formula = latex2mathml.tex2mathml(tex, as_block=as_block)
        except MathError as error:
            logging.getLogger(__name__).warning("formula: %s", error, location=node)
            formula = f"<code>{visitor.encode(node.astext())}</code>"
        visitor.body.append(f"{before}{formula}{after}")
        raise SkipNode

    return render


_inline = _renderer("", "", as_block=False)
_block = _renderer('<div class="formula">', "</div>\n", as_block=True)
