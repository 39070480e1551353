"""The tour: every stop opens its page, takes a bet and answers with something measured; it can be left, resumed and linked."""

from collections.abc import Callable
from pathlib import Path

import pytest
from driving import healthy, press, said
from streamlit.testing.v1 import AppTest

from elastic_core.data import Dataset
from elastic_core.runs import Run
from elastic_core.services.person.inspect import item_words
from pages.tour.steps import FIRST_LESSON, STEPS, stop_label

Open = Callable[..., AppTest]
ROOT = Path(__file__).resolve().parents[2]
UNMEASURED = {6: "no votes to count", 11: "No measurement came", 12: "only one seed"}  # with these two runs
ACTS = {
    2: ("keys_step", "Weigh"), 3: ("expert", 5), 4: ("jrn_dispatched_30", 4), 5: ("res_protocol", "pop100"),
    6: ("keys_event", "1"), 7: ("keys_gate", False), 9: ("trf_measure", "gate"), 10: ("expert", 5),
    11: ("spd_part", "One new event"), 12: ("train_time", "30 s"), 13: ("exp_swap", 7),
}  # fmt: skip


@pytest.mark.parametrize("stop", range(1, len(STEPS) + 1), ids=[step.title for step in STEPS])
def test_every_stop_takes_a_bet_and_measures_the_answer(opened: Open, stop: int, small_world: Dataset) -> None:
    step = STEPS[stop - 1].with_item_words(item_words(small_world))
    assert (ROOT / "pages" / step.page).is_file() and len(step.options) >= 2
    app = opened(run="tiny", user="3", tour=str(stop))
    assert f"{stop_label(stop)}: {step.title}" in said(app) and step.task not in said(app), "first the bet"
    app = healthy(app.radio(key=f"tour_bet_{stop}").set_value(step.options[0]).run())
    assert step.task in said(app) and ":material/radio_button_unchecked:" in said(app)
    assert f"You said: **{step.options[0]}**" in said(app) and not app.success, "first the act"
    told = [block.value for block in [*press(app, "Show the answer").success, *app.info]]
    answers = [text for text in told if text.startswith(("Right.", "Your bet was"))]
    if stop in UNMEASURED:
        assert not answers and any(UNMEASURED[stop] in text for text in told), "no bet is right where nothing was measured"
    else:
        assert len(answers) == 1 and (any(c.isdigit() for c in answers[0]) or "exactly zero" in answers[0])
    if stop in ACTS:
        for key, value in ((("keys_query", "This person"),) if stop == 2 else ()) + (ACTS[stop],):
            app.session_state[key] = value
    else:
        press(app, "Remove the last item")
    assert ":material/check_circle:" in said(healthy(app.run())), "a task is ticked by its act"


def test_the_bet_on_two_models_is_about_the_pair_of_the_page(opened: Open, app_runs: Path) -> None:
    app = opened(run="tiny", tour="5")
    (bet,) = (radio.label for radio in app.radio if radio.key == "tour_bet_5")
    assert "Is **ELASTIC** better than **SASRec**" in bet, "the page is blurred, so the question names both"
    app = healthy(app.radio(key="tour_bet_5").set_value(STEPS[4].options[0]).run())
    app = press(app, "Show the answer")
    assert "SASRec" in app.selectbox(key="res_system").value and app.selectbox(key="res_protocol").value == "full-seen"
    (told,) = (block.value for block in [*app.success, *app.info] if block.value.startswith(("Right.", "Your bet was")))
    means = [Run(app_runs / name).report().metrics["full-seen"]["NDCG@10"] for name in ("tiny", "tiny-peer")]
    assert "**We cannot tell**. Trained once, so it may be luck" in told.replace("\\", "") and len(app.metric) == 3, "no p"
    assert f"is {means[0]:.4f} and {means[1]:.4f}, the difference" in told
    assert [metric.value for metric in app.metric][:2] == [f"{mean:.4f}" for mean in means]


def test_it_is_walked_left_and_taken_up_again(opened: Open) -> None:
    app = opened(run="tiny")
    healthy(app.button(key="tour_begin").click().run())
    for stop in (2, 3, 4, 5):
        for _ in range(2):  # from the bet to the act, and on
            healthy(app.button(key="tour_next").click().run())
        assert f"Tour, {stop} of" in said(app)
    assert app.session_state["ev_depth"] == "Systems"
    healthy(app.button(key="tour_leave").click().run())
    assert "Tour, 5 of" not in said(app) and app.button(key="tour_begin").label == "Go on: Tour, 5 of 5"
    healthy(app.button(key="tour_begin").click().run())
    assert "Tour, 5 of" in said(app)


def test_what_was_edited_before_the_tour_is_back_after_it(opened: Open) -> None:
    app = press(opened(run="tiny", user="5"), "Remove the last item")
    edited = app.query_params["edits"]
    healthy(app.button(key="tour_begin").click().run())
    assert "edits" not in app.query_params, "a stop begins with the whole history"
    press(press(app, "Remove the last item"), "Remove the last item")
    healthy(app.button(key="tour_leave").click().run())
    assert app.query_params["edits"] == edited and "Tour, 1 of" not in said(app)


@pytest.mark.parametrize("asked", ["0", "99", "x"])
def test_a_stop_that_is_not_there_is_no_tour(opened: Open, asked: str) -> None:
    assert "Tour, " not in said(opened(tour=asked))


def test_a_run_without_memory_says_what_it_cannot_answer(opened: Open) -> None:
    app = opened(run="tiny-peer", tour="3")
    app = press(healthy(app.radio(key="tour_bet_3").set_value(STEPS[2].options[0]).run()), "Show the answer")
    assert "Only a run with experts can answer this" in said(app)


def test_a_link_to_a_step_within_a_stop_opens_that_step(opened: Open) -> None:
    app = opened(run="tiny", tour="2", keys_step="Pair")
    assert f"Tour, 2 of {FIRST_LESSON}" in said(app) and app.session_state["keys_step"] == "Pair"
    assert app.query_params["keys_step"] == "Pair" and app.query_params["tour"] == "2"
    app = healthy(app.button(key="tour_back").click().run())
    app = press(app, "Skip the bet")
    assert any(block.value.startswith("Answer: **") for block in app.info), "who skips a bet learns the answer, too"
    app = press(press(app, "Next stop"), "Skip the bet")
    assert app.session_state["keys_step"] == "Split", "who walks here gets what the stop is set to"


def test_bets_are_kept_and_counted_at_the_end(opened: Open) -> None:
    app = opened(run="tiny", user="3", tour="2")
    right, wrong = STEPS[1].options[1], STEPS[3].options[0]
    app = healthy(app.radio(key="tour_bet_2").set_value(right).run())
    app = press(press(press(app, "Next stop"), "Skip the bet"), "Next stop")
    app = healthy(app.radio(key="tour_bet_4").set_value(wrong).run())
    app = press(app, "Back")
    assert app.radio(key="tour_bet_4").value == wrong
    app = press(press(press(press(app, "Skip the bet"), "Next stop"), "Skip the bet"), "See your bets")
    assert "**1 of 2** bets were right" in said(app) and app.query_params["tour"] == str(len(STEPS) + 1)
    marks = {button.key: (button.icon, button.help) for button in app.button if str(button.key).startswith("tour_to_")}
    assert len(marks) == FIRST_LESSON and "check" in marks["tour_to_2"][0] and "close" in marks["tour_to_4"][0]
    assert STEPS[3].options[1] in marks["tour_to_4"][1] and marks["tour_to_5"][1] == "no bet"
    app = press(app, f"Second lesson: {len(STEPS) - FIRST_LESSON} stops")
    assert f"{stop_label(6)}: {STEPS[5].title}" in said(app) and app.query_params["tour"] == "6"
    app.session_state["tour_at"] = len(STEPS)
    app = press(press(healthy(app.run()), "Skip the bet"), "See your bets")
    assert len([button for button in app.button if str(button.key).startswith("tour_to_")]) == len(STEPS)
    assert "Tour, " not in said(press(app, "Finish"))
    assert app.button(key="tour_begin").label == "Tour: 5 stops", "a tour that was finished begins anew"
