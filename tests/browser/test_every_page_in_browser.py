"""Every page by deep link, some on a server that nobody has opened yet, then in both themes, on a telephone and by axe-core."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from forked import free_port
from playwright.sync_api import BrowserContext, expect
from visiting import Server, Visit

from pages.layout.screens import SCREENS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
ADDRESS = "run=planted-elastic&user=11&expert=3&vs=planted-sasrec"
# Path, heading, and something that only this address can have brought about. A screen that is not named here has any heading.
NAMED = {
    "/": ("What does ELASTIC do with one person’s history?", "of person 11 "),
    "/product-keys": ("How can a few comparisons find the best experts, exactly?", "The paper’s ELASTIC in the made-up world"),
    "/journey": ("What if this history were different?", "Person 11 chose"),
    "/experts": ("What does expert 3 stand for, and does it matter?", "Person 11 "),
    "/traffic": ("Is the memory used evenly?", "Expert 3 (row 0, column 3)"),
    "/memory-map": ("Do experts form regions, and can this picture be trusted?", "row 0, column 3."),
    "/train": ("What happens if I change the model, and train it?", "from start to tested"),
    "/data": ("What is in the data, and can I bring mine?", "Person 11 has"),
    "/evidence": ("Is it true, and how sure is that?", "Choosing experts for each person helps."),
    "/speed": ("When is ELASTIC faster?", "They cross near"),
    "/method": ("What is implemented, and what did the paper leave open?", "Open one to see what we do"),
}
PAGES = {path: NAMED.get(path, (re.compile(r"\S"), "")) for path in (f"/{screen.address}" for screen in SCREENS)}
COLD = "/product-keys"  # an address that is not its file’s name; the shared server was first asked for the way in
FITS = """() => [document.documentElement, document.querySelector('[data-testid=stMain]')]
    .every(part => part.scrollWidth <= part.clientWidth + 1)"""
CONTROLS = "button|link|textbox|spinbutton|combobox|slider|radio|checkbox|tab|switch|figure|table"
# What Tab passes over for a reason: arrows and openers of boxes that take arrow keys themselves, and the rest of a radio group.
UNREACHED = """() => [...document.querySelectorAll('button, input, textarea, select, a[href], [role=slider]')]
    .filter(part => part.checkVisibility() && !part.disabled && part.tabIndex < 0)
    .filter(part => !part.closest('[role=radiogroup]') && !part.closest('[data-testid=stNumberInput]'))
    .filter(part => !part.closest('[data-testid=stSelectbox]') && !part.closest('[data-testid=stMultiSelect]'))
    .map(part => part.outerHTML.slice(0, 200))"""
DEPTHS = {"/evidence": ("Claims", "Systems")}  # what a switch of a page brings in place of all the rest
# Frames of components are pages of their own; what Streamlit draws on a canvas is read by its own hidden table.
AXE = {"resultTypes": ["violations"], "iframes": False}
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}  # what a theme can break
GROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 22, 26)"}


def test_every_page_that_is_named_is_there() -> None:
    assert set(NAMED) <= set(PAGES)


@pytest.fixture(scope="module")
def cold(server: Server) -> Iterator[Server]:
    """Nobody has asked it for anything yet."""
    running = Server(server.folder, free_port())
    running.launch()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def ahead() -> dict[str, Visit]:
    """Pages that have begun to load."""
    return {}


@pytest.fixture(scope="module", params=PAGES)
def opened(
    request: pytest.FixtureRequest, server: Server, cold: Server, context: BrowserContext, ahead: dict[str, Visit]
) -> Iterator[tuple[str, Visit]]:
    """A page by deep link. Shared by the tests of that page; meanwhile the next one loads, whichever it is."""

    def begin(path: str) -> Visit:
        if path not in ahead:
            ahead[path] = Visit(context.new_page(), cold if path == COLD else server)
            ahead[path].server.ready()
            ahead[path].begin(f"{path}?{ADDRESS}")
        return ahead[path]

    visit = begin(request.param)
    visit.settled()
    asked = (getattr(item, "callspec", None) for item in request.session.items)
    order = list(dict.fromkeys(each.params["opened"] for each in asked if each and "opened" in each.params))
    for later in order[order.index(request.param) + 1 :][:1]:
        begin(later)
    visit.page.bring_to_front()
    yield request.param, visit
    del ahead[request.param]
    visit.leave()


def faults(visit: Visit, **only: Any) -> list[str]:
    """What axe-core finds serious or critical: the rule, where, and why. `only`: which rules, in axe's own words."""
    visit.page.evaluate("document.activeElement.blur()")  # what is pointed at or focused has colours of its own
    visit.page.mouse.move(0, 0)
    visit.settled()
    return judged(visit, **only)


def judged(visit: Visit, **only: Any) -> list[str]:
    if not visit.page.evaluate("'axe' in window"):
        visit.page.evaluate(Axe().axe_script)
    found = visit.page.evaluate("options => axe.run(document, options)", AXE | only)["violations"]
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:200]} — {' '.join(node['failureSummary'].split())[:300]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def darken(visit: Visit) -> None:
    """A page that was opened in light, and run again in dark: what it writes itself has its colours from the run."""
    visit.page.emulate_media(color_scheme="dark")
    expect(visit.page.get_by_test_id("stApp")).to_have_css("background-color", GROUND["dark"])
    visit.page.evaluate("document.activeElement.blur()")
    visit.page.keyboard.press("r")
    visit.settled()


def fits(visit: Visit) -> None:
    visit.page.wait_for_function(FITS, timeout=20_000)  # charts follow a new width one after the other


def test_a_deep_link_opens_the_right_page_in_the_right_frame(opened: tuple[str, Any]) -> None:
    path, visit = opened
    expect(visit.page.get_by_role("dialog")).to_have_count(0)
    heading, evidence = PAGES[path]
    expect(visit.main.get_by_role("heading", level=1)).to_have_text(heading)
    visit.says(evidence)
    expect(visit.sidebar.get_by_role("link")).to_have_count(len(PAGES))
    visit.unfold()
    for label, system in (("Trained run", "ELASTIC"), ("Compare with", "SASRec")):
        named = f"{system} · Made-up world (16 interests) · seed 0"
        expect(visit.sidebar.get_by_role("combobox", name=label)).to_have_value(named)
    expect(visit.box("Person")).to_have_value("11")
    expect(visit.box("Expert")).to_have_value("3")
    assert set(ADDRESS.split("&")) - {"run=planted-elastic"} <= set(visit.page.url.partition("?")[2].split("&"))


def test_everything_has_a_name_and_a_place_in_the_tab_order(opened: tuple[str, Any]) -> None:
    """What a screen reader says and where a keyboard gets to: controls, charts and tables."""
    _, visit = opened
    lines = [line.strip(" -'") for line in visit.page.locator("body").aria_snapshot().splitlines()]
    found = [line for line in lines if re.match(rf"({CONTROLS})\b", line)]
    assert len(found) > 25
    assert [line for line in found if not re.match(rf'({CONTROLS}) ["/]', line)] == []
    assert visit.page.evaluate(UNREACHED) == []


def test_a_keyboard_is_at_the_page_in_three_presses(opened: tuple[str, Any]) -> None:
    """Or past the sidebar, whose first level holds what everybody needs."""
    _, visit = opened
    visit.page.evaluate("document.activeElement.blur()")
    first = visit.page.get_by_role("link", name="Skip to main content")
    first.focus()
    visit.page.keyboard.press("Enter")
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.closest('[data-testid=stMain]') !== null")
    assert "#" not in visit.page.url


def test_no_page_has_a_serious_fault_or_scrolls_sideways_in_either_theme_at_either_width(opened: tuple[str, Any]) -> None:
    """Light at 1280, as it was opened; dark, where only colours are others; and at 390, where only places are."""
    path, visit = opened
    expect(visit.page.get_by_test_id("stApp")).to_have_css("background-color", GROUND["light"])
    opened_at = visit.page.viewport_size
    fits(visit)
    first, *depths = DEPTHS.get(path, ("",))
    assert faults(visit) == []
    for depth in depths:
        visit.click(visit.main.get_by_role("radio", name=depth, exact=True))
        assert faults(visit) == [], depth
    darken(visit)
    assert faults(visit, runOnly=COLOURS) == []
    for depth in [*depths[:-1], first] if depths else []:
        visit.click(visit.main.get_by_role("radio", name=depth, exact=True))
        assert faults(visit, runOnly=COLOURS) == [], depth
    visit.page.set_viewport_size({"width": 390, "height": 900})
    visit.settled()
    visit.says(PAGES[path][1])
    fits(visit)
    visit.page.set_viewport_size(opened_at)  # the page is shared


def test_a_fault_that_is_put_there_is_found(visit: Visit) -> None:
    visit.page.set_content('<main><button></button><b style="color: #333; background: #222">unseen</b></main>')
    assert {fault.split()[0] for fault in judged(visit)} >= {"button-name", "color-contrast"}
    assert {fault.split()[0] for fault in judged(visit, runOnly=COLOURS)} == {"color-contrast"}
