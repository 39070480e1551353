"""The loss: softmax cross-entropy of the next item over all items (Eq. 9), or over shared sampled negatives, as sums.

Eq. 10 of the paper prints y·log ŷ + (1-y)(1-log ŷ), which is not a cross-entropy; Eq. 9's softmax is what is meant.
"""

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.models import Scorer


def full_softmax(logits: Tensor, targets: Tensor) -> Tensor:
    """Summed cross-entropy over all items; column 0 (padding) takes no part. logits `[M, n_items + 1]`, targets `[M]` in
    1 … n_items."""
    return functional.cross_entropy(logits[:, 1:].float(), targets - 1, reduction="sum")


def sampled_softmax(states: Tensor, targets: Tensor, scorer: Scorer, proposal: Tensor, negatives: int) -> Tensor:
    """Softmax over the target and `negatives` items shared by the whole step, drawn with replacement from `proposal`, summed.

    Every negative's logit is corrected by -log(negatives · q): the expected denominator is then the full one. Negatives
    that hit the target are masked. states `[M, d]`, targets `[M]`, proposal `[n_items + 1]`; tends to `full_softmax`.
    """
    drawn = torch.multinomial(proposal, negatives, replacement=True)
    right = scorer.at(states, targets).float()
    wrong = scorer.among(states, drawn).float() - (proposal[drawn] * negatives).log()
    wrong = wrong.masked_fill(drawn[None, :] == targets[:, None], -torch.inf)
    return (torch.cat([right[:, None], wrong], dim=1).logsumexp(1) - right).sum()


def negative_proposal(counts: Tensor) -> Tensor:
    """Half uniform, half by popularity, `[n_items + 1]`, zero on padding: rare items are met, frequent ones resisted."""
    weights = counts.double().clamp_min(0)
    weights[0] = 0
    uniform = torch.ones_like(weights)
    uniform[0] = 0
    return (0.5 * weights / weights.sum().clamp_min(1) + 0.5 * uniform / uniform.sum()).float()
