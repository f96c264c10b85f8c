"""What a result depends on: the code that ran while it was measured, and a hash of it.

These are the functions of eqsep and of this package that ran, the module-level values and the
fields of the classes that they name, and what ran to make those; of what runs as machine code, all
functions that it calls. Comments, docstrings and annotations do not count. A result is stale where
the hash of its code is no longer the same.

What is not Python does not count, nor do the libraries and the data: results say their versions.
"""

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from cProfile import Profile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGES = ("eqsep", "paper")
_MAKING = ("__init__", "__post_init__", "__new__")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Place(NamedTuple):
    """A function, a method, a class without its methods, or a value: its file, and its name."""

    file: str
    name: str


@dataclass
class Source:
    """A file in parts: the statements of each name, and where imported names come from."""

    parts: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)  # module, name in it or ""
    _texts: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """The statements of a name, made once; nothing where there are none."""
        if name not in self._texts:
            self._texts[name] = "\n".join(map(_spelt_out, self.parts.get(name, [])))
        return self._texts[name]

    def kind(self, name: str) -> str:
        """ "function", "class" or "value"."""
        first = self.parts[name][0]
        if isinstance(first, _FUNCTIONS):
            return "function"
        return "class" if isinstance(first, ast.ClassDef) else "value"

    def at_line(self, line: int) -> str | None:
        """The name whose statement holds the line."""
        for name, statements in self.parts.items():
            if any(s.lineno <= line <= (s.end_lineno or s.lineno) for s in statements):
                return name
        return None


def _spelt_out(node: object) -> str:
    """A statement as text that every version of Python writes alike, as `ast.unparse` does not."""
    if isinstance(node, list):
        return f"[{', '.join(map(_spelt_out, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    return f"{type(node).__name__}({', '.join(f'{n}={_spelt_out(v)}' for n, v in fields)})"


@contextmanager
def recorded() -> Iterator[dict[str, list[str]]]:
    """While it is open, what runs is noted; once it is closed, the names by file are there.

    What is cached is forgotten first: a table that another cell has read is read again.
    """
    _forget_cached()
    found: dict[str, list[str]] = {}
    profile = Profile(builtins=False)
    profile.enable()
    try:
        yield found
    finally:
        profile.disable()
        ran = (entry.code for entry in profile.getstats())
        found |= names_behind(code for code in ran if isinstance(code, CodeType))


def names_behind(codes: Iterable[CodeType]) -> dict[str, list[str]]:
    """The names of all that the code that ran depends on, by file."""
    ran = {place for code in codes if (place := _place(code)) is not None}
    found: dict[str, list[str]] = {}
    for place in sorted(_closure(ran)):
        found.setdefault(place.file, []).append(place.name)
    return found


def digest(names: Mapping[str, Sequence[str]], *, root: Path = ROOT) -> str:
    """A hash of the present code of the names, in 16 letters; it is another one if one is gone.

    Examples
    --------
    >>> digest({"paper/cells.py": ["seeds_of"]}) == digest({"paper/cells.py": ["seeds_of"]})
    True
    """
    whole = hashlib.sha256()
    for file in sorted(names):
        source = _source(root / file)
        for name in sorted(names[file]):
            whole.update(f"{file}:{name}\n{source.text(name)}\n".encode())
    return whole.hexdigest()[:16]


def is_stale(made: Mapping[str, Any]) -> bool:
    """Whether the code that a result depends on has changed; one that does not say has, too.

    One in an archive says whether it had when the archive was written.
    """
    if "stale" in made:
        return bool(made["stale"])
    return "code" not in made or made["code"] != digest(made["names"])


def _forget_cached() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith(tuple(f"{package}." for package in PACKAGES)):
            for value in list(vars(module).values()):
                is_own = getattr(value, "__module__", None) == name and name not in _LASTING
                if is_own and hasattr(value, "cache_clear"):
                    value.cache_clear()


_COMPILERS = {"compiled", "inlined", "shared"}  # what they decorate, no profiler sees
_LASTING = (__name__, "paper.provenance", "paper.published")  # what these keep no result depends on


def _place(code: CodeType) -> Place | None:
    """Where a function stands that ran: a module-level one, a method, or a value that holds it."""
    path = Path(code.co_filename)
    if not code.co_flags & inspect.CO_OPTIMIZED or not path.is_relative_to(ROOT):
        return None  # the body of a class or of a module, or a library
    file = path.relative_to(ROOT)
    if file.parts[0] not in PACKAGES or path == Path(__file__):
        return None
    source, name = _source(path), code.co_qualname.split(".<locals>")[0]
    known = name if name in source.parts else source.at_line(code.co_firstlineno)
    return None if known is None else Place(file.as_posix(), known)


def _closure(ran: Iterable[Place]) -> set[Place]:
    """What ran, with the values and classes that it names and what ran at import to make them."""
    todo, seen = [(place, _kind(place) != "function") for place in ran], set()
    while todo:
        place, at_import = todo.pop()
        if (place, at_import) in seen:
            continue
        seen.add((place, at_import))
        for target, is_called in _named(place):
            kind = _kind(target)
            if kind != "function" or (at_import and is_called) or _is_compiled(target):
                todo.append((target, True))
            if kind == "class" and at_import and is_called:
                made = (Place(target.file, f"{target.name}.{name}") for name in _MAKING)
                todo += [(m, True) for m in made if m.name in _source(ROOT / m.file).parts]
    return {place for place, _ in seen}


def _kind(place: Place) -> str:
    return _source(ROOT / place.file).kind(place.name)


def _is_compiled(place: Place) -> bool:
    functions = (
        s for s in _source(ROOT / place.file).parts[place.name] if isinstance(s, _FUNCTIONS)
    )
    nodes = (node for f in functions for d in f.decorator_list for node in ast.walk(d))
    return any(isinstance(node, ast.Name) and node.id in _COMPILERS for node in nodes)


def _named(place: Place) -> Iterator[tuple[Place, bool]]:
    """What the statements of a place name, and whether they call it."""
    source = _source(ROOT / place.file)
    statements = source.parts[place.name]
    nodes = [node for statement in statements for node in ast.walk(statement)]
    imports = source.imports | _imports(nodes)
    own = _own(nodes) if source.kind(place.name) == "function" else set()
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    called = {id(node.func) for node in calls}
    for node in nodes:
        words = _words(node)
        is_free = words and words[0] not in own
        target = _resolved(place.file, words, imports) if is_free else None
        if target is not None and target != place:
            yield target, id(node) in called


def _own(nodes: Iterable[ast.AST]) -> set[str]:
    """The arguments and the variables of a function, which hide the names of its module."""
    stored = (n for n in nodes if isinstance(n, ast.arg | ast.Name))
    return {
        n.arg if isinstance(n, ast.arg) else n.id
        for n in stored
        if isinstance(n, ast.arg) or isinstance(n.ctx, ast.Store)
    }


def _words(node: ast.AST) -> tuple[str, ...]:
    """("a",) of a name that is read, ("a", "b") of a.b; nothing of anything else."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return (node.id,)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return (node.value.id, node.attr)
    return ()


def _resolved(
    file: str, words: tuple[str, ...], imports: Mapping[str, tuple[str, str]]
) -> Place | None:
    """Where a name is defined, by the way of its imports; None where that is elsewhere."""
    if not words:
        return None
    name, *attribute = words
    if name in _source(ROOT / file).parts:
        return None if attribute else Place(file, name)
    module, inner = imports.get(name, ("", ""))
    if module.split(".")[0] not in PACKAGES:
        return None
    as_module = _file_of(f"{module}.{inner}" if inner else module)
    if as_module is not None:  # a module: what counts is what is taken from it
        inner, file_there = (attribute[0] if attribute else ""), as_module
    else:
        file_there = _file_of(module) or ""
        inner = "" if attribute else inner
    if not inner or not file_there:
        return None
    if inner in _source(ROOT / file_there).parts:
        return Place(file_there, inner)
    onwards = _source(ROOT / file_there).imports
    return _resolved(file_there, (inner,), onwards) if inner in onwards else None


def _file_of(module: str) -> str | None:
    path = ROOT.joinpath(*module.split("."))
    for found in (path.with_suffix(".py"), path / "__init__.py"):
        if found.is_file():
            return found.relative_to(ROOT).as_posix()
    return None


def _source(path: Path) -> Source:
    """The file as it is now; none where it is gone."""
    return _parsed(path, path.stat().st_mtime_ns) if path.is_file() else Source()


@cache
def _parsed(path: Path, changed: int) -> Source:  # noqa: ARG001  read again when it has changed
    source = Source()
    tree = _Bare().visit(ast.parse(path.read_text(encoding="utf-8")))
    _divide(tree.body, source)
    source.imports = _imports(ast.walk(tree))
    return source


def _divide(body: Iterable[ast.stmt], source: Source) -> None:
    """Note each statement under the names that it defines, those within if and try as well."""
    for statement in body:
        if isinstance(statement, _FUNCTIONS):
            source.parts.setdefault(statement.name, []).append(statement)
        elif isinstance(statement, ast.ClassDef):
            methods = [part for part in statement.body if isinstance(part, _FUNCTIONS)]
            for method in methods:
                source.parts.setdefault(f"{statement.name}.{method.name}", []).append(method)
            statement.body = [p for p in statement.body if p not in methods] or [ast.Pass()]
            source.parts.setdefault(statement.name, []).append(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            for name in _targets(statement):
                source.parts.setdefault(name, []).append(statement)
        else:
            for name in ("body", "orelse", "finalbody"):
                _divide(getattr(statement, name, []), source)
            for handler in getattr(statement, "handlers", []):
                _divide(handler.body, source)


def _targets(statement: ast.Assign | ast.AnnAssign | ast.AugAssign) -> list[str]:
    """The names that a statement assigns to; those of its comprehensions are not among them."""
    to = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    nodes = (node for target in to for node in ast.walk(target))
    return [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _imports(nodes: Iterable[ast.AST]) -> dict[str, tuple[str, str]]:
    """Where the names that statements import come from."""
    found: dict[str, tuple[str, str]] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {a.asname or a.name: (node.module, a.name) for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname: (a.name, "") for a in node.names if a.asname}
    return found


class _Bare(ast.NodeTransformer):
    """Takes docstrings and the annotations of functions away."""

    def _without_docstring(self, node: Any) -> Any:
        self.generic_visit(node)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node

    def _without_words(self, node: Any) -> Any:
        node.returns = None
        return self._without_docstring(node)

    visit_Module = visit_ClassDef = _without_docstring
    visit_FunctionDef = visit_AsyncFunctionDef = _without_words

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node
