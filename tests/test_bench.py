"""The harness measures what it says: memory known by hand, turns that alternate, rows that survive a file."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from elastic_core import models
from elastic_core.bench import events, training
from elastic_core.bench.harness import Contestant, measure_contestants, peak_bytes, saved_bytes, time_in_turns
from elastic_core.bench.latency import SYSTEMS, Setting, measure_latency, measure_run
from elastic_core.bench.rows import COLUMNS, SAME, newest_together, read_rows, write_rows
from elastic_core.commands import bench, main
from elastic_core.core.config import ModelConfig
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.services.speed.curves import graphics_card

ROOT = Path(__file__).resolve().parents[1]
CPU = torch.device("cpu")
SMALL: dict[str, Any] = {"width": 8, "k": 2, "n_subkeys": 4}
MEGA = 1_000_000


def test_peak_memory_follows_births_and_deaths() -> None:
    def job() -> Tensor:
        x = torch.zeros(MEGA)  # 4 MB
        y = x + 1  # 8 MB
        del x  # 4 MB
        return (y * 2).view(10, -1)  # 8 MB; a view is nothing new

    assert peak_bytes(job, CPU) == 8 * MEGA


def test_saved_memory_counts_each_storage_once_and_no_parameters() -> None:
    layer, x = nn.Linear(1000, 1000), torch.randn(1000, 1000)
    saved = saved_bytes(lambda: layer(x).relu().exp().sum(), layer.parameters())
    assert saved == 12 * MEGA  # the input, what relu and what exp return


def test_contestants_take_turns() -> None:
    order: list[str] = []
    times = time_in_turns([lambda: order.append("a"), lambda: order.append("b")], CPU, rounds=4, warmup=1)
    assert "".join(order) == "ab" + "abbaabba"
    assert [each.shape for each in times] == [(4, 2), (4, 2)], "by the clock and of the processor, a round a line"


def test_a_ratio_is_of_two_jobs_in_the_same_rounds() -> None:
    def work(amount: int) -> Callable[[], int]:
        return lambda: sum(range(amount))

    jobs = {("quick", 1): 100_000, ("peer", 1): 400_000, ("quick", 2): 400_000, ("peer", 2): 100_000, ("quick", 3): 1_000}
    contestants = [Contestant(system, {"length": length}, work(amount)) for (system, length), amount in jobs.items()]
    rows = measure_contestants("latency", contestants, CPU, peer="peer", rounds=9)
    ratios = rows.set_index(["system", "length"])["ratio"]
    assert ratios["quick", 1] > 2 and ratios["quick", 2] < 0.5
    assert ratios.isna().sum() == 3, "a peer has none, and nobody who is timed without it"
    spread = rows.dropna(subset="ratio")
    assert (spread["ratio_low"] <= spread["ratio"]).all() and (spread["ratio"] <= spread["ratio_high"]).all()


def test_rows_carry_everything_and_survive_a_file(tmp_path: Path) -> None:
    rows = measure_latency(Setting(length=8, direction="forward+backward", **SMALL), CPU, rounds=3, warmup=1)
    assert len(rows) == 2 * len(SYSTEMS) and list(rows.columns) == COLUMNS
    assert (rows["batch"] == 8).all() and (rows["saved_bytes"] > 0).all() and (rows["peak_bytes"] > 0).all()
    file = tmp_path / "folder" / "rows.csv"
    for _ in range(2):  # the same measurement replaces the first
        write_rows(file, rows)
        pd.testing.assert_frame_equal(read_rows(file), rows)
    write_rows(file, rows.assign(commit="another"))
    assert len(read_rows(file, "latency")) == 2 * len(rows) and read_rows(file, "events").empty
    assert read_rows(tmp_path / "none.csv").empty
    file.write_text("bench,length\nlatency,short\n")
    with pytest.raises(InputError, match=r"rows\.csv is not a file of benchmark rows"):
        read_rows(file)


def test_runs_are_timed_by_latency_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "training", "--runs=planted-elastic"]) == 2
    assert "--runs goes with latency" in capsys.readouterr().err


def test_a_trained_run_is_timed_over_its_own_people(small_world: Dataset) -> None:
    torch.manual_seed(0)
    model = models.build(ModelConfig.known["elastic-slots"](length=8, layers=2, **SMALL), small_world.catalog).eval()
    rows = measure_run("mine", model, small_world, 5, CPU, rounds=3, warmup=1).set_index("system")
    assert list(rows.index) == ["elastic-slots", "sasrec-fused"] and set(rows["world"]) == {"mine"}
    assert (rows[["batch", "length", "width"]] == [5, 8, 8]).all(axis=None)
    assert rows["ratio"].notna().tolist() == [True, False]


def test_a_comparison_is_of_one_measurement() -> None:
    """Both sides by the same code; the newest that measured both counts."""
    rows = pd.concat([measure_latency(Setting(length=8, **SMALL), CPU, ("elastic", "sasrec-fused"), ["last"], rounds=3)] * 2)
    rows["commit"], rows["date"] = ["a", "a", "b", "b"], ["2020", "2020", "2021", "2021"]
    pair = ["elastic", "sasrec-fused"]
    assert set(newest_together(rows, pair)["commit"]) == {"b"} and list(newest_together(rows, pair).index) == pair
    assert set(newest_together(rows[:-1], pair)["commit"]) == {"a"}
    assert newest_together(rows[1:-1], pair).empty


def test_the_shipped_rows_are_of_the_current_form() -> None:
    rows = read_rows(ROOT / "checkpoints" / "benchmarks.csv")
    assert set(rows["bench"]) == {"latency", "training", "events", "memory", "crowd", "libraries"}
    assert not rows.duplicated(SAME).any()
    assert (rows.loc[rows["bench"] == "latency", ["seconds", "processor"]] > 0).all(axis=None)
    assert len(rows[rows["device"].str.contains("NVIDIA")]) == 30, "these cannot be measured again"


def test_what_is_measured_on_a_gpu_is_what_the_screens_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`bench --gpu` with rows made up for what it would measure."""
    asked: list[Setting] = []

    def measure(group: list[Setting], device: torch.device, systems: tuple[str, ...], **harness: Any) -> pd.DataFrame:
        asked.extend(group)
        small = Setting(length=8, batch=1, **SMALL)
        rows = measure_latency(small, CPU, systems, rounds=3, warmup=1).assign(device="a card", seconds=1.0)
        rows.loc[rows["system"] == "elastic", "seconds"] = 2.0
        return rows.assign(length=group[0].length, **{name: getattr(group[0], name) for name in SAID})

    monkeypatch.setattr(bench, "measure_latency", measure)
    monkeypatch.setattr(bench, "find_device", lambda name: CPU)
    assert main(["bench", "--gpu", "--remeasure", f"--out={tmp_path / 'benchmarks.csv'}"]) == 0
    assert [(one.batch, one.direction, one.compiled) for one in asked] == [
        (1, "forward", ""), (256, "forward+backward", ""), (256, "forward", "reduce-overhead")
    ]  # fmt: skip
    assert {one.dtype for one in asked} == {"bfloat16"} and {one.length for one in asked} == {1_024}
    assert graphics_card(tmp_path) == {"one": "2.0", "step": "2.0", "device": "a card", "length": "1,024"}
    assert graphics_card(ROOT) == {}


SAID = ("batch", "direction", "compiled", "dtype")


def test_one_new_event_is_timed_for_streaming_and_reading() -> None:
    rows = events.measure_events(Setting(length=32, batch=2, width=16, k=3, n_subkeys=4), CPU, SYSTEMS, rounds=3, warmup=1)
    kept = {system + end for system in events.streaming_systems() for end in (events.STREAM, events.REFRESH)}
    assert set(rows["system"]) == {*kept, *SYSTEMS} and (rows["seconds"] > 0).all()
    saved = rows.set_index("system")["saved_bytes"]
    assert saved["elastic-stream"] == 4 * 2 * (2 * (3 * (4 * 16 + 1) + 8 * 16) + 3 * 16 + 1)


def test_steps_of_training_are_timed_and_their_targets_counted(small_world: Dataset) -> None:
    configs = [
        training.training_config("sasrec", "full"),
        training.training_config("elastic", "full", ["objective.span=200", "model.k=4"]),
    ]
    rows = training.measure_training(configs, "full", CPU, small_world, rounds=3, warmup=1)
    assert rows["system"].tolist() == ["sasrec", "elastic"] and rows["objective"].tolist() == ["all", "window"]
    assert rows["span"].tolist()[1] == 200 and rows["k"].tolist()[1] == 4 and (rows["rounds"] == 3).all()
    assert (rows["targets"] / rows["processor"]).tolist() == pytest.approx(rows["rate_overall"].tolist(), rel=0.5)


@pytest.mark.slow
def test_the_memory_of_a_training_is_that_of_a_process_of_its_own(small_world: Dataset) -> None:
    ballast = np.ones(2**27)  # a gigabyte here, which a process started from here must not count as its own
    small, large = (training.training_config("elastic", "full", [f"model.n_subkeys={n_subkeys}"]) for n_subkeys in (16, 512))
    rows = training.measure_memory([small, large], "full", CPU, steps=1, dataset=small_world)
    table = 512**2 * 64 * 4  # of which there are a gradient, two moments and an average, too
    assert 100 * MEGA < rows["peak_bytes"][0] < ballast.nbytes
    assert table < rows["peak_bytes"][1] - rows["peak_bytes"][0] < 8 * table


def test_memory_that_is_kept_is_not_asked_for_again() -> None:
    """64 MB are 16,384 pages: taken anew for every tensor, and once when what was freed is kept."""
    code = (
        "import resource, torch\nfrom elastic_core.machine import keep_memory\n"
        "def faults():\n  before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "  for _ in range(2): torch.zeros(2**24).add_(1)\n  return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "first = faults()\nif keep_memory():\n  faults()\n  print(first, min(faults() for _ in range(4)))\n"
    )
    usual = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC")}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, env=usual).stdout
    if not said:
        pytest.skip("no glibc here")
    first, later = map(int, said.split())
    assert later < first / 10, "once the heap has settled"


def test_the_speeds_in_the_results_are_those_of_the_newest_rows() -> None:
    """How many times faster ELASTIC is than SASRec eager / fused / fused with the last row only, by processor time."""
    rows = read_rows(ROOT / "checkpoints" / "benchmarks.csv", "latency")
    usual = {"direction": "forward", "k": 16, "threads": 1, "heads": 1, "compiled": "", "device": "cpu (x86_64, 2 cores)"}
    rows = rows[(rows[list(usual)] == list(usual.values())).all(axis=1)].sort_values("date", kind="stable")
    newest = rows[rows["commit"] == rows["commit"].iloc[-1]].sort_values("batch", kind="stable")
    newest = newest.drop_duplicates(["system", "rows", "length"], keep="last")  # of the largest batch
    times = newest.set_index(["system", "rows", "length"])["processor"]
    lines = (ROOT / "checkpoints" / "RESULTS.md").read_text(encoding="utf-8").split("## Speed beside SASRec")[1].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    lengths = [int(cell.replace(",", "")) for cell in table[0][1:]]
    peers = [("sasrec-eager", "all"), ("sasrec-fused", "all"), ("sasrec-fused", "last")]
    for system, cells in (("elastic-two-way", table[2][1:]), ("elastic", table[3][1:])):
        for length, cell in zip(lengths, cells, strict=True):
            ratios = [times[*peer, length] / times[system, "last", length] for peer in peers]
            for ratio, text in zip(ratios, cell.split(" / "), strict=True):
                assert ratio == pytest.approx(float(text), abs=0.51 * 10.0 ** -len(text.partition(".")[2])), (system, length)
