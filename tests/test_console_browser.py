"""The console in a real browser: the whole loop, the keys, hostile names, sizes, labels.

Needs Debian's chromium; its own download of a browser is not used.
"""

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from consoled import KIND, Consoled, consoled, pump_rows
from playwright.sync_api import expect, sync_playwright
from sqlalchemy import delete

from eqsep.serve import schema
from eqsep.serve.alarms import Filter
from eqsep.serve.notices import Subscription
from eqsep.serve.web.limits import Limits
from eqsep.serve.web.server import running

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: apt-get install chromium"
)
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
PATHS = (
    *(f"/m/pumps/{name}" for name in ("inbox", "groups", "judge", "verdicts", "model", "watch")),
    *("/settings", "/m/hostile/inbox"),
)


@dataclass
class Served:
    """A service that listens, and the browser that looks at it."""

    console: Consoled
    home: str
    browser: Any
    signed_in: Any  # cookies of somebody who may do everything


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    console = consoled(f"sqlite:///{tmp_path_factory.mktemp('console') / 'eqsep.db'}")
    with running(console.ws, limits=Limits(requests=10_000)) as home, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        with browser.new_context(base_url=home) as context:
            page = context.new_page()
            page.goto(f"/login#{console.tokens['admin']}")
            page.wait_for_url("**/inbox")
            yield Served(console, home, browser, context.storage_state())
        browser.close()


@pytest.fixture
def page(served):
    """A page of somebody who may do everything; what the browser complains of fails the test."""
    size = {"width": 1280, "height": 900}
    context = served.browser.new_context(
        base_url=served.home, viewport=size, storage_state=served.signed_in
    )
    context.set_default_timeout(10_000)
    page = context.new_page()
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on(
        "console", lambda told: wrong.append(told.text) if told.type in ("error", "warning") else 0
    )
    yield page
    assert wrong == []
    context.close()


def applied(page):
    """Apply the verdict of the preview, once it is there."""
    expect(page.locator("[data-apply]")).to_be_focused()
    page.keyboard.press("Enter")


def test_a_link_signs_in_and_leaves_no_token_behind(served):
    with served.browser.new_context(base_url=served.home) as context:
        page = context.new_page()
        page.goto(f"/login#{served.console.tokens['view']}")
        page.wait_for_url("**/inbox")
        assert page.evaluate("document.cookie") == ""
        page.go_back()
        assert served.console.tokens["view"] not in page.url + page.content()


@pytest.mark.extra
def test_a_refused_token_forgets_not_where_one_was_going(served):
    with served.browser.new_context(base_url=served.home) as context:
        page = context.new_page()
        page.goto("/m/pumps/judge")
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        page.wait_for_url("**/login?error=token")
        page.get_by_label("Token").fill(served.console.tokens["view"])
        page.keyboard.press("Enter")
        page.wait_for_url("**/m/pumps/judge")


def test_the_whole_loop(served, page):
    ws = served.console.ws
    probe = pump_rows((-7, -7), 6, seed=9) + pump_rows((0, 0), 6, seed=10)
    before, first = ws.intake.score("pumps", probe), ws.ledger.live("pumps")

    page.goto("/m/pumps/inbox?by=alarm&kind=unseen")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/alarms/*")
    reasons = page.get_by_role("region", name="Why").get_by_role("rowheader")
    expect(reasons).to_have_count(2)
    assert set(reasons.all_inner_texts()) == {"heat", "load"}
    expect(page.get_by_text("History of machine m3")).to_be_visible()

    for box in page.locator("#alike input[name=id]").all()[:4]:
        box.check()
    page.keyboard.press("n")
    page.keyboard.type("dry run")
    page.keyboard.press("Enter")
    preview = page.locator("#panel")
    expect(preview.get_by_text("nothing is learnt yet")).to_be_visible()
    told = ws.verdicts.preview(_chosen(page), "true", kind="dry run")
    assert told.renamed
    expect(preview).to_contain_text(f"would be renamed: {len(told.renamed)}")
    assert ws.ledger.live("pumps") == first

    applied(page)
    expect(page.locator("#given-title")).to_have_text("Learnt")
    expect(preview).to_contain_text(f"{len(told.renamed)} open alarms renamed")
    assert "dry run" in {answer.kind for answer in ws.intake.score("pumps", probe)}
    expect(page.locator("#alike input:checked")).to_have_count(0)
    page.keyboard.press("i")
    page.wait_for_url("**/inbox?by=alarm&kind=unseen")  # as it was left
    page.keyboard.press("i")
    page.wait_for_url("**/inbox")
    page.goto("/m/pumps/inbox?by=alarm")
    named = page.locator(".alarms tbody .kind .chip", has_text="dry run")
    expect(named).to_have_count(len(told.renamed))

    page.keyboard.press("u")
    expect(page.locator("#given-title")).to_have_text("Undone")
    expect(preview).to_contain_text(f"identical to version {first.id}, bit for bit")
    expect(named).to_have_count(0)
    assert ws.ledger.live("pumps").digest == first.digest
    after = ws.intake.score("pumps", probe)
    assert [(a.score, a.p_value, a.kind) for a in after] == [
        (b.score, b.p_value, b.kind) for b in before
    ]


def test_an_incident_is_judged_whole(served, page):
    ws = served.console.ws
    page.goto("/m/pumps/inbox")
    expect(page.locator("#total")).to_have_text("2 incidents, 15 alarms")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-selected]").first).to_have_text("1 selected: 12 alarms")
    page.keyboard.press("Enter")
    page.wait_for_url("**/incidents/*")
    expect(page.locator("[data-selected]")).to_have_text("12 selected")
    page.keyboard.press("2")  # expected
    expect(page.locator("#panel")).to_contain_text("12 alarms as")
    applied(page)
    expect(page.locator("#list")).to_contain_text("Alarms")
    expect(page.locator("#given-title")).to_have_text("Noted")
    assert ws.alarms.inbox("pumps", Filter(entity="m3")).total == 0
    page.keyboard.press("u")
    expect(page.locator("#given-title")).to_have_text("Undone")
    assert ws.alarms.inbox("pumps", Filter(entity="m3")).total == 12


@pytest.mark.extra
def test_an_error_fits_next_to_the_alarms(served):
    number = served.console.ws.alarms.inbox("pumps", Filter(kind="leak")).alarms[0].id
    with served.browser.new_context(
        base_url=served.home,
        storage_state=served.signed_in,
        viewport={"width": 1400, "height": 900},
    ) as context:
        page = context.new_page()
        page.goto(f"/m/pumps/alarms/{number}")
        (given,) = served.console.ws.verdicts.give([number], "false alarm", by="boss").verdicts
        page.locator("#choices button").first.click()
        error = page.locator("#panel .notice.bad")
        expect(error).to_contain_text(f"boss has already judged alarm #{number}")
        wide, room = page.locator("#panel").evaluate("e => [e.scrollWidth, e.clientWidth]")
        assert wide <= room
        served.console.ws.verdicts.undo([given.id], by="boss")


@pytest.mark.extra
def test_a_note_that_is_not_saved_outlives_its_page(served, page):
    number = served.console.ws.alarms.inbox("pumps", Filter(kind="leak")).alarms[0].id
    page.goto(f"/m/pumps/alarms/{number}")
    page.keyboard.press("j")
    expect(page.locator("#say")).to_contain_text("Open an alarm from the inbox")
    page.keyboard.press("9")
    expect(page.locator("#say")).to_have_text("No kind has key 9")
    note = page.locator("#verdict textarea")
    note.fill("ask the plant")
    page.goto("/m/pumps/inbox")
    page.goto(f"/m/pumps/alarms/{number}")
    expect(note).to_have_value("ask the plant")
    expect(page.locator("#say")).to_have_text("Your note is not saved yet")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#noted")).not_to_be_empty()
    served.console.ws.alarms.annotate(number, "")
    page.reload()
    expect(note).to_have_value("")


@pytest.mark.extra
def test_the_fit_to_kinds_follows_a_verdict(served, page):
    number = served.console.ws.alarms.inbox("pumps", Filter(kind="unseen")).alarms[0].id
    page.goto(f"/m/pumps/alarms/{number}")
    page.keyboard.press("n")
    page.keyboard.type("flood")
    page.keyboard.press("Enter")
    applied(page)
    expect(page.locator("#fits")).to_contain_text("flood")
    page.keyboard.press("u")
    expect(page.locator("#given-title")).to_have_text("Undone")
    expect(page.locator("#fits")).not_to_contain_text("flood")


@pytest.mark.extra
def test_similar_alarms_follow_a_verdict(served, page):
    first, second = [
        a.id for a in served.console.ws.alarms.inbox("pumps", Filter(kind="unseen")).alarms[:2]
    ]
    page.goto(f"/m/pumps/alarms/{first}")
    expect(page.locator(f"#alike [data-id='{second}']")).to_be_visible()
    page.locator(f"#alike [data-id='{second}'] input").check()
    page.get_by_role("button", name="Expected").click()
    applied(page)
    expect(page.locator(f"#alike [data-id='{second}']")).to_have_count(0)
    expect(page.locator("#panel")).to_contain_text("Nothing was learnt: the model is still version")
    page.keyboard.press("u")
    expect(page.locator(f"#alike [data-id='{second}']")).to_be_visible()
    expect(page.locator("#panel")).to_contain_text("2 judged rows reopened, 2 in the inbox now")


@pytest.mark.extra
def test_a_new_kind_has_its_button_and_count_at_once(served, page):
    ws, first = served.console.ws, served.console.ws.ledger.live("pumps")
    page.goto("/m/pumps/inbox?by=alarm&kind=unseen")
    for box in page.locator("#list input[name=id]").all()[:8]:
        box.check()
    page.keyboard.press("n")
    page.keyboard.type("flood")
    page.keyboard.press("Enter")
    applied(page)
    expect(page.locator("#given-title")).to_have_text("Learnt")
    expect(page.locator('#choices button[value="kind:flood"]')).to_be_visible(timeout=1_000)
    left = ws.alarms.kinds("pumps").get("flood", 0)
    assert left > 0
    expect(page.locator('#kind option[value="flood"]')).to_have_text(f"flood ({left})")
    page.keyboard.press("u")
    expect(page.locator("#given-title")).to_have_text("Undone")
    expect(page.locator('#choices button[value="kind:flood"]')).to_have_count(0)
    assert ws.ledger.live("pumps").digest == first.digest


def _chosen(page):
    hidden = page.locator("#panel input[name=id]")
    return [int(field.get_attribute("value")) for field in hidden.all()]


@pytest.mark.extra
def test_a_group_is_promoted_in_one_step(served, page):
    ws, first = served.console.ws, served.console.ws.ledger.live("pumps")
    page.goto("/m/pumps/groups")
    group = page.locator("section.card").first
    assert len(group.locator("input[type=hidden][name=id]").get_attribute("value").split()) > 2
    group.get_by_role("combobox").fill("flood")
    group.get_by_role("button", name="Preview").click()
    applied(page)
    expect(page.locator("#given-title")).to_have_text("Learnt")
    assert "flood" in ws.ledger.model(ws.ledger.live("pumps").id).kinds
    expect(page.get_by_text("No groups")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("#given-title")).to_have_text("Undone")
    assert ws.ledger.live("pumps").digest == first.digest


@pytest.mark.extra
def test_several_groups_become_one_kind(served, page):
    ws, first = served.console.ws, served.console.ws.ledger.live("pumps")
    taken = ws.intake.take("pumps", pump_rows((0, 9), 7, seed=7, machine="m4"))
    page.goto("/m/pumps/groups")
    expect(page.locator("section[data-group]")).to_have_count(2)
    page.locator("section[data-group] .open").last.focus()
    for _ in range(6):  # onto the first row of the second group
        page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-selected]")).to_have_text("1 selected: 7 alarms")
    page.get_by_label("Select group 1").check()
    expect(page.locator("[data-selected]")).to_have_text("2 selected: 19 alarms")
    page.keyboard.press("n")
    page.keyboard.type("flood")
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_contain_text("19 alarms as")
    applied(page)
    expect(page.locator("#given-title")).to_have_text("Learnt")
    learnt = ws.ledger.live("pumps")
    assert (learnt.n_rows, ws.ledger.lesson(learnt.id).labels) == (19, ["flood"] * 19)
    page.keyboard.press("u")
    expect(page.locator("#given-title")).to_have_text("Undone")
    assert ws.ledger.live("pumps").digest == first.digest
    with ws.store.writing() as connection:  # other tests count the alarms
        table = schema.rows
        connection.execute(delete(table).where(table.c.id.in_([row.id for row in taken])))


@pytest.mark.extra
def test_a_group_is_renamed_by_enter_and_the_field_is_empty_again(served, page):
    page.goto("/m/pumps/groups")
    page.get_by_label("Select group 1").check()
    field = page.get_by_label("Name selected groups")
    field.fill("cold spell")
    field.press("Enter")
    expect(page.locator("#panel")).to_contain_text("1 group named 'cold spell'.")
    expect(page.locator("section[data-group] h2").first).to_have_text("cold spell")
    expect(page.get_by_label("Promote to kind: cold spell")).to_have_value("cold spell")
    expect(field).to_have_value("")
    ws = served.console.ws
    ws.alarms.rename_groups("pumps", [a.id for a in ws.alarms.groups("pumps")[0].alarms], "")


@pytest.mark.extra
def test_a_group_opens_and_lets_go_of_what_does_not_belong(page):
    page.goto("/m/pumps/groups")
    page.get_by_role("link", name="Open all").click()
    rows = page.locator("#list tr[data-id]")
    expect(rows).to_have_count(12)
    expect(page.locator("[data-selected]")).to_have_text("12 selected")
    rows.nth(3).locator("input").uncheck()
    page.keyboard.press("3")
    applied(page)
    expect(page.locator("#given-title")).to_have_text("Noted")
    expect(page.locator("#list")).to_contain_text("No longer in a group")
    page.keyboard.press("u")
    expect(rows).to_have_count(12)


@pytest.mark.extra
def test_keys_move_select_judge_and_undo(served, page):
    page.goto("/m/pumps/inbox?by=alarm&kind=leak")
    page.keyboard.press("1")
    expect(page.locator("#say")).to_have_text("Choose an alarm first: press j to move, x to select")
    assert page.locator("#say").bounding_box()["width"] > 100  # seen, not only heard
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tr.here")).to_have_count(1)
    number = page.locator("tr.here").get_attribute("data-id")
    expect(page.locator("tr.here .open")).to_be_focused()
    page.keyboard.press("x")
    expect(page.locator("[data-selected]")).to_have_text("1 selected")
    page.keyboard.press("2")  # expected
    expect(page.locator("[data-apply]")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#say")).to_have_text("Preview closed: nothing was learnt")
    page.keyboard.press("2")
    applied(page)
    expect(page.locator(f"tr[data-id='{number}']")).to_have_count(0)
    expect(page.locator("tr.here .open")).to_be_focused()
    assert served.console.ws.alarms.get(int(number)).verdict.verdict == "expected"
    page.keyboard.press("u")
    expect(page.locator(f"tr[data-id='{number}']")).to_have_count(1)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.locator("input[data-all]").check()
    expect(page.locator("[data-selected]")).to_have_text("3 selected")


@pytest.mark.extra
@pytest.mark.parametrize("path", ["inbox?by=alarm&kind=leak", "groups", "alarm"])
def test_enter_in_a_field_previews_the_kind_that_is_typed_or_nothing(served, page, path):
    leak = served.console.ws.alarms.inbox("pumps", Filter(kind="leak")).alarms[0].id
    asked = []
    page.on("request", lambda sent: asked.append(sent.url) if sent.method == "POST" else None)
    page.goto(f"/m/pumps/{path if path != 'alarm' else f'alarms/{leak}'}")
    if path != "alarm":
        page.locator("#list input[name=id][type=checkbox]").first.check()
    note = page.locator("[data-new-kind]" if path == "alarm" else "#verdict [name=note]")
    note.press("Enter")
    expect(page.locator("#say")).to_have_text("Nothing chosen: name a kind, or choose a verdict")
    assert asked == []
    page.locator("[data-new-kind]").fill("flood")
    note.press("Enter")
    expect(page.locator("[data-apply]")).to_be_focused()
    expect(page.locator("#panel .chip").first).to_have_text("flood")
    page.keyboard.press("Escape")
    if path.startswith("inbox"):
        page.locator("#verdict input[name=to]").fill("judge")
        page.keyboard.press("Enter")
        expect(page.locator("#panel")).to_contain_text("1 alarm assigned to judge")
        served.console.ws.alarms.assign([leak], None)


@pytest.mark.extra
def test_shift_selects_on_the_way_and_lets_go_on_the_way_back(page):
    page.goto("/m/pumps/inbox?by=alarm&kind=unseen")
    ticked = page.locator("input[name=id]:checked")
    page.keyboard.press("j")
    page.keyboard.press("j")
    for _ in range(3):
        page.keyboard.press("Shift+J")
    expect(ticked).to_have_count(4)
    page.keyboard.press("Shift+K")
    expect(ticked).to_have_count(3)
    page.keyboard.press("j")  # ends it
    page.keyboard.press("j")
    page.keyboard.press("Shift+K")
    expect(ticked).to_have_count(5)
    places = page.locator("tr[data-id] input").evaluate_all(
        "boxes => boxes.map((box, i) => box.checked ? i : -1).filter((i) => i >= 0)"
    )
    assert places == [1, 2, 3, 4, 5]


@pytest.mark.extra
def test_keys_judge_the_row_that_they_are_on(page):
    page.set_viewport_size({"width": 1280, "height": 620})
    page.goto("/m/pumps/inbox?by=alarm")
    ticked, here = page.locator("input[name=id]:checked"), page.locator("tr.here")
    page.keyboard.press("j")
    page.keyboard.press("4")
    expect(page.locator("[data-apply]")).to_be_focused()
    expect(page.locator("[data-apply]")).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0
    page.keyboard.press("Escape")
    expect(ticked).to_have_count(0)
    page.keyboard.press("j")
    page.keyboard.press("j")
    third = int(here.get_attribute("data-id"))
    page.keyboard.press("n")
    expect(page.locator("[data-new-kind]")).to_be_focused()
    expect(here.locator("input:checked")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(ticked).to_have_count(0)
    page.keyboard.press("1")
    expect(page.locator("[data-apply]")).to_be_focused()
    assert _chosen(page) == [third]
    page.keyboard.press("Escape")
    page.keyboard.press("x")  # by hand: it stays
    page.keyboard.press("1")
    expect(page.locator("[data-apply]")).to_be_focused()
    page.keyboard.press("Escape")
    expect(ticked).to_have_count(1)


@pytest.mark.extra
def test_the_keys_stay_on_their_row_when_others_go(page):
    page.goto("/m/pumps/inbox?by=alarm&kind=unseen")
    for box in page.locator("input[name=id]").all()[:2]:
        box.check()
    for _ in range(4):
        page.keyboard.press("j")
    fourth = page.locator("tr.here").get_attribute("data-id")
    page.keyboard.press("2")  # expected
    applied(page)
    expect(page.locator("tr[data-id]")).to_have_count(10)
    expect(page.locator("tr.here")).to_have_attribute("data-id", fourth)
    page.keyboard.press("u")
    expect(page.locator("tr[data-id]")).to_have_count(12)
    expect(page.locator("tr.here")).to_have_attribute("data-id", fourth)


@pytest.mark.extra
def test_what_is_selected_while_the_list_comes_again_stays_selected(page):
    page.goto("/m/pumps/inbox?by=alarm&kind=unseen")
    boxes = page.locator("#list input[name=id]")
    boxes.first.check()
    chosen = boxes.nth(4).get_attribute("value")
    waiting = []
    page.route("**/inbox?by=alarm&kind=unseen", lambda route: waiting.append(route))
    page.keyboard.press("2")  # expected
    applied(page)
    expect(page.locator("#given-title")).to_have_text("Noted")
    expect(page.locator("#list input:checked")).to_have_count(0)
    boxes.nth(4).check()
    page.wait_for_function("document.querySelector('#list.htmx-request')")
    for route in waiting:
        route.continue_()
    page.unroute("**/inbox?by=alarm&kind=unseen")
    expect(boxes).to_have_count(11)
    expect(page.locator("#list input:checked")).to_have_value(chosen)
    expect(page.locator("[data-selected]")).to_have_text("1 selected")
    page.keyboard.press("u")
    expect(boxes).to_have_count(12)


@pytest.mark.extra
def test_figures_and_counts_follow_verdicts(page):
    page.goto("/m/pumps/judge")
    judged = page.locator("#missed b").last
    expect(judged).to_have_text("0")
    row = page.get_by_role("region", name="picked at random").locator("input[name=id]").first
    row.check()
    page.keyboard.press("1")
    applied(page)
    expect(judged).to_have_text("1")
    page.keyboard.press("u")
    expect(judged).to_have_text("0")
    page.goto("/m/pumps/inbox?by=alarm&kind=leak")
    leaks = page.locator("#kind option:checked")
    expect(leaks).to_have_text("leak (3)")
    page.keyboard.press("j")
    page.keyboard.press("2")
    applied(page)
    expect(leaks).to_have_text("leak (2)")
    expect(page.locator("#total")).to_have_text("2 alarms")
    page.keyboard.press("u")
    expect(leaks).to_have_text("leak (3)")


@pytest.mark.extra
def test_a_service_that_is_gone_is_seen(served):
    with served.browser.new_context(
        base_url=served.home, storage_state=served.signed_in
    ) as context:
        page = context.new_page()
        page.goto("/m/pumps/inbox?by=alarm&kind=leak")
        context.set_offline(True)
        page.keyboard.press("j")
        page.keyboard.press("2")
        expect(page.locator(".toast")).to_contain_text("The service is not responding")


@pytest.mark.extra
def test_going_back_asks_first(served, page):
    ws = served.console.ws
    alarm = ws.alarms.inbox("pumps", Filter(kind="leak")).alarms[0].id
    given = ws.verdicts.give([alarm], "true", kind="leak", by="test").verdicts
    live = ws.ledger.live("pumps")
    page.goto("/m/pumps/model")
    page.get_by_role("button", name="Revert").last.click()
    expect(page.locator("#revert-title")).to_be_visible()
    expect(page.locator("#panel [data-focus]")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#revert-title")).to_have_count(0)
    assert ws.ledger.live("pumps") == live
    ws.verdicts.undo([verdict.id for verdict in given], by="test")


@pytest.mark.extra
def test_alarms_that_arrive_are_told_and_do_not_disturb(served, page):
    ws = served.console.ws
    page.clock.install()
    page.goto("/m/pumps/inbox?by=alarm&entity=m9")
    expect(page.get_by_text("No alarms match these filters")).to_be_visible()
    ws.intake.take("pumps", pump_rows((6, 0), 2, seed=20, machine="m9"))
    page.clock.run_for(6_000)
    page.get_by_role("link", name="Show 2 new alarms").click()
    expect(page.locator(".alarms tbody tr")).to_have_count(2)
    ws.purging.purge("pumps", "m9", by="test")


@pytest.mark.extra
def test_the_result_of_a_test_notice_appears_by_itself(served, page):
    notices = served.console.ws.notices
    notices.subscribe("pumps", Subscription(url="http://127.0.0.1:9/hook"), by="test")
    page.clock.install()
    page.goto("/settings?model=pumps")
    page.get_by_role("button", name="Send a test").click()
    expect(page.locator("#deliveries")).to_contain_text("first attempt")
    notices.tick()
    page.clock.run_for(6_000)
    expect(page.locator("#deliveries")).to_contain_text("Connection refused")
    notices.subscribe("pumps", Subscription(), by="test")


@pytest.mark.extra
def test_names_that_bite_do_nothing(served, page):
    ids = [a.id for a in served.console.ws.alarms.inbox("hostile", Filter()).alarms]
    for path in ("inbox", "groups", "judge", "model", "watch", f"alarms/{ids[0]}"):
        page.goto(f"/m/hostile/{path}")
        assert page.evaluate("window.pwned") is None
    page.locator("[data-new-kind]").fill(KIND)
    page.get_by_role("button", name="Preview").click()
    applied(page)
    expect(page.locator("#given-title")).to_have_text("Learnt")
    expect(page.locator("#panel .chip").first).to_have_text(KIND)
    for path in ("inbox", "model", "groups"):
        page.goto(f"/m/hostile/{path}")
        assert page.evaluate("window.pwned") is None


@pytest.mark.parametrize(
    ("paths", "schemes"),
    [
        (PATHS[:2], ["light"]),
        pytest.param(PATHS, ["light", "dark"], marks=pytest.mark.extra),
    ],
    ids=["few", "all"],
)
def test_pages_fit_are_labelled_and_show_the_focus(served, page, paths, schemes):
    alarm = served.console.ws.alarms.inbox("pumps", Filter()).alarms[0]
    for path in (*paths, f"/m/pumps/alarms/{alarm.id}"):
        page.goto(path)
        for width in (390, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            for scheme in schemes:
                page.emulate_media(color_scheme=scheme)
                wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert wide <= 0, f"{path} is {wide} pixels too wide at {width}, {scheme}"
        assert page.evaluate(UNHEARD) == [], path
        for _ in range(4):
            page.keyboard.press("Tab")
            focus = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert focus != "none", path


def test_long_names_wrap_and_long_text_is_counted_and_refused(served, page):
    served.console.ws.people.issue("a" * 60, "view", by="test")
    served.console.ws.people.sign_in(served.console.ws.people.holder("a" * 60), address="here")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto("/settings")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        for card in page.locator(".pair > .card").all():
            assert card.evaluate("(e) => e.scrollWidth - e.clientWidth") <= 0
    name = page.locator("input[name=name]:visible")
    name.fill("b" * 10)
    assert page.locator("[data-count]").count() == 0
    name.press_sequentially("b" * 91)
    assert page.get_by_text("Too long: 101 of at most 100 characters").is_visible()
    page.get_by_role("button", name="Issue a token").click()
    assert page.locator(".secret").count() == 0
    assert len(name.input_value()) == 101
    name.press("Backspace")
    assert page.get_by_text("100 of at most 100 characters").is_visible()
    served.console.ws.people.revoke("a" * 60, by="test")


def test_a_form_that_is_refused_keeps_its_place_and_has_the_focus(served):
    context = served.browser.new_context(base_url=served.home, storage_state=served.signed_in)
    page = context.new_page()  # its console says that an answer was 422
    number = served.console.ws.alarms.inbox("pumps", Filter(kind="leak")).alarms[0].id
    page.goto(f"/m/pumps/alarms/{number}")
    page.get_by_role("button", name="False alarm").click()
    exempt = page.locator("form.card[action$='/exemptions']")
    exempt.get_by_label("Days").fill("0")
    with page.expect_response("**/exemptions") as answer:
        exempt.get_by_role("button", name="Exempt").click()
    assert answer.value.status == 422
    expect(exempt.get_by_role("alert")).to_be_focused()
    expect(exempt.get_by_label("Days")).to_have_value("0")
    expect(page.get_by_role("heading", name="Preview: nothing is learnt yet")).to_be_visible()
    exempt.get_by_label("Days").fill("7")
    exempt.get_by_role("button", name="Exempt").click()
    expect(page.get_by_role("heading", name="Exempt these alarms?")).to_be_visible()
    page.goto("/settings?model=pumps")
    page.locator("[name=hours]").fill("0")
    page.locator("#notices-title").locator("../..").get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.locator("[name=hours]")).to_have_value("0")
    context.close()


# What somebody who hears the page would miss: names of controls, captions, the order of headings.
UNHEARD = """() => {
  const wrong = [];
  const named = (e) => (e.labels && e.labels.length && e.labels[0].textContent.trim())
    || e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")
    || (e.matches("button, a, summary") && e.textContent.trim());
  const controls = "button, a, summary, select, textarea, input:not([type=hidden])";
  for (const e of document.querySelectorAll(controls))
    if (!named(e)) wrong.push("no name: " + e.outerHTML.slice(0, 80));
  for (const table of document.querySelectorAll("table"))
    if (!table.caption && !table.closest("[role=img]"))
      wrong.push("no caption: " + table.outerHTML.slice(0, 80));
  for (const img of document.querySelectorAll("img:not([alt])")) wrong.push("no alt: " + img.src);
  for (const name of ["main", "nav", "h1"])
    if (document.querySelectorAll(name).length < 1) wrong.push("no " + name);
  let level = 0;
  for (const h of document.querySelectorAll("main h1, main h2, main h3")) {
    const next = Number(h.tagName[1]);
    if (next > level + 1) wrong.push("heading skipped: " + h.textContent);
    level = next;
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push("twice: " + id);
  return wrong;
}"""


@pytest.mark.extra
def test_on_a_telephone_verdicts_come_before_long_tables(served, page):
    page.set_viewport_size({"width": 390, "height": 844})
    alarms = served.console.ws.alarms.inbox("pumps", Filter(kind="unseen")).alarms
    page.goto(f"/m/pumps/alarms/{alarms[0].id}")
    tops = [
        page.locator(one).bounding_box()["y"] for one in ("#why-title", "#verdict", "#rows-title")
    ]
    assert tops == sorted(tops)
    page.goto("/m/pumps/groups")
    row = page.locator(".alarms tbody tr").first
    score, chip = (row.locator(one).bounding_box() for one in (".bar", ".chip"))
    assert score["x"] + score["width"] <= chip["x"]


@pytest.mark.extra
def test_filters_are_folded_on_a_telephone_unless_one_is_set(page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/m/pumps/inbox")
    expect(page.locator("#kind")).to_be_hidden()
    page.get_by_text("Filters", exact=True).click()
    expect(page.locator("#kind")).to_be_visible()
    page.goto("/m/pumps/inbox?kind=leak")
    expect(page.locator("#kind")).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("/m/pumps/inbox")
    expect(page.locator("#kind")).to_be_visible()


@pytest.mark.extra
def test_the_watch_draws_its_picture(served, page):
    counts = schema.counts
    with served.console.ws.store.writing() as connection:  # the rows came minutes ago
        known = [row._asdict() for row in connection.execute(counts.select())]
        connection.execute(counts.delete())
        first = min(row["minute"] for row in known)
        for ago in (120, 180, 240):
            same = [row for row in known if row["minute"] == first]
            connection.execute(counts.insert(), [row | {"minute": first - ago} for row in same])
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kathmandu"})
    page.add_init_script("""{
      const context = CanvasRenderingContext2D.prototype, { fillText } = context;
      window.drawn = [];
      context.fillText = function (...all) { drawn.push(all[0]); fillText.apply(this, all); };
    }""")
    page.goto("/m/pumps/watch")
    expect(page.locator(".plot canvas")).to_be_visible()
    page.wait_for_function("drawn.length > 0")
    assert f"{datetime.fromtimestamp(first - 180, UTC):%H:%M}" in page.evaluate("drawn")
    page.get_by_text("As a table").click()
    expect(page.get_by_role("table", name="Rows and alarms per minute")).to_be_visible()
