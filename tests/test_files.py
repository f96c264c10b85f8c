"""Files written whole or not at all: whatever ends the writing, no half and no rest is left."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from eqsep.files import changed_alone, ending_of, written_whole


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def write(path, data=b"new"):
    with written_whole(path) as file:
        file.write(data)


def write_half(path, error):
    with written_whole(path) as file:
        file.write(b"half")
        raise error


def test_the_file_appears_at_the_end_and_alone(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"old")
    with written_whole(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
        beside = Path(file.name)
        assert beside.parent == tmp_path
        assert beside.name.startswith(".")
    assert path.read_bytes() == b"new"
    assert names_in(tmp_path) == ["rows.csv"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file_and_no_rest(tmp_path, error):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"old")
    with pytest.raises(error):
        write_half(path, error)
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["rows.csv"]


def test_what_cannot_take_its_place_leaves_no_rest(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write(tmp_path / "folder")
    assert names_in(tmp_path) == ["folder"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Folder not found.*missing"):
        write(tmp_path / "missing" / "rows.csv")


def test_two_writers_do_not_meet(tmp_path):
    path = tmp_path / "rows.csv"
    with written_whole(path) as first, written_whole(path) as second:
        first.write(b"first")
        second.write(b"second")
    assert path.read_bytes() == b"first"  # which ended last
    assert names_in(tmp_path) == ["rows.csv"]


def test_a_name_as_long_as_names_may_be(tmp_path):
    path = tmp_path / ("n" * 255)
    write(path)
    assert path.read_bytes() == b"new"


def test_a_link_stays_one(tmp_path):
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link", tmp_path / "there" / "rows.csv"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_others_may_read_it_as_any_new_file(tmp_path):
    write(tmp_path / "whole")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_the_content_reaches_the_disk_before_the_name_does(tmp_path, monkeypatch):
    path, done, fsync = tmp_path / "rows.csv", [], os.fsync

    def noted(handle):
        size = os.fstat(handle).st_size
        done.append(("folder" if Path(f"/dev/fd/{handle}").is_dir() else size, path.exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    write(path, b"four")
    assert done == [(4, False), ("folder", True)]


TERMINATED = """
import os, signal, sys
from eqsep.files import changed_alone, written_whole
signal.signal(signal.Signals[sys.argv[2]], signal.SIG_DFL)  # nohup ignores it
with written_whole(sys.argv[1]) as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.Signals[sys.argv[2]])
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("by", ["SIGTERM", "SIGHUP"])
def test_a_signal_to_end_leaves_the_old_file_and_no_rest(by, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", TERMINATED, path, by], check=False)
    assert done.returncode == 128 + signal.Signals[by]
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["rows.csv"]


@pytest.fixture
def by_default():
    """The signal as a new process handles it, whatever tests before have started here."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("by_default")
def test_the_signal_is_handled_during_the_writing_only(tmp_path):
    with written_whole(tmp_path / "rows.csv"):
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_who_handles_the_signal_goes_on_doing_so(tmp_path):
    def mine(*_):
        raise AssertionError

    before = signal.signal(signal.SIGTERM, mine)
    try:
        with written_whole(tmp_path / "rows.csv"):
            assert signal.getsignal(signal.SIGTERM) is mine
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_another_thread_may_write_too(tmp_path):
    thread = threading.Thread(target=write, args=(tmp_path / "rows.csv",))
    thread.start()
    thread.join()
    assert (tmp_path / "rows.csv").read_bytes() == b"new"


def abandoned(folder, *, age, name=f".eqsep-{'0' * 16}.part"):
    path = folder / name
    path.write_bytes(b"half")
    os.utime(path, (then := path.stat().st_mtime - age, then))
    return path


@pytest.mark.skipif(os.name != "posix", reason="needs locks")
def test_what_killed_processes_have_left_is_removed_by_the_next_write(tmp_path):
    code = (
        "import os, sys; from eqsep.files import written_whole\n"
        "with written_whole(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), 9)"
    )
    path = tmp_path / "rows.csv"
    subprocess.run([sys.executable, "-c", code, path], check=False)
    [left] = tmp_path.iterdir()
    os.utime(left, (then := left.stat().st_mtime - 90, then))
    write(path)
    assert names_in(tmp_path) == ["rows.csv"]


def test_what_is_young_or_has_another_name_is_left_alone(tmp_path):
    kept = [
        abandoned(tmp_path, age=5),
        abandoned(tmp_path, age=999, name=".eqsep-mine.part"),
        abandoned(tmp_path, age=999, name="eqsep.part"),
    ]
    write(tmp_path / "rows.csv")
    assert names_in(tmp_path) == sorted(["rows.csv", *(path.name for path in kept)])


def test_what_somebody_writes_for_long_is_left_alone(tmp_path):
    with written_whole(tmp_path / "first") as file:
        os.utime(file.name, (0, 0))
        write(tmp_path / "second")
        file.write(b"late")
    assert names_in(tmp_path) == ["first", "second"]


@pytest.mark.skipif(os.name != "posix", reason="needs locks")
def test_changes_of_a_file_wait_for_each_other_and_none_is_lost(tmp_path):
    path, waits = tmp_path / "count", []
    path.write_bytes(b"0")

    def count():
        for _ in range(20):
            with changed_alone(path, on_wait=lambda: waits.append(1)):
                n = int(path.read_bytes())
                time.sleep(0.001)
                write(path, b"%d" % (n + 1))

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() == b"60"
    assert waits


def test_without_locks_a_file_is_changed_as_ever(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    old, path = abandoned(tmp_path, age=999), tmp_path / "rows.csv"
    path.write_bytes(b"old")
    with changed_alone(path, on_wait=pytest.fail):
        write(path)
    assert names_in(tmp_path) == [old.name, "rows.csv"]  # who knows whether somebody writes it


def test_the_ending_of_a_name():
    assert (ending_of("scores.CSV.gz"), ending_of("-")) == ("csv", "")


def test_a_file_is_there_once_its_block_has_ended(tmp_path):
    path = tmp_path / "rows.csv"
    with written_whole(path) as file:
        file.write(b"a,b\n")
        assert not path.exists()
    assert path.read_bytes() == b"a,b\n"
