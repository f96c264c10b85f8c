"""Files: the formats of tables by their names, and files that are there whole or not at all."""

import errno
import os
import secrets
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

FORMATS = {
    "csv": "csv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "parquet": "parquet",
    "pq": "parquet",
    "arrow": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
}
READ_AS_TEXT = dict.fromkeys(("tsv", "txt", "data"), "csv")  # read alone
SHEETS = dict.fromkeys(("xlsx", "xlsm", "xls", "xlsb", "ods"), "sheet")  # likewise


def ending_of(path: str | os.PathLike[str]) -> str:
    """The end of a file's name in small letters, without .gz; "" where there is none.

    Examples
    --------
    >>> ending_of("scores.CSV.gz"), ending_of("-")
    ('csv', '')
    """
    return Path(Path(path).name.removesuffix(".gz")).suffix[1:].lower()


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new binary file, which takes the place of `path` when all went well, and only then.

    It is written beside `path` under a name that nobody else has and renamed at the end, so
    no reader meets half of it; the content reaches the disk before the name does, so a loss of
    power leaves the old file or the new one. Whatever ends the block otherwise, an error, an
    interruption or SIGTERM, leaves `path` as it was and nothing beside it. Where `path` is a
    link, the file that it points to is replaced.

    Parameters
    ----------
    path : str or path-like
        In a folder that exists.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.csv")
    ...     with written_whole(path) as file:
    ...         _ = file.write(b"a,b\\n")
    ...         print(path.exists())
    ...     path.read_bytes()
    False
    b'a,b\\n'
    """
    path = Path(path).resolve()
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", str(path.parent))
    beside = path.with_name(f".eqsep-{secrets.token_hex(8)}.part")
    with _ended_in_order():
        try:
            with beside.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    _settle(path.parent)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let what a shell or a scheduler sends to end a process run its last steps too.

    Only the main thread may say so; who handles the signal already goes on doing so.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _settle(folder: Path) -> None:
    """See that the renaming outlasts a loss of power, where folders can be told so."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
