"""A real server, from a copy of the app with the planted runs only, and a visitor whose browser is watched."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import ConsoleMessage, Locator, Page, TimeoutError, expect

ROOT = Path(__file__).resolve().parents[2]
HARMLESS = ("GPU stall", "WebGL", "swiftshader", "GroupMarkerNotSet")
LIST = ('ol[aria-label^="Suggestions"]', 'ol[aria-label^="Suggestions"] > li:nth-child(10)')
SAID = '[data-testid="stAlert"]'
IDLE = '[data-testid="stApp"][data-test-connection-state="CONNECTED"][data-test-script-state="notRunning"]'
PATIENCE = 60.0  # seconds that a busy machine may need for one thing
expect.set_options(timeout=1000 * PATIENCE)


@dataclass
class Server:
    """The app in its own folder; `restart` is what a crash and a new start look like."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def launch(self) -> None:
        """Starts the process and does not wait for it."""
        words = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true", "--server.port", str(self.port)]
        with (self.folder / "server.log").open("ab") as log:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            self.process = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log, env=environment)

    def ready(self) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError((self.folder / "server.log").read_text())

    def start(self) -> None:
        self.launch()
        self.ready()

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()


@dataclass
class Visit:
    """One page in the browser, and what it did behind the visitor's back."""

    page: Page
    server: Server
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.started = self.server.process
        self.page.set_default_timeout(1000 * PATIENCE)
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" and not _harmless(m) else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self._asked(request.url, (self.server.url, "data:", "blob:")))
        self.page.on("websocket", lambda socket: self._asked(socket.url, (self.server.url.replace("http", "ws", 1),)))

    def _asked(self, address: str, own: tuple[str, ...]) -> None:
        if not address.startswith(own):
            self.outside.append(address)

    def begin(self, path: str) -> None:
        """By deep link, once: a path with its query, or a whole address. Does not wait for what comes."""
        if self.page.url == "about:blank":
            self.page.goto(path if path.startswith("http") else self.server.url + path, wait_until="commit")

    def open(self, path: str) -> None:
        self.page.bring_to_front()
        self.page.goto(path if path.startswith("http") else self.server.url + path)
        self.settled()

    def settled(self) -> None:
        """Waits until the script has run, and expects no error on the page."""
        self.page.wait_for_timeout(200)  # the debounce of a widget
        expect(self.page.locator(IDLE)).to_be_visible(timeout=90_000)
        expect(self.page.get_by_test_id("stSkeleton")).to_have_count(0)  # in the place of a chart that is still coming
        expect(self.page.get_by_test_id("stException").or_(self.page.locator(".st-key-failure"))).to_have_count(0)

    def press(self, name: str) -> None:
        self.click(self.page.get_by_role("button", name=name).first)
        self.settled()

    def click(self, thing: Locator) -> None:
        """Clicks what stands still: while the script runs, what it no longer draws may still go and move the rest."""
        expect(self.page.locator(IDLE)).to_be_visible(timeout=90_000)
        thing.scroll_into_view_if_needed()
        self.still(thing)
        thing.click()

    def still(self, thing: Locator) -> None:
        """Waits until a thing has been in its place for a while: a button of a panel that unfolds is pressed in one place and let
        go in another, which is no click. No hand is that fast."""
        frames = """async (thing, wanted) => {
            let [last, same] = ["", 0]
            while (same < wanted) {
                await new Promise(requestAnimationFrame)
                const {x, y, width, height} = thing.getBoundingClientRect()
                const now = [x, y, width, height, document.getAnimations().length].join()
                ;[last, same] = [now, now === last ? same + 1 : 0]
                if (!thing.isConnected) return
            }
        }"""
        thing.evaluate(frames, 12)

    def on_screen(self, *names: str) -> None:
        """All these lie within the window as it is scrolled now: an effect is seen where its button was pressed."""
        self.settled()
        off = """names => names.map(name => {
            const box = document.querySelector(name)?.getBoundingClientRect()
            const seen = box && box.height > 0 && box.top >= 0 && box.bottom <= window.innerHeight
            return seen ? "" : `${name}: ${box?.top} to ${box?.bottom}`
        }).filter(Boolean)"""
        assert not (found := self.page.evaluate(off, list(names))), found

    def text(self) -> str:
        return self.main.inner_text()

    @property
    def main(self) -> Locator:
        return self.page.get_by_test_id("stMain")

    @property
    def sidebar(self) -> Locator:
        return self.page.get_by_test_id("stSidebar")

    def unfold(self, panel: str = "more") -> None:
        """Opens *More* or *Teaching* in the sidebar, where it is closed."""
        details = self.sidebar.locator(f".st-key-shell_{panel} details").first
        if details.get_attribute("open") is None:
            self.click(details.locator("summary").first)
        expect(details).to_have_attribute("open", "")

    def box(self, name: str) -> Locator:
        """A number box of the sidebar."""
        if name == "Expert":
            self.unfold()
        return self.sidebar.get_by_role("spinbutton", name=name, exact=True)

    def choose(self, key: str, option: str) -> None:
        """Types an option into a list and takes it, by keyboard: nothing is missed when the page moves under a mouse."""
        box = self.page.locator(f".st-key-{key}").get_by_role("combobox")
        until = time.monotonic() + PATIENCE
        while True:
            self.settled()
            box.fill(option)
            with suppress(TimeoutError):  # the list closes when what is above it is drawn anew; what was typed is then undone
                self.page.get_by_role("option", name=option).first.wait_for(timeout=5_000)
                box.press("Enter")
            box.blur()
            self.settled()
            if option in box.input_value():
                return
            assert time.monotonic() < until, f"{option} could not be chosen in {key}"

    def says(self, *texts: str) -> None:
        """Waits until the page says all this."""
        for text in texts:
            expect(self.main).to_contain_text(text)

    def copied(self) -> str:
        """The address in the menu at the foot, as a visitor would take it."""
        menu = self.page.locator(".st-key-foot_menu summary").first
        self.click(menu)
        code = self.page.locator(".st-key-foot_menu").get_by_test_id("stCode").first
        expect(code).to_contain_text(self.server.url)
        address = code.inner_text().strip()
        self.click(menu)
        expect(code).to_have_count(0)
        self.page.mouse.move(1, 1)  # below the mouse an opener shows another icon
        return address

    def shares(self, somebody: "Visit", *parts: str) -> None:
        """The link copied from this page carries these parts, and shows somebody else what this page shows."""
        self.settled()
        address, shown = self.copied(), self.text()
        assert all(part in address for part in parts), address
        somebody.open(address)
        expect(somebody.main).to_have_text(shown, use_inner_text=True)
        self.page.bring_to_front()

    def leave(self) -> None:
        """Closes the page. Fails if it broke, wrote an error to the console, or asked another machine for anything."""
        broken = self.page.get_by_test_id("stException").count()
        self.page.close()
        assert not broken, "an exception on the page"
        assert not self.outside, f"requests left the machine: {self.outside}"
        assert not self.errors, f"errors in the console: {self.errors}"


def _harmless(message: ConsoleMessage) -> bool:
    """Words of the graphics driver, and Streamlit looking for its own address below a deep link."""
    return any(words in message.text for words in HARMLESS) or "/_stcore/" in message.location.get("url", "")


def copy_app(folder: Path) -> Path:
    """The app as it stands, with the planted runs only: nothing here needs data from outside."""
    for name in ("app.py", "pages", "elastic_core", ".streamlit"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    for run in sorted((ROOT / "checkpoints" / "demo").glob("planted-*")):
        shutil.copytree(run, folder / "checkpoints" / "demo" / run.name)
    for ranks in sorted((ROOT / "checkpoints" / "ranks").glob("planted*")):
        shutil.copytree(ranks, folder / "checkpoints" / "ranks" / ranks.name)
    for table in ("runs.csv", "epochs.csv", "benchmarks.csv"):
        shutil.copy(ROOT / "checkpoints" / table, folder / "checkpoints" / table)
    return folder
