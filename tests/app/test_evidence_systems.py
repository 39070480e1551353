"""All systems: rows lead to their runs, and it stands without runs, with unreadable ones and with planted ones only."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from driving import healthy, said
from streamlit.testing.v1 import AppTest

from elastic_core.comparisons import compare_runs
from elastic_core.data import load
from elastic_core.evaluation.verdict import ONE_RUN
from elastic_core.runs import Run, ranks
from elastic_core.services.train import beside
from elastic_core.text import minus

PAGE, SYSTEMS = "evidence/page.py", "Systems"
Opened = Callable[..., AppTest]


def seeds(folder: Path) -> None:
    """A second training of either run."""
    for name in ("tiny", "tiny-peer"):
        run = Run(Path(shutil.copytree(folder / name, folder / f"{name}-again")))
        (run.path / "config.json").write_text(json.dumps(run.config.override("train.seed=1").to_dict()))


def test_it_says_what_the_ranks_say_and_nothing_of_one_training(opened: Opened, app_runs: Path) -> None:
    app = opened(PAGE, ev_depth=SYSTEMS, run="tiny", res_protocol="full-seen")
    table = app.dataframe[0].value.set_index("system")
    assert table.index[0] == "Random order"
    table = table[1:]
    run = Run(app_runs / "tiny")
    mine = "ELASTIC, K = 8², k = 4 (own: tiny)" if "ELASTIC, K = 8², k = 4 (own: tiny)" in table.index else table.index[-1]
    assert table.loc[mine, "NDCG@10"] == run.report().metrics["full-seen"]["NDCG@10"] and table.loc[mine, "runs"] == "tiny"
    assert table["beside the baseline"].tolist() == ["no baseline was run here"] * 2 and (table["seeds"] == 1).all()
    words = said(app).replace("\\", "")
    assert "is neither better nor worse than any of 1 others (1 trained once)" in words
    assert "also those that the person knows" in words and app.button(key="res_open").disabled, "it is open"
    assert ONE_RUN.replace(":", "") not in words and "is better" not in words


def test_the_protocol_is_that_of_the_data_until_somebody_takes_another(opened: Opened, app_runs: Path) -> None:
    app = opened(PAGE, ev_depth=SYSTEMS, run="tiny")
    data = load(Run(app_runs / "tiny").config.data)
    protocol = app.selectbox(key="res_protocol")
    assert protocol.value == "full-seen" == beside.fitting(data), "people of the planted world come back to items"
    assert app.dataframe[0].value["NDCG@10"].iloc[0] == beside.random_ndcg(data, "full-seen")
    app = healthy(protocol.set_value("full").run())
    assert app.dataframe[0].value["NDCG@10"].iloc[0] == beside.random_ndcg(data, "full")
    assert opened(PAGE, ev_depth=SYSTEMS, run="tiny", res_protocol="pop100").selectbox(key="res_protocol").value == "pop100"
    row = beside.BesideRow("Co-occurrence", 0.2, 0.1, 0.3, -0.05, -0.08, -0.02)
    beside.keep_beside(Run(app_runs / "tiny"), beside.Beside(70, 0.05, (row,), "full-seen"))
    app = opened(PAGE, ev_depth=SYSTEMS, run="tiny")
    table = app.dataframe[0].value.set_index("system")
    assert table.loc["Co-occurrence", "beside the baseline"] == "the best baseline"
    assert "below Co-occurrence by 0.0500, trained once: no claim" in table["beside the baseline"].tolist()
    assert "Co-occurrence" not in app.selectbox(key="res_system").options, "there is no run of it to open"


def test_a_row_leads_to_its_run_and_to_both(opened: Opened, app_runs: Path) -> None:
    seeds(app_runs)
    app = opened(PAGE, ev_depth=SYSTEMS, run="tiny-peer")
    peer = next(name for name in app.dataframe[0].value["system"] if "SASRec" in name)
    assert app.dataframe[0].value["seeds"].tolist()[1:] == [2, 2]
    app = healthy(app.selectbox(key="res_system").set_value(peer).run())
    assert app.button(key="res_open").disabled and not app.button(key="res_compare").disabled
    app = healthy(app.button(key="res_compare").click().run())
    assert app.segmented_control(key="ev_depth").value == "Two runs"
    assert (app.selectbox(key="run").value, app.selectbox(key="vs").value) == ("tiny", "tiny-peer")
    pairs = [[Run(app_runs / each) for each in (name, f"{name}-again")] for name in ("tiny", "tiny-peer")]
    assert app.metric[2].value == minus(f"{compare_runs(*pairs).difference:+.4f}")


def test_it_stands_with_nothing_and_with_what_cannot_be_read(opened: Opened, app_runs: Path) -> None:
    (app_runs / "tiny" / ranks.FILE).write_bytes(b"damaged")
    app = opened(PAGE, ev_depth=SYSTEMS, run="tiny-peer")
    assert "The folder tiny is no run that can be read" in said(app) and len(app.dataframe[0].value) == 2, "and pure chance"
    for name in ("tiny", "tiny-peer"):
        (app_runs / name / "model.safetensors").write_bytes(b"damaged")
    app = opened(PAGE, ev_depth=SYSTEMS)
    assert "No trained run can be opened" in said(app) and len(app.dataframe[0].value) == 1, "kept ranks need no model"
    for name in ("tiny", "tiny-peer"):
        shutil.rmtree(app_runs / name)
    assert "Nothing is tested here yet" in said(opened(PAGE, ev_depth=SYSTEMS))


def test_an_address_typed_by_hand_is_understood_or_said_not_to_be(opened: Opened) -> None:
    """Streamlit itself knows an option by its whole label alone, with the escapes that brackets carry."""
    for asked, shown in (("pop100", "pop100"), ("POP100", "pop100"), ("uniform", "uniform100"), ("full", "full")):
        app = opened(PAGE, ev_depth=SYSTEMS, run="tiny", res_protocol=asked)
        assert app.selectbox(key="res_protocol").value == shown and not app.toast
    for asked in ("100", "ndcg", "*" * 99):  # what two have, nobody has, and nobody reads
        app = opened(PAGE, ev_depth=SYSTEMS, run="tiny", res_protocol=asked)
        assert app.selectbox(key="res_protocol").value == "full-seen"
        (toast,) = app.toast
        assert toast.value.replace("\\", "").endswith("is not offered here. Shown: full-seen.") and len(toast.value) < 200
    assert not healthy(app.run()).toast, "said once"
    assert "SASRec" in opened(PAGE, ev_depth=SYSTEMS, run="tiny", res_system="sasrec").selectbox(key="res_system").value
    for part in ("turn it", "Turn it"):  # the page asks before the control is drawn
        title = opened("experts/page.py", run="tiny", exp_part=part).title[0].value
        assert title.endswith("turned up or down?")
