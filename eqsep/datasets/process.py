"""A made-up process: sensors that move together, runs in time, ten kinds of fault.

All runs are simulated side by side: every quantity is an array with one value a run. Flows are in
l/s, levels in m, pressures in bar, temperatures in °C, power in kW; valves open from 0 to 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import lfilter
from sklearn.utils import check_random_state

from eqsep.datasets.records import LabelledTable, named_columns
from eqsep.errors import UserError

Values = Mapping[str, np.ndarray]

STEP = 10.0  # seconds
# What is read at every step, with the standard deviation of the noise. Controllers and the set
# point are digital: without noise.
SENSORS = {
    **{"ambient_temperature": 0.1, "feed_pressure": 0.01, "feed_temperature": 0.1},
    **{"feed_flow": 0.03, "feed_valve": 0.3, "feed_controller": 0.0},
    **{"tank1_level": 0.005, "tank1_temperature": 0.1, "pump_pressure": 0.01, "pump_power": 0.01},
    **{"transfer_setpoint": 0.0, "transfer_flow": 0.03, "transfer_valve": 0.3},
    **{"transfer_controller": 0.0, "exchanger_pressure_drop": 0.005, "exchanger_temperature": 0.1},
    **{"medium_pressure": 0.02, "medium_inlet_temperature": 0.1, "medium_outlet_temperature": 0.1},
    **{"medium_flow": 0.04, "medium_valve": 0.3, "medium_controller": 0.0},
    **{"tank2_level": 0.005, "tank2_temperature": 0.1, "product_pressure": 0.005},
    **{"product_flow": 0.03, "product_valve": 0.3, "product_controller": 0.0},
}
_PLACE = {name: place for place, name in enumerate(SENSORS)}

# The loops: the valve that each moves, what it holds, its gain (opening per unit of error) and
# its reset time in seconds. Opening the product valve lowers the level, hence the sign.
LOOPS = {
    "feed": ("tank1_level", 1.5, 400.0),
    "transfer": ("transfer_flow", 0.1, 20.0),
    "medium": ("tank2_temperature", 0.08, 500.0),
    "product": ("tank2_level", -1.0, 600.0),
}
_HELD_SENSORS = [_PLACE[held] for held, _, _ in LOOPS.values()]
_GAIN = np.array([[gain] for _, gain, _ in LOOPS.values()])
_RESET = np.array([[reset] for _, _, reset in LOOPS.values()])
_MEDIUM = list(LOOPS).index("medium")
_VALVE_LAG, _STICTION = 10.0, 0.003  # seconds; the least difference that moves a valve

_FEED_VALVE, _TRANSFER_VALVE, _MEDIUM_VALVE, _PRODUCT_VALVE = 7.07, 10.0, 6.93, 14.2  # l/s/bar^.5
_HEAD_OF_WATER = 0.0981  # bar/m
_PUMP_HEAD, _PUMP_SLOPE, _PUMP_EFFICIENCY, _PUMP_IDLE = 3.2, 0.03, 0.65, 0.2
_PIPE, _EXCHANGER, _RISE = 0.014, 0.018, 0.6  # bar/(l/s)², twice, and bar: tank 2 stands higher
_PRODUCT_FILM, _MEDIUM_FILM, _WALL = 11.0, 9.5, 0.0167  # kW/K at 1 l/s, twice, and K/kW
_EXCHANGER_LAG = 30.0
_HEAT_CAPACITY, _LOSS = 4.18, 0.4  # kJ/(l K), kW/K
_AREA = np.array([[1_500.0], [2_000.0]])  # litres a metre of level
_LOWEST_LEVEL, _HIGHEST_LEVEL = 0.05, 3.0

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
_IN_TANKS = {"tank1_level": 1.5, "tank2_temperature": 50.0, "tank2_level": 1.5}
_SETPOINTS = _IN_TANKS | {"transfer_flow": 5.0}

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
) -> LabelledTable:
    """The sensors of a process, normal runs and runs with one of ten kinds of fault.

    Columns move together and follow themselves in time, and controllers work against a fault: many
    faults show in the relation of columns only, some in one column, and no column shows them all.

    Parameters
    ----------
    n_normal_runs : int, default=20
    n_fault_runs : int, default=2
        The number of runs with each kind of fault.
    n_rows : int, default=200
        The number of rows of a run, one every 30 seconds, at least 4. A fault begins at row
        `n_rows // 4`; the rows before it are normal.
    setpoint_spread : float, default=0.0
        By which share the set points of a run may lie above or below the usual ones, at most 0.1.
    as_frame : bool, default=False
        Whether the rows are a pandas frame rather than a matrix.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    LabelledTable
        Runs one after the other, rows of a run in time. `groups` is the number of the run, `time`
        the number of the row in its run, both from 0.

    Notes
    -----
    Feed comes through a valve into tank 1, is pumped through a valve and a heat exchanger into tank
    2, and leaves it through a valve as product; a fourth valve lets in a hot medium. PI controllers
    hold both levels, the flow between the tanks and the temperature of tank 2. The kinds:

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
    >>> make_process(n_normal_runs=2, n_fault_runs=1, n_rows=40, random_state=0)
    LabelledTable(28 features; 30 blocked pipe, 30 cold medium, 30 feed step, 30 fouling,
        30 frozen ...)
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
    return LabelledTable(
        X=named_columns(X, list(SENSORS), as_frame=as_frame),
        kind=np.where(time < n_rows // 4, "normal", np.repeat(kinds, n_rows)),
        feature_names=tuple(SENSORS),
        groups=np.repeat(np.arange(len(kinds)), n_rows),
        time=time,
    )


def _check(n_normal_runs: int, n_fault_runs: int, *, n_rows: int, setpoint_spread: float) -> None:
    if min(n_normal_runs, n_fault_runs) < 0 or n_normal_runs + n_fault_runs == 0:
        runs = f"n_normal_runs={n_normal_runs} and n_fault_runs={n_fault_runs}"
        expected = "expected at least one, and none below 0"
        raise UserError(f"{runs} leave no run to simulate: {expected}. Ask for more runs.")
    if n_rows < 4:
        expected = "expected at least 4 rows, of which the first quarter is without a fault"
        raise UserError(f"n_rows={n_rows} is too short for a run: {expected}. Ask for more rows.")
    if not 0 <= setpoint_spread <= _WIDEST_SPREAD:
        spread = f"setpoint_spread={setpoint_spread} is not a share that the plant can hold"
        expected = f"expected 0 to {_WIDEST_SPREAD}"
        raise UserError(f"{spread}: {expected}. Choose, for instance, 0.02.")


def _amounts(kinds: np.ndarray, *, n_rows: int, rng: Any) -> dict[str, np.ndarray]:
    """How much there is of each fault at every step of every run, (n_steps, n_runs)."""
    begin = (_WARM_UP + n_rows // 4) * _STEPS_A_ROW
    steps = np.arange((_WARM_UP + n_rows) * _STEPS_A_ROW)[:, None]
    minutes = (steps - begin + 1) * STEP / 60  # at the end of the step
    amounts = {}
    for name, (least, largest, grows) in _FAULTS.items():
        amount = rng.uniform(least, largest, size=len(kinds)) * (kinds == name)
        amounts[name] = amount * np.clip(minutes / max(grows, STEP / 60), 0, 1)
    return amounts


def _surroundings(faults: Values, *, flow: np.ndarray, rng: Any) -> dict[str, np.ndarray]:
    """What comes from outside at every step of every run, around the flow that is asked for."""
    shape = faults["feed step"].shape
    deviations = {
        name: deviation * _autocorrelated(shape, minutes=minutes, rng=rng)
        for name, (_, deviation, minutes) in _SURROUNDINGS.items()
    }
    deviations["feed_temperature"] += _WEATHER_ON_FEED * deviations["ambient_temperature"]
    deviations["feed_temperature"] -= faults["feed step"]
    deviations["medium_inlet_temperature"] -= faults["cold medium"]
    deviations["transfer_setpoint"] += flow
    return {name: mean + deviations[name] for name, (mean, _, _) in _SURROUNDINGS.items()}


def _autocorrelated(shape: tuple[int, ...], *, minutes: float, rng: Any) -> np.ndarray:
    """Columns of variance 1 that forget by 1/e in these minutes: x_t = φ x_{t-1} + ε_t."""
    keep = np.exp(-STEP / 60 / minutes)
    noise = rng.standard_normal(shape)
    noise[1:] *= np.sqrt(1 - keep**2)  # the first stays as it is: of the same variance
    return lfilter([1.0], [1.0, -keep], noise, axis=0)


@dataclass
class Plant:
    """The state of all runs at one moment; the last axis of every array is the run."""

    level: np.ndarray
    temperature: np.ndarray
    outlet: np.ndarray
    valve: np.ndarray
    integral: np.ndarray
    output: np.ndarray

    @classmethod
    def at_rest(cls, n_runs: int) -> "Plant":
        """Near the steady state of the usual set points."""

        def filled(*values: float) -> np.ndarray:
            return np.repeat(np.array(values)[:, None], n_runs, axis=1)

        valves = dict.fromkeys(("valve", "integral", "output"), filled(*(0.5,) * len(LOOPS)))
        level, temperature, outlet = filled(1.5, 1.5), filled(18.0, 50.0), filled(51.0, 63.0)
        return cls(level=level, temperature=temperature, outlet=outlet, **valves)

    def flows(self, now: Values, fault: Values) -> dict[str, np.ndarray]:
        """What flows now, and what the pump does: pressures and resistances balance at once."""
        feed, transfer, medium, product = self.valve
        wear = 1 - fault["pump wear"]
        pipe = _PIPE * (1 + fault["blocked pipe"])
        opening = 1 / (_TRANSFER_VALVE * np.maximum(transfer, 0.01)) ** 2
        suction = _HEAD_OF_WATER * self.level[0]
        resistance = wear * _PUMP_SLOPE + pipe + _EXCHANGER + opening
        squared = (wear * _PUMP_HEAD + suction - _RISE) / resistance
        flow = np.sqrt(squared)
        head = wear * (_PUMP_HEAD - _PUMP_SLOPE * squared)
        drop = np.maximum(_RISE + _HEAD_OF_WATER * self.level[1] - now["product_pressure"], 0.0)
        return {
            "feed_flow": _FEED_VALVE * feed * np.sqrt(now["feed_pressure"]),
            "transfer_flow": flow,
            "medium_flow": _MEDIUM_VALVE * medium * np.sqrt(now["medium_pressure"]),
            "product_flow": _PRODUCT_VALVE * product * np.sqrt(drop),
            "pump_pressure": suction + head,
            "pump_power": 0.1 * head * flow / (_PUMP_EFFICIENCY * wear) + _PUMP_IDLE,
            "exchanger_pressure_drop": _EXCHANGER * squared,
        }

    def truth(self, now: Values, flows: Values) -> np.ndarray:
        """What the sensors would read without noise, in their order."""
        names = ("exchanger_temperature", "medium_outlet_temperature")
        values = {**now, **flows, **dict(zip(names, self.outlet, strict=True))}
        for tank in (0, 1):
            values[f"tank{tank + 1}_level"] = self.level[tank]
            values[f"tank{tank + 1}_temperature"] = self.temperature[tank]
        for place, name in enumerate(LOOPS):
            values[f"{name}_valve"] = 100 * self.valve[place]
            values[f"{name}_controller"] = 100 * self.output[place]
        return np.array([values[name] for name in SENSORS])

    def control(self, reading: np.ndarray, setpoint: np.ndarray, fault: Values) -> None:
        """PI control, u = k (e + ∫ e dt / T), within 0 and 1; then the valves follow with a lag."""
        error = _GAIN * (setpoint - reading[_HELD_SENSORS])
        growth = STEP / _RESET * error
        growth[_MEDIUM] *= 1 + fault["oscillation"]
        self.integral = np.clip(self.integral + growth, 0.0, 1.0)
        self.output = np.clip(self.integral + error, 0.0, 1.0)
        move = self.output - self.valve
        move[np.abs(move) < _STICTION] = 0.0
        move[_MEDIUM, fault["stuck valve"] > 0] = 0.0
        self.valve = self.valve + (1 - np.exp(-STEP / _VALVE_LAG)) * move

    def advance(self, now: Values, flows: Values, fault: Values) -> None:
        """Balances of mass and heat over one step."""
        transfer, feed = flows["transfer_flow"], flows["feed_flow"]
        content = _AREA * self.level
        gained = np.array([feed - transfer, transfer - flows["product_flow"] - fault["leak"]])
        inlet = np.array([now["feed_temperature"], self.outlet[0]])
        carried = np.array([feed, transfer]) * (inlet - self.temperature)
        lost = _LOSS / _HEAT_CAPACITY * (self.temperature - now["ambient_temperature"])
        self.temperature = self.temperature + STEP * (carried - lost) / content
        self.level = np.clip(self.level + STEP * gained / _AREA, _LOWEST_LEVEL, _HIGHEST_LEVEL)
        towards = self._exchanged(now, flows, fault)
        self.outlet = self.outlet + STEP / _EXCHANGER_LAG * (towards - self.outlet)

    def _exchanged(self, now: Values, flows: Values, fault: Values) -> np.ndarray:
        """The two temperatures where a counterflow exchanger of NTU = UA / C_min would settle."""
        transfer, medium = flows["transfer_flow"], np.maximum(flows["medium_flow"], 0.01)
        films = 1 / (_PRODUCT_FILM * transfer**0.8) + 1 / (_MEDIUM_FILM * medium**0.8)
        resistance = films + _WALL * (1 + fault["fouling"])
        small, large = np.minimum(transfer, medium), np.maximum(transfer, medium)
        ratio = np.minimum(small / large, 0.999)  # 1 would be 0 / 0
        decay = np.exp(-(1 - ratio) / (resistance * _HEAT_CAPACITY * small))
        effectiveness = (1 - decay) / (1 - ratio * decay)
        hot, cold = now["medium_inlet_temperature"], self.temperature[0]
        heat = effectiveness * small * (hot - cold)  # in units of the heat capacity
        return np.array([cold + heat / transfer, hot - heat / medium])


def simulate(surroundings: Values, setpoints: Values, faults: Values, *, rng: Any) -> np.ndarray:
    """The readings of all runs at all steps, (n_steps, n_sensors, n_runs).

    `surroundings` and `faults` are (n_steps, n_runs), `setpoints`, by what they hold, (n_runs,).
    """
    n_steps, n_runs = surroundings["transfer_setpoint"].shape
    deviation = np.array(list(SENSORS.values()))[:, None]
    plant = Plant.at_rest(n_runs)
    readings = np.empty((n_steps, len(SENSORS), n_runs))
    for step in range(n_steps):
        now = {name: values[step] for name, values in surroundings.items()}
        fault = {name: amount[step] for name, amount in faults.items()}
        flows = plant.flows(now, fault)
        reading = plant.truth(now, flows)
        reading += deviation * rng.standard_normal(reading.shape)
        reading[_PLACE["tank2_temperature"]] += fault["sensor bias"]
        if step > 0:
            frozen = fault["frozen sensor"] > 0
            place = _PLACE["exchanger_temperature"]
            reading[place, frozen] = readings[step - 1, place, frozen]
        wanted = {**setpoints, "transfer_flow": now["transfer_setpoint"]}
        plant.control(reading, np.array([wanted[held] for held, _, _ in LOOPS.values()]), fault)
        plant.advance(now, flows, fault)
        readings[step] = reading
    return readings
