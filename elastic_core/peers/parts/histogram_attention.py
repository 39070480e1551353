"""Attention to the words of a history instead of its events (LISA, Eq. 8-11 and Algorithm 1): linear in the length, no N x N.

Events are codes, one word of each codebook. A head per codebook b attends to the words, by how often they occurred:

    c_t[b, w] = Σ_{j<=t} e^{-δ (t - j)} [code_b(j) = w]                   (Eq. 10; δ is in the authors' configurations alone)
    T_b[v, w] = exp((Z_b[v] Q_b)·(Z_b[w] K_b) / √d)                      one table for everybody
    y_t = Σ_b Σ_w a_t[b, w] Z_b[w] V_b,   a_t[b, w] ∝ c_t[b, w] T_b[code_b(t), w]

which is softmax attention to the words at hand, each of them for all events that have it. With soft codes c counts shares, and
the query is still the one best word of its event. Both ways, c_t counts e^{-δ |t - j|} for all j. A constant in a row of T
cancels, so rows are scaled by their largest entry, and bounded below by e^-30.

Symbols: B people, N events, b codebooks, w words, d width.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import precise

CHUNK = 32
CAP = 30.0  # nats


class Tables(NamedTuple):
    """What attention needs of the codebooks, whoever asks."""

    weights: Tensor  # [b · w, w] row (b, v): T_b[v]
    values: Tensor  # [b · w, d] Z_b[w] V_b


class HistogramAttention(nn.Module):
    """One head for each of `books` codebooks; `decay` is δ per event."""

    def __init__(self, width: int, books: int, decay: float, two_way: bool = False) -> None:
        super().__init__()
        self.decay, self.two_way = decay, two_way
        self.query, self.key, self.value = (nn.Parameter(torch.empty(books, width, width)) for _ in range(3))
        for weight in (self.query, self.key, self.value):
            nn.init.normal_(weight, std=width**-0.5)

    def tables(self, words: Tensor) -> Tables:
        """Of codebooks `[b, w, d]`."""
        return _tables(words, self.query, self.key, self.value)

    def forward(self, chosen: Tensor, counted: Tensor, tables: Tables, last: bool = False) -> Tensor:
        """chosen `[B, N, b]`, counted `[B, N, b, w]` (zero on padding) → `[B, N, d]`, or of the last event alone `[B, 1, d]`."""
        if last:
            return attend(final_counts(counted, self.decay).unsqueeze(1), chosen[:, -1:], *tables)
        counts = prefix_counts(counted, self.decay)
        if self.two_way:
            counts = counts + prefix_counts(counted.flip(1), self.decay).flip(1) - counted
        return attend(counts, chosen, *tables)


@precise
def event_shares(counted: Tensor, chosen: Tensor, weights: Tensor, decay: float) -> Tensor:
    """What `attend` at the last event comes to for every event, `[B, b, N]`, from counted `[B, N, b, w]` and the last event's
    codes `[B, b]`: an event's part in the mass of its words. Each codebook's add up to 1 (0 where nothing is counted)."""
    n, words = counted.shape[1], counted.shape[-1]
    row = chosen + words * torch.arange(chosen.shape[-1], device=chosen.device)
    ago = torch.arange(n - 1, -1, -1, device=counted.device, dtype=counted.dtype)
    mass = torch.einsum("n,nbsw,bsw->bsn", torch.exp(-decay * ago), counted.transpose(0, 1), functional.embedding(row, weights))
    total = mass.sum(-1, keepdim=True)
    return mass / (total + (total == 0))


@precise
def _tables(words: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tables:
    logits = (words @ query) @ (words @ key).transpose(-1, -2) / math.sqrt(words.shape[-1])
    top = logits.detach().amax(-1, keepdim=True)
    return Tables((logits - top).clamp_min(-CAP).exp().flatten(0, 1), (words @ value).flatten(0, 1))


@precise
def prefix_counts(counted: Tensor, decay: float, chunk: int = CHUNK) -> Tensor:
    """c_t of every t: `[B, N, b, w]` → the same. Inside a chunk a product with e^{-δ (t - j)}; between them carried on."""
    n = counted.shape[1]
    chunk = min(chunk, n)
    x = functional.pad(counted.flatten(2), (0, 0, 0, -n % chunk)).unflatten(1, (-1, chunk))  # [B, c, C, b w]
    place = torch.arange(chunk, device=x.device, dtype=x.dtype)
    inside = torch.exp(-decay * (place[:, None] - place).clamp_min(0)).tril() @ x
    carry = torch.exp(-decay * (place + 1)).unsqueeze(1)  # [C, 1]
    parts, state = [], torch.zeros_like(inside[:, 0, :1])
    for own in inside.unbind(1):
        parts.append(own + carry * state)
        state = parts[-1][:, -1:]
    return torch.cat(parts, 1)[:, :n].view_as(counted)


@precise
def final_counts(counted: Tensor, decay: float) -> Tensor:
    """c of the last event, `[B, b, w]`, from either side."""
    ago = torch.arange(counted.shape[1] - 1, -1, -1, device=counted.device, dtype=counted.dtype)
    return torch.einsum("n,nbsw->bsw", torch.exp(-decay * ago), counted.transpose(0, 1))


@precise
def attend(counts: Tensor, chosen: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    """counts `[B, N, b, w]`, the askers' codes `[B, N, b]` → `[B, N, d]`; zeros where nothing has been counted."""
    row = chosen + counts.shape[-1] * torch.arange(chosen.shape[-1], device=chosen.device)
    shares = counts * functional.embedding(row, weights)
    mass = shares.sum(-1, keepdim=True)
    return (shares * (mass + (mass == 0)).reciprocal()).flatten(-2) @ values
