"""The layers of the package, the rules that hold them, and their picture, drawn from the imports.

    python tools/architecture.py docs/_static/architecture.svg

A *package* here is a module or folder of eqsep's root. Imports only go down the layers.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import eqsep

ROOT = Path(eqsep.__file__).parent
# From the ground up. A module may import from its own package and from those of layers before it.
LAYERS = [
    ["contract", "errors", "files", "progress"],
    ["arrays", "schemas"],
    ["engine"],
    ["activations", "tables"],
    ["losses", "solvers", "labels"],
    ["io"],
    ["theory", "datasets", "checks"],
    ["networks"],
    ["separators", "kernels", "detector"],
    ["monitor", "evaluation", "compat"],
    ["persistence", "export"],
    ["plots"],
    ["distributed", "report"],
    ["serve", "client"],
    ["demo"],
    ["cli"],
    ["__main__"],
]
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}
# Upwards, in a method that is a door to what lies above, and only when it is called.
UPWARDS = {
    ("separators/base.py", "eqsep.persistence"),  # save
    ("detector/detector.py", "eqsep.persistence"),  # save
    ("detector/detector.py", "eqsep.export"),  # to_onnx
}
# Where a module is imported by a name that is computed.
BY_NAME = {
    "__init__.py",  # the public names, when they are asked for
    "detector/__init__.py",  # likewise
    "persistence/registry.py",  # the classes that a model file may name
    "cli/__init__.py",  # a command, when it runs
    "datasets/embeddings.py",  # packages of others
}
_NOT_DRAWN = ("__main__", "errors", "files", "progress")  # the outer door, and what all may use

parsed = cache(ast.parse)  # every module is looked at several times


@cache
def imports(source: str) -> tuple[str, ...]:
    """Every module that the source imports, wherever and however; "?" for a computed name."""
    return tuple(_imports(source))


def _imports(source: str) -> Iterator[str]:
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "eqsep":
            names = [alias.name for alias in node.names if alias.name != "__version__"]
            yield from (eqsep._HOMES.get(name, f"eqsep.{name}") for name in names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            literal = node.args and isinstance(node.args[0], ast.Constant)
            yield node.args[0].value if literal else "?"  # type: ignore[attr-defined]


def _called(call: ast.Call) -> Any:
    return getattr(call.func, "id", getattr(call.func, "attr", None))


def misplaced(path: str, source: str) -> Iterator[str]:
    """The imports of a module, by its path in the package, that do not go down."""
    room = path.removesuffix(".py").split("/")[0]
    for module in sorted(set(imports(source))) if room != "__init__" else ():
        if module.startswith((".", "?")) or module == "eqsep":
            if path not in BY_NAME:
                yield module
        elif module.split(".")[0] == "paper":  # it stands on the library, beside it
            yield module
        elif module.startswith("eqsep.") and (path, module) not in UPWARDS:
            other = module.split(".")[1]
            if other != room and RANK[other] >= RANK[room]:
                yield module


def module_graph() -> dict[str, set[str]]:
    """For each module of the package the modules that it imports, in functions too.

    Imports for types alone count too, except in ``__init__.py``, which hands names on. The methods
    that reach up by design do not.
    """
    paths = sorted(ROOT.rglob("*.py"))
    parts = (path.relative_to(ROOT.parent).with_suffix("").parts for path in paths)
    dotted = (".".join(p).removesuffix(".__init__") for p in parts)
    names = dict(zip(dotted, paths, strict=True))
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        graph[name] = set()
        place = path.relative_to(ROOT).as_posix()
        for node in _statements(parsed(path.read_text()), for_types=path.name != "__init__.py"):
            if isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names} & set(names)
                if (place, node.module) not in UPWARDS:
                    graph[name] |= inner or {node.module} & set(names)
    return graph


def _statements(node: ast.AST, *, for_types: bool) -> Iterator[ast.AST]:
    """A node and all statements below it; `for_types`: those under ``if TYPE_CHECKING`` too."""
    if isinstance(node, ast.expr):
        return  # imports are statements
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not for_types:
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _statements(child, for_types=for_types)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle; none where there is no circle.

    Examples
    --------
    >>> circle({"a": {"b"}, "b": {"c"}, "c": {"b"}})
    ['b', 'c']
    """
    left = set(graph)
    while free := {
        name
        for name in left
        if not graph[name] & left or not any(name in graph[other] for other in left)
    }:
        left -= free
    return sorted(left)


def room_graph() -> dict[str, set[str]]:
    """For each room the rooms that its modules import."""
    graph: dict[str, set[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        room = place.removesuffix(".py").split("/")[0]
        found = (m for m in imports(path.read_text()) if (place, m) not in UPWARDS)
        others = {m.split(".")[1] for m in found if m.startswith("eqsep.")} - {room}
        if room != "__init__":
            graph.setdefault(room, set()).update(others)
    return graph


def direct(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without the edges that a longer way makes too.

    Examples
    --------
    >>> direct({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    {'a': {'b'}, 'b': {'c'}, 'c': set()}
    """

    def below(room: str) -> set[str]:
        return graph[room] | {deeper for other in graph[room] for deeper in below(other)}

    return {
        room: {other for other in others if not any(other in below(o) for o in others - {other})}
        for room, others in graph.items()
    }


def draw(path: Path) -> None:
    """The picture: a row for each layer, a box for each room, a line for each direct import."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = [[room for room in rooms if room not in _NOT_DRAWN] for rooms in LAYERS]
    rows = [rooms for rooms in rows if rooms]
    spots = {
        room: ((i + 0.5) / len(rooms) + 0.06 * (height % 2 - 0.5), height)
        for height, rooms in enumerate(rows)
        for i, room in enumerate(rooms)
    }
    graph = {room: others & set(spots) for room, others in room_graph().items() if room in spots}
    figure = Figure(figsize=(9, 0.85 * len(rows)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    for room, others in direct(graph).items():
        for other in sorted(others):
            axes.annotate(
                "",
                xy=(spots[other][0], spots[other][1] + 0.25),
                xytext=(spots[room][0], spots[room][1] - 0.25),
                arrowprops={
                    "arrowstyle": "->",
                    "color": "#8b97a5",
                    "linewidth": 1.1,
                    "connectionstyle": "arc3,rad=0.08",
                },
            )
    for room, (x, y) in spots.items():
        n = len(list((ROOT / room).rglob("*.py"))) or 1
        text = room if n == 1 else f"{room}  ({n})"
        box = {"boxstyle": "round,pad=0.45", "facecolor": "#eaf2fb", "edgecolor": "#30638e"}
        axes.text(x, y, text, ha="center", va="center", fontsize=11, bbox=box)
    with mpl.rc_context({"svg.hashsalt": "eqsep", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
