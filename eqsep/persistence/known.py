"""How objects are taken apart and built again, each kind of class in its own way."""

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from eqsep.persistence.container import ModelFileError
from eqsep.persistence.expected import Expected, Sizes, told
from eqsep.renames import parameters


@dataclass(frozen=True)
class Known(ABC):
    """A class that a model file may name.

    Attributes
    ----------
    home : str
        The module in which it is found, by its own name.
    needs_torch : bool
    """

    home: str
    needs_torch: bool = field(default=False, kw_only=True)

    def cls(self, name: str) -> Any:
        """The class itself, which the file calls "module.Class"."""
        if self.needs_torch:
            import_module("eqsep.networks")  # says what to install where torch is missing
        return getattr(import_module(self.home), name.split(".")[-1])

    @abstractmethod
    def parts(self, value: Any) -> dict[str, Any]:
        """What `value` is made of, by name."""

    @abstractmethod
    def built(self, parts: dict[str, Any], name: str) -> Any:
        """An object of the class called `name`, from its parts."""


def check(
    parts: Mapping[str, Any], expected: Mapping[str, Expected], name: str, *, sizes: Sizes
) -> None:
    """Refuse parts that are not as expected."""
    for part, wish in expected.items():
        if not wish.holds(parts[part], sizes):
            raise ModelFileError(
                f"The model file is damaged: {name.split('.')[-1]}.{part} should be "
                f"{wish.wanted}, but is {told(parts[part])}."
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
    return ", ".join(told(name) for name in sorted(names)[:5]) or "nothing"


@dataclass(frozen=True)
class Record(Known):
    """A dataclass: its fields. One that the file lacks has its default."""

    fields: Mapping[str, Expected]

    def parts(self, value: Any) -> dict[str, Any]:
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}

    def built(self, parts: dict[str, Any], name: str) -> Any:
        cls = self.cls(name)
        no_default = (dataclasses.MISSING, dataclasses.MISSING)
        required = [
            f.name for f in dataclasses.fields(cls) if (f.default, f.default_factory) == no_default
        ]
        check_names(parts, name, required=required, optional=self.fields)
        check(parts, {k: v for k, v in self.fields.items() if k in parts}, name, sizes={})
        return cls(**parts)


@dataclass(frozen=True)
class Estimator(Known):
    """Parameters, and what was learnt: nothing at all, or one of several sets of attributes.

    Attributes
    ----------
    fitted : sequence of mappings
        The sets. Parameters may be among them, where scoring depends on them.
    """

    fitted: tuple[Mapping[str, Expected], ...]
    optional: Mapping[str, Expected] = field(default_factory=dict)

    def parts(self, value: Any) -> dict[str, Any]:
        return parameters(value) | learnt(vars(value))

    def built(self, parts: dict[str, Any], name: str) -> Any:
        cls, state = self.cls(name), learnt(parts)
        params = {part: parts[part] for part in parts if part not in state}
        known = inspect.signature(cls).parameters
        required = [p.name for p in known.values() if p.default is p.empty]
        check_names(params, name, required=required, optional=known)
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
