"""Labelled rows from files: their columns, and what the column of labels says."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from eqsep import Detector
from eqsep.cli.inputs import (
    MOST_KINDS,
    InputSpec,
    as_label,
    is_usual_normal,
    numbers_of,
    read_label_column,
    y_for,
)
from eqsep.errors import EqsepWarning, Note, UserError
from eqsep.io.dialect import Layout
from eqsep.labels import WITHOUT


def labels_of(values, *normal):
    return read_label_column(pa.chunked_array([pa.array(values)]), name="kind", normal=normal)


@pytest.mark.parametrize(
    ("values", "normal", "found", "texts"),
    [
        (["normal", "scan", None], [], "normal", ["normal", "scan", None]),
        (["BENIGN", "scan", "benign"], [], "benign", ["benign", "scan", "benign"]),
        (["Regular", "scan"], [], "Regular", ["Regular", "scan"]),
        (["1", "0", ""], [], "0", ["1", "0", None]),
        ([0.0, 1.0, 1.0], [], "0", ["0", "1", "1"]),
        (["True", "false"], [], "0", ["1", "0"]),
        ([True, False], ["true"], "1", ["1", "0"]),
        (["true", "false", "scan"], ["true"], "true", ["true", "false", "scan"]),
        (["fine", "scan"], ["fine"], "fine", ["fine", "scan"]),
        (["2", "1.0"], ["2"], "2", ["2", "1"]),
        (["OK", "i.O.", "scan"], ["ok", "I.O."], "OK", ["OK", "OK", "scan"]),
        (["i.O.", "leak"], ["ok", "i.O."], "ok", ["ok", "leak"]),
        (["normal", "0", "1"], ["normal", "0.0", "absent"], "normal", ["normal", "normal", "1"]),
    ],
)
def test_the_normal_label_is_known_or_said(values, normal, found, texts):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        labels = labels_of(values, *normal)
    assert (labels.normal, labels.texts.tolist()) == (found, texts)


@pytest.mark.parametrize("values", [["Benign", "scan"], ["ok", "scan", None]], ids=str)
def test_a_note_says_which_word_is_taken_for_normal(values):
    with pytest.warns(Note, match=rf"^Labels of kind: '{values[0]}' is the normal one\. --normal"):
        labels_of(values)


def test_a_word_for_normal_rows_is_proposed_next_to_all_normal_labels():
    said = r"are 'Ideal', 'Premium'\. Use --normal Ideal --normal Premium --normal Good if such"
    with pytest.warns(EqsepWarning, match=said):
        labels_of(["Ideal", "Premium", "Good", "Fair"], "Ideal", "Premium")


@pytest.mark.parametrize("values", [["0", "1", "normal"], ["ok", "normal", "leak"]], ids=str)
def test_two_words_for_normal_are_asked_about(values):
    with pytest.raises(UserError, match=r"several names of normal rows: .*--normal normal"):
        labels_of(values)


def test_numbers_are_labels_where_0_is_normal():
    assert labels_of([0, 1, 1]).are_numbers
    assert labels_of([0, 1, 1]).y.tolist() == [0, 1, 1]
    assert labels_of(["0", None, "1"]).y.tolist() == [0, None, 1]
    for values, normal in ((["1", "0"], ["1"]), (["0", "2"], []), (["normal", "1"], [])):
        labels = labels_of(values, *normal)
        assert not labels.are_numbers
        assert labels.y.tolist() == values


def test_other_words_for_normal_rows_are_asked_for():
    with pytest.warns(EqsepWarning, match=r"'i\.O\.' .* Use --normal normal --normal i\.O\. if"):
        labels = labels_of(["normal", "i.O.", "leak"])
    assert labels.counts == {"normal": 1, "i.O.": 1, "leak": 1}
    with pytest.raises(
        UserError, match=r"both 'ok'.* --normal normal --normal ok; otherwise rename"
    ):
        labels_of(["normal", "ok", "leak"], "ok")


def test_counts_begin_with_the_normal_kind_and_end_with_none():
    labels = labels_of(["z", "a", None, "normal", "a", None])
    assert list(labels.counts.items()) == [("normal", 1), ("a", 2), ("z", 1), (WITHOUT, 2)]
    assert labels.take(np.array([0, 1])).counts == {"a": 1, "z": 1}


def test_rows_of_seen_kinds_stay_and_those_that_are_normal_or_unlabelled():
    labels = labels_of(["normal", "scan", None, "flood"])
    assert labels.seen(["scan"]).tolist() == [True, True, True, False]
    assert labels.seen(["kind = scan"]).tolist() == [True, True, True, False]  # as it is printed
    with pytest.raises(
        UserError, match=r"--seen 'cold' is not a kind .*, whose kinds are 'flood', 'scan'\."
    ):
        labels.seen(["cold"])


def test_labels_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"Say which label .* holds 'b' \(2 rows\), 'a' \(1 row\)"):
        labels_of(["a", "b", "b"])
    with pytest.raises(UserError, match=r"Say which label .* holds '1' \(2 rows\), '-1'"):
        labels_of([-1, 1, 1])
    with pytest.raises(UserError, match="holds no row labelled 'fine'"):
        labels_of(["a", "b"], "fine")
    assert labels_of(["a", None], "fine").normal == "fine"  # rows without a label may be it
    with pytest.raises(UserError, match="every value is missing"):
        labels_of([None, ""])
    assert (
        len(labels_of([*map("k{}".format, range(MOST_KINDS - 1)), "normal"]).counts) == MOST_KINDS
    )
    with pytest.raises(UserError, match="501 different labels"):
        labels_of([*map("k{}".format, range(MOST_KINDS)), "normal"])
    with pytest.raises(UserError, match="knows the labels 0 and 1, and these rows have 'scan'"):
        numbers_of(["0", "scan", None])


def read(tmp_path, values, **options):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,kind", *(f"{value},normal" for value in values)]))
    return InputSpec([str(path)], Layout(), "kind", **options).read()[0]


def test_words_among_many_numbers_are_refused_unless_they_are_names(tmp_path):
    numbers = [f"{i}.5" for i in range(45)]
    with pytest.raises(UserError, match="'x' holds numbers and also 'broken'"):
        read(tmp_path, [*numbers, "broken"])
    (column,) = read(tmp_path, [*numbers, "broken"], names=["x"]).columns
    assert (column.kind, column.categorical) == ("text", True)
    assert read(tmp_path, [*numbers[:19], "broken"]).columns[0].kind == "text"  # 20 are names
    with pytest.raises(UserError, match="broken"):
        read(tmp_path, [*numbers[:20], "broken"])
    with pytest.raises(UserError, match=r"also 'leer'.* missing=\['x=leer'\]"):
        read(tmp_path, ['"1,5 €"', *(f'"{i},5 €"' for i in range(2, 40)), "leer"])
    with pytest.raises(UserError, match=r"also '7 £'.* or call it categorical.$"):
        read(tmp_path, ["7 £", *(f"{i} $" for i in range(2, 40))])
    with pytest.raises(UserError, match="'x' holds dates and also 'Total'"):
        read(tmp_path, [*(f"{i:02d}.05.24" for i in range(1, 31)), "Total"])
    many_words = [f"word{i}" for i in range(6)]  # 45 of 51 are numbers: less than nine in ten
    assert read(tmp_path, [*numbers, *many_words]).columns[0].kind == "text"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": None, "normal": ["a"]}, "name their column with --label"),
        ({"label": None, "seen": ["a"]}, "name their column with --label"),
        ({"drop": ["kind"]}, "'kind' holds the labels"),
        ({"names": ["kind"]}, "'kind' holds the labels"),
        ({"drop": ["x"], "names": ["x"]}, "cannot be both --categorical and --drop"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        InputSpec(["no.csv"], Layout(), **{"label": "kind", **options}).check()


def test_options_that_labels_need_are_said_again():
    layout = Layout(missing=("k.A.", "kind=-1", "x=0"))
    spec = InputSpec(["t.csv"], layout, "kind", normal=["ok", "i. O."])
    assert spec.label_words() == ("--normal", "ok", "--normal", "i. O.", "--missing", "kind=-1")
    assert InputSpec(["t.csv"], Layout(), "kind", normal=["ok"]).label_words() == ()  # is known


def test_columns_are_chosen_with_the_label_last():
    spec = InputSpec(["t.csv"], Layout(), "kind", drop=["id"], names=["x"])
    assert spec.columns(None)(["kind", "id", "x", "y"]) == ["x", "y", "kind"]
    assert InputSpec(["t.csv"], Layout()).columns(None)(["a", "b"]) == ["a", "b"]
    with pytest.raises(UserError, match="no column 'id'"):
        spec.columns(None)(["kind", "x"])


def test_labels_are_read_as_they_are_written():
    table = pa.table({"kind": [1.0, None], "x": ["a", "b"]})
    assert InputSpec(["t"], Layout(), "kind").written_labels(table).tolist() == ["1", None]
    assert InputSpec(["t"], Layout()).written_labels(table).tolist() == [None, None]


def test_rows_are_read_as_a_model_reads_them(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)})
    like = Detector(n_landmarks=10, false_alarm_rate=0.1, random_state=0).fit(X)
    path = tmp_path / "t.csv"
    X[["y", "x"]].assign(kind="normal", more=1).to_csv(path, index=False)
    for label in (None, "kind"):
        rows, labels = InputSpec([str(path)], Layout(), label).read(like.plan_)
        assert [column.name for column in rows.columns] == ["x", "y"]
        np.testing.assert_allclose(rows.columns[0].values, X["x"])
        assert (labels is None) == (label is None)


@pytest.mark.parametrize(
    ("y", "more", "read"),
    [
        (["normal", "hot"], ["hot", None, "1"], ["hot", None, "1"]),
        ([0, 1], ["1", None, "0"], [1, None, 0]),
        ([0, 1], ["true", "", "False"], [1, None, 0]),
        (None, ["hot", None, "hot"], ["hot", None, "hot"]),
    ],
    ids=["names", "numbers", "truths", "none yet"],
)
def test_more_labels_are_read_as_those_learnt_before(y, more, read):
    X = np.random.default_rng(0).normal(size=(60, 2))
    detector = Detector(n_landmarks=10, false_alarm_rate=0.1, random_state=0)
    detector.fit(X, None if y is None else np.resize(y, 60))
    found = y_for(detector.model_, pa.chunked_array([pa.array(more)]), name="kind")
    assert found.tolist() == read


@pytest.mark.parametrize(
    ("values", "options", "normal", "texts"),
    [
        (["Normal", "normal ", "NORMAL", "scan"], {}, "normal", ["normal"] * 3 + ["scan"]),
        (["Fine", "bad", "fine"], {"normal": ["FINE"]}, "fine", ["fine", "bad", "fine"]),
        (["fine", "bad"], {"normal": ["FINE"]}, "fine", ["fine", "bad"]),
        (["normal", "DoS", "dos"], {}, "normal", ["normal", "dos", "dos"]),
        (["1.0", "2.0"], {"normal": ["1.0"]}, "1", ["1", "2"]),
        ([1.0, 2.0], {"normal": ["1.0"]}, "1", ["1", "2"]),
        ([1, 2, 2], {"normal": ["1"]}, "1", ["1", "2", "2"]),
        (["-1", "0", "1"], {"missing": ["-1"]}, "0", [None, "0", "1"]),
        ([-1, 0, 1], {"missing": ["-1"]}, "0", [None, "0", "1"]),
        (["?", "normal", "scan"], {"missing": ["?"]}, "normal", [None, "normal", "scan"]),
        (["none", "scan"], {"normal": ["none"]}, "none", ["none", "scan"]),  # not missing
    ],
)
def test_labels_of_many_habits(values, options, normal, texts):
    column = pa.chunked_array([pa.array(values)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labels = read_label_column(column, name="kind", **options)
    assert (labels.normal, labels.texts.tolist()) == (normal, texts)
    merged = len(set(values)) > len({t for t in texts if t}) + (None in texts)
    told = [str(w.message) for w in caught]
    assert [t.startswith("Labels of kind: ") for t in told] == [True] * merged


def test_a_fitted_detector_knows_its_labels_in_any_spelling():
    X = np.random.default_rng(0).normal(size=(60, 1))
    y = np.resize(["Normal", "Normal", "Scan"], 60)
    settings = {"n_landmarks": 10, "bandwidth": 1.0, "false_alarm_rate": 0.2}
    detector = Detector(normal="Normal", **settings).fit(X, y)
    column = pa.chunked_array([pa.array(["NORMAL", "scan ", "flood", "-1"])])
    with pytest.warns(Note, match="is read as") as told:
        found = y_for(detector.model_, column, name="kind", missing=["-1"])
    assert len(told) == 2
    assert found.tolist() == ["Normal", "Scan", "flood", None]


def test_some_words_usually_stand_for_normal_rows():
    assert [is_usual_normal(word) for word in ("Benign", "0", "flood")] == [True, True, False]


@pytest.mark.parametrize(
    ("said", "known", "meant"),
    [("1.0", ["1", "2"], "1"), ("Fine ", ["fine", "bad"], "fine"), ("x", ["y"], "x")],
)
def test_a_label_is_meant_in_other_spellings(said, known, meant):
    assert as_label(said, known) == meant


def test_labels_that_differ_by_case_or_blanks_are_called_as_most_rows_are():
    with pytest.warns(Note, match=r"'PS', 'ps ' are read as one, 'PS'"):
        labels = labels_of(["normal", "PS", "PS", "ps "])
    assert labels.texts.tolist() == ["normal", "PS", "PS", "PS"]
