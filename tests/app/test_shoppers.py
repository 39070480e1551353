"""Real shoppers on Start: a household, experts by names that hold for others, its whole next basket, and a list of one's own."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import healthy, html, press
from driving import said as text_of
from streamlit.testing.v1 import AppTest
from test_start import strip

from elastic_core.data import load
from elastic_core.run_config import DataConfig
from elastic_core.runs import list_runs
from pages.layout import sidebar, world_switch
from pages.layout.world_switch import FILMS, MADE_UP, PAPER, SHOPPERS

RUN = "groceries-elastic-slots"
SHIPPED = Path(__file__).parents[2] / "checkpoints" / "demo" / RUN


@pytest.fixture
def shop(opened: Callable[..., AppTest], app_runs: Path) -> AppTest:
    shutil.copytree(SHIPPED, app_runs / RUN)
    return opened(run=RUN)


def test_they_stand_first_in_the_switch() -> None:
    shipped = sorted(list_runs(SHIPPED.parent), key=sidebar.run_preference)
    runs = {run.name: run for run in shipped}
    assert list(world_switch.offered_worlds(runs, shipped[0])) == [SHOPPERS, MADE_UP, FILMS, PAPER]
    assert world_switch.describe_world(SHOPPERS, runs[RUN], load(runs[RUN].config.data)).startswith(
        "**2,404 households, a year of groceries**"
    )


def test_a_household_its_experts_by_name_and_its_next_basket(shop: AppTest) -> None:
    text, data = text_of(shop), load(DataConfig(source="groceries"))
    drawn, household = strip(shop), int(shop.number_input(key="user").value) - 1
    n_read, n_next = data.readable_lengths()[household], len(data.next_items(household))
    assert f"Household **{household + 1}** bought **{n_read:,}** products; the model guesses the **{n_next}** in its" in text
    journey = text_of(healthy(shop.switch_page("journey/page.py").run()))
    assert f"Household **{household + 1}** bought **{n_read:,}** products, and **{n_next}** in the next basket" in journey
    names = [expert["name"] for expert in drawn["experts"] if expert["name"]]
    groups = {name for tags in data.catalog.genres or () for name in tags}
    assert len(set(names)) >= 3 and set(names) <= groups
    basket = set(data.next_items(household).tolist())
    assert {int(item["item"]) for item in drawn["list"] if item["gold"]} == basket & {int(item["item"]) for item in drawn["list"]}
    assert sum(item["gold"] for item in drawn["list"]) >= 3, "the example is a household of whose next basket much is guessed"


def test_the_first_button_moves_the_list(shop: AppTest) -> None:
    """Its expert is the one whose removal changes most; the largest box may change nothing."""
    before = strip(shop)
    after = strip(healthy(shop.button(key="start_silence").click().run()))
    assert sum(item["mark"] != "=" for item in after["list"][:10]) >= 3
    (quiet,) = [expert["id"] for expert in after["experts"] if expert["quiet"]]
    assert quiet == before["offered"] != max(before["experts"], key=lambda expert: expert["part"])["id"]


def test_after_an_edit_the_guessed_part_of_the_basket_is_counted(shop: AppTest) -> None:
    """Not the rank of one of its products; and what leaves the list keeps its star."""
    before, app = strip(shop), press(shop, "Remove the last product")
    now, said = strip(app), app.info[0].value
    counts = (sum(row["gold"] for row in each["list"][:10]) for each in (before, now))
    assert "★ Of the ten suggestions, {} were in the next basket; now it is {}.".format(*counts) in said and "rank" not in said
    ten = {row["item"] for row in now["list"][:10]}
    lost = [row["name"] for row in before["list"][:10] if row["gold"] and row["item"] not in ten]
    assert [each["name"] for each in now["left"] if "★" in each["name"]] == [f"★ {name}" for name in lost] != []
    assert f"★ {lost[0]}" in said
    journey = healthy(app.switch_page("journey/page.py").run())
    assert said.split("★ ")[1] in journey.info[0].value
    assert not re.search(r"expert \d+ \(\d+%\)", html(journey)), "an expert beside every suggestion tells none from another"


def test_a_name_that_does_not_fit_this_household_is_told_apart(shop: AppTest) -> None:
    """Experts are named after everybody's slots: of one household's slot, often little is of the named type."""
    data, drawn = load(DataConfig(source="groceries")), strip(shop)
    genres = dict(zip(map(data.catalog.title, range(1, data.catalog.n_items + 1)), (data.catalog.genres or ())[1:], strict=True))
    checked = [expert for expert in drawn["experts"] if expert["name"] and expert["sub"]]
    assert {expert["fits"] for expert in checked} == {True, False}
    assert [text for mark, text in drawn["says"]["legend"] if mark == "other"] == ["The name fits this person less."]
    for expert in checked:
        held = re.sub(r", \w+ \d+ times$", "", expert["sub"].split("% of its slot: ", 1)[1])
        assert expert["fits"] or expert["name"] not in genres[held], "a name that does not fit, above an item that it fits"
        assert expert["fits"] or "comes from other people’s slots" in expert["votes"]


def test_enter_takes_the_product_that_was_typed(shop: AppTest) -> None:
    """Streamlit's box takes the first of its options that contain what was typed, and no button takes all of them."""
    box = shop.multiselect(key="start_yours_items")
    modes = box.proto.DESCRIPTOR.fields_by_name["filter_mode"].enum_type.values_by_name
    assert box.proto.filter_mode == modes["FILTER_MODE_CONTAINS"].number and box.proto.select_all == 0
    assert box.proto.max_selections == 5

    def first(typed: str) -> str:
        return next(title for title in box.options if typed in title.lower())

    assert [first(typed) for typed in ("banana", "milk", "newsp", "tea")] == ["Bananas", "Milk", "Newspapers", "Iced tea"]
    words = {word for title in box.options for word in re.findall(r"\w{3,}", title.lower())}
    within = [(word, first(word)) for word in words if not re.search(rf"\b{word}", first(word).lower())]
    assert not within, "whoever types a word means a title with that word"


def test_what_a_visitor_buys_is_read_in_the_household_s_place(shop: AppTest) -> None:
    catalog, before = load(DataConfig(source="groceries")).catalog, strip(shop)
    cats = [item for item in range(1, catalog.n_items + 1) if "cat food" in catalog.title(item).lower()][:5]
    assert len(cats) > 1
    after = strip(healthy(shop.multiselect(key="start_yours_items").set_value(cats).run()))
    assert not shop.info and not any(item["mark"] for item in after["list"]) and not after["left"], "compared with nobody's list"
    assert [event["name"] for event in after["events"] if not event["gone"]] == ["+ " + catalog.title(item) for item in cats]
    assert "Cat" in {expert["name"] for expert in after["experts"]}, "an expert of what cats need is among them"
    assert [item["name"] for item in after["list"]] != [item["name"] for item in before["list"]]
    press(shop, "Remove the last product")
    assert "**Without the last product:**" in shop.info[0].value and any(item["mark"] for item in strip(shop)["list"])
    assert [event["name"] for event in strip(press(shop, "Reset"))["events"]] == [event["name"] for event in before["events"]]
