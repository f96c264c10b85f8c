"""The ratchet: which figures count as fallen, what accepting one changes, and the exit status."""

from importlib import import_module
from itertools import count, cycle
from pathlib import Path

import pyarrow as pa
import pytest

BENCH = Path(__file__).parents[1] / "bench"
FIT, THYROID = "fit 1,000 rows", "one kind seen, ann-thyroid"


@pytest.fixture
def module(monkeypatch):
    """A function that imports a module of the benchmark as its scripts do: from their folder."""
    monkeypatch.syspath_prepend(BENCH)
    return import_module


@pytest.fixture
def record(module):
    """A function that makes a record of one time or one precision."""

    def make(commit="a", *, machine="fast", accepted=(), **figures):
        return module("history").Record(
            commit=commit, at="", machine=machine, accepted=dict(accepted), **figures
        )

    return make


@pytest.fixture
def ratchet(module, monkeypatch, tmp_path):
    """A function that runs the ratchet with one made-up time and precision: its exit status."""
    script = module("ratchet")

    def run(*options, time=2.0, precision=0.9):
        times = cycle(time if isinstance(time, list) else [time])
        monkeypatch.setattr(script, "TIMES", {"fit": lambda _: [(FIT, next(times))]})
        monkeypatch.setattr(script, "PRECISION", {"one_kind": lambda _: [(THYROID, precision)]})
        return script.main(["--history", str(tmp_path), *options])

    for name in ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.setenv(name, "")  # the script sets them, and they are restored afterwards
    return run


def fallen(history, record, earlier):
    return [fall.name for fall in history.falls(record, earlier)]


@pytest.mark.parametrize(("now", "fell"), [(1.0, False), (2.19, False), (2.21, True)])
def test_a_time_falls_by_more_than_a_tenth_of_the_best_record(module, record, now, fell):
    earlier = [record("a", times={FIT: 2.0}), record("b", times={FIT: 2.1})]
    (one,) = module("history").compare(record(times={FIT: now}), earlier)
    assert (one.best, one.commit, one.has_fallen) == (2.0, "a", fell)


@pytest.mark.parametrize(("now", "fell"), [(0.95, False), (0.896, False), (0.894, True)])
def test_a_precision_falls_by_more_than_5_thousandths(module, record, now, fell):
    earlier = [record("a", precision={THYROID: 0.9}), record("b", precision={THYROID: 0.8})]
    (one,) = module("history").compare(record(precision={THYROID: now}), earlier)
    assert (one.best, one.commit, one.has_fallen) == (0.9, "a", fell)


def test_a_creeping_fall_is_noticed(module, record):
    """Each record is less than a tenth above the one before."""
    earlier = [record(times={FIT: 2.0 * 1.04**i}) for i in range(3)]
    assert fallen(module("history"), record(times={FIT: 2.0 * 1.04**3}), earlier) == [FIT]


def test_times_are_compared_on_one_machine_and_precision_on_all(module, record):
    earlier = [record(times={FIT: 2.0}, precision={THYROID: 0.9})]
    now = record(machine="slow", times={FIT: 9.0}, precision={THYROID: 0.8})
    assert fallen(module("history"), now, earlier) == [THYROID]


def test_a_new_figure_has_not_fallen(module, record):
    (one,) = module("history").compare(record(times={FIT: 2.0}), [record(times={"read": 1.0})])
    assert (one.best, one.has_fallen) == (None, False)


def test_later_records_are_compared_with_those_from_the_accepted_fall_on(module, record):
    history = module("history")
    best, meant = record(times={FIT: 2.0}), record(times={FIT: 3.0})
    assert fallen(history, meant, [best]) == [FIT]
    meant = history.accept(meant, [best], f"{FIT}: a term more: worth it")
    assert meant.accepted == {FIT: "a term more: worth it"}
    assert fallen(history, meant, [best]) == []
    assert fallen(history, record(times={FIT: 3.2}), [best, meant]) == []
    assert fallen(history, record(times={FIT: 3.4}), [best, meant]) == [FIT]


@pytest.mark.parametrize("text", [FIT, f"{FIT}: ", "read: it had to be", f"{THYROID}: not fallen"])
def test_only_a_fall_is_accepted_and_only_with_a_reason(module, record, text):
    earlier = [record(times={FIT: 2.0}, precision={THYROID: 0.9})]
    now = record(times={FIT: 3.0}, precision={THYROID: 0.9})
    with pytest.raises(ValueError, match=rf"Its falls: {FIT}\."):
        module("history").accept(now, earlier, text)


def test_records_are_read_as_they_were_written_oldest_first(module, record, tmp_path):
    history = module("history")
    records = [
        record("b", times={FIT: 2.0}),
        record("a", precision={THYROID: 0.9}, accepted={THYROID: "fewer trees"}),
    ]
    for i, one in enumerate(records):
        history.write(one, tmp_path / "new" / f"{i:04}-{one.commit}.json")
    assert [*history.read(tmp_path / "new").values()] == records


def test_an_injected_fall_exits_with_1_until_it_is_accepted(ratchet, capsys):
    assert ratchet() == 0
    assert ratchet(time=3.0, precision=0.7) == 1
    *_, first, second, _ = capsys.readouterr().out.splitlines()
    assert first.split()[:5] == [*FIT.split(), "3", "2"]
    assert second.startswith(THYROID)
    assert ratchet("--accept", f"{FIT}: a term more") == 1
    assert ratchet("--accept", f"{THYROID}: fewer trees") == 0
    assert "accepted: fit 1,000 rows: a term more" in capsys.readouterr().out
    assert ratchet(time=3.1, precision=0.7) == 0


def test_every_run_leaves_a_record(ratchet, module, tmp_path):
    for time in (2.0, 3.0):
        ratchet(time=time)
    records = module("history").read(tmp_path)
    assert [path.name[:5] for path in records] == ["0001-", "0002-"]
    assert [one.times[FIT] for one in records.values()] == [2.0, 3.0]
    assert [one.precision for one in records.values()] == [{THYROID: 0.9}] * 2


@pytest.mark.parametrize(("times", "status"), [([3.0, 2.1], 0), ([3.0, 2.9, 2.8], 1)])
def test_a_time_that_fell_is_measured_again(ratchet, module, tmp_path, times, status):
    ratchet()
    assert ratchet(time=times) == status
    newest = [*module("history").read(tmp_path).values()][-1]
    assert newest.times[FIT] == min(times)


def test_parts_can_be_named(ratchet, module, tmp_path):
    assert ratchet("--only", "one_kind") == 0
    (only,) = module("history").read(tmp_path).values()
    assert (only.times, only.precision) == ({}, {THYROID: 0.9})


def test_a_part_without_its_data_is_skipped_with_a_message(module, capsys):
    def missing(_):
        yield "first table", 0.9
        raise FileNotFoundError("No second table in EQSEP_DATA.")

    parts = {"one_kind": missing, "promise": lambda _: [("promise", 1.0)]}
    figures = module("ratchet").figures_of(parts, None, [*parts])
    assert figures == {"one_kind": {"first table": 0.9}, "promise": {"promise": 1.0}}
    assert "skipped. No second table in EQSEP_DATA." in capsys.readouterr().out


def test_a_time_is_in_loops_before_and_after_it(module, monkeypatch):
    """A machine that becomes three times as slow for a while changes nothing, nor a hiccup."""
    ratchet, given = module("ratchet"), []
    slow, hiccup = [1, 1, 3, 3, 3, 1, 1], [1, 1, 1, 5, 1, 1, 1]
    monkeypatch.setattr(ratchet, "seconds_of_loop", lambda i: 0.1 * slow[i])

    def seconds(i):
        given.append(i)
        return 0.7 * slow[i] * hiccup[i]

    assert ratchet.in_loops(seconds, rounds=7) == pytest.approx(7.0)
    assert given == [0, 1, 2, 3, 4, 5, 6]


def test_a_clock_times_the_job_alone(module):
    ticks = count()
    seconds = module("ratchet").timed(lambda _: next(ticks), lambda: next(ticks))
    assert seconds(0) == 2


def test_made_up_rows_are_numbers_words_and_two_kinds(module):
    rows = module("ratchet").made_up_rows(400, 20)
    types = [str(field.type) for field in rows.table.schema]
    assert types == ["float"] * 16 + ["string"] * 4
    assert {*rows.kind} == {"normal", "high", "low"}
    assert rows.anomalies().num_rows == 20
    parts = [rows.at(0, 150), rows.at(150, 400)]
    assert pa.concat_tables(part.anomalies() for part in parts) == rows.anomalies()
