"""The page about experts: three answers before a click, every part of the dashboard, dead experts and runs without any."""

from collections.abc import Callable

import numpy as np
import pytest
from driving import healthy, press, said
from streamlit.testing.v1 import AppTest

from elastic_core.data import Dataset
from elastic_core.jobs.job_kinds import Ablations
from elastic_core.jobs.queue import JobContext, begin_job, end_job
from elastic_core.memory.routing import route_users
from elastic_core.models import Recommender
from elastic_core.runs import Run
from elastic_core.services.experts.evidence import Label
from elastic_core.services.experts.items import OwnRanking
from pages.components import page_context
from pages.experts import sentences as said_of

PAGE = "experts/page.py"
Open = Callable[..., AppTest]


@pytest.fixture(scope="module")
def load(tiny: tuple[Recommender, Dataset, Run]) -> np.ndarray:
    model, dataset, _ = tiny
    return route_users(model, dataset, "test").load


def frame(app: AppTest, column: str) -> object:
    return next(table.value for table in app.dataframe if column in table.value)


def test_three_answers_and_all_experts_before_any_click(opened: Open, load: np.ndarray) -> None:
    app = opened(PAGE, run="tiny", expert="3")
    words = said(app)
    assert app.title[0].value == "What does expert 3 stand for, and does it matter?"
    assert f"{load[3]} of 80 people" in words and "What does it stand for?" in words
    assert "Do lists get worse without it?" in words
    assert "**True interest" in words and "If we shuffle the people" in words
    table = frame(app, "people_genre")
    assert len(table) == 64 and table["load"].is_monotonic_decreasing  # type: ignore[arg-type, index]


def test_walking_from_expert_to_expert(opened: Open, load: np.ndarray, tiny: tuple[Recommender, Dataset, Run]) -> None:
    own = route_users(*tiny[:2], "test").experts[3].tolist()
    app = opened(PAGE, run="tiny", user="4", expert=str(own[0]))
    for expert in (*own[1:], own[0], own[1]):
        assert f"expert {expert} " in press(app, "Next expert").title[0].value
    for expert in (own[0], own[-1], own[-2]):
        assert f"expert {expert} " in press(app, "Previous expert").title[0].value
    other = next(expert for expert in range(64) if expert not in own)
    app = opened(PAGE, run="tiny", user="4", expert=str(other))
    assert f"expert {own[0]} " in press(app, "Next expert").title[0].value, "from elsewhere to the first of theirs"
    press(app, "Random")
    assert load[app.session_state["expert"]] > 0 and app.session_state["expert"] != own[0]
    press(app, "Back to this person")
    assert f"Person {app.session_state['user']} has it" in said(app)
    healthy(app.segmented_control(key="exp_part").set_value("People and items").run())
    meet = next(button for button in app.button if str(button.key).startswith("exp_meet_"))
    expert = app.session_state["expert"]
    healthy(meet.click().run())
    assert meet.label == f"Person {app.session_state['user']}" and app.session_state["expert"] == expert


@pytest.mark.parametrize(
    ("part", "words"),
    [("All experts", "If we shuffle the people"),
     ("People and items", "Drawn at random"), ("People and items", "means no diff"), ("People and items", "Do the two agree?"),
     ("Turn it", "without another of their experts"), ("Neighbours", "Most often used together")],
)  # fmt: skip
def test_every_part_by_link(opened: Open, load: np.ndarray, part: str, words: str) -> None:
    app = opened(PAGE, run="tiny", expert=str(load.argmax()), exp_part=part)
    assert words in said(app)
    assert len(app.get("plotly_chart")) == {"Neighbours": 2, "People and items": 2, "All experts": 0}.get(part, 1)


def test_a_swap_chosen_by_link_and_by_button(opened: Open, load: np.ndarray) -> None:
    app = opened(PAGE, run="tiny", expert=str(load.argmax()), exp_part="Turn it", exp_swap="5")
    assert "expert 5 in its place" in frame(app, "d_ndcg")["change"].tolist()  # type: ignore[index]
    press(app, "Another at random")
    other = app.session_state["exp_swap"]
    assert f"expert {other} in its place" in frame(app, "d_ndcg")["change"].tolist()  # type: ignore[index]


def test_a_person_s_experts_are_turned_by_link_by_slider_and_back(opened: Open, tiny: tuple[Recommender, Dataset, Run]) -> None:
    own = route_users(*tiny[:2], "test").experts[11].tolist()
    address = {"run": "tiny", "user": "12", "exp_part": "Turn it", "edits": f"x{own[0]}*4"}
    app = opened(PAGE, **address)
    assert {slider.key for slider in app.slider} == {f"exp_scale_{expert}" for expert in own}
    assert app.slider(key=f"exp_scale_{own[0]}").value == 4 and "The same turn on other experts brings" in said(app)
    assert frame(app, "chance_null")["what"].tolist() == [f"{own[0]} × 4"]  # type: ignore[index]
    press(app, "What does it cost everybody?")
    assert "people whom this turn touches" in said(app)
    assert "people whom this turn touches" in said(opened(PAGE, **address)), "kept for all visitors"
    healthy(app.slider(key=f"exp_scale_{own[1]}").set_value(0.0).run())
    assert app.query_params["edits"] in (f"x{own[0]}*4,x{own[1]}", [f"x{own[0]}*4,x{own[1]}"])
    assert "compared with the same history and every expert as it is" in said(app)
    assert "with every expert as it is" in said(press(app, "Reset"))
    away = opened(PAGE, **{**address, "edits": f"-2,x{next(e for e in range(64) if e not in own)}*2"})
    assert "which this history does not use" in said(away) or "compared with" in said(away)


def test_every_expert_measured_on_demand(opened: Open, load: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(PAGE, run="tiny")
    assert "d_ndcg" not in frame(app, "people_genre")  # type: ignore[operator]
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)
    press(app, "Remove each and measure")
    passes = Ablations(page_context.RUNS)
    (job,) = passes.list_jobs()
    assert "exp_all" not in [button.key for button in app.button] and "d_ndcg" not in frame(app, "people_genre")  # type: ignore[operator]
    assert begin_job(job.path.parent, job.id)
    passes.do_work(job, JobContext(job))
    assert passes.get_job(job.id).text == "Removing every expert from its people" and passes.get_job(job.id).share > 0.5
    end_job(job.path.parent, job.id, "finished", "")
    healthy(app.run())
    table = frame(app, "people_genre")
    assert table["d_ndcg"].notna().sum() == (load > 0).sum()  # type: ignore[index]
    assert "Luck alone would give up to" in said(app)


def test_only_the_dead_by_link(opened: Open, load: np.ndarray) -> None:
    table = frame(opened(PAGE, run="tiny", exp_show="dead"), "people_genre")
    assert table["expert"].tolist() == np.flatnonzero(load == 0).tolist()  # type: ignore[index]


def test_a_dead_expert_says_so_first(opened: Open, load: np.ndarray) -> None:
    dead = np.flatnonzero(load == 0)
    assert len(dead), "the tiny run has dead experts"
    app = opened(PAGE, run="tiny", expert=str(dead[0]))
    assert "is dead: nobody in this data uses it" in said(app) and "If we shuffle the people" in said(app)
    app = opened(PAGE, run="tiny", expert=str(dead[0]), exp_part="People and items")
    assert "Just missed it" not in said(app)
    healthy(app.toggle[0].set_value(True).run())
    assert "Just missed it" in said(app)
    for part in ("People and items", "Turn it", "Neighbours"):
        opened(PAGE, run="tiny", expert=str(dead[0]), exp_anyway="true", exp_part=part)


def test_bad_numbers_and_runs_without_experts(opened: Open) -> None:
    app = opened(PAGE, run="tiny", expert="999", exp_part="Nonsense", exp_swap="-4")
    assert "There is no expert `999`" in said(app) and "**Strongest** for person" in said(app)
    peer = opened(PAGE, run="tiny-peer")
    assert "it reads a history without a memory" in said(peer) and not peer.get("plotly_chart")


def test_other_evidence_stands_below_the_name() -> None:
    label, alone = Label(("Sushi",), 2.0, 1.5, 3.0, 14), OwnRanking(("Sushi 3", "Tea 2"), "Yoga", 2.0, 1.5)
    doubts = " ".join(said_of.meaning_notes(label, alone))
    assert "choose Sushi 2.00 times as often" in doubts and "recommend Sushi 3 and Tea 2 first" in doubts
    assert "prefers Yoga 2.0 times" in doubts
