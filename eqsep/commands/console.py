"""The console: what commands print, and errors and warnings on standard error, each a sentence."""

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from eqsep.commands.wording import in_command
from eqsep.errors import Message, Note, UserError, quoted, visible

debugging = ContextVar("debugging", default=False)  # whether every error keeps its traceback
BROKEN_PIPE = 141  # as a shell says of a command that SIGPIPE has ended
FAULT = 70  # of the software: EX_SOFTWARE of BSD, as 1 says something else here
_LONGEST_WORD = 1000  # characters: longer ones are shown in part
TERMINATED = 143  # likewise of SIGTERM


class Screen(Console):
    """Standard output, or standard error; that nobody reads it any more is an error like others."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """What is shown; nothing of it is a command to the terminal but Rich's own styles."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # Rich would end with exit code 1, which says something else here


@contextmanager
def errors_told() -> Iterator[None]:
    """Turn an error that the user can mend into its message and exit code 2.

    Any other is a fault of the software: its traceback is shown, and it has an exit code of its
    own. With `eqsep --debug …` errors of users keep their traceback too.
    """
    try:
        yield
    except BrokenPipeError as error:  # whoever read what is printed has had enough
        sys.stdout = None  # or its flush at the end fails again
        raise typer.Exit(BROKEN_PIPE) from error
    except SystemExit as end:
        if end.code == TERMINATED:  # all is in order, but for a thread that waits for the input:
            os._exit(TERMINATED)  # the interpreter would abort on it
        raise
    except (UserError, OSError) as error:
        if debugging.get():
            raise
        with suppress(BrokenPipeError):
            tell(f"Error: {sentence(error)}", style="red")
        raise typer.Exit(2) from error
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except MemoryError as error:
        with suppress(BrokenPipeError):
            tell("Error: There is not enough memory. Take fewer rows or columns.", style="red")
        raise typer.Exit(2) from error
    except Exception as error:
        if debugging.get():
            raise
        with suppress(BrokenPipeError):
            tell("".join(traceback.format_exception(error)))
            tell("This is a fault of eqsep, not of your input: please report it.", style="red")
        raise typer.Exit(FAULT) from error


@contextmanager
def warnings_told() -> Iterator[list[str]]:
    """Collect what is warned of, each message once, and say it at the end.

    The list holds it then; what is put into it meanwhile is said too.
    """
    messages: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield messages
    finally:  # notes, even before an error, of which they may be the reason
        told = [w.message for w in caught if issubclass(w.category, UserWarning)]
        for note in dict.fromkeys(sentence(m) for m in told if isinstance(m, Note)):
            tell(f"Note: {note}")
    warned = [sentence(m) for m in told if not isinstance(m, Note)]
    messages[:] = dict.fromkeys([*warned, *messages])
    for message in messages:
        tell(f"Warning: {message}", style="yellow")


@contextmanager
def progress(first: str) -> Iterator[Callable[[str], None]]:
    """What is being done, on the screen, where there is one; it is gone in the end."""
    console = Screen(stderr=True)
    if not console.is_terminal:
        yield lambda text: None  # noqa: ARG005
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(first, total=None)
        yield lambda text: bar.update(task, description=text)


def tell(message: str, *, style: str | None = None) -> None:
    """Say it on standard error."""
    console = Screen(stderr=True, markup=False)
    console.print(message, style=style, soft_wrap=True)


def sentence(message: Exception | str) -> str:
    """What an error or a warning says to users of the command, in one line.

    Of the system's errors it is the file and what is the matter.

    Examples
    --------
    >>> from eqsep.errors import ParameterError
    >>> sentence(FileNotFoundError(2, "No such file or directory", "rows.csv"))
    'rows.csv: no such file or directory.'
    >>> sentence(ParameterError("n_landmarks", expected="at least 2", got=1))
    '--landmarks must be at least 2, got 1.'
    """
    if isinstance(message, OSError) and message.strerror:
        what = message.strerror[0].lower() + message.strerror[1:]
        text = f"{message.filename}: {what}." if message.filename else f"{what.capitalize()}."
        if isinstance(message, PermissionError):
            text += " Change the rights to it, or pass another file."
        return text
    text = in_command(message) if isinstance(message, Message) else str(message)
    return " ".join(
        f"{word[:100]}…" if len(word) > _LONGEST_WORD else word for word in text.split()
    )


def meant(absent: Sequence[str], there: Sequence[str]) -> str:
    """A question, where names that are not there are nearly so; else nothing.

    Examples
    --------
    >>> meant(["temperature", "weight"], ["Temperature", "shape"])
    " Did you mean 'Temperature'?"
    >>> meant(["qualty"], ["shape", "quality"])
    " Did you mean 'quality'?"
    >>> meant(["shape,size"], ["shape", "size"])
    ' Write the option once for each: it takes one name.'
    """
    if any("," in name and set(map(str.strip, name.split(","))) <= set(there) for name in absent):
        return " Write the option once for each: it takes one name."
    folded = [name.strip().casefold() for name in there]
    near: set[str] = set()
    for name in absent:
        wanted = name.strip().casefold()
        near |= {wanted} if wanted in folded else set(get_close_matches(wanted, folded, cutoff=0.7))
    alike = [name for name, text in zip(there, folded, strict=True) if text in near]
    return f" Did you mean {quoted(alike)}?" if alike else ""


def counted(n: int, what: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {what}" + "s" * (n != 1)


def told_counts(counts: Mapping[str, int]) -> str:
    """How many rows there are of each label, of which some may be numbers.

    Examples
    --------
    >>> told_counts({"normal": 1200, "leak": 3}), told_counts({"0": 1200, "1": 3})
    ('1,200 normal, 3 leak', '1,200 labelled 0, 3 labelled 1')
    """
    return ", ".join(
        f"{n:,} {'labelled ' * label.lstrip('-').replace('.', '').isdigit()}{label}"
        for label, n in counts.items()
    )
