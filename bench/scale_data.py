"""Made-up rows in Parquet files, as many as are asked for, in bounded memory.

    python bench/scale_data.py --rows 100000000 --columns 30 --out /tmp/rows

Four fifths of the columns are numbers: sums of a few hidden ones and noise, a tenth of them with
values missing. The others are names, of 3 to 3,000 different ones with long tails. The column
`kind` says "normal" or names one of three kinds of anomaly, a hundredth of the rows together.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

ROWS_A_FILE, ROWS_A_GROUP = 5_000_000, 100_000
HIDDEN = 6  # directions in which numbers vary together
NAMES = (3, 12, 60, 300, 1000, 3000)
KINDS = ("normal", "shifted", "torn", "stuck")
SHARES = (0.99, 0.006, 0.003, 0.001)


class Maker:
    """Groups of rows of one made-up table."""

    def __init__(self, columns: int, *, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        n_names = columns // 5
        self.mixing = self.rng.normal(size=(HIDDEN, columns - n_names)).astype(np.float32)
        self.sizes = [NAMES[j % len(NAMES)] for j in range(n_names)]
        self.names = [np.array([f"name {i}" for i in range(size)]) for size in self.sizes]

    def group(self, n: int) -> pa.Table:
        """The next `n` rows."""
        rng = self.rng
        kind = rng.choice(len(KINDS), size=n, p=SHARES)
        hidden = rng.standard_normal((n, HIDDEN), dtype=np.float32)
        X = hidden @ self.mixing + 0.3 * rng.standard_normal((n, self.mixing.shape[1]), dtype="f4")
        X[kind == 1] += 4
        torn = kind == 2  # every value is usual, and the row is not
        X[torn] = rng.permuted(X[torn], axis=0)
        X[kind == 3, : X.shape[1] // 2] = 0
        X[:, ::10][rng.random((n, len(range(0, X.shape[1], 10)))) < 0.02] = np.nan
        columns: dict[str, pa.Array] = {
            f"x{j}": pa.array(column, from_pandas=True) for j, column in enumerate(X.T)
        }
        for j, (size, names) in enumerate(zip(self.sizes, self.names, strict=True)):
            place = (size ** rng.random(n)).astype(int) - 1  # the first ones are frequent
            columns[f"name{j}"] = pa.DictionaryArray.from_arrays(pa.array(place), names).cast(
                "string"
            )
        columns["kind"] = pa.DictionaryArray.from_arrays(pa.array(kind), list(KINDS)).cast("string")
        return pa.table(columns)


def make(folder: Path, *, rows: int, columns: int, seed: int = 0) -> Path:
    """Files of so many rows in the folder; as they are where they are there already."""
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    maker = Maker(columns, seed=seed)
    for start in range(0, rows, ROWS_A_FILE):
        end = min(start + ROWS_A_FILE, rows)
        writer = None
        for first in range(start, end, ROWS_A_GROUP):
            group = maker.group(min(ROWS_A_GROUP, end - first))
            if writer is None:
                path = folder / f"{start // ROWS_A_FILE:05}.parquet"
                writer = parquet.ParquetWriter(path, group.schema)
            writer.write_table(group)
        if writer is not None:
            writer.close()
    (folder / "complete").touch()
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    make(args.out, rows=args.rows, columns=args.columns)
    size = sum(path.stat().st_size for path in args.out.glob("*.parquet"))
    print(f"{args.rows:,} rows, {args.columns} columns, {size / 1e9:.2f} GB in {args.out}")


if __name__ == "__main__":
    main()
