"""The harness measures what it says: memory known by hand, turns that alternate, rows that survive a file."""

from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from elastic_core.bench.latency import ITEMS, SYSTEMS, Setting, build, measure, ratios
from elastic_core.bench.store import read_rows, write_rows
from elastic_core.bench.timing import interleaved, peak_bytes, saved_bytes
from elastic_core.data.batches import Batch
from elastic_core.errors import InputError

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
    found = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, CPU, rounds=4, warmup=1)
    assert "".join(order) == "ab" + "abbaabba"
    assert all(t.low <= t.median <= t.high and t.rounds == 4 for t in found.values())


@pytest.mark.parametrize("system", SYSTEMS)
@torch.no_grad()
def test_both_jobs_of_a_contestant_agree(system: str) -> None:
    """`last` is a shortcut to the last row of `all`, not something else."""
    model = build(system, Setting(length=16, **SMALL)).eval()
    items = torch.randint(1, ITEMS + 1, (4, 16))
    batch = Batch(items, items, padded=False)
    torch.testing.assert_close(model.last_state(batch), model(batch).states[:, -1], atol=1e-5, rtol=1e-4)


def test_rows_carry_everything_and_survive_a_file(tmp_path: Path) -> None:
    rows = measure(Setting(length=8, direction="forward+backward", **SMALL), CPU, rounds=3, warmup=1)
    assert len(rows) == 2 * len(SYSTEMS) and all(row.batch == 8 and row.saved > 0 and row.peak > 0 for row in rows)
    write_rows(tmp_path / "rows.csv", rows)
    write_rows(tmp_path / "rows.csv", [*read_rows(tmp_path / "rows.csv"), *rows])  # the same measurement: replaced
    assert [asdict(row) for row in read_rows(tmp_path / "rows.csv")] == [asdict(row) for row in rows]
    found = list(ratios(rows))
    assert {row["system"] for row in found} == {"elastic", "elastic-two-way"} and all(
        {"E", "S", "S1"} <= set(row) for row in found
    )
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"rows\.csv"):
        read_rows(tmp_path / "rows.csv")
