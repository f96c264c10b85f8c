"""Tables as matrices: the same from every library, and nothing new goes unseen."""

import datetime as dt
import json
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.preprocessing import QuantileTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from eqsep.persistence.files import Reader, Writer
from eqsep.tables import TableEncoder
from eqsep.tables.encoder import ColumnMatchWarning, Encoder
from eqsep.tables.reading import column_name, column_of, read_table

FORMS = ["quantile", "standard", "both"]
every_form = pytest.mark.parametrize("columns", FORMS)
NOON = dt.datetime(2024, 1, 1, 12)


def mixed_columns(n=60):
    """Every kind of column, with something missing in most."""
    rng = np.random.default_rng(0)
    return {
        "size": [None if i % 7 == 0 else float(x) for i, x in enumerate(rng.lognormal(size=n))],
        "count": [None if i == 5 else int(x) for i, x in enumerate(rng.integers(0, 9, n))],
        "whole": rng.integers(0, 3, n).tolist(),
        "on": [None if i % 11 == 0 else bool(i % 3) for i in range(n)],
        "shape": [None if i % 13 == 0 else ["round", "flat", "odd"][i % 3] for i in range(n)],
        "when": [None if i == 3 else NOON + dt.timedelta(hours=17 * i) for i in range(n)],
        "took": [None if i == 4 else dt.timedelta(seconds=i * i) for i in range(n)],
        "never": [1.5] * n,
        "empty": [None] * n,
    }


def rows_of(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def as_pandas_nullable(columns):
    frame = pd.DataFrame(columns)
    return frame.assign(
        count=pd.array(columns["count"], dtype="Int64"),
        on=pd.array(columns["on"], dtype="boolean"),
        shape=pd.Categorical(columns["shape"]),
    )


TABLES = {
    "pandas": pd.DataFrame,
    "pandas nullable": as_pandas_nullable,
    "pandas arrow": lambda c: pa.table(c).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "polars categorical": lambda c: pl.DataFrame(c).cast({"shape": pl.Categorical}),
    "pyarrow": pa.table,
    "pyarrow batch": lambda c: pa.table(c).to_batches()[0],
    "pyarrow dictionary": lambda c: pa.table(
        c | {"shape": pa.array(c["shape"]).dictionary_encode()}
    ),
    "dicts": rows_of,
}


def one(values, **parameters):
    """An encoder fitted to one column of numbers."""
    return TableEncoder(**parameters).fit(np.array(values, dtype=float)[:, None])


@parametrize_with_checks([TableEncoder(numeric_encoding=columns) for columns in FORMS])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@every_form
@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_every_library_gives_the_same_matrix(make, columns):
    data = mixed_columns()
    encoder = TableEncoder(numeric_encoding=columns).fit(make(data))
    by_dicts = TableEncoder(numeric_encoding=columns).fit(rows_of(data))
    assert encoder.encoder_.is_same(by_dicts.encoder_)
    assert_array_equal(encoder.transform(make(data)), by_dicts.transform(rows_of(data)))
    assert_array_equal(by_dicts.transform(make(data)), by_dicts.transform(rows_of(data)))


def test_arrays_and_lists_of_rows_agree_with_frames():
    data = mixed_columns()
    matrix = TableEncoder().fit_transform(pd.DataFrame(data))
    rows = list(zip(*data.values(), strict=True))
    assert_array_equal(TableEncoder().fit_transform(rows), matrix)
    objects = np.empty((len(rows), len(data)), dtype=object)
    objects[:] = rows
    assert_array_equal(TableEncoder().fit_transform(objects), matrix)


def test_arrays_of_each_numpy_type_agree_with_objects():
    truths = np.array([[True], [False]])
    assert_array_equal(
        TableEncoder().fit_transform(truths), TableEncoder().fit_transform(truths.tolist())
    )
    dates = np.array([NOON, None, NOON], dtype="M8[s]")[:, None]
    assert_array_equal(
        TableEncoder().fit_transform(dates), TableEncoder().fit_transform([[NOON], [None], [NOON]])
    )
    names = np.array([["a"], ["b"]])
    assert_array_equal(
        TableEncoder(min_count=1).fit_transform(names),
        TableEncoder(min_count=1).fit_transform([["a"], ["b"]]),
    )
    mixed = [[np.float64("nan"), Decimal("1.5"), dt.time(1)], [2, 3.0, dt.time(2)]]
    numbers = np.array([[np.nan, 1.5, 3600], [2, 3, 7200]])
    assert_array_equal(TableEncoder().fit_transform(mixed), TableEncoder().fit_transform(numbers))


@every_form
def test_a_row_does_not_depend_on_those_beside_it(columns):
    frame = pd.DataFrame(mixed_columns())
    encoder = TableEncoder(numeric_encoding=columns).fit(frame)
    together = encoder.transform(frame)
    alone = np.vstack([encoder.transform(frame.iloc[i : i + 1]) for i in range(len(frame))])
    assert_array_equal(alone, together)
    odd = [["x"], [5], [True], [1.0], [None], ["1"]]
    names = TableEncoder(min_count=1).fit([["1"], ["x"], ["True"]])
    assert_array_equal(names.transform(odd), np.vstack([names.transform([row]) for row in odd]))


def test_columns_go_by_name_in_any_order():
    frame = pd.DataFrame(mixed_columns())
    encoder = TableEncoder().fit(frame)
    assert_array_equal(encoder.transform(frame[frame.columns[::-1]]), encoder.transform(frame))
    with pytest.raises(ValueError, match=r"Columns \['size', 'when'\] are missing"):
        encoder.transform(frame.drop(columns=["size", "when"]))
    with pytest.warns(UserWarning, match=r"\['other'\] were not learnt") as told:
        assert_array_equal(encoder.transform(frame.assign(other=1)), encoder.transform(frame))
    assert len(told) == 1


def test_names_on_one_side_only_mean_positions():
    X = np.arange(6.0).reshape(3, 2)
    frame = pd.DataFrame(X, columns=["a", "b"])
    for fitted, other, told in ((frame, X, "does not have valid"), (X, frame, "X has feature")):
        encoder = TableEncoder().fit(fitted)
        with pytest.warns(UserWarning, match=told):
            assert_array_equal(encoder.transform(other), encoder.transform(fitted))
    assert not hasattr(TableEncoder().fit(frame).fit(X), "feature_names_in_")
    assert_array_equal(TableEncoder().fit(pd.DataFrame(X)).transform(X), encoder.transform(X))


# numbers


def test_ranks_are_those_of_scikit_learn():
    x = np.random.default_rng(0).lognormal(size=(1021, 1)) ** 3
    reference = QuantileTransformer(n_quantiles=256, subsample=None).fit(x)
    inside = np.linspace(x.min(), x.max(), 500)[:, None]
    assert_allclose(one(x[:, 0]).transform(inside), reference.transform(inside), atol=1e-10)
    ties = np.repeat([0.0, 1, 5, 6], [700, 100, 200, 21])[:, None]
    many = QuantileTransformer(n_quantiles=1021, subsample=None).fit(ties)
    between = np.array([[0.0], [0.5], [1], [3], [5], [5.5], [6]])
    assert_allclose(one(ties[:, 0]).transform(between), many.transform(between), atol=1e-6)


@every_form
@given(
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=30),
    st.lists(st.floats(allow_nan=False), min_size=2, max_size=10),
)
def test_numbers_keep_their_order_and_stay_finite(columns, train, test):
    out = one(train, numeric_encoding=columns).transform(np.sort(np.array(test))[:, None])
    assert np.isfinite(out).all()
    assert np.abs(out).max() < 1e3
    assert (np.diff(out, axis=0) >= -1e-9).all()


def test_values_beyond_the_range_of_training_are_seen():
    encoder = one(np.linspace(0, 10, 50))
    out = encoder.transform([[-1e300], [-1], [0], [5], [10], [20], [1e300], [np.inf]])[:, 0]
    assert_allclose(out, [-1, -1 / 11, 0, 0.5, 1, 1.5, 2, 2], atol=1e-12)


def test_the_scale_does_not_feel_a_tail():
    x = np.random.default_rng(0).normal(size=2000)
    z = one(x, numeric_encoding="standard").transform(np.linspace(-2, 2, 9)[:, None])
    wild = np.concatenate([x, np.full(20, 1e300)])
    assert_allclose(
        one(wild, numeric_encoding="standard").transform(np.linspace(-2, 2, 9)[:, None]),
        z,
        atol=0.1,
    )
    assert_allclose(z[:, 0], np.linspace(-2, 2, 9), atol=0.1)


def test_mostly_zero_has_the_scale_of_the_rest():
    out = one([0] * 90 + [100] * 10, numeric_encoding="both").transform([[0], [100], [50]])
    assert_allclose(out, [[0, 0], [1, 1], [(89 + 90) / 2 / 99, 0.5]])


@every_form
@pytest.mark.parametrize("only", [0.0, 3.0, -1e300])
def test_a_column_that_never_varied_shows_any_other_value(only, columns):
    encoder = one([only] * 5, numeric_encoding=columns)
    out = encoder.transform([[only], [only + 1e-6 * max(abs(only), 1)], [np.nan]])
    assert (np.abs(out[1:] - out[0]) >= 0.4999).all()


@every_form
def test_missing_is_seen_whether_training_had_it_or_not(columns):
    x = np.random.default_rng(0).standard_cauchy(500)
    without = one(x, numeric_encoding=columns)
    train = without.transform(x[:, None])
    missing = without.transform([[np.nan]])
    assert (missing <= train.min(axis=0) - 2).all()
    assert {without.describe(j, v) for j, v in enumerate(missing[0])} == {"x0 is missing"}
    with_some = one([*x, np.nan], numeric_encoding=columns)
    assert with_some.get_feature_names_out()[-1] == "x0:missing"
    assert_array_equal(with_some.transform([[np.nan], [0.0]])[:, -1], [1, 0])
    assert with_some.transform([[np.nan]])[0, 0] == {"standard": 0}.get(columns, 0.5)


# names


def distances(A, B):
    return np.abs(A[:, None] - B[None]).sum(-1)


@pytest.mark.parametrize("names", [["a"], ["a", "b"], ["a", "b", "c", "d", "e"]], ids=len)
def test_a_new_name_is_farther_from_all_than_they_are_from_each_other(names):
    encoder = TableEncoder().fit([[name] for name in names * 3] + [["rare"]])
    seen = encoder.transform([[name] for name in [*names, "rare"]])
    for new in ("another", None):
        assert distances(encoder.transform([[new]]), seen).min() > distances(seen, seen).max()


def test_rare_names_share_an_output_apart_from_new_ones():
    rows = [["a"]] * 5 + [["b"]] * 4 + [["c"]] * 3 + [["d"], ["e"]]
    encoder = TableEncoder(max_categories=2).fit(rows)
    assert encoder.get_feature_names_out().tolist() == ["x0=a", "x0=b", "x0:rare", "x0:new"]
    out = encoder.transform([["a"], ["c"], ["e"], ["z"]])
    assert_array_equal(out, [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 2]])
    every = TableEncoder(min_count=1).fit(rows)
    assert len(every.get_feature_names_out()) == 6


def test_categories_of_numbers_are_names():
    frame = pd.DataFrame({"code": pd.Categorical([10, 10, 2, 2])})
    encoder = TableEncoder().fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["code=10", "code=2", "code:new"]
    assert_array_equal(encoder.transform(pd.DataFrame({"code": [10.0, 2, 3]})).argmax(1), [0, 1, 2])


def test_truth_values_are_read_from_numbers_and_words():
    encoder = TableEncoder().fit([[True], [False], [False]])
    expected = encoder.transform([[False], [True]])
    for other in ([[0], [1]], [["false"], ["True"]], [[0.0], [1.0]]):
        assert_array_equal(encoder.transform(other), expected)
    assert encoder.transform([[2]])[0, -1] == 2


def test_ids_are_dropped_and_the_reason_kept():
    frame = pd.DataFrame({"id": [f"u{i}" for i in range(40)], "x": range(40)})
    with pytest.warns(UserWarning, match=r"'id': 100% of its values occur once, as ids do"):
        encoder = TableEncoder().fit(frame)
    assert list(encoder.dropped_) == ["id"]
    assert_array_equal(encoder.source_, [1])
    assert_array_equal(encoder.transform(frame[["x"]]), encoder.transform(frame))
    with pytest.raises(ValueError, match=r"No column to encode.*max_new=1"):
        TableEncoder().fit(frame[["id"]])
    assert not TableEncoder(max_new=1).fit(frame).dropped_
    assert not TableEncoder().fit(frame[:20]).dropped_


def test_a_value_in_a_column_that_was_empty_is_new():
    encoder = TableEncoder().fit([[None], [float("nan")]])
    assert_array_equal(encoder.transform([[None], [3], ["x"]]), [[1, 0], [0, 2], [0, 2]])


# dates


def test_dates_have_the_cycles_that_training_has():
    def outputs(dates):
        return [n[3:] for n in TableEncoder().fit([[d] for d in dates]).get_feature_names_out()]

    hours = [NOON + dt.timedelta(hours=i) for i in range(5)]
    days = [NOON.date() + dt.timedelta(days=i) for i in range(15)]
    assert outputs(hours) == ["quantile", "hour_sin", "hour_cos"]
    assert outputs(days) == ["quantile", "weekday_sin", "weekday_cos"]
    assert outputs([NOON, NOON]) == ["quantile"]


def test_cycles_close():
    start = dt.datetime(2024, 1, 1)  # a Monday
    dates = [[start + dt.timedelta(hours=6 * i)] for i in range(4 * 14)]
    out = TableEncoder().fit_transform(dates)[:, 1:]
    assert_allclose(out[:4, :2], [[0, 1], [1, 0], [0, -1], [-1, 0]], atol=1e-12)
    assert_allclose(out[0, 2:], [0, 1], atol=1e-12)
    assert_allclose(out[28:], out[:28], atol=1e-12)


def test_times_with_a_zone_are_in_utc():
    naive = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=30, freq="7h")})
    aware = pd.DataFrame({"t": naive["t"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")})
    encoder = TableEncoder().fit(naive)
    expected = encoder.transform(naive)
    assert_array_equal(encoder.transform(aware), expected)
    assert_array_equal(encoder.transform(pl.from_pandas(aware)), expected)
    assert_array_equal(encoder.transform(pa.Table.from_pandas(aware)), expected)
    assert_array_equal(encoder.transform([{"t": t} for t in aware["t"]]), expected)


# other types than in training


def test_text_is_parsed_where_training_had_numbers_dates_or_durations():
    rows = [[1.0, NOON, dt.timedelta(1)], [2.0, NOON + dt.timedelta(3), dt.timedelta(2)]]
    encoder = TableEncoder().fit(rows)
    text = [["1", "2024-01-01T12:00", "86400"], ["2.0", "2024-01-04 12:00Z", "172800"]]
    assert_array_equal(encoder.transform(text), encoder.transform(rows))
    assert_array_equal(
        encoder.transform([[True, NOON, 86400]]), encoder.transform([[1, NOON, dt.timedelta(1)]])
    )
    assert_array_equal(
        encoder.transform([["", "", ""]]), encoder.transform([[None, float("nan"), pd.NaT]])
    )


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (["three", NOON], "'x0' held numbers in training, and 'three' cannot be read"),
        ([1, "soon"], "'x1' held dates in training, and 'soon' cannot be read"),
        ([1, 5], "'x1' held dates in training and holds numbers now"),
        ([NOON, NOON], "'x0' held numbers in training and holds dates now"),
    ],
)
def test_what_cannot_be_read_is_named(row, told):
    encoder = TableEncoder().fit([[1, NOON], [2, NOON]])
    with pytest.raises(ValueError, match=told):
        encoder.transform([row])


def test_mixed_values_are_read_one_by_one():
    encoder = TableEncoder().fit([[1, NOON], [2, NOON]])
    with pytest.raises(ValueError, match="5 cannot be read as one"):
        encoder.transform([[1, 5], [1, NOON]])
    assert_array_equal(encoder.transform([["2", NOON], [2, NOON]])[:, 0], [1, 1])
    names = TableEncoder(min_count=1).fit([[NOON, dt.timedelta(1)], ["x", "y"]])
    assert names.get_feature_names_out().tolist()[:2] == ["x0=2024-01-01T12:00:00", "x0=x"]


# refusals


@pytest.mark.parametrize(
    ("X", "error", "told"),
    [
        ([1, 2], ValueError, "list of int"),
        (["ab", "cd"], ValueError, "list of str"),
        ([[1], [1, 2]], ValueError, "lengths from 1 to 2"),
        ([[[1]]], TypeError, "'x0' holds a list"),
        ([{}], ValueError, "0 feature"),
        (csr_array((9, 2**30)), ValueError, "77 GB of memory as a table"),
        (np.eye(2) * 1j, ValueError, "Complex"),
        (np.zeros((2, 1), "V4"), TypeError, "of type"),
        (pd.Series([1.0]), ValueError, "got Series"),
        (pl.LazyFrame({"a": [1]}), ValueError, "got LazyFrame"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, r"once, got \['a', 'a'\]"),
        (pd.DataFrame([[1, 2]], columns=["1", 1]), ValueError, r"once, got \['1', 1\]"),
        (pd.DataFrame({"a": []}), ValueError, "0 sample"),
    ],
)
def test_other_things_are_refused(X, error, told):
    with pytest.raises(error, match=told):
        TableEncoder().fit(X)


@pytest.mark.parametrize(
    "wrong",
    [{"numeric_encoding": "rank"}, {"max_categories": 0}, {"min_count": 1.5}, {"max_new": 2}],
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TableEncoder(**wrong).fit([[1.0]])


# what the outputs say


def test_every_output_has_a_source_and_a_name():
    frame = pd.DataFrame(mixed_columns())
    encoder = TableEncoder(numeric_encoding="both").fit(frame)
    names = encoder.get_feature_names_out()
    assert (
        len(names) == len(set(names)) == len(encoder.source_) == encoder.transform(frame).shape[1]
    )
    for name, source in zip(names, encoder.source_, strict=True):
        assert name.startswith(frame.columns[source])
    table = encoder.set_output(transform="pandas").transform(frame)
    assert table.columns.tolist() == names.tolist()
    assert_array_equal(encoder.get_feature_names_out(frame.columns), names)
    with pytest.raises(ValueError, match="length equal"):
        encoder.get_feature_names_out(["a"])
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        encoder.get_feature_names_out(frame.columns[::-1])


@every_form
@given(st.floats(-1e4, 1e4))
def test_describing_a_number_gives_it_back(columns, x):
    encoder = one(np.linspace(-50, 50, 101) ** 3 / 100, numeric_encoding=columns)
    for j, value in enumerate(encoder.transform([[x]])[0]):
        told = encoder.describe(j, value).removeprefix("x0 = ").removeprefix("about ")
        assert_allclose(float(told), x, rtol=1e-4, atol=0.0051)  # with decimals as training has


def test_describing_in_words():
    frame = pd.DataFrame(mixed_columns()).drop(columns="empty")
    encoder = TableEncoder(numeric_encoding="both").fit(frame)
    said = {
        ("size:missing", 1): "size is missing",
        ("size:missing", 0): "size is not missing",
        ("whole:quantile", -2): "whole is missing",
        ("on=True", 1): "on = True",
        ("shape=flat", 0): "shape is not flat",
        ("shape:new", 2): "shape is new",
        ("never:quantile", 0.5): "never = 1.5",
        ("never:standard", 5): "never = 3",
        ("never:standard", 2): "never = 1.5",
        ("took:quantile", 1): "took = 3481 s",
        ("when:quantile", 0): "when = 2024-01-01T12:00:00",
        ("when:hour_sin", 1): "when at 06:00",
        ("when:hour_cos", 0): "when at 06:00 or 18:00",
        ("when:weekday_cos", 1): "when at Monday",
    }
    assert {key: encoder.describe(*key) for key in said} == said
    with pytest.raises(ValueError, match="Unknown output 'nothing'"):
        encoder.describe("nothing", 0)


def test_large_values_are_told_whole():
    encoder = TableEncoder(numeric_encoding="both").fit([[0], [123_456_789], [10**400]])
    assert encoder.describe("x0:quantile", 0.5) == "x0 = 123456789"
    assert encoder.describe("x0:quantile", 1) == "x0 = 1e+300"


# keeping


@every_form
def test_the_state_is_plain_and_complete(columns):
    frame = pd.DataFrame(mixed_columns()).assign(id=[f"u{i}" for i in range(60)])
    with pytest.warns(UserWarning, match="dropped"):
        encoder = TableEncoder(numeric_encoding=columns).fit(frame)
    writer = Writer()
    tree = json.loads(json.dumps(writer.tree(encoder.encoder_, "it"), allow_nan=False))
    again = Reader(writer.arrays).model(tree)
    assert again.is_same(encoder.encoder_)
    assert again.dropped == encoder.dropped_
    assert_array_equal(again.transform(frame), encoder.transform(frame))


@pytest.mark.extra
def test_no_library_of_frames_is_needed():
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "polars"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from eqsep.tables import TableEncoder
print(TableEncoder().fit_transform([[1, None], [2, "a"], [3, "a"]]).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[0, 0, 1, 0], [0.5, 1, 0, 0], [1, 1, 0, 0]]


@pytest.mark.parametrize("x", [9.0, 0.46, 123456.0, -3.25, 310.7, 43.0])
def test_values_are_told_as_short_as_single_precision_knows_them(x):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.uniform(-1e3, 2e5, 40), rng.normal(255, 20, 300), [x]])
    encoder = TableEncoder(numeric_encoding="both").fit(values[:, None])
    outputs = encoder.transform([[x]])[0].astype(np.float32).astype(float)
    assert encoder.encoder_.decode(0, outputs) == f"{x:.6g}"


def test_the_work_of_matching_columns_does_not_grow_with_their_square(monkeypatch):
    names = [f"c{i}" for i in range(200)]
    encoder = TableEncoder().fit([dict.fromkeys(names, 1.0), dict.fromkeys(names, 2.0)])
    listed = []
    real = Encoder.column_names
    counted = property(lambda self: listed.append(1) or real.fget(self))
    monkeypatch.setattr(Encoder, "column_names", counted)
    with pytest.warns(ColumnMatchWarning, match="new"):
        encoder.transform([dict.fromkeys([*reversed(names), "new"], 1.5)])
    assert 0 < len(listed) < 10  # and not once for each column


def test_columns_have_the_kind_that_their_values_share():
    column = column_of("size", np.array([1, None, 2.5], dtype=object))
    assert column.kind == "number"
    assert_array_equal(column.values, [1, np.nan, 2.5])
    table = read_table([{"size": 1, "shape": "round"}, {"size": 2}], name="TableEncoder")
    assert [(c.name, c.kind) for c in table.columns] == [("size", "number"), ("shape", "text")]


def test_numbers_that_name_columns_are_text():
    names = [column_name(name) for name in ("a", 1, np.int64(1), ("a", np.int64(1)), None)]
    assert names == ["a", "1", "1", "('a', 1)", "None"]
