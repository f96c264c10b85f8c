"""Packed distances: what the encoded columns say, with fewer of them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from eqsep.detector.feature_map import Packing
from eqsep.tables.fitted import aligned, encoded
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import Detector
from eqsep.engine.manhattan import SparseManhattan
from eqsep.tables import TableEncoder


def frame(rng, n, *, missing):
    """Every kind of column, with and without missing values."""
    start = np.datetime64("2025-01-01T00:00:00", "s")
    table = pd.DataFrame(
        {
            "size": rng.lognormal(sigma=3, size=n),
            "whole": rng.integers(0, 5, size=n).astype(float),
            "mostly_zero": np.where(rng.random(n) < 0.8, 0.0, rng.normal(size=n)),
            "two": rng.choice([1.5, 4.0], size=n),
            "constant": 3.0,
            "shape": rng.choice(["round", "flat", "thin"], size=n),
            "truth": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "time": start + rng.integers(0, 3 * 10**6, size=n) * np.timedelta64(1, "s"),
        }
    )
    for name in table.columns:
        table.loc[rng.random(n) < missing, name] = None
    return table


@settings(max_examples=25, deadline=None)
@given(
    missing=st.sampled_from([0.0, 0.2]),
    later=st.sampled_from([0.0, 0.3]),
    scale=st.sampled_from([1.0, 1e9, 1e-9]),
    seed=st.integers(0, 2**31),
)
def test_distances_are_those_of_all_encoded_columns(missing, later, scale, seed):
    """Also for values beyond those of training, and missing where none was."""
    rng = np.random.default_rng(seed)
    encoder = TableEncoder(numeric_encoding="both").fit(frame(rng, 60, missing=missing))
    strange = frame(rng, 40, missing=later)
    strange["size"] = (strange["size"] - 1) * scale
    strange["constant"] = rng.choice([3.0, 4.0], size=40)
    strange["shape"] = rng.choice(["round", "new"], size=40)
    Z, C = encoded(encoder, strange), encoded(encoder, frame(rng, 30, missing=missing))
    expected = np.abs(Z[:, None].astype(float) - C).sum(axis=2)
    pack = Packing.of(encoder)
    assert_allclose(SparseManhattan(pack(C))(pack(Z)), expected, rtol=2e-6, atol=2e-4)


def test_ranks_and_deviations_become_one_column():
    encoder = TableEncoder(numeric_encoding="both").fit([[1.0, "a"], [2.0, "b"], [4.0, "b"]])
    packing = Packing.of(encoder)
    assert_array_equal(packing.first, [0, 2, 3, 4])
    assert_array_equal(packing(np.arange(5.0)[None]), [[1, 2, 3, 4]])


@pytest.mark.parametrize("columns", ["quantile", "standard"])
def test_single_columns_stay_as_they_are(columns):
    encoder = TableEncoder(numeric_encoding=columns).fit([[1.0, 7.0], [2.0, 8.0], [4.0, 5.0]])
    rows = np.arange(4.0).reshape(2, 2)
    assert_array_equal(Packing.of(encoder)(rows), rows)


def test_a_detector_that_has_scored_can_still_be_sent():
    X = np.random.default_rng(0).normal(size=(300, 3))
    detector = Detector(n_landmarks=40, bandwidth=1.0, false_alarm_rate=0.05, random_state=0).fit(X)
    score = detector.score_samples(X)
    assert_array_equal(pickle.loads(pickle.dumps(detector)).score_samples(X), score)


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")  # of one row
@pytest.mark.parametrize("n_normal", [1, 2, 12])
def test_of_one_normal_row_none_is_held_out_and_of_more_some_are(n_normal):
    X = np.random.default_rng(0).normal(size=(n_normal + 3, 2))
    y = np.repeat([0, 1], [n_normal, 3])
    made = Detector(bandwidth=0.5, random_state=0).fit(X, y).feature_map_
    assert (made.holdout_bound > 0) == (n_normal > 1)
    later = np.random.default_rng(1).normal(size=(1000, 2))
    share = made.calibrates(aligned(made.encoder, later)).mean()
    assert (share > 0) == (n_normal > 1)
