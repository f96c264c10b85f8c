"""Loops that need Numba, on disk: what is wrong or cannot be written there is left alone.

Numba keeps what it compiles beside the source, or in the user's cache folder where that cannot be
written. Its own files are numbered, so that two processes that compile at once can take each
other's code for their own; a damaged one stops every process after it; and code of another version
of the package counts as the same where a file has the same size and time. Here a file has a name
of its own for what it holds, is written before the index that names it, and is of one source text
and version; whatever goes wrong with files, the loop is compiled again.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from eqsep import __version__


class CodeFiles(IndexDataCacheFile):  # type: ignore[misc]  # numba has no types
    """The files of one loop: an index, and the code for each signature and processor."""

    def save(self, key: Any, data: Any) -> None:
        """Keep the code of a signature; what others write meanwhile may be lost, not mixed up."""
        index = self._load_index()
        told = repr((self._version, self._source_stamp, key)).encode()
        name = self._index_name.removesuffix(".nbi")
        index[key] = f"{name}.{hashlib.sha256(told).hexdigest()[:16]}.nbc"
        self._save_data(index[key], data)
        self._save_index(index)

    def _load_index(self) -> dict[Any, str]:
        try:
            index: dict[Any, str] = super()._load_index()
        except Exception:  # whatever a damaged pickle may raise
            return {}
        return index


class CodeCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one loop, with `CodeFiles`."""

    def __init__(self, loop: Any) -> None:
        super().__init__(loop)
        text = b""
        with suppress(OSError):  # a package in an archive
            text = Path(loop.__code__.co_filename).read_bytes()
        stamp = (self._impl.locator.get_source_stamp(), hashlib.sha256(text).digest(), __version__)
        self._cache_file = CodeFiles(self.cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code of a signature, or None where it is not there or damaged."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # likewise
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it, unless the disk is full or may no longer be written to."""
        with suppress(OSError):
            super().save_overload(sig, data)


def kept(loop: Any) -> Any:
    """A loop of Numba's that is kept on disk, where there is a place for it."""
    with suppress(RuntimeError):  # neither beside the source nor in the user's cache folder
        loop._cache = CodeCache(loop.py_func)
    return loop
