"""Figures as files, each whole or not at all."""

import os
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from eqsep.errors import UserError
from eqsep.files import written_whole


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
        raise UserError(
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
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_figure(Figure(), Path(folder, "empty.png")).name
    'empty.png'
    """
    path = check_figure_path(path)
    with written_whole(path) as file:
        figure.savefig(file, dpi=dpi, format=path.suffix[1:].lower())
    return path
