"""The plant: what flows in flows out, what is heated is paid for, what is held is held."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eqsep.datasets.plant import LOOPS, SENSORS, simulate

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


@pytest.fixture(scope="module")
def usual():
    return run()


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
    leaking = run("leak")
    assert late(leaking["transfer_flow"] - leaking["product_flow"]) == pytest.approx(0.3, abs=0.02)
    assert late(leaking["tank2_level"]) == pytest.approx(1.5, abs=0.01)  # nothing to be seen here


def test_a_bias_is_hidden_where_it_is_and_shows_elsewhere(usual):
    biased = run("sensor bias")
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
    calm, swinging = run(), run("oscillation")
    for name in ("medium_valve", "exchanger_temperature"):
        assert np.std(swinging[name][-300:]) > 3 * np.std(calm[name][-300:]), name
    assert late(swinging["tank2_temperature"]) == pytest.approx(50.0, abs=0.3)


@pytest.mark.parametrize("kind", TOUCHED)
def test_a_fault_changes_nothing_before_it_begins_and_something_after(usual, kind):
    faulty = run(kind)
    for name in SENSORS:
        assert_array_equal(faulty[name][:BEGIN], usual[name][:BEGIN], err_msg=name)
    name = TOUCHED[kind]  # with the same noise
    assert np.abs(faulty[name] - usual[name])[-200:].mean() > 3 * SENSORS[name]


def test_valves_and_levels_stay_within_their_limits():
    reading = run(medium_inlet_temperature=40.0)  # it can never reach 50
    assert reading["medium_controller"].max() == 100
    assert abs(late(reading["medium_valve"]) - 100) < 1
    assert all(np.isfinite(values).all() for values in reading.values())
