"""Keys of rows: bits mixed as is said, and a table of those seen before."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqsep.engine.keys import KeyTable, mixed_numbers, mixed_texts
from eqsep.engine.nystroem import mixed_bits

FACTORS = np.random.default_rng(0).integers(2**64, size=2, dtype=np.uint64) | np.uint64(1)


def mixed(bits):
    """The finaliser of SplitMix64, in whole numbers of Python."""
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) % 2**64
    return bits ^ (bits >> 31)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_bits_are_mixed_as_is_said(dtype):
    X = (np.random.default_rng(0).normal(size=(20, 5)) * 100).astype(dtype)
    factors = np.array([2**63 + 1, 3, 5, 2**40 + 7, 2**64 - 1], dtype=np.uint64)
    bits = X.astype(float).view(np.uint64)
    sums = [
        sum(mixed((int(b) + int(f)) % 2**64) * int(f) for b, f in zip(row, factors, strict=True))
        for row in bits
    ]
    wanted = [mixed(total % 2**64) for total in sums]
    assert mixed_bits(X, factors).tolist() == wanted
    assert mixed_bits(np.asfortranarray(X), factors).tolist() == wanted


def test_minus_zero_is_zero():
    zeros, factors = np.array([[0.0, -0.0]]), np.array([3, 5], dtype=np.uint64)
    assert mixed_bits(zeros, factors) == mixed_bits(np.abs(zeros), factors)


def texts_as_arrow(texts, *, offset=np.int32):
    coded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, coded)]).astype(offset)
    return ends, np.frombuffer(b"".join(coded), dtype=np.uint8)


def keys_of(*columns):
    keys = np.zeros((len(columns[0]), 2), dtype=np.uint64)
    for column in columns:
        mixed_texts(*texts_as_arrow(column), FACTORS, keys)
    return [tuple(key) for key in keys.tolist()]


# All that UTF-8 can encode, in words that take no search through all of Unicode.
ENCODABLE = st.characters(exclude_categories=["Cs"])


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.text(ENCODABLE, max_size=20), st.text(ENCODABLE, max_size=9)),
        min_size=1,
        max_size=30,
    )
)
def test_rows_of_texts_share_a_key_where_they_are_equal_and_only_there(rows):
    keys = keys_of(*zip(*rows, strict=True))
    assert len(set(keys)) == len(set(rows))
    assert len(set(zip(keys, rows, strict=True))) == len(set(rows))


def test_where_one_text_ends_and_the_next_begins_matters():
    assert len(set(keys_of(["ab", "a", "", "ab\0"], ["c", "bc", "abc", "c"]))) == 4


def test_each_half_of_a_key_tells_rows_apart_by_itself():
    values = [str(i) for i in range(50_000)]
    keys = np.array(keys_of(values, values[::-1]), dtype=np.uint64)
    assert len(np.unique(keys[:, 0])) == len(np.unique(keys[:, 1])) == len(values)


def test_texts_in_the_middle_of_larger_ones_and_long_offsets_have_the_same_keys():
    ends, data = texts_as_arrow(["xx", "tcp", "http", "yy"], offset=np.int64)
    keys = np.zeros((2, 2), dtype=np.uint64)
    mixed_texts(ends[1:4], data, FACTORS, keys)
    assert list(map(tuple, keys.tolist())) == keys_of(["tcp", "http"])


def test_numbers_are_told_apart_by_their_bits():
    keys = np.zeros((4, 2), dtype=np.uint64)
    mixed_numbers(np.array([1.0, 2.0, np.nextafter(1.0, 2.0), 1.0]), FACTORS, keys)
    assert len({tuple(key) for key in keys.tolist()}) == 3
    assert (keys[0] == keys[3]).all()


@settings(max_examples=60, deadline=None)
@given(numbers=st.lists(st.integers(0, 30), max_size=60), most=st.integers(1, 40))
def test_a_table_knows_the_place_of_each_key_as_far_as_there_is_room(numbers, most):
    table, known = KeyTable(most=most), {}
    for number in numbers:
        key = np.array([[number, 7 * number]], dtype=np.uint64)
        assert table.places(key).tolist() == [known.get(number, -1)]
        is_new = number not in known and len(known) < most
        assert table.add(key).tolist() == [0] * is_new
        if is_new:
            known[number] = len(known)
        assert len(table) == len(known)


def test_keys_that_begin_alike_have_places_of_their_own():
    keys = np.array([[5, i] for i in range(40)] + [[5 + 2**40, 0]], dtype=np.uint64)
    table = KeyTable(most=64)
    assert table.add(np.concatenate([keys, keys])).tolist() == list(range(41))
    assert table.places(keys).tolist() == list(range(41))
