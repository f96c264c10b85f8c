"""Bars on a terminal, lines in a log: how far a command is, and the time left."""

import gzip
import io
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
import typer
from invoking import CliRunner
from pyarrow import parquet
from workbooks import workbook

from eqsep import Detector
from eqsep.cli import app, console
from eqsep.cli import fit as fitting
from eqsep.cli.console import Job, progress
from eqsep.datasets.catalogue import DATA_FILES
from eqsep.detector import Config
from eqsep.evaluation import Learning, Schedule, backtest, leave_one_kind_out
from eqsep.io import read_table
from eqsep.progress import expect, phase, reported_to, reporter, steps
from eqsep.tables.batches import prefetched
from paper.__main__ import app as reproduce


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self):
        return True


class Recorder:
    """What the library reports: phases, and of each what is expected and done."""

    def __init__(self):
        self.phases = []

    def phase(self, name, total=None, unit=""):
        self.phases.append({"name": name, "total": total, "unit": unit, "done": 0})

    def expect(self, total, unit):
        self.phases[-1] |= {"total": total, "unit": unit, "done": 0}

    def advance(self, n, unit):
        if unit == self.phases[-1]["unit"]:
            self.phases[-1]["done"] += n

    @property
    def names(self):
        return [one["name"] for one in self.phases]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def recorder():
    recorder = Recorder()
    with reported_to(recorder):
        recorder.phase("all")
        yield recorder


@pytest.fixture
def quick_log(monkeypatch):
    """A log that looks at the clock all the time."""

    class Impatient(threading.Event):
        def wait(self, timeout=None):  # noqa: ARG002
            return super().wait(0.001)

    monkeypatch.setattr(console, "Event", Impatient)


@pytest.fixture
def jobs(monkeypatch):
    """The jobs of the commands that a test runs, and the phases of each."""
    made = []

    class Kept(Job):
        def __init__(self, *words, **options):
            self.ended, self.units = [], []
            super().__init__(*words, **options)
            made.append(self)

        def phase(self, name, total=None, unit=""):
            if hasattr(self, "name"):
                self.ended.append((self.name, self.share))
                self.units.append(self.unit)
            super().phase(name, total, unit)

    monkeypatch.setattr(console, "Job", Kept)
    return made


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A file of rows with labels, and a model of them."""
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    kind = np.repeat(["normal", "high", "low"], [900, 30, 30])
    shift = {"normal": 0.0, "high": 6.0, "low": -6.0}
    lines = [f"{rng.normal(shift[k]):.4f},{rng.normal():.4f},{i},{k}" for i, k in enumerate(kind)]
    rng.shuffle(lines)
    path = folder / "rows.csv"
    path.write_text("\n".join(["a,b,at,kind", *lines]) + "\n")
    words = ["fit", path, "--label", "kind", "--drop", "at", "--landmarks", "40"]
    assert command(*words, "--out", folder / "m.eqsep").exit_code == 0
    return path


def command(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@contextmanager
def on_terminal(monkeypatch):
    terminal = Terminal()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal)
        patched.setenv("TERM", "xterm")
        patched.setenv("COLUMNS", "120")
        yield terminal


def test_a_job_says_its_share_and_the_time_left(clock):
    job = Job("eqsep fit", "learning", clock=clock)
    assert job.line == "eqsep fit: learning"
    job.phase("learning", total=200)
    clock.now += 130
    job.advance(84)
    assert job.line == "eqsep fit: learning, 42 %, about 3 min left"
    job.advance(116)
    assert job.line == "eqsep fit: learning, 100 %"
    job.advance(50)
    assert job.share == 1


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.2, "1 s"), (40, "40 s"), (89, "89 s"), (100, "2 min"), (3600, "60 min"), (9000, "2.5 h")],
)
def test_the_time_left_in_words(clock, seconds, told):
    job = Job("eqsep fit", "learning", clock=clock)
    job.phase("learning", total=2)
    job.advance()
    clock.now += seconds
    assert job.line.endswith(f"50 %, about {told} left")


def test_each_phase_has_its_own_share_and_its_own_time(clock):
    job = Job("eqsep fit", "reading", clock=clock)
    job.expect(100, "bytes")
    clock.now += 500
    job.advance(100, "bytes")
    job.phase("learning", total=10, unit="rows")
    assert job.share == 0
    job.advance(100, "bytes")  # of another unit than is expected
    assert job.share == 0
    clock.now += 9
    job.advance(1, "rows")
    assert job.line == "eqsep fit: learning, 10 %, about 81 s left"


def test_without_a_total_what_is_noted_is_said_and_no_share(clock):
    job = Job("eqsep score", "scoring", clock=clock)
    job.note = "12,345 rows"
    job.advance(12_345, "rows")
    assert job.share is None
    assert job.line == "eqsep score: scoring, 12,345 rows"


@pytest.mark.usefixtures("quick_log")
def test_a_log_has_one_line_a_minute(clock, capsys):
    with progress("eqsep fit", "learning", clock=clock) as job:
        job.phase("learning", total=100)
        for _ in range(18):  # three minutes
            clock.now += 10
            job.advance(2)
            time.sleep(0.01)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "eqsep fit: learning, 12 %, about 7 min left",
        "eqsep fit: learning, 24 %, about 6 min left",
        "eqsep fit: learning, 36 %, about 5 min left",
    ]


@pytest.mark.usefixtures("quick_log")
def test_a_log_has_a_line_even_where_nothing_advances(clock, capsys):
    with progress("eqsep fit", "calibrating", clock=clock):
        clock.now += 61
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "eqsep fit: calibrating\n")


@pytest.mark.usefixtures("quick_log")
def test_a_short_job_says_nothing_in_a_log(clock, capsys):
    with progress("eqsep fit", "reading", clock=clock) as job:
        job.phase("learning", total=100)
        clock.now += 59
        job.advance(100)
        time.sleep(0.02)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("quick_log")
def test_a_log_ends_with_an_error():
    before = threading.active_count()
    with pytest.raises(ValueError, match="enough"), progress("eqsep fit", "reading"):
        raise ValueError("enough")
    assert threading.active_count() == before


def test_a_bar_reaches_the_end_and_has_the_time_left(clock, monkeypatch, capsys):
    with on_terminal(monkeypatch) as terminal:
        with progress("eqsep fit", "learning", clock=clock) as job:
            job.phase("learning", total=100)
            clock.now += 60
            job.advance(25)
            time.sleep(0.3)
            job.advance(75)
        shown = terminal.getvalue()
    assert "learning" in shown
    assert "━" in shown
    assert "25 %, about 3 min left" in shown
    assert "100 %" in shown
    assert "0:01:00" in shown
    assert shown.rstrip().endswith("\x1b[2K"), "it is gone in the end"
    assert capsys.readouterr() == ("", "")


def test_results_on_a_terminal_are_not_mixed_with_a_bar(monkeypatch):
    with on_terminal(monkeypatch) as terminal:
        monkeypatch.setattr(sys, "stdout", Terminal())
        with progress("eqsep explain", "explaining", prints=True):
            time.sleep(0.15)
        assert terminal.getvalue() == ""


def test_what_is_printed_meanwhile_goes_to_standard_output(monkeypatch, capsys):
    with on_terminal(monkeypatch) as terminal, progress("eqsep score", "scoring"):
        typer.echo("a row")
    assert capsys.readouterr().out == "a row\n"
    assert "a row" not in terminal.getvalue()


def test_nobody_need_listen():
    phase("learning", total=3, unit="rows")
    expect(3, "rows")
    reporter("rows")(1)
    with steps(3, "fits") as report:
        report(1)


def test_work_within_steps_reports_no_phases_of_its_own(recorder):
    with steps(2, "fits") as report:
        phase("learning")
        report(1)
    phase("end")
    assert recorder.phases[0] == {"name": "all", "total": 2, "unit": "fits", "done": 1}
    assert recorder.names == ["all", "end"]


def test_a_thread_that_reads_ahead_reports_too(recorder):
    expect(3, "bytes")

    def read():
        for _ in range(3):
            reporter("bytes")(1)
            yield None

    list(prefetched(read()))
    assert recorder.phases[0]["done"] == 3


def test_a_fit_reports_its_phases_in_order(recorder):
    X = np.random.default_rng(0).normal(size=(3000, 2))
    Detector(n_landmarks=40, random_state=0).fit(X)
    assert recorder.names == ["all", "planning", "learning", "calibrating"]
    learning = recorder.phases[2]
    assert learning == {"name": "learning", "total": 3000, "unit": "rows", "done": 3000}


def test_a_fit_to_a_stream_reports_its_phases_in_order(recorder):
    X = np.random.default_rng(0).normal(size=(3000, 2))
    config = Config(max_sample=1000)
    Detector(n_landmarks=40, random_state=0, config=config).fit(np.array_split(X, 3))
    assert recorder.names == ["all", "reading", "planning", "learning", "calibrating"]


def test_periods_and_fits_are_counted(recorder):
    rng = np.random.default_rng(0)
    X, order = rng.normal(size=(600, 2)), np.arange(600)
    kind = np.where(order % 20 == 0, np.where(order % 40 == 0, "a", "b"), "normal")
    detector = Detector(n_landmarks=40, false_alarm_rate=0.1, random_state=0)
    leave_one_kind_out(detector, X, kind, random_state=0)
    assert recorder.phases == [{"name": "all", "total": 2, "unit": "fits", "done": 2}]
    schedule = Schedule(every="100", delay="100", first=100)
    backtest({"eqsep": Learning(detector)}, X, kind, time=order, schedule=schedule)
    assert recorder.phases == [{"name": "all", "total": 6, "unit": "periods", "done": 6}]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet", "arrow", "xlsx"])
def test_reading_counts_bytes_up_to_the_size_of_the_file(recorder, tmp_path, rows, ending):
    table, path = read_table(rows), tmp_path / f"rows.{ending}"
    if ending == "csv.gz":
        path.write_bytes(gzip.compress(rows.read_bytes()))
    elif ending == "csv":
        path.write_bytes(rows.read_bytes())
    elif ending == "jsonl":
        path.write_text("".join(f'{{"a": {i}}}\n' for i in range(20_000)))
    elif ending == "xlsx":
        workbook(path, data=[["a", "b"], [1, 2], [3, 4]])
    elif ending == "parquet":
        parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    read_table(path)
    size = path.stat().st_size
    assert recorder.phases == [{"name": "all", "total": size, "unit": "bytes", "done": size}]


def test_fit_shows_its_phases_in_order(jobs, rows, tmp_path):
    words = ["fit", rows, "--label", "kind", "--drop", "at", "--landmarks", "40"]
    result = command(*words, "--out", tmp_path / "m.eqsep")
    assert result.exit_code == 0
    (job,) = jobs
    assert job.command == "eqsep fit"
    assert job.ended == [("reading", 1), ("planning", None), ("learning", 1), ("calibrating", None)]
    assert job.name == "writing"


def test_fit_to_large_files_reads_them_twice(jobs, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "LARGE", 1000)
    monkeypatch.setattr("eqsep.tables.batches.SAMPLE", 300)
    words = ["fit", rows, "--label", "kind", "--drop", "at", "--landmarks", "40"]
    result = command(*words, "--out", tmp_path / "m.eqsep")
    assert result.exit_code == 0
    (job,) = jobs
    names = ["reading", "planning", "learning", "calibrating"]
    assert [name for name, _ in job.ended] == names
    assert [share for name, share in job.ended if name in ("reading", "learning")] == [1, 1]
    assert job.units == ["bytes", "", "bytes", ""]


def test_score_counts_the_bytes_of_its_files(jobs, rows, tmp_path):
    model, twice = rows.parent / "m.eqsep", [rows, rows]
    assert command("score", model, *twice, "--out", tmp_path / "s.csv").exit_code == 0
    (job,) = jobs
    size = 2 * rows.stat().st_size
    assert (job.command, job.unit, job.done, job.total) == ("eqsep score", "bytes", size, size)
    assert job.note == "1,920 rows"


def test_score_of_standard_input_counts_rows_alone(jobs, rows):
    words = ["score", str(rows.parent / "m.eqsep"), "-"]
    assert CliRunner().invoke(app, words, input=rows.read_bytes()).exit_code == 0
    (job,) = jobs
    assert job.share is None
    assert job.line == "eqsep score: scoring, 960 rows"


def test_a_selection_reads_all_rows_once_before(jobs, rows, tmp_path):
    model = rows.parent / "m.eqsep"
    words = ["score", model, rows, "--fdr", "0.2", "--out", tmp_path / "s.csv"]
    assert command(*words).exit_code == 0
    (job,) = jobs
    assert job.ended == [("selecting", 1)]
    assert (job.name, job.share) == ("scoring", 1)


def test_explain_reads_and_then_explains(jobs, rows):
    assert command("explain", rows.parent / "m.eqsep", rows, "--most", "5").exit_code == 0
    assert [(job.name, job.share) for job in jobs] == [("scoring", 1), ("explaining", 1)]


def test_evaluate_counts_the_fits_of_each_method(jobs, rows):
    words = ["evaluate", rows, "--label", "kind", "--drop", "at", "--landmarks", "40"]
    assert command(*words, "--against", "random-forest").exit_code == 0
    (job,) = jobs
    methods = [("eqsep (1 of 2)", 1), ("random-forest (2 of 2)", 1)]
    assert job.ended == [("reading", 1), *methods, ("names", 1)]
    assert job.name == "intervals"


def test_backtest_counts_periods(jobs, rows):
    words = ["backtest", rows, "--label", "kind", "--time", "at", "--landmarks", "40"]
    words += ["--every", "200", "--delay", "200", "--first", "150", "--against", ""]
    assert command(*words).exit_code == 0
    (job,) = jobs
    assert job.ended == [("reading", 1)]
    assert (job.name, job.done, job.unit) == ("playing back", job.total, "periods")


@pytest.mark.parametrize("words", [["learn", "--again"], ["watch"]])
def test_other_commands_that_read_files_count_bytes(jobs, rows, tmp_path, words):
    name, *options = words
    if name == "learn":
        options += ["--label", "kind", "--out", tmp_path / "more.eqsep"]
    assert command(name, rows.parent / "m.eqsep", rows, *options).exit_code == 0
    (job,) = jobs
    shares = [*job.ended, (job.name, job.share)]
    assert shares[0][1] == 1
    assert job.command == f"eqsep {name}"


def test_the_paper_counts_its_cells(jobs, tmp_path):
    words = ["bumps", "--quick", "--processes", "1", "--out", str(tmp_path)]
    assert CliRunner().invoke(reproduce, words).exit_code == 0
    (job,) = jobs
    assert job.share == pytest.approx(1)
    assert job.line == "python -m paper: measuring, 4 of 4 cells, 100 %"


def test_a_download_counts_its_bytes(jobs, tmp_path, monkeypatch):
    def fetch(name, *, data_home, progress):
        for done in (40, 100):
            progress(DATA_FILES[0], done, 100)
        return [data_home / name]

    monkeypatch.setattr("eqsep.cli.data.fetch_data", fetch)
    assert command("data", "fetch", "thyroid", "--data-home", tmp_path).exit_code == 0
    (job,) = jobs
    assert job.line == f"eqsep data fetch: {DATA_FILES[0].name}, 100 %"


def test_a_command_in_a_log_says_nothing_of_its_progress(rows, tmp_path):
    model = rows.parent / "m.eqsep"
    result = command("score", model, rows, "--out", tmp_path / "s.csv")
    assert "scoring" not in result.output
