"""The start page and the frame, through Streamlit's own test driver: what is shown, what breaks, what a bad address does."""

import io
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st
from driving import healthy, html, press, said
from streamlit.testing.v1 import AppTest

from elastic_core.commands import main
from elastic_core.data import load
from elastic_core.services.experts import overview
from pages.frame import shell
from pages.kit import cache, person

Open = Callable[..., AppTest]


def test_there_is_a_real_answer_before_any_click(opened: Open) -> None:
    app = opened()
    assert app.title[0].value.startswith("What does ELASTIC do")
    assert "The **4 of 64 interest experts** that fit it best are used to rank all" in said(app)
    assert html(app).count("<li") >= 22  # twelve of the history, ten suggestions
    assert "★ chose next" in html(app)
    assert not app.warning


def test_removing_events_and_undoing(opened: Open) -> None:
    app = press(opened(), "Remove the last item")
    assert "Without the last item:" in app.info[0].value and "line-through" in html(app)
    app = press(app, "Remove the last item")
    assert "Without the last 2 items:" in app.info[0].value
    app = press(press(app, "Undo"), "Undo")
    assert not app.info and "line-through" not in html(app)


def test_silencing_until_one_expert_is_left(opened: Open) -> None:
    app = opened()
    for _ in range(3):
        app = press(app, "Silence the strongest expert")
    assert app.info[0].value.count(" and ") >= 2
    assert next(button for button in app.button if button.label == "Silence the strongest expert").disabled
    assert not press(app, "Reset").info


def test_the_way_on_names_the_expert_that_it_opens(opened: Open) -> None:
    strongest, other = (int(opened().selectbox(key="grid_expert").options[place].split()[1]) for place in (0, 3))
    assert f"What does expert {strongest} stand for?" in said(press(opened(), "Silence the strongest expert"))
    assert f"What does expert {other} stand for?" in said(opened(expert=str(other)))


def test_another_person_starts_unbroken(opened: Open) -> None:
    app = press(opened(), "Remove the last item")
    app = healthy(app.number_input(key="user").set_value(5).run())
    assert not app.info and "Person **5**" in said(app)
    assert "user=5" in app.code[0].value and "run=tiny" in app.code[0].value
    press(app, "Surprise me")


def test_every_expert_can_be_looked_at(opened: Open) -> None:
    app = opened()
    box = app.selectbox(key="grid_expert")
    for expert in (int(box.options[0].split()[1]), int(box.options[-1].split()[1])):
        healthy(app.selectbox(key="grid_expert").set_value(expert).run())
    assert "Not retrieved here" in said(app)


def test_it_says_whose_each_retrieved_expert_is_and_leads_to_its_page(opened: Open) -> None:
    app = opened()
    numbers = [button for button in app.button if str(button.key).startswith("open_expert_")]
    assert len(numbers) == 4 and any(word in said(app) for word in ("**Hot**", "**Usual**", "**Cold**"))
    chosen = int(numbers[-1].label.split()[0])
    healthy(numbers[-1].click().run())
    assert f"expert {chosen} stand for" in app.title[0].value and app.number_input(key="expert").value == chosen


def test_it_says_what_an_expert_stands_for_or_that_it_stands_for_nothing(opened: Open, app_runs: Path) -> None:
    """As the Experts page does, from the same people; chips carry a genre only where it is beyond chance."""
    app = opened()
    run = next(run for run in cache.runs(app_runs) if run.name == "tiny")
    data = load(run.config.data)
    model = run.model(data)
    label = overview.survey(model, data, cache.traffic(run, model, data)).of_people.label
    for expert in (0, int(cache.traffic(run, model, data).load.argmax()), 27):
        app.selectbox(key="grid_expert").set_value(expert).run()
        known = label(expert)
        if not known.genres:  # too few people
            assert "Stands for" not in said(app)
            continue
        line = "Stands for no genre" if known.weak else f"Stands for {known.text}"
        assert line in said(app) and f"{known.low:.1f} to {known.high:.1f}" in said(app)
    chips = [button.label for button in app.button if (button.key or "").startswith("open_expert_")]
    for chip in chips:
        number, _, genre = chip.partition(" ")
        assert genre == ("" if label(int(number)).weak else label(int(number)).genres[0])


def test_people_are_found_by_title(opened: Open) -> None:
    app = opened()
    app = healthy(app.text_input(key="find_who").set_value("no such thing at all").run())
    assert "No id and no title here has" in said(app)
    app = healthy(app.text_input(key="find_who").set_value("jazz 1").run())
    found = [button for button in app.button if str(button.key).startswith("find_who_")]
    assert found
    healthy(found[0].click().run())
    assert app.number_input(key="user").value == int(found[0].label.split()[1])


def test_an_act_stands_beside_the_same_on_others_and_what_left_beside_what_came(opened: Open) -> None:
    app = opened(user="5")
    assert "other items" not in html(app) and "first listed genre" in html(app) and re.search(r"</span>\w+</li></ul>", html(app))
    app = press(app, "Remove the last item")
    assert re.search(r"Beside chance: without .*\d+ other items", html(app))
    left, came = html(app).count("out, now"), html(app).count("new, was")
    assert left == came and f"({left})" * bool(left) in said(app)
    app = press(app, "Silence the strongest expert")
    assert re.search(r"Beside chance: without expert \d+.*3 other experts", html(app))


def test_a_held_person_is_nobody_s_to_change(opened: Open) -> None:
    app = opened(user="5", lock="user", expert="5")
    assert app.text_input(key="find_who").disabled
    found = [button for button in app.button if str(button.key).startswith(("find_", "grid_meet_"))]
    assert found and all(button.disabled for button in found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(st, "session_state", {"lock_held": ("user",), "user": 5})
        shell.meet(2)
        assert st.session_state["user"] == 5


def test_what_was_removed_goes_along_to_journey(opened: Open) -> None:
    app = press(press(opened(user="5"), "Remove the last item"), "Remove the last item")
    app = press(app, "Silence the strongest expert")
    app = healthy(app.switch_page("journey/page.py").run())
    assert "removed 2 events" in app.selectbox(key="jrn_version").options[1] and "line-through" in html(app)
    assert "here all are heard" in app.warning[0].value
    app = healthy(press(app, "Undo").run())
    assert not app.info and not app.warning  # taken once


def test_one_person_s_edits_follow_from_journey_to_start_and_back(opened: Open) -> None:
    """What was taken off the end is the same edit on both screens; of any other Start says so, and does not touch it."""
    app = press(press(opened("journey/page.py", user="5"), "Remove the last item"), "Remove the last item")
    app = healthy(app.switch_page("start/page.py").run())
    assert "Without the last 2 items" in app.info[0].value and "tiny~5~r.r" in app.query_params["edits"]
    app = healthy(press(app, "Undo").switch_page("journey/page.py").run())
    assert app.text_input(key="jrn_edits").value.endswith("~c1")  # the version with one event less
    app = healthy(press(app, "Undo").switch_page("start/page.py").run())
    assert not app.info and "edits" not in app.query_params
    app = healthy(app.switch_page("journey/page.py").run())
    app = press(app, "Start from nothing")
    app = healthy(app.switch_page("start/page.py").run())
    assert "Edited otherwise" in said(app) and not app.info
    app = healthy(app.switch_page("journey/page.py").run())
    assert "Nothing has been read yet" in said(app)  # Start did not undo it
    app = healthy(app.number_input(key="user").set_value(6).run())
    assert "Edited otherwise" not in said(healthy(app.switch_page("start/page.py").run()))


def test_where_people_choose_again_the_data_decide_and_people_may_say_otherwise(opened: Open) -> None:
    app = opened(user="5")
    again = re.search(r"(\d+) of 80 people", said(app))
    assert again and int(again[1]) >= 8 and app.segmented_control(key="start_ranked").value == person.EVERYTHING
    assert "Chosen from all 60 items." in said(app)
    healthy(app.segmented_control(key="start_ranked").set_value(person.UNMET).run())
    assert "flatters its rank" in said(app) and "items that this person has not chosen" in said(app)


def test_a_model_without_memory_is_shown_without_a_grid(opened: Open) -> None:
    app = opened(run="tiny-peer")
    assert app.selectbox(key="run").value == "tiny-peer"
    assert "no memory" in said(app) and "★ chose next" in html(app)
    press(app, "Remove the last item")


@pytest.mark.parametrize("user", ["0", "81", "-3", "1e3", "abc", "<script>", "[x](http://x)", "999999999999999999999"])
def test_a_bad_person_in_the_address_is_replaced_and_said(opened: Open, user: str) -> None:
    app = opened(user=user)
    assert "There is no person" in app.warning[0].value
    assert f"`{user}`" in app.warning[0].value  # as code, so that nothing in it turns into a link
    healthy(app.number_input(key="user").set_value(4).run())
    assert not app.warning


@pytest.mark.parametrize("run", ["gone", "../tiny", "/etc", "![x](http://x)", ""])
def test_a_bad_run_in_the_address_is_replaced_and_said(opened: Open, run: str) -> None:
    app = opened(run=run)
    assert app.selectbox(key="run").value == "tiny"
    if run:
        assert f"There is no run called `{run}`" in app.warning[0].value


@pytest.mark.parametrize(
    ("file", "text"), [("config.json", "{"), ("config.json", "[]"), ("model.safetensors", "x"), ("items.csv", "id,raw\n1,7\n")]
)
def test_a_broken_run_is_one_sentence_and_another_run(opened: Open, app_runs: Path, file: str, text: str) -> None:
    broken = app_runs / "a-broken"
    shutil.copytree(app_runs / "tiny", broken)
    try:
        (broken / file).write_text(text)
        app = opened(run="a-broken")
        assert "a\\-broken" in app.warning[0].value or "a-broken" in app.warning[0].value
        assert app.selectbox(key="run").value != "a-broken"
    finally:
        shutil.rmtree(broken)


def test_data_that_cannot_be_had_is_said_once(opened: Open, app_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    lost = app_runs / "lost"
    shutil.copytree(app_runs / "tiny", lost)
    text = (lost / "config.json").read_text().replace('"source": "planted"', '"source": "/nowhere/at-all.csv"')
    (lost / "config.json").write_text(text)

    def loud(config: object, tell: object) -> object:
        asked.append(str(config))
        return load(config, tell)  # type: ignore[arg-type]

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
    monkeypatch.setattr(shell, "RUNS", tmp_path)
    app = opened()
    assert "No trained run" in said(app)


def test_a_finished_run_appears_and_can_be_chosen(opened: Open, app_runs: Path) -> None:
    app = opened()
    new = app_runs / "local-new"
    shutil.copytree(app_runs / "tiny", new)
    try:
        app.session_state[shell.WANTED] = "local-new"
        healthy(app.run())
        assert app.selectbox(key="run").value == "local-new"
    finally:
        shutil.rmtree(new)
    healthy(app.run())
    assert app.selectbox(key="run").value == "tiny" and "no run called" in app.warning[0].value


def test_reproduce_gives_what_the_screen_shows(
    opened: Open, app_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what was removed and silenced, and with items that the person has met where these are ranked."""
    monkeypatch.chdir(app_runs)
    shown = set[str]()
    edited = ({}, {"edits": "tiny~4~r.r"}, {"edits": "tiny~4~r.3.7"})
    for address in (*edited, {"start_ranked": "everything"}, {"start_ranked": "what is new to them"}):
        app = opened("", run="tiny", user="4", **address)
        command = next(block.value for block in app.code if block.language == "bash")
        assert main([*shlex.split(command)[3:], "--csv"]) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out))
        assert table["item"].tolist() == app.session_state["view_tables"]["suggestions"]["item"].tolist(), command
        shown.add(command)
    assert len(shown) >= 4, "else the acts above say nothing"
