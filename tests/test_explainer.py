"""Explanations: parts that add up, causes that are named, values in the table's own words."""

from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from eqsep import Detector
from eqsep.cli.score import _explained, _verdict
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config
from eqsep.detector.explainer import Explainer, Explanation, Reason
from eqsep.report.page import _environment
from eqsep.report.reasons import ExplainedAlarm

NUMBERS = {
    "amount": 1e6,
    "items": 500.0,
    "distance_km": 50_000.0,
    "minutes_since_last": 5e6,
    "account_age_days": 90_000.0,
}
NAMES = {"purpose": "casino", "channel": "mail", "country": "XX"}
# Columns that training always has; the others are now and then missing in usual payments.
GAPS = dict.fromkeys(["amount", "minutes_since_last", "account_age_days", "purpose", "channel"])


@pytest.fixture(scope="module")
def demo():
    return make_mixed_demo(n_samples=2_000, as_frame=True, random_state=0)


@pytest.fixture(scope="module")
def detector(demo):
    config = Config(n_trees=10, n_trees_per_fold=8)
    return Detector(n_landmarks=500, random_state=0, config=config).fit(demo.X, demo.kind)


@pytest.fixture(scope="module")
def fresh():
    table = make_mixed_demo(n_samples=2_000, as_frame=True, random_state=1)
    return table.X[table.kind == "normal"]


def total(explanation):
    parts = [reason.contribution for reason in explanation.reasons]
    return explanation.base + sum(parts) + explanation.rest


@pytest.mark.parametrize("top", [1, 3, 10, 99])
def test_the_parts_add_up_to_the_score(top, detector, demo):
    rows = demo.X.iloc[:300]
    explanations = detector.explain(rows, top=top)
    assert_allclose([total(e) for e in explanations], detector.score_samples(rows), atol=1e-9)
    assert_array_equal([e.score for e in explanations], detector.score_samples(rows))
    n_reasons = {len(e.reasons) for e in explanations}
    assert n_reasons == {10} if top >= 10 else max(n_reasons) == top
    if top >= 10:
        assert max(abs(e.rest) for e in explanations) < 1e-9
    for e in explanations:
        parts = [reason.contribution for reason in e.reasons]
        assert parts == sorted(parts, reverse=True)


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")  # few rows, many columns
def test_they_add_up_with_more_columns_than_are_exchanged_one_by_one():
    X = np.random.default_rng(0).normal(size=(150, 45))
    detector = Detector(config=Config.fast(), bandwidth=0.5, random_state=0).fit(X)
    odd = X[:20] + 9 * np.eye(45)[:20]
    explanations = detector.explain(odd, top=4)
    assert_allclose([total(e) for e in explanations], detector.score_samples(odd), atol=1e-9)
    named = [e.reasons[0].column == f"x{i}" for i, e in enumerate(explanations)]
    assert np.mean(named) >= 0.9


@pytest.mark.parametrize("planted", [NUMBERS, NAMES, GAPS], ids=["number", "name", "gap"])
def test_a_planted_cause_is_named_first(planted, detector, fresh):
    """One value changed in a usual payment, 200 times: far away, never seen, or missing."""
    rng = np.random.default_rng(0)
    causes = rng.choice(list(planted), size=200)
    rows = fresh.iloc[rng.integers(len(fresh), size=200)].reset_index(drop=True).astype(object)
    for i, name in enumerate(causes):
        rows.at[i, name] = planted[name]
    named = [e.reasons[0].column for e in detector.explain(rows.infer_objects())]
    assert np.mean(np.array(named) == causes) >= 0.93


def test_values_are_those_of_the_table(detector, fresh, demo):
    rows = fresh.iloc[:3].assign(amount=[987654.25, np.nan, 1234567.0], country=["XX", None, "DE"])
    at = pd.Timestamp("2025-04-01 03:30:00")
    explanations = detector.explain(rows.assign(time=at, card_present=True), top=10)
    values = [{r.column: r.value for r in e.reasons} for e in explanations]
    assert [v["amount"] for v in values] == ["987654.25", "missing", "1234567"]
    assert [v["country"] for v in values] == ["XX", "missing", "DE"]
    assert values[0]["time"] == "2025-04-01T03:30:00"
    assert values[0]["card_present"] == "True"
    assert values[0]["purpose"] == rows["purpose"].iloc[0]
    training = demo.X[demo.kind == "normal"]
    for e in explanations:
        assert set(e.nearest_normal) == set(demo.X.columns)
        for name in NUMBERS:
            if e.nearest_normal[name] != "missing":
                value, low, high = (
                    float(e.nearest_normal[name]),
                    *training[name].agg(["min", "max"]),
                )
                assert low * (1 - 1e-4) <= value <= high * (1 + 1e-4)
        assert e.nearest_normal["purpose"] in set(training["purpose"])
        assert e.nearest_normal["card_present"] in {"True", "False"}
        moment = pd.Timestamp(e.nearest_normal["time"])
        assert training["time"].min() <= moment <= training["time"].max()


def test_the_nearest_normal_row_is_one_of_training(detector, fresh, demo):
    training = demo.X[demo.kind == "normal"]
    amounts = training["amount"].to_numpy()
    for e in detector.explain(fresh.iloc[:20]):
        assert np.abs(amounts / float(e.nearest_normal["amount"]) - 1).min() < 1e-4


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")  # of few rows
def test_no_row_is_measured_by_a_normal_one_that_raises_an_alarm():
    """Half of the normal rows raise one here; each of them has a nearer one that does not pass."""
    X = np.random.default_rng(0).normal(size=(80, 2))
    detector = Detector(
        config=Config.fast(), bandwidth=0.5, false_alarm_rate=0.5, random_state=0
    ).fit(X)
    alarms = X[detector.predict(X) == 1]
    assert 10 < len(alarms) < 70
    passing = X[detector.predict(X) == 0]
    for e in detector.explain(alarms):
        assert e.base <= detector.threshold_ < e.score
        nearest = [float(e.nearest_normal[name]) for name in ("x0", "x1")]
        assert np.abs(passing - nearest).max(axis=1).min() < 1e-3


def test_no_row_is_measured_by_a_normal_one_that_scores_high():
    """Such a row shares the cause of the alarm, which would then be missing from the reasons."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    X[:12, 0] += 4.5  # normal, but near what raises an alarm
    detector = Detector(false_alarm_rate=0.02, config=Config.fast(), random_state=0).fit(X)
    normal = detector.model_.explainer.calibrating
    usual = np.quantile(detector.model_.score(normal), 0.9)
    (why,) = detector.explain(np.array([[7.0, 0.0, 0.0]]), top=1)
    assert why.base <= usual
    assert why.reasons[0].contribution > 0.8 * why.score


def test_the_kind_it_resembles_is_said(detector, demo):
    for kind in ("takeover", "sleeper"):
        rows = demo.X[demo.kind == kind].iloc[:10]
        explanations = detector.explain(rows)
        assert np.mean([e.nearest_kind == kind for e in explanations]) > 0.8
        likeness = detector.model_.score.kind_likeness(detector.plan_.encode(rows)).max(axis=1)
        assert_array_equal([e.likeness for e in explanations], likeness)
    alone = Detector(config=Config.fast(), bandwidth=0.5, n_landmarks=60, random_state=0).fit(
        demo.X
    )
    (explanation,) = alone.explain(demo.X.iloc[:1])
    assert explanation.nearest_kind is None
    assert explanation.likeness == 0


def test_the_normal_value_is_typical_of_the_normal_rows_around():
    """The nearest have 5, most of those around 1."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"count": np.ones(300), "size": rng.normal(size=300), "line": "A"})
    X.loc[:29, "line"] = "B"
    X.loc[30:44, "count"] = 5.0
    settings = {"config": Config.fast(), "random_state": 0, "false_alarm_rate": 0.2}
    detector = Detector(unlabelled="trusted", **settings).fit(X)
    (odd,) = detector.explain(X.iloc[[30]].assign(count=40.0, line="C"), top=9)
    reasons = {reason.column: reason for reason in odd.reasons}
    assert odd.nearest_normal["count"] == "5"
    assert (reasons["count"].value, reasons["count"].normal_value) == ("40", "1")
    assert reasons["line"].normal_value == "A"


def test_where_most_rows_around_have_the_same_value_the_normal_one_is_typical_of_the_others():
    """Most rows around have 1 as well, one of them 9, and some 3; all are of line A."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"count": np.ones(80), "size": rng.normal(size=80), "line": "A"})
    X.loc[0, ["count", "size"]] = 9.0, 0.0
    X.loc[1:40, "count"] = 3.0
    X.loc[75:, "line"] = "B"
    X.loc[75:, "size"] += 9
    detector = Detector(config=Config.fast(), random_state=0, false_alarm_rate=0.2).fit(X)
    row = pd.DataFrame({"count": [1.0], "size": [0.0], "line": ["A"]})
    (why,) = detector.explain(row, top=9)
    reasons = {reason.column: reason for reason in why.reasons}
    assert (reasons["count"].value, reasons["count"].normal_value) == ("1", "3")
    assert (reasons["line"].value, reasons["line"].normal_value) == ("A", "A")


def test_reasons_that_add_next_to_nothing_have_no_line_and_the_lines_add_up(detector, fresh):
    explanations = detector.explain(fresh.iloc[:40].assign(amount=1e6), top=10)
    for e in explanations:
        reasons, rest = e.shown()
        assert len(reasons) < len(e.reasons) == 10
        assert all(abs(r.contribution) >= 0.01 * (e.score - e.base) for r in reasons)
        lines = str(e).split("\n")
        lines = lines[2:] if e.together else lines[1:]
        parts = [float(line.split()[0]) for line in lines[: len(reasons) + 1]]
        base, score = round(e.base, 3), round(e.score, 3)
        assert base + sum(parts) == pytest.approx(score, abs=1e-9)
        assert parts[-1] == pytest.approx(rest, abs=1e-9)


@pytest.mark.parametrize(("name", "shown"), [("rain", False), ("fog", True), ("unseen", True)])
def test_likeness_is_shown_to_the_kind_that_is_named(name, shown, monkeypatch):
    monkeypatch.setattr("eqsep.cli.score.joined", list)
    why = Explanation(0.9, 0.1, (Reason("a", "9", "1", 0.8),), 0.0, {"a": "1"}, "fog", 0.58)
    model = SimpleNamespace(kinds=("fog", "rain"), explain=lambda *_, **__: [why])
    (text,) = _explained(model, [(0.9, name, f"row 1: alarm, {name}", None)], top=1)
    card = _environment().get_template("words.html.jinja").module.alarm_card
    page = card(ExplainedAlarm(row="row 1", label="rain", name=name, p_value=0.1, explanation=why))
    assert ("likeness to fog" in text) == ("likeness to fog" in page) == shown


def test_no_other_columns_are_shown_where_all_are_listed():
    reasons = tuple(Reason(name, "9", "1", 0.3334) for name in "ab")
    all_listed = Explanation(0.7673, 0.1, reasons, 0.0, {"a": "1", "b": "1"}, None, 0.0)
    assert [line[:8] for line in str(all_listed).split("\n")[1:]] == ["  +0.334", "  +0.333"]
    more = replace(all_listed, nearest_normal={"a": "1", "b": "1", "c": "1"}, score=0.7661)
    assert str(more).endswith("\n  +0.000  all other columns")


def test_a_column_without_a_name_is_called_so():
    why = Explanation(0.9, 0.1, (Reason("", "9", "1", 0.8),), 0.0, {"": "1"}, None, 0.0)
    assert "+0.800  (no name) = 9 (normal: 1)" in str(why)
    card = _environment().get_template("words.html.jinja").module.alarm_card
    page = card(
        ExplainedAlarm(row="row 1", label="rain", name="unseen", p_value=0.1, explanation=why)
    )
    assert '<th scope="row">(no name)</th>' in page


def test_an_explanation_reads_as_text(detector, fresh):
    (explanation,) = detector.explain(fresh.iloc[:1].assign(amount=1e6), top=2)
    first, cause, *_, rest, kind = str(explanation).split("\n")
    assert first == (
        f"score {explanation.score:.3f}; the nearest normal row scores {explanation.base:.3f}"
    )
    usual = explanation.reasons[0].normal_value
    assert cause.split(maxsplit=1)[1] == f"amount = 1000000 (normal: {usual})"
    assert rest.endswith("all other columns")
    assert kind.strip().startswith("likeness to ")


def test_a_row_is_explained_alone_as_beside_others(detector, fresh):
    together = detector.explain(fresh.iloc[:300])
    for i in (0, 7, 299):
        assert detector.explain(fresh.iloc[[i]]) == [together[i]]


def test_the_table_may_have_its_columns_in_any_order(detector, fresh):
    turned = fresh[fresh.columns[::-1]].iloc[:5]
    assert detector.explain(turned) == detector.explain(fresh.iloc[:5])


@pytest.mark.parametrize("top", [0, -1])
def test_no_column_at_all_is_refused(top, detector, fresh):
    with pytest.raises(ValueError, match=f"top must be at least 1, got {top}"):
        detector.explain(fresh, top=top)


def one_by_one(detector, row, normal):
    """What each column adds by the rule: exchanged in both orders, every row on the way scored."""
    source = detector.plan_.encoder.source
    columns = np.unique(source)
    gap = [np.abs(row - normal)[source == j].astype(float).sum() for j in columns]
    order = columns[np.argsort(-np.array(gap), kind="stable")]
    fall = dict.fromkeys(columns.tolist(), 0.0)
    for one_order in (order, order[::-1]):
        now = row.copy()
        for j in one_order:
            then = np.where(source == j, normal, now)
            before, after = detector.model_.score(np.stack([now, then]))
            fall[j] += (before - after) / 2
            now = then
    return fall


def test_what_columns_add_is_what_exchanging_all_of_them_one_by_one_says(detector, fresh):
    rows = fresh.iloc[:12].copy()
    rows.loc[rows.index[:4], "amount"] = 1e6
    rows.loc[rows.index[2:6], "country"] = "XX"
    plan, names = detector.plan_, list(fresh.columns)
    kept = np.concatenate(
        [plan.kernel.landmarks[plan.kernel.is_normal], detector.model_.evidence.held_out.normal]
    )
    scores = detector.model_.score(kept)
    kept = kept[scores <= min(detector.threshold_, np.quantile(scores, 0.9, method="higher"))]
    explained = detector.explain(rows, top=len(names))
    for row, one in zip(plan.encode(rows), explained, strict=True):
        nearest = np.abs(plan.encoder.pack(kept) - plan.encoder.pack(row[None])).sum(axis=1)
        expected = one_by_one(detector, row, kept[nearest.argmin()])
        found = {reason.column: reason.contribution for reason in one.reasons}
        assert found == pytest.approx({names[j]: part for j, part in expected.items()}, abs=1e-15)


def test_an_explainer_is_kept_for_the_next_question_and_no_longer_than_its_model():
    X = np.random.default_rng(0).normal(size=(400, 2))
    quick = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}
    detector = Detector(false_alarm_rate=0.05, **quick).fit(X)
    explainer = detector.model_.explainer
    first = detector.explain([[4.0, 0.0]])
    assert detector.explain([[4.0, 0.0]]) == first
    assert detector.model_.explainer is explainer
    first[0].nearest_normal.clear()
    assert detector.explain([[4.0, 0.0]])[0].nearest_normal
    detector.partial_fit(np.random.default_rng(1).normal((4, 0), 0.1, size=(400, 2)))
    assert detector.explain([[4.0, 0.0]])[0].score < first[0].score
    now = detector.model_.explainer
    assert now is not explainer
    detector.false_alarm_rate = 0.2
    assert detector.model_.explainer is not now
    assert detector.model_.explainer.threshold < now.threshold


def test_an_explainer_needs_a_plan_a_score_and_normal_rows_alone(detector, fresh):
    model, table = detector.model_, detector.plan_.align(fresh.iloc[:40].assign(amount=1e6))
    explainer = Explainer(
        plan=model.plan,
        score=model.score,
        threshold=model.threshold,
        calibrating=model.evidence.held_out.normal[:5],
        kinds=(),
    )
    found = explainer.explain(table, top=3)
    assert_allclose([total(e) for e in found], model.scores(table), atol=1e-9)
    assert {e.nearest_kind for e in found} == {None}
    rows = explainer.nearest_normal_rows(table, n=3)
    assert [near[0] for near in rows] == [e.nearest_normal for e in found]
    assert {len(near) for near in rows} == {3}
    away = explainer.departures(model.plan.encode(table))
    assert_allclose(np.linalg.norm(away, axis=1), 1, atol=1e-6)


def test_no_kept_row_passes_and_all_are_compared_with(detector, fresh):
    model, table = detector.model_, detector.plan_.align(fresh.iloc[:3])
    none = replace(model.explainer, threshold=-1.0)
    assert_allclose([total(e) for e in none.explain(table, top=2)], model.scores(table), atol=1e-9)


def test_values_of_the_nearest_normal_row_are_in_the_table():
    rng = np.random.default_rng(0)
    n = 1_500
    X = pd.DataFrame(
        {
            "count": rng.poisson(2, size=n),
            "ttl": rng.choice([0, 31, 62, 252, 254], size=n),
            "bytes": np.round(rng.lognormal(6, 3, size=n)),  # of which digits get lost
            "price": np.round(rng.normal(20, 5, size=n), 2),
            "share": np.where(rng.random(n) < 0.5, 0.0, rng.random(n)),
        }
    )
    detector = Detector(n_landmarks=60, bandwidth=1.0, random_state=0).fit(X)
    near = detector.model_.explainer.nearest_normal_rows(detector.plan_.align(X[:200]), n=3)
    values = pd.DataFrame([row for rows in near for row in rows])
    for name in ("count", "ttl", "price"):
        assert set(values[name].astype(float)) <= set(X[name])
    exact = values["bytes"][~values["bytes"].str.startswith("about")].astype(float)
    assert set(exact) <= set(X["bytes"])
    assert len(exact) > 0.9 * len(values)
    assert "0" in set(values["share"])
    assert not any("e-" in share for share in values["share"])


def test_counts_that_differ_by_one_are_not_reasons():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.5, size=(2_000, 20)).astype(float)
    detector = Detector(n_landmarks=200, unlabelled="trusted", random_state=0).fit(X)
    odd = rng.poisson(1.5, size=(50, 20)).astype(float)
    odd[:, 3] += 30
    reasons = [one.reasons for one in detector.explain(odd, top=5)]
    assert {found[0].column for found in reasons} == {"x3"}
    usual = [float(r.value) <= 3 for found in reasons for r in found]  # as 93 % of the counts are
    assert np.mean(usual) < 0.35
    quiet = detector.explain(np.ones((1, 20)), top=5)[0]  # where all is usual, something is said
    assert quiet.reasons


def test_a_name_is_as_probable_as_in_the_scores_and_never_rounded_up():
    """With one seen kind it is always 1, and of "unseen" not calibrated: neither is shown."""
    two, one = SimpleNamespace(kinds=("pump", "leak")), SimpleNamespace(kinds=("pump",))
    assert _verdict(two, "pump", 0.9996) == "alarm, pump (99% if it is of a seen kind)"
    assert _verdict(two, "pump", 0.977) == "alarm, pump (98% if it is of a seen kind)"
    assert _verdict(one, "pump", 1.0) == "alarm, pump (the only seen kind)"
    assert _verdict(two, "unseen", 0.5) == _verdict(two, "unseen", np.nan) == "alarm, unseen"


def test_the_largest_reason_is_never_left_out_nor_exceeded_by_all_other_columns():
    """Columns with a value that is usual nearby are left out only if they add little."""
    X, y = load_digits(return_X_y=True)
    detector = Detector(config=Config.fast(), random_state=0).fit(X[y != 4][:900])
    new = X[y == 4][:40]
    left_out = 0
    for top in (1, 5, 20):
        pairs = zip(detector.explain(new, top=64), detector.explain(new, top=top), strict=True)
        for full, short in pairs:
            shown = [reason.contribution for reason in short.reasons]
            adds = [reason.contribution for reason in full.reasons]
            assert shown == sorted(shown, reverse=True)
            assert len(shown) <= top
            assert shown[0] == adds[0] == max(adds)
            assert short.rest <= shown[0] or shown == adds[:top]  # more reasons are not allowed
            large = [one for one in adds if one >= 0.1 * sum(np.maximum(adds, 0))]
            assert shown[: len(large)] == large[:top]
            left_out += shown != adds[: len(shown)]
    assert left_out > 5


def test_where_no_column_is_unusual_by_itself_the_combination_is_said_to_be():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 1)) + [[0.0, 0.0]] + 0.05 * rng.normal(size=(600, 2))
    detector = Detector(config=Config.fast(), bandwidth=1.0, random_state=0).fit(X)
    apart, far = detector.explain([[0.9, -0.9], [9.0, 9.0]])
    assert (apart.combined, far.combined) == (True, False)
    assert {reason.column for reason in apart.reasons} == {"x0", "x1"}
    line = "  most of the difference comes from values that are usual by themselves, "
    assert str(apart).splitlines()[1] == f"{line}but not together:"
    parts = [max(one.contribution, 0.0) for one in apart.reasons]
    assert sum(parts) > (apart.score - apart.base) / 2
    assert line not in str(far)
    assert [reason.usual for reason in apart.reasons] == [True, True]
    assert str(apart).count("(usual by itself; normal here: ") == 2
    assert not any(reason.usual for reason in far.reasons)
    passing = detector.explain(X[detector.predict(X) == 0][:50])
    assert not any(one.combined for one in passing)


def shop(n, seed=0):
    """Payments where the line and the size go together, and two columns do not matter."""
    rng = np.random.default_rng(seed)
    line = rng.choice(["book", "car", "tea"], n)
    size = pd.Series(line).map({"book": 20.0, "car": 9000.0, "tea": 5.0}).to_numpy()
    more = {"size": size, "hour": rng.integers(8, 20, n), "mood": rng.normal(size=n)}
    return pd.DataFrame({"line": line, **more})


@pytest.fixture(scope="module")
def shopping():
    return Detector(config=Config.fast(), unlabelled="trusted", random_state=0).fit(shop(1500))


@pytest.mark.parametrize(("line", "size"), [("book", 9000.0), ("car", 5.0), ("tea", 20.0)])
def test_two_values_that_never_go_together_are_said_to_be_unusual_together(shopping, line, size):
    row = pd.DataFrame({"line": [line], "size": [size], "hour": [12], "mood": [0.1]})
    (why,) = shopping.explain(row, top=2)
    assert why.score > shopping.threshold_
    assert {(one.column, one.value) for one in why.together} == {
        ("line", line),
        ("size", f"{size:g}"),
    }
    said = str(why).splitlines()[1]
    assert said.startswith("  ")
    assert said.endswith(" are unusual together")
    assert f"line = {line}" in said
    assert f"size = {size:g}" in said
    assert asdict(why)["together"][0].keys() == {"column", "value"}
    alarm = ExplainedAlarm(row="row 1", label="x", name="unseen", p_value=0.1, explanation=why)
    page = _environment().get_template("words.html.jinja").module.alarm_card(alarm)
    assert "are unusual together.</p>" in page


def test_a_value_that_is_unusual_by_itself_or_passes_is_not_said_to_be_so_with_another(shopping):
    far = shop(30, seed=1).assign(size=1e6)
    assert [one.together for one in shopping.explain(far)] == [None] * 30
    fresh = shop(300, seed=1)
    passing = fresh[shopping.predict(fresh) == 0]
    assert {one.together for one in shopping.explain(passing)} == {None}


def test_a_pair_that_adds_next_to_nothing_to_the_score_is_not_named(shopping):
    """The mood is far out; that the hour goes with it less than with others is not the reason."""
    found = shopping.explain(shop(50, seed=2).assign(mood=40.0))
    assert [one.reasons[0].column for one in found] == ["mood"] * 50
    assert [one.together for one in found] == [None] * 50


def test_without_a_surprise_term_no_pair_is_named():
    config = replace(Config.fast(), n_surprise_trees=0)
    detector = Detector(config=config, unlabelled="trusted", random_state=0).fit(shop(1500))
    row = pd.DataFrame({"line": ["tea"], "size": [9000.0], "hour": [12], "mood": [0.1]})
    assert detector.explain(row)[0].together is None


def test_a_combination_is_named_only_if_columns_marked_usual_add_most(detector, demo):
    alarms = demo.X[detector.predict(demo.X) == 1]
    found = detector.explain(alarms, top=99)
    assert {one.combined for one in found} == {True, False}
    for one in found:
        parts = dict.fromkeys((True, False), 0.0)
        for reason in one.reasons:
            parts[reason.usual] += max(reason.contribution, 0.0)
        assert one.combined == (parts[True] > parts[False])


def test_a_reason_never_shows_the_same_value_as_normal():
    """Numbers in single precision, as 3.20000004768372, of which the typical one is 3.2, too."""
    rng = np.random.default_rng(0)
    rate = rng.choice([3.1, 3.2, 3.3], size=400).astype(np.float32).astype(float)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"]).assign(rate=rate)
    detector = Detector(config=Config.fast(), random_state=0).fit(X)
    rows = X[:60].assign(rate=float(np.float32(3.2))) * [3, 3, 3, 1]
    found = [r for e in detector.explain(rows, top=9) for r in e.reasons if r.column == "rate"]
    found = [reason for reason in found if reason.contribution]
    assert len(found) >= 2
    assert {reason.value for reason in found} == {"3.2"}
    assert {reason.normal_value for reason in found} <= {"3.1", "3.3"}


def test_the_rows_around_a_missing_value_are_found_by_the_other_columns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    X = pd.DataFrame({"a": 5 + x, "b": x + 0.1 * rng.normal(size=500)})
    detector = Detector(config=Config.fast(), random_state=0).fit(X)
    row = pd.DataFrame({"a": [np.nan], "b": [1.0]})
    (why,) = detector.explain(row, top=1)
    (reason,) = why.reasons
    assert (reason.column, reason.value) == ("a", "missing")
    assert float(reason.normal_value) == pytest.approx(6, abs=0.4)
    (near,) = detector.model_.explainer.nearest_normal_rows(row, n=20)
    assert all(abs(float(one["b"]) - 1) < 0.4 for one in near)


def test_the_column_that_is_off_is_the_first_reason_though_others_go_with_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3)) @ [[1, 0.8, 0], [0, 0.6, 0], [0, 0, 1]]
    detector = Detector(config=Config.fast(), random_state=0).fit(X)
    found = detector.explain(X[:100] + np.array([6, 0, 0]))
    assert np.mean([one.reasons[0].column == "x0" for one in found]) > 0.9


def test_names_that_differ_by_blanks_alone_are_shown_in_quotes():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"code": np.where(rng.random(300) < 0.5, "FORCE   ", "THEFT   ")})
    rows = rows.assign(x=rng.normal(size=300))
    quick = Detector(random_state=0, n_landmarks=60, config=Config.fast()).fit(rows)
    (reason, *_) = quick.explain(rows[:1].assign(code="FORCE"))[0].reasons
    assert (reason.column, reason.value) == ("code", "FORCE")
    assert reason.normal_value in ("'FORCE   '", "'THEFT   '")
