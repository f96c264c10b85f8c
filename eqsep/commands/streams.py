"""The bytes of a text file as they come: unpacked, in UTF-8, and its first lines apart."""

import codecs
import csv
import gzip
import io
import os
import select
import sys
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eqsep.commands.dialects import Layout
from eqsep.errors import UserError

STANDARD_INPUT = "-"
_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # begins as that of UTF-16 does
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_HEAD = 2**18  # bytes of which the dialect is found out
_LONGEST_LINE = 2**22  # bytes of a header
_FIRST = 4096  # bytes that show an encoding
_PATIENCE = 0.1  # seconds after which who waits for input asks whether it is still wanted


@contextmanager
def raw_stream(path: str) -> Iterator[Any]:
    """The bytes of a file, unpacked, or of standard input."""
    if path == STANDARD_INPUT:
        stream = _StandardInput()
        try:
            yield stream
        finally:
            stream.end()
    elif path.endswith(".gz"):
        with gzip.open(path, "rb") as file:
            yield file
    else:
        with Path(path).open("rb") as file:
            yield file


class _Reading(io.RawIOBase):
    """A stream that other threads read from, and that can be told to end at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unwanted = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._lock:
            data = b"" if self._unwanted else self._next(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    @abstractmethod
    def _next(self, n: int) -> bytes:
        """At most so many bytes; none at the end."""

    def end(self) -> None:
        """Give nothing more to whoever reads on, and wait for what is being read."""
        self._unwanted = True
        self._end_source()
        with self._lock:
            pass

    def _end_source(self) -> None:
        """Likewise of the stream that this one reads."""


class _StandardInput(_Reading):
    """Standard input, of which a read that waits ends soon when it is told to."""

    def _next(self, n: int) -> bytes:
        try:
            handle = sys.stdin.buffer.fileno()
        except (OSError, ValueError):  # none of the system's: a test's
            return sys.stdin.buffer.read(n)
        while os.name == "posix" and not select.select([handle], [], [], _PATIENCE)[0]:
            if self._unwanted:
                return b""
        return os.read(handle, n)


class Rejoined(_Reading):
    """Bytes that were read, and the stream that goes on after them."""

    def __init__(self, first: bytes, rest: Any) -> None:
        super().__init__()
        self._first, self._rest = first, rest

    def _end_source(self) -> None:
        if isinstance(self._rest, _Reading):
            self._rest.end()

    def _next(self, n: int) -> bytes:
        data: bytes = self._first[:n] or self._rest.read(n)
        self._first = self._first[len(data) :]
        return data


class _Parts(_Reading):
    """Bytes that are made of those of a stream, part by part."""

    def __init__(self) -> None:
        super().__init__()
        self._ready, self._ended = b"", False

    def _next(self, n: int) -> bytes:
        while not self._ready and not self._ended:
            self._ready, self._ended = self._part()
        data, self._ready = self._ready[:n], self._ready[n:]
        return data

    @abstractmethod
    def _part(self) -> tuple[bytes, bool]:
        """Some bytes, and whether they are the last."""


class _Transcoded(_Parts):
    """A stream in another encoding as UTF-8."""

    def __init__(self, stream: Any, encoding: str, *, name: str) -> None:
        super().__init__()
        self._stream, self._encoding, self._name = stream, encoding, name
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def _end_source(self) -> None:
        self._stream.end()

    def _part(self) -> tuple[bytes, bool]:
        data = self._stream.read(_HEAD)
        try:
            return self._decoder.decode(data, final=not data).encode(), not data
        except UnicodeError as error:
            raise not_encoded(self._name, self._encoding) from error


class Lines(_Parts):
    """Lines as those of a CSV file, divided into values by a function."""

    def __init__(self, lines: Any, split: Callable[[str], list[str]]) -> None:
        super().__init__()
        self._lines, self._split = lines, split

    def _part(self) -> tuple[bytes, bool]:
        lines = self._lines.readlines(_HEAD)
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        rows.writerows(self._split(decoded(line)) for line in lines if line.strip())
        return out.getvalue().encode(), not lines


def encoding_of(head: bytes, layout: Layout) -> tuple[str, int]:
    """The encoding of a file that begins so, and how many bytes only say which it is."""
    mark = next((bom for bom in _BOMS if head.startswith(bom)), b"")
    if layout.encoding is not None:
        same = mark and codecs.lookup(_BOMS[mark]).name.startswith(
            codecs.lookup(layout.encoding).name
        )
        return (_BOMS[mark] if same else layout.encoding), len(mark) if same else 0
    if mark:
        return _BOMS[mark], len(mark)
    even, odd = head[0:4096:2], head[1:4096:2]
    if odd.count(0) > len(odd) / 3 and not even.count(0):
        return "utf-16-le", 0
    if even.count(0) > len(even) / 3 and not odd.count(0):
        return "utf-16-be", 0
    return "utf-8", 0


def await_release(stream: "weakref.ref[Any]") -> None:
    """Wait until nobody holds a stream any more, a second at most.

    A thread of pyarrow that still held one when Python ends would abort the process.
    """
    deadline = time.monotonic() + 1
    while stream() is not None and time.monotonic() < deadline:
        time.sleep(0.001)


def decoded_head(raw: Any, layout: Layout, *, name: str) -> tuple[bytes, Rejoined]:
    """The first lines of a file in UTF-8, and the stream of what follows."""
    first = _read(raw, _FIRST)
    encoding, mark = encoding_of(first, layout)
    stream = Rejoined(first[mark:], raw)
    if codecs.lookup(encoding).name not in ("utf-8", "ascii"):
        stream = Rejoined(b"", _Transcoded(stream, encoding, name=name))
    head = _read(stream, _HEAD)
    while len(head) >= _HEAD and b"\n" not in head and b"\r" not in head:
        more = _read(stream, _HEAD)
        head += more
        if not more or len(head) > _LONGEST_LINE:
            break
    if b"\0" in head:
        raise UserError(
            f"{name} is no text: it holds bytes of 0. Check what it is, or say its encoding with "
            f"--encoding."
        )
    end = max(head.rfind(b"\n"), head.rfind(b"\r")) + 1 if len(head) >= _HEAD else len(head)
    end = end or len(head)
    return head[:end], Rejoined(head[end:], stream)


def _read(stream: Any, n: int) -> bytes:
    """So many bytes, or fewer where there are no more."""
    parts, left = [], n
    while left and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def decoded(data: bytes) -> str:
    """Text in UTF-8, or else in the encoding of Western Europe."""
    for encoding in ("utf-8", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def not_encoded(what: str, encoding: str) -> UserError:
    """The error for text in another encoding than was said or shown."""
    return UserError(f"{what} is not in {encoding}: pass another --encoding, cp1252 for example.")
