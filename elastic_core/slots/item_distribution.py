"""What an expert stands for (ours): its own distribution over items, softmax(norm(V) · Eᵀ), and the loss that asks for one.

E scores items wherever the model does, whatever table it reads them by (`model.output`): experts stand for what may come next.

With these the retrieved experts are a mixture that predicts by itself, without reading the history,

    p(next | person) = Σ_i g_i softmax(norm(V_i) · Eᵀ)[next]        g the gates, as parts of 1

and its surprise at the training targets, with the objective's own retrieval, teaches V_i to be prototypes of items, and through
g the router to find them. Without the norm the logits start flat.
"""

import torch
from torch import Tensor, nn

from elastic_core.core.batches import Batch
from elastic_core.core.contract import Retrieved
from elastic_core.core.elastic import SharedInterests, WithMemory


class ItemDistribution(nn.Module):
    """Experts `[..., d]` → vectors in item space, and the normalisers of their distributions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, values: Tensor) -> Tensor:
        """`[..., d]`: its products with the item table are the logits."""
        return self.norm(values)

    def log_probabilities(self, model: WithMemory, experts: Tensor) -> Tensor:
        """What experts `[...]` would suggest by themselves: `[..., n_items + 1]`; column 0 is -inf."""
        logits = (self.norm(model.select_experts(experts)) @ model.scorer().table.T).float()
        logits[..., 0] = -torch.inf
        return logits.log_softmax(-1)

    def log_normalisers(self, values: Tensor, table: Tensor) -> Tensor:
        """log Σ_items e^logit of experts `[..., d]` for the item table `[n_items + 1, d]`: `[...]`; a product with all items."""
        return (self.norm(values) @ table[1:].T).float().logsumexp(-1)

    def retrieved_log_normalisers(self, model: WithMemory, retrieved: Retrieved) -> Tensor:
        """The same of the retrieved experts, `[B, k]`, by whichever way is shorter."""
        values, table = retrieved_values(model, retrieved), model.scorer().table
        if model.retrieves and model.n_experts <= retrieved.experts.numel():
            return self.log_normalisers(model.expert_values(), table)[retrieved.experts]
        return self.log_normalisers(values if model.retrieves else values[:1], table).expand(len(values), -1)

    def target_surprise(self, model: WithMemory, retrieved: Retrieved, batch: Batch, masses: Tensor | None = None) -> Tensor:
        """-log p of the batch's targets under what was retrieved for their histories, summed; `masses` are
        `retrieved_log_normalisers` those."""
        rows, targets = batch.places.rows, batch.places.items  # [M] each
        masses = self.retrieved_log_normalisers(model, retrieved) if masses is None else masses
        vectors = self(retrieved_values(model, retrieved)).index_select(0, rows)  # [M, k, d]
        logits = (vectors @ model.scorer().item_rows(targets).unsqueeze(-1)).squeeze(-1).float()
        shares = (retrieved.gates / retrieved.gates.sum(-1, keepdim=True)).clamp_min(1e-9).log()
        return -(logits + (shares - masses).index_select(0, rows)).logsumexp(-1).sum()


def retrieved_values(model: WithMemory, retrieved: Retrieved) -> Tensor:
    """The retrieved experts as they are in the memory, without their gates: `[B, k, d]`."""
    return retrieved.interests if isinstance(model.memories[0], SharedInterests) else model.select_experts(retrieved.experts)


class WithItemDistributions(WithMemory):
    """A model whose experts stand for items."""

    item_distribution: ItemDistribution | None

    @torch.no_grad()
    def item_log_probabilities(self, experts: Tensor) -> Tensor | None:
        return (
            self.item_distribution.log_probabilities(self, experts)
            if self.item_distribution is not None and self.retrieves
            else None
        )
