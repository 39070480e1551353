"""The loss: softmax cross-entropy of the next item over all items (Eq. 9), or over shared sampled negatives, as sums.

Eq. 10 of the paper prints y·log ŷ + (1-y)(1-log ŷ), which is not a cross-entropy; Eq. 9's softmax is what is meant.
"""

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.batches import Met, one_draw
from elastic_core.core.contract import Scorer
from elastic_core.core.plugs import plugged


def full_softmax(states: Tensor, targets: Tensor, scorer: Scorer, met: Met | None = None) -> Tensor:
    """Summed cross-entropy over all items; column 0 (padding) takes no part. states `[M, D]`, targets `[M]` in 1 … n_items.

    `met` is what each row had met, for a scorer that knows what that adds (`Scorer.again`). The plain form holds all logits;
    with what plugs in (scale/softmax.py) none are held but those of `Scorer.pairs`."""
    quick = plugged("the exact softmax") if scorer.pairs is None else None
    if quick is None:
        logits = scorer(states, met)[:, 1:]
        return functional.cross_entropy(logits if logits.dtype == torch.float64 else logits.float(), targets - 1, reduction="sum")
    return quick(states, targets, scorer, met)


def sampled_softmax(
    states: Tensor, targets: Tensor, scorer: Scorer, proposal: Tensor, negatives: int, met: Met | None = None,
    sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Softmax over the target and `negatives` items shared by the whole step, drawn with replacement from `proposal`, summed.

    Every negative's logit is corrected by -log(negatives · q): the expected denominator is then the full one. Negatives
    that hit the target are masked. states `[M, D]`, targets `[M]`, proposal `[n_items + 1]`; tends to `full_softmax`.

    `sparse`: the gradient of the table is a sparse tensor of the rows read, for an optimiser that takes one; else it has the
    table's size.
    """
    drawn = one_draw(torch.multinomial(proposal, negatives, replacement=True))
    rarity = -(proposal[drawn] * negatives).log()
    vectors, shares = scorer.split(states)
    n_items = len(proposal) - 1
    again = None if met is None else scorer.again
    seen = None if met is None or again is None else (met.at(targets, n_items).flatten(), met.of(drawn, n_items))
    quick = plugged("the sampled softmax") if scorer.pairs is None else None
    if quick is not None:
        return quick(vectors, shares, scorer, targets, drawn, rarity, again, seen, sparse)
    right, wrong = scorer.at(vectors, targets).float(), scorer.among(vectors, drawn).float() + rarity
    if again is not None and seen is not None:
        right, wrong = right + again * seen[0].unsqueeze(1), wrong + (again * seen[1]).unsqueeze(1)
    wrong = wrong.masked_fill((drawn[None, :] == targets[:, None]).unsqueeze(1), -torch.inf)
    return _surprise(right, torch.cat([right.unsqueeze(-1), wrong], dim=-1).logsumexp(-1), shares)


def _surprise(right: Tensor, total: Tensor, shares: Tensor) -> Tensor:
    """-log of the probability of the targets, summed: their logits and the normalisers of every part, log shares, `[M, P]`."""
    return -(right - total + shares.float()).logsumexp(-1).sum()


def negative_proposal(counts: Tensor) -> Tensor:
    """Half uniform, half by popularity, `[n_items + 1]`, zero on padding: rare items are met, frequent ones resisted."""
    weights = counts.double().clamp_min(0)
    weights[0] = 0
    uniform = torch.ones_like(weights)
    uniform[0] = 0
    return (0.5 * weights / weights.sum().clamp_min(1) + 0.5 * uniform / uniform.sum()).float()
