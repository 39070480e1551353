"""Evidence: the grid of claims with nothing, with runs and with a measurement made on the page; all systems, whose rows lead to
their runs and to a paired difference; without runs, with unreadable ones and with planted ones only."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from driving import healthy, html, open_menu, said
from ranked_runs import meaning_row, write_ranked_runs
from streamlit.testing.v1 import AppTest

from elastic_core.data import load
from elastic_core.jobs.job_kinds import Meanings
from elastic_core.jobs.queue import JobContext, begin_job, end_job
from elastic_core.results import baselines
from elastic_core.results.baselines import BaselineComparison, BaselineRow
from elastic_core.results.compare import ONCE_SENTENCE, compare_runs, p_text
from elastic_core.runs import WEIGHTS, Run, ranks
from elastic_core.services.evidence import meaning
from elastic_core.text import true_minus
from pages.components import plot
from pages.evidence import charts

PAGE, SYSTEMS = "evidence/page.py", "Systems"
Opened = Callable[..., AppTest]


def test_nothing_is_known_where_no_run_answers(opened: Opened, app_runs: Path) -> None:
    grid = html(opened(PAGE, run="tiny"))
    assert grid.count('scope="row"') == 10 and 'class="mark"' not in grid
    for claim, absent in (("gate", "No run here"), ("speed", "No measurement of speed came with this copy")):
        words = said(opened(PAGE, run="tiny", lrn_claim=claim))
        assert absent in words and "What would change our mind:" in words
    for name in ("tiny", "tiny-peer"):
        shutil.rmtree(app_runs / name)
    assert html(opened(PAGE)) == grid


def test_a_mark_has_its_number_and_the_claim_its_reasons(opened: Opened, app_runs: Path) -> None:
    """The number on pointing is the one of the runs; a claim that was chosen says all of it."""
    good = {"elastic": 0.2, "elastic-seed1": 0.201, "sasrec": 0.05, "sasrec-seed1": 0.051}
    write_ranked_runs(app_runs, {f"planted-{name}": value for name, value in good.items()})
    sides = [[Run(app_runs / f"planted-{name}{seed}") for seed in ("", "-seed1")] for name in ("elastic", "sasrec")]
    for run in (*sides[0], *sides[1]):
        (run.path / WEIGHTS).touch()  # a folder without weights is no run that is listed
    found = compare_runs(*sides)
    app = opened(PAGE, run="tiny", lrn_claim="sasrec")
    number = true_minus(f"{found.difference:+.4f} NDCG@10 under full (95%: {found.low:+.4f} to {found.high:+.4f})")
    assert f'aria-label="yes: Made-up world (16 interests), against SASRec: {number}"' in html(app)
    assert html(app).count("▲") == 1 and "2,000 people, trainings: 2 and 2; protocol full" in said(app).replace("\\", "")


def test_a_claim_leads_to_what_it_stands_on(opened: Opened) -> None:
    app = healthy(opened(PAGE, run="tiny", lrn_claim="speed").button(key="lrn_go_speed").click().run())
    assert app.title[0].value.startswith("When is ELASTIC faster")


def test_the_memory_is_measured_on_demand_and_never_in_public(
    opened: Opened, app_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = meaning_row(Run(app_runs / "tiny"), quarter=0.5)
    monkeypatch.setattr(meaning, "measure_meaning", lambda run, model, dataset, tell: made)
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)
    asked = Meanings(app_runs)
    app = healthy(opened(PAGE, run="tiny", lrn_claim="interest").button(key="lrn_measure").click().run())
    (job,) = asked.list_jobs()
    other = opened(PAGE, run="tiny", lrn_claim="interest")  # another visitor sees the same job
    for each in (app, other):
        assert not [button for button in each.button if button.key == "lrn_measure"]
        assert [button.label for button in each.button if button.key == f"lrn_measure_watch_stop_{job.id}"] == ["Cancel"]
    assert begin_job(job.path.parent, job.id)
    assert asked.do_work(job, JobContext(job)) == ""
    end_job(job.path.parent, job.id, "finished", "")
    app = healthy(other.run())
    assert "finds 50% of the person’s experts again" in said(app) and "beyond the stranger; trained once" in said(app).replace(
        "\\", ""
    )
    assert not [button for button in app.button if button.key == "lrn_measure"]
    meaning.row_files(app_runs)[1].unlink()
    monkeypatch.setenv("ELASTIC_PUBLIC", "1")
    app = opened(PAGE, run="tiny", lrn_claim="interest")
    assert "Measuring on this machine is off here" in said(app) and not [b for b in app.button if b.key == "lrn_measure"]


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
    assert "is not clearly better or worse than the other (1 was trained only once)" in words
    assert "against all items, known ones too" in words and not app.button(key="res_open").disabled, "the other is not open"
    assert f"{ONCE_SENTENCE}: on these" in words and "is better" not in words and len(app.metric) == 3, "and no p"


def test_the_protocol_is_that_of_the_data_until_somebody_takes_another(opened: Opened, app_runs: Path) -> None:
    app = opened(PAGE, ev_depth=SYSTEMS, run="tiny")
    data = load(Run(app_runs / "tiny").config.data)
    protocol = app.selectbox(key="res_protocol")
    assert protocol.value == "full-seen", "people of the planted world come back to items"
    assert app.dataframe[0].value["NDCG@10"].iloc[0] == baselines.random_ndcg(data, "full-seen")
    assert "Only `full-seen` ranks such items" not in said(app)
    app = healthy(protocol.set_value("full").run())
    assert "Only `full-seen` ranks such items" in said(app)
    assert app.dataframe[0].value["NDCG@10"].iloc[0] == baselines.random_ndcg(data, "full")
    assert opened(PAGE, ev_depth=SYSTEMS, run="tiny", res_protocol="pop100").selectbox(key="res_protocol").value == "pop100"
    row = BaselineRow("Co-occurrence", 0.2, 0.1, 0.3, -0.05, -0.08, -0.02)
    baselines.write_comparison(Run(app_runs / "tiny"), BaselineComparison(70, 0.05, (row,), "full-seen"))
    app = opened(PAGE, ev_depth=SYSTEMS, run="tiny")
    table = app.dataframe[0].value.set_index("system")
    assert table.loc["Co-occurrence", "beside the baseline"] == "the best baseline"
    assert "below by 0.0500, trained once: no claim" in table["beside the baseline"].tolist()
    assert "Co-occurrence" not in app.selectbox(key="res_system").options, "there is no run of it to open"


def test_a_row_leads_to_its_run_and_to_a_paired_difference(opened: Opened, app_runs: Path) -> None:
    """What the pair says is what the command says, under every protocol."""
    seeds(app_runs)
    app = opened(PAGE, ev_depth=SYSTEMS, run="tiny-peer", res_protocol="full")
    peer = next(name for name in app.dataframe[0].value["system"] if "SASRec" in name)
    assert app.dataframe[0].value["seeds"].tolist()[1:] == [2, 2]
    assert app.selectbox(key="res_system").value == peer and app.button(key="res_open").disabled, "it is open"
    pairs = [[Run(app_runs / each) for each in (name, f"{name}-again")] for name in ("tiny", "tiny-peer")]
    found = compare_runs(*pairs)
    assert found.seeds_counted and [metric.value for metric in app.metric][:2] == [f"{found.mean_a:.4f}", f"{found.mean_b:.4f}"]
    assert app.metric[2].value == true_minus(f"{found.difference:+.4f}") and app.metric[3].value == p_text(found.p)
    assert app.metric[2].delta == true_minus(f"95% {found.low:+.4f} to {found.high:+.4f}")
    assert any("compare tiny,tiny-again tiny-peer,tiny-peer-again --protocol full" in code.value for code in open_menu(app).code)
    across = app.session_state["view_tables"]["res_pair"]
    assert across["protocol"].tolist() == ["full", "full-seen", "pop100", "uniform100"]
    assert across["difference"].tolist() == [compare_runs(*pairs, protocol).difference for protocol in across["protocol"]]
    ours = next(name for name in app.selectbox(key="res_system").options if "ELASTIC" in name)
    app = healthy(app.selectbox(key="res_system").set_value(ours).run())
    assert not app.metric, "nothing is better than itself"
    app = healthy(app.button(key="res_open").click().run())
    assert app.selectbox(key="run").value == "tiny"


def test_how_large_the_memory_should_be_is_asked_where_sizes_were_trained(opened: Opened, app_runs: Path) -> None:
    title = "How large should the memory be?"
    assert title not in [panel.label for panel in opened(PAGE, ev_depth=SYSTEMS, run="tiny").expander]
    names = ("planted-elastic", "planted-elastic-side-16", "planted-elastic-k-4")
    write_ranked_runs(app_runs, dict.fromkeys(names, 0.1))
    for name in names:
        (app_runs / name / WEIGHTS).touch()  # a folder without weights is no run that is listed
    app = opened(PAGE, ev_depth=SYSTEMS, run="tiny", res_data="planted")
    app.session_state["res_size"] = True
    healthy(app.run())
    table = app.session_state["view_tables"]["res_size_chart"]
    assert table[["√K", "k"]].to_numpy().tolist() == [[8, 4], [8, 8], [16, 8]] and (table["people"] == 2_000).all()


def test_old_addresses_still_open_the_page(opened: Opened) -> None:
    app = opened(PAGE, ev_depth="Two runs", run="tiny", cmp_with="tiny-peer", cmp_metric="HR@5")
    assert app.title[0].value.startswith("Is it true") and app.segmented_control(key="ev_depth").value == "Claims"


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


def test_a_figure_marks_what_may_be_claimed() -> None:
    rows = [
        ("x", "a", 10, 0.1, 0.0, 0.1, 0.05, 0.2, "A"),
        ("x", "b", 20, 0.0, 0.1, -0.1, -0.3, 0.1, ""),
        ("y", "c", 5, 0.1, 0.0, 0.1, 0.05, 0.2, ""),  # trained once, or not after the adjustment
    ]
    table = pd.DataFrame(rows, columns=["family", "short", "n", "A", "B", "difference", "low", "high", "winner"])
    sides = ("<b>Ours</b>", "SASRec")
    figure = charts.draw_forest(table, plot.LIGHT, sides, family="family")
    marks = figure.data[-1]
    assert list(marks.marker.color) == [plot.LIGHT.cool[1], plot.LIGHT.ground, plot.LIGHT.ground]
    assert list(np.diff(marks.y)) == [-1, -2.4] and "<b>y</b>" in figure.layout.yaxis.ticktext
    assert not any("<b>Ours" in note.text for note in figure.layout.annotations), "a name is no markup"
    alike = charts.draw_forest(table.assign(n=10), plot.LIGHT, sides)
    assert "n = 10" in alike.layout.xaxis.title.text and not any("n =" in note.text for note in alike.layout.annotations)


def test_figure_five_has_a_panel_for_each_number() -> None:
    table = pd.DataFrame({
        "√K": [8, 8, 16], "k": [4, 8, 8], "NDCG@10": [0.1, 0.2, 0.3], "± 95%": [0.01, 0.02, 0.03], "in use": [0.5, 0.6, np.nan],
        "runs": ["a", "b", "<c>"],
    })  # fmt: skip
    figure = charts.draw_memory_size(table, 8, 8, plot.DARK)
    assert [list(trace.x) for trace in figure.data] == [[8, 16], [8, 16], [4, 8], [4, 8]]
    assert list(figure.data[0].y) == [0.2, 0.3] and list(figure.data[0].error_y.array) == [0.02, 0.03]
    assert "<c>" not in figure.data[0].text[1]
