"""Speed: exponents and crossings on curves known by formula, operations against torch's counter, a real process."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from elastic_core import models
from elastic_core.bench.latency import ITEMS, SYSTEMS, Setting, all_systems, build_system, measure_latency
from elastic_core.bench.rows import write_rows
from elastic_core.core.batches import Batch
from elastic_core.core.layers import Attention
from elastic_core.core.stream import open_stream
from elastic_core.errors import InputError
from elastic_core.jobs.job_kinds import Measurements
from elastic_core.jobs.queue import begin_job
from elastic_core.services.speed import costs, curves
from elastic_core.services.speed.plan import Plan

CPU = torch.device("cpu")
ROOT = Path(__file__).resolve().parents[1]
LENGTHS = [64, 128, 256, 512, 1024, 2048]


def power_laws(**laws: tuple[float, float]) -> pd.DataFrame:
    """system → (factor, exponent) as a table of `ms`, other columns constant."""
    rows = [
        {"system": system, "label": system, "length": n, "ms": factor * n**exponent, "load": 0.5, "threads": 1}
        for system, (factor, exponent) in laws.items()
        for n in LENGTHS
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0, 1.5, 2.0])
def test_the_fit_finds_the_exponent_of_a_power_law(exponent: float) -> None:
    rng = np.random.default_rng(0)
    table = power_laws(a=(3e-3, exponent))
    found = curves.fit_line(table, "a")
    assert found is not None and found.exponent == pytest.approx(exponent, abs=1e-9) and found.error < 1e-9
    assert found.predict(300) == pytest.approx(3e-3 * 300**exponent)
    table["ms"] *= np.exp(rng.normal(0, 0.05, len(table)))
    noisy = curves.fit_line(table, "a", start=256)
    assert noisy is not None and (noisy.start, noisy.end, noisy.points) == (256, 2048, 4)
    assert abs(noisy.exponent - exponent) < 4 * noisy.error
    slow = np.polyfit(np.log(LENGTHS[2:]), np.log(table["ms"][2:]), 1)
    assert noisy.exponent == pytest.approx(slow[0]) and math.log(noisy.factor) == pytest.approx(slow[1])
    assert curves.fit_line(table, "a", start=2048) is None and curves.fit_line(table, "b") is None
    two = curves.fit_line(table, "a", start=1024)
    assert two is not None and math.isnan(two.error), "two points leave no error"


def test_crossings_and_words_leave_no_length_out() -> None:
    table = power_laws(elastic=(10.0, 1.0), **{"sasrec-fused": (0.025, 2.0)})  # equal at N = 400
    ratio = curves.speed_ratio(table, "elastic", "sasrec-fused")
    assert curves.crossing_table(ratio) == pytest.approx([400])
    said = curves.speed_sentence(table, "elastic", "sasrec-fused")
    assert "SASRec is faster at N = 64 to 256 (up to" in said
    assert "ELASTIC is faster at N = 512 to 2,048 (" in said
    assert "near N = 400" in said
    assert curves._list_lengths(
        pd.Index([64, 128, 256, 1024, 4096, 8192]), pd.Index([64, 128, 256, 512, 1024, 2048, 4096, 8192])
    ) == ("64 to 256, 1,024, 4,096, 8,192")
    assert "They do not cross" in curves.speed_sentence(table[table["length"] > 400], "elastic", "sasrec-fused")
    assert "not measured" in curves.speed_sentence(table[table["system"] == "elastic"], "elastic", "sasrec-fused")
    there_and_back = pd.Series([0.5, 2.0, 0.5, 2.0], index=[10, 20, 40, 80])
    assert len(curves.crossing_table(there_and_back)) == 3


def test_one_new_event_is_held_against_the_rival_that_keeps_something_too() -> None:
    """With our refresh in it, and where the rival is faster is said; reading all again is no rival."""
    kept = {"elastic-stream": 0.02, "elastic-refresh": [1.0, 2.0, 4.0], "sasrec-fused-stream": [0.02, 0.06, 0.4],
            "sasrec-fused-refresh": [0.5, 5.0, 50.0], "sasrec-fused": [0.2, 4.0, 40.0]}  # fmt: skip
    wide = pd.DataFrame(kept, index=pd.Index([64, 512, 4096], name="length"))
    said = curves.event_words(wide)
    assert said.startswith("One new event takes ELASTIC 0.04 to 0.10 ms, with a refresh every 50 events. SASRec, if it keeps")
    assert "SASRec is faster at N = 64 (up to 2.0 times)." in said
    assert "ELASTIC is faster at N = 512, 4,096 (up to 4.0 times). They cross near N = 510." in said
    assert "time to time, too. Then it takes 0.8 to 14.0 times as long as ELASTIC." in said and "reading all again" not in said
    assert "SASRec" not in curves.event_words(wide[["elastic-stream", "elastic-refresh"]])
    assert curves.event_words(wide[["sasrec-fused"]]) == "The kept state was not measured."


def test_batches_become_histories(tmp_path: Path) -> None:
    setting, pair = Setting(length=16, batch=4, width=8, k=2, n_subkeys=4), ("elastic", "sasrec-fused")
    rows = measure_latency(setting, CPU, pair, rounds=3, warmup=1)
    later = rows.assign(batch=1, commit="d", date="2999-01-01")
    for other in (rows, rows.assign(compiled="default", commit="c"), rows.assign(device="a card"), later):
        write_rows(tmp_path / "rows.csv", other)
    table = curves.read_passes(tmp_path / "rows.csv")
    assert len(table) == 2 and (table["batch"] == 4).all(), "the last row of the largest batch, on a processor"
    mine = rows[(rows["system"] == "elastic") & (rows["rows"] == "last")].iloc[0]
    line = table.set_index("system").loc["elastic"]
    assert line["ms"] == pytest.approx(1e3 * mine["seconds"] / 4) and line["memory"] == pytest.approx(mine["peak_bytes"] / 4e6)
    assert curves.of_shape(table, curves.list_shapes(pd.concat([table, table.assign(length=32)]))[0]).equals(table)
    assert curves.memory_words(table).startswith("At N = ")
    calm, busy = table.assign(load=0.1), table.assign(load=5.0)
    assert curves.trusted_rows(calm)[0].equals(calm) and curves.trusted_rows(busy)[0]["ms"].equals(table["processor"])
    assert "torch" in curves.machine_text(table) and curves.machine_text(table[:0]) == "Nothing measured yet."


def test_every_trainable_model_is_a_contestant() -> None:
    trainable = {name for name in models.model_names() if models.model_class(name).objective}
    named = {max((m for m in trainable if name == m or name.startswith(f"{m}-")), key=len) for name in all_systems()}
    assert named == trainable
    assert set(SYSTEMS) <= set(all_systems())


def _one_pass(x: list[int], weight: list[int], *rest: Any, **more: Any) -> int:
    """x Wᵀ, nor this one."""
    return 2 * math.prod(x) * weight[0]


def _in_place(total: list[int], a: list[int], b: list[int], **more: Any) -> int:
    """total += a @ b, which torch's counter does not know."""
    return 2 * math.prod(a) * b[-1]


KERNELS = {torch.ops.aten.baddbmm_: _in_place, torch.ops.mkldnn._linear_pointwise: _one_pass}


@pytest.mark.parametrize("system", list(costs.LABELS))
@pytest.mark.parametrize(("n", "d", "k", "heads"), [(128, 64, 8, 1), (512, 32, 4, 2)])
def test_the_calculator_agrees_with_torchs_counter(system: str, n: int, d: int, k: int, heads: int) -> None:
    people = 32
    model = build_system(system, Setting(length=n, width=d, k=k, n_subkeys=16, heads=heads)).eval()
    for module in model.modules():
        if isinstance(module, Attention):
            module.fused = False  # the counter does not see into the fused kernel
    items = torch.randint(1, ITEMS + 1, (people, n))
    with FlopCounterMode(display=False, custom_mapping=KERNELS) as counter, torch.no_grad():
        model.scorer()(model.last_state(Batch(items, items, padded=False)))
    sizes = costs.Sizes(length=n, width=d, k=k, n_subkeys=16, heads=heads)
    counted = costs.count_operations("sasrec-eager" if system == "sasrec-fused" else system, sizes)
    assert counted == pytest.approx(counter.get_total_flops() / people, rel=0.03)
    half, full = (costs.count_operations(name, sizes) for name in ("sasrec-fused", "sasrec-eager"))
    assert full - half == pytest.approx(2 * n**2 * d), "half of one layer's pairs"


def test_the_calculator_grows_as_it_says() -> None:
    """Twice the history: twice as much, but for SASRec's pairs of events and for what is kept by ELASTIC."""
    short, long = (costs.cost_table(costs.Sizes(length=n)).set_index("system") for n in (2**15, 2**16))
    growth = (long / short).rename(index={label: system for system, label in costs.LABELS.items()})
    assert growth["operations"].to_dict() == pytest.approx(
        {"elastic": 2, "elastic-two-way": 2, "sasrec-fused": 4, "sasrec-eager": 4}, rel=0.05
    )
    assert growth["reading"].to_dict() == pytest.approx(
        {"elastic": 2, "elastic-two-way": 2, "sasrec-fused": 2, "sasrec-eager": 4}, rel=0.01
    )
    assert growth.loc["elastic", "kept"] == 1 and growth.loc["sasrec-fused", "kept"] == 2
    assert short["times"].min() == 1 and math.isnan(short["kept"].iloc[1])


def test_the_kept_state_is_what_the_calculator_says() -> None:
    for system in ("elastic", "sasrec-fused"):
        stream = open_stream(build_system(system, Setting(length=32, width=16, k=3, n_subkeys=4)), room=8)
        stream.refresh(torch.ones(2, 20, dtype=torch.long))
        formula = costs.kept_bytes(system, costs.Sizes(length=32, width=16, k=3, n_subkeys=4))
        assert abs(4 * stream.count_numbers() - formula) <= 8, "and where the history begins"


# --- in the background ------------------------------------------------------------------------------------------


def test_what_cannot_be_measured_is_refused_and_what_died_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measurements = Measurements(tmp_path)
    for wrong in ({"lengths": ()}, {"lengths": (1,)}, {"systems": ("gpt",)}, {"histories": 0}, {"k": 300}):
        with pytest.raises(InputError):
            Plan(**wrong)  # type: ignore[arg-type]
    assert Plan(lengths=(64, 8192), histories=8).left_out() == (8192,)
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)
    dead = measurements.submit(Plan(lengths=(16, 32))).id
    assert begin_job(measurements.folder, dead)
    assert measurements.get_job(dead).state == "interrupted" and measurements.get_job(dead).read_latencies().empty
    assert measurements.get_job(dead).gap_text.startswith("This measurement is interrupted: 0 of 2 lengths")


def test_the_shipped_rows_can_be_read() -> None:
    table = curves.shipped_rows(ROOT / "checkpoints")
    if table.empty:
        pytest.skip("no shipped rows here")
    for shape in curves.list_shapes(table):
        one = curves.of_shape(table, shape)
        assert not one.duplicated(["system", "length"]).any()
        assert curves.speed_sentence(one, "elastic", "sasrec-fused").startswith(("SASRec", "ELASTIC"))
