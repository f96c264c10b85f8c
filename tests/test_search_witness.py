"""The search for shattered points on a GPU, tried on the CPU: `tools/search_witness.py`."""

import csv
import runpy
from pathlib import Path

import numpy as np
import pytest

from eqsep.theory import shatters
from paper.theory import WITNESSES
from paper.theory.search import missing

torch = pytest.importorskip("torch")
SEARCH = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "search_witness.py"))


def table(family, n, m):
    return SEARCH["SubsetTable"](n, m, flips=family == "epsilon-equality", device="cpu")


@pytest.mark.parametrize("family", ["epsilon-equality", "hyper-ridge"])
@pytest.mark.parametrize(("n", "m"), [(1, 4), (2, 6), (3, 9)])
def test_it_counts_as_the_package_does(family, n, m):
    X = np.random.default_rng(n).standard_normal((6, m, n))
    counted = table(family, n, m).missing(torch.tensor(X, dtype=torch.float32)).tolist()
    halves = 2 if family == "epsilon-equality" else 1  # pairs of labellings, with flips
    assert counted == [missing(points, family) // halves for points in X]
    assert max(counted) > 0


@pytest.mark.parametrize(("family", "n"), [("epsilon-equality", 3), ("hyper-ridge", 4)])
def test_nothing_is_missing_from_points_that_are_shattered(family, n):
    points = torch.tensor(np.array(WITNESSES[family, n], dtype=np.float32))
    assert table(family, n, len(points)).missing(points[None]).tolist() == [0]


def test_chains_keep_to_the_sphere_and_go_down_when_cold():
    torch.manual_seed(0)
    slabs = table("hyper-ridge", 2, 5)
    start = torch.randn(4, 5, 2)
    run = SEARCH["Annealing"](slabs, start, tries=5, on_sphere=True)
    first = run.cost
    for _ in range(100):
        before = run.cost
        run.step(1e-6, size=0.3)
        assert (run.cost <= before).all()
    assert (run.cost < first).any()
    assert torch.equal(run.cost, slabs.missing(run.X))
    assert torch.allclose(run.X.norm(dim=2), torch.ones(4, 5))


def test_what_it_finds_is_confirmed_and_kept(tmp_path, capsys):
    assert SEARCH["main"](["hyper-ridge", "1", "2", "--chains", "2", "--out", str(tmp_path)]) == 0
    assert "shatters these 2 points" in capsys.readouterr().out
    with (tmp_path / "hyper-ridge_1_2.csv").open(newline="") as file:
        assert shatters(list(csv.reader(file)), "hyper-ridge")


def test_it_ends_with_one_when_the_time_is_up(tmp_path):
    words = ["hyper-ridge", "1", "3", "--seconds", "0.1", "--chains", "2", "--out", str(tmp_path)]
    assert SEARCH["main"](words) == 1
