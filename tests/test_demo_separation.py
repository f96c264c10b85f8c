"""The demonstration of the theory: its results, and what the command prints."""

import re

import numpy as np
import pytest
from invoking import CliRunner
from matplotlib import pyplot as plt

from eqsep.cli import app
from eqsep.demo import run_theory
from eqsep.demo.separation import FAMILIES
from eqsep.theory import count_boolean_functions


@pytest.fixture(scope="module")
def demo():
    return run_theory()


def test_one_class_of_xor_lies_on_one_line_and_the_other_off_it(demo):
    classes = [[corner.distance for corner in demo.xor if corner.y == y] for y in (0, 1)]
    on, off = sorted(classes, key=max)
    assert max(on) < 0.05 < 0.5 < min(off)
    assert all(corner.predicted == corner.y for corner in demo.xor)


def test_all_16_functions_were_tried_and_fitted(demo):
    assert demo.fitted == demo.functions
    assert len(set(demo.functions)) == count_boolean_functions("strict-equality", 2) == 16


def of(demo, method):
    return {one.gamma: one for one in demo.circles if one.method == method}


def test_the_closed_separator_ranks_the_unseen_circle_first_at_every_width(demo):
    ours = of(demo, "KernelEqualitySeparator")
    assert list(ours) == ["default", "8", "16"]
    for one in ours.values():
        assert one.average_precision > 0.99
        assert one.flags_far
    assert ours["8"].flagged > 0.95
    assert ours["8"].false_alarms < 0.05


def test_at_no_width_does_the_support_vector_machine_do_better(demo):
    ours, svc = of(demo, "KernelEqualitySeparator"), of(demo, "SVC")
    assert list(svc) == list(ours)
    for gamma in svc:
        assert svc[gamma].average_precision <= ours[gamma].average_precision
        assert svc[gamma].flagged <= ours[gamma].flagged
    assert svc["default"].average_precision < demo.prevalence == 0.25


def test_closing_rows_agree_with_the_paper(demo):
    numbers = {(row.family, row.n_features): row.number for row in demo.closing}
    for n in (2, 3, 10):
        assert [numbers[family, n] for family in FAMILIES] == [1, n, n + 1]
    for row in demo.closing:
        assert 0 <= row.at_n <= row.at_n_plus_1 <= row.at_2n <= 1


def test_panels_hold_fitted_estimators_of_the_plane(demo):
    assert len(demo.panels) == 4
    for estimator, X, y, title in demo.panels:
        assert estimator.n_features_in_ == np.shape(X)[1] == 2
        assert len(X) == len(y)
        assert title


def test_another_seed_tells_the_same_story():
    other = run_theory(random_state=1)
    assert other.fitted == other.functions
    ours, svc = of(other, "KernelEqualitySeparator"), of(other, "SVC")
    assert ours["default"].average_precision > 0.99 > svc["default"].average_precision
    assert ours["8"].flagged > svc["8"].flagged


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What the command prints on a narrow screen, and the picture that it writes."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    result = CliRunner().invoke(
        app, ["demo", "--theory", "--out", str(folder)], env={"COLUMNS": "80"}
    )
    return result, folder / "regions.png"


def test_the_theory_writes_a_picture_and_says_where(printed):
    result, path = printed
    assert result.exit_code == 0
    assert str(path.resolve()) in result.output
    height, width, _ = plt.imread(path).shape
    assert height > 1000
    assert width > 1000
    assert list(path.parent.iterdir()) == [path]


def test_the_theory_prints_what_it_computed(printed):
    output = printed[0].output
    xor = re.findall(r"^\s*([01])\s+([01])\s+([01])\s+([01])\s+\d\.\d+\s*$", output, re.MULTILINE)
    assert [(int(a) ^ int(b), int(y), int(p)) for a, b, y, p in xor] == [
        (0, 0, 0),
        (1, 1, 1),
        (1, 1, 1),
        (0, 0, 0),
    ]
    assert "16 of 16 Boolean functions" in output
    ours = re.findall(r"KernelEqualitySeparator +(\w+) +(\d\.\d+) +(\d+)% +(\d+)% +yes", output)
    svc = re.findall(r"SVC +(\w+) +(\d\.\d+) +(\d+)%", output)
    assert [row[0] for row in ours] == [row[0] for row in svc] == ["default", "8", "16"]
    assert float(ours[0][1]) > 0.99 > 0.5 > float(svc[0][1])
    assert int(ours[1][2]) > int(svc[1][2])
    assert re.search(r"halfspace\s+n=10\s+11\s+0\.000\s+0\.001\s+0\.500", output)
    assert re.search(r"equality\s+n=10\s+10\s+1\.000\s+1\.000\s+1\.000", output)


def test_the_theory_fits_on_one_screen(printed):
    lines = printed[0].output.splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines[:-1])) <= 80
    assert "…" not in printed[0].output
