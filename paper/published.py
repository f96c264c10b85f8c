"""The published figures, and whether they hold: a word, and the reason for it.

They are what the paper's tables say, two studies of its text, and a table of ours.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

STDS, SLACK = 3.0, 0.02  # a figure holds within so many published standard deviations and so much
WORDS = {
    "holds": f"ours lies within {STDS:g} published standard deviations + {SLACK:g}",
    "above": "ours is larger than that allows",
    "below": "ours is smaller than that allows",
    "constant": "the published figure is that of a constant score: it measures no detector",
    "ours alone": "the paper has no such figure: there is nothing to compare with",
    "other data": "ours comes from other data: nothing is said of the published figure",
    "skipped": "something that the measurement needs is not there",
    "not run": "it has not been measured yet",
}


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

    def __str__(self) -> str:
        return f"{self.mean:.3f}" + (f"±{self.std:.3f}" if self.n > 1 else "")


@dataclass(frozen=True)
class Verdict:
    """A word of `WORDS`, and why."""

    word: str
    reason: str


def judge(published: Published, ours: Ours) -> Verdict:
    """Compare what was measured with what was published.

    Examples
    --------
    >>> judge(Published(0.90, 0.01), Ours(0.94, 0.0, 1))
    Verdict(word='holds', reason='apart by +0.040, 0.050 allowed')
    >>> judge(Published(0.90, 0.01), Ours(0.84, 0.0, 1)).word
    'below'
    """
    if published.mean is None:
        if published.least is None:
            return Verdict("ours alone", "not in the paper")
        word = "holds" if ours.mean >= published.least else "below"
        return Verdict(word, f"{ours.mean:.2f}, at least {published.least:g} claimed")
    apart = ours.mean - published.mean
    allowed = STDS * (published.std or 0.0) + SLACK
    within = abs(apart) <= allowed + 1e-9
    word = "holds" if within else "above" if apart > 0 else "below"
    return Verdict(word, f"apart by {apart:+.3f}, {allowed:.3f} allowed")


def in_stds(published: Published, ours: Ours) -> float | None:
    """The difference in published standard deviations; None where there is none, or it is 0.

    Examples
    --------
    >>> in_stds(Published(0.5, 0.1), Ours(0.7, 0.0, 1))
    2.0
    """
    if published.mean is None or not published.std:
        return None
    return round((ours.mean - published.mean) / published.std, 2)


def constant_area(prevalence: float) -> float:
    """The trapezoidal area of a constant score: halfway between 1 and the prevalence.

    Examples
    --------
    >>> constant_area(0.434)
    0.717
    """
    return (1 + prevalence) / 2
