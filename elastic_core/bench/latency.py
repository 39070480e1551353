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
from elastic_core.bench.timing import Contestant, measure_rows, peak_bytes, saved_bytes
from elastic_core.core.batches import Batch
from elastic_core.core.dispatch import read_prefixes, weigh
from elastic_core.core.step import precision
from elastic_core.recipes import model_settings

BENCH, ITEMS = "latency", 3_416  # MovieLens-1M's catalogue
PASSES = FORWARD, BOTH = ("forward", "forward+backward")
ROWS = ("last", "all")
OP = "op"  # rows of operations alone


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
        matrices = 3 if self.direction == FORWARD else 5 * self.layers
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
            found += [_contestant(name, model, batch, which, setting) for which in rows]
    return measure_rows(BENCH, found, device, **harness)


def _contestant(name: str, model: models.Recommender, batch: Batch, rows: str, setting: Setting) -> Contestant:
    device, training, work = batch.items.device, setting.direction != FORWARD, timed(model, rows)
    model.train(training)
    done = torch.compile(work, mode=setting.compiled, dynamic=False) if setting.compiled else work

    def forward() -> Tensor:
        with precision(device, setting.dtype):
            return done(batch)

    def job() -> None:
        if training:
            model.zero_grad(set_to_none=True)
            forward().square().mean().backward()
        else:
            with torch.inference_mode():
                forward()

    def memory() -> dict[str, int]:
        model.zero_grad(set_to_none=True)
        if setting.compiled == GRAPHS:
            return {}
        found = {"peak": peak_bytes(job, device), "saved": 0}
        if training and not setting.compiled:  # what compiled code keeps, hooks do not see
            with precision(device, setting.dtype):
                found["saved"] = saved_bytes(partial(work, batch), model.parameters())
        return found

    return Contestant(name, {"rows": rows, **setting.told}, job, also=memory)


def measure_operations(setting: Setting, device: torch.device, **harness: Any) -> list[Row]:
    """All prefixes by causal slots, and causal attention by torch, each from the `[B, H, N, …]` numbers that it reads: no
    projections on either side."""
    torch.manual_seed(0)
    n, d, heads, training = setting.length, setting.width, setting.heads, setting.direction != FORWARD

    def drawn(*sizes: int) -> Tensor:
        return torch.randn(setting.batch, *sizes, device=device, requires_grad=training)

    x, logits, bias, asking = drawn(n, d), drawn(heads, setting.k, n), drawn(heads, setting.k, n), drawn(heads, n, d)
    q, k, v = (drawn(heads, n, d // heads) for _ in range(3))

    def contestant(name: str, work: Callable[[], Tensor], *given: Tensor) -> Contestant:
        job = (lambda: torch.autograd.grad(work().square().sum(), given)) if training else work
        return Contestant(
            name, {"rows": OP, **setting.told}, job,
            also=lambda: {"peak": peak_bytes(job, device), "saved": saved_bytes(work, iter(())) if training else 0},
        )  # fmt: skip

    found = [
        contestant("causal slots", lambda: read_prefixes(x, weigh(logits), asking, bias)[1], x, logits, asking, bias),
        contestant("SDPA", lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v),
    ]
    return measure_rows(BENCH, found, device, **harness)


def timed(model: models.Recommender, rows: str) -> Callable[[Batch], Tensor]:
    """What is timed: the states of `last` or of `all`; where `pairs` do the work, the scores of all items with them."""

    def states(batch: Batch) -> Tensor:
        return model.last_state(batch) if rows == "last" else model(batch).states

    return states if model.scorer().pairs is None else lambda batch: model.scorer().logits(states(batch))


USUAL = {"compiled": "", "dtype": "float32", "heads": 1, "dropout": 0.0}  # of rows that do not say


def ratios(rows: list[Row], by: str = "seconds") -> Iterator[dict[str, Any]]:
    """How many times slower each peer is than ELASTIC with the last row only; `by` is a metric.

    E = SASRec eager, S = SASRec fused, S1 = SASRec fused with the last row only.
    """
    peers = yardsticks()
    groups: dict[tuple[tuple[str, Any], ...], dict[tuple[str, str], float]] = {}
    for row in rows:
        names = ("direction", "length", "width", "k", "device", "threads", *USUAL)
        same = tuple((name, getattr(row, name, USUAL.get(name))) for name in names)
        groups.setdefault(same, {})[row.system, row.rows] = getattr(row, by)
    for where, found in groups.items():
        for ours in systems():
            if ours not in dict(peers.values()) and (ours, "last") in found:
                slower = {name: round(found[peer] / found[ours, "last"], 2) for name, peer in peers.items() if peer in found}
                yield {"system": ours, **dict(where), **slower}
