"""Values as people read them on the pages of the console."""

import time

import pytest

from eqsep.serve.console import pages
from eqsep.serve.verdicts import KindFit


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("hue", "unseen", "unseen"),
        ("hue", "normal", "normal"),
        ("first_name", "mule or takeover", "mule"),
        ("first_name", "unseen", "unseen"),
        ("other_names", "mule or takeover or skimming", "or takeover, skimming"),
        ("other_names", "mule", ""),
        ("moment", 0, "1970-01-01 00:00:00 UTC"),
        ("iso", 0, "1970-01-01T00:00:00+00:00"),
        ("score", 0.12345, "0.123"),
        ("score", 1234567.0, "1.23e+06"),
        ("signed", 0.5, "+0.500"),
        ("signed", -0.25, "−0.250"),
        ("share", 0.0123, "1.23%"),
        ("share", 0.5, "50%"),
        ("share", 0.0, "0%"),
        ("shown", 12.50, "12.5"),
        ("shown", 1234567.0, "1234567"),
        ("shown", None, "missing"),
        ("shown", float("nan"), "missing"),
        ("shown", "AT", "AT"),
        ("shown", True, "True"),
        ("in_query", "a b&c/d", "a%20b%26c%2Fd"),
        ("in_query", 1 / 3, "0.3333333333333333"),
        ("in_query", None, "missing"),
        ("percent", 0.999, "99%"),
        ("percent", 0.29, "29%"),
    ],
)
def test_values_are_shown(name, value, shown):
    assert pages.FILTERS[name](value) == shown


def test_a_kind_always_has_the_same_colour():
    assert pages.hue("takeover") == pages.hue("takeover")
    assert len({pages.hue(str(i)) for i in range(200)}) == 8


def test_times_are_in_the_largest_unit():
    assert pages.ago(time.time() - 130) == "2 min ago"
    assert pages.ago(time.time() + 5) == "now"


def test_counts_have_a_plural():
    assert [pages.plural(n, "alarm") for n in (1, 1200)] == ["1 alarm", "1,200 alarms"]


@pytest.mark.parametrize(
    ("p_value", "words"),
    [
        (0.6, "like most of its rows"),
        (0.2, "like a few of its rows"),
        (0.08, "unlike its rows"),
        (None, "unknown"),
    ],
)
def test_a_fit_is_in_words(p_value, words):
    assert pages.fitting(KindFit(None, 0.4, n_rows=12, n_needed=9), p_value) == words
    few = "unknown" if p_value is None else "too few rows to tell"
    assert pages.fitting(KindFit(None, 0.4, n_rows=3, n_needed=9), p_value) == few


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.2, "0.2 s"), (1, "1 s"), (23.2, "23 s"), (95, "1.6 min"), (300, "5 min"), (9e4, "1 d")],
)
def test_a_length_of_time_is_in_its_largest_unit(seconds, told):
    assert pages.lasting(seconds) == told


def test_a_time_of_day_has_its_date_where_it_is_another_day(monkeypatch):
    monkeypatch.setattr(pages.time, "time", lambda: 86_400.0 + 7_200)
    assert pages.clock(86_400 + 3_660) == "01:01 UTC"
    assert pages.clock(3_660) == "1970-01-01 01:01 UTC"
    assert pages.clock(86_400 + 3_662, seconds=True) == "01:01:02 UTC"
