"""The exact softmax over a catalogue of millions, a stretch of the catalogue at a time.

The logits of M targets and V items would be M x V numbers, and the table is too large for a cache. Both ways go through it
once, stretch by stretch, and a tile of logits lives as long as it is worked on: going forward only the normalisers are kept
(a streaming log-sum-exp), going back the logits are made again (Rabe and Staats, 2021, for attention; here over items).
That costs a fourth product beside the three that any exact softmax needs, and saves M x V numbers.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from elastic_core.core.batches import Met
from elastic_core.core.layers import autocast_to
from elastic_core.scale.met import met_own, met_pairs
from elastic_core.scale.passes import probabilities

TILE_ROWS, TILE_ITEMS = 256, 2_048  # of logits worked on together: 2 MiB, which a core's own cache nearly holds
TILE_ITEMS_GPU = 1 << 16


class StretchedSoftmax(torch.autograd.Function):
    """-Σ_m log Σ_p e^{shares[m, p]} softmax(table · vectors[m, p] + bias)[targets[m]], without M x V numbers at any time.

    As `passes._FullSoftmax`, which a catalogue is left to that fits a cache: the same sum and gradients up to rounding.
    """

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, shares: Tensor, table: Tensor, bias: Tensor | None, again: Tensor | None, targets: Tensor,
        met: Met | None,
    ) -> Tensor:  # fmt: skip
        device = vectors.device.type
        half = autocast_to(device) or torch.float32
        tiles = _Tiles(vectors, table, bias, again, met, half)
        norm = torch.full((len(tiles.flat),), -torch.inf, device=vectors.device)
        for rows, _items, logits, _ in tiles:
            norm[rows] = torch.logaddexp(norm[rows], probabilities(logits)[1])
        right = tiles.at(targets)
        log_p = (right - norm).view(shares.shape) + shares  # [M, P]
        found = log_p.logsumexp(1, keepdim=True)
        ctx.save_for_backward(vectors, shares, table, bias, again, targets, norm, (log_p - found).exp())
        ctx.met, ctx.half = met, half
        return -found.sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        vectors, _, table, bias, again, targets, norm, posterior = ctx.saved_tensors
        (scale,) = gradients
        tiles = _Tiles(vectors, table, bias, again, ctx.met, ctx.half)
        weight = (posterior * scale).flatten()  # what the logits of a row add up to, without their target's
        sign, shift = torch.sign(scale), norm - weight.abs().log()
        goal = targets.repeat_interleave(vectors.shape[1])
        d_flat = torch.zeros(tiles.flat.shape, device=vectors.device)
        d_table = torch.zeros_like(table, dtype=torch.float32)
        d_bias = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
        d_again = None if again is None else torch.zeros((), device=vectors.device)
        for rows, items, logits, seen in tiles:
            shown, mass = probabilities(logits)
            gradient = shown.mul_((sign * (mass - shift[rows]).exp()).unsqueeze(1))
            own = goal[rows] - items.start
            here = weight[rows].where((own >= 0) & (own < gradient.shape[1]), 0.0)
            gradient.scatter_add_(1, own.clamp(0, gradient.shape[1] - 1).unsqueeze(1), -here.unsqueeze(1))
            rough = gradient.to(ctx.half)
            d_flat[rows] += rough @ tiles.table[items].to(ctx.half)
            d_table[items] += rough.T @ tiles.flat[rows]
            if d_bias is not None:
                d_bias[items] += gradient.sum(0)
            if d_again is not None and seen is not None:
                d_again += gradient[seen].sum()
        d_vectors = d_flat.view(vectors.shape).to(vectors.dtype)
        return d_vectors, -posterior * scale, d_table.to(table.dtype), d_bias, d_again, None, None


class _Tiles:
    """The logits of rows against items, tile by tile: which rows, which items, the logits, and which of them were met."""

    def __init__(
        self, vectors: Tensor, table: Tensor, bias: Tensor | None, again: Tensor | None, met: Met | None, half: torch.dtype
    ) -> None:
        self.parts = vectors.shape[1]
        self.flat, self.table, self.bias, self.half = vectors.to(half).flatten(0, 1), table, bias, half
        self.again, self.met = again, None if again is None else met
        self.seen = None if self.met is None else met_pairs(self.met, len(table) - 1)
        on_cpu = vectors.device.type == "cpu"
        self.rows, self.items = (TILE_ROWS, TILE_ITEMS) if on_cpu else (max(len(self.flat), 1), TILE_ITEMS_GPU)

    def __iter__(self) -> Iterator[tuple[slice, slice, Tensor, tuple[Tensor, Tensor] | None]]:
        for low in range(1, len(self.table), self.items):
            items = slice(low, min(low + self.items, len(self.table)))
            stretch = self.table[items].to(self.half)
            met = self._met(items)
            for at in range(0, len(self.flat), self.rows):
                rows = slice(at, min(at + self.rows, len(self.flat)))
                logits = (self.flat[rows] @ stretch.T).float()
                if self.bias is not None:
                    logits += self.bias[items].float()
                seen = None
                if met is not None and self.again is not None:
                    here = (met[0] >= rows.start) & (met[0] < rows.stop)
                    seen = (met[0][here] - rows.start, met[1][here])
                    logits[seen] += self.again.float()
                yield rows, items, logits, seen

    def at(self, targets: Tensor) -> Tensor:
        """The logits of every row's own item, `[M P]`."""
        own = self.table[targets].to(self.half).unsqueeze(1)
        found = (self.flat.view(len(targets), self.parts, -1) * own).float().sum(-1)
        if self.bias is not None:
            found += self.bias[targets].float().unsqueeze(1)
        if self.met is not None and self.again is not None:
            found += self.again.float() * met_own(self.met, targets, len(self.table) - 1)
        return found.flatten()

    def _met(self, items: slice) -> tuple[Tensor, Tensor] | None:
        """Rows `[E]` of the flat vectors and columns of the stretch that hold something met."""
        if self.seen is None:
            return None
        rows, found = self.seen
        low, high = torch.searchsorted(found, torch.tensor([items.start, items.stop], device=found.device)).tolist()
        parts = torch.arange(self.parts, device=found.device)
        flat = (rows[low:high].unsqueeze(1) * self.parts + parts).flatten()
        return flat, (found[low:high] - items.start).repeat_interleave(self.parts)
