"""Checks of data: what each of them finds, what it leaves alone, and what it advises."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eqsep.tables.batches
from eqsep import Detector, checks
from eqsep.checks import Finding, warn_of
from eqsep.cli.console import in_command
from eqsep.detector import Config
from eqsep.tables.encoder import Encoder
from eqsep.tables.reading import read_table

N = 40


def table(**columns):
    return read_table(pd.DataFrame(columns), name="test")


def columns_of(findings):
    return [finding.message.split("'")[1] for finding in findings]


def code(n_anomalous, n=N, unlabelled=0):
    """Normal rows, then anomalous ones, then some without a label."""
    return np.repeat([0, 1, -1], [n - n_anomalous - unlabelled, n_anomalous, unlabelled])


def test_a_finding_is_a_warning_with_a_hint_and_fields():
    found = checks.counting_columns(table(id=np.arange(N)))
    assert [finding.category for finding in found] == [checks.CountingColumnWarning]
    warning = found[0].warning()
    assert isinstance(warning, checks.DataWarning)
    assert str(warning).endswith("leave it out of X.")
    assert (warning.message, warning.hint) == (found[0].message, found[0].hint)
    assert warning.fields == found[0].fields == {"column": "id"}
    assert warning.topic == "CountingColumnWarning"


def test_a_finding_is_told_at_the_line_that_asked():
    finding = Finding(checks.DateColumnWarning, "Dates.", "Drop.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of([finding, finding])
    assert [w.filename for w in caught] == [__file__, __file__]
    assert [str(w.message) for w in caught] == ["Dates. Drop."] * 2


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        (np.arange(N), True),
        (np.arange(N)[::-1], True),
        (np.arange(N) // 2, False),  # 19 steps
        (np.arange(N + 2) // 2, True),  # 20 steps
        (np.r_[np.arange(N), 3], False),
        (np.r_[np.nan, np.arange(N)], False),
        (np.arange(20), False),  # so few rows rise by chance
        (np.arange(21), True),
        (np.arange(250) // 9, True),
        (np.arange(6_000) // 200, False),  # 29 steps: a month
    ],
)
def test_columns_that_rise_or_fall_are_counters(values, counts):
    assert bool(checks.counting_columns(table(x=values))) is counts


def test_ids_in_any_order_are_found_and_measurements_are_not():
    rng = np.random.default_rng(0)
    ids = rng.permutation(4000)[:400]
    (found,) = checks.counting_columns(table(x=ids, y=ids / 7, z=rng.integers(0, 4000, 400)))
    assert found.message.startswith("Column 'x' is another whole number in each row, as ids are")
    assert "only counts or names rows" in in_command(found.warning())
    assert not checks.counting_columns(table(x=rng.integers(0, 10**9, 400)))  # distinct by chance


def test_a_column_that_is_called_id_may_repeat_some_values():
    rng = np.random.default_rng(0)
    ids = np.r_[rng.permutation(10**6)[:380], np.arange(20) % 4]
    for name in ("ID", "patient_id", "caseId"):
        (found,) = checks.counting_columns(table(**{name: ids}))
        assert found.message.startswith(f"Column {name!r} is an id by its name and its values")
    assert not checks.counting_columns(table(fluid=ids, id=ids % 100, mid=ids / 7))


def test_only_numbers_count():
    assert not checks.counting_columns(table(x=[f"{i:03d}" for i in range(N)]))


def test_decimal_commas_are_named_in_one_finding():
    commas = [f"{i},5" for i in range(N)]
    rows = table(a=commas, b=[*commas[:21], *"x" * 19], c=[*commas[:20], *map(str, range(20))])
    (found,) = checks.decimal_commas(rows)
    assert "Columns 'a', 'b' hold" in found.message
    assert "such as '0,5'" in found.message
    assert found.message.endswith("write them with a point, 0.5.")
    assert found.hint.endswith("make it a categorical column, and so on.")
    assert in_command(found.warning()).endswith("--categorical 'a', and so on.")
    (one,) = checks.decimal_commas(table(a=commas))
    assert one.message.startswith("Column 'a' holds")
    assert in_command(one.warning()).endswith("--categorical 'a'.")


@pytest.mark.parametrize("text", ["1.5", "a,b", "1,2,3", "1,", ",5", "1 000,5"])
def test_what_is_no_number_with_a_comma_is_left_alone(text):
    assert not checks.decimal_commas(table(x=[text] * N))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": pd.Series(["1,5"] * N, dtype="category")}),
        pl.DataFrame({"x": pl.Series(["1,5"] * N, dtype=pl.Categorical)}),
        pa.table({"x": pa.array(["1,5"] * N).dictionary_encode()}),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_a_category_holds_names(frame):
    rows = read_table(frame, name="test")
    assert not checks.decimal_commas(rows)
    assert not checks.decimal_commas(rows.take(np.arange(9)))


def test_columns_that_give_the_label_away_are_found():
    y = code(6)
    rows = table(
        high=y * 10.0 + np.linspace(0, 1, N),
        low=-(y * 10.0) + np.linspace(0, 1, N),
        missing=np.where(y > 0, np.nan, 1.0),
        name=np.where(y > 0, "bad", "good"),
        flag=y > 0,
        touching=np.where(y > 0, 1.0, np.linspace(0, 1, N)),  # normal rows reach up to 33/39
        overlapping=np.where(y > 0, 0.5, np.linspace(0, 1, N)),
        shared=np.where(np.arange(N) % 2, "a", "b"),
    )
    found = checks.leaking_columns(rows, y)
    assert columns_of(found) == ["high", "low", "missing", "name", "flag"]
    many = code(40, 100)  # few anomalies beyond all normal rows are no leak, but measured
    touching = np.where(many > 0, 1.0, np.linspace(0, 1, 100))
    assert checks.leaking_columns(table(x=touching + np.linspace(0, 0.1, 100)), many)
    assert found[0].hint.endswith("leave it out of X.")
    assert in_command(found[0].warning()).endswith("leave it out: --drop 'high'.")


def test_rows_without_a_label_say_nothing():
    y = code(6, unlabelled=10)
    x = np.where(y > 0, 5.0, 0.0)
    x[y < 0] = np.linspace(-9, 9, 10)
    assert columns_of(checks.leaking_columns(table(x=x), y)) == ["x"]


@pytest.mark.parametrize(("n_anomalous", "found"), [(4, False), (5, True), (35, True), (36, False)])
def test_few_rows_are_told_apart_by_chance(n_anomalous, found):
    y = code(n_anomalous)
    assert bool(checks.leaking_columns(table(x=y * 1.0), y)) is found


def test_ids_tell_rows_apart_not_kinds():
    y = code(20)
    assert not checks.leaking_columns(table(x=[f"id{i}" for i in range(N)]), y)
    assert not checks.leaking_columns(table(x=[f"id{i // 2}" for i in range(N - 1)] + ["z"]), y)
    assert checks.leaking_columns(table(x=[f"id{i // 2}" for i in range(N)]), y)


def test_all_columns_are_checked_at_once():
    y = code(6)
    rows = table(id=np.arange(N), comma=["1,5"] * N, leak=y * 1.0)
    categories = [finding.category for finding in checks.check_columns(rows, y)]
    assert categories == [
        checks.CountingColumnWarning,
        checks.DecimalCommaWarning,
        checks.LeakingColumnWarning,
    ]


def test_labels_that_are_alike_are_told():
    (found,) = checks.check_labels({"ok": 9, " OK": 3, "bad": 5})
    assert str(found.warning()) == (
        "Labels ' OK', 'ok' differ only by case or blanks. If they mean the same, write them alike."
    )
    (found,) = checks.check_labels({"OK ": 3}, known=["ok", "Bad", "bad"])  # those were told before
    assert "'OK ', 'ok'" in found.message
    assert checks.check_labels({"Bad": 3}, known=["Bad", "bad"]) == []


def test_a_label_of_one_row_that_is_spelt_like_another_is_shown():
    (one,) = checks.check_labels({"normal": 9, "takeover": 5, "tkeover": 1, "scan": 1})
    assert one.message == "Label 'tkeover' has one row, and is spelt like 'takeover'."
    assert one.hint == "If they mean the same, write them alike."
    (one,) = checks.check_labels({"takeovr": 1}, known=["takeover"])
    assert "'takeovr' has one row" in one.message
    assert checks.check_labels({"takeover": 5, "takeovers": 2}) == []
    assert checks.check_labels({"scan": 1}, known=["scan"]) == []


def few_above(doubted=False, thresholds=(), n_columns=4, **scores):
    """Findings at a threshold of 0.9; others are those of 0.05, 0.1, 0.2 and 0.5."""
    rates = dict(zip((0.05, 0.1, 0.2, 0.5), thresholds, strict=False))
    options = {"rate": 0.02, "thresholds": rates, "n_columns": n_columns, "doubted": doubted}
    scores = {getattr(checks, of): np.array(some) for of, some in scores.items()}
    return checks.check_threshold(0.9, scores, **options)


@pytest.mark.parametrize(("of", "most"), [("HELD_OUT", 4), ("LEARNT", 6), ("MADE_UP", 4)])
def test_a_high_threshold_is_one_that_few_anomalies_get_above(of, most):
    """New anomalies score less than learnt ones, and any far row should score high."""
    assert not few_above(**{of: [1.0] * (most + 1) + [0.5] * (9 - most)})
    (found,) = few_above(**{of: [1.0] * most + [0.5] * (10 - most)})
    few = f"f 10 {getattr(checks, of)}, only {10 * most}% score above the threshold, 0.900"
    assert few in found.message
    assert ("new ones usually score lower" in found.message) is (of == "LEARNT")
    assert "Some held-out normal rows score that high" in found.message
    assert not few_above(**{of: [0.5] * 9})  # too few to tell
    assert not few_above(**{of: []})


def test_the_lowest_rate_that_is_enough_is_advised():
    scores = np.linspace(0.05, 0.95, 10)
    (found,) = few_above(HELD_OUT=scores, thresholds=(0.7, 0.4, 0.1))
    assert found.message.endswith(
        "At a rate of 0.1 instead of 0.02, 60% of the held-out anomalies would."
    )
    assert found.hint.endswith("or set false_alarm_rate=0.1.")
    assert "or allow more false alarms: --false-alarm-rate 0.1." in in_command(found.warning())
    (found,) = few_above(HELD_OUT=scores, thresholds=(0.8, 0.8, 0.8, 0.0))  # nobody wants 0.5
    assert found.message.endswith("No false-alarm rate up to 0.2 is enough to change that.")
    assert "rate" not in found.hint + in_command(found.warning()).split("change that.")[1]


def test_that_rows_with_nothing_but_strange_values_raise_no_alarm_is_said():
    """Of anomalies too few raise one at any rate; of absurd rows all do at some rate."""
    (found,) = few_above(LEARNT=[0.1] * 10, MADE_UP=[0.8] * 10, thresholds=(0.85, 0.7))
    assert found.message == (
        "Of 10 learnt anomalies kept in the model, none scores above the threshold, 0.900. "
        "Even a row with strange values in all 4 columns raises no alarm: of 10 made-up rows, "
        "none scores above it. Some held-out normal rows score that high, which puts it there. "
        "At a rate of 0.1 instead of 0.02, no more of the learnt anomalies kept in the model "
        "and 100% of the made-up rows would."
    )
    (found,) = few_above(MADE_UP=[1.0] * 4 + [0.8] * 6, n_columns=1)
    assert found.message.startswith("Even a row with strange values in its only column may raise")


def test_unlabelled_anomalies_are_named_where_doubted_rows_make_the_threshold_high():
    (found,) = few_above(HELD_OUT=[0.5] * 10, doubted=True)
    assert found.category is checks.DoubtedThresholdWarning
    assert "2.00% of the held-out rows score this high, and nobody has" in found.message
    assert "anomalies that nobody has labelled" in found.message
    assert "eqsep.detector.suspects lists them: label the anomalies" in found.hint
    assert "eqsep suspects lists them: label the anomalies" in in_command(found.warning())


@pytest.fixture(scope="module")
def dated():
    days = pd.date_range("2025-01-01", periods=N, freq="D")
    frame = pd.DataFrame({"size": np.arange(N) % 7, "day": days})
    return frame, Encoder.learn(frame)


def test_dates_are_told_with_those_learnt(dated):
    _, encoder = dated
    assert not checks.check_dates(encoder, lambda *_: 0.02, rate=0.01)  # they raise no alarm
    (found,) = checks.check_dates(encoder, lambda *_: 0.7, rate=0.01)
    assert "70% of normal rows would raise an alarm once three times as long" in found.message
    assert "'day' holds dates, from 2025-01-01 00:00:00 to 2025-02-09 00:00:00" in found.message
    assert found.hint.endswith("leave it out of X.")
    assert in_command(found.warning()).endswith("--drop 'day'.")


def test_a_column_without_a_name_goes_by_its_position():
    days = np.arange("2025-01-01", "2025-02-01", dtype="M8[D]")[:, None]
    (found,) = checks.check_dates(Encoder.learn(days), lambda *_: 0.7, rate=0.01)
    assert columns_of([found]) == ["x0"]


def test_rows_beyond_the_dates_are_counted_on_either_side(dated):
    frame, encoder = dated
    moved = frame.assign(day=frame["day"] + pd.Timedelta(days=30))
    beyond = checks.rows_beyond(read_table(moved, name="test"), encoder)
    later, earlier = (
        ("day", "later date", "2025-02-09 00:00:00"),
        ("day", "earlier date", "2025-01-01 00:00:00"),
    )
    assert (beyond[later], beyond[earlier]) == (30, 0)
    moved = frame.assign(day=frame["day"] - pd.Timedelta(days=3))
    beyond = checks.rows_beyond(read_table(moved, name="test"), encoder)
    assert (beyond[later], beyond[earlier]) == (0, 3)
    assert not sum(checks.rows_beyond(read_table(frame, name="test"), encoder).values())


def test_more_than_half_of_the_rows_must_be_beyond():
    key = ("day", "later date", "2025-02-09")
    assert checks.check_beyond(Counter({key: 5}), n_rows=10) == []
    (found,) = checks.check_beyond(Counter({key: 6}), n_rows=10)
    assert found.message.startswith("6 of 10 rows have a later date in column 'day'")
    assert "(2025-02-09)" in found.message
    assert in_command(found.warning()).endswith("without the column (--drop 'day').")
    (one,) = checks.check_beyond(Counter({key: 1}), n_rows=1)
    assert one.message.startswith("1 of 1 row has a later date")


def days_of_work(n_days=30, a_day=20, **other):
    """A column of days in their order, each in several rows, and one that does not depend on it."""
    rng, day = np.random.default_rng(0), np.repeat(np.arange(1, n_days + 1), a_day)
    return pd.DataFrame({"day": day, "heat": rng.normal(size=len(day))} | other)


def test_numbers_named_as_times_that_order_the_rows_are_found():
    def found(frame):
        return checks.times_in_order(read_table(frame, name="test"))

    rows = days_of_work()
    assert found(rows) == ["day"]
    assert found(rows.rename(columns={"day": "modelYear"})) == ["modelYear"]
    assert not found(rows.rename(columns={"day": "size"}))
    assert not found(rows.iloc[::-1])
    assert not found(rows.assign(day=1))
    assert not found(days_of_work(a_day=5))  # counts the rows, of which another warning says so


def test_a_fit_and_its_scores_warn_of_days_by_which_later_rows_raise_alarms():
    rows = days_of_work()
    detector = Detector(false_alarm_rate=0.02, random_state=0, config=Config.fast())
    with pytest.warns(checks.DateColumnWarning, match="'day' holds times in order, from 1 to 30: "):
        model = detector.fit(rows).model_
    later = rows.assign(day=rows["day"] + 90)
    assert model.verdicts(later).alarm.mean() > 0.5
    beyond = checks.rows_beyond(read_table(later, name="test"), model.plan.encoder)
    (found,) = model.check_beyond(beyond, n_rows=len(rows))
    assert found.message.startswith("600 of 600 rows have a later time in column 'day' than all")
    shuffled = rows.sample(frac=1, random_state=0)  # a day may be one more property
    detector.fit(shuffled)


def test_dates_that_hardly_any_normal_row_has_are_not_warned_of():
    """Any date raises an alarm, a learnt one too: the warning about a leak says so."""
    rows = measurements()[0][["size"]]
    day = pd.Series(pd.date_range("2024-01-01", periods=len(rows), freq="D"))
    is_left = np.arange(len(rows)) % 5 == 0
    detector = Detector(n_landmarks=20, false_alarm_rate=0.05, random_state=0, config=Config.fast())
    for among_normal, expected in ((0.01, False), (0.8, True)):
        has_date = is_left | (np.random.default_rng(0).random(len(rows)) < among_normal)
        frame = rows.assign(day=day.where(has_date))
        found = told(lambda X=frame: detector.fit(X, np.where(is_left, "gone", "normal")))
        assert any(isinstance(m, checks.DateColumnWarning) for m in found) == expected


def test_a_year_of_few_values_is_no_time_that_rows_can_be_held_out_by():
    slow = np.cumsum(np.random.default_rng(0).normal(size=600))
    for n_days, fields in ((30, {"time": "day"}), (6, {})):
        rows = read_table(days_of_work(n_days, 600 // n_days, slow=slow), name="test")
        (found,) = checks.check_dependence(rows, np.zeros(600, dtype=int))
        assert found.fields == fields
    born = pd.to_datetime("1960-01-01") + pd.to_timedelta(np.arange(600) * 37 % 600, unit="D")
    rows = read_table(pd.DataFrame({"born": born, "slow": slow}), name="test")
    (found,) = checks.check_dependence(rows, np.zeros(600, dtype=int))
    assert found.fields == {}  # orders nothing


def measurements(n=400):
    """Rows with all that is to be looked at: a counter, a date, a leak, commas, typos."""
    rng = np.random.default_rng(0)
    kind = np.resize(["normal"] * 9 + ["hot"], n).astype(object)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "id": np.arange(n),
            "day": pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D"),
            "cost": [f"{i},5" for i in rng.integers(0, 30, n)],
            "alarm": (kind == "hot") * 2.0,
        }
    )
    kind[kind == "hot"] = np.resize(["hot", "Hot"], (kind == "hot").sum())
    kind[5] = "hott"
    return frame, kind


EXPECTED = {
    checks.LabelSpellingWarning: 2,
    checks.CountingColumnWarning: 1,
    checks.DecimalCommaWarning: 1,
    checks.LeakingColumnWarning: 1,  # though one row of 400 disagrees
    checks.DateColumnWarning: 1,
}


def told(act):
    """What is warned of, and where."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    assert {w.filename for w in caught} <= {__file__}
    return [w.message for w in caught if isinstance(w.message, checks.DataWarning)]


def fit(*data):
    return Detector(n_landmarks=20, false_alarm_rate=0.2, random_state=0, config=Config.fast()).fit(
        *data
    )


def batches(frame, kind, n=4):
    parts = np.array_split(np.arange(len(frame)), n)
    return [(frame.iloc[rows], kind[rows]) for rows in parts]


WAYS = {
    "in memory": lambda frame, kind: fit(frame, kind),
    "all in the sample": lambda frame, kind: fit(batches(frame, kind)),
    "read twice": lambda frame, kind: fit(batches(frame, kind)),
    "read once": lambda frame, kind: fit(iter(batches(frame, kind))),
    "first piece": lambda frame, kind: Detector(
        n_landmarks=20, false_alarm_rate=0.2, random_state=0, config=Config.fast()
    ).partial_fit(frame, kind),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_fit_raises_what_the_checks_find(way, monkeypatch):
    if way == "read twice":
        monkeypatch.setattr(eqsep.tables.batches, "SAMPLE", 300)
    found = told(lambda: WAYS[way](*measurements()))
    found = [m for m in found if not isinstance(m, checks.HighThresholdWarning)]  # 20 landmarks
    assert Counter(map(type, found)) == EXPECTED
    assert len({str(message) for message in found}) == len(found)  # each once
    (dates,) = (m for m in found if isinstance(m, checks.DateColumnWarning))
    assert "leave it out of X" in str(dates)
    assert "--drop 'day'" in in_command(dates)
    (single,) = (m for m in found if "has one row" in str(m))
    assert "'hott'" in str(single)


def test_a_leak_is_graded_and_told_by_a_fit():
    frame, kind = measurements()
    graded = []
    for label in ("cold", "normal"):  # one anomaly is not marked, then all are
        kind[5] = label
        found = told(lambda: fit(frame, kind))
        graded += [str(m) for m in found if isinstance(m, checks.LeakingColumnWarning)]
    alone = "Column 'alarm' alone tells anomalous rows from normal ones: its average precision is"
    assert graded[0].startswith(f"{alone} 0.978, and 1 of 400 rows disagree.")
    assert graded[1].startswith(f"{alone} 1.000.")


def test_clean_rows_are_learnt_in_silence():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.resize(["normal"] * 9 + ["hot"], 400)
    X[y == "hot"] += 2.0
    assert told(lambda: fit(X, y)) == []
    assert told(lambda: fit(X, np.where(y == "hot", 1, 0))) == []
    assert told(lambda: fit(X)) == []


def test_a_label_that_is_learnt_later_is_compared_with_those_before():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.resize(["normal"] * 9 + ["hot"], 400)
    detector = fit(X, y)
    (alike,) = told(lambda: detector.partial_fit(X[:2], ["HOT", "HOT"]))
    assert "Labels 'HOT', 'hot' differ only" in str(alike)
    (single,) = told(lambda: detector.partial_fit(X[:1], ["hotx"]))
    assert "Label 'hotx' has one row, and is spelt like 'hot'" in str(single)
    assert told(lambda: detector.partial_fit(X[:1], ["cold"])) == []
    assert told(lambda: detector.partial_fit(X[:2], ["normal", "hot"])) == []
    one_class = fit(X)
    assert told(lambda: one_class.partial_fit(X[:1])) == []


def test_anomalies_that_are_like_normal_rows_are_told_by_a_fit_and_others_are_not():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 3)), np.resize(["normal"] * 8 + ["hot"], 900)
    plain = Detector(false_alarm_rate=0.02, random_state=0, config=Config.fast())
    (high,) = told(lambda: plain.fit(X[:, :1], y))
    assert type(high) is checks.HighThresholdWarning
    kept = int((~plain.model_.plan.kernel.is_normal).sum())
    assert str(high).startswith(f"Of {kept} learnt anomalies kept in the model, only ")
    # So narrow a kernel sees no difference; rows far away, or whose columns do not go together,
    # still score higher.
    narrow = Detector(bandwidth=0.002, n_landmarks=300, random_state=0)
    together = X @ [[1, 0, 1], [0, 1, 1], [0, 0, 0.1]]
    odd = together + rng.choice([-9, 9], size=X.shape)
    assert told(lambda: narrow.fit(together)) == []
    assert narrow.threshold_ > 1
    assert narrow.predict(odd).mean() > 0.5
    assert told(lambda: narrow.fit(X)) == []
    assert narrow.predict(X + 99).all()


def test_a_threshold_above_what_far_rows_score_is_told_where_kinds_are_seen_too():
    """The seen kind scores above the threshold, by the votes of trees, and nothing else does."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 1)), np.resize(["normal"] * 8 + ["hot"], 900)
    X[y == "hot"] = rng.normal(1.5, 0.1, size=(100, 1))
    plain = Detector(false_alarm_rate=0.02, random_state=0, config=Config.fast())
    (high,) = told(lambda: plain.fit(X, y))
    assert type(high) is checks.HighThresholdWarning
    assert "Even a row with strange values in its only column raises no alarm" in str(high)
    assert plain.predict(X[y == "hot"]).mean() > 0.65
    assert not plain.predict([[99.0], [-99.0]]).any()


@pytest.mark.parametrize("sign", [1, -1])
def test_missing_values_of_normal_rows_do_not_hide_a_leak(sign):
    """High or low values tell anomalies; a missing one tells nothing."""
    rng = np.random.default_rng(0)
    is_anomaly = np.arange(400) < 60
    values = sign * (rng.normal(size=400) + 20 * is_anomaly)
    values[-4:] = np.nan
    (found,) = checks.leaking_columns(table(x=values), is_anomaly.astype(int))
    assert found.fields == {"column": "x", "average_precision": 1.0}


@pytest.mark.parametrize("shift", [-1, 1])
def test_one_disagreeing_row_does_not_silence_a_leak(shift):
    y = code(40, 400)
    rng = np.random.default_rng(0)
    for value in (y * 1.0, y * 9.0 + rng.normal(size=400), np.where(y > 0, "E7", "ok"), y > 0):
        value = np.array(value)
        row = 0 if shift > 0 else 399  # a normal row with an anomaly's value, or the opposite
        value[row] = value[399 - row]
        (found,) = checks.leaking_columns(table(x=value), y)
        assert found.fields["average_precision"] > 0.95
        assert "1 of 400 rows disagree" in found.message
    many = y * 1.0
    many[:5] = 1.0
    assert not checks.leaking_columns(table(x=many), y)
    rare = code(40, 4000)
    for n, found in ((5, True), (6, False)):  # an eighth of the anomalies
        flag = rare * 1.0
        flag[:n] = 1.0
        assert bool(checks.leaking_columns(table(x=flag), rare)) is found


def test_a_label_in_another_coding_is_found():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2, 3], [340, 20, 20, 20]))
    codes = np.array([20, 10, 30, 25])[y]  # normal in the middle
    kinds = ("a", "b", "c")
    for values in (codes, codes.astype(str), np.array(["d", "a", "x", "b"])[y]):
        (found,) = checks.leaking_columns(table(x=values), y, kinds)
        assert found.fields["average_precision"] == 1
    assert not checks.leaking_columns(table(x=rng.permutation(codes)), y, kinds)


def test_many_names_do_not_separate_by_chance():
    rng = np.random.default_rng(0)
    y = rng.permutation(code(200, 400))
    for n in (2, 20, 130, 200, 400):
        names = [f"id{i}" for i in rng.integers(0, n, 400)]
        assert not checks.leaking_columns(table(x=names), y), n


def test_a_column_that_marks_one_kind_is_named_with_the_kind():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], [900, 60, 40]))
    rows = table(heat=(y == 2) * 1.0, wear=y == 1, both=y > 0, other=rng.uniform(size=1000) < 0.04)
    found = checks.leaking_columns(rows, y, ("worn", "hot"))
    assert columns_of(found) == ["heat", "wear", "both"]
    assert found[0].message == (
        "Column 'heat' alone gives anomalies away: all 40 rows with '1' are anomalous, and 40 of "
        "the 40 rows of the kind 'hot' are among them."
    )
    (part,) = checks.leaking_columns(table(heat=(y == 2) * 1.0), (y > 0).astype(int))
    assert part.message.endswith("anomalous, and 40 of the 100 anomalous ones are among them.")
    y = np.repeat([0, 1, 2], [900, 300, 100])
    nearly = table(flag=np.where((y == 2) | (np.arange(1300) == 5), "yes", "no"))
    (most,) = checks.leaking_columns(nearly, y, ("worn", "hot"))
    assert "away: 100 of 101 rows with 'yes' are anomalous, and 100 of the 100" in most.message
    y = np.repeat([0, 1, 2], [900, 60, 40])
    few = (y == 2) & (np.cumsum(y == 2) <= 19)  # a sign of some anomalies, as a word in a mail is
    assert not checks.leaking_columns(table(word=few), (y > 0).astype(int))


def test_a_threshold_that_unlabelled_anomalies_make_high_is_told_by_a_fit():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(700, 3)), rng.normal(7, 1, size=(80, 3))])
    y = np.repeat([None, "leak"], [770, 10])  # 70 leaks are not labelled
    doubted = Detector(n_landmarks=60, bandwidth=0.2, random_state=0)
    (high,) = told(lambda: doubted.fit(X, y))
    assert isinstance(high, checks.DoubtedThresholdWarning)
    assert "eqsep.detector.suspects" in str(high)
    assert "eqsep suspects" in in_command(high)


def test_with_a_plan_of_another_detector_dropped_columns_are_no_matter():
    frame, kind = measurements()
    named = frame.assign(key=[f"key {i}" for i in range(len(frame))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = fit(named, kind)
    assert first.plan_.encoder.dropped
    again = Detector(plan=first.plan_, false_alarm_rate=0.2)
    found = told(lambda: again.fit(named, kind))
    assert Counter(map(type, found)) == EXPECTED
    found = told(lambda: again.fit(batches(named, kind)))  # of which the labels alone are counted
    assert {type(m) for m in found} == {checks.LabelSpellingWarning, checks.DateColumnWarning}


def test_numbers_that_only_anomalies_have_are_a_leak_whatever_they_are():
    """Fees of 7 of 10 bad loans, and of no other; the amounts say nothing more."""
    rng = np.random.default_rng(0)
    y = np.repeat(["normal", "bad"], [600, 60])
    fee = np.where((y == "bad") & (rng.random(660) < 0.7), rng.gamma(2, 10, size=660), 0.0)
    n = int((fee > 0).sum())
    found = f"'fee' alone gives .* all {n} rows with a value other than 0"
    with pytest.warns(checks.LeakingColumnWarning, match=found):
        Detector(random_state=0, config=Config.fast()).fit(
            pd.DataFrame({"fee": fee, "x": rng.normal(size=660)}), y
        )


def test_numbered_kinds_are_not_taken_for_misspelt_ones():
    counts = {"normal": 90, "severity 5": 9, "severity 6": 1, "scratch": 9, "scratsh": 1}
    (found,) = checks.check_labels(counts)
    assert "'scratsh' has one row, and is spelt like 'scratch'" in found.message


def test_names_of_one_row_are_not_said_to_disagree_with_a_leak():
    action = ["push"] * 300 + ["hold"] * 300 + ["spray"] * 199 + ["jab"]
    (found,) = checks.leaking_columns(table(action=action), np.repeat([0, 1], [600, 200]))
    assert "rows disagree" not in found.message
    assert found.message.endswith(", not counting 1 row whose value no other row has.")
