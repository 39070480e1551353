"""The loss: cross-entropy of the next item over all items, or over a few that all targets of a step share.

Neither ever holds all logits: they are made, turned into probabilities and into their own gradient chunk by chunk, so that a pass
finds them in the cache. Only a scorer of `pairs`, whose logits are no products with a table, is written out.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core import fused_ops
from elastic_core.core.batches import SeenItems, same_draw, weigh_repeats
from elastic_core.core.contract import Mixture, Scorer
from elastic_core.core.layers import autocast_to

CHUNK_BYTES = 1 << 20  # logits that are worked on together: as many as a processor's cache holds
APART = 16  # numbers between rows of logits that are worked on together

Softmax = Callable[[Tensor | Mixture, Tensor, Scorer, SeenItems | None], Tensor]


def full_softmax(states: Tensor | Mixture, targets: Tensor, scorer: Scorer, seen: SeenItems | None = None) -> Tensor:
    """Cross-entropy of the next item over all items (Eq. 9), summed. states `[M, D]`, targets `[M]` in 1 … n_items; column 0
    (padding) takes no part.

    `seen` is what each row had seen, for a scorer that knows what that adds (`Scorer.repeat_bias`). Eq. 10 of the paper prints
    y·log ŷ + (1-y)(1-log ŷ), which is no cross-entropy; Eq. 9's softmax is what is meant."""
    if scorer.pairs is not None:
        assert isinstance(states, Tensor)  # no mixture
        logits = scorer(states, seen)[:, 1:]
        return functional.cross_entropy(logits if logits.dtype == torch.float64 else logits.float(), targets - 1, reduction="sum")
    vectors, shares = scorer.split_mixture(states)
    repeat_bias = None if seen is None else scorer.repeat_bias
    seen = seen and seen._replace(counted=scorer.repeat_counts)
    loss: Tensor = _FullSoftmax.apply(vectors, shares.float(), scorer.table, scorer.bias, repeat_bias, targets, seen)
    return loss


class _FullSoftmax(torch.autograd.Function):
    """-Σ_m log Σ_p e^{shares[m, p]} softmax(table · vectors[m, p] + bias)[targets[m]], without ever holding all logits.

    Logits are made, turned into probabilities and into their own gradient chunk by chunk, so a pass over them finds them in
    the cache, and nothing of size M x P x n_items is kept for the way back. With posterior r over the parts of a target, the
    gradient is r_p (softmax_p - 1[target]) for the logits and -r_p for the log shares. Under autocast the three products have
    half-precision factors, and all else is float32.
    """

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, shares: Tensor, table: Tensor, bias: Tensor | None, repeat_bias: Tensor | None,
        targets: Tensor, seen: SeenItems | None,
    ) -> Tensor:  # fmt: skip
        m, parts, d = vectors.shape
        device = vectors.device.type
        half = autocast_to(device) or torch.float32
        flat, items = vectors.to(half).reshape(m * parts, d), table[1:].to(half)
        needs = any(x is not None and x.requires_grad for x in (vectors, shares, table, bias, repeat_bias))
        d_vectors, d_shares = torch.empty(m * parts, d, device=flat.device), torch.empty_like(shares)
        d_table, total = torch.zeros_like(table, dtype=torch.float32), torch.zeros((), device=flat.device)
        d_bias = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
        d_repeat_bias, seen_mask = None if repeat_bias is None else torch.zeros((), device=flat.device), None
        in_one_pass = _fits_one_pass(flat, parts)
        product = fused_ops.linear_in_one_pass if in_one_pass else functional.linear
        across = items.T.contiguous() if in_one_pass else items.T
        d_across = torch.zeros_like(across) if in_one_pass else None  # of `table[1:]`, turned
        rows = _chunk_rows(m, parts, len(items), device)
        for at in range(0, m, rows):
            part, parts_of = slice(at, at + rows), slice(at * parts, (at + rows) * parts)
            v = flat[parts_of]  # [R P, d]
            logits = product(v, items).float()
            if bias is not None:
                logits += bias[1:].float()
            if repeat_bias is not None and seen is not None:
                seen_mask = seen.seen_mask(len(items), part)[:, 1:].repeat_interleave(parts, 0)
                logits += repeat_bias.float() * seen_mask
            goal = (targets[part] - 1).repeat_interleave(parts).unsqueeze(1)  # [R P, 1]
            right = logits.gather(1, goal).view(-1, parts)
            probabilities, norm = softmax_in_place(logits)  # the logits are gone
            log_p = right - norm.view(-1, parts) + shares[part]
            target_log_p = log_p.logsumexp(1, keepdim=True)
            total -= target_log_p.sum()
            if needs:
                posterior = (log_p - target_log_p).exp()
                d_shares[part] = -posterior
                weight = posterior.view(-1, 1)
                gradient = (probabilities if parts == 1 else probabilities.mul_(weight)).scatter_add_(1, goal, -weight)
                rough = gradient.to(half)
                d_vectors[parts_of] = product(rough, across)
                if d_across is not None:
                    d_across += fused_ops.linear_in_one_pass(v.T.contiguous(), rough.T)
                else:
                    d_table[1:] += rough.T @ v
                if d_bias is not None:
                    d_bias[1:] += gradient.sum(0)
                if d_repeat_bias is not None and seen_mask is not None:
                    d_repeat_bias += (gradient * seen_mask).sum()
        if d_across is not None:
            d_table[1:] = d_across.T
        d_vectors = d_vectors.view(m, parts, d)
        ctx.gradients = (d_vectors.to(vectors.dtype), d_shares, d_table.to(table.dtype), d_bias, d_repeat_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = gradients
        return (*(None if x is None else x * scale for x in ctx.gradients), None, None)


def _chunk_rows(m: int, parts: int, width: int, device: str) -> int:
    """How many of m targets are worked on together; of mixtures in chunks of twice the size."""
    size = CHUNK_BYTES if parts == 1 else 2 * CHUNK_BYTES
    return max(1, size // (4 * parts * width) if device == "cpu" else m)


def _fits_one_pass(flat: Tensor, parts: int) -> bool:
    """Whether oneDNN multiplies: of mixtures twice as fast as torch's own. It rounds otherwise, and with one part, where it gains
    little, a seed has always given the same bits."""
    return parts > 1 and fused_ops.ONE_PASS and flat.device.type == "cpu" and flat.dtype == torch.float32


def multiply_into(out: Tensor, a: Tensor, b: Tensor) -> None:
    """a @ b into `out`, without a copy where they are of one precision."""
    if out.dtype == a.dtype:
        torch.mm(a, b, out=out)
    else:
        out.copy_(a @ b)


def softmax_in_place(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Logits `[R, V]`, which are overwritten → their softmax and log-sum-exp `[R]`.

    torch's softmax is two to four times as fast as its exponential (on a CPU) and keeps the normaliser to itself; but the largest
    of V probabilities is at least 1/V, so its logarithm gives it without loss."""
    top = logits.amax(1)
    probabilities = torch.softmax(logits, 1, out=logits if logits.device.type == "cpu" else None)
    return probabilities, top - probabilities.amax(1).log()


# --- sampled: the target, and negatives that all targets of a step share, drawn and corrected for how they are ---------


class SharedNegatives:
    """What a training with `objective.loss=sampled` minimises; `counts [n_items + 1]` are events of each item."""

    def __init__(self, counts: Tensor, negatives: int) -> None:
        self.proposal, self.negatives = negative_proposal(counts), negatives

    def __call__(self, states: Tensor | Mixture, targets: Tensor, scorer: Scorer, seen: SeenItems | None = None) -> Tensor:
        self.proposal = self.proposal.to(targets.device)
        return sampled_softmax(states, targets, scorer, self.proposal, self.negatives, seen)


def negative_proposal(counts: Tensor) -> Tensor:
    """Half uniform, half by popularity, `[n_items + 1]`, zero on padding: rare items are met, frequent ones resisted."""
    weights = counts.double().clamp_min(0)
    weights[0] = 0
    uniform = torch.ones_like(weights)
    uniform[0] = 0
    return (0.5 * weights / weights.sum().clamp_min(1) + 0.5 * uniform / uniform.sum()).float()


def sampled_softmax(
    states: Tensor | Mixture, targets: Tensor, scorer: Scorer, proposal: Tensor, negatives: int, seen: SeenItems | None = None,
) -> Tensor:  # fmt: skip
    """Softmax over the target and `negatives` items shared by the whole step, drawn with replacement from `proposal`, summed.

    Every negative's logit is corrected by -log(negatives · q): the expected denominator is then the full one. Negatives
    that hit the target are masked. states `[M, D]`, targets `[M]`, proposal `[n_items + 1]`; tends to the full softmax.
    """
    drawn = same_draw(torch.multinomial(proposal, negatives, replacement=True))
    rarity = -(proposal[drawn] * negatives).log()
    vectors, shares = scorer.split_mixture(states)
    n_items = len(proposal) - 1
    repeat_bias = None if seen is None else scorer.repeat_bias
    seen_weights = None
    if seen is not None and repeat_bias is not None:
        seen = seen._replace(counted=scorer.repeat_counts)
        seen_weights = _seen_own_item(seen, targets, n_items).flatten(), _seen_columns(seen, drawn, n_items)
    if scorer.pairs is None:
        return _sampled_in_chunks(vectors, shares, scorer, targets, drawn, rarity, repeat_bias, seen_weights)
    right, wrong = scorer.score_own_item(vectors, targets).float(), scorer.score_items(vectors, drawn).float() + rarity
    if repeat_bias is not None and seen_weights is not None:
        right, wrong = right + repeat_bias * seen_weights[0].unsqueeze(1), wrong + (repeat_bias * seen_weights[1]).unsqueeze(1)
    wrong = wrong.masked_fill((drawn[None, :] == targets[:, None]).unsqueeze(1), -torch.inf)
    total = torch.cat([right.unsqueeze(-1), wrong], dim=-1).logsumexp(-1)
    return -(right - total + shares.float()).logsumexp(-1).sum()


def _sampled_in_chunks(
    vectors: Tensor, shares: Tensor, scorer: Scorer, targets: Tensor, drawn: Tensor, rarity: Tensor, repeat_bias: Tensor | None,
    seen: tuple[Tensor, Tensor] | None,
) -> Tensor:  # fmt: skip
    """Of a scorer without `pairs`, once its negatives were drawn."""
    both = torch.cat([targets, drawn])  # the table is read once: every look at it has a gradient of its size
    own, others = scorer.item_rows(both).split([len(targets), len(drawn)])
    own_bias, bias = None, rarity
    if scorer.bias is not None:
        own_bias, bias = functional.embedding(both, scorer.bias.unsqueeze(1)).squeeze(1).float().split([len(targets), len(drawn)])
        bias = bias + rarity
    return _SampledSoftmax.apply(vectors, shares.float(), own, others, own_bias, bias, repeat_bias, seen, targets, drawn)


class _SampledSoftmax(torch.autograd.Function):
    """-Σ_m log Σ_p e^{shares[m, p]} softmax([own[m] · v, others · v + bias], v = vectors[m, p])[0], in chunks as `_FullSoftmax`.

    own `[M, d]` are the targets' rows, others `[S, d]` those of what was drawn, bias `[S]`, own_bias `[M]` or None; `seen`
    (`[M]`, `[M, S]`) is where `again` is added. Where `drawn` is the target it takes no part.
    """

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, shares: Tensor, own: Tensor, others: Tensor, own_bias: Tensor | None, bias: Tensor,
        repeat_bias: Tensor | None, seen_weights: tuple[Tensor, Tensor] | None, targets: Tensor, drawn: Tensor,
    ) -> Tensor:  # fmt: skip
        m, parts, d = vectors.shape
        device = vectors.device.type
        half = autocast_to(device) or vectors.dtype
        rough_vectors, rest, goals = vectors.to(half), others.to(half), own.to(half).unsqueeze(1)
        flat, width = rough_vectors.reshape(m * parts, d), len(others)
        right = (rough_vectors * goals).sum(-1).to(shares.dtype)  # [M, P]
        if own_bias is not None:
            right += own_bias.unsqueeze(1)
        if repeat_bias is not None and seen_weights is not None:
            right += repeat_bias * seen_weights[0].unsqueeze(1)
        d_vectors, d_shares, d_right = vectors.new_empty(flat.shape), torch.empty_like(shares), torch.empty_like(right)
        d_others, d_bias = torch.zeros_like(others), torch.zeros_like(bias) if bias.requires_grad else None
        d_repeat_bias, total = None if repeat_bias is None else torch.zeros_like(repeat_bias), shares.new_zeros(())
        rows, in_one_pass = _chunk_rows(m, parts, width, device), _fits_one_pass(flat, parts)
        # a column for the target, and more: rows that lie a power of two apart would share their places in a cache
        if in_one_pass:
            wide, wide_bias = functional.pad(rest, (0, 0, 0, APART)), functional.pad(bias, (0, APART))
            across = wide.T.contiguous()
            d_wide = torch.zeros_like(across)
        else:
            room = vectors.new_empty(min(rows, m) * parts, width + APART, dtype=shares.dtype)
        hit, column, row_ends = _find_hits(targets, drawn, rows) if device == "cpu" else (None, None, [])
        for i, at in enumerate(range(0, m, rows)):
            part, parts_of = slice(at, at + rows), slice(at * parts, (at + rows) * parts)
            v = flat[parts_of]
            if in_one_pass:
                every = fused_ops.linear_in_one_pass(v, wide, wide_bias)
            else:
                every = room[: len(v)]
                logits = every[:, :width]
                if half == shares.dtype:
                    torch.addmm(bias, v, rest.T, out=logits)
                else:
                    torch.add(v @ rest.T, bias, out=logits)
            by_part = every.view(-1, parts, every.shape[1])
            if repeat_bias is not None and seen_weights is not None:
                by_part[..., :width] += (repeat_bias * seen_weights[1][part]).unsqueeze(1)
            if hit is None or column is None:  # to ask a device how many there are is to wait for it
                by_part[..., :width].masked_fill_((targets[part].unsqueeze(1) == drawn).unsqueeze(1), -torch.inf)
            else:
                where = slice(row_ends[i], row_ends[i + 1])
                by_part[hit[where] - at, :, column[where]] = -torch.inf
            every[:, width:] = -torch.inf
            by_part[..., width] = right[part]
            probabilities, norm = softmax_in_place(every)  # the logits are gone
            log_p = right[part] - norm.view(-1, parts) + shares[part]
            target_log_p = log_p.logsumexp(1, keepdim=True)
            total -= target_log_p.sum()
            posterior = (log_p - target_log_p).exp()
            d_shares[part] = -posterior
            d_right[part] = posterior * (probabilities[:, width].view_as(posterior) - 1)
            if parts > 1:
                probabilities.mul_(posterior.view(-1, 1))
            gradient = probabilities[:, :width]
            rough = gradient.to(half)
            if in_one_pass:  # the columns beside meet rows of zeros
                d_vectors[parts_of] = fused_ops.linear_in_one_pass(probabilities, across)
                d_wide += fused_ops.linear_in_one_pass(v.T.contiguous(), probabilities.T)
            else:
                multiply_into(d_vectors[parts_of], rough, rest)
                if half == d_others.dtype:
                    d_others.addmm_(rough.T, v)
                else:
                    d_others += rough.T @ v
            if d_bias is not None:
                d_bias += gradient.sum(0)
            if d_repeat_bias is not None and seen_weights is not None:
                summed_gradient = gradient.view(-1, parts, width).sum(1)
                d_repeat_bias += (summed_gradient * seen_weights[1][part]).sum() + (
                    d_right[part].sum(1) * seen_weights[0][part]
                ).sum()
        if in_one_pass:
            d_others = d_wide[:, :width].T.contiguous()
        back = d_right.to(half).unsqueeze(-1)
        d_vectors = d_vectors.view_as(vectors).add_(back * goals)
        d_own = (back * rough_vectors).sum(1).to(own.dtype)
        d_own_bias = None if own_bias is None else d_right.sum(1)
        ctx.gradients = (d_vectors, d_shares, d_own, d_others, d_own_bias, d_bias, d_repeat_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = gradients
        return (*(None if x is None else x * scale for x in ctx.gradients), None, None, None)


def _find_hits(targets: Tensor, drawn: Tensor, rows: int) -> tuple[Tensor, Tensor, list[int]]:
    """Where what was drawn is the target: rows `[E]` ascending, columns `[E]`, and where in them every chunk of `rows` begins."""
    known, order = drawn.sort()
    first = torch.searchsorted(known, targets)
    count = torch.searchsorted(known, targets, right=True) - first
    row = torch.repeat_interleave(count)
    before = functional.pad(count.cumsum(0), (1, 0))
    place = first[row] + torch.arange(len(row), device=row.device) - before[row]
    return row, order[place], [*before[::rows].tolist(), len(row)]


# What rows have met before, asked without a number for every item of the catalogue.


def _seen_columns(seen: SeenItems, chosen: Tensor, n_items: int) -> Tensor:
    """The columns `chosen [C]` (none of them 0) of `SeenItems.seen_mask`, without the others: `[M, C]`."""
    ordered = chosen.sort().values
    column = torch.full((n_items + 1,), len(chosen), device=chosen.device)
    column[ordered] = torch.searchsorted(ordered, ordered)  # equal ones have one column: nobody asks how many
    items = column[seen.seen_items(n_items)]
    return seen.weigh(items, len(chosen) + 1)[:, column[chosen]]


def _seen_own_item(seen: SeenItems, own: Tensor, n_items: int) -> Tensor:
    """How well every row knows its own item: `[M]` → float `[M, 1]`, as `SeenItems.seen_mask`."""
    same = seen.seen_items(n_items) == own.unsqueeze(1)
    return weigh_repeats(same.sum(1, keepdim=True)) if seen.counted else same.any(1, keepdim=True).float()
