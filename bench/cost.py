"""What a row costs by how many there are, beside peers, as a table and a picture.

    python bench/cost.py --out cost.png                    10^3 to 10^6 rows, half an hour
    python bench/cost.py --rows 1000 10000                 two minutes
    python bench/cost.py --gpu alarms.txt --out cost.png   with what gpu_table.py has printed

Microseconds of the processor with one thread, which a busy machine disturbs little: a row that is
fitted among so many, and one of 5,000 that are scored afterwards. Rows are those of NSL-KDD, drawn
with replacement, its 41 columns for eqsep and 122 numbers for the peers, each as in `speed.py`. A
peer whose next fit would take more than five minutes is left out from there on. Each measurement
leaves one JSON, which a second run reads.
"""

import argparse
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cells import measured
from kernel import Stopwatch
from matplotlib.figure import Figure
from peers import METHODS, OurDetector
from tasks import DATA_HOME

from eqsep.datasets import load_nsl_kdd
from eqsep.plots import save_figure

NAMES = ("eqsep", "XGBoost", "isolation forest", "ECOD", "LOF")
ROWS = (1_000, 10_000, 100_000, 1_000_000)
SCORED = 5_000
MOST_SECONDS = 300.0
INK = "#333333"
COLOURS = ("#0072B2", "#D55E00", "#8A8A8A", "#B5A24A", "#7A9E9F")


@dataclass(frozen=True)
class Cell:
    """A method, fitted to so many rows."""

    table: str
    data: str
    method: str
    rows: int


@cache
def tables() -> tuple[Any, Any]:
    """The rows as a frame and as numbers."""
    options = {"data_home": DATA_HOME, "protocol": "paper"}
    return load_nsl_kdd(**options, as_frame=True), load_nsl_kdd(**options)


def measure(cell: Cell) -> dict[str, float]:
    """Microseconds for each row fitted and for each row scored."""
    frames, arrays = tables()
    drawn = np.random.default_rng(0).integers(len(arrays.y_train), size=cell.rows)
    y, watch = arrays.y_train[drawn], Stopwatch(1)
    if cell.method == "eqsep":
        model, X, X_test = OurDetector(), frames.X_train.iloc[drawn], frames.X_test[:SCORED]
        model.fit(X[:500], y[:500])  # what is compiled at a first fit
    else:
        settings = {} if cell.method == "ECOD" else {"settings": {"n_jobs": 1}}
        model = METHODS[cell.method].build(**settings)
        X, X_test = arrays.X_train[drawn], arrays.X_test[:SCORED]
    fitting, _ = watch(lambda: model.fit(X, y))
    scoring, _ = watch(lambda: model.score(X_test), repeats=2)
    return {"fit": 1e6 * fitting / cell.rows, "score": 1e6 * scoring / SCORED}


def costs(method: str, rows: list[int]) -> list[dict[str, Any]]:
    """Of one method, from few rows to many, until a fit would take too long."""
    found: list[dict[str, Any]] = []
    for n in sorted(rows):
        if len(found) > 1:
            before, last = found[-2:]
            grows = max(last["fit"] / before["fit"], 1.0)
            if 1e-6 * last["fit"] * grows * n > MOST_SECONDS:
                break
        found.append(measured(Cell("cost", "nsl-kdd", method, n), measure))
        told = (f"{found[-1][part]:12,.1f}" for part in ("fit", "score"))
        print(f"{method:18}{n:>10,}{''.join(told)}", flush=True)
    return found


def on_a_gpu(text: str) -> tuple[list[int], list[float]]:
    """Rows and microseconds a row from a table to alarms, as `gpu_table.py` prints them."""
    found = re.findall(r"([\d,]+) rows: .*?([\d.]+) ns a row", text)
    return [int(n.replace(",", "")) for n, _ in found], [float(ns) / 1e3 for _, ns in found]


def picture(by_method: dict[str, list[dict[str, Any]]], gpu: Path | None) -> Figure:
    """Both costs against the rows, a line for each method."""
    figure = Figure(figsize=(9.2, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    titles = {"fit": "fitted, by rows fitted", "score": "scored, by rows fitted before"}
    for ax, (part, title) in zip(axes, titles.items(), strict=True):
        for (name, found), colour in zip(by_method.items(), COLOURS, strict=False):
            line = ([one["rows"] for one in found], [one[part] for one in found])
            ax.loglog(*line, "o-", color=colour, label=name, lw=2.4 if name == "eqsep" else 1.3)
        ax.set_title(f"a row {title}", loc="left", fontsize="medium", color=INK)
        ax.set_xlabel("rows", color=INK)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(which="both", color=INK, labelcolor=INK, labelsize="small")
        ax.grid(which="major", color="#EEEEEE")
    if gpu is not None:
        line = on_a_gpu(gpu.read_text())
        axes[1].loglog(*line, "s--", color=COLOURS[0], label="eqsep on a GPU, by rows scored")
    axes[0].set_ylabel("microseconds", color=INK)
    named = axes[1].get_legend_handles_labels()
    axes[0].legend(*named, frameon=False, fontsize="small", labelcolor=INK, loc="lower left")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--gpu", type=Path, help="what gpu_table.py has printed")
    parser.add_argument("--out", type=Path, help="the picture")
    args = parser.parse_args()
    print(f"{'microseconds':18}{'rows':>10}{'fit':>12}{'score':>12}")
    there = [name for name in NAMES if name == "eqsep" or METHODS[name].package() is not None]
    by_method = {name: costs(name, args.rows) for name in there}
    if args.out is not None:
        save_figure(picture(by_method, args.gpu), args.out)


if __name__ == "__main__":
    main()
