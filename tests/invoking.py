"""Commands in the process of the test."""

from functools import cache

import click.testing
from typer.main import get_command

from eqsep.cli import COMMANDS, app, load


def all_commands():
    """Every command by its words: `("serve", "token")`, and `()` for `eqsep` itself."""
    found = {(): _command(app)}
    for name in COMMANDS:
        found[name,] = group = load(name)
        found |= {(name, word): each for word, each in getattr(group, "commands", {}).items()}
    return found


_command = cache(get_command)  # which takes longer than most commands


class CliRunner(click.testing.CliRunner):
    """Like `typer.testing.CliRunner`, but it builds the commands of an application only once."""

    def invoke(self, app, args=None, **options):
        return super().invoke(_command(app), args, **options)
