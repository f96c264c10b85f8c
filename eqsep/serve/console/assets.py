"""The files that browsers fetch: styles, scripts and pictures of the package, and no others."""

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.responses import Response

from eqsep.serve.store import Missing

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Asset:
    """A file with its type, and the address under which it never changes."""

    content: bytes
    media_type: str
    address: str


class Assets:
    """All of them by name, read once: a request names one of these or gets nothing."""

    def __init__(self) -> None:
        self._files = dict(_found(files("eqsep.serve.console") / "static", ""))

    def address(self, name: str) -> str:
        """Where browsers find a file."""
        return self._files[name].address

    def names(self) -> list[str]:
        """The files that there are."""
        return sorted(self._files)

    def answer(self, name: str) -> Response:
        """A file as an answer; browsers keep it, as a changed one has another address."""
        if name not in self._files:
            raise Missing(f"There is no file {name!r}.")
        asset = self._files[name]
        kept = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(asset.content, media_type=asset.media_type, headers=kept)


def _found(folder: Traversable, within: str) -> list[tuple[str, Asset]]:
    found = []
    for entry in folder.iterdir():
        name = within + entry.name
        suffix = "." + entry.name.rpartition(".")[2]
        if entry.is_dir():
            found += _found(entry, f"{name}/")
        elif suffix in _TYPES:
            content = entry.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:12]
            found.append((name, Asset(content, _TYPES[suffix], f"/static/{name}?v={digest}")))
    return found
