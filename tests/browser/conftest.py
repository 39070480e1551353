"""A real server on a free port, from a copy of the app with the planted runs only, and a real browser that watches it."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("no-sandbox", "disable-quic", "disable-background-networking", "disable-component-update", "disable-sync",
         "enable-unsafe-swiftshader")  # fmt: skip
HARMLESS = ("GPU stall", "WebGL", "swiftshader", "GroupMarkerNotSet")


@dataclass
class Server:
    """The app in its own folder; `restart` is what a crash and a new start look like."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        words = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true", "--server.port", str(self.port)]
        with (self.folder / "server.log").open("ab") as log:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            self.process = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log, env=environment)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError((self.folder / "server.log").read_text())

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

    def open(self, path: str) -> None:
        self.page.goto(self.server.url + path)
        self.settled()

    def settled(self) -> None:
        """Waits until the script has run, and expects no error on the page."""
        self.page.wait_for_timeout(200)  # the debounce of a widget
        app = self.page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]')
        expect(app).to_be_visible(timeout=90_000)
        expect(self.page.get_by_test_id("stException")).to_have_count(0)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name).first.click()
        self.settled()

    def text(self) -> str:
        return self.page.get_by_test_id("stMain").inner_text()


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=[f"--{flag}" for flag in FLAGS])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("app")
    for name in ("app.py", "pages", "elastic_core", ".streamlit"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    for run in sorted((ROOT / "checkpoints").glob("planted-*")):
        shutil.copytree(run, folder / "checkpoints" / run.name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = Server(folder, port)
    running.start()
    yield running
    running.stop()


def _harmless(message: ConsoleMessage) -> bool:
    """Words of the graphics driver, and Streamlit looking for its own address below a deep link."""
    return any(words in message.text for words in HARMLESS) or "/_stcore/" in message.location.get("url", "")


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    """A visit that fails if the page wrote an error to the console or asked another machine for anything."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(30_000)
    seen = Visit(page, server)
    page.on("console", lambda m: seen.errors.append(m.text) if m.type == "error" and not _harmless(m) else None)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith((server.url, "data:", "blob:")) else seen.outside.append(r.url))
    page.on("websocket", lambda w: None if f"127.0.0.1:{server.port}" in w.url else seen.outside.append(w.url))
    yield seen
    page.close()
    assert not seen.outside, f"requests left the machine: {seen.outside}"
    assert not seen.errors, f"errors in the console: {seen.errors}"
