"""ELASTIC behind the contract of models: what core/elastic.py computes, its variants, and what people ask of it."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from elastic_core.core.batches import Batch
from elastic_core.core.catalog import Catalog
from elastic_core.core.contract import Edit, Encoded, Streams, Trace, Traces, Variant
from elastic_core.core.elastic import CausalDispatcher, Encoder, InterestMemory, TwoWayDispatcher, layer_of
from elastic_core.core.embedding import EventEmbedding
from elastic_core.core.registry import register
from elastic_core.core.retrieved import Retrieved, balance_penalty
from elastic_core.core.settings import ElasticConfig
from elastic_core.core.with_memory import WithMemory, interest_memory
from elastic_core.errors import InputError
from elastic_core.following.stream import Stream
from elastic_core.slots.standing import Standing


def _asked_for(batch: Batch) -> int:
    """How many of the last columns hold all targets; 0 where nothing is said of them."""
    if batch.targets is None or not len(batch.places.columns):
        return 0
    return batch.targets.shape[1] - batch.places.first


@register(ElasticConfig)
class Elastic(Encoder, WithMemory, Streams, Traces):
    """See the module's table. `edit` arguments change what was retrieved before it is used, for what-if questions."""

    objective = "window"
    forms: ClassVar = {
        "elastic": {"bidirectional": False},  # the recipes' form: causal dispatcher and local convolution
        "elastic-two-way": {"bidirectional": True, "conv_width": 0},  # the paper's encoder
    }
    variants = (
        Variant("ELASTIC", {}, "The model of the paper in its causal form."),
        Variant("ELASTIC, two-way", {"bidirectional": True}, "The encoder as printed: one target a sample.", "last"),
        Variant(
            "PKM-ACT",
            {"memory": "per-layer"},
            "A memory before every layer; needs two layers. In the causal form all its memories are asked with the same events, "
            "not with each layer's input; only the two-way form asks with the layer's input, as PKM-ACT prints it.",
        ),
        Variant("ELASTIC without query network", {"query": "mean"}, "Table 3: the query is the plain mean of the events."),
        Variant("ELASTIC without memory", {"memory": "none"}, "Table 3, w/o IMR: k interests that everybody shares."),
        Variant("ELASTIC without dispatcher", {"dispatch": "none"}, "Table 3: self-attention instead of linear dispatch."),
        Variant("ELASTIC without gate", {"gate": "none"}, "Algorithm 1 as printed: the keys get no gradient."),
    )
    config: ElasticConfig

    def __init__(self, config: ElasticConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.causal = not config.bidirectional
        self.n_experts = config.side**2
        self.retrieves = config.memory != "none"
        self.traces = config.dispatch != "none"
        self.streams = self.causal and config.dispatch == "linear"
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout, rows=config.items_by_rows)
        self.memories = nn.ModuleList(
            interest_memory(config, config.query_norm, config.gate)
            for _ in range(config.layers if config.memory == "per-layer" else 1)
        )
        self.layers = nn.ModuleList(layer_of(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.standing = Standing(config.width) if config.interest_weight and self.retrieves else None

    def forward(self, batch: Batch) -> Encoded:
        x, retrieved = self._encode(batch, last=_asked_for(batch))
        auxiliary, summed = {}, {}
        if self.retrieves and self.config.balance_weight:
            auxiliary["balance"] = torch.stack([balance_penalty(r) for r in retrieved]).mean()
        if self.standing is not None and batch.targets is not None:
            found, table = retrieved[0], self.scorer().table
            experts, masses = self._values(found), self._masses(found)
            summed["interest"] = self.standing.surprise(found, *batch.places.asked, experts, table, masses)
        return Encoded(self.norm(x), auxiliary, summed)

    def auxiliary_weights(self) -> dict[str, float]:
        config = self.config
        weights = {"balance": config.balance_weight, "interest": config.interest_weight}
        return {name: weight for name, weight in weights.items() if weight and self.retrieves}

    def last_state(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        return self.norm(self._encode(batch, last=1, edit=edit)[0][:, -1])

    def retrieve(self, batch: Batch) -> Retrieved:
        return self._retrieve(0, *self._read_for_retrieval(batch), batch.retrieval_items)

    @torch.no_grad()
    def calibrate(self, batch: Batch, rate: float = 1.0) -> None:
        """Tells every memory's query normalisation what histories ask: those that `batch.retrieval_items [B, N]` holds.

        `rate` is how far its statistics move (1 = only this batch counts). Without dropout, as histories are served; memory
        by memory, because in the two-way form what a layer asks depends on what the layer before it has found.
        """
        was_training = self.training
        self.eval()
        content, real = self._read_for_retrieval(batch)
        x = self.events.place(content, real)
        for i, memory in enumerate(self.memories):
            if not isinstance(memory, InterestMemory):
                break
            asked = content if i == 0 or self.causal else x
            memory.calibrate(asked, real, rate)
            if not self.causal and i + 1 < len(self.memories):
                x, _ = self.layers[i](x, memory(asked, real).interests, real)
        self.train(was_training)

    def trace(self, batch: Batch) -> Trace:
        """How this history was read. Costs O(N·k) more than scoring; meant for one person at a time."""
        if self.config.dispatch == "none":
            raise InputError("this run has no dispatcher (dispatch = none), so there is no aggregation to show")
        seen: list[tuple[Retrieved, Tensor, Tensor]] = []
        self._encode(batch, trace=lambda *layer: seen.append(layer))
        retrieved, reading, slots = zip(*seen, strict=True)
        return Trace(list(retrieved), list(reading), list(slots))

    def taken(self, batch: Batch, found: Retrieved) -> Tensor:
        real, first = batch.real if batch.padded else None, self.layers[0]
        assert isinstance(first, TwoWayDispatcher | CausalDispatcher)
        x = self.events.place(self.events.content(batch.items), real)
        return first.attention(x, found.interests, real)[0].mean(1)

    def open_stream(self, room: int) -> Stream:
        from elastic_core.following.elastic import ElasticStream  # where somebody follows a person

        return ElasticStream(self, room)
