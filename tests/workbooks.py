"""Spreadsheets made by hand, as small as they can be."""

import datetime as dt
import zipfile
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
FIRST = dt.datetime(1899, 12, 30)


def cell(value):
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    if isinstance(value, dt.datetime):
        return f'<c s="1"><v>{(value - FIRST).days}</v></c>'
    return "<c/>" if value is None else f"<c><v>{value}</v></c>"


def workbook(path, **sheets):
    """A spreadsheet as small as one can be; the second style is of dates."""
    names = list(sheets)
    kinds = "".join(
        f'<Relationship Id="r{i}" Type="{OFFICE}/worksheet" Target="worksheets/s{i}.xml"/>'
        for i in range(len(names))
    )
    kinds += f'<Relationship Id="st" Type="{OFFICE}/styles" Target="styles.xml"/>'
    listed = "".join(
        f'<sheet name="{name}" sheetId="{i + 1}" r:id="r{i}"/>' for i, name in enumerate(names)
    )
    top = f'<Relationship Id="w" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    relations = f'<Relationships xmlns="{PACKAGE}/relationships">'
    files = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
        "_rels/.rels": f"{relations}{top}</Relationships>",
        "xl/_rels/workbook.xml.rels": f"{relations}{kinds}</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets>'
        "</workbook>",
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs count="2"><xf numFmtId="0"/>'
        '<xf numFmtId="14"/></cellXfs></styleSheet>',
    }
    for i, rows in enumerate(sheets.values()):
        files[f"xl/worksheets/s{i}.xml"] = sheet(rows)
    return packed(path, files)


def sheet(rows, beside=""):
    """The text of a sheet."""
    data = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    return f'<worksheet xmlns="{MAIN}"><sheetData>{data}{beside}</sheetData></worksheet>'


def packed(path, files):
    """An archive of these files, by their names."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path
