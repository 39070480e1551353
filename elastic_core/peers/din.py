"""DIN, the deep interest network (Zhou et al. 2018), a host of self-modulating attention (Chen et al. 2021): the candidate
attends to the history, and what it finds there is not normalised, so that much interest stays more than little.

    v(c) = Σ_j w_j a(e_j, e_c) e_j      a: of event j and candidate c; w_j = 1 in the paper
    score(c) = b_c + <v(c), e_c>        as every model here scores; the paper: two hidden layers on [v(c); e_c]
    a(e, c) = w · PReLU(W_e e + W_p (e ⊙ c) + W_c c + b) + b'       the activation unit

No vector says what v(c) says for every c, so a *state is the history itself*: the items of up to N events, as numbers, and the
weight w_j of each, D = 2N; later events are zeros in it. `Scorer.pairs` looks at states and items together. What makes ranking
the whole catalogue affordable is that a knows two items and nothing else: it is a table of items x items, made once before a
judgement of many (`prepare_states`) and once a step. All of DIN then is one product of matrices,

    score(c) = b_c + Σ_j w_j G[x_j, c]      G[x, c] = a(e_x, e_c) <e_x, e_c>

and every position learns from the softmax over all items. The paper feeds [e; out product; c] to the unit's first layer; the
product here is taken number by number, as is common. Its other activation, Dice, reads the mean and the variance of a batch, so
that a score would depend on who else is in it. The paper has profiles and contexts besides, of which histories say nothing, and
the log loss of clicks.

The paper's events are a bag: it does not see their order, and in a sum over a long history the old drown the new. That is
what it lacks on MovieLens-100K, as far as was tried (checkpoints/LOG.md): counting pairs without order does no better.
`recency` (ours) gives w_j = exp r[how many events ago], learned, and begins at r[n] = -0.1 n.

`intensity` (SMA): w_j is the intensity of event j's mark, in what DIN finds in the history up to j with j itself as the
candidate (a mean here, or long histories would drown the clock), since the event before. The paper does not say how it puts its
layer into DIN, and its own reading, in the state, would need intensities of every candidate. CTReg as in peers/sma.py.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from elastic_core.core.layers import SPREAD, Dropout
from elastic_core.errors import InputError
from elastic_core.models import Batch, Catalog, Encoded, Judge, Scorer, Variant, register
from elastic_core.peers.parts.distinct import distinct_items
from elastic_core.peers.parts.intensity import Intensity, Modulated, ModulatedConfig

HIDDEN = 36  # width of the activation unit (the paper's)
CHUNK = 2**22  # numbers that are worked on together: 16 MiB
MOST_PAIRS = 2**26  # of a table that is kept while many are judged: 256 MiB
FADING = 0.1  # an event, in nats, at the start of `recency`: from a bag of hundreds, steps of a thousandth take long to get there


@dataclass(frozen=True, kw_only=True)
class DINConfig(ModulatedConfig, name="din", label="DIN"):
    recency: bool = False
    intensity: Literal["none", "event"] = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ctreg_weight and self.intensity == "none":
            raise InputError("model.ctreg_weight is of intensities: take model.intensity=event with it")


class ActivationUnit(nn.Module):
    """A table of all pairs: events `[U, d]` and candidates `[C, d]` → `[U, C]`. Nothing of size U x C x hidden is kept for the
    way back; it is made again, chunk by chunk."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.event = nn.Linear(width, HIDDEN)  # W_e, b
        self.candidate = nn.Linear(width, HIDDEN, bias=False)  # W_c
        self.product = nn.Linear(width, HIDDEN, bias=False)  # W_p
        self.activation = nn.PReLU(HIDDEN)
        self.outer = nn.Linear(HIDDEN, 1)  # w, b'

    def forward(self, events: Tensor, candidates: Tensor) -> Tensor:
        parts = events.split(max(1, CHUNK // (len(candidates) * HIDDEN)))
        if not torch.is_grad_enabled():
            return torch.cat([self._unit_of_chunk(part, candidates) for part in parts])
        again = partial(checkpoint, self._unit_of_chunk, use_reentrant=False, preserve_rng_state=False)
        return torch.cat([again(part, candidates) for part in parts])

    def _unit_of_chunk(self, events: Tensor, candidates: Tensor) -> Tensor:
        # for one event, the first layer is linear in the candidate: W_p (e ⊙ c) + W_c c = (W_p diag(e) + W_c) c
        maps = self.product.weight * events.unsqueeze(1) + self.candidate.weight  # [U, h, d]
        hidden = functional.linear(candidates, maps.flatten(0, 1), self.event(events).flatten())  # [C, U h]
        hidden = hidden.view(-1, HIDDEN)
        # PReLU(x) = x (1 + a) / 2 + |x| (1 - a) / 2, so w · PReLU is two products, whose way back is shorter than torch's PReLU's
        slope, w = self.activation.weight, self.outer.weight[0]
        gains: Tensor = hidden @ (w * (1 + slope) / 2) + hidden.abs() @ (w * (1 - slope) / 2) + self.outer.bias
        return gains.view(len(candidates), len(events)).T


@register(DINConfig)
class DIN(Modulated):
    """Learns from every position at once; `layers` and `heads` are not used."""

    objective = "all"
    variants = (
        Variant("DIN", {}, "Every candidate attends to the history by a small network; the order of events is not seen."),
        Variant("DIN with recency", {"recency": True}, "DIN that learns how much less an older event counts."),
        Variant("DIN + SMA", {"intensity": "event"}, "DIN whose events count as intensely as their kind was happening."),
        Variant(
            "DIN + SMA + CTReg", {"intensity": "event", "ctreg_weight": 0.1},
            "The same, and its intensities are to explain when events happen.",
        ),
    )  # fmt: skip
    causal = True
    config: DINConfig

    def __init__(self, config: DINConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.reads_times = config.intensity != "none"
        self.items = nn.Embedding(self.n_items + 1, config.width, padding_idx=0)
        self.bias = nn.Parameter(torch.zeros(self.n_items + 1))
        self.unit = ActivationUnit(config.width)
        self.recency = nn.Parameter(-FADING * torch.arange(config.length, dtype=torch.float32)) if config.recency else None
        self.intensity = Intensity(config.width, self.marks.shape[1]) if self.reads_times else None
        self.dropout = Dropout(config.dropout)
        nn.init.normal_(self.items.weight, std=SPREAD)
        with torch.no_grad():
            self.items.weight[0] = 0

    def forward(self, batch: Batch) -> Encoded:
        weights, surprise = self._event_weights(batch)
        rows = torch.ones(weights.shape[1:], dtype=torch.bool, device=weights.device).tril()
        items = (batch.items.unsqueeze(1) * rows).to(weights.dtype)
        return Encoded(torch.cat([items, self.dropout(weights)], -1), {}, self._scale_ctreg(batch, surprise))

    def last_state(self, batch: Batch) -> Tensor:
        weights, _ = self._event_weights(replace(batch, targets=None), last=True)
        return torch.cat([batch.items.to(weights.dtype), self.dropout(weights[:, -1])], -1)

    def scorer(self) -> Scorer:
        counts = self.config.repeat_counts
        return Scorer(self.items.weight, repeat_bias=self.repeat_bias, repeat_counts=counts, pairs=TargetAttention(self))

    def prepare_states(self) -> tuple[Judge, Scorer]:
        """All pairs are looked at once, if there are not too many of them."""
        scorer = self.scorer()
        if len(self.items.weight) ** 2 <= MOST_PAIRS:
            content = self.unit_contents()
            scorer = scorer._replace(pairs=TargetAttention(self, self.unit(content, content)))
        return self.last_state, scorer

    def unit_contents(self) -> Tensor:
        """What items are, of unit variance at the start, or the unit hears so little that only popularity is learned."""
        return self.items.weight / SPREAD

    def saved_per_event(self, columns: int) -> int:
        """States, the bag of every event's past and its gains: of no more items than there are."""
        numbers = 8 * columns + 6 * (self.n_items + 1) + 2 * self.config.width
        if self.intensity is not None:
            numbers += self.saved_by_intensities() + 6 * columns + 6 * self.config.width
        return -(-numbers // self.config.layers)  # it has one, whatever the setting says

    # --- inside ------------------------------------------------------------------------------------------------------

    def _event_weights(self, batch: Batch, last: bool = False) -> tuple[Tensor, Tensor | None]:
        """w_j for the state at every t, `[B, N, N]`, or at the last alone, `[B, 1, N]`: 0 where j > t; and CTReg."""
        n = batch.items.shape[1]
        place = torch.arange(n, device=batch.items.device)
        ago = (place[-1:] if last else place).unsqueeze(1) - place
        weights = batch.real.unsqueeze(1) * (ago >= 0).to(self.bias.dtype)
        if self.recency is not None:
            weights = weights * self.recency[ago.clamp_min(0)].exp()
        if self.intensity is None:
            return weights, None
        clock, h = self._event_clock(batch), self._history_means(batch)
        weights = weights * self.intensity.own_intensities(h, clock.since, clock).unsqueeze(1)
        return weights, self._ctreg(self.intensity, h, clock) if self._needs_ctreg(batch) else None

    def _history_means(self, batch: Batch) -> Tensor:
        """What each event finds in the history up to itself, a mean: `[B, N, d]`."""
        items, where = distinct_items(batch.items, len(self.bias))
        content = self.unit_contents()[items]
        pairs = self.unit(content, content)[where.unsqueeze(1), where.unsqueeze(2)]  # [B, N, N]: column j for row t
        pairs = (pairs * batch.real.unsqueeze(1)).tril()
        return pairs @ content[where] / batch.real.cumsum(1).clamp_min(1).unsqueeze(-1)


class TargetAttention:
    """`PairwiseScorer` of DIN for one step, whose dropped numbers are the same for all it is asked; `known`: the unit of all
    items."""

    def __init__(self, model: DIN, known: Tensor | None = None) -> None:
        self.model, self.known = model, known
        self.content: Tensor = model.dropout(model.unit_contents())

    def score_items(self, states: Tensor, items: Tensor) -> Tensor:
        there, where, weights = self._split_states(states)
        bag = weights.new_zeros(len(weights), len(there)).scatter_add(1, where, weights)
        return bag @ self._candidate_gains(there, items) + self.model.bias[items]

    def score_own_item(self, states: Tensor, items: Tensor) -> Tensor:
        there, where, weights = self._split_states(states)
        unique_items, which = distinct_items(items, len(self.content))
        gains = self._candidate_gains(there, unique_items)[where, which.unsqueeze(1)]
        return (weights * gains).sum(-1) + self.model.bias[items]

    def _split_states(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """States `[M, 2N]` → the items they hold `[U]`, which of them every event is `[M, N]`, and its weight `[M, N]`."""
        items, weights = states.chunk(2, -1)
        return *distinct_items(items.long(), len(self.content)), weights

    def _candidate_gains(self, events: Tensor, candidates: Tensor) -> Tensor:
        """G, in which e_c is as small as every model's item table is."""
        e = self.content[events]
        unit = self.model.unit(e, self.content[candidates]) if self.known is None else self.known[events][:, candidates]
        return unit * (e @ self.model.items.weight[candidates].T)
