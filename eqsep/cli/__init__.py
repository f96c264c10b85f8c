"""The command `eqsep`: which commands there are. Each lives in a module of its own.

A command's module is imported when the command runs, so `eqsep --help` imports none of them.
"""

from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.main import get_command

from eqsep import __version__
from eqsep.cli.console import CommandGroup, Screen, debugging, project_path, verbose
from eqsep.cli.project import Project, check_model_named


class Command(NamedTuple):
    """Where a command is (a function or an app of a module) and what `eqsep --help` shows of it."""

    place: str
    help: str


COMMANDS = {
    "demo": Command("demo:demo", "Catch kinds of anomaly nobody has labelled, on built-in data."),
    "init": Command("init:init", "Look at a table and write eqsep.toml, the project file."),
    "fit": Command("fit:fit", "Learn normal rows and the labelled kinds of anomaly from files."),
    "score": Command("score:score", "Score rows: score, p_value, alarm and kind of each."),
    "explain": Command("explain:explain", "Show which columns drive the highest scores."),
    "learn": Command("learn:learn", "Teach a model more labelled rows."),
    "forget": Command("learn:forget", "Make a model unlearn rows, exactly."),
    "suspects": Command("learn:suspects", "List normal rows that may be anomalies, for review."),
    "merge": Command("models:merge", "Merge models into one that knows the rows of all."),
    "test": Command("test:test", "Measure a model on labelled rows: recall, names, false alarms."),
    "evaluate": Command("evaluate:evaluate", "Hide each kind in turn and measure what is found."),
    "backtest": Command("backtest:backtest", "Replay labelled rows in time order."),
    "watch": Command("watch:watch", "Check whether new rows still look like the training rows."),
    "info": Command("models:info", "Show a model's columns, kinds, settings and promise."),
    "export": Command("models:export", "Write a model as an ONNX graph."),
    "serve": Command("serve:app", "Run the service: an API, and a console to judge alarms."),
    "mcp": Command("serve:mcp", "Let an assistant read alarms and propose verdicts (MCP)."),
    "data": Command("data:app", "List, find and download the real data sets."),
    "theory": Command("theory:app", "Closing numbers, VC dimensions and shattering."),
}


@cache
def load(name: str) -> Any:
    """The command of this name, from its module."""
    module, attribute = COMMANDS[name].place.split(":")
    found = getattr(import_module(f"eqsep.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        return get_command(found)
    one = typer.Typer(add_completion=False)
    one.command(name)(found)
    return get_command(one)


class _Commands(CommandGroup):
    """Commands that are loaded when they run; help lists placeholders."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        found: Any = super().resolve_command(ctx, args)  # fails where there is no such command
        name, _, words = found
        command = self.plain(load(name), ctx)
        project_path.set("")
        project = None if name == "init" else Project.found(words)
        if project is None:
            check_model_named(name, words)
        else:
            project_path.set(str(project.path))
            defaults = project.defaults(name, words)
            ctx.default_map = {name: defaults | dict.fromkeys(("run",), defaults)}
            words = project.arguments(name, words)
        return name, command, words


app = typer.Typer(cls=_Commands, no_args_is_help=True, pretty_exceptions_show_locals=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        Screen().print(f"eqsep {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[  # noqa: ARG001  its callback shows it
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of every error.")
    ] = False,
    more: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the details of notes.")
    ] = False,
) -> None:
    """Learn the anomalies you have labelled, and flag the ones you have not."""
    debugging.set(debug)
    verbose.set(more)


def _placeholder() -> None:
    """Stand for a command in the list of commands; `_Commands` loads the real one to run it."""


for _name, _command in COMMANDS.items():
    app.command(_name, help=_command.help)(_placeholder)
