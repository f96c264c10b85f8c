"""The encoder by itself: rows and back, the same distances in fewer columns, and what is kept."""

import datetime as dt
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from eqsep.datasets import make_mixed_demo
from eqsep.errors import UserError
from eqsep.persistence.files import Reader, Writer
from eqsep.schemas import ModelFileError
from eqsep.tables.encoder import ColumnMatchWarning, Encoder
from eqsep.tables.encodings import Category, Encoding, Number
from eqsep.tables.reading import column_of

FRAME = make_mixed_demo(n_samples=300, as_frame=True, random_state=0).X
NOON = dt.datetime(2024, 1, 1, 12)


@pytest.fixture(scope="module")
def encoder():
    return Encoder.learn(FRAME)


def with_ids(frame):
    return frame.assign(id=[f"u{i}" for i in range(len(frame))])


def test_what_was_learnt_is_frozen(encoder):
    assert encoder.column_names == list(FRAME.columns)
    assert list(encoder.by_name) == list(FRAME.columns)
    assert isinstance(encoder.by_name["amount"], Number)
    assert isinstance(encoder.by_name["country"], Category)
    with pytest.raises(FrozenInstanceError):
        encoder.names = None


def test_columns_without_names_go_by_their_position():
    encoder = Encoder.learn([[1.0, "a"], [2.0, "b"], [3.0, "a"], [4.0, "b"]])
    assert encoder.names is None
    assert encoder.column_names == ["x0", "x1"]
    assert not encoder.align([[1.0, "a"]]).named
    with pytest.raises(UserError, match="X has 1 features, but Detector is expecting 2 features"):
        encoder.align([[1.0]])


def test_a_table_is_aligned_by_the_names_of_the_fit(encoder):
    turned = FRAME[FRAME.columns[::-1]]
    assert [column.name for column in encoder.align(turned).columns] == list(FRAME.columns)
    assert_array_equal(encoder.encode(turned), encoder.encode(FRAME))
    assert_array_equal(encoder.encode(encoder.align(FRAME)), encoder.encode(FRAME))
    with pytest.warns(ColumnMatchWarning, match=r"\['more'\] were not learnt"):
        encoder.align(FRAME.assign(more=1))


def test_what_is_missing_is_said_in_the_name_of_who_asks(encoder):
    fewer = FRAME.drop(columns=["amount", "country"])
    with pytest.raises(
        UserError, match=r"Columns \['amount', 'country'\] are missing: Detector was fitted with"
    ):
        encoder.align(fewer)
    with pytest.raises(UserError, match="are missing: Detector was fitted with them"):
        encoder.encode(fewer)
    with pytest.raises(UserError, match="are missing: TableEncoder was fitted with them"):
        encoder.transform(fewer)


def test_values_come_back_as_words(encoder):
    rows = FRAME.iloc[:40]
    outputs = encoder.outputs_of(encoder.encode(rows))
    for j, name in enumerate(FRAME.columns):
        found = [encoder.decode(j, row) for row in outputs]
        if name == "time":
            gaps = pd.to_datetime(found).to_numpy() - rows[name].to_numpy()
            assert np.abs(gaps).max() < np.timedelta64(1, "h")
        elif isinstance(encoder.columns[j], Number):
            read = [np.nan if text == "missing" else float(text) for text in found]
            assert_allclose(read, rows[name].astype(float), rtol=1e-3, atol=1e-3)
        else:
            column = encoder.columns[j]
            words = {None: "missing"} | dict.fromkeys(column.rare, "a rare value")
            names = [None if pd.isna(value) else str(value) for value in rows[name]]
            assert found == [words.get(text, text) for text in names]


def test_outputs_are_encoded_rows_without_their_weights(encoder):
    outputs = encoder.outputs_of(encoder.encode(FRAME))
    expected = np.where(encoder.weights > 0, encoder.transform(FRAME), 0)
    assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    assert_array_equal(encoder.source, encoder.output_source[encoder.counted])
    assert encoder.encode(FRAME).dtype == np.float32


def test_a_column_is_encoded_as_in_its_table(encoder):
    rows, table = encoder.encode(FRAME), encoder.align(FRAME)
    for j, column in enumerate(table.columns):
        assert_array_equal(encoder.encode_column(j, column), rows[:, encoder.source == j])


def test_deviations_are_the_columns_that_grow_with_a_number(encoder):
    for j, name in zip(encoder.source[encoder.deviations], encoder.deviations, strict=True):
        assert isinstance(encoder.columns[j], Number)
        assert encoder.weights[encoder.counted][name] == 1


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.sampled_from("abcz")), min_size=2, max_size=9))
def test_packed_rows_have_the_same_manhattan_distances(rows):
    train = [(float(i**2), "abc"[i % 3]) for i in range(40)]
    encoder = Encoder.learn(train)
    encoded = encoder.encode(rows)
    packed = encoder.pack(encoded)
    assert packed.shape[1] < encoded.shape[1]

    def distances(Z):
        Z = Z.astype(float)
        return np.abs(Z[:, None] - Z[None]).sum(axis=-1)

    assert_allclose(distances(packed), distances(encoded), rtol=1e-5, atol=1e-5)


def test_packed_rows_of_a_mixed_table_have_the_same_distances(encoder):
    rows = encoder.encode(FRAME)
    packed = encoder.pack(rows)
    assert packed.shape[1] < rows.shape[1]
    apart = np.abs(rows[:150].astype(float) - rows[150:]).sum(axis=1)
    assert_allclose(np.abs(packed[:150].astype(float) - packed[150:]).sum(axis=1), apart, rtol=1e-6)


def rows_of_names(counts):
    return [{"name": name} for name, n in counts.items() for _ in range(n)]


# ids


def test_ids_are_dropped_with_a_reason_and_have_no_value():
    encoder = Encoder.learn(with_ids(FRAME))
    assert "'id': 100% of its values occur once" in str(encoder.dropped_warning())
    assert Encoder.learn(FRAME).dropped_warning() is None
    assert encoder.dropped == {"id": "100% of its values occur once, as ids do"}
    assert encoder.columns[-1] is None
    assert_array_equal(encoder.encode(FRAME), encoder.encode(with_ids(FRAME)))
    with pytest.raises(UserError, match="Column 'id' was dropped, so it has no value"):
        encoder.decode(len(FRAME.columns), np.zeros(len(encoder.weights)))
    assert Encoder.learn(with_ids(FRAME), max_new=1).dropped == {}
    with pytest.raises(UserError, match="No column to encode"):
        Encoder.learn(with_ids(FRAME)[["id"]])


# what is kept


def through_a_file(encoder):
    writer = Writer()
    return Reader(writer.arrays).model(writer.tree(encoder, "it"))


@pytest.mark.filterwarnings("ignore::eqsep.tables.encoder.DroppedColumnWarning")
@pytest.mark.parametrize(
    "rows",
    [
        with_ids(FRAME),
        np.random.default_rng(0).normal(size=(50, 3)),
        [{"when": NOON + dt.timedelta(hours=5 * i), "took": dt.timedelta(i)} for i in range(50)],
        rows_of_names({"a": 9, "a\0": 5, "日本": 4, "'; --": 1}),
        [[None, 1.5], [float("nan"), 1.5]],
    ],
    ids=["mixed", "numbers", "times", "names", "nothing"],
)
def test_an_encoder_comes_back(rows):
    encoder = Encoder.learn(rows)
    for again in (
        Encoder.from_state(encoder.state()),
        through_a_file(encoder),
        pickle.loads(pickle.dumps(encoder)),
    ):
        assert again.is_same(encoder)
        assert (again.dropped, again.notation) == (encoder.dropped, encoder.notation)
        assert again.encode(rows).tobytes() == encoder.encode(rows).tobytes()


def test_encoders_of_other_rows_are_not_the_same(encoder):
    assert encoder.is_same(Encoder.learn(FRAME))
    assert not encoder.is_same(Encoder.learn(FRAME[:200]))
    assert not encoder.is_same(Encoder.learn(FRAME, forms=["quantile"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": None, "dropped": {"id": "x"}}, "are not those with a reason"),
        ({"names": ["a"]}, "more names, or fewer"),
        ({"columns": []}, "Encoder.columns should be a list"),
        ({"columns": [{"kind": "text"}] * 10}, "of no known kind"),
        ({"columns": [{}] * 10}, "of no known kind"),
        ({"notation": {"amount": {"decimal": ";"}}}, "Encoder.notation should be"),
        ({"notation": {"amount": {"decimal": []}}}, "Encoder.notation should be"),
        ({"dropped": {"amount": 3}}, "Encoder.dropped should be a dict of a string"),
        ({"more": 1}, "has the unknown 'more'"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(change, message, encoder):
    with pytest.raises(ModelFileError, match=message):
        Encoder.from_state(encoder.state() | change)


def test_rows_are_encoded_packed_and_decoded():
    encoder = Encoder.learn([{"size": 1.0}, {"size": 2.0}, {"size": 4.0}])
    rows = encoder.encode([{"size": 4.0}, {"size": 1.0}])
    assert (rows.shape, encoder.pack(rows).shape) == ((2, 2), (2, 1))
    assert encoder.decode(0, encoder.outputs_of(rows)[0]) == "4"


def test_a_matrix_has_the_weighted_outputs_of_numbers():
    values = column_of("size", np.array([1.0, 2.0, 4.0]))
    size = Number.learn(values, unit="number", forms=["quantile"])
    found = Encoding([size], np.ones(1), np.float32).of_plain(np.array([[3.0], [np.nan]]))
    assert found.tolist() == [[0.75], [-2.0]]
