"""axe-core over every page, light and dark: no fault that it calls serious or critical."""

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from test_every_page_in_browser import ADDRESS, GROUND, PAGES
from visiting import Visit

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
DEPTHS = ("/evidence?ev_depth=Systems", "/evidence?ev_depth=Two+runs")  # the first depth is the page itself
GRAVE = {"serious", "critical"}
# Frames of components are pages of their own; what Streamlit draws on a canvas is read by its own hidden table.
OPTIONS = {"resultTypes": ["violations"], "iframes": False}


@pytest.fixture(scope="module")
def seen(server: Any, context: Any) -> Iterator[Visit]:
    """One visitor for all pages: what the server and the browser have read once they keep."""
    visit = Visit(context.new_page(), server)
    yield visit
    visit.leave()


def faults(visit: Visit) -> list[str]:
    """What axe-core finds grave: the rule, where, and why."""
    visit.page.evaluate(Axe().axe_script)
    found = visit.page.evaluate("options => axe.run(document, options)", OPTIONS)["violations"]
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:200]} — {' '.join(node['failureSummary'].split())[:300]}"
        for each in found
        if each["impact"] in GRAVE
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("path", [*PAGES, *DEPTHS])
def test_no_page_has_a_serious_fault_in_either_theme(seen: Visit, path: str) -> None:
    seen.open(f"{path}{'&' if '?' in path else '?'}{ADDRESS}")
    found = dict[str, list[str]]()
    for scheme in ("light", "dark"):
        seen.page.emulate_media(color_scheme=scheme)
        expect(seen.page.get_by_test_id("stApp")).to_have_css("background-color", GROUND[scheme])
        seen.page.evaluate("document.activeElement.blur()")
        seen.page.keyboard.press("r")  # runs the page again: what it writes itself has its colours from the run
        seen.settled()
        found[scheme] = faults(seen)
    assert found == {"light": [], "dark": []}, "\n".join(line for lines in found.values() for line in lines)


def test_axe_finds_a_fault_where_there_is_one(seen: Visit) -> None:
    seen.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<button id=\"nameless\"></button>')")
    assert any(fault.startswith("button-name") for fault in faults(seen))
