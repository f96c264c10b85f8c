"""A model: what follows from a plan and evidence, under another promise, elsewhere, or taught."""

import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import Detector, load_model
from eqsep.checks import DateColumnWarning
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config, Model
from eqsep.detector.calibration import Promise
from eqsep.detector.evidence import gather
from eqsep.errors import UserError
from eqsep.persistence.files import read_model

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(900, 2)), RNG.normal((6, 0), 0.5, size=(40, 2))])
KIND = np.repeat(["normal", "pump"], [900, 40])
NEW = np.vstack([RNG.normal(size=(300, 2)), RNG.normal(scale=4, size=(300, 2))])


@pytest.fixture(scope="module")
def model():
    quick = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}
    return Detector(**quick).fit(X, KIND).model_


def test_a_model_follows_from_its_plan_and_evidence(model):
    again = Model.solve(model.plan, model.evidence, model.config, promise=model.promise)
    assert_array_equal(again.scores(NEW), model.scores(NEW))
    assert_array_equal(again.kind_of(NEW), model.kind_of(NEW))
    assert again.threshold == model.threshold


def test_another_promise_is_another_view_of_the_same_model(model):
    assert model.promising(model.promise) is model
    often = model.promising(Promise(false_alarm_rate=0.2, unseen_rate=0.3))
    assert often is model.promising(Promise(false_alarm_rate=0.2, unseen_rate=0.3))
    assert often.threshold < model.threshold
    assert (often.score, often.calibration, often.namer) == (
        *(model.score, model.calibration, model.namer),
    )
    assert often.verdicts(NEW).alarm.sum() > model.verdicts(NEW).alarm.sum()
    assert_array_equal(often.scores(NEW), model.scores(NEW))
    (found,) = model.promising(Promise(false_alarm_rate=0.001)).check_promise()
    assert "rate of 0.001 cannot be promised" in found.message
    assert not often.check_promise()


def test_another_device_is_where_rows_are_scored(model):
    pytest.importorskip("torch", reason="the extra nn is not installed")
    assert model.on("cpu") is model
    there = model.on("auto")
    assert there is model.on("auto")
    assert there.score.backend.device == "auto"
    assert_allclose(there.scores(NEW), model.scores(NEW), atol=1e-3)
    assert there.threshold == model.threshold


def test_what_it_is_taught_is_a_new_model_and_the_old_one_stays(model):
    before = model.scores(NEW)
    table = model.plan.align(NEW[:300])
    labels = model.plan.labels.read(["normal"] * 300, n_rows=300, known=model.evidence.labels)
    model = replace(model, left_out=("id",))
    more = model.taught(model.evidence + gather(model.plan, table, labels))
    assert_array_equal(model.scores(NEW), before)
    assert abs(more.scores(NEW) - before).max() > 1e-4
    assert more.n_learnt[0] > model.n_learnt[0]
    assert (more.promise, more.left_out, more.config) == (model.promise, ("id",), model.config)
    back = more.taught(more.evidence - gather(model.plan, table, labels))
    assert_allclose(back.scores(NEW), before, atol=1e-6)


def test_verdicts_agree_with_one_another(model):
    said = model.verdicts(NEW)
    assert_array_equal(said.score, model.scores(NEW))
    assert_array_equal(said.alarm, said.score > model.threshold)
    assert_array_equal(said.p_value, model.p_value(NEW))
    assert_array_equal(said.kind, model.kind_of(NEW))
    assert_array_equal(said.kind == "normal", ~said.alarm)
    strict = model.verdicts(NEW, threshold=2 * model.threshold)
    assert strict.alarm.sum() < said.alarm.sum()
    assert list(said.columns()) == ["score", "p_value", "alarm", "kind", "kind_probability"]


def test_groups_of_rows_are_refused_where_rows_were_held_out_one_by_one(model):
    with pytest.raises(UserError, match="held out rows one by one"):
        model.p_value(NEW, groups=np.zeros(len(NEW)))
    assert model.n_calibrating() == len(model.calibration.counting)


def test_a_model_can_be_sent_with_what_it_has_kept_at_hand_left_behind(model):
    model.kind_of(NEW)
    model.explain(NEW[:2])
    there = pickle.loads(pickle.dumps(model))
    assert_array_equal(there.scores(NEW), model.scores(NEW))
    assert_array_equal(there.kind_of(NEW), model.kind_of(NEW))


def test_a_model_is_kept_by_its_state(model):
    again = Model.from_state(model.state())
    assert_array_equal(again.scores(NEW), model.scores(NEW))
    assert_array_equal(again.kind_of(NEW), model.kind_of(NEW))
    assert again.explain(NEW[:3]) == model.explain(NEW[:3])


def test_a_score_is_kept_until_the_model_is_taught():
    quick = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}
    detector = Detector(**quick).fit(X, KIND)
    before = detector.model_.score
    assert detector.model_.score is before
    detector.partial_fit(X[:50] + 0.3, KIND[:50])
    assert detector.model_.score is not before
    assert detector.model_.score.kernel.coef is detector.coef_


def test_a_model_that_is_read_alone_says_what_a_detector_says_that_learns(tmp_path):
    made = make_mixed_demo(n_samples=600, random_state=0, as_frame=True)
    quick = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}
    Detector(**quick).fit(made.X, made.kind).save(tmp_path / "m.eqsep")
    asked, learning = read_model(tmp_path / "m.eqsep"), load_model(tmp_path / "m.eqsep")
    assert type(asked) is Model
    assert type(learning) is Detector
    assert_array_equal(asked.scores(made.X), learning.score_samples(made.X))
    assert_array_equal(asked.kind_of(made.X), learning.predict_kind(made.X))
    assert_array_equal(asked.p_value(made.X), learning.p_value(made.X))
    assert asked.explain(made.X[:3]) == learning.explain(made.X[:3])
    assert asked.threshold == learning.threshold_
    assert asked.promising(Promise(0.2)).threshold < learning.threshold_


def test_later_dates_are_worth_a_warning_only_if_they_raise_alarms():
    rng, beyond = np.random.default_rng(0), Counter({("day", "later date", "2025-03-01"): 9})
    day = pd.to_datetime("2025-01-01") + pd.to_timedelta(rng.integers(0, 60, 600), unit="D")
    X = pd.DataFrame({"x": rng.normal(size=600), "day": day})
    with pytest.warns(DateColumnWarning):
        detector = Detector(false_alarm_rate=0.05, config=Config.fast(), random_state=0).fit(X)
    (found,) = detector.model_.check_beyond(beyond, n_rows=9)
    assert found.fields == {"column": "day"}
    detector.false_alarm_rate = 0.4  # all rows that raise an alarm are not three times as many
    assert detector.model_.check_dates() == []
    assert detector.model_.check_beyond(beyond, n_rows=9) == []
