"""An evaluation of rows in groups and in time: whole groups train or test, never both."""

import re

import numpy as np
import pandas as pd
import pytest
from invoking import CliRunner
from scipy.signal import lfilter
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier

from eqsep.cli import app
from eqsep.errors import UserError
from eqsep.evaluation import cross_validate_kind, leave_one_kind_out
from eqsep.evaluation.left_out import units_of


def runs(n: int = 40, *, rows: int = 20, kinds: tuple[str, ...] = ("leak", "jam")) -> pd.DataFrame:
    """Runs around places of their own, the second half of some of them faulty."""
    rng = np.random.default_rng(0)
    run = np.repeat(np.arange(n), rows)
    X = 3 * rng.normal(size=(n, 2))[run] + rng.normal(0, 0.3, size=(len(run), 2))
    kind = np.full(len(run), "normal", dtype=object)
    late = np.arange(len(run)) % rows >= rows // 2
    for i, name in enumerate(kinds):
        kind[late & (run % 4 == i)] = name
    frame = pd.DataFrame(X, columns=["a", "b"])
    return frame.assign(run=[f"r{i}" for i in run], t=np.arange(len(run)), kind=kind)


TABLE = runs()
X, KIND, RUN = TABLE[["a", "b"]].to_numpy(), TABLE["kind"].to_numpy(), TABLE["run"].to_numpy()


class Recorder(ClassifierMixin, BaseEstimator):
    """Notes which rows it was fitted to, by their first column, and the groups it was told."""

    def fit(self, X, y, groups=None, time=None):
        self.rows_, self.told_, self.classes_ = X[:, 0], (groups, time), np.unique(y)
        SEEN.append(self)
        return self

    def decision_function(self, X):
        return X[:, 0]


SEEN: list[Recorder] = []


@pytest.fixture(autouse=True)
def none_seen():
    SEEN.clear()


def test_no_group_trains_and_tests():
    numbers = np.arange(len(KIND))[:, None]
    result = leave_one_kind_out(Recorder(), numbers, KIND, groups=RUN, random_state=0)
    assert [one.kind for one in result.results] == ["jam", "leak"]
    for model, one in zip(SEEN, result.results, strict=True):
        trained, tested = set(RUN[model.rows_]), set(RUN[one.tested.rows])
        assert trained
        assert tested
        assert not trained & tested
        assert set(KIND[model.rows_]) == {"normal", one.kind}
        assert set(one.tested.kind) == {"normal", "leak", "jam"}
        assert list(model.told_[0]) == list(RUN[model.rows_])
        assert model.told_[1] is None


def test_rows_one_by_one_flatter_an_estimator_that_knows_runs_by_heart():
    neighbour = KNeighborsClassifier(1)
    by_rows = leave_one_kind_out(neighbour, X, KIND, random_state=0).mean
    by_runs = leave_one_kind_out(neighbour, X, KIND, groups=RUN, random_state=0).mean
    assert by_rows.seen > by_runs.seen + 0.05


def test_a_kind_of_one_group_is_unseen_alone_and_kinds_of_none_are_refused():
    alone = KIND.copy()
    alone[(RUN != "r1") & (alone == "jam")] = "normal"
    result = leave_one_kind_out(KNeighborsClassifier(1), X, alone, groups=RUN, random_state=0)
    assert [one.kind for one in result.results] == ["leak"]
    assert "jam" in result.results[0].by_kind
    with pytest.raises(UserError, match=r"seen must be some of the kinds \['leak'\]"):
        leave_one_kind_out(KNeighborsClassifier(1), X, alone, groups=RUN, seen=["jam"])
    alone[(RUN != "r0") & (alone == "leak")] = "normal"
    with pytest.raises(UserError, match="no kind can be both seen and tested"):
        leave_one_kind_out(KNeighborsClassifier(1), X, alone, groups=RUN)
    with pytest.raises(UserError, match="are in the same group"):
        leave_one_kind_out(KNeighborsClassifier(1), X, KIND, groups=np.zeros(len(KIND)))


def test_blocks_of_time_train_or_test_with_a_gap_between():
    numbers = np.arange(len(KIND))[:, None]
    leave_one_kind_out(Recorder(), numbers, KIND, time=TABLE["t"], random_state=0)
    units = units_of(None, TABLE["t"], n_rows=len(KIND))
    for model in SEEN:
        tested = ~np.isin(units.unit, np.unique(units.unit[model.rows_]))
        assert tested.any()
        apart = np.abs(np.flatnonzero(tested)[:, None] - model.rows_[None, :]).min()
        assert apart > 1  # no row that trains is beside one that is tested
        assert model.told_[0] is None


def test_the_only_kind_is_cross_validated_by_groups():
    kind = np.where(KIND == "jam", "leak", KIND)
    numbers = np.arange(len(kind))[:, None]
    cross_validate_kind(Recorder(), numbers, kind, groups=RUN, random_state=0)
    assert len(SEEN) == 5
    assert sum(len(set(RUN) - set(RUN[model.rows_])) for model in SEEN) == 40  # each run once
    for model in SEEN:
        left = ~np.isin(np.arange(len(kind)), model.rows_)
        assert not set(RUN[left]) & set(RUN[model.rows_])
    with pytest.raises(UserError, match="1 groups or blocks of time of 'leak'"):
        cross_validate_kind(Recorder(), X, np.where(RUN == "r0", kind, "normal"), groups=RUN)


def test_times_that_are_none_are_refused():
    for time, told in ((RUN, "a number or a date"), (np.zeros(len(RUN)), "the same time")):
        with pytest.raises(UserError, match=told):
            leave_one_kind_out(Recorder(), X, KIND, time=time)
    with pytest.raises(UserError, match="values of groups, one a row, got 3"):
        leave_one_kind_out(Recorder(), X, KIND, groups=[1, 2, 3])
    dates = pd.to_datetime(TABLE["t"], unit="h")
    same = [units_of(None, when, n_rows=len(KIND)).unit for when in (dates, TABLE["t"])]
    assert np.array_equal(*same)


def evaluate(path, *more: str) -> str:
    words = ["evaluate", str(path), "--label", "kind", "--landmarks", "40", *more]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_evaluate_takes_groups_and_says_so(tmp_path):
    table = runs(16, rows=8)
    table.loc[table["run"] == "r2", "kind"] = np.nan  # of whole groups, too
    table.drop(columns="t").to_csv(tmp_path / "runs.csv", index=False)
    page = tmp_path / "page.html"
    told = evaluate(tmp_path / "runs.csv", "--group", "run", "--report", str(page))
    assert "A group is either in training or in the test, never in both." in told
    assert "cannot be promised" not in told  # no threshold is measured
    assert "--group run" in re.sub("<[^>]*>", "", page.read_text())


def test_evaluate_names_alarms_at_the_rate_of_the_project_file(tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(
        "eqsep.cli.evaluate.try_names", lambda used, *_, **__: found.append(used.false_alarm_rate)
    )
    (tmp_path / "eqsep.toml").write_text("false_alarm_rate = 0.1\n")
    runs(8, rows=8).drop(columns=["t", "run"]).to_csv(tmp_path / "rows.csv", index=False)
    evaluate(tmp_path / "rows.csv")
    assert found == [0.1]


def test_evaluate_warns_of_rows_in_runs(tmp_path):
    rng = np.random.default_rng(0)
    X = lfilter([0.3], [1, -0.95], rng.normal(size=(200, 2)), axis=0)
    kind = np.where(np.arange(200) % 20 >= 15, "leak", "normal")
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(kind=kind)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    told = evaluate(tmp_path / "rows.csv")
    assert "as neighbours of these rows are learnt. Expect less in another run or day" in told
    frame.assign(t=np.arange(200)).to_csv(tmp_path / "rows.csv", index=False)
    told = evaluate(tmp_path / "rows.csv", "--time", "t")
    assert "neighbours" not in told
    assert "A time block is either in training or in the test" in told
    assert "on the other half: names right not measured: only one kind was seen" in told
    assert "promised at most 5.00%: not judged: rows of one time block are alike" in told
    kind = np.where(np.isin(np.arange(200), [30, 150]), "leak", "normal")
    frame.assign(t=np.arange(200), kind=kind).to_csv(tmp_path / "rows.csv", index=False)
    told = evaluate(tmp_path / "rows.csv", "--time", "t")
    assert "Names are not measured: no kind of anomaly has rows in enough time blocks to" in told
