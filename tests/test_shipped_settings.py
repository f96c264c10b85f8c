"""The settings that are shipped, end to end on a real table: other tests take faster ones."""

import numpy as np
import pytest
from invoking import CliRunner
from numpy.testing import assert_array_equal
from pyarrow import parquet

from eqsep import Detector, load_model
from eqsep.cli import app
from eqsep.datasets import load_thyroid
from eqsep.detector import Config
from eqsep.evaluation import average_precision_by_kind


def test_thyroid_beyond_the_published_figures(home_of):
    """The paper's own protocol: hyperfunction is seen, subnormal is not."""
    split = load_thyroid(data_home=home_of("ann-thyroid"), protocol="paper")
    detector = Detector(random_state=0).fit(split.X_train, split.kind_train)
    areas = average_precision_by_kind(detector.score_samples(split.X_test), split.kind_test)
    assert areas["hyperfunction"] > 0.934
    assert areas["subnormal"] > 0.596
    assert areas["overall"] > 0.726


def test_the_promised_rate_is_kept_on_other_normal_rows(home_of):
    """Four random divisions: the mean share of false alarms has a standard deviation of .0025."""
    split = load_thyroid(data_home=home_of("ann-thyroid"), protocol="paper")
    X = np.vstack([split.X_train, split.X_test])
    kind = np.concatenate([split.kind_train, split.kind_test])
    normal, seen = (np.flatnonzero(kind == name) for name in ("normal", "hyperfunction"))
    shares = []
    for seed in range(4):
        train, fresh = np.array_split(np.random.default_rng(seed).permutation(normal), 2)
        train = np.append(train, seen)
        detector = Detector(random_state=seed).fit(X[train], kind[train])
        shares.append(detector.predict(X[fresh]).mean())
    assert 0.002 < np.mean(shares) < 0.018


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, home_of):
    """The folder of a model that the command fits without a word on settings, and what it says."""
    folder, rows = tmp_path_factory.mktemp("thyroid"), home_of("ann-thyroid") / "ann-thyroid"
    words = ["--label", "c22", "--normal", "3", "--out", str(folder / "m.eqsep")]
    return folder, rows, done("fit", rows / "ann-train.data", *words)


def done(*words):
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_fits_with_the_settings_of_the_library(fitted):
    folder, _, printed = fitted
    detector = load_model(folder / "m.eqsep")
    assert detector.coef_.shape[0] == Config().n_landmarks
    assert "1.00% of new normal rows raise an alarm" in printed


def test_new_anomalies_raise_alarms_far_more_often_than_normal_rows(fitted):
    folder, rows, _ = fitted
    out = folder / "scores.parquet"
    done("score", folder / "m.eqsep", rows / "ann-test.data", "--keep", "c22", "--out", out)
    scores = parquet.read_table(out).to_pandas()
    normal = scores["c22"].astype(str) == "3"
    assert scores["alarm"][~normal].mean() > 20 * scores["alarm"][normal].mean() > 0
    detector = load_model(folder / "m.eqsep")
    assert_array_equal(scores["alarm"], scores["score"] > detector.threshold_)
    assert set(scores["kind"][scores["alarm"]]) - {"unseen"}


def test_alarms_are_explained_and_the_model_learns_on(fitted):
    folder, rows, _ = fitted
    words = ("explain", folder / "m.eqsep", rows / "ann-test.data", "--only-alarms", "--most", 3)
    assert done(*words).count("alarm") >= 3
    more = folder / "more.eqsep"
    words = ("learn", folder / "m.eqsep", rows / "ann-test.data", "--label", "c22", "--out", more)
    done(*words)
    learnt = [load_model(folder / name).model_.n_learnt for name in ("m.eqsep", "more.eqsep")]
    assert np.all(learnt[1] > learnt[0])
