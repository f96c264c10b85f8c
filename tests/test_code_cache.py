"""Compiled code on disk: several writers, damaged files, no place to write, other versions."""

import errno
import os
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest
from numba import njit
from numba.core import caching, codegen

from eqsep.engine import code_cache
from eqsep.engine.code_cache import CodeFiles, kept

SOURCE = """
STEP = 1


def add(x):
    for i in range(len(x)):
        x[i] += STEP
"""


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    path = tmp_path / "loops.py"
    path.write_text(SOURCE)
    return path


def process(path):
    """What another process makes of the source: the loop, with nothing compiled yet."""
    spec = spec_from_file_location("loops", path)
    module = module_from_spec(spec)
    exec(compile(path.read_text(), path, "exec"), vars(module))
    return kept(njit(module.add))


def added(loop, dtype=float):
    x = np.zeros(2, dtype)
    loop(x)
    return x.tolist()


def hits(loop):
    return sum(loop.stats.cache_hits.values())


def test_the_next_process_finds_what_one_has_compiled(source):
    first, second = process(source), process(source)
    assert (added(first), hits(first)) == ([1, 1], 0)
    assert (added(second), hits(second)) == ([1, 1], 1)
    assert (added(second, int), hits(second)) == ([1, 1], 1)
    third = process(source)
    assert (added(third), added(third, int), hits(third)) == ([1, 1], [1, 1], 2)


def test_two_writers_at_once_never_take_each_others_code(tmp_path):
    """The second has read the index before the first writes it, and writes between its files."""

    class Slow(CodeFiles):
        def _load_index(self):
            return {}

    class Interrupted(CodeFiles):
        def _save_index(self, overloads):
            super()._save_index(overloads)
            Slow(tmp_path, "loop", "stamp").save("int", "code of int")

    Interrupted(tmp_path, "loop", "stamp").save("float", "code of float")
    found = CodeFiles(tmp_path, "loop", "stamp")
    assert found.load("int") == "code of int"
    assert found.load("float") in (None, "code of float")


def test_code_is_there_before_the_index_names_it(tmp_path):
    class Killed(CodeFiles):
        def _save_index(self, overloads):  # noqa: ARG002
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Killed(tmp_path, "loop", "stamp").save("float", "code")
    assert CodeFiles(tmp_path, "loop", "stamp").load("float") is None
    assert len(list(tmp_path.glob("*.nbc"))) == 1


@pytest.mark.parametrize("damaged", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("left", [0, 40])
def test_damaged_files_are_made_anew(source, damaged, left):
    added(process(source))
    [path] = (source.parent / "__pycache__").glob(damaged)
    path.write_bytes(path.read_bytes()[:left])
    again, next_one = process(source), process(source)
    assert (added(again), hits(again)) == ([1, 1], 0)
    assert (added(next_one), hits(next_one)) == ([1, 1], 1)


def test_a_full_disk_keeps_nothing_and_stops_nobody(source, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(CodeFiles, "_save_data", full)
    assert added(process(source)) == [1, 1]
    assert not list((source.parent / "__pycache__").glob("*.nb?"))


def test_where_nothing_can_be_written_a_loop_is_compiled_all_the_same(source, monkeypatch):
    """As in a package that is read only, of a user without a home."""

    def refused(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(caching.os, "makedirs", refused)
    monkeypatch.setattr(caching.tempfile, "TemporaryFile", refused)
    loop = process(source)
    assert added(loop) == [1, 1]
    assert loop.stats.cache_path is None


def test_a_package_that_is_read_only_is_kept_in_the_users_folder(source, tmp_path, monkeypatch):
    def written(dir):
        if "__pycache__" in str(dir):
            raise OSError(errno.EROFS, "Read-only file system")
        return write(dir=dir)

    write = caching.tempfile.TemporaryFile
    monkeypatch.setattr(caching.tempfile, "TemporaryFile", written)
    monkeypatch.setattr(caching.AppDirs, "user_cache_dir", str(tmp_path / "home"))
    first, second = process(source), process(source)
    assert (added(first), added(second), hits(second)) == ([1, 1], [1, 1], 1)
    assert list((tmp_path / "home").rglob("*.nbi"))
    assert not list((source.parent / "__pycache__").glob("*.nb?"))


OTHERS = {
    "eqsep": lambda patch: patch.setattr(code_cache, "__version__", "9.9"),
    "numba": lambda patch: patch.setattr(caching.numba, "__version__", "9.9"),
    "processor": lambda patch: patch.setattr(
        codegen.CPUCodegen, "magic_tuple", lambda _: ("other", "cpu", "")
    ),
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_code_of_another_version_or_processor_does_not_count(source, monkeypatch, change):
    added(process(source))
    with monkeypatch.context() as patch:
        change(patch)
        other = process(source)
        assert (added(other), hits(other)) == ([1, 1], 0)


def test_code_of_another_source_of_the_same_size_and_time_does_not_count(source):
    added(process(source))
    stat = source.stat()
    source.write_text(SOURCE.replace("STEP = 1", "STEP = 5"))
    os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert added(process(source)) == [5, 5]
