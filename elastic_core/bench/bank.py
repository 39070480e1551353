"""What a memory of K experts costs: searching it, learning its rows, and a whole model with it. d = 64, k = 16, one thread.

    search      2·√K sub-keys and the gather of k rows against the flat search of all K keys; and whether both find the same
    step        one step of the bank alone: gather B·k rows, backward, update. `rows` (training/rows.py), torch's `nn.Embedding`
                with `sparse=True` and SparseAdam (`sparse-adam`), and with a dense gradient and fused Adam (`fused-adam`)
    forward     states of the last event of ELASTIC, retrieval included, by the query network and by votes of its events
    training    one step of ELASTIC as it is trained, by either: loss, backward, clipping, update, running average

Contestants of a part take turns in one process. Numbers of rows are drawn anew for every step from uniform ones: the hardest case
for a cache. Ratios are of processor time.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import cycle, product
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn

from elastic_core import models, objectives
from elastic_core.bench.store import Row, figures
from elastic_core.bench.timing import Contestant, Job, learning, measure_rows
from elastic_core.core.batches import Batch
from elastic_core.core.config import TrainConfig
from elastic_core.core.elastic import ProductKeys, exhaustive, gate, top_pairs
from elastic_core.data import load
from elastic_core.recipes import DEFAULT, model_settings, objective_settings
from elastic_core.run_config import DataConfig, PlantedConfig
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
VOTES = f"{DEFAULT}-votes"
ASKING = {DEFAULT: "network", VOTES: "votes"}  # what asks the memory, of a whole model
PARTS = ("search", "step", "forward", "training")


def measure_bank(part: str, device: torch.device, **harness: Any) -> list[Row]:
    """All contestants of one of `PARTS`, interleaved."""
    torch.manual_seed(0)
    made = {"search": _searches, "step": _steps, "forward": _forwards, "training": _trainings}[part](device)
    return measure_rows("bank", list(made), device, **harness)


def _contestant(part: str, system: str, experts: int, batch: int, job: Job, also: Any = dict, **more: Any) -> Contestant:
    """A contestant; `batch`: queries of a search, histories of all else."""
    told = {"part": part, "experts": experts, "width": WIDTH, "k": K, "batch": batch, **more, "dtype": "float32"}
    return Contestant(system, told, job, also=also)


# --- the search ------------------------------------------------------------------------------------------------------


def _searches(device: torch.device) -> Iterator[Contestant]:
    for experts, batch in ((SMALL, QUERIES), (MIDDLE, FEW), (MILLION, QUERIES), (LARGE, QUERIES)):
        keys, bank = ProductKeys(WIDTH, isqrt(experts)).to(device), RowBank(experts, WIDTH).to(device)
        queries = torch.randn(batch, WIDTH, device=device)
        job = torch.inference_mode()(partial(_search, keys, bank, queries))
        yield _contestant("search", "product-keys", experts, batch, job, partial(dict, exact=exactness(keys, queries[:ASKED])))
    whole = torch.randn(MIDDLE, WIDTH, device=device)
    queries = torch.randn(FEW, WIDTH, device=device)
    flat = torch.inference_mode()(partial(_flat_search, whole, RowBank(MIDDLE, WIDTH).to(device), queries))
    yield _contestant("search", "flat", MIDDLE, FEW, flat)


def _search(keys: ProductKeys, bank: RowBank, queries: Tensor) -> Tensor:
    found = top_pairs(keys(queries), K)
    return bank(found.indices) * gate(found.scores, "softmax").unsqueeze(-1)


def _flat_search(keys: Tensor, bank: RowBank, queries: Tensor) -> Tensor:
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


def _steps(device: torch.device) -> Iterator[Contestant]:
    for experts in (SMALL**2 // 64, MIDDLE, MILLION, LARGE):
        yield _contestant("step", "rows", experts, QUERIES, _by_rows(experts, device))
    yield _contestant("step", "sparse-adam", MILLION, QUERIES, _by_torch(device, True))
    yield _contestant("step", "fused-adam", MILLION, QUERIES, _by_torch(device, False))


def _batches(experts: int, device: torch.device) -> Iterator[Tensor]:
    return cycle([torch.randint(experts, (QUERIES, K), device=device) for _ in range(DRAWN)])


def _by_rows(experts: int, device: torch.device) -> Job:
    bank, asked, towards = RowBank(experts, WIDTH).to(device), _batches(experts, device), torch.randn(QUERIES, K, WIDTH)
    nn.init.normal_(bank.weight, std=WIDTH**-0.5)
    learner = RowLearner(bank, None, TrainConfig(learning_rate=1e-2))

    def step() -> None:
        with learner.recorded() as looked_up:
            interests = bank(next(asked))
        interests.backward(towards)
        learner.step(learner.summed(looked_up))

    return step


def _by_torch(device: torch.device, sparse: bool) -> Job:
    table, asked = nn.Embedding(MILLION, WIDTH, sparse=sparse, device=device), _batches(MILLION, device)
    towards = torch.randn(QUERIES, K, WIDTH)
    kind: Any = torch.optim.SparseAdam if sparse else partial(torch.optim.Adam, fused=True)
    optimizer = kind(list(table.parameters()), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        table(next(asked)).backward(towards)
        optimizer.step()

    return step


# --- the whole model -------------------------------------------------------------------------------------------------


def _config(experts: int, length: int, asking: str) -> Any:
    return model_settings(
        DEFAULT, length=length, width=WIDTH, layers=2, heads=1, dropout=0.0, k=K, side=isqrt(experts), query=asking,
        bank="rows" if experts > SMALL else "dense",
    )  # fmt: skip


def _forwards(device: torch.device) -> Iterator[Contestant]:
    items = torch.randint(1, WORLD.items + 1, (HISTORIES, LENGTH), device=device)
    for (system, asking), experts in product(ASKING.items(), (SMALL, MILLION)):
        model = models.build(_config(experts, LENGTH, asking), WORLD.items).to(device).eval()
        job = torch.inference_mode()(partial(model.last_state, Batch(items, items, padded=False)))
        yield _contestant("forward", system, experts, HISTORIES, job, length=LENGTH)


def _trainings(device: torch.device) -> Iterator[Contestant]:
    world = load(DataConfig(source="planted", planted=WORLD))
    for (system, asking), experts in product(ASKING.items(), (SMALL, MILLION)):
        settings = _config(experts, 200, asking)
        objective = objectives.build(objective_settings(DEFAULT), world, settings.length)
        job = learning(models.build(settings, world.catalog), objective, TRAIN, device, DRAWN)
        yield _contestant("training", system, experts, TRAIN.batch, job, length=settings.length)


# --- what was aimed at ------------------------------------------------------------------------------------------------


def bank_figures(rows: Iterable[Row]) -> dict[str, float]:
    """What the rows come to, each from those measured together last; what was not measured is left out. Processor time.

    C8: microseconds of a search per query at a million experts, how many times longer the flat search takes at 262,144, and the
    least share of queries for which both find the same. C9: a bank's step at 4 million experts over one at 262,144; how many
    times longer torch's optimisers take at a million. Then a whole model with a million experts over one with 256.
    """
    search, step = "part=search; system=product-keys", "part=step; system"
    models = "\n".join(
        f"{part}{more} | processor/batch | part={part}; system={system}; experts={MILLION} | experts={SMALL}"
        for system, more in ((DEFAULT, ""), (VOTES, ", votes"))
        for part in PARTS[2:]
    )
    return figures(rows, f"""
        search, us  | microseconds/batch | {search}; experts={MILLION}
        exact       | exact              | {search}; experts={MILLION}
        flat search | processor/batch | part=search; system=flat; experts={MIDDLE} | system=product-keys
        4 million   | processor/batch | {step}=rows; experts={LARGE} | experts={MIDDLE}
        SparseAdam  | processor/batch | {step}=sparse-adam; experts={MILLION} | system=rows
        fused Adam  | processor/batch | {step}=fused-adam; experts={MILLION} | system=rows
        {models}
    """)  # fmt: skip


def bank_table(rows: list[Row]) -> str:
    """Milliseconds of everything, then what was aimed at."""
    shape = f"{'K':>11}{'B':>6}{'N':>6}{'d':>4}{'k':>4}"
    lines = [f"{'part':<9}{'system':<13}{shape}{'ms':>10}{'processor':>11}{'quartiles':>20}  exact"]
    lines += [
        f"{row.part:<9}{row.system:<13}{row.experts:>11,}{row.batch:>6}{getattr(row, 'length', ''):>6}{row.width:>4}{row.k:>4}"
        f"{row.seconds * 1e3:>10.2f}{row.processor * 1e3:>11.2f}{row.spread('seconds'):>20}  "
        + (f"{row.exact:.1%}" if "exact" in row.figures else "")
        for row in rows
    ]
    for last in rows[-1:]:
        lines.append(f"\n{last.device}, {last.threads} threads, torch {last.torch}, {last.commit}; ratios of processor time")
    lines += [f"{name:<20}{value:>9.2f}" for name, value in bank_figures(rows).items()]
    return "\n".join(lines)
