"""Standard input as the system gives it: a pipe, with rows that cannot be read among many."""

import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

from eqsep import Detector


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    X = np.random.default_rng(0).normal(size=(400, 2))
    detector = Detector(bandwidth=1.0, n_landmarks=20, random_state=0).fit(X)
    path = tmp_path_factory.mktemp("pipes") / "m.eqsep"
    detector.save(path)
    return path


def refused(model, rows, *, leave_open):
    """The error of a score of these rows, in a pipe that its writer may leave open meanwhile."""
    words = [sys.executable, "-m", "eqsep", "score", str(model), "-"]
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=null, stderr=pipe, bufsize=0) as process:
        with suppress(BrokenPipeError):  # it has ended already
            for start in range(0, len(rows), 4096):
                process.stdin.write(rows[start : start + 4096])
        if not leave_open:
            process.stdin.close()
        code = process.wait(timeout=60)
        return code, process.stderr.read().decode()


@pytest.mark.parametrize("leave_open", [pytest.param(False, marks=pytest.mark.extra), True])
def test_a_parse_error_on_a_pipe_ends_in_order(model, leave_open):
    rows = b"a,b\n" + b"0.5,0.5\n" * 300 + b"1,2,3\n" + b"0.5,0.5\n" * 300_000
    code, error = refused(model, rows, leave_open=leave_open)
    assert code == 2, error
    assert "expected 2 values, got 3" in error
    assert error.count("\n") == 1
