"""What the service keeps: models as logs, rows, verdicts, people; on SQLite and PostgreSQL."""

import copy
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, replace
from unittest.mock import Mock

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from numpy.testing import assert_allclose, assert_array_equal
from sqlalchemy import select, text

from eqsep import Detector
from eqsep.detector import Config
from eqsep.detector.model import Model
from eqsep.detector.namer import Judges
from eqsep.errors import UserError
from eqsep.monitor import Recent, Watched
from eqsep.serve import alarms, schema, watching
from eqsep.serve import intake as intakes
from eqsep.serve import ledger as ledgers
from eqsep.serve.alarms import Filter
from eqsep.serve.ledger import Lesson
from eqsep.serve.store import Conflict, Missing, Store
from eqsep.serve.verdicts import Outdated, Reviewed
from eqsep.serve.workspace import Workspace

RNG = np.random.default_rng(0)
START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_rows():
    """Every test begins with the same draws, whichever ran before."""
    RNG.bit_generator.state = START


def rows_at(centre, n, *, rng=RNG, card="c1", spread=0.4):
    return [
        {"x": float(x), "y": float(y), "card": card}
        for x, y in rng.normal(centre, spread, size=(n, 2))
    ]


def without_card(rows):
    return [{"x": row["x"], "y": row["y"]} for row in rows]


@pytest.fixture(scope="module")
def detector():
    X = [{"x": x, "y": y} for x, y in np.random.default_rng(1).normal(size=(900, 2)).tolist()]
    X += without_card(rows_at((6, 0), 40, rng=np.random.default_rng(2)))
    y = ["normal"] * 900 + ["leak"] * 40
    return Detector(bandwidth=1.0, n_landmarks=60, random_state=0, config=Config.fast()).fit(X, y)


@pytest.fixture
def work(url, detector):
    work = Workspace(url, keep_quiet=1.0)
    work.ledger.add("pump", detector, by="ada", settings={"entity": "card"})
    yield work
    work.close()


def taken(work, rows):
    """The numbers of rows once they are taken in."""
    return [answer.id for answer in work.intake.take("pump", rows)]


def scores(work, rows):
    return np.array([answer.score for answer in work.intake.score("pump", rows)])


def test_an_empty_database_gets_the_tables_of_the_schema(url):
    store = Store(url)
    with store.engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), schema.metadata)
    assert found == []
    Store(url).close()  # a second time nothing is left to do
    store.close()


def test_a_database_of_a_newer_eqsep_is_refused(url):
    store = Store(url)
    with store.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    with pytest.raises(UserError, match=r"newer eqsep wrote .* Install that"):
        Store(url)


def test_rows_that_come_as_a_version_becomes_live_do_not_learn_it_again(work, monkeypatch):
    learnt, asked, writing, apply = [], [], Store.writing, ledgers.apply
    monkeypatch.setattr(ledgers, "apply", lambda *given: learnt.append(1) or apply(*given))

    @contextmanager
    def writing_with_rows_after(store):
        with writing(store) as connection:
            yield connection
        if not asked:
            asked.append(threading.Thread(target=scores, args=(work, rows_at((0, 0), 1))))
            asked[0].start()
            asked[0].join(0.5)  # it sees the new version, which is in the database

    monkeypatch.setattr(Store, "writing", writing_with_rows_after)
    work.ledger.learn("pump", Lesson(rows_at((0, 5), 2), ["spill"] * 2, True), by="ada")
    asked[0].join()
    assert len(learnt) == 1


def test_a_version_that_is_made_again_does_not_hold_up_those_in_memory(work, monkeypatch):
    for i in range(2):
        work.ledger.learn("pump", Lesson(rows_at((0, 5 + i), 2), ["spill"] * 2, True), by="ada")
    live, before = (version.id for version in work.ledger.versions("pump")[:2])
    work.ledger.forget_kept()
    work.ledger.model(live)
    begun, ends, apply = threading.Event(), threading.Event(), ledgers.apply

    def slowly(*given):
        begun.set()
        assert ends.wait(30)
        return apply(*given)

    monkeypatch.setattr(ledgers, "apply", slowly)
    making = threading.Thread(target=work.ledger.model, args=(before,))
    making.start()
    assert begun.wait(30)
    asking = threading.Thread(target=work.ledger.model, args=(live,))
    asking.start()
    asking.join(5)
    assert not asking.is_alive()
    ends.set()
    making.join()
    asking.join()


def test_versions_are_made_again_side_by_side_and_each_once(work, monkeypatch):
    added = work.ledger.live("pump").id
    lessons = [Lesson(rows_at((0, 5 + i), 2), ["spill"] * 2, True) for i in range(2)]
    made = []
    for lesson in lessons:
        made.append(work.ledger.learn("pump", lesson, by="ada").id)
        work.ledger.revert("pump", added, by="ada")
    work.ledger.forget_kept()
    together, applied, apply = threading.Barrier(2), [], ledgers.apply

    def both_at_once(*given):
        applied.append(given)
        together.wait(30)
        return apply(*given)

    monkeypatch.setattr(ledgers, "apply", both_at_once)
    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(work.ledger.model, [*made, *made])]
    assert len(applied) == 2
    assert [one is again for one, again in zip(found[:2], found[2:], strict=True)] == [True, True]


def test_a_lesson_that_two_ask_for_is_learnt_once(work, monkeypatch):
    live, lesson = work.ledger.live("pump").id, Lesson(rows_at((0, 5), 2), ["spill"] * 2, True)
    begun, ends, applied, apply = threading.Event(), threading.Event(), [], ledgers.apply

    def slowly(*given):
        applied.append(given)
        begun.set()
        assert ends.wait(30)
        return apply(*given)

    monkeypatch.setattr(ledgers, "apply", slowly)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(work.ledger.learnt, live, lesson)
        assert begun.wait(30)
        second = threads.submit(work.ledger.learnt, live, replace(lesson))
        ends.set()
        assert first.result() is second.result()
    assert len(applied) == 1


def test_a_lesson_that_was_refused_can_be_asked_for_again(work, monkeypatch):
    live, lesson = work.ledger.live("pump").id, Lesson(rows_at((0, 5), 2), ["spill"] * 2, True)
    with monkeypatch.context() as patched:
        patched.setattr(ledgers, "apply", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            work.ledger.learnt(live, lesson)
    assert "spill" in work.ledger.learnt(live, lesson).model.kinds


def test_normal_rows_grow_no_judges_of_kinds(work, detector, monkeypatch):
    """The names and their probabilities are those of judges that would grow again."""
    grown, of = [], Judges.of
    monkeypatch.setattr(Judges, "of", lambda *a, **k: grown.append(1) or of(*a, **k))
    normal, spilt = rows_at((0, 5), 3), rows_at((0, -5), 3)
    seen = [
        without_card(rows) for rows in (normal, spilt, rows_at((6, 0), 30), rows_at((4, 0), 30))
    ]
    work.ledger.learn("pump", Lesson(normal, ["normal"] * 3, True), by="ada")
    work.intake.score("pump", [row for rows in seen for row in rows])
    assert not grown
    work.ledger.learn("pump", Lesson(spilt, ["spill"] * 3, True), by="ada")
    work.ledger.learn("pump", Lesson(normal, ["normal"] * 3, True), by="ada")
    assert work.ledger.replay("pump").same_bits  # and no repeated version names anything
    assert len(grown) == 1
    by_hand = copy.copy(detector).partial_fit(seen[0], ["normal"] * 3, judged=True)
    by_hand.partial_fit(seen[1], ["spill"] * 3, judged=True)
    by_hand.partial_fit(seen[0], ["normal"] * 3, judged=True)
    live = work.ledger.live_model("pump")
    for rows in seen:
        found = zip(live.verdicts(rows), by_hand.model_.verdicts(rows), strict=True)
        for one, other in found:
            assert_array_equal(one, other)
    assert len(grown) > 1


def test_a_version_can_be_had_again_with_the_same_bits(work, url, monkeypatch):
    monkeypatch.setattr(ledgers, "SNAPSHOT_EVERY", 3)
    for i in range(8):
        work.ledger.learn("pump", Lesson(rows_at((0, 5 + i), 2), ["spill"] * 2, True), by="ada")
    other = Workspace(url)
    for version in work.ledger.versions("pump"):
        made = other.ledger.model(version.id)
        assert ledgers.digest(made) == version.digest
        assert made.n_learnt.sum() >= 900 * 0.8
    with work.store.reading() as connection:
        assert len(connection.execute(select(schema.snapshots.c.version)).all()) == 3
    other.close()


def test_replay_of_random_lessons_gives_the_live_model(work, detector):
    rng = np.random.default_rng(3)
    learnt = []
    for step in range(40):
        if learnt and rng.random() < 0.35:
            lesson = learnt.pop(rng.integers(len(learnt)))
            work.ledger.append("pump", ledgers.NewVersion(ledgers.FORGET, "bob", lesson=lesson))
        elif step == 20:
            other = Detector(plan=detector.plan_, false_alarm_rate=0.2, config=Config.fast())
            other.fit(without_card(rows_at((0, 0), 90, rng=rng)), ["normal"] * 90)
            work.ledger.merge("pump", other, by="bob")
        else:
            label = str(rng.choice(["normal", "leak", "spill"]))
            learnt.append(Lesson(rows_at(rng.normal(size=2) * 5, 1, rng=rng), [label], True))
            work.ledger.learn("pump", learnt[-1], by="ada")
    merged = next(v for v in work.ledger.versions("pump") if v.operation == "merge")
    with pytest.raises(Missing):  # what was merged was never a version of this model
        work.ledger.revert("pump", merged.source, by="ada")
    work.ledger.revert("pump", work.ledger.versions("pump")[5].id, by="ada")
    replay = work.ledger.replay("pump")
    assert replay.versions > 20
    assert replay.same_bits
    assert replay.largest_difference == 0


def test_replay_notices_a_log_that_was_changed(work):
    made = work.ledger.learn("pump", Lesson(rows_at((0, 5), 1), ["spill"], True), by="ada")
    work.ledger.learn("pump", Lesson(rows_at((0, 5), 1), ["spill"], True), by="ada")
    with work.store.writing() as connection:
        table = schema.versions
        lesson = {"rows": rows_at((3, 3), 1), "labels": ["spill"], "judged": True}
        connection.execute(table.update().where(table.c.id == made.id).values(lesson=lesson))
    replay = work.ledger.replay("pump")
    assert not replay.same_bits
    assert replay.largest_difference > 1e-9


def test_two_writers_lose_nothing(work, url):
    other, failures = Workspace(url), []

    def teach(one):
        try:
            for _ in range(5):
                one.ledger.learn("pump", Lesson([{"x": 0.0, "y": 7.0}], ["spill"], True), by="ada")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=teach, args=(one,)) for one in (work, other)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert failures == []
    live = other.ledger.model(other.ledger.live("pump").id)
    spill = 1 + live.kinds.index("spill")
    assert live.n_learnt[spill] == 10
    assert work.ledger.replay("pump").same_bits
    other.close()


@pytest.mark.parametrize(("verdict", "kind"), [("true", "spill"), ("false alarm", None)])
def test_a_preview_without_names_has_the_same_scores_and_alarms(work, verdict, kind):
    rng = np.random.default_rng(8)
    numbers = taken(work, rows_at((0, 3), 9, rng=rng) + rows_at((0, 2.5), 20, rng=rng, spread=0.8))
    whole = work.verdicts.preview(numbers[:9], verdict, kind=kind)
    quick = work.verdicts.preview(numbers[:9], verdict, kind=kind, named=False)

    def told(changes):
        return [(c.alarm.id, c.then.score, c.then.p_value, c.then.alarm) for c in changes]

    for part in ("rows", "goes", "rises"):
        assert told(getattr(quick, part)) == told(getattr(whole, part))
    assert quick.threshold == whole.threshold != (quick.threshold[0],) * 2
    assert {c.then.kind for c in quick.rows} <= {"", "normal"}
    assert (quick.renamed, quick.fits, quick.warnings) == ([], {}, ())


def test_a_kind_of_few_rows_is_told_of(work):
    numbers = taken(work, rows_at((0, 6), 25, rng=np.random.default_rng(8)))
    few = work.verdicts.preview(numbers[:3], "true", kind="spill")
    assert any("Few rows of 'spill' so far: 3 including these. From 19" in w for w in few.warnings)
    assert few.fits["spill"].is_short
    work.verdicts.give(numbers[:3], "true", kind="spill", by="ada")
    enough = work.verdicts.preview(numbers[3:20], "true", kind="spill")
    assert not any("Few rows" in warning for warning in enough.warnings)


def test_what_teaches_no_kind_leaves_the_names_as_they_are_made(work):
    (number,) = taken(work, rows_at((0, 6), 1))
    before = work.ledger.model(work.ledger.live("pump").id)
    given = work.verdicts.give([number], "false alarm", by="ada")
    after = work.ledger.model(given.version.id)
    assert after is not before
    assert after.evidence.kinds is before.evidence.kinds
    assert after.namer is before.namer


def test_a_verdict_teaches_and_its_undo_gives_the_bits_back(work):
    before = work.ledger.live("pump")
    numbers = taken(work, rows_at((0, 6), 20, rng=np.random.default_rng(8)))
    probe = [{"x": 0.1, "y": 6.1, "card": "c2"}, {"x": 0.0, "y": 0.0, "card": "c3"}]
    was = scores(work, probe)
    assert {a.now.kind for a in work.alarms.inbox("pump").alarms} == {"unseen"}
    preview = work.verdicts.preview(numbers[:12], "true", kind="spill")
    assert {change.then.kind for change in preview.renamed} == {"spill"}
    fit = preview.fits["spill"]
    assert (fit.before, fit.n_rows, fit.is_short) == (None, 12, fit.n_needed > 12)
    assert fit.after > 0.1 >= preview.fits["leak"].after
    assert work.ledger.live("pump") == before
    given = work.verdicts.give(numbers[:12], "true", kind="spill", by="ada")
    assert given.version.id != before.id
    left = work.alarms.inbox("pump").alarms
    assert sum(a.now.kind == "spill" for a in left) >= 5
    assert {a.said.kind for a in left} == {"unseen"}
    assert work.intake.score("pump", probe[:1])[0].kind == "spill"
    work.verdicts.undo([v.id for v in work.verdicts.together("pump")[0]], by="bob")
    assert scores(work, probe).tobytes() == was.tobytes()
    assert work.ledger.live("pump").digest == before.digest
    assert work.alarms.inbox("pump").total == 20
    assert [v.undone_by for v in work.verdicts.of_row(numbers[0])] == ["bob"]
    told = [(entry.who, entry.action) for entry in work.people.audit()]
    assert told == [("bob", "undone"), ("ada", "verdict"), ("ada", "add")]


def test_the_undo_of_an_older_verdict_subtracts_it(work):
    first, second = taken(work, rows_at((0, 6), 1) + rows_at((-6, 0), 1))
    alone = work.verdicts.give([second], "false alarm", by="ada")
    expected = scores(work, rows_at((0, 0), 50, rng=np.random.default_rng(4)))
    work.verdicts.undo([alone.verdicts[0].id], by="ada")
    given = work.verdicts.give([first], "true", kind="spill", by="ada")
    work.verdicts.give([second], "false alarm", by="ada")
    work.verdicts.undo([given.verdicts[0].id], by="ada")
    assert work.ledger.live("pump").operation == "forget"
    left = scores(work, rows_at((0, 0), 50, rng=np.random.default_rng(4)))
    np.testing.assert_allclose(left, expected, atol=1e-9)
    assert work.ledger.replay("pump").same_bits


def test_one_of_several_verdicts_given_together_can_be_taken_back(work):
    numbers = taken(work, rows_at((0, 6), 3))
    given = work.verdicts.give(numbers, "true", kind="spill", by="ada")
    work.verdicts.undo([given.verdicts[1].id], by="ada")
    states = [alarm.state for alarm in work.alarms.some(numbers)]
    assert states == ["judged", "open", "judged"]
    live = work.ledger.model(work.ledger.live("pump").id)
    assert live.n_learnt[1 + live.kinds.index("spill")] == pytest.approx(2)
    with pytest.raises(Conflict, match="undone by ada"):
        work.verdicts.undo([given.verdicts[1].id], by="bob")


def test_a_verdict_by_somebody_else_is_replaced_only_if_it_was_seen(work):
    first, second = taken(work, rows_at((0, 6), 2))
    (seen,) = work.verdicts.give([first], "unsure", by="jo").verdicts
    assert work.verdicts.preview([first, second], "true", kind="spill").replaces == (seen,)
    (late,) = work.verdicts.give([second], "expected", by="jo").verdicts
    live = work.ledger.live("pump")
    given = {"by": "demo", "kind": "spill", "previewed": live.id}
    for verdict in ("true", "expected"):
        with pytest.raises(Outdated, match=f"jo judged alarm #{second} expected: look at it again"):
            work.verdicts.give([first, second], verdict, replaces=[seen.id], **given)
    assert work.ledger.live("pump") == live
    assert [a.verdict for a in work.alarms.some([first, second])] == [seen, late]
    work.verdicts.give([first, second], "true", replaces=[seen.id, late.id], **given)
    old = [work.verdicts.get(one.id) for one in (seen, late)]
    assert work.verdicts.replaced(old) == {seen.id, late.id}
    assert work.people.audit()[0].detail["replaced"] == [seen.id, late.id]
    with pytest.raises(Conflict, match="already replaced by demo"):
        work.verdicts.undo([late.id], by="jo")


def test_going_back_and_forward_takes_verdicts_along(work):
    first = work.ledger.live("pump")
    numbers = taken(work, rows_at((0, 6), 3))
    second = work.verdicts.give(numbers, "true", kind="spill", by="ada").version
    work.verdicts.revert("pump", first.id, by="bob")
    assert {alarm.state for alarm in work.alarms.some(numbers)} == {"open"}
    assert all(verdict.undone_at for verdict in work.verdicts.latest("pump"))
    other = work.verdicts.give(numbers[:1], "false alarm", by="eve")
    work.verdicts.revert("pump", second.id, by="bob")
    standing = [alarm.verdict for alarm in work.alarms.some(numbers)]
    assert [verdict.kind for verdict in standing] == ["spill"] * 3
    with pytest.raises(Conflict, match="ada has already judged"):
        work.verdicts.give(numbers[:1], "true", kind="spill", by="eve")
    work.verdicts.undo([standing[0].id], by="ada")  # forgotten by another version
    third = work.ledger.live("pump")
    work.verdicts.revert("pump", other.version.id, by="bob")
    work.verdicts.revert("pump", third.id, by="bob")
    assert [a.state for a in work.alarms.some(numbers)] == ["open", "judged", "judged"]
    live = work.ledger.model(work.ledger.live("pump").id)
    assert live.n_learnt[1 + live.kinds.index("spill")] == pytest.approx(2)


def test_verdicts_given_together_are_taken_back_together_however_many(work):
    before = work.ledger.live("pump")
    numbers = taken(work, rows_at((0, 6), 60))
    work.verdicts.give(numbers, "true", kind="spill", by="ada")
    (group,) = work.verdicts.together("pump")
    assert len(group) == 60
    work.verdicts.undo([verdict.id for verdict in group], by="ada")
    assert work.ledger.live("pump").digest == before.digest


def test_a_row_is_judged_once(work):
    (number,) = taken(work, rows_at((0, 6), 1))
    work.verdicts.give([number], "unsure", by="ada")
    assert work.alarms.inbox("pump", Filter(state="unsure")).total == 1
    version = work.ledger.live("pump")
    work.verdicts.give([number], "expected", by="ada")
    assert work.ledger.live("pump") == version  # neither teaches
    work.verdicts.give([number], "false alarm", by="ada")
    with pytest.raises(Conflict, match="ada has already judged"):
        work.verdicts.give([number], "true", kind="spill", by="bob")
    assert [v.verdict for v in work.verdicts.of_row(number)] == [
        *("false alarm", "expected", "unsure")
    ]


def test_a_true_alarm_needs_a_name_that_can_be_one(work):
    (number,) = taken(work, rows_at((0, 6), 1))
    for kind in (None, "", " ", "Leak", "Unsure", "normal", "unseen", "a or b", "x\ny", "y" * 101):
        with pytest.raises(UserError, match="kind"):
            work.verdicts.give([number], "true", kind=kind, by="ada")
    assert work.alarms.get(number).verdict is None


def test_rows_judged_for_their_alarm_never_calibrate_and_drawn_ones_may(work):
    def calibrating():
        return len(work.ledger.model(work.ledger.live("pump").id).evidence.held_out.normal)

    before = calibrating()
    numbers = taken(work, rows_at((0, 0), 200) + rows_at((0, 6), 3))
    alarms = work.alarms.some(numbers)
    drawn = [a.id for a in alarms if a.drawn]
    assert 60 < len(drawn) < 140
    assert not any(a.drawn for a in alarms if a.said.alarm)
    work.verdicts.give([a.id for a in alarms if not a.drawn], "false alarm", by="ada")
    assert calibrating() == before
    work.verdicts.give(drawn, "false alarm", by="ada")
    assert calibrating() > before


def test_the_queue_offers_random_rows_apart_from_the_highest(work):
    taken(work, rows_at((0, 0), 150))
    offered = work.queue.offered("pump", limit=30)
    by_reason = {}
    for one in offered:
        by_reason.setdefault("random" in one.why, []).append(one.alarm)
    assert all(a.drawn for a in by_reason[True])
    assert not any(a.drawn for a in by_reason[False])
    highest = [a.now.score for a in by_reason[False]]
    assert highest == sorted(highest, reverse=True)
    work.verdicts.give([a.id for a in by_reason[True][1:]], "false alarm", by="ada")
    work.verdicts.give([by_reason[True][0].id], "true", kind="leak", by="ada")
    missed = work.queue.missed("pump")
    assert (missed.count, missed.total) == (1, len(by_reason[True]))


def test_the_queue_scores_rows_by_the_live_version(work):
    taken(work, rows_at((0, 5), 3))
    before = {one.alarm.id: one.alarm.now.score for one in work.queue.offered("pump")}
    work.ledger.learn("pump", Lesson(rows_at((0, 5), 30), ["normal"] * 30, True), by="ada")
    offered = [one.alarm for one in work.queue.offered("pump")]
    rows = without_card([alarm.row for alarm in offered])
    now = work.ledger.live_model("pump").scores(rows)
    assert_allclose([alarm.now.score for alarm in offered], now)
    assert before != {alarm.id: alarm.now.score for alarm in offered}


def changed_sums(evidence):
    """The evidence with another number in one array of its sums, for each of them."""
    for i, sums in enumerate(evidence.sums):
        for part in fields(sums):
            for name, array in getattr(sums, part.name).items():
                arrays = {**getattr(sums, part.name), name: array + 1e-9}
                other = replace(sums, **{part.name: arrays})
                yield replace(evidence, sums=(*evidence.sums[:i], other, *evidence.sums[i + 1 :]))


@pytest.mark.parametrize("unlabelled", ["trusted", "doubted"])
def test_every_learnt_array_changes_the_digest_of_a_model(detector, unlabelled):
    if unlabelled == "doubted":
        X = np.random.default_rng(1).normal(size=(900, 2))
        y = np.repeat(["normal", "leak"], [860, 40])
        settings = {"bandwidth": 1.0, "n_landmarks": 60, "config": Config.fast()}
        detector = Detector(unlabelled="doubted", random_state=0, **settings).fit(X, y)
    model, more = detector.model_, 1e-9
    evidence, plan, score = model.evidence, model.plan, model.score
    (kernel, *terms), functions = plan.terms, score.functions
    solved = [name for name, function in functions.items() if "coef" in function.state()]
    others = ["likeness"] if unlabelled == "doubted" else ["later", "normality"]
    assert solved == ["residual", *others]
    landmarks = replace(kernel, landmarks=kernel.landmarks + 1)
    changed = [
        replace(model, score=replace(score, functions={**functions, name: other}))
        for name in solved
        for other in [replace(functions[name], coef=functions[name].coef + more)]
    ]
    changed += [replace(model, evidence=other) for other in changed_sums(evidence)]
    others = [
        *changed,
        replace(model, evidence=replace(evidence, weight=evidence.weight + more)),
        replace(model, plan=replace(plan, terms=(landmarks, *terms))),
    ]
    n_sums = sum(len(sums.shapes()) for sums in evidence.sums)
    assert len(others) == len(solved) + n_sums + 2
    # Matrix and moment, leaves of votes and of surprise; of likeness a matrix, of normality both.
    assert n_sums == 4 + (1 if unlabelled == "doubted" else 2)
    assert len({ledgers.digest(one) for one in [model, *others]}) == 1 + len(others)
    assert ledgers.digest(replace(model)) == ledgers.digest(model)


def test_the_queue_offers_alarms_with_doubtful_names_the_most_doubtful_first(work):
    answers = work.intake.take("pump", [*rows_at((9, 9), 5), *rows_at((0, 0), 5)])
    known = {one.id: one.kind_probability for one in answers if one.alarm}
    doubtful = [one for one in work.queue.offered("pump", limit=30) if "in doubt" in one.why]
    shown = [one.alarm.now.kind_probability for one in doubtful]
    assert shown
    assert shown == sorted(p for p in known.values() if p < 0.9)
    assert all(one.alarm.said.kind_probability == known[one.alarm.id] for one in doubtful)


def test_a_random_row_that_rose_to_an_alarm_was_not_missed(work):
    taken(work, rows_at((0, 0), 60))
    drawn = [a for a in work.alarms.inbox("pump", Filter(state="quiet")).alarms if a.drawn]
    with work.store.writing() as connection:
        table = schema.rows
        rose = table.update().where(table.c.id == drawn[0].id).values(now_alarm=True)
        connection.execute(rose)
    work.verdicts.give([drawn[0].id], "true", kind="leak", by="ada")
    assert work.queue.missed("pump").total == 0
    work.verdicts.give([drawn[1].id], "false alarm", by="ada")
    missed = work.queue.missed("pump")
    assert (missed.count, missed.total) == (0, 1)


def test_a_bad_row_has_an_error_of_its_own(work):
    good, bad = {"x": 0.0, "y": 0.0}, {"x": 0.0, "y": [1]}
    answers = work.intake.take("pump", [good, bad, good])
    assert [answer.error is None for answer in answers] == [True, False, True]
    assert answers[0].score == answers[2].score == work.intake.score("pump", [good])[0].score
    assert work.watching.status("pump").rows == 2


def test_quiet_rows_are_kept_up_to_a_number(work, monkeypatch):
    monkeypatch.setattr(intakes, "MOST_QUIET", 30)
    taken(work, rows_at((0, 0), 1_100))  # after each 1,000 some go
    assert work.alarms.inbox("pump", Filter(state="quiet")).total == 30


def test_a_filter_is_obeyed(work):
    numbers = taken(work, rows_at((0, 6), 3, card="c7") + rows_at((6, 0), 2, card="c8", spread=0.1))
    work.alarms.assign(numbers[:2], "ada")
    work.alarms.annotate(numbers[0], "look twice")

    def total(**wanted):
        return work.alarms.inbox("pump", Filter(**wanted)).total

    assert (total(), total(kind="leak"), total(entity="c7")) == (5, 2, 3)
    assert (total(assignee="ada"), total(assignee="")) == (2, 3)
    highest = [a.now.score for a in work.alarms.some(numbers)]
    assert total(min_score=sorted(highest)[2]) == sum(s >= sorted(highest)[2] for s in highest)
    assert (total(min_score=9.0), total(since=2e10)) == (0, 0)
    page = work.alarms.inbox("pump", Filter(order="score"), limit=2, offset=1)
    assert len(page.alarms) == 2
    assert page.alarms[0].now.score >= page.alarms[1].now.score
    assert work.alarms.get(numbers[0]).note == "look twice"
    assert work.alarms.kinds("pump") == {"unseen": 3, "leak": 2}
    with work.store.writing() as connection:
        table = schema.rows
        named = table.update().where(table.c.id == numbers[0]).values(now_kind="leak or spill")
        connection.execute(named)
    assert [total(kind=kind) for kind in ("leak", "spill", "lea")] == [3, 0, 0]
    assert work.alarms.kinds("pump") == {"leak": 3, "unseen": 2}


def test_a_kind_keeps_its_place_under_another_name(work):
    first, second = taken(work, rows_at((0, 6), 1) + rows_at((-6, 0), 1))
    work.verdicts.give([first], "true", kind="spill", by="ada")
    given = work.verdicts.give([second], "true", kind="frost", by="ada").version
    work.verdicts.rename("pump", "leak", "seal leak", by="ada")
    assert work.ledger.places("pump") == {"seal leak": 0, "spill": 1, "frost": 2}
    renamed = work.ledger.live("pump")
    work.verdicts.revert("pump", given.id, by="ada")
    assert work.ledger.places("pump") == {"leak": 0, "spill": 1, "frost": 2}
    work.verdicts.revert("pump", renamed.id, by="ada")
    assert work.ledger.places("pump") == {"seal leak": 0, "spill": 1, "frost": 2}
    work.verdicts.rename("pump", "frost", "spill", by="ada")  # merges them
    work.verdicts.revert("pump", renamed.id, by="ada")
    assert work.ledger.places("pump") == {"seal leak": 0, "spill": 1, "frost": 2}


def test_a_kind_keeps_its_place_when_others_come_and_go(work):
    numbers = taken(work, rows_at((0, 6), 3) + rows_at((-6, 0), 3) + rows_at((0, -6), 3))
    given = [
        work.verdicts.give(numbers[i : i + 1], "true", kind=kind, by="ada")
        for i, kind in ((0, "spill"), (3, "frost"), (6, "a new one"))
    ]
    assert work.ledger.places("pump") == {"leak": 0, "spill": 1, "frost": 2, "a new one": 3}
    work.verdicts.undo([given[0].verdicts[0].id], by="ada")
    assert work.ledger.places("pump") == {"leak": 0, "frost": 2, "a new one": 3}
    work.verdicts.undo([given[2].verdicts[0].id], by="ada")
    work.verdicts.give(numbers[6:7], "true", kind="drought", by="ada")
    assert work.ledger.places("pump") == {"leak": 0, "frost": 2, "drought": 3}
    assert work.ledger.settings("pump") == {"entity": "card"}
    work.ledger.set_settings("pump", entity="other")
    assert work.ledger.places("pump")["drought"] == 3


@pytest.mark.parametrize(
    ("column", "value", "there"),
    [
        ("y", "6", [0]),
        ("y", "6.0", [0]),
        ("y", "7.25", [1, 2]),
        ("shop", 'North "1"', [1]),
        ("shop", "missing", [0, 2]),
        ("here", "True", [2]),
        ("here", "false", [1]),
        ("card", "c1", [0, 1, 2]),
        ("none", "6", []),
    ],
)
def test_alarms_are_found_by_the_value_of_a_column(work, column, value, there):
    rows = [
        {"x": 0.0, "y": 6.0, "card": "c1"},
        {"x": 0.0, "y": 7.25, "card": "c1", "shop": 'North "1"', "here": False},
        {"x": 0.0, "y": 7.25, "card": "c1", "here": True},
    ]
    numbers = taken(work, rows)
    found = work.alarms.inbox("pump", Filter(column=column, value=value)).alarms
    assert {alarm.id for alarm in found} == {numbers[i] for i in there}


def test_a_column_with_a_quotation_mark_is_refused_as_a_filter(work):
    with pytest.raises(UserError, match="quotation mark"):
        work.alarms.inbox("pump", Filter(column='a"b', value="1"))


def test_all_that_is_kept_of_an_entity_is_its_history(work):
    numbers = taken(work, rows_at((0, 6), 3, card="c7") + rows_at((0, 0), 2, card="c7"))
    taken(work, rows_at((0, 6), 1, card="c8"))
    work.verdicts.give(numbers[:1], "true", kind="spill", by="ada")
    assert [alarm.id for alarm in work.alarms.history("pump", "c7")] == numbers[::-1]
    assert work.alarms.history("pump", "c9") == []


def test_alarms_that_look_alike_are_grouped_and_explained(work):
    numbers = taken(work, rows_at((0, 6), 4, card="c7") + rows_at((-6, 0), 2, card="c8"))
    assert work.alarms.get(numbers[0]).reasons is None
    groups = work.alarms.groups("pump")
    assert [sorted(a.id for a in group.alarms) for group in groups] == [numbers[:4], numbers[4:]]
    assert [group.columns[0] for group in groups] == ["y", "x"]
    assert {a.id for a in work.alarms.alike(numbers[0])} == set(numbers[1:4])
    assert {a.id for a in work.alarms.of_entity(numbers[4])} == {numbers[5]}
    assert [a.id for a in work.alarms.group("pump", numbers[5]).alarms] == [
        a.id for a in groups[1].alarms
    ]
    work.verdicts.give(numbers[4:5], "unsure", by="ada")
    with pytest.raises(Missing, match="is not in a group"):
        work.alarms.group("pump", numbers[5])
    told = work.alarms.explained(numbers[0]).reasons
    assert told["reasons"][0]["column"] == "y"
    assert work.alarms.get(numbers[0]).reasons == told
    near = work.alarms.normal_rows(numbers[0], n=3)
    assert near[0] == told["nearest_normal"]
    assert len(near) == 3


def test_groups_are_named_and_those_with_the_same_name_are_one(work):
    rows = rows_at((0, 6), 4) + rows_at((-6, 0), 3) + rows_at((0, -6), 2)
    numbers = taken(work, without_card(rows))

    def found():
        return {one.name: sorted(a.id for a in one.alarms) for one in work.alarms.groups("pump")}

    assert work.alarms.rename_groups("pump", numbers[:1], " spill ") == 1
    assert work.alarms.rename_groups("pump", numbers[7:], "drought") == 1
    named = {"spill": numbers[:4], None: numbers[4:7], "drought": numbers[7:]}
    assert found() == named
    new = taken(work, without_card(rows_at((0, 6), 3, rng=np.random.default_rng(3))))
    assert found()["spill"] == numbers[:4] + new
    assert work.alarms.rename_groups("pump", [new[0], numbers[5]], "flood") == 2
    assert found() == {"flood": numbers[:7] + new, "drought": numbers[7:]}
    assert work.alarms.group("pump", numbers[6]).name == "flood"
    assert work.folding.incident("pump", numbers[0]).alarms == numbers[:7] + new
    assert work.alarms.rename_groups("pump", numbers[:1], "") == 1
    assert sorted(found(), key=str) == [None, "drought"]
    assert len(work.alarms.groups("pump")) == 3
    with pytest.raises(Missing, match="None of these rows is in a group any more"):
        work.alarms.rename_groups("pump", [10_000], "spill")
    with pytest.raises(UserError, match="A group name must have 1 to 100"):
        work.alarms.rename_groups("pump", numbers, "x" * 101)


def test_a_lesson_is_seen_on_all_open_rows_at_once(work, monkeypatch):
    monkeypatch.setattr(alarms, "AT_ONCE", 7)  # rows are read in several steps
    monkeypatch.setattr(alarms, "PIECE", 7)  # and written
    numbers = taken(work, rows_at((0, 6), 60, rng=np.random.default_rng(8)))
    before = work.alarms.standing("pump")
    assert list(before) == numbers[::-1]
    said = work.verdicts.preview(numbers[:12], "true", kind="spill")
    assert said.n_looked_at == 48
    live = work.verdicts.give(numbers[:12], "true", kind="spill", by="ada").version
    after = work.alarms.standing("pump")
    assert list(after) == numbers[:11:-1]
    assert {one.version for one in after.values()} == {live.id}
    renamed = {change.alarm.id: change.then.kind for change in said.renamed}
    assert renamed == {n: s.kind for n, s in after.items() if s.kind != before[n].kind}
    anew = work.intake.score("pump", [work.alarms.get(number).row for number in after])
    assert [one.score for one in anew] == [one.score for one in after.values()]


def test_verdicts_given_while_rows_are_scored_again_score_the_rest(work, monkeypatch):
    """Pieces are written one by one, each by the newest version; what is judged stays as it was."""
    monkeypatch.setattr(alarms, "PIECE", 4)
    numbers = taken(work, rows_at((0, 8), 12))  # the newest are scored first
    before = work.alarms.get(numbers[1]).now
    first = work.verdicts.give(numbers[:1], "false alarm", by="ada").version.id
    later, scored = [], []
    judge = Model.judge

    def and_then_a_verdict(model, rows, **options):
        scored.append(len(rows))
        if len(scored) == 1:
            given = work.verdicts.give(numbers[1:2], "true", kind="odd", by="ada")
            later.append(given.version.id)
        return judge(model, rows, **options)

    monkeypatch.setattr(Model, "judge", and_then_a_verdict)
    work.alarms.refresh("pump")
    versions = [work.alarms.get(number).now.version for number in numbers[2:]]
    assert versions == [*later] * 6 + [first] * 4
    assert work.alarms.get(numbers[1]).now == before
    assert {a.now.version for a in work.alarms.inbox("pump").alarms} == {*later}
    assert scored == [4, 1, 4, 3, 4]  # of 12 and 11 rows, and the one that was judged meanwhile


def test_rows_do_not_wait_until_a_new_version_can_name_them(work, monkeypatch):
    """The verdict does: trees are grown before the version is live."""
    work.verdicts.give(taken(work, rows_at((6, 0), 3)), "true", kind="leak", by="ada")
    monkeypatch.setattr(Judges, "of", None)
    assert [one.kind for one in work.intake.take("pump", rows_at((6, 0), 3))] == ["leak"] * 3


def test_a_kind_is_renamed_or_merged_and_verdicts_are_still_undone(work, url):
    numbers = taken(work, rows_at((0, 6), 20, rng=np.random.default_rng(8)))
    work.verdicts.give(numbers[:12], "true", kind="spil", by="ada")
    given = work.verdicts.give(numbers[12:14], "true", kind="spil", by="ada").verdicts
    before = work.alarms.kinds("pump")
    assert before["spil"] > 0
    version = work.verdicts.rename("pump", "spil", "spill", by="bob")
    assert (version.operation, version.note) == ("rename", "spil is now spill")
    assert set(work.ledger.places("pump")) == {"leak", "spill"}
    assert work.alarms.kinds("pump") == {"spill": before.pop("spil"), **before}
    assert len(work.verdicts.latest("pump", Reviewed(kind="spill"))) == 14  # given as "spil"
    work.verdicts.rename("pump", "spill", "leak", by="bob")  # both become one
    assert work.verdicts.renamed("pump") == {"spil": "leak", "spill": "leak"}
    assert work.verdicts.counted("pump", Reviewed(kind="leak")) == {"ada": 14}
    assert set(work.ledger.places("pump")) == {"leak"}
    work.verdicts.undo([verdict.id for verdict in given], by="ada")
    assert work.ledger.live_model("pump").n_learnt[1] == 40 + 12
    assert work.ledger.replay("pump").same_bits
    other = Workspace(url)
    live = work.ledger.live("pump")
    assert ledgers.digest(other.ledger.model(live.id)) == live.digest
    other.close()
    purged = work.purging.purge("pump", "c1", by="ada")
    assert purged.rows == 20
    assert work.ledger.live_model("pump").n_learnt[1] == 40
    for wrong in ("normal", "a or b", "", "Leak"):
        with pytest.raises(UserError):
            work.verdicts.rename("pump", "leak" if wrong != "Leak" else "gone", wrong, by="bob")


def test_rows_that_drift_raise_the_banner_and_a_new_version_begins_anew(work):
    taken(work, rows_at((0, 0), 300, rng=np.random.default_rng(5), spread=1))
    assert work.watching.status("pump").banner is None
    before = time.time()
    taken(work, rows_at((1.6, 0), 500, rng=np.random.default_rng(6), spread=1))
    status = work.watching.status("pump")
    assert 300 < status.broken_at < 800
    assert "no longer look like the rows learnt" in status.banner
    assert (status.evidence, status.martingale >= 100) == ("strong", True)
    assert before <= status.drift_since <= time.time()
    assert status.shifts[0][0] == "x"
    assert re.fullmatch(r"higher, mean [\d.]+ \(was -?[\d.]+\)", status.changes["x"])
    assert re.fullmatch(r"the last \d{3} rows without an alarm", status.compared)
    assert sum(minute.rows for minute in status.per_minute) == status.rows == 800
    work.ledger.learn("pump", Lesson(rows_at((0, 5), 1), ["spill"], True), by="ada")
    anew = work.watching.status("pump")
    assert (anew.broken_at, anew.drift_since, anew.evidence) == (None, None, None)


def test_many_anomalies_are_no_drift_and_very_many_are_doubted(work):
    rng = np.random.default_rng(5)
    for _ in range(10):
        taken(work, rows_at((0, 0), 85, rng=rng, spread=1) + rows_at((0, 7), 15, rng=rng))
    status = work.watching.status("pump")
    assert status.too_many
    assert (status.banner, status.drift_since, status.broken_at) == (None, None, None)
    assert status.evidence in ("none", "weak")
    assert "Rows without an alarm show no evidence of change, so" in status.note
    taken(work, rows_at((0, 7), 400, rng=rng))
    status = work.watching.status("pump")
    assert "They can hardly all be anomalies" in status.advice
    assert "of the last" in status.banner


def test_a_column_that_has_moved_is_named_next_to_the_scores(work):
    taken(work, rows_at((0, 0), 300, rng=np.random.default_rng(5), spread=1))
    status = replace(work.watching.status("pump"), shifts=[("x", 5.2), ("y", -1.0)], far=4.9)
    note = "The scores of rows without an alarm have not changed, but x has moved: look at it."
    assert watching._advice(status, None) == {"note": note}
    recent = Recent(rows=1000, alarms=90, too_many=True, far=4.9, moved=())
    assert watching._advice(status, recent)["note"].endswith(note)


def test_an_episode_ends_after_many_rows_unless_rows_have_changed(work, monkeypatch):
    monkeypatch.setattr(watching, "MOST_WATCHED", 200)

    def come(centre, seed):
        rng = np.random.default_rng(seed)
        for _ in range(5):
            taken(work, rows_at(centre, 100, rng=rng, spread=1))
        ((_, monitor),) = work.watching._monitors.values()
        return monitor.watched

    assert come((0, 0), 5).rows == 100  # the third episode has begun
    changed = come((2, 0), 6)
    assert changed.broken_at is not None
    assert come((2, 0), 7) == changed
    assert work.watching.status("pump").broken_at == changed.broken_at


def test_a_shadow_scores_and_raises_no_alarm(work):
    first = work.ledger.live("pump")
    lesson = Lesson(rows_at((0, 6), 5), ["normal"] * 5, True)
    work.ledger.learn("pump", lesson, by="ada")
    work.ledger.set_shadow("pump", first.id)
    (number,) = taken(work, [{"x": -6.0, "y": -6.0}])
    alarm = work.alarms.get(number)
    assert alarm.shadow_score == work.intake.score("pump", [alarm.row], version=first.id)[0].score
    assert alarm.said.version != first.id
    with pytest.raises(Missing):
        work.ledger.set_shadow("pump", 10_000)


def test_a_purge_leaves_nothing_of_an_entity(work, url, tmp_path):
    secret = {"x": 0.25, "y": 6.5, "card": "SECRET-4711"}
    start = work.ledger.live("pump")
    numbers = taken(work, [secret, *rows_at((0, 6), 2, card="c8")])
    work.verdicts.give(numbers[1:], "true", kind="spill", by="ada")
    probe = rows_at((0, 0), 20)
    expected = scores(work, probe)
    work.verdicts.give(numbers[:1], "true", kind="spill", by="ada")
    with_it = work.ledger.live("pump")
    assert work.ledger.purged("pump") == set()
    purged = work.purging.purge("pump", "SECRET-4711", by="ada")
    assert (purged.rows, purged.lessons) == (1, 1)
    np.testing.assert_allclose(scores(work, probe), expected, atol=1e-9)
    with pytest.raises(Missing):
        work.alarms.get(numbers[0])
    with pytest.raises(Missing, match="purged"):
        work.ledger.model(with_it.id)
    gone = work.ledger.purged("pump")
    assert with_it.id in gone
    for version in work.ledger.versions("pump"):
        if version.id not in gone:
            assert work.ledger.model(version.id).n_learnt[0] > 0
    assert work.ledger.model(start.id).kinds == ("leak",)
    assert work.ledger.replay("pump").same_bits
    work.close()
    for file in tmp_path.iterdir() if url.startswith("sqlite") else ():
        assert b"SECRET-4711" not in file.read_bytes()


def test_a_purge_of_what_was_taken_back_leaves_the_model_as_it_was(work):
    secret = {"x": 0.25, "y": 6.5, "card": "SECRET-4711"}
    numbers = taken(work, [secret, *rows_at((0, 6), 2, card="c8")])
    (given,) = work.verdicts.give(numbers[:1], "true", kind="spill", by="ada").verdicts
    work.verdicts.give(numbers[1:], "true", kind="spill", by="ada")
    work.verdicts.undo([given.id], by="ada")  # it is subtracted: both stay in the log
    probe = rows_at((0, 0), 20)
    expected = scores(work, probe)
    assert work.purging.purge("pump", "SECRET-4711", by="ada").lessons == 2
    np.testing.assert_array_equal(scores(work, probe), expected)
    assert work.ledger.replay("pump").same_bits
    assert work.ledger.live("pump").id not in work.ledger.purged("pump")


def test_people_have_roles_and_tokens_that_can_be_voided(work):
    token = work.people.issue("ada", "judge", by="root")
    person = work.people.check(token)
    assert person.may("view")
    assert person.may("judge")
    assert not person.may("admin")
    again = work.people.issue("ada", "view", by="root")
    assert work.people.check(token) is None
    assert work.people.check(again).role == "view"
    work.people.revoke("ada", by="root")
    assert work.people.check(again) is None
    assert next(entry.action for entry in work.people.audit()) == "token revoked"
    with work.store.reading() as connection:
        kept = str(connection.execute(select(schema.people)).all())
    assert token not in kept
    with pytest.raises(UserError, match="role"):
        work.people.issue("eve", "root", by="eve")


def test_the_last_admin_stays_one(work):
    token = work.people.issue("ada", "admin", by="root")
    work.people.issue("bob", "judge", by="ada")
    old = work.people.issue("carl", "admin", by="ada", days=1)
    with work.store.writing() as connection:
        mine = schema.people.c.name == "carl"
        connection.execute(schema.people.update().where(mine).values(expires=time.time() - 1))
    assert work.people.check(old) is None
    for take in (
        lambda: work.people.issue("ada", "view", by="ada"),
        lambda: work.people.issue(" ada", "judge", by="eqsep serve token"),
        lambda: work.people.revoke("ada", by="eqsep serve token"),
    ):
        with pytest.raises(UserError, match="ada is the last admin"):
            take()
    assert work.people.check(token).role == "admin"
    renewed = work.people.issue("ada", "admin", by="ada")
    assert work.people.check(renewed).role == "admin"
    work.people.issue("bob", "admin", by="ada")
    work.people.issue("ada", "view", by="bob")
    assert work.people.holder("ada").role == "view"


def test_a_model_that_cannot_be_served_is_refused(work, detector):
    with pytest.raises(UserError, match="already"):
        work.ledger.add("pump", detector, by="ada")
    with pytest.raises(UserError, match="fitted Detector"):
        work.ledger.add("other", Detector(), by="ada")
    with pytest.raises(UserError, match="contain a slash"):
        work.ledger.add("a/b", detector, by="ada")
    with pytest.raises(Missing, match="does not exist"):
        work.intake.take("none", [{"x": 1.0}])
    assert replace(work.ledger.live("pump")).operation == "add"


def test_strong_evidence_of_drift_stays_strong():
    assert watching.evidence_of(Watched(martingale=20.0)) == "moderate"
    assert watching.evidence_of(Watched(martingale=0.4, broken_at=9)) == "strong"
