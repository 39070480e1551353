"""The tour from its first stop to leaving it, and a teacher's link from its making to its release."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
PLANTED = "run=planted-elastic"


@pytest.mark.opens(f"/method?{PLANTED}&user=12")
def test_a_tour_begun_bet_on_walked_and_left(visit: Any) -> None:
    visit.press("Tour:")
    panel = visit.page.locator(".st-key-tour_panel")
    expect(panel).to_contain_text("Tour, 1 of 13")
    expect(visit.main).to_contain_text("What does ELASTIC do with one person’s history?")
    expect(visit.box("Person")).to_have_value("12")
    for stop, bet in ((1, "Five to nine"), (2, "2√K short ones")):
        expect(panel).to_contain_text(f"Tour, {stop} of 13")
        expect(panel).not_to_contain_text(re.compile("Right\\.|Your bet was"))
        panel.get_by_text(bet, exact=True).click()
        expect(panel).to_contain_text(re.compile("Right\\.|Your bet was"))
        visit.settled()
        panel.get_by_role("button", name="Next stop").click()
    expect(panel).to_contain_text("Tour, 3 of 13")
    visit.settled()
    assert "/product-keys?" in visit.page.url and "tour=3" in visit.page.url
    visit.press("Leave the tour")
    expect(panel).to_have_count(0)
    expect(visit.sidebar.get_by_role("button", name="Go on with the tour (3 of 13)")).to_be_visible()
    visit.settled()
    assert "tour=" not in visit.page.url


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


@pytest.mark.opens(f"/?{PLANTED}&user=12&tour=1")
def test_the_bar_is_slim_and_never_covers_what_it_names(visit: Any) -> None:
    panel = visit.page.locator(".st-key-tour_panel")
    sizes = [(1366, 768), (390, 844)]
    visit.page.set_viewport_size(dict(zip(("width", "height"), sizes[0], strict=True)))
    for stop in range(1, 14):
        expect(panel).to_contain_text(f"Tour, {stop} of 13")
        visit.settled()
        panel.get_by_role("button", name="Skip the bet").click()  # it is shown at once, and again when asked for at another size
        for width, height in sizes:
            if (width, height) != sizes[0]:
                visit.page.set_viewport_size({"width": width, "height": height})
                panel.get_by_role("button", name="Show me").click()
            visit.page.wait_for_function(f"() => ({COVERED})() === ''", timeout=20_000)
            visit.settled()
            assert visit.page.evaluate(COVERED) == "", (stop, width)
        panel.get_by_role("button", name="Next stop" if stop < 13 else "See your bets").click()
        sizes.reverse()  # the next stop begins as wide as this one ended
    expect(panel).to_contain_text("Tour: the end")


@pytest.mark.opens(f"/method?{PLANTED}&user=12")
def test_a_teacher_holds_two_controls_and_a_pupil_releases_them(visit: Any, elsewhere: Any) -> None:
    visit.main.get_by_role("radio", name="Words and metrics").click()
    visit.says("Never compare two numbers that were measured in different ways")
    visit.unfold("teaching")
    visit.press("Teacher link")
    held = visit.page.get_by_role("combobox", name="Controls to lock")
    for name in ("Person", "Part of the page"):
        held.click()
        visit.still(visit.page.get_by_role("option", name=name, exact=True))
        visit.page.get_by_role("option", name=name, exact=True).click()
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
