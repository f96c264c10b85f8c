"""Images as rows of an embedding: a folder for each kind, MVTec AD."""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from eqsep.datasets.embeddings import DINOv2Embedding, Embedding
from eqsep.datasets.records import LabelledTable, TrainTestSplit, numbered, split_of
from eqsep.errors import MissingExtraError, UserError
from eqsep.files import written_whole

Progress = Callable[[int, int], None]
_BATCH = 32
IMAGE_SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
_GOOD = "good"


def load_image_folder(
    root: Any,
    *,
    normal: str,
    embed: Embedding | None = None,
    cache: Any = None,
    suffixes: Collection[str] = IMAGE_SUFFIXES,
    progress: Progress | None = None,
) -> LabelledTable:
    """Images of several kinds, a folder for each, as rows of an embedding.

    Parameters
    ----------
    root : path-like
        The folder that holds a folder for each kind, with images at any depth.
    normal : str
        The name of the folder with the normal images; the name of any other folder is the kind of
        its images.
    embed : callable or None, default=None
        From a list of PIL images (RGB, of any sizes) to an array with a row of finite numbers for
        each, where a row depends on its image alone. None is `DINOv2Embedding()`.
    cache : path-like or None, default=None
        A folder to keep rows in, by the content of their image and by `embed.name`, a string.
    suffixes : collection of str, default=IMAGE_SUFFIXES
        How the names of images end, in lower case. Other files are skipped.
    progress : callable or None, default=None
        Called as progress(done, total) at the start, with the rows found in the cache, and after
        each batch.

    Returns
    -------
    LabelledTable
        The rows sorted by folder, then by path. The features are e1, e2, ...

    Examples
    --------
    >>> import numpy as np
    >>> from PIL import Image
    >>> from tempfile import TemporaryDirectory
    >>> def mean_colour(images):
    ...     return [np.asarray(image).mean(axis=(0, 1)) for image in images]
    >>> with TemporaryDirectory() as root:
    ...     for folder, colour in [("fine", "white"), ("fine", "snow"), ("burnt", "black")]:
    ...         Path(root, folder).mkdir(exist_ok=True)
    ...         Image.new("RGB", (8, 8), colour).save(Path(root, folder, f"{colour}.png"))
    ...     load_image_folder(root, normal="fine", embed=mean_colour)
    LabelledTable(3 features; 1 burnt, 2 normal)
    """
    root = Path(root).expanduser()
    names = _folders(root)
    if normal not in names:
        raise UserError(
            f"{root} has no folder {normal!r} of normal images: expected one of "
            f"{', '.join(names) or 'no folder at all'}. Name it: normal=..."
        )
    if normal != "normal" and "normal" in names:
        raise UserError(
            f'{root} has a folder "normal", but normal={normal!r} was named as the normal one. '
            'Rename the folder "normal": only normal images may be of that kind.'
        )
    folders = {"normal" if name == normal else name: root / name for name in names}
    return _table(folders, suffixes, embed=embed, cache=cache, progress=progress)


def load_mvtec(
    root: Any,
    *,
    object: str,
    embed: Embedding | None = None,
    cache: Any = None,
    progress: Progress | None = None,
) -> TrainTestSplit:
    """Images of one object of MVTec AD, divided as in the paper.

    Training has the images of `train/good` and all of the alphabetically first defect; the test has
    `test/good` and the other defects, which are unseen.

    Parameters
    ----------
    root : path-like
        The folder of MVTec AD as published, with `<object>/train/good` and
        `<object>/test/<defect>`, from https://www.mvtec.com/company/research/datasets/mvtec-ad.
    object : str
        What the images show, such as "capsule": a folder in `root`.
    embed, cache, progress
        As in `load_image_folder`.

    Returns
    -------
    TrainTestSplit
        With the kind "normal" and a kind for each defect, by the name of its folder.
    """
    root = Path(root).expanduser()
    known = [name for name in _folders(root) if (root / name / "train" / _GOOD).is_dir()]
    if object not in known:
        raise UserError(
            f"Unknown object {object!r}: {root} has {', '.join(known) or 'none'} with images in "
            f"train/{_GOOD}. Name one of them, or the folder that MVTec AD was unpacked into."
        )
    test = root / object / "test"
    defects = [name for name in _folders(test) if name != _GOOD]
    if len(defects) < 2:
        raise UserError(
            f"{test} has {len(defects)} kinds of defect ({', '.join(defects)}): expected at least "
            "two, one to learn from and one that is unseen. Take load_image_folder for this object."
        )
    seen, *unseen = defects
    parts = (
        {"normal": root / object / "train" / _GOOD, seen: test / seen},
        {"normal": test / _GOOD, **{name: test / name for name in unseen}},
    )
    (train, kind_train), (at_test, kind_test) = (_images(part, IMAGE_SUFFIXES) for part in parts)
    X = _embedded([*train, *at_test], embed=embed, cache=cache, progress=progress)
    n = len(train)
    return split_of((X[:n], kind_train), (X[n:], kind_test), numbered("e", X))


def _table(folders: Mapping[str, Path], suffixes: Collection[str], **how: Any) -> LabelledTable:
    """The images in the folders of the kinds; `how` goes to `_embedded`."""
    paths, kind = _images(folders, suffixes)
    X = _embedded(paths, **how)
    return LabelledTable(X=X, kind=kind, feature_names=numbered("e", X))


def _images(folders: Mapping[str, Path], endings: Collection[str]) -> tuple[list[Path], np.ndarray]:
    """The paths in each kind's folder, sorted, and the kind of each; none may be without."""
    found: list[tuple[Path, str]] = []
    for kind, folder in folders.items():
        inside = sorted(p for p in folder.rglob("*") if p.suffix.lower() in endings)
        if not inside:
            raise FileNotFoundError(
                f"{folder} contains no images: expected files that end in one of "
                f"{', '.join(endings)}. Put some there, or take the folder away."
            )
        found += [(path, kind) for path in inside]
    return [path for path, _ in found], np.array([kind for _, kind in found])


def _folders(root: Path) -> list[str]:
    """The names of the folders in `root`, sorted; hidden ones are passed over."""
    if not root.is_dir():
        expected = "Expected a folder with a folder for each kind of image."
        raise FileNotFoundError(f"Folder {root} does not exist. {expected}")
    return sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))


def _embedded(
    paths: Sequence[Path], *, embed: Embedding | None, cache: Any, progress: Progress | None
) -> np.ndarray:
    """The rows of image files, some at a time; rows in the cache are not embedded again."""
    embed = DINOv2Embedding() if embed is None else embed
    places = [None] * len(paths) if cache is None else _places(paths, embed=embed, cache=cache)
    rows = {i: row for i, place in enumerate(places) if (row := _kept(place)) is not None}
    missing = [i for i in range(len(paths)) if i not in rows]
    report = (lambda done, total: None) if progress is None else progress  # noqa: ARG005
    report(len(rows), len(paths))
    for start in range(0, len(missing), _BATCH):
        batch = missing[start : start + _BATCH]
        rows |= zip(batch, _rows([paths[i] for i in batch], embed=embed), strict=True)
        for i in batch:
            if (place := places[i]) is not None:
                place.parent.mkdir(parents=True, exist_ok=True)
                with written_whole(place) as file:
                    np.save(file, rows[i], allow_pickle=False)
        report(len(rows), len(paths))
    widths = sorted({len(row) for row in rows.values()})
    if len(widths) > 1:
        raise UserError(
            f"The embedding gave rows of different lengths ({widths}): expected one length. Give a "
            "changed embedding another name, or empty the cache."
        )
    return np.stack([rows[i] for i in range(len(paths))])


def _rows(paths: Sequence[Path], *, embed: Embedding) -> np.ndarray:
    """A batch of files as rows, each finite."""
    X = np.asarray(embed([_image(path) for path in paths]), dtype=np.float64)
    if X.ndim != 2 or len(X) != len(paths):
        raise UserError(
            f"The embedding was given {len(paths)} images and returned an array of shape "
            f"{X.shape}: expected ({len(paths)}, n_features), a row for each image."
        )
    for path, row in zip(paths, X, strict=True):
        if not np.isfinite(row).all():
            what = f"The embedding of {path}"
            raise UserError(f"{what} has values that are not finite. Expected numbers.")
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
    return [folder / f"{hashlib.sha256(p.read_bytes()).hexdigest()}.npy" for p in paths]


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
