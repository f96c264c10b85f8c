"""Bad input to the commands: one sentence on standard error, exit code 2, and no file written."""

import gzip
import os
import struct
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from invoking import CliRunner
from pyarrow import parquet

from eqsep import Detector, KernelEqualitySeparator
from eqsep.cli import app
from eqsep.cli import inputs as reading
from eqsep.detector import Config
from eqsep.io import writing

N = 300


def measurements():
    rng = np.random.default_rng(0)
    kind = np.resize(["normal"] * 8 + ["hot", "stuck"], N)
    size = rng.normal(size=N) + 5 * (kind == "hot")
    return pd.DataFrame(
        {"size": size.round(3), "shape": np.resize(["round", "flat", "flat"], N), "kind": kind}
    )


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A table, a model of it, and a model that cannot be merged with that."""
    folder = tmp_path_factory.mktemp("good")
    frame = measurements()
    frame.to_csv(folder / "rows.csv", index=False)
    X, y = frame.drop(columns="kind"), frame["kind"]
    for name, n in (("model", 20), ("other", 30)):
        Detector(n_landmarks=n, bandwidth=0.5, random_state=0, config=Config.fast()).fit(X, y).save(
            folder / f"{name}.eqsep"
        )
    numbers = Detector(n_landmarks=20, bandwidth=0.5, random_state=0, config=Config.fast()).fit(
        X, (y != "normal").astype(int)
    )
    numbers.save(folder / "numbers.eqsep")
    KernelEqualitySeparator().fit(X[["size"]].to_numpy(), y != "normal").save(folder / "k.eqsep")
    return SimpleNamespace(
        folder=folder,
        frame=frame,
        rows=folder / "rows.csv",
        model=folder / "model.eqsep",
        other=folder / "other.eqsep",
        numbers=folder / "numbers.eqsep",
        kernel=folder / "k.eqsep",
    )


class Case:
    """A folder for bad files, and the commands that meet them."""

    def __init__(self, good, folder):
        self.good, self.folder, self.frame = good, folder, good.frame.copy()
        (folder / "out").mkdir()
        self.out = folder / "out" / "result"

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def csv(self, frame=None, name="bad.csv"):
        path = self.folder / name
        (self.frame if frame is None else frame).to_csv(path, index=False)
        return path

    def fit(self, path, *words, label="kind"):
        out = self.out.with_suffix(".eqsep")
        return ["fit", path, "--label", label, "--landmarks", 20, "--out", out, *words]

    def score(self, path, *words, model=None):
        out = self.out.with_suffix(".parquet")
        return ["score", model or self.good.model, path, "--out", out, *words]


def truncated_parquet(case):
    path = case.folder / "whole.parquet"
    parquet.write_table(pa.Table.from_pandas(case.frame), path)
    return case.file("bad.parquet", path.read_bytes()[:-100])


def newer_model(case):
    data = bytearray(case.good.model.read_bytes())
    data[8:12] = struct.pack("<I", 99)
    return case.file("newer.eqsep", bytes(data))


def damaged_model(case):
    data = bytearray(case.good.model.read_bytes())
    data[-1000] ^= 1
    return case.file("damaged.eqsep", bytes(data))


def nested(case):
    path = case.folder / "nested.parquet"
    columns = {"size": [[1.0], [2.0]], "shape": ["flat", "flat"], "kind": ["normal", "hot"]}
    parquet.write_table(pa.table(columns), path)
    return path


def no_text(case):
    path = case.folder / "whole.parquet"
    shape = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())
    columns = {"size": [1.0], "shape": shape, "kind": ["normal"]}
    parquet.write_table(pa.table(columns), path, store_schema=False, use_dictionary=False)
    return path.rename(case.folder / "bad.parquet")


def of_type(case, kind):
    path = case.folder / "typed.parquet"
    columns = {"size": pa.array([b"abcd"] * 2, kind), "shape": ["flat"] * 2, "kind": ["normal"] * 2}
    parquet.write_table(pa.table(columns), path)
    return path


def two_types(case):
    folder = case.folder / "two"
    folder.mkdir()
    case.frame.to_csv(folder / "a.csv", index=False)
    case.frame.assign(size="large").to_csv(folder / "b.csv", index=False)
    return folder


def two_tables(case):
    folder = case.folder / "two"
    folder.mkdir()
    case.frame.to_csv(folder / "a.csv", index=False)
    case.frame.rename(columns={"size": "length"}).to_csv(folder / "b.csv", index=False)
    return folder


def mixed(case):
    case.frame["size"] = case.frame["size"].astype(str)
    case.frame.loc[7, "size"] = "broken"
    return case.csv()


def late(case):
    frame = pd.concat([case.frame] * 31, ignore_index=True).astype({"size": object})
    frame.loc[9_000, "size"] = "broken"
    return case.file("bad.jsonl", frame.to_json(orient="records", lines=True))


def latin(case):
    text = case.good.rows.read_text().replace("flat", "schräg")
    return case.file("bad.csv", text.encode("latin-1"))


def cut_gzip(case):
    return case.file("bad.csv.gz", gzip.compress(case.good.rows.read_bytes() * 9)[:-200])


def linked(case, path):
    link = case.folder / "link.csv"
    link.symlink_to(path)
    return link


def own_model(case):
    return case.file("m.eqsep", case.good.model.read_bytes())


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def only(case, *kinds):
    return case.csv(case.frame[case.frame["kind"].isin(kinds)])


ROWS = "size,shape,kind\n1,flat,normal\n2,flat,hot\n"
CASES = {
    "missing file": (lambda c: c.fit("no.csv"), "There is no file no.csv"),
    "empty file": (lambda c: c.fit(c.file("bad.csv", "")), "is empty"),
    "header only": (lambda c: c.fit(c.file("bad.csv", "size,kind\n")), "has no rows"),
    "empty standard input": (lambda c: c.score("-"), "standard input is empty"),
    "line as a delimiter": (
        lambda c: c.score(c.good.rows, "--delimiter", "\n"),
        "--delimiter must be one character other than a quote or a line break, like ';', got '\\n'",
    ),
    "other letters as a delimiter": (
        lambda c: c.score(c.good.rows, "--delimiter", "é"),
        "--delimiter must be one character",
    ),
    "long delimiter": (lambda c: c.fit(c.good.rows, "--delimiter", "<>"), "one character"),
    "label absent": (
        lambda c: c.fit(c.good.rows, label="attack"),
        "has no column 'attack': its columns are 'size', 'shape', 'kind'",
    ),
    "normal absent": (
        lambda c: c.fit(c.good.rows, "--normal", "fine"),
        "holds no row labelled 'fine'",
    ),
    "normal unsaid": (
        lambda c: c.fit(c.csv(c.frame.replace("normal", "usual"))),
        "Say which label of column 'kind' is normal",
    ),
    "all anomalous": (
        lambda c: c.fit(only(c, "hot", "stuck"), "--normal", "normal"),
        "holds no row labelled 'normal'",
    ),
    "no label at all": (
        lambda c: c.fit(c.csv(c.frame.assign(kind=None))),
        "'kind' holds no label: every value is missing",
    ),
    "labels that are ids": (
        lambda c: c.fit(c.csv(pd.DataFrame({"size": range(10_000), "kind": range(10_000)}))),
        "'kind' holds 10,000 different labels",
    ),
    "10,000 categories alone": (
        lambda c: c.fit(
            c.csv(pd.DataFrame({"id": [f"a{i}" for i in range(10_000)], "kind": "normal"}))
        ),
        "No column to encode",
    ),
    "no kind to evaluate": (
        lambda c: ["evaluate", only(c, "normal"), "--label", "kind"],
        "needs labelled anomalies, but column 'kind' holds only 'normal': label some",
    ),
    "unknown method": (
        lambda c: ["evaluate", c.good.rows, "--label", "kind", "--against", "oracle"],
        "'oracle' is not a known method: expected some of xgboost",
    ),
    "unknown kind": (lambda c: c.fit(c.good.rows, "--seen", "cold"), "--seen 'cold' is not a kind"),
    "dropped column absent": (lambda c: c.fit(c.good.rows, "--drop", "x"), "has no column 'x'"),
    "label dropped": (lambda c: c.fit(c.good.rows, "--drop", "kind"), "'kind' holds the labels"),
    "labels without a column": (
        lambda c: [*c.fit(c.good.rows)[:2], "--normal", "a", "--out", c.out],
        "name their column with --label",
    ),
    "duplicate columns": (
        lambda c: c.fit(c.file("bad.csv", ROWS.replace("shape", "size"))),
        "more than one column 'size'. Rename them, or pass --no-header if the first line holds v",
    ),
    "mixed types": (lambda c: c.fit(mixed(c)), "'size' holds numbers and also 'broken'"),
    "word for a number": (
        lambda c: c.score(mixed(c)),
        "bad.csv, row 8: Column 'size' held numbers in training, and 'broken' cannot be read",
    ),
    "word for a number, to explain": (
        lambda c: ["explain", c.good.model, c.good.rows, late(c)],
        "bad.jsonl, row 9001: Column 'size' held numbers in training, and 'broken'",
    ),
    "word for a number, later": (
        lambda c: c.score(c.good.rows, late(c)),
        "bad.jsonl, row 9001: Column 'size' held numbers in training, and 'broken'",
    ),
    "other types in another file": (
        lambda c: c.fit(two_types(c)),
        "Types differ from file to file",
    ),
    "other columns in another file": (
        lambda c: c.fit(two_tables(c)),
        "'length', 'size' not in all",
    ),
    "ragged rows": (
        lambda c: c.fit(c.file("bad.csv", ROWS + "3,flat\n")),
        "expected 3 values, got 2",
    ),
    "other encoding than said": (
        lambda c: c.score(latin(c), "--encoding", "utf-8"),
        "The first lines of",
    ),
    "truncated Parquet": (
        lambda c: c.score(truncated_parquet(c)),
        "bad.parquet cannot be read: it does not end as Parquet files do",
    ),
    "no Parquet": (
        lambda c: c.fit(c.file("bad.parquet", ROWS)),
        "bad.parquet cannot be read: it does not end as Parquet files do",
    ),
    "empty Arrow": (
        lambda c: c.fit(c.file("bad.arrow", b"")),
        "bad.arrow cannot be read: it does not end as Arrow files do",
    ),
    "Parquet of nonsense": (
        lambda c: c.fit(c.file("bad.parquet", b"x" * 50 + b"PAR1")),
        "bad.parquet cannot be read: ",
    ),
    "truncated gzip": (lambda c: c.fit(cut_gzip(c)), "bad.csv.gz cannot be read"),
    "Parquet with bytes of no text": (
        lambda c: c.fit(no_text(c)),
        "bad.parquet cannot be read: ",
    ),
    "Parquet with bytes of no text, to score": (
        lambda c: c.score(no_text(c)),
        "bad.parquet cannot be read: ",
    ),
    "nested values": (lambda c: c.fit(nested(c)), "'size' of"),
    "bad JSON": (
        lambda c: c.score(c.file("bad.jsonl", '{"size": 1, "shape": "flat"}\n{"size":\n')),
        "Line 2 of",
    ),
    "long name of a column": (
        lambda c: c.score(c.file("bad.csv", "a" * 200_000 + ",b\n1,2\n")),
        "The first lines of",
    ),
    "JSON nested deep": (
        lambda c: c.score(c.file("bad.jsonl", '{"size": ' + "[" * 100_000 + "]" * 100_000 + "}")),
        "is nested too deeply to be read",
    ),
    "bytes of one length": (
        lambda c: c.fit(of_type(c, pa.binary(4))),
        "holds values of type fixed_size_binary[4]: expected numbers",
    ),
    "large bytes": (
        lambda c: c.score(of_type(c, pa.large_binary())),
        "holds values of type large_binary: expected numbers",
    ),
    "nothing but a mark": (lambda c: c.score(c.file("bad.csv", b"\xef\xbb\xbf\n")), "is empty"),
    "unknown ending": (lambda c: c.fit(c.file("bad.docx", b"PK\3\4")), "cannot be read"),
    "empty folder": (lambda c: c.fit(c.folder / "out"), "holds no table"),
    "missing columns": (
        lambda c: c.score(c.csv(c.frame.drop(columns="size"))),
        "Column 'size' is missing",
    ),
    "kept column absent": (lambda c: c.score(c.good.rows, "--keep", "id"), "has no column 'id'"),
    "reasons below zero": (lambda c: c.score(c.good.rows, "--explain", -1), "number of reasons"),
    "score at no rate": (
        lambda c: c.score(c.good.rows, "--false-alarm-rate", 1.5),
        "--false-alarm-rate must be a number between 0 and 1, got 1.5",
    ),
    "explain at no rate": (
        lambda c: ["explain", c.good.model, c.good.rows, "--false-alarm-rate", 0],
        "--false-alarm-rate must be a number between 0 and 1, got 0.0",
    ),
    "no row": (lambda c: c.score(c.good.rows, "--most", 0), "--most expects a number of rows"),
    "no row to explain": (
        lambda c: ["explain", c.good.model, c.good.rows, "--most", -1],
        "--most expects a number of rows",
    ),
    "no model file": (lambda c: c.score(c.good.rows, model=c.good.rows), "not an eqsep model"),
    "missing model": (lambda c: c.score(c.good.rows, model="no.eqsep"), "There is no model"),
    "newer model": (lambda c: c.score(c.good.rows, model=newer_model(c)), "format version 99"),
    "damaged model": (lambda c: c.score(c.good.rows, model=damaged_model(c)), "is damaged"),
    "other model": (
        lambda c: c.score(c.good.rows, model=c.good.kernel),
        "pass a model of eqsep fit",
    ),
    "output is a folder": (
        lambda c: c.score(c.good.rows, "--out", c.folder / "out", "--format", "csv"),
        "is a folder",
    ),
    "model is a folder": (lambda c: c.fit(c.good.rows, "--out", c.folder / "out"), "is a folder"),
    "model is a device": (lambda c: c.fit(c.good.rows, "--out", "/dev/full"), "is a device"),
    "no folder for the output": (
        lambda c: c.score(c.good.rows, "--out", c.folder / "no" / "s.csv"),
        "There is no folder",
    ),
    "disk full": (
        lambda c: c.score(c.good.rows, "--out", "/dev/full", "--format", "csv"),
        "No space left on device",
    ),
    "unknown format": (
        lambda c: c.score(c.good.rows, "--out", "s.docx"),
        "not a known table format",
    ),
    "Parquet in a pipe": (
        lambda c: c.score(c.good.rows, "--out", "-", "--format", "parquet"),
        "is only written to files",
    ),
    "output is the input": (
        lambda c: c.score(c.csv(), "--out", c.folder / "bad.csv"),
        "is also read",
    ),
    "model over the rows": (lambda c: c.fit(c.csv(), "--out", "bad.csv"), "is also read"),
    "model over rows of a folder": (
        lambda c: c.fit(c.csv().parent, "--out", "bad.csv"),
        "is also read",
    ),
    "model over a link to the rows": (
        lambda c: c.fit(c.csv(), "--out", linked(c, c.csv())),
        "is also read",
    ),
    "model over its like": (
        lambda c: c.fit(c.good.rows, "--like", own_model(c), "--out", own_model(c)),
        "is also read",
    ),
    "report over the rows": (lambda c: c.fit(c.csv(), "--report", "bad.csv"), "is also read"),
    "scores over the model": (
        lambda c: c.score(c.good.rows, "--out", own_model(c), "--format", "csv", model="m.eqsep"),
        "is also read",
    ),
    "learnt over the rows": (
        lambda c: ["learn", c.good.model, c.csv(), "--label", "kind", "--out", "bad.csv"],
        "is also read",
    ),
    "merged over a part": (
        lambda c: ["merge", c.good.model, own_model(c), "--out", "m.eqsep"],
        "is also read",
    ),
    "graph over the model": (
        lambda c: ["export", own_model(c), "--onnx", "m.eqsep"],
        "is also read",
    ),
    "evaluation over the rows": (
        lambda c: ["evaluate", c.csv(), "--label", "kind", "--report", "bad.csv"],
        "is also read",
    ),
    "rate out of range": (
        lambda c: c.fit(c.good.rows, "--false-alarm-rate", 2),
        "Error: --false-alarm-rate must be a number between 0 and 1, got 2",
    ),
    "one landmark": (lambda c: c.fit(c.good.rows, "--landmarks", 1), "Error: --landmarks must be"),
    "value for a missing one": (lambda c: c.score(mixed(c)), "leave it empty where it is missing"),
    "model second": (
        lambda c: ["score", c.good.rows, c.good.model, "--out", c.out, "--format", "csv"],
        "the model comes first",
    ),
    "model second, to explain": (
        lambda c: ["explain", c.good.rows, c.good.model],
        "the model comes first",
    ),
    "table as a model": (
        lambda c: c.score(c.good.rows, model=c.csv()),
        "make one of a table with eqsep fit",
    ),
    "text as a model": (
        lambda c: c.score(c.good.rows, model=c.file("m.eqsep", "size")),
        "pass a file that eqsep fit wrote",
    ),
    "label in another case": (
        lambda c: c.fit(c.good.rows, label="Kind"),
        "Did you mean 'kind'?",
    ),
    "label misspelt among many columns": (
        lambda c: c.fit(
            c.csv(c.frame.assign(**dict.fromkeys("abcdefghijkl", 1), quality=1)), label="qualty"
        ),
        "and 4 more. Did you mean 'quality'?",
    ),
    "column in another case": (
        lambda c: c.score(c.csv(c.frame.rename(columns={"size": "Size "}))),
        "Did you mean 'Size '?",
    ),
    "names for numbers": (
        lambda c: ["learn", c.good.numbers, c.good.rows, "--label", "kind", "--out", c.out],
        "The model knows the labels 0 and 1, and these rows have 'hot', 'normal', 'stuck'. Say",
    ),
    "numbers for names": (
        lambda c: [
            *("learn", c.good.model, c.csv(c.frame.assign(kind=1 * (c.frame["kind"] == "hot")))),
            *("--label", "kind", "--out", c.out),
        ],
        "Labels were names, 'normal', 'hot', 'stuck', and are now '0', '1', which would be new "
        "kinds of anomaly. Say which label is normal, --normal 0 for example, or write names.",
    ),
    "forgetting all rows": (
        lambda c: ["forget", c.good.model, c.good.rows, "--label", "kind", "--out", c.out],
        "The detector has forgotten all rows that it had learnt, and is not fitted.",
    ),
    "another word for normal": (
        lambda c: [
            *("learn", c.good.model, c.csv(c.frame.replace({"kind": {"normal": "Benign"}}))),
            *("--label", "kind", "--out", c.out),
        ],
        "Column 'kind' holds 'Benign', a name of normal rows, which the model calls 'normal'. If "
        "these are normal, use --normal Benign; otherwise rename it.",
    ),
    "several names in one": (
        lambda c: c.fit(c.csv(c.frame.replace({"kind": {"hot": "hot or cold"}}))),
        "A kind of anomaly is called 'hot or cold', and 'or' is what several names of one alarm",
    ),
    "several names in one, learnt later": (
        lambda c: [
            *("learn", c.good.model, c.csv(c.frame.replace({"kind": {"hot": "hot or cold"}}))),
            *("--label", "kind", "--out", c.out),
        ],
        "A kind of anomaly is called 'hot or cold', and 'or' is what several names of one alarm",
    ),
    "no normal label to learn": (
        lambda c: [
            *("learn", c.good.model, c.good.rows, "--label", "kind", "--normal", "ok"),
            *("--out", c.out),
        ],
        "--normal 'ok' is not a label in column 'kind', which holds 'normal' (240 rows), 'hot' (30",
    ),
    "models apart": (
        lambda c: ["merge", c.good.model, c.good.other, "--out", c.out],
        "do not have the same encoding and landmarks",
    ),
    "one model to merge": (
        lambda c: ["merge", c.good.model, "--out", c.out],
        "takes two models or more",
    ),
    "no way to take rows": (
        lambda c: c.fit(c.good.rows, "--unlabelled", "maybe"),
        "--unlabelled must be one of ['auto', 'trusted', 'doubted'], got 'maybe'.",
    ),
    "no way to take rows of an evaluation": (
        lambda c: ["evaluate", c.good.rows, "--label", "kind", "--unlabelled", "maybe"],
        "--unlabelled must be one of ['auto', 'trusted', 'doubted'], got 'maybe'.",
    ),
    "rows that are clean and doubted": (
        lambda c: ["fit", c.good.rows, "--out", c.out, "--unlabelled", "doubted", "--clean"],
        "--clean and --unlabelled doubted contradict each other: leave out one of them.",
    ),
    "rows of an evaluation that are clean and doubted": (
        lambda c: [
            *("evaluate", c.good.rows, "--label", "kind"),
            *("--unlabelled", "doubted", "--clean"),
        ],
        "--clean and --unlabelled doubted contradict each other: leave out one of them.",
    ),
    "another way to take rows than that of the model": (
        lambda c: c.fit(c.good.rows, "--unlabelled", "doubted", "--like", c.good.model),
        "settles --unlabelled and --clean: leave them out, or fit that model again",
    ),
    "nothing to explain by": (
        lambda c: ["explain", c.good.model, c.good.rows, "--top", 0],
        "at least 1 reason",
    ),
}


def refused(words, message, *, stdin=""):
    """See that the command says one sentence of which `message` is a part, and ends with 2."""
    result = CliRunner().invoke(app, [str(w) for w in words], input=stdin, env={"COLUMNS": "80"})
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    errors = result.stderr.splitlines()
    assert [line.startswith("Error: ") for line in errors] == [True]
    assert "Errno" not in result.stderr


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_sentence_and_nothing_is_written(name, good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = Case(good, tmp_path)
    make, message = CASES[name]
    words = make(case)
    if "/dev/full" in words and not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("needs a device that is full")
    before = contents(tmp_path)
    refused(words, message)
    assert contents(tmp_path) == before


def test_a_full_disk_leaves_the_old_model(good, tmp_path, monkeypatch):
    old = tmp_path / "model.eqsep"
    old.write_bytes(good.model.read_bytes())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    words = ["learn", old, good.rows, "--label", "kind", "--again", "--out", old]
    refused(words, "No space left on device")
    assert old.read_bytes() == good.model.read_bytes()
    assert list(tmp_path.iterdir()) == [old]


def test_a_file_may_be_closed(good, tmp_path, monkeypatch):
    def closed(*_):
        raise PermissionError(13, "Permission denied", "rows.csv")

    monkeypatch.setattr(reading, "read_model", closed)
    message = "rows.csv: permission denied. Change its permissions, or pass another file."
    refused(Case(good, tmp_path).score(good.rows), message)


def test_a_folder_may_be_closed(good, tmp_path, monkeypatch):
    monkeypatch.setattr(writing.os, "access", lambda *_: False)  # root may write anywhere
    message = "permission denied. Change its permissions, or pass another folder."
    refused(Case(good, tmp_path).fit(good.rows), message)
    assert list((tmp_path / "out").iterdir()) == []
