"""The promised rate of false alarms against the measured one, over random divisions of real rows.

    python bench/promise.py                              200 divisions of each table
    python bench/promise.py --splits 20                  fewer
    python bench/promise.py ann-thyroid --splits 2000    more, of one table

Each time half of the normal rows (at most 6,000) and half of the first kind are fitted with the
Detector, and the other normal rows (at most 4,000) raise false alarms at the promised rate, or do
not. Printed are the mean share over the divisions, its standard error, and how many of these the
promise is away.
"""

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
from cells import measured
from tasks import TABLES, rows_of

from eqsep import Detector
from eqsep.detector import CalibrationWarning

RATES = (0.01, 0.05, 0.1)
MOST_NORMAL, MOST_SEEN, MOST_FRESH = 6000, 1000, 4000
NAMES = ("ann-thyroid", "shuttle", "satimage/1")
AT_ONCE = 100  # divisions that are measured and kept together


@dataclass(frozen=True)
class Cell:
    """Some divisions of one table, drawn by the seeds from `first` on."""

    table: str
    data: str
    first: int
    splits: int
    n_landmarks: int


def measure(cell: Cell) -> dict[str, list[list[float]]]:
    """The share of false alarms at each rate, division by division."""
    rows = rows_of(cell.data)
    normal = np.flatnonzero(rows.kind == "normal")
    seen = np.flatnonzero(rows.kind == TABLES[cell.data].kinds[0])
    shares = []
    for split in range(cell.first, cell.first + cell.splits):
        rng = np.random.default_rng(split)
        fresh, known = np.split(rng.permutation(normal), [len(normal) // 2])
        train = np.concatenate(
            [known[:MOST_NORMAL], rng.permutation(seen)[: len(seen) // 2][:MOST_SEEN]]
        )
        part, test = rows.at(train), rows.at(fresh[:MOST_FRESH])
        detector = Detector(n_landmarks=cell.n_landmarks, random_state=split)
        p = detector.fit(part.frame, part.kind).p_value(test.frame)
        shares.append([float(np.mean(p <= rate)) for rate in RATES])
    return {"shares": shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=NAMES, help="as named in tasks.py")
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--landmarks", type=int, default=300)
    options = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    print(f"{options.splits} divisions, {options.landmarks} landmarks: share of false alarms")
    print(f"{'':<14}" + "".join(f"{f'promised {rate:g}':>30}" for rate in RATES))
    for name in options.tables:
        starts = range(0, options.splits, AT_ONCE)
        counts = [min(AT_ONCE, options.splits - first) for first in starts]
        cells = [
            Cell("promise", name, first, n, options.landmarks)
            for first, n in zip(starts, counts, strict=True)
        ]
        shares = np.concatenate([measured(cell, measure)["shares"] for cell in cells])
        error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
        texts = (
            f"{m:.4f} ± {e:.4f} ({(m - rate) / e:+.1f})"
            for m, e, rate in zip(shares.mean(axis=0), error, RATES, strict=True)
        )
        print(f"{name:<14}" + "".join(f"{text:>30}" for text in texts), flush=True)


if __name__ == "__main__":
    main()
