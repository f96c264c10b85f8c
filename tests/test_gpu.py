"""Sums through digits, on a GPU where there is one and by the same operations here."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from roundings import rounding

from eqsep import Detector, KernelEqualitySeparator, load_model
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config
from eqsep.engine import gpu
from eqsep.engine.nystroem import KernelMap
from eqsep.kernels import RBF, Laplacian

torch = pytest.importorskip("torch", reason="the extra nn is not installed")
on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SETTINGS = {"n_landmarks": 200, "bandwidth": 0.5, "random_state": 0, "config": Config.fast()}


def whole(digits):
    return 256 * digits[0].long() + digits[1].long()


def squares(digits):
    m = digits.shape[1]
    total = torch.zeros((m, m), dtype=torch.float64, device=digits.device)
    gpu.add_squares(total, digits)
    return total.triu() + total.triu(1).T


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 40), m=st.integers(1, 20), seed=st.integers(0, 2**31))
def test_digits_are_the_nearest_whole_numbers(n, m, seed):
    k = torch.as_tensor(np.random.default_rng(seed).uniform(-1, 1, size=(n, m)))
    digits = gpu.digits_of(k, torch.full((n,), gpu.SCALE))
    assert (whole(digits)[:m, :n].T - k * gpu.SCALE).abs().max() <= 0.5
    assert not whole(digits)[m:].any()
    assert not whole(digits)[:, n:].any()


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 127.5 / 127, 128 / 32512, 383 / 32512])
def test_digits_at_the_ends_of_their_range(value):
    digits = gpu.digits_of(torch.tensor([[min(value, 1.0)]]), torch.tensor([gpu.SCALE]))
    assert whole(digits)[0, 0] == round(min(value, 1.0) * gpu.SCALE)


def test_the_private_product_of_torch_is_there_and_exact():
    """`torch._int_mm`: bytes in, whole numbers of 32 bits out. It has no public name yet."""
    rng = np.random.default_rng(0)
    a, b = (torch.as_tensor(rng.integers(-128, 128, (32, 64)), dtype=torch.int8) for _ in range(2))
    product = torch._int_mm(a, b.T)
    assert product.dtype == torch.int32
    assert torch.equal(product, (a.long() @ b.T.long()).int())


def test_products_of_digits_are_exact():
    rng = np.random.default_rng(0)
    k = gpu.digits_of(torch.as_tensor(rng.uniform(size=(500, 40))), torch.full((500,), 3e4))
    square = squares(k)
    assert square.dtype == torch.float64
    assert torch.equal(square, (whole(k) @ whole(k).T).double())
    assert torch.equal(gpu.products(k, k), square)


def test_a_full_piece_does_not_overflow():
    ones = torch.full((64, gpu.SUMMED_AT_ONCE), 127, dtype=torch.int8)
    low = torch.full_like(ones, -128)
    square = squares(torch.stack([ones, low]))
    assert square[0, 0] == gpu.SUMMED_AT_ONCE * (127 * 256 - 128) ** 2


@pytest.mark.parametrize(
    "kernel", [Laplacian(gamma=0.3), Laplacian(gamma=0.1, powers=(1, 2, 4)), RBF(gamma=0.2)]
)
@pytest.mark.parametrize("targets", [1, 3])
def test_sums_differ_from_exact_ones_by_the_rounding_of_values(kernel, targets, monkeypatch):
    monkeypatch.setattr(gpu, "SUMMED_AT_ONCE", 64)
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(300, 4)), rng.normal(size=(20, 4))
    weight, target = rng.choice([0.3, 1.0, 2.5], size=300), rng.choice([0, 1, -0.5], (300, targets))
    exact = KernelMap(kernel, C, 100).statistics(X, target, weight, total=np.ones(2))
    tensors = (torch.as_tensor(a, dtype=torch.float32) for a in (C, X))
    gram, moment = gpu.summed(kernel, *tensors, target, weight)
    assert_allclose(gram.numpy(), exact.gram, atol=2e-3)
    assert_allclose(moment.numpy(), exact.moment, atol=2e-3)
    assert moment.shape == exact.moment.shape


def test_sums_of_pieces_are_those_of_the_whole():
    """To the last digits: whole numbers have been summed up."""
    rng = np.random.default_rng(0)
    X, C = (torch.as_tensor(rng.normal(size=(n, 3)), dtype=torch.float32) for n in (200, 15))
    ones = np.ones(200)
    parts = [
        gpu.summed(Laplacian(gamma=1.0), C, X[p], ones[p], ones[p])
        for p in (slice(0, 77), slice(77, 200))
    ]
    gram, moment = gpu.summed(Laplacian(gamma=1.0), C, X, ones, ones)
    assert_allclose((parts[0][0] + parts[1][0]).numpy(), gram.numpy(), rtol=1e-14)
    assert_allclose((parts[0][1] + parts[1][1]).numpy(), moment.numpy(), rtol=1e-14)


def test_scores_through_tensors_are_those_without():
    rng = np.random.default_rng(0)
    X, C = (torch.as_tensor(rng.normal(size=(n, 3)), dtype=torch.float32) for n in (50, 9))
    coef = torch.as_tensor(rng.normal(size=9))
    expected = KernelMap(Laplacian(gamma=0.5), C.numpy(), 10).evaluate(X.numpy(), coef.numpy())
    got = gpu.combined(Laplacian(gamma=0.5), C, X, coef)
    assert_allclose(got.numpy(), expected, atol=1e-5)


@pytest.fixture(scope="module")
def payments():
    return make_mixed_demo(n_samples=1500, as_frame=True, random_state=0)


def test_a_detector_on_a_device_is_the_one_in_memory(payments, tmp_path):
    """Without a GPU "auto" is the processor, by torch."""
    here = Detector(**SETTINGS).fit(payments.X, payments.kind)
    there = Detector(device="auto", **SETTINGS).fit(payments.X, payments.kind)
    step = 1e-3 if torch.cuda.is_available() else 1e-6  # coefficients follow from digits there
    tolerance = rounding(here, payments.X, step=step, others=10 * step)
    score = there.score_samples(payments.X)
    assert (np.abs(score - here.score_samples(payments.X)) <= tolerance).all()
    assert (there.predict_kind(payments.X) == here.predict_kind(payments.X)).mean() > 0.999
    there.save(tmp_path / "model.eqsep")
    loaded = load_model(tmp_path / "model.eqsep")
    assert loaded.device == "cpu"
    assert (np.abs(loaded.score_samples(payments.X) - score) <= tolerance).all()


def test_a_detector_can_be_moved_after_the_fit(payments):
    detector = Detector(**SETTINGS).fit(payments.X, payments.kind)
    here = detector.score_samples(payments.X)
    error = rounding(detector, payments.X, step=1e-5, others=1e-3)
    there = detector.set_params(device="auto").score_samples(payments.X)
    assert (np.abs(there - here) <= error).all()


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match=r"device must be one of .* got 'tpu'"):
        Detector(device="tpu").fit([[1.0], [2.0]])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_missed(payments):
    with pytest.raises(ValueError, match="torch sees no GPU"):
        Detector(device="cuda", **SETTINGS).fit(payments.X, payments.kind)


FORMS = (gpu.Form(0.1), gpu.Form(0.1, powers=(1, 2, 4)), gpu.Form(0.05, degree=2))


@pytest.mark.parametrize("form", FORMS)
def test_plain_operations_are_the_kernels(form):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(9, 3)), rng.normal(size=(5, 3))
    apart = (np.abs(X[:, None] - C) ** form.degree).sum(axis=2)
    expected = np.mean([np.exp(-form.rate * p * apart) for p in form.powers], axis=0)
    k = gpu.values(torch.as_tensor(X), torch.as_tensor(C), form)
    assert_allclose(k.numpy(), expected, rtol=1e-12)
    kernel = RBF(form.rate) if form.degree == 2 else Laplacian(form.rate, form.powers)
    assert_allclose(kernel(X, C), expected, rtol=1e-12)


@on_a_gpu
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (100, 70, 7), (300, 129, 33)])
def test_tiles_give_what_plain_operations_give(shape, form):
    n, m, d = shape
    rng = np.random.default_rng(0)
    X, C = (torch.as_tensor(rng.normal(size=(k, d)), dtype=torch.float32) for k in (n, m))
    coef, scale = torch.as_tensor(rng.normal(size=m)), torch.full((n,), gpu.SCALE)
    there = [a.cuda() for a in (X, C, coef, scale)]
    k = gpu.values(X.double(), C.double(), form)
    assert_allclose(gpu.values(*there[:2], form).cpu().numpy(), k.numpy(), atol=1e-6)
    sums = gpu.sums(*there[:3], form).cpu().numpy()
    assert_allclose(sums, (k @ coef).numpy(), atol=1e-4)
    digits = whole(gpu.digits(there[0], there[1], there[3], form)).cpu()
    assert (digits[:m, :n].T - k * gpu.SCALE).abs().max() <= 0.6
    assert not digits[:, n:].any()


@on_a_gpu
@pytest.mark.parametrize("m", [64, 129, 500])
def test_squares_by_tiles_are_exact(m):
    rng = np.random.default_rng(0)
    X, C = (torch.as_tensor(rng.normal(size=(k, 5)), dtype=torch.float32) for k in (1000, m))
    k = gpu.digits(X.cuda(), C.cuda(), torch.full((1000,), gpu.SCALE).cuda(), gpu.Form(0.1))
    here = whole(k).cpu()
    assert torch.equal(squares(k).cpu(), (here @ here.T).double())


@on_a_gpu
def test_tensors_on_a_gpu_teach_what_arrays_teach():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 6)).astype(np.float32), (np.arange(5000) % 3 == 0).astype(int)
    settings = {"kernel": "laplacian", "n_landmarks": 100, "random_state": 0}
    here = KernelEqualitySeparator(**settings).fit(X, y).decision_function(X)
    model = KernelEqualitySeparator(**settings).fit(torch.as_tensor(X).cuda(), y)
    there = model.decision_function(torch.as_tensor(X).cuda())
    assert_allclose(there.cpu().numpy(), here, atol=1e-3)
