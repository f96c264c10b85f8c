"""Data files from the network, checked before they are written to the data folder."""

import hashlib
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from eqsep.datasets.catalogue import DATA_FILES, DataFile
from eqsep.datasets.home import VARIABLE, named_home
from eqsep.errors import UserError
from eqsep.files import written_whole

DownloadProgress = Callable[[DataFile, int, int | None], None]
_CHUNK = 1 << 16
_TIMEOUT = 60  # seconds without an answer
_ROOM = 1 << 20  # bytes beyond the known size that a copy in another layout may have


def fetch_data(
    data_set: str,
    *,
    data_home: Any = None,
    progress: DownloadProgress | None = None,
    files: Sequence[DataFile] = DATA_FILES,
) -> list[Path]:
    """The files of a data set, downloaded if they are missing.

    Parameters
    ----------
    data_set : str
        Its folder in the data home: "nsl-kdd", "ann-thyroid", "shuttle", "satimage", "ai4i2020".
    data_home : path-like or None, default=None
        The folder of all data sets, made if it does not exist. Default: the variable EQSEP_DATA.
    progress : callable or None, default=None
        Called as progress(file, done, total) with the bytes of a file that have arrived and its
        size, None where the server does not send it.
    files : sequence of DataFile, default=DATA_FILES
        The files that are known.

    Raises
    ------
    ConnectionError
        If a file cannot be fetched; the message says which file to put where by hand.
    ValueError
        If the data set is unknown, or a file is not the one that was published.
    """
    wanted = [file for file in files if file.folder == data_set]
    if not wanted:
        known = sorted({file.folder for file in files})
        raise UserError(f"Unknown data set {data_set!r}: expected one of {', '.join(known)}.")
    home = named_home(data_home, wanted=data_set, source=wanted[0].url)
    return [_fetched(file, home / file.folder / file.name, progress=progress) for file in wanted]


def is_published(path: Path, file: DataFile) -> bool:
    """Whether the file at `path` is the published one, by its checksum or by its classes."""
    return path.is_file() and _is_content(path.read_bytes(), file)


def state_of(file: DataFile, home: Path) -> str:
    """In words, whether the file is in the data folder."""
    path = home / file.folder / file.name
    if not path.exists():
        return "missing"
    return "there" if is_published(path, file) else "not the published file"


def _is_content(data: bytes, file: DataFile) -> bool:
    if hashlib.sha256(data).hexdigest() in file.sha256:
        return True
    lines = data.decode(errors="replace").splitlines()
    return Counter(line.split()[-1] for line in lines if line.strip()) == file.classes


def _fetched(file: DataFile, path: Path, *, progress: DownloadProgress | None) -> Path:
    """The path of the file, fetched if it is missing."""
    if is_published(path, file):
        return path
    if path.exists():
        other = f"{path} is not the {file.name} that was published: its sha256 is another one"
        raise UserError(f"{other}. Move it away, and fetch again.")
    path.parent.mkdir(parents=True, exist_ok=True)  # first: if this fails, nothing is fetched
    data = _downloaded(file, path, progress=progress)
    if not _is_content(data, file):
        raise UserError(
            f"What came from {file.url} is not the {file.name} that was published: its sha256 is "
            f"another one. {_by_hand(file, path)}"
        )
    with written_whole(path) as target:
        target.write(data)
    return path


def _downloaded(file: DataFile, path: Path, *, progress: DownloadProgress | None) -> bytes:
    """What the address gives, unpacked; `path` is where the file will be in the end."""
    data = bytearray()
    try:
        with urlopen(file.url, timeout=_TIMEOUT) as source:
            length = source.headers.get("Content-Length")
            total = int(length) if length else None
            while chunk := source.read(_CHUNK):
                data += chunk
                if len(data) > file.size + _ROOM:
                    raise UserError(
                        f"{file.url} gives more than the {file.size:,} bytes of {file.name}. "
                        f"{_by_hand(file, path)}"
                    )
                if progress is not None:
                    progress(file, len(data), total)
    except (URLError, HTTPException, TimeoutError, ConnectionError) as error:
        message = f"{file.url} cannot be fetched: {getattr(error, 'reason', None) or error}."
        raise ConnectionError(f"{message} {_by_hand(file, path)}") from error
    if total is not None and len(data) < total:
        came = f"{len(data):,} of {total:,} bytes"
        raise ConnectionError(f"{file.url} broke off after {came}. Fetch again.")
    return _unpacked(bytes(data), file, path) if file.url.endswith(".Z") else bytes(data)


def _unpacked(data: bytes, file: DataFile, path: Path) -> bytes:
    """The content of a .Z file, by gzip, as Python's library cannot read one."""
    try:
        done = subprocess.run(["gzip", "-dc"], input=data, capture_output=True, check=True)
    except FileNotFoundError as error:
        raise UserError(
            f"{file.url} is unpacked by the program gzip, which is not installed. "
            f"{_by_hand(file, path)}"
        ) from error
    except subprocess.CalledProcessError as error:
        raise UserError(
            f"What came from {file.url} is not a .Z file, or a damaged one: "
            f"{error.stderr.decode(errors='replace').strip()}. {_by_hand(file, path)}"
        ) from error
    return done.stdout


def _by_hand(file: DataFile, path: Path) -> str:
    unpack = ", unpacked," if file.url.endswith(".Z") else ""
    return (
        f"Put the file{unpack} there by hand: {path} ({file.size:,} bytes, sha256 "
        f"{file.sha256[0]}). Any other folder will do that {VARIABLE} or data_home names, with the "
        f"file in a subfolder {file.folder}."
    )
