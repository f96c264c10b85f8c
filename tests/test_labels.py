import re
from collections import Counter

import numpy as np
import pytest

from eqsep import KernelEqualitySeparator, NegativeSampling
from eqsep.labels import (
    column,
    label_codes,
    listed,
    may_be_normal,
    natural_order,
    read_labels,
    read_row_labels,
    usual_normal,
    with_counts,
)


@pytest.mark.parametrize(
    ("y", "classes", "encoded"),
    [
        ([0, 1, 0], [0, 1], [0, 1, 0]),
        ([True, False], [False, True], [1, 0]),
        (["normal", "dos"], ["normal", "dos"], [0, 1]),
        (["attack", "normal"], ["normal", "attack"], [1, 0]),
        (["dos", "normal", "probe"], ["normal", "anomaly"], [1, 0, 1]),
        (np.array(["dos", "normal"], dtype=object), ["normal", "dos"], [1, 0]),
    ],
)
def test_one_is_the_anomaly_whatever_names_the_classes(y, classes, encoded):
    labels = read_labels(y)
    assert labels.classes.tolist() == classes
    assert labels.encode(y).tolist() == encoded


def test_the_normal_label_can_be_named():
    labels = read_labels(["bad", "good", "worse"], normal="good")
    assert labels.encode(["good", "bad", "worse"]).tolist() == [0, 1, 1]
    with pytest.raises(
        ValueError, match=r"normal must be one of the labels \(bad, good\), got 'fine'"
    ):
        read_labels(["bad", "good"], normal="fine")


@pytest.mark.parametrize("y", [["good", "bad"], [1, -1], [2, 1]], ids=str)
def test_classifiers_take_two_labels_of_which_none_is_normal_in_order_with_a_warning(y):
    first, second = sorted(y)
    with pytest.warns(UserWarning, match=rf"{first} was taken as normal.*normal={second!r}"):
        labels = read_labels(y)
    assert labels.classes.tolist() == [first, second]


@pytest.mark.parametrize("word", ["normal", "Normal", "BENIGN", " ok", "Regular", "0", "FALSE"])
def test_the_words_for_normal_are_known_in_any_case(word):
    assert read_labels(["attack", word]).classes.tolist() == [word, "attack"]
    assert read_labels(["attack", word, "xss"]).classes.tolist() == [word, "anomaly"]
    assert read_labels([word], one_class=True).encode(["leak", word]).tolist() == [1, 0]


def test_two_words_for_normal_are_an_error_unless_one_is_named():
    with pytest.raises(ValueError, match=r"names of normal rows: 'normal', 'ok'.*normal='normal'"):
        read_labels(["ok", "normal", "leak"])
    assert read_labels(["ok", "normal"], normal="ok").encode(["ok", "normal"]).tolist() == [0, 1]


NUMBERS = [np.int8, np.uint8, np.int32, np.uint64, np.float32, np.float64]


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda dtype: dtype.__name__)
def test_whole_numbers_are_the_same_labels_in_every_type(dtype):
    labels = read_labels(np.array([0, 1], dtype))
    assert labels.classes.dtype == np.int64
    for other in NUMBERS:
        assert labels.encode(np.array([1, 0], other)).tolist() == [1, 0]


def test_an_unknown_label_is_an_error_never_normal():
    with pytest.raises(ValueError, match=r"Unknown labels 2, 7: expected 0 \(normal\) or 1"):
        read_labels([0, 1]).encode([0, 7, 2])


def test_a_new_name_beside_a_known_normal_is_an_anomaly():
    assert read_labels(["normal", "dos"]).encode(["probe", "normal"]).tolist() == [1, 0]


def test_more_than_two_labels_need_a_normal_one_among_names():
    with pytest.raises(ValueError, match=r"Only binary classification.*3 labels"):
        read_labels([0, 1, 2])
    words = "labels are 'c' (2 rows), 'a' (1 row), 'b' (1 row). Name the normal one: normal='c'"
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        read_labels(["a", "b", "c", "c"])
    assert "binary" not in str(caught.value)


@pytest.mark.parametrize("y", [[1, 1], ["normal"]])
def test_one_class_is_refused(y):
    with pytest.raises(ValueError, match=r"at least 2 classes in y, got 1 class"):
        read_labels(y)


def test_one_class_will_do_for_a_piece_where_its_meaning_is_known():
    assert read_labels([1, 1], one_class=True).classes.tolist() == [0, 1]
    assert read_labels([False], one_class=True).classes.tolist() == [False, True]
    named = read_labels(["dos"], one_class=True)
    assert named.encode(["dos", "normal", "probe"]).tolist() == [1, 0, 1]
    assert read_labels(["ok"], normal="ok", one_class=True).encode(["ok"]).tolist() == [0]
    with pytest.raises(ValueError, match=r"Only the label 5 occurs.*normal=5, if these") as caught:
        read_labels([5], one_class=True)
    assert "classes" not in str(caught.value)  # not everyone who asks has such a parameter


@pytest.mark.parametrize(
    ("normal", "other"), [(5, 1), (1, 0), (0, 1), (-1, 1), (False, True), (True, False)]
)
def test_one_label_that_is_said_to_be_normal_settles_it(normal, other):
    labels = read_labels([normal] * 3, normal=normal, one_class=True)
    assert labels.classes.tolist() == [normal, other]
    assert labels.classes.dtype == np.asarray(normal).dtype
    assert labels.encode([normal]).tolist() == [0]


def test_one_label_that_is_not_the_normal_one_is_the_anomaly():
    labels = read_labels([3, 3], normal=5, one_class=True)
    assert labels.classes.tolist() == [5, 3]
    assert labels.encode([3, 5]).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"Unknown labels 4: expected 5 \(normal\) or 3"):
        labels.encode([4])


def test_the_first_other_number_is_the_anomaly_and_no_third_one():
    labels = read_labels([1, 1], normal=1, one_class=True)
    with pytest.raises(ValueError, match=r"Unknown labels -1: expected 1 \(normal\)\. Correct"):
        labels.encode([-1])
    for known in (labels, labels.including([])):
        known = known.including([1]).including([1, -1])
        assert known.classes.tolist() == [1, -1]
        assert known.encode([1, -1]).tolist() == [0, 1]
        with pytest.raises(ValueError, match="Unknown labels 0"):
            known.including([0])
    with pytest.raises(ValueError, match="Unknown labels -1, 3"):
        labels.including([-1, 3])


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_labels_are_refused(missing):
    with pytest.raises(ValueError, match="missing labels"):
        read_labels(np.array(["normal", missing], dtype=object))


def test_no_labels_at_all_and_continuous_ones_are_refused():
    with pytest.raises(ValueError, match="requires y to be passed"):
        read_labels(None)
    with pytest.raises(ValueError, match="Unknown label type"):
        read_labels([0.1, 0.2, 0.7])


def test_a_message_lists_at_most_eight_labels():
    assert listed(np.arange(3)) == "0, 1, 2"
    assert listed(np.arange(8)) == "0, 1, 2, 3, 4, 5, 6, 7"
    assert listed(np.arange(9)) == "0, 1, 2, 3, 4, 5, 6, 7, … (9 in all)"


def test_normal_rows_alone_will_do_by_any_number():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = NegativeSampling(KernelEqualitySeparator(), ratio=1, normal=5, random_state=0)
    assert model.fit(X, [5] * 40).classes_.tolist() == [5, 1]
    assert model.predict([[90.0, 90.0]]).tolist() == [1]


def test_numbers_after_names_are_refused_not_taken_for_anomalies():
    with pytest.raises(ValueError, match=r"Labels were names .* now numbers \(0, 1\)"):
        read_labels(["normal", "dos"]).encode([0, 1])


def test_what_to_do_about_several_numbers_is_said():
    with pytest.raises(ValueError, match="all others 1: y != 0, or"):
        read_labels([0, 1, 2])
    with pytest.raises(ValueError, match="all others 1: y != 3, or"):
        read_labels([1, 2, 3], normal=3)
    with pytest.raises(ValueError, match="all others 1, or"):
        read_labels([1, 2, 3])


def test_an_unknown_label_is_refused_where_rows_are_told_right_too():
    X = np.array([[0.0], [1.0], [5.0], [6.0]])
    model = KernelEqualitySeparator().fit(X, [0, 0, 1, 1])
    assert model.score(X, [0, 0, 1, 0]) == 0.75
    with pytest.raises(ValueError, match=r"labels 7: expected 0 \(normal\) or 1 \(anomalous\)"):
        model.score(X, [0, 0, 1, 7])


def test_labels_are_listed_by_the_numbers_in_them_and_counted_by_frequency():
    names = ["10", "2", "1", "dos 10", "dos 9"]
    assert sorted(names, key=natural_order) == ["1", "2", "10", "dos 9", "dos 10"]
    assert with_counts(Counter({"b": 1, "a": 1200})) == "'a' (1,200 rows), 'b' (1 row)"


def test_which_labels_are_normal_unless_one_is_named():
    found = [may_be_normal(label, normal=None) for label in ("Normal", False, None, "smurf", 1)]
    assert found == [True, True, True, False, False]
    assert not may_be_normal("normal", normal="good")
    assert usual_normal(["Benign", "attack"]) == ["Benign"]
    assert usual_normal([-1, 1]) == []
    assert usual_normal([0.0, 1.0]) == [0.0]


def test_labels_are_read_once_for_all_rows_and_missing_ones_have_no_code():
    whole = column(np.array([0.0, 1.0], dtype=np.float32))
    assert (whole.dtype, whole.tolist()) == (np.int64, [0, 1])
    distinct, place = label_codes(["smurf", None, "normal", "smurf"], 4)
    assert (distinct.tolist(), place.tolist()) == (["smurf", "normal"], [0, -1, 1, 0])
    labels = read_row_labels(["normal", None, "smurf"], n_rows=3, normal=None)
    assert (labels.code.tolist(), labels.kinds) == ([0, -1, 1], ("smurf",))
