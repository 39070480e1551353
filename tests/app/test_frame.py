"""The frame: expert and second run in the address, teacher's links, and what can be taken away from a page."""

import gc
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st
from driving import healthy, open_menu, press, said
from streamlit.testing.v1 import AppTest

from app import load_screens
from elastic_core import recipes
from elastic_core.data import load
from elastic_core.runs import list_runs
from elastic_core.runs.training import train
from elastic_core.services.experts import overview
from elastic_core.services.traffic import load as load_of
from pages.layout import server, sidebar

SHIPPED = Path(__file__).parents[2] / "checkpoints" / "demo"
Open = Callable[..., AppTest]
KINDS = ("selectbox", "number_input", "slider", "toggle", "text_input", "button_group", "multiselect", "button")


def test_the_chosen_expert_is_the_same_everywhere_and_a_new_person_clears_it(opened: Open) -> None:
    app = opened("journey/page.py", expert="5", run="tiny")
    assert app.number_input(key="expert").value == 5
    healthy(app.number_input(key="expert").set_value(9).run())
    assert healthy(app.switch_page("experts/page.py").run()).title[0].value.startswith("What does expert 9 stand for")
    healthy(app.number_input(key="user").set_value(7).run())
    assert app.number_input(key="expert").value is None and not app.warning


@pytest.mark.parametrize("expert", ["64", "1e9", "../5"])
def test_an_expert_that_is_not_there_is_said(opened: Open, expert: str) -> None:
    app = opened(expert=expert, run="tiny")
    assert f"There is no expert `{expert}`" in app.warning[0].value
    assert app.number_input(key="expert").value is None


def test_a_second_run_is_one_on_the_same_data(opened: Open) -> None:
    app = opened(vs="tiny-peer", run="tiny")
    assert app.selectbox(key="vs").value == "tiny-peer" and len(app.selectbox(key="vs").options) == 1
    healthy(app.selectbox(key="run").set_value("tiny-peer").run())  # a run is not compared with itself
    assert app.selectbox(key="vs").value is None and "no other run" in app.warning[0].value
    for bad in ("tiny", "gone", "../tiny"):
        app = opened(vs=bad, run="tiny")
        assert app.selectbox(key="vs").value is None and "no other run" in app.warning[0].value


def test_an_address_names_runs_by_their_folder_and_people_read_what_they_are(opened: Open) -> None:
    app = opened(run="tiny", vs="tiny-peer")
    assert "ELASTIC · Made-up world (4 interests, 60 items) · seed 0 · tiny" in app.selectbox(key="run").options
    assert app.selectbox(key="vs").value == "tiny-peer"
    healthy(app.selectbox(key="run").set_value("tiny-peer").run())
    assert app.query_params["run"] in ("tiny-peer", ["tiny-peer"]) and "vs" not in app.query_params
    app.query_params["run"] = "tiny"  # as Back does
    assert healthy(app.run()).selectbox(key="run").value == "tiny"
    assert healthy(app.run()).selectbox(key="run").value == "tiny", "and it stays so"


def named(folder: Path) -> Path:
    """A run on a file whose people have ids of their own: u_1 is person 1, and so on; u_7 alone met the item rare."""
    rows = [f"u_{u},{'rare' if (u, i) == (7, 0) else f'b{(i + u) % 9}'},{10**9 + i}\n" for u in range(1, 13) for i in range(9)]
    (folder / "mine.csv").write_text("user,item,time\n" + "".join(rows))
    config = recipes.toy("popularity").override(f"data.source={folder / 'mine.csv'}", "data.k_core=1")
    return train(config, load(config.data), folder / "mine").path


def test_a_person_is_found_by_their_own_id_and_by_what_they_chose(opened: Open, app_runs: Path) -> None:
    named(app_runs)
    app = opened(run="mine", user="3")
    assert "Their id in the data: `u_3`" in said(app) and "user=3&who=u_3" in open_menu(app).code[0].value
    healthy(app.text_input(key="find_who").set_value("U_12").run())
    assert app.number_input(key="user").value == 12 and app.text_input(key="find_who").value == ""
    healthy(app.text_input(key="find_who").set_value("u_1").run())
    assert app.number_input(key="user").value == 1, "a whole id is taken, though others begin with it"
    healthy(app.text_input(key="find_who").set_value("_1").run())
    assert [b.label for b in app.button if str(b.key).startswith("find_who_")] == [
        rf"Person {n} (id u\_{n})" for n in (1, 10, 11, 12)
    ]
    healthy(app.text_input(key="find_who").set_value("rare").run())
    press(app, r"Person 7 (id u\_7)")
    assert app.number_input(key="user").value == 7
    healthy(app.text_input(key="find_who").set_value("<b>nobody").run())
    assert "No id and no title here has `<b>nobody`" in said(app)


def test_an_address_may_name_a_person_by_their_own_id(opened: Open, app_runs: Path) -> None:
    named(app_runs)
    app = opened(run="mine", user="3", who="u_9")
    assert app.number_input(key="user").value == 9 and not app.warning, "where the data were cut anew, the number is another's"
    app = opened(run="mine", user="3", who="`gone`")
    assert app.number_input(key="user").value == 3 and "Nobody here has the id `gone`" in app.warning[0].value
    assert not opened(run="mine", lock="user").text_input(key="find_who").value
    assert opened(run="mine", lock="user").text_input(key="find_who").disabled


def test_a_teachers_link_holds_what_it_names_until_released(opened: Open) -> None:
    app = opened(lock="run,user,grid_nonsense,<b>", run="tiny", user="3")
    held = {box.key: box.disabled for box in [*app.selectbox, *app.number_input]}
    assert held["run"] and held["user"] and not held["expert"]
    assert "Locked by this link: Trained run, Person" in said(app)
    healthy(app.multiselect(key="lock_chosen").set_value(["user", "expert"]).run())
    assert "lock=user,expert" in app.code[-1].value and "user=3" in app.code[-1].value
    healthy(app.button(key="lock_release").click().run())
    assert not app.number_input(key="user").disabled and "Locked by" not in said(app)


@pytest.mark.parametrize("page", ["start", "keys", "journey", "experts", "traffic", "map", "evidence", "speed", "train", "data"])
def test_what_a_page_offers_to_hold_can_be_held(page: str, opened: Open) -> None:
    def controls(app: AppTest) -> dict[str, bool]:
        return {str(each.key): bool(each.proto.disabled) for kind in KINDS for each in app.get(kind) if each.key}

    at = "" if page == "start" else f"{page}/page.py"
    app = opened(at, run="tiny")
    offered = set(app.session_state["lock_names"]) & set(controls(app))
    assert len(offered) > 3 and not app.warning
    found = controls(opened(at, run="tiny", lock=",".join(offered)))
    assert {name for name in offered if found.get(name)} == offered


def test_a_rested_server_has_worked_out_what_pages_ask_first(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(name: str, does: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            asked.append(name)
            return does(*args, **kwargs)

        return call

    st.cache_data.clear()
    st.cache_resource.clear()
    monkeypatch.setattr(server, "QUIET", 0.0)
    for module, name in ((overview, "survey_experts"), (load_of, "compare_with_random_router")):
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    server.open_first_run(load_screens)
    gc.unfreeze()
    assert set(asked) == {"survey_experts", "compare_with_random_router"}
    asked.clear()
    opened("experts/page.py", run="tiny")
    opened("traffic/page.py", run="tiny")
    assert not asked


def test_a_world_with_a_known_truth_and_experts_that_stand_for_items_comes_first(tmp_path: Path) -> None:
    for name in ("planted-elastic", "planted-sasrec", "planted-64-elastic-slots"):
        shutil.copytree(SHIPPED / name, tmp_path / name)
    for name in ("local-mine", "a-world-of-few", "a-world-of-films"):
        shutil.copytree(SHIPPED / "planted-64-elastic-slots", tmp_path / name)
    for name, old, new in (("few", '"interests": 64', '"interests": 8'), ("films", '"source": "planted"', '"source": "ml-100k"')):
        config = tmp_path / f"a-world-of-{name}" / "config.json"
        config.write_text(config.read_text().replace(old, new))
    found = [run.name for run in sorted(list_runs(tmp_path), key=sidebar.run_preference)]
    assert found[:4] == ["planted-64-elastic-slots", "a-world-of-few", "a-world-of-films", "planted-elastic"]
    assert found[-1] == "local-mine"
