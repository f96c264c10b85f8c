"""Model files: what was saved comes back to the last bit, and nothing else comes back at all."""

import os
import random
import subprocess
import sys
import tracemalloc
import warnings
from copy import copy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import saved_separators
import torch
from forged_files import damaged_copy, forged_copy, put_together, taken_apart
from numpy.testing import assert_allclose, assert_array_equal
from saved_separators import ESTIMATORS, ROWS, SPLIT
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import eqsep
from eqsep import (
    DeepSAD,
    EqualitySeparator,
    KernelEqualitySeparator,
    NegativeSampling,
    NetworkSeparator,
    OneVsSet,
    load_model,
)
from eqsep.activations import TanhBump
from eqsep.kernels import FunctionKernel
from eqsep.persistence import ModelFileError, save_model
from eqsep.persistence.container import VERSION, pack, unpack
from eqsep.persistence.files import MOST_LEVELS, Reader, Writer
from eqsep.persistence.registry import CODECS
from eqsep.solvers import BFGS

every = pytest.mark.parametrize("fitted", ESTIMATORS, indirect=True)


@pytest.fixture(scope="module")
def models():
    return {}


@pytest.fixture
def fitted(request, models):
    """Each of the estimators, fitted once."""
    return fit_once(request.param, models)


def fit_once(name, models):
    if name not in models:
        models[name] = saved_separators.fitted(ESTIMATORS[name])
    return models[name]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.eqsep"


def kept(model, path):
    """The model that comes back."""
    model.save(path)
    return load_model(path)


def same(a, b):
    """Whether two values are the same in type and to the last bit."""
    writers = Writer(), Writer()
    trees = [w.tree(v, "it") for w, v in zip(writers, (a, b), strict=True)]
    pairs = list(zip(*(w.arrays for w in writers), strict=True))
    return trees[0] == trees[1] and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in pairs
    )


@every
def test_a_model_comes_back_to_the_last_bit(fitted, path):
    loaded = kept(fitted, path)
    assert type(loaded) is type(fitted)
    assert same(loaded, fitted)
    assert repr(loaded) == repr(fitted)
    assert_array_equal(loaded.decision_function(ROWS), fitted.decision_function(ROWS))
    assert_array_equal(loaded.predict(ROWS), fitted.predict(ROWS))


@every
def test_a_loaded_model_can_be_cloned_and_fitted_anew(fitted, path):
    loaded = kept(fitted, path)
    again = clone(loaded)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again.fit(SPLIT.X_train, SPLIT.y_train)
    assert_allclose(again.decision_function(ROWS), fitted.decision_function(ROWS), atol=1e-6)


NETWORKS = [name for name, one in ESTIMATORS.items() if isinstance(one, NetworkSeparator | DeepSAD)]
OTHERS = [name for name in ESTIMATORS if name not in NETWORKS]


@pytest.mark.parametrize(
    "names",
    [OTHERS, pytest.param(NETWORKS, marks=pytest.mark.extra)],
    ids=["without torch", "networks"],
)
def test_a_new_process_gives_the_same_scores_and_loads_torch_for_networks_alone(
    names, models, tmp_path
):
    for i, name in enumerate(names):
        fit_once(name, models).save(tmp_path / f"{i}.eqsep")
    np.save(tmp_path / "rows.npy", ROWS)
    code = (
        "import eqsep, sys, numpy as np\n"
        "rows = np.load('rows.npy')\n"
        f"for i in range({len(names)}):\n"
        "    print(eqsep.load_model(f'{i}.eqsep').decision_function(rows).tobytes().hex())\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    *lines, with_torch = done.stdout.split()
    for name, line in zip(names, lines, strict=True):
        assert line == models[name].decision_function(ROWS).tobytes().hex(), name
    assert with_torch == str(names == NETWORKS)


def test_a_network_without_torch_says_what_to_install(models, path):
    fit_once("network", models).save(path)
    code = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        f"import eqsep; eqsep.load_model({str(path)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtraError: eqsep's networks need PyTorch. Install it with" in done.stderr


@pytest.mark.parametrize(
    "labels", [[0, 1], [False, True], ["normal", "leak"], [0.0, 1.0], np.array([0, 1], np.int8)]
)
def test_classes_keep_their_dtype(labels, path):
    y = np.asarray(labels)[SPLIT.y_train]
    fitted = EqualitySeparator(random_state=0).fit(SPLIT.X_train, y)
    loaded = kept(fitted, path)
    assert loaded.classes_.dtype == fitted.classes_.dtype
    assert loaded.predict(ROWS).dtype == fitted.predict(ROWS).dtype
    assert type(loaded.margin_class_) is type(fitted.margin_class_)


def test_a_loaded_kernel_separator_learns_on(path):
    X, kind = SPLIT.X_train, np.where(SPLIT.y_train == 1, "leak", "normal")
    here = KernelEqualitySeparator(gamma=0.5).fit(X[:40], kind[:40])
    there = kept(here, path)
    for model in (here, there):
        model.partial_fit(X[40:], kind[40:]).forget(X[:5], kind[:5])
        model.partial_fit(ROWS[:3], ["new"] * 3)
    assert same(here, there)
    assert_array_equal(there.classes_, ["normal", "anomaly"])


def test_names_of_columns_are_kept(path):
    frame = pd.DataFrame(SPLIT.X_train, columns=["volts", "température"])
    loaded = kept(EqualitySeparator(random_state=0).fit(frame, SPLIT.y_train), path)
    assert loaded.feature_names_in_.dtype == object
    assert loaded.feature_names_in_.tolist() == ["volts", "température"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"volts": "amperes"}))


def test_what_was_fitted_to_tensors_is_loaded_for_arrays(path):
    X = torch.as_tensor(SPLIT.X_train)
    fitted = KernelEqualitySeparator(gamma=0.5).fit(X, SPLIT.y_train)
    scores = fitted.decision_function(torch.as_tensor(ROWS))
    assert_allclose(kept(fitted, path).decision_function(ROWS), scores, atol=1e-12)


# what cannot be saved


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"random_state": np.random.RandomState(0)}, r"random_state .* Set it to an int or None"),
        ({"loss": LogisticRegression()}, r"LogisticRegression is not among the classes"),
        ({"n_init": 2**70}, "more than 64 bits"),
        ({"sigma": 1j}, "complex is not among the classes"),
        ({"margin_class": {1: 2}}, "keys of a dict must be strings"),
        ({"head": np.array([1j])}, "expected an array of numbers, booleans or strings"),
        ({"head": np.array([object()])}, "an array of Python objects"),
        ({"head": np.zeros((1,) * 9)}, "expected an array of numbers"),
        ({"head": np.zeros(2, dtype=np.longdouble)}, "dtype .* cannot be saved"),
        ({"solver": BFGS(max_iter="many")}, "BFGS.max_iter should be a whole number"),
    ],
)
def test_what_has_no_place_in_a_file_is_refused(change, message, models, path):
    model = fit_once("linear", models).__sklearn_clone__()
    vars(model).update(vars(models["linear"]) | change)
    with pytest.raises(ModelFileError, match=message):
        model.save(path)
    assert not path.exists()


@pytest.mark.parametrize("kernel", [np.dot, FunctionKernel(lambda X, C: X @ C.T)])
def test_functions_are_refused(kernel, path):
    def product(X, C):
        return X @ C.T

    given = product if kernel is np.dot else kernel
    model = KernelEqualitySeparator(kernel=given, closed=False, n_landmarks=5, random_state=0)
    model.fit(SPLIT.X_train, SPLIT.y_train)
    with pytest.raises(ModelFileError, match="kernel cannot be saved"):
        model.save(path)


def test_too_deep_a_parameter_is_refused(models, path):
    model = fit_once("linear", models).__sklearn_clone__()
    deep = []
    for _ in range(MOST_LEVELS):
        deep = [deep]
    vars(model).update(vars(models["linear"]) | {"head": deep})
    with pytest.raises(ModelFileError, match=r"head.* cannot be saved: it goes too deep"):
        model.save(path)


def test_only_fitted_separators_are_saved(path):
    with pytest.raises(NotFittedError):
        EqualitySeparator().save(path)
    with pytest.raises(ModelFileError, match=r"without OneVsSet; got SVC\..*skops"):
        save_model(SVC(), path)


@pytest.mark.parametrize(
    "made_of_one", [OneVsSet(), NegativeSampling(SVC()), NegativeSampling(OneVsSet())]
)
def test_what_is_made_of_a_scikit_learn_estimator_is_refused(made_of_one, path):
    with pytest.raises(ModelFileError, match="without OneVsSet"):
        made_of_one.fit(SPLIT.X_train, SPLIT.y_train).save(path)
    assert not path.exists()


# the file


def test_an_interrupted_save_leaves_the_old_file(models, path, monkeypatch):
    fit_once("linear", models).save(path)
    before = path.read_bytes()

    def interrupt(*_):
        raise KeyboardInterrupt

    for call in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, interrupt)
            with pytest.raises(KeyboardInterrupt):
                fit_once("closed", models).save(path)
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]


def test_a_link_stays_a_link(models, tmp_path):
    target, link = tmp_path / "v1.eqsep", tmp_path / "latest.eqsep"
    link.symlink_to(target)
    fit_once("linear", models).save(link)
    assert link.is_symlink()
    assert target.is_file()


@pytest.mark.skipif(os.name != "posix", reason="needs pipes with names")
def test_the_file_system_says_what_is_wrong(models, tmp_path, path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"model\.eqsep"):
        load_model(path)
    with pytest.raises(IsADirectoryError, match="A model file was expected, not a folder"):
        load_model(tmp_path)
    with pytest.raises(FileNotFoundError, match="Folder not found"):
        fit_once("linear", models).save(tmp_path / "nowhere" / "model.eqsep")
    with pytest.raises(IsADirectoryError):
        fit_once("linear", models).save(tmp_path)
    os.mkfifo(path)
    with pytest.raises(ModelFileError, match="a pipe, a socket or a device"):
        load_model(path)

    def forbidden(*_):
        raise PermissionError(13, "Permission denied", "model.eqsep")

    path.unlink()
    fit_once("linear", models).save(path)
    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(PermissionError, match=r"model\.eqsep"):
        load_model(path)


# values


VALUES = [
    None, True, 0, -(2**62), 1.5, -0.0, 5e-324, float("inf"), float("-inf"), float("nan"), "",
    "σ\ud800", [], [1, [2.0]], (), (1, ("a",)), {}, {"a": [None], "": {"b": (1,)}},
    np.float32(0.1), np.int8(-3), np.True_, np.str_("kind"), np.array(3.0), np.zeros((0, 3)),
    np.array(["a", "longer"]), np.array([""]), np.array([True, False]), np.arange(4, dtype=">i2"),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(12.0)[::3], np.float16([1, np.nan]),
    np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2), np.array([], dtype="<U0"),
    np.array(["a", "b"], dtype=object), TanhBump(2), np.array([2**64 - 1], dtype=np.uint64),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back(value):
    writer = Writer()
    data = pack(writer.tree(value, "it"), writer.arrays, made_by="test")
    tree, arrays = unpack(data)
    found = Reader(arrays).model(tree)
    assert type(found) is type(value)
    again = Writer()
    assert pack(again.tree(found, "it"), again.arrays, made_by="test") == data
    if isinstance(value, np.ndarray):
        assert_array_equal(found, value)
        assert found.flags.writeable
        assert found.flags.f_contiguous or not value.flags.f_contiguous


def test_a_float_keeps_its_payload():
    nan = np.array([0x7FF8DEADBEEF0001], dtype=np.uint64).view(np.float64)[0].item()
    tree = Writer().tree(nan, "it")
    assert tree == {"float": "7ff8deadbeef0001"}
    assert np.float64(Reader([]).value(tree)).view(np.uint64) == 0x7FF8DEADBEEF0001


def test_every_known_class_is_found_at_its_home():
    for name, codec in CODECS.items():
        assert codec.cls(name).__name__ == name.split(".")[-1]


# files that are none


def refused(path, data, message="model file"):
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        load_model(path)


@pytest.fixture
def parts(models, path):
    """The header and the arrays of a sound file."""
    fit_once("linear", models).save(path)
    return taken_apart(path.read_bytes())


def test_a_newer_format_says_so(parts, path):
    newer = put_together(*parts, version=VERSION + 1)
    refused(path, newer, f"format version {VERSION + 1}, newer than version {VERSION}")
    refused(path, newer, "Install a newer eqsep")
    refused(path, put_together(*parts, version=VERSION - 1), "does not exist")


@pytest.mark.parametrize("data", [b"", b"\x89eqsep", b"PK\x03\x04" + bytes(100), b"\x80\x04" * 40])
def test_other_files_are_no_models(data, path):
    refused(path, data, "not an eqsep model file")


TREES = {
    "unknown class": {"class": ["os.system", {"command": "true"}]},
    "a module": {"class": ["activations.math", {}]},
    "unknown kind": {"pickle": "gASVAAAA"},
    "two kinds": {"tuple": [], "dict": {}},
    "no fitted separator": {"class": ["separators.EqualitySeparator", {}]},
    "no separator": {"class": ["activations.GaussianBump", {"sigma": 1.0}]},
    "no class": {"class": ["activations.GaussianBump"]},
    "parts that are none": {"class": ["activations.GaussianBump", []]},
    "unknown part": {"class": ["activations.GaussianBump", {"sigma": 1.0, "code": "x"}]},
    "wrong part": {"class": ["activations.GaussianBump", {"sigma": "wide"}]},
    "missing part": {"class": ["kernels.PairwiseKernel", {}]},
    "threads": {
        "class": ["kernels.PairwiseKernel", {"metric": "rbf", "params": {"dict": {"n_jobs": 99}}}]
    },
    "tuple": {"tuple": 3},
    "float": {"float": "nan"},
    "float of other digits": {"float": "7ff8000000000٠00"},
    "array": {"array": 1},
    "negative array": {"array": -1},
    "array by name": {"array": "0"},
    "deep": eval("[" * 60 + "]" * 60),
}  # fmt: skip


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_trees_that_are_no_model(tree, path):
    refused(path, put_together({"eqsep": "0", "model": tree, "arrays": []}, b""))


HEADERS = {
    "NaN": b'{"eqsep":"0","model":NaN,"arrays":[]}',
    "Infinity": b'{"eqsep":"0","model":-Infinity,"arrays":[]}',
    "too large": b'{"eqsep":"0","model":1e999,"arrays":[]}',
    "too long": b'{"eqsep":"0","model":' + b"9" * 5000 + b',"arrays":[]}',
    "twice": b'{"eqsep":"0","model":1,"model":2,"arrays":[]}',
    "not UTF-8": b'{"eqsep":"\xff","model":1,"arrays":[]}',
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "many": b"[" + b"[]," * 300_000 + b"[]]",
    "a list": b"[]",
    "no arrays": b'{"eqsep":"0","model":1}',
    "arrays of no kind": b'{"eqsep":"0","model":1,"arrays":3}',
    "cut": b'{"eqsep":',
    "empty": b"",
}


def test_a_header_of_millions_of_numbers_is_not_parsed(path):
    header = b'{"eqsep":"0","model":[' + b"7," * 2**22 + b'7],"arrays":[]}'
    path.write_bytes(put_together(header, b""))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="too many parts"):
        load_model(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * len(header)
    with pytest.raises(ModelFileError, match="cannot be saved: its names and settings"):
        pack([7] * (2**20 + 1), [], made_by="test")


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_headers_that_are_none(header, path):
    refused(path, put_together(header, b""), "damaged")


def test_lengths_that_lie(parts, path):
    for length in (2**64 - 1, 2**24 + 1, 2**24, 10**6, 0, 5):
        refused(path, put_together(*parts, length=length))


ENTRIES = {
    "huge": {"shape": [10**12]},
    "product": {"shape": [2**31, 2**31, 2**31]},
    "long number": {"shape": [10**19]},
    "empty but wide": {"shape": [0, 10**12]},
    "negative": {"shape": [-2, -1]},
    "float": {"shape": [2.0]},
    "true": {"shape": [True, 2]},
    "no list": {"shape": 2},
    "axes": {"shape": [1] * 30 + [2]},
    "object": {"dtype": "|O"},
    "void": {"dtype": "|V8"},
    "long double": {"dtype": "<f16"},
    "record": {"dtype": "<f8,<f8"},
    "big": {"dtype": ">f8"},
    "no characters": {"dtype": "<U0"},
    "wide characters": {"dtype": "<U999999999"},
    "characters": {"dtype": "<U2"},
    "booleans": {"dtype": "|b1", "shape": [16]},
    "number": {"dtype": 8},
    "order": {"order": "K"},
    "key": {"offset": 0},
}


@pytest.mark.parametrize("change", ENTRIES.values(), ids=ENTRIES)
def test_arrays_that_lie(change, parts, path):
    document, arrays = parts
    coef = document["model"]["class"][1]["coef_"]["array"]
    document["arrays"][coef] |= change
    refused(path, put_together(document, arrays))


def test_arrays_left_over(parts, path):
    document, arrays = parts
    document["arrays"].append({"dtype": "<f8", "shape": [1], "order": "C"})
    refused(path, put_together(document, arrays + bytes(8)), "nothing refers to")


@pytest.mark.parametrize("size", [-1, -2])
def test_a_negative_size_is_not_a_shape(size):
    entry = {"dtype": "<f8", "shape": [size], "order": "C"}
    document = {"eqsep": "0", "model": {"array": 0}, "arrays": [entry]}
    with pytest.raises(ModelFileError, match="no proper shape"):
        unpack(put_together(document, bytes(8)))


def test_an_empty_array_is_no_wider_than_the_file():
    entry = {"dtype": "<f8", "shape": [0, 10**6], "order": "C"}
    document = {"eqsep": "0", "model": {"array": 0}, "arrays": [entry]}
    with pytest.raises(ModelFileError, match="larger than the file"):
        unpack(put_together(document, b""))


def test_arrays_are_named_in_turn():
    for numbers in ([1, 0], [0, 0]):
        tree = {"tuple": [{"array": number} for number in numbers]}
        with pytest.raises(ModelFileError, match="out of turn"):
            Reader([np.zeros(1), np.zeros(1)]).model(tree)


def test_characters_and_booleans_are_checked():
    for dtype, item in (("<U1", b"\xff\xff\xff\xff"), ("|b1", b"\x02")):
        entry = {"dtype": dtype, "shape": [1], "order": "C"}
        document = {"eqsep": "0", "model": {"array": 0}, "arrays": [entry]}
        with pytest.raises(ModelFileError, match=r"neither true nor false|invalid character"):
            unpack(put_together(document, item))


def test_scalars_and_names_are_checked():
    for kind in ("scalar", "names"):
        with pytest.raises(ModelFileError, match=r"has a shape|are not strings"):
            Reader([np.zeros((1, 1))]).value({kind: 0})


def altered(models, name, path, change):
    """The file of a model of which one attribute was changed behind its back."""
    fit_once(name, models).save(path)
    document, arrays = taken_apart(path.read_bytes())
    change(document["model"]["class"][1], document["arrays"])
    return put_together(document, arrays)


def reshape(entries):
    for entry in entries:
        entry["shape"] = entry["shape"][::-1]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("linear", lambda state, _: state.pop("coef_")),
        ("linear", lambda state, _: state.update(n_features_in_=3)),
        ("linear", lambda state, _: state.update(head_=None)),
        ("linear", lambda state, _: state.update(surprise_=1)),
        ("linear", lambda state, _: state.update(surprise=1)),
        ("closed", lambda state, _: state.update(closed=False)),
        ("closed", lambda state, _: state.update(chunk_size=0)),
        ("closed", lambda _, entries: reshape(entries)),
        ("bump", lambda state, _: state["separator_"]["class"][1].clear()),
        ("network", lambda _, entries: reshape(entries)),
        ("network", lambda state, _: state["network_"]["class"][1]["hidden"][0].pop(0)),
        ("network", lambda state, _: state["network_"]["class"][1].update(hidden=[])),
        ("network", lambda state, _: state["network_"]["class"][1]["hidden"].reverse()),
        ("deep SAD", lambda state, _: state["network_"]["class"][1].update(output=None)),
    ],
)
def test_what_was_learnt_has_to_fit_together(name, change, models, path):
    refused(path, altered(models, name, path, change))


def test_layers_that_do_not_follow_on_one_another(models):
    network = fit_once("network", models).network_
    codec = CODECS["networks.Network"]
    blocks = [list(block) for block in network.hidden]
    for hidden, message in [
        (blocks[::-1], "do not follow"),
        ([blocks[0][1:]], "takes no columns"),
        (blocks[:1], "do not follow"),
    ]:
        with pytest.raises(ModelFileError, match=message):
            codec.decode({"hidden": hidden, "output": network.output}, "networks.Network")
    wide = fit_once("network, closed", models).network_.hidden[0][0]
    with pytest.raises(ModelFileError, match="more than one number"):
        codec.decode({"hidden": [], "output": wide}, "networks.Network")


def test_a_function_that_hears_of_progress_is_not_kept(models, path):
    model = copy(fit_once("network", models)).set_params(progress=print)
    assert kept(model, path).progress is None
    document, arrays = taken_apart(path.read_bytes())
    document["model"]["class"][1]["progress"] = True
    refused(path, put_together(document, arrays), "has the unknown 'progress'")


def test_memory_is_bounded_by_the_size_of_the_file(path):
    claims = [
        {"dtype": "<f8", "shape": [10**11], "order": "C"},
        {"dtype": "<f8", "shape": [0, 10**11], "order": "C"},
        {"dtype": "<U9999999", "shape": [100], "order": "C"},
    ]
    again = {"tuple": [{"array": 0}] * 500}
    one = {"dtype": "<f8", "shape": [10**5], "order": "C"}
    files = [put_together({"eqsep": "0", "model": 1, "arrays": [c]}, bytes(800)) for c in claims]
    files.append(put_together({"eqsep": "0", "model": again, "arrays": [one]}, bytes(8 * 10**5)))
    files.append(put_together(b"[" + b"[]," * 190_000 + b"[]]", b""))
    for data in files:
        path.write_bytes(data)
        tracemalloc.start()
        try:
            with pytest.raises(ModelFileError):
                load_model(path)
            assert tracemalloc.get_traced_memory()[1] < 32 * len(data) + 10**5
        finally:
            tracemalloc.stop()


def test_mutated_files(models, path):
    rng, sound = random.Random(0), []
    for name in ESTIMATORS:
        fit_once(name, models).save(path)
        sound.append(path.read_bytes())
    n_loaded, reasons = 0, set()
    for i in range(400):
        data, other = rng.choice(sound), rng.choice(sound)
        forged = i % 4 != 0
        mutant = (forged_copy if forged else damaged_copy)(data, other, rng)
        path.write_bytes(mutant)
        try:
            model = load_model(path)
        except ModelFileError as error:
            reasons.add(str(error))
            continue
        assert forged or mutant in sound
        n_loaded += 1
        try:
            model.predict(ROWS)
        except Exception as error:  # whatever a forged model says, Python hears of it
            reasons.add(type(error).__name__)
    assert 20 < n_loaded < 240
    assert len(reasons) > 35, "the checks behind the checksum have been reached"


def test_the_public_name():
    assert eqsep.load_model is load_model


@pytest.mark.parametrize("name", ["linear", "closed", "twin", "negative sampling"])
def test_what_was_learnt_is_finite(name, models, tmp_path):
    path = tmp_path / "m.eqsep"
    fit_once(name, models).save(path)
    document, arrays = taken_apart(path.read_bytes())
    start, refused = 0, 0
    for entry in document["arrays"]:
        dtype = np.dtype(entry["dtype"])
        size = dtype.itemsize * int(np.prod(entry["shape"], dtype=int))
        if dtype.kind == "f" and size:
            bad = np.array([np.nan], dtype=dtype).tobytes()
            forged = arrays[:start] + bad + arrays[start + len(bad) :]
            path.write_bytes(put_together(document, forged))
            with pytest.raises(ModelFileError, match="The model file is damaged"):
                load_model(path)
            refused += 1
        start += size
    assert refused


@pytest.mark.parametrize("name", ["network", "deep SAD"])
def test_the_device_of_a_network_is_a_known_one(name, models, tmp_path):
    path = tmp_path / "m.eqsep"
    fit_once(name, models).save(path)
    document, arrays = taken_apart(path.read_bytes())
    document["model"]["class"][1]["device"] = "cuda:99; rm"
    path.write_bytes(put_together(document, arrays))
    with pytest.raises(ModelFileError, match="device should be one of"):
        load_model(path)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_column_that_never_varied_is_kept(tmp_path):
    X = np.column_stack([SPLIT.X_train, np.ones(len(SPLIT.X_train))])
    model = saved_separators.ESTIMATORS["network, closed"].__sklearn_clone__()
    model.fit(X, SPLIT.y_train)
    model.save(tmp_path / "m")
    assert_array_equal(load_model(tmp_path / "m").decision_function(X), model.decision_function(X))
