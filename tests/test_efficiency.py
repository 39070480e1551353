"""Speed: exponents and crossings on curves known by formula, operations against torch's counter, a real process."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from measuring import but
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from elastic_core import models
from elastic_core.bench import events, stages, timing
from elastic_core.bench.latency import ITEMS, SYSTEMS, Setting, build_system, contestants, measure_latency, timed
from elastic_core.bench.timing import moved_by, row_of, saved_bytes
from elastic_core.core.batches import Batch
from elastic_core.core.layers import Attention, FeedForward
from elastic_core.errors import InputError
from elastic_core.services.speed import costs, curves
from elastic_core.services.speed.jobs import Measurements, Plan

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
    assert found.at(300) == pytest.approx(3e-3 * 300**exponent)
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
    ratio = curves.versus(table, "elastic", "sasrec-fused")
    assert curves.crossings(ratio) == pytest.approx([400])
    said = curves.speed_sentence(table, "elastic", "sasrec-fused")
    assert "SASRec is faster at N = 64 to 256 (up to" in said
    assert "ELASTIC is faster at N = 512 to 2,048 (" in said
    assert "near N = 400" in said
    assert curves._listed(pd.Index([64, 128, 256, 1024, 4096, 8192]), pd.Index([64, 128, 256, 512, 1024, 2048, 4096, 8192])) == (
        "64 to 256, 1,024, 4,096, 8,192"
    )
    assert "They do not cross" in curves.speed_sentence(table[table["length"] > 400], "elastic", "sasrec-fused")
    assert "not measured" in curves.speed_sentence(table[table["system"] == "elastic"], "elastic", "sasrec-fused")
    there_and_back = pd.Series([0.5, 2.0, 0.5, 2.0], index=[10, 20, 40, 80])
    assert len(curves.crossings(there_and_back)) == 3


def test_one_new_event_is_held_against_the_rival_that_keeps_something_too() -> None:
    """With our refresh in it, and where the rival is faster is said; reading all again is no rival."""
    kept = {"elastic-stream": 0.02, "elastic-refresh": [1.0, 2.0, 4.0], "sasrec-fused-stream": [0.02, 0.06, 0.4],
            "sasrec-fused-refresh": [0.5, 5.0, 50.0], "sasrec-fused": [0.2, 4.0, 40.0]}  # fmt: skip
    wide = pd.DataFrame(kept, index=pd.Index([64, 512, 4096], name="length"))
    said = curves.event_words(wide)
    assert said.startswith("One new event takes ELASTIC 0.04 to 0.10 ms, with a refresh every 50 events. SASRec, which keeps")
    assert "SASRec is faster at N = 64 (up to 2.0 times)." in said
    assert "ELASTIC is faster at N = 512, 4,096 (up to 4.0 times). They cross near N = 510." in said
    assert "a refresh, too. Then it takes 0.8 to 14.0 times as long as ELASTIC." in said and "reading all again" not in said
    assert "SASRec" not in curves.event_words(wide[["elastic-stream", "elastic-refresh"]])
    assert curves.event_words(wide[["sasrec-fused"]]) == "The kept state was not measured."


def test_sources_are_not_mixed_and_batches_become_histories() -> None:
    rows = measure_latency(
        Setting(length=16, histories=4, width=8, k=2, side=4), CPU, ("elastic", "sasrec-fused"), rounds=3, warmup=1
    )
    table = curves.tidy(rows, curves.MEASURED)
    assert set(table["source"]) == {curves.MEASURED} and len(table) == 2 and (table["batch"] == 4).all()
    mine = next(r for r in rows if (r.system, r.rows) == ("elastic", "last"))
    line = table.set_index("system").loc["elastic"]
    assert line["ms"] == pytest.approx(1e3 * mine.seconds / 4) and line["memory"] == pytest.approx(mine.peak / 4e6)
    assert curves.of_shape(table, curves.shapes(pd.concat([table, table.assign(length=32)]))[0]).equals(table)
    assert curves.memory_words(table).startswith("Memory, compared with ELASTIC: SASRec needs")
    calm, busy = table.assign(load=0.1), table.assign(load=5.0)
    assert curves.trusted(calm)[0].equals(calm) and curves.trusted(busy)[0]["ms"].equals(table["processor"])
    assert "torch" in curves.machine(table) and curves.machine(table[:0]) == "Nothing measured yet."


def test_every_trainable_model_is_a_contestant() -> None:
    trainable = {name for name in models.names() if models.model_class(name).objective}
    named = {max((m for m in trainable if name == m or name.startswith(f"{m}-")), key=len) for name in contestants()}
    assert named == trainable
    assert set(SYSTEMS) <= set(contestants())


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
    model = build_system(system, Setting(length=n, width=d, k=k, side=16, heads=heads)).eval()
    for module in model.modules():
        if isinstance(module, Attention):
            module.fused = False  # the counter does not see into the fused kernel
    items = torch.randint(1, ITEMS + 1, (people, n))
    with FlopCounterMode(display=False, custom_mapping=KERNELS) as counter, torch.no_grad():
        model.score(Batch(items, items, padded=False))
    shape = costs.Shape(n=n, d=d, k=k, side=16, heads=heads)
    table = costs.operations("sasrec-eager" if system == "sasrec-fused" else system, shape)
    assert table["operations"].sum() == pytest.approx(counter.get_total_flops() / people, rel=0.03)
    half = costs.operations("sasrec-fused", shape).set_index("stage")["operations"]
    full = costs.operations("sasrec-eager", shape).set_index("stage")["operations"]
    assert half["attention"] < 0.52 * full["attention"]


def test_the_calculator_grows_as_it_says() -> None:
    for system in costs.LABELS:
        small, large = (costs.operations(system, costs.Shape(n=n)).set_index("stage") for n in (4096, 8192))
        for stage, row in small.iterrows():
            factor = large.loc[stage, "operations"] / row["operations"]
            assert factor == pytest.approx({"constant": 1, "linear": 2, "quadratic": 4}[row["grows"]], rel=0.05), (system, stage)
    kept = costs.memory(costs.Shape(n=8192)).set_index("what")["bytes"]
    assert kept["Kept per person, ELASTIC streaming"] == costs.memory(costs.Shape(n=64)).set_index("what")["bytes"].iloc[5]
    assert costs.totals(costs.Shape())["times"].min() == 1


def test_the_kept_state_is_what_the_calculator_says() -> None:
    from elastic_core.following.stream import open_stream

    stream = open_stream(build_system("elastic", Setting(length=32, width=16, k=3, side=4)), room=8)
    stream.refresh(torch.ones(2, 20, dtype=torch.long))
    shape = costs.Shape(d=16, k=3, side=4)
    assert 4 * stream.numbers() == costs.memory(shape).set_index("what").loc["Kept per person, ELASTIC streaming", "bytes"]


@pytest.mark.parametrize("system", ["elastic", "elastic-two-way", "sasrec-fused"])
@pytest.mark.parametrize(("direction", "rows"), [("forward", "last"), ("forward+backward", "last"), ("forward+backward", "all")])
def test_the_stages_are_all_of_the_pass(system: str, direction: str, rows: str) -> None:
    """A stage is neither left out nor counted twice: in bytes, which no busy machine moves, and in what is kept for the way back,
    against counters that know of no stages. What nobody claims is little."""
    setting = Setting(length=64, histories=16, width=32, k=4, side=8, direction=direction)
    found = {row.stage: row for row in stages.measure_stages(setting, CPU, system, rows, rounds=2, warmup=0)}
    whole, training = found.pop(stages.WHOLE), direction != "forward"
    model, items = build_system(system, setting), torch.randint(1, 100, (16, 64))
    batch, work = Batch(items, items, padded=False), timed(model.train(training), rows)

    def job() -> None:
        with torch.inference_mode(not training):
            work(batch).square().mean().backward() if training else model.score(batch)

    with moved_by(lambda: "all") as moved:
        job()
    assert whole.moved == moved["all"] == sum(stage.moved for stage in found.values())
    assert whole.kept == sum(stage.kept for stage in found.values())
    if training:
        assert whole.kept - found[stages.LOSS].kept == saved_bytes(lambda: work(batch), model.parameters())
    nobodys = found[stages.REST]
    assert nobodys.moved < 0.05 * whole.moved and nobodys.kept < 0.05 * max(whole.kept, 1)
    assert whole.moved > 4 * setting.batch * setting.length * setting.width * 20  # a pass over all events is not for nothing
    own = {"elastic": "folding", "elastic-two-way": "aggregation", "sasrec-fused": "attention"}[system]
    named = {"embedding", "positions", "norms", "residual", "feed-forward", own}
    assert named <= set(found) <= {*stages.STAGES, stages.REST, stages.LOSS, stages.SUMS}
    assert all(found[name].seconds > 0 and (found[name].back > 0) == training for name in named)
    assert not [name for part in model.modules() for name in vars(part) if name in ("forward", "fold", "finish", "score")]


def test_a_stage_is_charged_with_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow it down, on the way there and on the way back: the time shows there, and nowhere else. The clock is the test's own."""
    now = [0.0]
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: now[0]))

    class Slow(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            now[0] += 2
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> Tensor:
            now[0] += 3
            return gradients[0]

    plain = FeedForward.forward
    monkeypatch.setattr(FeedForward, "forward", lambda self, x: plain(self, Slow.apply(x)))
    setting = Setting(length=16, histories=2, width=8, k=2, side=4, direction="forward+backward")
    found = {row.stage: row for row in stages.measure_stages(setting, CPU, "elastic", "all", rounds=3, warmup=1)}
    assert (found["feed-forward"].seconds, found["feed-forward"].back) == (4, 6)  # two layers
    others = [stage for name, stage in found.items() if name not in ("feed-forward", stages.WHOLE)]
    assert not any(stage.seconds + stage.back for stage in others)


def test_one_new_event_is_timed_for_streaming_and_reading() -> None:
    setting = Setting(length=32, histories=2, width=16, k=3, side=4)
    found = events.measure_events(setting, CPU, events.readers(), rounds=3, warmup=1)
    kept = {name + end for name in events.followers() for end in (events.STREAM, events.REFRESH)}
    assert {row.system for row in found} == {*kept, *events.readers()} and all(row.seconds > 0 for row in found)


def test_the_goals_of_streaming_are_read_from_rows() -> None:
    told = {"rows": events.STEP, **Setting(length=8, direction=events.EVENT).told}
    row = row_of("streaming", "elastic", told, [(1, 1)] * 3, {}, CPU)
    taken = {("elastic", 64, 256): 4, ("elastic", 64, 65_536): 5, ("elastic", 64, 1_024): 4, ("sasrec-fused", 64, 1_024): 24}
    taken |= {("elastic", 1, 1_024): 2, ("sasrec-fused", 1, 1_024): 3}
    rows = [but(row, system=s, batch=b, length=n, processor=1e-6 * time) for (s, b, n), time in taken.items()]
    passes = but(rows[0], direction="forward", rows="last", processor=9.0)
    assert events.streaming_goals([*rows, passes]) == pytest.approx(
        {
            "C10 SASRec / ELASTIC, T = 1024": 6, "C10 ELASTIC, T = 65536 / T = 256": 1.25, "C11 microseconds": 2,
            "C11 SASRec / ELASTIC, T = 1024": 1.5,
        }
    )  # fmt: skip


# --- in the background ------------------------------------------------------------------------------------------


def test_what_cannot_be_measured_is_refused_and_what_died_is_said(tmp_path: Path) -> None:
    measurements = Measurements(tmp_path)
    for wrong in ({"lengths": ()}, {"lengths": (1,)}, {"systems": ("gpt",)}, {"histories": 0}, {"k": 300}):
        with pytest.raises(InputError):
            Plan(**wrong)  # type: ignore[arg-type]
    assert Plan(lengths=(64, 8192), histories=8).left_out() == (8192,)
    dead = measurements.folder / "20200101-000000-000000"
    dead.mkdir(parents=True)
    (dead / "job.json").write_text(json.dumps(asdict(Plan(lengths=(16, 32)))))
    (dead / "begun.json").write_text("{}")
    assert measurements.get(dead.name).state == "interrupted" and measurements.get(dead.name).latencies().empty
    assert measurements.get(dead.name).cut.startswith("This measurement is interrupted: 0 of 2 lengths")


def test_the_shipped_rows_can_be_read() -> None:
    table = curves.shipped(ROOT / "checkpoints")
    if table.empty:
        pytest.skip("no shipped rows here")
    assert set(table["source"]) == {curves.SHIPPED}
    for shape in curves.shapes(table):
        one = curves.of_shape(table, shape)
        assert not one.duplicated(["system", "length"]).any()
        assert curves.speed_sentence(one, "elastic", "sasrec-fused").startswith(("SASRec", "ELASTIC"))
