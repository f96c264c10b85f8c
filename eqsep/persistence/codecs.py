"""Codecs: how an object becomes its parts and is built from them, each kind of class in its way.

`Codec.cls` is the only place where eqsep looks a class up by name, among those of `registry`.
"""

import dataclasses
import inspect
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.svm import SVC

from eqsep.persistence.container import ModelFileError, damaged
from eqsep.persistence.schema import CLASSES, NUMBER, Schema, Sizes, array, either, summary, word
from eqsep.renames import DEPRECATED, parameters


@dataclass(frozen=True)
class Codec(ABC):
    """A class that a model file may name.

    Attributes
    ----------
    home : str
        The module in which it is found.
    called : str or None
        Its name there, where it is no longer what files call it.
    needs_torch : bool
    """

    home: str
    called: str | None = field(default=None, kw_only=True)
    needs_torch: bool = field(default=False, kw_only=True)

    def cls(self, name: str) -> Any:
        """The class itself, which files call `name`: "module.Class"."""
        if self.needs_torch:
            import_module("eqsep.networks")  # says what to install where torch is missing
        return getattr(import_module(self.home), self.called or name.split(".")[-1])

    def is_of(self, value: Any, name: str) -> bool:
        """Whether `value` is of this class, which has then been imported."""
        home = sys.modules.get(self.home)
        return getattr(home, self.called or name.split(".")[-1], None) is type(value)

    @abstractmethod
    def encode(self, value: Any) -> dict[str, Any]:
        """What `value` is made of, by name."""

    @abstractmethod
    def decode(self, parts: dict[str, Any], name: str) -> Any:
        """An object of the class called `name`, from its parts."""


def check(
    parts: Mapping[str, Any], schemas: Mapping[str, Schema], name: str, *, sizes: Sizes
) -> None:
    """Refuse parts that do not fit their schemas."""
    for part, schema in schemas.items():
        if not schema.accepts(parts[part], sizes):
            raise ModelFileError(
                f"The model file is damaged: {name.split('.')[-1]}.{part} should be "
                f"{schema.description}, but is {summary(parts[part])}."
            )


def check_names(parts: Mapping[str, Any], name: str, *, required: Any, optional: Any = ()) -> None:
    """Refuse parts that are missing or unknown."""
    missing, unknown = set(required) - set(parts), set(parts) - set(required) - set(optional)
    if missing or unknown:
        raise ModelFileError(
            f"The model file does not fit this eqsep: of {name.split('.')[-1]} it lacks "
            f"{_listed(missing)} and has the unknown {_listed(unknown)}."
        )


def _listed(names: set[str]) -> str:
    return ", ".join(summary(name) for name in sorted(names)[:5]) or "nothing"


@dataclass(frozen=True)
class RecordCodec(Codec):
    """A dataclass: its fields. One that the file lacks has its default."""

    fields: Mapping[str, Schema]

    def encode(self, value: Any) -> dict[str, Any]:
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        cls = self.cls(name)
        no_default = (dataclasses.MISSING, dataclasses.MISSING)
        required = [
            f.name for f in dataclasses.fields(cls) if (f.default, f.default_factory) == no_default
        ]
        check_names(parts, name, required=required, optional=self.fields)
        check(parts, {k: v for k, v in self.fields.items() if k in parts}, name, sizes={})
        return cls(**parts)


@dataclass(frozen=True)
class EstimatorCodec(Codec):
    """Parameters, and what was learnt: nothing at all, or one of several sets of attributes.

    Attributes
    ----------
    fitted : sequence of mappings
        The sets. Parameters may be among them, where scoring depends on them.
    optional : mapping
        What may have been learnt besides.
    unkept : collection of str
        Parameters that are functions to call while fitting: a file has none.
    """

    fitted: tuple[Mapping[str, Schema], ...]
    optional: Mapping[str, Schema] = field(default_factory=dict)
    unkept: Collection[str] = field(default=(), kw_only=True)

    def encode(self, value: Any) -> dict[str, Any]:
        params = parameters(value)
        return {k: params[k] for k in params if k not in self.unkept} | learnt(vars(value))

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        cls, state = self.cls(name), learnt(parts)
        params = {part: parts[part] for part in parts if part not in state}
        known = {k: p.default for k, p in inspect.signature(cls).parameters.items()}
        required = [k for k, default in known.items() if default is inspect.Parameter.empty]
        gone = {k for k, default in known.items() if default is DEPRECATED}.union(self.unkept)
        check_names(params, name, required=required, optional=set(known) - gone)
        value = cls(**params)
        if state:
            self._check(state, value.get_params(deep=False), name)
        for part in state:
            setattr(value, part, state[part])
        return value

    def _check(self, state: dict[str, Any], params: dict[str, Any], name: str) -> None:
        likely = max(self.fitted, key=lambda option: len(set(option) & set(state)))
        check_names(state, name, required=learnt(likely), optional=self.optional)
        sizes: Sizes = {}
        check(state | params, likely, name, sizes=sizes)
        there = {k: v for k, v in self.optional.items() if k in state}
        check(state, there, name, sizes=sizes)


def learnt(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Those that end in an underscore, and do not begin with one."""
    return {k: v for k, v in attributes.items() if k.endswith("_") and not k.startswith("_")}


_SVC_KERNELS = ("linear", "rbf", "poly", "sigmoid")
_DEGREE = Schema(
    "a whole number from 0 to 1000",
    lambda value, sizes: type(value) is int and 0 <= value <= 1000,  # noqa: ARG005
)
_SVC_PARAMETERS = {
    "kernel": word(*_SVC_KERNELS),
    "degree": _DEGREE,
    "coef0": NUMBER,
    "gamma": either(word("scale", "auto"), NUMBER),
    "decision_function_shape": word("ovr", "ovo"),
    "break_ties": word(False, True),
    "cache_size": NUMBER,
}
_SVC_LEARNT = {
    "support_vectors_": array("n", "d"),
    "support_": array("n", kinds="i"),
    "n_support_": array(2, kinds="i"),
    "dual_coef_": array(1, "n"),
    "intercept_": array(1),
    "classes_": CLASSES,
    "gamma_": NUMBER,
}


PRIVATE = ("_dual_coef_", "_gamma", "_intercept_", "_n_support")  # of scikit-learn's SVC


@dataclass(frozen=True)
class SVCCodec(Codec):
    """A machine of two classes, fitted to dense rows, without probabilities.

    A new machine is fitted to two rows, which prepares all that the installed scikit-learn keeps
    in one; then it is given what the saved one had learnt. A fitted machine cannot be built by
    scikit-learn's public names alone: `PRIVATE` are those used here besides.
    """

    def encode(self, value: Any) -> dict[str, Any]:
        params = value.get_params(deep=False)
        if params.pop("probability", False) is True:
            raise ModelFileError("SVC cannot be saved with probability=True.")
        if not hasattr(value, "support_vectors_"):
            return params
        if isinstance(value.support_vectors_, np.ndarray) and len(value.classes_) == 2:
            state = {k: getattr(value, k) for k in _SVC_LEARNT if k != "gamma_"}
            return params | state | {"gamma_": float(value._gamma)}
        raise ModelFileError("SVC can be saved with two classes and dense rows only.")

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        state = learnt(parts)
        params = {part: parts[part] for part in parts if part not in state}
        known = SVC().get_params(deep=False)
        known.pop("probability", None)
        check_names(params, name, required=_SVC_PARAMETERS, optional=known)
        if not state:
            return SVC(**params)
        check(params, _SVC_PARAMETERS, name, sizes={})
        check_names(state, name, required=_SVC_LEARNT)
        sizes: Sizes = {}
        check(state, _SVC_LEARNT, name, sizes=sizes)
        counts = state["n_support_"].tolist()
        if min(counts) < 0 or sum(counts) != sizes["n"] or not math.isfinite(state["gamma_"]):
            damaged("the support vectors of a machine are not as many as it says")
        rows = np.repeat([[0.0], [1.0]], sizes["d"], axis=1)
        return _with_state(SVC().fit(rows, [0, 1]).set_params(**params), state)


def _with_state(svm: Any, state: dict[str, Any]) -> Any:
    """The machine with what was learnt, in the types and signs that its own code relies on."""
    dual_coef, intercept = (
        np.ascontiguousarray(state[k], dtype=np.float64) for k in ("dual_coef_", "intercept_")
    )
    attributes = {
        "support_vectors_": np.ascontiguousarray(state["support_vectors_"], dtype=np.float64),
        "support_": np.ascontiguousarray(state["support_"], dtype=np.int32),
        "_n_support": np.ascontiguousarray(state["n_support_"], dtype=np.int32),
        "dual_coef_": dual_coef,
        "intercept_": intercept,
        "_dual_coef_": -dual_coef,
        "_intercept_": -intercept,
        "_gamma": float(state["gamma_"]),
        "classes_": state["classes_"],
    }
    missing = sorted(set(attributes) - set(vars(svm)))
    if missing:
        raise ModelFileError(
            f"The model file holds a support vector machine, which the scikit-learn installed "
            f"cannot build again: its SVC has no {', '.join(missing)}. Install an older "
            f"scikit-learn, or fit the model anew."
        )
    vars(svm).update(attributes)
    return svm
