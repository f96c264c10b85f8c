"""Change the code in one place at a time, and see whether a test notices.

    python tools/mutants.py --seed 0 --count 60 --processes 2

All tests run once, to record which of them execute which line and how long they take. Then places
are drawn over all rooms of the package. For each, the code is changed in a copy of the tree, and
the tests that execute the line run in it until one fails: the room's own ones first, then the
quickest. A mutant that no test kills has survived. More than five survivors are an error.

What is not changed: texts, annotations, decorators, messages of errors, what runs on a GPU alone,
and how plots look.
"""

import argparse
import ast
import copy
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "eqsep"
SKIPPED = {"eqsep/engine/tiles.py", "eqsep/__main__.py"}  # run on a GPU, or in another process
MOST_SURVIVORS = 5
BUDGET = 60.0  # seconds that the tests of one mutant take together without it, at most
LOOKS = {"eqsep/plots"}  # numbers there are sizes and shades
UNSEEN_KEYWORDS = {"stacklevel", "figsize", "fontsize", "padding"}
SEEDS = "2**31 - 1"  # up to which seeds are drawn: one seed is as good as another

# ---- where the code can be changed


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
        change = f"{_short(self.before)}  ->  {_short(self.after)}"
        within = "" if len(self.before) > 20 else f"  in  {_short(self.source)}"
        return f"{self.file}:{self.line}  {change}{within}"


def _short(text: str, most: int = 70) -> str:
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
        case ast.Name(id=name) if name in SWAPS:
            yield _with(node, id=SWAPS[name])
        case ast.Attribute(attr=name) if name in SWAPS:
            yield _with(node, attr=SWAPS[name])
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


def mutants(file: str) -> Iterator[Mutant]:
    """All changes of a file, one after the other."""
    text = (ROOT / file).read_text()
    lines, tree = text.splitlines(), ast.parse(text)
    index_of = {id(node): i for i, node in enumerate(ast.walk(tree))}
    looks = any(file.startswith(room) for room in LOOKS)
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


def drawn(count: int, seed: int) -> list[Mutant]:
    """`count` places over all rooms: one in each at least, the others by how many there are."""
    rng, by_room = random.Random(seed), defaultdict(list)
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if file not in SKIPPED:
            for mutant in mutants(file):
                by_room[mutant.room].append(mutant)
    chosen: list[Mutant] = []
    for room in sorted(by_room):
        chosen.append(rng.choice(by_room[room]))
    rest = [mutant for room in sorted(by_room) for mutant in by_room[room]]
    lines = {(mutant.file, mutant.line) for mutant in chosen}
    while len(chosen) < count:
        mutant = rng.choice(rest)
        if (mutant.file, mutant.line) not in lines:
            lines.add((mutant.file, mutant.line))
            chosen.append(mutant)
    return sorted(rng.sample(chosen, count), key=lambda m: (m.file, m.line))


# ---- which tests execute a line


@dataclass(frozen=True)
class Recorded:
    """Seconds of each test, and the tests that execute each line of each file."""

    seconds: dict[str, float]
    by_line: dict[str, dict[int, set[str]]]

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Those that can notice, own ones first, then the quickest, within the budget."""
        lines = self.by_line.get(mutant.file, {})
        found = set(lines.get(mutant.line, ()))
        for line in _readers(mutant):  # what runs at the import is noticed where it is used
            found |= lines.get(line, set())
        if mutant.names and not found:
            found = set().union(*lines.values()) if lines else set()
        words = set(re.split(r"[/_.]", mutant.file)) - {PACKAGE, "py", "", "init"}

        def rank(test: str) -> tuple[bool, float]:
            file = test.partition("::")[0]
            own = file == mutant.file or bool(words & set(re.split(r"[/_.]", file)))
            return not own, self.seconds.get(test, 0.0)

        taken, total = [], 0.0
        for test in sorted(found & self.seconds.keys(), key=rank):
            total += self.seconds[test]
            if taken and total > BUDGET:
                break
            taken.append(test)
        return taken


def _readers(mutant: Mutant) -> set[int]:
    """The lines of the same file that read a name which the changed line sets."""
    if not mutant.names:
        return set()
    tree = ast.parse((ROOT / mutant.file).read_text())
    return {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in mutant.names
    }


def record(tree: Path, folder: Path, processes: int) -> None:
    """Run all tests in `tree` once, and leave what they execute in `folder`."""
    options = ["--cov", "--cov-context=test", "--cov-report=", "-q"]
    spread = ["-n", str(processes), "--dist", "loadgroup"] if processes > 1 else []
    env = _environment(tree) | {
        "COVERAGE_FILE": str(folder / "coverage"),
        "MUTANTS_SECONDS": str(folder / "seconds.json"),
    }
    subprocess.run([*PYTEST, *options, *spread], cwd=tree, env=env, check=True)


def recorded(folder: Path) -> Recorded:
    seconds = json.loads((folder / "seconds.json").read_text())
    data = CoverageData(str(folder / "coverage"))
    data.read()
    by_line: dict[str, dict[int, set[str]]] = {}
    for path in data.measured_files():
        file = f"{PACKAGE}/{path.rpartition(f'/{PACKAGE}/')[2]}"
        lines = data.contexts_by_lineno(path)
        by_line[file] = {line: {_test(c) for c in found if c} for line, found in lines.items()}
    return Recorded(seconds, by_line)


def _test(context: str) -> str:
    """The test of a context of coverage, or of an id that names xdist's group."""
    return re.sub(r"@[\w.-]+$", "", context.rpartition("|")[0] or context)


# ---- a copy of the tree, and tests in it


PYTEST = [sys.executable, "-m", "pytest", "-p", "mutants", "-p", "no:cacheprovider"]


def copied(folder: Path) -> Path:
    """A copy of the files that git knows or would take."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in listed:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def _environment(tree: Path) -> dict[str, str]:
    data = os.environ.get("EQSEP_DATA", str(ROOT.parent / "shared" / "data"))
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tree), str(tree / "tools")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "EQSEP_DATA": data,
    }


def killed_by(mutant: Mutant, tests: list[str], tree: Path, *, seconds: float) -> str | None:
    """What notices the change: a test, or the time it takes; None where nothing does."""
    path, asked = tree / mutant.file, tree / "asked.json"
    whole = path.read_text()
    asked.write_text(json.dumps(tests))
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    path.write_text(changed(whole, mutant))
    process = subprocess.Popen(
        [*PYTEST, "-x", "-q", "--tb=no", "--no-header", *files],
        cwd=tree,
        env=_environment(tree) | {"MUTANTS_ASKED": str(asked)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = process.communicate(timeout=60 + 5 * seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "time"
    finally:
        path.write_text(whole)
    if process.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", told, re.MULTILINE)
    return failed[1] if failed else told.strip().rpartition("\n")[2]


# ---- as a plugin of pytest, in the copies


_seconds: dict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report):  # type: ignore[no-untyped-def]
    if report.outcome == "passed":
        _seconds[_test(report.nodeid)] += report.duration


def pytest_sessionfinish(session):  # type: ignore[no-untyped-def]
    if "MUTANTS_SECONDS" in os.environ and not hasattr(session.config, "workerinput"):
        Path(os.environ["MUTANTS_SECONDS"]).write_text(json.dumps(_seconds))


def pytest_collection_modifyitems(items):  # type: ignore[no-untyped-def]
    if "MUTANTS_ASKED" in os.environ:
        asked = json.loads(Path(os.environ["MUTANTS_ASKED"]).read_text())
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in asked if test in found]


# ---- the command


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--record", type=Path, help="folder of a record to use, or to make")
    parser.add_argument("--list", action="store_true", help="show what is drawn, and run nothing")
    asked = parser.parse_args()
    chosen = drawn(asked.count, asked.seed)
    if asked.list:
        print(*chosen, sep="\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        trees: SimpleQueue[Path] = SimpleQueue()
        for i in range(asked.processes):
            trees.put(copied(Path(temporary, str(i))))
        folder = asked.record or Path(temporary, "record")
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "seconds.json").exists():
            record(Path(temporary, "0"), folder, asked.processes)
        known = recorded(folder)

        def judged(mutant: Mutant) -> str | None:
            tests = known.tests_of(mutant)
            if not tests:
                return None
            tree = trees.get()
            try:
                seconds = sum(known.seconds[test] for test in tests)
                return killed_by(mutant, tests, tree, seconds=seconds)
            finally:
                trees.put(tree)

        survived = 0
        with ThreadPoolExecutor(asked.processes) as pool:
            for mutant, killer in zip(chosen, pool.map(judged, chosen), strict=True):
                survived += killer is None
                end = "SURVIVED" if killer is None else f"killed by {_short(killer)}"
                print(f"{mutant}  {end}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} mutants killed, {survived} survived")
    return int(survived > MOST_SURVIVORS)


if __name__ == "__main__":
    sys.exit(main())
