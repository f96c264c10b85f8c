"""The bytes of a text file: unpacked, in UTF-8, and its first lines."""

import codecs
import csv
import gzip
import io
import os
import re
import select
import stat
import sys
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eqsep.errors import EqsepWarning, UserError, warn
from eqsep.io.dialect import Layout
from eqsep.progress import reporter

STANDARD_INPUT = "-"
WESTERN = "cp1252"  # the encoding of text that is not UTF-8
_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # begins like that of UTF-16
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
QUOTE = b'"'
_HEAD = 2**18  # bytes that the dialect is inferred from
_LONGEST_LINE = 2**22  # bytes
_ENCODING_BYTES = 4096  # bytes that show an encoding
_WAIT_FOR_WRITER = 10  # seconds
_PATIENCE = 0.1  # seconds after which a waiting reader checks whether it should stop


@contextmanager
def read_unchanged(path: str | os.PathLike[str], *, may_grow: bool = False) -> Iterator[None]:
    """Refuse what was read of a file that changed meanwhile; warn if it `may_grow` and did."""
    before = stamp_of(path)
    yield
    after = stamp_of(path)
    if before is None or after is None or before == after:
        return
    if may_grow and after[0] == before[0] and after[1] > before[1]:
        warn(EqsepWarning(f"{path} has grown while it was read: its last rows may be missing."))
        return
    raise UserError(
        f"{path} was changed while it was read: what was read may be half old, half new. Try again "
        f"when nobody writes to it."
    )


def stamp_of(path: str | os.PathLike[str]) -> tuple[int, int, int] | None:
    """A file's inode, size and time of change; None for pipes, devices and absent files."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


@contextmanager
def raw_stream(path: str) -> Iterator[Any]:
    if path == STANDARD_INPUT:
        yield _StandardInput()
    else:
        with _opened(path) as file:
            yield gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """A file, or a named pipe once it has been opened to write."""
    if not stat.S_ISFIFO(Path(path).stat().st_mode):
        with io.BufferedReader(_CountedFile(path)) as file:
            yield file
        return
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as pipe:
        first = _first_byte(pipe.fileno(), path)
        os.set_blocking(pipe.fileno(), True)
        yield io.BufferedReader(Rejoined(first, pipe))


class _CountedFile(io.FileIO):
    """A file that reports how many of its bytes are read."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._report = reporter("bytes")

    def readinto(self, buffer: Any) -> int:
        n = super().readinto(buffer)
        self._report(n or 0)  # None from a device that has nothing yet
        return n


def _first_byte(handle: int, path: str) -> bytes:
    """The first byte in a pipe, or none if it is open to write and nothing was written so far."""
    deadline = time.monotonic() + _WAIT_FOR_WRITER
    while time.monotonic() < deadline:
        try:
            if first := os.read(handle, 1):
                return first
        except BlockingIOError:
            return b""
        time.sleep(_PATIENCE)
    raise UserError(
        f"Nobody wrote to the pipe {path} for {_WAIT_FOR_WRITER} seconds: start the program that "
        f"writes to it first."
    )


class _Reading(io.RawIOBase):
    """A stream that other threads read from, and that can be ended at once, with its source."""

    def __init__(self, source: Any = None) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._unwanted = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, n: int = -1) -> bytes:  # without the copy that the base class makes
        if n < 0:
            return self.readall()
        with self._lock:
            return b"" if self._unwanted else self._next(n)

    @abstractmethod
    def _next(self, n: int) -> bytes:
        """At most `n` bytes; none at the end."""

    def end(self) -> None:
        """Return nothing to later reads, and wait for the present one."""
        self._unwanted = True
        if isinstance(self._source, _Reading):
            self._source.end()
        with self._lock:
            pass


class _StandardInput(_Reading):
    """Standard input; a waiting read stops soon after `end`."""

    def _next(self, n: int) -> bytes:
        if sys.stdin is None:
            raise UserError("Standard input is closed: pass a file, or rows in a pipe.")
        try:
            handle = sys.stdin.buffer.fileno()
        except (OSError, ValueError):  # replaced by a test
            return sys.stdin.buffer.read(n)
        while os.name == "posix" and not select.select([handle], [], [], _PATIENCE)[0]:
            if self._unwanted:
                return b""
        return os.read(handle, n)


class Rejoined(_Reading):
    """Bytes that were read, and the stream that goes on after them."""

    def __init__(self, first: bytes, rest: Any) -> None:
        super().__init__(rest)
        self._first = first

    def _next(self, n: int) -> bytes:
        data: bytes = self._first[:n] or self._source.read(n)
        self._first = self._first[len(data) :]
        return data


class Remembered(Rejoined):
    """The same, keeping the last bytes that were read."""

    def __init__(self, first: bytes, rest: Any, *, most: int) -> None:
        super().__init__(first, rest)
        self._most, self._quotes_before, self._last = most, 0, b""

    def _next(self, n: int) -> bytes:
        data = super()._next(n)
        self._last += data
        if len(self._last) > 2 * self._most:
            self._quotes_before += self._last[: -self._most].count(QUOTE)
            self._last = self._last[-self._most :]
        return data

    def ends_within_quotes(self, delimiter: str) -> bool:
        """Whether the bytes end in a value with an open quote; False if that is not known."""
        if self._quotes_before % 2 or not self._last.count(QUOTE) % 2:
            return False
        begins = rb"(?:\A|(?<=[" + re.escape(delimiter.encode()) + rb"\r\n]))"
        values = re.finditer(begins + rb'"[^"]*(?:""[^"]*)*("?)', self._last)
        return any(not value[1] for value in values)


class Parts(_Reading):
    """The bytes that an iterator makes of those of a stream."""

    def __init__(self, parts: Iterator[bytes], source: _Reading) -> None:
        super().__init__(source)
        self._parts, self._ready = parts, b""

    def _next(self, n: int) -> bytes:
        if not self._ready:
            self._ready = next(filter(None, self._parts), b"")
        data, self._ready = self._ready[:n], self._ready[n:]
        return data


def transcoded(stream: Any, encoding: str, *, name: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        while data := stream.read(_HEAD):
            yield decoder.decode(data).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        raise not_encoded(name, encoding) from error


def western(stream: Any, *, name: str, on_other: Callable[[], None]) -> Iterator[bytes]:
    """Lines in UTF-8; those that are not are read as text of Western Europe."""
    for lines in _whole_lines(stream, name=name):
        try:
            lines.decode()
            yield lines
        except UnicodeDecodeError:
            on_other()
            yield b"".join(decoded(line).encode() for line in lines.splitlines(keepends=True))


def divided(stream: Any, split: Callable[[str], list[str]], *, name: str) -> Iterator[bytes]:
    """Lines as those of a CSV file, divided into values by a function."""
    for lines in _whole_lines(stream, name=name):
        out = io.StringIO()
        rows = (split(decoded(line)) for line in lines.splitlines() if line.strip())
        try:
            csv.writer(out, lineterminator="\n").writerows(rows)
        except csv.Error as error:
            raise UserError(f"A line of {name} cannot be read: {error}.") from error
        yield out.getvalue().encode()


def _whole_lines(stream: Any, *, name: str) -> Iterator[bytes]:
    """The bytes of a stream in blocks that end with a line."""
    rest = b""
    while block := stream.read(_HEAD):
        data = rest + block
        end = data.rfind(b"\n") + 1
        if not end and len(data) > _LONGEST_LINE:
            raise too_long(name)
        yield data[:end]
        rest = data[end:]
    yield rest


def encoding_of(head: bytes, layout: Layout) -> tuple[str, int]:
    """The encoding of a file that begins so, and the length of its byte order mark."""
    mark = next((bom for bom in _BOMS if head.startswith(bom)), b"")
    shown, given = _BOMS.get(mark, ""), layout.encoding
    if given is not None and not shown.startswith(codecs.lookup(given).name):
        return given, 0
    if mark:
        return shown, len(mark)
    even, odd = head[0:_ENCODING_BYTES:2], head[1:_ENCODING_BYTES:2]
    if odd.count(0) > len(odd) / 3 and not even.count(0):
        return "utf-16-le", 0
    if even.count(0) > len(even) / 3 and not odd.count(0):
        return "utf-16-be", 0
    return "utf-8", 0


def decoded_head(raw: Any, layout: Layout, *, name: str) -> tuple[bytes, Rejoined]:
    """The first lines of a file in UTF-8, and the stream of what follows."""
    first = read_fully(raw, _ENCODING_BYTES)
    encoding, mark = encoding_of(first, layout)
    stream: _Reading = Rejoined(first[mark:], raw)
    if codecs.lookup(encoding).name not in ("utf-8", "ascii"):
        stream = Parts(transcoded(stream, encoding, name=name), stream)
    head = read_fully(stream, _HEAD)
    while len(head) >= _HEAD and b"\n" not in head and b"\r" not in head:
        more = read_fully(stream, _HEAD)
        head += more
        if not more or len(head) > _LONGEST_LINE:
            break
    if b"\0" in head:
        raise UserError(
            f"{name} is not text: it contains zero bytes. Check it, or name its encoding."
        )
    end = max(head.rfind(b"\n"), head.rfind(b"\r")) + 1 if len(head) >= _HEAD else len(head)
    end = end or len(head)
    return head[:end], Rejoined(head[end:], stream)


def read_fully(stream: Any, n: int) -> bytes:
    parts, left = [], n
    while left and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def lines_of(stream: Any, *, name: str) -> Iterator[bytes]:
    """The lines of a stream; refuses one that is longer than any row should be."""
    lines = io.BufferedReader(stream)
    while line := lines.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise too_long(name)
        yield line


def too_long(name: str) -> UserError:
    most = f"{_LONGEST_LINE / 2**20:.0f} MB"
    return UserError(f"A line of {name} is longer than {most}. Check that it is complete.")


def decoded(data: bytes) -> str:
    """Text in UTF-8, or else in the encoding of Western Europe."""
    for encoding in ("utf-8", WESTERN):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    return data.decode("latin-1")


def not_encoded(what: str, encoding: str) -> UserError:
    return UserError(f"{what} is not in {encoding}: pass another encoding, cp1252 for example.")
