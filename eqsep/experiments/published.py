"""The published figures: what the paper's tables say, two studies of its text, a table of ours."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


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
