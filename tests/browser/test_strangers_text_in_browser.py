"""A server full of what strangers wrote: no page sends a request elsewhere, draws a picture of theirs or links to them."""

import sys
from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

import pytest
from forked import free_port
from playwright.sync_api import BrowserContext
from visiting import ROOT, Server, Visit, copy_app

sys.path.append(str(ROOT / "tests" / "hostile"))
from strangers import EVIL, FOLDER, PEER, TRAP, world

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
# Everything a browser might follow or fetch, in HTML, in SVG and in the style of an element.
ALIVE = """trap => [...document.querySelectorAll('a, img, iframe, object, embed, script, link, image, use, source, form')]
    .filter(part => [...part.attributes].some(each => each.value.includes(trap) || /evil\\.exam/.test(each.value)))
    .map(part => part.outerHTML.slice(0, 200))"""


SAID = """() => [document.body.innerText, ...[...document.querySelectorAll('input, textarea')].map(field => field.value)]
    .join(' ')"""


ASKED = {"run": FOLDER, "vs": PEER, "user": 3, "dat_source": EVIL, "train_set_train.device": EVIL, "jrn_against": EVIL}
BY_ADDRESS = ("/data", "/train", "/journey")  # to whose own controls an address can bring something of theirs
# Each kind of message that holds something of theirs is on one of these; tests/hostile/test_strangers_text.py reads all pages.
PAGES = ("/", *BY_ADDRESS, "/traffic")


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory, context: BrowserContext) -> Iterator[Visit]:
    """Somebody who came by such an address to a server full of such text, and walks on by the links of the sidebar."""
    folder = copy_app(tmp_path_factory.mktemp("evil"))
    world(folder / "checkpoints")
    running = Server(folder, free_port())
    running.start()
    visit = Visit(context.new_page(), running)
    visit.open(f"/?{urlencode(ASKED)}")
    yield visit
    try:
        visit.leave()
    finally:
        running.stop()


@pytest.mark.parametrize("path", PAGES)
def test_nothing_of_theirs_is_asked_for(inside: Visit, path: str) -> None:
    visit = inside
    if path in BY_ADDRESS:
        visit.open(f"{path}?{urlencode(ASKED)}")
    else:
        link = visit.sidebar.locator(f'a[href$="{visit.server.url}{path}"], a[href="{path}"]').first
        visit.click(link)
        visit.page.wait_for_url(lambda address: urlsplit(address).path == path)
        visit.settled()
    said = visit.page.evaluate(SAID).replace("\u2060", "")
    assert "![x](http" in said, "something of theirs is on the page: the run's name, or where there is none, a title"
    menu = visit.page.locator(".st-key-foot_menu")
    visit.click(menu.locator("summary").first)
    use = menu.locator(".st-key-foot_use summary")
    visit.click(use)
    menu.get_by_text("The model is a folder").wait_for()
    visit.settled()
    for mark in visit.page.locator(".js-plotly-plot .points path, .node, .thing").all()[:4]:
        mark.hover(force=True, timeout=5_000)  # titles in hovers
    assert visit.page.evaluate(ALIVE, TRAP) == [] and not visit.outside


def test_the_trap_would_be_seen(inside: Visit) -> None:
    """The same text unescaped is a picture that asks: what the test above looks for is what there is to find."""
    visit = Visit(inside.page.context.new_page(), inside.server)
    visit.page.goto(f"{inside.server.url}/_stcore/health")
    with visit.page.expect_request(f"http://{TRAP}/m"):
        visit.page.set_content(f'<img src="http://{TRAP}/m"><a href="http://{TRAP}/l">l</a>')
    assert len(visit.page.evaluate(ALIVE, TRAP)) == 2 and visit.outside
    visit.page.close()
