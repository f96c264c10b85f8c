"""The made-up payments: what the docstring says of them, and why they are worth a demo."""

import datetime as dt
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kurtosis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from eqsep import KernelEqualitySeparator
from eqsep.datasets import make_mixed_demo
from eqsep.tables import TableEncoder

KINDS = ("card testing", "money mule", "skimming", "sleeper", "stuck scanner", "takeover")


@pytest.fixture(scope="module")
def table():
    return make_mixed_demo(as_frame=True, random_state=0)


def of(table, kind):
    return table.X[table.kind == kind]


def test_a_seed_gives_the_same_rows_again_and_another_seed_does_not():
    first, again, other = (make_mixed_demo(n_samples=300, random_state=s) for s in (3, 3, 4))
    assert first.X == again.X
    assert first.kind.tolist() == again.kind.tolist()
    assert first.X != other.X


def test_dicts_and_frames_hold_the_same():
    dicts, frame = (
        make_mixed_demo(n_samples=300, as_frame=as_frame, random_state=0)
        for as_frame in (False, True)
    )
    assert isinstance(frame.X, pd.DataFrame)
    assert frame.feature_names == dicts.feature_names == tuple(frame.X.columns) == tuple(dicts.X[0])
    assert pd.DataFrame(dicts.X).isna().to_numpy().tolist() == frame.X.isna().to_numpy().tolist()
    encoder = TableEncoder().fit(frame.X)
    np.testing.assert_array_equal(encoder.transform(dicts.X), encoder.transform(frame.X))


def test_every_type_of_column_is_there():
    row = next(row for row in make_mixed_demo(random_state=0).X if None not in row.values())
    assert {type(value) for value in row.values()} == {dt.datetime, float, str, bool}


@pytest.mark.parametrize(("n_samples", "fraction"), [(2_000, 0.1), (100, 0.06), (40, 0.5)])
def test_the_kinds_are_equally_frequent_and_shuffled(n_samples, fraction):
    table = make_mixed_demo(n_samples=n_samples, anomaly_fraction=fraction, random_state=0)
    counts = Counter(table.kind.tolist())
    assert counts.pop("normal") == n_samples - round(n_samples * fraction)
    assert set(counts) == set(KINDS)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert (np.diff(table.y) != 0).sum() > 5


@pytest.mark.parametrize(
    ("n_samples", "fraction"), [(100, 0.05), (100, 0.0), (100, 1.0), (5, 0.9), (100, -0.1)]
)
def test_every_kind_and_normal_rows_are_needed(n_samples, fraction):
    with pytest.raises(ValueError, match="at least one of each of the 6 kinds"):
        make_mixed_demo(n_samples=n_samples, anomaly_fraction=fraction)


def test_what_is_missing_is_what_the_story_says(table):
    X = table.X
    assert (X["distance_km"].isna() == (X["channel"] == "online")).all()
    assert 0.01 < X["items"].isna().mean() < 0.06
    assert 0 < X["country"].isna().mean() < 0.03
    rest = X.drop(columns=["distance_km", "items", "country"])
    assert not rest.isna().to_numpy().any()


def test_tails_are_heavy_and_scales_differ(table):
    normal = of(table, "normal")
    for name in ("amount", "distance_km", "minutes_since_last"):
        assert kurtosis(normal[name].dropna()) > 5  # 0 for a Gaussian
    medians = normal[["items", "amount", "minutes_since_last"]].median()
    assert medians.max() / medians.min() > 50


def test_every_kind_is_as_the_story_tells(table):
    normal = of(table, "normal")
    testing, mules, skimmed = (of(table, k) for k in ("card testing", "money mule", "skimming"))
    assert testing["minutes_since_last"].max() <= 3
    assert testing["amount"].max() <= 1.5
    assert set(testing["channel"]) == {"online"}
    assert mules["account_age_days"].max() < normal["account_age_days"].min()
    assert mules["amount"].between(930, 999).all()
    assert not set(skimmed["country"].dropna()) & set(normal["country"].dropna())
    assert skimmed["time"].dt.hour.max() < 5
    assert of(table, "sleeper")["minutes_since_last"].min() > normal["minutes_since_last"].max()
    assert of(table, "stuck scanner")["items"].min() > normal["items"].max()
    assert of(table, "takeover")["amount"].median() > 8 * normal["amount"].median()


def auc_by_kind(model, table, *, seen):
    """How well each kind is told from normal rows by a model that has seen one of them."""
    learn = np.arange(len(table.kind)) % 2 == 0
    train = learn & np.isin(table.kind, ["normal", seen])
    pipe = make_pipeline(TableEncoder(numeric_encoding="standard"), model)
    pipe.fit(table.X[train], table.y[train])
    kind, score = table.kind[~learn], pipe.decision_function(table.X[~learn])
    return {
        name: roc_auc_score(kind[rows] == name, score[rows])
        for name in KINDS
        for rows in [np.isin(kind, ["normal", name])]
    }


@pytest.mark.parametrize(
    "seen", [*KINDS[:2], *(pytest.param(kind, marks=pytest.mark.extra) for kind in KINDS[2:])]
)
def test_one_kind_does_not_give_the_others_away_to_a_halfspace(table, seen):
    halfspace = auc_by_kind(LogisticRegression(max_iter=5_000), table, seen=seen)
    closed = auc_by_kind(KernelEqualitySeparator(random_state=0), table, seen=seen)
    unseen = [name for name in KINDS if name != seen]
    assert halfspace[seen] > 0.95 < closed[seen]
    assert min(halfspace[name] for name in unseen) < 0.5  # worse than chance
    assert np.mean([closed[name] for name in unseen]) > 0.85
    assert np.mean([closed[n] - halfspace[n] for n in unseen]) > 0.1


# Of 600 payments of seed 0, half of them anomalies: sums of amounts, items, kilometres, minutes
# since the last payment and days of the account.
SUMS = {
    "card testing": (41.16, 49, 0, 75.1, 62806),
    "money mule": (48316.95, 50, 125.2, 49961.5, 358),
    "normal": (20577.49, 2066, 896.2, 317179.8, 384614),
    "skimming": (13100, 50, 413004, 59429, 56925),
    "sleeper": (3944.83, 336, 189.6, 18784594, 226588),
    "stuck scanner": (3701.95, 4068, 130.4, 69670.8, 73930),
    "takeover": (90094.39, 370, 0, 58450.6, 65759),
}


def test_the_rows_of_a_seed_are_what_they_were():
    """Every page and figure of the documentation rests on them."""
    table = make_mixed_demo(n_samples=600, anomaly_fraction=0.5, as_frame=True, random_state=0)
    numbers = table.X.select_dtypes("number")
    found = {kind: tuple(numbers[table.kind == kind].sum()) for kind in SUMS}
    for kind, sums in SUMS.items():
        assert found[kind] == pytest.approx(sums, rel=1e-9), kind
    assert table.X["time"].astype("datetime64[s]").astype("int64").sum() == 1_046_919_813_342
    assert Counter(table.X["country"].fillna("")) == Counter(
        {"DE": 487, "NL": 20, "AT": 15, "BR": 14, "ZA": 14, "FR": 12, "US": 11, "ID": 10}
        | {"": 10, "PL": 7}
    )
    assert Counter(table.X["purpose"]) == Counter(
        {"groceries": 235, "clothes": 125, "cash": 96, "electronics": 91, "fuel": 53}
    )
    assert Counter(table.X["channel"]) == Counter({"shop": 341, "online": 163, "atm": 96})
    assert table.X["card_present"].sum() == 437
