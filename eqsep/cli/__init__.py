"""The command `eqsep`: its commands, each imported when it runs, and what the project file adds."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from eqsep import __version__
from eqsep.cli.console import CommandGroup, Screen, debugging, flag, verbose
from eqsep.cli.project import (
    COLUMN_LISTS,
    ENDING,
    NAME,
    Project,
    current_project,
    label_column,
    quoted_column,
)
from eqsep.errors import UserError

COMMANDS = {  # a function or an app of a module, and what `eqsep --help` shows of it
    "demo": ("demo:demo", "Catch kinds of anomaly nobody has labelled, on built-in data."),
    "init": ("init:init", "Look at a table and write eqsep.toml, the project file."),
    "fit": ("fit:fit", "Learn normal rows and the labelled kinds of anomaly from files."),
    "score": ("score:score", "Score rows: score, p_value, alarm, kind and its probability."),
    "explain": ("score:explain", "Show which columns drive the highest scores."),
    "learn": ("models:learn", "Teach a model more labelled rows."),
    "forget": ("models:forget", "Make a model unlearn rows, exactly."),
    "suspects": ("models:suspects", "List normal rows that may be anomalies, for review."),
    "merge": ("models:merge", "Merge models into one that knows the rows of all."),
    "test": ("test:test", "Measure a model on labelled rows: recall, names, false alarms."),
    "evaluate": ("evaluate:evaluate", "Hide each kind in turn and measure what is found."),
    "backtest": ("backtest:backtest", "Replay labelled rows in time order."),
    "watch": ("watch:watch", "Check whether new rows still look like the training rows."),
    "info": ("models:info", "Show a model's columns, kinds, settings and promise."),
    "export": ("models:export", "Write a model as an ONNX graph."),
    "serve": ("serve:app", "Run the service: an API, and a console to judge alarms."),
    "mcp": ("serve:mcp", "Let an assistant read alarms and propose verdicts (MCP)."),
    "data": ("data:app", "List, find and download the real data sets."),
}


@cache
def load(name: str) -> Any:
    module, attribute = COMMANDS[name][0].split(":")
    found = getattr(import_module(f"eqsep.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        return get_command(found)
    one = typer.Typer(add_completion=False)
    one.command(name)(found)
    return get_command(one)


class _Commands(CommandGroup):
    """Commands that are loaded when they run; help lists placeholders."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        found: Any = super().resolve_command(ctx, args)  # fails for an unknown command
        name, _, words = found
        command = self.plain(load(name), ctx)
        current_project.set(None)
        label_column.set(None)
        project = None if name == "init" else _project_near(words)
        if project is None:
            _check_model_named(name, words)
        else:
            defaults = option_defaults(project, name, words)
            said = {*_not_used(command, words, defaults), *project.values.keys() - defaults.keys()}
            current_project.set(replace(project, overruled=said))
            ctx.default_map = {name: defaults | {"run": defaults}}  # of eqsep serve run
            words = with_model(project, name, words)
        return name, command, words


_COLUMN_OPTIONS = {"--label", "--time", "--group", "--entity"}  # a column that is used
_MODEL_IS_OUT = ("fit", "learn", "forget")  # the model is what these write
_TAKE_BOTH = ("score", "explain", "learn", "forget", "suspects", "test", "watch")
_MODEL_IS_FIRST = (*_TAKE_BOTH, "info", "export", "serve")


def _project_near(words: Sequence[str]) -> Project | None:
    """The project file next to a file that the command line names, or in this folder."""
    paths = [Path(word) for word in words if word and not word.startswith("-")]
    folders = [path if path.is_dir() else path.parent for path in paths if _exists(path)]
    for folder in dict.fromkeys([*folders, Path()]):
        if (folder / NAME).is_file():
            return Project.read(folder / NAME)
    return None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a long list of columns is not the name of a file
        return False


def option_defaults(project: Project, command: str, words: Sequence[str]) -> dict[str, Any]:
    given = project.options
    if "drop" in given:  # such columns are not learnt anyway
        said = [word for both in words for word in both.split("=", 1)]  # --time=day too
        columns = {f"--{key}": value for key, value in given.items()} | dict(pairwise(said))
        known = {option for param in load(command).params for option in param.opts}
        used = {columns.get(option) for option in known & _COLUMN_OPTIONS}
        given["drop"] = [name for name in given["drop"] if name not in used]
    for key in given.keys() & set(COLUMN_LISTS):
        given[key] = list(map(quoted_column, given[key]))
    if command in _MODEL_IS_OUT and project.model is not None:
        given["out"] = project.model
    if "--fdr" in words:  # another promise
        given.pop("false_alarm_rate", None)
    settled = set[str]()
    if "--like" in words:  # that model has settled them
        settled |= {"window", "unlabelled", "clean"}
    options = {word.split("=", 1)[0] for word in words}
    settled |= {"unlabelled"} if "--clean" in options else set()
    settled |= {"clean"} if "--unlabelled" in options else set()
    return {key: value for key, value in given.items() if key not in settled}


def _not_used(command: Any, words: Sequence[str], keys: Iterable[str]) -> set[str]:
    """The keys that a command does not take, or that its line sets by their options."""
    options = {word.split("=", 1)[0] for word in words}
    commands = (command, *getattr(command, "commands", {}).values())
    params = [param for one in commands for param in one.params]
    free = {p.name for p in params if not options & {*p.opts, *p.secondary_opts}}
    return set(keys) - free


def with_model(project: Project, command: str, words: list[str]) -> list[str]:
    """The words of a command line, with the model of the project first if they name none."""
    if project.model is None or command not in _MODEL_IS_FIRST or "--help" in words:
        return words
    if command == "serve" and words[:1] in (["replay"], ["token"]):
        return words
    return words if any(map(_names_model, _positional(words))) else [project.model, *words]


def _check_model_named(command: str, words: Sequence[str]) -> None:
    """Refuse a command line without a model where no project file names one."""
    if "--help" in words:
        return
    if command == "fit" and not any(word.startswith("--out") for word in words):
        raise UserError("Where does the model go? Pass --out MODEL, or run eqsep init first.")
    files = list(_positional(words))
    if command in _TAKE_BOTH and len(files) == 1 and not _names_model(files[0]):
        raise UserError(f"Which model? Pass its file before {files[0]}, or set model in {NAME}.")


def _positional(words: Sequence[str]) -> Iterator[str]:
    """The words that are not options or the values of `--out` and the like."""
    for before, word in pairwise(["", *words]):
        if not word.startswith("-") and before not in ("--out", "--like", "--shadow"):
            yield word


def _names_model(word: str) -> bool:
    from eqsep.cli.inputs import is_model  # slow

    return word.endswith(ENDING) or is_model(Path(word))


app = typer.Typer(cls=_Commands, no_args_is_help=True, pretty_exceptions_show_locals=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        Screen().print(f"eqsep {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = flag(  # noqa: ARG001  its callback shows it
        "--version", "Show the version and exit.", callback=_show_version, is_eager=True
    ),
    debug: bool = flag("--debug", "Show the traceback of every error."),
    more: bool = flag("--verbose", "Show the details of notes.", "-v"),
) -> None:
    """Learn the anomalies you have labelled, and flag the ones you have not."""
    debugging.set(debug)
    verbose.set(more)


for _name, (_, _help) in COMMANDS.items():  # to be listed; `_Commands` loads the real ones
    app.command(_name, help=_help)(lambda: None)
