"""Selection from a batch: at most a share of what is selected is normal."""

import numpy as np
import pyarrow.csv
import pytest
from eqsep.detector.scoring import Calibration
from eqsep.detector.selection import alarms_needed
from numpy.testing import assert_array_equal
from scipy.stats import false_discovery_control

from eqsep import Detector, Monitor
from eqsep.cli import app
from eqsep.detector import CalibrationWarning
from eqsep.detector.calibration import Calibration, alarms_needed, select
from eqsep.errors import UserError

RATES = (0.05, 0.1, 0.2)


def batch(rng, n_normal, n_anomalies):
    return np.vstack([rng.normal(size=(n_normal, 2)), rng.normal(6, 1, size=(n_anomalies, 2))])


@pytest.fixture(scope="module")
def detector():
    X = np.random.default_rng(0).normal(size=(2_500, 2))
    return Detector(n_landmarks=60, bandwidth=1.0, random_state=0).fit(X)


def test_false_discoveries_are_at_most_the_share_on_average():
    """Over draws of held-out scores and batch, of which 450 scores are normal and 50 higher."""
    false, found = [], []
    for seed in range(600):
        rng = np.random.default_rng(seed)
        calibration = Calibration(rng.normal(size=999))
        p = calibration.p_value(np.concatenate([rng.normal(size=450), rng.normal(3.5, 1, 50)]))
        masks = [select(p, fdr=fdr, n_calibrating=999) for fdr in RATES]
        false.append([mask[:450].sum() / max(mask.sum(), 1) for mask in masks])
        found.append([mask[450:].mean() for mask in masks])
    mean, error = np.mean(false, axis=0), np.std(false, axis=0, ddof=1) / np.sqrt(len(false))
    assert (mean < 0.9 * np.array(RATES) + 2.5 * error).all(), mean  # nine in ten are normal
    assert (mean > 0.9 * np.array(RATES) - 4 * error).all(), mean  # and not far below
    assert (np.mean(found, axis=0) > 0.3).all()


def test_a_detector_selects_by_its_p_values(detector):
    X = batch(np.random.default_rng(1), 400, 40)
    mask = detector.select(X, fdr=0.2)
    assert_array_equal(mask, false_discovery_control(detector.p_value(X)) <= 0.2)
    assert mask[400:].mean() > 0.9
    assert not detector.select(X[:400]).any()


def test_what_too_few_held_out_rows_cannot_resolve_is_told():
    """Perfectly separated: with 499 held-out rows none of 50 among 10,000, with 4,999 all."""
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.uniform(size=9_950), np.full(50, 9.0)])
    few, many = (Calibration(rng.uniform(size=n)) for n in (499, 4_999))
    told = r"fewer than 200 could not have been: a p-value by 499 .* With 9,999 held-out rows 10 al"
    with pytest.warns(CalibrationWarning, match=told):
        assert not select(few.p_value(scores), fdr=0.1, n_calibrating=499).any()
    mask = select(many.p_value(scores), fdr=0.1, n_calibrating=4_999)  # warnings are errors here
    assert mask[9_950:].all()
    assert mask[:9_950].sum() < 12


@pytest.mark.parametrize(("m", "n", "fdr"), [(1_000, 99, 0.1), (10_000, 499, 0.2), (50, 999, 0.1)])
def test_as_many_alarms_as_are_needed_are_selected_and_one_less_is_not(m, n, fdr):
    needed = alarms_needed(m, fdr=fdr, n_calibrating=n)
    for k, is_selected in ((needed, True), (needed - 1, False)):
        p = np.where(np.arange(m) < k, 1 / (n + 1), 1.0)
        if k > 10 and not is_selected:
            with pytest.warns(CalibrationWarning):
                assert not select(p, fdr=fdr, n_calibrating=n).any()
        else:
            assert select(p, fdr=fdr, n_calibrating=n).sum() == k * is_selected


@pytest.mark.parametrize("fdr", [0, 1, "low"])
def test_a_share_that_is_none_is_refused(detector, fdr):
    with pytest.raises(UserError, match="fdr must be a number between 0 and 1"):
        detector.select(np.zeros((3, 2)), fdr=fdr)


def test_rows_in_groups_are_refused():
    X = np.random.default_rng(0).normal(size=(800, 2))
    grouped = Detector(n_landmarks=60, bandwidth=1.0, false_alarm_rate=0.2, random_state=0)
    grouped.fit(X, groups=np.arange(800) // 10)
    with pytest.raises(UserError, match="where whole groups are held out"):
        grouped.select(X)
    with pytest.raises(UserError, match="cannot be watched one by one"):
        Monitor(grouped)


@pytest.mark.parametrize("n_anomalies", [30, 0])
def test_the_command_selects_from_all_files_at_once(detector, tmp_path, capsys, n_anomalies):
    X = batch(np.random.default_rng(2), 300, n_anomalies)
    detector.save(tmp_path / "m.eqsep")
    files = [str(tmp_path / f"{i}.csv") for i in range(2)]
    for file, part in zip(files, np.array_split(X, 2), strict=True):
        np.savetxt(file, part, delimiter=",", header="a,b", comments="", fmt="%.17g")
    out = str(tmp_path / "scores.csv")
    with pytest.raises(SystemExit) as ended:
        app(["score", str(tmp_path / "m.eqsep"), *files, "--fdr", "0.1", "--out", out])
    assert ended.value.code == 0
    told, needed = " ".join(capsys.readouterr().out.split()), -(-len(X) // 50)  # 499 rows calibrate
    assert f"--fdr tells {needed} alarms or more, or none (fewer could be chance)" in told
    alarm = pyarrow.csv.read_csv(out).column("alarm").to_numpy(zero_copy_only=False)
    assert_array_equal(alarm.astype(bool), detector.select(X, fdr=0.1))
    assert alarm.sum() >= n_anomalies


def test_the_command_refuses_two_promises_and_input_that_comes_once(detector, tmp_path, capsys):
    detector.save(tmp_path / "m.eqsep")
    words = ["score", str(tmp_path / "m.eqsep"), "-", "--fdr"]
    for more, told in (
        (["0.1"], "--fdr reads all rows twice"),
        (["0.1", "--false-alarm-rate", "0.1"], "are two promises"),
    ):
        with pytest.raises(SystemExit):
            app([*words, *more])
        assert told in " ".join(capsys.readouterr().err.split())
