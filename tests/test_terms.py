"""Terms: a new one is a class, a line in `TERMS` and a line in the formula, and all know it."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from summed import sums_of

from eqsep import Detector, load_model, schemas
from eqsep.detector import Config
from eqsep.detector import score as scores
from eqsep.detector.terms import TERMS
from eqsep.detector.terms.term import Sums, Term, TermFunction
from eqsep.errors import UserError
from eqsep.persistence import ModelFileError
from eqsep.serve import ledger

RNG = np.random.default_rng(0)
SPREAD = [1.0, 1.0, 0.1]
X = np.vstack([RNG.normal(size=(900, 3)), RNG.normal((5, 0, 0), size=(60, 3))]) * SPREAD
KIND = np.repeat(["normal", "leak"], [900, 60])
ORDER = RNG.permutation(len(X))
X, KIND = X[ORDER], KIND[ORDER]
NEW = RNG.normal(scale=2, size=(200, 3)) * SPREAD
SETTINGS = {"n_landmarks": 60, "bandwidth": 1.0, "config": Config.fast()}


# A whole term, as a file in detector/terms/ would have it.
@dataclass(frozen=True, eq=False, kw_only=True)
class MiddleTerm(Term):
    """How far a row is from the mean of the learnt normal rows."""

    weight: float
    columns: np.ndarray

    name: ClassVar = "middle"
    SCHEMAS: ClassVar = {"weight": schemas.POSITIVE}

    @classmethod
    def choose(cls, first):
        return cls(weight=0.1, columns=np.arange(first.rows.shape[1]))

    def accumulate(self, rows):
        weighted = rows.weight[:, None] * rows.target
        return Sums(by_class={"total": rows.rows.T @ weighted})

    def solve(self, learnt):
        total = learnt.of_terms[self.name].by_class["total"][:, 0]
        return MiddleFunction(self, total / max(learnt.weight[0], 1.0))

    @classmethod
    def load(cls, state, *, encoder, before):
        del before
        return cls.from_state(state, columns=np.arange(len(encoder.counted)))


@dataclass(frozen=True, eq=False)
class MiddleFunction(TermFunction):
    term: MiddleTerm
    middle: np.ndarray

    def __call__(self, rows, at_landmarks):
        del at_landmarks
        axes = np.eye(len(self.middle))
        return rows.backend.distance(
            rows.backend.along(rows.rows, self.term.columns, self.middle, axes)
        )


def middle_term(plan):
    return plan.terms[-1]


combine = scores.combine  # the formula as it is


def with_middle(values, *, weights, **more):
    """The formula with one line more."""
    score = combine(values, weights=weights, **more)
    if (middle := values.get("middle")) is not None:
        score = score + weights["middle"] * middle
    return score


@pytest.fixture(scope="module", autouse=True)
def known():
    """The term is chosen, and the formula counts it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores, "combine", with_middle)
        TERMS.append(MiddleTerm)
        yield
        TERMS.remove(MiddleTerm)


@pytest.fixture(scope="module")
def fitted(known):  # noqa: ARG001 - first the term, then the fit
    return Detector(random_state=0, **SETTINGS).fit(X, KIND)


@pytest.fixture
def detector(fitted):
    """A copy that may learn."""
    return deepcopy(fitted)


def middle_of(detector):
    return sums_of(detector.model_)["middle"].by_class["total"]


def middle_values(detector, rows):
    """The term by hand: of rows that are learnt, the normal ones."""
    plan = detector.plan_
    labels = plan.labels.read(KIND, n_rows=len(X), known=detector.model_.evidence.labels)
    learnt = plan.holdout.split(plan.align(X), labels, encoder=plan.encoder).learnt
    middle = plan.encode(X[learnt & (KIND == "normal")]).mean(axis=0, dtype=float)
    return (((plan.encode(rows) - middle) ** 4).mean(axis=1)) ** 0.25


def test_a_fit_chooses_the_term_and_the_score_counts_it(detector, monkeypatch):
    assert isinstance(middle_term(detector.plan_), MiddleTerm)
    expected = middle_values(detector, NEW)
    assert expected.min() > 0.05
    found = detector.model_.score.values(detector.plan_.encode(NEW))["middle"]
    assert_allclose(found, expected, rtol=1e-5)
    with_it = detector.score_samples(NEW)
    monkeypatch.setattr(scores, "combine", combine)
    assert_allclose(with_it - detector.score_samples(NEW), 0.1 * expected, rtol=1e-4)
    monkeypatch.setattr(scores, "combine", with_middle)
    score, likeness = detector.model_.score.with_kind_likeness(detector.plan_.encode(NEW), 0.5)
    assert_array_equal(score, with_it)
    assert len(likeness) == (with_it > 0.5).sum()


def test_the_threshold_is_one_of_scores_with_the_term(detector, monkeypatch):
    calibrating = detector.model_.evidence.held_out.normal
    assert_array_equal(detector.calibration_.scores, detector.model_.score(calibrating))
    monkeypatch.setattr(scores, "combine", combine)
    assert (detector.calibration_.scores > detector.model_.score(calibrating)).all()


def test_pieces_merges_and_forgetting_sum_the_term_exactly(detector):
    whole, plan = detector, detector.plan_

    def like(rows, kinds):
        return Detector(plan=plan, **SETTINGS, false_alarm_rate=0.05).fit(rows, kinds)

    first = like(X[:600], KIND[:600])
    before = middle_of(first).copy(), first.score_samples(NEW)
    assert not np.allclose(before[0], middle_of(whole))
    learnt = first.partial_fit(X[600:], KIND[600:])
    assert_allclose(middle_of(learnt), middle_of(whole), rtol=1e-12, atol=1e-9)
    assert_allclose(learnt.score_samples(NEW), whole.score_samples(NEW), atol=1e-6)
    learnt.forget(X[600:], KIND[600:])
    assert_allclose(middle_of(learnt), before[0], rtol=1e-12, atol=1e-9)
    assert_allclose(learnt.score_samples(NEW), before[1], atol=1e-6)
    merged = like(X[:600], KIND[:600]).merge(like(X[600:], KIND[600:]))
    assert_allclose(middle_of(merged), middle_of(whole), rtol=1e-12, atol=1e-9)
    assert_allclose(merged.score_samples(NEW), whole.score_samples(NEW), atol=1e-6)


def test_a_kind_that_comes_and_goes_takes_its_sums_with_it(detector):
    before = middle_of(detector).copy()
    crack = NEW[:30] + np.array([0, 9, 0])
    detector.partial_fit(crack, ["crack"] * 30, judged=True)
    assert middle_of(detector).shape[1] == before.shape[1] + 1
    detector.forget(crack, ["crack"] * 30, judged=True)
    assert_allclose(middle_of(detector), before, rtol=1e-12, atol=1e-9)
    renamed = detector.model_.evidence.renamed("leak", "normal leak")
    assert_array_equal(renamed.sums[-1].by_class["total"], middle_of(detector))


@pytest.mark.filterwarnings("ignore::eqsep.detector.NewKindWarning")  # rows twice as far out
def test_a_file_keeps_the_term_bit_for_bit(detector, tmp_path):
    detector.save(tmp_path / "m.eqsep")
    loaded = load_model(tmp_path / "m.eqsep")
    assert middle_term(loaded.plan_).is_same(middle_term(detector.plan_))
    assert_array_equal(middle_of(loaded), middle_of(detector))
    assert_array_equal(loaded.score_samples(NEW), detector.score_samples(NEW))
    assert ledger.digest(loaded.model_) == ledger.digest(detector.model_)
    loaded.partial_fit(NEW, ["normal"] * len(NEW))
    detector.partial_fit(NEW, ["normal"] * len(NEW))
    assert_array_equal(loaded.score_samples(NEW), detector.score_samples(NEW))


def test_a_program_without_the_term_refuses_its_file(detector, tmp_path):
    detector.save(tmp_path / "m.eqsep")
    TERMS.remove(MiddleTerm)
    try:
        with pytest.raises(ModelFileError, match="middle"):
            load_model(tmp_path / "m.eqsep")
    finally:
        TERMS.append(MiddleTerm)


def test_a_plan_with_the_term_is_not_one_without(detector):
    plan = detector.plan_
    *others, middle = plan.terms
    for terms in ((*others,), (*others, replace(middle, weight=0.2))):
        other = replace(plan, terms=terms)
        assert not plan.is_same(other)
        assert not other.is_same(plan)


def test_the_digest_of_a_model_changes_with_the_sums_of_the_term(detector):
    model = detector.model_
    *others, middle = model.evidence.sums
    more = replace(middle, by_class={"total": middle.by_class["total"] + 1e-9})
    changed = replace(model, evidence=replace(model.evidence, sums=(*others, more)))
    assert ledger.digest(changed) != ledger.digest(model)


def test_a_device_scores_the_term(detector):
    """Without a GPU "auto" is the processor, by torch."""
    pytest.importorskip("torch", reason="the extra nn is not installed")
    here = detector.score_samples(NEW)
    there = detector.set_params(device="auto")
    assert there.model_.score.backend.device == "auto"
    assert_allclose(there.score_samples(NEW), here, atol=1e-3)
    again = Detector(random_state=0, device="auto", **SETTINGS).fit(X, KIND)
    assert_allclose(middle_of(again), middle_of(detector), rtol=1e-9, atol=1e-6)
    assert_allclose(again.score_samples(NEW), here, atol=1e-3)


def test_an_explanation_adds_up_to_the_score_with_the_term(detector):
    rows = NEW[detector.predict(NEW) == 1][:5]
    for row_score, told in zip(detector.score_samples(rows), detector.explain(rows), strict=True):
        assert_allclose(told.score, row_score, atol=1e-6)
        parts = sum(reason.contribution for reason in told.reasons)
        assert_allclose(told.base + parts + told.rest, row_score, atol=1e-6)


def test_an_export_refuses_the_term_until_it_is_written(detector, tmp_path):
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    with pytest.raises(UserError, match="MiddleTerm"):
        detector.to_onnx(tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()
