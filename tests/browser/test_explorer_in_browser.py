"""The pages that explore and judge, as a hand uses them; what a copied link shows to somebody who has never been here."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect
from visiting import LIST, SAID

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
CONTROL = "SASRec with a local convolution"
PLANTED = "run=planted-elastic"


@pytest.mark.opens(f"/journey?{PLANTED}&user=12")
def test_journey_scrubbed_edited_shared_and_undone(visit: Any, elsewhere: Any) -> None:
    whole = visit.page.get_by_role("slider", name="Read up to item")
    last = int(whole.get_attribute("aria-valuemax") or whole.get_attribute("max") or 0)
    for moment in (last - 1, last - 2):
        whole.press("ArrowLeft")
        expect(whole).to_have_value(str(moment))
        visit.settled()  # the page drawn for one step may come back over the next one
    visit.says("The model saw this answer in training")
    visit.page.set_viewport_size({"width": 1280, "height": 800})
    visit.click(visit.page.locator(".st-key-jrn_last button"))
    expect(visit.main).to_contain_text(re.compile(r"Against \S+.*:"))
    visit.on_screen(*LIST, SAID)
    visit.shares(elsewhere, f"jrn_t={last - 2}", f"edits=-{last - 2}")
    visit.press("Undo")
    expect(visit.main).not_to_contain_text("Against")
    visit.settled()
    assert "edits=" not in visit.page.url


@pytest.mark.opens(f"/experts?{PLANTED}&user=12&expert=3")
def test_experts_by_next_and_by_row_one_swapped(visit: Any) -> None:
    visit.press("Next expert")  # one of the person's own
    expect(visit.main.get_by_role("heading", level=1)).not_to_contain_text("expert 3 ")
    expect(visit.main).to_contain_text("Person 12 has it")
    canvas = visit.page.locator(".st-key-exp_table canvas").first  # tables are drawn; their cells also stand beside, unseen
    second = visit.page.locator(".st-key-exp_table").get_by_test_id("glide-cell-1-1")
    expect(second).to_have_text(re.compile(r"^\d+$"))
    number = second.text_content()
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box() or {}
    visit.page.mouse.click(box["x"] + 12, box["y"] + 35 + 35 + 17)  # the left edge of the second row, below the names
    expect(visit.box("Expert")).to_have_value(number)
    visit.click(visit.main.get_by_role("radio", name="Turn it"))
    swap = visit.main.get_by_role("spinbutton", name="Put this expert in its place")
    swap.fill("7")
    swap.press("Enter")
    expect(visit.page.locator(".st-key-exp_effects")).to_contain_text("replaced by 7")
    visit.settled()
    assert all(part in visit.page.url for part in (f"expert={number}", "exp_part=Turn+it", "exp_swap=7"))


@pytest.mark.opens(f"/results?{PLANTED}&res_data=planted")
def test_a_list_shows_what_is_chosen_where_other_data_offer_other_names(visit: Any) -> None:
    """By the address of a page that is Evidence now."""
    for interests, ours in ((64, "ELASTIC, K = 16², k = 4"), (16, "ELASTIC, K = 8², k = 8")):
        visit.choose("res_data", f"Made-up world ({interests} interests)")
        visit.says(f"{ours.partition(',')[0]} is better than")
        expect(visit.page.locator(".st-key-res_ours input")).to_have_value(ours)
        expect(visit.page.locator(".st-key-res_system input")).to_have_value(CONTROL)


@pytest.mark.opens(f"/experts?{PLANTED}")
def test_a_pass_over_everybody_goes_on_whatever_is_clicked_and_shows_what_it_found(visit: Any) -> None:
    visit.press("Remove each and measure")
    visit.says("Removing every expert from its people")
    before = visit.main.get_by_role("heading", level=1).inner_text()
    visit.press("Next expert")
    expect(visit.main.get_by_role("heading", level=1)).not_to_have_text(before)
    expect(visit.page.get_by_role("button", name="Remove each and measure")).to_have_count(0)  # it is measured
    visit.settled()
    visit.press("How sure?")
    expect(visit.page.get_by_test_id("stPopoverBody")).to_contain_text("Luck alone would give up to")
    expect(visit.page.get_by_role("button", name="Cancel")).to_have_count(0)
