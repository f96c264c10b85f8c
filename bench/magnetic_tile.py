"""Photographs of magnetic tiles: free of defects, or with one of five kinds."""

from dataclasses import replace
from typing import Any

import numpy as np

from eqsep.datasets import LabelledTable, load_image_folder
from eqsep.datasets.home import data_folder

_URL = "https://github.com/abin24/Magnetic-tile-defect-datasets."
_FOLDERS = {f"MT_{kind}" for kind in ("Blowhole", "Break", "Crack", "Fray", "Free", "Uneven")}


def load_magnetic_tile(*, data_home: Any = None, **options: Any) -> LabelledTable:
    """1,344 rows, sorted by folder, then by path; `options` go to `load_image_folder`.

    952 are "normal", 115 "blowhole", 103 "uneven", 85 "break", 57 "crack", 32 "fray". The folder
    `data_home` (default: the variable EQSEP_DATA) holds `magnetic-tile/MT_Free`,
    `magnetic-tile/MT_Crack` and so on, from the address above (the dot belongs to it).

    A file is called exp<setting>_num_<number>.jpg, and a tile was probably photographed under
    several settings: keep rows of one tile together when you divide them.
    """
    root = data_folder("magnetic-tile", source=_URL, data_home=data_home)
    lacking = sorted(_FOLDERS - {path.name for path in root.iterdir()})
    if lacking:
        raise FileNotFoundError(f"{root} lacks {', '.join(lacking)}. Put them there, from {_URL}")
    # The published folders also hold masks of the defects, which are .png.
    table = load_image_folder(root, normal="MT_Free", suffixes=(".jpg",), **options)
    return replace(table, kind=np.array([k.removeprefix("MT_").lower() for k in table.kind]))
