"""ELASTIC against SASRec, forward and forward + backward, over history lengths at a fixed number of tokens per batch.

Both get the same tricks: `last` computes only the last row in the last layer (all that a next-item score needs), `all`
every row (what training on every position needs). Random weights, full histories without padding, no dropout, item
embedding included, the scores over the catalogue left out (they cost both the same; where `Scorer.pairs` do a model's work, as
in DIN, they are in). ELASTIC's time includes the query network and the retrieval. SASRec comes `eager` (N x N scores in
memory, as in the papers) and `fused` (SDPA).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core import models
from elastic_core.bench.store import GRAPHS, Row
from elastic_core.bench.timing import Contestant, Timing, measure_rows, peak_bytes, saved_bytes
from elastic_core.core.batches import Batch
from elastic_core.core.dispatch import read_prefixes, weigh
from elastic_core.core.step import precision
from elastic_core.recipes import model_settings

BENCH, ITEMS = "latency", 3_416  # MovieLens-1M's catalogue
PASSES = FORWARD, BOTH = ("forward", "forward+backward")
ROWS = ("last", "all")
OP, OPS = "op", ("causal slots", "SDPA")  # rows of operations alone: ours and torch's


def systems() -> dict[str, tuple[str, dict[str, Any]]]:
    """Every trained model in every form it names (itself where it names none): system → model, settings.

    A form whose name another model has taken (in a copy of its file, say) is called after its own model."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in models.names():
        kind = models.model_class(name)
        for form, settings in (kind.forms or {name: {}}).items() if kind.objective else ():
            found[form if form not in found else f"{name} {form}"] = (name, dict(settings))
    return found


def contestants() -> tuple[str, ...]:
    """The systems that models name forms of, which the shipped rows compare, and then all others."""
    return (*SYSTEMS, *(form for form in systems() if form not in SYSTEMS))


def yardsticks() -> dict[str, tuple[str, str]]:
    """What others are measured against: short name → system, rows."""
    return {short: peer for name in reversed(models.names()) for short, peer in models.model_class(name).yardsticks.items()}


SYSTEMS = tuple(form for form, (name, _) in systems().items() if models.model_class(name).forms)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is measured. The batch is `tokens` / length, or so many `histories` whatever their length."""

    length: int
    direction: str = "forward"
    width: int = 64
    k: int = 16
    side: int = 32
    heads: int = 1
    layers: int = 2
    dropout: float = 0.0
    tokens: int = 16_384
    histories: int = 0
    compiled: str = ""  # by `torch.compile`, in which mode
    dtype: str = "float32"  # or `bfloat16`: autocast

    @property
    def told(self) -> dict[str, Any]:
        """What a row says of it."""
        names = "direction length batch width k side heads layers dropout compiled dtype"
        return {name: getattr(self, name) for name in names.split()}

    @property
    def batch(self) -> int:
        return self.histories or max(1, self.tokens // self.length)

    def scores_bytes(self) -> int:
        """About what materialised attention holds: three score matrices going forward, five a layer for training."""
        matrices = 3 if self.direction == "forward" else 5 * self.layers
        return matrices * self.batch * self.heads * self.length**2 * 4


def build_system(system: str, setting: Setting) -> models.Recommender:
    """The system at this size, without dropout."""
    name, special = systems()[system]
    settings: dict[str, Any] = {
        each: getattr(setting, each) for each in "length width layers heads dropout k side".split()
    } | special
    return models.build(model_settings(name, **settings), ITEMS)


@cache
def smallest(system: str) -> models.Recommender:
    """The system at the least size there is, to ask what it can do."""
    return build_system(system, Setting(length=2, width=2, k=1, side=2, layers=1))


def drawn_items(setting: Setting, device: torch.device) -> Tensor:
    """Full histories, always the same at one size: `[batch, length]`. What is drawn next follows from the same seed."""
    torch.manual_seed(0)
    return torch.randint(1, ITEMS + 1, (setting.batch, setting.length), device=device)


def measure_latency(
    settings: Setting | Iterable[Setting], device: torch.device, systems: tuple[str, ...] = SYSTEMS,
    rows: tuple[str, ...] = ROWS, **harness: Any,
) -> list[Row]:  # fmt: skip
    """All contestants of a setting, or of several to compare lengths as a machine changes its pace, interleaved."""
    found = []
    for setting in [settings] if isinstance(settings, Setting) else settings:
        items = drawn_items(setting, device)
        times = torch.arange(setting.length, device=device).expand_as(items) * 3_600  # for models that read the clock
        batch = Batch(items, items, times=times, padded=False)
        for name in systems:
            model = build_system(name, setting).to(device)
            for which in rows:
                job = _job(model, batch, which, setting)
                also = partial(_memory, model, batch, which, job, setting, device)
                found.append(Contestant(name, {"rows": which, **setting.told}, job, also=also))
    return measure_rows(BENCH, found, device, **harness)


def measure_operations(setting: Setting, device: torch.device, **harness: Any) -> list[Row]:
    """All prefixes by causal slots, and causal attention by torch, each from the `[B, H, N, …]` numbers that it reads: no
    projections on either side."""
    torch.manual_seed(0)
    shape, each = (setting.batch, setting.heads, setting.length), setting.width // setting.heads

    def drawn(*sizes: int) -> Tensor:
        return torch.randn(sizes, device=device, requires_grad=setting.direction != "forward")

    x, slots = drawn(setting.batch, setting.length, setting.width), (setting.batch, setting.heads, setting.k, setting.length)
    logits, bias, queries = drawn(*slots), drawn(*slots), drawn(*shape, setting.width)
    q, k, v = (drawn(*shape, each) for _ in range(3))
    forms: dict[str, Callable[[], Tensor]] = {
        OPS[0]: lambda: read_prefixes(x, weigh(logits), queries, bias)[1],
        OPS[1]: lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
    }
    given = {OPS[0]: (x, logits, queries, bias), OPS[1]: (q, k, v)}

    def job(name: str) -> Callable[[], Any]:
        if setting.direction == "forward":
            return forms[name]
        return lambda: torch.autograd.grad(forms[name]().square().sum(), given[name])

    def memory(name: str, _: Timing) -> dict[str, float]:
        kept = saved_bytes(forms[name], iter(())) if setting.direction != "forward" else 0
        return {"peak": peak_bytes(job(name), device), "saved": kept}

    told = {"rows": OP, **setting.told}
    found = [Contestant(name, told, job(name), also=partial(memory, name), against=list(forms).index(OPS[1])) for name in forms]
    return measure_rows(BENCH, found, device, **harness)


def timed(model: models.Recommender, rows: str) -> Callable[[Batch], Tensor]:
    """What is timed: the states of `last` or of `all`; where `pairs` do the work, the scores of all items with them."""

    def states(batch: Batch) -> Tensor:
        return model.last_state(batch) if rows == "last" else model(batch).states

    return states if model.scorer().pairs is None else lambda batch: model.scorer().logits(states(batch))


def _job(model: models.Recommender, batch: Batch, rows: str, setting: Setting) -> Callable[[], Any]:
    model.train(setting.direction != "forward")
    work = timed(model, rows)
    if setting.compiled:
        work = torch.compile(work, mode=setting.compiled, dynamic=False)

    def forward() -> Tensor:
        with precision(batch.items.device, setting.dtype):
            return work(batch)

    def inference() -> None:
        with torch.inference_mode():
            forward()

    def training() -> None:
        model.zero_grad(set_to_none=True)
        forward().square().mean().backward()

    return inference if setting.direction == "forward" else training


def _memory(
    model: models.Recommender, batch: Batch, rows: str, job: Callable[[], Any], setting: Setting, device: torch.device, _: Timing
) -> dict[str, float]:
    model.zero_grad(set_to_none=True)
    if setting.compiled == GRAPHS:
        return {}
    found: dict[str, float] = {"peak": peak_bytes(job, device), "saved": 0}
    if setting.direction == "forward" or setting.compiled:  # what compiled code keeps, hooks do not see
        return found
    with precision(device, setting.dtype):
        return found | {"saved": saved_bytes(partial(timed(model, rows), batch), model.parameters())}


USUAL = {"compiled": "", "dtype": "float32", "heads": 1, "dropout": 0.0}


def ratios(rows: list[Row], by: str = "seconds") -> Iterator[dict[str, Any]]:
    """How many times slower each peer is than ELASTIC with the last row only; `by` is a metric.

    E = SASRec eager, S = SASRec fused, S1 = SASRec fused with the last row only.
    """
    peers = yardsticks()
    measured = {system for system, _ in peers.values()}
    groups: dict[tuple[Any, ...], dict[tuple[str, str], float]] = {}
    names = ("direction", "length", "width", "k", "device", "threads", *USUAL)
    for row in rows:
        same = tuple(getattr(row, name, USUAL.get(name)) for name in names)
        groups.setdefault(same, {})[row.system, row.rows] = getattr(row, by)
    for told, found in groups.items():
        where = {name: value for name, value in zip(names, told, strict=True) if value != USUAL.get(name)}
        for ours in systems():
            if ours not in measured and (ours, "last") in found:
                slower = {name: round(found[peer] / found[ours, "last"], 2) for name, peer in peers.items() if peer in found}
                yield {"system": ours, **where, **slower}
