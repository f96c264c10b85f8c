"""Tables as people send them, through the commands: the right answer, or one clear sentence."""

import re

import numpy as np
import pytest
from invoking import CliRunner
from pyarrow import parquet

from eqsep.cli import app

N, FIT = 160, ("--label", "kind", "--landmarks", 20, "--bandwidth", 1)
RNG = np.random.default_rng(0)
KIND = np.resize(["normal"] * 8 + ["hot", "stuck"], N)
SIZE = RNG.normal(size=N).round(3) + 5 * (KIND == "hot")
SHAPE = np.resize(["round", "flat", "flat"], N)


def table(*, mark=",", decimal=".", unit="", kind=KIND, header="size{0}shape{0}kind", more=()):
    """The rows in a dialect, with more columns beside them."""
    sizes = [f"{size:.3f}{unit}".replace(".", decimal) for size in SIZE]
    columns = [sizes, SHAPE, kind, *more]
    return "\n".join([header.format(mark), *map(mark.join, zip(*columns, strict=True)), ""])


def spelt(kinds):
    """Labels in three spellings."""
    return [(k, k.upper(), f"{k} ")[i % 3] for i, k in enumerate(kinds)]


plain = table()
ODDITIES = {
    "a German export": table(mark=";", decimal=",").encode("cp1252"),
    "a unit beside each number": table(mark=";", decimal=",", unit=" bar").encode(),
    "a trailing minus": re.sub(r"(?m)^-([\d.]+)", r"\1-", plain).encode(),
    "UTF-16 from Excel": table(mark="\t").encode("utf-16"),
    "lone carriage returns": plain.replace("\n", "\r").encode(),
    "a title and a blank line": f"Machine 7, May\n\n{table(mark=';')}".encode(),
    "units below the names": table(
        header="size{0}shape{0}kind{0}w{0}\n[mm]{0}{0}{0}[kg]{0}", more=[["1.5"] * N, [""] * N]
    ).encode(),
    "labels in three spellings": table(kind=spelt(KIND)).encode(),
    "missing values": table(
        more=[np.resize(["n/a", "1.5", "-", "?"], N)], header="size{0}shape{0}kind{0}x"
    ).encode(),
    "an empty and a constant column": table(
        more=[[""] * N, ["7"] * N], header="size{0}shape{0}kind{0}e{0}c"
    ).encode(),
    "columns of spaces": "\n".join(
        f"{a:>10}  {b:<8}  {c}"
        for a, b, c in (line.split(",") for line in plain.splitlines())
    ).encode(),
    "a byte-order mark and blank lines": b"\xef\xbb\xbf\n\n" + plain.encode(),
}  # fmt: skip


IN_DIALECTS = {  # test_dialects.py reads these too
    "UTF-16 from Excel",
    "lone carriage returns",
    "a title and a blank line",
    "columns of spaces",
    "a byte-order mark and blank lines",
}


def run(*words):
    result = CliRunner().invoke(app, [str(w) for w in words])
    assert result.exit_code == 0, result.stderr
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """Those of the rows in a plain file."""
    return scored(plain.encode(), tmp_path_factory.mktemp("plain"))


def scored(data, folder):
    """The scores of the rows by a model of them."""
    rows, model, out = folder / "t.csv", folder / "m.eqsep", folder / "s.parquet"
    rows.write_bytes(data)
    run("fit", rows, *FIT, "--out", model)
    run("score", model, rows, "--out", out)
    return parquet.read_table(out).select(["score", "alarm", "kind"])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.extra] if name in IN_DIALECTS else [])
        for name in ODDITIES
    ],
)
def test_an_oddity_is_read_as_the_plain_file(name, scores, tmp_path):
    found = scored(ODDITIES[name], tmp_path)
    assert found.num_rows == N
    if name not in ("units below the names", "missing values", "an empty and a constant column"):
        assert found.equals(scores)  # these have more columns


@pytest.mark.parametrize(
    "name",
    [
        name if name == "a German export" else pytest.param(name, marks=pytest.mark.extra)
        for name in ODDITIES
    ],
)
def test_an_oddity_is_explained_and_learnt(name, tmp_path):
    rows, model = tmp_path / "t.csv", tmp_path / "m.eqsep"
    rows.write_bytes(ODDITIES[name])
    run("fit", rows, *FIT, "--out", model)
    run("explain", model, rows, "--most", 1)
    run("learn", model, rows, "--label", "kind", "--again", "--out", tmp_path / "n.eqsep")


@pytest.mark.parametrize("name", ["a German export", "labels in three spellings"])
def test_an_oddity_is_evaluated(name, tmp_path):
    (tmp_path / "t.csv").write_bytes(ODDITIES[name])
    words = ("--label", "kind", "--landmarks", 20, "--seen", "hot")
    assert (
        "eqsep            seen 1.000, unseen" in run("evaluate", tmp_path / "t.csv", *words).stdout
    )


def test_a_number_of_two_meanings_is_read_as_the_model_knows_its_column(tmp_path):
    model, rows, out = (tmp_path / name for name in ("m.eqsep", "t.csv", "s.parquet"))
    rows.write_bytes(ODDITIES["a German export"])
    run("fit", rows, *FIT, "--out", model)
    found = []
    for text in ("size\tshape\n1,234\tround\n", "size;shape\n1,2340;round\n"):
        rows.write_text(text)
        run("score", model, rows, "--out", out)
        found.append(parquet.read_table(out).column("score")[0].as_py())
    assert found[0] == found[1]


def test_columns_that_say_nothing_are_named(tmp_path):
    (tmp_path / "t.csv").write_bytes(ODDITIES["an empty and a constant column"])
    told = run("fit", tmp_path / "t.csv", *FIT, "--out", tmp_path / "m.eqsep").stderr
    assert "Note: Empty columns: 'e'." in told
    assert "Note: Constant columns: 'c'." in told


def test_what_is_kept_has_types_in_parquet(scores, tmp_path):
    rows, model, out = (tmp_path / name for name in ("t.csv", "m.eqsep", "s.parquet"))
    more = [
        [str(10_000 + i) for i in range(N)],
        [f"{i:05d}" for i in range(N)],
        [f"2024-01-{1 + i % 28:02d}" for i in range(N)],
        [f"a{i}" for i in range(N)],
    ]
    header = "size{0}shape{0}kind{0}id{0}zip{0}day{0}name"
    rows.write_text(table(more=more, header=header))
    drop = [word for name in ("id", "zip", "day", "name") for word in ("--drop", name)]
    run("fit", rows, *FIT, "--out", model, *drop)
    keep = [word.replace("drop", "keep") for word in drop]
    run("score", model, rows, *keep, "--out", out)
    found = parquet.read_table(out)
    kept = [str(found.schema.field(name).type) for name in ("id", "zip", "day", "name")]
    assert kept == ["int64", "string", "timestamp[us]", "string"]
    assert found.column("id")[-1].as_py() == 10_000 + N - 1
    assert found.select(scores.schema.names).equals(scores)
    rows.write_text(rows.read_text().splitlines()[0] + "\n")  # no row shows a type
    run("score", model, rows, *keep, "--out", out)
    assert parquet.read_table(out).num_rows == 0
