"""The start page and the frame, through Streamlit's own test driver: what is shown, what breaks, what a bad address does."""

import io
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from driving import healthy, html, open_menu, press, said
from shipped import copy_stored
from streamlit.testing.v1 import AppTest

from elastic_core.commands import main
from elastic_core.data import Dataset, load
from elastic_core.run_config import DataConfig
from elastic_core.services.edits import Edit, Remove, Silence
from elastic_core.services.person.model_trace import strongest_expert
from elastic_core.services.person.prediction import Prediction, predict_user
from elastic_core.services.person.recommend import user_history
from pages.components import cache, page_context, user_cards

Open = Callable[..., AppTest]


def test_there_is_a_real_answer_before_any_click(opened: Open) -> None:
    app = opened()
    assert app.title[0].value.startswith("What does ELASTIC do")
    text = said(app)
    assert "with a few **experts**: learned vectors that all people share" in text
    assert "one query, which finds **4 of 64 experts**" in text
    assert "Each has a **slot** for the items that match it" in text
    drawn = strip(app)
    assert len(drawn["events"]) == 12 and len(drawn["list"]) >= 10 and sum(row["gold"] for row in drawn["list"]) == 1
    assert not app.warning
    run = " ".join(each.value for each in app.sidebar.caption)
    assert re.search(r"for \d+ of 100 people, the next item is among the ten suggestions", run)


def test_removing_events_and_undoing(opened: Open) -> None:
    app = press(opened(), "Remove the last item")
    assert "Without the last item:" in app.info[0].value and strip(app)["events"][-1]["gone"]
    app = press(app, "Remove the last item")
    assert "Without the last 2 items:" in app.info[0].value
    app = press(press(app, "Undo"), "Undo")
    assert not app.info and not any(event["gone"] for event in strip(app)["events"])


def test_silencing_until_one_expert_is_left(opened: Open) -> None:
    app = opened()
    for _ in range(3):
        app = silence(app)
    assert app.info[0].value.count(" and ") >= 2
    assert app.button(key="start_silence").disabled
    assert not press(app, "Reset").info


def silence(app: AppTest) -> AppTest:
    """The button names the expert that it takes away: one that is drawn, and whose removal moves the list."""
    button = app.button(key="start_silence")
    number = button.label.removeprefix("Remove expert ")
    assert strip(app)["offered"] == int(number) and number in {str(expert["id"]) for expert in strip(app)["experts"]}
    app = healthy(button.click().run())
    assert re.search(rf"expert .*\b{number}\b", app.info[0].value)
    return app


def strip(app: AppTest) -> dict[str, Any]:
    """What the strip draws."""
    (drawn,) = app.get("bidi_component")
    return dict(json.loads(drawn.proto.json))


def test_the_way_on_names_the_expert_that_it_opens(opened: Open) -> None:
    def named(app: AppTest) -> str:
        return next(link.proto.label for link in app.get("page_link") if "stand for" in link.proto.label)

    start = opened()
    other, now = strip(start)["experts"][3]["id"], start.session_state["shell_context"]
    strongest = strongest_expert(now.model, predict_user(now.model, now.dataset, now.user, keep_seen=True))
    assert named(silence(start)) == f"What does expert {strongest} stand for?", "whatever was edited"
    assert named(opened(expert=str(other))) == f"What does expert {other} stand for?"


def test_what_is_pointed_at_is_what_the_model_computed(opened: Open, app_runs: Path) -> None:
    """The strip holds the removals that a rerun would measure: of every expert and of every item."""
    app = opened(user="5")
    drawn, now = strip(app), app.session_state["shell_context"]

    def predicted(*edits: Edit) -> Prediction:
        return predict_user(now.model, now.dataset, 4, edits, keep_seen=True)

    start = predicted()
    chances = start.recommendation.chances
    assert [each["id"] for each in drawn["experts"]] == start.experts and len(drawn["events"]) == 12
    assert len(drawn["grid"]["drawn"]) == 64 and drawn["says"]["rest"].startswith("Point at anything")
    assert "all experts together make every suggestion" in drawn["says"]["rest"], "this model mixes its experts, and says so"
    assert drawn["says"]["experts"][1] == "%: part of all losses", "so a box is not an expert's part of the list"
    item = int(drawn["list"][0]["item"])
    for at, expert in enumerate(start.experts):
        times = predicted(Silence(expert)).recommendation.chances[item] / chances[item]
        assert drawn["list"][0]["without"][at] == pytest.approx(times, rel=1e-3)
    for at, event in ((3, drawn["events"][3]), (11, drawn["events"][11])):
        without = predicted(Remove(event["place"], event["place"])).recommendation
        assert drawn["list"][0]["missing"][at] == pytest.approx(without.chances[item] / chances[item], rel=1e-3)


def test_any_item_can_be_taken_away_and_the_list_says_what_moved(opened: Open) -> None:
    place = strip(opened(user="5"))["events"][4]["place"]
    app = opened(user="5", edits=f"-{place}")
    drawn = strip(app)
    assert [event["gone"] for event in drawn["events"]] == [at == 4 for at in range(12)]
    assert {row["mark"] for row in drawn["list"]} - {"="} and app.info[0].value.startswith(
        f"**Without {drawn['events'][4]['name']}"
    )
    came = sum(row["mark"].startswith("new") for row in drawn["list"])
    assert came == len(drawn["left"])
    assert not press(app, "Undo").info


def test_another_person_starts_unbroken(opened: Open) -> None:
    app = press(opened(), "Remove the last item")
    app = healthy(app.number_input(key="user").set_value(5).run())
    assert not app.info and "of person **5**" in said(app)
    link = open_menu(app).code[0].value
    assert "user=5" in link and "run=tiny" in link
    press(app, "Surprise me")


def test_doubt_waits_until_it_is_asked_for(opened: Open) -> None:
    """An act beside the same on others, and how often such a list is right."""
    app = press(opened(user="5"), "Remove the last item")
    assert "each of" not in html(app) and "95%" not in said(app)
    app.session_state["start_sure"] = True
    app = healthy(app.run())
    assert re.search(r"Without .*\d+ other items \(median and range\)", html(app)) and "is among the ten" in said(app)
    assert "No model was trained with personal and with shared experts on the same data." in said(app)
    app = silence(app)
    assert re.search(r"Without expert \d+.*3 other experts \(median and range\)", html(app))


def test_what_a_visitor_likes_is_read_in_the_person_s_place_and_undone_at_once(opened: Open) -> None:
    """One box in every world; its list is the address's, so that a link has it."""
    app = opened(user="5")
    before, box = strip(app), app.multiselect(key="start_yours_items")
    assert not box.value and "Or type three hobbies that you like" in box.label and len(box.options) == 60
    app = healthy(box.set_value([7, 8, 9]).run())
    catalog = app.session_state["shell_context"].dataset.catalog
    assert [event["name"] for event in strip(app)["events"]] == [f"+ {catalog.title(item)}" for item in (7, 8, 9)]
    assert "your 3 items" in said(app) and not any(row["gold"] for row in strip(app)["list"]), "nobody knows what comes next"
    app = healthy(app.multiselect(key="start_yours_items").set_value([7, 8]).run())
    assert len(strip(app)["events"]) == 2 and strip(app)["says"]["history"][1] == "oldest first"
    n_own = app.session_state["shell_context"].dataset.readable_lengths()[4]
    again = opened(user="5", edits=f"+7.8,-1..{n_own}")
    assert strip(again)["list"] == strip(app)["list"] and again.multiselect(key="start_yours_items").value == [7, 8]
    app = press(app, "Undo")
    assert not app.multiselect(key="start_yours_items").value and strip(app)["events"] == before["events"]


def test_what_is_pressed_opens_in_place_with_the_numbers_of_the_picture(opened: Open) -> None:
    app = opened(user="5")
    drawn = strip(app)
    item, event, expert = drawn["list"][0], drawn["events"][-1], drawn["experts"][0]
    for address, title, heads in (
        (f"event-{event['place']}", event["name"], ("Which slots hold it?", "What changes without it?")),
        (f"item-{item['item']}", f"1. {item['name']}", ("Which items make it more likely?", "Which experts matter for it?")),
        (
            f"expert-{expert['id']}",
            f"Expert {expert['id']}",
            ("What does it stand for?", "Who uses it?", "What changes without it?"),
        ),
    ):
        app = opened(user="5", details=address)
        assert strip(app)["opened"] == address and any(each.value.startswith(title) for each in app.subheader), address
        assert all(head in said(app) for head in heads), address
    measured = [row["without"][0] for row in drawn["list"] if row["without"][0] is not None]  # the true next item may stand below
    fall = 1 - min(measured)
    assert fall < 0.01 or f"−{fall:.0%}" in html(app)
    app = press(app, "Remove it")
    assert f"Without expert {expert['id']}:" in app.info[0].value and strip(app)["experts"][0]["quiet"]
    for address in ("expert-64", "event-999", "item-0", "event-", "x", "expert-1e3"):
        assert strip(opened(user="5", details=address))["opened"] == "", address


def test_details_close_and_do_not_follow_to_another_person(opened: Open) -> None:
    app = opened(user="5", details="expert-3")
    assert any(each.value.startswith("Expert 3") for each in app.subheader)
    other = healthy(app.number_input(key="user").set_value(6).run())
    assert not other.subheader and strip(other)["opened"] == ""
    app = press(opened(user="5", details="expert-3"), "Close")
    assert strip(app)["opened"] == ""


def test_an_event_opens_in_full_on_journey_where_its_influence_is(opened: Open) -> None:
    event = strip(opened(user="5"))["events"][-1]["place"]
    app = press(opened(user="5", details=f"event-{event}"), "Open in full")
    assert app.segmented_control(key="jrn_part").value == "What matters?"
    assert app.segmented_control(key="jrn_for").value == "the top suggestion"


def test_a_held_person_is_nobody_s_to_change(opened: Open) -> None:
    app = opened(user="5", lock="user", expert="5")
    assert app.text_input(key="find_who").disabled
    assert next(button for button in app.button if button.label == "Surprise me").disabled
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(st, "session_state", {"lock_held": ("user",), "user": 5})
        page_context.select_user(2)
        assert st.session_state["user"] == 5


def test_surprise_is_somebody_else(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(user="5")
    monkeypatch.setattr(page_context.random, "randrange", lambda many: 4)  # the person who is there already
    assert press(app, "Surprise me").number_input(key="user").value == 6


def test_where_people_choose_again_the_data_decide_and_people_may_say_otherwise(opened: Open) -> None:
    app = opened(user="5")
    again = re.search(r"(\d+) of 80 people", app.segmented_control(key="start_ranked").help)
    assert again and int(again[1]) >= 8 and app.segmented_control(key="start_ranked").value == user_cards.ALL_ITEMS
    assert "Chosen from all 60 items." in said(app)
    healthy(app.segmented_control(key="start_ranked").set_value(user_cards.UNSEEN_ITEMS).run())
    assert "do not compare these ranks" in said(app) and "items that this person has not chosen" in said(app)
    data = app.session_state["shell_context"].dataset
    seen = {user_history(data, user).next_is_seen: user for user in range(20)}
    assert len(seen) == 2
    for is_seen, user in seen.items():
        app = opened(user=str(user + 1), start_ranked=user_cards.UNSEEN_ITEMS)
        assert ("★ is not new to this person" in said(app)) == is_seen


def test_a_model_without_memory_is_shown_without_a_grid(opened: Open) -> None:
    app = opened(run="tiny-peer")
    assert app.selectbox(key="run").value == "tiny-peer"
    assert "has no memory of experts" in said(app) and not strip(app)["experts"] and strip(app)["grid"] is None
    press(app, "Remove the last item")


@pytest.mark.parametrize("user", ["0", "81", "abc", "[x](http://x)"])
def test_a_bad_person_in_the_address_is_replaced_and_said(opened: Open, user: str) -> None:
    app = opened(user=user)
    assert "There is no person" in app.warning[0].value
    assert f"`{user}`" in app.warning[0].value  # as code, so that nothing in it turns into a link
    healthy(app.number_input(key="user").set_value(4).run())
    assert not app.warning


@pytest.mark.parametrize("run", ["gone", "![x](http://x)", ""])
def test_a_bad_run_in_the_address_is_replaced_and_said(opened: Open, run: str) -> None:
    app = opened(run=run)
    assert app.selectbox(key="run").value == "tiny"
    if run:
        assert f"There is no run called `{run}`" in app.warning[0].value


def test_a_run_whose_weights_did_not_come_along_says_how_to_make_it_again(app_runs: Path, opened: Open) -> None:
    copy_stored(app_runs, "ml-100k-fpmc-seed1")
    app = opened(run="ml-100k-fpmc-seed1")
    assert app.selectbox(key="run").value == "tiny"
    assert "`elastic reproduce --only ml-100k-fpmc-seed1` trains it again" in app.warning[0].value


def test_data_that_cannot_be_had_is_said_once(opened: Open, app_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    lost = app_runs / "lost"
    shutil.copytree(app_runs / "tiny", lost)
    text = (lost / "config.json").read_text().replace('"source": "planted"', '"source": "/nowhere/at-all.csv"')
    (lost / "config.json").write_text(text)

    def loud(config: DataConfig) -> Dataset:
        asked.append(str(config))
        return load(config)

    monkeypatch.setattr(cache, "load", loud)
    try:
        app = opened(run="lost")
        assert "cannot be shown" in app.warning[0].value and app.selectbox(key="run").value == "tiny"
        healthy(app.run())
        opened(run="lost")
        assert sum("nowhere" in config for config in asked) == 1
    finally:
        shutil.rmtree(lost)


def test_no_run_at_all_is_a_sentence(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_context, "RUNS", tmp_path)
    app = opened()
    assert "No trained run" in said(app)


def test_a_finished_run_appears_and_can_be_chosen(opened: Open, app_runs: Path) -> None:
    app = opened()
    new = app_runs / "local-new"
    shutil.copytree(app_runs / "tiny", new)
    try:
        app.session_state[page_context.WANTED] = "local-new"
        healthy(app.run())
        assert app.selectbox(key="run").value == "local-new"
    finally:
        shutil.rmtree(new)
    healthy(app.run())
    assert app.selectbox(key="run").value == "tiny" and "no run called" in app.warning[0].value


def test_reproduce_gives_what_the_screen_shows(
    opened: Open, app_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what was edited, and with items that the person has met where these are ranked."""
    monkeypatch.chdir(app_runs)
    shown = set[str]()
    edited = ({}, {"edits": "-5,x3*2"}, {"edits": "-5..7,x3,x7"}, {"edits": "+7.8,-5"})
    for address in (*edited, {"start_ranked": "everything"}, {"start_ranked": "what is new to them"}):
        app = opened("", run="tiny", user="4", **address)
        command = next(block.value for block in open_menu(app).code if block.language == "bash")
        assert main([*shlex.split(command)[1:], "--csv"]) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out))
        assert table["item"].tolist() == app.session_state["view_tables"]["suggestions"]["item"].tolist(), command
        shown.add(command)
    assert len(shown) >= 4, "else the acts above say nothing"
