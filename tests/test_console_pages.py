"""The console's pages as the server writes them: every view, without a browser and its scripts."""

import html
import json
import re
import time
from dataclasses import replace
from importlib.resources import files
from types import SimpleNamespace

import pytest
from consoled import COLUMN, ENTITY, KIND, VALUE, consoled, pump_rows
from fastapi.testclient import TestClient
from sqlalchemy import delete, insert, select

from eqsep.evaluation.promises import Share
from eqsep.serve import schema
from eqsep.serve.alarms import Filter
from eqsep.serve.console.pages import Assets, certainty
from eqsep.serve.ledger import apply
from eqsep.serve.verdicts import Preview, RowChange

HOME = "http://127.0.0.1"
SCREENS = ("inbox", "groups", "judge", "verdicts", "model", "watch")
STATIC = files("eqsep.serve.console") / "static"


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    made = consoled(f"sqlite:///{tmp_path_factory.mktemp('console') / 'eqsep.db'}")
    yield made
    made.ws.close()


def signed_in(console, role="admin"):
    client = TestClient(console.app, base_url=HOME)
    answer = client.post("/login", data={"token": console.tokens[role]}, follow_redirects=False)
    assert answer.status_code == 303
    return client


@pytest.fixture
def client(console):
    return signed_in(console)


def csrf(client):
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/settings").text)[1]


def post(client, path, **fields):
    return client.post(path, data={"csrf": csrf(client), **fields})


def open_alarms(console, model="pumps", kind=None):
    return console.ws.alarms.inbox(model, Filter(kind=kind)).alarms


@pytest.mark.parametrize("model", ["pumps", "hostile"])
@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_is_shown_without_inline_code(client, screen, model):
    answer = client.get(f"/m/{model}/{screen}")
    assert answer.status_code == 200
    assert f"<h1>{screen.capitalize()}</h1>" in answer.text
    assert_no_inline(answer.text)


@pytest.mark.parametrize("path", ["/settings", "/login"])
def test_screens_of_no_model_are_shown_too(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    assert_no_inline(answer.text)


def assert_no_inline(page):
    """No script, style or handler that the content security policy would have to allow."""
    tags = "".join(re.findall(r"<[a-z][^>]*>", page))
    tags = re.sub(r'"[^"]*"', '""', tags)  # what is in attributes is escaped, and is no code
    assert not re.search(r"<script(?![^>]* src=)", tags)
    assert "<style" not in tags
    assert not re.search(r"\s(style|on\w+)=", tags)


def test_an_alarm_has_reasons_normal_rows_history_and_alarms_like_it(console, client):
    number = open_alarms(console, kind="unseen")[0].id
    page = client.get(f"/m/pumps/alarms/{number}").text
    for heading in ("Why", "This row and normal rows", "Similar alarms"):
        assert f">{heading}</h2>" in page
    assert "History of machine m3" in page
    assert re.search(r'<th scope="row">heat</th><td class="own">-\d', page)
    assert page.count('name="id"') == 12  # itself, and eleven like it
    assert "judge these 11 too" in page
    assert f'href="/m/pumps/groups/{number}">the group</a>' in page


def test_of_many_similar_alarms_the_likest_are_shown_and_all_are_counted(
    console, client, monkeypatch
):
    monkeypatch.setattr("eqsep.serve.console.inbox.SIMILAR", 4)
    page = client.get(f"/m/pumps/alarms/{open_alarms(console, kind='unseen')[0].id}").text
    assert "4 of 11 that differ from normal rows in the same way" in page
    assert "judge these 4 too" in page


def test_values_and_entities_lead_to_what_has_them_too(console, client):
    alarm = open_alarms(console, kind="unseen")[0]
    page = client.get(f"/m/pumps/alarms/{alarm.id}").text
    link = re.search(r'href="(/m/pumps/inbox\?column=heat&amp;value=[^"]+)"', page)[1]
    found = client.get(html.unescape(link)).text
    assert re.findall(r'<tr data-id="(\d+)"', found) == [str(alarm.id)]
    assert '<option value="heat" selected>' in found
    link = re.search(r'href="(/m/pumps/entity\?name=m3)"', page)[1]
    history = client.get(link).text
    assert "<h1>Machine m3</h1>" in history
    assert len(re.findall(r'<tr data-id="\d+"', history)) == 12
    assert "No rows stored" in client.get("/m/pumps/entity?name=m99").text


def test_a_group_is_renamed_and_keeps_its_name(console, client):
    first, *_, last = sorted(alarm.id for alarm in open_alarms(console, kind="unseen"))
    said = post(client, "/m/pumps/groups", id=f"{first} {last}", name=KIND).text
    assert "1 group named" in said
    assert_no_inline(said)
    for page in (client.get("/m/pumps/groups").text, client.get(f"/m/pumps/groups/{last}").text):
        titles = re.findall(r"<h[12][^>]*>([^<]*)<", page)
        assert KIND in map(html.unescape, titles)
        assert_no_inline(page)
    assert console.ws.people.audit()[0].action == "groups named"
    assert (
        "Name removed: its alarms are in separate"
        in post(client, "/m/pumps/groups", id=last, name="").text
    )
    assert ">Group 1</h2>" in client.get("/m/pumps/groups").text
    none = post(client, "/m/pumps/groups", name="dry")
    assert (none.status_code, "is selected: select" in none.text) == (422, True)
    assert post(signed_in(console, "view"), "/m/pumps/groups", id=last, name="x").status_code == 403


def test_a_judged_incident_shows_its_verdict_and_is_not_selected(console, client):
    ids = [alarm.id for alarm in open_alarms(console, kind="leak")]
    assert client.get(f"/m/pumps/incidents/{ids[0]}").text.count('" checked aria') == len(ids)
    console.ws.verdicts.give(ids, "expected", by="zoe")
    page = client.get(f"/m/pumps/incidents/{ids[0]}").text
    assert '" checked aria' not in page
    assert 'id="hint">Alarms that are judged already are not selected.' in page
    assert page.count('expected</span> <span class="muted small nowrap">(was leak)') == len(ids)
    assert re.search(r'>judged</span> <span class="chip">expected<', page)
    assert "Assigned to" not in page
    line = client.get("/m/pumps/inbox?state=judged").text
    assert 'expected</span> <span class="muted small nowrap">(was leak)' in line
    console.ws.verdicts.undo([v.id for v in console.ws.verdicts.together("pumps")[0]], by="zoe")


def test_the_watch_says_which_columns_have_moved_and_since_which_version_it_counts(
    console, client, monkeypatch
):
    status = console.ws.watching.status("pumps")
    changes = {"heat": "lower, mean 2 (was 3)", "load": ""}
    seen = replace(
        status, shifts=[("heat", -6.0), ("load", 2.0)], changes=changes, far=4.6, banner=None
    )
    seen = replace(seen, compared="the last 563 rows without an alarm")
    monkeypatch.setattr("eqsep.serve.watching.Watching.status", lambda *_: seen)
    page = client.get("/m/pumps/watch").text
    assert re.findall(r"<td>(moved|within chance)</td>", page) == ["moved", "within chance"]
    assert '<td>lower, mean 2 (was 3)</td><td class="number">6.0</td>' in page
    assert ">the last 563 rows without an alarm compared with the rows learnt, in" in page
    assert ": beyond 4.6, a column has moved" in page
    assert f"since version {status.version} went live" in page
    assert '<div class="notice warn"><b>No evidence against' in page
    seen = replace(seen, far=None, rows=20)  # too few rows
    page = client.get("/m/pumps/watch").text
    assert page.count("<td>too few rows yet</td>") == 2
    early = f"Too early to tell: 20 rows since version {status.version} went live."
    assert f'<div class="notice"><b>{early}</b>' in page


def test_names_in_doubt_are_one_list_with_their_probabilities(console, client):
    numbers, table = [a.id for a in open_alarms(console, kind="leak")[:2]], schema.rows

    def doubt(*probabilities):
        with console.ws.store.writing() as connection:
            for number, p in zip(numbers, probabilities, strict=True):
                mine = table.update().where(table.c.id == number)
                connection.execute(mine.values(now_kind_probability=p))

    doubt(0.777, 0.6)
    page = client.get("/m/pumps/judge").text
    assert page.count("The name is in doubt: a verdict would settle the kind</h2>") == 1
    assert re.findall(r'">(\d+%)</span>', page)[:2] == ["60%", "77%"]
    page = client.get(f"/m/pumps/alarms/{numbers[0]}").text
    assert "77% likely to be leak, if it is of a kind that the model has seen" in page
    doubt(1.0, 1.0)


@pytest.mark.parametrize(("kind", "p"), [("unseen", 0.6), ("leak", 1.0), ("leak", None)])
def test_no_probability_is_shown_with_unseen_nor_with_the_only_kind(kind, p):
    assert certainty(SimpleNamespace(now=SimpleNamespace(kind=kind, kind_probability=p))) == ""


def test_an_older_verdict_is_taken_back_on_the_page_of_its_alarm(console, client):
    first, *others = (alarm.id for alarm in open_alarms(console, kind="leak"))
    post(client, "/m/pumps/verdicts", id=[first, *others], choice="verdict:unsure")
    page = client.get(f"/m/pumps/alarms/{first}").text
    own, batch = _undo_forms(page)[:2]
    assert "Undo this one" in own
    assert f"Undo the batch of {len(others) + 1}" in batch
    assert batch.count('name="verdict"') == len(others) + 1
    verdict = re.search(r'name="verdict" value="(\d+)"', own)[1]
    assert console.ws.verdicts.get(int(verdict)).row == first
    post(client, "/m/pumps/undo", verdict=verdict)
    assert [alarm.id for alarm in open_alarms(console, kind="leak")] == [first]
    page = client.get(f"/m/pumps/alarms/{others[0]}").text
    assert f"Undo the batch of {len(others)}" in page
    for verdict in console.ws.verdicts.latest("pumps", limit=len(others) + 1):
        if verdict.undone_at is None:
            post(client, "/m/pumps/undo", verdict=verdict.id)


@pytest.mark.parametrize("path", ["inbox", "groups", "judge", "entity?name=m3", "alarms/{}"])
def test_without_scripts_enter_presses_no_verdict(console, client, path):
    number = open_alarms(console, kind="leak")[-1].id
    console.ws.verdicts.propose([number], "false alarm", by="assistant")
    page = client.get(f"/m/pumps/{path.format(number)}").text
    form = re.search(r'<form id="verdict".*?</form>', page, re.S)[0]
    assert re.findall(r'<button name="choice" value="([^"]*)"', form)[0] == "new"
    empty = post(client, "/m/pumps/preview", id=number, choice="new", new_kind="", note="why")
    assert (empty.status_code, "Enter a name for the new kind" in empty.text) == (422, True)


def test_the_key_takes_back_ones_own_verdict_and_says_what_was(console, client):
    first, second = (alarm.id for alarm in open_alarms(console, kind="leak")[:2])
    (mine,) = console.ws.verdicts.give([first], "unsure", by="admin").verdicts
    (other,) = console.ws.verdicts.give([second], "expected", by="eve").verdicts
    page = client.get("/m/pumps/inbox").text
    (keyed,) = [form for form in _undo_forms(page) if "data-undo" in form]
    assert f'name="verdict" value="{mine.id}"' in keyed
    undone = post(client, "/m/pumps/undo", verdict=other.id).text
    told = re.search(r"Undone: (.*?)</p>", undone, re.S)[1]
    assert all(part in told for part in (">expected<", f"#{second}<", "eve, "))
    console.ws.verdicts.undo([mine.id], by="admin")
    (other,) = console.ws.verdicts.give([second], "expected", by="eve").verdicts
    page = client.get("/m/pumps/inbox").text
    assert f'name="verdict" value="{other.id}"' in page  # by its button
    assert "data-undo" not in page
    console.ws.verdicts.undo([other.id], by="eve")


def _undo_forms(page):
    return re.findall(r'<form method="post" action="/m/pumps/undo".*?</form>', page, re.S)


def test_what_is_missed_is_a_share_of_enough_rows_or_not_told(client, monkeypatch):
    def told(n_judged):
        share = Share.counted(n_judged // 4, n_judged)
        monkeypatch.setattr("eqsep.serve.alarms.Queue.missed", lambda *_: share)
        page = client.get("/m/pumps/judge").text
        return re.search(r"Missed so far</span>\s*<b>([^<]*)</b><span>([^<]*)<", page).groups()

    assert told(19) == ("not measured", "judge 1 more of 20 random quiet rows to measure it")
    share, words = told(20)
    assert share == "25%"
    assert words.startswith("of the quiet rows judged; ")


def test_what_a_program_proposes_waits_for_a_person(console, client):
    number = open_alarms(console, kind="leak")[-1].id
    console.ws.verdicts.propose([number], "true", kind="leak", note="as before", by="assistant")
    page = client.get(f"/m/pumps/alarms/{number}").text
    assert re.search(r"<b>assistant</b> proposes <span[^>]*>leak</span>", page)
    assert 'value="kind:leak">Preview</button>' in page
    assert "proposed: leak" in client.get("/m/pumps/inbox?by=alarm").text
    console.ws.verdicts.propose([number], "expected", note=VALUE, by=KIND)
    page = client.get(f"/m/pumps/alarms/{number}").text
    assert 'value="verdict:expected">Preview</button>' in page
    assert_no_inline(page)
    given = post(client, "/m/pumps/verdicts", id=number, choice="verdict:expected").text
    assert "proposed" not in client.get("/m/pumps/inbox?by=alarm").text
    post(client, "/m/pumps/undo", verdict=re.search(r'name="verdict" value="(\d+)"', given)[1])


def test_alarms_of_another_model_are_not_there(console, client):
    number = open_alarms(console, "hostile")[0].id
    answer = client.get(f"/m/pumps/alarms/{number}")
    assert answer.status_code == 404
    assert f"has no row {number}" in answer.text


def test_without_scripts_a_verdict_is_previewed_given_and_taken_back(console, client):
    ids = [alarm.id for alarm in open_alarms(console, kind="unseen")][:8]
    before = console.ws.ledger.live("pumps")
    shown = post(client, "/m/pumps/preview", id=ids, choice="new", new_kind="dry run")
    assert "<html" in shown.text
    renamed = len(console.ws.verdicts.preview(ids, "true", kind="dry run").renamed)
    assert renamed > 0
    assert f"Open alarms that would be renamed: {renamed}" in shown.text
    assert console.ws.ledger.live("pumps") == before
    given = post(client, "/m/pumps/verdicts", id=ids, choice="new", new_kind="dry run")
    assert f"{renamed} open alarms renamed" in given.text
    assert len(open_alarms(console, kind="dry run")) == renamed
    verdicts = re.findall(r'name="verdict" value="(\d+)"', given.text)
    assert len(verdicts) == 8
    undone = post(client, "/m/pumps/undo", verdict=verdicts)
    assert f". It is identical to version {before.id}, bit for bit" in undone.text
    assert console.ws.ledger.live("pumps").digest == before.digest
    assert len(open_alarms(console, kind="unseen")) == 12


def _preview(console, threshold, scores, **lists):
    """A preview, with one change for each score afterwards."""
    alarm = open_alarms(console, kind="leak")[0]
    then = [replace(alarm.now, score=s, alarm=False) for s in scores]
    empty = {"rows": [], "goes": [], "rises": [], "renamed": []}
    of = {
        name: [RowChange(alarm, one) for one in then]
        for name, is_there in lists.items()
        if is_there
    }
    return Preview(
        **{**empty, **of}, n_looked_at=9, fits={}, threshold=threshold, warnings=(), version=1
    )


@pytest.mark.parametrize(
    ("threshold", "scores", "told"),
    [
        (
            (0.133, 0.381),
            [0.2, 0.3, 0.1],
            "The threshold rises from 0.133 to 0.381: 2 of the 3 alarms clear for that reason, "
            "not because they look normal.",
        ),
        (
            (0.133, 0.381),
            [0.2],
            "The threshold rises from 0.133 to 0.381: the alarm clears for that reason, not "
            "because it looks normal.",
        ),
        (
            (0.381, 0.133),
            [0.2, 0.5],
            "The threshold falls from 0.381 to 0.133: 1 of the 2 quiet rows raises an alarm for "
            "that reason, not because its score rises.",
        ),
        ((0.133, 0.381), [0.1, 0.05], None),
        ((0.133, 0.133), [0.1], None),
    ],
)
def test_a_preview_begins_with_the_threshold_if_alarms_clear_because_of_it(
    console, client, monkeypatch, threshold, scores, told
):
    of = "rises" if threshold[1] < threshold[0] else "goes"
    made = _preview(console, threshold, scores, rows=True, **{of: True})
    monkeypatch.setattr(console.ws.verdicts, "preview", lambda *_, **__: made)
    page = post(client, "/m/pumps/preview", id=made.rows[0].alarm.id, choice="kind:leak").text
    found = re.search(r'<p class="notice warn">(The threshold [^<]*)</p>\s*<table>', page)
    assert (found and found[1]) == told


def test_all_that_a_preview_counts_can_be_listed(console, client, monkeypatch):
    made = _preview(console, (0.1, 0.1), [0.05] * 9, rows=True, goes=True)
    monkeypatch.setattr(console.ws.verdicts, "preview", lambda *_, **__: made)
    page = post(client, "/m/pumps/preview", id=made.rows[0].alarm.id, choice="kind:leak").text
    clear = re.search(r"would clear: 9</h3>(.*?)<h3>Quiet rows", page, re.S)[1]
    folded = re.search(r"<details>.*?and 4 more</summary>(.*?)</details>", clear, re.S)[1]
    assert (clear.count("<li>"), folded.count("<li>")) == (9, 4)
    assert page.count("and 6 more</summary>") == 1  # scores
    assert "New names" not in page  # none changes
    assert "Checked against the latest 9 stored rows that nobody has judged." in page


def test_who_judged_many_stands_apart_from_how_many_more(console, client):
    ids = [alarm.id for alarm in open_alarms(console, kind="unseen")[:5]]
    post(client, "/m/pumps/verdicts", id=ids, choice="verdict:unsure")
    assert re.search(r"and 2 more</span>\s+<span[^>]*>admin, ", client.get("/m/pumps/inbox").text)
    console.ws.verdicts.undo([v.id for v in console.ws.verdicts.latest("pumps", limit=5)], by="x")


def test_a_script_is_shown_scores_first_and_names_when_it_asks(console, client):
    ids = [alarm.id for alarm in open_alarms(console, kind="unseen")[:3]]
    said = {"csrf": csrf(client), "id": ids, "choice": "new", "new_kind": "dry run"}
    first = client.post("/m/pumps/preview", data=said, headers={"HX-Request": "true"}).text
    assert 'hx-post="/m/pumps/preview/names" hx-trigger="load"' in first
    assert len(re.findall(r"<th scope=\"row\">#\d+</th><td>\d\.\d+ <span", first)) == 3
    assert "New names</h3>" not in first
    names = client.post("/m/pumps/preview/names", data=said, headers={"HX-Request": "true"}).text
    assert re.search(r"→ <span[^>]*>dry run</span>", names)
    assert "Few rows of &#39;dry run&#39; so far: 3 including these. From 4 rows on" in names
    assert '<span class="muted small nowrap">3 rows so far</span>' in names
    assert "unknown" in names
    whole = client.post("/m/pumps/preview", data=said).text
    assert 'hx-trigger="load"' not in whole
    assert "New names</h3>" in whole


def test_a_false_alarm_that_stays_one_is_told_before(console, client):
    ids = [alarm.id for alarm in open_alarms(console, kind="leak")[:1]]
    page = post(client, "/m/pumps/preview", id=ids, choice="verdict:false alarm").text
    still = console.ws.verdicts.preview(ids, "false alarm").rows[0].then.alarm
    assert still
    assert re.search(
        "1 row would still raise an alarm: the model has learnt \\d+ normal rows, and one more",
        page,
    )


def test_the_first_name_is_the_chip_and_others_stand_beside_it(console, client):
    alarm, table = open_alarms(console, kind="leak")[0], schema.rows
    named = table.update().where(table.c.id == alarm.id)
    with console.ws.store.writing() as connection:
        connection.execute(named.values(now_kind="leak or spill or 7"))
    page = client.get("/m/pumps/inbox?by=alarm").text
    assert re.search(
        r'title="leak">leak</span> <span class="muted small">or spill, &#39;7&#39;<', page
    )
    with console.ws.store.writing() as connection:
        connection.execute(named.values(now_kind="leak"))


def test_what_was_previewed_is_not_learnt_a_second_time(console, client, monkeypatch):
    lessons = []

    def counted(model, operation, more):
        lessons.append(more)
        return apply(model, operation, more)

    monkeypatch.setattr("eqsep.serve.ledger.apply", counted)
    first, second = (alarm.id for alarm in open_alarms(console, kind="leak")[:2])
    post(client, "/m/pumps/preview", id=first, choice="kind:leak")
    post(client, "/m/pumps/verdicts", id=first, choice="kind:leak")
    assert len(lessons) == 1
    assert console.ws.ledger.replay("pumps").same_bits
    learnt = len(lessons)
    given = post(client, "/m/pumps/verdicts", id=second, choice="kind:leak").text
    assert len(lessons) == learnt + 1  # another row, and another version
    numbers = [verdict.id for verdict in console.ws.verdicts.latest("pumps", limit=2)]
    assert str(numbers[0]) in given
    for number in numbers:
        post(client, "/m/pumps/undo", verdict=number)


def test_a_part_of_a_page_says_which_alarms_to_fetch_again(console, client):
    number = open_alarms(console, kind="leak")[0].id
    fields = {"csrf": csrf(client), "id": number, "choice": "verdict:expected"}
    given = client.post("/m/pumps/verdicts", data=fields, headers={"HX-Request": "true"})
    assert given.headers["HX-Trigger-After-Swap"] == "alarms-changed"
    assert "<html" not in given.text
    assert "teaches nothing" not in given.text
    verdict = re.search(r'name="verdict" value="(\d+)"', given.text)[1]
    post(client, "/m/pumps/undo", verdict=verdict)


def test_who_judges_what_another_judged_is_led_to_the_undo(console, client):
    number = open_alarms(console, kind="leak")[0].id
    fields = {"csrf": csrf(client), "id": number, "choice": "kind:leak"}
    post(client, "/m/pumps/verdicts", id=number, choice="kind:leak")
    answer = client.post("/m/pumps/verdicts", data=fields, headers={"HX-Request": "true"})
    assert answer.status_code == 409
    assert 'href="">Reload the page' in answer.text
    assert f"admin has already judged alarm #{number} (leak)" in answer.text
    assert "data-undo" in client.get(f"/m/pumps/alarms/{number}").text
    alone = client.post("/m/pumps/verdicts", data=fields)  # its address shows nothing
    assert "Reload the page" not in alone.text
    post(client, "/m/pumps/undo", verdict=console.ws.verdicts.latest("pumps", limit=1)[0].id)


@pytest.mark.parametrize(
    ("path", "fields", "status", "told"),
    [
        ("/m/pumps/preview", {"choice": "new", "new_kind": "a"}, 422, "is selected: select"),
        ("/m/pumps/preview", {"id": "1", "choice": "new"}, 422, "Enter a name for the new kind"),
        ("/m/pumps/preview", {"id": "x", "choice": "new"}, 422, "number of a row"),
        ("/m/pumps/preview", {"id": "1", "choice": "verdict:maybe"}, 422, "verdict must be one of"),
        ("/m/pumps/preview", {"id": "9999", "choice": "kind:leak"}, 404, "Row 9999 does not exist"),
        ("/m/pumps/assign", {"to": "ada"}, 422, "is selected: select"),
        ("/m/pumps/revert", {"version": "first"}, 422, "number of a version"),
        ("/m/pumps/purge", {"entity": "m1", "again": "m2"}, 422, "Nothing was deleted"),
        ("/settings/tokens", {"name": "", "role": "view"}, 422, "A name must have"),
        (
            "/m/pumps/notices",
            {"hours": "0"},
            422,
            "Hours between e-mails must be more than 0.",
        ),
        ("/m/pumps/notices", {"min_score": "x"}, 422, "<span>Score at least must be a number."),
        ("/m/pumps/exemptions", {"entity": "m2", "low": "x"}, 422, "<span>From must be a number."),
        ("/m/pumps/alarms/x/note", {}, 422, "The number in the address must be a whole number."),
        ("/m/pumps/notices", {"mail_server": "host"}, 422, "The e-mail server must look like smtp"),
    ],
)
def test_what_is_wrong_is_said_on_a_page(client, path, fields, status, told):
    answer = post(client, path, **fields)
    assert answer.status_code == status
    assert told in answer.text
    assert 'role="alert"' in answer.text


def test_only_the_address_that_is_wrong_is_named(client):
    mail = {"mail_server": "smtp://host", "mail_from": "not an address", "mail_to": "d@e.f"}
    page = post(client, "/m/pumps/notices", **mail).text
    assert "The sender (From) must be an e-mail address, got &#39;not an address&#39;." in page
    assert "d@e.f" not in re.search(r'role="alert".*?</div>', page, re.S)[0]


@pytest.mark.parametrize(
    ("path", "filled"),
    [
        ("/m/pumps/notices", {"event": "drift", "hours": "0", "url": "http://a/hook"}),
        ("/m/pumps/purge", {"entity": "m1", "again": "m2"}),
        ("/m/pumps/settings", {"entity": "machine", "time": "when", "gap": "-1"}),
        ("/settings/tokens", {"name": "gus", "role": "judge", "days": "x"}),
        ("/m/pumps/kinds", {"old": "leak", "new": "normal"}),
    ],
)
def test_a_form_that_is_refused_is_shown_again_as_it_was_filled_in(client, path, filled):
    answer = post(client, path, **filled)
    form = re.search(rf'<form [^>]*action="{path}">.*?</form>', answer.text, re.S)[0]
    assert (answer.status_code, "Back to the inbox" in answer.text) == (422, False)
    assert 'role="alert" tabindex="-1" autofocus><b>This did not work.' in form
    for name, value in filled.items():
        if name in ("role", "old"):
            assert re.search(rf"<option[^>]* selected>{value}", form)
        else:
            tick = " checked" if name == "event" else ""
            assert f'name="{name}" value="{value}"{tick}' in form
    assert form.count(" checked") == ("event" in filled)
    assert post(client, path.replace("pumps", "gone"), **filled).status_code in (404, 422)


def test_filters_choose_and_refuse(client):
    assert client.get("/m/pumps/inbox?by=alarm&kind=leak").text.count('name="id"') == 3
    assert client.get("/m/pumps/inbox?by=alarm&entity=m3").text.count('name="id"') == 12
    assert "No alarms match these filters" in client.get("/m/pumps/inbox?min_score=99").text
    assert client.get("/m/pumps/inbox?state=quiet&entity=m1").text.count('name="id"') > 10
    bad = client.get("/m/pumps/inbox?min_score=high")
    assert (bad.status_code, "must be a number" in bad.text) == (422, True)
    gone = client.get("/m/pumps/inbox?entity=m77").text
    assert '<a href="/m/pumps/entity?name=m77">all stored rows of m77</a>' in gone
    for wrong in ("state=gone", "by=week", "since=noon", "value=BR", "column=heat"):
        assert client.get(f"/m/pumps/inbox?{wrong}").status_code == 422


def test_pages_of_the_inbox_hold_all_alarms_once(monkeypatch, client):
    monkeypatch.setattr("eqsep.serve.console.inbox.PER_PAGE", 6)
    seen = []
    for number in (1, 2, 3):
        page = client.get(f"/m/pumps/inbox?by=alarm&page={number}").text
        seen += re.findall(r'name="id" value="(\d+)"', page)
    assert len(seen) == len(set(seen)) == 15
    assert 'rel="next"' not in page


def test_alarms_of_an_entity_are_one_line_of_the_inbox(console, client):
    page = client.get("/m/pumps/inbox").text
    numbers = [alarm.id for alarm in reversed(open_alarms(console, kind="unseen"))]
    together = " ".join(map(str, numbers))
    assert f'name="id" value="{together}" form="verdict" data-alarms="12"' in page
    assert ">2 incidents, 15 alarms</span>" in page
    link = f"/m/pumps/incidents/{numbers[0]}"
    assert f'href="{link}" aria-label="Incident {numbers[0]}, 12 alarms"' in page
    shown = client.get(link).text
    assert_no_inline(shown)
    assert re.findall(r'<tr data-id="(\d+)"', shown) == [str(number) for number in numbers]
    assert len(re.findall(r'name="id" value="\d+" form="verdict" checked', shown)) == 12
    told = post(client, "/m/pumps/preview", id=together, choice="verdict:expected").text
    assert "12 alarms as" in told
    assert "No longer an incident" in client.get("/m/pumps/incidents/1").text


def test_an_incident_shows_all_names_of_its_alarms(console, client):
    rows = pump_rows((-7, -7), 2, seed=5, machine="m8") + pump_rows((6, 0), 3, seed=4, machine="m8")
    first = console.ws.intake.take("pumps", rows)[0].id
    for path in ("/m/pumps/inbox", f"/m/pumps/incidents/{first}"):
        page = client.get(path).text
        assert '>leak</span> <span class="muted small nowrap">+ 2 unseen</span>' in page
    console.ws.purging.purge("pumps", "m8", by="test")


def test_alarms_over_time_are_bars_that_lead_to_their_alarms(console, client):
    first = open_alarms(console, kind="leak")[0].id
    one = schema.rows.update().where(schema.rows.c.id == first)
    at = console.ws.alarms.get(first).at
    with console.ws.store.writing() as connection:
        connection.execute(one.values(at=at - 7200))
    page = client.get("/m/pumps/inbox?kind=leak").text
    assert "alarms per 5 min, at most 2<" in page
    links = re.findall(r'<a href="([^"]*since=[^"]*)"', page)
    assert len(links) == 2
    assert_no_inline(page)
    shown = client.get(html.unescape(links[0])).text
    assert re.findall(r'<tr data-id="(\d+)"', shown) == [str(first)]
    assert re.search(r'href="/m/pumps/inbox\?kind=leak&amp;">All times<', shown)
    with console.ws.store.writing() as connection:
        connection.execute(one.values(at=at))


def test_a_form_of_other_bytes_than_utf_8_is_refused(client):
    """As a browser with another encoding would send it; showing it again must not fail."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "X-CSRF-Token": csrf(client)}
    for path in ("/settings/tokens", "/m/pumps/notices/test", "/m/pumps/purge"):
        answer = client.post(path, content=b"name=caf\xe9&da\xd1s=3", headers=headers)
        assert answer.status_code == 422, answer.text


def test_an_entity_that_no_stored_row_has_is_refused_or_said(console, client):
    answer = post(client, "/m/pumps/settings", entity="machin")
    message = "No stored row has a column &#39;machin&#39;. Their columns: heat, load, machine."
    assert (answer.status_code, message in answer.text) == (422, True)
    assert console.ws.ledger.settings("pumps")["entity"] == "machine"
    page = post(client, "/m/pumps/purge", entity="NOPE-1", again="NOPE-1").text
    assert "<b>No stored row of NOPE-1.</b>" in page
    for entity, times in (("NOPE-1", 1), ("m2", 0)):
        page = post(client, "/m/pumps/exemptions", entity=entity, days="1").text
        assert page.count(f"<span>No stored row of {entity}.</span>") == times


def test_the_gap_between_incidents_is_set(console, client):
    for gap, status in (("2.5", 200), ("none", 422), ("-1", 422), ("nan", 422)):
        answer = post(client, "/m/pumps/settings", entity="machine", gap=gap)
        assert answer.status_code == status
    assert console.ws.ledger.settings("pumps")["gap"] == 2.5
    assert 'name="gap" value="2.5"' in client.get("/settings?model=pumps").text
    post(client, "/m/pumps/settings", entity="machine", gap="")
    assert "gap" not in console.ws.ledger.settings("pumps")


def test_rows_that_never_alarmed_are_normal_and_no_false_alarm(console, client):
    assert ">Normal <kbd>1" in client.get("/m/pumps/judge").text
    assert "False alarm" not in client.get("/m/pumps/judge").text
    quiet = console.ws.alarms.inbox("pumps", Filter(state="quiet")).alarms[0].id
    page = client.get(f"/m/pumps/alarms/{quiet}").text
    assert "False alarm" not in page
    assert page.count('name="note"') == 1
    told = post(client, "/m/pumps/preview", id=quiet, choice="verdict:false alarm").text
    assert re.search(r'1 row as <span class="chip">normal</span>', told)
    assert "False alarm <kbd>1" in client.get("/m/pumps/inbox").text
    leak = open_alarms(console, kind="leak")[0].id
    told = post(client, "/m/pumps/preview", id=leak, choice="verdict:false alarm").text
    assert re.search(r'1 alarm as <span class="chip">false alarm</span>', told)


def test_quiet_rows_are_rows_and_judged_normal(console, client):
    quiet = [a.id for a in console.ws.alarms.inbox("pumps", Filter(state="quiet")).alarms[:2]]
    page = client.get("/m/pumps/inbox?state=quiet").text
    assert re.search(r'id="total">\d+ rows<', page)
    assert '<th scope="col">Row</th><th scope="col">Kind now' in page
    assert ">Normal <kbd>1" in page
    heads = re.findall(r'<th scope="col">(Row|Alarm)</th>', client.get("/m/pumps/judge").text)
    assert heads[-1] == "Row"  # the first may be alarms in doubt
    given = post(client, "/m/pumps/verdicts", id=quiet, choice="verdict:false alarm").text
    assert re.search(r'<p>2 rows: <span class="chip">normal</span></p>', given)
    latest = client.get("/m/pumps/inbox").text.split("<h2>Latest verdicts")[1]
    assert re.search(rf'<span class="chip">normal</span>\s+<a [^>]*>#{quiet[1]}<', latest)
    undone = post(client, "/m/pumps/undo", verdict=re.findall(r'"verdict" value="(\d+)"', given))
    assert re.search(r'Undone:\s*<span class="chip">normal</span>', undone.text)


def test_the_alarm_shows_its_threshold_and_what_the_live_version_says(console, client):
    first, second, _ = (alarm.id for alarm in open_alarms(console, kind="leak"))

    def state(number):
        page = client.get(f"/m/pumps/alarms/{number}").text
        return re.search(r'<span class="muted">score .*?</span>', page)[0]

    threshold = console.ws.ledger.live_model("pumps").threshold
    assert f"</b> · threshold {threshold:.3f} · p-value" in state(second)
    (given,) = console.ws.verdicts.give([first], "false alarm", by="mia").verdicts
    model, live = (
        console.ws.ledger.live_model("pumps"),
        console.ws.ledger.live("pumps").id,
    )
    now = console.ws.alarms.said_by(model, live, "pumps", [first])[first]
    threshold = f"threshold {model.threshold:.3f}"
    assert f"; now score <b>{now.score:.3f}</b> · {threshold} · alarm · version {live}" in state(
        first
    )
    assert state(second).count(threshold) == 1
    console.ws.verdicts.undo([given.id], by="mia")


def test_an_undo_counts_what_was_reopened_and_alarms_that_come_back(console, client):
    ids = [alarm.id for alarm in open_alarms(console, kind="leak")]
    cleared = open_alarms(console, kind="unseen")[0].id
    quiet = console.ws.alarms.inbox("pumps", Filter(state="quiet")).alarms[0].id
    verdicts = console.ws.verdicts.give(ids, "expected", by="mia").verdicts
    table, standing = schema.rows, console.ws.alarms.standing
    with console.ws.store.writing() as connection:
        for number, raises in ((cleared, False), (quiet, False)):
            connection.execute(table.update().where(table.c.id == number).values(now_alarm=raises))
    both = {cleared, quiet}
    calls = []

    def changed(name):  # as if undoing had raised both
        calls.append(name)
        said = standing(name)
        return {n: replace(s, alarm=len(calls) > 1) if n in both else s for n, s in said.items()}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(console.ws.alarms, "standing", changed)
        page = post(client, "/m/pumps/undo", verdict=[v.id for v in verdicts]).text
    found = re.findall(r"<li>([^<]*)</li>", page)
    assert found == [
        "3 judged rows reopened, 3 in the inbox now",
        "1 cleared alarm back in the inbox",
        "1 quiet row in the inbox now",
    ]
    assert "Nothing was forgotten: the model is still version" in page
    with console.ws.store.writing() as connection:
        connection.execute(table.update().where(table.c.id == cleared).values(now_alarm=True))


def test_the_filter_of_kinds_counts_what_the_others_let_through(client):
    def counts(query):
        page = client.get(f"/m/pumps/inbox?{query}").text
        return dict(re.findall(r'<option value="[^"]+"[^>]*>([a-z ]+) \((\d+)\)</option>', page))

    assert counts("")["leak"] == "3"
    assert counts("state=unsure")["leak"] == "0"
    assert counts("entity=m3&kind=leak") == {"unseen": "12", "leak": "0"}


@pytest.mark.parametrize("path", ["groups", "preview"])
def test_names_that_no_kind_can_have_are_refused_for_groups_too(console, client, path):
    number = console.ws.alarms.groups("pumps")[0].alarms[0].id
    for name in ("hot or cold", "Expected"):
        fields = {"name": name, "choice": "new", "new_kind": name, "id": number}
        answer = post(client, f"/m/pumps/{path}", **fields)
        assert answer.status_code == 422
        assert "names with the word &#39;or&#39; between words" in answer.text


@pytest.mark.parametrize("name", ["1", "True"])
def test_a_kind_that_is_a_truth_is_refused_in_words_of_the_console(console, client, name):
    number = open_alarms(console, kind="leak")[0].id
    answer = post(client, "/m/pumps/preview", id=number, choice="new", new_kind=name)
    assert answer.status_code == 422
    assert "cannot be the name of a new kind" in answer.text
    assert "Labels were names" not in answer.text


def test_reasons_say_what_their_columns_are(console, client):
    page = client.get(f"/m/pumps/alarms/{open_alarms(console, kind='unseen')[0].id}").text
    why = re.search(r'"why-title">Why<.*?</table>', page, re.S)[0]
    assert re.findall('<th scope="col"[^>]*>([^<]+)<', why) == [
        "Column",
        "This row",
        "Typical",
        "Adds",
    ]
    assert "“Typical” is a typical value of the normal rows nearby" in why
    assert "when this value is replaced by that of the nearest normal row" in why


def test_the_watch_shows_whole_minutes_with_rows_and_no_shadow_that_is_not_there(
    console, client, monkeypatch
):
    def plotted():
        page = client.get("/m/pumps/watch").text
        return page, json.loads(html.unescape(re.search('data-plot="([^"]*)"', page)[1]))

    counts, now = schema.counts, int(time.time()) // 60 * 60
    stopped = SimpleNamespace(time=lambda: now + 30.0)  # or a minute may end within the test
    monkeypatch.setattr("eqsep.serve.console.models.time", stopped)
    key = {"model": "pumps", "version": console.ws.ledger.live("pumps").id, "worker": "w"}
    minutes = {now - 3600: 7, now - 3480: 9, now: 5, now + 60: 6}  # two have not ended
    with console.ws.store.writing() as connection:
        mine = counts.c.model == "pumps"
        before = connection.execute(select(counts).where(mine)).all()
        connection.execute(delete(counts).where(mine))
        for minute, rows in minutes.items():
            values = {"minute": minute, "rows": rows, "alarms": 1, "shadow_alarms": 0}
            connection.execute(insert(counts).values(**key, **values))
    page, (at, rows, alarms) = plotted()
    assert at == [now - 3600, now - 3540, now - 3480]
    assert (rows, alarms) == ([7, 0, 9], [1, 0, 1])
    assert "Shadow" not in page
    post(client, "/m/pumps/shadow", version=key["version"])
    page, found = plotted()
    assert (len(found), "Shadow" in page) == (4, True)
    assert found[3] == [None] * 3  # it is of now
    assert page.count('<td class="number">–</td>') == 3
    span = (now - 3500.0, now - 3400.0)
    monkeypatch.setattr(console.ws.watching, "shadowed", lambda _: [span])
    assert plotted()[1][3] == [None, 0, 0]
    post(client, "/m/pumps/shadow", version="")
    with console.ws.store.writing() as connection:
        connection.execute(delete(counts).where(mine))
    assert "Fewer than two full minutes with rows" in client.get("/m/pumps/watch").text
    with console.ws.store.writing() as connection:
        connection.execute(insert(counts), [row._asdict() for row in before])


def test_verdicts_are_reviewed_by_who_gave_them_and_what(console, client):
    first, second, third = (alarm.id for alarm in open_alarms(console, kind="leak"))
    ws = console.ws
    (mine,) = ws.verdicts.give([first], "unsure", note="ask the plant", by="ada").verdicts
    given = ws.verdicts.give([second, third], "expected", by="bob").verdicts
    ws.verdicts.undo([given[1].id], by="ada")

    def found(query):
        page = client.get(f"/m/pumps/verdicts?age=86400&{query}").text
        return page, [int(n) for n in re.findall(r'<th scope="row"><a href="[^"]*/(\d+)"', page)]

    assert found("by=ada")[1] == [first]
    assert "ask the plant" in found("by=ada&verdict=unsure")[0]
    assert found("by=bob")[1] == [third, second]
    page, numbers = found("by=bob&undone=no")
    assert numbers == [second]
    assert "1 verdict: bob 1<" in page
    page, numbers = found("by=bob&undone=yes")
    assert (numbers, "undone by ada" in page) == ([third], True)
    assert found("kind=leak&by=bob")[1] == []
    assert "No verdicts here" in found("by=nobody")[0]
    assert client.get("/m/pumps/verdicts?verdict=maybe").status_code == 422
    assert client.get("/m/pumps/verdicts?age=old").status_code == 422
    assert 'value="bob" selected' not in page
    assert "<option selected>bob</option>" in page
    ws.verdicts.undo([mine.id, given[0].id], by="ada")
    quiet = ws.alarms.inbox("pumps", Filter(state="quiet")).alarms[-1].id
    (verdict,) = ws.verdicts.give([quiet], "unsure", by="eve").verdicts
    ws.verdicts.undo([verdict.id], by="eve")
    with ws.store.writing() as connection:  # as the oldest quiet rows are
        connection.execute(delete(schema.rows).where(schema.rows.c.id == quiet))
    assert "no longer stored" in client.get("/m/pumps/verdicts?by=eve").text


def test_an_admin_sets_who_is_told_and_sees_what_was_sent(console, client):
    fields = {"event": ["incident", "drift"], "url": "http://127.0.0.1:9/hook", "min_score": "0.5"}
    mail = {"mail_from": "a@b", "mail_to": "c@d", "hours": "6"}
    server = "smtp://ada:secret@127.0.0.1:9"
    page = post(client, "/m/pumps/notices", **fields, **mail, mail_server=server).text
    assert "signed with the secret " in page
    assert "ada:secret" not in page
    assert 'value="smtp://ada:***@127.0.0.1:9"' in page
    told = console.ws.notices.subscription("pumps")
    assert (told.events, told.min_score, told.hours) == (("incident", "drift"), 0.5, 6.0)
    shown = {**fields, **mail, "mail_server": "smtp://ada:***@127.0.0.1:9"}
    post(client, "/m/pumps/notices", **shown)  # saved again as it is shown
    assert console.ws.notices.subscription("pumps").mail_server == server
    page = post(client, "/m/pumps/notices/test").text
    assert page.count(">waiting") == 2
    assert (page.count("first attempt "), page.count("next attempt ")) == (2, 0)
    console.ws.notices.tick()
    page = client.get("/settings?model=pumps").text
    assert "1 attempt: ConnectionRefusedError: Connection refused" in page
    assert page.count("next attempt ") == 2
    assert_no_inline(page)
    for wrong in ({"url": "file:///etc"}, {"min_score": "high"}, {"event": "all"}):
        assert post(client, "/m/pumps/notices", **{**fields, **wrong}).status_code == 422
    for path in ("/m/pumps/notices", "/m/pumps/notices/test"):
        assert post(signed_in(console, "judge"), path, **fields).status_code == 403
    post(client, "/m/pumps/notices")
    assert console.ws.notices.subscription("pumps").channels == []


def test_of_several_false_alarms_the_preview_says_which_one_it_counts_rows_for(console, client):
    ids = [alarm.id for alarm in open_alarms(console, kind="leak")[:2]]
    page = post(client, "/m/pumps/preview", id=ids, choice="verdict:false alarm").text
    assert re.search(rf"rows similar to #{ids[0]} as normal would bring it below", page)


def test_a_false_alarm_that_stays_one_can_be_exempted(console, client):
    alarm = open_alarms(console, kind="leak")[0]
    page = post(client, "/m/pumps/preview", id=alarm.id, choice="verdict:false alarm").text
    needed = console.ws.verdicts.preview([alarm.id], "false alarm").n_needed
    assert f"Judging about {needed} similar rows as normal would bring it below" in page
    assert f"Or exempt alarms like #{alarm.id}</h2>" in page
    assert "Without a range, all alarms of the entity are exempt" in page
    assert 'name="entity" value="m2"' in page
    assert re.findall(r"<option>(heat|load|machine)</option>", page) == ["heat", "load"]
    fields = {"entity": "m2", "column": "heat", "low": "5", "high": "", "days": "7", "note": VALUE}
    asked = post(client, "/m/pumps/exemptions", **fields).text
    assert "Alarms of m2, with heat from 5 up, without an upper end, stay out" in asked
    assert "3 open alarms would leave the inbox, 3 of them named with a known kind." in asked
    assert re.search(r">leak</span> 3 alarms<", asked)
    assert_no_inline(asked)
    assert console.ws.exemptions.all("pumps") == []  # nothing is done yet
    told = post(client, "/m/pumps/exemptions", **fields, confirmed="yes").text
    assert "3 open alarms left the inbox" in told
    assert '<a href="/m/pumps/verdicts#exempt-title">See or revoke' in told
    page = client.get(f"/m/pumps/alarms/{alarm.id}").text
    assert '<a class="chip" href="/m/pumps/verdicts#exempt-title">exempt</a>' in page
    listed = client.get("/m/pumps/verdicts").text
    assert "<td>heat from 5" in listed
    assert_no_inline(listed)
    assert client.get("/m/pumps/inbox?by=alarm&state=exempt").text.count('name="id"') == 3
    (one,) = console.ws.exemptions.all("pumps")
    for wrong in ({"days": "0"}, {"days": "soon"}, {"entity": "", "low": ""}, {"low": "x"}):
        assert post(client, "/m/pumps/exemptions", **{**fields, **wrong}).status_code == 422
    looks = signed_in(console, "view")
    assert post(looks, "/m/pumps/exemptions", **fields).status_code == 403
    assert post(looks, "/m/pumps/exemptions/revoke", exemption=one.id).status_code == 403
    listed = post(client, "/m/pumps/exemptions/revoke", exemption=one.id).text
    assert "revoked by admin" in listed
    assert re.search(r"<td>revoked <time[^>]*>now</time></td><td class=\"number\">–</td>", listed)
    assert len(open_alarms(console, kind="leak")) == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"days": "0"}, "Days must be more than 0."),
        ({"days": "abc"}, "Days must be a number."),
        ({"entity": "", "low": "", "high": ""}, "An exemption needs an entity"),
        ({"low": "500", "high": "100"}, "&#34;From&#34; must not be larger than &#34;To&#34; (500"),
    ],
)
def test_an_exemption_that_is_refused_keeps_its_form(client, wrong, message):
    good = {"entity": "m2", "column": "load", "low": "1", "high": "9", "days": "30", "note": "why"}
    filled, script = {**good, **wrong}, {"HX-Request": "true"}
    for headers in ({}, script):
        fields = {"csrf": csrf(client), **filled}
        answer = client.post("/m/pumps/exemptions", data=fields, headers=headers)
        assert (answer.status_code, message in answer.text) == (422, True)
        assert "<option selected>load" in answer.text
        for name in filled.keys() - {"column"}:
            assert f'name="{name}" value="{filled[name]}"' in answer.text
    assert (answer.headers["HX-Retarget"], answer.headers["HX-Reswap"]) == ("this", "outerHTML")
    assert answer.text.lstrip().startswith("<form")


def test_the_range_of_an_exemption_begins_with_the_main_reason(console, client):
    found = (console.ws.alarms.explained(a.id) for a in open_alarms(console, kind="unseen"))
    alarm = next(a for a in found if a.reasons["reasons"][0]["column"] == "load")
    page = post(client, "/m/pumps/preview", id=alarm.id, choice="verdict:false alarm").text
    assert re.findall(r"<option>(heat|load)</option>", page) == ["load", "heat"]


def test_a_kind_is_renamed_on_the_page_of_the_model(console, client):
    before = console.ws.ledger.live("pumps")
    page = post(client, "/m/pumps/kinds", old="leak", new="seal leak").text
    live = console.ws.ledger.live("pumps").id
    assert f"<b>Version {live} is live: leak is now seal leak.</b>" in page
    assert "is live:" not in client.get(f"/m/pumps/model?made={live - 1}").text
    same = post(client, "/m/pumps/kinds", old="seal leak", new="seal leak")
    assert (same.status_code, "That is its name already." in same.text) == (422, True)
    assert "Merged kinds stay merged, unless an admin reverts" in page
    assert len(open_alarms(console, kind="seal leak")) == 3
    assert post(client, "/m/pumps/kinds", old="gone", new="x").status_code == 422
    looks = signed_in(console, "view")
    assert post(looks, "/m/pumps/kinds", old="seal leak", new="x").status_code == 403
    page = post(client, "/m/pumps/revert", version=before.id).text
    assert f"is live: reverted to version {before.id}.</b>" in page
    assert len(open_alarms(console, kind="leak")) == 3


def test_merging_kinds_says_what_it_does_and_asks_first(console, client):
    alarms = open_alarms(console, kind="unseen")[:2]
    console.ws.verdicts.give([a.id for a in alarms], "true", kind="dry run", by="ada")
    before, kinds = console.ws.ledger.live("pumps"), console.ws.alarms.kinds("pumps")
    learnt = console.ws.ledger.live_model("pumps").namer.learnt_by_kind
    asked = post(client, "/m/pumps/kinds", old="dry run", new=" leak ").text
    assert "Merge dry run into leak?" in asked
    for kind in ("dry run", "leak"):
        there = f'{learnt[kind]:g}</td><td class="number">{kinds.get(kind, 0)}</td>'
        assert re.search(rf">{kind}<.*{there}", asked), kind
    assert console.ws.ledger.live("pumps") == before  # nothing is done yet
    page = post(client, "/m/pumps/kinds", old="dry run", new="leak", confirmed="yes").text
    assert ": merged dry run into leak.</b>" in page
    assert console.ws.people.audit()[0].detail["note"] == "merged dry run into leak"
    assert console.ws.ledger.live_model("pumps").kinds == ("leak",)


def test_a_preview_of_an_older_version_is_shown_again_before_it_is_applied(console, client):
    first, second = (alarm.id for alarm in open_alarms(console, kind="leak")[:2])
    said = {"csrf": csrf(client), "id": first, "choice": "kind:leak"}
    shown = client.post("/m/pumps/preview", data=said).text
    version = re.search(r'name="previewed" value="(\d+)"', shown)[1]
    (other,) = console.ws.verdicts.give([second], "true", kind="leak", by="eve").verdicts
    live = console.ws.ledger.live("pumps")
    said["previewed"] = version
    for headers in ({}, {"HX-Request": "true"}):
        again = client.post("/m/pumps/verdicts", data=said, headers=headers)
        assert again.status_code == 409
        assert f"version {live.id}, by eve, is live now" in again.text
        assert "HX-Trigger-After-Swap" not in again.headers
        assert console.ws.ledger.live("pumps") == live
    said["previewed"] = re.search(r'name="previewed" value="(\d+)"', again.text)[1]
    given = client.post("/m/pumps/verdicts", data=said)
    assert given.status_code == 200
    for verdict in (console.ws.verdicts.latest("pumps", limit=1)[0], other):
        console.ws.verdicts.undo([verdict.id], by="admin")


def test_a_preview_names_what_it_replaces_and_is_shown_again_if_others_judged_since(
    console, client
):
    first, second = (alarm.id for alarm in open_alarms(console, kind="leak")[:2])
    console.ws.verdicts.give([first], "unsure", by="jo")
    said = {"csrf": csrf(client), "id": [first, second], "choice": "verdict:expected"}

    def shown(page):
        replaced = re.findall(r"jo judged #(\d+) \w+, <time.*?</time>: this replaces it", page)
        said["replaces"] = re.findall(r'name="replaces" value="(\d+)"', page)
        return [int(number) for number in replaced]

    assert shown(client.post("/m/pumps/preview", data=said).text) == [first]
    console.ws.verdicts.give([second], "expected", by="jo")
    again = client.post("/m/pumps/verdicts", data=said)
    assert again.status_code == 409
    assert f"jo judged alarm #{second} expected: look at it again" in again.text
    assert shown(again.text) == [first, second]
    given = client.post("/m/pumps/verdicts", data=said)
    assert given.status_code == 200
    for path in ("inbox", "verdicts", f"alarms/{second}"):
        assert "replaced by admin" in client.get(f"/m/pumps/{path}").text
    post(client, "/m/pumps/undo", verdict=re.findall(r'name="verdict" value="(\d+)"', given.text))


def test_what_was_renamed_shows_its_name_now(console, client):
    before = console.ws.ledger.live("pumps")
    number = open_alarms(console, kind="leak")[0].id
    post(client, "/m/pumps/verdicts", id=number, choice="kind:leak")
    post(client, "/m/pumps/kinds", old="leak", new="seal leak")
    latest = client.get("/m/pumps/inbox").text.split("<h2>Latest verdicts")[1]
    assert re.search(r">leak</span> <span[^>]*>\(now seal leak\)", latest)
    undone = post(client, "/m/pumps/undo", verdict=re.search(r'"verdict" value="(\d+)"', latest)[1])
    assert "(now seal leak)" in undone.text
    post(client, "/m/pumps/revert", version=before.id)


def test_those_who_only_look_have_no_forms_and_may_not_post(console):
    looks = signed_in(console, "view")
    page = looks.get("/m/pumps/inbox").text
    assert 'id="verdict"' not in page
    assert post(looks, "/m/pumps/preview", id=1, choice="kind:leak").status_code == 403
    assert post(looks, "/m/pumps/verdicts", id=1, choice="kind:leak").status_code == 403
    judges = signed_in(console, "judge")
    assert 'id="verdict"' in judges.get("/m/pumps/inbox").text
    assert judges.get("/m/pumps/revert?version=1").status_code == 403
    for path in ("/m/pumps/revert", "/m/pumps/replay", "/m/pumps/purge", "/settings/tokens"):
        assert post(judges, path).status_code == 403
    assert "audit" not in judges.get("/settings").text


def test_an_admin_issues_and_revokes_tokens(console, client):
    page = post(client, "/settings/tokens", name="eve", role="judge").text
    token = re.search(r'class="secret">([^<]+)<', page)[1]
    assert console.ws.people.check(token).role == "judge"
    assert token not in client.get("/settings").text
    asked = post(client, "/settings/revoke", name="eve").text
    assert "Revoke the token of eve (judge)?" in asked
    assert console.ws.people.check(token) is not None  # nothing is done yet
    post(client, "/settings/revoke", name="eve", confirmed="yes")
    assert console.ws.people.check(token) is None
    assert ">token issued<" in client.get("/settings").text


def test_replacing_a_token_is_asked_first(console, client):
    token = console.ws.people.issue("fay", "judge", by="test")
    asked = post(client, "/settings/tokens", name=" fay ", role="view", days="3").text
    assert "fay already has a token (judge): replace it?" in asked
    assert_no_inline(asked)
    assert console.ws.people.check(token).role == "judge"  # nothing is done yet
    for name, value in {"name": "fay", "role": "view", "days": "3", "replace": "yes"}.items():
        assert f'<input type="hidden" name="{name}" value="{value}">' in asked
    page = post(client, "/settings/tokens", name="fay", role="view", replace="yes").text
    assert "A token for fay, shown once" in page
    assert console.ws.people.check(token) is None
    for sure in ({}, {"replace": "yes"}):  # it is not asked, either
        own = post(client, "/settings/tokens", name="admin", role="view", **sure)
        assert (own.status_code, "admin is the last admin" in own.text) == (422, True)
    never = post(client, "/settings/tokens", name="gus", role="view", days="0").text
    assert "Days must be more than 0 and at most 3,650, or empty for no end." in never
    assert 'name="name" value="gus" required maxlength="100"' in never
    console.ws.people.revoke("fay", by="test")


def test_who_is_signed_out_is_told_why(console):
    console.tokens["gone"] = console.ws.people.issue("gone", "judge", by="test")
    client = signed_in(console, "gone")
    assert "You were signed out" not in client.get("/login").text
    console.ws.people.revoke("gone", by="test")
    fields, script = {"id": "1", "choice": "kind:leak"}, {"HX-Request": "true"}
    answer = client.post("/m/pumps/verdicts", data=fields, headers=script)
    there = answer.headers["HX-Redirect"]
    assert "You were signed out: your token was revoked" in client.get(there).text
    assert "You were signed out" not in TestClient(console.app, base_url=HOME).get("/").text


def test_the_audit_log_leaves_out_what_is_missing(console, client):
    console.ws.people.log("ada", "verdict", rows=[1], kind=None, version=None)
    page = client.get("/settings").text
    assert ("kind missing" in page, "version missing" in page) == (False, False)


def test_the_settings_are_those_of_the_model_that_one_looks_at(client):
    page = client.get("/m/pumps/model").text
    assert 'href="/settings?model=pumps"' in page
    assert "Columns of pumps" in client.get("/settings?model=pumps").text
    assert client.get("/settings?model=gone").status_code == 404


def test_a_note_an_assignee_and_columns_are_kept(console, client):
    number = open_alarms(console, kind="leak")[0].id
    wrong = post(client, f"/m/pumps/alarms/{number}/note", note="lost", to="nobody-here")
    assert "&#39;nobody-here&#39; has no token here. Alarms can be assigned to: ad" in wrong.text
    assert post(client, "/m/pumps/assign", id=number, to="nobody-here").status_code == 422
    assert console.ws.alarms.get(number).assignee is None
    console.ws.people.issue("ada", "judge", by="test")
    post(client, f"/m/pumps/alarms/{number}/note", note="asked the plant", to="ada")
    alarm = console.ws.alarms.get(number)
    assert (alarm.note, alarm.assignee) == ("asked the plant", "ada")
    assert client.get("/m/pumps/inbox?assignee=ada").text.count('name="id"') == 1
    console.ws.people.revoke("ada", by="test")
    saved = post(client, f"/m/pumps/alarms/{number}/note", note="asked again", to="ada")
    assert saved.status_code == 200
    post(client, "/m/pumps/assign", id=number, to="")
    assert console.ws.alarms.get(number).assignee is None
    post(client, "/m/hostile/settings", entity="name", time="when")
    assert console.ws.ledger.settings("hostile")["time"] == "when"


def test_versions_can_be_gone_back_to_shadowed_and_replayed(console, client, monkeypatch):
    number = open_alarms(console, kind="leak")[0].id
    first = console.ws.ledger.live("pumps")
    post(client, "/m/pumps/verdicts", id=number, choice="kind:leak")
    assert f'aria-label="Revert to version {first.id}"' in client.get("/m/pumps/model").text
    with monkeypatch.context() as patched:
        patched.setattr("eqsep.serve.ledger.Ledger.purged", lambda *_: {first.id})
        page = client.get("/m/pumps/model").text
    row = re.search(rf'<th scope="row">{first.id}</th>.*?</tr>', page, re.S)[0]
    assert (">purged</span>" in row, "<button" in row) == (True, False)
    replayed = post(client, "/m/pumps/replay").text
    assert "Identical, bit for bit" in replayed
    assert "rebuilt from the log: the live one and those it was made of" in replayed
    post(client, "/m/pumps/shadow", version=first.id)
    assert console.ws.ledger.shadow("pumps").id == first.id
    page = client.get("/m/pumps/model").text
    assert ">shadow</span>" in page
    assert f"Run as shadow: version {first.id}" not in page
    assert page.index("Stop the shadow") > page.index('id="versions-title"')
    post(client, "/m/pumps/shadow", version="")
    assert console.ws.ledger.shadow("pumps") is None
    asked = client.get("/m/pumps/revert", params={"version": first.id}).text
    assert "Open alarms are scored and named again" in asked
    assert "<b>1 verdict would be reopened</b>" in asked
    assert console.ws.ledger.live("pumps").digest != first.digest  # nothing is done yet
    learnt = console.ws.ledger.live("pumps").id
    post(client, "/m/pumps/revert", version=first.id)
    assert console.ws.ledger.live("pumps").digest == first.digest
    assert number in {alarm.id for alarm in open_alarms(console)}
    forward = client.get("/m/pumps/revert", params={"version": learnt}).text
    assert "No verdict would be reopened" in forward
    assert "1 undone verdict would apply again" in forward


def test_names_that_bite_are_escaped_everywhere(console, client):
    ids = [alarm.id for alarm in open_alarms(console, "hostile")]
    pages = [client.get(f"/m/hostile/{screen}").text for screen in SCREENS]
    pages += [client.get(f"/m/hostile/alarms/{number}").text for number in ids]
    pages.append(post(client, "/m/hostile/preview", id=ids, choice="new", new_kind=KIND).text)
    given = post(client, "/m/hostile/verdicts", id=ids, choice="new", new_kind=KIND, note=VALUE)
    pages += [given.text, *(client.get(f"/m/hostile/{screen}").text for screen in SCREENS)]
    pages.append(client.get("/settings?model=hostile").text)
    assert not [name for name in (COLUMN, VALUE, KIND, ENTITY) for page in pages if name in page]
    assert any("&lt;img src=x" in page for page in pages)
    for page in pages:
        assert_no_inline(page)


def test_an_empty_service_says_how_to_begin(tmp_path):
    from eqsep.serve.web.app import create_app
    from eqsep.serve.workspace import Workspace

    ws = Workspace(f"sqlite:///{tmp_path / 'eqsep.db'}")
    token = ws.people.issue("ada", "admin", by="test")
    with TestClient(create_app(ws), base_url=HOME) as client:
        assert client.get("/").url.path == "/login"
        client.post("/login", data={"token": "wrong"})
        assert "Unknown token" in client.get("/login?error=token").text
        page = client.post("/login", data={"token": token}).text
    assert "eqsep serve model.eqsep" in page


def test_only_files_of_the_package_are_fetched(client):
    for name in Assets().files:
        answer = client.get(Assets().address(name))
        assert answer.status_code == 200
        assert "immutable" in answer.headers["Cache-Control"]
        assert len(answer.content) < 300_000
    for name in ("../routes.py", "..%2froutes.py", "%2e%2e/routes.py", "vendor/README.md", ""):
        assert client.get(f"/static/{name}").status_code == 404


def test_scripts_of_others_come_with_their_licences():
    vendored = {entry.name for entry in (STATIC / "vendor").iterdir()}
    scripts = {name for name in vendored if name.endswith(".js")}
    assert scripts == {"htmx.min.js", "uPlot.iife.min.js"}
    for name in scripts:
        licence = (STATIC / "vendor" / f"{name.split('.')[0]}.LICENSE.txt").read_text()
        assert "WARRANT" in licence


SOFT = ("accent", "good", "bad", "warn", "unseen")
PAIRS = [
    *((f"--{name}", f"--{name}-soft") for name in (*SOFT, *(f"kind-{i}" for i in range(8)))),
    *((f"--{text}", f"--{name}-soft") for name in ("warn", "bad") for text in ("text", "muted")),
    *(
        (f"--{text}", f"--{ground}")
        for text in ("text", "muted", "accent", "bad")
        for ground in ("surface", "ground", "raised", "accent-soft")
    ),
    ("--on-accent", "--accent"),
]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_the_contrast_of_aa(theme):
    blocks = re.findall(r":root \{(.*?)\n\s*\}", (STATIC / "console.css").read_text(), re.S)
    colours = [dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]
    assert colours[0].keys() == colours[1].keys()
    low = {pair: contrast(*(colours[theme][name] for name in pair)) for pair in PAIRS}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}
    for ground in ("--surface", "--ground"):  # borders of controls
        assert contrast(colours[theme]["--control"], colours[theme][ground]) >= 3


def contrast(one, other):
    """The ratio of luminances as WCAG has it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
