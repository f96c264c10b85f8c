"""`eqsep score` on a CSV of millions of rows: rows a second and memory, beside plain reading.

    python bench/score_file.py                    5 million rows of AI4I 2020, repeated
    python bench/score_file.py --rows 200000      fewer

A model is fitted by the command to half of the rows of the table; all of them are repeated to make
the file. Printed are seconds of `wc -l`, of pyarrow's own reading of the CSV, and of the command
writing Parquet, with the most memory that its process ever had; that the Parquet can be read and
has as many rows; and that a command that is killed half-way leaves no file under the name.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as parquet
from tasks import DATA_HOME

COMMAND = [sys.executable, "-m", "eqsep"]


def repeated(table: Path, out: Path, *, rows: int) -> None:
    """The rows of a CSV again and again, under one header."""
    header, *lines = table.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    body = "".join(lines)
    whole, rest = divmod(rows, len(lines))
    with out.open("w") as file:
        file.write(header)
        for _ in range(whole):
            file.write(body)
        file.write("".join(lines[:rest]))


def cost(words: list[str]) -> tuple[float, float]:
    """Seconds of a command, and the megabytes it ever had."""
    begin = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{words} ended with {status}: {process.stderr.read().decode()[-800:]}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1000


def killed(words: list[str], *, after: float) -> None:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(after)
    process.kill()
    process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--landmarks", type=int, nargs="+", default=[300, 1400])
    args = parser.parse_args()
    table = DATA_HOME / "ai4i2020" / "ai4i2020.csv"
    if not table.exists():
        parser.error(f"{table} is not there: set EQSEP_DATA to the folder that holds ai4i2020/.")
    with TemporaryDirectory() as folder:
        home = Path(folder)
        rows, out, model = home / "rows.csv", home / "scores.parquet", home / "model.eqsep"
        repeated(table, rows, rows=args.rows)
        print(f"{args.rows:,} rows, {rows.stat().st_size / 1e6:,.0f} MB of CSV")
        lines, _ = cost(["wc", "-l", str(rows)])
        read = f"import pyarrow.csv as c; [b for b in c.open_csv({str(rows)!r})]"
        plain, _ = cost([sys.executable, "-c", read])
        print(f"wc -l {lines:.2f} s; pyarrow reads it in {plain:.2f} s")
        for landmarks in args.landmarks:
            drop = [
                word
                for c in ("UDI", "Product ID", "TWF", "HDF", "PWF", "OSF", "RNF")
                for word in ("--drop", c)
            ]
            fit = [*COMMAND, "fit", str(table), "--label", "Machine failure", "--out", str(model)]
            subprocess.run(
                [*fit, "--landmarks", str(landmarks), *drop], check=True, stdout=subprocess.DEVNULL
            )
            score = [*COMMAND, "score", str(model), str(rows), "--out", str(out)]
            seconds, megabytes = cost(score)
            got = parquet.ParquetFile(out).metadata.num_rows
            out.unlink()
            killed(score, after=seconds / 2)
            left = sorted(path.name for path in home.iterdir() if path.suffix == ".parquet")
            print(
                f"eqsep score, {landmarks:,} landmarks: {seconds:.1f} s, "
                f"{args.rows / seconds:,.0f} rows/s, {seconds / plain:.1f} times pyarrow's "
                f"reading, {seconds / lines:.0f} times wc -l, {megabytes:,.0f} MB at most; {got:,} "
                f"rows of Parquet; killed half-way it leaves {left or 'no file'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
