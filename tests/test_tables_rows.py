"""Tables row by row: weights in a distance, values in words, alignment, some of the rows."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eqsep.datasets import make_mixed_demo
from eqsep.tables import TableEncoder
from eqsep.tables.encoder import id_columns
from eqsep.tables.reading import Column, arrow_numbers, read_table


@pytest.fixture(scope="module")
def frame():
    return make_mixed_demo(n_samples=300, as_frame=True, random_state=0).X


@pytest.fixture(scope="module")
def encoder(frame):
    return TableEncoder(numeric_encoding="both").fit(frame)


def test_every_output_has_a_weight(encoder, frame):
    weight = encoder.encoder_.weights
    assert weight.shape == (encoder.transform(frame).shape[1],)
    assert (weight >= 0).all()
    by_name = dict(zip(encoder.get_feature_names_out(), weight, strict=True))
    assert by_name["amount:quantile"] == pytest.approx(12**0.5)
    assert by_name["amount:standard"] == 1
    assert by_name["country=DE"] == by_name["country:new"] == pytest.approx(3**0.5)


def test_weighted_outputs_vary_alike():
    """Ranks are uniform and deviations normal: times its weight each has a deviation of one."""
    X = np.random.default_rng(0).normal(size=(4_000, 1))
    encoder = TableEncoder(numeric_encoding="both").fit(X)
    assert_allclose((encoder.transform(X) * encoder.encoder_.weights).std(axis=0), 1, atol=0.05)


def test_a_column_of_two_values_counts_once():
    encoder = TableEncoder(numeric_encoding="both").fit([[0.0], [1.0], [1.0], [0.0], [0.0]])
    weight = encoder.encoder_.weights
    assert weight[0] == 0
    two = encoder.transform([[0.0], [1.0]])
    assert np.abs(two[1] - two[0]) @ weight == pytest.approx(
        np.abs(two[1] - two[0]) @ [12**0.5, 1.0]
    )


def test_a_value_is_told_from_its_outputs(encoder, frame):
    rows = frame.iloc[:40]
    outputs = encoder.transform(rows)
    columns = list(frame.columns)
    for name in ("amount", "account_age_days"):
        told = [float(encoder.encoder_.decode(columns.index(name), row)) for row in outputs]
        assert_allclose(told, rows[name], rtol=1e-4)
    for name in ("purpose", "channel"):
        assert [encoder.encoder_.decode(columns.index(name), row) for row in outputs] == rows[
            name
        ].tolist()
    when = [encoder.encoder_.decode(columns.index("time"), row) for row in outputs]
    gaps = pd.to_datetime(when).to_numpy() - rows["time"].to_numpy()
    assert np.abs(gaps).max() < np.timedelta64(1, "h")
    gone = encoder.transform(rows.iloc[:1].assign(items=np.nan, country="XX"))[0]
    assert encoder.encoder_.decode(columns.index("items"), gone) == "missing"
    assert encoder.encoder_.decode(columns.index("country"), gone) == "new"


def test_a_dropped_column_has_no_value(frame):
    ids = frame.assign(id=[f"u{i}" for i in range(len(frame))])
    with pytest.warns(UserWarning, match="Columns were dropped: 'id'"):
        encoder = TableEncoder().fit(ids)
    with pytest.raises(ValueError, match="Column 'id' was dropped, so it has no value"):
        encoder.encoder_.decode(len(frame.columns), encoder.transform(ids)[0])


def test_the_reasons_to_drop_are_those_of_a_fit(frame):
    ids = frame.assign(id=[f"u{i}" for i in range(len(frame))])
    reasons = id_columns(read_table(ids, name="test"))
    assert reasons == {"id": "100% of its values occur once, as ids do"}
    with pytest.warns(UserWarning, match="Columns were dropped"):
        assert TableEncoder().fit(ids).dropped_ == reasons
    assert id_columns(read_table(frame, name="test")) == {}
    assert id_columns(read_table(ids, name="test"), max_new=1) == {}


def test_an_aligned_table_has_the_columns_of_the_fit(encoder, frame):
    turned = frame[frame.columns[::-1]]
    table = encoder.encoder_.align(turned)
    assert [column.name for column in table.columns] == list(frame.columns)
    assert table.named
    assert table.n_rows == len(frame)
    assert_array_equal(encoder.transform(table), encoder.transform(frame))
    with pytest.raises(ValueError, match=r"Columns \['amount'\] are missing"):
        encoder.encoder_.align(frame.drop(columns="amount"))


def test_some_of_the_rows_are_those_rows(encoder, frame):
    table = read_table(frame, name="test")
    rows = np.array([5, 0, 5, 17])
    some = table.take(rows)
    assert some.n_rows == 4
    assert [(c.name, c.kind) for c in some.columns] == [(c.name, c.kind) for c in table.columns]
    assert_array_equal(encoder.transform(some), encoder.transform(frame)[rows])
    assert read_table(some, name="test") is some
    assert table.n_rows == len(frame)


@pytest.mark.parametrize("truth", [[True, False], ["true", "FALSE"], [1, 0], ["1", "0"]])
def test_truth_values_are_read_whatever_they_are_written_as(truth):
    encoder = TableEncoder().fit([[True], [False], [True]])
    assert_array_equal(encoder.transform([[t] for t in truth]), [[0, 1, 0], [1, 0, 0]])


def test_a_table_without_its_ids_is_aligned_twice():
    ids = [f"id{i}" for i in range(40)]
    rows = [{"id": name, "size": float(i)} for i, name in enumerate(ids)]
    with pytest.warns(UserWarning, match="Columns were dropped: 'id'"):
        encoder = TableEncoder(numeric_encoding="both").fit(rows)
    table = encoder.encoder_.align([{"size": 3.0}])
    assert [column.name for column in encoder.encoder_.align(table).columns] == ["id", "size"]


@pytest.mark.parametrize(
    "kind", ["float32", "float64", "int8", "int32", "uint64", "timestamp[us]", "bool"]
)
@pytest.mark.parametrize("part", [slice(None), slice(3, 11), slice(5, 5)])
def test_numbers_of_arrow_are_those_that_it_gives_itself(kind, part):
    gaps = kind.startswith(("float", "timestamp"))
    values = [None if i % 5 == 2 and gaps else i for i in range(20)]
    whole = pa.array([i % 3 == 0 for i in values] if kind == "bool" else values, kind)
    for given in (pa.chunked_array([whole, whole[:7]])[part], whole[part]):
        found, expected = arrow_numbers(given), given.to_numpy(zero_copy_only=False)
        assert found.dtype == expected.dtype
        assert_array_equal(found, expected)


def test_a_number_stands_for_what_is_missing():
    column = pa.array([4, None, 6], pa.int32())
    assert arrow_numbers(column[1:], missing=9).tolist() == [9, 6]


def test_texts_are_told_apart_in_the_same_order_whether_few_or_many():
    texts = ["b", None, "a", "b", "", "a"]
    few = Column("x", "text", np.array(texts, dtype=object))
    many = Column("x", "text", np.array(texts * 2000, dtype=object))
    names, rows = few.names()
    assert (names, rows.tolist()) == (["b", None, "a", ""], [0, 1, 2, 0, 3, 2])
    assert many.names()[0] == names
    assert_array_equal(many.names()[1], np.tile(rows, 2000))
