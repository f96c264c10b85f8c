"""The files that can be fetched: where from, how large they are, and how they are recognised."""

from collections.abc import Mapping
from dataclasses import dataclass

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_NSL_KDD = "https://raw.githubusercontent.com/defcom17/NSL_KDD/master"


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A published file.

    `sha256` has a checksum for each known copy; some differ in blanks alone. `classes` has the
    number of rows of each class, the last word of a line: a file with another checksum and exactly
    these rows is taken for a copy in another layout.
    """

    folder: str  # of the data set, inside the data home
    name: str
    url: str  # one that ends in .Z is unpacked on the way
    size: int  # in bytes, once unpacked
    sha256: tuple[str, ...]
    classes: Mapping[str, int] | None = None


# As of 2026. The tests try none of these addresses: they need a network.
DATA_FILES = (
    DataFile(
        folder="nsl-kdd",
        name="KDDTrain+.txt",
        url=f"{_NSL_KDD}/KDDTrain%2B.txt",
        size=19_109_424,
        sha256=("1b86d2f957b33082081bba410fe129b475efebcc13c9014c3f447c8271aadf95",),
    ),
    DataFile(
        folder="nsl-kdd",
        name="KDDTest+.txt",
        url=f"{_NSL_KDD}/KDDTest%2B.txt",
        size=3_441_513,
        sha256=("fa46b0935342616aa83b7c2578db355b6a7aaabbc492248172c7a1e8b7ab8f84",),
    ),
    DataFile(
        folder="ann-thyroid",
        name="ann-train.data",
        url=f"{_UCI}/thyroid-disease/ann-train.data",
        size=264_725,
        sha256=("3da53a156bda36cb0c97e9f4b6b111c9226c54c4aa00230de5604b787c47e3a6",),
        classes={"1": 93, "2": 191, "3": 3_488},
    ),
    DataFile(
        folder="ann-thyroid",
        name="ann-test.data",
        url=f"{_UCI}/thyroid-disease/ann-test.data",
        size=241_196,
        sha256=("c649ea19416e78c7996cfaaa2a9e281cb597d4b075aaa68c494fc3e4ee3aa30b",),
    ),
    DataFile(
        folder="shuttle",
        name="shuttle.trn",
        url=f"{_UCI}/statlog/shuttle/shuttle.trn.Z",
        size=1_153_518,
        sha256=("87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a",),
    ),
    DataFile(
        folder="shuttle",
        name="shuttle.tst",
        url=f"{_UCI}/statlog/shuttle/shuttle.tst",
        size=384_257,
        sha256=(
            "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661",  # with blanks
            "4d06df909e29d5f908fcbce4e003c8038a7bb5230b57820b4b87be6f38b1c747",  # with tabs
        ),
    ),
    DataFile(
        folder="satimage",
        name="sat.trn",
        url=f"{_UCI}/statlog/satimage/sat.trn",
        size=525_830,
        sha256=("e896dc88a960fa2404160fc4c3cb3dc53fcf4afd80ba920bf2d261bd42d12613",),
    ),
    DataFile(
        folder="satimage",
        name="sat.tst",
        url=f"{_UCI}/statlog/satimage/sat.tst",
        size=236_745,
        sha256=("4b9167b8a92baafafed7c8809aef86d0683a5e685c19d98d119fa6974f0f2479",),
    ),
    DataFile(
        folder="ai4i2020",
        name="ai4i2020.csv",
        url=f"{_UCI}/00601/ai4i2020.csv",
        size=508_149,
        sha256=(
            "9841aaa04b716d41ce9501f42d9388de7f571566608945061d026f95853c0337",  # lines end in \n
            "f602454c133d7b85f0b90f7ff4c8d2b9e450cd5583536ee4da93d7eda43f3292",  # in \r\n
        ),
    ),
)
