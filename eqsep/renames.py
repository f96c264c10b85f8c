"""Parameters that got a better name: the old one works for one more version, and in old files.

`RENAMES` is the one table of them. An estimator keeps the old name in its `__init__`, with
`DEPRECATED` as its default, and reads the parameter with `parameter` when it is fitted:

    def __init__(self, *, ranking="equality", score=DEPRECATED): ...

    def fit(self, X, y):
        ranking = parameter(self, "ranking")

Once the old name is gone from `__init__`, its line in the table stays: files of that time have it.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eqsep.errors import UserError
from eqsep.errors import warn as warn_caller

DEPRECATED = "deprecated"


@dataclass(frozen=True)
class Renamed:
    """What an old parameter is called now, and its present value for an old one.

    Attributes
    ----------
    to : str
    removed_in : str
        The version that no longer takes the old name.
    convert : callable
    """

    to: str
    removed_in: str
    convert: Callable[[Any], Any] = lambda value: value


def _inverse(value: float | None) -> float | None:
    return None if value is None else 1 / value


RENAMES: dict[str, dict[str, Renamed]] = {
    "Detector": {"width": Renamed("bandwidth", removed_in="0.3", convert=_inverse)},
    "OneVsSet": {"score": Renamed("ranking", removed_in="0.3")},
    "TableEncoder": {"columns": Renamed("numeric_encoding", removed_in="0.3")},
}


def parameter(estimator: Any, name: str, *, warn: bool = True) -> Any:
    """The value of the parameter `name`, also where it was given by its old name.

    Raises
    ------
    UserError
        Both names were given.

    Warns
    -----
    FutureWarning
        The old name was given, unless `warn` is False.

    Examples
    --------
    >>> from eqsep import OneVsSet
    >>> parameter(OneVsSet(ranking="binary"), "ranking")
    'binary'
    >>> parameter(OneVsSet(score="binary"), "ranking", warn=False)
    'binary'
    """
    params, cls = estimator.get_params(deep=False), type(estimator).__name__
    for old, renamed in _renamed(estimator).items():
        if renamed.to != name or _is_unset(params.get(old, DEPRECATED)):
            continue
        value = _converted(renamed, params[old], f"{cls}({old}=)")
        if params[name] is not inspect.signature(type(estimator)).parameters[name].default:
            raise UserError(
                f"{cls} got both {name}={params[name]!r} and {old}={params[old]!r}, the old name "
                f"of the same parameter. Give {name} alone."
            )
        if warn:
            warn_caller(
                FutureWarning(
                    f"{cls}({old}=) is now called {name} and will be gone in eqsep "
                    f"{renamed.removed_in}: write {name}={value!r} for {old}={params[old]!r}."
                )
            )
        return value
    return params[name]


def _converted(renamed: Renamed, value: Any, what: str) -> Any:
    try:
        return renamed.convert(value)
    except (ArithmeticError, TypeError) as error:
        raise UserError(
            f"{what} is now called {renamed.to}, and {value!r} is no value of it. Give "
            f"{renamed.to} instead."
        ) from error


def parameters(estimator: Any) -> dict[str, Any]:
    """All parameters by their present names, without a warning.

    Examples
    --------
    >>> from eqsep import OneVsSet
    >>> params = parameters(OneVsSet(score="binary"))
    >>> params["ranking"], "score" in params
    ('binary', False)
    """
    present = set(estimator.get_params(deep=False)) - set(_renamed(estimator))
    return {name: parameter(estimator, name, warn=False) for name in sorted(present)}


def _renamed(estimator: Any) -> dict[str, Renamed]:
    """The renamed parameters of a class and of those it is derived from."""
    bases = reversed(type(estimator).__mro__)
    return {old: to for cls in bases for old, to in RENAMES.get(cls.__name__, {}).items()}


def _is_unset(value: Any) -> bool:
    return isinstance(value, str) and value == DEPRECATED
