"""ELASTIC with interest slots (ours): the same memory of experts and the same linear cost, with four answers of our own.

- Every event asks the memory, and the experts most wanted are retrieved (slots/voting.py; `query` = `mean`: their mean asks).
- A slot holds what last happened in its interest (slots/gated_slots.py).
- An event goes to the slots whose experts, as what they stand for, may have given its item.
- Every slot predicts for itself, and probabilities are mixed, not vectors; a part of the mixture reads no slot, for noise and
  interests that have none. The parts know how often each slot was written lately.

| setting | values |
| --- | --- |
| `memory` | `shared`: retrieved for this person, `none`: the same k interests for everybody, all else equal |

In the last layer, with M_t[s] what slot s holds, P_s its expert, h_t the event as normalised there and c_t what came just before:

    p(next) = Σ_s π_t[s] softmax(E · norm(FFN(x_t + c_t + A M_t[s] + B P_s)))
    π_t = softmax_s(q_t · (K P_s + L M_t[s]) + recency)

so every suggestion has experts, with shares that add up to 1, and a slot knows which events it holds (`attribute`). The layers
before it mix the slots into the event, as the dispatcher does. The experts' distributions need every item's logit,
O(K·n_items·d): in every training step, and once for a series of judgements (`reading`).

Symbols: x the stream `[B, n, d]`, h the same normalised, p the retrieved experts `[B, k, d]`, held what the slots hold.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.elastic import InterestMemory, QueriedMemory, SharedInterests
from elastic_core.core.layers import Dropout, EventEmbedding, FeedForward, LocalConvolution, masked
from elastic_core.core.stream import Kept, Stream
from elastic_core.models import (
    Attribution,
    Batch,
    Catalog,
    ConvWidth,
    Edit,
    Encoded,
    Judge,
    Retrieved,
    Scorer,
    Streams,
    Trace,
    Traces,
    Variant,
    Weight,
    balance_penalty,
    register,
)
from elastic_core.slots import gated_slots
from elastic_core.slots.standing import Standing, WithStanding, values_of
from elastic_core.slots.voting import VotingConfig, VotingMemory

NOTHING = 1e-9  # a share that is none, where its logarithm is needed
HALF_LIVES = (1.0, 3.0, 10.0, 30.0)  # events over which "lately" is measured
LEAST_SHARE = 0.003  # of the recent past: what an interest counts that did not show


@dataclass(frozen=True, kw_only=True)
class ElasticSlotsConfig(VotingConfig, name="elastic-slots", label="ELASTIC with interest slots"):
    memory: Literal["shared", "none"] = "shared"
    query: Literal["votes", "mean"] = "votes"  # type: ignore[assignment]
    conv_width: ConvWidth = 8
    interest_weight: Weight = 0.5  # of the loss that asks experts to stand for items


class Written(NamedTuple):
    """Where the events of a history go. `lately` is how often each slot was written."""

    strength: Tensor  # [B, N, k + 1], the last column what no slot takes; 0 on padding
    lately: Tensor  # [B, N, k + 1, R] logarithms

    @property
    def steps(self) -> Tensor:
        """How far each slot moves towards each event, `[B, N, k]`."""
        return self.strength[..., :-1]


class SlotLayer(nn.Module):
    """Events read the slots and are changed by their mixture; with `final` the slots are not mixed but predict one by one."""

    def __init__(self, width: int, dropout: float, conv_width: int, final: bool) -> None:
        super().__init__()
        self.final, self.scale = final, width**-0.5
        self.norm = nn.LayerNorm(width)
        self.query, self.expert_key, self.slot_key = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.expert_value, self.slot_value = nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.local = LocalConvolution(width, conv_width) if conv_width else None
        self.dropout = Dropout(dropout)
        self.feed_forward = FeedForward(width, dropout)
        if final:
            self.other = nn.Linear(width, 1)  # the share of a part that reads no slot
            self.recency = nn.Parameter(torch.zeros(2, len(HALF_LIVES)))

    def ask(self, h: Tensor, p: Tensor, turned: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What events `h [B, n, d]` ask of what the slots hold `[B, n, d]`, and of the experts themselves `[B, n, k]`.

        `turned [B, k]`: factors by which slots count more or less than they would."""
        q = self.query(h) * self.scale
        asked = q @ self.expert_key(p).transpose(-1, -2)
        return q @ self.slot_key.weight, asked if turned is None else asked + turned.clamp_min(NOTHING).log().unsqueeze(1)

    def mix(self, x: Tensor, slots: Tensor, mixed: Tensor, p: Tensor, local: Tensor) -> Tensor:
        """The next x: the slots' weights `[B, n, k]` and mixture `[B, n, d]` and what came just before go in."""
        return self.feed_forward(x + self.dropout(slots @ self.expert_value(p) + self.slot_value(mixed) + local))

    def predict(
        self, x: Tensor, h: Tensor, held: Tensor, p: Tensor, local: Tensor, lately: Tensor, turned: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """What every slot says `[B, n, P, d]` and the logarithms of their shares `[B, n, P]`, for `held [B, n, k, d]`."""
        moving, shares = self.ask(h, p, turned)
        shares = shares + torch.einsum("bnd,bnkd->bnk", moving, held.to(moving.dtype))
        base = (x + self.dropout(local)).unsqueeze(2)
        said = self.dropout(self.slot_value(held) + self.expert_value(p).unsqueeze(1))
        shares = shares + lately[:, :, :-1] @ self.recency[0]
        rest = self.other(h) + lately[:, :, -1:] @ self.recency[1]
        return self.feed_forward(torch.cat([base + said, base], 2)), torch.cat([shares, rest], 2).float().log_softmax(-1)

    def nearby(self, h: Tensor, last: bool = False) -> Tensor:
        """The local convolution of the normalised events, or nothing."""
        if self.local is None:
            return h.new_zeros(1)
        return self.local.last(h) if last else self.local(h)


def make_memory(config: ElasticSlotsConfig) -> InterestMemory | SharedInterests:
    """What finds the experts: events that vote, one query that is their mean, or nothing, where everybody has the same."""
    if config.memory == "none":
        return SharedInterests(config.width, config.k)
    return (VotingMemory if config.query == "votes" else QueriedMemory)(config, "whiten", "softmax")


@register(ElasticSlotsConfig)
class ElasticSlots(WithStanding, Streams, Traces):
    """See the module's table. `heads` count in the query network alone: a slot holds whole events."""

    objective = "window"
    variants = (
        Variant(
            "ELASTIC with interest slots", {}, "Events vote for experts; each has a slot, and each slot predicts for itself."
        ),
        Variant("Interest slots without memory", {"memory": "none"}, "The same slots for k interests that everybody shares."),
    )
    causal = True
    streams = True
    traces = True
    config: ElasticSlotsConfig

    def __init__(self, config: ElasticSlotsConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.n_experts = config.side**2
        self.retrieves = config.memory != "none"
        self.parts = config.k + 1
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout, positions=False)
        self.memories = nn.ModuleList([make_memory(config)])
        shape, final = (config.width, config.dropout, config.conv_width), config.layers - 1
        self.layers = nn.ModuleList(SlotLayer(*shape, i == final) for i in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.standing: Standing = Standing(config.width)
        self.half_lives: Tensor
        self.register_buffer("half_lives", torch.tensor(HALF_LIVES), persistent=False)

    # --- passes ------------------------------------------------------------------------------------------------------

    def forward(self, batch: Batch) -> Encoded:
        """States at every position; with targets, from the first of them on."""
        asked = 0 if batch.targets is None else batch.places.first
        found = self.retrieve(batch)
        masses = self.standing.masses_of(self, found)
        states = self._encode(batch, found, masses, asked)
        auxiliary = {"balance": balance_penalty(found)} if "balance" in self.auxiliary_weights() else {}
        if batch.targets is None or not self.config.interest_weight:
            return Encoded(states, auxiliary)
        return Encoded(states, auxiliary, {"interest": self.standing.surprise(self, found, batch, masses)})

    def auxiliary_weights(self) -> dict[str, float]:
        balance = self.config.balance_weight if self.retrieves else 0.0
        weights = {"balance": balance, "interest": self.config.interest_weight}
        return {name: weight for name, weight in weights.items() if weight}

    def last_state(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        return self._last(batch, None, edit)

    def reading(self) -> tuple[Judge, Scorer]:
        """Works out once what every expert stands for."""
        scorer = self.scorer()
        masses = self.standing.masses(self.expert_values(), scorer.table) if self.retrieves else None
        return lambda batch: self._last(batch, masses), scorer

    def scorer(self) -> Scorer:
        return super().scorer()._replace(parts=self.parts)

    def kept_per_event(self, columns: int) -> int:
        return super().kept_per_event(columns) + 8 * self.config.k**2

    def retrieve(self, batch: Batch) -> Retrieved:
        items = batch.retrieval_items
        return self.memories[0](self.events.content(items), items > 0, items)

    @torch.no_grad()
    def calibrate(self, batch: Batch, rate: float = 1.0) -> None:
        """Tells the memory's query normalisation what histories ask, without dropout, as they are served."""
        memory = self.memories[0]
        if isinstance(memory, InterestMemory):
            memory.calibrate(self.events.content(batch.retrieval_items), batch.retrieval_items > 0, rate)

    def trace(self, batch: Batch) -> Trace:
        """Reading: how much of each event a slot still holds, the same in every layer. Slots: their shares of the prediction."""
        found, layers = self.retrieve(batch), len(self.layers)
        written = self._write(batch.items, found, self.standing.masses_of(self, found))
        reading = gated_slots.held_events(written.steps).unsqueeze(1)
        state = self._encode(batch, found, self.standing.masses_of(self, found), 0, last=True)[:, -1]
        slots = self.scorer().split(state)[1][:, : found.experts.shape[1]].exp().unsqueeze(1)
        return Trace([found] * layers, [reading] * layers, [slots] * layers, written.steps.transpose(1, 2))

    def taken(self, batch: Batch, found: Retrieved) -> Tensor:
        return self._write(batch.items, found, self.standing.masses_of(self, found)).steps.transpose(1, 2)

    @torch.no_grad()
    def attribute(self, batch: Batch, items: Tensor, edit: Edit | None = None) -> Attribution:
        """Who suggests `items [B, M]` as the next ones, and after which events."""
        found = self._edited(batch, edit)
        masses = self.standing.masses_of(self, found)
        vectors, shares = self.scorer().split(self._encode(batch, found, masses, 0, last=True)[:, -1])
        said = self.scorer().logits(vectors)[..., 1:].log_softmax(-1)  # [B, P, n_items]
        parts = said.gather(-1, (items - 1).unsqueeze(1).expand(-1, self.parts, -1)) + shares.unsqueeze(-1)
        steps = self._write(batch.items, found, masses).steps
        return Attribution(found.experts, parts.softmax(1).transpose(1, 2), gated_slots.held_events(steps))

    # --- inside ------------------------------------------------------------------------------------------------------

    def _edited(self, batch: Batch, edit: Edit | None) -> Retrieved:
        found = self.retrieve(batch)
        return edit(found)._replace(before=found) if edit else found

    def _last(self, batch: Batch, all_masses: Tensor | None, edit: Edit | None = None) -> Tensor:
        found = self._edited(batch, edit)
        masses = self.standing.masses_of(self, found) if all_masses is None else all_masses[found.experts]
        return self._encode(batch, found, masses, 0, last=True)[:, -1]

    def _encode(self, batch: Batch, found: Retrieved, masses: Tensor, first: int, last: bool = False) -> Tensor:
        """States from column `first` on, or of the last event alone."""
        real = batch.mask
        x, p = self.events(batch.items, batch.padded), found.interests
        written = self._write(batch.items, found, masses)
        for i, layer in enumerate(self.layers):
            assert isinstance(layer, SlotLayer)
            h = masked(layer.norm(x), real)
            ends = last and i == len(self.layers) - 1
            local = layer.nearby(h, ends)
            if layer.final:
                lately = written.lately
                if ends:
                    held, cut = gated_slots.chunks(h, written.steps).after.unsqueeze(1), -1
                else:
                    held, cut = gated_slots.hold(h, written.steps, first=first), first
                    local = local[:, first:] if local.ndim == 3 else local
                return self._pack(*layer.predict(x[:, cut:], h[:, cut:], held, p, local, lately[:, cut:], found.turned))
            moving, bias = layer.ask(h, p, found.turned)
            slots, mixed = gated_slots.read_slots(h, written.steps, moving, bias)
            x = layer.mix(x, slots.to(h.dtype), mixed.to(h.dtype), p, local)
        raise AssertionError("the last layer predicts")

    def _pack(self, said: Tensor, shares: Tensor) -> Tensor:
        """One row a position: what every part says, then the logarithms of the shares; a slot that an edit took away has none."""
        said, short = self.norm(said), self.parts - shares.shape[-1]
        if short:
            said = functional.pad(said, (0, 0, 0, short))
            shares = functional.pad(shares, (0, short), value=-1e4)
        return torch.cat([said.flatten(-2), shares.to(said.dtype)], -1)

    def _strength(self, items: Tensor, found: Retrieved, masses: Tensor) -> Tensor:
        """How strongly every event goes to every slot `[B, N, k + 1]`: a softmax over the slots and over "none of them"."""
        vectors = self.standing(values_of(self, found))
        logits = (self.scorer().rows(items) @ vectors.transpose(-1, -2)).float() - masses.unsqueeze(1)
        none = -math.log(self.n_items)  # any item, evenly
        return functional.pad(logits.float(), (0, 1), value=none).softmax(-1) * (items > 0).unsqueeze(-1)

    def _write(self, items: Tensor, found: Retrieved, masses: Tensor) -> Written:
        """Where events go. What an expert took that is taken away goes to no slot, or its events would overwrite another's."""
        real, before = items > 0, found.before
        same = None if before is None else found.experts.unsqueeze(-1) == before.experts.unsqueeze(1)  # [B, k', k]
        if before is None or same is None or not same.any(-1).all():
            strength = self._strength(items, found, masses)
        else:
            whole = self._strength(items, before, self.standing.masses_of(self, before))
            kept = whole.gather(-1, same.int().argmax(-1).unsqueeze(1).expand(-1, items.shape[1], -1))
            strength = torch.cat([kept, (whole.sum(-1) - kept.sum(-1)).unsqueeze(-1)], -1)
        lately = (gated_slots.recent_shares(strength, real, self.half_lives) + LEAST_SHARE).log()
        return Written(strength, lately)

    def open_stream(self, room: int) -> "SlotStream":
        return SlotStream(self, room)


# --- streaming -------------------------------------------------------------------------------------------------------
class SlotStream(Stream):
    """A person's state of constant size: the slots, the last events and what experts stand for.

    Without positions nothing counts from an end: after any number of events the state equals one pass over all of them with the
    experts of the last `refresh`. Kept: L·(k + conv_width - 1)·d numbers of slots and last events, k·d of experts, their numbers
    and masses 2k, (k + 2)·R for how often slots were written.
    """

    def __init__(self, model: ElasticSlots, room: int) -> None:
        super().__init__(model, room)
        self.keep = torch.exp(-math.log(2) / model.half_lives)[:, None]

    def _start(self, history: Tensor, columns: slice) -> tuple[Tensor, Kept]:
        model, real = self.model, history > 0
        found = model.retrieve(Batch(history, history))
        masses = model.standing.masses_of(model, found)
        x, written = model.events.content(history), model._write(history, found, masses)
        ago = torch.arange(history.shape[1] - 1, -1, -1, device=x.device)
        fading = torch.exp(-math.log(2) * ago / model.half_lives[:, None])  # [R, N]
        counted = torch.cat([written.strength, real.unsqueeze(-1).to(written.strength.dtype)], -1)
        kept = {
            "interests": found.interests, "experts": found.experts, "masses": masses,
            "counts": torch.einsum("rn,bns->brs", fading.to(counted.dtype), counted),
        }  # fmt: skip
        tail = max(model.config.conv_width - 1, 0)
        for i, layer in enumerate(model.layers):
            h = masked(layer.norm(x), real)
            kept[f"{i}.held"] = gated_slots.chunks(h, written.steps).after
            kept[f"{i}.tail"] = functional.pad(h, (0, 0, tail, 0))[:, h.shape[1] :]
            if not layer.final:
                slots, mixed = gated_slots.read_slots(h, written.steps, *layer.ask(h, found.interests))
                x = layer.mix(x, slots.to(h.dtype), mixed.to(h.dtype), found.interests, layer.nearby(h))
        near, lately = layer.nearby(h, True), written.lately[:, -1:]
        return self._said(layer, x[:, -1:], h[:, -1:], kept[f"{i}.held"], found.interests, near, lately), kept

    def _next(self, items: Tensor) -> Tensor:
        model, kept, found = self.model, self.kept, self.found
        p = found.interests
        x = model.events.content(items).unsqueeze(1)
        strength = model._strength(items.unsqueeze(1), found, kept["masses"])[:, 0]
        step = strength[:, :-1].clamp_max(1 - gated_slots.LEAST).unsqueeze(-1)
        kept["counts"].mul_(self.keep).add_(functional.pad(strength, (0, 1), value=1.0).unsqueeze(1))
        shares = kept["counts"][..., :-1] / kept["counts"][..., -1:].clamp_min(1e-12)
        lately = (shares.transpose(1, 2) + LEAST_SHARE).log().unsqueeze(1)
        for i, layer in enumerate(model.layers):
            h, held, tail = layer.norm(x), kept[f"{i}.held"], kept[f"{i}.tail"]
            held.lerp_(h, step)
            window = torch.cat([tail, h], 1)
            local = layer.nearby(window, last=True)
            kept[f"{i}.tail"] = window[:, window.shape[1] - tail.shape[1] :]
            if layer.final:
                return self._said(layer, x, h, held, p, local, lately)
            moving, bias = layer.ask(h, p)
            slots = (moving @ held.transpose(-1, -2) + bias).softmax(-1)
            x = layer.mix(x, slots, slots @ held, p, local)
        raise AssertionError("the last layer predicts")

    def _said(self, layer: SlotLayer, x: Tensor, h: Tensor, held: Tensor, p: Tensor, local: Tensor, lately: Tensor) -> Tensor:
        return self.model._pack(*layer.predict(x, h, held.unsqueeze(1), p, local, lately))[:, -1]

    def _bind(self) -> None:
        p, nothing = self.kept["interests"], self.kept["interests"].new_zeros(0)
        self.found = Retrieved(p, self.kept["experts"], nothing, nothing, nothing, nothing, nothing)
