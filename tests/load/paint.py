"""When does the first screen stand? Seconds from the address to its words, and to its grid of experts, in a real browser.

  python tests/load/paint.py --out checkpoints/benchmarks/paint.csv
  python tests/load/paint.py --app ../elsewhere --out ""                another checkout, printed only

Three kinds of visit: `cold`, to a server that has begun to answer and had no visitor; `new`, of a browser without anything of
the app to a server that is up; `again`, of a browser that has been there. Browser and server share the machine. Seconds are of
the clock, so only rows of an idle machine can be read (`load`).
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

from crowd import ROOT, about, server, write
from playwright.sync_api import Browser, Page, sync_playwright

KEY = ("commit", "device", "visit", "what")
WORDS, GRID = "h1", "svg[role=group]"  # the title; the grid of experts, as pages/start/strip.js draws it
TIMES = 5


def seen(page: Page, address: str) -> tuple[float, float]:
    """Seconds until the words stand, and until the grid does."""
    began = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.locator(WORDS).first.wait_for(timeout=120_000)
    words = time.perf_counter() - began
    page.locator(GRID).first.wait_for(timeout=120_000)
    return words, time.perf_counter() - began


def fresh(browser: Browser, address: str) -> tuple[float, float]:
    """The visit of a browser that keeps nothing."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        return seen(context.new_page(), address)
    finally:
        context.close()


def measure(app: Path, chromium: str, times: int) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {"cold": [], "new": [], "again": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(max(1, times // 2)):
            with server(app, Path(os.devnull)) as (address, _process):
                found["cold"].append(fresh(browser, address))
        with server(app, Path(os.devnull)) as (address, _process):
            fresh(browser, address)
            time.sleep(30)  # until the server has warmed what it warms
            found["new"] = [fresh(browser, address) for _ in range(times)]
            page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
            seen(page, address)
            found["again"] = [seen(page, address) for _ in range(times)]
        browser.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--app", type=Path, default=ROOT, help="a checkout (default: this one)")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--out", default=str(ROOT / "checkpoints" / "benchmarks" / "paint.csv"))
    given = parser.parse_args()
    before = about(given.app)
    rows = [
        {**before, "visit": visit, "what": what, "n": len(pairs), "median_s": round(statistics.median(values), 2),
         "least_s": round(min(values), 2), "most_s": round(max(values), 2)}
        for visit, pairs in measure(given.app, given.chromium, given.times).items()
        for what, values in zip(("words", "grid"), zip(*pairs, strict=True), strict=True)
    ]  # fmt: skip
    if given.out:
        write(Path(given.out), rows, KEY)
    for row in rows:
        print(f"{row['visit']:<8}{row['what']:<8}{row['median_s']:>6} s  ({row['least_s']} to {row['most_s']}, n = {row['n']})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
