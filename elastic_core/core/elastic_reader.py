"""Read the last state of ELASTIC (core/elastic.py) for a series of histories: `Elastic.prepare_states` (core/folded.py).

What is folded, beside every product of two weights:

- All that the layers ask of the retrieved experts is one product with k rows.
- The last pooling level, whitening and sub-keys are one matrix; while there are few experts, the k best are those of all sums.
- In the last layer the k interests ask and answer with what they hold, so nothing there but two products is as long as a history.

Symbols: B people, N events, k interests, d width, c chunks. Rows `[M, d]` are those of all people, one below the other.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.batches import Batch
from elastic_core.core.dispatch import CAP, CausalDispatcher, Dispatcher, TwoWayDispatcher, chunk_length
from elastic_core.core.folded import FoldedAttention, FoldedConvolution, FoldedFeedForward, can_fold, can_read_batch, double
from elastic_core.core.fused_ops import sums_before
from elastic_core.core.layers import Whitening, pad_front, zero_padding
from elastic_core.core.stream import norm_arguments

if TYPE_CHECKING:
    from elastic_core.core.elastic import Elastic, PoolingLevel, QueriedMemory

FEW_SUMS = 1 << 13  # of half scores, of all people, that are sorted as they are
ONE_CHUNK = 128  # events at most of one history that are read at once
FEW_CHUNKS = 16  # that one product sums up


def mask_events(logits: Tensor, real: Tensor | None) -> Tensor:
    """Logits `[B, ., N]` whose softmax over the events leaves padding out; without events it is even over padding."""
    return logits if real is None else logits.masked_fill_(~real.unsqueeze(1), torch.finfo(logits.dtype).min)


# --- the query network and the search --------------------------------------------------------------------------------


class FoldedLevel:
    """`elastic.PoolingLevel` of all levels but the last, of x that is `scale` times too small."""

    def __init__(self, level: "PoolingLevel", scale: float) -> None:
        assert level.norm is not None and level.attention is not None
        self.level, self.scale, self.norm = level, scale, norm_arguments(level.norm)
        self.project, self.bias = (level.project.weight.T * scale).contiguous(), level.project.bias.clone()
        own = level.attention
        self.maps = FoldedAttention(own.query, own.key, own.value, own.output)

    def __call__(self, x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor | None]:
        stride, maps = self.level.stride, self.maps
        if self.level.window is not None and x.shape[1] > stride * self.level.window:
            return self.level(x * self.scale, real)
        x, real = pad_front(zero_padding(x, real), real, stride)
        pooled = torch.addmm(self.bias, x.view(-1, stride * x.shape[2]), self.project)
        if real is not None:
            counts = real.view(len(x), -1, stride).sum(2)
            pooled, real = pooled.mul_((stride / counts.clamp_min(1)).view(-1, 1)), counts > 0
        rows = torch.layer_norm(pooled, *self.norm)
        h = rows.view(len(x), -1, x.shape[2])
        logits = torch.bmm(torch.addmm(maps.query_bias, rows, maps.query).view(h.shape), h.mT)
        mixed = torch.bmm(mask_events(logits, real).softmax(2), h)  # written out: blocks are few
        return pooled.addmm_(mixed.view(rows.shape), maps.output).add_(maps.output_bias).view(h.shape), real


class FoldedSearch:
    """`elastic.QueriedMemory`, of content that is `scale` times too small: experts and scores `[B, k]`, best first."""

    def __init__(self, memory: "QueriedMemory", scale: float) -> None:
        network: Any = memory.query_network
        keys, norm, (*levels, last) = memory.keys, memory.norm, network.levels
        assert isinstance(norm, Whitening) and keys.log_temperature is not None
        self.k, self.n_subkeys = memory.k, keys.n_subkeys
        self.levels = [FoldedLevel(level, 1.0 if i else scale) for i, level in enumerate(levels)]
        dtype, whiten = norm.transform.dtype, norm.transform.double()
        sub_keys = functional.normalize(keys.sub_keys.double(), dim=-1) * keys.log_temperature.double().exp()
        ask = torch.cat([whiten, whiten @ torch.block_diag(*sub_keys.mT)], 1)  # [d, d + 2 √K]: the query and its products
        self.maps = (double(last.project) * (1.0 if levels else scale) @ ask).to(dtype)
        self.bias, self.mean = ((shift.double() @ ask).to(dtype) for shift in (last.project.bias, norm.mean))
        self.stride = last.stride
        self.shifts = [self.bias * (self.stride / n_blocks) - self.mean for n_blocks in range(1, self.stride + 1)]

    def __call__(self, x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        for level in self.levels:
            x, real = level(x, real)
        n_blocks, d = x.shape[1:]
        blocks, maps = zero_padding(x, real).reshape(len(x), -1), self.maps[-n_blocks * d :]
        if real is None:
            products = torch.addmm(self.shifts[n_blocks - 1], blocks, maps, alpha=self.stride / n_blocks)
        else:
            counts = real.sum(1, keepdim=True).clamp_min(1)
            products = torch.addmm(self.bias, blocks, maps).mul_(self.stride / counts).sub_(self.mean)
        query, halves = products.split([d, 2 * self.n_subkeys], 1)
        lengths = torch.linalg.vector_norm(query.view(len(x), 2, -1), dim=2, keepdim=True).clamp_min_(1e-12)
        return find_best(halves.view(len(x), 2, -1) / lengths, self.k)


def find_best(halves: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """`elastic.top_pairs`: the best sums of half scores `[B, 2, n_subkeys]`, of few all, else those of the k best halves."""
    n_subkeys, places = halves.shape[2], None
    if len(halves) * n_subkeys**2 > FEW_SUMS:
        halves, places = halves.topk(min(k, n_subkeys))
    rows, columns = halves.unbind(1)
    scores, best = (rows.unsqueeze(2) + columns.unsqueeze(1)).flatten(1).topk(k)
    if places is None:
        return best, scores
    n_best = halves.shape[2]
    return places[:, 0].gather(1, best // n_best) * n_subkeys + places[:, 1].gather(1, best % n_best), scores


# --- the dispatchers -------------------------------------------------------------------------------------------------


class FoldedLayer:
    """What both forms share. Passes read x `[B, N, d]`, interests p `[B, k, d]` and real `[B, N]` or None, and overwrite x."""

    def __init__(self, layer: Dispatcher) -> None:
        self.norm, self.feed_forward = norm_arguments(layer.norm), FoldedFeedForward(layer.feed_forward)
        self.local = None if layer.local is None else FoldedConvolution(layer.local)
        self.dtype, self.output_bias = layer.output.weight.dtype, layer.output.bias.clone()
        self.asks = double(layer.query1) @ double(layer.key1).T * layer.scale
        self.keys = double(layer.key2) @ double(layer.query2).T * layer.scale
        self.values = double(layer.value2) @ double(layer.output)

    def normalise(self, x: Tensor, real: Tensor | None) -> Tensor:
        return zero_padding(torch.layer_norm(x, *self.norm), real)

    def finish_all(self, x: Tensor, h: Tensor) -> Tensor:
        if self.local is not None:
            self.local.add_to(x, h)
        return self.feed_forward(x.view(-1, x.shape[2])).view(x.shape)

    def finish_last(self, x: Tensor, h: Tensor) -> Tensor:
        if self.local is not None:
            self.local.add_last(x, h)
        return self.feed_forward(x)


class FoldedCausalLayer(FoldedLayer):
    """`CausalDispatcher`."""

    def __init__(self, layer: CausalDispatcher) -> None:
        super().__init__(layer)
        self.maps = torch.cat([self.asks / CAP, self.keys, self.values], 1).to(self.dtype)
        self.maps_bias = functional.pad(self.output_bias, (2 * len(self.output_bias), 0))  # the slots' weights add up to 1
        held = double(layer.value1) @ torch.cat([self.keys, self.values], 1)
        self.held = held.to(self.dtype)  # [d, 2 d] keys and values of what a slot holds
        queries, self.carried = self.held.chunk(2, 1)
        self.queries = queries.T.contiguous()
        ones = self.held.new_ones(ONE_CHUNK, ONE_CHUNK)
        self.causal, self.earlier = ones.triu(), ones[:FEW_CHUNKS, :FEW_CHUNKS].tril(-1)

    def read_all(self, x: Tensor, p: Tensor, real: Tensor | None) -> Tensor:
        """The next x."""
        h, (asks, keys, values) = self.normalise(x, real), self.map_interests(p).chunk(3, 2)
        weights = torch.bmm(asks, h.mT).tanh_().mul_(CAP).exp_()
        if real is not None:
            weights.mul_(real.unsqueeze(1))
        slots, mixed = self.read_prefixes(h, weights, torch.bmm(keys, h.mT), padded=real is not None)
        x.view(-1, x.shape[2]).addmm_(mixed.view(-1, x.shape[2]), self.carried)
        del weights, mixed
        return self.finish_all(x.baddbmm_(slots.mT, values), h)

    def read_last(self, x: Tensor, p: Tensor, real: Tensor | None) -> Tensor:
        """The last row of the same, `[B, d]`. A slot's key and value are its expert's and those of what it holds."""
        h, d = self.normalise(x, real), x.shape[2]
        asks, own = self.map_interests(p).split([d, 2 * d], 2)
        logits = torch.bmm(asks, h.mT).tanh_().mul_(CAP)
        held = torch.bmm(mask_events(logits, real).softmax(2), h)
        keys, values = torch.addmm(own.reshape(-1, 2 * d), held.view(-1, d), self.held).view(own.shape).chunk(2, 2)
        slots = torch.bmm(keys, h[:, -1].unsqueeze(2)).softmax(1)
        return self.finish_last(torch.baddbmm(x[:, -1:], slots.mT, values).squeeze(1), h)

    def map_interests(self, p: Tensor) -> Tensor:
        """What slots ask of events, are asked for and give, by the interests alone: `[B, k, 3 d]`."""
        return torch.addmm(self.maps_bias, p.view(-1, p.shape[2]), self.maps).view(*p.shape[:2], -1)

    def ask_slots(self, h: Tensor) -> Tensor:
        """What events `h [..., n, d]` ask of what slots hold, as columns `[..., d, n]`."""
        return torch.mm(h.view(-1, h.shape[2]), self.queries).view(h.shape).mT

    def read_prefixes(self, h: Tensor, weights: Tensor, bias: Tensor, padded: bool) -> tuple[Tensor, Tensor]:
        """`dispatch.read_prefixes`: h `[B, N, d]`, weights and bias `[B, k, N]` → slots `[B, k, N]` and mixed `[B, N, d]`.

        What lies ahead is multiplied by zero: no weight is more than e^60 times a mass, so there is nothing infinite."""
        (b, n, d), k = h.shape, weights.shape[1]
        chunk = n if b == 1 and n <= ONE_CHUNK else chunk_length(n)
        causal, mass = self.causal[:chunk, :chunk], weights.cumsum(2)
        if padded:
            mass += mass == 0  # a prefix without events reads zeros
        if chunk == n:
            scores = torch.bmm(weights, torch.bmm(h, self.ask_slots(h)).mul_(causal))
            slots = torch.addcdiv(bias, scores, mass).softmax(1)
            inside = torch.bmm(weights.mT, slots / mass).mul_(causal)
            return slots, torch.bmm(inside.mT, h)
        if n_missing := -n % chunk:
            h = functional.pad(h, (0, 0, 0, n_missing))
            weights, bias, mass = (functional.pad(y, (0, n_missing), value=1.0) for y in (weights, bias, mass))
        c = (n + n_missing) // chunk
        by_chunk = torch.cat([y.view(b, k, c, chunk).transpose(1, 2) for y in (weights, bias, mass)], 2)
        weights, bias, mass = by_chunk.view(b * c, 3 * k, chunk).chunk(3, 1)
        own = h.view(b * c, chunk, d)
        sums = torch.bmm(weights, own)
        if c <= FEW_CHUNKS:
            earlier = self.earlier[:c, :c].expand(b, c, c)
            inherited = torch.bmm(earlier, sums.view(b, c, k * d)).view(sums.shape)
        else:
            inherited = sums_before(sums.view(b, 1, c, k, d)).reshape(sums.shape)
        queries = self.ask_slots(own)
        scores = torch.bmm(inherited, queries).baddbmm_(weights, torch.bmm(own, queries).mul_(causal))
        del queries
        slots = torch.addcdiv(bias, scores, mass).softmax(1)
        shares = slots / mass
        inside = torch.bmm(weights.mT, shares).mul_(causal)
        mixed = torch.bmm(shares.mT, inherited).baddbmm_(inside.mT, own).view(b, -1, d)
        return slots.view(b, c, k, chunk).transpose(1, 2).reshape(b, k, -1)[..., :n], mixed[:, :n].contiguous()


class FoldedTwoWayLayer(FoldedLayer):
    """`TwoWayDispatcher`."""

    def __init__(self, layer: TwoWayDispatcher) -> None:
        super().__init__(layer)
        self.ask, self.value1 = self.asks.to(self.dtype), layer.value1.weight.T.contiguous()
        self.readout = torch.cat([self.keys, self.values], 1).to(self.dtype)  # [d, 2 d] keys and values
        self.readout_bias = functional.pad(self.output_bias, (len(self.output_bias), 0))
        self.last_query, self.last_value = self.keys.T.to(self.dtype).contiguous(), self.values.to(self.dtype)
        self.interest_feed_forward = FoldedFeedForward(layer.interest_feed_forward)
        self.interest_norm = norm_arguments(layer.interest_norm)

    def read_all(self, x: Tensor, p: Tensor, real: Tensor | None) -> Tensor:
        """The next x, and into p the next p."""
        h = self.normalise(x, real)
        known = self._carry_interests(h, p, real)
        keys, values = torch.addmm(self.readout_bias, known, self.readout).view(len(h), -1, 2 * h.shape[2]).chunk(2, 2)
        slots = torch.bmm(keys, h.mT).softmax(1)
        return self.finish_all(x.baddbmm_(slots.mT, values), h)

    def read_last(self, x: Tensor, p: Tensor, real: Tensor | None) -> Tensor:
        """The last row of the same, `[B, d]`: one row a person is mapped instead of k."""
        h = self.normalise(x, real)
        known = self._carry_interests(h, p, real).view(len(h), -1, h.shape[2])
        slots = torch.bmm(known, torch.mm(h[:, -1], self.last_query).unsqueeze(2)).softmax(1)
        x = (x[:, -1] + self.output_bias).addmm_(torch.bmm(slots.mT, known).squeeze(1), self.last_value)
        return self.finish_last(x, h)

    def _carry_interests(self, h: Tensor, p: Tensor, real: Tensor | None) -> Tensor:
        """Let the interests read the events, into p itself; their rows `[B k, d]` as the readout knows them, normalised."""
        rows = p.view(-1, p.shape[2])
        logits = torch.bmm(torch.mm(rows, self.ask).view(p.shape), h.mT)
        rows.addmm_(torch.bmm(mask_events(logits, real).softmax(2), h).view(rows.shape), self.value1)
        return torch.layer_norm(self.interest_feed_forward(rows), *self.interest_norm)


# --- the reader ------------------------------------------------------------------------------------------------------


def can_read(model: "Elastic") -> bool:
    """Whether there is a reader for the model's settings."""
    config = model.config
    searches = config.memory == "shared" and config.query == "network" and config.query_norm == "whiten"
    return searches and config.dispatch == "linear" and can_fold(model)


class ElasticReader:
    """Batches to the states `[B, d]` of their last events, as `Elastic.last_state`."""

    def __init__(self, model: "Elastic") -> None:
        self.model, self.norm, self.scale = model, norm_arguments(model.norm), model.events.scale
        memory: Any = model.memories[0]
        self.search, self.values = FoldedSearch(memory, self.scale), memory.values.weight
        two_way, layers = model.config.bidirectional, list[Any](model.layers)
        self.layers = [FoldedTwoWayLayer(layer) if two_way else FoldedCausalLayer(layer) for layer in layers]

    def __call__(self, batch: Batch) -> Tensor:
        if not can_read_batch(self.model, batch):
            return self.model.last_state(batch)
        items, real, events = batch.items, batch.mask, self.model.events
        x = functional.embedding(items, events.items.weight)
        if batch.retrieval_items is items:
            experts, scores = self.search(x, real)
        else:
            readable = batch.retrieval_items
            experts, scores = self.search(functional.embedding(readable, events.items.weight), readable > 0)
        p = functional.embedding(experts, self.values)  # [B, k, d]
        if self.model.config.gate == "softmax":
            p.mul_(scores.softmax(1).mul_(scores.shape[1]).unsqueeze(2))
        x = zero_padding(torch.add(events.positions_of(slice(-items.shape[1], None)), x, alpha=self.scale), real)
        *early, last = self.layers
        for layer in early:
            x = layer.read_all(x, p, real)
        return torch.layer_norm(last.read_last(x, p, real), *self.norm)
