"""Interest slots event by event: what `elastic-slots` keeps of people (elastic_slots.py), constant in how much was read."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.batches import Batch
from elastic_core.core.contract import Retrieved
from elastic_core.core.layers import zero_padding
from elastic_core.core.stream import Stream, StreamState
from elastic_core.slots.gated_slots import (
    LEAST,
    count_recent,
    factor_steps,
    held_events,
    hold_last,
    read_slots,
    recent_logarithms,
)


class SlotStream(Stream):
    """A person's state of constant size: the slots, the last events and what experts stand for.

    Without positions nothing counts from an end: after any number of events the state equals one pass over all of them with the
    experts of the last `refresh`. Kept: L·(k + conv_width - 1)·d numbers of slots and last events, k·d of experts, their numbers
    and masses 2k, (k + 2)·R for how often slots were written.
    """

    def __init__(self, model: Any, room: int) -> None:
        super().__init__(model, room)
        self.keep = torch.exp(-math.log(2) / model.half_lives)

    def _read_history(self, history: Tensor, columns: slice) -> tuple[Tensor, StreamState]:
        model, batch = self.model, Batch(history, history)
        retrieved = model.retrieve(batch)
        masses = model.item_distribution.retrieved_log_normalisers(model, retrieved)
        x, real, strength = model.events.embed_items(history), history > 0, model._write_strengths(history, retrieved, masses)
        counted = torch.cat([strength, real.unsqueeze(1).to(strength.dtype)], 1)
        state = {
            "interests": retrieved.interests, "experts": retrieved.experts, "masses": masses,
            "counts": count_recent(counted, model.half_lives),
        }  # fmt: skip
        tail, decay = max(model.config.conv_width - 1, 0), factor_steps(strength[:, :-1])
        for i, layer in enumerate(model.layers):
            h = zero_padding(layer.norm(x), real)
            state[f"{i}.held"] = hold_last(h, held_events(strength[:, :-1]))
            state[f"{i}.tail"] = functional.pad(h, (0, 0, tail, 0))[:, h.shape[1] :]
            if not layer.final:
                slots = read_slots(h, decay, *layer.query_slots(h, retrieved.interests))
                x = layer.mix_slots(x, *slots, retrieved.interests, layer.local_context(h))
        lately = recent_logarithms(state["counts"])
        return model._predict_last(
            x[:, -1:], h[:, -1:], state[f"{i}.held"], retrieved, layer.local_context(h, True), lately
        ), state

    def _read_event(self, items: Tensor) -> Tensor:
        model, state, retrieved = self.model, self.state, self.retrieved
        x = model.events.embed_items(items).unsqueeze(1)
        strength = model._write_strengths(items.unsqueeze(1), retrieved, state["masses"])  # [B, k + 1, 1]
        step = strength[:, :-1].clamp_max(1 - LEAST)
        state["counts"].mul_(self.keep).add_(functional.pad(strength, (0, 0, 0, 1), value=1.0))
        for i, layer in enumerate(model.layers):
            h, held, tail = layer.norm(x), state[f"{i}.held"], state[f"{i}.tail"]
            held.lerp_(h, step)
            window = torch.cat([tail, h], 1)
            local = layer.local_context(window, last=True)
            state[f"{i}.tail"] = window[:, window.shape[1] - tail.shape[1] :]
            if layer.final:
                return model._predict_last(x, h, held, retrieved, local, recent_logarithms(state["counts"]))
            moving, bias = layer.query_slots(h, retrieved.interests)
            slots = (held @ moving.mT + bias).softmax(1)  # [B, k, 1]
            x = layer.mix_slots(x, slots, slots.mT @ held, retrieved.interests, local)
        raise AssertionError("the last layer predicts")

    def _rebind_tensors(self) -> None:
        p, nothing = self.state["interests"], self.state["interests"].new_zeros(0)
        self.retrieved = Retrieved(p, self.state["experts"], nothing, nothing, nothing, nothing, nothing)
