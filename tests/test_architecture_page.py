"""The page on architecture: its recipes name the files that the code takes."""

import ast
import re
from pathlib import Path

import eqsep

ROOT = Path(eqsep.__file__).parent
PAGE = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")


def files_of_recipe(title):
    recipe = PAGE.split(f"**{title}**")[1].split("**Add")[0].split("\n## ")[0]
    items = [line.split(":")[0] for line in recipe.splitlines() if line.startswith("- ")]
    return {name for item in items for name in re.findall(r"`([\w/]+\.py)`", item)}


def files_where(mentions):
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")}
    return {
        path.relative_to(ROOT).as_posix()
        for path, tree in trees.items()
        if any(map(mentions, ast.walk(tree)))
    }


def is_constant(node, *names):
    return isinstance(node, ast.Constant) and node.value in names


def test_a_term_takes_the_files_of_its_recipe():
    def mentions(node):
        named = {getattr(node, "id", ""), getattr(node, "name", "")} & {"LikenessTerm"}
        field = isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "")
        return named or field == "likeness_weight" or is_constant(node, "likeness")

    assert files_where(mentions) == files_of_recipe("Add a term of the score.")


def test_a_parameter_takes_the_files_of_its_recipe():
    def mentions(node):
        target = getattr(node, "target", None) or (getattr(node, "targets", None) or [None])[0]
        names = {getattr(target, "id", "")} & {"unseen_rate", "UNSEEN_RATE"}
        return names or is_constant(node, "unseen_rate")

    found = files_where(mentions)
    recipe = files_of_recipe("Add a parameter that the command knows.")
    assert found <= recipe
    assert recipe - found == {"detector/detector.py"}  # a keyword, which is found below
    tree = ast.parse((ROOT / "detector" / "detector.py").read_text(encoding="utf-8"))
    assert any(isinstance(node, ast.arg) and node.arg == "unseen_rate" for node in ast.walk(tree))
