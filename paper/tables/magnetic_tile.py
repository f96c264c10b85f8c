"""Magnetic tiles in MVTec's layout: from photographs to probes. One table, not in the paper.

MVTec's images cannot be passed on; photographs of magnetic tiles with five kinds of defect can.
They are put into folders as MVTec's are, read by `load_mvtec`, embedded by a network whose weights
come in a Python package, and probed as the paper probes MVTec.
"""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from eqsep.datasets import EfficientNetEmbedding, TrainTestSplit, load_mvtec
from eqsep.datasets.home import data_folder
from paper.cells import Cell, Measured, Skipped, Study
from paper.data import loaded
from paper.measures import areas_by_kind, by_seed
from paper.plan import Measurement, Table
from paper.tables.mvtec import METHODS, fitted, probe

OBJECT = "magnetic_tile"
SEEN, HELD_OUT = "blowhole", "blowhole_held_out"  # images to learn from, and of the same to test
SAME_TILE = 100  # the largest step from one number to the next within a tile
QUICK_STEP = 4  # a quick run takes every fourth image
_SOURCE = "https://github.com/abin24/Magnetic-tile-defect-datasets."


def tiles_of(numbers: np.ndarray) -> np.ndarray:
    """Which tile each photograph shows, by its number.

    A tile was probably photographed under several settings in a row: numbers that follow each
    other closely are taken for one tile.

    Examples
    --------
    >>> tiles_of(np.array([1810, 2038, 1836, 2060]))
    array([0, 1, 0, 1])
    """
    order = np.argsort(numbers)
    tiles = np.empty(len(numbers), dtype=int)
    tiles[order] = np.cumsum(np.diff(numbers[order], prepend=numbers[order][0]) > SAME_TILE)
    return tiles


def folders_in_mvtec(paths: Sequence[Path]) -> list[str | None]:
    """Where photographs MT_<Kind>/<setting>_num_<number>.jpg belong; None where nowhere.

    No tile is on both sides: every third is tested, good or with the seen defect; the others are
    trained on. The unseen defects are tested on every tile that is not trained on.
    """
    kinds = [path.parent.name.removeprefix("MT_").lower() for path in paths]
    tiles = tiles_of(np.array([int(path.stem.split("_")[-1]) for path in paths])).tolist()
    trained = {
        tile for kind, tile in zip(kinds, tiles, strict=True) if kind in ("free", SEEN) and tile % 3
    }
    known = {"free": ("test/good", "train/good"), SEEN: (f"test/{HELD_OUT}", f"test/{SEEN}")}
    return [
        known.get(kind, (f"test/{kind}", None))[tile in trained]
        for kind, tile in zip(kinds, tiles, strict=True)
    ]


def in_mvtec_layout(tiles: Path, kept: Path, *, step: int = 1) -> Path:
    """A folder in MVTec's layout with every step-th image of `tiles`, made in `kept` if need be.

    It is there whole or not at all, under a name that other images would change.
    """
    placed = list(_placed(tiles, step))
    words = "\n".join(f"{path} {path.stat().st_size} {folder}" for path, folder in placed)
    root = kept / f"{OBJECT}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"
    if root.is_dir():
        return root
    kept.mkdir(parents=True, exist_ok=True)
    part = Path(mkdtemp(dir=kept, suffix=".part"))
    for path, folder in placed:
        (part / OBJECT / folder).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, part / OBJECT / folder / path.name)
    try:
        part.rename(root)
    except OSError:  # another process was quicker
        shutil.rmtree(part)
    return root


def _placed(tiles: Path, step: int) -> Iterator[tuple[Path, str]]:
    """Images and their folders, in the order of their names."""
    by_folder: dict[str, list[Path]] = {}
    paths = sorted(tiles.glob("MT_*/*.jpg"))
    for path, folder in zip(paths, folders_in_mvtec(paths), strict=True):
        if folder is not None:
            by_folder.setdefault(folder, []).append(path)
    for folder, chosen in by_folder.items():
        yield from ((path, folder) for path in chosen[::step])


@lru_cache(maxsize=1)
def data(kept: Path, *, step: int = 1) -> TrainTestSplit:
    """The tiles as rows of EfficientNet-Lite0, which are kept beside the folder of images."""
    tiles = loaded(data_folder, "magnetic-tile", source=_SOURCE)
    root = in_mvtec_layout(tiles, kept, step=step)
    try:
        return loaded(
            load_mvtec, root, object=OBJECT, embed=EfficientNetEmbedding(), cache=kept / "rows"
        )
    except ImportError as error:
        raise Skipped(str(error)) from error


def measure(cell: Cell, *, kept: Path) -> Measured:
    """Both areas of every defect against the good tiles of the test, the seen one's apart."""
    split = data(kept, step=QUICK_STEP if cell.quick else 1)
    scores = probe(cell, fitted(cell, split), split.X_test)
    values = by_seed(_areas(score, split.kind_test) for score in scores)
    counts = zip(*np.unique(split.kind_test, return_counts=True), strict=True)
    counted = {
        "training rows": len(split.X_train),
        "test rows": {str(k): int(n) for k, n in counts},
    }
    return values, counted


def _areas(score: np.ndarray, kind: np.ndarray) -> dict[str, float]:
    """By kind, and of all that were not trained on together."""
    unseen = kind != HELD_OUT
    together = areas_by_kind(score[unseen], kind[unseen])
    return areas_by_kind(score, kind) | {
        name.replace("overall", "unseen"): area
        for name, area in together.items()
        if name.endswith("overall")
    }


def seconds(cell: Cell) -> float:
    """Roughly, on one core: most of it goes to the images, which are embedded once."""
    return 20.0 if cell.quick else 60.0


STUDY = Study("magnetic_tile", measure, seconds, keeps=True)
_ROWS = {"Blowhole (seen)": HELD_OUT, "All unseen": "unseen"}


def _measurement(row: str, column: str) -> Measurement:
    kind = _ROWS.get(row, row.lower())
    return Measurement("magnetic tiles", METHODS[column], f"{{metric}}, {kind}", seeds=3)


TABLES = [
    Table(
        "magnetic_tile",
        STUDY,
        _measurement,
        note=(
            "Real photographs of one product stand in for MVTec, whose images cannot be passed on: "
            "put into folders in MVTec's layout, embedded by EfficientNet-Lite0 (1,280 numbers an "
            "image), probed with the paper's settings. No tile is both trained on and tested: the "
            "photographs of one are known by their numbers."
        ),
        changes="The area, and that the probes are evaluated in double precision.",
    )
]
