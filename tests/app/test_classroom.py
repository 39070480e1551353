"""A class in the app: bets of two visitors counted together, the answer when the teacher shows it, and what a link gives away."""

import re
from collections.abc import Callable

import pytest
import segno
from driving import healthy, html, open_menu, press, said
from streamlit.testing.v1 import AppTest

from elastic_core.data import Dataset
from elastic_core.services.keys import search
from elastic_core.services.person.inspect import item_words
from elastic_core.services.tour import classes, invitation
from pages.components import presenter_mode
from pages.keys import steps
from pages.tour import lesson, worksheet
from pages.tour.steps import STEPS

Open = Callable[..., AppTest]


def test_the_answer_comes_when_the_teacher_shows_it(opened: Open) -> None:
    key = classes.new_key()
    code = classes.new_class_code(key)
    teacher = opened(run="tiny", user="3", tour="1", teach=key)
    pupil = opened(run="tiny", user="3", tour="1", **{"class": code.lower()})
    pupil = healthy(pupil.radio(key="tour_bet_1").set_value(STEPS[0].options[1]).run())
    assert f"1 bet in class {code}" in said(pupil) and "when your teacher shows it" in said(pupil)
    assert not [block for block in [*pupil.success, *pupil.info] if block.value.startswith(("Right.", "Your bet was"))]
    assert not [button for button in pupil.button if button.key == "class_release"]
    healthy(teacher.run())
    assert f"1 bet in class {code}." in said(teacher) and "Bets in class" not in html(teacher), "a projector shows it to all"
    healthy(teacher.button(key="class_release").click().run())
    assert re.search(rf"Bets in class {code}.*{STEPS[0].options[1]}</th>[^/]*/div></td><td[^>]*>1</td>", html(teacher))
    assert [block for block in teacher.info if block.value.startswith("Answer:")]
    healthy(pupil.run())
    assert [block for block in [*pupil.success, *pupil.info] if block.value.startswith(("Right.", "Your bet was"))]
    press(press(teacher, "Skip the bet"), "Next stop")
    healthy(pupil.run())
    assert "Tour, 2 of" in said(press(pupil, "Your teacher is at stop 2"))


def test_no_link_gives_the_key_away(opened: Open) -> None:
    key = classes.new_key()
    app = opened("experts/page.py", run="tiny", teach=key, present="true")
    links = [block.value for block in open_menu(app).code if block.value.startswith("http") or "?" in block.value]
    assert links and not any(key in link or "present" in link for link in links)
    assert any(f"class={classes.new_class_code(key)}" in link for link in links)


def test_a_link_that_locks_leads_into_the_class_and_a_pupil_cannot_press_it_away(opened: Open) -> None:
    key = classes.new_key()
    code = classes.new_class_code(key)
    teacher = open_menu(opened(run="tiny", user="3", teach=key))
    healthy(teacher.multiselect(key="lock_chosen").set_value(["user"]).run())
    link = teacher.code[-1].value
    assert f"class={code}" in link and "lock=user" in link and key not in link
    pupil = open_menu(opened(run="tiny", user="3", lock="user", **{"class": code}))
    offered = {button.label for button in pupil.button}
    assert pupil.number_input(key="user").disabled and not {"Release", "Plan and answers"} & offered
    assert pupil.multiselect(key="start_yours_items").disabled, "a list of one's own would be another person"


def test_a_bet_whose_answer_was_shown_is_over(opened: Open) -> None:
    key = classes.new_key()
    pupil = opened(run="tiny", user="3", tour="1", **{"class": classes.new_class_code(key)})
    pupil = healthy(pupil.radio(key="tour_bet_1").set_value(STEPS[0].options[1]).run())
    teacher = opened(run="tiny", user="3", tour="1", teach=key)
    press(healthy(teacher.run()), "Show the answer to the class")
    press(press(pupil, "Next stop"), "Back")
    assert not pupil.radio and "Your bet was" in said(pupil) and "Next stop" in [b.label for b in pupil.button]


@pytest.mark.parametrize("asked", ["ABCDEO", "<b>&12"])
def test_a_code_that_is_none_is_said_and_nothing_else_changes(opened: Open, asked: str) -> None:
    app = opened(run="tiny", tour="1", **{"class": asked})
    assert "is not the code of a class" in said(app) and "bets in class" not in said(app) and "bet in class" not in said(app)


def test_starting_over_forgets_the_visit(opened: Open) -> None:
    app = opened(run="tiny", user="3", tour="4", expert="5")
    press(app, "Start over")
    assert "Tour, " not in said(app) and app.session_state["user"] != 3 and app.session_state["expert"] is None


def test_starting_over_keeps_what_a_link_holds(opened: Open) -> None:
    app = press(opened(run="tiny", user="3", tour="4", lock="expert"), "Start over")
    assert app.number_input(key="expert").disabled and app.query_params["lock"] == "expert"


def test_the_worksheet_holds_every_stop_and_what_the_view_shows_and_is_text(small_world: Dataset) -> None:
    """The 4 × 4 is the one that Product keys shows, with its keys and without its scores; the teacher's has the winners."""
    assert lesson.TOY == steps.AT_FIRST
    toy = search.lesson_of_angles(*lesson.TOY.values())
    minutes = tuple(lesson.minutes_of_stop(stop) for stop in range(1, len(STEPS) + 1))
    page = worksheet.worksheet_html(
        worksheet.Worksheet("a<b>", 17, ("Jazz 1", "<i>Heat</i>"), minutes, toy, item_words(small_world))
    )
    assert page.count("<section>") == len(STEPS) and "*" not in re.sub("<style>.*?</style>", "", page, flags=re.DOTALL)
    assert "<b>17</b>" in page and "a&lt;b&gt;" in page and "Jazz 1; &lt;i&gt;Heat" in page and "(minutes 8-20)" in page
    solved, empty = worksheet.grid_html(toy, with_solution=True), worksheet.grid_html(toy)
    assert empty in page and empty.count("<td></td>") == 16 and empty.count("score: ____") == 8
    best = sorted((toy.halves[0][:, None] + toy.halves[1]).flatten().tolist())[-3:]
    won = [float(cell.replace("−", "-")) for cell in re.findall(r"<td class='won'>([^<]*)", solved)]
    assert sorted(won) == pytest.approx(best, abs=0.0011)
    assert f"= {toy.halves[0][0].item():.3f}.".replace("-", "−") in page, "the worked example is the search's own score"
    for step in STEPS:
        step = step.with_item_words(item_words(small_world))
        assert worksheet._escape_html(step.task) in page
        assert all(f"</span>{worksheet._escape_html(option)}" in page for option in step.options)
    ours = {
        "html",
        "meta",
        "title",
        "style",
        "h1",
        "h2",
        "p",
        "b",
        "i",
        "section",
        "span",
        "div",
        "table",
        "tr",
        "th",
        "td",
        "br",
    }
    assert set(re.findall(r"</?([a-z0-9]+)", page)) <= ours


def test_presenter_mode_is_switched_on_by_the_address_and_off_by_its_switch(opened: Open) -> None:
    app = opened("traffic/page.py", run="tiny", present="true")
    assert presenter_mode.LARGER in html(app) and app.query_params["present"] == "true"
    healthy(app.toggle(key="present_switch").set_value(False).run())
    assert presenter_mode.LARGER not in html(app) and "present" not in app.query_params
    app = press(opened("traffic/page.py", run="tiny", present="true"), "Leave presenter mode")
    assert (
        presenter_mode.LARGER not in html(app)
        and "present" not in app.query_params
        and not app.toggle(key="present_switch").value
    )


@pytest.mark.parametrize(
    ("url", "listens_on", "own", "link"),
    [
        ("http://localhost:8501/speed", "127.0.0.1", "10.0.0.7", None),
        ("http://localhost:8501/speed", "0.0.0.0", "10.0.0.7", "http://10.0.0.7:8501/speed"),
        ("http://127.0.0.1:8501/", None, "10.0.0.7", "http://10.0.0.7:8501/"),
        ("http://[::1]:8501/", "::", "fd00::2", "http://[fd00::2]:8501/"),
        ("http://localhost:8501/", "0.0.0.0", None, None),
        ("http://localhost:8501/", "192.168.1.5", None, "http://192.168.1.5:8501/"),
        ("https://lab.example.org/app/", "127.0.0.1", None, "https://lab.example.org/app/"),
    ],
)
def test_the_link_of_a_class_is_one_that_others_reach(
    monkeypatch: pytest.MonkeyPatch, url: str, listens_on: str | None, own: str | None, link: str | None
) -> None:
    monkeypatch.setattr(invitation, "own_address", lambda: own)
    assert invitation.reachable_address(url, listens_on) == link


def test_the_code_to_scan_is_the_link() -> None:
    """Its dark squares are those of the link, black on white, with four squares of quiet around."""
    link = "http://10.0.0.7:8501/?class=ABCDEF&tour=1"
    drawn, made = invitation.qr_code(link, 300), segno.make(link, error="m", micro=False)
    width, height = (int(size) for size in re.findall(r'(?:width|height)="(\d+)"', drawn)[:2])
    side = made.symbol_size()[0]
    assert width == height <= 300 and width % side == 0 and drawn.startswith("<svg") and 'fill="#fff"' in drawn
    assert side == len(made.matrix) + 8 and "script" not in drawn


def test_the_plan_takes_two_lessons_over_all_stops_and_its_answers_are_the_teacher_s(opened: Open) -> None:
    assert [part.start for part in lesson.PLAN] == [0, *(part.end for part in lesson.PLAN[:-1])] and lesson.PLAN[-1].end == 90
    assert any(part.end == 45 for part in lesson.PLAN)
    assert sorted(stop for part in lesson.PLAN for stop in part.stops) == list(range(1, len(STEPS) + 1))
    key = classes.new_key()
    pupil = opened(run="tiny", user="3", **{"class": classes.new_class_code(key)})
    assert not [button for button in pupil.button if button.key == "class_lesson"]
    teacher = press(opened(run="tiny", user="3", teach=key), "Plan and answers")
    assert "| 8-20 |" in said(teacher) and "**Nothing.**" not in said(teacher)
    teacher.session_state[lesson.ANSWERS_SHOWN] = True
    press(teacher, "Plan and answers")
    assert "**Nothing.**" in said(teacher) and "Not measured here" in said(teacher), "of two runs with one seed each"
    assert "class='won'" in html(teacher)
