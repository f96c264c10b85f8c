"""Groups of unseen alarms: how few, and how pure, by departures from normal rows and by the kernel.

    python bench/alarm_groups.py

Of each table the normal rows and one kind are fitted; fresh rows of all kinds arrive, and those
called "unseen" are grouped, as the service does (`eqsep.serve.alarms`) and as incidents, by a
kernel value. Printed are how many alarms there are, and of
either way: the groups of two alarms and more, the share of the alarms that are in one, the share of
these that are of the most frequent kind of their group, and the adjusted Rand index against the
true kinds, where an alarm in no group is a group of its own.
"""

import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from naming import table_of
from sklearn.metrics import adjusted_rand_score

from eqsep import Detector
from eqsep.demo.arrivals import arriving, fitted_detector
from eqsep.errors import EqsepWarning
from eqsep.labels import UNSEEN
from eqsep.serve.alarms import groups_of
from eqsep.serve.ledger import rows_for

SEEN = {"nsl-kdd": "dos", "nsl-kdd/attacks": "neptune", "shuttle": "high", "satimage/1": None}
NORMAL, KNOWN, FRESH = 4000, 500, 300  # rows that are fitted, and fresh ones of each kind
PAYMENTS = 2500
ALIKE = 0.2  # the kernel value above which two alarms are one incident


def arrived() -> Iterator[tuple[str, Detector, Any, np.ndarray]]:
    """The name of a table, a detector, fresh rows and their kinds."""
    payments = fitted_detector()
    for seed in range(3):
        rows = list(islice(arriving(seed), PAYMENTS))
        kind = np.array([kind for _, kind in rows])
        known = rows_for(payments.model_, [row for row, _ in rows])
        yield f"payments {seed}", payments, known, kind
    for name, seen in SEEN.items():
        rows, rng = table_of(name), np.random.default_rng(0)
        kinds = [str(kind) for kind in np.unique(rows.kind)]
        seen = seen or next(kind for kind in kinds if kind != "normal")
        places = {kind: rng.permutation(np.flatnonzero(rows.kind == kind)) for kind in kinds}
        known = np.concatenate([places["normal"][:NORMAL], places[seen][:KNOWN]])
        fresh = np.concatenate([np.setdiff1d(places[k], known)[:FRESH] for k in kinds])
        detector = Detector(n_landmarks=500, unseen_rate=0.1, random_state=0)
        detector.fit(rows.frame.iloc[known], rows.kind[known])
        yield name, detector, rows.frame.iloc[fresh], rows.kind[fresh]


def told(group: np.ndarray, kind: np.ndarray) -> str:
    """The figures of one way to group alarms."""
    sizes = Counter(group.tolist())
    grouped = [g for g, n in sizes.items() if n > 1]
    n = sum(sizes[g] for g in grouped)
    most = sum(Counter(kind[group == g].tolist()).most_common(1)[0][1] for g in grouped)
    pure = most / n if n else float("nan")
    index = adjusted_rand_score(kind, group)
    return f"{len(grouped):6d} {n / len(kind):8.2f} {pure:6.2f} {index:6.2f}"


def incidents(rows: np.ndarray, *, kernel: Any) -> np.ndarray:
    """The incident of each encoded row: the one with the first row most like it, or a new one."""
    likeness = np.asarray(kernel(rows, rows), dtype=float)
    firsts: list[int] = []
    incident = np.empty(len(rows), dtype=int)
    for i in range(len(rows)):
        best = int(np.argmax(likeness[i, firsts])) if firsts else -1
        if best < 0 or likeness[i, firsts[best]] <= ALIKE:
            firsts.append(i)
            best = len(firsts) - 1
        incident[i] = best
    return incident


def main() -> None:
    warnings.simplefilter("ignore", EqsepWarning)
    print(f"{'':16} alarms | departures: groups, grouped, pure, index | kernel: the same")
    for name, detector, rows, kind in arrived():
        model = detector.model_
        verdicts = model.verdicts(rows)
        unseen = np.flatnonzero(verdicts.alarm & (verdicts.kind == UNSEEN))
        unseen = unseen[np.argsort(-verdicts.score[unseen], kind="stable")]
        encoded = model.plan.encode(rows)[unseen]
        departures = model.explainer.departures(encoded)
        ways = groups_of(departures), incidents(encoded, kernel=model.plan.kernel.kernel)
        lines = " | ".join(told(group, kind[unseen]) for group in ways)
        print(f"{name:16} {len(unseen):6d} | {lines}", flush=True)


if __name__ == "__main__":
    main()
