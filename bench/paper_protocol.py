"""The Detector on the paper's two tables, by the paper's protocol, beside the paper's best rows.

    python bench/paper_protocol.py             five seeds on NSL-KDD and thyroid
    python bench/paper_protocol.py --seeds 1

Average precision, anomalies positive, for each kind against all normal test rows; the trapezoid,
which the published figures are, beside it. "Best network" and "best of any method" are the largest
published means of a column (paper/published.json has the tables), without the three
one-vs-set rows, which are constant scores.
"""

import argparse

import numpy as np
from tasks import DATA_HOME

from eqsep import Detector
from eqsep.datasets import load_nsl_kdd, load_thyroid
from eqsep.evaluation import average_precision_by_kind
from paper.measures import trapezoid_by_kind

KINDS = {
    "nsl-kdd": (load_nsl_kdd, ("dos", "probe", "privilege", "access", "overall")),
    "ann-thyroid": (load_thyroid, ("hyperfunction", "subnormal", "overall")),
}
PUBLISHED = {
    "nsl-kdd": {
        "best network": (0.974, 0.795, 0.100, 0.510, None),
        "best of any method": (0.974, 0.960, 0.405, 0.760, 0.957),
    },
    "ann-thyroid": {"best network": (0.934, 0.596, 0.726)},
}


def line(name, values):
    return f"  {name:<34}" + "".join(f"{'' if v is None else f'{v:.3f}':>15}" for v in values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = range(parser.parse_args().seeds)
    for name, (load, kinds) in KINDS.items():
        print(f"{name}{'':<{36 - len(name)}}" + "".join(f"{kind:>15}" for kind in kinds))
        for form in ("matrix", "frame"):
            split = load(data_home=DATA_HOME, protocol="paper", as_frame=form == "frame")
            found = {average_precision_by_kind: [], trapezoid_by_kind: []}
            for seed in seeds:
                detector = Detector(random_state=seed).fit(split.X_train, split.y_train)
                score = detector.decision_function(split.X_test)
                for area, rows in found.items():
                    by_kind = area(score, split.kind_test)
                    rows.append([by_kind[kind] for kind in kinds])
            precision, trapezoid = (np.array(rows) for rows in found.values())
            print(line(f"Detector, {form}: mean of {len(seeds)}", precision.mean(axis=0)))
            print(line("  least", precision.min(axis=0)))
            print(line("  trapezoid, mean", trapezoid.mean(axis=0)), flush=True)
        for row, values in PUBLISHED[name].items():
            print(line(f"published: {row}", values))


if __name__ == "__main__":
    main()
