"""The file that stands alone: made of today's scripts and words, with the numbers that the app shows today."""

import re
from typing import Any

import pytest

from pages.tour import standalone


@pytest.fixture(scope="module")
def page() -> str:
    return standalone.PAGE.read_text(encoding="utf-8")


def differences(a: Any, b: Any, where: str = "") -> list[str]:
    """Where two pieces of data differ by more than another processor's rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [line for name in sorted(a.keys() | b.keys()) for line in differences(a.get(name), b.get(name), f"{where}.{name}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [line for at in range(len(a)) for line in differences(a[at], b[at], f"{where}[{at}]")]
    if isinstance(a, float) or isinstance(b, float):
        return [] if a == pytest.approx(b, rel=2e-3, abs=1e-6) else [f"{where}: {a} and {b}"]
    if re.fullmatch("#[0-9a-f]{6}", str(a)) and re.fullmatch("#[0-9a-f]{6}", str(b)):
        apart = max(abs(int(str(a)[at : at + 2], 16) - int(str(b)[at : at + 2], 16)) for at in (1, 3, 5))
        return [] if apart <= 2 else [f"{where}: {a} and {b}"]
    return [] if a == b else [f"{where}: {a!r} and {b!r}"]


def test_it_is_made_of_today_s_scripts_byte_for_byte(page: str) -> None:
    made = standalone.compose_page(standalone.read_data(page))
    assert made == page, "make it again: python -m pages.tour.standalone"


def test_it_holds_the_numbers_that_the_app_shows_today(page: str) -> None:
    found = differences(standalone.read_data(page), standalone.collect_data())
    assert not found, f"make it again: python -m pages.tour.standalone\n{found[:5]}"


def test_a_changed_number_is_a_difference(page: str) -> None:
    stored, changed = standalone.read_data(page), standalone.read_data(page)
    changed["households"][1]["as_is"]["list"][0]["missing"][0] *= 1.01
    assert differences(stored, stored) == [] and len(differences(stored, changed)) == 1


def test_it_is_small_and_asks_no_network(page: str) -> None:
    assert len(page.encode()) <= 500_000
    addresses = set(re.findall(r"https?://[^\s'\"<]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}, "a name of a kind of drawing, not a place"
    assert not re.search(r"<link|<script[^>]+src=|@import|\bimport\b|\bfetch\(|url\(", page)
