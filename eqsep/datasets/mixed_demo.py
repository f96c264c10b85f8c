"""A made-up table of card payments: mixed columns, missing values, six kinds of anomaly."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from eqsep.datasets.records import LabelledTable, frame_of
from eqsep.errors import UserError

ColumnValues = dict[str, np.ndarray]

_START = np.datetime64("2025-03-03T00:00:00")  # a Monday
_DAYS = 90
# What is bought: its share of the payments, the mean of log(amount), its spread, and the items.
_SHOPPING = {
    "groceries": (0.45, 3.3, 0.5, 12.0),
    "fuel": (0.15, 4.0, 0.25, 0.5),
    "clothes": (0.20, 4.1, 0.5, 2.0),
    "electronics": (0.10, 5.0, 0.6, 1.0),
    "cash": (0.10, 4.4, 0.4, 0.0),
}
_COUNTRIES, _AT_HOME = ("DE", "AT", "FR", "NL", "PL"), (0.88, 0.04, 0.03, 0.03, 0.02)
_FAR_COUNTRIES = ("BR", "ID", "US", "ZA")


def make_mixed_demo(
    *,
    n_samples: int = 2_000,
    anomaly_fraction: float = 0.1,
    as_frame: bool = False,
    random_state: Any = None,
) -> LabelledTable:
    """Card payments as a mixed table: normal ones, and six kinds that somebody should look at.

    Anomalies of one kind do not point towards the others: some pay far more than usual and some far
    less, some come too soon and some after months.

    Parameters
    ----------
    n_samples : int, default=2000
        The number of rows.
    anomaly_fraction : float, default=0.1
        The share of anomalies; the six kinds are equally frequent, up to one row.
    as_frame : bool, default=False
        Whether the rows are a pandas frame rather than a list of dicts.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    LabelledTable
        Rows in random order. A missing value is None in a dict, and NaN or None in a frame.

    Notes
    -----
    A payment online has no distance; now and then items or country were not recorded. The kinds:

    - "card testing": a thief tries stolen numbers online, cents every minute;
    - "takeover": somebody else shops with the account, ten times as dear as usual;
    - "skimming": a copied card draws cash at night, far away;
    - "money mule": an account of a few days passes on sums just below 1,000;
    - "sleeper": an old account pays again after months;
    - "stuck scanner": a till reads the same thing dozens of times.

    Examples
    --------
    >>> from eqsep.datasets import make_mixed_demo
    >>> make_mixed_demo(n_samples=120, random_state=0)
    LabelledTable(10 features; 2 card testing, 2 money mule, 108 normal, 2 skimming, 2 sleeper,
        2 stuck ...)
    """
    n_anomalies = round(n_samples * anomaly_fraction)
    if not len(_KINDS) <= n_anomalies < n_samples:
        raise UserError(
            f"n_samples={n_samples} and anomaly_fraction={anomaly_fraction} leave {n_anomalies} "
            f"anomalies: expected at least one of each of the {len(_KINDS)} kinds, and a normal "
            "row. Draw more rows, or choose a fraction between 0 and 1."
        )
    rng = check_random_state(random_state)
    anomalies = np.resize(list(_KINDS), n_anomalies)
    kind = rng.permutation(np.append(anomalies, np.repeat("normal", n_samples - n_anomalies)))
    columns = _payments(n_samples, rng)
    for name, change in _KINDS.items():
        rows = np.flatnonzero(kind == name)
        usual = {column: values[rows] for column, values in columns.items()}
        for column, values in change(len(rows), usual, rng).items():
            columns[column][rows] = values
    columns |= {  # what is not recorded
        "items": np.where(rng.uniform(size=n_samples) < 0.03, np.nan, columns["items"]),
        "distance_km": np.where(columns["channel"] == "online", np.nan, columns["distance_km"]),
    }
    unknown = rng.uniform(size=n_samples) < 0.01
    columns["country"] = np.where(unknown, np.array(None), columns["country"])
    X = frame_of(columns) if as_frame else _dicts(columns)
    return LabelledTable(X=X, kind=kind, feature_names=tuple(columns))


def _payments(n: int, rng: Any) -> ColumnValues:
    """Payments as usual, nothing missing yet."""
    shares, log_amount, spread, items = (np.array(v) for v in zip(*_SHOPPING.values(), strict=True))
    bought = rng.choice(len(_SHOPPING), size=n, p=shares)
    purpose = np.array(list(_SHOPPING), dtype=object)[bought]
    online = np.isin(purpose, ["clothes", "electronics"]) & (rng.uniform(size=n) < 0.6)
    channel = np.where(purpose == "cash", "atm", np.where(online, "online", "shop"))
    # Student's t: now and then a payment is much dearer or cheaper than most.
    amount = np.exp(log_amount[bought] + spread[bought] * rng.standard_t(df=5, size=n))
    return {
        "time": _moments(rng.normal(15, 3, size=n) % 24, rng),
        "amount": np.where(purpose == "cash", 10 * np.ceil(amount / 10), amount.round(2)),
        "items": 1.0 + rng.poisson(items[bought]),
        "distance_km": (4 * rng.pareto(2.0, size=n)).round(1),
        "minutes_since_last": rng.lognormal(6.5, 1.0, size=n).round(1),
        "account_age_days": rng.gamma(6, 200, size=n).round() + 60,
        "purpose": purpose,
        "channel": channel.astype(object),
        "country": rng.choice(np.array(_COUNTRIES, dtype=object), size=n, p=_AT_HOME),
        "card_present": channel != "online",
    }


# Every kind as a change of `n` usual payments.
_KINDS: dict[str, Callable[[int, ColumnValues, Any], ColumnValues]] = {
    "card testing": lambda n, _, rng: {
        "amount": rng.uniform(0.2, 1.5, size=n).round(2),
        "items": np.ones(n),
        "minutes_since_last": rng.uniform(0.2, 3, size=n).round(1),
        **_by(n, purpose="clothes", channel="online"),
    },
    "takeover": lambda n, usual, rng: {
        "amount": (usual["amount"] * rng.uniform(10, 40, size=n)).round(2),
        **_by(n, purpose="electronics", channel="online"),
    },
    "skimming": lambda n, _, rng: {
        "time": _moments(rng.uniform(0, 5, size=n), rng),
        "amount": 50.0 * rng.randint(2, 9, size=n),
        "items": np.ones(n),
        "distance_km": rng.uniform(4_000, 12_000, size=n).round(),
        "country": rng.choice(np.array(_FAR_COUNTRIES, dtype=object), size=n),
        **_by(n, purpose="cash", channel="atm"),
    },
    "money mule": lambda n, _, rng: {
        "amount": rng.uniform(930, 999, size=n).round(2),
        "items": np.ones(n),
        "account_age_days": rng.randint(1, 15, size=n),
    },
    "sleeper": lambda n, _, rng: {
        "minutes_since_last": rng.uniform(200_000, 600_000, size=n).round(),
        "account_age_days": rng.uniform(3_500, 6_000, size=n).round(),
    },
    "stuck scanner": lambda n, _, rng: {
        "items": rng.randint(50, 120, size=n),
        **_by(n, purpose="groceries", channel="shop"),
    },
}


def _by(n: int, *, purpose: str, channel: str) -> ColumnValues:
    """One purpose and channel for all rows, and whether the card is there then."""
    return {
        "purpose": np.repeat(purpose, n),
        "channel": np.repeat(channel, n),
        "card_present": np.repeat(channel != "online", n),
    }


def _moments(hour: np.ndarray, rng: Any) -> np.ndarray:
    """Moments at these hours of random days."""
    day = rng.randint(_DAYS, size=len(hour))
    return _START + (86_400 * day + 3_600 * hour).astype("timedelta64[s]")


def _dicts(columns: ColumnValues) -> Sequence[dict[str, Any]]:
    """The rows as dicts of Python values, with None where a value is missing."""
    lists = {
        name: [None if value != value else value for value in column.tolist()]
        for name, column in columns.items()
    }
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
