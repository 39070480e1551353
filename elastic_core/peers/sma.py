"""SMA, self-modulating attention on SASRec (Chen et al. 2021), and its continuous-time regularisation (CTReg).

SMLayer: an event's attention weight is multiplied by the intensity of its mark and not normalised again (parts/intensity.py).

| setting | paper | otherwise (ours) |
| --- | --- | --- |
| `intensity` | `state`: λ(t | H_t, v_k), of an event's mark, in the state that reads it | `event`: in its own state; no N x N |
| `gap` | until t, when the next event happens | `previous`: since the event before. `next`: with `event` alone, see below |

**Which time.** The paper's t - t_j goes from the last event read to the moment of the prediction, and the authors' code takes
the time of the event to be predicted for it: training and test both read when their answer happens. Where one event is left out,
or a history is served, there is no such time, and no "now" either. So `previous` takes the interval before the last event, as
the guess of the one to come; `next` takes the time that passed after an event, only for states that come later, and a usual
interval for the event's own. With `state` there is no honest `next`, so it is refused.

**Scale.** An interval of Δ seconds counts log(1 + Δ / time_unit), over its mean in the data (`calibrate`), so that years and
seconds can be added. Under a monotone change of time a point process stays one, and its likelihood, CTReg, changes by a
constant. What is not known is 1, a usual interval: before the first event read, and everywhere in a batch without times. Events
out of order are 0 apart. CTReg is the mean over the intervals between events read, and over layers; the target's time is in none.

**Marks** are the catalogue's genres; an item of several has the mean of their intensities (the authors' code adds them, so that
an event counts more the more genres it has). The rarest beyond `marks` are one mark, with the items that have none; no genres:
one mark.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn

from elastic_core.core.batches import Batch
from elastic_core.core.config import Within
from elastic_core.core.contract import Encoded, Variant
from elastic_core.core.histories import Catalog
from elastic_core.core.layers import Dropout, EventEmbedding, FeedForward, left_align, right_align
from elastic_core.core.registry import register
from elastic_core.errors import InputError
from elastic_core.peers.parts.intensity import Clock, Intensity, ModulatedAttention
from elastic_core.peers.parts.modulated import Modulated, ModulatedConfig


@dataclass(frozen=True, kw_only=True)
class SMAConfig(ModulatedConfig, name="sma"):
    label: ClassVar[str] = "SMA"
    intensity: Literal["state", "event"] = "state"
    gap: Literal["previous", "next"] = "previous"
    expansion: Annotated[int, Within(1, 16)] = 1
    fused: bool = True  # where the weights need not be held: `event` with `previous`

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.intensity == "state" and self.gap == "next":
            raise InputError(
                "model.gap=next with model.intensity=state would read the time of the event to be predicted; take gap=previous, "
                "or intensity=event, which reads it for earlier events alone"
            )


class Block(nn.Module):
    """As SASRec's, with modulated attention."""

    def __init__(self, config: SMAConfig, marks: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.attention = ModulatedAttention(
            config.width, config.heads, config.dropout, marks, config.channels, by=config.intensity,
            later=config.gap == "next", fused=config.fused,
        )  # fmt: skip
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.width, config.dropout, config.expansion)

    def forward(self, x: Tensor, clock: Clock) -> tuple[Tensor, Tensor]:
        y, h = self.attention(self.norm(x), clock)
        return self.feed_forward(x + self.dropout(y)), h

    def last(self, x: Tensor, real: Tensor | None, clock: Clock) -> Tensor:
        y: Tensor = self.feed_forward(x[:, -1:] + self.attention.last(self.norm(x), real, clock))
        return y


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
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout, rows=config.items_by_rows)
        self.blocks = nn.ModuleList(Block(config, self.marks.shape[1]) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, batch: Batch) -> Encoded:
        states, surprise = self._encode(batch)
        return Encoded(states, {}, self._summed(batch, surprise))

    def last_state(self, batch: Batch) -> Tensor:
        """With `state`, of the last block only the last row."""
        return self._last(batch) if self.config.intensity == "state" else self._encode(batch, learning=False)[0][:, -1]

    def last_weights(self, batch: Batch) -> Tensor:
        """`Attends`: softmax weights times intensities, so they add up to anything."""
        real, clock = batch.real if batch.padded else None, self._clock(batch)
        return torch.stack([unit.last_weights(z, real, clock, h) for unit, z, h in self._inside(batch)])

    def said(self, batch: Batch) -> list[tuple[Intensity, Tensor]]:
        """`Modulated`."""
        return [(unit.intensity, h) for unit, _, h in self._inside(batch)]

    def kept_per_event(self, columns: int) -> int:
        c = self.config
        intensities = self.kept_by_intensities(1 + (c.gap == "next"))
        held = 0 if c.fused and (c.intensity, c.gap) == ("event", "previous") else (5 * c.heads + 2) * columns
        return super().kept_per_event(columns) + 4 * c.width + intensities + held

    # --- inside ------------------------------------------------------------------------------------------------------

    def _encode(self, batch: Batch, learning: bool = True) -> tuple[Tensor, Tensor | None]:
        """States `[B, N, d]`; and, if it is wanted and there are times, CTReg: the mean over intervals and layers."""
        real = batch.real if batch.padded else None
        clock = self._clock(batch).left(real)
        x = left_align(self.events(batch.items, batch.padded), real)  # once a pass, and no block needs a mask
        asked = learning and self._explains(batch)
        found: list[Tensor] = []
        for block in self.blocks:
            assert isinstance(block, Block)
            x, h = block(x, clock)
            if asked:
                found.append(self._surprise(block.attention.intensity, h, clock))
        states: Tensor = self.norm(right_align(x, real))
        return states, torch.stack(found).mean() if found else None

    def _inside(self, batch: Batch) -> Iterator[tuple[ModulatedAttention, Tensor, Tensor]]:
        """Every block's attention, with what it reads and what it says after every event, `[B, N, d]` each."""
        real, clock = batch.real if batch.padded else None, self._clock(batch)
        x, left = left_align(self.events(batch.items, batch.padded), real), clock.left(real)
        for block in self.blocks:
            assert isinstance(block, Block)
            z = right_align(block.norm(x), real)
            x, h = block(x, left)
            yield block.attention, z, right_align(h, real)

    def _last(self, batch: Batch) -> Tensor:
        real = batch.real if batch.padded else None
        clock = self._clock(batch)
        x, left = left_align(self.events(batch.items, batch.padded), real), clock.left(real)
        *earlier, final = self.blocks
        for block in earlier:
            x, _ = block(x, left)
        assert isinstance(final, Block)
        states: Tensor = self.norm(final.last(right_align(x, real), real, clock)[:, -1])
        return states
