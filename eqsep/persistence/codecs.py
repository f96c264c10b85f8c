"""Codecs: how an object of a class becomes its parts, and is built from them.

`Codec.cls` is the only place where eqsep looks a class up by name, among those of `registry`.
"""

import dataclasses
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from eqsep.schemas import Schema, Sizes, check, check_names, check_parts


@dataclass(frozen=True)
class Codec(ABC):
    """A class that a model file may name.

    Attributes
    ----------
    home : str
        The module in which it is found.
    needs_torch : bool
    """

    home: str
    needs_torch: bool = field(default=False, kw_only=True)

    def cls(self, name: str) -> Any:
        """The class itself, which files call `name`: "module.Class"."""
        if self.needs_torch:
            import_module("eqsep.networks")  # says what to install where torch is missing
        return getattr(import_module(self.home), name.split(".")[-1])

    def is_of(self, value: Any, name: str) -> bool:
        """Whether `value` is of this class, which has then been imported."""
        home = sys.modules.get(self.home)
        return getattr(home, name.split(".")[-1], None) is type(value)

    @abstractmethod
    def encode(self, value: Any) -> dict[str, Any]:
        """What `value` is made of, by name."""

    @abstractmethod
    def decode(self, parts: dict[str, Any], name: str) -> Any:
        """An object of the class called `name`, from its parts."""


@dataclass(frozen=True)
class StateCodec(Codec):
    """A class that has `state()` and `from_state()`."""

    def encode(self, value: Any) -> dict[str, Any]:
        return dict(value.state())

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        return self.cls(name).from_state(parts)


@dataclass(frozen=True)
class RecordCodec(Codec):
    """A dataclass: its fields. One that the file lacks has its default."""

    fields: Mapping[str, Schema]

    def encode(self, value: Any) -> dict[str, Any]:
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        cls = self.cls(name)
        check_parts(parts, self.fields, cls)
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
        params = value.get_params(deep=False)
        return {k: params[k] for k in params if k not in self.unkept} | learnt(vars(value))

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        cls, state = self.cls(name), learnt(parts)
        params = {part: parts[part] for part in parts if part not in state}
        known = {k: p.default for k, p in inspect.signature(cls).parameters.items()}
        required = [k for k, default in known.items() if default is inspect.Parameter.empty]
        check_names(params, name, required=required, optional=set(known) - set(self.unkept))
        value = cls(**params)
        if state:
            self._check(state, {part: getattr(value, part) for part in known}, name)
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
