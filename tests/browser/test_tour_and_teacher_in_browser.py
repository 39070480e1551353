"""The tour from its first stop to leaving it, and a teacher's link from its making to its release."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
PLANTED = "run=planted-elastic"


COVERED = """() => {
    const bar = document.querySelector('.st-key-tour_panel').getBoundingClientRect()
    const ring = [...document.querySelectorAll('[class*="st-key-"]')].find(one => one.style.outlineOffset)
    if (!ring) return 'nothing is shown'
    const box = ring.getBoundingClientRect(), top = Math.min(box.height, innerHeight / 3)
    const aside = bar.right <= box.left  // where the list of pages is
    const [low, slim] = aside ? [innerHeight, 0.8] : [bar.top, 0.4]
    const seen = box.top >= -1 && box.top + top <= low + 1 && bar.height <= innerHeight * slim
    return seen ? '' : `${box.top} to ${box.bottom}, the bar from ${bar.top}`
}"""


BETS = {1: "Five to nine", 2: "4 rows and 4 columns"}
DESK, TELEPHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
FIRST, ALL = 5, 13  # stops of the tour, and with those of the second lesson
BOTH = (1, 2, 3, 10, 11)  # stops that are looked at on a desk, too, where the bar stands beside the page


@pytest.mark.opens(f"/method?{PLANTED}&user=12")
def test_a_tour_is_bet_on_walked_left_and_gone_on_with_and_its_slim_bar_never_covers_what_it_names(visit: Any) -> None:
    panel, sizes = visit.page.locator(".st-key-tour_panel"), [DESK, TELEPHONE]
    answered = re.compile("Right\\.|Your bet was")
    visit.page.set_viewport_size(DESK)
    visit.press("Tour:")
    expect(visit.main).to_contain_text("What does ELASTIC do with one person’s history?")
    expect(visit.box("Person")).to_have_value("12")
    for stop in range(1, ALL + 1):
        place = f"Tour, {stop} of {FIRST}" if stop <= FIRST else f"Second lesson, {stop - FIRST} of {ALL - FIRST}"
        expect(panel).to_contain_text(place)
        visit.settled()
        if stop == 3:
            assert "/experts?" in visit.page.url and "tour=3" in visit.page.url
            visit.press("Leave the tour")
            expect(panel).to_have_count(0)
            assert "tour=" not in visit.page.url
            visit.click(visit.sidebar.get_by_role("button", name="Go on: Tour, 3 of 5"))
        if stop in BETS:
            expect(panel).not_to_contain_text(answered)
            visit.click(panel.get_by_text(BETS[stop], exact=True))
            expect(panel).to_contain_text("You said:")
            visit.click(panel.get_by_role("button", name="Show the answer"))
            expect(panel).to_contain_text(answered)
        else:
            visit.click(panel.get_by_role("button", name="Skip the bet"))
        for at, size in enumerate(sizes if stop in BOTH else sizes[:1]):
            if at:  # it is shown at once, and again when asked for at another size
                visit.page.set_viewport_size(size)
                visit.click(panel.get_by_role("button", name="Show me"))
            visit.page.wait_for_function(f"() => ({COVERED})() === ''", timeout=20_000)
            visit.settled()
            assert visit.page.evaluate(COVERED) == "", (stop, size)
        visit.click(panel.get_by_role("button", name="See your bets" if stop in (FIRST, ALL) else "Next stop"))
        if stop == FIRST:
            expect(panel).to_contain_text("Tour: the end")
            visit.click(panel.get_by_role("button", name="Second lesson: 8 stops"))
        if stop in BOTH:
            sizes.reverse()  # the next stop begins as wide as this one ended
    expect(panel).to_contain_text("Tour: the end")


@pytest.mark.opens(f"/method?{PLANTED}&user=12")
def test_a_teacher_holds_two_controls_and_a_pupil_releases_them(visit: Any, elsewhere: Any) -> None:
    visit.click(visit.main.get_by_role("radio", name="Words and metrics"))
    visit.says("Never compare two numbers that were measured in different ways")
    visit.unfold("teaching")
    visit.press("Teacher link")
    held = visit.page.get_by_role("combobox", name="Controls to lock")
    for name in ("Person", "Part of the page"):
        visit.click(held)
        visit.click(visit.page.get_by_role("option", name=name, exact=True))
        visit.settled()
    code = visit.page.get_by_test_id("stPopoverBody").get_by_test_id("stCode")
    expect(code).to_contain_text("lock=user,mth_part")
    elsewhere.open(code.inner_text().strip())
    elsewhere.says("Never compare two numbers that were measured in different ways")
    expect(elsewhere.sidebar).to_contain_text("Locked by this link: Person, Part of the page.")
    expect(elsewhere.box("Person")).to_be_disabled()
    expect(elsewhere.box("Person")).to_have_value("12")
    parts = elsewhere.main.get_by_role("radio", name="Ablations")
    expect(parts).to_be_disabled()
    expect(elsewhere.box("Expert")).to_be_enabled()
    elsewhere.press("Release")
    expect(elsewhere.box("Person")).to_be_enabled()
    expect(parts).to_be_enabled()
    elsewhere.settled()
    assert "lock=" not in elsewhere.page.url


@pytest.mark.opens(f"/traffic?{PLANTED}&user=12")
def test_a_link_leads_on_while_the_panel_of_the_class_is_open(visit: Any) -> None:
    """As a popover it was closed by the link, and its own rerun kept the old page."""
    visit.unfold("teaching")
    visit.click(visit.sidebar.locator("summary").filter(has_text="Class"))
    expect(visit.sidebar.get_by_role("button", name="Open a class")).to_be_visible()
    visit.settled()
    visit.click(visit.page.get_by_role("link", name="Evidence").first)
    visit.settled()
    expect(visit.main.get_by_role("heading", level=1)).to_have_text(re.compile("Is it true"))
