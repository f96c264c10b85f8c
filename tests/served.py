"""A small workspace for tests of the service: one model of machines, and a client for each role."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from fastapi.testclient import TestClient

from eqsep import Detector
from eqsep.detector import Config
from eqsep.serve.web.app import create_app
from eqsep.serve.workspace import Workspace

HOME = "http://127.0.0.1"


def machine_rows(n=600, *, seed=0):
    """Rows of numbers and a name, with an id that no model knows."""
    rng = np.random.default_rng(seed)
    heat, load = rng.normal(60, 2, n), rng.normal(0, 1, n)
    shape = np.where(rng.random(n) < 0.5, "pump", "fan")
    columns = zip(heat.tolist(), load.tolist(), shape.tolist(), strict=True)
    return [{"heat": h, "load": x, "shape": s} for h, x, s in columns]


@cache
def small_detector():
    """A fit that costs little; copy it before you change it."""
    return Detector(bandwidth=1.0, n_landmarks=60, random_state=0, config=Config.fast()).fit(
        machine_rows()
    )


GOOD = {"heat": 60.0, "load": 0.0, "shape": "pump"}
HOT = {"heat": 140.0, "load": 0.1, "shape": "fan", "machine": "m7"}


@dataclass
class Served:
    """A workspace, its application, and the tokens of three people."""

    ws: Workspace
    app: Any
    tokens: dict[str, str]

    def client(self, role=None, **told):
        """A client of this role; none has no token."""
        headers = {} if role is None else {"Authorization": f"Bearer {self.tokens[role]}"}
        return TestClient(self.app, base_url=HOME, headers=headers, **told)


def served(url="sqlite://", **told):
    """A service with the model "machines"."""
    ws = Workspace(url)
    ws.ledger.add("machines", small_detector(), by="test", settings={"entity": "machine"})
    tokens = {role: ws.people.issue(role, role, by="test") for role in ("view", "judge", "admin")}
    return Served(ws, create_app(ws, **told), tokens)
