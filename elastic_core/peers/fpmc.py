"""FPMC (Rendle, Freudenthaler and Schmidt-Thieme 2010): matrix factorisation plus a factorised Markov chain of the last event.

The paper's score of item i for user u after the basket of items l, and ours after a history x_1 … x_t:

    paper    <V_ui[u], V_iu[i]> + mean over l of <V_il[i], V_li[l]>
    ours     <m_t, V_iu[i]> + <V_il[i], V_li[x_t]>      m_t = t^−α Σ_{j ≤ t} W[x_j]

A basket is one event. Users have no numbers here, because models are asked about people that no training has seen: the factors
of a person are made from the history instead, item by item, as FISM (Kabbur et al. 2013) does; that part is not FPMC's own.
Each of the two parts has d/2 factors, so a state has d numbers as every model's. The paper learns from pairs (S-BPR) with
an L2 penalty; here the loss is the softmax over all items, at every position, and factors that are read have dropout.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from elastic_core.core.layers import Dropout, item_table, zero_padding
from elastic_core.models import Batch, Catalog, Encoded, ModelConfig, Scorer, Variant, register
from elastic_core.peers.parts.stepwise import Stepwise

ALPHA = 0.5  # 1: the mean of a history's factors, 0: their sum
READ = 0.3  # standard deviation of factors that are read: where both ends are small, products are, and little moves


@dataclass(frozen=True, kw_only=True)
class FPMCConfig(ModelConfig, name="fpmc", label="FPMC"):
    """No settings of its own."""


@register(FPMCConfig)
class FPMC(Stepwise):
    """Learns from every position at once; `layers` and `heads` are not used. Kept of a person: d/2 + 1 numbers."""

    objective = "all"
    variants = (
        Variant("FPMC", {}, "A factorised Markov chain of the last event, and the factors of all that somebody has met."),
    )
    config: FPMCConfig

    def __init__(self, config: FPMCConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        factors = config.width // 2
        self.last = item_table(self.n_items, factors, READ)  # V_li
        self.seen_factors = item_table(self.n_items, factors, READ)  # W
        self.next = item_table(self.n_items, config.width)  # V_il, then V_iu
        self.dropout = Dropout(config.dropout)

    def forward(self, batch: Batch) -> Encoded:
        real = batch.real
        last = self.dropout(self.last(batch.items))
        total = zero_padding(self.dropout(self.seen_factors(batch.items)), real).cumsum(1)
        return Encoded(zero_padding(self._join_factors(last, total, real.cumsum(1).unsqueeze(-1)), real))

    def read_on(self, items: Tensor, real: Tensor | None, state: list[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        there = items > 0
        last = self.dropout(self.last(items[:, -1])) * there[:, -1:]
        total, events = zero_padding(self.dropout(self.seen_factors(items)), there).sum(1), there.sum(1, keepdim=True)
        if state is not None:
            total, events = total + state[0], events + state[1]
        return self._join_factors(last, total, events), [total, events]

    def saved_per_event(self, columns: int) -> int:
        return -(-4 * self.config.width // self.config.layers)  # it has one, whatever the setting says

    def scorer(self) -> Scorer:
        return Scorer.from_table(self.next, self.repeat_bias, self.config.repeat_counts)

    def _join_factors(self, last: Tensor, total: Tensor, events: Tensor) -> Tensor:
        """`[..., d/2]`, `[..., d/2]`, `[..., 1]` → `[..., d]`."""
        return torch.cat([last, total * events.clamp_min(1).to(total.dtype) ** -ALPHA], -1)
