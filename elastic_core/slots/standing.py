"""What an expert stands for (ours): its own distribution over items, softmax(norm(V) · Eᵀ), and the loss that asks for one.

E scores items wherever the model does, whatever table it reads them by (`model.output`): experts stand for what may come next.

With these the retrieved experts are a mixture that predicts by itself, without reading the history,

    p(next | person) = Σ_i g_i softmax(norm(V_i) · Eᵀ)[next]        g the gates, as parts of 1

and its surprise at the training targets, with the objective's own retrieval, teaches V_i to be prototypes of items, and through
g the router to find them. Without the norm the logits start flat.
"""

import torch
from torch import Tensor, nn

from elastic_core.core.contract import Retrieved


class Standing(nn.Module):
    """Experts `[..., d]` → vectors in item space, and the normalisers of their distributions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, values: Tensor) -> Tensor:
        """`[..., d]`: its products with the item table are the logits."""
        return self.norm(values)

    def log_probabilities(self, values: Tensor, table: Tensor) -> Tensor:
        """Experts `[..., d]` → `[..., n_items + 1]`; column 0 is -inf."""
        logits = (self.norm(values) @ table.T).float()
        logits[..., 0] = -torch.inf
        return logits.log_softmax(-1)

    def masses(self, values: Tensor, table: Tensor) -> Tensor:
        """log Σ_items e^logit of experts `[..., d]` for the item table `[n_items + 1, d]`: `[...]`; a product with all items."""
        return (self.norm(values) @ table[1:].T).float().logsumexp(-1)

    def surprise(self, found: Retrieved, rows: Tensor, targets: Tensor, experts: Tensor, table: Tensor, masses: Tensor) -> Tensor:
        """-log p of the targets `[M]` under what was retrieved for their histories, `rows [M]` of the batch, summed.

        `experts [B, k, d]` are the retrieved ones as they are in the memory, `masses [B, k]` theirs."""
        vectors = self(experts)[rows]  # [M, k, d]
        logits = (vectors * table[targets].unsqueeze(1)).sum(-1).float()
        shares = (found.gates / found.gates.sum(-1, keepdim=True)).clamp_min(1e-9).log()[rows]
        return -(logits - masses[rows] + shares).logsumexp(-1).sum()
