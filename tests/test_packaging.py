"""What is declared, locked, packed and borrowed: pyproject.toml against the code."""

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import eqsep

ROOT = Path(__file__).parents[1]
PACKAGE = Path(eqsep.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
BOUNDS = runpy.run_path(str(ROOT / "tools" / "oldest.py"))["bounds"]()
IMPORTED_AS = {"scikit-learn": "sklearn", "pillow": "PIL"}
# Imported only where a package that is declared, or the caller, has brought them.
BROUGHT = {
    "triton": "torch, where there is a GPU for it",
    "xgboost": "the reader who compares with it",
}


def version(text):
    return tuple(int(part) for part in re.findall(r"\d+", text))


@cache
def nodes(path):
    """All nodes of a module's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported(path):
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def modules_of(requirements):
    names = (re.match(r"[\w.-]+", requirement)[0] for requirement in requirements)
    return {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}


def test_what_is_imported_is_declared():
    used = {name for path in MODULES for name in imported(path)}
    assert set(BROUGHT) <= used
    used -= {"eqsep", *sys.stdlib_module_names, *BROUGHT}
    users = [
        EXTRAS[extra] for extra in ("nn", "onnx", "ray", "excel", "serve", "team", "mcp", "images")
    ]
    declared = modules_of([*PROJECT["project"]["dependencies"], *(r for e in users for r in e)])
    assert used - declared == set()


def test_what_is_declared_is_imported():
    used = {name for path in MODULES for name in imported(path)}
    assert modules_of(PROJECT["project"]["dependencies"]) - used == set()


def test_every_lower_bound_is_at_most_the_locked_version():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    locked = {
        name.lower().replace("_", "-"): version(number)
        for name, number in (line.split("==") for line in lines)
    }
    assert len(BOUNDS) > 30
    assert {name: low for name, low in BOUNDS.items() if version(low) > locked[name]} == {}


def private_names(paths):
    """Attributes with an underscore that none of the modules itself defines: other libraries'."""
    own, used = set(), set()
    for path in paths:
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                own.add(node.name)
            elif isinstance(node, ast.Name | ast.Attribute):
                name = node.attr if isinstance(node, ast.Attribute) else node.id
                if isinstance(node.ctx, ast.Store):
                    own.add(name)
                elif isinstance(node, ast.Attribute) and re.match("_[^_]", name):
                    used.add((path.name, name))
    return {(file, name) for file, name in used if name not in own}


def test_the_private_names_of_other_libraries_are_known():
    """What has no public name: torch's product of bytes, which `test_gpu` tries; `os._exit` and
    the `_asdict` of a named tuple are documented as they are.
    """
    known = {("gpu.py", "_int_mm"), ("console.py", "_exit")}
    known |= {("inbox.py", "_asdict"), ("model.py", "_asdict")}
    assert private_names(MODULES) == known


def test_a_private_name_is_seen(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "class A:\n def _own(self): self._a = np._core.f(self._own, self._a, b._c, d.e_)"
    )
    assert private_names([path]) == {("module.py", "_core"), ("module.py", "_c")}


DEFAULTS = re.compile("__(kw)?defaults__")
REPLACE = {"setattr", "delattr", "patch", "object"}  # of monkeypatch and mock


def patched(path):
    """The names that a test file replaces, and the defaults of functions that it touches."""
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and DEFAULTS.fullmatch(node.attr):
            yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in REPLACE:
            values = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
            yield from (part for value in values for part in str(value).split("."))


def test_no_test_replaces_a_private_name_or_a_default(tmp_path):
    path = tmp_path / "test_module.py"
    path.write_text('p.setattr("a._b", 1)\np.setattr(a, "_c", 2)\nf.__defaults__ = ()')
    hidden = re.compile(f"_[^_]|{DEFAULTS.pattern}")
    assert {name for name in patched(path) if hidden.match(name)} == {"_b", "_c", "__defaults__"}
    found = {(each.name, name) for each in (ROOT / "tests").glob("*.py") for name in patched(each)}
    assert ("test_files.py", "fsync") in found
    assert {(file, name) for file, name in found if hidden.match(name)} == set()


def test_the_wheel_is_the_package_and_the_source_distribution_is_all():
    targets = PROJECT["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"] == {"packages": ["eqsep"]}
    assert targets["sdist"] == {"exclude": ["/.ci"]}


@pytest.mark.parametrize("line", ["numpy", "numpy<2", "numpy>=1,<2"])
def test_a_requirement_without_a_plain_lower_bound_is_refused(line, monkeypatch):
    tool = runpy.run_path(str(ROOT / "tools" / "oldest.py"))
    monkeypatch.setitem(tool["bounds"].__globals__, "requirements", lambda: [line])
    with pytest.raises(ValueError, match="Expected a requirement NAME>=VERSION"):
        tool["bounds"]()


def test_what_is_locked_by_hashes_has_the_versions_of_the_lock():
    done = subprocess.run(
        [sys.executable, "tools/lock.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
