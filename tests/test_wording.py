"""The command's words: options in place of parameters, and nothing that only Python understands."""

import io
import re
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from invoking import all_commands

from eqsep import Detector, Monitor, checks
from eqsep.checks import check_dependence, warn_of
from eqsep.cli.console import HINTS, OPTIONS, in_command, option, see_section
from eqsep.cli.inputs import InputSpec
from eqsep.cli.project import KEYS, Project, current_project
from eqsep.datasets.home import data_file
from eqsep.detector import Config
from eqsep.detector.calibration import check_selection
from eqsep.detector.plan import LabelScheme
from eqsep.detector.runs import Windows
from eqsep.distributed.cluster import check_no_windows
from eqsep.distributed.units import WorkerDiedError
from eqsep.errors import EqsepWarning, Message, ParameterError, UserError
from eqsep.evaluation import Learning, Schedule, backtest
from eqsep.evaluation.assessment import Review
from eqsep.io.dialect import Layout
from eqsep.io.files import mixed_columns
from eqsep.io.inference import understood
from eqsep.io.text import check_once, not_divided
from eqsep.labels import read_labels, read_row_labels
from eqsep.monitor import OnlineSelector
from eqsep.tables import TableEncoder
from eqsep.tables.batches import tables
from eqsep.tables.reading import read_table

PYTHON = re.compile(r"\b[a-z_]+=|\bNone\b|\bX\b|\by\b|\w\(|\b[a-z]+_[a-z]+\b|eqsep\.")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 2))
RUNS = np.repeat(np.arange(30), 30)


def detector(**changed):
    return Detector(n_landmarks=30, bandwidth=0.5, random_state=0, **changed)


def frame(**columns):
    return pd.DataFrame(columns)


def table(**columns):
    return read_table(frame(**columns), name="test")


def mixed(columns):
    (found,) = mixed_columns(pa.table(columns))
    return UserError(**found.words())


def two_mixed():
    texts = [*map(str, range(60)), "M"]
    return InputSpec(["t.csv"], Layout()).typed(pa.table({"A": texts, "B": texts}))


def counting():
    return checks.counting_columns(table(id=np.arange(40)))


def dates():
    days = frame(day=pd.date_range("2025-01-01", periods=40, freq="D"))
    return checks.check_dates(TableEncoder().fit(days).encoder_, lambda *_: 1.0, rate=0.01)


def leak():
    y = np.repeat([0, 1], [20, 20])
    return checks.leaking_columns(table(high=y * 9.0), y)


def few_above(*, doubted=False, thresholds=()):
    options = {"rate": 0.01, "n_columns": 4, "doubted": doubted, "thresholds": dict(thresholds)}
    return checks.check_threshold(0.9, {checks.LEARNT: np.zeros(10)}, **options)


def without_labels(y, normal=None):
    labels = read_row_labels(y, n_rows=len(y), normal=normal)
    settings = {"normal": normal, "unlabelled": "auto", "rate": 0.01, "config": Config()}
    LabelScheme.choose(labels, np.ones(len(y), dtype=int), given=True, **settings)


def ids():
    return [f"id {i}" for i in range(40)]


def drifting():
    rows = RNG.normal(size=(1500, 3))
    rows[1050:, 1] += 2
    return detector(false_alarm_rate=0.05).fit(rows, time=np.arange(1500))


def numbered():
    rows = frame(a=RNG.normal(size=1500), day=np.arange(1500) // 24)
    return detector(false_alarm_rate=0.05).fit(rows, time=np.arange(1500))


def sensors():
    return read_table(np.cumsum(RNG.normal(size=(400, 2)), axis=0), name="test")


def known():
    return read_row_labels(["normal", "leak"], n_rows=2, normal=None)


def late_labels():
    time = pd.date_range("2025-01-01", periods=90, freq="h")
    contenders = {"eqsep": Learning(detector())}
    backtest(contenders, X[:90], np.full(90, "normal"), time=time, schedule=Schedule(first=500))


def by_run(**changed):
    return detector(**changed).fit(X, groups=RUNS)


def in_time(**given):
    return detector(false_alarm_rate=0.1).fit(X, time=np.arange(900), **given)


def of_words():
    understood(pa.table({"LAND": ["EU", "NA"], "SIZE": ["big", "none"]}), Layout())


SAID = {  # how each topic comes about, and words of the command on it
    "CountingColumnWarning": (counting, "leave it out: --drop 'id'."),
    "DateColumnWarning": (dates, "leave it out: --drop 'day'."),
    "missing_names": (of_words, "pass --categorical 'LAND'."),
    "none_is_name": (of_words, "pass --missing 'SIZE=none'."),
    "DecimalCommaWarning": (
        lambda: checks.decimal_commas(table(a=["1,5"] * 40)),
        "say so: --categorical 'a'.",
    ),
    "DroppedColumnWarning": (
        lambda: TableEncoder().fit(frame(a=ids(), b=range(40))),
        "Columns were dropped: 'a': 100% of its values occur once, as ids do. If these are",
    ),
    "LeakingColumnWarning": (leak, "leave it out: --drop 'high'."),
    "NewDateWarning": (
        lambda: checks.check_beyond(Counter({("day", "later date", "2025"): 9}), n_rows=9),
        "without the column (--drop 'day').",
    ),
    "UnreadableError": (
        lambda: table(a=["x"]).columns[0].numbers("number"),
        "leave it empty where it is missing.",
    ),
    "missing_columns": (
        lambda: TableEncoder().fit(frame(a=[1, 2], b=[1, 2])).transform(frame(a=[1])),
        "Add them, empty where a value is not known.",
    ),
    "no_column": (lambda: TableEncoder().fit(frame(a=ids())), "convert them, with decimal points."),
    "unlike_batches": (
        lambda: list(tables([(frame(a=[1]), None), (frame(b=[1]), None)], name="test")),
        "empty where a value is not known.",
    ),
    "no_label": (lambda: without_labels([None, None]), "Leave out --label to learn all rows"),
    "no_normal_label": (
        lambda: without_labels(["a", "a"]),
        "--normal LABEL, or add rows that are normal or without a label.",
    ),
    "wrong_normal_label": (
        lambda: without_labels(["a", "a"], "Ok"),
        "'a' (2 rows), and none is 'Ok'. Correct --normal, or add rows that are normal",
    ),
    "numbers_for_names": (
        lambda: read_row_labels(["1"], n_rows=1, normal=None, known=known()),
        "--normal 0 for example, or write names.",
    ),
    "one_label": (lambda: read_labels([7], one_class=True), "--normal 7, if these rows are."),
    "two_normal_labels": (lambda: read_labels(["ok", "normal"]), "--normal normal for example"),
    "which_normal": (lambda: read_labels(["a", "b", "c", "b"]), "--normal b, if that is it."),
    "DoubtedThresholdWarning": (
        lambda: few_above(doubted=True),
        "eqsep suspects lists them: label the anomalies among them.",
    ),
    "HighThresholdWarning": (
        lambda: few_above(thresholds={0.05: -1.0}),
        "run eqsep score --keep COLUMN on the training files, with the label column, and look at "
        "the normal rows with the highest scores. Correct wrong labels among them. Add normal rows "
        "or columns that show anomalies, or leave out others (--drop), or allow more false alarms: "
        "--false-alarm-rate 0.05.",
    ),
    "high_at_any_rate": (few_above, "columns that show anomalies, or leave out others (--drop)."),
    "contrary_trust": (
        lambda: detector(plan=detector().fit(X).plan_, unlabelled="doubted").fit(X),
        "The --like model settled this",
    ),
    "higher_rate": (
        lambda: detector().fit(X[:60]),
        "Add at least 138 normal rows and fit again, or pass --false-alarm-rate 0.05.",
    ),
    "higher_rate_or_no_confidence": (
        lambda: detector(confidence=0.99, false_alarm_rate=0.02).fit(X),
        "or leave out --confidence: the rate can be promised on average.",
    ),
    "no_fdr_groups": (
        lambda: by_run().model_.n_calibrating(),
        "Leave out --fdr, or fit without --group.",
    ),
    "no_fdr_time": (
        lambda: in_time().model_.n_calibrating(),
        "Leave out --fdr, or fit without --time.",
    ),
    "no_fdr_groups_time": (
        lambda: in_time(groups=RUNS).model_.n_calibrating(),
        "Leave out --fdr, or fit without --group and --time.",
    ),
    "none_selected": (
        lambda: warn_of(check_selection(np.zeros(10_000, dtype=bool), fdr=0.1, n_calibrating=99)),
        "or allow a higher --fdr.",
    ),
    "short_memory": (
        lambda: OnlineSelector(detector().fit(X), fdr=0.001),
        "or allow a higher --fdr.",
    ),
    "DependentRowsWarning": (
        lambda: check_dependence(sensors(), np.zeros(400, dtype=int)),
        "runs, machines or days with --group COLUMN, or that of times with --time COLUMN. If the "
        "rows are independent and only sorted, the rate holds: shuffle them to end this warning.",
    ),
    "DriftWarning": (drifting, "leave out columns that do not matter with --drop."),
    "growing_column": (numbered, "Leave it out: --drop 'day', and fit again."),
    "TimeOrderWarning": (
        lambda: detector(false_alarm_rate=0.1).fit(X, time=np.tile(np.arange(300), 3)),
        "Name the column of runs or machines with --group COLUMN.",
    ),
    "lost_groups": (lambda: by_run().partial_fit(X), "can learn and forget only in Python."),
    "no_windows": (lambda: Windows.of(frame(a=["x", "y"]), 3), "Leave out --window."),
    "unknown_runs": (lambda: by_run(window=3).predict(X), "can score only in Python."),
    "windows_on_cluster": (lambda: check_no_windows(3), "Leave out --ray."),
    "RepeatedRowsWarning": (lambda: detector().fit(X).partial_fit(X), "pass --again."),
    "picked_rows": (
        lambda: detector().fit(X).partial_fit(X + 30.0, np.zeros(900, dtype=int)),
        "if they were picked because they raised an alarm, pass --judged.",
    ),
    "MissingDataError": (
        lambda: data_file("tides", "1.csv", source="the harbour", data_home="/nowhere"),
        "--data-home FOLDER, or EQSEP_DATA=FOLDER.",
    ),
    "WorkerDiedError": (
        lambda: WorkerDiedError("It died.", hint="Pass cpus_per_task=2."),
        "It died. Divide the rows into smaller files.",
    ),
    "mixed_column": (
        lambda: mixed({"a": [*(f"{i},5 €" for i in range(60)), "7 £"]}),
        "drop the column (--drop), or read it as text (--categorical).",
    ),
    "mixed_column_or_missing": (
        lambda: mixed({"A": [*map(str, range(60)), "none there"]}),
        "pass --missing 'A=none there'.",
    ),
    "mixed_columns": (
        two_mixed,
        "If these are missing values, pass --missing 'A=M' --missing 'B=M'.",
    ),
    "repeated_names": (
        lambda: check_once(["1.5", "1.5", "3"], "t.csv"),
        "Rename them, or pass --no-header if the first line holds values.",
    ),
    "ragged_row": (
        lambda: not_divided("t.csv", "CSV parse error: Expected 2 columns, got 3: 1,2,3"),
        "set such rows aside with --bad-rows FILE.",
    ),
    "damaged_watch": (
        lambda: Monitor.read(io.BytesIO(b"x"), detector().fit(X)),
        "Pass another --state file",
    ),
    "lone_cost": (lambda: Review(cost_alarm=1.0).check(3), "both --cost-alarm and --cost-miss"),
    "no_first_model": (late_labels, "a shorter --delay, or a lower --first."),
}


def messages(made):
    """What is returned, raised and warned of where something is made."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = made()
        except UserError as error:
            return [error]
    findings = found if isinstance(found, list) else []
    returned = [found] if isinstance(found, Message) else [one.warning() for one in findings]
    return [*returned, *(one.message for one in caught if isinstance(one.message, Message))]


def options():
    """All options of the command and its parts."""
    params = (param for command in all_commands().values() for param in command.params)
    return {word for param in params for word in [*param.opts, *param.secondary_opts]}


def test_every_hint_has_its_case_below():
    assert set(SAID) == set(HINTS)


@pytest.mark.parametrize("topic", SAID)
def test_the_command_says_the_option_where_python_says_the_parameter(topic):
    made, words = SAID[topic]
    (message,) = (one for one in messages(made) if one.topic == topic)
    text = in_command(message)
    assert words in text
    assert text.startswith(message.message)
    assert message.hint
    assert not PYTHON.search(text), text
    assert "--" not in str(message)


@pytest.fixture
def project():
    """A project file with every key."""
    token = current_project.set(Project(Path("eqsep.toml"), dict.fromkeys(KEYS, "x")))
    yield
    current_project.reset(token)


IN_PROJECT = {
    "CountingColumnWarning": "leave it out: add 'id' to drop in eqsep.toml.",
    "DecimalCommaWarning": "say so: add 'a' to categorical in eqsep.toml.",
    "DependentRowsWarning": 'days with group = "COLUMN" in eqsep.toml, or that of times with '
    'time = "COLUMN" in eqsep.toml.',
    "HighThresholdWarning": "with the label column, and look at the normal rows with the highest "
    "scores. Correct wrong labels among them. Add normal rows or columns that show "
    "anomalies, or leave out others (drop in eqsep.toml), or allow more false alarms: "
    "false_alarm_rate = 0.05 in eqsep.toml.",
    "higher_rate": "and fit again, or set false_alarm_rate = 0.05 in eqsep.toml.",
    "lone_cost": "Pass both --cost-alarm and --cost-miss",
    "mixed_column_or_missing": "If that is a missing value, add 'A=none there' to missing in eqsep",
    "mixed_columns": "If these are missing values, add 'A=M', 'B=M' to missing in eqsep.toml.",
    "no_label": "Leave out label in eqsep.toml to learn all rows",
    "no_windows": "Leave out window in eqsep.toml.",
    "repeated_names": "or set header = false in eqsep.toml if the first line holds values.",
    "ragged_row": 'set such rows aside with bad_rows = "FILE" in eqsep.toml.',
    "which_normal": 'Name the normal one: normal = "b" in eqsep.toml, if that is it.',
}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("topic", IN_PROJECT)
def test_hints_name_the_keys_of_a_project_file_that_is_in_use(topic):
    made, _ = SAID[topic]
    (message,) = (one for one in messages(made) if one.topic == topic)
    assert IN_PROJECT[topic] in in_command(message)


@pytest.mark.usefixtures("project")
def test_no_hint_names_an_option_that_is_a_key_of_the_project_file():
    fields = {"column": "a", "others": "", "other": "b", "label": "c", "more": "rows", "rate": 0.1}
    fields |= {"where": "", "variable": "D", "word": "e"}
    hints = [in_command(Message("It is so.", topic=topic, **fields)) for topic in HINTS]
    named = set(re.findall(r"--[a-z-]+", " ".join(hints)))
    keys = KEYS.keys() - {"keep"}  # for one run
    assert not named & {f"--{key.replace('_', '-')}" for key in keys}


def test_an_option_that_is_left_out_is_one_of_the_command_line_unless_the_file_has_its_key():
    token = current_project.set(Project(Path("eqsep.toml"), {"label": "kind"}))
    hint = in_command(Message("It is so.", topic="no_windows"))
    current_project.reset(token)
    assert hint == "It is so. Leave out --window."


def test_every_option_that_is_named_is_one_of_the_command():
    named = set(re.findall(r"--[a-z-]+", " ".join([*HINTS.values(), *OPTIONS.values()])))
    assert named
    assert named <= options()


@pytest.mark.parametrize(
    "parameter",
    [
        *(
            "false_alarm_rate",
            "confidence",
            "unseen_rate",
            "n_landmarks",
            "bandwidth",
            "unlabelled",
        ),
        *("window", "groups", "time", "normal", "y", "fdr", "persist", "delta", "random_state"),
        *("top", "cost_alarm", "cost_miss", "every", "delay", "verdict", "alarms", "first"),
        *("seen", "keep_quiet"),
    ],
)
def test_a_parameter_goes_by_its_option(parameter):
    assert option(parameter) in options()
    error = ParameterError(parameter, expected="a small number", got=2, hint="1 is small.")
    text = f"{option(parameter)} must be a small number, got 2. 1 is small."
    assert in_command(error) == text
    assert in_command(error.at("rows.csv")) == f"rows.csv: {text}"
    assert str(error) == text.replace(option(parameter), parameter, 1)


def test_what_has_no_words_of_the_command_is_shown_as_the_library_says_it():
    error = UserError("There are no rows.", hint="Pass some.")
    assert in_command(error) == str(error) == "There are no rows. Pass some."


def test_a_place_comes_first():
    error = UserError("There is no column.", hint="Leave out window=.", topic="no_windows")
    assert in_command(error.at("rows.csv")) == "rows.csv: There is no column. Leave out --window."


def test_every_class_of_warnings_has_its_section():
    """The command prints the link to it, made of the name of the class."""
    root = Path(__file__).parents[1]
    page = (root / "docs" / "troubleshooting.md").read_text()
    sections = re.findall(r"^### (.+)\n\n`(?:eqsep\.[\w.]+\.)?(\w+)`", page, flags=re.MULTILINE)
    source = "".join(path.read_text() for path in root.glob("eqsep/**/*.py"))
    names = set(re.findall(r"^class (\w+Warning)\(", source, flags=re.MULTILINE))
    assert {name for _, name in sections} == names - {"EqsepWarning", "DataWarning"}
    for title, name in sections:
        link = see_section(type(name, (EqsepWarning,), {}))
        assert link == f"See docs/troubleshooting.md#{title.lower().replace(' ', '-')}"
    assert see_section(EqsepWarning) == see_section(UserWarning) == ""
