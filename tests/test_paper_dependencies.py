"""What a result depends on: the code that ran, and nothing else."""

import shutil
from pathlib import Path

import pytest

from eqsep.engine import loops
from paper import dependencies, runner
from paper.cells import Cell, Study, read_result, write_result
from paper.dependencies import digest, is_stale, names_behind, recorded
from paper.provenance import Provenance, here
from paper.runner import run
from paper.tables import TABLES

CELL = Cell("formulas", "output", "tanh")
GAUSSIAN = Cell("gaussians", "2 dimensions, noise multiplier 1.0", "ES, MSE, sigma=10.0", seeds=2)
BUMP = "eqsep/activations.py"

SOURCE = '''
"""A module."""
from functools import lru_cache, partial

WIDTH = 1.0
OTHER = 2.0
HALVES = {"half": lambda x: x / DIVISOR}
DIVISOR = 2
DIVISOR += 0


def doubled(x: float) -> float:
    """Twice."""
    return 2 * x


TABLE = {"a": doubled(WIDTH), "b": doubled}


class Point:
    """A point."""

    size = WIDTH

    def ran(self, other=0):
        return self.size + other

    def idle(self):
        return OTHER


def entry(OTHER):
    # a comment
    return HALVES["half"](Point().ran()) + OTHER


def by_table():
    return TABLE["a"]


@lru_cache
def read():
    return WIDTH


def cached():
    return read()
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A package `paper` of one module elsewhere, loaded, and a way to change its text."""
    file = tmp_path / "paper" / "one.py"
    file.parent.mkdir()
    file.write_text(SOURCE)
    monkeypatch.setattr(dependencies, "ROOT", tmp_path)
    space = {"__name__": "paper.one"}
    exec(compile(SOURCE, file, "exec"), space)

    class Module:
        names = space

        @staticmethod
        def of(name, *arguments):
            with recorded() as found:
                space[name](*arguments)
            return found.get("paper/one.py", [])

        @staticmethod
        def changed(names, old, new):
            """Whether the hash of the names is another one with the text changed."""
            before = digest({"paper/one.py": names}, root=tmp_path)
            assert old in SOURCE
            file.write_text(SOURCE.replace(old, new) + "\n" * (len(new) + 1))
            after = digest({"paper/one.py": names}, root=tmp_path)
            file.write_text(SOURCE)
            return before != after

    return Module


def test_what_ran_and_the_values_it_names_are_found_and_nothing_else(module):
    assert module.of("entry", 1.0) == [
        *("DIVISOR", "HALVES", "Point", "Point.ran", "WIDTH", "entry"),
    ]


def test_what_was_called_to_make_a_value_is_found(module):
    assert module.of("by_table") == ["TABLE", "WIDTH", "by_table", "doubled"]


def test_what_was_cached_is_read_again(module, monkeypatch):
    stand_in = type(dependencies)("paper.one")
    vars(stand_in).update(module.names)
    monkeypatch.setitem(dependencies.sys.modules, "paper.one", stand_in)
    for _ in range(2):
        assert module.of("cached") == ["WIDTH", "cached", "read"]


@pytest.mark.parametrize(
    ("old", "new", "is_changed"),
    [
        ("# a comment", "# other words", False),
        ('"""A point."""', '"""One."""', False),
        ("x: float) -> float", "x: int) -> int", False),
        ("return OTHER", "return 3.0", False),
        ("OTHER = 2.0", "OTHER = 3.0", False),
        ("WIDTH = 1.0", "WIDTH = 3.0", True),
        ("DIVISOR += 0", "DIVISOR += 1", True),
        ("x / DIVISOR", "x // DIVISOR", True),
        ("size = WIDTH", "size = 2 * WIDTH", True),
        ("other=0", "other=1", True),
        ("def ran", "def run", True),
    ],
)
def test_a_hash_changes_with_what_counts(module, old, new, is_changed):
    assert module.changed(module.of("entry", 1.0), old, new) == is_changed


def test_a_file_that_is_gone_is_a_change(tmp_path):
    names = {"paper/cells.py": ["seeds_of"]}
    (tmp_path / "paper").mkdir()
    shutil.copy(Path(dependencies.ROOT, "paper/cells.py"), tmp_path / "paper")
    assert digest(names, root=tmp_path) == digest(names)
    (tmp_path / "paper/cells.py").unlink()
    assert digest(names, root=tmp_path) != digest(names)


def test_a_cell_names_the_code_of_the_library_that_it_runs_through(tmp_path):
    run([CELL, GAUSSIAN], tmp_path, processes=1)
    tanh, gaussian = (read_result(cell, tmp_path)["made"] for cell in (CELL, GAUSSIAN))
    assert "TanhBump.__call__" in tanh["names"][BUMP]
    assert "GaussianBump.log" not in tanh["names"][BUMP]
    assert {"GaussianBump", "GaussianBump.log"} <= set(gaussian["names"][BUMP])
    assert "_QuasiNewton.minimise" in gaussian["names"]["eqsep/solvers.py"]
    for made in (tanh, gaussian):
        assert made["code"] == digest(made["names"])
        assert not {"paper/comparison.py", "paper/page.py", "paper/runner.py"} & set(made["names"])


def test_names_are_those_of_the_defining_module_through_packages_that_hand_them_on():
    code = TABLES["mvtec_objects"].study.measure.__code__
    names = names_behind([code])
    assert names == {"paper/tables/mvtec.py": ["LACKS", "STAND_IN", "measure"]}
    lazily = names_behind([runner.FIGURE_STUDIES["formulas"].measure.__code__])
    assert "GaussianBump" not in lazily.get(BUMP, [])  # `measure` calls what names it


def test_of_machine_code_all_is_found_that_it_calls():
    names = names_behind([loops.weighted_sums.__code__])["eqsep/engine/loops.py"]
    assert {"_add_weighted_single", "_add_weighted"} <= set(names)


def made_stale(cell, out):
    result = dict(read_result(cell, out))
    write_result(cell, out, result | {"made": result["made"] | {"code": "0" * 16}})


def test_a_stale_cell_is_measured_anew_unless_it_is_to_be_kept(tmp_path):
    run([CELL, GAUSSIAN], tmp_path, processes=1)
    made_stale(CELL, tmp_path)
    kept = run([CELL, GAUSSIAN], tmp_path, processes=1, keep_stale=True)
    assert (kept.measured, kept.kept, kept.stale) == (0, 2, 1)
    anew = run([CELL, GAUSSIAN], tmp_path, processes=1)
    assert (anew.measured, anew.kept, anew.stale) == (1, 1, 1)
    assert not is_stale(read_result(CELL, tmp_path)["made"])
    assert run([CELL, GAUSSIAN], tmp_path, processes=1).stale == 0


def test_a_result_that_does_not_say_its_code_is_stale(tmp_path, monkeypatch):
    monkeypatch.setitem(
        runner.STUDIES,
        "fake",
        Study("fake", lambda cell: ({"area": [1.0]}, {})),  # noqa: ARG005
    )
    cell = Cell("fake", "data", "method")
    write_result(cell, tmp_path, {"values": {"area": [2.0]}, "more": {}})
    assert run([cell], tmp_path, processes=1).measured == 1
    assert run([cell], tmp_path, processes=1).kept == 1


def test_the_page_says_of_which_commits_results_are():
    names = {"paper/cells.py": ["seeds_of"]}
    one = {"date": "2026-01-01", "machine": "m", "versions": "v", "seconds": 1.0}
    now = one | {"commit": here()["commit"], "code": digest(names), "names": names}
    older, stale = now | {"commit": "a1"}, now | {"code": "other"}
    assert Provenance.of([now, now]).of_commits == f"All of commit {here()['commit']}."
    both = Provenance.of([now, older])
    assert (both.older, both.stale) == (1, 0)
    assert "1 of 2 results come from other commits; by its hash" in both.of_commits
    assert "a1" in both.of_commits
    assert "STALE" not in both.of_commits
    assert "1 of 2 results are STALE" in Provenance.of([now, stale]).of_commits
