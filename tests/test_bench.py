"""The harness measures what it says: memory known by hand, turns that alternate, rows that survive a file."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from measuring import but
from torch import Tensor, nn

from elastic_core.bench import goals, stages
from elastic_core.bench.latency import SYSTEMS, Setting, measure_latency, ratios
from elastic_core.bench.store import Row, read_rows, write_rows
from elastic_core.bench.timing import in_turns, moved_by, peak_bytes, saved_bytes
from elastic_core.commands import bench, main
from elastic_core.errors import InputError
from elastic_core.services.speed.curves import graphics_card

ROOT = Path(__file__).resolve().parents[1]
CPU = torch.device("cpu")
SMALL = {"width": 8, "k": 2, "side": 4, "tokens": 64}
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
    found = in_turns([lambda: order.append("a"), lambda: order.append("b")], CPU, rounds=4, warmup=1)
    assert "".join(order) == "ab" + "abbaabba"
    assert [taken.shape for taken in found] == [(4, 2), (4, 2)], "by the clock and of the processor, a round a line"


def test_rows_carry_everything_and_survive_a_file(tmp_path: Path) -> None:
    rows = measure_latency(Setting(length=8, direction="forward+backward", **SMALL), CPU, rounds=3, warmup=1)
    assert len(rows) == 2 * len(SYSTEMS) and all(row.batch == 8 and row.saved > 0 and row.peak > 0 for row in rows)
    write_rows(tmp_path / "rows.csv", rows)
    write_rows(tmp_path / "rows.csv", [*read_rows(tmp_path / "rows.csv"), *rows])  # the same measurement: replaced
    assert [vars(row) for row in read_rows(tmp_path / "rows.csv")] == [vars(row) for row in rows]
    found = list(ratios(rows))
    assert {row["system"] for row in found} == {"elastic", "elastic-two-way"} and all(
        {"E", "S", "S1"} <= set(row) for row in found
    )
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"rows\.csv"):
        read_rows(tmp_path / "rows.csv")


def test_moved_bytes_count_reads_and_writes_but_no_views() -> None:
    x, table, at = torch.zeros(1000), torch.zeros(500, 10), torch.tensor([[3, 4, 3]])

    def job() -> None:
        y = x.view(10, 100) + 1  # reads and writes 4 kB
        y[0].mul_(2)  # reads and writes 400 bytes; the operator's argument and its result are the same
        nn.functional.embedding(at, table)  # three rows of 40 bytes, read and written
        torch.empty(1000)

    with moved_by(lambda: "all") as moved:
        job()
    assert moved == {"all": 8_000 + 800 + 240}


def test_what_is_measured_on_a_gpu_is_what_the_goals_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`bench --gpu`, with rows made up for what it would measure: every goal of a GPU finds its own."""
    asked: list[Setting] = []
    monkeypatch.setattr(bench, "CHECKPOINTS", tmp_path)
    monkeypatch.setattr(bench, "find_device", lambda name: CPU)
    monkeypatch.setattr(bench, "_of_passes", lambda arguments: asked.extend(bench._settings(arguments, ())) or ())
    assert main(["bench", "--gpu"]) == 0
    (blank,) = measure_latency(Setting(length=8, **SMALL), CPU, ("elastic",), rows=("last",), rounds=3, warmup=1)
    rows = [
        but(
            blank, system=system, rows=which, seconds=1.0 + (system != "elastic-two-way"), peak=4 + (system != "elastic-two-way"),
            **{name: getattr(one, name) for name in ("length", "batch", "direction", "width", "k", "compiled", "dtype")},
        )
        for one in asked for system in SYSTEMS for which in ("last", "all")
    ]  # fmt: skip
    found = [goal.value(rows) for goal in goals.GOALS if goal.file == "gpu"]
    for row in rows:
        if row.compiled:  # a pass of which no peak is seen
            del row.figures["peak"], row.figures["saved"]  # type: ignore[attr-defined]
    write_rows(tmp_path / "benchmarks" / "gpu.csv", rows)
    assert len(read_rows(tmp_path / "benchmarks" / "gpu.csv")) == len(rows)
    assert graphics_card(tmp_path) == {
        "one": "1.0",
        "step": "1.0",
        "device": blank.device,
        "length": "1,024",
    } and not graphics_card(ROOT)
    assert found == [2.0, 2.0, 2.0, 0.8, 0.8] and all(goal.value([]) is None for goal in goals.GOALS if goal.file == "gpu")


def test_goals_are_read_from_rows_of_one_measurement() -> None:
    """The peer's time over ours, both by the same code; the newest that measured both counts; nothing is made up."""
    (blank,) = measure_latency(Setting(length=8, **SMALL), CPU, ("elastic",), rows=("last",), rounds=3, warmup=1)

    def row(system: str, rows: str = "last", seconds: float = 1.0, **values: Any) -> Row:
        usual = {"length": 1_024, "width": 64, "k": 16, "batch": 16, "commit": "a", "date": "2020-01-01"}
        return but(blank, **{**usual, "system": system, "rows": rows, "processor": seconds, **values})

    old = [row("elastic-two-way", seconds=2.0), row("sasrec-fused", seconds=8.0), row("sasrec-eager", "all", 30.0)]
    new = [row("elastic-two-way", commit="b", date="2021-01-01"), row("sasrec-fused", seconds=2.0, commit="b", date="2021-01-01")]
    by_name = {f"{goal.name} {goal.what} {goal.peer}": goal for goal in goals.GOALS}

    def values(rows: list[Row], *starts: str) -> list[float | None]:
        return [goal.value(rows) for start in starts for name, goal in by_name.items() if name.startswith(start)]

    two_way = "C1 two-way, forward, N = 1,024, k = 16"
    assert values(old, two_way) == [15.0, None, 4.0]
    assert values(old + new, two_way) == [15.0, None, 2.0]  # eager attention was measured with the older code only
    assert values(old, "C3 two-way", "C3 causal, forward, N = 1,024") == [None, None]
    long = row("elastic-two-way", seconds=3.0, length=65_536, batch=1)
    assert values([*old, long], "C5 two-way") == pytest.approx([3.0 / 65_536 / (2.0 / 16_384)])
    assert values([*old, but(long, commit="b")], "C5 two-way") == [None]
    kept = [row(name, "all", direction="forward+backward", saved=n) for name, n in (("elastic-two-way", 3), ("sasrec-fused", 4))]
    assert values(kept, "C7 two-way, all rows", "C7 two-way, last rows") == [0.75, None, None]
    most, least = (goals.Goal("", "", "", "", f"{sign} 2", "") for sign in "≤≥")
    assert [goal.reached(value) for goal in (most, least) for value in (1.0, 2.0, 3.0)] == [True, True, False, False, True, True]


def test_the_command_prints_a_row_for_every_goal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(bench, "CHECKPOINTS", tmp_path)
    small = "--lengths 1024 --width 64 --k 16 --side 4 --tokens 1024 --rounds 3 --name mine".split()
    assert main(["bench", *small, "--passes", "forward", "--systems", "elastic-two-way,sasrec-fused"]) == 0
    assert main(["bench", *small, "--passes", "forward+backward", "--operations"]) == 0
    capsys.readouterr()
    assert main(["bench", "--goals", "--name", "mine"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:-1]
    assert [line.split()[0] for line in lines] == [goal.name for goal in goals.GOALS]
    there = [line for line in lines if "not measured" not in line]
    assert len(there) == 3 and all("1,024" in line and line.endswith(("reached", "missed")) for line in there)
    assert {goal.name for goal in goals.GOALS} >= {f"C{i}" for i in range(1, 13)}


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


def test_passes_are_taken_apart_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "CHECKPOINTS", tmp_path)
    small = ["bench", "--stages", "--width=8", "--k=2", "--side=4", "--tokens=64", "--rounds=2", "--lengths=16"]
    assert main([*small, "--passes=forward,forward+backward", "--systems=elastic,sasrec-fused"]) == 0
    printed = capsys.readouterr().out
    rows = read_rows(tmp_path / "benchmarks" / "profile.csv")
    passes = [found[0] for found in stages.by_pass(rows)]
    assert [(row.system, row.rows, row.direction) for row in passes] == [
        (system, which, direction)
        for direction, kinds in (("forward", ["last"]), ("forward+backward", ["last", "all"]))
        for system in ("elastic", "sasrec-fused")
        for which in kinds
    ]
    assert all(f"{row.system}, {row.rows} rows, {row.direction}, N = 16, 4 histories" in printed for row in passes)
    assert {row.stage for row in rows if row.system == "sasrec-fused"} >= {"attention", "feed-forward"}
    assert main([*small, "--precision=bfloat16"]) == 2 and "--stages" in capsys.readouterr().err
