"""Time and memory of eqsep's Detector and of XGBoost on all training rows of NSL-KDD.

    python bench/fit_time.py
    python bench/fit_time.py --threads 1 --repeats 5

113,279 rows by the paper's protocol: 122 columns for XGBoost with 200 trees, the 41 columns as
they are in the files for the Detector. Each measurement is a process of its own, the two in turn
and with equally many threads; medians, and ratios within this run. Libraries are loaded, and loops
compiled, by a small fit before. Memory is what the process
grows by in fitting, beyond the rows. Seconds are those of the processor with one thread, which a
busy machine disturbs little, and those of the clock with several.

NSL-KDD is looked for in $EQSEP_DATA, then in ../shared/data.
"""

import argparse
import os
from dataclasses import asdict, dataclass, fields
from multiprocessing import get_context
from statistics import median

import numpy as np
from kernel import PeakMemory, Stopwatch
from peers import METHODS
from tasks import DATA_HOME

from eqsep.datasets import load_nsl_kdd
from eqsep.evaluation import average_precision_by_kind


@dataclass(frozen=True)
class Cost:
    """Of one fit and of scoring the test rows."""

    fit_seconds: float
    scored_rows_a_second: float
    fit_megabytes: float
    average_precision: float


def cost(name: str, threads: int) -> Cost:
    """Measured where it is called: in a process that does nothing else."""
    method = METHODS[name]
    model = method.build(**({"settings": {"n_jobs": threads}} if name == "XGBoost" else {}))
    split = load_nsl_kdd(data_home=DATA_HOME, protocol="paper", as_frame=method.mixed)
    few = np.random.default_rng(0).choice(len(split.y_train), 2000, replace=False)
    part = split.X_train.iloc[few] if method.mixed else split.X_train[few]
    model.fit(part, split.y_train[few])  # what is imported or compiled at a first fit is there
    stopwatch = Stopwatch(threads)
    with PeakMemory() as memory:
        fit_seconds, _ = stopwatch(lambda: model.fit(split.X_train, split.y_train))
    score_seconds, score = stopwatch(lambda: model.score(split.X_test))
    return Cost(
        fit_seconds=fit_seconds,
        scored_rows_a_second=len(score) / score_seconds,
        fit_megabytes=memory.megabytes,
        average_precision=average_precision_by_kind(score, split.kind_test)["overall"],
    )


def line(name: str, costs: list[Cost]) -> str:
    """Every repeat, then the median."""
    columns = [[asdict(cost)[field.name] for cost in costs] for field in fields(Cost)]
    forms = ("{:.2f}", "{:,.0f}", "{:.0f}", "{:.3f}")
    cells = [
        f"{form.format(median(column))} ({form.format(min(column))} to {form.format(max(column))})"
        for form, column in zip(forms, columns, strict=True)
    ]
    return f"{name:10}" + "".join(f"{cell:>34}" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    names = [name for name in ("XGBoost", "eqsep") if name in METHODS]
    costs: dict[str, list[Cost]] = {name: [] for name in names}
    loads = []
    for _ in range(args.repeats):
        for name in names:
            loads.append(os.getloadavg()[0])
            with get_context("spawn").Pool(1) as pool:
                costs[name].append(pool.apply(cost, (name, args.threads)))
    print(
        f"NSL-KDD, all training rows, {args.threads} threads, {args.repeats} repeats: median "
        f"(least to most). Load of the machine before: {', '.join(f'{x:.1f}' for x in loads)}"
    )
    heads = ("fit s", "rows scored a second", "MB to fit", "average precision")
    print(f"{'':10}" + "".join(f"{head:>34}" for head in heads))
    for name in names:
        print(line(name, costs[name]))
    if len(names) == 2:
        ratios = (
            median(getattr(c, field.name) for c in costs["eqsep"])
            / median(getattr(c, field.name) for c in costs["XGBoost"])
            for field in fields(Cost)
        )
        print(f"{'ratio':10}" + "".join(f"{ratio:>34.2f}" for ratio in ratios))


if __name__ == "__main__":
    main()
