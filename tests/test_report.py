"""Reports: what the records hold, and that the page is whole, closed to the net and accessible."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from fewer import unwritten_pictures
from report_page import Page, payments
from sklearn.ensemble import IsolationForest

from eqsep import Detector
from eqsep.detector import Config
from eqsep.detector.explainer import Reason
from eqsep.evaluation import average_precision_by_kind, leave_one_kind_out
from eqsep.plots.figures import VARIABLES
from eqsep.plots.look import KIND_COLOURS
from eqsep.report import (
    HeldOut,
    Usage,
    detector_report,
    evaluation_report,
    html,
    pictures,
    write_report,
)

NOTHING = np.zeros((0, 3))


@pytest.fixture
def unwritten():
    """For tests of the text of a page."""
    with unwritten_pictures():
        yield


of_text = pytest.mark.usefixtures("unwritten")


@pytest.fixture(scope="module")
def new():
    return payments(1)


@pytest.fixture(scope="module")
def detector():
    old = payments(0)
    known = np.isin(old.kind, ["normal", "takeover", "skimming"])
    model = Detector(n_landmarks=80, false_alarm_rate=0.05, random_state=0, config=Config.fast())
    return model.fit(old.X[known], old.kind[known])


@pytest.fixture(scope="module")
def report(detector, new):
    return detector_report(
        detector,
        HeldOut(new.X, new.kind, note="Measured on other payments."),
        counts={"normal": 720, "takeover": 30, "skimming": 30},
        title="Payments & <others>",
        warnings=["Column 'a<b>' counts the rows."],
        usage=Usage("my model.eqsep", label="what failed", options=("--normal", "i. O.")),
    )


@of_text
def test_the_sizes_of_a_copy_are_said_and_that_few_rows_find_too_little(detector, new):
    """The shares are of the copy: with a few rows of a kind it finds less than the model."""
    old = payments(0)
    rows = np.isin(old.kind, ["normal", "takeover"])
    rows[np.flatnonzero(old.kind == "takeover")[4:]] = False
    copy = Detector(n_landmarks=60, bandwidth=1.0, random_state=0, config=Config.fast())
    copy.fit(old.X[rows], old.kind[rows])
    held = HeldOut(new.X, new.kind, detector=copy)
    found = detector_report(detector, held)
    learnt = detector.model_.namer.learnt_by_kind
    assert found.copied == {kind: (4 * (kind == "takeover"), learnt[kind]) for kind in learnt}
    page = Page(html(found))
    (said,) = (p["text"] for p in page.all("p") if "The copy has also learnt fewer" in p["text"])
    assert f"4 of {learnt['takeover']:.0f} rows of takeover" in said
    assert "fewer than 30 rows of takeover: of such rows, the model probably finds more" in said
    (skimming,) = (one for one in found.measured.unseen if one.kind == "skimming")
    assert skimming.caught == 1.0  # so no more can be found
    assert "The copy has also learnt" not in html(replace(found, copied={}))


def test_a_page_calls_the_rate_a_bound_as_the_command_does_where_few_rows_calibrate():
    X, held = np.random.default_rng(0).normal(size=(2, 130, 2))
    detector = Detector(n_landmarks=40, false_alarm_rate=0.05, random_state=0)
    detector.fit(X, np.zeros(130))
    n = detector.calibration_.n_units + 1
    for steps, bound in ((3.9, "at most "), (3, "")):  # both keep 3 / n
        detector.false_alarm_rate = rate = steps / n
        page = html(detector_report(detector, HeldOut(held, np.full(130, "normal"))))
        assert f"of new normal rows, {bound}{rate:.2%} raise an alarm" in page


@pytest.fixture(scope="module")
def brief(report):
    """The same with the picture of one column alone."""
    return replace(report, columns=report.columns[:1])


@pytest.fixture(scope="module")
def evaluation():
    table = payments(0, n=400)
    rows = np.isin(table.kind, ["normal", "takeover", "sleeper"])
    X = table.X[rows][["amount", "minutes_since_last", "account_age_days"]]
    models = {
        "ours": Detector(
            n_landmarks=60, false_alarm_rate=0.1, random_state=0, config=Config.fast()
        ),
        "forest": IsolationForest(n_estimators=20, random_state=0),
    }
    results = {
        name: leave_one_kind_out(model, X, table.kind[rows], random_state=0)
        for name, model in models.items()
    }
    return results, evaluation_report(results, counts={"normal": 320}, command="eqsep evaluate")


@pytest.fixture(scope="module")
def text(report):
    return html(report)


@pytest.fixture(scope="module", params=["detector", "evaluation"])
def either(request, text, evaluation):
    return Page(text if request.param == "detector" else html(evaluation[1]))


def test_the_page_needs_nothing_from_elsewhere(either):
    assert not either.all("script", "iframe", "object", "img", "base")
    for element in either.elements:
        for name, value in element["attrs"].items():
            assert not name.startswith("on")
            assert name not in ("src", "srcset", "action")
            if name in ("href", "xlink:href"):
                assert value.startswith("#") or value == "data:,"
            assert "http" not in (value or "")
    urls = re.findall(r"url\(([^)]*)\)|@import", either.whole)
    assert all(url.startswith("#") for url in urls)
    policy = next(m["attrs"]["content"] for m in either.all("meta") if "http-equiv" in m["attrs"])
    assert policy.startswith("default-src 'none'")


def test_headings_form_a_tree_under_one_title(either):
    levels = [int(h["tag"][1]) for h in either.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert all(h["text"].strip() for h in either.all("h1", "h2", "h3"))


def test_links_within_the_page_lead_somewhere_and_ids_occur_once(either):
    ids = [e["attrs"]["id"] for e in either.elements if "id" in e["attrs"]]
    assert len(ids) == len(set(ids))
    links = [a["attrs"]["href"][1:] for a in either.all("a")]
    assert links
    assert set(links) <= set(ids)
    labelled = [s["attrs"]["aria-labelledby"] for s in either.all("section")]
    assert set(labelled) <= set(ids)


def test_pictures_speak_and_tables_have_headers(either):
    for svg in either.all("svg"):
        assert svg["attrs"]["role"] == "img"
        assert len(svg["attrs"]["aria-label"]) > 20
    assert len(either.all("svg")) >= 2
    tables = either.all("table")
    assert tables
    assert either.whole.count("<thead>") == len(tables)
    assert all("scope" in th["attrs"] for th in either.all("th"))
    assert either.all("html")[0]["attrs"]["lang"] == "en"


def test_wide_tables_scroll_with_a_cue_and_their_captions_stay_in_sight(either):
    style = either.all("style")[0]["text"]
    assert "background-attachment: local, local, scroll, scroll" in style
    outside = re.sub(r"<article.*?</article>", "", either.whole, flags=re.DOTALL)
    regions = re.findall(r'<div class="scroll" tabindex="0" role="region"[^>]*>\n<table>', outside)
    assert len(regions) == outside.count("<table>") >= 2
    assert outside.count("<caption") == len(re.findall("<caption[^>]*><span>", outside)) >= 2


def test_what_matters_stands_beside_the_name_of_the_row(text):
    read = Page(text)
    for region, second in (
        ("Average precision by kind", "raise an alarm"),
        ("False alarms", "verdict"),
        ("Closedness by column", "alarm"),
    ):
        assert read.rows(region)[0][1] == second


def test_every_colour_of_the_pictures_is_defined_for_light_dark_and_paper(either):
    style = either.all("style")[0]["text"]
    dark, printed = (style.split(f"@media {name}")[1] for name in ("(prefers", "print"))
    for variable in VARIABLES.values():
        for part in (style, dark, printed):
            assert f"--{variable}: #" in part


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_words_and_marks_stand_out(text, scheme):
    style = Page(text).all("style")[0]["text"]
    block = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[scheme]
    colour = dict(re.findall(r"--(\w+): (#\w{6})", block))
    for ground in ("paper", "card"):
        for word in ("ink", "soft", "good", "late", "bad", "link"):
            assert contrast(colour[word], colour[ground]) >= 4.5, (word, ground)
        for mark in ("normal", *(f"kind{i + 1}" for i in range(len(KIND_COLOURS)))):
            assert contrast(colour[mark], colour[ground]) >= 3, (mark, ground)


def test_kinds_are_measured_apart_by_whether_they_were_seen(report, detector, new):
    measured = report.measured
    assert [found.kind for found in measured.seen] == ["skimming", "takeover"]
    assert [found.kind for found in measured.unseen] == [
        "card testing",
        "money mule",
        "sleeper",
        "stuck scanner",
    ]
    areas = average_precision_by_kind(detector.score_samples(new.X), new.kind)
    for found in (*measured.seen, *measured.unseen):
        assert found.precision.value == pytest.approx(areas[found.kind])
        assert found.precision.low <= found.precision.value <= found.precision.high
    assert measured.together["overall"].precision.value == pytest.approx(areas["overall"])
    unseen = ~np.isin(new.kind, ["skimming", "takeover"])
    other = average_precision_by_kind(detector.score_samples(new.X[unseen]), new.kind[unseen])
    assert measured.together["unseen"].precision.value == pytest.approx(other["overall"])


def test_the_names_that_alarms_are_given_are_counted_by_label(report, text, detector, new):
    measured, said = report.measured, detector.predict_kind(new.X)
    alarms = detector.predict(new.X) == 1
    for one in measured.names.kinds:
        assert one.alarms == (alarms & (new.kind == one.kind)).sum()
    takeover = next(one for one in measured.names.kinds if one.kind == "takeover")
    assert takeover.right == ((new.kind == "takeover") & (said == "takeover")).sum() > 0
    assert "Which names alarms get" in text
    shown = {row[0]: row[1:3] for row in Page(text).rows("Names by label")}
    assert shown["takeover"] == [str(takeover.alarms), str(takeover.right)]


def test_the_page_says_what_the_records_hold(report, text):
    read = Page(text)
    lines = read.rows("Average precision by kind")
    for found in (*report.measured.seen, *report.measured.unseen):
        value = found.precision
        line = next(line for line in lines if line[0] == found.kind)
        assert line[2] == f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"
        assert line[1].startswith(f"{found.caught:.1%} [")
        assert line[4] == str(found.rows)
    own = next(line for line in read.rows("False alarms") if line[0] == "5.00%")
    promise = next(p for p in report.measured.promises if p.rate == 0.05)
    assert own[2].startswith(f"{promise.measured:.2%} ")
    ends = {line[0]: line for line in read.rows("Closedness by column")}
    assert set(ends) == {"column", *(one.name for one in report.columns)}
    for one in report.columns:
        column = one.closedness
        assert ends[column.column][1] == one.word
        below, above = ends[column.column][2:4]
        for cell, where in ((below, "below"), (above, "above")):
            late = any(end.is_late for end in column.ends if end.where == where)
            assert cell.endswith("late") == late
    assert any(one.closedness.is_late for one in report.columns)
    every = [end for one in report.columns for end in one.closedness.ends]
    rings = [end.rings for end in every if end.where == "missing"]
    far = [[e.rings for e in one.closedness.ends if e.where != "missing"] for one in report.columns]
    some, both = (sum(map(rule, filter(None, far))) for rule in (any, all))
    told = (
        f"In {some} of {sum(map(bool, far))} columns, one value far below or far above",
        f"; in {some - both} of them, on one side only" * (some > both),
        f"one, is enough for an alarm in {sum(rings)} of {len(rings)} column",
    )
    assert any(all(part in one["text"] for part in told) for one in read.all("p"))
    assert len(read.all("article")) == len(report.alarms) == 12


def test_alarms_come_from_every_label_with_values_as_in_the_table(report, detector, new):
    alarm = detector.predict(new.X) == 1
    assert {one.label for one in report.alarms} == set(new.kind[alarm])
    scores = [alarm.score for alarm in report.alarms]
    assert scores == sorted(scores, reverse=True)
    for alarm in report.alarms:
        place = int(alarm.row.removeprefix("row ").replace(",", "")) - 1
        assert new.kind[place] == alarm.label
        for reason in alarm.explanation.reasons:
            value = new.X.iloc[place][reason.column]
            if isinstance(value, str):
                assert reason.value == value
        assert 0 < alarm.p_value <= 0.05


def shown(alarms, row):
    """The numbers of an alarm's card, as they are shown."""
    card = re.search(rf'aria-label="Alarm: {row}">(.*?)</article>', alarms, re.DOTALL)[1]
    return [float(n) for n in re.findall(r"</span>([+-]?\d+\.\d{3})</td>", card)]


def test_the_parts_of_an_alarm_add_up_to_its_score_as_they_are_shown(report, text):
    for alarm in report.alarms:
        base, *parts, score = shown(text, alarm.row)
        assert base == round(alarm.explanation.base, 3)
        assert score == round(alarm.score, 3)
        assert base + sum(parts) == pytest.approx(score, abs=1e-9)
        assert all(parts[:-1])
        assert len(parts) == len(alarm.reasons) + 1


@of_text
def test_columns_that_add_nothing_are_no_reasons(brief):
    first = brief.alarms[0]
    idle = Reason("model", "Press-C", "Press-C", 0.0004)
    more = replace(first.explanation, reasons=(*first.explanation.reasons, idle))
    page = html(replace(brief, alarms=(replace(first, explanation=more),)))
    assert "Press-C" not in page
    assert sum(shown(page, first.row)[:-1]) == pytest.approx(round(first.score, 3))


@of_text
def test_dates_are_broken_at_most_before_the_hour(brief):
    first = brief.alarms[0]
    times = [Reason("time", "2025-05-31T10:59:05", "2025-04-01", 0.2)]
    told = replace(first.explanation, reasons=tuple(times))
    page = html(replace(brief, alarms=(replace(first, explanation=told),)))
    assert '<span class="whole">2025-05-31T</span><wbr>10:59:05' in page
    assert '<span class="whole">2025-04-01</span>' in page


@of_text
def test_normal_rows_are_labelled_with_the_users_word(detector, new):
    kind = np.where(new.kind == "normal", "fine", new.kind)
    counts = {"fine": 720, "takeover": 30}
    report = detector_report(detector, HeldOut(new.X, kind, normal="fine"), counts=counts)
    assert list(report.learnt.counts) == ["normal", "takeover"]
    assert "normal" in {alarm.label for alarm in report.alarms}
    page = html(replace(report, columns=report.columns[:1]))
    assert 'Normal rows are those labelled "fine"' in page
    assert "720 rows labelled fine are trusted" in page
    assert "labelled <strong>fine</strong> (normal), taken for" in page
    assert '<th scope="row">normal (fine)</th><td>720</td>' in page
    assert "labelled normal" not in page
    assert "labelled <strong>normal" not in page


def test_what_users_wrote_is_escaped_and_shell_words_are_quoted(text):
    text = re.sub('<span class="whole">|</span><wbr>', "", text)
    assert "Payments &amp; &lt;others&gt;" in text
    assert "&#39;a&lt;b&gt;&#39;" in text
    assert "eqsep score &#39;my model.eqsep&#39; new.csv" in text
    told = "labelled.csv --label &#39;what failed&#39; --normal &#39;i. O.&#39;"
    for command in ("learn", "test"):
        assert f"eqsep {command} &#39;my model.eqsep&#39; {told}" in text


def test_a_detector_without_any_kind_has_a_page_too():
    X = np.random.default_rng(0).normal(size=(900, 2))
    detector = Detector(false_alarm_rate=0.05, random_state=0, config=Config.fast()).fit(X[:600])
    report = detector_report(detector, HeldOut(X[600:], ["normal"] * 300), counts={"normal": 600})
    assert report.measured.seen == report.measured.unseen == ()
    assert report.alarms
    read = Page(html(report))
    assert "all taken as normal" in read.whole
    assert 'id="kinds"' not in read.whole
    assert len(read.all("svg")) == 4
    for words in ("labelled normal", "of every label", "wrong label", "anomalies are rarer"):
        assert words not in " ".join(p["text"] for p in read.all("p"))
    work = r"The work: about \d+ false alarms in 1,000 normal rows, if they are as promised"
    assert any(re.match(work, p["text"]) for p in read.all("p"))


@of_text
def test_the_page_says_what_normal_rows_were_taken_for(text, detector, new):
    assert "720 rows labelled normal are trusted." in text
    assert "did not set the threshold" not in text
    old = payments(0, n=2_000)
    unnoticed = (old.kind == "normal") | (np.arange(2_000) % 2 == 0)
    y = np.where(unnoticed, None, old.kind)
    doubting = Detector(
        n_landmarks=80, bandwidth=0.5, false_alarm_rate=0.05, random_state=0, config=Config.fast()
    )
    doubting.fit(old.X, y)
    counts = {"takeover": int((y == "takeover").sum()), "without a label": int(unnoticed.sum())}
    report = detector_report(doubting, HeldOut(new.X, new.kind), counts=counts)
    told = f"{unnoticed.sum():,} rows without a label are doubted: some may be anomalies, and the "
    told += (
        f"{Config().isolated_share:.0%} most isolated do not describe normal rows. Otherwise pass "
    )
    told += '<code>--clean</code> (in Python <code>unlabelled="trusted"</code>) if the rows '
    told += "without a label are known to be normal."
    left_out = doubting.calibration_.n_left_out
    assert report.learnt.left_out == left_out > 0
    page = html(replace(report, columns=report.columns[:1]))
    assert f"{told} Of the held-out ones {left_out} did not set the threshold" in page
    assert "false alarms measured" in page  # the held-out rows are labelled
    held = HeldOut(new.X, new.kind, doubted=True)
    doubted = detector_report(doubting, held, counts=counts)
    page = html(replace(doubted, columns=doubted.columns[:1]))
    assert "false alarms measured" not in page
    assert doubted.measured.normal == "without a label"
    assert "normal" not in {alarm.label for alarm in doubted.alarms}
    bare = detector_report(detector, HeldOut(new.X, new.kind))
    told = "rows labelled normal are trusted; any without a label counts 0.01"
    assert bare.learnt.trust == told


@of_text
def test_too_few_rows_make_no_promise():
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.warns(UserWarning, match="cannot be promised"):
        detector = Detector(random_state=0).fit(X[:40])
    report = detector_report(detector, HeldOut(X[40:], ["normal"] * 20))
    page = Page(html(report))
    assert "No promise" in page.whole
    assert page.all("dd")[0]["text"] == "no ratetoo few held-out rows to promise 1.00%"


def test_held_out_rows_without_a_normal_one_are_refused(detector, new):
    rows = new.kind == "takeover"
    with pytest.raises(ValueError, match="no held-out row is 'normal'"):
        detector_report(detector, HeldOut(new.X[rows], new.kind[rows]))


@of_text
def test_a_page_that_cannot_be_made_leaves_the_old_one(report, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr(pictures, "promises", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(report, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_evaluation_compares_methods_on_the_same_rows(evaluation):
    results, report = evaluation
    assert (report.methods, report.kinds) == (("ours", "forest"), ("sleeper", "takeover"))
    for (method, kind), cell in report.cells.items():
        own = next(r for r in results[method].results if r.kind == kind)
        for part in ("seen", "unseen", "overall"):
            value = cell.parts[part]
            assert value.value == pytest.approx(getattr(own, part))
            assert value.prevalence == pytest.approx(getattr(own, f"{part}_prevalence"))
            assert value.low <= value.value <= value.high
        assert cell.by_kind["sleeper"].value == pytest.approx(own.by_kind["sleeper"])
    ours, forest = (report.cells[name, "sleeper"] for name in report.methods)
    assert not ours.gain
    gap = ours.parts["unseen"].value - forest.parts["unseen"].value
    assert forest.gain["unseen"].value == pytest.approx(gap)
    ahead, behind = report.told_apart("forest", "seen")
    assert 0 <= ahead + behind <= 2


def test_kinds_count_alike_in_the_headline_and_cells_are_led_by_one_method(evaluation):
    results, report = evaluation
    for method in report.methods:
        found = {result.kind: result.by_kind for result in results[method].results}
        seen = [found[kind][kind] for kind in found]
        unseen = [found["sleeper"]["takeover"], found["takeover"]["sleeper"]]
        means = report.mean_over_kinds(method)
        assert means == pytest.approx({"seen": np.mean(seen), "unseen": np.mean(unseen)})
    ours, forest = (report.by_kind(method) for method in report.methods)
    assert report.leads("ours") == sum(ours[cell] > forest[cell] for cell in ours)
    assert report.leads("forest") == sum(forest[cell] > ours[cell] for cell in ours)
    better = report.better_at("forest")
    assert len(better) == min(report.leads("forest"), 3)
    assert all(own > first for _, _, own, first in better)
    assert report.better_at("ours") == []  # it is not above itself


def test_both_figures_of_unseen_kinds_say_what_they_measure(evaluation):
    read = Page(html(evaluation[1]))
    assert read.all("dt")[0]["text"] == "ours: unseen kinds, each by itself"
    assert read.rows("Means")[0] == ["method", "seen", "unseen, together", "overall"]


def test_few_rows_of_a_kind_are_named_and_make_no_method_better(evaluation):
    _, report = evaluation
    few = replace(report, counts={"normal": 320, "sleeper": 30, "takeover": 9})
    assert few.notes == (
        "Fewer than 30 rows: takeover (9). Their figures depend on single rows, and with "
        "fewer than 10 rows their intervals do, too.",
    )
    every = report.better_at("forest", most=9)
    assert few.better_at("forest", most=9) == [one for one in every if one[1] != "takeover"]
    assert replace(report, counts={"normal": 320, "sleeper": 30, "takeover": 30}).notes == ()
    (said,) = replace(few, called=lambda kind: f"fraud = {kind}").notes
    assert said.startswith("Fewer than 30 rows: fraud = takeover (9). ")


def test_the_page_of_an_evaluation_has_a_matrix_for_each_method(evaluation):
    read = Page(html(evaluation[1]))
    for method in ("ours", "forest"):
        header, *lines = read.rows(f"Kind by kind: {method}")
        assert header == ["seen", "sleeper", "takeover"]
        for line in lines:
            by_kind = evaluation[1].cells[method, line[0]].by_kind
            assert line[1:] == [f"{by_kind[kind].value:.3f}" for kind in header[1:]]
    assert read.whole.count('class="shade own"') == 4


def test_pages_use_a_desktop_and_print_whole(either):
    style = either.all("style")[0]["text"]
    assert float(re.search(r"footer { max-width: (\d+)rem", style)[1]) * 16 >= 1700
    printed = style.split("@media print")[1]
    for rule in ("details::details-content { content-visibility: visible", "tr, .tiles div, li {"):
        assert rule in printed
