"""One server on a free port and one browser for all tests; a visit that fails if the page misbehaved behind one's back."""

from collections.abc import Iterator

import pytest
from forked import free_port
from playwright.sync_api import Browser, BrowserContext, sync_playwright
from visiting import Server, Visit, copy_app

FLAGS = ("no-sandbox", "disable-quic", "disable-background-networking", "disable-component-update", "disable-sync",
         "enable-unsafe-swiftshader", "process-per-site")  # fmt: skip
STREAMLIT = ("st", "sidebar", "_streamlit")  # how what it keeps in a browser itself is called


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=[f"--{flag}" for flag in FLAGS])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One browser profile for all tests: files of the app come from its cache; every page is a session of its own. Without
    animations: drawing their pictures took an eighth of all processor time, and nobody looks at them."""
    opened = browser.new_context(viewport={"width": 1280, "height": 1000}, accept_downloads=True, reduced_motion="reduce")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, context: BrowserContext) -> Iterator[Server]:
    """A server whose start page has been opened once, as after a usual start; see `COLD` for pages where it has not."""
    running = Server(copy_app(tmp_path_factory.mktemp("app")), free_port())
    running.start()
    # A page that stays: while there is one, all pages of this host share its process and what that has compiled.
    context.new_page().goto(f"{running.url}/_stcore/health")
    first = Visit(context.new_page(), running)
    first.open("/")
    first.leave()
    yield running
    running.stop()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "opens(path): what the fixture `visit` has open when the test begins")


def opens(node: pytest.Item) -> str:
    marker = node.get_closest_marker("opens")
    return str(marker.args[0]) if marker else ""


@pytest.fixture(scope="session")
def begun(server: Server) -> dict[str, Visit]:
    """Pages that have begun to load for the next test: there are two cores, and a test mostly waits for one."""
    return {}


@pytest.fixture
def visit(request: pytest.FixtureRequest, context: BrowserContext, server: Server, begun: dict[str, Visit]) -> Iterator[Visit]:
    """A visitor's page; with the marker `opens` it is already there."""
    path, items = opens(request.node), request.session.items
    seen = begun.pop(path, None)
    if seen is None or seen.started != server.process:  # one that lost its server may take a minute to look for it again
        seen = Visit(context.new_page(), server)
    if path:
        seen.begin(path)
        seen.settled()
    following = "".join(map(opens, items[items.index(request.node) + 1 :][:1]))
    if following and following not in begun:
        begun[following] = Visit(context.new_page(), server)
        begun[following].begin(following)
    seen.page.bring_to_front()  # a page behind another is drawn once a second at best, and its lists may not open at all
    yield seen
    seen.leave()


@pytest.fixture
def elsewhere(visit: Visit, context: BrowserContext, server: Server) -> Iterator[Visit]:
    """Somebody else, who has never seen what the visitor of the test has: a session knows nothing of another, and the browser,
    which is the same, keeps nothing of the app's. Behind the visitor's page until it opens something."""
    seen = Visit(context.new_page(), server)
    visit.page.bring_to_front()
    yield seen
    kept = seen.page.evaluate("[...Object.keys(localStorage), ...Object.keys(sessionStorage), document.cookie]")
    assert all(name.startswith(STREAMLIT) for name in kept), kept
    seen.leave()
