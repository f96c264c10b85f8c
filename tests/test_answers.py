"""What a fitted detector says of rows: chances, and the words of scikit-learn."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from eqsep.detector.answers import FittedDetector
from eqsep.detector.probability import survival
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from eqsep import Detector
from eqsep.datasets import make_mixed_demo
from eqsep.persistence import load_model
from eqsep.persistence.files import load_answering

QUICK = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0}
RNG = np.random.default_rng(0)
NORMAL, PUMP = RNG.normal(size=(900, 2)), RNG.normal((6, 0), 0.5, size=(20, 2))
X, KIND = np.vstack([NORMAL, PUMP]), np.repeat(["normal", "pump"], [900, 20])
NEW = np.vstack([RNG.normal(size=(500, 2)), RNG.normal(scale=4, size=(500, 2))])


@pytest.fixture(scope="module")
def detector():
    return Detector(**QUICK).fit(X, KIND)


def labelled(**parameters):
    return Detector(**QUICK, **parameters).fit(X, KIND)


def few_rows():
    with pytest.warns(UserWarning, match="cannot be promised"):
        return Detector(**QUICK).fit(NORMAL[:60])


FITTED = {
    "names": labelled,
    "many alarms": lambda: labelled(false_alarm_rate=0.2),
    "confidence": lambda: labelled(false_alarm_rate=0.1, confidence=0.9),
    "signs": lambda: Detector(normal=1, **QUICK).fit(X, np.where(KIND == "normal", 1, -1)),
    "few rows": few_rows,
    "groups": lambda: Detector(false_alarm_rate=0.1, **QUICK).fit(
        NORMAL, groups=np.arange(900) // 10
    ),
}


@pytest.mark.parametrize("fitted", FITTED.values(), ids=FITTED)
def test_the_larger_chance_is_what_predict_says(fitted):
    fitted = fitted()
    chance = fitted.predict_proba(NEW)
    assert chance.shape == (len(NEW), 2)
    assert_allclose(chance.sum(axis=1), 1)
    assert_array_equal(fitted.classes_[chance.argmax(axis=1)], fitted.predict(NEW))
    assert fitted.decision_function(NEW).max() > 0


def test_chances_tell_rows_apart_that_share_a_p_value(detector):
    score = np.unique(detector.score_samples(NEW))
    assert len(np.unique(detector.calibration_.p_value(score))) < len(score)
    assert (np.diff(survival(detector.calibration_, score)) < 0).all()


def test_the_chance_of_a_normal_row_is_the_p_value_without_its_steps(detector):
    p, n = detector.p_value(NEW), detector.calibration_.n_units
    q = survival(detector.calibration_, detector.score_samples(NEW))
    assert (q <= p).all()
    assert (p - q <= 1 / (n + 1) + 1e-12).all()


def test_at_the_threshold_both_chances_are_equal_and_the_rate_decides(detector):
    q = survival(detector.calibration_, np.array([detector.threshold_]))
    assert_allclose(q, detector.false_alarm_rate)
    chance = detector.predict_proba(NEW)[:, 1]
    q = survival(detector.calibration_, detector.score_samples(NEW))
    assert_allclose(chance, 0.01 / (q + 0.01))


def test_without_a_row_that_calibrates_a_chance_is_an_even_one_up_to_the_threshold(detector):
    calibration = detector.calibration_
    none = type(calibration)(calibration.rows[:0], calibration.scores[:0])
    assert survival(none, np.array([0.0, 0.5, 1.0])).tolist() == [1, 1, 0.5]


def test_normal_rows_that_all_score_0_leave_no_chance_to_others(detector):
    flat = type(detector.calibration_)(np.zeros((9, 1)), np.zeros(9))
    assert survival(flat, np.array([0.0, 0.1])).round(6).tolist() == [1, 0]


def test_fit_predict_is_fit_and_predict():
    groups = np.arange(len(X)) // 10
    once = Detector(false_alarm_rate=0.1, **QUICK)
    two = Detector(false_alarm_rate=0.1, **QUICK).fit(X, KIND, groups=groups)
    assert_array_equal(once.fit_predict(X, KIND, groups=groups), two.predict(X))
    assert two.predict(X).sum() > 20


SAID = ("score_samples", "decision_function", "predict", "predict_kind", "kind_p_values", "p_value")


@pytest.mark.parametrize("method", SAID)
def test_a_row_alone_gets_the_bits_of_its_batch_in_whatever_form_it_comes(method):
    """A dict or an array goes straight to its code; a frame becomes a table before."""
    frame = pd.DataFrame(X, columns=["pressure", "flow"])
    frame["state"] = np.where(RNG.random(len(X)) < 0.9, "on", "off")
    detector = Detector(**QUICK).fit(frame, KIND)
    rows = pd.DataFrame(NEW[400:600], columns=["pressure", "flow"])
    rows["state"] = np.where(NEW[400:600, 0] < 2, "on", "broken")
    plain = rows.to_dict("records")
    say = getattr(detector, method)
    together = say(rows)
    assert_array_equal(say(plain), together)
    assert_array_equal(np.concatenate([say([row]) for row in plain]), together)


@pytest.mark.parametrize("method", SAID)
def test_a_row_of_an_array_alone_gets_the_bits_of_its_batch(detector, method):
    say = getattr(detector, method)
    together = say(NEW[400:600].tolist())
    assert_array_equal(say(NEW[400:600]), together)
    alone = [say(NEW[i : i + 1]) for i in range(400, 600)]
    assert_array_equal(np.concatenate(alone), together)


def test_who_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        Detector().score_samples(NEW)
    with pytest.raises(NotFittedError):
        Detector().predict_kind(NEW)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A detector of mixed columns in a file, and rows in another."""
    folder = tmp_path_factory.mktemp("saved")
    made = make_mixed_demo(n_samples=600, random_state=0, as_frame=True)
    Detector(**QUICK).fit(made.X, made.kind).save(folder / "m.eqsep")
    made.X.to_csv(folder / "rows.csv", index=False)
    return folder / "m.eqsep", folder / "rows.csv", made.X


def test_a_detector_that_is_only_asked_says_what_one_says_that_learns(saved):
    model, _, rows = saved
    asked, learning = load_answering(model), load_model(model)
    assert type(asked) is FittedDetector
    assert type(learning) is Detector
    for say in ("score_samples", "predict", "predict_kind", "p_value", "kind_p_values"):
        assert_array_equal(getattr(asked, say)(rows), getattr(learning, say)(rows))
    assert asked.explain(rows[:3]) == learning.explain(rows[:3])
    assert asked.threshold_ == learning.threshold_
    asked.false_alarm_rate = 0.2
    assert asked.threshold_ < learning.threshold_


def test_a_detector_within_another_model_still_learns(tmp_path):
    from eqsep import NegativeSampling

    outer = NegativeSampling(Detector(**QUICK), random_state=0).fit(NORMAL[:300])
    outer.save(tmp_path / "m.eqsep")
    read = load_answering(tmp_path / "m.eqsep")
    assert type(read.estimator_) is Detector
    assert_array_equal(read.decision_function(NEW), outer.decision_function(NEW))


def test_scoring_a_file_waits_for_no_library_that_learns(saved):
    model, rows, _ = saved
    code = (
        "import sys; from contextlib import suppress\n"
        "from eqsep.cli import app\n"
        f"with suppress(SystemExit): app(['score', {str(model)!r}, {str(rows)!r}])\n"
        "late = {'sklearn', 'pandas', 'scipy.stats', 'torch', 'matplotlib'}\n"
        "print('imported:', *sorted(late & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *scores, told = done.stdout.splitlines()
    assert told == "imported:"
    assert len(scores) == 1 + len(rows.read_text().splitlines()[1:])
