"""What a visitor does, in a real browser against a real server: the acceptance walk through the app."""

import re
import time
from typing import Any

import pytest
from playwright.sync_api import expect
from visiting import SAID

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
PLANTED = "run=planted-elastic"


def number_of(text: str, pattern: str) -> int:
    found = re.search(pattern, text)
    assert found, f"no {pattern!r} on the page: {text[:500]}"
    return int(found.group(1).replace(",", ""))


# How long pointing takes: from the event until all lines and numbers stand, laid out.
LIT = """node => {
    const began = performance.now()
    node.dispatchEvent(new PointerEvent("pointerenter", {pointerType: "mouse"}))
    node.getRootNode().querySelector(".flow").getBoundingClientRect()
    return performance.now() - began
}"""


COUNTED = """() => {
    window.asked = 0
    const send = WebSocket.prototype.send
    WebSocket.prototype.send = function(...given) { window.asked++; send.apply(this, given) }
}"""


@pytest.mark.opens(f"/?{PLANTED}-slots&user=5")
def test_pointing_lights_a_path_without_a_rerun_and_a_click_is_answered(visit: Any, elsewhere: Any) -> None:
    """The first screen: history, grid, the most wanted and the list in one picture; then the same by keyboard."""
    text = visit.text()
    assert "What does ELASTIC do with one person’s history?" in text and number_of(text, r"the (\d+) of [\d,]+ experts") == 8
    strip, told = visit.page.locator(".st-key-start_strip"), visit.page.locator(".st-key-start_strip .told")
    fetched = visit.page.evaluate("() => performance.getEntriesByType('resource').map(entry => entry.name)")
    assert len(fetched) > 10 and not [name for name in fetched if "plotly" in name.lower()], "no chart library"
    expect(strip.locator("rect[data-e]")).to_have_count(64)
    nodes = {kind: strip.locator(f'.node[data-kind="{kind}"]') for kind in ("event", "expert", "item")}
    expect(nodes["event"]).to_have_count(12)
    fold = strip.locator(".fold")
    if fold.count():
        visit.click(fold)  # small experts come out of their card without a rerun
        expect(fold).to_have_attribute("aria-expanded", "true")
    expect(nodes["expert"]).to_have_count(8)
    visit.page.evaluate(COUNTED)
    for kind, says in (("item", "from expert"), ("expert", "of the votes here"), ("event", "votes for experts")):
        quickest = min(nodes[kind].nth(at).evaluate(LIT) for at in (0, 1, 2))
        assert quickest <= 50, (kind, quickest)
        expect(told).to_contain_text(says)
        assert strip.locator(".lines .lit path").count() > 0 and strip.locator(".node.on").count() > 1
    assert visit.page.evaluate("() => window.asked") == 0, "no rerun"

    expert = nodes["expert"].first
    expert.press("Enter")  # opens it below the picture
    visit.settled()
    visit.says("What does it stand for?")
    expect(nodes["expert"].first).to_have_class(re.compile("opened"))
    number = str(expert.get_attribute("aria-label")).split(",")[0].split()[-1]
    before = nodes["item"].evaluate_all("rows => rows.map(row => row.getAttribute('aria-label'))")
    expert.focus()
    expert.press("Delete")
    visit.says(f"Without expert {number}:")
    expect(nodes["expert"].first).to_have_class(re.compile("quiet"))
    assert before != nodes["item"].evaluate_all("rows => rows.map(row => row.getAttribute('aria-label'))")
    expect(strip.locator(".list")).to_contain_text(re.compile("was|new"))
    visit.settled()
    nodes["expert"].first.press("ArrowLeft")  # to the history
    visit.page.keyboard.press("ArrowDown")
    visit.page.keyboard.press("Delete")
    expect(nodes["event"].nth(1)).to_have_class(re.compile("gone"))
    visit.settled()
    assert re.search(r"edits=x\d+%2C-\d+", visit.page.url)
    visit.shares(elsewhere, "user=", "edits=x")
    visit.click(nodes["event"].nth(1))  # what is taken away comes back
    expect(strip.locator(".gone")).to_have_count(0)
    visit.page.set_viewport_size({"width": 1280, "height": 800})
    for act in ("Remove the last", "Remove expert"):
        visit.press(act)
        visit.says("Without the last")
        visit.on_screen(SAID)


def test_the_first_picture_of_a_visit_builds_itself_once_and_a_key_ends_it(visit: Any) -> None:
    visit.page.emulate_media(reduced_motion="no-preference")
    flow = visit.page.locator(".strip .flow")
    visit.page.goto(f"{visit.server.url}/?{PLANTED}-slots&user=5")
    expect(flow).to_have_class(re.compile(r"\bbuild\b"))
    begun = visit.page.evaluate("() => [Number(sessionStorage.getItem('strip_began')), Date.now()]")
    assert 0 <= begun[1] - begun[0] < 3_000
    visit.page.keyboard.press("Shift")
    expect(flow).not_to_have_class(re.compile(r"\bbuild\b"))
    visit.settled()
    visit.page.reload()
    expect(flow).to_be_visible()
    assert "build" not in str(flow.get_attribute("class")), "once in a visit"
    visit.page.evaluate("() => sessionStorage.removeItem('strip_began')")
    visit.page.emulate_media(reduced_motion="reduce")
    visit.page.reload()
    expect(flow).to_be_visible()
    assert "build" not in str(flow.get_attribute("class")), "less motion is asked for"


# Where lines to suggestions end, as they were drawn (by suggestion, best first), and where the middles of the rows are.
ENDS = """node => {
    const flow = node.getRootNode().querySelector(".flow"), zero = flow.getBoundingClientRect()
    const rows = [...flow.querySelectorAll('.node[data-kind="item"]')].map(row => row.getBoundingClientRect())
    const lines = [...flow.querySelectorAll(".lines .rest path")], left = rows[0].left - zero.left
    const ends = lines.map(line => line.getAttribute("d").split(" ").slice(-2).map(Number))
    return [ends.filter(([x]) => Math.abs(x - left) < 2).map(([, y]) => y), rows.map(row => row.top + row.height / 2 - zero.top)]
}"""


IN_VIEW = """() => {
    const box = document.querySelector(".st-key-start_details").getBoundingClientRect()
    return box.height > 50 && box.top >= 0 && box.bottom <= innerHeight + 1
}"""


# What of the picture lies under the sentence at its foot, which stays in view while something is pointed at, or below the window.
COVERED = """told => [...told.getRootNode().querySelectorAll(".node")].filter(node => {
    const foot = node.getBoundingClientRect().bottom, bar = told.getBoundingClientRect()
    return foot > (getComputedStyle(told).position === "sticky" ? Math.min(bar.top, innerHeight - bar.height) : innerHeight)
}).map(node => node.getAttribute("aria-label"))"""


@pytest.mark.opens("/")
def test_a_bold_line_is_a_removal_that_was_measured_and_a_short_name_is_told_in_full(visit: Any) -> None:
    """As many bold lines to a suggestion as experts without which it falls by 10% or more; other lines are faint."""
    strip, bold = visit.page.locator(".st-key-start_strip"), 0
    assert strip.locator(".lines .rest .bold").count() > 2
    for row in strip.locator('.node[data-kind="item"]').all()[:8]:
        row.focus()
        falls = strip.locator('.node.on[data-kind="expert"] .n').evaluate_all("all => all.map(one => one.textContent)")
        sure = [text for text in falls if text.startswith("−") and int(text[1:-1]) >= 10]
        bold += len(sure)
        assert strip.locator(".lines .lit .bold").count() == len(sure), falls
        name = row.locator(".name")
        if name.evaluate("name => name.scrollWidth > name.clientWidth"):
            expect(strip.locator(".tip")).to_be_visible()
            assert str(name.text_content()).removeprefix("★ ") in str(strip.locator(".tip").text_content())
    assert bold > 2


@pytest.mark.opens(f"/?{PLANTED}-slots&user=5")
def test_lines_follow_the_rows_to_their_new_ranks(visit: Any) -> None:
    visit.page.emulate_media(reduced_motion="no-preference")
    strip = visit.page.locator(".st-key-start_strip")
    visit.page.set_viewport_size({"width": 1366, "height": 625})
    card = strip.locator('li:has(.node[data-kind="expert"])').first

    def take_away() -> None:
        card.hover()  # its cross is there while the mouse is over the card
        visit.click(card.locator(".away"))

    for act in (take_away, lambda: visit.press("Reset")):
        act()
        visit.settled()
        visit.page.wait_for_timeout(1_200)  # the rows have moved
        ends, rows = strip.locator(".node").first.evaluate(ENDS)
        where = [min(range(len(rows)), key=lambda row: abs(rows[row] - end)) for end in ends]
        assert all(abs(rows[row] - end) < 2 for row, end in zip(where, ends, strict=True)), (ends, rows)
        assert where == sorted(where) and len(set(where)) > 5, "a line ends at another suggestion's row"
        hidden = strip.locator(".told").evaluate(COVERED)
        assert not hidden, hidden


@pytest.mark.opens(f"/?{PLANTED}-slots&user=5")
def test_what_is_pressed_opens_below_the_picture_in_view_and_leads_to_its_page(visit: Any, elsewhere: Any) -> None:
    visit.page.set_viewport_size({"width": 1280, "height": 800})
    strip, panel = visit.page.locator(".st-key-start_strip"), visit.page.locator(".st-key-start_details")
    for kind, says in (("event", "What changes without it?"), ("item", "Which experts matter"), ("expert", "Who uses it?")):
        visit.click(strip.locator(f'.node[data-kind="{kind}"]').nth(1))
        expect(panel).to_contain_text(says)
        visit.settled()
        visit.page.wait_for_function(IN_VIEW)
        assert f"details={kind}-" in visit.page.url
        expect(strip.locator(".opened")).to_have_count(1)
    number = visit.page.url.split("details=expert-")[1].split("&")[0]
    visit.shares(elsewhere, f"details=expert-{number}")
    expect(elsewhere.page.locator(".st-key-start_details")).to_contain_text(f"Expert {number}")
    visit.click(strip.locator(".opened"))  # again: it closes
    expect(panel).to_have_count(0)
    visit.settled()
    visit.click(strip.locator('.node[data-kind="expert"]').nth(1))
    visit.click(panel.get_by_role("button", name="Open in full"))
    expect(visit.main.get_by_role("heading", level=1)).to_contain_text(f"expert {number}")
    visit.settled()
    assert "/experts" in visit.page.url and f"expert={number}" in visit.page.url


def test_a_training_survives_its_server_and_stops(visit: Any) -> None:
    visit.open(f"/train?{PLANTED}")
    visit.click(visit.page.get_by_text("All settings"))
    side = visit.page.get_by_role("spinbutton", name="sub-keys (√K)")
    for time_, value in (("30 s", "8"), ("2 min", "16")):  # a time brings its own sizes, into what stands in the boxes, too
        visit.click(visit.page.locator(".st-key-train_time").get_by_text(time_))
        expect(side).to_have_value(value)
        visit.settled()
    visit.page.get_by_role("textbox", name="Name of the run").fill("walk")
    visit.page.get_by_role("textbox", name="Name of the run").press("Enter")
    visit.settled()
    visit.press("Start training")
    heading = visit.page.get_by_role("heading", name=re.compile("Training local-walk"))
    expect(heading).to_be_visible(timeout=60_000)
    visit.server.restart()
    visit.open(f"/train?{PLANTED}")
    visit.errors.clear()  # what the old page said when its server went away
    expect(heading).to_be_visible(timeout=60_000)
    visit.press("Stop and keep the best")
    expect(heading).to_have_count(0, timeout=120_000)
    card = visit.page.locator(".st-key-train_result")
    expect(card).to_contain_text("Stopped and tested: local-walk", timeout=60_000)
    expect(card).to_contain_text("Co-occurrence")
    run = visit.server.folder / "checkpoints" / "local-walk"
    until = time.monotonic() + 60
    while time.monotonic() < until and '"end"' not in (run / "metrics.jsonl").read_text():
        time.sleep(0.5)
    assert (run / "model.safetensors").is_file() and '"end"' in (run / "metrics.jsonl").read_text()


def test_what_nobody_foresaw_is_one_sentence_and_a_way_on(visit: Any) -> None:
    """A page that breaks at something in the address: what it says is nobody's business, and the link leads to it without."""
    page = visit.server.folder / "pages" / "method" / "page.py"
    breaks = "import streamlit as st\nif 'odd' in st.query_params:\n    raise OverflowError('a secret')\n"
    page.write_text(breaks + page.read_text())  # before anybody has asked for it
    visit.begin("/method?run=planted-elastic&user=12&odd=1")
    said = visit.page.locator(".st-key-failure")
    expect(said).to_contain_text("This page met something that it was not made for (OverflowError)")
    assert visit.page.get_by_test_id("stException").count() == 0 and "a secret" not in visit.page.content()
    address = said.get_by_role("link").get_attribute("href")
    assert address is not None
    visit.open(address)
    expect(visit.main.get_by_role("heading", level=1)).to_contain_text("What is implemented")
