"""All results behind a page as one archive, and whether the page is what they come to.

The same results make the same archive, byte for byte. The page names its SHA-256, so a digit that
is changed in either is found, whether it shows on the page or not.
"""

import gzip
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory

from eqsep.errors import UserError
from eqsep.files import written_whole
from paper.cells import Cell, read_result, write_text
from paper.dependencies import is_stale
from paper.page import HTML, MARKDOWN, Report, cells_of, html, markdown, report
from paper.plan import Plan
from paper.provenance import here

ARCHIVE = "reproduction.tar.gz"
KEPT = Path(__file__).parents[1] / "docs" / "_static" / ARCHIVE  # that of the page in the docs
_MANIFEST = "manifest.json"
_PICTURE = re.compile(r'src="data:image/png;base64,[^"]*"')
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Archive:
    """An archive that has been unpacked: what its page shows, by which commit, and the results."""

    names: tuple[str, ...]
    plan: Plan
    commit: str
    folder: Path


@dataclass(frozen=True)
class Verification:
    """A page, recomputed: the lines in which it is not the page that was kept."""

    found: Report
    differences: tuple[str, ...]


def write_archive(names: Sequence[str], plan: Plan, out: Path) -> str:
    """Write the results of a page in the folder `out` beside it; the SHA-256 of the file."""
    cells = sorted({cell for name in names for cell in cells_of(name, plan)})
    files = {str(cell.path(Path())): text for cell in cells if (text := _text_of(cell, out))}
    manifest = {"commit": here()["commit"], "names": list(names), "plan": asdict(plan)}
    packed = _packed({_MANIFEST: json.dumps(manifest, indent=1) + "\n"} | files)
    with written_whole(out / ARCHIVE) as file:
        file.write(packed)
    return hashlib.sha256(packed).hexdigest()


def _text_of(cell: Cell, out: Path) -> str:
    """A result as it is kept, and whether its code has changed since; nothing where none is."""
    result = read_result(cell, out)
    if result is None:
        return ""
    made = result.get("made")
    more = {"made": made | {"stale": is_stale(made)}} if made else {}
    return json.dumps(dict(result) | more, indent=1) + "\n"


def _packed(files: dict[str, str]) -> bytes:
    """A compressed archive without times and owners."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, text in files.items():
            content = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


@contextmanager
def unpacked(path: Path) -> Iterator[Archive]:
    """The archive in a folder of its own, which is gone at the end."""
    with TemporaryDirectory() as folder:
        try:
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
            manifest = json.loads(Path(folder, _MANIFEST).read_text("utf-8"))
            plan = manifest["plan"] | {"protocols": tuple(manifest["plan"]["protocols"])}
            found = Archive(
                tuple(manifest["names"]), Plan(**plan), manifest["commit"], Path(folder)
            )
        except FileNotFoundError as error:
            raise UserError(
                f"There is no archive {path}: `python -m paper all` writes one beside its page."
            ) from error
        except (tarfile.TarError, EOFError, OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path} is not an archive of `python -m paper`, or is damaged: {error}."
            ) from error
        yield found


def render(path: Path) -> Report:
    """Write the page beside an archive again, by the code as it is now, and measure nothing.

    The archive is written again as well: it says which results are stale now, and the commit.
    """
    with unpacked(path) as archive:
        for kept in archive.folder.rglob("*seeds.json"):
            result = json.loads(kept.read_text("utf-8"))
            result.get("made", {}).pop("stale", None)  # as of then
            kept.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        digest = write_archive(archive.names, archive.plan, archive.folder)
        found = report(archive.names, archive.plan, archive.folder)
        packed = (archive.folder / ARCHIVE).read_bytes()
    found = replace(found, archive=digest)
    with written_whole(path) as file:
        file.write(packed)
    write_text(path.with_name(HTML), html(found))
    if path.with_name(MARKDOWN).exists():
        write_text(path.with_name(MARKDOWN), markdown(found))
    return found


def verify(path: Path) -> Verification:
    """Recompute the page beside an archive from its results, but for the pictures."""
    page = path.with_name(HTML)
    with unpacked(path) as archive:
        if not page.exists():
            raise UserError(f"There is no page {page} to compare with: keep it beside the archive.")
        found = report(
            archive.names, archive.plan, archive.folder, commit=archive.commit, draw=False
        )
    found = replace(found, archive=hashlib.sha256(path.read_bytes()).hexdigest())
    kept, again = (
        [_TAG.sub(" ", line).strip() for line in _PICTURE.sub("", text).splitlines()]
        for text in (page.read_text("utf-8"), html(found))
    )
    changes = unified_diff(kept, again, "page", "recomputed", n=0, lineterm="")
    return Verification(found, tuple(line for line in changes if not line.startswith("@@")))
