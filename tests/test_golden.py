"""Model files outlive the version that wrote them: each loads, answers and learns on as it did."""

import json
import random
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from forged_files import forged_copy
from golden_files import FOLDER, answers, golden, learn_on, read, read_rows, surroundings, written
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from eqsep import Detector, load_model
from eqsep.detector.model import Model
from eqsep.persistence import ModelFileError, read_model

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
        if name == "predict_kind":
            check_same_names(found[name], array)
        elif array.dtype.kind == "f" and not bits:
            assert_allclose(found[name], array, rtol=1e-5, atol=1e-6, err_msg=name)
        else:
            assert_array_equal(found[name], array, err_msg=name)


def check_same_names(found, expected):
    """Whether alarms have the names of the file, of which 0.2.0 gave a row several.

    One of these is the name today, the likeliest, or it is "unseen".
    """
    for now, then in zip(found, expected, strict=True):
        assert now == then or (" or " in then and now in (*then.split(" or "), "unseen"))


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


@pytest.mark.extra
def test_a_new_process_gives_the_bits_of_what_is_saved_again(tmp_path):
    expected = []
    for i, (version, name) in enumerate(FILES):
        _, model, rows, _ = opened(version, name)
        model.save(tmp_path / f"{i}.eqsep")
        expected.append(shown(answers(model, rows)))
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_golden import FILES, answers, load_model, opened, shown\n"
        "for i, (version, name) in enumerate(FILES):\n"
        "    rows = opened(version, name)[2]\n"
        "    print(shown(answers(load_model(f'{i}.eqsep'), rows)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = dict(zip(FILES, done.stdout.splitlines(), strict=True))
    assert found == dict(zip(FILES, expected, strict=True))


def shown(said):
    """Answers as one text that shows every bit."""
    return json.dumps({name: written(array) for name, array in said.items()})


@every
def test_a_model_of_an_older_version_is_read_to_score_alone(version, name):
    _, model, rows, _ = opened(version, name)
    file = golden(FOLDER / version)["models"][name]["file"]
    alone = read_model(FOLDER / version / file)
    if isinstance(model, Detector):
        assert isinstance(alone, Model)
        assert alone.verdicts(rows).score.tobytes() == model.score_samples(rows).tobytes()
        assert_array_equal(alone.verdicts(rows).kind, model.predict_kind(rows))
    else:
        assert_array_equal(alone.decision_function(rows), model.decision_function(rows))


def test_the_width_of_0_1_is_a_bandwidth():
    entry, model, rows, bits = opened("0.1.0", "detector, truths")  # width=2
    assert model.bandwidth == 0.5
    check_same(answers(model, rows), entry["answers"], bits=bits)
    assert opened("0.1.0", "detector, 0/1")[1].bandwidth is None


def test_a_detector_of_0_1_is_fitted_anew_without_a_warning():
    _, model, rows, _ = opened("0.1.0", "detector, truths")
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        again = clone(model).set_params(false_alarm_rate=0.2).fit(rows)
    assert again.bandwidth == 0.5


def test_changed_files_of_older_versions_are_refused_or_give_scores(tmp_path):
    rng, path = random.Random(0), tmp_path / "model.eqsep"
    names = ["detector, truths", "detector, mixed", "network, closed"]
    n_loaded, reasons = 0, set()
    for version, name in ((v, n) for v, n in FILES if n in names):
        document = golden(FOLDER / version)
        entry = document["models"][name]
        sound = (FOLDER / version / entry["file"]).read_bytes()
        rows = read_rows(document["rows"][entry["rows"]])
        for _ in range(60):
            path.write_bytes(forged_copy(sound, sound, rng, version=document["format"]))
            try:
                model = load_model(path)
            except ModelFileError as error:
                reasons.add(str(error))
                continue
            n_loaded += 1
            try:
                said = answers(model, rows)
            except Exception as error:  # whatever a forged model says, Python hears of it
                reasons.add(type(error).__name__)
            else:
                assert len(said["predict"]) == len(rows)
    assert n_loaded > 20
    assert len(reasons) > 30, "the checks behind the checksum have been reached"


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
