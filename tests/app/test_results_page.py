"""The Results page: rows lead to their runs, and it stands without runs, with unreadable ones and with planted ones only."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from driving import healthy, said
from streamlit.testing.v1 import AppTest

from elastic_core.comparisons import compare_runs
from elastic_core.evaluation import ranks
from elastic_core.evaluation.verdict import ONE_RUN
from elastic_core.runs import Run

PAGE = "results/page.py"
Opened = Callable[..., AppTest]


def seeds(folder: Path) -> None:
    """A second training of either run."""
    for name in ("tiny", "tiny-peer"):
        run = Run(Path(shutil.copytree(folder / name, folder / f"{name}-again")))
        (run.path / "config.json").write_text(json.dumps(run.config.override("train.seed=1").to_dict()))


def test_it_says_what_the_ranks_say_and_nothing_of_one_training(opened: Opened, app_runs: Path) -> None:
    app = opened(PAGE, run="tiny", res_protocol="full-seen")
    table = app.dataframe[0].value.set_index("system")
    run = Run(app_runs / "tiny")
    mine = "ELASTIC, K = 8², k = 4 (own: tiny)" if "ELASTIC, K = 8², k = 4 (own: tiny)" in table.index else table.index[-1]
    assert table.loc[mine, "NDCG@10"] == run.report().metrics["full-seen"]["NDCG@10"] and table.loc[mine, "runs"] == "tiny"
    assert table["beside the baseline"].tolist() == ["no baseline was run here"] * 2 and (table["seeds"] == 1).all()
    words = said(app)
    assert "No difference between" in words and "2 of 2 systems were trained once" in words
    assert "those already met included" in words and "The app shows tiny of this system" in words
    assert ONE_RUN.replace(":", "") not in words and "is better" not in words


def test_a_row_leads_to_its_run_and_to_both(opened: Opened, app_runs: Path) -> None:
    seeds(app_runs)
    app = opened(PAGE, run="tiny-peer")
    peer = next(name for name in app.dataframe[0].value["system"] if "SASRec" in name)
    assert app.dataframe[0].value["seeds"].tolist() == [2, 2]
    app = healthy(app.selectbox(key="res_system").set_value(peer).run())
    assert "The app shows tiny\\-peer of this system" in said(app)
    app = healthy(app.button(key="res_compare").click().run())
    assert app.title[0].value == "Is A better than B, for whom?"
    assert (app.selectbox(key="run").value, app.selectbox(key="vs").value) == ("tiny", "tiny-peer")
    pairs = [[Run(app_runs / each) for each in (name, f"{name}-again")] for name in ("tiny", "tiny-peer")]
    assert app.metric[2].value == f"{compare_runs(*pairs).difference:+.4f}"


def test_it_stands_with_nothing_and_with_what_cannot_be_read(opened: Opened, app_runs: Path) -> None:
    (app_runs / "tiny" / ranks.FILE).write_bytes(b"damaged")
    app = opened(PAGE, run="tiny-peer")
    assert "The folder tiny is no run that can be read" in said(app) and len(app.dataframe[0].value) == 1
    for name in ("tiny", "tiny-peer"):
        (app_runs / name / "model.safetensors").write_bytes(b"damaged")
    app = opened(PAGE)
    assert "No trained run can be opened" in said(app) and len(app.dataframe[0].value) == 1, "kept ranks need no model"
    for name in ("tiny", "tiny-peer"):
        shutil.rmtree(app_runs / name)
    assert "No run here keeps the ranks of a test yet" in said(opened(PAGE))
