"""Model files outlive the version that wrote them: each loads, answers and learns on as it did."""

import numpy as np
import pytest
from golden_files import FOLDER, answers, golden, learn_on, read, read_rows, surroundings
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import load_model

VERSIONS = sorted(folder.name for folder in FOLDER.iterdir())
FILES = [(version, name) for version in VERSIONS for name in golden(FOLDER / version)["models"]]
every = pytest.mark.parametrize(("version", "name"), FILES, ids=lambda value: str(value))


def opened(version, name):
    """The entry of a model, the model, the rows it was asked about, and whether bits compare."""
    folder = FOLDER / version
    document = golden(folder)
    entry = document["models"][name]
    rows = read_rows(document["rows"][entry["rows"]])
    return entry, load_model(folder / entry["file"]), rows, document["made_with"] == surroundings()


def check_same(found, expected, *, bits):
    """Whether the answers are those of the file: to the last bit where the same libraries add up.

    Another processor, BLAS or version of torch adds in another order; what is left of a sum in
    single precision then agrees to six digits.
    """
    assert set(expected) <= set(found)
    for name, entry in expected.items():
        array = read(entry)
        if array.dtype.kind == "f" and not bits:
            assert_allclose(found[name], array, rtol=1e-5, atol=1e-6, err_msg=name)
        else:
            assert_array_equal(found[name], array, err_msg=name)


@every
def test_a_model_of_an_older_version_gives_the_same_answers(version, name):
    entry, model, rows, bits = opened(version, name)
    check_same(answers(model, rows), entry["answers"], bits=bits)


@pytest.mark.parametrize(
    ("version", "name"),
    [(v, n) for v, n in FILES if "learnt_on" in golden(FOLDER / v)["models"][n]],
)
def test_a_model_of_an_older_version_learns_on(version, name):
    entry, model, rows, bits = opened(version, name)
    labels = None if entry["labels"] is None else read(entry["labels"])
    found = answers(learn_on(model, rows, labels), rows)
    check_same(found, entry["learnt_on"], bits=bits)
    assert any(entry["learnt_on"][k] != entry["answers"][k] for k in entry["answers"])


@every
def test_a_model_of_an_older_version_is_saved_as_a_present_one(version, name, tmp_path):
    entry, model, rows, bits = opened(version, name)
    model.save(tmp_path / "model.eqsep")
    again = load_model(tmp_path / "model.eqsep")
    check_same(answers(again, rows), entry["answers"], bits=bits)
    assert repr(again) == repr(model)


def test_bits_are_compared_where_the_files_were_made():
    made_with = golden(FOLDER / VERSIONS[0])["made_with"]
    if made_with != surroundings():
        pytest.skip(f"other libraries or another processor: {surroundings()}, not {made_with}")
    _, model, rows, bits = opened(VERSIONS[0], "detector, 0/1")
    assert bits
    scores = answers(model, rows)["score_samples"]
    expected = {"score_samples": {"dtype": "<f8", "shape": scores.shape, "hex": ""}}
    expected["score_samples"]["hex"] = np.nextafter(scores, 9).tobytes().hex()
    with pytest.raises(AssertionError):
        check_same({"score_samples": scores}, expected, bits=bits)
