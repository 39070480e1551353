"""The rival for meaning: latents of a top-k sparse autoencoder, fitted to a trained model's states afterwards.

Experts belong to the model and were learned with it. The published way to get units that mean something out of a model that has
none is to fit them to its states (for sequential recommenders arXiv 2507.12202, 2511.18024, 2601.11182), here as in Gao et al.
(arXiv 2406.04093): z = TopK(ReLU(W (x - b))), x̂ = D z + b, the squared error against what a constant would leave, and a share for
latents that have not spoken for long, asked to explain what the others left.

`Latents` is the fitted model *as one that retrieves*: its k active latents are the experts of a person, their activations the
gates, the columns of D the values. What was not explained stays in the state, so without an edit every score is the model's own,
and gauges, labels, removal and knobs (memory/gauges.py, services/) ask both rivals in the same words.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.batches import Batch, reading_batch
from elastic_core.core.contract import Edit, Retrieved, Retrieves, Scorer
from elastic_core.core.elastic import MemoryConfig
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.scale import eager
from elastic_core.slots.voting import Ballots

PREFIXES = 24  # of every person's training history
SILENT = 100  # steps without a word, after which a latent counts as dead
REVIVE, RATE, BATCH = 1 / 32, 2e-3, 1_024


class Fit(NamedTuple):
    """How well the latents tell the states: parts of the variance, on people they were fitted to and on held-out ones."""

    explained: float
    held_out: float
    used: float  # of the latents, by anybody
    states: int


class Dictionary(nn.Module):
    """States `[M, d]` ↔ activations `[M, K]`, k of which are not zero."""

    def __init__(self, width: int, size: int, k: int) -> None:
        super().__init__()
        self.k = k
        self.bias, self.scale = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.ones(()), requires_grad=False)
        self.directions = nn.Parameter(functional.normalize(torch.randn(size, width), dim=1))  # Dᵀ, rows of length 1
        self.encoder = nn.Parameter(self.directions.detach().clone())
        self.threshold = nn.Parameter(torch.zeros(size))

    def activations(self, x: Tensor) -> Tensor:
        """Before the k best are taken, `[M, K]`, none below zero."""
        return ((x / self.scale - self.bias) @ self.encoder.T + self.threshold).relu()

    def sparse(self, activations: Tensor) -> Tensor:
        best = activations.topk(self.k, 1)
        return torch.zeros_like(activations).scatter(1, best.indices, best.values)

    def forward(self, z: Tensor) -> Tensor:
        """Activations → states, in the states' own units."""
        return (z @ self.directions + self.bias) * self.scale


class Latents(Retrieves):
    """A trained model whose state is told by k of `side²` latents. Raises InputError where a state is a mixture of several,
    or no vector."""

    retrieves = True
    causal = False
    config: MemoryConfig

    def __init__(self, model: Recommender, dataset: Dataset, side: int = 16, k: int = 8) -> None:
        if not model.trained or model.scorer().parts or model.scorer().pairs is not None:
            raise InputError(f"{model.config.name} has no single state that an autoencoder could tell")
        width = model.scorer().table.shape[1]
        config = MemoryConfig(side=side, k=k, length=model.config.length, width=width)
        super().__init__(config, dataset.catalog)
        self.objective = model.objective  # type: ignore[misc]
        self.model, self.n_experts = model.eval().requires_grad_(False), side * side
        self.dictionary = Dictionary(width, self.n_experts, k)

    def last_state(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        state = self.model.last_state(batch)
        if edit is None:
            return state
        before = self._found(state)
        after = edit(before)
        told = after.interests if after.turned is None else after.interests * after.turned.unsqueeze(-1)
        return state + (told.sum(1) - before.interests.sum(1)) * self.dictionary.scale

    def scorer(self) -> Scorer:
        return self.model.scorer()

    def retrieve(self, batch: Batch) -> Retrieved:
        return self._found(self.model.last_state(batch))

    def expert_values(self) -> Tensor:
        return self.dictionary.directions

    def _found(self, state: Tensor) -> Retrieved:
        activations = self.dictionary.activations(state)
        gates, latents = activations.topk(self.dictionary.k, 1)
        none = state.new_zeros(len(state), 2, math.isqrt(self.n_experts))
        shares = activations / activations.sum(1, keepdim=True).clamp_min(1e-9)
        interests = self.dictionary.directions[latents] * gates.unsqueeze(-1)
        every = torch.arange(self.n_experts, device=state.device).expand(len(state), 1, -1)
        return Retrieved(interests, latents, gates, gates, none, state, state, ballots=Ballots(every, shares.unsqueeze(1)))


def fit_latents(
    model: Recommender, dataset: Dataset, side: int = 16, k: int = 8, epochs: int = 30, seed: int = 0
) -> tuple[Latents, Fit]:
    """Latents of the model's states after random prefixes of training histories; a tenth of the people is held out to judge."""
    torch.manual_seed(seed)
    rng, made = np.random.default_rng(seed), Latents(model, dataset, side, k)
    people = rng.permutation(dataset.histories.n_users)
    cut = max(1, len(people) // 10)
    told, unseen = _states(model, dataset, people[cut:], rng), _states(model, dataset, people[:cut], rng)
    dictionary = made.dictionary
    with torch.no_grad():
        dictionary.scale.copy_((told - told.mean(0)).square().sum(1).mean().sqrt())
        dictionary.bias.copy_(told.mean(0) / dictionary.scale)
    _learn(dictionary, told, epochs, rng)
    with torch.no_grad():
        used = torch.stack([dictionary.sparse(dictionary.activations(x)).gt(0).any(0) for x in told.split(4_096)]).any(0)
    found = Fit(_explained(dictionary, told), _explained(dictionary, unseen), float(used.float().mean()), len(told))
    return made.eval(), found


@torch.inference_mode()
def _states(model: Recommender, dataset: Dataset, users: np.ndarray, rng: Generator) -> Tensor:
    """States after prefixes `[M, d]`, from the first event up to the end of training."""
    starts, lengths = dataset.histories.offsets[users], dataset.ends("train")[users] - dataset.histories.offsets[users]
    states = []
    for _ in range(PREFIXES):
        ends = starts + 1 + (rng.random(len(users)) * lengths).astype(np.int64).clip(0, np.maximum(lengths - 1, 0))
        order = np.argsort(ends - starts, kind="stable")
        for rows in np.array_split(order, max(1, len(order) // 256)):
            states.append(model.last_state(reading_batch(dataset, users[rows], ends[rows], model.length)))
    return torch.cat(states).float().clone()


def _learn(dictionary: Dictionary, states: Tensor, epochs: int, rng: Generator) -> None:
    optimizer = eager.KINDS["adam"]([p for p in dictionary.parameters() if p.requires_grad], lr=RATE)
    silent = torch.zeros(len(dictionary.directions), dtype=torch.long)
    for _ in range(epochs):
        for rows in np.array_split(rng.permutation(len(states)), max(1, len(states) // BATCH)):
            x = states[torch.from_numpy(rows)]
            activations = dictionary.activations(x)
            z = dictionary.sparse(activations)
            left = (x - dictionary(z)) / dictionary.scale
            loss = left.square().sum(1).mean()
            silent = torch.where(z.detach().gt(0).any(0), 0, silent + 1)
            dead = silent > SILENT
            if dead.any():  # what the silent ones would say of what is left
                few = torch.where(dead, activations, 0.0)
                said = dictionary.sparse(few) @ dictionary.directions
                loss = loss + REVIVE * (left.detach() - said).square().sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                dictionary.directions.copy_(functional.normalize(dictionary.directions, dim=1))


@torch.no_grad()
def _explained(dictionary: Dictionary, states: Tensor) -> float:
    told = torch.cat([dictionary(dictionary.sparse(dictionary.activations(x))) for x in states.split(4_096)])
    return float(1 - (states - told).square().sum() / (states - states.mean(0)).square().sum().clamp_min(1e-12))
