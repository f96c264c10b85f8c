"""A workspace for tests of the console: pumps with alarms that look alike, and names that bite."""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from eqsep import Detector
from eqsep.detector import Config
from eqsep.serve.web.app import create_app
from eqsep.serve.web.limits import Limits
from eqsep.serve.workspace import Workspace

COLUMN = "<img src=x onerror=\"window.pwned='column'\">"
VALUE = "<script>window.pwned='value'</script>"
KIND = "'\"><script>window.pwned='kind'</script>"
ENTITY = "\"><b onmouseover='window.pwned=1'>e</b>"


@dataclass
class Consoled:
    """A workspace with its application, and the token of a person of each role."""

    ws: Workspace
    tokens: dict[str, str]

    @cached_property
    def app(self) -> Any:
        return create_app(self.ws, limits=Limits(requests=10_000))


def pump_rows(centre, n, *, seed, machine="m1", spread=0.3):
    """Rows of two numbers around a point."""
    points = np.random.default_rng(seed).normal(centre, spread, size=(n, 2)).tolist()
    return [{"heat": x, "load": y, "machine": machine} for x, y in points]


@cache
def _pumps() -> Detector:
    rows = pump_rows((0, 0), 500, seed=0, spread=1.0) + pump_rows((6, 0), 30, seed=1)
    rows = [{"heat": row["heat"], "load": row["load"]} for row in rows]
    # Distances weigh little, so that verdicts can bring a false alarm below the threshold.
    config = replace(Config.fast(), nearest_weight=0.03)
    detector = Detector(
        bandwidth=1.0, n_landmarks=60, unseen_rate=0.2, random_state=0, config=config
    )
    return detector.fit(rows, ["normal"] * 500 + ["leak"] * 30)


@cache
def _hostile() -> Detector:
    values = np.random.default_rng(2).normal(size=500).tolist()
    rows = [{COLUMN: value, "name": "usual"} for value in values]
    return Detector(bandwidth=1.0, n_landmarks=30, random_state=0).fit(rows)


def consoled(url: str) -> Consoled:
    """Two models: "pumps" with 12 open alarms of an unseen kind and 3 leaks, and "hostile"."""
    ws = Workspace(url, keep_quiet=1.0)
    ws.ledger.add("pumps", _pumps(), by="test", settings={"entity": "machine"})
    ws.ledger.add("hostile", _hostile(), by="test", settings={"entity": "name"})
    ws.intake.take("pumps", pump_rows((0, 0), 25, seed=3, spread=0.8))
    ws.intake.take("pumps", pump_rows((6, 0), 3, seed=4, machine="m2"))
    ws.intake.take("pumps", pump_rows((-7, -7), 12, seed=5, machine="m3"))
    ws.intake.take("hostile", [{COLUMN: 40.0 + i, "name": VALUE} for i in range(3)])
    ws.intake.take("hostile", [{COLUMN: 50.0, "name": ENTITY}])
    tokens = {role: ws.people.issue(role, role, by="test") for role in ("view", "judge", "admin")}
    return Consoled(ws, tokens)
