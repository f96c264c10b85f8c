"""Compiled loops: how they are compiled and kept, what they sum up, and threads for rows."""

import ast
import builtins
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eqsep
from eqsep.engine import loops
from eqsep.engine.kernels import Laplacian, manhattan
from eqsep.engine.loops import compiled, exponentials, in_threads, threads, weighted_sums
from eqsep.engine.nystroem import KernelMap

PACKAGE = Path(eqsep.__file__).parent
COMPILERS = {"compiled", "inlined", "shared"}
FREE = {"np", "math", *vars(builtins)}
N_PROCESSES = 3

WORKLOAD = """
import sys, warnings
import numpy as np, pandas as pd
import eqsep
from eqsep import DeepSAD, Detector, KernelEqualitySeparator, NetworkSeparator, load_model
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config
from eqsep.tables import TableEncoder

warnings.simplefilter("ignore")
demo = make_mixed_demo(n_samples=600, random_state=0)
mixed, plain = pd.DataFrame(demo.X), np.random.default_rng(0).normal(size=(400, 3))
mixed.iloc[::7, 0] = None
few = Detector(n_landmarks=30, random_state=0, config=Config.fast())
for X, y in (mixed, demo.kind), (mixed, None), (plain, None), (plain.astype(np.float32), None):
    few.fit(X, y).save("m.eqsep")
    if y is not None:
        few.partial_fit(X[:100], y[:100])
    for model in few, load_model("m.eqsep"):
        model.score_samples(X), model.score_samples(X[:1]), model.predict_kind(X[:99])
        model.explain(X[:2])
few.fit(demo.X, demo.kind).score_samples(demo.X[:3])
few.fit(demo.X, np.where(demo.kind == "normal", None, demo.kind)).predict_kind(demo.X[:99])
TableEncoder().fit(mixed).transform(mixed)
is_far = np.abs(plain).max(axis=1) > 2
for kernel in "laplacian", "rbf":
    for X in plain, plain.astype(np.float32):
        model = KernelEqualitySeparator(kernel=kernel).fit(X, is_far)
        model.partial_fit(X[:9], is_far[:9]).decision_function(X[::2])
for network in NetworkSeparator, DeepSAD:
    network(training=eqsep.networks.Training(epochs=2), random_state=0).fit(plain, is_far)
for name, module in list(sys.modules.items()):
    for found in vars(module).values() if name.startswith("eqsep.") else ():
        if hasattr(found, "signatures") and found.py_func.__module__ == name:
            print(f"{name}.{found.py_func.__name__}", len(found.signatures))
"""


@pytest.mark.extra
def test_each_loop_is_compiled_for_arrays_of_one_type(tmp_path):
    """Numba numbers what it keeps of a loop: processes could mix up a second type and the first."""
    found = [line.split() for line in run(WORKLOAD, cwd=tmp_path).splitlines()]
    times = {name: int(n) for name, n in found}
    expected = {name: 1 for name, compiler, _ in compiled_functions() if compiler == "compiled"}
    assert {name: n for name, n in times.items() if name in expected} == expected
    assert len(expected) > 15


def test_a_loop_uses_names_of_its_file_alone():
    """Numba compiles a loop again only where its own file has changed."""
    assert {name: names for name, _, names in compiled_functions() if names} == {}


def test_names_of_other_files_are_seen():
    source = """
from a import A, compiled, inlined
B, C = A + 1, 3
D = 4
@inlined
def f(x): return D
@compiled(fastmath=A)
def g(x: A): return f(x) + h(D) + np.abs(x)
@compiled
def h(x):
    for y in x: B
"""
    found = [("f", "inlined", set()), ("g", "compiled", {"A"}), ("h", "compiled", {"A"})]
    assert list(functions_of(ast.parse(source))) == found


def compiled_functions():
    """All compiled functions of the package, how they are compiled, and foreign names in them."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(f"@{compiler}" in text for compiler in COMPILERS):
            module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            for name, *found in functions_of(ast.parse(text)):
                yield f"{module}.{name}", *found


def functions_of(tree):
    values, defined = {}, set(COMPILERS)
    for node in tree.body:
        if isinstance(node, ast.Assign):
            values |= dict.fromkeys(names_in(node.targets, ast.Store), node.value)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)

    def foreign(names):
        for name in names - FREE - defined:
            if name in values:
                value = [values[name]]
                yield from foreign(names_in(value) - names_in(value, ast.Store))
            else:
                yield name

    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and COMPILERS & names_in(node.decorator_list):
            (compiler,) = COMPILERS & names_in(node.decorator_list)
            parts = [*node.decorator_list, *node.body]
            own = {argument.arg for argument in node.args.args} | names_in(parts, ast.Store)
            yield node.name, compiler, set(foreign(names_in(parts) - own))


def names_in(nodes, context=ast.Load):
    """The names that are read in nodes of a syntax tree, or written."""
    names = (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, context)}


def run(code, *, cwd, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
        env=os.environ | environment,
    )
    return done.stdout


SCORED = """
import numpy as np
from eqsep.engine.kernels import SparseLaplacian
from eqsep.engine.nystroem import KernelMap
rows = np.linspace(0, 1, 300, dtype=np.float32).reshape(50, 6)
kernel = SparseLaplacian(0.5, (1, 2, 4, 8, 16))
scores = KernelMap(kernel, rows[::2], 50).evaluate(rows, np.linspace(-1, 1, 25))
print(scores.tobytes().hex())
"""


@pytest.mark.extra
def test_processes_that_start_at_once_on_an_empty_cache_all_score_alike(tmp_path):
    expected, cache = run(SCORED, cwd=tmp_path), tmp_path / "cache"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SCORED],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        )
        for _ in range(N_PROCESSES)
    ]
    answers = [process.communicate()[0] for process in started]
    assert answers == [expected] * N_PROCESSES
    assert [process.returncode for process in started] == [0] * N_PROCESSES
    assert run(SCORED, cwd=tmp_path, NUMBA_CACHE_DIR=str(cache)) == expected  # as it was kept
    assert len(list(cache.rglob("*.nbc"))) == 3


def test_a_loop_without_a_file_is_compiled_and_not_kept():
    names = {}
    exec("def add(x):\n    for i in range(len(x)):\n        x[i] += 1", names)
    x = np.zeros(3)
    compiled(names["add"])(x)
    assert_array_equal(x, [1, 1, 1])


@pytest.mark.parametrize("n_threads", ["1", "2", "5", "99"])
def test_threads_change_nothing(n_threads, monkeypatch):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(50, 20)), rng.normal(size=(30, 20))
    kernel_map, coef = KernelMap(Laplacian(gamma=0.1), C, 7), rng.normal(size=30)
    expected = kernel_map.evaluate(X, coef), kernel_map.features(X)
    monkeypatch.setenv("OMP_NUM_THREADS", n_threads)
    monkeypatch.setattr(loops, "WORTH_A_THREAD", 1)
    assert threads() == int(n_threads)
    assert_array_equal(kernel_map.evaluate(X, coef), expected[0])
    assert_array_equal(kernel_map.features(X), expected[1])
    assert_array_equal(expected[1], np.exp(-0.1 * manhattan(X, C)))


@pytest.mark.parametrize("asked", ["", "0", "many"])
def test_without_a_number_all_cores_are_used(asked, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert 1 <= threads() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(("quota", "cores"), [("50000 100000", 1), ("max 100000", None)])
def test_the_quota_of_a_container_is_kept(quota, cores, tmp_path, monkeypatch):
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(loops, "Path", lambda _: file)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    loops._cores.cache_clear()
    try:
        assert threads() == (cores or 8)
    finally:
        loops._cores.cache_clear()


def test_sums_are_in_double_precision_and_each_row_is_on_its_own():
    rng = np.random.default_rng(0)
    k, coef = rng.uniform(size=(30, 501)).astype(np.float32), rng.normal(size=(3, 501)) * 1e3
    together = weighted_sums(k, coef)
    assert_allclose(together, k.astype(float) @ coef.T, rtol=1e-12, atol=1e-9)
    assert_array_equal(np.concatenate([weighted_sums(row[None], coef) for row in k]), together)
    assert_array_equal(np.column_stack([weighted_sums(k, a[None]) for a in coef]), together)


def test_exponentials_are_as_good_as_single_precision_allows():
    s = np.linspace(0, 87, 10**6, dtype=np.float32)[None]
    found = exponentials(s.copy(), rate=1.0, powers=(1, 2))
    wanted = (np.exp(-s.astype(float)) + np.exp(-2 * s.astype(float))) / 2
    assert found.dtype == np.float32
    assert_allclose(found, wanted, rtol=2**-22)
    one = exponentials(s[:, :1000].copy(), rate=1.0, powers=(2,))
    assert_allclose(one, np.exp(-2 * s[:, :1000].astype(float)), rtol=2**-21)


@pytest.mark.parametrize("powers", [(1,), (1, 2), (4,), (1, 2, 4, 8, 16)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_are_1_at_the_landmark_and_0_far_away(powers, dtype):
    s = np.array([[0.0, 1.0, 200.0, 1e30, np.inf, np.nan]], dtype=dtype)
    wanted = np.mean([np.exp(-3.0 * p * s.astype(float)) for p in powers], axis=0)
    found = exponentials(s, rate=3.0, powers=powers)
    assert_allclose(found, wanted, rtol=1e-5, atol=1e-38)
    assert found[0, 0] == 1
    assert found[0, 3] == found[0, 4] == 0


def test_rows_of_exponentials_are_on_their_own():
    s = np.random.default_rng(0).uniform(0, 30, size=(50, 37)).astype(np.float32)
    together = exponentials(s.copy(), rate=0.7, powers=(1, 2, 4))
    alone = [exponentials(row[None].copy(), rate=0.7, powers=(1, 2, 4)) for row in s]
    assert_array_equal(np.concatenate(alone), together)


def test_a_single_power_is_numpys():
    """Models of before are answered to the last bit."""
    s = np.linspace(0, 9, 99, dtype=np.float32)[None]
    wanted = np.exp(s * -0.3)
    assert_array_equal(exponentials(s, rate=0.3), wanted)


def test_work_in_a_thread_is_not_divided_again(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    parts = []

    def inner(rows):
        parts.append(rows)

    def outer(rows):
        in_threads(inner, rows.stop - rows.start, steps=2**40)

    in_threads(outer, 10, steps=2**40)
    assert parts == [slice(0, 5), slice(0, 5)]


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    def fail(rows):
        raise ValueError(f"in {rows.start}")

    with pytest.raises(ValueError, match="in 0"):
        in_threads(fail, 10, steps=2**40)
