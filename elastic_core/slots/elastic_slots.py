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

so every suggestion has experts, with shares that add up to 1, and a slot knows which events it holds (`attribute_items`). The
layers before it mix the slots into the event, as the dispatcher does. The experts' distributions need every item's logit,
O(K·n_items·d): in every training step, and once for a series of judgements (`prepare_states`).

Symbols: x the stream `[B, n, d]`, h the same normalised, p the retrieved experts `[B, k, d]`, held what the slots hold.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.elastic import InterestMemory, QueriedMemory, SharedInterests
from elastic_core.core.layers import (
    Dropout,
    EventEmbedding,
    FeedForward,
    LocalConvolution,
    add_in_place,
    add_product,
    linear,
    zero_padding,
)
from elastic_core.models import (
    Attribution,
    Batch,
    Catalog,
    ConvWidth,
    Edit,
    Encoded,
    Judge,
    Mixture,
    Retrieved,
    Scorer,
    StreamingModel,
    Trace,
    TracingModel,
    Variant,
    Weight,
    balance_penalty,
    register,
)
from elastic_core.slots.gated_slots import (
    CHUNK,
    LEAST_SHARE,
    Decay,
    count_recent,
    cut_events,
    factor_steps,
    first_held,
    held_events,
    hold_last,
    hold_rows,
    inherit_states,
    read_slots,
    recent_logarithms,
    recent_shares,
    score_slots,
)
from elastic_core.slots.item_distribution import ItemDistribution, WithItemDistributions, retrieved_values
from elastic_core.slots.slot_stream import SlotStream
from elastic_core.slots.voting import VotingConfig, VotingMemory

NOTHING = 1e-9  # a share that is none, where its logarithm is needed
SHORT = 128  # events, of which nothing worth the search is forgotten
HALF_LIVES = (1.0, 3.0, 10.0, 30.0)  # events over which "lately" is measured


@dataclass(frozen=True, kw_only=True)
class ElasticSlotsConfig(VotingConfig, name="elastic-slots", label="ELASTIC with interest slots"):
    memory: Literal["shared", "none"] = "shared"
    query: Literal["votes", "mean"] = "votes"  # type: ignore[assignment]
    conv_width: ConvWidth = 8
    interest_weight: Weight = 0.5  # of the loss that asks experts to stand for items


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
            self.no_slot = nn.Linear(width, 1)  # the share of a part that reads no slot
            self.recency = nn.Parameter(torch.zeros(2, len(HALF_LIVES)))

    def query_slots(self, h: Tensor, p: Tensor, turned: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What events `h [B, n, d]` ask of what the slots hold `[B, n, d]`, and of the experts themselves `[B, k, n]`.

        The maps are multiplied before the events are: one product with N x d numbers instead of two. `turned [B, k]`: factors by
        which slots count more or less than they would."""
        query = self.query.weight * self.scale
        expert_scores = self.expert_key(p) @ query @ h.mT
        expert_scores = expert_scores if turned is None else expert_scores + turned.clamp_min(NOTHING).log().unsqueeze(-1)
        return linear(h, self.slot_key.weight.T @ query), expert_scores

    def mix_slots(self, x: Tensor, slots: Tensor, mixed: Tensor, p: Tensor, local: Tensor) -> Tensor:
        """The next x: the slots' weights `[B, k, n]` and mixture `[B, n, d]` and what came just before go in."""
        read = add_product(linear(mixed, self.slot_value.weight, self.slot_value.bias), slots.mT, self.expert_value(p))
        return self.feed_forward(add_in_place(self.dropout(add_in_place(read, local)), x))

    def part_log_shares(self, h: Tensor, scores: Tensor, lately: Tensor) -> Tensor:
        """The logarithms of what every part has of the prediction, `[B, k + 1, n]`: slots by what events ask of them `[B, k, n]`
        and by how often they were written lately `[B, k + 1, R, n]`, the last part by the event alone."""
        often = torch.cat([self.recency[:1].expand(scores.shape[1], -1), self.recency[1:]])  # [k + 1, R]
        rest = (h * self.no_slot.weight).sum(-1) + self.no_slot.bias
        scores = torch.cat([scores, rest.unsqueeze(1)], 1)
        return (scores + (lately * often.unsqueeze(-1)).sum(2)).float().log_softmax(1)

    def hold_values(self, h: Tensor, before: Tensor, decay: Decay, p: Tensor) -> Tensor:
        """What every slot and its expert say after every event of the chunks `h [B, c, C, d]`, and nothing as the last part:
        `[B, c C, k + 1, d]`. Events and inherited states go through the map, not the N·k states that they become."""
        held = hold_rows(linear(torch.cat([h, before], 2), self.slot_value.weight), decay, 1)
        own = functional.pad(self.expert_value(p) + self.slot_value.bias, (0, 0, 0, 1))  # [B, k + 1, d]
        return held + own.unsqueeze(1)

    def predict_parts(self, base: Tensor, values: Tensor) -> Tensor:
        """What every part predicts, `[..., P, d]`: the event with what came just before `[..., d]`, and what a slot adds."""
        return self.feed_forward(self.dropout.add_dropped(base.unsqueeze(-2), values))

    def local_context(self, h: Tensor, last: bool = False) -> Tensor:
        """The local convolution of the normalised events, or nothing."""
        if self.local is None:
            return h.new_zeros(1)
        return self.local.forward_last(h) if last else self.local(h)


def make_memory(config: ElasticSlotsConfig) -> InterestMemory | SharedInterests:
    """What finds the experts: events that vote, one query that is their mean, or nothing, where everybody has the same."""
    if config.memory == "none":
        return SharedInterests(config.width, config.k)
    return (VotingMemory if config.query == "votes" else QueriedMemory)(config, "whiten", "softmax")


@register(ElasticSlotsConfig)
class ElasticSlots(WithItemDistributions, StreamingModel, TracingModel):
    """See the module's table. `heads` count in the query network alone: a slot holds whole events."""

    objective = "window"
    variants = (
        Variant(
            "ELASTIC with interest slots", {}, "Our variant: each event votes for experts, and the slot of each ranks items."
        ),
        Variant("Interest slots without memory", {"memory": "none"}, "Everybody has slots for the same k interests."),
    )
    causal = True
    streams = True
    traces = True
    config: ElasticSlotsConfig
    layers: Sequence[SlotLayer]

    def __init__(self, config: ElasticSlotsConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.n_experts = config.n_subkeys**2
        self.retrieves = config.memory != "none"
        self.parts = config.k + 1
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout, positions=False)
        self.memories = nn.ModuleList([make_memory(config)])
        shape, final = (config.width, config.dropout, config.conv_width), config.layers - 1
        layers = (SlotLayer(*shape, i == final) for i in range(config.layers))
        self.layers = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = nn.LayerNorm(config.width)
        self.item_distribution: ItemDistribution = ItemDistribution(config.width)
        self.half_lives: Tensor
        self.register_buffer("half_lives", torch.tensor(HALF_LIVES), persistent=False)

    # --- passes ------------------------------------------------------------------------------------------------------

    def forward(self, batch: Batch) -> Encoded:
        """States at every position `[B, N, D]`; with targets, those of the targets alone."""
        retrieved = self.retrieve(batch)
        masses = self.item_distribution.retrieved_log_normalisers(self, retrieved)
        states = self._all_states(batch, retrieved, masses)
        auxiliary = {"balance": balance_penalty(retrieved)} if "balance" in self.auxiliary_weights() else {}
        if batch.targets is None or not self.config.interest_weight:
            return Encoded(states, auxiliary)
        return Encoded(states, auxiliary, {"interest": self.item_distribution.target_surprise(self, retrieved, batch, masses)})

    def auxiliary_weights(self) -> dict[str, float]:
        balance = self.config.balance_weight if self.retrieves else 0.0
        weights = {"balance": balance, "interest": self.config.interest_weight}
        return {name: weight for name, weight in weights.items() if weight}

    def last_state(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        retrieved = self._retrieve_edited(batch, edit)
        return self._last_state(batch, retrieved, self.item_distribution.retrieved_log_normalisers(self, retrieved))

    def prepare_states(self) -> tuple[Judge, Scorer]:
        """Works out once what every expert stands for."""
        scorer = self.scorer()
        masses = self.item_distribution.log_normalisers(self.expert_values(), scorer.table) if self.retrieves else None

        def judge_batch(batch: Batch) -> Tensor:
            retrieved = self.retrieve(batch)
            return self._last_state(
                batch,
                retrieved,
                self.item_distribution.retrieved_log_normalisers(self, retrieved)
                if masses is None
                else masses[retrieved.experts],
            )

        return judge_batch, scorer

    def scorer(self) -> Scorer:
        return super().scorer()._replace(parts=self.parts)

    def saved_per_event(self, columns: int) -> int:
        return super().saved_per_event(columns) + 8 * self.config.k**2

    def retrieve(self, batch: Batch) -> Retrieved:
        items = batch.retrieval_items
        return self.memories[0](self.events.embed_items(items), items > 0, items)

    @torch.no_grad()
    def calibrate(self, batch: Batch, rate: float = 1.0) -> None:
        """Tells the memory's query normalisation what histories ask, without dropout, as they are served."""
        memory, items = self.memories[0], batch.retrieval_items
        if isinstance(memory, VotingMemory):
            memory.calibrate(self.events.embed_items(items), items > 0, rate, items)
        elif isinstance(memory, InterestMemory):
            memory.calibrate(self.events.embed_items(items), items > 0, rate)

    def trace_reading(self, batch: Batch) -> Trace:
        """Reading: how much of each event a slot still holds, the same in every layer. Slots: their shares of the prediction."""
        retrieved, layers = self.retrieve(batch), len(self.layers)
        masses = self.item_distribution.retrieved_log_normalisers(self, retrieved)
        steps = self._write_strengths(batch.items, retrieved, masses)[:, :-1]
        shares = (
            self.scorer()
            .split_mixture(self._last_state(batch, retrieved, masses))[1][:, : retrieved.experts.shape[1]]
            .exp()
            .unsqueeze(1)
        )
        return Trace([retrieved] * layers, [held_events(steps).unsqueeze(1)] * layers, [shares] * layers, steps)

    def slot_weights(self, batch: Batch, retrieved: Retrieved) -> Tensor:
        return self._write_strengths(batch.items, retrieved, self.item_distribution.retrieved_log_normalisers(self, retrieved))[
            :, :-1
        ]

    @torch.no_grad()
    def attribute_items(self, batch: Batch, items: Tensor, edit: Edit | None = None) -> Attribution:
        """Who suggests `items [B, M]` as the next ones, and after which events."""
        retrieved = self._retrieve_edited(batch, edit)
        masses = self.item_distribution.retrieved_log_normalisers(self, retrieved)
        vectors, shares = self.scorer().split_mixture(self._last_state(batch, retrieved, masses))
        log_p = self.scorer().logits(vectors)[..., 1:].log_softmax(-1)  # [B, P, n_items]
        parts = log_p.gather(-1, (items - 1).unsqueeze(1).expand(-1, self.parts, -1)) + shares.unsqueeze(-1)
        held = held_events(self._write_strengths(batch.items, retrieved, masses)[:, :-1])
        return Attribution(retrieved.experts, parts.softmax(1).transpose(1, 2), held)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _retrieve_edited(self, batch: Batch, edit: Edit | None) -> Retrieved:
        retrieved = self.retrieve(batch)
        return edit(retrieved)._replace(before=retrieved) if edit else retrieved

    def _read_layers(self, batch: Batch, retrieved: Retrieved, steps: Tensor, first: int = 0) -> tuple[Tensor, Tensor, Decay]:
        """The events before the last layer, the same as it normalises them, and the factors of the steps: from a column on."""
        items, decay = batch.items[:, first:], factor_steps(steps[..., first:])
        x, real = self.events(items, batch.padded), items > 0 if batch.padded else None
        for layer in self.layers[:-1]:
            h = zero_padding(layer.norm(x), real)
            slots, mixed = read_slots(h, decay, *layer.query_slots(h, retrieved.interests, retrieved.turned))
            x = layer.mix_slots(x, slots.to(h.dtype), mixed.to(h.dtype), retrieved.interests, layer.local_context(h))
        return x, zero_padding(self.layers[-1].norm(x), real), decay

    def _last_state(self, batch: Batch, retrieved: Retrieved, masses: Tensor) -> Tensor:
        """The state of the last event, `[B, D]`: what slots hold at the end is one product, without chunks."""
        layer, strength = self.layers[-1], self._write_strengths(batch.items, retrieved, masses)
        steps = strength[:, :-1]
        held = held_events(steps.double())
        first = self._first_read(steps, held)
        x, h, _ = self._read_layers(batch, retrieved, steps, first)
        counted = torch.cat([strength, batch.real.unsqueeze(1).to(strength.dtype)], 1)
        lately = recent_logarithms(count_recent(counted, self.half_lives))
        return self._predict_last(
            x[:, -1:], h[:, -1:], hold_last(h, held[..., first:]), retrieved, layer.local_context(h, True), lately
        )

    def _first_read(self, steps: Tensor, held: Tensor) -> int:
        """The first column that the last state depends on: layer by layer downwards, what slots have forgotten is left out.
        `held` is what they hold at the end, in float64."""
        if steps.shape[-1] <= SHORT or steps.requires_grad or steps.device.type != "cpu" or torch.compiler.is_compiling():
            return 0
        column = first_held(held, self.config.conv_width - 1)
        for _ in self.layers[1:]:
            if column:
                column = first_held(held_events(steps[..., : column + 1].double()), self.config.conv_width - 1)
        return column

    def _predict_last(
        self, x: Tensor, h: Tensor, held: Tensor, retrieved: Retrieved, local: Tensor, lately: Tensor,
    ) -> Tensor:  # fmt: skip
        """The state after one event `x, h, local [B, 1, d]`, for what slots hold after it `[B, k, d]`."""
        layer, p = self.layers[-1], retrieved.interests
        moving, expert_scores = layer.query_slots(h, p, retrieved.turned)
        shares = layer.part_log_shares(h, expert_scores + held.to(moving.dtype) @ moving.mT, lately.unsqueeze(-1))
        values = functional.pad(layer.slot_value(held.to(h.dtype)) + layer.expert_value(p), (0, 0, 0, 1))
        return self._pack_states(layer.predict_parts((x + layer.dropout(local)).squeeze(1), values), shares.squeeze(-1))

    def _all_states(self, batch: Batch, retrieved: Retrieved, masses: Tensor) -> Tensor | Mixture:
        """The states of all events `[B, N, D]`, or of all targets, for which no more is worked out than they need."""
        layer, p = self.layers[-1], retrieved.interests
        strength = self._write_strengths(batch.items, retrieved, masses)
        x, h, decay = self._read_layers(batch, retrieved, strength[:, :-1])
        places = None if batch.targets is None else batch.places
        skipped = 0 if places is None else places.first // CHUNK  # chunks
        first = skipped * CHUNK
        events = cut_events(h, CHUNK)
        before = inherit_states(events, decay)[:, skipped:]
        events, later = events[:, skipped:], Decay(*(factor[:, skipped:] for factor in decay))
        moving, scores = layer.query_slots(h[:, first:], p, retrieved.turned)
        scores = scores + score_slots(events, before, later, moving)
        lately = (recent_shares(strength, batch.real, self.half_lives)[..., first:] + LEAST_SHARE).log()
        shares = layer.part_log_shares(h[:, first:], scores, lately).mT
        values = layer.hold_values(events, before, later, p)
        base = (x + layer.dropout(layer.local_context(h)))[:, first:]
        if places is None:
            return self._pack_states(layer.predict_parts(base, values[:, : base.shape[1]]), shares)
        base, shares = (places.gather_targets(part, batch.items.shape[1]) for part in (base, shares))
        values = places.gather_targets(values, first + values.shape[1])  # the last chunk goes beyond the last event
        return Mixture(self.norm(layer.predict_parts(base, values)), shares)

    def _pack_states(self, vectors: Tensor, shares: Tensor) -> Tensor:
        """One row a position: what every part says, then the logarithms of the shares; a slot that an edit took away has none."""
        vectors, short = self.norm(vectors), self.parts - shares.shape[-1]
        if short:
            vectors = functional.pad(vectors, (0, 0, 0, short))
            shares = functional.pad(shares, (0, short), value=-1e4)
        return torch.cat([vectors.flatten(-2), shares.to(vectors.dtype)], -1)

    def _write_strengths(self, items: Tensor, retrieved: Retrieved, masses: Tensor) -> Tensor:
        """How strongly every event goes to every slot, and in the last row to none `[B, k + 1, N]`; 0 on padding.

        What an expert took that is taken away goes to no slot, or its events would overwrite another's."""
        before = retrieved.before
        same = None if before is None else retrieved.experts.unsqueeze(-1) == before.experts.unsqueeze(1)  # [B, k', k]
        if before is None or same is None or not same.any(-1).all():
            return self._assign_items(items, retrieved, masses)
        strengths = self._assign_items(items, before, self.item_distribution.retrieved_log_normalisers(self, before))
        remaining = strengths.gather(1, same.int().argmax(-1).unsqueeze(-1).expand(-1, -1, items.shape[1]))
        return torch.cat([remaining, (strengths.sum(1) - remaining.sum(1)).unsqueeze(1)], 1)

    def _assign_items(self, items: Tensor, retrieved: Retrieved, masses: Tensor) -> Tensor:
        """How well items fit what experts stand for, and none of them: a softmax over the k + 1 rows of `[B, k + 1, N]`."""
        vectors = self.item_distribution(retrieved_values(self, retrieved))
        logits = (vectors @ self.scorer().item_rows(items).mT).float() - masses.unsqueeze(-1)
        none = -math.log(self.n_items)  # any item, evenly
        return functional.pad(logits.float(), (0, 0, 0, 1), value=none).softmax(1) * (items > 0).unsqueeze(1)

    def open_stream(self, room: int) -> SlotStream:
        return SlotStream(self, room)
