"""On Ray: what many processes learn and score is what one does, whoever of them dies."""

import logging
import os
import re
import signal
import socket
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest
from invoking import CliRunner
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import csv, parquet
from summed import gram_of
from test_readme import WITH_RAY, run_page

from eqsep import Detector, load_model
from eqsep.cli import app
from eqsep.cli.console import sentence
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config
from eqsep.distributed import fit, score
from eqsep.distributed import units as division
from eqsep.distributed.cluster import cluster
from eqsep.distributed.units import as_units, spread, total, units_of
from eqsep.errors import UserError
from paper.__main__ import app as paper

ray = None  # small_cluster imports it: of the processes that collect tests, one runs these
pytestmark = [
    pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning"),  # of few rows
    # Ray's own settings and processes; it warns of them whatever is done.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
FAST = {"n_landmarks": 40, "bandwidth": 0.5, "random_state": 0, "config": Config.fast()}
SMALL = FAST | {"config": replace(Config.fast(), max_sample=500, max_sample_anomalies=100)}


@pytest.fixture(scope="module", autouse=True)
def small_cluster():
    """Two processes of this machine; none is left in the end."""
    global ray
    ray = pytest.importorskip("ray", reason='Ray is not installed: pip install "eqsep[ray]"')
    pytest.importorskip("ray.data")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=2**28,
    )
    # Other processes cannot import this module.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def table():
    """Payments and the kind of each; the labels of every seventh are lost."""
    made = make_mixed_demo(n_samples=1600, as_frame=True, random_state=0)
    lost = np.arange(len(made.kind)) % 7 == 0
    frame = made.X.assign(kind=np.where(lost, None, made.kind))
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.fixture(scope="module")
def X(table):
    return table.drop_columns(["kind"])


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """Four files of Parquet, each of four groups of rows."""
    folder = tmp_path_factory.mktemp("payments")
    for i in range(4):
        rows = table.slice(400 * i, 400)
        parquet.write_table(rows, folder / f"{i}.parquet", row_group_size=100)
    return folder


def assert_same(detector, other):
    assert detector.kinds_ == other.kinds_
    assert_allclose(detector.coef_, other.coef_, rtol=1e-6, atol=1e-6)
    assert_allclose(
        gram_of(detector.model_.evidence), gram_of(other.model_.evidence), rtol=1e-6, atol=1e-6
    )
    assert_allclose(detector.threshold_, other.threshold_, rtol=1e-6, atol=1e-6)
    assert_array_equal(
        detector.model_.evidence.held_out.normal, other.model_.evidence.held_out.normal
    )


def in_memory(table, like):
    """The fit of one process to all rows at once, under the same terms."""
    return Detector(plan=like.plan_, config=Config.fast()).fit(
        table.drop_columns(["kind"]), table.column("kind")
    )


@pytest.mark.extra
def test_few_rows_give_what_they_give_in_memory(folder, table, X):
    detector = fit(folder, "kind", **FAST)
    memory = Detector(**FAST).fit(X, table.column("kind"))
    assert detector.plan_.is_same(memory.plan_)
    assert_same(detector, memory)


def test_many_rows_give_what_they_give_one_process(folder, table, monkeypatch):
    monkeypatch.setattr(division, "ROWS_OF_A_UNIT", 200)
    detector = fit(pa.dataset.dataset(folder), "kind", **SMALL)
    assert_same(detector, in_memory(table, detector))
    assert 0 < len(detector.model_.evidence.held_out.normal) < 500


@pytest.mark.extra
def test_whole_groups_calibrate_as_in_one_process(table, tmp_path):
    names = pa.array([f"terminal {i % 60}" for i in range(table.num_rows)])
    when = pa.array(np.arange(table.num_rows) // 60)
    table = table.append_column("terminal", names).append_column("hour", when)
    for i in range(2):
        parquet.write_table(table.slice(800 * i, 800), tmp_path / f"{i}.parquet")
    beside = {"groups": "terminal", "time": "hour"}
    detector = fit(tmp_path, "kind", **beside, false_alarm_rate=0.1, **SMALL)
    assert detector.plan_.holdout.grouping.columns == ("terminal", "hour")
    like = Detector(plan=detector.plan_, false_alarm_rate=0.1, config=Config.fast())
    memory = like.fit(table.drop_columns(["kind"]), table.column("kind"), **beside)
    assert_same(detector, memory)
    assert_array_equal(detector.calibration_.groups, memory.calibration_.groups)
    with pytest.raises(UserError, match=r"groups must be a column .*, got 'terminals'"):
        fit(tmp_path, "kind", groups="terminals", **SMALL)


@pytest.mark.extra
def test_the_result_does_not_depend_on_the_number_of_processes(folder):
    one = fit(str(folder), "kind", cpus_per_task=2, **SMALL)  # one at a time, of two processors
    two = fit(str(folder), "kind", **SMALL)
    assert one.plan_.is_same(two.plan_)
    assert_array_equal(one.coef_, two.coef_)


@pytest.mark.extra
def test_a_map_that_is_given_is_kept(folder, table, X):
    first = Detector(**SMALL).fit(X.slice(0, 300), table.column("kind").slice(0, 300))
    detector = fit(folder, "kind", plan=first.plan_)
    assert detector.plan_.is_same(first.plan_)
    assert_same(detector, in_memory(table, first))


def dies_twice(batch, *, folder):
    """The rows as they are; the first and third process that come to row 400 are killed."""
    if batch.num_rows and batch.column("amount")[0].as_py() == MARK:
        came = len(list(folder.iterdir()))
        (folder / str(came)).touch()
        if came in (0, 2):
            os.kill(os.getpid(), signal.SIGKILL)
    return batch


MARK = make_mixed_demo(n_samples=1600, as_frame=True, random_state=0).X["amount"][400]


@pytest.mark.extra
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_processes_that_die_in_the_survey_and_in_the_sums_change_nothing(table, tmp_path):
    blocks = ray.data.from_arrow([table.slice(400 * i, 400) for i in range(4)])
    deadly = partial(dies_twice, folder=tmp_path)
    detector = fit(blocks.map_batches(deadly, batch_format="pyarrow"), "kind", **SMALL)
    assert len(list(tmp_path.iterdir())) >= 4
    assert_same(detector, in_memory(table, detector))


def dies(unit, place):  # noqa: ARG001
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.extra
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_process_that_always_dies_ends_the_work_with_an_error(monkeypatch):
    monkeypatch.setattr(division, "RETRIES", 1)
    with pytest.raises(ChildProcessError, match="died at the same rows 2 times") as died:
        total(as_units(range(1), int), dies, list.__add__)
    assert str(died.value).endswith("smaller files, or give a task more: cpus_per_task=2.")
    assert sentence(died.value).endswith("into smaller files."), "the command has no such option"


def own(number, place):
    return [(number, place)]


def test_sums_are_those_of_all_units_in_their_order(monkeypatch):
    """Thirteen units, five sums of up to three of them, two sums of those, and the whole."""
    monkeypatch.setattr(division, "FAN", 3)
    units = as_units(range(13), float)
    assert total(units, own, list.__add__) == [(float(i), i) for i in range(13)]


def threads_of(unit, place):  # noqa: ARG001
    from threadpoolctl import threadpool_info

    from eqsep.engine.loops import threads

    np.ones((64, 64)) @ np.ones((64, 64))
    return [(threads(), {pool["num_threads"] for pool in threadpool_info()})]


def test_a_task_takes_as_many_threads_as_it_has_processors():
    found = total(as_units(range(4), int), threads_of, list.__add__)
    assert found == [(1, {1})] * 4


def test_scores_are_those_of_one_process(folder, table, X, tmp_path):
    detector = Detector(**FAST).fit(X, table.column("kind"))
    detector.save(tmp_path / "model.eqsep")
    for rows in (folder, ray.data.from_arrow(table)):
        scored = score(tmp_path / "model.eqsep", rows, keep=["amount"]).to_pandas()
        assert list(scored) == [
            *("amount", "score", "p_value", "alarm", "kind", "kind_probability")
        ]
        order = np.argsort(X["amount"].to_numpy(), kind="stable")
        scored = scored.sort_values("amount", kind="stable")
        assert_array_equal(np.sort(scored["score"]), np.sort(detector.score_samples(X)))
        assert_array_equal(scored["amount"], X["amount"].to_numpy()[order])
        assert scored["alarm"].sum() == (detector.decision_function(X) > 0).sum()
        assert sorted(scored["kind"]) == sorted(detector.predict_kind(X))


def test_text_files_are_read_too(X, tmp_path):
    numbers = X.select(["amount", "items", "distance_km"])
    csv.write_csv(numbers.slice(0, 800), tmp_path / "a.csv")
    csv.write_csv(numbers.slice(800), tmp_path / "b.csv")
    assert_same(fit(tmp_path, **FAST), Detector(**FAST).fit(numbers))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda folder, _: fit(folder, "label", **FAST), "column 'label' is missing: the colu"),
        (
            lambda _, table: fit(ray.data.from_arrow(table), "label", **FAST),
            "label column 'label' is missing: the columns are",
        ),
        (lambda *_: fit([1, 2], **FAST), "Expected a ray.data.Dataset, .* got list"),
        (lambda folder, _: fit(folder, n_landmarks=0), "n_landmarks must be"),
        (lambda folder, _: fit(folder / "none.parquet"), "There is no file"),
        (lambda folder, _: fit(folder, address="nowhere"), "joined the cluster at"),
        (lambda _, table: fit(ray.data.from_arrow(table.slice(0, 0))), "Got no rows"),
        pytest.param(
            lambda _, table: fit(
                ray.data.from_arrow(
                    [table.slice(0, 50), table.slice(50, 50).drop_columns(["items"])]
                ),
                "kind",
                **FAST,
            ),
            "items not in both",
            marks=pytest.mark.extra,
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_a_sentence(make, told, folder, table):
    with pytest.raises(ValueError, match=told):
        make(folder, table)


def test_a_label_that_is_no_column_is_refused_before_units_are_made(table):
    with pytest.raises(ValueError, match="column 'label' is missing"):
        units_of(ray.data.from_arrow(table), "label")


def test_a_detector_with_windows_is_refused(folder):
    rows = np.random.default_rng(0).normal(size=(300, 2))
    detector = Detector(window=5, **FAST).fit(rows, time=np.arange(300.0))
    with pytest.raises(UserError, match="Windows go on from row to row"):
        score(detector, folder)


def test_columns_that_cannot_be_kept_are_refused(folder, X, table):
    detector = Detector(**FAST).fit(X, table.column("kind"))
    with pytest.raises(ValueError, match="Cannot keep the column 'id'"):
        score(detector, folder, keep=["id"])
    with pytest.raises(ValueError, match="'kind' has the name of an answer"):
        score(detector, folder)


def test_a_folder_of_two_forms_is_refused(X, tmp_path):
    csv.write_csv(X, tmp_path / "a.csv")
    parquet.write_table(X, tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"not a table of one form: .* got \.csv, \.parquet"):
        units_of(tmp_path)


def fails(item):
    if item == "bad":
        raise ValueError("bad item")
    return item.upper()


@pytest.mark.extra
def test_items_are_spread_and_errors_come_back():
    found = dict(spread(fails, ["a", "bad"], address=None))
    assert found["a"] == "A"
    assert isinstance(found["bad"], ValueError)
    assert "bad item" in str(found["bad"])


def dies_at_first(item, *, folder):
    marker = Path(folder, item)
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item.upper()


@pytest.mark.extra
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_items_are_tried_again_where_a_process_dies(tmp_path):
    found = dict(spread(partial(dies_at_first, folder=tmp_path), ["a"], address=None))
    assert found == {"a": "A"}


def test_a_cluster_that_was_there_stays():
    with cluster("auto"):
        pass
    assert ray.is_initialized()


@pytest.fixture
def eqsep():
    """The command: from its words to what it ends with."""
    return partial(CliRunner().invoke, app)


@pytest.mark.extra
def test_the_command_fits_and_scores_on_a_cluster(eqsep, folder, table, tmp_path):
    csv.write_csv(table.slice(0, 1000), tmp_path / "a.csv")
    csv.write_csv(table.slice(1000), tmp_path / "b.csv")
    files = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    common = ["--label", "kind", "--seen", "takeover", "--landmarks", "40", "--out"]
    for name, where in (("one", []), ("ray", ["--ray", "local"])):
        done = eqsep(["fit", *files, *where, *common, str(tmp_path / f"{name}.eqsep")])
        assert done.exit_code == 0, done.output
    one, many = (load_model(tmp_path / f"{name}.eqsep") for name in ("one", "ray"))
    assert many.plan_.is_same(one.plan_)
    assert_same(many, one)
    other_rate = ["--only-alarms", "--explain", "1", "--false-alarm-rate", "0.1"]
    for words in (["--keep", "amount"], other_rate):
        command = ["score", str(tmp_path / "one.eqsep"), str(folder), *words, "--format", "jsonl"]
        assert eqsep([*command, "--ray", "local"]).stdout == eqsep(command).stdout != ""


@pytest.mark.extra
def test_the_paper_is_reproduced_on_a_cluster_where_it_is_not_measured_yet(tmp_path):
    reproduce = partial(CliRunner().invoke, paper)
    command = ["bumps", "--quick", "--out", str(tmp_path)]
    first = reproduce([*command, "--ray", "local"])
    assert first.exit_code == 0, first.output
    measured = re.search(
        r"(\d+) cells measured in .* 0 kept from before, 0 skipped, 0 fa", first.output
    )
    again = reproduce([*command, "--processes", "1"])
    assert f"{measured[1]} kept from before" in again.output
    assert int(measured[1]) > 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fit", "-", "--out", "m", "--ray", "local"], "Standard input cannot be read on a cl"),
        (["fit", "FILE", "--label", "no", "--out", "m", "--ray", "local"], "no column 'no'"),
        (["fit", "FILE", "--out", "m", "--ray", "10.0.0.1:6379"], "cannot join the one at 10.0"),
    ],
)
def test_the_command_refuses_in_a_sentence(eqsep, words, told, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = eqsep([str(folder / "0.parquet") if word == "FILE" else word for word in words])
    assert done.exit_code == 2
    assert told in done.output


def test_where_no_cluster_is_it_is_said_at_once(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=rf"No cluster of Ray answers at {address} "):
            fit("rows.parquet", address=address)
    with pytest.raises(ValueError, match="'somewhere' is not the address of a cluster"):
        fit("rows.parquet", address="somewhere")


@pytest.mark.extra
def test_the_blocks_of_the_page_run(tmp_path, monkeypatch, home_of):
    monkeypatch.chdir(tmp_path)
    run_page(WITH_RAY, home_of)


def test_without_ray_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'Ray is not installed: pip install "eqsep\[ray\]"'):
        fit("rows.parquet")
