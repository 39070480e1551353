"""What an address does to the browser's history, and what is said of one that is wrong."""

from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect
from visiting import SAID

from pages.layout.server import DEPTH, OLD_PAGES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
EXPERTS = ("Experts", "What does expert")
DEFAULTS = "/?run=planted-elastic&user=5&start_ranked=everything"


def test_back_takes_one_press_after_an_address_that_names_defaults(visit: Any) -> None:
    """The frame writes it anew, which is no act of the visitor; what they do is one."""
    visit.begin("/_stcore/health")
    visit.open(DEFAULTS)
    visit.page.wait_for_function("!location.search.includes('start_ranked')")
    visit.click(visit.page.get_by_role("link", name="Experts").first)
    visit.page.wait_for_url("**/experts*")
    visit.says("What does expert")
    visit.settled()
    visit.page.go_back(wait_until="commit")
    visit.page.wait_for_url(lambda url: "/experts" not in url)
    visit.says("What does ELASTIC do")
    visit.settled()
    visit.page.go_back(wait_until="commit")
    visit.page.wait_for_url("**/_stcore/health")


def test_back_takes_an_edit_back(visit: Any) -> None:
    visit.open("/?run=planted-elastic&user=5")
    visit.settled()
    visit.click(visit.page.get_by_role("button", name="Remove the last"))
    visit.page.wait_for_url("**edits=*")
    visit.settled()
    visit.page.go_back(wait_until="commit")
    expect(visit.page.locator(".st-key-start_said")).to_have_count(0)
    visit.settled()
    assert "edits" not in visit.page.url


def test_another_page_begins_at_its_top(visit: Any) -> None:
    """One that is drawn at once, because it was seen before, leaves the browser no time to lose its place by itself."""
    place = "document.querySelector('[data-testid=stMain]').scrollTop"
    visit.page.set_viewport_size({"width": 1366, "height": 625})
    visit.open("/journey?run=planted-elastic&user=5")
    for name, title in (EXPERTS, ("Journey", "What if this history were different"), EXPERTS):
        visit.page.evaluate(f"{place} = 300")
        assert visit.page.evaluate(place) == 300
        visit.click(visit.page.get_by_role("link", name=name).first)
        visit.says(title)
        visit.settled()
        assert visit.page.evaluate(place) == 0, name


def test_back_leads_to_the_world_before_the_switch(visit: Any) -> None:
    """On a low window the switch lies where Streamlit has its header, which must not take the press."""
    visit.page.set_viewport_size({"width": 1366, "height": 768})
    visit.open("/?user=7")
    visit.click(visit.page.get_by_role("radio", name="Paper’s model"))
    visit.page.wait_for_url("**/?*run=*")
    visit.says("The paper’s ELASTIC")
    visit.settled()
    visit.page.go_back(wait_until="commit")
    visit.says("we know why they chose")
    visit.settled()
    assert "run=planted-64-elastic-slots" in visit.page.url and visit.box("Person").input_value() == "7"


def test_a_wrong_address_says_so(visit: Any) -> None:
    visit.open("/?run=nobody&vs=nobody&user=99999&expert=777&who=u_1")
    expect(visit.page.locator(SAID).first).to_contain_text("Showing the run")
    shown = " ".join(visit.page.locator(SAID).all_inner_texts())
    wrong = (
        "no run called nobody",
        "no other run nobody",
        "no person 99999 here",
        "no expert 777 in",
        "Nobody here has the id u_1",
    )
    assert [part for part in wrong if part not in shown] == [], shown


def test_a_page_that_is_none_says_so(visit: Any) -> None:
    visit.open("/no-such-page?run=planted-elastic")
    expect(visit.page.get_by_role("dialog")).to_contain_text("Page not found")
    visit.errors.clear()  # Streamlit writes the same sentence to the console


@pytest.mark.parametrize("name", OLD_PAGES)
def test_a_page_that_is_elsewhere_now_is_found(server: Any, name: str) -> None:
    with urlopen(f"{server.url}/{name}?user=12") as answer:
        assert answer.url == f"{server.url}/evidence?{urlencode({DEPTH: OLD_PAGES[name], 'user': 12})}"
