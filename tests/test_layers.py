"""Imports only go down, and `import eqsep` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import eqsep

ROOT = Path(eqsep.__file__).parent
# From the ground up. A module may import from its own layer's package and from those before it.
LAYERS = [
    {"errors", "files"},
    {"arrays", "renames"},
    {"labels", "activations"},
    {"losses", "solvers", "tables"},
    {"batches", "datasets", "evaluation", "theory"},
    {"engine"},
    {"kernels", "networks"},
    {"separators"},
    {"detector"},
    {"plots"},
    {"persistence"},
    {"distributed"},
    {"export", "report"},
    {"experiments"},
    {"demo"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
MODULES = sorted(ROOT.rglob("*.py"))


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_go_down(path):
    layer = path.relative_to(ROOT).with_suffix("").parts[0]
    if layer == "__init__":
        return
    for module in imports(path):
        if module.startswith("eqsep."):
            other = module.split(".")[1]
            assert other == layer or RANK[other] < RANK[layer], f"{layer} imports {other}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_underscore_crosses_a_module(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            assert not [n for n in names if n.startswith("_") and not n.startswith("__")]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_fits_on_a_few_screens(path):
    assert len(path.read_text().splitlines()) <= 400


def test_importing_eqsep_is_light():
    code = "import sys, eqsep; print(sorted({'torch', 'matplotlib', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_using_a_separator_needs_neither_torch_nor_matplotlib():
    code = (
        "import sys, eqsep; eqsep.KernelEqualitySeparator; eqsep.EqualitySeparator; "
        "eqsep.NegativeSampling; "
        "import eqsep.theory, eqsep.datasets, eqsep.evaluation; "
        "print(sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


SUBMODULES = [
    "activations",
    "datasets",
    "evaluation",
    "kernels",
    "losses",
    "networks",
    "plots",
    "theory",
]


def test_submodules_come_when_they_are_asked_for():
    code = (
        f"import sys, eqsep; assert not [m for m in sys.modules if m.startswith('eqsep.')]; "
        f"print([getattr(eqsep, name).__name__ for name in {SUBMODULES}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([f"eqsep.{name}" for name in SUBMODULES])
    assert set(SUBMODULES) <= set(dir(eqsep))


def test_public_names_are_listed_and_others_are_refused():
    assert {"EqualitySeparator", "KernelEqualitySeparator", "TwinSeparator", "OneVsSet"} <= set(
        dir(eqsep)
    )
    with pytest.raises(AttributeError, match=r"no attribute 'Nothing'; it has \['DeepSAD', 'De"):
        eqsep.Nothing  # noqa: B018  the look-up itself is under test
