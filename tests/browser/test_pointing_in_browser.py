"""A hand on the charts: what is clicked becomes the expert that every page looks at."""

from typing import Any

import pytest
from playwright.sync_api import expect
from pointing import click, lonely, marks

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


@pytest.mark.opens(f"/memory-map?{PLANTED}&user=12")
def test_a_mark_on_the_memory_map(visit: Any) -> None:
    mark = lonely(marks(visit.page, "map_chart"))
    click(visit.page, mark)
    expect(visit.box("Expert")).to_have_value(str(mark.number))
    visit.says(f"Expert {mark.number} ")
