"""The made-up process and its plant: `eqsep.datasets.process`."""

from collections import Counter
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import LedoitWolf
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from eqsep.datasets import make_process
from eqsep.datasets.process import LOOPS, SENSORS, simulate

FAULTS = (
    *("blocked pipe", "cold medium", "feed step", "fouling", "frozen sensor"),
    *("leak", "oscillation", "pump wear", "sensor bias", "stuck valve"),
)
N_NORMAL, N_FAULTY, N_ROWS = 24, 2, 200


@pytest.fixture(scope="module")
def process():
    return make_process(
        n_normal_runs=N_NORMAL, n_fault_runs=N_FAULTY, n_rows=N_ROWS, as_frame=True, random_state=0
    )


@pytest.fixture(scope="module")
def normal(process):
    return process.X[process.groups < N_NORMAL]


def test_a_seed_gives_the_same_rows_again_and_another_seed_does_not():
    first, again, other = (
        make_process(n_normal_runs=1, n_fault_runs=1, n_rows=12, random_state=s) for s in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.X, again.X)
    assert first.kind.tolist() == again.kind.tolist() == other.kind.tolist()
    assert (first.X != other.X).mean() > 0.99


def test_matrices_and_frames_hold_the_same():
    matrix, frame = (
        make_process(n_normal_runs=2, n_fault_runs=0, n_rows=9, as_frame=f, random_state=0)
        for f in (False, True)
    )
    assert isinstance(frame.X, pd.DataFrame)
    assert tuple(frame.X.columns) == frame.feature_names == matrix.feature_names
    np.testing.assert_array_equal(frame.X.to_numpy(), matrix.X)


def test_runs_follow_each_other_and_faults_begin_after_a_quarter(process):
    n_runs = N_NORMAL + N_FAULTY * len(FAULTS)
    assert process.X.shape == (n_runs * N_ROWS, 28)
    assert process.groups.tolist() == np.repeat(np.arange(n_runs), N_ROWS).tolist()
    assert process.time.tolist() == np.tile(np.arange(N_ROWS), n_runs).tolist()
    kinds = [process.kind[process.groups == run] for run in range(n_runs)]
    assert all(set(run[: N_ROWS // 4]) == {"normal"} for run in kinds)
    assert all(len(set(run[N_ROWS // 4 :])) == 1 for run in kinds)
    last = Counter(run[-1] for run in kinds)
    assert last == {"normal": N_NORMAL} | dict.fromkeys(FAULTS, N_FAULTY)


def test_every_value_is_finite_and_every_column_varies(process):
    assert np.isfinite(process.X.to_numpy()).all()
    assert (process.X.std() > 0).all()


def test_columns_follow_themselves_and_each_other(normal):
    runs = normal.to_numpy().reshape(N_NORMAL, N_ROWS, -1)
    runs = runs - runs.mean(axis=1, keepdims=True)
    following = (runs[:, 1:] * runs[:, :-1]).mean(axis=(0, 1)) / (runs**2).mean(axis=(0, 1))
    assert following.min() > 0.3
    assert np.median(following) > 0.8
    correlation = np.corrcoef(normal.to_numpy().T) - np.eye(normal.shape[1])
    assert (np.abs(correlation).max(axis=0) > 0.3).mean() > 0.9
    assert abs(normal["transfer_flow"].corr(normal["product_flow"])) > 0.8


def test_runs_have_set_points_of_their_own_where_that_is_asked_for():
    def between(spread):
        table = make_process(
            n_normal_runs=12, n_fault_runs=0, n_rows=60, setpoint_spread=spread, random_state=1
        )
        place = table.feature_names.index("tank1_level")
        return table.X[:, place].reshape(12, 60).mean(axis=1)

    assert np.std(between(0.0)) < 0.006
    assert 0.03 < np.std(between(0.05)) < 0.06
    assert np.abs(between(0.05) / 1.5 - 1).max() < 0.055


def test_a_fault_changes_its_own_run_from_its_first_row_on():
    """As many runs with and without faults: all else is drawn alike."""
    faulty = make_process(n_normal_runs=1, n_fault_runs=1, n_rows=60, random_state=0)
    healthy = make_process(n_normal_runs=11, n_fault_runs=0, n_rows=60, random_state=0)
    change = np.abs(faulty.X - healthy.X).max(axis=1).reshape(11, 60)
    assert (change[0] == 0).all()
    assert (change[1:, :15] == 0).all()
    assert (change[1:, 17:] > 0).all()
    assert (change[1:, 40:].max(axis=1) > 0.1).all()


def test_feed_and_medium_get_as_cold_as_is_said():
    table = make_process(n_normal_runs=0, n_fault_runs=5, n_rows=200, as_frame=True, random_state=0)
    for kind, column, rows, (least, largest) in (
        ("feed step", "feed_temperature", 1, (2, 4)),
        ("cold medium", "medium_inlet_temperature", 40, (3, 6)),
    ):
        runs = np.unique(table.groups[table.kind == kind])
        drop = [
            values[:50].mean() - values[50 + rows :].mean()
            for values in (table.X.loc[table.groups == run, column] for run in runs)
        ]
        assert least < np.mean(drop) < largest, kind


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_normal_runs": 0, "n_fault_runs": 0}, "leave no run to simulate: expected at least"),
        ({"n_normal_runs": -1}, "n_normal_runs=-1 and n_fault_runs=2 leave no run"),
        ({"n_rows": 3}, "n_rows=3 is too short for a run: expected at least 4"),
        ({"setpoint_spread": 0.2}, "setpoint_spread=0.2 is not .* expected 0 to 0.1"),
        ({"setpoint_spread": -0.1}, "setpoint_spread=-0.1 is not"),
    ],
)
def test_what_cannot_be_simulated_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        make_process(**options)


def areas_by_column(process, kind):
    """How well a column's distance from its usual value tells a kind from normal rows."""
    scaler = StandardScaler().fit(process.X[process.groups < N_NORMAL // 2])
    distance = np.abs(scaler.transform(process.X))
    held_out = (process.groups >= N_NORMAL // 2) & (process.groups < N_NORMAL)
    rows = held_out | (process.kind == kind)
    y = process.kind[rows] == kind
    return [roc_auc_score(y, column[rows]) for column in distance.T]


@pytest.mark.extra
def test_no_column_tells_of_all_faults_and_some_faults_of_none(process):
    areas = np.array([areas_by_column(process, kind) for kind in FAULTS])
    assert areas.min(axis=0).max() < 0.65  # the best column on its worst fault
    assert areas.max() > 0.95
    assert (areas.max(axis=1) < 0.85).sum() >= 2


@pytest.mark.extra
def test_distances_among_columns_and_trees_find_what_they_should(process):
    train, test = process.groups < N_NORMAL // 2, process.groups >= N_NORMAL // 2
    scaler = StandardScaler().fit(process.X[train])
    covariance = LedoitWolf().fit(scaler.transform(process.X[train]))
    distance = covariance.mahalanobis(scaler.transform(process.X))
    areas = {
        kind: roc_auc_score(process.kind[rows] == kind, distance[rows])
        for kind in FAULTS
        for rows in [test & np.isin(process.kind, ("normal", kind))]
    }
    assert areas["blocked pipe"] > 0.99
    assert min(areas.values()) > 0.5
    assert sorted(areas.values())[2] < 0.9  # and leaves something to find
    first_of_kind = np.isin(process.groups, N_NORMAL + N_FAULTY * np.arange(len(FAULTS)))
    seen = train | first_of_kind
    forest = RandomForestClassifier(50, random_state=0).fit(process.X[seen], process.y[seen])
    area = roc_auc_score(process.y[~seen], forest.predict_proba(process.X[~seen])[:, 1])
    assert 0.75 < area < 0.99


def test_the_rows_of_a_seed_are_what_they_were():
    """Figures of the documentation rest on them."""
    table = make_process(n_normal_runs=1, n_fault_runs=1, n_rows=20, as_frame=True, random_state=0)
    means = table.X.groupby(table.kind).mean()
    found = means.loc["leak", ["transfer_flow", "product_flow", "medium_valve"]]
    assert found.tolist() == pytest.approx([4.985224308, 4.910485660, 52.205495753], rel=1e-6)


N_STEPS, BEGIN = 900, 500
AMOUNTS = {
    "feed step": 0.0,  # these two act on what comes from outside
    "cold medium": 0.0,
    "fouling": 0.6,
    "pump wear": 0.08,
    "blocked pipe": 0.8,
    "leak": 0.3,
    "stuck valve": 1.0,
    "sensor bias": 1.5,
    "frozen sensor": 1.0,
    "oscillation": 20.0,
}
OUTSIDE = {
    "ambient_temperature": 20.0,
    "feed_temperature": 18.0,
    "feed_pressure": 2.0,
    "medium_inlet_temperature": 90.0,
    "medium_pressure": 3.0,
    "product_pressure": 0.25,
    "transfer_setpoint": 5.0,
}
SETPOINTS = {"tank1_level": 1.5, "tank2_temperature": 50.0, "tank2_level": 1.5}
# Where each fault shows once the controllers have done what they can.
TOUCHED = {
    "fouling": "medium_valve",
    "pump wear": "transfer_valve",
    "blocked pipe": "transfer_valve",
    "leak": "product_flow",
    "sensor bias": "exchanger_temperature",
    "oscillation": "medium_flow",
}


def run(kind=None, *, seed=0, **outside):
    """The readings of one run, by sensor; its fault begins at step 500."""
    on = (np.arange(N_STEPS) >= BEGIN)[:, None]
    faults = {name: amount * (name == kind) * on for name, amount in AMOUNTS.items()}
    surroundings = {
        name: np.broadcast_to(np.asarray(value, dtype=float).reshape(-1, 1), (N_STEPS, 1))
        for name, value in (OUTSIDE | outside).items()
    }
    setpoints = {name: np.array([value]) for name, value in SETPOINTS.items()}
    rng = np.random.RandomState(seed)
    readings = simulate(surroundings, setpoints, faults, rng=rng)
    return dict(zip(SENSORS, readings[:, :, 0].T, strict=True))


run_once = cache(run)  # for readings that several tests look at


@pytest.fixture(scope="module")
def usual():
    return run_once()


def late(reading):
    return reading[-200:].mean()


def test_controllers_hold_what_they_are_asked_to_hold(usual):
    wanted = SETPOINTS | {"transfer_flow": OUTSIDE["transfer_setpoint"]}
    for held, _, _ in LOOPS.values():
        assert late(usual[held]) == pytest.approx(wanted[held], rel=2e-3), held


def test_what_flows_in_flows_out_and_heat_is_paid_for(usual):
    flows = [late(usual[f"{name}_flow"]) for name in ("feed", "transfer", "product")]
    assert_allclose(flows, flows[0], rtol=2e-3)
    gained = usual["transfer_flow"] * (usual["exchanger_temperature"] - usual["tank1_temperature"])
    drop = usual["medium_inlet_temperature"] - usual["medium_outlet_temperature"]
    assert late(gained) == pytest.approx(late(usual["medium_flow"] * drop), rel=5e-3)


def test_a_leak_is_what_the_product_lacks():
    leaking = run_once("leak")
    assert late(leaking["transfer_flow"] - leaking["product_flow"]) == pytest.approx(0.3, abs=0.02)
    assert late(leaking["tank2_level"]) == pytest.approx(1.5, abs=0.01)  # nothing to be seen here


def test_a_bias_is_hidden_where_it_is_and_shows_elsewhere(usual):
    biased = run_once("sensor bias")
    assert late(biased["tank2_temperature"]) == pytest.approx(50.0, abs=0.1)
    difference = late(biased["exchanger_temperature"]) - late(usual["exchanger_temperature"])
    assert difference == pytest.approx(-1.5, abs=0.1)


def test_a_stuck_valve_stays_while_its_controller_moves():
    demand = 5 + 0.2 * np.sin(np.arange(N_STEPS) / 60)
    stuck = run("stuck valve", transfer_setpoint=demand)
    assert np.std(stuck["medium_valve"][BEGIN:]) < 0.4  # the noise of its reading
    assert np.std(stuck["medium_controller"][BEGIN:]) > 2


def test_a_frozen_sensor_reads_one_value():
    reading = run("frozen sensor")["exchanger_temperature"]
    assert_array_equal(reading[BEGIN:], reading[BEGIN - 1])
    assert np.std(reading[:BEGIN]) > 0


def test_an_oscillation_swings_about_the_set_point():
    calm, swinging = run_once(), run_once("oscillation")
    for name in ("medium_valve", "exchanger_temperature"):
        assert np.std(swinging[name][-300:]) > 3 * np.std(calm[name][-300:]), name
    assert late(swinging["tank2_temperature"]) == pytest.approx(50.0, abs=0.3)


@pytest.mark.parametrize("kind", TOUCHED)
def test_a_fault_changes_nothing_before_it_begins_and_something_after(usual, kind):
    faulty = run_once(kind)
    for name in SENSORS:
        assert_array_equal(faulty[name][:BEGIN], usual[name][:BEGIN], err_msg=name)
    name = TOUCHED[kind]  # with the same noise
    assert np.abs(faulty[name] - usual[name])[-200:].mean() > 3 * SENSORS[name]


def test_valves_and_levels_stay_within_their_limits():
    reading = run(medium_inlet_temperature=40.0)  # it can never reach 50
    assert reading["medium_controller"].max() == 100
    assert abs(late(reading["medium_valve"]) - 100) < 1
    assert all(np.isfinite(values).all() for values in reading.values())
