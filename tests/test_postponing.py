"""Modules that wait until they are asked for."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from eqsep import Detector
from eqsep.datasets import make_mixed_demo


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


POSTPONED = "import sys; from eqsep.commands.postponing import postpone; postpone('colorsys');"


def test_a_module_comes_when_something_of_it_is_asked_for():
    told = run(
        f"{POSTPONED} import colorsys as early; print(type(early).__name__); "
        "hasattr(early, '__wrapped__'); print(type(sys.modules['colorsys']).__name__); "
        "from colorsys import rgb_to_hls; print(early.rgb_to_hls is rgb_to_hls); "
        "print(type(sys.modules['colorsys']).__name__)"
    )
    assert told == ["_Postponed", "_Postponed", "True", "module"]


def test_modules_below_it_are_found():
    told = run(
        "from eqsep.commands.postponing import postpone; postpone('xml', 'json'); "
        "import xml.dom.minidom, json.decoder; "
        "print(xml.dom.minidom.parseString('<a/>').documentElement.tagName, json.loads('1'))"
    )
    assert told == ["a", "1"]


def test_what_is_not_installed_is_not_there_and_what_is_there_stays():
    told = run(
        "import sys, json; from eqsep.commands.postponing import postpone; "
        "postpone('not_to_be_had', 'json'); print('not_to_be_had' in sys.modules, "
        "type(sys.modules['json']).__name__)"
    )
    assert told == ["False", "module"]


@pytest.mark.parametrize("words", ["--help", "score --help"])
def test_help_waits_for_no_library_of_numbers(words):
    code = (
        "import sys; from contextlib import suppress, redirect_stdout; import io\n"
        f"sys.argv = ['eqsep', *{words.split()}]\n"
        "from eqsep.__main__ import main\n"
        "with suppress(SystemExit), redirect_stdout(io.StringIO()): main()\n"
        "print(*sorted({'numpy', 'sklearn', 'pyarrow', 'numba'} & set(sys.modules)))"
    )
    assert run(code) == []


def test_scoring_waits_for_no_statistics(tmp_path):
    """What a fit alone needs is a second that a row would wait for."""
    model = str(tmp_path / "m.eqsep")
    code = (
        "import sys; from eqsep.__main__ import postpone; postpone('scipy.stats'); import eqsep\n"
        "rows = [[float(i % 7), float(i % 5)] for i in range(300)]\n"
        f"d = eqsep.load_model({model!r}); d.predict_kind(rows); d.explain(rows[:1])\n"
        "late = ('scipy.stats._stats_py', 'sklearn.tree', 'sklearn.metrics', 'sklearn.svm')\n"
        "print(*[name for name in late if name in sys.modules])"
    )
    rows = [[float(i % 7), float(i % 5)] for i in range(300)]
    Detector(bandwidth=1.0, n_landmarks=30, random_state=0).fit(rows).save(model)
    assert run(code) == []


SCORED = """
import os, sys
from eqsep.__main__ import main

sys.argv = ["eqsep", "score", "m.eqsep", "one.csv", "--out", "scores.csv"]
late = {"pydantic", "sklearn", "pyarrow.parquet"}
os._exit = lambda code: print("code", code, *sorted(late & set(sys.modules)))
main()
"""


def test_the_second_row_waits_for_nothing_that_it_can_do_without(tmp_path, monkeypatch):
    """The first waits for the compiler, and the loops are kept."""
    monkeypatch.chdir(tmp_path)
    payments = make_mixed_demo(random_state=0)
    detector = Detector(bandwidth=1.0, n_landmarks=30, random_state=0)
    detector.fit(payments.X, payments.kind).save("m.eqsep")
    with Path("one.csv").open("w", newline="") as file:
        csv.writer(file).writerows([payments.X[0].keys(), payments.X[0].values()])
    run(SCORED)
    told = run(SCORED)
    assert told[told.index("code") :] == ["code", "0"]


ENDING = """
import atexit, sys
from eqsep import __main__, cli
sys.argv = ["eqsep", *{words}]
app = cli.app


def noted(**options):
    atexit.register(print, "handler")
    app(**options)


cli.app = noted
__main__.main()
"""


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["score", "no.eqsep", "-"], 2)])
def test_a_command_ends_with_its_code_once_all_is_written_and_done(words, code):
    done = subprocess.run(
        [sys.executable, "-c", ENDING.format(words=words)], capture_output=True, text=True
    )
    assert done.returncode == code
    assert done.stdout.splitlines()[-1] == "handler"
    assert bool(done.stderr) == bool(code)


def test_a_fault_ends_as_the_interpreter_ends_it():
    code = "from eqsep import __main__; __main__._leave([]); print('still here')"
    assert run(code) == ["still", "here"]
