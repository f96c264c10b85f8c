"""The published figures, and what is measured beside them.

They are what the paper's tables say, five studies of its text, and a table of ours.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Published:
    """A published figure: its mean and standard deviation, or a claim that it is at least `least`.

    One with neither is a figure that the paper does not have.

    Examples
    --------
    >>> str(Published(0.87, 0.03)), str(Published(0.435)), str(Published(least=0.5))
    ('0.870±0.030', '0.435', 'at least 0.5')
    >>> str(Published())
    'none'
    """

    mean: float | None = None
    std: float | None = None
    least: float | None = None

    @property
    def is_printed(self) -> bool:
        """Whether the paper says anything of it."""
        return self.mean is not None or self.least is not None

    def __str__(self) -> str:
        if self.mean is None:
            return "none" if self.least is None else f"at least {self.least:g}"
        return f"{self.mean:.3f}" + ("" if self.std is None else f"±{self.std:.3f}")


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper.

    Attributes
    ----------
    name, title, label : str
        Ours, ours, and the paper's; the last is empty for a table that is not in it.
    positive : str
        The class that the areas take as positive: "normal", "anomaly", or "neither".
    rows : mapping of str to mapping of str to Published or None
        The figures by row and column; None where the table has a dash.
    """

    name: str
    title: str
    label: str
    positive: str
    rows: Mapping[str, Mapping[str, Published | None]]

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit that the table prints, of which there are two or more."""
        printed = (value.mean for *_, value in self.figures() if value.mean is not None)
        digits = max((len(f"{mean:g}".partition(".")[2]) for mean in printed), default=3)
        return 0.5 * 10.0 ** -max(digits, 2)

    def figures(self) -> Iterator[tuple[str, str, Published]]:
        """Row, column and figure, wherever there is one."""
        for row, columns in self.rows.items():
            yield from ((row, name, value) for name, value in columns.items() if value is not None)


@cache
def published_tables() -> Mapping[str, PublishedTable]:
    """Every published table by name, in the order of the paper.

    Examples
    --------
    >>> published_tables()["toy_shallow"].rows["DT"]["AUPR"]
    Published(mean=0.87, std=0.03, least=None)
    """
    content = json.loads(files(__package__).joinpath("published.json").read_text("utf-8"))
    return {name: _table(name, table) for name, table in content["tables"].items()}


def _table(name: str, table: dict[str, Any]) -> PublishedTable:
    rows = {
        row: {column: _published(value) for column, value in columns.items()}
        for row, columns in table["rows"].items()
    }
    return PublishedTable(name, table["title"], table["label"], table["positive"], rows)


def _published(value: Any) -> Published | None:
    if value is None:
        return None
    return Published(**value) if isinstance(value, dict) else Published(*value)


@dataclass(frozen=True)
class Ours:
    """What was measured: mean and standard deviation over the seeds.

    Examples
    --------
    >>> str(Ours.of([0.5, 0.7])), str(Ours.of([0.5]))
    ('0.600±0.100', '0.500')
    """

    mean: float
    std: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Ours":
        """Of one number for each seed."""
        return cls(float(np.mean(values)), float(np.std(values)), len(values))

    @property
    def is_share(self) -> bool:
        """Whether all numbers are zeros and ones: their variance is then the largest there is.

        Examples
        --------
        >>> Ours.of([0.0, 1.0, 1.0]).is_share, Ours.of([0.4, 0.8, 0.8]).is_share
        (True, False)
        """
        return abs(self.std**2 - self.mean * (1 - self.mean)) < 1e-9

    def __str__(self) -> str:
        return f"{self.mean:.3f}" + (f"±{self.std:.3f}" if self.n > 1 else "")


def constant_area(prevalence: float) -> float:
    """The trapezoidal area of a constant score: halfway between 1 and the prevalence.

    Examples
    --------
    >>> constant_area(0.434)
    0.717
    """
    return (1 + prevalence) / 2
