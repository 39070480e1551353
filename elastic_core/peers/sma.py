"""SMA, self-modulating attention on SASRec (Chen et al. 2021), and its continuous-time regularisation (CTReg).

SMLayer: an event's attention weight is multiplied by the intensity of its mark and not normalised again (parts/intensity.py).

| `intensity` | of an event's mark | time |
| --- | --- | --- |
| `state` | in the state that reads it, λ(t | H_t, v_k), as in the paper | since the event before (the paper: until the next) |
| `event` | in its own state (ours) | until the next event, for states that come later |

**Which time.** The paper's t - t_j goes from the last event read to the moment of the prediction, and the authors' code takes
the time of the event to be predicted for it: training and test both read when their answer happens. Where one event is left out,
or a history is served, there is no such time, and no "now" either. So `state` takes the interval before the last event, as
the guess of the one to come; `event` takes the time that passed after an event, only for states that come later, and a usual
interval for the event's own.

**Scale.** An interval of Δ seconds counts log(1 + Δ / 60), over its mean in the data (`calibrate`), so that years and
seconds can be added. Under a monotone change of time a point process stays one, and its likelihood, CTReg, changes by a
constant. What is not known is 1, a usual interval: before the first event read, and everywhere in a batch without times. Events
out of order are 0 apart. CTReg is the mean over the intervals between events read, and over layers; the target's time is in none.

**Marks** are the catalogue's genres; an item of several has the mean of their intensities (the authors' code adds them, so that
an event counts more the more genres it has). The rarest beyond `marks` are one mark, with the items that have none; no genres:
one mark.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from elastic_core.core.layers import (
    Dropout,
    FeedForward,
    dropout,
    left_align,
    merge_heads,
    readable_columns,
    right_align,
    split_heads,
)
from elastic_core.models import Batch, Catalog, Encoded, Variant, register
from elastic_core.peers.parts.blocks import make_embedding
from elastic_core.peers.parts.intensity import EventClock, Intensity, Modulated, ModulatedConfig


@dataclass(frozen=True, kw_only=True)
class SMAConfig(ModulatedConfig, name="sma", label="SMA"):
    intensity: Literal["state", "event"] = "state"


class ModulatedAttention(nn.Module):
    """Causal self-attention of `x [B, N, d]` whose weights are multiplied by intensities, which heads share."""

    def __init__(self, config: SMAConfig, marks: int) -> None:
        super().__init__()
        width = config.width
        self.heads, self.p, self.by_state = config.heads, config.dropout, config.intensity == "state"
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)  # a key bias cancels in the softmax
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.history = nn.Linear(width, width)  # V_seq
        self.intensity = Intensity(width, marks)

    def forward(self, x: Tensor, clock: EventClock) -> tuple[Tensor, Tensor]:
        """The output and H, both `[B, N, d]`, of rows that begin in column 0 (`left_align`)."""
        n = x.shape[1]
        return self._attend_rows(x, x, torch.ones(n, n, dtype=torch.bool, device=x.device).tril(), clock)

    def forward_last(self, x: Tensor, real: Tensor | None, clock: EventClock) -> Tensor:
        """The last row of the output, `[B, 1, d]`, of rows that end in the last column; for `state` alone."""
        return self._attend_rows(x[:, -1:], x, None if real is None else readable_columns(real)[:, None, None, :], clock)[0]

    def last_weights(self, x: Tensor, real: Tensor | None, clock: EventClock, h: Tensor) -> Tensor:
        """What the last row multiplies every event by, `[B, H, N]`, of rows that end in the last column; `h` as `forward` gives
        it, turned to the right."""
        weights = self._attention_weights(
            x[:, -1:], x, None if real is None else readable_columns(real)[:, None, None, :]
        ).squeeze(-2)
        return weights * self._intensity_factors(h[:, -1:] if self.by_state else h, clock)[:, -1:]

    def _attention_weights(self, queries: Tensor, x: Tensor, allowed: Tensor | None) -> Tensor:
        q, k = split_heads(self.query(queries), self.heads), split_heads(self.key(x), self.heads)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        return (scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)).softmax(-1)

    def _intensity_factors(self, h: Tensor, clock: EventClock) -> Tensor:
        """What weights are multiplied by, `[B, n, N]`, from what the histories say after every event asked, h `[B, n, d]`."""
        if self.by_state:
            return self.intensity.later_intensities(h, clock)
        after, own = (self.intensity.own_intensities(h, s, clock) for s in (clock.until, torch.ones_like(clock.until)))
        itself = torch.eye(h.shape[1], dtype=torch.bool, device=h.device)
        return torch.where(itself, own.unsqueeze(1), after.unsqueeze(1))

    def _attend_rows(self, queries: Tensor, x: Tensor, allowed: Tensor | None, clock: EventClock) -> tuple[Tensor, Tensor]:
        weights = self._attention_weights(queries, x, allowed)
        h = merge_heads(weights @ split_heads(self.history(x), self.heads))
        weights = dropout(weights, self.p, self.training) * self._intensity_factors(h, clock).unsqueeze(1)
        return self.output(merge_heads(weights @ split_heads(self.value(x), self.heads))), h


class ModulatedBlock(nn.Module):
    """As SASRec's, with modulated attention."""

    def __init__(self, config: SMAConfig, marks: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.attention = ModulatedAttention(config, marks)
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.width, config.dropout)

    def forward(self, x: Tensor, clock: EventClock) -> tuple[Tensor, Tensor]:
        y, h = self.attention(self.norm(x), clock)
        return self.feed_forward(x + self.dropout(y)), h

    def forward_last(self, x: Tensor, real: Tensor | None, clock: EventClock) -> Tensor:
        return self.feed_forward(x[:, -1:] + self.attention.forward_last(self.norm(x), real, clock))


@register(SMAConfig)
class SMA(Modulated):
    """Unidirectional; learns from every position at once."""

    objective = "all"
    variants = (
        Variant("SMA", {}, "SASRec whose attention is modulated by how intensely each kind of event is happening."),
        Variant("SMA + CTReg", {"ctreg_weight": 0.1}, "The same, and its intensities are to explain when events happen."),
    )
    causal = True
    reads_times = True
    config: SMAConfig

    def __init__(self, config: SMAConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.events = make_embedding(config, self.n_items)
        self.blocks = nn.ModuleList(ModulatedBlock(config, self.marks.shape[1]) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, batch: Batch) -> Encoded:
        states, surprise = self._encode(batch)
        return Encoded(states, {}, self._scale_ctreg(batch, surprise))

    def last_state(self, batch: Batch) -> Tensor:
        """With `state`, of the last block only the last row."""
        if self.config.intensity == "event":
            return self._encode(batch, learning=False)[0][:, -1]
        real, x, clock = self._aligned_events(batch)
        *earlier, final = self.blocks
        for block in earlier:
            x, _ = block(x, clock)
        assert isinstance(final, ModulatedBlock)
        return self.norm(final.forward_last(right_align(x, real), real, self._event_clock(batch))[:, -1])

    def last_weights(self, batch: Batch) -> Tensor:
        """`AttentionModel`: softmax weights times intensities, so they add up to anything."""
        real, clock = batch.mask, self._event_clock(batch)
        return torch.stack([
            block.attention.last_weights(right_align(block.norm(x), real), real, clock, right_align(h, real))
            for block, x, h, _ in self._run_blocks(batch)
        ])  # fmt: skip

    def saved_per_event(self, columns: int) -> int:
        c = self.config
        intensities = self.saved_by_intensities(1 + (c.intensity == "event"))
        return self.saved_by_blocks() + 4 * c.width + intensities + (5 * c.heads + 2) * columns

    # --- inside ------------------------------------------------------------------------------------------------------

    def _aligned_events(self, batch: Batch) -> tuple[Tensor | None, Tensor, EventClock]:
        """Where events are, and the events and their clock in rows that begin in column 0: no block needs a mask."""
        real = batch.mask
        return real, left_align(self.events(batch.items, batch.padded), real), self._event_clock(batch).left_aligned(real)

    def _run_blocks(self, batch: Batch) -> Iterator[tuple[ModulatedBlock, Tensor, Tensor, Tensor]]:
        """Every block with what it reads, what the histories say after every event, and what it makes of it, `[B, N, d]` each."""
        _, x, clock = self._aligned_events(batch)
        for block in self.blocks:
            assert isinstance(block, ModulatedBlock)
            y, h = block(x, clock)
            yield block, x, h, y
            x = y

    def _encode(self, batch: Batch, learning: bool = True) -> tuple[Tensor, Tensor | None]:
        """States `[B, N, d]`; and, if it is wanted and there are times, CTReg: the mean over intervals and layers."""
        real, x, clock = self._aligned_events(batch)
        with_ctreg, losses = learning and self._needs_ctreg(batch), list[Tensor]()
        for block in self.blocks:
            assert isinstance(block, ModulatedBlock)
            x, h = block(x, clock)
            if with_ctreg:
                losses.append(self._ctreg(block.attention.intensity, h, clock))
        states: Tensor = self.norm(right_align(x, real))
        return states, torch.stack(losses).mean() if losses else None
