"""Tables that are larger than they look, and spreadsheets that are none."""

import gzip
import io
import zipfile
from functools import cache

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from workbooks import MAIN, packed, sheet, workbook

_MILLION = 2**20
FILLINGS = {  # what a packed file begins with, and what it goes on with for long
    "zeros": (b"", b"\0"),
    "one line": (b"", b"a"),
    "blank lines": (b"", b"\n"),
    "a value": (b"amount,count,day,place\n1,2,2024-01-01,Rom\n", b"x"),
    "a quote": (b'amount,count,day,place\n1,2,2024-01-01,"', b"x\n"),
    "JSON": (b'{"amount": "', b"x"),
    "JSON below": (b'{"amount": 1, "count": 2, "day": null, "place": "Rom"}\n{"a": "', b"x"),
    "columns of spaces": (b"amount  place\n" + b"1.5     Rom\n" * 30_000 + b"2", b"x"),
}
ODD_CELLS = (None, True, 1e308, -0.0, "n/a", "", "=1+1", "\x07", "1.234,5", "x" * 40_000)


@cache
def _part(filling: bytes) -> bytes:
    """A million bytes packed: archives may stand one behind the other."""
    return gzip.compress((filling * _MILLION)[:_MILLION])


def gzip_bomb(rng: np.random.Generator, *, megabytes: int = 400) -> bytes:
    """Two MB or less that unpack to hundreds."""
    first, filling = list(FILLINGS.values())[int(rng.integers(len(FILLINGS)))]
    return gzip.compress(first) + _part(filling) * megabytes


def parquet_bomb(rows: int = 2**26) -> bytes:
    """A few kB that say they hold many rows, all of them the same."""
    out = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2**20, "i1")), pa.array([1.5]))
    table = pa.table({"amount": column.cast(pa.float64())})
    with parquet.ParquetWriter(out, table.schema, compression="zstd") as writer:
        for _ in range(rows // 2**20):
            writer.write_table(table)
    return out.getvalue()


def spreadsheet(rows: list[list[str]], rng: np.random.Generator) -> bytes:
    """A sheet with odd cells, with one that is far away, or with damaged parts."""
    cells = [[_cell(value) for value in row] for row in rows]
    for _ in range(int(rng.integers(0, 4))):
        row = cells[int(rng.integers(len(cells)))]
        row[int(rng.integers(len(row)))] = ODD_CELLS[int(rng.integers(len(ODD_CELLS)))]
    out = io.BytesIO()
    workbook(out, **({"empty": []} if rng.random() < 0.3 else {}), data=cells)
    if rng.random() < 0.5:
        return out.getvalue()
    archive = zipfile.ZipFile(out)
    files = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(files)[int(rng.integers(len(files)))]
    match int(rng.integers(4)):
        case 0:
            place = str(rng.choice(["XFD1048576", "ZZZZ99999999", "A0", "1", "B2", ""]))
            files["xl/worksheets/s0.xml"] = sheet(
                cells, f'<row><c r="{place}"><v>1</v></c></row>'
            ).encode()
        case 1:
            del files[name]
        case 2:
            data = bytearray(files[name])
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
            files[name] = bytes(data)
        case 3:
            files["xl/worksheets/s0.xml"] = (
                f'<!DOCTYPE a [<!ENTITY b "{"x" * 999}">]><worksheet xmlns="{MAIN}"><sheetData>'
                f"<row><c><v>{'&b;' * 999}</v></c></row></sheetData></worksheet>"
            ).encode()
    damaged = io.BytesIO()
    packed(damaged, files)
    return damaged.getvalue()


def _cell(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value
