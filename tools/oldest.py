"""Print the lower bounds of pyproject.toml as exact versions: `python tools/oldest.py > FILE`.

`make test-oldest` gives them to pip as constraints, so that the bounds cannot drift from what is
tested. What our dependencies depend on themselves is not ours to bound, and comes as pip finds it.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)(?: *;.*)?")


def requirements() -> list[str]:
    """What pyproject.toml asks for, in all extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [r for extra in project["optional-dependencies"].values() for r in extra]
    return [r for r in (*project["dependencies"], *extras) if not r.startswith(project["name"])]


def bounds() -> dict[str, str]:
    """The lowest version of each requirement, by its name."""
    found: dict[str, str] = {}
    for requirement in requirements():
        match = REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"Expected a requirement NAME>=VERSION, got {requirement!r}.")
        name, version = match.groups()
        if found.setdefault(name, version) != version:
            raise ValueError(f"{name} has two lower bounds, {found[name]} and {version}.")
    return found


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in sorted(bounds().items())))
