"""A made-up process: sensors that move together, runs in time, ten kinds of fault."""

from typing import Any

import numpy as np
from scipy.signal import lfilter
from sklearn.utils import check_random_state

from eqsep.datasets.frames import named_columns
from eqsep.datasets.plant import SENSORS, STEP, simulate
from eqsep.datasets.table import Table
from eqsep.errors import UserError

_STEPS_A_ROW = 3  # a row every 30 seconds
_WARM_UP = 120  # rows before the first: an hour
_WIDEST_SPREAD = 0.1

# What comes from outside: mean, standard deviation, and the minutes in which it forgets.
_SURROUNDINGS = {
    "ambient_temperature": (20.0, 1.5, 60.0),
    "feed_temperature": (18.0, 0.8, 40.0),
    "feed_pressure": (2.0, 0.08, 15.0),
    "medium_inlet_temperature": (90.0, 0.8, 30.0),
    "medium_pressure": (3.0, 0.12, 10.0),
    "product_pressure": (0.25, 0.02, 10.0),
    "transfer_setpoint": (0.0, 0.2, 40.0),  # around the run's own
}
_WEATHER_ON_FEED = 0.4  # K of the feed per K of the surroundings
_SETPOINTS = {
    "tank1_level": 1.5,
    "tank2_temperature": 50.0,
    "tank2_level": 1.5,
    "transfer_flow": 5.0,
}

# Of each fault the least and the largest amount, of which a run has one, and the minutes in which
# it grows to that.
_FAULTS = {
    "feed step": (2.0, 4.0, 0.0),  # K, feed colder
    "cold medium": (3.0, 6.0, 20.0),  # K, medium colder
    "fouling": (0.4, 0.9, 75.0),  # of the wall's resistance, more
    "pump wear": (0.04, 0.1, 75.0),  # of the head, less
    "blocked pipe": (0.4, 1.0, 0.0),  # of the pipe's resistance, more
    "leak": (0.15, 0.35, 0.0),  # l/s out of tank 2
    "stuck valve": (1.0, 1.0, 0.0),  # of the medium
    "sensor bias": (1.0, 2.0, 0.0),  # K, tank 2 read too hot
    "frozen sensor": (1.0, 1.0, 0.0),  # of the temperature behind the exchanger
    "oscillation": (14.0, 24.0, 0.0),  # of the rate at which the integral grows, more
}


def make_process(
    *,
    n_normal_runs: int = 20,
    n_fault_runs: int = 2,
    n_rows: int = 200,
    setpoint_spread: float = 0.0,
    as_frame: bool = False,
    random_state: Any = None,
) -> Table:
    """The sensors of a process, normal runs and runs with one of ten kinds of fault.

    A simulated plant in which columns move together and follow themselves in time, and in which
    controllers work against a fault: many faults can be seen in the relation of columns only, some
    in a single one, and no column tells of them all.

    Parameters
    ----------
    n_normal_runs : int, default=20
        The number of runs without a fault.
    n_fault_runs : int, default=2
        The number of runs with each kind of fault.
    n_rows : int, default=200
        The number of rows of a run, one every 30 seconds, at least 4. A fault begins at row
        `n_rows // 4`; the rows before it are normal.
    setpoint_spread : float, default=0.0
        By which share the set points of a run may lie above or below the usual ones, at most 0.1:
        runs then differ from each other.
    as_frame : bool, default=False
        Whether the rows are a pandas frame rather than a matrix.
    random_state : int, RandomState instance or None, default=None
        Pass an int for the same rows at every call.

    Returns
    -------
    Table
        Runs one after the other, rows of a run in time, with the kinds "normal" and those below.
        `groups` is the number of the run, `time` the number of the row in its run, both from 0.

    Notes
    -----
    Feed comes through a valve into tank 1, is pumped through a valve and a heat exchanger into
    tank 2, and leaves it through a valve as product; a hot medium heats the exchanger through a
    fourth valve. Four PI controllers move these valves, u = k (e + ∫ e dt / T), each between shut
    and open: they hold the level of tank 1, the flow between the tanks, the temperature and the
    level of tank 2. A valve follows with a lag, and only where it is moved by more than its
    stiction.

    - Flow through a valve of opening u under the pressure drop p: F = c u √p. Between the tanks,
      the head of the pump, p₀ - s F², meets pipe, exchanger, valve and the rise to tank 2.
    - Level of a tank of area A: A dh/dt = F_in - F_out. Temperature of its content V: V dT/dt =
      F_in (T_in - T), less what it loses to the surroundings.
    - Exchanger: counterflow, with the effectiveness of NTU = UA / C_min; 1 / UA is the sum of a
      film on either side, which goes with the flow to the power of 0.8, and of the wall.
    - From outside come the weather, pressure and temperature of the feed and of the medium, the
      pressure behind the product and the flow that is asked for: each x_t = φ x_{t-1} + ε_t,
      with memories of 10 to 60 minutes. Sensors have white noise, which the controllers see.

    The kinds, each as strong in a run as it happens to be:

    - "feed step": the feed is 2 to 4 K colder at once;
    - "cold medium": the medium gets 3 to 6 K colder in 20 minutes;
    - "fouling": the wall of the exchanger grows a layer in 75 minutes;
    - "pump wear": the pump loses 4 to 10 % of its head in 75 minutes;
    - "blocked pipe": the pipe behind the pump resists more at once;
    - "leak": tank 2 loses 3 to 7 % of what flows through it;
    - "stuck valve": that of the medium stays where it is;
    - "sensor bias": the temperature of tank 2 is read 1 to 2 K too high, and so held too low;
    - "frozen sensor": the temperature behind the exchanger is read as it was;
    - "oscillation": the integral of the temperature's controller grows far too fast.

    Examples
    --------
    >>> from eqsep.datasets import make_process
    >>> process = make_process(n_normal_runs=2, n_fault_runs=1, n_rows=40, random_state=0)
    >>> process
    Table(28 features; 30 blocked pipe, 30 cold medium, 30 feed step, 30 fouling, 30 frozen ...)
    >>> last = process.groups == 11
    >>> process.kind[last][[0, 9, 10, 39]].tolist()
    ['normal', 'normal', 'oscillation', 'oscillation']
    """
    _check(n_normal_runs, n_fault_runs, n_rows=n_rows, setpoint_spread=setpoint_spread)
    rng = check_random_state(random_state)
    kinds = np.repeat(["normal", *_FAULTS], [n_normal_runs, *[n_fault_runs] * len(_FAULTS)])
    faults = _amounts(kinds, n_rows=n_rows, rng=rng)
    setpoints = {
        name: usual * (1 + setpoint_spread * rng.uniform(-1, 1, size=len(kinds)))
        for name, usual in _SETPOINTS.items()
    }
    surroundings = _surroundings(faults, flow=setpoints.pop("transfer_flow"), rng=rng)
    readings = simulate(surroundings, setpoints, faults, rng=rng)
    rows = readings[_WARM_UP * _STEPS_A_ROW :: _STEPS_A_ROW].transpose(2, 0, 1)
    X = rows.reshape(-1, len(SENSORS))
    time = np.tile(np.arange(n_rows), len(kinds))
    return Table(
        X=named_columns(X, list(SENSORS), as_frame=as_frame),
        kind=np.where(time < _start(n_rows), "normal", np.repeat(kinds, n_rows)),
        feature_names=tuple(SENSORS),
        groups=np.repeat(np.arange(len(kinds)), n_rows),
        time=time,
    )


def _start(n_rows: int) -> int:
    """The row of a run at which its fault begins."""
    return n_rows // 4


def _check(n_normal_runs: int, n_fault_runs: int, *, n_rows: int, setpoint_spread: float) -> None:
    if min(n_normal_runs, n_fault_runs) < 0 or n_normal_runs + n_fault_runs == 0:
        raise UserError(
            f"n_normal_runs={n_normal_runs} and n_fault_runs={n_fault_runs} leave no run to "
            "simulate: expected at least one, and none below 0. Ask for more runs."
        )
    if n_rows < 4:
        raise UserError(
            f"n_rows={n_rows} is too short for a run: expected at least 4 rows, of which the "
            "first quarter is without a fault. Ask for more rows."
        )
    if not 0 <= setpoint_spread <= _WIDEST_SPREAD:
        raise UserError(
            f"setpoint_spread={setpoint_spread} is not a share that the plant can hold: expected "
            f"0 to {_WIDEST_SPREAD}. Choose, for instance, 0.02."
        )


def _amounts(kinds: np.ndarray, *, n_rows: int, rng: Any) -> dict[str, np.ndarray]:
    """How much there is of each fault at every step of every run, (n_steps, n_runs)."""
    begin = (_WARM_UP + _start(n_rows)) * _STEPS_A_ROW
    steps = np.arange((_WARM_UP + n_rows) * _STEPS_A_ROW)[:, None]
    minutes = (steps - begin + 1) * STEP / 60  # at the end of the step
    amounts = {}
    for name, (least, largest, grows) in _FAULTS.items():
        amount = rng.uniform(least, largest, size=len(kinds)) * (kinds == name)
        amounts[name] = amount * np.clip(minutes / max(grows, STEP / 60), 0, 1)
    return amounts


def _surroundings(
    faults: dict[str, np.ndarray], *, flow: np.ndarray, rng: Any
) -> dict[str, np.ndarray]:
    """What comes from outside at every step of every run, around the flow that is asked for."""
    shape = faults["feed step"].shape
    deviations = {
        name: deviation * _autocorrelated(shape, minutes=minutes, rng=rng)
        for name, (_, deviation, minutes) in _SURROUNDINGS.items()
    }
    deviations["feed_temperature"] += _WEATHER_ON_FEED * deviations["ambient_temperature"]
    deviations["feed_temperature"] -= faults["feed step"]
    deviations["medium_inlet_temperature"] -= faults["cold medium"]
    means = {name: mean for name, (mean, _, _) in _SURROUNDINGS.items()} | {
        "transfer_setpoint": flow
    }
    return {name: means[name] + deviations[name] for name in means}


def _autocorrelated(shape: tuple[int, ...], *, minutes: float, rng: Any) -> np.ndarray:
    """Columns of variance 1 that forget by 1/e in these minutes: x_t = φ x_{t-1} + ε_t."""
    keep = np.exp(-STEP / 60 / minutes)
    noise = rng.standard_normal(shape)
    noise[1:] *= np.sqrt(1 - keep**2)  # the first stays as it is: of the same variance
    return lfilter([1.0], [1.0, -keep], noise, axis=0)
