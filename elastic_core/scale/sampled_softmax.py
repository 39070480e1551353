"""The loss over a few items: the target, and negatives that all targets of a step share, drawn and corrected for how they are."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.batches import Met, one_draw
from elastic_core.core.contract import Scorer
from elastic_core.core.layers import autocast_to
from elastic_core.scale.met import met_among, met_own
from elastic_core.scale.passes import CHUNK_BYTES, probabilities

APART = 16  # numbers between rows of logits that are worked on together


class SharedNegatives:
    """What a training with `objective.loss=sampled` minimises; `counts [n_items + 1]` are events of each item."""

    def __init__(self, counts: Tensor, negatives: int) -> None:
        self.proposal, self.negatives = negative_proposal(counts), negatives

    def __call__(self, states: Tensor, targets: Tensor, scorer: Scorer, met: Met | None = None) -> Tensor:
        self.proposal = self.proposal.to(states.device)
        return sampled_softmax(states, targets, scorer, self.proposal, self.negatives, met)


def negative_proposal(counts: Tensor) -> Tensor:
    """Half uniform, half by popularity, `[n_items + 1]`, zero on padding: rare items are met, frequent ones resisted."""
    weights = counts.double().clamp_min(0)
    weights[0] = 0
    uniform = torch.ones_like(weights)
    uniform[0] = 0
    return (0.5 * weights / weights.sum().clamp_min(1) + 0.5 * uniform / uniform.sum()).float()


def sampled_softmax(
    states: Tensor, targets: Tensor, scorer: Scorer, proposal: Tensor, negatives: int, met: Met | None = None,
    sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Softmax over the target and `negatives` items shared by the whole step, drawn with replacement from `proposal`, summed.

    Every negative's logit is corrected by -log(negatives · q): the expected denominator is then the full one. Negatives
    that hit the target are masked. states `[M, D]`, targets `[M]`, proposal `[n_items + 1]`; tends to the full softmax.

    `sparse`: the gradient of the table is a sparse tensor of the rows read, for an optimiser that takes one; else it has the
    table's size.
    """
    drawn = one_draw(torch.multinomial(proposal, negatives, replacement=True))
    rarity = -(proposal[drawn] * negatives).log()
    vectors, shares = scorer.split(states)
    n_items = len(proposal) - 1
    again = None if met is None else scorer.again
    seen = None if met is None or again is None else (met_own(met, targets, n_items).flatten(), met_among(met, drawn, n_items))
    if scorer.pairs is None:
        return _in_chunks(vectors, shares, scorer, targets, drawn, rarity, again, seen, sparse)
    right, wrong = scorer.at(vectors, targets).float(), scorer.among(vectors, drawn).float() + rarity
    if again is not None and seen is not None:
        right, wrong = right + again * seen[0].unsqueeze(1), wrong + (again * seen[1]).unsqueeze(1)
    wrong = wrong.masked_fill((drawn[None, :] == targets[:, None]).unsqueeze(1), -torch.inf)
    total = torch.cat([right.unsqueeze(-1), wrong], dim=-1).logsumexp(-1)
    return -(right - total + shares.float()).logsumexp(-1).sum()


def _in_chunks(
    vectors: Tensor, shares: Tensor, scorer: Scorer, targets: Tensor, drawn: Tensor, rarity: Tensor, again: Tensor | None,
    seen: tuple[Tensor, Tensor] | None, sparse: bool,
) -> Tensor:  # fmt: skip
    """Of a scorer without `pairs`, once its negatives were drawn."""
    both = torch.cat([targets, drawn])  # the table is read once: every look at it has a gradient of its size
    own, others = scorer.rows(both, sparse).split([len(targets), len(drawn)])
    own_bias, bias = None, rarity
    if scorer.bias is not None:
        own_bias, bias = functional.embedding(both, scorer.bias.unsqueeze(1)).squeeze(1).float().split([len(targets), len(drawn)])
        bias = bias + rarity
    return _SampledSoftmax.apply(vectors, shares.float(), own, others, own_bias, bias, again, seen, targets, drawn)


class _SampledSoftmax(torch.autograd.Function):
    """-Σ_m log Σ_p e^{shares[m, p]} softmax([own[m] · v, others · v + bias], v = vectors[m, p])[0], in chunks as `_FullSoftmax`.

    own `[M, d]` are the targets' rows, others `[S, d]` those of what was drawn, bias `[S]`, own_bias `[M]` or None; `seen`
    (`[M]`, `[M, S]`) is where `again` is added. Where `drawn` is the target it takes no part.
    """

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, shares: Tensor, own: Tensor, others: Tensor, own_bias: Tensor | None, bias: Tensor,
        again: Tensor | None, seen: tuple[Tensor, Tensor] | None, targets: Tensor, drawn: Tensor,
    ) -> Tensor:  # fmt: skip
        m, parts, d = vectors.shape
        device = vectors.device.type
        half = autocast_to(device) or vectors.dtype
        flat, rest = vectors.to(half), others.to(half)
        d_vectors, d_shares, d_own = torch.empty_like(vectors), torch.empty_like(shares), torch.empty_like(own)
        d_others, d_bias = torch.zeros_like(others), torch.zeros_like(bias) if bias.requires_grad else None
        d_own_bias = None if own_bias is None else torch.empty_like(own_bias)
        d_again, total = None if again is None else torch.zeros_like(again), shares.new_zeros(())
        rows = max(1, CHUNK_BYTES // (4 * parts * len(others)) if device == "cpu" else m)
        # a column for the target, and more: rows that lie a power of two apart would share their places in a cache
        room, width = vectors.new_empty(min(rows, m) * parts, len(others) + APART, dtype=shares.dtype), len(others)
        hit, column, until = _hits(targets, drawn, rows) if device == "cpu" else (None, None, [])
        for i, at in enumerate(range(0, m, rows)):
            part = slice(at, at + rows)
            v, goal = flat[part], own[part].to(half)
            right = (v * goal.unsqueeze(1)).sum(-1).to(shares.dtype)  # [R, P]
            if own_bias is not None:
                right += own_bias[part].unsqueeze(1)
            every = room[: right.numel()]
            logits = every[:, :width]
            if half == shares.dtype:
                torch.addmm(bias, v.reshape(-1, d), rest.T, out=logits)
            else:
                torch.add(v.reshape(-1, d) @ rest.T, bias, out=logits)
            by_part = every.view(len(v), parts, -1)
            if again is not None and seen is not None:
                right += again * seen[0][part].unsqueeze(1)
                by_part[..., :width] += (again * seen[1][part]).unsqueeze(1)
            if hit is None or column is None:  # to ask a device how many there are is to wait for it
                by_part[..., :width].masked_fill_((targets[part].unsqueeze(1) == drawn).unsqueeze(1), -torch.inf)
            else:
                where = slice(until[i], until[i + 1])
                by_part[hit[where] - at, :, column[where]] = -torch.inf
            every[:, width:] = -torch.inf
            by_part[..., width] = right
            shown, norm = probabilities(every)  # the logits are gone
            log_p = right - norm.view_as(right) + shares[part]
            found = log_p.logsumexp(1, keepdim=True)
            total -= found.sum()
            posterior = (log_p - found).exp()
            d_shares[part] = -posterior
            d_right = posterior * (shown[:, width].view_as(right) - 1)
            gradient = shown[:, :width]
            if parts > 1:
                gradient.mul_(posterior.view(-1, 1))
            rough, back = gradient.to(half), d_right.to(half).unsqueeze(-1)
            d_vectors[part] = (rough @ rest).view_as(v) + back * goal.unsqueeze(1)
            if half == d_others.dtype:
                d_others.addmm_(rough.T, v.reshape(-1, d))
            else:
                d_others += rough.T @ v.reshape(-1, d)
            d_own[part] = (back * v).sum(1)
            if d_bias is not None:
                d_bias += gradient.sum(0)
            if d_own_bias is not None:
                d_own_bias[part] = d_right.sum(1)
            if d_again is not None and seen is not None:
                met = gradient.view(len(v), parts, -1).sum(1)
                d_again += (met * seen[1][part]).sum() + (d_right.sum(1) * seen[0][part]).sum()
        ctx.found = (d_vectors, d_shares, d_own, d_others, d_own_bias, d_bias, d_again)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = gradients
        return (*(None if x is None else x * scale for x in ctx.found), None, None, None)


def _hits(targets: Tensor, drawn: Tensor, rows: int) -> tuple[Tensor, Tensor, list[int]]:
    """Where what was drawn is the target: rows `[E]` ascending, columns `[E]`, and where in them every chunk of `rows` begins."""
    known, order = drawn.sort()
    first = torch.searchsorted(known, targets)
    count = torch.searchsorted(known, targets, right=True) - first
    row = torch.repeat_interleave(count)
    before = functional.pad(count.cumsum(0), (1, 0))
    place = first[row] + torch.arange(len(row), device=row.device) - before[row]
    return row, order[place], [*before[::rows].tolist(), len(row)]
