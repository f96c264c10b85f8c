"""Files that cannot be read as they should: changed meanwhile, without rights, no files at all."""

import ctypes
import io
import os
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from unittest import mock

_CAPABILITIES_3 = 0x20080522  # the version of the records that the system takes
_IGNORE_RIGHTS = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


class _Changing(io.FileIO):
    """A file of which something becomes before one of its reads."""

    def __init__(self, path, at, change):
        super().__init__(path)
        self._left, self._change = at, change

    def readinto(self, buffer):
        self._count()
        return super().readinto(buffer)

    def readall(self):
        self._count()
        return super().readall()

    def _count(self):
        self._left -= 1
        if self._left == 0:
            self._change()


@contextmanager
def changing(path, rng):
    """The file is cut, emptied, written over, lengthened, replaced or removed as it is read."""
    other = path.with_name("other")

    def rewrite():
        path.write_bytes(path.read_bytes()[::-1])

    def lengthen():
        with path.open("ab") as file:
            file.write(b"1,2\n")

    def replace():
        other.write_bytes(b"a,b\n1,2\n")
        other.replace(path)

    def cut():
        os.truncate(path, path.stat().st_size // 2)

    ways = [cut, lambda: os.truncate(path, 0), rewrite, lengthen, replace, path.unlink]
    change = ways[int(rng.integers(len(ways)))]
    at, usual = int(rng.integers(1, 4)), Path.open

    def opened(self, mode="r", *args, **options):
        if mode == "rb" and self == path and not done:
            done.append(True)
            return io.BufferedReader(_Changing(str(path), at, change))
        return usual(self, mode, *args, **options)

    done = []
    with mock.patch.object(Path, "open", opened):
        yield


@contextmanager
def pipe(path, rng):
    """A pipe into which somebody writes a part of the file, or nobody anything."""
    data = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    part = int(rng.integers(len(data) + 1))

    def write():
        with suppress(OSError), path.open("wb") as file:
            file.write(data[:part])

    writer = threading.Thread(target=write, daemon=True)
    if rng.random() < 0.5:
        writer.start()
    with soon():
        yield
    if writer.is_alive():  # nobody has read it: somebody does now
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        writer.join()


class _Leaping:
    """A clock by which little waiting is long."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        time.sleep(seconds / 50)
        self.now += seconds


def soon():
    """Who waits for somebody to write to a pipe gives up soon."""
    return mock.patch("eqsep.io.streams.time", _Leaping())


@contextmanager
def denied(path, rng):  # noqa: ARG001  the shape of all of them
    """A file that nobody may read; who may read all files gives that up meanwhile."""
    path.chmod(0)
    with _rights_obeyed() if os.geteuid() == 0 else nullcontext():
        yield


@contextmanager
def _rights_obeyed():
    head = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    before, now = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
    system = ctypes.CDLL(None, use_errno=True)
    assert system.capget(head, before) == 0
    now[:] = list(before)
    now[0] &= ~_IGNORE_RIGHTS  # of those in effect; they stay permitted
    assert system.capset(head, now) == 0
    try:
        yield
    finally:
        assert system.capset(head, before) == 0


@contextmanager
def folder(path, rng):  # noqa: ARG001
    """A folder of that name."""
    path.unlink()
    path.mkdir()
    yield
    path.rmdir()


@contextmanager
def link(path, rng):
    """A link to what cannot be read though it is there, to itself, or to a device."""
    path.unlink()
    path.symlink_to(["/proc/self/mem", path, "/dev/null", "/dev/full"][int(rng.integers(4))])
    yield


@contextmanager
def missing(path, rng):  # noqa: ARG001
    """No file."""
    path.unlink()
    yield


PLACES = (changing, changing, pipe, denied, folder, link, missing)
