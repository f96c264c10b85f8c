"""Reasons of alarms: are their values unusual, and does the score fall where they are undone?

    python bench/reasons.py                    all tables
    python bench/reasons.py optdigits          some of them

Half of the normal rows and of the anomalies are fitted; of the others, alarms are explained by up
to three reasons. Printed are the share of the alarms of which it is said that a combination of
usual values is the reason; of the reasons of all others, the share with a value that is usual among
normal rows (within the central 90 % of numbers, a name of 5 % of the rows or more); how many
reasons an alarm has; and the fidelity: how far the score falls towards that of the nearest normal
row if the values of the reasons are those of that row.
"""

import sys
import warnings

import numpy as np
import pandas as pd
from tasks import DATA_HOME, rows_of

from eqsep import Detector
from eqsep.errors import EqsepWarning

TABLES = ("nsl-kdd", "optdigits", "SpamBase", "satellite", "musk")  # but for the first, of ADBench
FITTED, EXPLAINED, TOP = 5000, 300, 3


def table_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """The columns of a table, and which rows are anomalies."""
    if name == "nsl-kdd":
        rows = rows_of(name)
        return rows.frame, rows.kind != "normal"
    data = np.load(DATA_HOME / "adbench" / f"{name}.npz", allow_pickle=True)
    names = [f"x{i}" for i in range(data["X"].shape[1])]
    return pd.DataFrame(data["X"].astype(float), columns=names), data["y"].astype(bool)


def is_usual(column: pd.Series, value: str) -> bool:
    """Whether a value is usual among normal rows with this column."""
    if column.dtype.kind in "iufb":
        low, high = np.quantile(column, [0.05, 0.95])
        return value != "missing" and bool(low <= float(value) <= high)
    return bool((column.astype(str) == value).mean() >= 0.05)


def measure(name: str) -> tuple[int, float, float, float, float]:
    """The alarms, the shares of combinations and of usual reasons, reasons, and the fidelity."""
    X, is_anomaly = table_of(name)
    rng = np.random.default_rng(0)
    parts = (rng.permutation(np.flatnonzero(is_anomaly == one)) for one in (False, True))
    halves = [np.array_split(part, 2) for part in parts]
    fitted = np.concatenate([half[0][:FITTED] for half in halves])
    kind = np.where(is_anomaly[fitted], "anomaly", "normal")
    detector = Detector(random_state=0).fit(X.iloc[fitted], kind)
    fresh = X.iloc[halves[1][1]]
    alarms = fresh[detector.predict(fresh).astype(bool)][:EXPLAINED]
    normal = X.iloc[halves[0][0]]
    usual, counts = [], []
    undone = alarms.astype(dict.fromkeys(alarms.select_dtypes("number").columns, float))
    found = detector.explain(alarms, top=TOP)
    for i, one in enumerate(found):
        reasons = [reason for reason in one.reasons if reason.contribution > 0]
        counts.append(len(reasons))
        for reason in reasons:
            column = normal[reason.column]
            usual += [is_usual(column, reason.value)] * (not one.combined)
            text = one.nearest_normal[reason.column].removeprefix("about ")
            text = text.replace("missing", "nan")
            value = float(text) if column.dtype.kind in "iuf" else text
            undone.iloc[i, undone.columns.get_loc(reason.column)] = value
    fall = detector.score_samples(alarms) - detector.score_samples(undone)
    whole = np.array([one.score - one.base for one in found])
    shares = ([one.combined for one in found], usual or [0], counts, fall / whole)
    return len(alarms), *(float(np.mean(share)) for share in shares)


def main() -> None:
    """Measure the tables that are named, or all."""
    warnings.simplefilter("ignore", EqsepWarning)
    print(f"{'':12}{'alarms':>8}{'combined':>10}{'usual':>8}{'reasons':>9}{'fidelity':>10}")
    for name in sys.argv[1:] or TABLES:
        n, combined, usual, count, fidelity = measure(name)
        shares = f"{combined:10.1%}{usual:8.1%}{count:9.2f}{fidelity:10.2f}"
        print(f"{name:12}{n:8,}{shares}", flush=True)


if __name__ == "__main__":
    main()
