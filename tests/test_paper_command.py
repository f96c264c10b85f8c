"""`python -m paper`: what it prints, what it writes, how it fails."""

import re
import shutil
from contextlib import nullcontext
from html.parser import HTMLParser

import pytest
from invoking import CliRunner

from paper import runner
from paper.__main__ import app
from paper.figures import FIGURES
from paper.page import number
from paper.tables import TABLES
from paper.verdicts import JUDGED

WHOLE = ("meta", "img", "link", "br", "hr", "input")


def run(*words, columns=160):
    result = CliRunner().invoke(
        app, [*map(str, words)], env={"COLUMNS": str(columns), "EQSEP_DATA": None}
    )
    assert not result.exception or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture(scope="module", autouse=True)
def unrecorded():
    """Without what each cell ran through, as in test_paper_studies.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "recorded", lambda: nullcontext({}))
        yield


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """One run of a table, a table without its data, and two figures."""
    out = tmp_path_factory.mktemp("reproduced")
    words = ("gaussians_summary", "thyroid", "bumps", "ensembles")
    words += ("--seeds", 2, "--processes", 1, "--out", out)
    with pytest.MonkeyPatch.context() as patch:
        from paper.tables import circle_networks

        whole = circle_networks.training
        patch.setattr(circle_networks, "training", lambda **told: whole(**told | {"epochs": 2}))
        patch.delenv("EQSEP_DATA", raising=False)
        return run(*words), run(*words), out


def test_the_list_names_every_table_and_figure():
    printed = run("--list").output
    assert {*TABLES, *FIGURES} <= set(re.findall(r"[\w]+", printed))


def test_the_list_has_the_times_that_results_say(reproduced):
    _, _, out = reproduced

    def times(*words):
        printed = run("--list", *words).output
        return dict(re.findall(r"^ *(\w+) .*? ((?:about )?\d\S* \w+|–) *$", printed, re.MULTILINE))

    found = times("--seeds", 2, "--out", out)
    assert re.fullmatch(r"\d+ s", found["bumps"])
    assert re.fullmatch(r"about \d+ (s|min)", found["gaussians_sigma_mse"]), "some are measured"
    assert found["thyroid"] == found["mvtec_pill"] == "–", "skipped, or not run"
    kept = times("--out", out / "nowhere")
    assert re.fullmatch(r"(about )?\S+ (s|min|h)", kept["thyroid"]), (
        "as the archive of the docs says"
    )


def test_the_log_has_a_line_for_each_cell(reproduced):
    *_, out = reproduced
    lines = (out / "progress.log").read_text().splitlines()
    done = [re.search(r" (\d+)/(\d+) ([\d.]+)% ", line).groups() for line in lines]
    n_cells = len(list(out.rglob("*seeds.json")))
    assert {(int(i), int(n)) for i, n, _ in done} >= {(i + 1, n_cells) for i in range(n_cells)}
    assert max(float(share) for *_, share in done) == 100.0
    assert any(line.endswith(", 2 seeds, paper: measured") for line in lines)


def test_an_interrupted_run_leaves_a_page_that_says_so_and_goes_on(tmp_path, monkeypatch):
    words = ("bumps", "losses", "--processes", 1, "--out", tmp_path)
    whole, seen = runner.result_of, []

    def interrupted(cell, **told):
        seen.append(cell)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return whole(cell, **told)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "result_of", interrupted)
        result = run(*words)
    assert result.exit_code == 130
    (lacking, planned) = re.search(r"Interrupted: (\d+) of (\d+) cells", result.output).groups()
    assert int(planned) - int(lacking) == 2
    for name in ("reproduction.html", "reproduction.md"):
        page = (tmp_path / name).read_text()
        assert f"{lacking} of {planned} cells have not been measured" in page
    assert run("verify", tmp_path / "reproduction.tar.gz").exit_code == 0
    again = run(*words)
    assert again.exit_code == 0
    assert f"{lacking} cells measured" in again.output
    assert "is incomplete" not in (tmp_path / "reproduction.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["verify", "nowhere.tar.gz"], "There is no archive nowhere.tar.gz"),
        (["verify", "one", "two"], "verify takes one archive, got one, two"),
        (["render", "one", "two"], "render takes one archive, got one, two"),
        (["verify", __file__], "is not an archive of `python -m paper`"),
        (["nonsense"], "Unknown table or figure nonsense: expected 'all' or some of toy_shallow"),
        ([], "Nothing was asked for: expected 'all' or some of toy_shallow"),
        (["bumps", "--protocol", "fair"], "Unknown protocol fair: expected paper or corrected"),
        (["bumps", "--seeds", "0"], "seeds must be at least 1, got 0"),
        (["bumps", "--processes", "0"], "processes must be at least 1, got 0"),
        (["bumps", "--processes", "2", "--ray", "local"], "--ray has its own"),
    ],
)
def test_what_cannot_be_run_is_an_error(words, message, tmp_path):
    result = run(*words, "--out", tmp_path)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_it_says_what_was_measured_and_a_second_run_measures_nothing(reproduced):
    first, second, _ = reproduced
    assert first.exit_code == second.exit_code == 0
    assert re.search(r"\n(\d+) cells measured .*, 0 kept from before, 6 skipped", first.output)
    assert re.search(r"\n0 cells measured .* kept from before", second.output)
    assert "0.990±0.010" in first.output  # published


def test_a_narrow_terminal_shows_whole_names_and_why_tables_were_skipped(tmp_path):
    tables = ("nsl_kdd_full", "mvtec_objects", "thyroid_full")
    printed = run(*tables, "--processes", 1, "--out", tmp_path, columns=80).output
    assert set(tables) <= set(printed.split())
    assert printed.count("Skipped: ") == 3
    assert "`eqsep data fetch nsl-kdd`" in printed
    assert "\nNothing has been measured.\n" in (tmp_path / "reproduction.md").read_text()
    assert "OCSVM-N" not in printed  # more lines than fit a screen are on the page


def test_a_long_table_that_is_asked_for_alone_is_shown(tmp_path):
    printed = run("nsl_kdd_full", "--processes", 1, "--out", tmp_path, columns=80).output
    assert printed.split().count("OCSVM-N") == 5  # one line a column


def test_the_page_is_one_file(reproduced):
    """Nothing is fetched: no script, no style sheet, no picture from elsewhere."""
    page = (reproduced[2] / "reproduction.html").read_text()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert {tag for tag, _ in tags.seen}.isdisjoint({"script", "link", "iframe", "object"})
    assert "@import" not in page
    assert "url(" not in page
    pictures = [dict(attributes) for tag, attributes in tags.seen if tag == "img"]
    assert len(pictures) == 2
    assert all(p["src"].startswith("data:image/png;base64,iVBOR") and p["alt"] for p in pictures)
    anchors = {dict(attributes).get("id") for _, attributes in tags.seen}
    links = {dict(attributes)["href"] for tag, attributes in tags.seen if tag == "a"}
    outside = {link for link in links if not link.startswith("#")}
    assert outside == {
        "https://openreview.net/forum?id=zOJ846BXhl",
        "https://github.com/mattlaued/XOR-is-Linearly-Classifiable",
    }
    assert {link.removeprefix("#") for link in links - outside} <= anchors


class Tags(HTMLParser):
    """The tags of a page; those that are never closed stay in `open`."""

    def __init__(self):
        super().__init__()
        self.seen, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, attrs))
        if tag not in WHOLE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_and_markdown_show_published_ours_and_verdict(reproduced):
    *_, out = reproduced
    text, page = ((out / f"reproduction.{end}").read_text() for end in ("md", "html"))
    line = next(line for line in text.splitlines() if line.startswith("| SVM | 7.0 |"))
    words = [word.strip() for word in line.strip("|").split("|")]
    assert words[2] == "0.990±0.010"
    assert words[5] in JUDGED
    assert words[9] in JUDGED
    assert re.fullmatch(r"\d\.\d{3}±\d\.\d{3}", words[3])
    assert words[3] in page
    assert words[8] in page
    rows = [row for row in text.splitlines() if re.match(r"\| SVM \| \d+\.\d ", row)]
    assert len({len(row.split("|")) for row in rows}) == 1
    assert "EQSEP_DATA" in text  # why thyroid was skipped
    assert "What the corrected protocol changes" in page


def test_the_page_does_not_forget_what_was_measured_before(reproduced, tmp_path):
    out = shutil.copytree(reproduced[2], tmp_path / "copy")
    result = run("losses", "--seeds", 2, "--processes", 1, "--out", out)
    assert result.exit_code == 0
    assert "0.990±0.010" not in result.output  # not asked for now
    text, page = ((out / f"reproduction.{end}").read_text() for end in ("md", "html"))
    assert "| SVM | 7.0 | 0.990±0.010 |" in text
    assert "– | not run |" not in text  # nor shows tables of which it has a part
    assert page.count("<img ") == 3


def test_a_dash_stands_for_no_number():
    assert number(None, 1) == "–"
    assert number(-0.04, 1) == "-0.0"
