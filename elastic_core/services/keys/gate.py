"""Why the scores must gate the experts: which parameters receive gradient with a gate and without, and a world so small
that the difference can be watched.

Algorithm 1 of the paper returns the experts at the found places and drops the scores. Which places were found is a choice
among whole numbers, and nothing can be differentiated through it: without the scores the router stays as it was drawn.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from elastic_core.core.batches import Batch, left_pad
from elastic_core.core.contract import Retrieved
from elastic_core.core.elastic import InterestMemory, ProductKeys, gate, top_pairs
from elastic_core.core.softmax import full_softmax
from elastic_core.data import Dataset
from elastic_core.evaluation.verdict import better, numbers
from elastic_core.models import Recommender
from elastic_core.scale import eager
from elastic_core.services.keys.search import first_memory
from elastic_core.services.method.effects import against, measured
from elastic_core.services.person.recommend import Edit, Moved, answer, moved, reading

PEOPLE = 32
GROUPS = ("sub-keys", "query network", "experts", "items and positions", "layers")  # in the order of the data's way


# --- gradients in the real model -------------------------------------------------------------------------------------


def gradients(model: Recommender, dataset: Dataset, user: int) -> pd.DataFrame:
    """One real backward pass on a copy of the model, with its gate and without any.

    One row per group of parameters: `group, parameters, with_gate, without_gate` (Euclidean norms of the gradient of the
    next-item loss of this person and a few others; the load-balance term is left out) and the gate's name.
    """
    kind = first_memory(model).kind
    kind = kind if kind != "none" else "softmax"
    batch = _next_train_item(dataset, user, model.length)
    table = _norms(model, batch, kind).merge(_norms(model, batch, "none"), on=["group", "parameters"])
    table.columns = pd.Index(["group", "parameters", "with_gate", "without_gate"])
    return table.assign(gate=kind)


# --- one person's list -----------------------------------------------------------------------------------------------


class Ungated(NamedTuple):
    """`change`: one person's list when every expert weighs 1, against the list as it is; `chance`: how many items come in new
    when the weights are dealt to the experts at random, one number a try."""

    change: Moved
    chance: list[int]


def ungated(model: Recommender, dataset: Dataset, user: int, stay: bool = False, tries: int = 20) -> Ungated:
    """What the gate does to a list once the model is trained; do items that the person has met `stay` in the running?"""
    read, rng = reading(dataset, user), torch.Generator().manual_seed(0)
    usual = answer(model, dataset, read, exclude_seen=not stay)

    def change(weigh: Callable[[Tensor], Tensor]) -> Moved:
        return moved(usual, answer(model, dataset, read, edit=_weighed(weigh), exclude_seen=not stay))

    dealt = [change(lambda gates: gates[:, torch.randperm(gates.shape[1], generator=rng)]) for _ in range(tries)]
    return Ungated(change(torch.ones_like), [each.counts["new"] for each in dealt])


def _weighed(weigh: Callable[[Tensor], Tensor]) -> Edit:
    """Gives every retrieved expert another weight."""

    def edit(found: Retrieved) -> Retrieved:
        gates = weigh(found.gates)
        return found._replace(interests=found.interests * (gates / found.gates).unsqueeze(-1), gates=gates)

    return edit


def _norms(model: Recommender, batch: Batch, kind: str) -> pd.DataFrame:
    twin = copy.deepcopy(model).eval().requires_grad_(True)
    for memory in twin.modules():
        if isinstance(memory, InterestMemory):
            memory.kind = kind
    states = batch.places.of(twin(batch).states, batch.items.shape[1])
    full_softmax(states, batch.places.items, twin.scorer()).backward()
    rows = [
        {"group": _group(name), "parameters": p.numel(), "square": 0.0 if p.grad is None else float(p.grad.square().sum())}
        for name, p in twin.named_parameters()
    ]
    table = pd.DataFrame(rows).groupby("group", as_index=False).sum()
    table["norm"] = np.sqrt(table.pop("square"))
    return table.sort_values("group", key=lambda groups: groups.map(GROUPS.index), ignore_index=True)


def _group(name: str) -> str:
    if ".keys." in name:
        return "sub-keys"
    if ".query_network." in name or (name.startswith("memories.") and ".norm." in name):
        return "query network"
    if ".values." in name:
        return "experts"
    return "items and positions" if name.startswith("events.") else "layers"


def _next_train_item(dataset: Dataset, user: int, length: int) -> Batch:
    """The last train event of this person and a few others as the target of everything before it."""
    users = (user + np.arange(min(PEOPLE, dataset.histories.n_users))) % dataset.histories.n_users
    last = dataset.ends("train")[users] - 1
    items = left_pad(dataset.histories, users, last, length)
    targets = torch.zeros_like(items)
    targets[:, -1] = torch.from_numpy(dataset.histories.items[last].astype(np.int64))
    return Batch(items, items, targets)


# --- a world small enough to watch -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ToyConfig:
    """Kinds of people, each with one right answer; what tells them apart is hidden among louder noise."""

    kinds: int = 16
    clue: int = 4  # numbers that tell the kind
    noise: int = 12  # numbers that tell nothing
    loudness: float = 1.0
    width: int = 8
    side: int = 4
    k: int = 2
    steps: int = 200
    batch: int = 128
    learning_rate: float = 0.03
    seed: int = 0


class ToyResult(NamedTuple):
    """`curve`: step, gate, loss (mean squared error; 1 is what a constant answer gets). `moved`: gate, how far the keys went."""

    curve: pd.DataFrame
    moved: pd.DataFrame


class _Router(nn.Module):
    """A linear query, product keys and experts; the answer is the sum of the gated experts."""

    def __init__(self, config: ToyConfig, kind: str) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(config.seed)
        self.k, self.kind = config.k, kind
        self.query = nn.Parameter(torch.randn(config.clue + config.noise, config.width, generator=generator) * config.width**-0.5)
        self.keys = ProductKeys(config.width, config.side)
        self.experts = nn.Parameter(torch.randn(config.side**2, config.width, generator=generator) * config.width**-0.5)
        with torch.no_grad():
            self.keys.sub_keys.copy_(torch.randn(self.keys.sub_keys.shape, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        found = top_pairs(self.keys(x @ self.query), self.k)
        return (self.experts[found.indices] * gate(found.scores, self.kind).unsqueeze(-1)).mean(1)


def toy(config: ToyConfig | None = None) -> ToyResult:
    """Both routers from the same start on the same samples. Seeded: the same configuration gives the same curves."""
    config = config or ToyConfig()
    curves, moved = [], []
    for name, kind in (("softmax", "softmax"), ("none", "none")):
        router = _Router(config, kind)
        before = router.keys.sub_keys.detach().clone()
        losses = _learn(router, config)
        distance = (router.keys.sub_keys.detach() - before).norm() / before.norm()
        curves.append(pd.DataFrame({"step": range(1, config.steps + 1), "gate": name, "loss": losses}))
        moved.append({"gate": name, "keys_moved": float(distance), "loss": float(np.mean(losses[-20:]))})
    return ToyResult(pd.concat(curves, ignore_index=True), pd.DataFrame(moved))


def _learn(router: _Router, config: ToyConfig) -> list[float]:
    generator = torch.Generator().manual_seed(config.seed + 1)
    clues = torch.randn(config.kinds, config.clue, generator=generator)
    answers = torch.randn(config.kinds, config.width, generator=generator)
    answers = (answers - answers.mean(0)) / answers.std(0, correction=0)
    optimizer = eager.KINDS["adam"](router.parameters(), lr=config.learning_rate)
    losses = []
    for _ in range(config.steps):
        kinds = torch.randint(config.kinds, (config.batch,), generator=generator)
        noise = torch.randn(config.batch, config.noise, generator=generator) * config.loudness
        loss = (router(torch.cat([clues[kinds], noise], dim=1)) - answers[kinds]).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def trained(root: Path, data: str = "ml-100k") -> str:
    """What whole trainings with and without the gate reached, in words; nothing where one of them has no finished run."""
    gated, bare = (measured(root, data, name) for name in ("elastic", "gate-none"))
    if gated is None or bare is None:
        return ""
    found = against(root, data, "gate-none")
    if found is not None and better(found):
        words = f"The difference is {numbers(found)}."
    else:
        by = "" if found is None else f" ({numbers(found)})"
        words = (
            f"Surprise: on this data, learned keys were not better than random keys{by}. Experts and readers learn around "
            "keys that stay random."
        )
    many = [f"{each} ({len(each.runs)} seed{'s' if len(each.runs) > 1 else ''})" for each in (gated, bare)]
    return (
        f"**After a whole training** ({data}, {gated.people:,} people, test, `full`): NDCG@10 {many[0]} with the gate, {many[1]} "
        f"without. {words}"
    )
