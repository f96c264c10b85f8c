"""Model files of the detector: the same scores in another process, and no crash from any file."""

import json
import random
import subprocess
import sys
import tracemalloc
import warnings
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mutations import damaged_copy, forged_copy, put_together, taken_apart
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from eqsep import Detector, NegativeSampling, load_model
from eqsep.datasets import make_mixed_demo
from eqsep.persistence import ModelFileError
from eqsep.persistence.container import pack, unpack
from eqsep.persistence.values import Writer

TABLE = make_mixed_demo(n_samples=600, as_frame=True, random_state=0)
FRESH = make_mixed_demo(n_samples=60, as_frame=True, random_state=1)
FEW = {"n_landmarks": 40, "false_alarm_rate": 0.05, "random_state": 0}


def numbers(n, *, seed):
    """Rows on a ring, every tenth of them at the centre."""
    rng = np.random.default_rng(seed)
    angle, is_anomaly = rng.uniform(0, 2 * np.pi, size=n), np.arange(n) % 10 == 9
    X = np.column_stack([np.cos(angle), np.sin(angle), rng.choice([0.0, 7.0], size=n)])
    return np.where(is_anomaly[:, None], 0.1, 1) * X, is_anomaly


X, IS_ANOMALY = numbers(400, seed=0)
NEW_X, NEW_IS_ANOMALY = numbers(50, seed=1)
PUMP = np.where(IS_ANOMALY, "pump", "normal").astype(object)


def strange(n, *, seed):
    """A table with an id, a constant, an empty column, durations, and names in all scripts."""
    rng = np.random.default_rng(seed)
    names = np.array(["naïve", "日本", "a\0", "'; --", None], dtype=object)
    return pd.DataFrame(
        {
            "id": [f"row {seed} {i}" for i in range(n)],
            "always": 5,
            "never": np.full(n, np.nan),
            "took": pd.to_timedelta(rng.integers(1, 90, size=n), unit="s"),
            "température": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(size=n)),
            "name": rng.choice(names, size=n),
        }
    )


def with_map(rows, labels):
    first = Detector(**FEW).fit(X)
    return Detector(feature_map=first.feature_map_, **FEW).fit(rows, labels)


def learnt_on():
    labels = np.where(IS_ANOMALY, None, PUMP)
    detector = Detector(unlabelled_weight=0.5, alpha=np.float64(0.2), **FEW).fit(X, labels)
    return detector.partial_fit(NEW_X[:9] + 3, ["leak"] * 9).forget(X[:50], labels[:50])


DETECTORS = {
    "mixed": (lambda: Detector(**FEW).fit(TABLE.X, TABLE.kind), FRESH.X),
    "0/1": (lambda: Detector(**FEW).fit(X, IS_ANOMALY.astype(int)), NEW_X),
    "truths": (lambda: Detector(width=2, **FEW).fit(X, IS_ANOMALY), NEW_X),
    "names": (lambda: Detector(normal="pump", **FEW).fit(X[:, :2], PUMP[::-1]), NEW_X[:, :2]),
    "one class": (lambda: Detector(**FEW).fit(X[~IS_ANOMALY]), NEW_X),
    "strange": (lambda: Detector(**FEW).fit(strange(300, seed=0)), strange(30, seed=1)),
    "given map": (lambda: with_map(X, PUMP), NEW_X),
    "learnt on": (learnt_on, NEW_X),
    "few": (lambda: Detector(**FEW).fit(X[:3, :2]), NEW_X[:, :2]),
}
every = pytest.mark.parametrize("name", DETECTORS)


@pytest.fixture(scope="module")
def fitted():
    """A function that fits each of the detectors once, and gives rows for it too."""
    made = {}

    def get(name):
        make, rows = DETECTORS[name]
        if name not in made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a dropped id, a promise of few rows
                made[name] = make()
        return made[name], rows

    return get


@pytest.fixture
def path(tmp_path):
    return tmp_path / "detector.eqsep"


def kept(detector, path):
    """The detector that comes back."""
    detector.save(path)
    return load_model(path)


def answers(detector, rows):
    """All that a detector says of rows, as one text that shows every bit."""
    said = [detector.score_samples(rows), detector.decision_function(rows), detector.p_value(rows)]
    words = [detector.predict(rows).tolist(), detector.predict_kind(rows).tolist()]
    why = [repr(reasons) for reasons in detector.explain(rows[:5])]
    return json.dumps([*(a.tobytes().hex() for a in said), *words, why])


def same(a, b):
    """Whether two detectors have the same parts, to the last bit."""
    writers = Writer(), Writer()
    trees = [w.tree(v, "it") for w, v in zip(writers, (a, b), strict=True)]
    arrays = [[(x.dtype, x.shape, x.tobytes()) for x in w.arrays] for w in writers]
    return trees[0] == trees[1] and arrays[0] == arrays[1]


@every
def test_a_detector_comes_back_to_the_last_bit(name, fitted, path):
    detector, rows = fitted(name)
    loaded = kept(detector, path)
    assert same(loaded, detector)
    assert answers(loaded, rows) == answers(detector, rows)
    assert set(vars(loaded)) == set(vars(detector))
    assert loaded.classes_.dtype == detector.classes_.dtype
    assert_array_equal(loaded.classes_, detector.classes_)
    assert loaded.n_features_in_ == detector.n_features_in_
    assert loaded.feature_map_.encoder.state() == detector.feature_map_.encoder.state()
    assert type(loaded.feature_map_.cut) is int


def test_a_new_process_says_the_same(fitted, tmp_path):
    for i, name in enumerate(DETECTORS):
        fitted(name)[0].save(tmp_path / f"{i}.eqsep")
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_persistence_detector import DETECTORS, answers, load_model\n"
        "for i, (_, rows) in enumerate(DETECTORS.values()):\n"
        "    print(answers(load_model(f'{i}.eqsep'), rows))\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    *lines, with_torch = done.stdout.splitlines()
    for name, line in zip(DETECTORS, lines, strict=True):
        assert line == answers(*fitted(name)), name
    assert with_torch == "False"


def test_names_of_columns_are_kept(fitted, path):
    detector, rows = fitted("strange")
    loaded = kept(detector, path)
    assert loaded.feature_names_in_.tolist() == list(rows.columns)
    assert_array_equal(
        loaded.score_samples(rows[rows.columns[::-1]].drop(columns="id")),
        detector.score_samples(rows),
    )
    assert "a\0" in loaded.feature_map_.encoder.columns_[-1].frequent
    assert not hasattr(kept(fitted("0/1")[0], path), "feature_names_in_")


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("mixed", FRESH.kind[:40]),
        ("0/1", NEW_IS_ANOMALY[:40].astype(int)),
        ("names", np.where(NEW_IS_ANOMALY[:40], "pump", "leak")),
        ("one class", None),
    ],
)
def test_a_loaded_detector_learns_on(name, labels, fitted, path):
    detector, rows = fitted(name)
    here, there = deepcopy(detector), kept(detector, path)
    rows = rows[:40]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows promise little
        for model in (here, there):
            other = Detector(feature_map=model.feature_map_, **FEW).fit(rows, labels)
            model.partial_fit(rows, labels).merge(other).forget(rows, labels)
    assert same(here, there)
    assert not same(here, detector)
    assert answers(here, rows) == answers(there, rows)
    assert answers(kept(there, path), rows) == answers(there, rows)


def test_a_loaded_detector_learns_row_by_row(fitted, path):
    at_once, one_by_one = deepcopy(fitted("one class")[0]), kept(fitted("one class")[0], path)
    at_once.partial_fit(NEW_X)
    for row in NEW_X:  # some of them calibrate, and leave nothing to sum up
        one_by_one.partial_fit(row[None])
    assert len(one_by_one.calibration_.rows) > len(fitted("one class")[0].calibration_.rows)
    assert_array_equal(one_by_one.calibration_.rows, at_once.calibration_.rows)
    assert_allclose(one_by_one.score_samples(NEW_X), at_once.score_samples(NEW_X), atol=1e-5)


def test_what_was_saved_apart_is_merged(fitted, path):
    detector, _ = fitted("0/1")
    here, there = kept(detector, path), kept(detector, path)
    assert here.feature_map_ is not there.feature_map_
    assert_array_equal(here.merge(there).statistics_.gram, 2 * detector.statistics_.gram)


def test_a_given_feature_map_is_kept_once(fitted, path):
    detector, _ = fitted("given map")
    loaded = kept(detector, path)
    assert loaded.feature_map is loaded.feature_map_
    with_one = path.stat().st_size
    kept(clone(detector).set_params(feature_map=None).fit(X, PUMP), path)
    assert abs(path.stat().st_size - with_one) < 2000
    moved = deepcopy(detector).set_params(feature_map=fitted("names")[0].feature_map_)
    assert kept(moved, path).feature_map.is_same(fitted("names")[0].feature_map_)


def test_a_loaded_detector_can_be_fitted_anew(fitted, path):
    detector, rows = fitted("mixed")
    again = clone(kept(detector, path)).fit(TABLE.X, TABLE.kind)
    assert_array_equal(again.score_samples(rows), detector.score_samples(rows))


def test_a_matrix_that_is_not_symmetric_is_kept_too(fitted, path):
    detector = deepcopy(fitted("0/1")[0])
    gram = detector.statistics_.gram + np.triu(np.full((40, 40), 1e-12))
    detector.statistics_ = replace(detector.statistics_, gram=gram)
    assert_array_equal(kept(detector, path).statistics_.gram, gram)


def test_half_of_a_symmetric_matrix_is_in_the_file(fitted, path):
    fitted("mixed")[0].save(path)
    entries = taken_apart(path.read_bytes())[0]["arrays"]
    assert [40 * 41 // 2] in [entry["shape"] for entry in entries]
    assert [40, 40] not in [entry["shape"] for entry in entries]


def test_detectors_inside_of_others(path):
    model = NegativeSampling(Detector(**FEW), ratio=1, random_state=0).fit(X[~IS_ANOMALY, :2])
    assert_array_equal(kept(model, path).predict(NEW_X[:, :2]), model.predict(NEW_X[:, :2]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"random_state": np.random.RandomState(0)}, "Set it to an int or None"),
        ({"false_alarm_rate": 1.5}, "false_alarm_rate should be a number between 0 and 1"),
        ({"alpha": "much"}, "alpha should be a finite number above 0"),
        ({"normal": print}, "normal cannot be saved"),
    ],
)
def test_what_has_no_place_in_a_file_is_refused(change, message, fitted, path):
    detector = deepcopy(fitted("0/1")[0]).set_params(**change)
    with pytest.raises(ModelFileError, match=message):
        detector.save(path)
    assert not path.exists()


def test_names_that_fill_more_than_a_header_are_refused(fitted, path):
    detector = deepcopy(fitted("mixed")[0])
    encoder = detector.feature_map_.encoder
    encoder.columns_[6] = replace(encoder.columns_[6], rare=["x" * 2**24])
    with pytest.raises(ModelFileError, match="Leave out columns of very many names"):
        detector.save(path)


# files that are none


def parts_of(tree, *names):
    """The parts of an object inside the tree of a model."""
    for name in names:
        tree = tree["class"][1][name]
    return tree["class"][1]


def encoder_of(model):
    return parts_of(model, "feature_map_", "encoder")


def column_of(model, j):
    return encoder_of(model)["columns"][j]["dict"]


TIME, AMOUNT, PURPOSE = 0, 1, 6
CHANGES = {
    "column of no kind": lambda m: column_of(m, AMOUNT).update(kind="text"),
    "column of another kind": lambda m: column_of(m, AMOUNT).update(kind="category"),
    "column without a kind": lambda m: column_of(m, AMOUNT).pop("kind"),
    "column with more": lambda m: column_of(m, AMOUNT).update(code="x"),
    "forms": lambda m: column_of(m, AMOUNT).update(forms=["quantile", "quantile"]),
    "no forms": lambda m: column_of(m, AMOUNT).update(forms=[]),
    "unit": lambda m: column_of(m, AMOUNT).update(unit="date"),
    "scale of 0": lambda m: column_of(m, AMOUNT).update(scale=0),
    "infinite scale": lambda m: column_of(m, AMOUNT).update(scale={"float": "7ff0000000000000"}),
    "centre": lambda m: column_of(m, AMOUNT).update(centre=1e301),
    "centre that is none": lambda m: column_of(m, AMOUNT).update(
        centre={"float": "7ff8000000000000"}
    ),
    "missing": lambda m: column_of(m, AMOUNT).update(with_missing=2),
    "cycles": lambda m: column_of(m, TIME).update(cycles=["hour", "year"]),
    "cycles twice": lambda m: column_of(m, TIME).update(cycles=["hour", "hour"]),
    "date of a number": lambda m: column_of(m, TIME)["elapsed"]["dict"].update(unit="number"),
    "date of a name": lambda m: column_of(m, TIME).update(elapsed="now"),
    "names of numbers": lambda m: column_of(m, PURPOSE)["frequent"].append(3),
    "name twice": lambda m: column_of(m, PURPOSE)["frequent"].append("cash"),
    "frequent and rare": lambda m: column_of(m, PURPOSE)["rare"].append("cash"),
    "one more output": lambda m: column_of(m, PURPOSE)["rare"].append("bribes"),
    "one more column": lambda m: encoder_of(m)["columns"].append(None),
    "no columns": lambda m: encoder_of(m).update(columns=[], names=[]),
    "a column dropped": lambda m: encoder_of(m)["columns"].__setitem__(PURPOSE, None),
    "a column dropped that is there": lambda m: encoder_of(m).update(
        dropped={"dict": {"purpose": "no reason"}}
    ),
    "dropped for no reason": lambda m: encoder_of(m).update(dropped={"dict": {"time": None}}),
    "columns of one name": lambda m: encoder_of(m)["names"].__setitem__(0, "amount"),
    "fewer names": lambda m: encoder_of(m)["names"].pop(),
    "parameters": lambda m: encoder_of(m)["parameters"]["dict"].update(columns="all"),
    "more parameters": lambda m: encoder_of(m)["parameters"]["dict"].update(code="x"),
    "no width": lambda m: parts_of(m, "feature_map_", "kernel").update(gamma="median"),
    "width below 0": lambda m: parts_of(m, "feature_map_", "kernel").update(gamma=-1.0),
    "other kernel": lambda m: parts_of(m, "feature_map_")["kernel"]["class"].__setitem__(
        0, "kernels.RBF"
    ),
    "key": lambda m: parts_of(m, "feature_map_").update(key=-1),
    "cut": lambda m: parts_of(m, "feature_map_")["cut"].update(array=9),
    "a kind more": lambda m: parts_of(m, "answers_")["kinds"].append("other"),
    "a kind twice": lambda m: parts_of(m, "answers_")["kinds"].__setitem__(0, "takeover"),
    "a kind without a name": lambda m: parts_of(m, "answers_")["kinds"].__setitem__(0, ""),
    "rate": lambda m: m["class"][1].update(false_alarm_rate=0),
    "rate of no number": lambda m: m["class"][1].update(false_alarm_rate="low"),
    "alpha": lambda m: m["class"][1].update(alpha=-1),
    "normal": lambda m: m["class"][1].update(normal=[]),
    "map that is none": lambda m: m["class"][1].update(feature_map=1),
    "one class": lambda m: m["class"][1].update(one_class_=None),
    "more learnt": lambda m: m["class"][1].update(n_features_in_=10),
    "one part learnt": lambda m: [
        m["class"][1].pop(part) for part in list(m["class"][1]) if part[-2:] in ("s_", "f_", "n_")
    ],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_learnt_has_to_fit_together(change, fitted, path):
    fitted("mixed")[0].save(path)
    document, arrays = taken_apart(path.read_bytes())
    change(document["model"])
    path.write_bytes(put_together(document, arrays))
    with pytest.raises(ModelFileError):
        load_model(path)


def put(at, value):
    """A function that copies an array with another value at one place."""

    def change(array):
        array = array.copy()
        array[at] = value
        return array

    return change


def amounts(m):
    return column_of(m, AMOUNT)["ranks"]


NO_STEP = np.array([[0, 5e-324], [0, 1], [0, 1]])
ARRAYS = {
    "knots out of order": (amounts, lambda a: a[:, ::-1]),
    "knots that are equal": (amounts, lambda a: np.repeat(a[:, :1], 3, axis=1)),
    "no knots": (amounts, lambda a: a[:, :0]),
    "infinite knot": (amounts, put((0, -1), np.inf)),
    "knot that is no number": (amounts, put((0, 5), np.nan)),
    "rank above 1": (amounts, put((2, -1), 1.5)),
    "rank below 0": (amounts, put((1, 0), -0.5)),
    "ranks out of order": (amounts, put((1, 5), 0.9)),
    "values no deviation apart": (amounts, lambda _: NO_STEP),
    "two values": (amounts, lambda a: a[:, [0, -1]]),
    "landmarks that are none": (lambda m: mapped(m)["landmarks"], put((0, 0), np.nan)),
    "landmarks far away": (lambda m: mapped(m)["landmarks"], put((0, 0), 1e31)),
    "double landmarks": (lambda m: mapped(m)["landmarks"], lambda a: a.astype(float)),
    "fewer landmarks": (lambda m: mapped(m)["landmarks"], lambda a: a[1:]),
    "narrower landmarks": (lambda m: mapped(m)["landmarks"], lambda a: a[:, 1:]),
    "no landmarks": (lambda m: mapped(m)["landmarks"], lambda a: a[:0]),
    "fewer are normal": (lambda m: mapped(m)["is_normal"], lambda a: a[1:]),
    "normal by number": (lambda m: mapped(m)["is_normal"], lambda a: a.astype(int)),
    "columns beyond": (lambda m: mapped(m)["hashed"], lambda a: a + 1),
    "columns before": (lambda m: mapped(m)["hashed"], lambda a: a - 1),
    "columns twice": (lambda m: mapped(m)["hashed"], lambda a: np.repeat(a, 2)),
    "columns by float": (lambda m: mapped(m)["hashed"], lambda a: a.astype(float)),
    "signed cut": (lambda m: mapped(m)["cut"], lambda a: a.astype(int)),
    "part of a triangle": (lambda m: parts_of(m, "statistics_")["gram"], lambda a: a[1:]),
    "sums that are none": (lambda m: parts_of(m, "statistics_")["gram"], put(0, np.nan)),
    "a wide matrix": (
        lambda m: parts_of(m, "statistics_")["gram"],
        lambda a: a[:800].reshape(40, 20),
    ),
    "fewer targets": (lambda m: parts_of(m, "statistics_")["moment"], lambda a: a[:, 1:]),
    "weight below 0": (lambda m: parts_of(m, "statistics_")["weight"], put(0, -1)),
    "fewer weights": (lambda m: parts_of(m, "statistics_")["weight"], lambda a: a[1:]),
    "infinite coefficient": (lambda m: m["class"][1]["coef_"], put((0, 0), -np.inf)),
    "huge coefficient": (lambda m: m["class"][1]["coef_"], put((0, 0), 1e31)),
    "fewer coefficients": (lambda m: m["class"][1]["coef_"], lambda a: a[:, 1:]),
    "single coefficients": (lambda m: m["class"][1]["coef_"], lambda a: a.astype(np.float32)),
    "fewer rows": (lambda m: parts_of(m, "calibration_")["rows"], lambda a: a[1:]),
    "narrower rows": (lambda m: parts_of(m, "calibration_")["rows"], lambda a: a[:, 1:]),
    "no scores": (lambda m: parts_of(m, "calibration_")["scores"], put(0, np.nan)),
    "names by number": (
        lambda m: parts_of(m, "answers_", "labels")["classes"],
        lambda _: np.arange(2),
    ),
}


def mapped(m):
    return parts_of(m, "feature_map_")


@pytest.mark.parametrize(("place", "change"), ARRAYS.values(), ids=ARRAYS)
def test_arrays_have_to_fit_together(place, change, fitted, path):
    writer = Writer()
    tree = writer.tree(fitted("mixed")[0], "Detector")
    [number] = place(tree).values()
    writer.arrays[number] = change(writer.arrays[number])
    path.write_bytes(pack(tree, writer.arrays, made_by="test"))
    with pytest.raises(ModelFileError):
        load_model(path)


def test_the_file_that_these_changes_start_from_is_sound(fitted, path):
    writer = Writer()
    tree = writer.tree(fitted("mixed")[0], "Detector")
    path.write_bytes(pack(tree, writer.arrays, made_by="test"))
    assert same(load_model(path), fitted("mixed")[0])


def resized_copy(data, rng):
    """A copy in which an array has another length, its bytes and checksum made to fit."""
    tree, arrays = unpack(data)
    i = rng.randrange(len(arrays))
    if arrays[i].ndim:
        axis = rng.randrange(arrays[i].ndim)
        n = rng.choice([0, 1, arrays[i].shape[axis] - 1, arrays[i].shape[axis] + 1])
        arrays[i] = np.resize(arrays[i], (*arrays[i].shape[:axis], n, *arrays[i].shape[axis + 1 :]))
    return pack(tree, arrays, made_by="test")


EXTREMES = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-38, 1e29, -1e30, 1e300, np.inf, np.nan, 2**63]


def extreme_copy(data, rng):
    """A copy in which some numbers of an array are others, its checksum made to fit."""
    tree, arrays = unpack(data)
    array = rng.choice([array for array in arrays if array.dtype.kind in "fu" and array.size])
    for _ in range(rng.choice([1, 1, 5, 500])):
        value = rng.choice(EXTREMES) if array.dtype.kind == "f" else rng.getrandbits(64)
        with np.errstate(over="ignore"):  # infinite in single precision
            array.flat[rng.randrange(array.size)] = value
    return pack(tree, arrays, made_by="test")


def mutant_of(i, sound, rng):
    data, other = rng.choice(sound), rng.choice(sound)
    if i % 8 == 0:
        return damaged_copy(data, other, rng)
    if i % 8 == 1:
        return resized_copy(data, rng)
    return extreme_copy(data, rng) if i % 8 == 2 else forged_copy(data, other, rng)


def use(detector, rows, labels):
    """Everything that looks at rows; each score is a finite number."""
    scores = detector.score_samples(rows)
    assert np.isfinite(scores).all()
    assert np.isfinite(detector.p_value(rows)).all()
    detector.predict(rows)
    detector.predict_kind(rows)
    assert all(np.isfinite(why.score) for why in detector.explain(rows[:1]))
    detector.partial_fit(rows, labels)


def test_two_thousand_mutated_files(fitted, path):
    rng, sound = random.Random(0), []
    for name in ("mixed", "0/1", "strange", "given map"):
        fitted(name)[0].save(path)
        sound.append(path.read_bytes())
    rows = {10: FRESH.X[:4], 3: NEW_X[:4], 6: strange(4, seed=2)}
    labels = {10: FRESH.kind[:4], 3: None, 6: None}
    n_loaded, n_used, reasons = 0, 0, set()
    for i in range(2000):
        mutant = mutant_of(i, sound, rng)
        path.write_bytes(mutant)
        try:
            detector = load_model(path)
        except ModelFileError as error:
            reasons.add(str(error))
            continue
        assert i % 8 or mutant in sound
        n_loaded += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of columns with other names
            try:
                use(detector, rows[detector.n_features_in_], labels[detector.n_features_in_])
            except ValueError as error:
                reasons.add(f"used: {error}")
            else:
                n_used += 1
    assert 100 < n_used <= n_loaded < 1200
    assert len(reasons) > 80, "the checks behind the checksum have been reached"


def test_memory_is_bounded_by_the_size_of_the_file(fitted, path):
    rng = random.Random(1)
    fitted("mixed")[0].save(path)
    sound = [path.read_bytes()]
    load_model(path)
    for i in range(80):
        path.write_bytes(mutant_of(i, sound, rng))
        tracemalloc.start()
        with suppress(ModelFileError):
            load_model(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 16 * path.stat().st_size + 10**6
