"""The packages that `make demo`, `make serve` and the image install, with hashes of their files.

    python tools/lock.py            write locked/run.txt and locked/serve.txt
    python tools/lock.py --check    whether they hold the versions of constraints.txt

Versions are those of constraints.txt, dependencies those that the installed packages name, and
hashes those that PyPI's index has for every file of a version, so that pip refuses any other file.
"""

import argparse
import re
import sys
from importlib.metadata import requires
from pathlib import Path
from urllib.request import urlopen

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

ROOT = Path(__file__).resolve().parents[1]
INDEX = "https://pypi.org/simple"
EXTRAS = {"run": set(), "serve": {"team", "mcp", "serve"}}
ELSEWHERE = {"colorama": 'sys_platform == "win32"'}  # needed on other systems than this one


def pinned() -> dict[str, str]:
    """The version of each package in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text().split()
    pairs = (line.partition("==")[::2] for line in lines if "==" in line)
    return {canonicalize_name(name): version for name, version in pairs}


def needed(extras: set[str]) -> list[str]:
    """The packages that eqsep needs with these extras, and those which they need, by name."""
    found: dict[str, set[str]] = {}
    waiting: list[tuple[str, set[str]]] = [("eqsep", extras)]
    while waiting:
        name, asked = waiting.pop()
        if name in found and asked <= found[name]:
            continue
        found[name] = found.get(name, set()) | asked
        for text in requires(name) or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": e}) for e in ("", *asked)):
                waiting.append((canonicalize_name(requirement.name), set(requirement.extras)))
    return sorted({*found, *ELSEWHERE} - {"eqsep"})


def hashes(name: str, version: str) -> list[str]:
    """The hashes of all files of a version."""
    page = urlopen(f"{INDEX}/{name}/").read().decode()
    found = re.findall(r'href="[^"]*/([^/"#]+)#sha256=([0-9a-f]{64})"', page)
    return sorted({digest for file, digest in found if _version(file) == version})


def _version(file: str) -> str | None:
    try:
        if file.endswith(".whl"):
            return str(parse_wheel_filename(file)[1])
        return str(parse_sdist_filename(file)[1])
    except ValueError:  # of a form that pip no longer takes
        return None


def lock(name: str) -> str:
    """The text of a file for `pip install --require-hashes`."""
    versions, lines = pinned(), []
    for package in needed(EXTRAS[name]):
        marker = f" ; {ELSEWHERE[package]}" if package in ELSEWHERE else ""
        files = hashes(package, versions[package])
        if not files:
            raise SystemExit(f"{INDEX} has no file of {package} {versions[package]}.")
        lines.append(f"{package}=={versions[package]}{marker}")
        lines += [f"    --hash=sha256:{digest}" for digest in files]
    text = "\n".join(lines).replace("\n    --hash", " \\\n    --hash")
    return f"# Written by tools/lock.py.\n{text}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    wrong, folder = [], ROOT / "locked"
    for name in EXTRAS if parser.parse_args().check else ():
        found = dict(re.findall(r"^(\S+)==(\S+)", (folder / f"{name}.txt").read_text(), re.M))
        if not found or not found.items() <= pinned().items():
            wrong.append(f"locked/{name}.txt is not of constraints.txt: run tools/lock.py.")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if not parser.parse_args().check:
        folder.mkdir(exist_ok=True)
        for name in EXTRAS:
            (folder / f"{name}.txt").write_text(lock(name))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
