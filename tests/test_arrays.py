from dataclasses import make_dataclass

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator

from eqsep.arrays import (
    is_foreign,
    namespace,
    resolve_device,
    same_parts,
    to_numpy,
    validate_rows,
)


class Anything(BaseEstimator):
    pass


def test_a_tensor_stays_a_tensor_and_a_list_becomes_an_array():
    X = torch.ones((3, 2), dtype=torch.float32)
    assert validate_rows(Anything(), X, reset=True) is X
    rows = validate_rows(Anything(), [[1, 2]], reset=True)
    assert rows.dtype == np.float64
    assert is_foreign(X)
    assert not is_foreign(rows)
    assert namespace(X) is not namespace(rows)
    assert to_numpy(X).tolist() == [[1, 1]] * 3


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (torch.ones(3), r"2D array.*got shape \(3,\)"),
        (torch.ones((0, 2)), "at least one row"),
        (torch.ones((2, 2), dtype=torch.int64), r"floating-point tensors, got torch.int64"),
        (torch.tensor([[1.0, float("nan")]]), "contains NaN or infinity"),
        (torch.tensor([[1.0, float("inf")]]), "contains NaN or infinity"),
    ],
)
def test_tensors_are_held_to_the_rules_of_arrays(X, message):
    with pytest.raises(ValueError, match=message):
        validate_rows(Anything(), X, reset=True)


def test_columns_are_counted_against_the_fit():
    estimator = Anything()
    validate_rows(estimator, torch.ones((2, 3)), reset=True)
    assert estimator.n_features_in_ == 3
    with pytest.raises(ValueError, match="X has 4 features, but Anything is expecting 3"):
        validate_rows(estimator, torch.ones((2, 4)), reset=False)


def test_devices_are_named_and_checked():
    assert resolve_device("cpu").type == "cpu"
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ValueError, match=r"device must be one of .* got 'tpu'"):
        resolve_device("tpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_asking_for_a_gpu_where_there_is_none_is_an_error():
    with pytest.raises(ValueError, match="torch sees no GPU"):
        resolve_device("cuda")


def test_records_are_the_same_if_all_their_parts_are():
    Line = make_dataclass("Line", ["slope", "points"])
    assert same_parts(Line(1.0, np.ones(2)), Line(1.0, np.ones(2)))
    assert not same_parts(Line(1.0, np.ones(2)), Line(1.0, np.zeros(2)))
    assert not same_parts(Line(1.0, None), None)
