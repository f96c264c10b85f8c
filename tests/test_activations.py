import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from eqsep.activations import GaussianBump, LeakyReLU, RadialBasis, Ridge, Sigmoid, TanhBump

PROBABILITIES = [
    GaussianBump(),
    GaussianBump(sigma=0.5),
    GaussianBump(sigma=4, mu=1.45),
    TanhBump(),
    TanhBump(sigma=3.0),
    RadialBasis(gamma=0.7),
    Sigmoid(),
]
HEADS = [*PROBABILITIES, Ridge()]
ACTIVATIONS = [*HEADS, LeakyReLU(leak=0.2)]
BUMPS = [head for head in HEADS if head.family == "equality"]
Z = np.linspace(-3.1, 3.1, 32)


def derivative(function, z=Z):
    z = torch.tensor(z, requires_grad=True)
    function(z).sum().backward()
    return z.grad


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
def test_slope_is_the_derivative(activation):
    assert_allclose(activation.slope(Z), derivative(activation), atol=1e-12)


@pytest.mark.parametrize("head", PROBABILITIES, ids=repr)
@pytest.mark.parametrize("name", ["log", "log1m"])
def test_logarithms_agree_with_p_and_with_their_slopes(head, name):
    z = Z[head(Z) < 1 - 1e-6]  # closer to 1, the plain formula itself is off
    plain = {"log": np.log, "log1m": lambda p: np.log1p(-p)}[name](head(z))
    assert_allclose(getattr(head, name)(z), plain, rtol=1e-9, atol=1e-15)
    exact = derivative(getattr(head, name))
    assert_allclose(getattr(head, f"{name}_slope")(Z), exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
def test_numpy_and_torch_give_the_same(activation):
    assert_allclose(activation(Z), activation(torch.tensor(Z)), rtol=1e-14)
    single = activation(torch.tensor(Z, dtype=torch.float32))
    assert single.dtype == torch.float32
    assert_allclose(activation(Z), single, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("head", HEADS, ids=repr)
def test_membership_is_half_at_the_half_width(head):
    centred = head.centred()
    assert_allclose(centred.membership(np.array([centred.half_width])), 0.5, rtol=1e-12)


@pytest.mark.parametrize("head", HEADS, ids=repr)
def test_membership_lies_between_zero_and_one(head):
    p = head.membership(np.array([-1e150, -1e6, -2.0, -1e-300, 0.0, 1e-12, 0.3, 5.0, 1e150]))
    assert np.all((p >= 0) & (p <= 1))


@pytest.mark.parametrize("head", BUMPS, ids=repr)
def test_a_bump_is_one_on_the_plane_even_and_falls_off_it(head):
    z = np.linspace(0.01, 5, 40)
    head = head.centred()
    assert head.membership(np.zeros(1)) == 1
    assert_allclose(head(z), head(-z))
    assert np.all(np.diff(head(z)) <= 0)


def test_the_formulas_are_the_published_ones():
    assert_allclose(GaussianBump(sigma=2, mu=1)(np.array([3.0])), math.exp(-0.5))
    assert_allclose(TanhBump(sigma=2)(np.array([4.0])), math.tanh(0.25))
    assert_allclose(RadialBasis()(np.array([2.0])), math.exp(-4))
    assert Ridge()(np.array([3.0])) == -8


def test_a_learnable_sigma_is_the_same_object_with_a_tensor_in_it():
    sigma = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    GaussianBump(sigma=sigma)(torch.tensor(Z)).sum().backward()
    step = 1e-6
    up, down = (GaussianBump(sigma=0.5 + s)(Z).sum() for s in (step, -step))
    assert_allclose(float(sigma.grad), (up - down) / (2 * step), rtol=1e-6)


def test_locality_orders_the_families():
    far = np.array([-50.0, 50.0])
    assert Sigmoid().family == "halfspace"
    assert Sigmoid()(far).tolist() == pytest.approx([0, 1])
    assert GaussianBump().family == "equality"
    assert GaussianBump()(far).tolist() == [0, 0]
    assert RadialBasis().family == "rbf"


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1000.0])
@pytest.mark.parametrize("name", ["__call__", "log", "log1m"])
def test_a_tanh_bump_of_any_width_has_finite_gradients_in_single_precision(name, sigma):
    z = torch.tensor([0.0, 1e-12, -1e-11, 3e-11, 1e-3, 1e6], requires_grad=True)
    head = TanhBump(sigma=sigma)
    getattr(head, name)(z).sum().backward()
    assert torch.isfinite(z.grad).all()
    slope = {"__call__": head.slope, "log": head.log_slope, "log1m": head.log1m_slope}[name]
    assert torch.isfinite(slope(z.detach())).all()


def test_a_halfspace_is_an_equality_after_one_relu():
    """w.x + b > 0 exactly where max(0, w.x + b) differs from 0."""
    rng = np.random.default_rng(0)
    z = np.append(rng.standard_normal((50, 3)) @ rng.standard_normal(3) + 0.2, 0.0)
    assert ((LeakyReLU(leak=0.0)(z) != 0) == (z > 0)).all()
    assert 5 < (z > 0).sum() < 45
