"""Compiled loops in a process without Numba: machine code from disk, called with NumPy's objects.

To import Numba and to link what it keeps takes longer than most commands. So what it has compiled
for one kind of arguments (`eqsep.engine.emission`) is a file of its own here, which LLVM loads and
which takes the arguments' fields from memory. A file is named for all that its code depends on:
the text of the source, versions, settings, the processor. It begins with the hash of the rest, and
is renamed into its place when it is whole, so that several processes may write it at once; what is
damaged, missing or cannot be written is compiled again.
"""

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from eqsep import __version__

ENTRY, TYPES = "entry", "types"  # what the code gives away: a function, and where types are put
OBJECTS = (np.ndarray, tuple, np.float32)  # that the function takes: their types, in this order
_C, _F, _ALIGNED, _WRITEABLE = 0x1, 0x2, 0x100, 0x400  # flags of arrays by which code differs
_DIGEST = hashlib.sha256().digest_size

Code = Callable[[tuple[Any, ...]], int]  # 0, or not where it is for arguments of another kind


class Array(NamedTuple):
    """A kind of arrays: the same code is for all of them."""

    number: int  # of the type of its elements
    order: str  # of their bytes
    ndim: int
    mask: int  # of the flags that matter
    flags: int


class Loop:
    """A loop that is called as machine code, or by Numba where it or its arguments need that.

    Arguments of machine code are arrays, numbers of type `numpy.float32`, and tuples of these; the
    loop itself allocates no memory and returns nothing.
    """

    def __init__(
        self,
        loop: Callable[..., None],
        *,
        fastmath: frozenset[str] = frozenset(),
        calls: tuple[Callable[..., Any], ...] = (),
    ) -> None:
        self.loop, self.fastmath, self.calls = loop, fastmath, calls
        self._lock = Lock()
        self._codes: tuple[Code, ...] = ()
        self._known: dict[Any, Code | None] = {}

    def __call__(self, *args: Any) -> None:
        for code in self._codes:
            if not code(args):
                return
        self._call_other(args)

    def _call_other(self, args: tuple[Any, ...]) -> None:
        kinds = kind_of(args)
        with self._lock:
            if kinds is not None and kinds not in self._known:
                code = self._known[kinds] = self._code(args, kinds)
                self._codes += () if code is None else (code,)
        code = self._known.get(kinds)
        if code is None or code(args):  # where it fails, Numba says why
            self.by_numba(*args)

    @cached_property
    def by_numba(self) -> Any:
        """The loop as Numba calls it."""
        from eqsep.engine.emission import dispatcher

        return dispatcher(self)

    def _code(self, args: tuple[Any, ...], kinds: Any) -> Code | None:
        """From disk, else compiled and kept there; None for a loop that needs Numba."""
        source = self.loop.__code__.co_filename
        told = repr((_text(source), self.loop.__qualname__, sorted(self.fastmath), kinds, _host()))
        digest = hashlib.sha256(told.encode()).hexdigest()[:32]
        name = f"{Path(source).stem}.{self.loop.__name__}-{digest}.code"
        machine_code = _kept(name, source)
        if machine_code is None:
            from eqsep.engine.emission import emitted

            machine_code = emitted(self, args, kinds)
            if machine_code is None:
                return None
            _keep(name, source, machine_code)
        return _loaded(machine_code)


def kind_of(x: Any) -> Any:
    """What machine code depends on: an `Array`, a type, or a tuple of such; None for all else."""
    if type(x) is np.ndarray:
        dtype, flags = x.dtype, x.flags.num
        if dtype.kind not in "biuf" or not dtype.isnative:
            return None
        mask = _ALIGNED | _WRITEABLE | (_C if flags & _C else _C | _F)
        return Array(dtype.num, dtype.byteorder, x.ndim, mask, flags & mask)
    if type(x) is tuple:
        kinds = tuple(map(kind_of, x))
        return None if None in kinds else kinds
    return np.float32 if type(x) is np.float32 else None


@cache
def _text(source: str) -> bytes:
    """Of the file of a loop; empty in an archive, where the version has to do."""
    try:
        return hashlib.sha256(Path(source).read_bytes()).digest()
    except OSError:
        return b""


@cache
def _host() -> tuple[Any, ...]:
    """The versions, settings and processor that code is for, as far as Numba is not needed."""
    import llvmlite
    from llvmlite import binding as llvm

    numba = find_spec("numba")
    places = (numba and numba.submodule_search_locations) or ()
    texts = [_text(str(Path(place, "_version.py"))) for place in places]
    settings = sorted(pair for pair in os.environ.items() if pair[0].startswith("NUMBA_"))
    versions = (__version__, sys.version, np.__version__, llvmlite.__version__, texts, settings)
    features = llvm.get_host_cpu_features().flatten()
    return (*versions, llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


def _folders(source: str) -> Iterator[Path]:
    """Where code is looked for and kept: where Numba is told to, else beside the source, else in
    the user's cache; nowhere that anybody else may write to."""
    asked = os.environ.get("NUMBA_CACHE_DIR")
    if asked:
        yield Path(asked)
        return
    yield Path(source).parent / "__pycache__"
    with suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "eqsep")


def _is_safe(folder: Path, source: str) -> bool:
    """Whether nobody can write there but this user, root and the owner of the source."""
    if sys.platform == "win32":
        return True
    found = folder.stat()
    owners = {0, os.geteuid()}
    with suppress(OSError):
        owners.add(Path(source).stat().st_uid)
    return found.st_uid in owners and not found.st_mode & 0o002


def _kept(name: str, source: str) -> bytes | None:
    """The machine code of this name, if it is there and whole."""
    for folder in _folders(source):
        with suppress(OSError):
            held = (folder / name).read_bytes()
            digest, machine_code = held[:_DIGEST], held[_DIGEST:]
            if hashlib.sha256(machine_code).digest() == digest and _is_safe(folder, source):
                return machine_code
    return None


def _keep(name: str, source: str, machine_code: bytes) -> None:
    """Write it to the first folder that takes it, if there is one."""
    held = hashlib.sha256(machine_code).digest() + machine_code
    for folder in _folders(source):
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_safe(folder, source):
                continue
            unfinished = folder / f"{name}.{os.getpid()}"
            try:
                unfinished.write_bytes(held)
                unfinished.replace(folder / name)
            finally:
                unfinished.unlink(missing_ok=True)
            return


def _loaded(machine_code: bytes) -> Code:
    """The function of an object file, which releases the interpreter's lock while it runs."""
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
    engine.finalize_object()
    types = ctypes.c_void_p * len(OBJECTS)
    types.from_address(engine.get_global_value_address(TYPES))[:] = [id(kind) for kind in OBJECTS]
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.py_object)
    code: Any = function(engine.get_function_address(ENTRY))
    code.engine = engine  # which holds the memory of the code
    return code  # type: ignore[no-any-return]
