"""What commands say: errors and warnings on standard error, each as one sentence."""

import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches

import typer
from rich.console import Console

_IN_COMMANDS = (  # what the library says to those who write Python, and to those who do not
    (r"\bset false_alarm_rate=([\d.]*\d)", r"pass --false-alarm-rate \1"),
    (r"\bfalse_alarm_rate must\b", "--false-alarm-rate must"),
    (r"\bn_landmarks must\b", "--landmarks must"),
    (r"\bpass None where it is missing\b", "leave it empty where it is missing"),
    (r"\bwith None where a value is not known\b", "empty where a value is not known"),
    (r"\bPass y=None to learn\b", "Leave out --label to learn"),
    (r"\bSay which label is normal: normal=\.\.\.", "Say which label is normal: --normal LABEL"),
    (r"; TableEncoder\(max_new=1\) keeps ids\b", ""),
    (r", or give a task more: cpus_per_task=2\b", ""),
)
BROKEN_PIPE = 141  # as a shell says of a command that SIGPIPE has ended


class Screen(Console):
    """Standard output, or standard error; that nobody reads it any more is an error like others."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # Rich would end with exit code 1, which says something else here


@contextmanager
def errors_told() -> Iterator[None]:
    """Turn an error that the user can mend into its message and exit code 2."""
    try:
        yield
    except BrokenPipeError as error:  # whoever read what is printed has had enough
        sys.stdout = None  # or its flush at the end fails again
        raise typer.Exit(BROKEN_PIPE) from error
    except (ValueError, OSError, ImportError) as error:
        with suppress(BrokenPipeError):
            tell(f"Error: {sentence(error)}", style="red")
        raise typer.Exit(2) from error


@contextmanager
def warnings_told() -> Iterator[list[str]]:
    """Collect what is warned of, each message once, and say it at the end.

    The list holds it then; what is put into it meanwhile is said too.
    """
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    told = [in_commands(str(w.message)) for w in caught if issubclass(w.category, UserWarning)]
    messages[:] = dict.fromkeys([*told, *messages])
    for message in messages:
        tell(f"Warning: {message}", style="yellow")


def tell(message: str, *, style: str | None = None) -> None:
    """Say it on standard error."""
    console = Screen(stderr=True, highlight=False, markup=False)
    console.print(message, style=style, soft_wrap=True)


def sentence(error: Exception) -> str:
    """What an error says, in one line; of the system's errors, the file and what is the matter.

    Examples
    --------
    >>> sentence(FileNotFoundError(2, "No such file or directory", "rows.csv"))
    'rows.csv: no such file or directory.'
    """
    if isinstance(error, OSError) and error.strerror:
        what = error.strerror[0].lower() + error.strerror[1:]
        text = f"{error.filename}: {what}." if error.filename else f"{what.capitalize()}."
        if isinstance(error, PermissionError):
            text += " Change the rights to it, or pass another file."
        return text
    return in_commands(" ".join(str(error).split()))


def in_commands(message: str) -> str:
    """A message of the library, with options in place of parameters.

    Examples
    --------
    >>> in_commands("Add normal rows, or set false_alarm_rate=0.02.")
    'Add normal rows, or pass --false-alarm-rate 0.02.'
    """
    for python, option in _IN_COMMANDS:
        message = re.sub(python, option, message)
    return message


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
    return f" Did you mean {listed(alike)}?" if alike else ""


def counted(n: int, what: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {what}" + "s" * (n != 1)


def listed(names: Iterable[str], *, most: int = 12) -> str:
    """Names in quotes, the first ones where there are many.

    Examples
    --------
    >>> listed("abc", most=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    text = ", ".join(map(repr, names[:most]))
    return text if len(names) <= most else f"{text} and {len(names) - most:,} more"
