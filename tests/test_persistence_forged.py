"""Files of detectors that were changed: an error, or a detector that still gives finite scores."""

import random
import tracemalloc
import warnings
from contextlib import suppress

import numpy as np
import pytest
from forged_files import damaged_copy, forged_copy, put_together, taken_apart
from saved_detectors import FRESH, NEW_X, fitted, same, strange

from eqsep import Detector, load_model
from eqsep.detector import Config
from eqsep.persistence import ModelFileError
from eqsep.persistence.container import pack, unpack
from eqsep.persistence.files import Reader, Writer


@pytest.fixture
def path(tmp_path):
    return tmp_path / "detector.eqsep"


def parts_of(tree, *names):
    """The parts of an object, or the entries of a dict, inside the tree of a detector."""
    for name in ("model_", *names):
        [content] = tree.values()
        tree = (content if "dict" in tree else content[1])[name]
    [content] = tree.values()
    return content if "dict" in tree else content[1]


def encoder_of(model):
    return parts_of(model, "plan", "encoder")


def kinds_of(model):
    return parts_of(model, "evidence", "labels")["kinds"]


def column_of(model, j):
    return encoder_of(model)["columns"][j]["dict"]


TIME, AMOUNT, PURPOSE = 0, 1, 6
MODEL = (
    *("plan", "evidence", "config", "promise", "solved", "calibration", "judges"),
    *("caution", "left_out"),
)
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
    "frequent and rare": lambda m: column_of(m, PURPOSE).update(
        frequent=["cash", "clothes", "electronics", "fuel"], rare=["cash"]
    ),
    "one more output": lambda m: column_of(m, PURPOSE)["rare"].append("bribes"),
    "one more column": lambda m: encoder_of(m)["columns"].append(None),
    "an empty column": lambda m: encoder_of(m)["columns"].__setitem__(PURPOSE, {"dict": {}}),
    "no columns": lambda m: encoder_of(m).update(columns=[], names=[]),
    "a column dropped": lambda m: encoder_of(m)["columns"].__setitem__(PURPOSE, None),
    "a column dropped that is there": lambda m: encoder_of(m).update(
        dropped={"dict": {"purpose": "no reason"}}
    ),
    "dropped for no reason": lambda m: encoder_of(m).update(dropped={"dict": {"time": None}}),
    "columns of one name": lambda m: encoder_of(m)["names"].__setitem__(0, "amount"),
    "fewer names": lambda m: encoder_of(m)["names"].pop(),
    "more of an encoder": lambda m: encoder_of(m).update(parameters={"dict": {}}),
    "notation": lambda m: encoder_of(m).update(
        notation={"dict": {"amount": {"dict": {"decimal": []}}}}
    ),
    "no width": lambda m: parts_of(m, "plan", "terms", "residual", "kernel").update(gamma="median"),
    "width below 0": lambda m: parts_of(m, "plan", "terms", "residual", "kernel").update(
        gamma=-1.0
    ),
    "powers": lambda m: parts_of(m, "plan", "terms", "residual", "kernel").update(powers=[3]),
    "other kernel": lambda m: kernel(m)["kernel"]["class"].__setitem__(0, "kernels.RBF"),
    "key": lambda m: parts_of(m, "plan", "holdout").update(key=-1),
    "bound": lambda m: parts_of(m, "plan", "holdout")["bound"].update(array=9),
    "a kind more": lambda m: kinds_of(m).append("other"),
    "a kind twice": lambda m: kinds_of(m).__setitem__(0, "takeover"),
    "a kind without a name": lambda m: kinds_of(m).__setitem__(0, ""),
    "rate": lambda m: m["class"][1].update(false_alarm_rate=0),
    "rate of no number": lambda m: m["class"][1].update(false_alarm_rate="low"),
    "alpha": lambda m: m["class"][1].update(alpha=-1),
    "normal": lambda m: m["class"][1].update(normal=[]),
    "plan that is none": lambda m: m["class"][1].update(plan=1),
    "one class": lambda m: parts_of(m, "plan", "labels").update(unlabelled_is_normal=None),
    "more learnt": lambda m: m["class"][1].update(n_features_in_=10),
    "a model of no parts": lambda m: parts_of(m).clear(),
    **{f"no {part}": lambda m, part=part: parts_of(m).pop(part) for part in MODEL},
    **{f"{part} of nothing": lambda m, part=part: parts_of(m).update({part: 3}) for part in MODEL},
    "no model": lambda m: m["class"][1].pop("model_"),
    "another promise": lambda m: m["class"][1].update(false_alarm_rate=0.5),
    "config of no power": lambda m: parts_of(m, "config").update(powers=[]),
    "config of lists": lambda m: parts_of(m, "config").update(bandwidth=[1]),
    "config of no ridge": lambda m: parts_of(m, "config").update(alpha=0),
    "config of half a landmark": lambda m: parts_of(m, "config").update(n_landmarks=2.5),
    "config of half a fold": lambda m: parts_of(m, "config").update(n_folds=2.5),
    "config of one fold": lambda m: parts_of(m, "config").update(n_folds=1),
    "config of a power": lambda m: parts_of(m, "config").update(powers=2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_learnt_has_to_fit_together(change, path):
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


def kernel(m):
    return parts_of(m, "plan", "terms", "residual")


def sums(form, name, place=0):
    """An array that a term sums, by the place of the term in the plan: 0 is the kernel's."""

    def found(m):
        [parts] = parts_of(m, "evidence")["sums"][place].values()
        [arrays] = parts[form].values()
        return arrays[name]

    return found


def coef(m):
    return parts_of(m, "solved", "residual")["coef"]


def holdout(m):
    return parts_of(m, "plan", "holdout")


def held_out(name):
    return lambda m: parts_of(m, "evidence", "held_out")[name]


def named_by(name):
    return lambda m: parts_of(m, "evidence", "kinds")[name]


def judges(name):
    return lambda m: parts_of(m, "judges")[name]


def term(name, *parts):
    """A part of a term of the plan."""
    return lambda m: parts_of(m, "plan", "terms", name, *parts[:-1])[parts[-1]]


def isolation(*parts):
    return lambda m: parts_of(m, "plan", "isolation", *parts[:-1])[parts[-1]]


TAILS = {
    "of the ellipsoid": term("excess", "ellipsoid", "tail", "knots"),
    "of distances": term("nearest", "tail", "knots"),
    "of surprises": term("surprise", "predictions", "tail", "knots"),
    "of the largest surprises": term("surprise", "predictions", "whole", "slopes"),
}
NEAR = ("nearest", "neighbourhood")
BINS = ("surprise", "predictions", "bins")
TREES = ("surprise", "predictions", "trees")


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
    "landmarks that are none": (lambda m: kernel(m)["landmarks"], put((0, 0), np.nan)),
    "landmarks far away": (lambda m: kernel(m)["landmarks"], put((0, 0), 1e31)),
    "double landmarks": (lambda m: kernel(m)["landmarks"], lambda a: a.astype(float)),
    "fewer landmarks": (lambda m: kernel(m)["landmarks"], lambda a: a[1:]),
    "narrower landmarks": (lambda m: kernel(m)["landmarks"], lambda a: a[:, 1:]),
    "no landmarks": (lambda m: kernel(m)["landmarks"], lambda a: a[:0]),
    "fewer are normal": (lambda m: kernel(m)["is_normal"], lambda a: a[1:]),
    "normal by number": (lambda m: kernel(m)["is_normal"], lambda a: a.astype(int)),
    "columns beyond": (lambda m: holdout(m)["columns"], lambda a: a + 1),
    "columns before": (lambda m: holdout(m)["columns"], lambda a: a - 1),
    "columns twice": (lambda m: holdout(m)["columns"], lambda a: np.repeat(a, 2)),
    "columns by float": (lambda m: holdout(m)["columns"], lambda a: a.astype(float)),
    "signed bound": (lambda m: holdout(m)["bound"], lambda a: a.astype(int)),
    "part of a triangle": (sums("symmetric", "gram"), lambda a: a[1:]),
    "a matrix of one number": (sums("symmetric", "gram"), lambda a: a[0].reshape(())),
    "sums that are none": (sums("symmetric", "gram"), put(0, np.nan)),
    "a wide matrix": (
        sums("symmetric", "gram"),
        lambda a: a[:800].reshape(40, 20),
    ),
    "fewer targets": (sums("by_class", "moment"), lambda a: a[:, 1:]),
    "fewer leaves": (sums("by_class", "leaves", 2), lambda a: a[1:]),
    "leaves of fewer classes": (sums("by_class", "leaves", 2), lambda a: a[:, 1:]),
    "leaves of no number": (sums("by_class", "leaves", 2), put((0, 0), np.nan)),
    "weight below 0": (lambda m: parts_of(m, "evidence")["weight"], put(0, -1)),
    "fewer weights": (lambda m: parts_of(m, "evidence")["weight"], lambda a: a[1:]),
    "infinite coefficient": (coef, put((0, 0), -np.inf)),
    "huge coefficient": (coef, put((0, 0), 1e31)),
    "fewer coefficients": (coef, lambda a: a[:, 1:]),
    "single coefficients": (coef, lambda a: a.astype(np.float32)),
    "fewer rows": (lambda m: parts_of(m, "evidence", "held_out")["rows"], lambda a: a[1:]),
    "narrower rows": (lambda m: parts_of(m, "evidence", "held_out")["rows"], lambda a: a[:, 1:]),
    "no scores": (lambda m: parts_of(m, "calibration")["scores"], put(0, np.nan)),
    "one more anomaly": (
        lambda m: parts_of(m, "calibration")["anomaly_scores"],
        lambda a: np.append(a, 1.0),
    ),
    "held-out rows of no group": (held_out("hashes"), lambda a: a.astype(np.uint32)),
    "a kind less": (held_out("kind"), lambda a: a[1:]),
    "a weight less": (held_out("weight"), lambda a: a[1:]),
    "an anomaly before normal rows": (held_out("kind"), put(0, "anomaly")),
    "named by narrower rows": (named_by("rows"), lambda a: a[:, 1:]),
    "named by fewer rows": (named_by("rows"), lambda a: a[1:]),
    "named by other kinds": (named_by("kind"), put(0, "other")),
    "named by rows out of order": (named_by("kind"), lambda a: a[::-1]),
    "named by groups": (named_by("groups"), lambda _: np.arange(3, dtype=np.uint64)),
    "a fold beyond": (judges("fold"), put(0, 99)),
    "a fold before": (judges("fold"), put(0, -1)),
    "a fold less": (judges("fold"), lambda a: a[1:]),
    "a share less": (judges("shares"), lambda a: a[1:]),
    "a rank of no number": (judges("unlike_own"), put((0, 0), np.nan)),
    "a distance of no number": (judges("unlike_all"), put((0, 1), np.nan)),
    "a rank less": (judges("unlike_all"), lambda a: a[1:]),
    "signed bound of anomalies": (lambda m: holdout(m)["anomaly_bound"], lambda a: a.astype(int)),
    **{f"a tail {name}, narrower": (part, lambda a: a[:, 1:]) for name, part in TAILS.items()},
    **{f"a tail {name}, of no number": (part, put((0, 0), np.nan)) for name, part in TAILS.items()},
    **{f"a tail {name}, of one knot": (part, lambda a: a[:1]) for name, part in TAILS.items()},
    "fewer near rows": (term(*NEAR, "rows"), lambda a: a[1:]),
    "narrower near rows": (term(*NEAR, "rows"), lambda a: a[:, 1:]),
    "a near row of no number": (term(*NEAR, "rows"), put((0, 0), np.nan)),
    "surroundings of no number": (term(*NEAR, "scale"), put(0, np.inf)),
    "surroundings below 0": (term(*NEAR, "scale"), put(0, -1)),
    "surroundings of nothing": (term(*NEAR, "scale"), put(0, 1e29)),
    "fewer handicaps": (term(*NEAR, "handicap"), lambda a: a[1:]),
    "a handicap below 0": (term(*NEAR, "handicap"), put(0, -1)),
    "a cut beyond the columns": (term(*BINS, "column"), put(0, 99)),
    "a cut before the columns": (term(*BINS, "column"), put(0, -1)),
    "a cut of no number": (term(*BINS, "limit"), put(0, np.nan)),
    "fewer cuts": (term(*BINS, "limit"), lambda a: a[1:]),
    "a target beyond": (term(*BINS, "target"), put(0, 1000)),
    "a target before": (term(*BINS, "target"), put(0, -1)),
    "a step down": (term(*BINS, "step"), put(0, -1)),
    "a predicting tree less": (term(*TREES, "root"), lambda a: a[:-1]),
    "a node that predicts by a column beyond": (term(*TREES, "column"), put(0, 999)),
    "surprises of fewer leaves": (sums("totals", "leaves", -1), lambda a: a[1:]),
    "surprises of fewer bins": (sums("totals", "leaves", -1), lambda a: a[:, 1:]),
    "surprises of no number": (sums("totals", "leaves", -1), put((0, 0), np.nan)),
    "normality of fewer landmarks": (
        lambda m: parts_of(m, "solved", "normality")["coef"],
        lambda a: a[1:],
    ),
    "normality of no number": (
        lambda m: parts_of(m, "solved", "normality")["coef"],
        put(0, np.nan),
    ),
    "names by number": (
        lambda m: parts_of(m, "evidence", "labels", "reader")["classes"],
        lambda _: np.arange(2),
    ),
}


@pytest.mark.parametrize(("place", "change"), ARRAYS.values(), ids=ARRAYS)
def test_arrays_have_to_fit_together(place, change, path):
    writer = Writer()
    tree = writer.tree(fitted("mixed")[0], "Detector")
    [number] = place(tree).values()
    writer.arrays[number] = change(writer.arrays[number])
    path.write_bytes(pack(tree, writer.arrays, made_by="test"))
    with pytest.raises(ModelFileError):
        load_model(path)


ISOLATION = {
    "a depth less": (isolation("depth"), lambda a: a[1:]),
    "a depth of no number": (isolation("depth"), put(0, np.nan)),
    "narrower references": (isolation("references"), lambda a: a[:, 1:]),
    "one reference": (isolation("references"), lambda a: a[:1]),
    "ranks of fewer depths": (isolation("depths"), lambda a: a[1:]),
    "ranks of distances of no number": (isolation("distances"), put(0, np.nan)),
    "a tree less": (isolation("trees", "root"), lambda a: a[1:]),
    "a column beyond": (isolation("trees", "column"), put(0, 99)),
}


@pytest.mark.parametrize(("place", "change"), ISOLATION.values(), ids=ISOLATION)
def test_isolation_fits_to_the_rows(place, change, path):
    writer = Writer()
    tree = writer.tree(fitted("one class")[0], "Detector")
    [number] = place(tree).values()
    writer.arrays[number] = change(writer.arrays[number])
    path.write_bytes(pack(tree, writer.arrays, made_by="test"))
    with pytest.raises(ModelFileError):
        load_model(path)


@pytest.mark.parametrize(("place", "name"), [(0, "moment"), (2, "leaves")])
def test_sums_by_class_are_not_taken_for_totals(place, name, path):
    writer = Writer()
    tree = writer.tree(fitted("mixed")[0], "Detector")
    [parts] = parts_of(tree, "evidence")["sums"][place].values()
    parts["totals"]["dict"][name] = parts["by_class"]["dict"].pop(name)
    path.write_bytes(pack(tree, writer.arrays, made_by="test"))
    with pytest.raises(ModelFileError, match="has sums of shapes"):
        load_model(path)


@pytest.mark.parametrize("change", [lambda a: a[1:], put(0, np.nan)])
def test_coefficients_of_likeness_fit_to_its_landmarks(change, path):
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.repeat(["normal", "leak"], [280, 20])
    settings = {"n_landmarks": 20, "config": Config.fast(), "false_alarm_rate": 0.1}
    detector = Detector(unlabelled="doubted", random_state=0, **settings).fit(X, y)
    writer = Writer()
    tree = writer.tree(detector, "Detector")
    path.write_bytes(pack(tree, writer.arrays, made_by="test"))
    assert same(load_model(path), detector)
    [number] = parts_of(tree, "solved", "likeness")["coef"].values()
    writer.arrays[number] = change(writer.arrays[number])
    path.write_bytes(pack(tree, writer.arrays, made_by="test"))
    with pytest.raises(ModelFileError):
        load_model(path)


def test_the_file_that_these_changes_start_from_is_sound(path):
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
        n = rng.choice([0, 1, max(arrays[i].shape[axis] - 1, 0), arrays[i].shape[axis] + 1])
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


def test_a_detector_that_learnt_nothing_has_no_plan():
    tree = Writer().tree(Detector(), "Detector")
    tree["class"][1]["plan"] = True
    with pytest.raises(ModelFileError, match="a plan that is not there"):
        Reader([]).model(tree)


def use(detector, rows, labels):
    """Everything that looks at rows; each score is a finite number."""
    scores = detector.score_samples(rows)
    assert np.isfinite(scores).all()
    assert np.isfinite(detector.p_value(rows)).all()
    detector.predict(rows)
    detector.predict_kind(rows)
    assert all(np.isfinite(why.score) for why in detector.explain(rows[:1]))
    detector.partial_fit(rows, labels)


def test_mutated_files(path):
    rng, sound = random.Random(0), []
    for name in ("mixed", "0/1", "strange", "given plan"):
        fitted(name)[0].save(path)
        sound.append(path.read_bytes())
    frames = FRESH.X[:4], strange(4, seed=2)
    rows = {3: NEW_X[:4]} | {f.shape[1]: f.to_dict("records") for f in frames}
    labels = {10: FRESH.kind[:4], 3: None, 6: None}
    n_loaded, n_used, reasons = 0, 0, set()
    for i in range(400):
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
    assert 20 < n_used <= n_loaded < 240
    assert len(reasons) > 45, "the checks behind the checksum have been reached"


def test_memory_is_bounded_by_the_size_of_the_file(path):
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
