"""The audit of warnings: what is done to a table, what is measured, and how it is counted."""

import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture
def audit(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module("warnings_audit")


@pytest.fixture
def rows(audit):
    """Two kinds that show in how two columns go together, in no order."""
    rng = np.random.default_rng(0)
    kind = rng.permutation(np.repeat(["normal", "hot", "worn"], [600, 60, 40]))
    frame = pd.DataFrame(rng.normal(size=(700, 3)), columns=list("abc"))
    frame["b"] += 2 * frame["a"] + 6 * (kind == "hot") * np.sign(frame["c"])
    frame["c"] += 5 * (kind == "worn") * np.sign(frame["a"])
    return audit.Rows(frame, kind)


@pytest.fixture
def found(audit, rows):
    """The verdicts of a damage, by what they say of each warning."""

    def run(damage):
        trial = audit.DAMAGES[damage](rows, np.random.default_rng(0))
        verdicts = list(audit.judged(audit.said_of(trial)))
        return {(one.warning, one.came, one.right) for one in verdicts}

    return run


@pytest.mark.parametrize(
    ("damage", "warning"),
    [
        ("leak", "LeakingColumnWarning"),
        ("leak in part", "LeakingColumnWarning"),
        ("another coding", "LeakingColumnWarning"),
        ("flag of a kind", "LeakingColumnWarning"),
        ("counter", "CountingColumnWarning"),
        ("shuffled ids", "CountingColumnWarning"),
        ("text ids", "DroppedColumnWarning"),
        ("decimal commas", "DecimalCommaWarning"),
        ("misspelt labels", "LabelSpellingWarning"),
        ("copies", "CopiedRowsWarning"),
        ("few rows", "CalibrationWarning"),
        ("learnt twice", "RepeatedRowsWarning"),
        ("another table", "ColumnMatchWarning"),
        ("several clocks", "TimeOrderWarning"),
    ],
)
def test_a_damage_is_warned_of_and_that_is_right(found, damage, warning):
    assert (warning, True, True) in found(damage)


@pytest.mark.parametrize("damage", ["as it is", "some copies", "learnt on", "shuffled rows"])
def test_a_sound_table_gets_no_warning(found, damage):
    assert not {w for w, came, _ in found(damage) if came and not w.startswith("advice")}


def test_dates_are_audited_as_a_user_sees_them(audit):
    """Rows of a later time pass where other columns decide: none is warned of then."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(700, 60))).add_prefix("x")
    table = audit.Rows(frame, np.repeat(["normal", "hot"], [660, 40]))
    said = audit.said_of(audit.DAMAGES["dates"](table, np.random.default_rng(0)))
    assert not said.of("DateColumnWarning")
    assert not said.of("NewDateWarning")
    assert list(audit.dated(said, "NewDateWarning")) == []


def test_a_warning_that_is_false_and_one_that_is_missing_are_counted(audit):
    verdicts = [
        *(audit.Verdict("A", came=True, right=True),) * 3,
        audit.Verdict("A", came=True, right=False),
        audit.Verdict("A", came=True, right=None),
        audit.Verdict("A", came=False, right=True),
    ]
    _, line = audit.table_of(verdicts)
    assert line.split() == ["A", "4", "3", "1", "0.75", "1"]


def test_what_is_measured_decides_and_not_what_was_done(audit, rows):
    """A leak on paper that fresh rows do not bear out is a false one."""
    trial = audit.DAMAGES["leak"](rows, np.random.default_rng(0))
    trial.fresh.frame["leak"] = 0.0
    trial.train.known.clear()
    (verdict,) = audit.leaks(audit.said_of(trial), "LeakingColumnWarning")
    assert (verdict.came, verdict.right) == (True, False)


def test_runs_are_not_torn_apart_and_all_else_is_done_to_every_table(audit):
    damages = {name: {c.damage for c in audit.cases([name])} for name in ("skab/other/1", "yeast")}
    assert damages == {"skab/other/1": {*audit.OF_RUNS}, "yeast": {*audit.DAMAGES}}
