"""Slots that hold what last happened in each interest: gated running states, in chunks (gated slot attention, Zhang et al. 2024).

Event t writes itself into slot s with strength w_t[s] in 0 … 1 and the slot forgets as much of what it held:

    M_t[s] = (1 - w_t[s]) M_{t-1}[s] + w_t[s] h_t = Σ_{j<=t} D[t, j, s] h_j,   D[t, j, s] = w_j[s] Π_{j<i<=t} (1 - w_i[s])

All weights are products of numbers up to 1, so nothing needs a maximum or positions counted from an end, and a state of k x d
numbers takes one event at a time for ever.

Inside a chunk of C events D has two factors, keep_t = Π_{i<=t} (1 - w_i) and take_j = w_j / keep_j, so what is read is products
of C x C and C x k numbers and no C x C x k tensor stands between them (a quarter of the time of one that does). Both factors are
float64: keep falls to LEAST^C at the lowest, 1e-96, and take rises as far, which float64 holds up to C = 48. Between chunks the
states are carried: O(N·k·(C + d)).

Symbols: b people, c chunks, t and j events of a chunk, s slots, d width.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.layers import add_product, in_full_precision

CHUNK = 16
LEAST = 1e-6  # a slot never forgets all: take stays finite
LEAST_SHARE = 0.003  # of the recent past: what an interest counts that did not show
FORGOTTEN = 1e-7  # of what a slot holds, that a float32 does not see


class Decay(NamedTuple):
    """The steps of a history in chunks, as factors: of event j, keep[t] · take[j] is held after event t of the same chunk."""

    keep: Tensor  # [B, c, k, C] float64
    take: Tensor  # [B, c, k, C] float64

    @property
    def written_share(self) -> Tensor:
        """What is held of every event at its chunk's end, `[B, c, k, C]`."""
        return self.keep[..., -1:] * self.take


def factor_steps(steps: Tensor, chunk: int = CHUNK) -> Decay:
    """Factor the steps `[B, k, N]` (0 on padding)."""
    w = functional.pad(steps.double().clamp_max(1 - LEAST), (0, -steps.shape[2] % chunk))
    w = w.unflatten(2, (-1, chunk)).transpose(1, 2)
    keep = (1 - w).cumprod(-1)
    return Decay(keep, w / keep)


def cut_events(x: Tensor, chunk: int) -> Tensor:
    """Events `[B, N, d]` in chunks `[B, c, C, d]`, zero after the last; `x` itself where they come out even."""
    missing = -x.shape[1] % chunk
    return (functional.pad(x, (0, 0, 0, missing)) if missing else x).unflatten(1, (-1, chunk))


@in_full_precision
def inherit_states(x: Tensor, decay: Decay) -> Tensor:
    """Return what every chunk of `x [B, c, C, d]` inherits: the slots before its first event, `[B, c, k, d]`."""
    written, decay_left = decay.written_share.to(x.dtype) @ x, decay.keep[..., -1:].to(x.dtype)
    state, before = torch.zeros_like(written[:, 0]), []
    for one_left, one_written in zip(decay_left.unbind(1), written.unbind(1), strict=True):
        before.append(state)
        state = torch.addcmul(one_written, one_left, state)
    return torch.stack(before, 1)


@in_full_precision
def score_slots(x: Tensor, before: Tensor, decay: Decay, queries: Tensor) -> Tensor:
    """Return q_t · M_t[s] for queries `[B, N, d]`, of events `[B, c, C, d]` and what they inherit: `[B, k, N]`."""
    cut = cut_events(queries, x.shape[2])
    near = (x @ cut.mT).triu().double()  # [B, c, j, t]
    scores = decay.keep * (decay.take @ near + before @ cut.mT)  # [B, c, k, t]
    return scores.to(x.dtype).transpose(1, 2).flatten(2)[..., : queries.shape[1]]


def weigh_events(decay: Decay, dtype: torch.dtype, more: int = 0) -> Tensor:
    """Return the weights of a chunk's C events and of the k states that it inherits in every slot: `[B, c, C, k + more, C + k]`.
    The last `more` rows are those of slots that hold nothing."""
    keep, take = (functional.pad(factor, (0, 0, 0, more)) for factor in decay)
    k, chunk = decay.keep.shape[-2:]
    own = torch.eye(k + more, k, dtype=keep.dtype, device=keep.device).expand(*keep.shape[:2], -1, -1)
    past = torch.ones(chunk, chunk + k, dtype=torch.bool, device=keep.device).tril()
    past[:, chunk:] = True
    contributions = torch.cat([take, own], -1).unsqueeze(2)  # [B, c, 1, k + more, C + k]
    return (keep.mT.unsqueeze(-1) * contributions).mul_(past.unsqueeze(1)).to(dtype)


@in_full_precision
def hold_rows(rows: Tensor, decay: Decay, more: int = 0) -> Tensor:
    """What every slot holds after every event, one product a chunk: `[B, c C, k + more, d]`, of events and inherited states
    `rows [B, c, C + k, d]`, as they are or through one map."""
    held = weigh_events(decay, rows.dtype, more).flatten(2, 3) @ rows
    return held.reshape(len(rows), -1, decay.keep.shape[2] + more, rows.shape[-1])


@in_full_precision
def hold_last(x: Tensor, held: Tensor) -> Tensor:
    """What the slots hold after the last event, `[B, k, d]`, of `held_events`: one product, without chunks."""
    return held.to(x.dtype) @ x


@in_full_precision
def read_slots(x: Tensor, decay: Decay, queries: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Every event reads the slots as they stand after it; nothing of size N x k x d is made.

    queries `[B, N, d]`, bias `[B, k, N]`. Returns softmax_s(q_t · M_t[s] + b_t[s]) `[B, k, N]` and the mixture of the slots by
    it, `[B, N, d]`. The softmax is over the last dimension but one, which takes a tenth of the time of one over k neighbours.
    """
    n, chunk = x.shape[1], decay.keep.shape[-1]
    events = cut_events(x, chunk)
    before = inherit_states(events, decay)
    slots = (score_slots(events, before, decay, queries) + bias).softmax(1)  # [B, k, N]
    slot_weights = decay.keep * cut_events(slots.mT, chunk).mT  # [B, c, k, C]
    inside = (slot_weights.mT @ decay.take).tril().to(x.dtype)  # [B, c, t, j]
    mixed = add_product(inside @ events, slot_weights.to(x.dtype).mT, before)
    return slots, mixed.flatten(1, 2)[:, :n]


def count_recent(written: Tensor, half_lives: Tensor) -> Tensor:
    """Return exponential sums over `written [B, k, N]` as they stand after the last event, for R half-lives: `[B, k, R]`."""
    return written @ _decay_factors(half_lives, written.shape[-1]).to(written.dtype).flip(-1).T


def recent_shares(strength: Tensor, real: Tensor, half_lives: Tensor, chunk: int = 64) -> Tensor:
    """What part of the recent past each slot was written with, `[B, k, R, N]`, for R half-lives (in events).

    strength `[B, k, N]`, real `[B, N]`. An exponential average over the real events so far; 0 before the first. Every chunk is
    one product with a table of what is left after so many events (7 % of the time of sums in turn)."""
    n = strength.shape[2]
    counted = torch.cat([strength, real.unsqueeze(1).to(strength.dtype)], 1)
    counted = functional.pad(counted, (0, -n % chunk)).unflatten(2, (-1, chunk))  # [B, k + 1, c, C]
    fading = _decay_factors(half_lives, chunk + 1).to(counted.dtype)  # [R, C + 1]
    weights_left = functional.pad(fading[:, :-1], (chunk - 1, 0)).unfold(1, chunk, 1).flip(1)  # [R, j, t] after t - j events
    summed = (counted @ weights_left.transpose(0, 1).flatten(1)).unflatten(-1, (-1, chunk))  # [B, k + 1, c, R, t]
    parts = [summed[:, :, 0]]
    for part in summed.unbind(2)[1:]:
        parts.append(torch.addcmul(part, fading[:, 1:], parts[-1][..., -1:]))
    total = torch.cat(parts, -1)[..., :n]
    return total[:, :-1] / total[:, -1:].clamp_min(1e-12)


def recent_logarithms(counts: Tensor) -> Tensor:
    """How often slots were written `[B, k + 1, R]`, from sums over the recent past, whose last row counts all events
    `[B, k + 2, R]`."""
    return (counts[:, :-1] / counts[:, -1:].clamp_min(1e-12) + LEAST_SHARE).log()


def _decay_factors(half_lives: Tensor, n: int) -> Tensor:
    """What is left after 0 … n - 1 events, float64 `[R, n]`."""
    return 0.5 ** (torch.arange(n, dtype=torch.float64, device=half_lives.device) / half_lives.double().unsqueeze(1))


def held_events(steps: Tensor) -> Tensor:
    """How much of every event each slot still holds at the end: steps `[B, k, N]` → `[B, k, N]`.

    Products of float64, of which nothing below 1e-30 is left: numbers that float32 can only just hold cost milliseconds."""
    w = steps.double().clamp_max(1 - LEAST)
    later = functional.pad((1 - w).flip(-1).cumprod(-1).flip(-1)[..., 1:], (0, 1), value=1.0)
    return (later.masked_fill(later < 1e-30, 0) * w).to(steps.dtype)


def first_held(held: Tensor, before: int = 0) -> int:
    """The first column that must be read by whoever reads slots from the last on, of `held_events` up to there, in float64, for
    any layer's events.

    A slot at t is Σ_j D[t, j] h_j, and D[t + 1, j] = (1 - w_{t+1}) D[t, j] <= D[t, j] for every j <= t. So if at the last t the
    weights of all events before some column c add up to less than FORGOTTEN, they do so at every later t, and without these
    events a slot moves by less than FORGOTTEN times the largest of them: float32 rounds more away. `before` more columns are
    read for what came just before (the convolution). Untrained slots read some 120 events of any number, trained ones 160 of 200
    and 320 of 1,024 (4,096 events in a fifth of the time). It asks the device: not for a GPU."""
    earlier = (held.cumsum(-1) - held).amax((0, 1))  # of all events before each column; it only grows
    return min(max(int((earlier < FORGOTTEN).sum()) - 1, 0), max(held.shape[-1] - 1 - before, 0))
