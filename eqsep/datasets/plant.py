"""A plant in time: two tanks in series, an exchanger between them, four loops of PI control.

All runs are simulated side by side: every quantity is an array with one value a run. Flows are in
l/s, levels in m, pressures in bar, temperatures in °C, power in kW, valves open from 0 to 1 and
are read in percent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = Mapping[str, np.ndarray]

STEP = 10.0  # seconds
# What is read at every step, with the standard deviation of the noise. Controllers and the set
# point are digital: without noise.
SENSORS = {
    "ambient_temperature": 0.1,
    "feed_pressure": 0.01,
    "feed_temperature": 0.1,
    "feed_flow": 0.03,
    "feed_valve": 0.3,
    "feed_controller": 0.0,
    "tank1_level": 0.005,
    "tank1_temperature": 0.1,
    "pump_pressure": 0.01,
    "pump_power": 0.01,
    "transfer_setpoint": 0.0,
    "transfer_flow": 0.03,
    "transfer_valve": 0.3,
    "transfer_controller": 0.0,
    "exchanger_pressure_drop": 0.005,
    "exchanger_temperature": 0.1,
    "medium_pressure": 0.02,
    "medium_inlet_temperature": 0.1,
    "medium_outlet_temperature": 0.1,
    "medium_flow": 0.04,
    "medium_valve": 0.3,
    "medium_controller": 0.0,
    "tank2_level": 0.005,
    "tank2_temperature": 0.1,
    "product_pressure": 0.005,
    "product_flow": 0.03,
    "product_valve": 0.3,
    "product_controller": 0.0,
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
_HELD = [_PLACE[held] for held, _, _ in LOOPS.values()]
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
_LOWEST, _HIGHEST = 0.05, 3.0


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

        half_open = (0.5,) * len(LOOPS)
        return cls(
            level=filled(1.5, 1.5),
            temperature=filled(18.0, 50.0),
            outlet=filled(51.0, 63.0),
            valve=filled(*half_open),
            integral=filled(*half_open),
            output=filled(*half_open),
        )

    def flows(self, now: Values, fault: Values) -> dict[str, np.ndarray]:
        """What flows now, and what the pump does: pressures and resistances balance at once."""
        feed, transfer, medium, product = self.valve
        wear = 1 - fault["pump wear"]
        pipe = _PIPE * (1 + fault["blocked pipe"])
        opening = 1 / (_TRANSFER_VALVE * np.maximum(transfer, 0.01)) ** 2
        suction = _HEAD_OF_WATER * self.level[0]
        squared = (wear * _PUMP_HEAD + suction - _RISE) / (
            wear * _PUMP_SLOPE + pipe + _EXCHANGER + opening
        )
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
        values = {
            **now,
            **flows,
            "tank1_level": self.level[0],
            "tank2_level": self.level[1],
            "tank1_temperature": self.temperature[0],
            "tank2_temperature": self.temperature[1],
            "exchanger_temperature": self.outlet[0],
            "medium_outlet_temperature": self.outlet[1],
        }
        for place, name in enumerate(LOOPS):
            values[f"{name}_valve"] = 100 * self.valve[place]
            values[f"{name}_controller"] = 100 * self.output[place]
        return np.array([values[name] for name in SENSORS])

    def control(self, reading: np.ndarray, setpoint: np.ndarray, fault: Values) -> None:
        """PI control, u = k (e + ∫ e dt / T), within 0 and 1; then the valves follow.

        The integral stays where the output is at its limit. A valve follows with a lag, and not
        at all while the difference is less than its stiction.
        """
        error = _GAIN * (setpoint - reading[_HELD])
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
        carried = np.array([feed, transfer]) * (
            np.array([now["feed_temperature"], self.outlet[0]]) - self.temperature
        )
        lost = _LOSS / _HEAT_CAPACITY * (self.temperature - now["ambient_temperature"])
        self.temperature = self.temperature + STEP * (carried - lost) / content
        self.level = np.clip(self.level + STEP * gained / _AREA, _LOWEST, _HIGHEST)
        towards = self._exchanged(now, flows, fault)
        self.outlet = self.outlet + STEP / _EXCHANGER_LAG * (towards - self.outlet)

    def _exchanged(self, now: Values, flows: Values, fault: Values) -> np.ndarray:
        """The two temperatures at which a counterflow exchanger would settle.

        Its effectiveness is that of NTU = UA / C_min, and 1 / UA the sum of two films and a wall.
        """
        transfer, medium = flows["transfer_flow"], np.maximum(flows["medium_flow"], 0.01)
        resistance = (
            1 / (_PRODUCT_FILM * transfer**0.8)
            + 1 / (_MEDIUM_FILM * medium**0.8)
            + _WALL * (1 + fault["fouling"])
        )
        small, large = np.minimum(transfer, medium), np.maximum(transfer, medium)
        ratio = np.minimum(small / large, 0.999)  # 1 would be 0 / 0
        decay = np.exp(-(1 - ratio) / (resistance * _HEAT_CAPACITY * small))
        effectiveness = (1 - decay) / (1 - ratio * decay)
        hot, cold = now["medium_inlet_temperature"], self.temperature[0]
        heat = effectiveness * small * (hot - cold)  # in units of the heat capacity
        return np.array([cold + heat / transfer, hot - heat / medium])


def simulate(surroundings: Values, setpoints: Values, faults: Values, *, rng: Any) -> np.ndarray:
    """The readings of all runs at all steps, (n_steps, n_sensors, n_runs).

    Parameters
    ----------
    surroundings : mapping of str to ndarray of shape (n_steps, n_runs)
        What comes from outside; the set point of the transfer flow is among it.
    setpoints : mapping of str to ndarray of shape (n_runs,)
        Of the other loops, by what they hold.
    faults : mapping of str to ndarray of shape (n_steps, n_runs)
        How much there is of each fault; 0 is none.
    rng : RandomState
        For the noise of the sensors.
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
        setpoint = np.array([wanted[held] for held, _, _ in LOOPS.values()])
        plant.control(reading, setpoint, fault)
        plant.advance(now, flows, fault)
        readings[step] = reading
    return readings
