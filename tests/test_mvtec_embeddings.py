"""Embeddings of MVTec AD: on archives of a few rows, and on the real ones where they are."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eqsep.datasets import load_mvtec_embeddings


def write(home, **arrays):
    (home / "mvtec-embeddings").mkdir(exist_ok=True)
    np.savez(home / "mvtec-embeddings" / "MVTec-AD_pill.npz", **arrays)
    return home


def test_rows_and_kinds_are_those_of_the_archive(tmp_path):
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    table = load_mvtec_embeddings("pill", data_home=write(tmp_path, X=X, y=[0, 1, 0]))
    assert_array_equal(table.X, X)
    assert table.X.dtype == np.float64
    assert table.kind.tolist() == ["normal", "defect", "normal"]
    assert table.feature_names == ("x1", "x2")


def test_an_unknown_object_names_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"'pil': expected one of capsule, .*, zipper"):
        load_mvtec_embeddings("pil", data_home=tmp_path)


def test_a_missing_archive_is_named_with_its_source(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no MVTec-AD_wood.npz in .*https://github.com"):
        load_mvtec_embeddings("wood", data_home=tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((2, 3))}, "archive of the numeric arrays X and y"),
        ({"X": np.zeros((2, 3)), "y": [0, 1, 0]}, r"got \(2, 3\) and \(3,\)"),
        ({"X": np.zeros(2), "y": [0, 1]}, r"got \(2,\) and \(2,\)"),
        ({"X": np.array([[{}]], dtype=object), "y": [0]}, "numeric arrays.*allow_pickle=False"),
    ],
)
def test_another_kind_of_archive_is_refused(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=f"is not a file of the MVTec AD embeddings.*{message}"):
        load_mvtec_embeddings("pill", data_home=write(tmp_path, **arrays))


def test_an_unknown_label_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"belongs to no kind: \[2\]"):
        load_mvtec_embeddings("pill", data_home=write(tmp_path, X=np.zeros((2, 1)), y=[0, 2]))


@pytest.mark.parametrize("content", [b"PK\3\4", b"", b"X,y\n", "array"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = write(tmp_path, X=[], y=[]) / "mvtec-embeddings" / "MVTec-AD_pill.npz"
    if content == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros((2, 3)))
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a file of the MVTec AD embeddings"):
        load_mvtec_embeddings("pill", data_home=tmp_path)


@pytest.mark.parametrize(("name", "good", "defects"), [("capsule", 242, 109), ("wood", 266, 60)])
def test_the_real_archives_have_as_many_images_as_published(name, good, defects, home_of):
    table = load_mvtec_embeddings(name, data_home=home_of("mvtec-embeddings"))
    assert table.X.shape == (good + defects, 1_000)
    assert table.y.sum() == defects
