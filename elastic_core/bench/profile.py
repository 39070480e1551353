"""The stages of whole passes as rows that are kept: what a goal that is missed is missed by."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from elastic_core.bench.latency import FORWARD, ROWS, Setting
from elastic_core.bench.stages import WHOLE, measure_stages
from elastic_core.machine import here, keep_memory

LAST = ROWS[:1]


@dataclass(frozen=True, kw_only=True)
class StageRow:
    """One stage of one pass of a batch. Median seconds of the clock and of the processor, and bytes."""

    system: str
    rows: str
    direction: str
    length: int
    batch: int
    width: int
    k: int
    side: int
    heads: int
    layers: int
    dropout: float
    stage: str
    clock: float
    clock_back: float
    processor: float
    processor_back: float  # on the way back; of the whole pass it is in `processor`
    moved: int
    kept: int
    rounds: int
    device: str
    threads: int
    load: float
    torch: str
    commit: str
    date: str

    @property
    def pass_key(self) -> tuple[Any, ...]:
        """Equal for the stages of one measurement."""
        same = ("system", "rows", "direction", "length", "batch", "width", "k", "side", "heads", "layers", "dropout")
        return tuple(str(getattr(self, name)) for name in (*same, "device", "threads", "torch", "commit"))

    @property
    def measured(self) -> bool:
        """Whether this may have been measured: a file may say anything."""
        sizes = (self.length, self.batch, self.width, self.k, self.side, self.threads)
        numbers = (self.processor, self.processor_back, self.clock, self.clock_back, self.load, self.moved, self.kept)
        return all(1 <= size <= 2**24 for size in sizes) and all(0 <= number <= 1e12 for number in numbers)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for two measurements of the same thing by the same code on the same machine."""
        return (*self.pass_key, self.stage)


def measure_profile(
    settings: Iterable[Setting], device: torch.device, systems: Sequence[str], rounds: int, seconds: float
) -> list[StageRow]:
    """Every stage of every system: forward with the last row only, in training with the last and with all."""
    if device.type == "cpu":
        keep_memory()
    found = []
    for setting in settings:
        for system in systems:
            for which in LAST if setting.direction == FORWARD else ROWS:
                found += _rows(setting, device, system, which, rounds, seconds)
    return found


def _rows(setting: Setting, device: torch.device, system: str, which: str, rounds: int, seconds: float) -> list[StageRow]:
    stages = measure_stages(setting, device, system, which, rounds=rounds, seconds=seconds)
    shape = {name: getattr(setting, name) for name in ("length", "batch", "width", "k", "side", "heads", "layers", "dropout")}
    return [
        StageRow(
            **shape, **here(device), system=system, rows=which, direction=setting.direction, stage=name,
            rounds=stage.timing.rounds,
            clock=round(stage.timing.median, 7), clock_back=round(stage.backward.median, 7), moved=stage.moved, kept=stage.kept,
            processor=round(stage.timing.processor, 7), processor_back=round(stage.backward.processor, 7),
        )
        for name, stage in stages.items()
    ]  # fmt: skip


def as_table(rows: Sequence[StageRow]) -> str:
    """Of every pass its stages, the largest first: milliseconds of the processor there and back, their share, megabytes."""
    passes: dict[Any, list[StageRow]] = {}
    for row in rows:
        passes.setdefault(row.pass_key, []).append(row)
    lines = []
    for stages in passes.values():
        first, together = stages[0], sum(row.processor + row.processor_back for row in stages if row.stage != WHOLE)
        lines.append(
            f"{first.system}, {first.rows} rows, {first.direction}, N = {first.length:,}, {first.batch} histories, "
            f"k = {first.k}, {first.device}, {first.threads} thread(s), {first.commit}"
        )
        lines.append(f"  {'stage':<20}{'forward':>9}{'back':>9}{'share':>8}{'moved MB':>10}{'kept MB':>9}")
        for row in sorted(stages, key=lambda row: (row.stage != WHOLE, -(row.processor + row.processor_back))):
            share = "" if row.stage == WHOLE else f"{(row.processor + row.processor_back) / max(together, 1e-12):.1%}"
            lines.append(
                f"  {row.stage:<20}{row.processor * 1e3:>9.2f}{row.processor_back * 1e3:>9.2f}{share:>8}"
                f"{row.moved / 1e6:>10.1f}{row.kept / 1e6:>9.1f}"
            )
    return "\n".join([*lines, "milliseconds of the processor a batch; bytes moved there and back"])
