"""The archive of a page: the same results make the same bytes, and a changed digit is found."""

import gzip
import hashlib
import re
import shutil

import pytest
from invoking import CliRunner

from paper.__main__ import app
from paper.archive import KEPT, unpacked, verify, write_archive
from paper.cells import Cell, read_result

RUN = ("gaussians_summary", "bumps", "--quick", "--seeds", "2", "--processes", "1")
CELL = Cell("gaussians", "2 dimensions, noise multiplier 7.0", "SVM", seeds=2, quick=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A page and its archive, by the quick mode."""
    out = tmp_path_factory.mktemp("made")
    result = CliRunner().invoke(app, [*RUN, "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture
def copied(made, tmp_path):
    """The page and the archive alone, to be changed."""
    for name in ("reproduction.html", "reproduction.tar.gz"):
        shutil.copy(made / name, tmp_path)
    return tmp_path


def verified(out):
    return CliRunner().invoke(app, ["verify", str(out / "reproduction.tar.gz")])


def rendered(out):
    return CliRunner().invoke(app, ["render", str(out / "reproduction.tar.gz")])


def changed(out, old, new, *, name_it=False):
    """Change bytes of the archive; on request the page names the archive that it is then."""
    path, page = out / "reproduction.tar.gz", out / "reproduction.html"
    before = path.read_bytes()
    content = gzip.decompress(before)
    head, found, tail = content.rpartition(old)  # the paper's protocol comes last
    assert found
    path.write_bytes(gzip.compress(head + new + tail, mtime=0))
    if name_it:
        digests = [hashlib.sha256(data).hexdigest() for data in (before, path.read_bytes())]
        page.write_text(page.read_text().replace(*digests))


def number_of(made):
    """A measured number as the archive has it."""
    value = read_result(CELL, made)["values"]["trapezoid, normal"][0]
    return repr(value).encode()


def test_page_and_archive_are_checked_without_the_results_beside_them(copied):
    result = verified(copied)
    assert result.exit_code == 0, result.output
    assert "14 figures and 0 claims" in result.output
    assert verify(copied / "reproduction.tar.gz").differences == ()


def test_the_same_results_make_the_same_bytes(made, tmp_path):
    first = (made / "reproduction.tar.gz").read_bytes()
    with unpacked(made / "reproduction.tar.gz") as archive:
        assert (archive.names, archive.plan.seeds) == (("gaussians_summary", "bumps"), 2)
        assert archive.commit
        again = shutil.copytree(made, tmp_path / "again")
        digest = write_archive(archive.names, archive.plan, again)
    assert (again / "reproduction.tar.gz").read_bytes() == first
    assert hashlib.sha256(first).hexdigest() == digest
    assert f"SHA-256 {digest}" in (made / "reproduction.html").read_text()


def test_a_changed_digit_that_shows_on_the_page_is_found(made, copied):
    old = number_of(made)
    changed(copied, old, b"0.5" + old[3:], name_it=True)
    result = verified(copied)
    assert result.exit_code == 1
    assert re.search(r"^- *SVM *7\.0 ", result.output, re.MULTILINE), "as it is on the page"
    assert re.search(r"^\+ *SVM *7\.0 ", result.output, re.MULTILINE), "as it is recomputed"
    assert "is not what the results come to" in " ".join(result.output.split())


def test_the_last_digit_of_a_number_is_found_by_the_hash(made, copied):
    old = number_of(made)
    changed(copied, old, old[:-1] + (b"1" if old[-1:] != b"1" else b"2"))
    result = verified(copied)
    assert result.exit_code == 1
    assert result.output.count("SHA-256") == 2


def test_a_changed_digit_of_the_page_is_found(copied):
    page = copied / "reproduction.html"
    text = page.read_text()
    assert "<td>0.990±0.010</td>" in text
    page.write_text(text.replace("<td>0.990±0.010</td>", "<td>0.991±0.010</td>", 1))
    assert verified(copied).exit_code == 1


def test_a_page_that_is_rendered_again_is_what_the_results_come_to(made, copied):
    page = copied / "reproduction.html"
    page.write_text("another page")
    result = rendered(copied)
    assert result.exit_code == 0, result.output
    assert page.read_text() == (made / "reproduction.html").read_text()
    archive = "reproduction.tar.gz"
    assert (copied / archive).read_bytes() == (made / archive).read_bytes()
    assert verified(copied).exit_code == 0


def test_rendering_finds_code_that_has_changed_since(made, copied):
    changed(copied, read_result(CELL, made)["made"]["code"].encode(), b"0" * 16)
    assert rendered(copied).exit_code == 0
    page = (copied / "reproduction.html").read_text()
    assert re.search(r"\b[1-9]\d* of \d+ results are STALE", page)
    assert verified(copied).exit_code == 0


def test_the_page_in_the_docs_is_what_its_archive_comes_to():
    """Where this fails after a change of the code: `python -m paper render`."""
    assert verify(KEPT).differences == ()


def test_a_page_is_needed(copied):
    (copied / "reproduction.html").unlink()
    result = verified(copied)
    assert result.exit_code == 2
    assert "to compare with" in " ".join(result.output.split())
