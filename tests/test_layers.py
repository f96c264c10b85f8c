"""Imports only go down, and `import eqsep` stays light."""

import ast
import csv
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import eqsep
import paper
from eqsep import Detector
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config

ROOT = Path(eqsep.__file__).parent
PAPER = Path(paper.__file__).parent
RULES = runpy.run_path(str(ROOT.parent / "tools" / "architecture.py"))
misplaced = RULES["misplaced"]
MODULES = sorted(ROOT.rglob("*.py"))
ALL_MODULES = MODULES + sorted(PAPER.rglob("*.py"))  # the paper stands on the library


def texts(paths, root):
    """The text of every file by its path from `root`."""
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


def test_imports_only_go_down():
    told = {at: list(misplaced(at, text)) for at, text in texts(MODULES, ROOT).items()}
    assert len(told) > 100
    assert {at: modules for at, modules in told.items() if modules} == {}


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from eqsep.cli import app", "eqsep.cli"),
        ("def f():\n    import eqsep.cli", "eqsep.cli"),
        ("def f():\n    from eqsep import Detector", "eqsep.detector"),
        ("import_module('eqsep.report').page()", "eqsep.report"),
        ("importlib.import_module('eqsep')", "eqsep"),
        ("__import__('eqsep.persistence')", "eqsep.persistence"),
        ("import_module(f'eqsep.{name}')", "?"),
        ("from ..detector import Detector", "..detector"),
        ("from paper.measures import trapezoid_area", "paper.measures"),
    ],
)
def test_an_import_that_goes_up_is_seen_wherever_it_hides(source, module):
    assert list(misplaced("engine/kernels.py", source)) == [module]


def test_modules_import_each_other_in_no_circle():
    graph = RULES["module_graph"]()
    assert RULES["circle"](graph) == []
    graph["eqsep.engine.kernels"] = {"eqsep.engine.nystroem"}
    assert RULES["circle"](graph) == ["eqsep.engine.kernels", "eqsep.engine.nystroem"]


def test_the_picture_of_the_architecture_is_that_of_the_imports(tmp_path):
    kept = ROOT.parent / "docs" / "_static" / "architecture.svg"
    RULES["draw"](tmp_path / "now.svg")
    again = "python tools/architecture.py docs/_static/architecture.svg"
    assert drawn(tmp_path / "now.svg") == drawn(kept), f"Draw it again: {again}"


def drawn(path):
    """What is written in the boxes of a picture, and how many lines it has."""
    text = path.read_text()
    return sorted(re.findall(r">([^<>]*)</text>", text)), text.count("<path")


def private_imports(text):
    """The names with one leading underscore that a module imports from others."""
    for node in ast.walk(RULES["parsed"](text)):
        if isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            yield from (n for n in names if n.startswith("_") and not n.startswith("__"))


def test_no_underscore_crosses_a_module():
    told = {at: list(private_imports(text)) for at, text in texts(ALL_MODULES, ROOT.parent).items()}
    assert {at: names for at, names in told.items() if names} == {}


def test_the_command_alone_speaks_of_its_options():
    option = re.compile(r"""["' (`]--[a-z][a-z-]+""")
    speaking = {at for at, text in texts(MODULES, ROOT).items() if option.search(text)}
    assert "cli/options.py" in speaking
    assert {at for at in speaking if not at.startswith("cli/")} == set()


def test_a_fit_and_a_score_run_through_few_files(capsys, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # which the tool sets, and is back after the test
    tool = runpy.run_path(str(ROOT.parent / "tools" / "executed_files.py"))
    assert tool["main"]() == 0, capsys.readouterr().out


STAGES = """
import sys

def loaded(*names):
    print(sorted(set(names) & {name.partition('.')[0] for name in sys.modules}))

import eqsep
loaded('torch', 'matplotlib', 'numba', 'sklearn')
print([name for name in sys.modules if name.startswith('eqsep.')])
print(eqsep.errors.__name__)
eqsep.KernelEqualitySeparator, eqsep.EqualitySeparator, eqsep.NegativeSampling
import eqsep.theory, eqsep.datasets, eqsep.evaluation, eqsep.export
import eqsep.cli.fit, eqsep.cli.evaluate, eqsep.cli.score
loaded('torch', 'matplotlib', 'PIL', 'onnx', 'onnxruntime')
"""


@pytest.fixture(scope="module")
def stages():
    """What a process has imported after `import eqsep`, which submodule it then gets, and what it
    has imported after estimators that need no network and commands that write no report."""
    code = [sys.executable, "-c", STAGES]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_importing_eqsep_is_light(stages):
    assert stages[0] == "[]"


def test_libraries_of_networks_pictures_and_images_wait_until_they_are_asked_for(stages):
    """Separators, data sets, measures, export and the commands that write no report go without."""
    assert stages[3] == "[]"


LOADED = """
import sys
from eqsep.__main__ import main

sys.argv = ["eqsep", *{words}]
try:
    main()
except SystemExit as end:
    print("code", end.code, *sorted({slow} & set(sys.modules)))
"""


def loaded_by(words, slow, cwd):
    """Which of the slow libraries a command imports."""
    code = LOADED.format(words=words, slow=slow)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=True
    )
    assert done.stdout.splitlines()[-1].startswith("code 0")
    return done.stdout.splitlines()[-1].split()[2:]


def test_help_imports_no_library_of_numbers(tmp_path):
    assert (
        loaded_by(["--help"], {"numpy", "sklearn", "pyarrow", "numba", "fastapi"}, tmp_path) == []
    )


def test_scoring_imports_nothing_that_only_a_fit_needs(tmp_path):
    payments = make_mixed_demo(n_samples=400, random_state=0)
    detector = Detector(bandwidth=1.0, n_landmarks=30, random_state=0, config=Config.fast())
    detector.fit(payments.X, payments.kind).save(tmp_path / "m.eqsep")
    with (tmp_path / "rows.csv").open("w", newline="") as file:  # some of them alarms, with names
        csv.writer(file).writerows([payments.X[0].keys(), *(row.values() for row in payments.X)])
    slow = {"sklearn", "scipy.stats", "torch", "matplotlib", "pandas"}
    words = ["score", "m.eqsep", "rows.csv", "--out", "scores.csv"]
    assert loaded_by(words, slow, tmp_path) == []
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 1 + 400


SUBMODULES = [
    "activations",
    "checks",
    "client",
    "datasets",
    "detector",
    "distributed",
    "errors",
    "evaluation",
    "export",
    "io",
    "kernels",
    "losses",
    "monitor",
    "networks",
    "persistence",
    "plots",
    "report",
    "solvers",
    "tables",
    "theory",
]


def test_submodules_come_when_they_are_asked_for(stages):
    assert stages[1] == "[]"
    assert stages[2] == "eqsep.errors"
    asked = [eqsep.__getattr__(name).__name__ for name in SUBMODULES]  # of which some are there
    assert asked == [f"eqsep.{name}" for name in SUBMODULES]
    assert set(SUBMODULES) <= set(dir(eqsep))


def test_public_names_are_listed_and_others_are_refused():
    assert {"EqualitySeparator", "KernelEqualitySeparator", "TwinSeparator", "OneVsSet"} <= set(
        dir(eqsep)
    )
    with pytest.raises(AttributeError, match=r"no attribute 'Nothing'; it has \['DeepSAD', 'De"):
        eqsep.Nothing  # noqa: B018  the look-up itself is under test
