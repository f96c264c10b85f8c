"""The places where code can be changed, and the code with one of the changes.

Comparisons, arithmetic, constants, conditions and slices become others, calls and results are left
out: one change each. Texts, annotations, decorators, messages of errors and how plots look stay.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOOKS = "eqsep/plots"  # numbers there are sizes and shades
UNSEEN_KEYWORDS = {"stacklevel", "figsize", "fontsize", "padding"}
SEEDS = "2**31 - 1"  # up to which seeds are drawn: one seed is as good as another


@dataclass(frozen=True)
class Mutant:
    """One change: of the node that is `index`th in its file's tree, in the `way`th way."""

    file: str
    line: int
    index: int
    way: int
    before: str
    after: str
    source: str  # the line as it is
    names: tuple[str, ...] = ()  # that a line at the top of a module sets

    @property
    def room(self) -> str:
        return "/".join(Path(self.file).parts[:2])

    def __str__(self) -> str:
        change = f"{short(self.before)}  ->  {short(self.after)}"
        within = "" if len(self.before) > 20 else f"  in  {short(self.source)}"
        return f"{self.file}:{self.line}  {change}{within}"


def short(text: str, most: int = 70) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}  # fmt: skip
SWAPS = {
    "min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum",
    "maximum": "minimum", "argmin": "argmax", "argmax": "argmin", "floor": "ceil", "ceil": "floor",
    "nanmin": "nanmax", "nanmax": "nanmin",
}  # fmt: skip


def changes(node: ast.AST) -> Iterator[ast.AST | None]:
    """What can stand in place of a node; None where a statement is left out."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield _with(node, ops=[COMPARISONS[type(op)]()])
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not _is_text(node):
            yield _with(node, op=ARITHMETIC[type(op)]())
        case ast.AugAssign(op=op) if type(op) in ARITHMETIC and not _is_text(node.value):
            yield _with(node, op=ARITHMETIC[type(op)]())
        case ast.BoolOp(op=ast.And()):
            yield _with(node, op=ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield _with(node, op=ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
        case ast.Constant(value=float()):
            yield ast.Constant(node.value * 2 if node.value else 1.0)
        case ast.Call(func=ast.Name(id=name)) if name in SWAPS:
            yield _with(node, func=ast.Name(SWAPS[name]))
        case ast.Call(func=ast.Attribute(attr=name)) if name in SWAPS:
            yield _with(node, func=_with(node.func, attr=SWAPS[name]))
        case ast.Slice(lower=lower, upper=upper):
            if upper is not None:
                yield _with(node, upper=None)
            if lower is not None:
                yield _with(node, lower=None)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if not isinstance(test, ast.UnaryOp | ast.Compare):  # those are changed by themselves
                yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield _with(node, value=ast.Constant(None))
        case ast.Expr(value=ast.Call()):
            yield None


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_text(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(node)
    )


def mutants_of(file: str, text: str) -> Iterator[Mutant]:
    """All changes of a file, one after the other."""
    lines, tree = text.splitlines(), ast.parse(text)
    index_of = {id(node): i for i, node in enumerate(ast.walk(tree))}
    looks = file.startswith(LOOKS)
    for node, names in _open(tree, lines):
        if looks and isinstance(node, ast.Constant):
            continue
        for way, after in enumerate(changes(node)):
            shown = ast.unparse(ast.fix_missing_locations(after)) if after else "pass"
            before, source = ast.unparse(node), lines[node.lineno - 1].strip()
            yield Mutant(file, node.lineno, index_of[id(node)], way, before, shown, source, names)


def _open(
    node: ast.AST, lines: list[str], names: tuple[str, ...] = (), top: bool = True
) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    """The nodes that may be changed, each with the names that its line sets at the top."""
    for child in ast.iter_child_nodes(node):
        if _is_closed(node, child, lines):
            continue
        set_here = names
        if top and isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            set_here = tuple(t.id for t in targets if isinstance(t, ast.Name))
            if "__all__" in set_here:
                continue
        if hasattr(child, "lineno"):
            yield child, set_here
        inner = top and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _open(child, lines, set_here, inner)


def _is_closed(node: ast.AST, child: ast.AST, lines: list[str]) -> bool:
    """Whether nothing below `child` is to be changed: texts, annotations, messages and so on."""
    if isinstance(child, ast.JoinedStr):
        return True
    if isinstance(child, ast.FunctionDef) and "pragma: no cover" in lines[child.lineno - 1]:
        return True
    if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
        return True
    if isinstance(child, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
        return True
    if isinstance(child, ast.keyword) and child.arg in UNSEEN_KEYWORDS:
        return True
    if isinstance(child, ast.BinOp) and ast.unparse(child) == ast.unparse(ast.parse(SEEDS)):
        return True
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "TypeVar", "cast"):
        return True
    return (
        child is getattr(node, "annotation", None)
        or child is getattr(node, "returns", None)
        or child in getattr(node, "decorator_list", ())
    )


def changed(text: str, mutant: Mutant) -> str:
    """The whole text of a file with the change."""
    tree = ast.parse(text)
    target = list(ast.walk(tree))[mutant.index]
    after = list(changes(target))[mutant.way]

    class Change(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            if node is target:
                return ast.copy_location(after or ast.Pass(), node)
            return self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Change().visit(tree))) + "\n"
