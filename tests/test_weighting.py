"""Weights of rows: in the sums as if a row were there so many times, and not in the promise."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from eqsep.batches import sampling
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import Detector
from eqsep.detector.holdout import with_groups
from eqsep.engine.ellipsoid import Ellipsoid
from eqsep.errors import UserError
from eqsep.labels import read_row_labels
from eqsep.tables.reading import read_table

QUICK = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0}
RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(700, 3)), RNG.normal((4, 0, 0), 1, size=(40, 3))])
KIND = np.repeat(["normal", "pump"], [700, 40])
SHUFFLED = RNG.permutation(len(X))
X, KIND = X[SHUFFLED], KIND[SHUFFLED]
WEIGHT = RNG.integers(1, 4, size=len(X)).astype(float)
MORE, MORE_KIND = X[:200] + 0.1, KIND[:200]
pytestmark = pytest.mark.filterwarnings("ignore::eqsep.detector.RepeatedRowsWarning")


def same_sums(some, others):
    for part in fields(some.statistics_):
        mine, theirs = (getattr(d.statistics_, part.name) for d in (some, others))
        assert (mine is None) == (theirs is None)
        if mine is not None:
            assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9, err_msg=part.name)


@pytest.mark.parametrize("doubted", [False, True])
def test_a_weight_of_2_is_the_row_twice_in_all_sums(doubted):
    told = {"unlabelled": "doubted"} if doubted else {}
    one, other = (Detector(**QUICK, **told).fit(X, KIND) for _ in range(2))
    times = WEIGHT[:200].astype(int)
    one.partial_fit(MORE, MORE_KIND, sample_weight=times, judged=True)
    rows = np.repeat(np.arange(200), times)
    other.partial_fit(MORE[rows], MORE_KIND[rows], judged=True)
    same_sums(one, other)
    assert one.statistics_.leaves is not None
    assert (one.statistics_.anomalous is not None) == doubted
    assert_allclose(one.score_samples(X), other.score_samples(X), atol=1e-6)


def test_who_calibrates_and_counts_once_does_not_depend_on_weights():
    plain = Detector(**QUICK).fit(X, KIND)
    told = {"feature_map": plain.feature_map_}
    weighted = Detector(**told).fit(X, KIND, sample_weight=WEIGHT)
    assert_array_equal(weighted.calibration_.rows, plain.calibration_.rows)
    assert weighted.calibration_.n_units == plain.calibration_.n_units
    learnt, _, _ = plain.feature_map_.divided(
        read_table(X, name=""), read_row_labels(KIND, n_rows=len(X), normal=None)
    )
    by_kind = [WEIGHT[learnt & (name == KIND)].sum() for name in ("normal", "pump")]
    assert_allclose(weighted.statistics_.weight, by_kind)


def test_weights_of_1_change_nothing_and_rows_of_weight_0_are_not_there():
    plain = Detector(**QUICK).fit(X, KIND)
    ones = Detector(**QUICK).fit(X, KIND, sample_weight=np.ones(len(X)))
    assert_allclose(ones.score_samples(X), plain.score_samples(X), atol=1e-6)
    there = np.arange(len(X)) % 5 > 0
    few = Detector(**QUICK).fit(X[there], KIND[there], sample_weight=WEIGHT[there])
    zeros = Detector(**QUICK).fit(X, KIND.tolist(), sample_weight=WEIGHT * there)
    assert_array_equal(zeros.score_samples(X), few.score_samples(X))
    assert_array_equal(zeros.calibration_.rows, few.calibration_.rows)


def test_pieces_merges_and_what_is_forgotten_are_exact():
    feature_map = Detector(**QUICK).fit(X, KIND).feature_map_
    told = {"feature_map": feature_map, "false_alarm_rate": 0.1}
    whole, first, second = (Detector(**told) for _ in range(3))
    whole.fit(X, KIND, sample_weight=WEIGHT)
    first.fit(X[:400], KIND[:400], sample_weight=WEIGHT[:400])
    alone = first.score_samples(X)
    second.fit(X[400:], KIND[400:], sample_weight=WEIGHT[400:])
    same_sums(second.merge(first), whole)
    first.partial_fit(X[400:], KIND[400:], sample_weight=WEIGHT[400:])
    same_sums(first, whole)
    assert_array_equal(first.calibration_.rows, whole.calibration_.rows)
    first.forget(X[400:], KIND[400:], sample_weight=WEIGHT[400:])
    assert_allclose(first.score_samples(X), alone, atol=1e-5)
    with pytest.raises(UserError, match="more than was learnt"):
        first.forget(X[:400], KIND[:400], sample_weight=2 * WEIGHT[:400])


@pytest.fixture
def frame():
    columns = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "times": WEIGHT, "kind": KIND}
    return pd.DataFrame(columns)


def batches(frame):
    return [frame.iloc[at : at + 100] for at in range(0, len(frame), 100)]


def test_batches_with_a_column_of_weights_are_the_rows_in_memory(frame):
    frame.loc[100:299, "times"] = 0.0  # two batches of which nothing counts
    rows = frame.drop(columns="kind")
    memory = Detector(**QUICK).fit(rows, KIND, sample_weight="times")
    stream = Detector(**QUICK).fit(batches(frame), "kind", sample_weight="times")
    new = rows.drop(columns="times")
    assert_array_equal(stream.score_samples(new), memory.score_samples(new))
    assert stream.feature_names_in_.tolist() == ["a", "b", "c"]
    memory.partial_fit(rows[:100], KIND[:100], sample_weight="times", judged=True)
    stream.partial_fit(batches(frame)[:1], "kind", sample_weight="times", judged=True)
    same_sums(stream, memory)


def test_rows_that_are_learnt_after_all_bring_their_weights(frame, monkeypatch):
    """Of more rows than a sample holds, some are held out at first and learnt in the end."""
    monkeypatch.setattr(sampling, "SAMPLE", 300)
    stream = Detector(**QUICK).fit(batches(frame), "kind", sample_weight="times")
    known = with_groups(read_table(frame[["a", "b", "c"]], name=""))
    labels = read_row_labels(KIND, n_rows=len(X), normal=None)
    learnt, held, _ = stream.feature_map_.divided(known, labels)
    assert 0 < held.sum() == len(stream.calibration_.rows)
    by_kind = [WEIGHT[learnt & (name == KIND)].sum() for name in ("normal", "pump")]
    assert_allclose(stream.statistics_.weight, by_kind)


def test_the_ellipsoid_of_rows_that_count_twice_is_that_of_rows_twice():
    rows = RNG.normal(size=(400, 1)) + RNG.normal(scale=0.3, size=(400, 4))
    times, rng = RNG.integers(1, 5, size=400), np.random.RandomState(0)
    weighted = Ellipsoid.of(rows, rng, times.astype(float))
    repeated, plain = (Ellipsoid.of(r, rng) for r in (np.repeat(rows, times, axis=0), rows))
    new = RNG.normal(size=(50, 4))
    found, wanted = (one.excess(one.along(new)) for one in (weighted, repeated))
    assert_allclose(found, wanted, rtol=1e-6)
    assert_allclose([weighted.edge, weighted.tail], [repeated.edge, repeated.tail])
    assert not np.allclose(plain.centre, repeated.centre)


def test_the_ellipsoid_of_a_fit_counts_weights():
    fitted = [Detector(**QUICK).fit(X, KIND, sample_weight=w) for w in (None, WEIGHT**3)]
    assert not np.allclose(*(d.feature_map_.ellipsoid.centre for d in fitted))


def test_what_counts_more_is_told_better():
    near = X[KIND == "pump"]
    heavy = Detector(**QUICK).fit(X, KIND, sample_weight=np.where(KIND == "pump", 20.0, 1.0))
    light = Detector(**QUICK).fit(X, KIND)
    assert heavy.score_samples(near).mean() > light.score_samples(near).mean()


@pytest.mark.parametrize(
    ("weight", "told"),
    [
        (np.ones(3), r"expected \(740,\)"),
        (-WEIGHT, "not negative"),
        (np.zeros(len(X)), "not all zero"),
        ("heft", "'heft' is no column: the columns are"),
    ],
)
def test_weights_that_are_none_are_refused(weight, told):
    with pytest.raises(UserError, match=told):
        Detector(**QUICK).fit(X, KIND, sample_weight=weight)


def test_weights_beside_batches_are_refused(frame):
    with pytest.raises(UserError, match="sample_weight must be the name of a column"):
        Detector(**QUICK).fit(batches(frame), "kind", sample_weight=WEIGHT)
