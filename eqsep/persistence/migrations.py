"""Files of older versions: how the parts of a class in one format become those of the next.

| format | written by | what changed after it |
|---|---|---|
| 1 | 0.1.0 | parameters got better names |
| 2 | | ellipsoid, trees, groups and doubt came |
| 3 | 0.2.0, unreleased | a detector was its attributes; now it is a `Model` of plan and evidence |
| 4 | 0.2.0 | the present one |
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eqsep.detector.calibration import Calibration, Promise
from eqsep.detector.config import Config
from eqsep.detector.evidence import HeldOutRows
from eqsep.detector.holdout import NO_GROUPS
from eqsep.detector.model import Model
from eqsep.detector.plan import LabelScheme, Plan
from eqsep.engine.kernels import Laplacian
from eqsep.persistence.container import VERSION
from eqsep.schemas import check_names, damaged, summary

Parts = dict[str, Any]
MODELS_SINCE = 4  # the format in which classes have their present names


class OldParts(dict[str, Any]):
    """The parts of a former class, until the detector that had them is put together."""


@dataclass(frozen=True)
class Change:
    """How the parts of a class in one format become those of the next."""

    renames: Mapping[str, str] = field(default_factory=dict)
    convert: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)  # by old names
    defaults: Mapping[str, Any] = field(default_factory=dict)  # where not those of the class
    dropped: Collection[str] = ()

    def __call__(self, parts: Parts) -> Parts:
        gone = {*self.renames, *self.dropped}
        kept = {name: part for name, part in parts.items() if name not in gone}
        named = {name: parts[name] for name in parts if name in self.renames}
        if {self.renames[name] for name in named} & set(kept):
            damaged("a part of it has its old name and its new one")
        try:
            named |= {k: change(named[k]) for k, change in self.convert.items() if k in named}
        except (ArithmeticError, TypeError, ValueError):
            damaged("a part of an older format has a value that it cannot have")
        return {**self.defaults, **kept, **{self.renames[k]: v for k, v in named.items()}}


CHANGES: dict[int, dict[str, Change]] = {
    1: {
        "detector.Detector": Change(
            {"width": "bandwidth", "answers_": "labels_"},
            convert={"width": lambda value: None if value is None else 1 / value},
        ),
        "detector.FeatureMap": Change(
            {"hashed": "holdout_columns", "key": "holdout_key", "cut": "holdout_bound"}
        ),
        "separators.DeepSAD": Change(dropped=["progress"]),
        "separators.NetworkSeparator": Change(dropped=["progress"]),
        "separators.OneVsSet": Change({"score": "ranking"}),
    },
    2: {
        "detector.FeatureMap": Change(
            defaults={
                **{"anomaly_bound": np.uint64(0), "held_kinds": [], "doubted": False},
                **dict.fromkeys(("likeness_weight", "vote_weight"), 0.0),
                **dict.fromkeys(("ellipsoid", "trees", "grouping")),
            },
        ),
        "separators.Statistics": Change(defaults={"anomalous": None, "leaves": None}),
    },
    3: {
        "checks.Finding": Change({"advice": "hint"}, dropped=["option"]),
        "detector.Grouping": Change(
            defaults={"edges": np.empty(0), "row_bound": np.uint64(2**64 - 1), "gap": 0.1}
        ),
        "kernels.Laplacian": Change(defaults={"powers": [1]}),
        "tables.TableEncoder": Change(defaults={"notation": {}}, dropped=["parameters"]),
    },
}
RENAMED = {  # classes, in format 4
    "detector.Answers": "labels.RowLabels",
    "separators.Statistics": "engine.Statistics",
    "tables.TableEncoder": "tables.Encoder",
}
GONE = ("detector.FeatureMap", "detector.Calibration", "detector.KindRows")  # put together later


def migrate(name: str, parts: Parts, *, version: int) -> tuple[str, Parts]:
    """The class and parts, in the present format, of an object of an older one."""
    for older in range(version, VERSION):
        if name in CHANGES[older]:
            parts = CHANGES[older][name](parts)
    if version >= MODELS_SINCE:
        return name, parts
    if name == "detector.Detector":
        return name, _detector(parts)
    return RENAMED.get(name, name), OldParts(parts) if name in GONE else parts


_FEATURE_MAP = (
    *("encoder", "landmarks", "is_normal", "kernel", "holdout_columns", "holdout_key"),
    *("holdout_bound", "anomaly_bound", "held_kinds", "doubted", "likeness_weight"),
    *("ellipsoid", "trees", "vote_weight", "grouping"),
)
_PARAMETERS = (
    *("normal", "false_alarm_rate", "confidence", "unseen_rate", "n_landmarks", "bandwidth"),
    *("alpha", "unlabelled", "unlabelled_weight", "feature_map", "window", "random_state"),
)
_LEARNT = (
    *("feature_map_", "labels_", "one_class_", "promised_rate_", "statistics_", "coef_"),
    "calibration_",
)
_SOMETIMES = ("anomaly_coef_", "promised_confidence_", "caution_", "left_out_", "kind_rows_")
_JUDGES = ("fold", "trees", "shares", "lacking", "distance")


def _detector(parts: Parts) -> Parts:
    """The parts of a detector of format 3, with a model made of its attributes."""
    if not any(name in parts for name in _LEARNT):  # not fitted
        check_names(parts, "Detector", required=(), optional=_PARAMETERS)
        if parts.get("feature_map") is not None:
            damaged("a detector is to use a feature map that is not there")
        return {name: part for name, part in parts.items() if name != "feature_map"}
    check_names(parts, "Detector", required=_LEARNT, optional=(*_PARAMETERS, *_SOMETIMES))
    defaults: Parts = {"alpha": 0.1, "unlabelled_weight": 0.01}
    given = {name: parts[name] for name in _PARAMETERS if name in parts}
    weights = defaults | {name: given[name] for name in defaults if name in given}
    own = {k: given[k] for k in ("n_landmarks", "bandwidth") if given.get(k) is not None}
    config = _checked("config", lambda: Config(**weights, **own))
    reading = _reading(parts, unlabelled_weight=weights["unlabelled_weight"])
    plan = _plan(parts["feature_map_"], reading)
    names = ("false_alarm_rate", "confidence", "unseen_rate")
    promised = {k: given[k] for k in names if k in given}
    promise = _checked("promise", lambda: Promise(**promised))
    calibration = _old(parts["calibration_"], "Calibration", ("rows", "scores"), _CALIBRATION)
    kinds, judges = _kinds(parts.get("kind_rows_"), plan)
    held_out = _held_out(calibration, in_groups=plan.holdout.grouping is not None)
    coef = parts["coef_"]
    if type(coef) is not np.ndarray or not coef.ndim:
        damaged(f"its coefficients are {summary(coef)}")
    evidence = {"sums": parts["statistics_"], "held_out": held_out, "kinds": kinds}
    evidence |= {"labels": parts["labels_"], "n_normal": float(len(held_out.normal))}
    scores = {k: part for k, part in calibration.items() if not k.endswith("rows")}
    model = Model.from_state(
        {
            **{"plan": plan, "evidence": evidence, "config": config, "promise": promise},
            **{"coef": coef, "judges": judges, "caution": parts.get("caution_")},
            "likeness_coef": parts.get("anomaly_coef_", np.zeros(len(coef))),
            "calibration": Calibration.from_state(scores),
            "left_out": parts.get("left_out_", []),
        }
    )
    own_plan = given.pop("feature_map", None)
    if own_plan is not None and own_plan is not True:
        own_plan = _plan(own_plan, reading)
    return given | {"plan": own_plan, "model_": model}


def _checked(what: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (TypeError, ValueError) as error:
        damaged(f"its {what} cannot be: {error}")


def _old(value: Any, name: str, required: Collection[str], optional: Collection[str]) -> Parts:
    """The parts of an object of a former class."""
    if not isinstance(value, OldParts):
        damaged(f"{name} is {summary(value)}")
    check_names(value, name, required=required, optional=optional)
    return value


_CALIBRATION = ("anomaly_rows", "anomaly_scores", "n_anomalies", "groups")


def _reading(parts: Parts, *, unlabelled_weight: float) -> LabelScheme:
    doubted = isinstance(parts["feature_map_"], OldParts) and parts["feature_map_"].get("doubted")
    is_normal = parts["one_class_"]
    weight = 1.0 if doubted and not is_normal else unlabelled_weight
    state = {"normal": parts.get("normal"), "unlabelled_is_normal": is_normal}
    return LabelScheme.from_state(state | {"doubted": doubted, "unlabelled_weight": weight})


def _plan(value: Any, reading: LabelScheme) -> Plan:
    """The plan that a feature map of format 3 was."""
    old = _old(value, "FeatureMap", _FEATURE_MAP, ("windows", "kind_bounds"))
    if not isinstance(old["kernel"], Laplacian):
        damaged("its kernel is not a Laplacian")
    terms = ("landmarks", "is_normal", "kernel", "ellipsoid", "trees")
    weights = ("vote_weight", "likeness_weight", "doubted")
    kind_bounds = old.get("kind_bounds")
    holdout = {name: old[f"holdout_{name}"] for name in ("columns", "key", "bound")} | {
        "anomaly_bound": old["anomaly_bound"],
        "anomaly_kinds": old["held_kinds"],
        "grouping": old["grouping"],
        "kind_bounds": {} if kind_bounds is None else kind_bounds,
        "keeps_kinds": kind_bounds is not None,
    }
    state = {"encoder": old["encoder"], "terms": {k: old[k] for k in (*terms, *weights)}}
    state |= {"holdout": holdout, "labels": reading, "windows": old.get("windows")}
    return Plan.from_state(state)


def _held_out(old: Parts, *, in_groups: bool) -> HeldOutRows:
    rows = old["rows"]
    if type(rows) is not np.ndarray or rows.ndim != 2:
        damaged("its held-out rows are not a table")
    anomalies = old.get("anomaly_rows", rows[:0])
    if type(anomalies) is not np.ndarray or anomalies.ndim != 2:
        damaged("its held-out anomalies are not a table")
    n, m = len(rows), len(anomalies)
    groups = old.get("groups", NO_GROUPS)
    if type(groups) is not np.ndarray or (in_groups and groups.shape != (n,)):
        damaged("its held-out rows have more groups, or fewer, than there are")
    if m and anomalies.shape[1] != rows.shape[1]:
        damaged("its held-out anomalies have not the columns of its table")
    of_rows = groups if in_groups else np.zeros(n, dtype=np.uint64)
    state = {
        "rows": np.concatenate([rows, anomalies]) if m else rows,
        "kind": np.repeat(["", "anomaly"], [n, m]),
        "hashes": np.concatenate([of_rows, np.zeros(m, dtype=np.uint64)]),
    }
    return HeldOutRows.from_state(state | {"weight": np.ones(n + m), "in_groups": in_groups})


def _kinds(value: Any, plan: Plan) -> tuple[Parts, Parts | None]:
    """The rows of the seen kinds, and what was made of them."""
    if value is None:
        if plan.holdout.keeps_kinds:
            damaged("the rows that it names alarms by are not there")
        rows = np.empty((0, len(plan.encoder.pack.first)), dtype=np.float32)
        kind, groups = np.empty(0, dtype=str), np.empty(0, dtype=np.uint64)
        return {"rows": rows, "kind": kind, "groups": groups, "key": plan.holdout.key}, None
    names = ("rows", "kind", "groups", "key")
    old = _old(value, "KindRows", names, _JUDGES)
    judges = {name: old.get(name) for name in _JUDGES}
    there = [part is not None for part in judges.values()]
    if any(there) != all(there):
        damaged("it lacks trees to name alarms by, or rows that they were grown on")
    return {name: old[name] for name in names}, judges if all(there) else None
