"""Imports only go down, and `import eqsep` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import eqsep
import paper

ROOT = Path(eqsep.__file__).parent
PAPER = Path(paper.__file__).parent
# From the ground up. A module may import from its own layer's package and from those before it.
LAYERS = [
    {"errors", "files"},
    {"arrays", "renames"},
    {"activations", "tables"},
    {"labels", "losses", "solvers"},
    {"batches", "checks", "datasets", "evaluation", "theory"},
    {"engine"},
    {"kernels", "networks"},
    {"separators"},
    {"detector"},
    {"plots"},
    {"persistence"},
    {"distributed"},
    {"export", "report"},
    {"demo"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
MODULES = sorted(ROOT.rglob("*.py"))
ALL_MODULES = MODULES + sorted(PAPER.rglob("*.py"))  # the paper stands on the library


# Upwards, in a method that is a door to what lies above, and only when it is called.
UPWARDS = {
    ("separators/base.py", "eqsep.persistence"),  # save
    ("detector/detector.py", "eqsep.persistence"),  # save
    ("detector/detector.py", "eqsep.export"),  # to_onnx
}
# Where a module is imported by a name that is computed.
BY_NAME = {
    "__init__.py",  # the public names, when they are asked for
    "persistence/codecs.py",  # the classes of a model file, all in its registry
    "datasets/embeddings.py",  # packages of others
}


def imports(source):
    """Every module that the source imports, wherever and however; "?" for a computed name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "eqsep":
            names = [alias.name for alias in node.names if alias.name != "__version__"]
            yield from (eqsep._HOMES.get(name, f"eqsep.{name}") for name in names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            literal = node.args and isinstance(node.args[0], ast.Constant)
            yield node.args[0].value if literal else "?"


def _called(call):
    return getattr(call.func, "id", getattr(call.func, "attr", None))


def misplaced(path, source):
    """The imports of a module, by its path in the package, that do not go down."""
    layer = path.removesuffix(".py").split("/")[0]
    for module in set(imports(source)) if layer != "__init__" else ():
        if module.startswith((".", "?")) or module == "eqsep":
            if path not in BY_NAME:
                yield module
        elif module.split(".")[0] == "paper":  # it stands on the library, beside it
            yield module
        elif module.startswith("eqsep.") and (path, module) not in UPWARDS:
            other = module.split(".")[1]
            if other != layer and RANK[other] >= RANK[layer]:
                yield module


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_go_down(path):
    assert not list(misplaced(path.relative_to(ROOT).as_posix(), path.read_text()))


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


@pytest.mark.parametrize("path", ALL_MODULES, ids=lambda p: str(p.relative_to(ROOT.parent)))
def test_no_underscore_crosses_a_module(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            assert not [n for n in names if n.startswith("_") and not n.startswith("__")]


@pytest.mark.parametrize("path", ALL_MODULES, ids=lambda p: str(p.relative_to(ROOT.parent)))
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
    "checks",
    "datasets",
    "detector",
    "distributed",
    "errors",
    "evaluation",
    "export",
    "kernels",
    "losses",
    "networks",
    "persistence",
    "plots",
    "report",
    "solvers",
    "tables",
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
