"""What is measured for claims alone: variants of networks, wide Gaussians, cross-validation."""

from dataclasses import replace

import numpy as np
import pytest

from eqsep.activations import GaussianBump
from eqsep.datasets import TrainTestSplit
from paper.cells import Cell, Results, write_result
from paper.claims import CLAIMS, STUDIES, cross_validation, variants, wide_gaussians
from paper.claims.claim import tell
from paper.comparison import compare
from paper.plan import Plan
from paper.tables import TABLES, circle_ensembles, circle_networks, circles, thyroid

BY_NAME = {claim.name: claim for claim in CLAIMS.claims}
QUICK = Plan(seeds=2, quick=True)
MADE = {"date": "2026-01-01", "commit": "c", "versions": "v", "machine": "m", "seconds": 1.0}


@pytest.fixture
def few_rows(monkeypatch):
    """Thirty normal rows, twenty attacks, five columns."""
    rng = np.random.default_rng(0)
    kind = np.repeat(["normal", "dos"], [30, 20])
    X = rng.normal(size=(50, 5)) + 2 * (kind == "dos")[:, None]
    split = TrainTestSplit(
        X_train=X, kind_train=kind, X_test=X, kind_test=kind, feature_names=tuple("abcde")
    )
    monkeypatch.setattr(variants, "data", lambda protocol: split)  # noqa: ARG005


@pytest.fixture
def short(monkeypatch):
    """Two epochs of the circles' networks."""
    whole = circle_networks.training
    monkeypatch.setattr(circle_networks, "training", lambda **told: whole(**told | {"epochs": 2}))


def cell(method, study="variants"):
    return Cell(study, "NSL-KDD", method, seeds=2, quick=True)


def test_claims_use_every_cell_that_their_studies_know():
    methods = {c.method for c in CLAIMS.cells(Plan()) if c.study == "variants"}
    assert methods == set(variants.METHODS)
    grids = {c.method for c in CLAIMS.cells(Plan()) if c.study == "cross_validation"}
    assert grids == set(cross_validation.GRIDS)
    assert all(study.seconds(cell(next(iter(methods)))) > 0 for study in STUDIES.values())


@pytest.mark.usefixtures("few_rows")
def test_layers_are_those_of_the_name(monkeypatch):
    pytest.importorskip("torch")
    made = []
    whole = variants.separator
    monkeypatch.setattr(
        variants, "separator", lambda *a, **k: made.append(whole(*a, **k)) or made[-1]
    )
    values, more = variants.measure(cell("ES, 2x60"))
    assert made[0].hidden == (60, 60)
    assert len(values["trapezoid, overall"]) == 2
    assert more == {"training rows": 50}


@pytest.mark.usefixtures("few_rows")
def test_ten_times_the_training_set_is_more_than_ten_times_its_normal_rows(monkeypatch):
    pytest.importorskip("torch")
    ratios = []

    class Sampling(variants.NegativeSampling):
        def __init__(self, estimator, *, ratio, random_state):
            ratios.append(ratio)
            super().__init__(estimator, ratio=ratio, random_state=random_state)

    monkeypatch.setattr(variants, "NegativeSampling", Sampling)
    for times in variants.SAMPLED:
        variants.measure(cell(f"HS-NS, ten times the {times}"))
    normal, all_rows = ratios
    assert normal * 30 == variants.QUICK_RATIO * 30
    assert all_rows * 30 == pytest.approx(variants.QUICK_RATIO * 50)


@pytest.mark.usefixtures("few_rows")
def test_a_penalty_reaches_the_network_and_an_autoencoder_tells_its_error():
    pytest.importorskip("torch")
    weak, strong = (
        variants.measure(cell(f"ES-SAD, L2 {l2}"))[0]["trapezoid, overall"]
        for l2 in ("1e-06", "0.1")
    )
    assert weak != strong
    errors = variants.measure(cell("HS, autoencoder as wide as the rows"))[0]["error in training"]
    assert len(errors) == 2
    assert all(0 < error < 10 for error in errors)


def test_wide_gaussians_are_as_wide_as_they_are_called():
    for name, problem in wide_gaussians.PROBLEMS.items():
        assert name.startswith(f"{problem['n_features']} dimensions")
    method = wide_gaussians.gaussians.method("MSE", "10.0")
    name = wide_gaussians.gaussians.dataset("1.0", 10)
    values, _ = wide_gaussians.measure(Cell("wide_gaussians", name, method, seeds=2))
    assert min(values["trapezoid, normal"]) > 0.95
    studies = {c.study for c in BY_NAME["above 0.99, MSE"].cells(Plan()) if "30 dim" in c.dataset}
    assert studies == {"gaussians"}


def test_the_printed_penalty_of_logistic_regression_is_not_that_of_the_least_loss(tmp_path):
    claim = BY_NAME["cross-validation, LR"]
    (lr,) = claim.cells(QUICK)
    values, _ = cross_validation.measure(lr)
    assert set(values) == {f"C = {C:g}" for C in (0.01, 0.1, 1, 10, 100)}
    assert all(len(scores) == 10 for scores in values.values())
    write_result(lr, tmp_path, {"values": values, "more": {}, "made": MADE})
    assert tell(claim, QUICK, Results(tmp_path)).verdict.word == "differs"


@pytest.mark.usefixtures("short")
def test_an_ensemble_is_measured_on_the_common_draw_and_on_others():
    pytest.importorskip("torch")
    ensemble = TABLES["toy_ensembles"].cells(QUICK)[0]
    values, _ = circle_ensembles.measure(ensemble)
    assert len(values["trapezoid, normal"]) == 1
    assert len(values["trapezoid, normal, by draw"]) == circle_ensembles.QUICK_DRAWS
    assert {c.method for c in TABLES["toy_ensembles"].cells(Plan())} <= set(circle_networks.LAYOUTS)


def test_a_detector_of_normal_rows_never_sees_the_anomalies():
    one = Cell("circles", "circles", "LOF", quick=True)
    other = replace(one, method=f"LOF{circles.ON_NORMAL}")
    on_all, on_normal = (circles.measure(c)[0]["trapezoid, train"][0] for c in (one, other))
    assert on_normal == pytest.approx(1.0)
    assert on_all < 0.9
    draws = circles.measure(one)[0]["trapezoid, train, by draw"]
    assert len(set(draws)) == circles.QUICK_DRAWS


def test_draws_of_the_training_area_decide_on_it(tmp_path):
    table = TABLES["toy_training"]
    plan = Plan(("paper",))
    (lof,) = table.cells(plan)
    for spread, word in ((0.0, "differs"), (0.1, "cannot tell")):
        values = {
            "trapezoid, train": [0.80],
            "trapezoid, train, by draw": [0.80 - spread, 0.80, 0.80 + spread],
            "trapezoid, normal, by draw": [1.0, 1.0, 1.0],
        }
        write_result(lof, tmp_path, {"values": values, "more": {}, "made": MADE})
        (line,) = compare(table, plan, Results(tmp_path)).lines
        assert line.published == "0.840"
        assert line.verdict.word == word


def test_one_vs_set_in_training_is_published_as_a_constant_score():
    table = TABLES["nsl_kdd_training"]
    share = {table.prevalence(e.row, e.column) for e in table.entries()}
    assert {e.published.mean for e in table.entries()} == {
        round((1 + s) / 2 - 1e-9, 3) for s in share
    }
    assert {e.key("paper") for e in table.entries()} == {"trapezoid, train"}


def test_a_learnable_mu_is_the_bias():
    torch = pytest.importorskip("torch")
    x = torch.linspace(-2, 2, 7, dtype=torch.float64)
    b, mu = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.3, 0.8))
    output = GaussianBump(0.5, mu=mu)(1.7 * x + b)
    assert torch.allclose(output, GaussianBump(0.5)(1.7 * x + (b - mu)))
    output[:4].sum().backward()
    assert float(b.grad) == pytest.approx(-float(mu.grad))
    assert abs(float(b.grad)) > 1e-3


def test_sigma_on_thyroid_is_that_of_the_name():
    assert {thyroid.LAYOUTS[f"ES, sigma={s}"].sigma for s in thyroid.SIGMAS} == {5.0, 10.0}
    assert thyroid.LAYOUTS["ES"].sigma == 7.0
    known = {c.method for c in BY_NAME["sigma on thyroid"].cells(Plan())}
    assert known == {"ES", "ES, sigma=5", "ES, sigma=10"}
