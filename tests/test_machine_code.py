"""Machine code on disk: the arguments that it takes, and files that are damaged or unsafe."""

import errno
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import NumbaError

from eqsep.engine import emission, machine_code
from eqsep.engine.machine_code import Loop

SOURCE = """
import numpy as np

STEP, MOST = 1, 4_000_000_000


def add(x):
    for i in range(len(x)):
        x[i] += STEP


def add_pairs(x, pair, factor, out):
    a, (b, c) = pair
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * factor + a[i] + b[j] * c[0]


def measure(x, out):
    out[0] = len(x)


def measure_array(x, out):
    out[0] = x.ndim


def add_sorted(x):
    x += np.sort(x)


def add_or_raise(x):
    if x[0] > 0:
        raise ValueError("above 0")
    x[0] += STEP


def wait(told, steps):
    while told[0] == 0 and steps[0] < MOST:
        steps[0] += 1
"""
MOST = 4_000_000_000


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    path = tmp_path / "package" / "loops.py"
    path.parent.mkdir()
    path.write_text(SOURCE)
    return path


@pytest.fixture
def compilations(monkeypatch):
    """The loops that Numba has compiled to machine code."""
    found = []

    def noted(loop, *args):
        found.append(loop.loop.__name__)
        return emit(loop, *args)

    emit = emission.emitted
    monkeypatch.setattr(emission, "emitted", noted)
    return found


def process(path, name="add"):
    """What another process makes of the source: the loop, with nothing known of it yet."""
    machine_code._text.cache_clear()
    machine_code._host.cache_clear()
    module = module_from_spec(spec_from_file_location("loops", path))
    exec(compile(path.read_text(), path, "exec"), vars(module))
    return Loop(getattr(module, name))


def added(loop, dtype=float):
    x = np.zeros(2, dtype)
    loop(x)
    return x.tolist()


def files(path):
    return sorted((path.parent / "__pycache__").glob("*"))


def test_the_next_process_finds_what_one_has_compiled(source, compilations):
    first = process(source)
    assert added(first) == added(first, int) == added(first) == [1, 1]
    assert len(compilations) == len(files(source)) == 2
    second = process(source)
    assert added(second, int) == added(second) == [1, 1]
    assert len(compilations) == 2


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "any": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "one row": lambda x: x[:1].copy(),
    "no rows": lambda x: x[:0].copy(),
    "single": lambda x: x.astype(np.float32),
    "integers": lambda x: x.astype(np.int32),
    "longlong": lambda x: x.astype(np.longlong),
    "bool": lambda x: x > 5,
    "unaligned": lambda x: np.frombuffer(b"." + x.tobytes(), offset=1).reshape(x.shape),
    "subclass": lambda x: x.view(np.memmap),
}


def test_arguments_are_read_as_they_are(source):
    """One loop for all of them, so that each must find the code of its kind."""
    loop = process(source, "add_pairs")
    b, c, factor = np.arange(4), np.array([3.0], dtype=np.float32), np.float32(0.5)
    for _ in range(2):
        for layout in LAYOUTS.values():
            x = layout(np.arange(12.0).reshape(3, 4))
            a, out = np.arange(len(x)) * 100.0, np.full(x.shape, -1.0)
            x.flags.writeable = False
            loop(x, (a, (b, c)), factor, out)
            assert np.array_equal(out, x * 0.5 + a[:, None] + b * 3.0)
    assert len(loop._codes) < len(LAYOUTS)  # a row alone, and none, are of a kind with the others


def test_arguments_of_other_kinds_are_told_apart(source):
    long, deep, out = process(source, "measure"), process(source, "measure_array"), np.zeros(1)
    one = np.float32(1)
    for _ in range(2):
        for x in ((one, one), (one, one, one), (one, (one,)), np.zeros(4), np.zeros((5, 1))):
            long(x, out)
            assert out[0] == len(x)
        for n in (1, 2, 3):
            deep(np.zeros((1,) * n), out)
            assert out[0] == n
    assert len(long._codes) == 5
    assert len(deep._codes) == 3


def test_what_machine_code_cannot_do_is_done_by_numba(source, compilations):
    loop = process(source, "add_sorted")
    x = np.array([3.0, 1.0, 2.0])
    loop(x)
    loop(x)
    assert x.tolist() == [7, 7, 10]
    assert compilations == ["add_sorted"]
    assert loop._codes == ()


def test_numba_says_why_a_loop_fails(source):
    loop = process(source, "add_or_raise")
    x = np.zeros(1)
    loop(x)
    assert x.tolist() == [1]
    with pytest.raises(ValueError, match="above 0"):
        loop(x)
    with pytest.raises(TypeError):
        loop(x, x)


def test_numbers_whose_bytes_are_in_another_order_are_refused(source):
    loop = process(source)
    assert added(loop) == [1, 1]
    with pytest.raises(NumbaError):
        added(loop, np.dtype(float).newbyteorder())


def test_threads_that_call_at_once_wait_for_one_of_them(source, compilations):
    loop = process(source)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: added(loop), range(64))) == [[1, 1]] * 64
    assert len(compilations) == len(files(source)) == 1


def test_other_threads_go_on_while_a_loop_runs(source):
    loop, told, steps = process(source, "wait"), np.ones(1, dtype=int), np.zeros(1, dtype=int)
    loop(told, steps)  # is compiled
    told[0] = 0
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(loop, told, steps)
        while not steps[0]:
            pass
        told[0] = 1
        waiting.result()
    assert steps[0] < MOST


@pytest.mark.parametrize(
    "damage", [lambda b: b[:0], lambda b: b[:40], lambda b: b[:-1] + bytes([b[-1] ^ 1])]
)
def test_damaged_files_are_made_anew(source, compilations, damage):
    added(process(source))
    [path] = files(source)
    path.write_bytes(damage(path.read_bytes()))
    assert added(process(source)) == added(process(source)) == [1, 1]
    assert len(compilations) == 2


def test_a_file_is_there_when_it_is_whole(source, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            added(process(source))
    assert files(source) == []


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_keeps_nothing_and_stops_nobody(source, monkeypatch):
    monkeypatch.setattr(Path, "write_bytes", full)
    assert added(process(source)) == [1, 1]
    assert files(source) == []


def test_a_package_that_is_read_only_is_kept_in_the_users_folder(
    source, tmp_path, monkeypatch, compilations
):
    def written(path, data):
        return full() if "__pycache__" in str(path) else write(path, data)

    write = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", written)
    assert added(process(source)) == added(process(source)) == [1, 1]
    assert len(compilations) == len(list((tmp_path / "home" / "eqsep").glob("*.code"))) == 1


def test_a_folder_of_ones_own_is_taken_where_numba_is_told_so(source, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "told"))
    assert added(process(source)) == [1, 1]
    assert len(list((tmp_path / "told").iterdir())) == 1
    assert files(source) == []


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_no_code_is_taken_from_a_folder_that_others_may_write_to(
    source, tmp_path, monkeypatch, compilations
):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "shared"))
    added(process(source))
    (tmp_path / "shared").chmod(0o777)
    assert added(process(source)) == [1, 1]
    assert len(compilations) == 2
    (tmp_path / "other").mkdir()
    (tmp_path / "other").chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "other"))
    assert added(process(source)) == [1, 1]
    assert not list((tmp_path / "other").iterdir())


OTHERS = {
    "eqsep": lambda patch: patch.setattr(machine_code, "__version__", "9.9"),
    "numba": lambda patch: patch.setattr(machine_code, "find_spec", lambda _: None),
    "llvmlite": lambda patch: patch.setattr("llvmlite.__version__", "9.9"),
    "processor": lambda patch: patch.setattr("llvmlite.binding.get_host_cpu_name", lambda: "other"),
    "setting": lambda patch: patch.setenv("NUMBA_OPT", "1"),
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_code_of_another_version_or_processor_does_not_count(
    source, monkeypatch, compilations, change
):
    added(process(source))
    change(monkeypatch)
    assert added(process(source)) == [1, 1]
    assert len(compilations) == len(files(source)) == 2


def test_code_of_another_source_of_the_same_size_and_time_does_not_count(source):
    added(process(source))
    stat = source.stat()
    source.write_text(SOURCE.replace("MOST = 1", "MOST = 5"))
    os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert added(process(source)) == [5, 5]


def test_a_package_in_an_archive_and_a_user_without_a_home_are_served(source, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    code = compile(SOURCE, str(source / "archive" / "loops.py"), "exec")
    names = {}
    exec(code, names)
    assert added(Loop(names["add"])) == [1, 1]
