"""The Method page: all nine questions with what they cost, ours beside the paper's, and nothing that stops without a memory."""

from collections.abc import Callable
from pathlib import Path

import pytest
from driving import healthy, said
from shipped import copy_stored
from streamlit.testing.v1 import AppTest

from elastic_core.services.method import notes

PAGE = "method/page.py"
Visit = Callable[..., AppTest]


def every(app: AppTest) -> AppTest:
    """All nine questions opened."""
    for question in notes.OPEN:
        app.session_state[f"mth_{question.key}"] = True
    return healthy(app.run())


def test_nine_questions_each_with_what_it_costs(opened: Visit) -> None:
    app = every(opened(PAGE, run="tiny"))
    panels = [panel.label for panel in app.expander if panel.label not in ("More", "Teaching")]
    assert panels == [f"**{question.key}.** {question.title}" for question in notes.OPEN]
    measured = [str(info.value) for info in app.info]
    assert len(measured) == 9 and all(value.startswith("**Measured.**") for value in measured)
    assert "get exactly 0" in measured[0] and "As printed" in measured[1] and "busiest expert" in measured[8]
    assert "Not measured" in measured[4], "these runs are on a planted world"
    assert any("reproduce --only ml-100k-sasrec" in code.value for code in app.code)


def test_a_run_without_a_memory_says_so_and_shows_the_rest(opened: Visit) -> None:
    measured = [str(info.value) for info in every(opened(PAGE, run="tiny-peer")).info]
    assert len(measured) == 9 and sum("Choose a run with a memory" in value for value in measured) == 3


@pytest.mark.parametrize("part", ["Ablations", "Equations and tests", "Words and metrics", "Limits and sources"])
def test_every_part_has_a_link(opened: Visit, part: str) -> None:
    app = opened(PAGE, run="tiny", mth_part=part, mth_data="ml-1m", mth_protocol="pop100")
    assert app.segmented_control(key="mth_part").value == part
    if part == "Ablations":
        table = app.dataframe[0].value
        assert len(table) == len(notes.VARIANTS) and (table["NDCG@10 here ± 95%"] == "not measured yet").all()
        assert "pop100" in said(app) and f"0 of {len(notes.VARIANTS)} variants" in said(app)


def test_a_finished_run_appears_with_its_interval(opened: Visit, app_runs: Path) -> None:
    copy_stored(app_runs, "ml-100k-elastic-query-mean")
    table = opened(PAGE, run="tiny", mth_part="Ablations").dataframe[0].value.set_index("variant")
    about = notes.VARIANTS["query-mean"]
    assert table.loc[about, "seeds"] == 1 and " ± 0.0" in table.loc[about, "NDCG@10 here ± 95%"]
    assert table.loc["ELASTIC", "paper, ML-1M, its protocol"] == f"{notes.PAPER['elastic'][0]:.4f}"
