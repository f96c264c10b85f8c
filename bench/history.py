"""Records of what was measured, a JSON file a run, and what has fallen since the best of them.

A time has fallen if it is more than a tenth above the best record of the same machine, a precision
if it is more than .005 below the best record of any machine. A fall that is meant is accepted: its
reason stands in the record, and later ones are compared with records from that one on.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

SLOWER, LESS_PRECISE = 1.1, 0.005


@dataclass(frozen=True, kw_only=True)
class Record:
    """A run on a commit.

    Attributes
    ----------
    times : dict of str to float
        In units of a fixed loop of the same run: less is better.
    precision : dict of str to float
        More is better.
    accepted : dict of str to str
        The figures whose fall is meant, and the reasons.
    """

    commit: str
    at: str
    machine: str
    times: dict[str, float] = field(default_factory=dict)
    precision: dict[str, float] = field(default_factory=dict)
    accepted: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A figure and the best one before, with the commit of that; `best` is None if it is new."""

    name: str
    value: float
    best: float | None
    commit: str
    has_fallen: bool

    def __str__(self) -> str:
        text = f"{self.name:40}{self.value:10.4g}"
        if self.best is None:
            return text
        return f"{text}{self.best:10.4g}  {self.commit:10}{'  fell' * self.has_fallen}".rstrip()


def read(folder: Path) -> dict[Path, Record]:
    """The records by their files, the oldest first."""
    return {path: Record(**json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))}


def write(record: Record, path: Path) -> None:
    """Write a record into a folder, which is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(record), indent=2) + "\n")


def compare(record: Record, earlier: Sequence[Record]) -> list[Comparison]:
    """Each figure of a record beside the best one of earlier records."""
    comparisons = []
    for name, value in record.times.items():
        known = [
            (one.times[name], one.commit)
            for one in _since_accepted(name, earlier)
            if name in one.times and one.machine == record.machine
        ]
        best, commit = min(known, default=(None, ""))
        fell = best is not None and value > SLOWER * best
        comparisons.append(
            Comparison(name=name, value=value, best=best, commit=commit, has_fallen=fell)
        )
    for name, value in record.precision.items():
        known = [
            (one.precision[name], one.commit)
            for one in _since_accepted(name, earlier)
            if name in one.precision
        ]
        best, commit = max(known, default=(None, ""))
        fell = best is not None and value < best - LESS_PRECISE
        comparisons.append(
            Comparison(name=name, value=value, best=best, commit=commit, has_fallen=fell)
        )
    return comparisons


def falls(record: Record, earlier: Sequence[Record]) -> list[Comparison]:
    """The figures of a record that have fallen and are not accepted."""
    comparisons = compare(record, earlier)
    return [one for one in comparisons if one.has_fallen and one.name not in record.accepted]


def accept(record: Record, earlier: Sequence[Record], text: str) -> Record:
    """The record with a fall accepted, given as "name: reason"."""
    name, _, reason = (part.strip() for part in text.partition(":"))
    fallen = [one.name for one in falls(record, earlier)]
    if name not in fallen or not reason:
        raise ValueError(
            f"Expected 'NAME: REASON' with the name of a fall in the newest record, got {text!r}. "
            f"Its falls: {'; '.join(fallen) or 'none'}."
        )
    return replace(record, accepted=record.accepted | {name: reason})


def _since_accepted(name: str, records: Sequence[Record]) -> Sequence[Record]:
    """The records from the one on in which a fall of this figure was last accepted."""
    accepted = [i for i, record in enumerate(records) if name in record.accepted]
    return records[max(accepted, default=0) :]
