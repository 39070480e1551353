"""The file that stands alone, opened from the disk: no server, no network, and it answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
FILE = Path(__file__).resolve().parents[2] / "checkpoints" / "product-keys.html"
WINNERS = """() => JSON.parse(document.getElementById('search').shadowRoot.querySelector('.picture').dataset.found)
    .winners.map(winner => winner.expert)"""

# The ground of the page, and the squares of both pictures' first experts.
COLOURS = """() => [getComputedStyle(document.body).backgroundColor, ...['search', 'strip'].flatMap(name => {
    const squares = [...document.getElementById(name).shadowRoot.querySelectorAll('svg rect')].slice(20, 26)
    return squares.map(one => getComputedStyle(one).fill)
})]"""


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids="{0[0]} {0[1]}".format)
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, scheme = request.param
    size = {"width": width, "height": 800}
    context = browser.new_context(viewport=size, offline=True, reduced_motion="reduce", color_scheme=scheme)
    opened, faults = context.new_page(), []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    opened.on("request", lambda asked: faults.append(asked.url) if asked.url != FILE.as_uri() else None)
    opened.goto(FILE.as_uri())
    yield opened
    context.close()
    assert not faults


def turn(page: Page, name: str, to: str) -> None:
    slider: Any = page.get_by_role("slider", name=name)
    slider.fill(to)


def test_the_query_is_turned_and_other_experts_are_retrieved(page: Page) -> None:
    page.get_by_role("button", name="Win").click()
    before = page.evaluate(WINNERS)
    turn(page, "Turn q₁", "100")
    after = page.evaluate(WINNERS)
    assert len(before) == len(after) == 3 and {expert // 4 for expert in before} != {expert // 4 for expert in after}
    expect(page.locator("#search")).to_contain_text("finds the same 3")
    turn(page, "How many, k", "1")
    assert page.evaluate(WINNERS) == after[:1]


def test_three_households_are_shown_and_the_last_product_is_removed(page: Page) -> None:
    shown = set()
    for button in page.locator("#households button[aria-pressed]").all():
        button.click()
        first = page.locator("#strip .list").inner_text()
        page.get_by_role("button", name="Remove the last product").click()
        expect(page.locator("#strip .list")).not_to_have_text(first)
        page.get_by_role("button", name="Bring the last product back").click()
        shown.add(page.locator("#strip .events").inner_text())
    assert len(shown) == 3


def test_it_takes_the_colours_of_the_theme_when_that_changes(page: Page) -> None:
    drawn = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(400)  # squares take their time
        drawn[scheme] = page.evaluate(COLOURS)
    (light_ground, *light), (dark_ground, *dark) = drawn["light"], drawn["dark"]
    assert light_ground == "rgb(255, 255, 255)" and dark_ground == "rgb(20, 22, 26)"
    assert len(light) == len(dark) > 4 and set(light) & set(dark) <= {"none"}


def test_nothing_is_wider_than_the_window_and_a_screen_reader_can_follow(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = [(each["id"], each["nodes"][0]["html"]) for each in Axe().run(page).response["violations"]]
    assert not found
