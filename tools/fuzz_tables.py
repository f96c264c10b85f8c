"""Hostile tables, made from a seed: the command answers or says one sentence, and never hangs.

    python tools/fuzz_tables.py                     5,000 tables
    python tools/fuzz_tables.py --tables 200 --seed 7

Each table is written in some dialect, damaged in some way, and given to `eqsep score`; every tenth
is fitted to as well. Some are spreadsheets, some unpack to hundreds of times their size, some are
cut, replaced or removed while they are read, may not be read, or are no files at all. A traceback,
an exit code of a fault, a table that takes too long or too much memory, and an output that is half
written are printed with the seed that makes them again, and end the run with 1.
"""

import argparse
import io
import json
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from typer.testing import CliRunner

from eqsep import Detector
from eqsep.cli import app
from eqsep.errors import UserError
from eqsep.io import read_table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from hostile_places import PLACES
from hostile_tables import gzip_bomb, spreadsheet

COLUMNS = ("amount", "count", "day", "place", "kind")
SECONDS = 30  # after which a table hangs
MOST_MEMORY = 400  # MB that a command may take beside what it had
ALLOWED = (0, 2)  # exit codes: answered, or refused with a sentence
ODD_VALUES = (
    *("", " ", "n/a", "-", "?", "NaN", "inf", "-inf", "1e999", "0x10", "1_000", "٣", "½"),
    *("1.234,5", "1,234.5", "1 234", "1'234", "12:30", "31.12.2024", "12/31/2024", "00:00:61"),
    *("0000-00-00", "2024-02-30", "9999-12-31T23:59:59Z", "true", "007", "=1+1", "\x1b[31m"),
    *('"', '""', "'", "a\nb", "a\r\nb", "\ufeff", "\u2028", "\0", "x" * 5000, "9" * 400),
)
DELIMITERS = (",", ";", "\t", "|", " ", "  ", "::", "")
ENDS = ("\n", "\r\n", "\r", "\n\n", "")
ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "cp037")
TYPES = (
    *(pa.binary(4), pa.large_binary(), pa.binary(), pa.large_string(), pa.string_view()),
    *(pa.decimal128(9, 2), pa.float16(), pa.int8(), pa.uint64(), pa.null(), pa.bool_()),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.duration("s")),
    *(pa.timestamp("ns", "Asia/Tokyo"), pa.list_(pa.int8()), pa.struct({"a": pa.int8()})),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.binary())),
)


def rows_of(rng: np.random.Generator, n: int) -> list[list[str]]:
    """Plain rows."""
    return [
        [
            f"{rng.normal(50, 9):.2f}",
            str(rng.integers(1, 99)),
            f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}",
            str(rng.choice(["Bern", "Köln", "Rom"])),
            str(rng.choice(["normal", "normal", "normal", "fraud"])),
        ]
        for i in range(n)
    ]


def text_table(rng: np.random.Generator) -> bytes:
    """A text file of odd values in an odd dialect."""
    rows = [list(COLUMNS), *rows_of(rng, int(rng.integers(0, 40)))]
    for _ in range(int(rng.integers(0, 3))):
        row = rows[int(rng.integers(len(rows)))]
        if row:
            row[int(rng.integers(len(row)))] = str(rng.choice(ODD_VALUES))
    for _ in range(int(rng.integers(0, 3)) if rng.random() < 0.2 else 0):
        row = rows[int(rng.integers(len(rows)))]
        row[:] = row[: int(rng.integers(0, 6))] * int(rng.integers(1, 3))
    if rng.random() < 0.2:
        rows = rows[1:]
    if rng.random() < 0.2:
        rows = [["A title"], [], *rows]
    mark = str(rng.choice(DELIMITERS)) if rng.random() < 0.6 else ","
    end = str(rng.choice(ENDS)) if rng.random() < 0.4 else "\n"
    quoted = rng.random() < 0.3
    lines = [mark.join(f'"{v}"' if quoted else v for v in row) for row in rows]
    encoding = str(rng.choice(ENCODINGS)) if rng.random() < 0.4 else "utf-8"
    return end.join([*lines, ""]).encode(encoding, errors="replace")


def json_table(rng: np.random.Generator) -> bytes:
    """JSON lines with values of all types, some nested deep."""
    odd: list[Any] = [
        None,
        True,
        [],
        {},
        [1],
        {"a": 1},
        2**70,
        1e308,
        "",
        "n/a",
        -0.0,
        "2024-01-01",
    ]
    lines = []
    for row in rows_of(rng, int(rng.integers(1, 30))):
        made: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
        made["amount"] = float(made["amount"])
        if rng.random() < 0.1:
            made[str(rng.choice(COLUMNS))] = odd[int(rng.integers(len(odd)))]
        if rng.random() < 0.05:
            made.pop(str(rng.choice(COLUMNS)))
        lines.append(json.dumps(made))
    if rng.random() < 0.1:
        deep = int(rng.choice([3, 900, 3000, 100_000]))
        lines.append('{"amount": ' + "[" * deep + "]" * deep + "}")
    return "\n".join(lines).encode()


def parquet_table(rng: np.random.Generator) -> bytes:
    """Parquet with a column of an odd type, full or without a value."""
    rows = rows_of(rng, int(rng.integers(1, 30)))
    columns: dict[str, Any] = {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}
    columns["amount"] = [float(value) for value in columns["amount"]]
    kind = TYPES[int(rng.integers(len(TYPES)))]
    columns[str(rng.choice(COLUMNS))] = pa.nulls(len(rows), kind)
    out = io.BytesIO()
    try:
        parquet.write_table(pa.table(columns), out)
    except pa.ArrowException:
        return b"PAR1"
    return out.getvalue()


def sheet_table(rng: np.random.Generator) -> bytes:
    """A spreadsheet."""
    return spreadsheet([list(COLUMNS), *rows_of(rng, int(rng.integers(1, 20)))], rng)


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The same with some bytes changed, lost or repeated."""
    made = bytearray(data)
    for _ in range(int(rng.integers(0, 4)) if rng.random() < 0.3 else 0):
        at = int(rng.integers(len(made) + 1))
        match int(rng.integers(4)):
            case 0:
                made[at : at + 1] = bytes([int(rng.integers(256))])
            case 1:
                del made[at:]
            case 2:
                made[at:at] = made[: int(rng.integers(200))]
            case 3:
                made[at:at] = bytes([int(rng.integers(256))]) * int(rng.integers(1, 200_000))
    return bytes(made)


MAKERS = {
    "csv": (text_table, 0.76),
    "jsonl": (json_table, 0.11),
    "parquet": (parquet_table, 0.08),
    "xlsx": (sheet_table, 0.04),
    "csv.gz": (gzip_bomb, 0.01),
}


def table_of(seed: int) -> tuple[str, bytes]:
    """The ending and the bytes of the table of a seed."""
    rng = np.random.default_rng(seed)
    ending = str(rng.choice(list(MAKERS), p=[share for _, share in MAKERS.values()]))
    data = MAKERS[ending][0](rng)
    if ending == "csv":
        ending = str(rng.choice(["csv", "csv", "tsv", "txt"]))
    return ending, damaged(data, rng)


def peak_memory(*, anew: bool = False) -> int:
    """The most MB that this process has held, where the system tells; `anew` counts from now on."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def attempt(words: list[str], place: AbstractContextManager[None]) -> tuple[int, str]:
    """The exit code of a command, and what it said; 99 where it took too long, 97 too much memory.

    Meanwhile what it reads is in some `place`.
    """

    def late(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    before = peak_memory(anew=True)
    with place:
        signal.alarm(SECONDS)
        try:
            result = CliRunner().invoke(app, words)
        finally:
            signal.alarm(0)
    if peak_memory() - before > MOST_MEMORY:
        return 97, f"{peak_memory() - before} MB"
    fault = result.exception is not None and not isinstance(result.exception, SystemExit)
    code = 99 if isinstance(result.exception, TimeoutError) else 98 if fault else result.exit_code
    said = result.stderr if not fault else f"{type(result.exception).__name__}: {result.exception}"
    return code, said.strip()[-400:]


def fuzz(seeds: range, folder: Path) -> tuple[Counter[int], list[str]]:
    """How often the commands ended with each code, and what went wrong."""
    rng = np.random.default_rng(0)
    good = rows_of(rng, 300)
    names = COLUMNS[:-1]
    table = {name: [row[i] for row in good] for i, name in enumerate(names)}
    numbers = {name: [float(value) for value in table[name]] for name in ("amount", "count")}
    days = {"day": np.array(table["day"], dtype="M8[us]")}
    model = folder / "model.eqsep"
    kinds = [row[-1] for row in good]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = Detector(bandwidth=1.0, n_landmarks=20, random_state=0)
        detector.fit(pa.table(table | numbers | days), kinds).save(model)
    codes: Counter[int] = Counter()
    wrong = []
    for seed in seeds:
        ending, data = table_of(seed)
        path, out = folder / f"table.{ending}", folder / "out"
        commands = [["score", str(model), str(path), "--out", str(out / "scores.csv")]]
        if seed % 10 == 0:
            new = ["--landmarks", "20", "--out", str(out / "new.eqsep")]
            commands.append(["fit", str(path), "--label", "kind", *new])
        rng = np.random.default_rng([seed, 1])
        for words in commands:
            out.mkdir()
            path.write_bytes(data)
            if rng.random() < 0.1:
                words += ["--bad-rows", str(out / "bad.csv")]
            there = PLACES[int(rng.integers(len(PLACES)))] if rng.random() < 0.1 else None
            code, said = attempt(words, there(path, rng) if there else nullcontext())
            codes[code] += 1
            left = left_over(code, out)
            if code not in ALLOWED or "Traceback" in said or left:
                where = f" ({there.__name__})" if there else ""
                wrong.append(f"seed {seed}, {words[0]} of .{ending}{where}: {code}, {said} {left}")
            if code == 0 and there is None and "--bad-rows" not in words:
                wrong += [f"seed {seed}, read_table of .{ending}: {e}" for e in unread(path)]
            path.unlink(missing_ok=True)
            shutil.rmtree(out)
    return codes, wrong


def unread(path: Path) -> Iterator[str]:
    """What `read_table` says of a file that it does not read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read_table(path)
        except UserError as error:  # columns that the command does not read may be damaged
            if path.suffix != ".parquet" or "cannot be read" not in str(error):
                yield f"{type(error).__name__}: {error}"
        except Exception as error:
            yield f"{type(error).__name__}: {error}"


def left_over(code: int, out: Path) -> str:
    """What a command has left in its folder that should not be there, if anything."""
    names = {path.name for path in out.iterdir()} - {"bad.csv"}
    hidden = [name for name in names if name.startswith(".")]
    wrong = hidden or (names if code else not names)
    return f"it has left {sorted(names)}" if wrong else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="of the first table")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        codes, wrong = fuzz(range(args.seed, args.seed + args.tables), Path(folder))
    print(*wrong, sep="\n")
    ended = ", ".join(f"{n:,} with {code}" for code, n in sorted(codes.items()))
    print(f"{args.tables:,} tables: {ended}; {len(wrong)} went wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
