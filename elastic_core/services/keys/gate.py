"""Why the scores must gate the experts: which parameters receive gradient with a gate and without, and a world so small
that the difference can be watched.

Algorithm 1 of the paper returns the experts at the found places and drops the scores. Which places were found is a choice
among whole numbers, and nothing can be differentiated through it: without the scores the router stays as it was drawn.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from elastic_core.core.batches import Batch, left_pad
from elastic_core.core.contract import Retrieved
from elastic_core.core.elastic import InterestMemory, ProductKeys, gate_weights, top_pairs
from elastic_core.core.optimizers import Adam
from elastic_core.core.softmax import full_softmax
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.services.keys.search import first_memory
from elastic_core.services.person.recommend import ListChange, compare_lists, rank_items, user_history

N_USERS, TRIES = 32, 20
GROUPS = ("row and column keys", "query network", "experts", "items and positions", "layers")  # in the order of the data's way


# --- gradients in the real model -------------------------------------------------------------------------------------


def gradient_table(model: Recommender, dataset: Dataset, user: int) -> pd.DataFrame:
    """One real backward pass on a copy of the model, with its gate and without any.

    One row per group of parameters: `group, parameters, with_gate, without_gate` (Euclidean norms of the gradient of the
    next-item loss of this person and a few others; the load-balance term is left out) and the gate's name.
    """
    kind = first_memory(model).kind
    kind = kind if kind != "none" else "softmax"
    # the last train event of this person and a few others as the target of everything before it
    users = (user + np.arange(min(N_USERS, dataset.histories.n_users))) % dataset.histories.n_users
    last = dataset.split_ends("train")[users] - 1
    items = left_pad(dataset.histories, users, last, model.length)
    targets = torch.zeros_like(items)
    targets[:, -1] = torch.from_numpy(dataset.histories.items[last].astype(np.int64))
    batch = Batch(items, items, targets)
    names, parameters = zip(*model.named_parameters(), strict=True)
    table = pd.DataFrame({"group": map(_parameter_group, names), "parameters": [each.numel() for each in parameters]})
    table["with_gate"], table["without_gate"] = (_squared_gradients(model, batch, each) for each in (kind, "none"))
    table = table.groupby("group", as_index=False).sum()
    table[["with_gate", "without_gate"]] **= 0.5
    return table.sort_values("group", key=lambda groups: groups.map(GROUPS.index), ignore_index=True).assign(gate=kind)


def _squared_gradients(model: Recommender, batch: Batch, kind: str) -> list[float]:
    """Return the squared norm of the gradient of every parameter, with this gate."""
    twin = copy.deepcopy(model).eval().requires_grad_(True)
    for memory in twin.modules():
        if isinstance(memory, InterestMemory):
            memory.kind = kind
    states = twin(batch).gather_targets(batch.places, batch.items.shape[1])
    full_softmax(states, batch.places.items, twin.scorer()).backward()
    return [0.0 if each.grad is None else float(each.grad.square().sum()) for each in twin.parameters()]


def _parameter_group(name: str) -> str:
    if ".keys." in name:
        return "row and column keys"
    if ".query_network." in name or (name.startswith("memories.") and ".norm." in name):
        return "query network"
    if ".values." in name:
        return "experts"
    return "items and positions" if name.startswith("events.") else "layers"


# --- one person's list -----------------------------------------------------------------------------------------------


class GateComparison(NamedTuple):
    """`change`: one person's list when every expert weighs 1, against the list as it is; `chance`: how many items come in new
    when the weights are dealt to the experts at random, one number a try."""

    change: ListChange
    chance: list[int]


def compare_without_gate(model: Recommender, dataset: Dataset, user: int, keep_seen: bool) -> GateComparison:
    """What the gate does to a list once the model is trained; `keep_seen`: items that the person has met stay in the running."""
    history, rng = user_history(dataset, user), torch.Generator().manual_seed(0)
    gated_list = rank_items(model, dataset, history, keep_seen=keep_seen)

    def change_gates(weigh: Callable[[Tensor], Tensor]) -> ListChange:
        """When every retrieved expert has another weight."""

        def edit(retrieved: Retrieved) -> Retrieved:
            gates = weigh(retrieved.gates)
            return retrieved._replace(interests=retrieved.interests * (gates / retrieved.gates).unsqueeze(-1), gates=gates)

        return compare_lists(gated_list, rank_items(model, dataset, history, edit=edit, keep_seen=keep_seen))

    dealt_changes = [change_gates(lambda gates: gates[:, torch.randperm(gates.shape[1], generator=rng)]) for _ in range(TRIES)]
    return GateComparison(change_gates(torch.ones_like), [each.counts["new"] for each in dealt_changes])


# --- a world small enough to watch -----------------------------------------------------------------------------------


# People of so many kinds, each with one right answer; some numbers tell the kind, more of them nothing.
KINDS, CLUE, NOISE, WIDTH, SIDE, K, STEPS, PER_STEP = 16, 4, 12, 8, 4, 2, 200, 128


class _Router(nn.Module):
    """A linear query, product keys and experts; the answer is the sum of the gated experts."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        draw = partial(torch.randn, generator=torch.Generator().manual_seed(0))
        self.kind, self.keys = kind, ProductKeys(WIDTH, SIDE)
        self.query = nn.Parameter(draw(CLUE + NOISE, WIDTH) * WIDTH**-0.5)
        self.experts = nn.Parameter(draw(SIDE**2, WIDTH) * WIDTH**-0.5)
        with torch.no_grad():
            self.keys.sub_keys.copy_(draw(self.keys.sub_keys.shape))

    def forward(self, x: Tensor) -> Tensor:
        pairs = top_pairs(self.keys(x @ self.query), K)
        return (self.experts[pairs.indices] * gate_weights(pairs.scores, self.kind).unsqueeze(-1)).mean(1)


def train_toy_routers() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train both routers from the same start on the same samples; always the same curves.

    First step, gate, loss (mean squared error; 1 is what a constant answer gets); then by gate how far the keys went, in parts of
    their length, and the last loss."""
    curves, ends = [], {}
    for kind in ("softmax", "none"):
        router = _Router(kind)
        keys_before = router.keys.sub_keys.detach().clone()
        losses = _train_router(router)
        keys_moved = (router.keys.sub_keys.detach() - keys_before).norm() / keys_before.norm()
        curves.append(pd.DataFrame({"step": range(1, STEPS + 1), "gate": kind, "loss": losses}))
        ends[kind] = {"keys_moved": float(keys_moved), "loss": float(np.mean(losses[-20:]))}
    return pd.concat(curves, ignore_index=True), pd.DataFrame(ends).T


def _train_router(router: _Router) -> list[float]:
    draw = partial(torch.randn, generator=(generator := torch.Generator().manual_seed(1)))
    clues, answers = draw(KINDS, CLUE), draw(KINDS, WIDTH)
    answers = (answers - answers.mean(0)) / answers.std(0, correction=0)
    optimizer = Adam(router.parameters(), lr=0.03)
    losses = []
    for _ in range(STEPS):
        kinds = torch.randint(KINDS, (PER_STEP,), generator=generator)
        loss = (router(torch.cat([clues[kinds], draw(PER_STEP, NOISE)], dim=1)) - answers[kinds]).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses
