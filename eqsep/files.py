"""Files: the formats of tables by their names, and files that are written whole or not at all."""

import errno
import os
import re
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

FORMATS = {
    **{"csv": "csv", "jsonl": "jsonl", "ndjson": "jsonl", "parquet": "parquet", "pq": "parquet"},
    **dict.fromkeys(("arrow", "feather", "ipc"), "arrow"),
}
READ_AS_TEXT = dict.fromkeys(("tsv", "txt", "data", "dat", "asc"), "csv")  # read alone
SHEETS = dict.fromkeys(("xlsx", "xlsm", "xls", "xlsb", "ods"), "sheet")  # likewise
# What a shell, a scheduler or a closed terminal sends to end a process.
ENDING_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_PART = re.compile(r"\.eqsep-[0-9a-f]{16}\.part")
_unfinished: set[Path] = set()  # files that are being written
_UNLOCKED_SECONDS = 60.0  # seconds in which a file that is being written may not be locked yet


def ending_of(path: str | os.PathLike[str]) -> str:
    """The ending of a file's name in small letters, without .gz; "" if it has none."""
    return Path(Path(path).name.removesuffix(".gz")).suffix[1:].lower()


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new binary file, which replaces `path` if the block succeeds, and only then.

    It is renamed at the end, once its content is on the disk: neither a reader nor a loss of power
    ever finds half of it. An error, an interruption or SIGTERM leaves `path` as it was and no other
    file; what killed processes have left there is removed. A link keeps pointing to the file.
    """
    path = Path(path).resolve()
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "Folder not found", str(path.parent))
    part = path.with_name(f".eqsep-{secrets.token_hex(8)}.part")
    with _ended_in_order():
        _remove_abandoned(path.parent)
        _unfinished.add(part)
        try:
            with part.open("xb") as file:
                with suppress(OSError):
                    _lock(file)
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.utime(part)  # young once more, as it is not locked when it is renamed
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
            _unfinished.discard(part)
    _settle(path.parent)


@contextmanager
def changed_alone(path: Path, *, on_wait: Callable[[], None]) -> Iterator[None]:
    """Lock a file that is read and then replaced; `on_wait` is called if others have it first."""
    while True:
        with path.open("rb") as file:
            try:
                _lock(file)
            except BlockingIOError:
                on_wait()
                _lock(file, wait=True)
            except OSError:  # this system has no locks
                yield
                return
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):  # not replaced meanwhile
                yield
                return


def _lock(file: BinaryIO, *, wait: bool = False) -> None:
    """Lock a file until it is closed; any OSError but BlockingIOError means that there are none."""
    if os.name != "posix":
        raise OSError(errno.ENOTSUP, "No locks")
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned(folder: Path) -> None:
    """Remove the unfinished files of processes that have ended: nobody has locked them."""
    for path in folder.glob(".eqsep-*.part"):
        with suppress(OSError):
            if (
                not _PART.fullmatch(path.name)
                or time.time() - path.stat().st_mtime < _UNLOCKED_SECONDS
            ):
                continue
            with path.open("r+b") as file:
                _lock(file)
                path.unlink()


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let signals that end a process run its last steps, unless they are handled already."""
    may_handle = threading.current_thread() is threading.main_thread()
    unhandled = [one for one in ENDING_SIGNALS if signal.getsignal(one) is signal.SIG_DFL]
    taken = unhandled if may_handle else []
    for number in taken:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _: object) -> None:
    """Remove what is half written, and end with the exit code of the signal."""
    for path in list(_unfinished):  # the exception may strike between `with` and its block
        path.unlink(missing_ok=True)
    sys.exit(128 + number)


def _settle(folder: Path) -> None:
    """Make a renaming outlast a loss of power, where folders can be synchronised."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
