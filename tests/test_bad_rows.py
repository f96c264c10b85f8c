"""Rows that cannot be read: set aside with number and reason, while the others go on."""

import csv

import numpy as np
import pytest
from invoking import CliRunner
from pyarrow import parquet

from eqsep.cli import app

N = 300
BAD = {40: "1.5,round", 90: "oops,round,normal", 91: "1,2,3,4,5", 200: "oops,flat,hot"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same rows, well-formed and with bad ones among them; a model of the first."""
    home = tmp_path_factory.mktemp("bad")
    rng = np.random.default_rng(0)
    kinds = np.resize(["normal"] * 8 + ["hot", "stuck"], N)
    sizes = rng.normal(size=N) + 5 * (kinds == "hot")
    shapes = np.resize(["round", "flat"], N)
    good = [f"{x:.3f},{s},{k}" for x, s, k in zip(sizes, shapes, kinds, strict=True)]
    bad = list(good)
    for number, text in BAD.items():  # in rising order, so that numbers are those of the file
        bad.insert(number - 1, text)
    for name, rows in (("good", good), ("bad", bad)):
        (home / f"{name}.csv").write_text("\n".join(["size,shape,kind", *rows]) + "\n")
    fit(home / "good.csv", home / "good.eqsep")
    return home


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(w) for w in words])
    assert result.exit_code == code, result.stderr
    return result


def fit(path, out, *words, code=0):
    fast = ("--landmarks", 20, "--out", out, *words)
    return run("fit", path, "--label", "kind", *fast, code=code)


def aside(path):
    with path.open(newline="") as file:
        return {int(row["row"]): (row["reason"], row["text"]) for row in csv.DictReader(file)}


def check(found):
    assert set(found) == set(BAD)
    assert found[40] == ("expected 3 values, got 2", "1.5,round")
    assert found[91] == ("expected 3 values, got 5", "1,2,3,4,5")
    assert found[90][0] == found[200][0] == "column 'size' cannot be read: 'oops'"


def test_a_fit_to_the_rows_that_can_be_read(folder, tmp_path):
    out, bad = tmp_path / "m.eqsep", tmp_path / "q.csv"
    told = fit(folder / "bad.csv", out, "--bad-rows", bad)
    assert "Note: 4 rows could not be read: " in told.stderr
    check(aside(bad))
    assert told.stdout.splitlines()[0].startswith(f"rows        {N}: ")
    fit(folder / "bad.csv", out, code=2)  # without it, the first one stops the run


def test_other_commands_go_on_too(folder, tmp_path):
    model, rows, bad = folder / "good.eqsep", folder / "bad.csv", tmp_path / "q.csv"
    for name in ("good", "bad"):
        words = ("score", model, folder / f"{name}.csv", "--out", tmp_path / f"{name}.parquet")
        run(*words, "--bad-rows", bad)
    both = [parquet.read_table(tmp_path / f"{name}.parquet") for name in ("good", "bad")]
    assert both[0].equals(both[1])
    check(aside(bad))
    run("score", model, rows, code=2)
    for words in (
        ("explain", model, rows, "--most", 1),
        ("learn", model, rows, "--label", "kind", "--again", "--out", tmp_path / "n.eqsep"),
        ("test", model, rows, "--label", "kind", "--learnt-too"),
        ("watch", model, rows),
    ):
        bad = tmp_path / f"{words[0]}.csv"
        run(*words, "--bad-rows", bad)
        check(aside(bad))


def test_lines_that_are_no_json(folder, tmp_path):
    rows, bad = tmp_path / "t.jsonl", tmp_path / "q.csv"
    rows.write_text('{"size": 1, "shape": "flat"}\n{"size":\n[1]\n{"size": 2, "shape": "flat"}\n')
    told = run("score", folder / "good.eqsep", rows, "--bad-rows", bad)
    assert len(told.stdout.splitlines()) == 3
    assert set(aside(bad)) == {2, 3}


def test_a_file_that_is_read_is_not_written_over(folder, tmp_path):
    rows = tmp_path / "t.csv"
    rows.write_bytes((folder / "bad.csv").read_bytes())
    told = run("score", folder / "good.eqsep", rows, "--bad-rows", rows, code=2)
    assert "is not a file of bad rows" in told.stderr
    assert rows.read_bytes() == (folder / "bad.csv").read_bytes()
