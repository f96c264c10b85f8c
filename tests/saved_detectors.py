"""Detectors of all makes, to be saved, and what is asked of them when they come back."""

import json
import warnings
from functools import cache

import numpy as np
import pandas as pd

from eqsep import Detector, load_model
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config
from eqsep.persistence.files import Writer

TABLE = make_mixed_demo(n_samples=600, as_frame=True, random_state=0)
FRESH = make_mixed_demo(n_samples=60, as_frame=True, random_state=1)
FEW = {
    "n_landmarks": 40,
    "false_alarm_rate": 0.05,
    "random_state": 0,
    "config": Config.fast(),
}


def numbers(n, *, seed):
    """Rows on a ring, every tenth of them at the centre."""
    rng = np.random.default_rng(seed)
    angle, is_anomaly = rng.uniform(0, 2 * np.pi, size=n), np.arange(n) % 10 == 9
    X = np.column_stack([np.cos(angle), np.sin(angle), rng.choice([0.0, 7.0], size=n)])
    return np.where(is_anomaly[:, None], 0.1, 1) * X, is_anomaly


X, IS_ANOMALY = numbers(400, seed=0)
NEW_X, NEW_IS_ANOMALY = numbers(50, seed=1)
PUMP = np.where(IS_ANOMALY, "pump", "normal").astype(object)
LEAK = np.where(IS_ANOMALY, "leak", "works").astype(object)


def strange(n, *, seed):
    """A table with an id, a constant, an empty column, durations, and names in all scripts."""
    rng = np.random.default_rng(seed)
    names = np.array(["naïve", "日本", "a\0", "'; --", None], dtype=object)
    return pd.DataFrame(
        {
            "id": [f"row {seed} {i}" for i in range(n)],
            "always": 5,
            "never": np.full(n, np.nan),
            "took": pd.to_timedelta(rng.integers(1, 90, size=n), unit="s"),
            "température": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(size=n)),
            "name": rng.choice(names, size=n),
        }
    )


def with_plan(rows, labels):
    first = Detector(**FEW).fit(X)
    return Detector(plan=first.plan_, **FEW).fit(rows, labels)


def learnt_on():
    labels = np.where(IS_ANOMALY, None, PUMP)
    detector = Detector(unlabelled_weight=0.5, alpha=np.float64(0.2), **FEW).fit(X, labels)
    return detector.partial_fit(NEW_X[:9] + 3, ["leak"] * 9).forget(X[:50], labels[:50])


def doubting():
    """Rows without a label, some of them anomalies, beside enough labelled ones to tell."""
    rows, is_anomaly = numbers(1000, seed=2)
    labels = np.where(is_anomaly & (np.arange(1000) < 800), "leak", None)
    return Detector(**FEW).fit(rows, labels)


def runs(n_runs, *, seed):
    """Runs of 40 rows of two sensors, one of which drifts; in each tenth row it stands still."""
    rng = np.random.default_rng(seed)
    n, t = 40 * n_runs, np.tile(np.arange(40.0), n_runs)
    level = np.repeat(rng.normal(size=n_runs), 40) + 0.02 * t
    sensors = {"p": level + rng.normal(0, 0.1, n), "q": 2 * level + rng.normal(0, 0.1, n)}
    return pd.DataFrame({"run": np.repeat(np.arange(n_runs), 40).astype(str), "t": t, **sensors})


def in_runs(**parameters):
    """A detector of whole runs, with two kinds of anomaly."""
    rows = runs(30, seed=0)
    kind = np.where(np.arange(len(rows)) % 40 == 39, "stuck", "normal").astype(object)
    kind[np.arange(len(rows)) % 80 == 20] = "leak"
    rows.loc[kind == "stuck", "q"] = 0.0
    rows.loc[kind == "leak", "p"] -= 3.0
    return Detector(**FEW | {"false_alarm_rate": 0.2} | parameters).fit(
        rows, kind, groups="run", time="t"
    )


DETECTORS = {
    "groups": (in_runs, runs(4, seed=1)),
    "windows": (lambda: in_runs(window=3), runs(4, seed=1)),
    "mixed": (lambda: Detector(**FEW).fit(TABLE.X, TABLE.kind), FRESH.X),
    "0/1": (lambda: Detector(**FEW).fit(X, IS_ANOMALY.astype(int)), NEW_X),
    "truths": (lambda: Detector(bandwidth=0.5, **FEW).fit(X, IS_ANOMALY), NEW_X),
    "names": (lambda: Detector(normal="works", **FEW).fit(X[:, :2], LEAK), NEW_X[:, :2]),
    "one class": (lambda: Detector(**FEW).fit(X[~IS_ANOMALY]), NEW_X),
    "strange": (lambda: Detector(**FEW).fit(strange(300, seed=0)), strange(30, seed=1)),
    "given plan": (lambda: with_plan(X, PUMP), NEW_X),
    "learnt on": (learnt_on, NEW_X),
    "doubting": (doubting, NEW_X),
    "few": (lambda: Detector(**FEW).fit(X[:3, :2]), NEW_X[:, :2]),
}


@cache
def fitted(name):
    """One of the detectors, fitted once, and rows for it."""
    make, rows = DETECTORS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a dropped id, a promise of few rows
        return make(), rows


def kept(detector, path):
    """The detector that comes back."""
    detector.save(path)
    return load_model(path)


def answers(detector, rows):
    """All that a detector says of rows, as one text that shows every bit."""
    said = [detector.score_samples(rows), detector.decision_function(rows), detector.p_value(rows)]
    words = [detector.predict(rows).tolist(), detector.predict_kind(rows).tolist()]
    why = [repr(reasons) for reasons in detector.explain(rows[:5])]
    return json.dumps([*(a.tobytes().hex() for a in said), *words, why])


def same(a, b):
    """Whether two detectors have the same parts, to the last bit."""
    writers = Writer(), Writer()
    trees = [w.tree(v, "it") for w, v in zip(writers, (a, b), strict=True)]
    arrays = [[(x.dtype, x.shape, x.tobytes()) for x in w.arrays] for w in writers]
    return trees[0] == trees[1] and arrays[0] == arrays[1]
