"""One list of edits on Start, Journey and Experts: in the address, undone anywhere, nobody else's, and never a traceback."""

from collections.abc import Callable

import pytest
from driving import healthy, html, open_menu, press, said
from streamlit.testing.v1 import AppTest

Open = Callable[..., AppTest]
SCREENS = ("start/page.py", "journey/page.py", "experts/page.py")
TURN = {"exp_part": "Turn it"}


def address(app: AppTest) -> str:
    return "".join(app.query_params.get("edits", ""))


def go(app: AppTest, page: str) -> AppTest:
    return healthy(app.switch_page(page).run())


def slide(app: AppTest, expert: int, factor: float) -> AppTest:
    return healthy(app.slider(key=f"exp_scale_{expert}").set_value(factor).run())


def test_the_same_list_is_seen_and_changed_on_all_three_screens(opened: Open) -> None:
    app = press(press(opened(run="tiny", user="5"), "Remove the last item"), "Remove the last item")
    last = int(address(app).split("-")[1].split(",")[0])
    assert address(app) == f"-{last},-{last - 1}" and "**Without the last 2 items:**" in app.info[0].value
    app = go(app, "journey/page.py")
    assert "Against the original:" in app.info[0].value and html(app).count("line-through") >= 2
    healthy(app.text_input(key="jrn_add").set_value("a").run())
    app = press(app, "Add it")
    added = address(app).removeprefix(f"-{last},-{last - 1},")
    assert added.startswith("+") and "+ added" in html(app)
    app = go(app, "start/page.py")
    assert "Without 2 items and with 1 item added" in app.info[0].value
    expert = int(app.button(key="start_silence").label.split()[-1])
    app = go(healthy(app.button(key="start_silence").click().run()), "experts/page.py")
    app = healthy(app.segmented_control(key="exp_part").set_value("Turn it").run())
    silenced = [slider.key for slider in app.slider if slider.value == 0]
    assert silenced == [f"exp_scale_{expert}"], "the same expert is silenced here"
    other = next(int(slider.key.rsplit("_")[-1]) for slider in app.slider if slider.key not in silenced)
    app = slide(slide(app, other, 3.0), other, 2.0)
    assert address(app) == f"-{last},-{last - 1},{added},x{expert},x{other}*2", "a slider that is moved again is one edit"
    app = go(app, "journey/page.py")
    assert "counts × 2" in html(app) and "removed" in html(app)
    app = press(press(app, "Undo"), "Undo")
    assert address(app) == f"-{last},-{last - 1},{added}"
    app = go(press(app, "Reset"), "start/page.py")
    assert address(app) == "" and not app.info


@pytest.mark.parametrize("page", SCREENS)
def test_a_link_opens_the_same_edits_everywhere(opened: Open, page: str) -> None:
    app = opened(page, run="tiny", user="3", edits="-2..4, 7,x3*2", **TURN)
    assert address(app) == "-2..4,+7,x3*2" and not app.warning, "a browser reads + as a blank"
    assert "edits=-2..4%2C%2B7%2Cx3%2A2" in open_menu(app).code[0].value, "and the link of the page says it all"
    assert not press(app, "Undo").exception and address(app) == "-2..4,+7"


def test_another_person_begins_without_edits_and_another_run_keeps_those_of_the_history(opened: Open) -> None:
    app = opened(run="tiny", user="3", edits="-2,x7")
    app = healthy(app.selectbox(key="run").set_value("tiny-peer").run())
    assert address(app) == "-2" and "**Without" in app.info[-1].value
    app = healthy(app.number_input(key="user").set_value(4).run())
    assert address(app) == ""
    app.query_params["edits"] = "-3"  # as Back does
    assert address(healthy(app.run())) == "-3"
    app = opened("experts/page.py", run="tiny", user="3", edits="-2,x7")  # in a part that shows no edits
    app = healthy(app.number_input(key="user").set_value(4).run())
    assert not go(app, "start/page.py").info


@pytest.mark.parametrize("page", SCREENS)
@pytest.mark.parametrize("text", ["tiny~3~r.r", "x64", "-9999", "+0", "<b>", "-" + "9" * 5000])
def test_edits_that_cannot_be_read_are_said(opened: Open, page: str, text: str) -> None:
    app = opened(page, run="tiny", user="3", edits=text, **TURN)
    assert "cannot be read" in said(app) and address(app) == ""
    assert "cannot be read" not in said(healthy(app.run()))


@pytest.mark.parametrize("page", SCREENS)
def test_a_teacher_s_link_holds_the_list(opened: Open, page: str) -> None:
    app = opened(page, run="tiny", user="3", edits="-2,x7", lock="edits", **TURN)
    acts = [button for button in app.button if str(button.key).endswith(("_undo", "_reset", "_remove", "_silence", "_last"))]
    assert len(acts) >= 2 and all(button.disabled for button in acts)
    assert all(slider.disabled for slider in app.slider if slider.key.startswith("exp_scale_"))
    assert address(app) == "-2,x7"


def test_old_addresses_open_the_page_and_are_not_heard(opened: Open) -> None:
    app = opened("journey/page.py", run="tiny", user="3", jrn_edits="a12b34~x4-6~c1", jrn_with="version 2")
    assert not app.info and not app.warning and app.title[0].value.startswith("What if this history were different")
    app = opened("experts/page.py", run="tiny", user="3", exp_part="Turn it", exp_turn_3="4", exp_lend="7")
    assert "with every expert as it is" in said(app)
