"""The loss: softmax cross-entropy of the next item over all items (Eq. 9), or over shared sampled negatives.

Eq. 10 of the paper prints y·log ŷ + (1-y)(1-log ŷ), which is not a cross-entropy; Eq. 9's softmax is what is meant.
"""

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.config import TrainConfig
from elastic_core.data.batches import Batch
from elastic_core.models.registry import Recommender


def next_item_loss(model: Recommender, batch: Batch, train: TrainConfig, proposal: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Mean loss over the batch's targets, and the model's penalty. `proposal [n_items + 1]`: what negatives are drawn from."""
    if batch.targets is None:
        raise ValueError("a training batch needs targets")
    encoded = model(batch)
    chosen = batch.targets > 0
    states, targets = encoded.states[chosen], batch.targets[chosen]
    if proposal is None:
        loss = full_softmax(model.logits(states), targets)
    else:
        loss = sampled_softmax(states, targets, model.item_table(), proposal, train.negatives)
    return loss, torch.as_tensor(encoded.penalty, dtype=loss.dtype, device=loss.device)


def full_softmax(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy over all items; column 0 (padding) takes no part. logits `[M, n_items + 1]`, targets `[M]` in 1 … n_items."""
    return functional.cross_entropy(logits[:, 1:].float(), targets - 1)


def sampled_softmax(states: Tensor, targets: Tensor, table: Tensor, proposal: Tensor, negatives: int) -> Tensor:
    """Softmax over the target and `negatives` items shared by the whole step, drawn with replacement from `proposal`.

    Every negative's logit is corrected by -log(negatives · q): the expected denominator is then the full one. Negatives
    that hit the target are masked. states `[M, d]`, table `[n_items + 1, d]`; the loss tends to `full_softmax`.
    """
    drawn = torch.multinomial(proposal, negatives, replacement=True)
    right = (states * table[targets]).sum(-1).float()
    wrong = (states @ table[drawn].T).float() - (proposal[drawn] * negatives).log()
    wrong = wrong.masked_fill(drawn[None, :] == targets[:, None], -torch.inf)
    return (torch.cat([right[:, None], wrong], dim=1).logsumexp(1) - right).mean()


def negative_proposal(counts: Tensor) -> Tensor:
    """Half uniform, half by popularity, `[n_items + 1]`, zero on padding: rare items are met, frequent ones resisted."""
    weights = counts.double().clamp_min(0)
    weights[0] = 0
    uniform = torch.ones_like(weights)
    uniform[0] = 0
    return (0.5 * weights / weights.sum().clamp_min(1) + 0.5 * uniform / uniform.sum()).float()
