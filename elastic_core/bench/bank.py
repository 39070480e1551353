"""What a memory of K experts costs: searching it, learning its rows, and a whole model with it. d = 64, k = 16, one thread.

    search      2·√K sub-keys and the gather of k rows against the flat search of all K keys; and whether both find the same
    step        one step of the bank alone: gather B·k rows, backward, update. `rows` (scale/rows.py), torch's `nn.Embedding`
                with `sparse=True` and SparseAdam (`sparse-adam`), and with a dense gradient and fused Adam (`fused-adam`)
    forward     states of the last event of ELASTIC, retrieval included, by the query network and by votes of its events
    training    one step of ELASTIC as it is trained, by either: loss, backward, clipping, update, running average

Contestants of a part take turns in one process. Numbers of rows are drawn anew for every step from uniform ones: the hardest case
for a cache. Ratios are of processor time.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import cycle, product
from math import isqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from elastic_core import models, objectives
from elastic_core.bench.timing import Job, Timing, interleaved
from elastic_core.core.batches import Batch
from elastic_core.core.config import DataConfig, PlantedConfig, TrainConfig
from elastic_core.core.elastic import ProductKeys, exhaustive, gate, top_pairs
from elastic_core.core.step import Learner
from elastic_core.data import load
from elastic_core.machine import here
from elastic_core.recipes import DEFAULT, model_settings, objective_settings
from elastic_core.scale.row_bank import RowBank
from elastic_core.scale.rows import RowLearner

SMALL, MIDDLE, MILLION, LARGE = 256, 512**2, 1_024**2, 2_048**2
WIDTH, K = 64, 16
QUERIES, FEW = 2_048, 1_024  # of a search and of a bank's step; of a search that looks at every key, and of ours beside it
ASKED = 128  # queries for which the flat search is asked as well
DRAWN = 8  # batches of row numbers, taken in turn
LENGTH, HISTORIES = 1_024, 16  # of the forward pass
WORLD = PlantedConfig(users=400, items=3_416, interests=32, mean_length=160, max_length=400)  # of the training step
TRAIN = TrainConfig(batch=32, ema_decay=0.99)
ASKING = {DEFAULT: "network", f"{DEFAULT}-votes": "votes"}  # what asks the memory, of a whole model
PARTS = ("search", "step", "forward", "training")


@dataclass(frozen=True, kw_only=True)
class BankRow:
    """One measurement and everything needed to read it. Times in seconds."""

    part: str
    system: str
    experts: int
    width: int
    k: int
    batch: int  # queries of a search, histories of all else
    length: int  # events of a history, at most; 0 where there is none
    median: float
    low: float
    high: float
    rounds: int
    processor: float  # seconds of processor time, which a busy machine stretches less than the clock's
    exact: float  # of a search: the share of queries for which the flat search finds the same experts; -1: not asked
    device: str
    threads: int
    load: float
    dtype: str
    torch: str
    commit: str
    date: str

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for two measurements of the same thing by the same code on the same machine."""
        same = ("part", "system", "experts", "width", "k", "batch", "length", "device", "threads", "dtype", "torch", "commit")
        return tuple(str(getattr(self, name)) for name in same)


class _Named(NamedTuple):
    """A contestant: what its row says of it, and what is timed."""

    system: str
    experts: int
    batch: int
    job: Job
    length: int = 0
    exact: float = -1.0


def measure(part: str, device: torch.device, **harness: Any) -> list[BankRow]:
    """All contestants of one of `PARTS`, interleaved."""
    torch.manual_seed(0)
    found = {"search": _searches, "step": _steps, "forward": _forwards, "training": _trainings}[part](device)
    timings = interleaved({str(i): one.job for i, one in enumerate(found)}, device, **harness)
    return [_row(part, one, timings[str(i)], device) for i, one in enumerate(found)]


def _row(part: str, one: _Named, timing: Timing, device: torch.device) -> BankRow:
    return BankRow(
        part=part, system=one.system, experts=one.experts, width=WIDTH, k=K, batch=one.batch, length=one.length,
        exact=one.exact, rounds=timing.rounds, median=round(timing.median, 7), low=round(timing.low, 7),
        high=round(timing.high, 7), processor=round(timing.processor, 7), dtype="float32", **here(device),
    )  # fmt: skip


# --- the search ------------------------------------------------------------------------------------------------------


def _searches(device: torch.device) -> list[_Named]:
    found = []
    for experts, batch in ((SMALL, QUERIES), (MIDDLE, FEW), (MILLION, QUERIES), (LARGE, QUERIES)):
        keys, bank = ProductKeys(WIDTH, isqrt(experts)).to(device), RowBank(experts, WIDTH).to(device)
        queries = torch.randn(batch, WIDTH, device=device)
        job = torch.inference_mode()(partial(_search, keys, bank, queries))
        found.append(_Named("product-keys", experts, batch, job, exact=exactness(keys, queries[:ASKED])))
    whole = torch.randn(MIDDLE, WIDTH, device=device)
    queries = torch.randn(FEW, WIDTH, device=device)
    found.append(
        _Named("flat", MIDDLE, FEW, torch.inference_mode()(partial(_flat, whole, RowBank(MIDDLE, WIDTH).to(device), queries)))
    )
    return found


def _search(keys: ProductKeys, bank: RowBank, queries: Tensor) -> Tensor:
    found = top_pairs(keys(queries), K)
    return bank(found.indices) * gate(found.scores, "softmax").unsqueeze(-1)


def _flat(keys: Tensor, bank: RowBank, queries: Tensor) -> Tensor:
    """The keys as whole vectors: what product keys save."""
    found = [(few @ keys.T).topk(K) for few in queries.split(64)]
    scores, experts = (torch.cat(parts) for parts in zip(*found, strict=True))
    return bank(experts) * gate(scores, "softmax").unsqueeze(-1)


@torch.inference_mode()
def exactness(keys: ProductKeys, queries: Tensor) -> float:
    """Share of the queries for which the k best pairs are those of all K sums: the same scores, and the same experts where no two
    of them are equal."""
    same = 0
    for few in queries.split(8):
        halves = keys(few)
        ours, all_of_them = top_pairs(halves, K), exhaustive(halves, K)
        tied = (all_of_them.scores.diff() == 0).any(1)
        alike = (ours.indices == all_of_them.indices).all(1) | tied
        same += int(((ours.scores == all_of_them.scores).all(1) & alike).sum())
    return same / len(queries)


# --- the bank's own step ---------------------------------------------------------------------------------------------


def _steps(device: torch.device) -> list[_Named]:
    rows = [_Named("rows", experts, QUERIES, _by_rows(experts, device)) for experts in (SMALL**2 // 64, MIDDLE, MILLION, LARGE)]
    torchs = [
        _Named("sparse-adam", MILLION, QUERIES, _by_torch(MILLION, device, sparse=True)),
        _Named("fused-adam", MILLION, QUERIES, _by_torch(MILLION, device, sparse=False)),
    ]
    return [*rows, *torchs]


def _batches(experts: int, device: torch.device) -> Iterable[Tensor]:
    return cycle([torch.randint(experts, (QUERIES, K), device=device) for _ in range(DRAWN)])


def _by_rows(experts: int, device: torch.device) -> Job:
    bank, asked, towards = RowBank(experts, WIDTH).to(device), _batches(experts, device), torch.randn(QUERIES, K, WIDTH)
    nn.init.normal_(bank.weight, std=WIDTH**-0.5)
    learner = RowLearner(bank, None, TrainConfig(learning_rate=1e-2))

    def step() -> None:
        with learner.recorded() as looked_up:
            interests = bank(next(iter(asked)))
        interests.backward(towards)
        learner.step(learner.summed(looked_up))

    return step


def _by_torch(experts: int, device: torch.device, sparse: bool) -> Job:
    table, asked = nn.Embedding(experts, WIDTH, sparse=sparse, device=device), _batches(experts, device)
    towards = torch.randn(QUERIES, K, WIDTH)
    kind: Any = torch.optim.SparseAdam if sparse else partial(torch.optim.Adam, fused=True)
    optimizer = kind(list(table.parameters()), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        table(next(iter(asked))).backward(towards)
        optimizer.step()

    return step


# --- the whole model -------------------------------------------------------------------------------------------------


def _settings(experts: int, length: int, asking: str) -> dict[str, Any]:
    shape = {"length": length, "width": WIDTH, "layers": 2, "heads": 1, "dropout": 0.0, "k": K, "side": isqrt(experts)}
    return shape | {"query": asking} | {"bank": "rows" if experts > SMALL else "dense"}


def _forwards(device: torch.device) -> list[_Named]:
    items = torch.randint(1, WORLD.items + 1, (HISTORIES, LENGTH), device=device)
    found = []
    for (system, asking), experts in product(ASKING.items(), (SMALL, MILLION)):
        model = models.build(model_settings(DEFAULT, **_settings(experts, LENGTH, asking)), WORLD.items).to(device).eval()
        job = torch.inference_mode()(partial(model.last_state, Batch(items, items, padded=False)))
        found.append(_Named(system, experts, HISTORIES, job, LENGTH))
    return found


def _trainings(device: torch.device) -> list[_Named]:
    world = load(DataConfig(source="planted", planted=WORLD))
    found = []
    for (system, asking), experts in product(ASKING.items(), (SMALL, MILLION)):
        settings = model_settings(DEFAULT, **_settings(experts, 200, asking))
        model = models.build(settings, world.catalog).to(device).train()
        objective = objectives.build(objective_settings(DEFAULT), world, settings.length)
        learner = Learner(model, objective, TRAIN, device)
        batches = cycle([batch.to(device) for batch, _ in zip(objective.epoch(0, 0, TRAIN.batch), range(DRAWN), strict=False)])
        found.append(_Named(system, experts, TRAIN.batch, _learns(learner, batches), settings.length))
    return found


def _learns(learner: Learner, batches: Iterable[Batch]) -> Callable[[], None]:
    def step() -> None:
        learner.step(next(iter(batches)))

    return step


# --- what was aimed at ------------------------------------------------------------------------------------------------


def figures(rows: Iterable[BankRow]) -> dict[str, float]:
    """What the rows come to, of the machine and code measured last; what was not measured is left out. Processor time.

    C8: microseconds of a search per query at a million experts, how many times longer the flat search takes at 262,144, and the
    least share of queries for which both find the same. C9: a bank's step at 4 million experts over one at 262,144; how many
    times longer torch's optimisers take at a million. Then a whole model with a million experts over one with 256.
    """
    of, found = _latest(rows), dict[str, float]()
    if million := of.get(("search", "product-keys", MILLION)):
        found |= {"search, us": 1e6 * million.processor / million.batch, "exact": million.exact}
    for name, above, below in (
        ("flat search", ("search", "flat", MIDDLE), ("search", "product-keys", MIDDLE)),
        ("4 million", ("step", "rows", LARGE), ("step", "rows", MIDDLE)),
        ("SparseAdam", ("step", "sparse-adam", MILLION), ("step", "rows", MILLION)),
        ("fused Adam", ("step", "fused-adam", MILLION), ("step", "rows", MILLION)),
        ("forward", ("forward", DEFAULT, MILLION), ("forward", DEFAULT, SMALL)),
        ("training", ("training", DEFAULT, MILLION), ("training", DEFAULT, SMALL)),
        *((f"{part}, votes", (part, f"{DEFAULT}-votes", MILLION), (part, f"{DEFAULT}-votes", SMALL)) for part in PARTS[2:]),
    ):
        if above in of and below in of:
            found[name] = _over(of[above], of[below])
    return found


def _latest(rows: Iterable[BankRow]) -> dict[tuple[str, str, int], BankRow]:
    """The last row of every contestant, of the machine and code that were measured last."""
    kept = list(rows)
    same = ("device", "threads", "torch", "commit")
    last = [getattr(kept[-1], name) for name in same] if kept else []
    return {(row.part, row.system, row.experts): row for row in kept if [getattr(row, name) for name in same] == last}


def _over(a: BankRow, b: BankRow) -> float:
    """Processor time for a history or query of one over that of the other."""
    return (a.processor / a.batch) / (b.processor / b.batch)


def as_table(rows: list[BankRow]) -> str:
    """Milliseconds of everything, then what was aimed at."""
    shape = f"{'K':>11}{'B':>6}{'N':>6}{'d':>4}{'k':>4}"
    lines = [f"{'part':<9}{'system':<13}{shape}{'ms':>10}{'processor':>11}{'quartiles':>20}  exact"]
    for row in rows:
        spread = f"{row.low * 1e3:.2f} … {row.high * 1e3:.2f}"
        exact = "" if row.exact < 0 else f"{row.exact:.1%}"
        lines.append(
            f"{row.part:<9}{row.system:<13}{row.experts:>11,}{row.batch:>6}{row.length or '':>6}{row.width:>4}{row.k:>4}"
            f"{row.median * 1e3:>10.2f}{row.processor * 1e3:>11.2f}{spread:>20}  {exact}"
        )
    if rows:
        last = rows[-1]
        lines.append(f"\n{last.device}, {last.threads} threads, torch {last.torch}, {last.commit}; ratios of processor time")
    lines += [f"{name:<20}{value:>9.2f}" for name, value in figures(rows).items()]
    return "\n".join(lines)
