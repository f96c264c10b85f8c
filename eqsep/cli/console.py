"""What commands print; errors and warnings get the hints of the command (`HINTS`) for Python's."""

import os
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from typer.core import TyperGroup

from eqsep.cli.project import COLUMN_LISTS, KEYS, NAME, Project, current_project, shown_kind
from eqsep.errors import EqsepWarning, Message, Note, ParameterError, UserError, joined, visible
from eqsep.files import ENDING_SIGNALS
from eqsep.progress import reported_to

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from eqsep.evaluation import Interval, Share

debugging = ContextVar("debugging", default=False)  # whether every error keeps its traceback
verbose = ContextVar("verbose", default=False)  # whether notes come with their details
BROKEN_PIPE = 141  # the exit code that shells give a command ended by SIGPIPE
FAULT = 70  # EX_SOFTWARE of BSD, as exit code 1 has another meaning here
_LOOK = 1.0  # seconds after which a log looks whether a line is due
_MINUTE = 60.0  # seconds
_WIDTH = 30  # characters of a bar
_USAGE_ERROR: Any = typer.BadParameter.__base__  # of all mistakes in a command line
_UNLIMITED = 10_000  # characters of a line in a file or a pipe: tables are as wide as they need be
_MAX_WORD_LENGTH = 1000  # characters: longer ones are shown in part
TERMINATED = [128 + number for number in ENDING_SIGNALS]  # exit codes after these signals


class Screen(Console):
    """Standard output, or standard error. A closed pipe is an error like any other."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)
        if not (self.file.isatty() or "COLUMNS" in os.environ or "width" in options):
            self.width = _UNLIMITED

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """What is shown: of control characters only those of Rich's own styles."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # Rich would end with exit code 1, which has another meaning here

    def print_line(self, text: object) -> None:
        """Print text as it is: not wrapped, and without markup."""
        self.print(text, markup=False, soft_wrap=True)

    def print_lines(self, named: Mapping[str, str], *, width: int = 11) -> None:
        for name, text in named.items():
            self.print_line(f"{name:{width}} {text}")


def table(
    columns: Sequence[str],
    rows: Iterable[Iterable[RenderableType]],
    *,
    left: int = 1,
    wrapped: int = 1,
    padding: int = 0,
) -> "Table":
    """A table with its first columns flush left, the others flush right; the first may wrap."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=SIMPLE_HEAD, padding=(0, padding), pad_edge=padding == 0)
    for i, column in enumerate(columns):
        justify: Any = "left" if i < left else "right"
        shown.add_column(
            Text(column),
            justify=justify,
            no_wrap=i >= wrapped,
            overflow="fold" if i < wrapped else "ellipsis",  # long words go on in the next line
            vertical="bottom",
        )
    for row in rows:
        shown.add_row(*row)
    return shown


def interval(measured: "Share | Interval", digits: str = ".2f") -> "Text":
    """A measured value and the ends of its interval, in this format; a dash if there is none."""
    from rich.text import Text  # no markup: brackets stay

    if not getattr(measured, "total", True):
        return Text("–")
    value, low, high = (format(n, digits) for n in (measured.value, measured.low, measured.high))
    return Text(f"{value} [{low}, {high}]")


class CommandGroup(TyperGroup):
    """Commands whose help shows flags without a type, and whose errors are one sentence each."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return self.plain(super().get_command(ctx, cmd_name), ctx)

    def get_params(self, ctx: Any) -> Any:
        return _without_flag_types(super().get_params(ctx))

    def plain(self, command: Any, ctx: Any) -> Any:
        """The command, whose help shows flags without a type."""
        if command is not None:
            _without_flag_types(command.get_params(ctx))
        return command

    def invoke(self, ctx: Any) -> Any:
        with print_errors():
            return super().invoke(ctx)


def _without_flag_types(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False):  # arguments have no such attribute
            param.metavar = ""
    return params


@contextmanager
def print_errors() -> Iterator[None]:
    """End with exit code 2 after an error that the user can mend; others are faults of eqsep."""
    try:
        yield
    except BrokenPipeError as error:  # whoever read what is printed has had enough
        sys.stdout = None  # or its flush at the end fails again
        raise typer.Exit(BROKEN_PIPE) from error
    except SystemExit as end:
        if isinstance(end.code, int) and end.code in TERMINATED:
            os._exit(end.code)  # the interpreter would abort on a thread that waits for the input
        raise
    except (typer.Exit, typer.Abort):
        raise
    except _USAGE_ERROR as error:
        project, param = current_project.get(), getattr(error, "param", None)
        if type(error).__name__ == "MissingParameter" and getattr(param, "name", "") == "label":
            watch = " Rows without labels are for eqsep watch." * (error.ctx.info_name == "test")
            error.message = f"Name the column of labels, or set label in {NAME}.{watch}"
        if project is None or param is None or not project.gives(param.name):
            raise
        _print_error(UserError(f"{param.opts[0]}: {error.message.rstrip('.')}."), is_fault=False)
        raise typer.Exit(2) from error
    except Exception as error:
        if debugging.get() and not isinstance(error, MemoryError):
            raise
        is_fault = not isinstance(error, UserError | OSError | MemoryError)
        with suppress(BrokenPipeError):
            _print_error(error, is_fault=is_fault)
        raise typer.Exit(FAULT if is_fault else 2) from error


def _print_error(error: Exception, *, is_fault: bool) -> None:
    if is_fault:
        print_stderr("".join(traceback.format_exception(error)))
        print_stderr(
            "This is a bug in eqsep, not a mistake in your input: please report it.", style="red"
        )
        return
    if isinstance(error, MemoryError):
        error = UserError("Not enough memory: use fewer rows or columns.")
    text, project = sentence(error), current_project.get()
    if project is not None:
        text = joined(text, _source(project, text))
    print_stderr(f"Error: {text}", style="red")
    if project is not None and str(project.path) not in text:
        print_stderr(f"Note: some options come from {project.path}.")


def _source(project: Project, error: str) -> str:
    """Which key sets the value that an error is about, the first in quotes, unless it says so."""
    value = re.search(r"'([^']+)'", error)
    if value is None or project.path.name in error:
        return ""
    for key, given in project.values.items():
        if project.gives(key) and value[1] in (given if isinstance(given, list) else [given]):
            return f"{value[0]} comes from {project.named(key)}."
    return ""


@contextmanager
def print_warnings(**fields: str) -> Iterator[list[Warning]]:
    """Collect warnings, and print each once at the end, its hint with these fields; yield them."""
    printed: list[Warning] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield printed
    finally:  # notes even before an error: they may be the reason
        found = [w.message for w in caught if issubclass(w.category, UserWarning)]
        for one in found:
            getattr(one, "fields", {}).update(fields)
        for note in dict.fromkeys(sentence(m) for m in found if isinstance(m, Note)):
            print_stderr(f"Note: {note}")
    messages: dict[Any, Warning] = {}
    for one in found:
        if isinstance(one, Warning) and not isinstance(one, Note):
            # Fits to parts of the rows, with other figures, say again which columns they drop.
            dropped = getattr(one, "fields", {}).get("dropped")
            messages.setdefault(dropped or sentence(one), one)
    printed[:] = messages.values()
    for warning in printed:
        text = joined(f"Warning: {sentence(warning)}", see_section(type(warning)))
        print_stderr(text, style="yellow")


def see_section(category: type[Warning]) -> str:
    """Where the documentation explains a class of warnings; empty if it has no name of its own."""
    if category is EqsepWarning or not issubclass(category, EqsepWarning):
        return ""
    words = re.findall("[A-Z][a-z]+", category.__name__.removesuffix("Warning"))
    return f"See docs/troubleshooting.md#{'-'.join(words).lower()}"


class Job:
    """The work of a command: its phase, what share of that is done, and the time left."""

    def __init__(
        self, command: str, first: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.command, self._clock, self._lock = command, clock, Lock()
        self._begun = self._logged = clock()
        self.phase(first)

    def phase(self, name: str, total: float | None = None, unit: str = "") -> None:
        """Begin another phase, of so many units where that is known."""
        self.name, self.note = name, ""  # the note is shown with the phase
        self.expect(total, unit)

    def expect(self, total: float | None, unit: str = "") -> None:
        """Begin to count the present phase, of so many units."""
        with self._lock:
            self.total, self.unit, self.done = total, unit, 0.0
            self._counting_since = self._clock()

    def advance(self, n: float = 1, unit: str = "") -> None:
        """Count what is done; nothing where the phase is counted in another unit."""
        with self._lock:
            if unit == self.unit:
                self.done += n

    @property
    def share(self) -> float | None:
        """What is done of the phase, where it is known how much there is to do."""
        return min(round(self.done / self.total, 9), 1.0) if self.total else None

    @property
    def seconds(self) -> float:
        return self._clock() - self._begun

    @property
    def state(self) -> str:
        """The note, the share and the time left, as far as they are known."""
        share, parts = self.share, [self.note] if self.note else []
        if share is not None:
            parts.append(f"{int(100 * share)} %")
        if share and share < 1:
            parts.append(_time_left((self._clock() - self._counting_since) * (1 / share - 1)))
        return ", ".join(parts)

    @property
    def line(self) -> str:
        """All of it, for a log."""
        return f"{self.command}: {', '.join(filter(None, [self.name, self.state]))}"

    def is_line_due(self) -> bool:
        """Whether a minute has passed since the start, or since this was last so."""
        if self._clock() - self._logged < _MINUTE:
            return False
        self._logged = self._clock()
        return True


def _time_left(seconds: float) -> str:
    if seconds < 1.5 * _MINUTE:
        return f"about {max(round(seconds), 1)} s left"
    if seconds < 90 * _MINUTE:
        return f"about {seconds / _MINUTE:.0f} min left"
    return f"about {seconds / _MINUTE / 60:.1f} h left"


@contextmanager
def progress(
    command: str, first: str, *, prints: bool = False, clock: Callable[[], float] = time.monotonic
) -> Iterator[Job]:
    """A job that is shown on standard error: by a bar on a terminal, else a line a minute."""
    job, console = Job(command, first, clock=clock), Screen(stderr=True)
    shown: AbstractContextManager[Any] = nullcontext()
    if not console.file.isatty() or console.is_dumb_terminal:
        shown = _logged(job)
    elif not (prints and sys.stdout.isatty()):
        shown = _drawn(job, console)
    with reported_to(job), shown:
        yield job


@contextmanager
def _logged(job: Job) -> Iterator[None]:
    ended = Event()

    def write() -> None:
        while not ended.wait(_LOOK):
            if job.is_line_due():
                with suppress(OSError):  # nobody reads it any more
                    print_stderr(job.line)

    writer = Thread(target=write, daemon=True, name="eqsep progress")
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def _drawn(job: Job, console: Screen) -> AbstractContextManager[Any]:
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text

    spinner = Spinner("dots")

    def draw() -> Table:
        share, passed = job.share, timedelta(seconds=int(job.seconds))
        bar = ProgressBar(total=1.0, completed=share or 0.0, pulse=share is None, width=_WIDTH)
        drawn = Table.grid(padding=(0, 1))
        drawn.add_row(spinner, Text(job.name), bar, Text(job.state), Text(str(passed)))
        return drawn

    # Standard output is not redirected: Rich would write it to standard error.
    return Live(console=console, get_renderable=draw, transient=True, redirect_stdout=False)


def opt(default: Any, metavar: str | None, help: str, *names: str, **more: Any) -> Any:
    """An option with a value, as the default of a parameter; `...` in an annotation."""
    return typer.Option(default, *names, metavar=metavar, help=help, **more)


def arg(default: Any, metavar: str, help: str) -> Any:
    """An argument of a command, as the default of a parameter."""
    return typer.Argument(default, metavar=metavar, help=help)


def flag(name: str, help: str, *names: str, default: Any = False, **more: Any) -> Any:
    return typer.Option(default, name, *names, help=help, **more)


def print_stderr(message: str, *, style: str | None = None) -> None:
    Screen(stderr=True, markup=False).print(message, style=style, soft_wrap=True)


def print_written(text: str, out: str) -> None:
    """Print what was written to a file; on standard error if that is standard output."""
    if out == "-":
        print_stderr(text)
    else:
        Screen().print_line(f"{text}: {out}")


def sentence(message: Exception | str) -> str:
    """What an error or a warning says to users of the command, in one line."""
    if isinstance(message, OSError) and message.strerror:
        what = message.strerror[0].lower() + message.strerror[1:]
        text = f"{message.filename}: {what}." if message.filename else f"{what.capitalize()}."
        if isinstance(message, PermissionError):
            text += " Change its permissions, or pass another file."
        return text
    text = in_command(message) if isinstance(message, Message) else str(message)
    text = text.replace("olumn ''", "olumn '' (no name)")
    return " ".join(
        f"{word[:100]}…" if len(word) > _MAX_WORD_LENGTH else word for word in text.split()
    )


def format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {shown_kind(label)}" for label, n in counts.items())


_LOOK_AT = "eqsep score --keep COLUMN on the training files, with the label column"
_HIGH_THRESHOLD = (
    "To see why, run {look}, and look at the normal rows with the highest scores. Correct wrong "
    "labels among them. Add normal rows or columns that show anomalies, or leave out others "
    "(--drop)"
)
HINTS = {  # by topic, made of the message's fields
    "CountingColumnWarning": "If it only counts or names rows, leave it out: --drop {column!r}.",
    "DateColumnWarning": "Unless it matters, leave it out: --drop {column!r}.",
    "DecimalCommaWarning": "If they are names, say so: --categorical {column!r}{others}.",
    "DroppedColumnWarning": "If these are numbers or dates stored as text, convert them.",
    "LeakingColumnWarning": "If it is known only with the label, leave it out: --drop {column!r}.",
    "NewDateWarning": "Fit to rows from that period, or without the column (--drop {column!r}).",
    "UnreadableError": "Correct the value, or leave it empty where it is missing.",
    "missing_columns": "Add them, empty where a value is not known.",
    "no_column": "If these are numbers or dates as text, convert them, with decimal points.",
    "unlike_batches": "Pass files of one table, empty where a value is not known.",
    "no_label": "Leave out --label to learn all rows as normal, or check why no row has one.",
    "no_normal_label": "Say which label is normal, --normal LABEL, or {other}",
    "numbers_for_names": "Say which label is normal, --normal 0 for example, or write names.",
    "one_label": "Say which label is normal: --normal {label}, if these rows are.",
    "wrong_normal_label": "Correct --normal, or {other}",
    "two_normal_labels": "Call them by one name; or say which one is normal, --normal {label} for "
    "example, if the others are kinds of anomaly.",
    "which_normal": "Name the normal one: --normal {label}, if that is it.",
    "DoubtedThresholdWarning": "eqsep suspects lists them: label the anomalies among them.",
    "HighThresholdWarning": (
        f"{_HIGH_THRESHOLD}, or allow more false alarms: --false-alarm-rate {{rate:g}}."
    ),
    "high_at_any_rate": f"{_HIGH_THRESHOLD}.",
    "contrary_trust": "The --like model settled this, as it has no labelled anomalies. Fit it "
    "again with some, or leave out --unlabelled.",
    "higher_rate": "Add {more} and fit again, or pass --false-alarm-rate {rate:g}.",
    "higher_rate_or_no_confidence": "Add {more} and fit again, pass --false-alarm-rate "
    "{rate:g}, or leave out --confidence: the rate can be promised on average.",
    "no_fdr_groups": "Leave out --fdr, or fit without --group.",
    "no_fdr_time": "Leave out --fdr, or fit without --time.",
    "no_fdr_groups_time": "Leave out --fdr, or fit without --group and --time.",
    "none_selected": "Add normal rows, pass fewer rows at a time, or allow a higher --fdr.",
    "short_memory": "Add normal rows, or allow a higher --fdr.",
    "DependentRowsWarning": "Name the column of runs, machines or days with --group {group}, or "
    "that of times with --time {time}. If the rows are independent and only sorted, the rate "
    "holds: shuffle them to end this warning.",
    "DriftWarning": "Fit again as rows come, or leave out columns that do not matter with --drop.",
    "growing_column": "Leave it out: --drop {column!r}, and fit again.",
    "TimeOrderWarning": "Name the column of runs or machines with --group COLUMN.",
    "lost_groups": "They are not in the files: this model can learn and forget only in Python.",
    "no_windows": "Leave out --window.",
    "unknown_runs": "They are not in the files: this model can score only in Python.",
    "windows_on_cluster": "Leave out --ray.",
    "RepeatedRowsWarning": "To learn them twice, pass --again.",
    "picked_rows": "Fit again with these rows among the others; or, if they were picked because "
    "they raised an alarm, pass --judged.",
    "MissingDataError": "Or name a folder{where}: --data-home FOLDER, or {variable}=FOLDER.",
    "WorkerDiedError": "Divide the rows into smaller files.",
    "mixed_column": "Correct it, drop the column (--drop), or read it as text (--categorical).",
    "mixed_column_or_missing": "Correct it, drop the column (--drop), or read it as text "
    "(--categorical). If that is a missing value, pass --missing {word!r}.",
    "mixed_columns": "Correct them, drop the columns (--drop), or read them as text "
    "(--categorical). If these are missing values, pass --missing {word}.",
    "missing_names": "To keep a word as a name, pass --categorical {column!r}{others}.",
    "none_is_name": "If it is a missing value, pass --missing {word!r}.",
    "repeated_names": "Rename them, or pass --no-header if the first line holds values.",
    "ragged_row": "Correct it, or set such rows aside with --bad-rows FILE.",
    "damaged_watch": "Pass another --state file, which is then created.",
    "lone_cost": "Pass both --cost-alarm and --cost-miss, or neither.",
    "no_first_model": "Pass more rows, a shorter --delay, or a lower --first.",
}
_OPTION = re.compile(r"(pass |as |[Ll]eave out )?--([a-z-]+)(?: (\{[^}]*\}|[A-Z]+\b|\d+\b))?")
_SAID = re.compile(r"--([a-z-]+)(?: ('[^']*'))?")
OPTIONS = {"groups": "--group", "n_landmarks": "--landmarks", "y": "--label"}  # named otherwise


_WORDS = (
    "All words for a missing value, in any case: {words}; --missing changes them, and "
    "--categorical COLUMN reads them as names."
)
DETAILS = dict.fromkeys(("missing_words", "missing_names"), _WORDS)  # shown with --verbose


def in_command(message: Message) -> str:
    """What the command says where the library gives this message."""
    project = current_project.get()
    drafted = {} if project is None else project.drafted
    text, hint = message.message, message.hint
    fields = {key: drafted.get(key, "COLUMN") for key in ("group", "time")}
    fields |= {"look": _LOOK_AT} | message.fields
    if isinstance(message, ParameterError):
        name = option(fields["parameter"])
        text = f"{name} must be {fields['expected']}, got {fields['got']!r}."
    if project is not None:
        text = _SAID.sub(partial(_as_said, project), text)
    if message.topic in HINTS:
        hint = for_project(HINTS[message.topic]).format_map(fields)
    detail = for_project(DETAILS.get(message.topic, "")) if verbose.get() else ""
    return joined(message.place and f"{message.place}:", text, hint, detail.format_map(fields))


def for_project(hint: str) -> str:
    """A hint with keys of the project file in use, if any, for the options that it names."""
    project = current_project.get()
    return hint if project is None else _OPTION.sub(partial(_as_key, project), hint)


def _as_key(project: Project, option: re.Match[str]) -> str:
    """An option in a hint, with the words around it, as a key of the project file."""
    before, key, value = option[1] or "", option[2].replace("-", "_"), option[3]
    if key.startswith("no_"):
        key, value = key[3:], "false"
    if key not in KEYS or (before.lower() == "leave out " and key not in project.values):
        return option[0]
    where = f"in {project.path.name}"
    if value is None:
        return f"{before}{key} {where}"
    if key in (*COLUMN_LISTS, "missing"):
        return f"add {value} to {key} {where}"
    value = f'"{value}"' if str in KEYS[key] else value
    return f"{before.replace('pass', 'set')}{key} = {value} {where}"


def _as_said(project: Project, option: re.Match[str]) -> str:
    """An option and its value in a message as the key of the project file that set it, if so."""
    key = option[1].replace("-", "_")
    return project.named(key, option[2] or "") if project.gives(key) else option[0]


def option(parameter: str) -> str:
    return OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")
