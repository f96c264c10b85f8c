import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from eqsep.activations import GaussianBump, RadialBasis, Ridge, Sigmoid, TanhBump
from eqsep.losses import LogisticLoss, SquaredLoss, as_loss, objective

LOSSES = [SquaredLoss(), LogisticLoss()]
HEADS = [GaussianBump(), GaussianBump(sigma=10), TanhBump(), RadialBasis(), Sigmoid()]
TARGETS = [0.0, 1.0, 0.3]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("head", HEADS, ids=repr)
@pytest.mark.parametrize("target", TARGETS)
def test_slope_is_the_derivative(loss, head, target):
    z = torch.linspace(-4, 4, 32, dtype=torch.float64, requires_grad=True)
    loss(z, torch.full_like(z, target), head=head).sum().backward()
    plain = z.detach().numpy()
    assert_allclose(loss.slope(plain, np.full(32, target), head=head), z.grad, atol=1e-11)


@pytest.mark.parametrize("head", HEADS, ids=repr)
@pytest.mark.parametrize("target", [0.0, 1.0])
def test_logistic_loss_is_finite_wherever_z_is(head, target):
    size = np.logspace(-12, 6, 200)
    z = np.concatenate([-size, size])
    loss = LogisticLoss()
    assert np.isfinite(loss(z, np.full_like(z, target), head=head)).all()
    assert np.isfinite(loss.slope(z, np.full_like(z, target), head=head)).all()


@pytest.mark.parametrize(
    ("z", "target", "expected"),
    [
        (1e6, 1.0, 5e11),  # -log p = z² / 2, far beyond where p underflows
        (1e-12, 0.0, -np.log(5e-25)),  # -log(1 - p) = -log(z² / 2), where 1 - p rounds to 0
        (40.0, 0.0, 0.0),
        (0.0, 1.0, 0.0),
    ],
)
def test_logistic_loss_of_the_bump_in_its_limits(z, target, expected):
    value = LogisticLoss()(np.array([z]), np.array([target]), head=GaussianBump())
    assert_allclose(value, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("head", [*HEADS, TanhBump(sigma=1000), TanhBump(sigma=1e-3)], ids=repr)
@pytest.mark.parametrize("target", [0.0, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_differentiates_the_logistic_loss_wherever_z_is(head, target, dtype):
    size = torch.logspace(-12, 6, 200, dtype=dtype)
    z = torch.cat([-size, torch.zeros(1, dtype=dtype), size]).requires_grad_()
    value = LogisticLoss()(z, torch.full_like(z, target), head=head)
    value.sum().backward()
    slope = LogisticLoss().slope(z.detach(), torch.full_like(z, target), head=head)
    for found in (value.detach(), z.grad, slope):
        assert torch.isfinite(found).all()


@pytest.mark.parametrize("head", [GaussianBump(), GaussianBump(10), RadialBasis()], ids=repr)
@pytest.mark.parametrize("target", [0.0, 1.0])
def test_single_precision_has_the_logistic_slope_of_double(head, target):
    z = np.logspace(-12, 0, 100, dtype=np.float32)
    loss, wanted = LogisticLoss(), np.full(100, target)
    exact = loss.slope(z.astype(np.float64), wanted, head=head)
    assert_allclose(loss.slope(z, wanted.astype(np.float32), head=head), exact, rtol=1e-5)


def test_squared_loss_of_the_ridge_needs_no_logarithm():
    assert SquaredLoss()(np.array([2.0]), np.array([1.0]), head=Ridge()) == 16
    assert LogisticLoss.needs_logarithm
    assert not Ridge.has_logarithm


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_objective_matches_finite_differences_and_keeps_problems_apart(loss):
    rng = np.random.default_rng(0)
    X, target = rng.standard_normal((30, 4)), rng.integers(0, 2, (30, 3)).astype(float)
    weight = rng.random(30)
    alpha = np.array([0.1, 0.2, 0.3, 0.0])
    goal = objective(X, target, weight / weight.sum(), head=GaussianBump(), loss=loss, alpha=alpha)
    W = rng.standard_normal((3, 4))
    value, gradient = goal(W, np.arange(3))
    for i in range(4):
        step = np.zeros(4)
        step[i] = 1e-6
        up, down = goal(W + step, np.arange(3))[0], goal(W - step, np.arange(3))[0]
        assert_allclose(gradient[:, i], (up - down) / 2e-6, rtol=1e-5, atol=1e-8)
    alone, _ = goal(W[[2]], np.array([2]))
    assert_allclose(alone, value[2])


def test_losses_go_by_name_or_as_themselves():
    assert isinstance(as_loss("logistic"), LogisticLoss)
    own = SquaredLoss()
    assert as_loss(own) is own
    with pytest.raises(ValueError, match=r"Unknown loss 'hinge'.*logistic.*squared"):
        as_loss("hinge")
