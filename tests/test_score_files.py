"""`eqsep score`: which rows and columns are written, and what is read as missing."""

import csv

import numpy as np
import pytest
from invoking import CliRunner

from eqsep.cli import app
from eqsep.detector import Config, Detector


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows of numbers and names with a kind each, and a model of them."""
    folder = tmp_path_factory.mktemp("score")
    rng = np.random.default_rng(0)
    rows = [
        (*rng.normal(size=2), ("blue", "red", "red", None)[i % 4], "normal") for i in range(300)
    ]
    rows += [(9.0 + i, 9.0, "red", f"{i % 12}") for i in range(36)]
    with (folder / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("x", "y", "hue", "kind"), *rows])
    X = [dict(zip(("x", "y", "hue"), row[:3], strict=True)) for row in rows]
    model = Detector(normal="normal", n_landmarks=60, random_state=0, config=Config.fast())
    model.fit(X, [row[3] for row in rows])
    model.save(folder / "m.eqsep")
    return folder


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def scored(folder, *words):
    return list(csv.DictReader(run("score", folder / "m.eqsep", *words).stdout.splitlines()))


def test_a_kept_column_with_the_name_of_a_result_gives_the_result_a_prefix(folder):
    rows = scored(folder, folder / "rows.csv", "--keep", "kind,x")
    assert list(rows[0]) == [
        *("row", "kind", "x", "score", "p_value", "alarm", "eqsep_kind", "kind_probability")
    ]
    assert {row["kind"] for row in rows} >= {"normal", "0", "11"}
    assert rows[0]["eqsep_kind"] == "normal"


def test_the_highest_rows_of_a_log_that_repeats_itself_are_shown_once_each(folder, tmp_path):
    lines = (folder / "rows.csv").read_text().splitlines()
    (tmp_path / "log.csv").write_text("\n".join([lines[0], *lines[1:] * 50]) + "\n")
    once = scored(folder, folder / "rows.csv", "--most", 20)
    often = scored(folder, tmp_path / "log.csv", "--most", 20)
    assert [row["score"] for row in often] == [row["score"] for row in once]
    assert len({row["row"] for row in often}) == 20


def test_explained_rows_of_such_a_log_differ_too(folder, tmp_path):
    lines = (folder / "rows.csv").read_text().splitlines()
    (tmp_path / "log.csv").write_text("\n".join([lines[0], *lines[1:] * 3]) + "\n")
    words = ("--most", 5)
    once = run("explain", folder / "m.eqsep", folder / "rows.csv", *words).stdout
    assert run("explain", folder / "m.eqsep", tmp_path / "log.csv", *words).stdout == once


def test_what_stands_for_a_missing_name_can_be_said_when_rows_are_scored(folder, tmp_path):
    (tmp_path / "empty.csv").write_text("x,y,hue\n0.1,0.2,\n")
    (tmp_path / "word.csv").write_text("x,y,hue\n0.1,0.2,leer\n")
    empty = scored(folder, tmp_path / "empty.csv")
    assert scored(folder, tmp_path / "word.csv", "--missing", "leer") == empty
    assert scored(folder, tmp_path / "word.csv", "--missing", "hue=leer") == empty
    assert scored(folder, tmp_path / "word.csv") != empty


def test_kinds_are_listed_by_their_numbers(folder):
    told = run("info", folder / "m.eqsep").stdout
    assert "'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11'" in told


def test_csv_is_quoted_alike_throughout(folder, tmp_path):
    lines = (folder / "rows.csv").read_text().splitlines()
    odd = '0.1,0.2,"red, too",normal'
    many = [lines[0], *lines[1:] * 300, odd, *lines[1:]]
    (tmp_path / "log.csv").write_text("\n".join(many) + "\n")
    out = run("score", folder / "m.eqsep", tmp_path / "log.csv", "--keep", "hue").stdout
    quoted = [line for line in out.splitlines() if '"' in line]
    assert len(quoted) == 1
    assert '"red, too"' in quoted[0]
