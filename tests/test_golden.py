"""Golden model files: each loads, answers and learns on as when it was written."""

import numpy as np
import pytest
from forged_files import taken_apart
from golden_files import FOLDER, answers, golden, learn_on, read, read_rows, surroundings, written
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import Detector, load_model
from eqsep.detector.model import Model
from eqsep.persistence import read_model
from eqsep.persistence.container import VERSION
from eqsep.persistence.files import model_bytes
from eqsep.persistence.registry import CODECS

FORMATS = sorted(folder.name for folder in FOLDER.iterdir())
FILES = [(number, name) for number in FORMATS for name in golden(FOLDER / number)["models"]]
every = pytest.mark.parametrize(("number", "name"), FILES)


def opened(number, name):
    """The entry of a model, its file, the rows it was asked about, and whether bits compare."""
    folder = FOLDER / number
    document = golden(folder)
    entry = document["models"][name]
    rows = read_rows(document["rows"][entry["rows"]])
    return entry, folder / entry["file"], rows, document["made_with"] == surroundings()


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
def test_a_golden_file_gives_the_same_answers(number, name):
    entry, file, rows, bits = opened(number, name)
    check_same(answers(load_model(file), rows), entry["answers"], bits=bits)


@pytest.mark.parametrize(
    ("number", "name"), [one for one in FILES if "learnt_on" in opened(*one)[0]]
)
def test_a_golden_file_learns_on(number, name):
    entry, file, rows, bits = opened(number, name)
    learnt = learn_on(load_model(file), rows, read(entry["labels"]))
    check_same(answers(learnt, rows), entry["learnt_on"], bits=bits)
    assert any(entry["learnt_on"][k] != entry["answers"][k] for k in entry["answers"])


@every
def test_a_golden_file_is_read_to_score_alone(number, name):
    _, file, rows, _ = opened(number, name)
    model, alone = load_model(file), read_model(file)
    if isinstance(model, Detector):
        assert isinstance(alone, Model)
        assert alone.verdicts(rows).score.tobytes() == model.score_samples(rows).tobytes()
        assert_array_equal(alone.verdicts(rows).kind, model.predict_kind(rows))
    else:
        assert_array_equal(alone.decision_function(rows), model.decision_function(rows))


@pytest.mark.parametrize("name", golden(FOLDER / str(VERSION))["models"])
def test_the_present_format_is_that_of_its_golden_files(name):
    """If this fails, the format has changed: run tools/golden.py, or raise VERSION if released."""
    file = opened(str(VERSION), name)[1]
    now, then = taken_apart(model_bytes(load_model(file))), taken_apart(file.read_bytes())
    assert now[0]["model"] == then[0]["model"]
    assert (now[0]["arrays"], now[1]) == (then[0]["arrays"], then[1])


def test_golden_files_hold_every_class_that_a_file_may_hold():
    files = (opened(*one)[1] for one in FILES if one[0] == str(VERSION))
    named = set().union(*(classes(taken_apart(file.read_bytes())[0]["model"]) for file in files))
    assert named == set(CODECS)


def classes(tree):
    """The names of the classes in the tree of a model file."""
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    own = {tree["class"][0]} if isinstance(tree, dict) and "class" in tree else set()
    return own.union(*map(classes, parts))


def test_bits_are_compared_where_the_files_were_made():
    _, file, rows, bits = opened(FORMATS[-1], "closed")
    if not bits:
        pytest.skip(f"other libraries or another processor: {surroundings()}")
    scores = answers(load_model(file), rows)["decision_function"]
    expected = {"decision_function": written(np.nextafter(scores, 9))}
    with pytest.raises(AssertionError):
        check_same({"decision_function": scores}, expected, bits=bits)
