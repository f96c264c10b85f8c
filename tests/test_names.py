"""The names that alarms are given, counted by hand, and whether "unseen" is said as promised."""

from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import betabinom

from eqsep.cli import app
from eqsep.cli.console import Screen
from eqsep.cli.test import name_lines, print_assessment
from eqsep.detector import Config, Detector
from eqsep.evaluation import NamedKind
from eqsep.evaluation.names import names_given
from eqsep.report.assessments import assessment_report
from eqsep.report.page import html

KINDS = {"belt slip": (7.0, 0.0), "pump wear": (7.6, 0.4), "clogged": (0.0, 9.0), "rare": (-9.0, 0)}


def rows_of(seed, counts):
    rng = np.random.default_rng(seed)
    centres = {"normal": (0.0, 0.0), "ghost": (-9.0, -9.0)} | KINDS
    X = np.vstack([rng.normal(centres[k], 0.7, size=(n, 2)) for k, n in counts.items()])
    return X, np.repeat(list(counts), list(counts.values()))


@pytest.fixture(scope="module")
def report():
    detector = Detector(
        n_landmarks=60, bandwidth=1.0, false_alarm_rate=0.05, random_state=0, config=Config.fast()
    )
    counts = {"normal": 400, "belt slip": 60, "pump wear": 60, "clogged": 60, "rare": 5}
    detector.fit(*rows_of(0, counts))
    return assessment_report(detector, *rows_of(1, dict.fromkeys(counts, 40) | {"ghost": 30}))


def model_of(units, *, groups=(), has_promise=True, rate=0.05):
    return SimpleNamespace(
        kinds=tuple(units),
        promise=SimpleNamespace(unseen_rate=rate),
        evidence=SimpleNamespace(kinds=SimpleNamespace(groups=groups, n_units=units.get)),
        namer=SimpleNamespace(has_promise=has_promise),
    )


def promise(n_unseen, *, units=None, **options):
    given = np.array(["unseen"] * n_unseen + ["normal"] * 20 + ["pump"] * (180 - n_unseen))
    model = model_of(units or {"pump": 99, "valve": 99}, **options)
    kind = np.repeat(["pump", "valve"], 100)
    return names_given(model, kind, given != "normal", given, normal="normal").promise


def test_a_name_among_several_is_a_whole_name():
    given = {"valve or pump": 2, "pump": 3, "pump seal or valve": 4, "unseen": 5, "valve": 6}
    pump = NamedKind("pump", 30, given)
    assert (pump.alarms, pump.alone, pump.among, pump.other, pump.unseen) == (20, 3, 2, 10, 5)
    both = NamedKind("pump or valve", 9, {"pump or valve": 4, "leak or pump or valve": 1})
    assert (both.alone, both.among, both.other) == (4, 1, 0)


def test_unseen_is_said_of_no_more_rows_of_seen_kinds_than_chance_explains():
    one, two = betabinom(100, 5, 95), betabinom(100, 5, 95)  # the fifth of 99 rows, twice
    draws = one.rvs(200_000, random_state=0) + two.rvs(200_000, random_state=1)
    most = promise(0).most_expected * 200
    assert np.mean(draws <= most - 1) < 0.975 <= np.mean(draws <= most) + 0.002
    assert promise(10).called.value == 0.05
    assert promise(int(most)).verdict == "as promised"
    assert promise(int(most) + 1).verdict == "more than chance explains"


def test_nothing_is_promised_of_a_kind_with_few_rows_nor_by_older_models():
    few = promise(3, units={"pump": 99, "valve": 18})
    assert (few.kinds, few.called.total) == (("pump",), 100)
    assert promise(3, units={"pump": 18, "valve": 18}) is None
    assert promise(3, has_promise=False) is None
    assert promise(3, groups=np.zeros(9)).verdict is None  # rows of a group are alike


def test_the_command_says_both_shares_and_the_promise(report):
    names = report.assessment.names
    told = name_lines(names)
    assert list(told) == ["named right", "among names", "called unseen", "named unseen"]
    assert told["named right"].startswith(f"{names.alone.value:.2%} [")
    assert told["among names"].startswith(f"{names.among.value:.2%} [")
    assert names.alone.value < 0.8 < names.among.value  # two kinds overlap
    assert (
        "rows of belt slip, clogged, pump wear; promised at most 5.00%: as" in told["called unseen"]
    )


def test_the_table_of_names_keeps_its_labels_at_80_columns(report):
    told = StringIO()
    print_assessment(Screen(width=80, file=told), report)
    lines = [line.split() for line in told.getvalue().splitlines()]
    assert ["label", "alarms", "own", "name", "among", "several", "another", "unseen"] in lines
    for one in report.assessment.names.kinds:
        own = [f"{one.alone}", f"{one.among}"] if one.kind in report.assessment.names.seen else "––"
        assert [*one.kind.split(), f"{one.alarms}", *own, f"{one.other}", f"{one.unseen}"] in lines


def test_the_page_says_the_same(report):
    names, text = report.assessment.names, html(report)
    assert f"{names.among.value:.1%}" in text
    assert 'are called "unseen"; promised is at most 5.0%' in text
    assert (
        text.count('<td class="shade own"') == 5
    )  # the names of four kinds, and of the unseen one


def test_a_fit_says_which_kinds_have_too_few_rows_for_the_promise_of_names(tmp_path, capsys):
    X, kind = rows_of(0, {"normal": 120, "clogged": 25, "rare": 5})
    table = np.column_stack([X.round(3), kind])
    np.savetxt(tmp_path / "t.csv", table, "%s", delimiter=",", header="a,b,kind", comments="")
    words = ["--false-alarm-rate", "0.1", "--landmarks", "60", "--out", str(tmp_path / "m.eqsep")]
    with pytest.raises(SystemExit):
        app(["fit", str(tmp_path / "t.csv"), "--label", "kind", *words])
    told = capsys.readouterr().out
    assert "clogged, rare; names without a promise, which takes 19 rows: rare (5)\n" in told
