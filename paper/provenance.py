"""Where results come from: the commit, the machine, the versions that computed them."""

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from eqsep import __version__
from paper.dependencies import is_stale

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "xgboost")
_ALIASES = {"xgboost": ("xgboost-cpu",)}  # the same library under another name


@cache
def here() -> Mapping[str, str]:
    """The commit, the machine and the versions of this process."""
    return {
        "commit": _commit(),
        "machine": _machine(),
        "versions": ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES),
    }


def _machine() -> str:
    """The system, the cores, and the GPU that torch sees: networks use it where there is one."""
    words = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    try:
        import torch
    except ImportError:
        return words
    return f"{words}, {torch.cuda.get_device_name()}" if torch.cuda.is_available() else words


def _commit() -> str:
    """The commit of the working tree, "+" where it has changes; the version outside of one."""
    root = Path(__file__).parents[1]
    try:
        described = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--abbrev=10", "--dirty=+"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return f"eqsep {__version__}"
    return described.stdout.strip()


def _version(name: str) -> str:
    for known_as in (name, *_ALIASES.get(name, ())):
        with suppress(PackageNotFoundError):
            return version(known_as)
    return "not installed"


@dataclass(frozen=True)
class Provenance:
    """Of many results: from when to when, by which commits, where, and how long they took.

    `hours` are those of the clock, summed over all results, `processor_hours` those in which a
    processor was at work: half of the latter is what two idle cores take. Of a result that does
    not say the latter, the former counts.

    `commit` is that of the code as it is now. `older` results are of another one, and nothing that
    they run through has changed since; something has of the `stale` ones.
    """

    begin: str
    end: str
    commits: tuple[str, ...]
    machines: tuple[str, ...]
    versions: tuple[str, ...]
    cells: int
    hours: float
    processor_hours: float
    commit: str
    older: int
    stale: int

    @classmethod
    def of(cls, made: Iterable[Mapping[str, Any]], *, commit: str = "") -> "Provenance":
        """Of what each result says of its making; the code is that of `commit`, by default ours.

        Examples
        --------
        >>> day = {"date": "2026-01-01", "commit": "a1", "machine": "m", "versions": "v"}
        >>> work = Provenance.of([day | {"seconds": 1800.0, "processor_seconds": 900.0}] * 2)
        >>> work.hours, work.processor_hours
        (1.0, 0.5)
        """
        made, now = list(made), commit or here()["commit"]
        stale = [is_stale(one) for one in made]
        older = [
            one
            for one, is_old in zip(made, stale, strict=True)
            if not is_old and one["commit"] != now
        ]
        dates = sorted(str(one["date"]) for one in made)

        def all_of(kind: str) -> tuple[str, ...]:
            return tuple(sorted({str(one[kind]) for one in made}))

        def hours_of(kind: str) -> float:
            return round(sum(float(one.get(kind, one["seconds"])) for one in made) / 3600, 2)

        return cls(
            begin=dates[0] if dates else "",
            end=dates[-1] if dates else "",
            commits=all_of("commit"),
            machines=all_of("machine"),
            versions=all_of("versions"),
            cells=len(made),
            hours=hours_of("seconds"),
            processor_hours=hours_of("processor_seconds"),
            commit=now,
            older=len(older),
            stale=sum(stale),
        )

    @property
    def of_commits(self) -> str:
        """In words, of which code the results are."""
        if self.commits == (self.commit,) and not self.stale:
            return f"All of commit {self.commit}."
        told = [f"The code is that of commit {self.commit}."]
        if self.older:
            told.append(
                f"{self.older} of {self.cells} results come from other commits; by its hash, the "
                "code that they run through has not changed since."
            )
        if self.stale:
            told.append(
                f"{self.stale} of {self.cells} results are STALE: the code that they run through "
                "has changed since, or is not recorded."
            )
        return " ".join([*told, f"Commits of the results: {', '.join(self.commits)}."])
