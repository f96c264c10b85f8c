"""The files that can be fetched: where from, how large they are, and how they are recognised."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A published file."""

    folder: str  # of the data set, inside the data home
    name: str
    url: str  # one that ends in .Z is unpacked on the way
    size: int  # in bytes, once unpacked
    sha256: tuple[str, ...]  # of each known copy; some differ in blanks alone
    # The rows of each class, the last word of a line: a file with just these is a copy, too.
    classes: Mapping[str, int] | None = None


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_FOLDERS = {  # as of 2026; the tests try none of these addresses: they need a network
    "nsl-kdd": "https://raw.githubusercontent.com/defcom17/NSL_KDD/master",
    "ann-thyroid": f"{_UCI}/thyroid-disease",
    "shuttle": f"{_UCI}/statlog/shuttle",
    "satimage": f"{_UCI}/statlog/satimage",
    "ai4i2020": f"{_UCI}/00601",
}
_FILES = """
nsl-kdd     KDDTrain+.txt  19109424 1b86d2f957b33082081bba410fe129b475efebcc13c9014c3f447c8271aadf95
nsl-kdd     KDDTest+.txt    3441513 fa46b0935342616aa83b7c2578db355b6a7aaabbc492248172c7a1e8b7ab8f84
ann-thyroid ann-train.data   264725 3da53a156bda36cb0c97e9f4b6b111c9226c54c4aa00230de5604b787c47e3a6
ann-thyroid ann-test.data    241196 c649ea19416e78c7996cfaaa2a9e281cb597d4b075aaa68c494fc3e4ee3aa30b
shuttle     shuttle.trn     1153518 87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a
shuttle     shuttle.tst      384257 f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661
satimage    sat.trn          525830 e896dc88a960fa2404160fc4c3cb3dc53fcf4afd80ba920bf2d261bd42d12613
satimage    sat.tst          236745 4b9167b8a92baafafed7c8809aef86d0683a5e685c19d98d119fa6974f0f2479
ai4i2020    ai4i2020.csv     508149 9841aaa04b716d41ce9501f42d9388de7f571566608945061d026f95853c0337
"""
_OTHER_COPIES = {
    "shuttle.tst": "4d06df909e29d5f908fcbce4e003c8038a7bb5230b57820b4b87be6f38b1c747",  # with tabs
    # lines that end in \r\n
    "ai4i2020.csv": "f602454c133d7b85f0b90f7ff4c8d2b9e450cd5583536ee4da93d7eda43f3292",
}
_CLASSES = {"ann-train.data": {"1": 93, "2": 191, "3": 3_488}}
_PACKED = ("shuttle.trn",)

DATA_FILES = tuple(
    DataFile(
        folder=folder,
        name=name,
        url=f"{_FOLDERS[folder]}/{quote(name)}{'.Z' if name in _PACKED else ''}",
        size=int(size),
        sha256=(checksum, *([_OTHER_COPIES[name]] if name in _OTHER_COPIES else [])),
        classes=_CLASSES.get(name),
    )
    for folder, name, size, checksum in map(str.split, _FILES.strip().splitlines())
)
