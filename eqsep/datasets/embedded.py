"""Image files as rows: read, embedded in batches, and kept in a folder if one is named."""

import hashlib
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from eqsep.datasets.embeddings import DINOv2Embedding, Embedding
from eqsep.errors import MissingExtraError, UserError
from eqsep.files import written_whole

Progress = Callable[[int, int], None]
_BATCH = 32


def embedded(
    paths: Sequence[Path],
    *,
    embed: Embedding | None = None,
    cache: Any = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """The rows of image files.  n paths -> (n, n_features)

    Parameters
    ----------
    paths : sequence of pathlib.Path
        At least one image.
    embed : callable or None, default=None
        From a list of PIL images to an array with a row for each; None is `DINOv2Embedding()`.
    cache : path-like or None, default=None
        A folder to keep the rows in. What is kept there is known by the *content* of the file and
        the name of the embedding: a moved image is found, a changed one is embedded anew.
    progress : callable or None, default=None
        Called as progress(done, total) at the start, when done counts the rows that were kept, and
        after each batch.

    Returns
    -------
    ndarray of float

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> def mean_colour(images):
    ...     return [np.asarray(image).mean(axis=(0, 1)) for image in images]
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "red.png")
    ...     Image.new("RGB", (4, 4), (255, 0, 0)).save(path)
    ...     embedded([path], embed=mean_colour)
    array([[255.,   0.,   0.]])
    """
    embed = DINOv2Embedding() if embed is None else embed
    places = [None] * len(paths) if cache is None else _places(paths, embed=embed, cache=cache)
    rows = {i: row for i, place in enumerate(places) if (row := _kept(place)) is not None}
    missing = [i for i in range(len(paths)) if i not in rows]
    tell = (lambda done, total: None) if progress is None else progress  # noqa: ARG005
    tell(len(rows), len(paths))
    for start in range(0, len(missing), _BATCH):
        batch = missing[start : start + _BATCH]
        rows |= zip(batch, _rows([paths[i] for i in batch], embed=embed), strict=True)
        for i in batch:
            _keep(rows[i], places[i])
        tell(len(rows), len(paths))
    return _stacked([rows[i] for i in range(len(paths))])


def _rows(paths: Sequence[Path], *, embed: Embedding) -> np.ndarray:
    """A batch of files as rows that keep the contract."""
    X = np.asarray(embed([_image(path) for path in paths]), dtype=np.float64)
    if X.ndim != 2 or len(X) != len(paths):
        raise UserError(
            f"The embedding was given {len(paths)} images and returned an array of shape "
            f"{X.shape}: expected ({len(paths)}, n_features), a row for each image."
        )
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(bad):
        raise UserError(
            f"The embedding of {paths[bad[0]]} has values that are not finite. Expected numbers."
        )
    return X


def _image(path: Path) -> Any:
    """The image in RGB, read whole."""
    try:
        pillow = import_module("PIL.Image")
    except ImportError as error:
        raise MissingExtraError(
            'Reading images needs Pillow: pip install "eqsep[images]", or pip install pillow.'
        ) from error
    try:
        with pillow.open(path) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
        raise UserError(
            f"{path} cannot be read as an image: {error}. Replace it, or take it out of the folder."
        ) from error


def _stacked(rows: Sequence[np.ndarray]) -> np.ndarray:
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise UserError(
            f"The embedding gave rows of different lengths ({widths}): expected one length. Give a "
            "changed embedding another name, or empty the cache."
        )
    return np.stack(rows)


def _places(paths: Sequence[Path], *, embed: Embedding, cache: Any) -> list[Path]:
    """Where the row of each image is kept: a file named by the embedding and the content."""
    name = getattr(embed, "name", None)
    if not isinstance(name, str) or not name:
        raise UserError(
            f"Rows are kept under the name of their embedding, and {embed!r} has none: expected a "
            "string in its attribute name. Set one, embed.name = 'mean colours, version 1', or "
            "pass cache=None."
        )
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]  # two names never share a folder
    folder = Path(cache).expanduser() / f"{readable}-{digest}"
    return [folder / f"{_content(path)}.npy" for path in paths]


def _content(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _kept(place: Path | None) -> np.ndarray | None:
    """The row that is kept there, if there is one and it is whole."""
    if place is None or not place.exists():
        return None
    try:
        row = np.load(place, allow_pickle=False)
    except (EOFError, ValueError):
        return None
    usable = row.ndim == 1 and row.dtype == np.float64 and np.isfinite(row).all()
    return row if usable else None


def _keep(row: np.ndarray, place: Path | None) -> None:
    """Keep a row, if it has a place: the file is there whole or not at all."""
    if place is None:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(place) as file:
        np.save(file, row, allow_pickle=False)
