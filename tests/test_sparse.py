"""Sparse matrices of SciPy as tables."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from eqsep import Detector
from eqsep.detector import Config
from eqsep.errors import UserError
from eqsep.tables import TableEncoder, reading

QUICK = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}
RNG = np.random.default_rng(0)
X = RNG.poisson(0.6, size=(600, 5)) * RNG.normal(3, 1, size=(600, 5)).round(2) + 0.0  # no -0.0
X[-20:, 0] = 30.0
KIND = np.repeat(["normal", "burst"], [580, 20]).tolist()
FORMS = ("csr_array", "csc_matrix", "coo_array", "bsr_matrix")


@pytest.fixture(scope="module")
def dense():
    return Detector(**QUICK).fit(X, KIND)


@pytest.mark.parametrize("form", FORMS)
def test_a_sparse_matrix_is_the_table_of_its_values(form, dense):
    rows = getattr(sparse, form)(X)
    assert_array_equal(TableEncoder().fit_transform(rows), TableEncoder().fit_transform(X))
    assert_array_equal(dense.score_samples(rows), dense.score_samples(X))
    assert_array_equal(dense.predict_kind(rows), dense.predict_kind(X))
    assert dense.explain(rows.tocsr()[-1:])[0].nearest_kind == "burst"


def test_a_fit_and_what_is_learnt_later_are_those_of_the_values(dense):
    fitted = Detector(**QUICK).fit(sparse.csr_array(X), KIND)
    assert_array_equal(fitted.score_samples(X), dense.score_samples(X))
    more = RNG.poisson(0.6, size=(50, 5)) * 1.0
    fitted.partial_fit(sparse.coo_array(more))
    other = Detector(**QUICK).fit(X, KIND).partial_fit(more)
    assert_array_equal(fitted.score_samples(X), other.score_samples(X))


@pytest.mark.parametrize("y", [KIND, np.array(KIND), pd.Series(KIND, index=range(600, 0, -1))])
def test_a_large_one_is_learnt_and_scored_in_batches(y, dense, monkeypatch):
    monkeypatch.setattr(reading, "LARGE", 1000)
    monkeypatch.setattr(reading, "AT_ONCE", 500)
    shapes = []
    toarray = sparse.csr_array.toarray
    sparse_rows = sparse.csr_array(X)
    monkeypatch.setattr(
        sparse.csc_array, "toarray", lambda self, **told: _seen(shapes, self, toarray, told)
    )
    fitted = Detector(**QUICK).fit(sparse_rows, y)
    assert_array_equal(fitted.score_samples(sparse_rows), dense.score_samples(X))
    assert len(shapes) >= 12
    assert max(n for _, n in shapes) == 100, "rows that are dense at once"


def _seen(shapes, matrix, toarray, told):
    shapes.append(matrix.shape)
    return np.ascontiguousarray(toarray(matrix.tocsr(), **told))


def test_a_large_one_without_labels_and_one_with_too_few(monkeypatch):
    monkeypatch.setattr(reading, "LARGE", 1000)
    rows = sparse.csr_array(X)
    one_class = Detector(**QUICK).fit(rows)
    assert_array_equal(one_class.score_samples(X), Detector(**QUICK).fit(X).score_samples(X))
    with pytest.raises(UserError, match="X has 600 rows, y has 599 labels"):
        Detector(**QUICK).fit(rows, KIND[1:])


def test_one_that_is_too_wide_says_what_memory_it_takes():
    wide = sparse.csr_array((200, 2**21))
    with pytest.raises(UserError, match=r"takes 3 GB .* at most 2 GB .*TruncatedSVD"):
        Detector().fit(wide)
    with pytest.raises(UserError, match=r"400 rows .* takes 7 GB"):
        TableEncoder().fit(sparse.csr_array((400, 2**21)))


def test_frames_with_sparse_columns_are_read_too(dense):
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(X))
    assert_array_equal(dense.score_samples(frame), dense.score_samples(X))
