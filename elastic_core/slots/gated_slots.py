"""Slots that hold what last happened in each interest: gated running states, in chunks (gated slot attention, Zhang et al. 2024).

Event t writes itself into slot s with strength w_t[s] in 0 … 1 and the slot forgets as much of what it held:

    M_t[s] = (1 - w_t[s]) M_{t-1}[s] + w_t[s] h_t = Σ_{j<=t} D[t, j, s] h_j,   D[t, j, s] = w_j[s] Π_{j<i<=t} (1 - w_i[s])

All weights are products of numbers up to 1, so nothing needs a cap, a maximum or positions counted from an end, and a state of
k x d numbers takes one event at a time for ever. Inside a chunk of C events D is C x C x k; between chunks the states are
carried: O(N·k·(C + d)).

Symbols: b people, c chunks, t and j events of a chunk, s slots, d width.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.layers import precise

CHUNK = 16
LEAST = 1e-6  # a slot never forgets all: log(1 - w) stays finite


class Chunks(NamedTuple):
    """A history cut into chunks, ready to be read."""

    x: Tensor  # [B, c, C, d]
    inside: Tensor  # [B, c, k, C, C] D of two events of a chunk, 0 where j lies ahead of t
    kept: Tensor  # [B, c, k, C] how much of what a chunk inherits is left at t
    before: Tensor  # [B, c, k, d] what it inherits
    after: Tensor  # [B, k, d] what the whole history leaves


@precise
def chunks(x: Tensor, weights: Tensor, chunk: int = CHUNK) -> Chunks:
    """Events `x [B, N, d]`, steps `weights [B, N, k]` (0 on padding)."""
    short = -x.shape[1] % chunk
    if short:
        x, weights = (functional.pad(y, (0, 0, 0, short)) for y in (x, weights))
    x = x.unflatten(1, (-1, chunk))
    w = weights.clamp_max(1 - LEAST).unflatten(1, (-1, chunk)).transpose(-1, -2)  # [B, c, k, C]
    left = torch.log1p(-w).cumsum(-1)
    ahead = torch.ones(chunk, chunk, dtype=torch.bool, device=x.device).triu(1)
    inside = (left.unsqueeze(-1) - left.unsqueeze(-2)).masked_fill(ahead, -torch.inf).exp() * w.unsqueeze(-2)
    kept = left.exp()
    written = inside[..., -1, :] @ x  # [B, c, k, d]
    state, before = torch.zeros_like(written[:, 0]), []
    for i in range(x.shape[1]):
        before.append(state)
        state = kept[:, i, :, -1:] * state + written[:, i]
    return Chunks(x, inside, kept, torch.stack(before, 1), state)


@precise
def hold(x: Tensor, weights: Tensor, chunk: int = CHUNK, first: int = 0) -> Tensor:
    """What every slot holds after every event from column `first` on, M `[B, N - first, k, d]`: for who needs each by itself.

    One product a chunk, of its C events and the k states that it inherits: earlier chunks only hand on what they leave."""
    cut, skipped = chunks(x, weights, chunk), first // chunk
    inherited = torch.diag_embed(cut.kept[:, skipped:].transpose(-1, -2))  # [B, c, C, k, k]
    of = torch.cat([cut.inside[:, skipped:].transpose(2, 3), inherited], -1).flatten(2, 3)  # [B, c, C k, C + k]
    held = of @ torch.cat([cut.x[:, skipped:], cut.before[:, skipped:]], 2)  # [B, c, C k, d]
    return held.unflatten(2, (chunk, -1)).flatten(1, 2)[:, first - skipped * chunk : x.shape[1] - skipped * chunk]


@precise
def read_slots(x: Tensor, weights: Tensor, queries: Tensor, bias: Tensor, chunk: int = CHUNK) -> tuple[Tensor, Tensor]:
    """Every event reads the slots as they stand after it; nothing of size N x k x d is made.

    queries `[B, N, d]`, bias `[B, N, k]`. Returns softmax_s(q_t · M_t[s] + b_t[s]) `[B, N, k]` and the mixture of the slots by
    it, `[B, N, d]`.
    """
    n = x.shape[1]
    cut = chunks(x, weights, chunk)
    short = -n % chunk
    queries, bias = (functional.pad(y, (0, 0, 0, short)).unflatten(1, (-1, chunk)) for y in (queries, bias))
    near = (queries @ cut.x.transpose(-1, -2)).unsqueeze(2)  # [B, c, 1, C, C]
    scores = (cut.inside * near).sum(-1) + cut.kept * (cut.before @ queries.transpose(-1, -2))  # [B, c, k, C]
    slots = (scores.transpose(-1, -2) + bias).softmax(-1)  # [B, c, C, k]
    inside = torch.einsum("bcts,bcstj->bctj", slots, cut.inside)
    mixed = inside @ cut.x + (slots * cut.kept.transpose(-1, -2)) @ cut.before
    return slots.flatten(1, 2)[:, :n], mixed.flatten(1, 2)[:, :n]


@precise
def recent_shares(weights: Tensor, real: Tensor, half_lives: Tensor, chunk: int = CHUNK) -> Tensor:
    """What part of the recent past each slot was written with, `[B, N, k, R]`, for R half-lives (in events).

    weights `[B, N, k]`, real `[B, N]`. An exponential average over the real events so far; 0 before the first.
    """
    b, n, k = weights.shape
    counted = torch.cat([weights, real.unsqueeze(-1).to(weights.dtype)], -1)
    short = -n % chunk
    counted = functional.pad(counted, (0, 0, 0, short)).unflatten(1, (-1, chunk))  # [B, c, C, k + 1]
    log_keep = -torch.log(torch.tensor(2.0)) / half_lives  # [R]
    place = torch.arange(chunk, device=weights.device)
    gap = (place[:, None] - place[None, :]).clamp_min(0)
    inside = (gap[None] * log_keep[:, None, None]).exp().tril()  # [R, C, C]
    summed = torch.einsum("rtj,bcjk->bcrtk", inside, counted)
    kept = ((place + 1) * log_keep[:, None]).exp()  # [R, C]
    state, before = summed.new_zeros(b, len(half_lives), k + 1), []
    for i in range(counted.shape[1]):
        before.append(state)
        state = kept[:, -1:] * state + summed[:, i, :, -1]
    summed = summed + kept[:, :, None] * torch.stack(before, 1).unsqueeze(3)
    flat = summed.permute(0, 1, 3, 4, 2).flatten(1, 2)[:, :n]  # [B, N, k + 1, R]
    return flat[:, :, :-1] / flat[:, :, -1:].clamp_min(1e-12)


def held_events(weights: Tensor) -> Tensor:
    """How much of every event each slot still holds at the end: steps `[B, N, k]` → `[B, k, N]`."""
    left = torch.log1p(-weights.clamp_max(1 - LEAST))
    later = left.flip(1).cumsum(1).flip(1) - left
    return (weights * later.exp()).transpose(1, 2)
