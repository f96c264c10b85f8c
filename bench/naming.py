"""Names of alarms against the promise, over random divisions of real rows, and against a forest.

    python bench/naming.py                        20 divisions of each table
    python bench/naming.py satimage/1 --splits 5  fewer, of one table
    python bench/naming.py --left-out             each kind in turn is one that was not seen

Each time half of the rows of each kind (at most 3,000, of the normal ones 6,000) are fitted with
the Detector, all of them labelled, and the others (at most 2,000 of each kind) are named, whether
they raise an alarm or not. Printed are, for each rate that was set, over the rows of kinds with
enough rows for it: the share that is called "unseen", and the share without its kind among its
names, each with its standard error over the divisions; the share with one name; and of all these
rows together how many names are right, and how many of a random forest of 200 trees are, which has
learnt the same anomalies, on the same rows.

With --left-out the kind has no row among those that are fitted, and printed is the share of its
rows that are called "unseen", by the rate that was set; kinds with fewer rows than 100 are seen.
"""

import argparse
import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
from cells import measured
from promise import text_of
from sklearn.ensemble import RandomForestClassifier
from tasks import DATA_HOME, FEWEST, Rows, rows_of

from eqsep import Detector
from eqsep.errors import EqsepWarning

RATES = (0.01, 0.05, 0.1)
NAMES = ("nsl-kdd", "nsl-kdd/attacks", "shuttle", "satimage/1")
MOST_NORMAL, MOST_KIND, MOST_FRESH = 6000, 3000, 2000
COMMON = 100  # rows of a kind that is left out
ATTACK = 41  # the column of the name in the files of NSL-KDD


@dataclass(frozen=True)
class Cell:
    """One division of a table, by its seed; without a kind, where it is left out."""

    table: str
    data: str
    split: int
    n_landmarks: int
    bandwidth: float | None
    without: str = ""


@cache
def table_of(name: str) -> Rows:
    """A table as in tasks.py; that of NSL-KDD with the names of attacks, which have 20 rows."""
    if name != "nsl-kdd/attacks":
        return rows_of(name)
    rows = rows_of("nsl-kdd")
    files = (DATA_HOME / "nsl-kdd" / f"KDD{part}+.txt" for part in ("Train", "Test"))
    lines = [line for file in files for line in file.read_text().splitlines()]
    attack = np.array([line.split(",")[ATTACK] for line in lines])[rows.frame.index]
    names, counts = np.unique(attack, return_counts=True)
    common = np.flatnonzero(np.isin(attack, names[counts >= FEWEST]))
    return Rows(rows.frame, rows.matrix, attack, rows.group).at(common)


def divided(rows: Rows, cell: Cell) -> tuple[Rows, Rows]:
    """The rows to fit, and anomalies to name."""
    rng = np.random.default_rng(cell.split)
    train, fresh = [], []
    for kind in np.unique(rows.kind).tolist():
        known, others = np.array_split(rng.permutation(np.flatnonzero(rows.kind == kind)), 2)
        if kind != cell.without:
            train.append(known[: MOST_NORMAL if kind == "normal" else MOST_KIND])
        if kind == cell.without or (not cell.without and kind != "normal"):
            fresh.append(others[:MOST_FRESH])
    return rows.at(np.concatenate(train)), rows.at(np.concatenate(fresh))


def measure(cell: Cell) -> dict[str, list[dict[str, float]]]:
    """What is counted at each rate."""
    part, fresh = divided(table_of(cell.data), cell)
    settings = {"n_landmarks": cell.n_landmarks, "bandwidth": cell.bandwidth}
    detector = Detector(**settings, random_state=cell.split).fit(part.frame, part.kind)
    encoded, kinds = detector.plan_.encode(fresh.frame), np.array(detector.kinds_)
    if not cell.without:
        anomalous = part.at(np.flatnonzero(part.kind != "normal"))
        forest = RandomForestClassifier(200, random_state=cell.split)
        said = forest.fit(anomalous.matrix, anomalous.kind).predict(fresh.matrix)
    found = []
    for rate in RATES:
        detector.unseen_rate = rate
        model = detector.model_
        short = model.namer.short_kinds(rate)
        sets, _ = model.kind_sets(encoded)
        n_names = sets.sum(axis=1)
        if cell.without:
            found.append({"unseen": float(np.mean(n_names == 0))})
            continue
        own = sets[np.arange(len(encoded)), (fresh.kind[:, None] == kinds).argmax(axis=1)]
        promised = ~np.isin(fresh.kind, list(short))
        one = n_names == 1
        found.append(
            {
                "unseen": float(np.mean(n_names[promised] == 0)),
                "missed": float(np.mean(~own[promised])),
                "one": float(np.mean(one)),
                "right": int(np.sum(one & own)),
                "forest": int(np.sum(one & (said == fresh.kind))),
                "named": int(np.sum(one)),
                "promised": len(kinds) - len(short),
                "kinds": len(kinds),
            }
        )
    return {"found": found}


def tell(options: argparse.Namespace) -> None:
    """Seen kinds."""
    heads = (
        "promised",
        "kinds",
        "called unseen",
        "without its kind",
        "one name",
        "right",
        "forest",
    )
    print(f"{'':<16}" + "".join(f"{head:>{w}}" for head, w in zip(heads, WIDTHS, strict=True)))
    for name in options.tables:
        cells = [Cell("naming", name, split, *settings(options)) for split in range(options.splits)]
        results = [measured(cell, measure)["found"] for cell in cells]
        for i, rate in enumerate(RATES):
            at_rate = {key: np.array([r[i][key] for r in results]) for key in results[0][i]}
            texts = (
                f"{rate:g}",
                f"{at_rate['promised'][0]} of {at_rate['kinds'][0]}",
                text_of(at_rate["unseen"], rate),
                text_of(at_rate["missed"], rate),
                f"{at_rate['one'].mean():.3f}",
                *(f"{at_rate[who].sum():,}" for who in ("right", "forest")),
            )
            row = "".join(f"{text:>{width}}" for text, width in zip(texts, WIDTHS, strict=True))
            print(f"{name if not i else '':<16}{row}", flush=True)


WIDTHS = (9, 10, 24, 24, 10, 10, 10)


def tell_left_out(options: argparse.Namespace) -> None:
    """Kinds that are not seen."""
    print(f"{'':<38}" + "".join(f"{f'promised {rate:g}':>16}" for rate in RATES))
    for name in options.tables:
        kinds, counts = np.unique(table_of(name).kind, return_counts=True)
        for kind in kinds[(counts >= COMMON) & (kinds != "normal")].tolist():
            cells = (
                Cell("naming-left-out", name, split, *settings(options), kind)
                for split in range(options.splits)
            )
            found = [[at["unseen"] for at in measured(c, measure)["found"]] for c in cells]
            texts = "".join(f"{share:>16.3f}" for share in np.mean(found, axis=0))
            print(f"{name:<16}{kind:<22}{texts}", flush=True)


def settings(options: argparse.Namespace) -> tuple[int, float | None]:
    """Of the Detector."""
    return options.landmarks, options.bandwidth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help="as named in tasks.py, and nsl-kdd/attacks")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--landmarks", type=int, default=300)
    parser.add_argument("--bandwidth", type=float, default=0.25)
    parser.add_argument("--left-out", action="store_true", help="kinds that were not seen")
    options = parser.parse_args()
    options.tables = options.tables or NAMES
    warnings.simplefilter("ignore", EqsepWarning)
    print(f"{options.splits} divisions, {options.landmarks} landmarks")
    (tell_left_out if options.left_out else tell)(options)


if __name__ == "__main__":
    main()
