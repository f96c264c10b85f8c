"""Backends: the same arithmetic by NumPy and by PyTorch."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eqsep.engine.backends import NUMPY, TorchBackend, backend_for

torch = pytest.importorskip("torch", reason="the extra nn is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(50, 4)).astype(np.float32)
COLUMNS, CENTRE, AXES = np.array([0, 2, 3]), RNG.normal(size=3), RNG.normal(size=(3, 2))
OPERATIONS = {
    "beside": lambda b, x: b.beside(x, b.along(x, COLUMNS, CENTRE, AXES)),
    "root": lambda b, x: b.root(abs(x[:, 0])),
    "clipped": lambda b, x: b.clipped(x, -0.5, 1.0),
    "clipped from below": lambda b, x: b.clipped(x, 0.0, np.inf),
    "log": lambda b, x: b.log(abs(b.double(x))),
    "along": lambda b, x: b.along(x, COLUMNS, CENTRE, AXES),
    "distance": lambda b, x: b.distance(b.along(x, COLUMNS, CENTRE, AXES)),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation_gives_the_same_numbers_in_memory_and_on_a_device(operation):
    there = TorchBackend(DEVICE)
    (moved,) = there.pieces(ROWS)
    here, found = operation(NUMPY, ROWS), there.fetched(operation(there, moved))
    assert here.dtype == found.dtype
    assert_allclose(found, here, rtol=1e-6, atol=1e-7)


def test_numbers_are_clipped_from_below_and_above():
    x = np.array([-1.0, 0.5, 9.0])
    assert NUMPY.clipped(x, 0, 1).tolist() == [0.0, 0.5, 1.0]
    assert NUMPY.clipped(x, 0, np.inf).tolist() == [0.0, 0.5, 9.0]


def test_rows_beyond_single_precision_are_infinite_beside_others():
    with np.errstate(over="raise"):
        beside = NUMPY.beside(ROWS[:1], np.array([[1e300]]))
    assert beside.dtype == np.float32
    assert np.isinf(beside[0, -1])


def test_each_device_has_one_backend():
    assert backend_for("cpu") is NUMPY
    assert backend_for("auto") is backend_for("auto")
    assert pickle.loads(pickle.dumps(NUMPY)) is deepcopy(NUMPY) is NUMPY
