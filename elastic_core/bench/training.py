"""How many targets a second of training learns from, on one core: whole steps of `train`, and where they go (goal C13).

A step is all that an epoch repeats: drawing batch and negatives, the pass, the loss, the way back, clipping, the optimiser,
the running average, and the statistics of queries every tenth step. Targets are those that the loss sums over.
Contestants take turns in one process, step by step; times are of the processor. They learn as the recipe `ml-1m-cpu` says (64
rows of up to 200 events, 512 shared negatives), on one of two worlds:

    full      planted, 3,416 items; every row has 200 events (every other one 199), so people's lengths play no part
    ml-1m     MovieLens-1M itself: rows of about 110 events, for half of the people have fewer than a hundred

`window` cuts a history into windows of `span` targets, each read with up to 200 events: of span 200 every event read is a target,
of span 100 (the recipe's) half of them. `last` has one target a row, whatever is read for it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from elastic_core import models, objectives, recipes
from elastic_core.core.batches import Batch
from elastic_core.core.config import DataConfig, PlantedConfig, RunConfig
from elastic_core.core.step import Learner
from elastic_core.data import Dataset, load
from elastic_core.machine import here, keep_memory
from elastic_core.recipes import DEFAULT, PEER

WORLDS = {
    "full": DataConfig(source="planted", planted=PlantedConfig(users=640, items=3_416, mean_length=402, max_length=402)),
    "ml-1m": DataConfig(source="ml-1m"),
}
WHOLE = "step"
PARTS = ("sampling", "calibration", "forward", "loss", "backward", "clipping", "optimiser", "averaging")


class Contestant(NamedTuple):
    model: str
    objective: str
    span: int = 0
    settings: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.model} {self.objective}" + (f" {self.span}" if self.span else "")


CONTESTANTS = (
    Contestant(PEER, "all"),
    Contestant(DEFAULT, "window", 200),
    Contestant(DEFAULT, "window", 100),
    Contestant(DEFAULT, "last", 0, ("model.bidirectional=true", "model.conv_width=0")),
)


@dataclass(frozen=True, kw_only=True)
class TrainingRow:
    """A step (`part` = step) or a part of it, and everything needed to read it. Seconds of the processor, by step."""

    part: str
    model: str
    objective: str
    span: int
    world: str
    batch: int
    length: int
    width: int
    layers: int
    items: int
    negatives: int
    dropout: float
    targets: float  # of a step, on average
    events: float
    median: float
    low: float
    high: float
    rate: float  # targets a second, the median over steps; of a part 0
    rate_low: float
    rate_high: float
    overall: float  # all targets over all seconds
    rounds: int
    device: str
    threads: int
    load: float
    torch: str
    commit: str
    date: str

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for two measurements of the same thing by the same code on the same machine."""
        same = (
            "part",
            "model",
            "objective",
            "span",
            "world",
            "batch",
            "length",
            "width",
            "layers",
            "items",
            "negatives",
            "dropout",
        )
        return tuple(str(getattr(self, name)) for name in (*same, "device", "threads", "torch", "commit"))


class Clock:
    """Processor seconds by part; what a part calls that is a part itself is not counted twice."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.inside: list[float] = []

    def timed(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            self.inside.append(0.0)
            began = time.process_time()
            try:
                return work(*args, **kwargs)
            finally:
                taken = time.process_time() - began
                self.seconds[part] += taken - self.inside.pop()
                if self.inside:
                    self.inside[-1] += taken

        return run


class Trainee:
    """One contestant in training, epoch after epoch."""

    def __init__(self, contestant: Contestant, world: str, dataset: Dataset, seed: int = 0) -> None:
        self.config, self.dataset, self.clock = configured(contestant, world), dataset, Clock()
        torch.manual_seed(seed)
        model = models.build(self.config.model, dataset.catalog).train()
        objective = objectives.build(self.config.objective, dataset, self.config.model.length)
        self.learner = Learner(model, objective, self.config.train, torch.device("cpu"))
        self.batches, self.steps = self._batches(), 0
        learner, timed = self.learner, self.clock.timed
        model.forward = timed("forward", model.forward)  # type: ignore[method-assign]
        for name, part in (("loss", "loss"), ("backward", "backward"), ("clipped", "clipping"), ("update", "optimiser"),
                           ("follow", "averaging"), ("calibrate", "calibration")):  # fmt: skip
            setattr(learner, name, timed(part, getattr(learner, name)))
        self.draw = timed("sampling", self.batches.__next__)

    def step(self) -> tuple[int, int]:
        """Targets learned from, events read."""
        batch = self.draw().to("cpu")
        self.learner.calibrate(self.dataset, 0, self.steps)
        self.steps += 1
        learned = self.learner.step(batch)
        return learned.targets, learned.events

    def _batches(self) -> Iterator[Batch]:
        epoch = 0
        while True:
            yield from self.learner.objective.epoch(epoch, 0, self.config.train.batch)
            epoch += 1


def configured(contestant: Contestant, world: str) -> RunConfig:
    recipe = recipes.ml_1m_cpu(contestant.model)
    taught = recipes.objective_settings(
        contestant.model, contestant.objective, loss=recipe.objective.loss, negatives=recipe.objective.negatives,
        span=contestant.span or 1,
    )  # fmt: skip
    return RunConfig(data=WORLDS[world], model=recipe.model, objective=taught, train=recipe.train).override(*contestant.settings)


def measure_training(
    world: str, contestants: Sequence[Contestant] = CONTESTANTS, rounds: int = 15, warmup: int = 3, dataset: Dataset | None = None
) -> list[TrainingRow]:
    """A row a contestant and part. `dataset` stands for the world, in tests."""
    keep_memory()
    data = dataset or load(WORLDS[world])
    trainees = {each: Trainee(each, world, data) for each in contestants}
    for trainee in trainees.values():
        for _ in range(warmup):
            trainee.step()
    taken: dict[Contestant, list[tuple[float, ...]]] = {each: [] for each in trainees}
    for turn in range(rounds):
        for each in sorted(trainees, key=lambda each: (list(trainees).index(each) + turn) % len(trainees)):
            trainee, before = trainees[each], dict(trainees[each].clock.seconds)
            began = time.process_time()
            targets, events = trainee.step()
            whole = time.process_time() - began
            parts = [trainee.clock.seconds[part] - before[part] for part in PARTS]
            taken[each].append((targets, events, whole, *parts))
    found = []
    for each, numbers in taken.items():
        found += _rows(each, world, trainees[each].config, data, np.array(numbers))
    return found


def _rows(each: Contestant, world: str, config: RunConfig, data: Dataset, numbers: np.ndarray) -> list[TrainingRow]:
    targets, events, whole = numbers[:, :3].T
    low, rate, high = np.quantile(targets / whole, [0.25, 0.5, 0.75])
    speeds = {
        "rate": float(rate),
        "rate_low": float(low),
        "rate_high": float(high),
        "overall": float(targets.sum() / whole.sum()),
    }
    said: dict[str, Any] = {
        "model": each.model, "objective": each.objective, "span": each.span, "world": world, "batch": config.train.batch,
        "length": config.model.length, "width": config.model.width, "layers": config.model.layers, "items": data.catalog.n_items,
        "negatives": config.objective.negatives, "dropout": config.model.dropout, "targets": round(float(targets.mean()), 1),
        "events": round(float(events.mean()), 1), "rounds": len(numbers), **here(torch.device("cpu")),
    }  # fmt: skip
    rows = []
    for part, seconds in zip((WHOLE, *PARTS), numbers[:, 2:].T, strict=True):
        low, median, high = (round(float(x), 7) for x in np.quantile(seconds, [0.25, 0.5, 0.75]))
        said |= {name: round(value if part == WHOLE else 0.0, 1) for name, value in speeds.items()}
        rows.append(TrainingRow(part=part, median=median, low=low, high=high, **said))
    return rows


def rates(rows: Sequence[TrainingRow]) -> dict[str, float]:
    """Targets a second of every contestant on the world of full rows with one thread; of several measurements the last."""
    return {
        Contestant(row.model, row.objective, row.span).label: row.rate
        for row in sorted(rows, key=lambda row: row.date)
        if row.part == WHOLE and row.world == "full" and row.threads == 1
    }


def as_table(rows: Sequence[TrainingRow]) -> str:
    """Of every measurement the targets a second, with quartiles over steps, and the milliseconds of each part."""
    head = f"{'':<21}{'world':<7}{'targets':>8}{'events':>8}{'targets/s':>11}{'quartiles':>17}{'ms':>8}  "
    lines = ["processor time", head + " ".join(f"{part:>11}" for part in PARTS) + "  commit"]
    found: dict[Any, dict[str, TrainingRow]] = {}
    for row in rows:
        found.setdefault(row.key[1:], {})[row.part] = row
    for parts in found.values():
        if WHOLE not in parts:
            continue
        row = parts[WHOLE]
        label, spread = Contestant(row.model, row.objective, row.span).label, f"{row.rate_low:,.0f} … {row.rate_high:,.0f}"
        each = " ".join(f"{parts[part].median * 1e3:>11.1f}" if part in parts else f"{'':>11}" for part in PARTS)
        lines.append(
            f"{label:<21}{row.world:<7}{row.targets:>8,.0f}{row.events:>8,.0f}{row.rate:>11,.0f}{spread:>17}"
            f"{row.median * 1e3:>8.1f}  {each}  {row.commit}"
        )
    return "\n".join(lines)
