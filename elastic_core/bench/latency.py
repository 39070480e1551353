"""One pass of a system over a batch of histories: forward, or forward and backward.

All systems get the same tricks: rows `last` compute only the last row in the last layer (all that a next-item score needs),
`all` every row (what training on every position needs). Random weights, full histories without padding, no dropout, item
embedding included, the scores over the catalogue left out (they cost all the same; where pairwise scores do a model's work, as
in DIN, they are in). ELASTIC's time includes the query network and the retrieval. SASRec comes `eager` (N x N scores in
memory, as in the papers) and `fused` (scaled dot-product attention of torch).
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from elastic_core import models
from elastic_core.bench.harness import Contestant, measure_contestants, peak_bytes, saved_bytes
from elastic_core.core.batches import Batch, histories_batch
from elastic_core.core.histories import Dataset
from elastic_core.core.step import autocast_context
from elastic_core.recipes import PEER, model_settings

ITEMS = 3_416  # MovieLens-1M's catalogue
DIRECTIONS = FORWARD, BOTH = ("forward", "forward+backward")
ROWS = ("last", "all")
FUSED = f"{PEER}-fused"  # what ratios are of
CUDA_GRAPHS = "reduce-overhead"  # compiled so, a pass works in memory of its own, which no peak shows


def model_forms() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return every trained model in every form it names (itself where it names none): system → model, settings.

    A form whose name another model has taken (in a copy of its file, say) is called after its own model."""
    by_form: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in models.model_names():
        model_class = models.model_class(name)
        forms = model_class.forms or {name: {}}
        for form, settings in forms.items() if model_class.objective else ():
            by_form[form if form not in by_form else f"{name} {form}"] = (name, dict(settings))
    return by_form


# The systems that models name forms of, which the shipped rows compare.
SYSTEMS = tuple(form for form, (name, _) in model_forms().items() if models.model_class(name).forms)


def all_systems() -> tuple[str, ...]:
    """Return `SYSTEMS`, then all others."""
    return (*SYSTEMS, *(form for form in model_forms() if form not in SYSTEMS))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The sizes and the direction of a pass; `batch` histories are read at a time."""

    length: int
    batch: int = 8
    direction: str = FORWARD
    width: int = 64
    k: int = 16
    n_subkeys: int = 32
    heads: int = 1
    layers: int = 2
    dropout: float = 0.0
    compiled: str = ""  # by `torch.compile`, in which mode
    dtype: str = "float32"  # or `bfloat16`: autocast

    def score_matrix_bytes(self) -> int:
        """About what materialised attention holds: three score matrices going forward, five a layer for training."""
        matrices = 3 if self.direction == FORWARD else 5 * self.layers
        return matrices * self.batch * self.heads * self.length**2 * 4


def build_system(system: str, setting: Setting) -> models.Recommender:
    """Return the system at this size, with random weights."""
    name, special = model_forms()[system]
    sizes = {size: getattr(setting, size) for size in "length width layers heads dropout k n_subkeys".split()}
    return models.build(model_settings(name, **(sizes | special)), ITEMS)


@cache
def smallest_model(system: str) -> models.Recommender:
    """Return the system at the least size there is, to see what it can do."""
    return build_system(system, Setting(length=2, width=2, k=1, n_subkeys=2, layers=1))


def draw_histories(setting: Setting, device: torch.device) -> Tensor:
    """Return full histories `[batch, length]`, always the same at one size. What is drawn next follows from the same seed."""
    torch.manual_seed(0)
    return torch.randint(1, ITEMS + 1, (setting.batch, setting.length), device=device)


def measure_latency(
    settings: Setting | Iterable[Setting], device: torch.device, systems: Iterable[str] = SYSTEMS, rows: Iterable[str] = ROWS,
    **harness: Any,
) -> pd.DataFrame:  # fmt: skip
    """Time all systems in a setting, or in several (so that their ratio survives a machine that changes its pace), in turns."""
    contestants = []
    for setting in [settings] if isinstance(settings, Setting) else settings:
        items = draw_histories(setting, device)
        times = torch.arange(setting.length, device=device).expand_as(items) * 3_600  # for models that read the clock
        batch = Batch(items, items, times=times, padded=False)
        for system in systems:
            model = build_system(system, setting).to(device)
            contestants += [_make_contestant(system, model, batch, which, setting) for which in rows]
    return measure_contestants("latency", contestants, device, peer=FUSED, **harness)


def measure_run(
    name: str, model: models.Recommender, dataset: Dataset, batch_size: int, device: torch.device, **harness: Any
) -> pd.DataFrame:
    """Time the last row of a trained model over histories of its own people, padded as they come, and of fused SASRec of the same
    size with random weights, which do not change its time. What a model prepares once for all people is not timed."""
    names = [size for size in "length width layers heads k n_subkeys".split() if hasattr(model.config, size)]
    sizes = {size: getattr(model.config, size) for size in names}
    users = np.random.default_rng(0).permutation(dataset.users_with_target("test"))[:batch_size]
    ends, histories, setting = dataset.split_ends("test"), dataset.histories, Setting(batch=len(users), **sizes)
    batch = histories_batch([histories.user_items(user)[: ends[user]] for user in users], setting.length)
    times = torch.arange(batch.items.shape[1]).expand_as(batch.items) * 3_600  # for models that read the clock
    batch = replace(batch, times=times).to(device)
    systems = {model.config.name: model, FUSED: build_system(FUSED, setting).to(device)}
    contestants = [_make_contestant(system, each, batch, "last", setting, world=name) for system, each in systems.items()]
    return measure_contestants("latency", contestants, device, peer=FUSED, **harness)


def _make_contestant(
    system: str, model: models.Recommender, batch: Batch, rows: str, setting: Setting, world: str = ""
) -> Contestant:
    device, training = batch.items.device, setting.direction == BOTH
    model.train(training)
    run_pass = timed_pass(model, rows)
    compiled = torch.compile(run_pass, mode=setting.compiled, dynamic=False) if setting.compiled else run_pass

    def forward() -> Tensor:
        with autocast_context(device, setting.dtype):
            return compiled(batch)

    def job() -> None:
        if training:
            model.zero_grad(set_to_none=True)
            forward().square().mean().backward()
        else:
            with torch.inference_mode():
                forward()

    def memory() -> dict[str, int]:
        model.zero_grad(set_to_none=True)
        if setting.compiled == CUDA_GRAPHS:
            return {}
        sizes = {"peak_bytes": peak_bytes(job, device), "saved_bytes": 0}
        if training and not setting.compiled:  # hooks do not see what compiled code keeps
            with autocast_context(device, setting.dtype):
                sizes["saved_bytes"] = saved_bytes(partial(run_pass, batch), model.parameters())
        return sizes

    where = {"world": world} if world else {}
    return Contestant(system, {"rows": rows, **asdict(setting), **where}, job, measure_more=memory)


def timed_pass(model: models.Recommender, rows: str) -> Callable[[Batch], Tensor]:
    """Return what is timed: the states of `last` or of `all` rows; where `pairs` do the work, the scores of all items too.

    What a model prepares once for a series of judgements (`Recommender.prepare_states`) is prepared here, as serving does, not
    timed."""
    with torch.no_grad():
        read_last = model.last_state if model.training else model.prepare_states()[0]

    def states(batch: Batch) -> Tensor:
        return read_last(batch) if rows == "last" else model(batch).states

    return states if model.scorer().pairs is None else lambda batch: model.scorer().logits(states(batch))
