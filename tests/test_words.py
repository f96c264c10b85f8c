"""The words of the package: a class name has one meaning, and a private constant says its noun."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import eqsep

ROOT = Path(eqsep.__file__).parent
TREES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in ROOT.rglob("*.py")
}
# How much or where, but not of what.
VAGUE = re.compile(
    "_(ALL|ALMOST|ANY|AT_A_LOOK|AT_ONCE|BEYOND|BIG|ENOUGH|EVERY|FAR|FEW|FEWEST|FIRST|FULL|HALF|HIGH|"
    "HIGHEST|KEPT|LARGE|LARGEST|LAST|LATE|LEAST|LESS|LONG|LONGEST|LOW|LOWEST|MANY|MORE|MOST|NEAR|"
    "NEAREST|NONE|OFTEN|OTHERS|RARE|RECENT|REST|SEEN|SHORT|SHORTEST|SHOWN|SLIGHT|SMALL|SOME|SOON|"
    "SURE|TAKEN|TENTH|TIMES|TINY|TOLERATED|TOO_FEW|TOO_MANY|USUAL|WHOLE|WIDE|WIDEST|YOUNG)"
)


def homes_of_names(*, aliases):
    """The modules that define each class; or, with `aliases`, each class or alias of a type."""
    homes = defaultdict(list)
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path)
        for name in constants(tree) if aliases else ():
            if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name):
                homes[name].append(path)
    return homes


def constants(tree):
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in filter(None, targets):
            yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def test_a_class_name_has_one_meaning():
    twice = {name: homes for name, homes in homes_of_names(aliases=False).items() if homes[1:]}
    assert twice == {}


def test_no_alias_of_a_type_is_called_as_a_class():
    classes, names = homes_of_names(aliases=False), homes_of_names(aliases=True)
    twice = {name: names[name] for name in classes if names[name][1:]}
    assert twice == {}


def test_a_private_constant_says_what_it_is():
    vague = {path: list(filter(VAGUE.fullmatch, constants(tree))) for path, tree in TREES.items()}
    assert {path: names for path, names in vague.items() if names} == {}
