"""A hand on the charts: what is clicked or drawn around becomes the expert, or the set, that every page looks at."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect
from pointing import Mark, click, lasso, lonely, marks

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
PLANTED = "run=planted-elastic"


@pytest.mark.opens(f"/traffic?{PLANTED}&user=12")
def test_a_bar_and_a_square_of_traffic(visit: Any) -> None:
    bars = marks(visit.page, "trf_load0")
    tall = max(bars, key=lambda bar: -bar.y)  # the middle of the tallest bar lies highest
    click(visit.page, tall)
    expect(visit.box("Expert")).to_have_value(str(tall.number))
    visit.says(f"Expert {tall.number} (row {tall.number // 8}, column {tall.number % 8})")
    visit.settled()
    square = lonely(marks(visit.page, "trf_grid0"), other_than=[tall.number])
    click(visit.page, square)
    expect(visit.box("Expert")).to_have_value(str(square.number))
    visit.says(f"Expert {square.number} (row {square.number // 8}, column {square.number % 8})")


def written(text: str) -> set[int]:
    """`12.40-42` → {12, 40, 41, 42}."""
    parts = [[int(number) for number in part.split("-")] for part in text.split(".")]
    return {number for part in parts for number in range(part[0], part[-1] + 1)}


@pytest.mark.opens(f"/memory-map?{PLANTED}&user=12")
def test_a_mark_and_a_lasso_on_the_memory_map(visit: Any) -> None:
    mark = lonely(marks(visit.page, "map_chart"))
    click(visit.page, mark)
    expect(visit.box("Expert")).to_have_value(str(mark.number))
    visit.says(f"Expert {mark.number}:")
    visit.settled()
    visit.main.get_by_role("radio", name="Lasso").click()
    visit.settled()
    found = marks(visit.page, "map_chart")
    inside, corners = around(found, share=0.3)
    lasso(visit.page, corners)
    expect(visit.main).to_contain_text(re.compile(rf"{len(inside)} experts chosen"))
    visit.settled()
    assert written(visit.page.get_by_role("textbox", name="Choose experts").input_value()) == inside
    visit.main.get_by_role("button", name="More").click()
    visit.page.get_by_role("textbox", name="Keep the chosen experts as").fill("night owls")
    visit.still(visit.page.get_by_role("button", name="Keep", exact=True))
    visit.page.get_by_role("button", name="Keep", exact=True).click()
    visit.page.keyboard.press("Escape")
    visit.main.get_by_role("button", name="Clear", exact=True).click()
    expect(visit.main).not_to_contain_text("experts chosen")
    visit.press(f"night owls ({len(inside)})")
    visit.says(f"{len(inside)} experts chosen")
    expect(visit.box("Expert")).to_have_value(str(mark.number))  # a set is not a choice of one


def around(found: list[Mark], share: float) -> tuple[set[int], list[tuple[float, float]]]:
    """Four corners around the leftmost marks, drawn where the gap to the next mark is widest near that share of them."""
    ordered = sorted(found, key=lambda mark: mark.x)
    near = range(int(len(ordered) * share * 0.7), int(len(ordered) * share * 1.3))
    last = max(near, key=lambda i: ordered[i + 1].x - ordered[i].x)
    right = (ordered[last].x + ordered[last + 1].x) / 2
    left, top, low = ordered[0].x - 8, min(mark.y for mark in found) - 8, max(mark.y for mark in found) + 8
    return {mark.number for mark in ordered[: last + 1]}, [(left, top), (right, top), (right, low), (left, low)]
