"""The contract every model keeps: what training, evaluation, bench and app use. They never ask which model they hold."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeGuard, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.batches import Batch, Places, SeenItems, batch_mean
from elastic_core.core.config import ModelConfig
from elastic_core.core.histories import Catalog, Dataset
from elastic_core.core.layers import EventEmbedding, item_table
from elastic_core.core.registry import MODEL_MODULES, Registry
from elastic_core.errors import InputError

# --- what one retrieval from an interest memory found, and the penalty that keeps retrievals spread over it ----------


LEAST_VOTES = 1e-6  # of all votes: what an expert counts that nobody voted for, when a history asks for fewer than k


class VoteTally(NamedTuple):
    """Which experts every event voted for, best first, and with what part of all votes: both `[B, N, m]`; padding has none.
    Filled by a memory that events vote for (slots/voting.py)."""

    experts: Tensor
    votes: Tensor
    mean_vote_share: Tensor | None = None  # every expert's part of everybody's votes, [K]

    def total_shares(self, size: int) -> Tensor:
        """Every expert's part of all votes, `[B, size]`."""
        votes = self.votes.flatten(1)
        return votes.new_zeros(len(votes), size).scatter_add(1, self.experts.flatten(1), votes)

    def excess_shares(self, votes: Tensor) -> Tensor:
        """By how much `votes [B, K]` exceed everybody's: what experts are chosen by."""
        return votes if self.mean_vote_share is None else excess_votes(votes, self.mean_vote_share)


def excess_votes(votes: Tensor, mean_vote_share: Tensor) -> Tensor:
    """By how much parts of a person's votes exceed those of everybody's; who has next to no vote comes after all others."""
    return torch.where(votes > 2 * LEAST_VOTES, votes - mean_vote_share, votes / LEAST_VOTES - 4)


class Retrieved(NamedTuple):
    """What one retrieval found, best first."""

    interests: Tensor  # [B, k, d] gated experts, the P of Eq. 2
    experts: Tensor  # [B, k] their numbers, row · n_subkeys + column
    scores: Tensor  # [B, k]
    gates: Tensor  # [B, k]
    halves: Tensor  # [B, 2, n_subkeys] every sub-key's score
    query: Tensor  # [B, d] after normalisation
    raw: Tensor  # [B, d] before it
    ballots: VoteTally | None = None  # where events elect the experts
    before: "Retrieved | None" = None  # what was found before somebody took experts away
    turned: Tensor | None = None  # [B, k] by which factor somebody turned each expert up; the model knows what to multiply

    @property
    def votes(self) -> Tensor | None:
        """Every expert's part of all votes `[B, K]`, where events elect the experts: for memories small enough to be drawn."""
        return None if self.ballots is None else self.ballots.total_shares(self.halves.shape[-1] ** 2)

    @property
    def all_scores(self) -> Tensor:
        """Every expert's score `[B, K]`, what it is chosen by: the sum of its halves, or how much its votes exceed the usual."""
        if self.ballots is not None:
            return self.ballots.excess_shares(self.ballots.total_shares(self.halves.shape[-1] ** 2))
        return (self.halves[:, 0, :, None] + self.halves[:, 1, None, :]).flatten(1)

    def select_ranks(self, ranks: Tensor) -> "Retrieved":
        """Only the experts at these ranks, `[r]` for all or `[B, r]`, for what-if questions."""
        rows = torch.arange(len(self.experts))[:, None]
        names = ("interests", "experts", "scores", "gates", "turned")
        return self._replace(**{name: old[rows, ranks] for name in names if (old := getattr(self, name)) is not None})


def balance_penalty(retrieved: Retrieved) -> Tensor:
    """How far the batch's mean use of the memory is from even: mean of log(size) - entropy, >= 0; 0 where nothing is retrieved.

    Of each set of sub-keys (`halves [B, 2, n_subkeys]`): a marginal-entropy term, it spreads people over the memory and leaves
    each person's choice sharp.
    """
    if retrieved.halves.shape[-1] == 0:
        return retrieved.halves.new_zeros(())
    use = batch_mean(retrieved.halves.softmax(-1))
    return (use * (use.clamp_min(1e-12).log() + math.log(use.shape[-1]))).sum(-1).mean()


Edit = Callable[[Retrieved], Retrieved]  # what somebody changes in a retrieval before it is used


# --- the contract ------------------------------------------------------------------------------------------------------


class Mixture(NamedTuple):
    """States of T targets that are mixtures, not packed into one tensor: that would be three more passes over T·P·d numbers."""

    vectors: Tensor  # [T, P, d]
    shares: Tensor  # [T, P] logarithms


class Encoded(NamedTuple):
    """States `[B, N, D]` (D: what the scorer reads, mostly d; of a batch with targets a model may leave out columns before every
    target, or give the mixtures of the targets alone), and named auxiliary losses, not yet weighted
    (`Recommender.auxiliary_weights`): scalars of the batch, and sums over its targets, which are then divided as the loss is."""

    states: Tensor | Mixture
    auxiliary: Mapping[str, Tensor] = {}
    summed: Mapping[str, Tensor] = {}

    def gather_targets(self, places: Places, columns: int) -> Tensor | Mixture:
        """The states of the targets of a batch of so many columns."""
        return self.states if isinstance(self.states, Mixture) else places.gather_targets(self.states, columns)


class PairwiseScorer(Protocol):
    """Logits that are no inner products with a table: a state and an item are looked at together."""

    def score_items(self, states: Tensor, items: Tensor) -> Tensor:
        """States `[M, D]`, each against the same items `[C]` → `[M, C]`."""
        ...

    def score_own_item(self, states: Tensor, items: Tensor) -> Tensor:
        """Every state against its own item: `[M, D]`, `[M]` → `[M]`."""
        ...


class Scorer(NamedTuple):
    """From a state to scores of items (Eq. 8): one table for the loss and for ranking, learned or composed, and a bias.

    With `parts` a state is a mixture: so many vectors of width d, then the logarithms of their shares, D = parts · (d + 1).
    Each vector has a softmax over all items of its own, and a score is the logarithm of the mixed probability. With `pairs`
    they give the logits, of states of any width, and the bias is theirs; the table then says only what items there are.
    """

    table: Tensor  # [n_items + 1, d]; row 0 is padding
    bias: Tensor | None = None  # [n_items + 1]
    parts: int = 0  # 0: a state is one vector
    repeat_bias: Tensor | None = None  # what having been met adds to every logit (`ModelConfig.repeat_bias`), a number
    repeat_counts: bool = False  # … more for each time (`ModelConfig.repeat_counts`)
    pairs: PairwiseScorer | None = None  # without `parts`

    @classmethod
    def from_table(cls, items: Any, repeat_bias: Tensor | None = None, repeat_counts: bool = False) -> Self:
        """Scores by an item table, however it is kept."""
        return cls(items.weight, repeat_bias=repeat_bias, repeat_counts=repeat_counts)

    def item_rows(self, items: Tensor) -> Tensor:
        """Items `[...]` → their rows of the table `[..., d]`."""
        return functional.embedding(items, self.table)

    def __call__(self, states: Tensor, seen: SeenItems | None = None) -> Tensor:
        """States `[..., D]` → `[..., n_items + 1]`; column 0 means nothing. For `[M, D]`, with what was `seen` counted: without,
        items are scored as if all were new."""
        extra = None
        if seen is not None and self.repeat_bias is not None:
            extra = self.repeat_bias * seen._replace(counted=self.repeat_counts).seen_mask(self.table.shape[0] - 1)
        if not self.parts:
            return self.logits(states) if extra is None else self.logits(states) + extra
        vectors, shares = self.split_mixture(states)
        logits = self.logits(vectors) if extra is None else self.logits(vectors) + extra.unsqueeze(-2)
        mixed = (logits[..., 1:].log_softmax(-1) + shares.unsqueeze(-1)).logsumexp(-2)
        return functional.pad(mixed, (1, 0), value=-torch.inf)

    def split_mixture(self, states: Tensor | Mixture) -> tuple[Tensor, Tensor]:
        """States `[..., D]` → vectors `[..., P, d]` and the logarithms of their shares `[..., P]`; P is 1 without `parts`."""
        if isinstance(states, Mixture):
            return states
        if not self.parts:
            return states.unsqueeze(-2), states.new_zeros(*states.shape[:-1], 1)
        return states[..., : -self.parts].unflatten(-1, (self.parts, -1)), states[..., -self.parts :]

    def logits(self, vectors: Tensor) -> Tensor:
        """Vectors `[..., d]` against every item → `[..., n_items + 1]`."""
        if self.pairs is not None:
            return self.score_items(vectors, torch.arange(len(self.table), device=vectors.device))
        return functional.linear(vectors, self.table, self.bias)

    def score_items(self, vectors: Tensor, items: Tensor) -> Tensor:
        """Vectors `[..., d]` against some items `[M]` → logits `[..., M]`."""
        if self.pairs is not None:
            return self.pairs.score_items(vectors.flatten(0, -2), items).view(*vectors.shape[:-1], -1)
        return functional.linear(vectors, self.item_rows(items), None if self.bias is None else self.bias[items])

    def score_own_item(self, vectors: Tensor, items: Tensor) -> Tensor:
        """Every vector against its own item: `[..., P, d]`, `[...]` → logits `[..., P]`."""
        if self.pairs is not None:
            return self.pairs.score_own_item(vectors.flatten(0, -2), items.flatten()).view(*items.shape, 1)
        logits = (vectors * self.item_rows(items).unsqueeze(-2)).sum(-1)
        return logits if self.bias is None else logits + self.bias[items].unsqueeze(-1)


REACH = 30.0  # nats per unit of the learned number
Judge = Callable[[Batch], Tensor]


@dataclass(frozen=True)
class Variant:
    """A system under a name people can choose; `settings` make it different from its model's defaults."""

    label: str
    settings: Mapping[str, Any]
    about: str
    objective: str = ""  # if not the model's own choice
    model: str = ""  # filled in by who lists them


class Recommender(nn.Module):
    """A trained model defines `forward`, `last_state` and `events`, or a `scorer` of its own; a baseline, `fit` and `score`.

    Its class may name an `objective` (what it learns from unless told otherwise) and bench `forms` of itself.
    """

    objective: ClassVar[str] = ""  # its own choice; empty: it needs no training
    forms: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # systems the bench times apart: name → settings; empty: itself
    variants: ClassVar[tuple[Variant, ...]] = ()  # systems people can choose; empty: itself
    causal: bool = False  # the state at t depends on the events up to t (and on what `Batch.retrieval_items` holds) only
    reads_times: bool = False  # reads `Batch.times`: it is not trained on data without; a batch without is read as usual ones
    masks: bool = False  # has an input (item n_items + 1) that asks for an event: the next one is asked with it
    retrieves: bool = False  # has an interest memory, and reads `Batch.retrieval_items`: see `RetrievingModel`
    traces: bool = False  # can say how it read a history: see `TracingModel`
    streams: bool = False  # what is kept of people takes one event at a time and equals a batch pass: see `StreamingModel`
    events: EventEmbedding

    def __init__(self, config: ModelConfig, catalog: Catalog) -> None:
        super().__init__()
        self.config, self.n_items, self.length = config, catalog.n_items, config.length
        self.repeat_weight = nn.Parameter(torch.zeros(())) if config.repeat_bias and self.objective else None
        own = config.output == "own" and self.objective
        self.output = item_table(self.n_items, config.width) if own else None

    @property
    def trained(self) -> bool:
        return bool(self.objective)

    def forward(self, batch: Batch) -> Encoded:
        """States at every position, for training."""
        raise TypeError(f"{self.config.name} is not trained")

    def last_state(self, batch: Batch) -> Tensor:
        """The state `[B, d]` that scores the next item; may skip what the last position does not need."""
        raise TypeError(f"{self.config.name} has no states")

    def prediction_batch(self, batch: Batch) -> Batch:
        """The batch whose last column `forward` scores the next item from; a model that `masks` puts the mask there."""
        return batch

    def scorer(self) -> Scorer:
        """What turns states into scores: the table that events are read by, without a mask, or one of its own (`model.output`).

        Composed tables are composed here, with gradient."""
        items = self.events.items if self.output is None else self.output
        scorer = Scorer.from_table(items, self.repeat_bias, self.config.repeat_counts)
        masks = len(scorer.table) - self.n_items - 1
        return scorer._replace(table=scorer.table[:-masks]) if masks else scorer

    @property
    def repeat_bias(self) -> Tensor | None:
        """For the scorer. Logits must be able to move by many nats while weights move by thousandths."""
        return None if self.repeat_weight is None else REACH * self.repeat_weight

    def prepare_states(self) -> tuple[Judge, Scorer]:
        """For a series of judgements: does once what each of them would repeat, and returns what gives the states `[B, D]` that
        score the next item, and their scorer."""
        return self.last_state, self.scorer()

    def prepare_scores(self) -> Judge:
        """The same, as what gives `[B, n_items + 1]`."""
        if not self.trained:
            return self.score
        state, scorer = self.prepare_states()
        return lambda batch: scorer(state(batch), SeenItems.from_batch(batch))

    def score(self, batch: Batch) -> Tensor:
        """Scores of every item as the next one, `[B, n_items + 1]`; nothing is prepared for one batch."""
        if not self.trained:
            raise TypeError(f"{self.config.name} neither learns nor scores")
        return self.scorer()(self.last_state(batch), SeenItems.from_batch(batch))

    def auxiliary_weights(self) -> dict[str, float]:
        """The weight of every auxiliary loss by its name, from the model's own settings."""
        return {}

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """What the optimiser is given; a group may bring its own options."""
        return [{"params": list(self.parameters())}]

    def saved_per_event(self, columns: int) -> int:
        """About how many numbers a layer keeps of one of `columns` events for the backward pass, from above: what a training
        is priced with before its first step (scale/budget.py): blocks, and the scores and weights of every pair, N x N."""
        return self.saved_by_blocks() + 3 * self.config.heads * columns

    def saved_by_blocks(self) -> int:
        """The same without the pairs. Counted over the models of this package: 15 to 25 d."""
        return (16 + 4 * getattr(self.config, "expansion", 1)) * self.config.width

    def calibrate(self, batch: Batch, rate: float = 1.0) -> None:
        """Moves statistics that no gradient learns towards those of `batch`, histories as they are served; 1.0 = exactly."""

    def fit(self, dataset: Any) -> None:
        """Training-free models learn here, from train events only. They keep nothing in their state: opening a run fits again."""


# --- what only some can do; a class that can may still say no for a setting, so ask `can_…` -----------------------------


class RetrievingModel(Recommender):
    """Has a memory of `n_experts` experts that it retrieves from."""

    n_experts: int = 0

    def last_state(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        """As every model's; `edit` changes what was retrieved before it is used, for what-if questions."""
        raise NotImplementedError

    def retrieve(self, batch: Batch) -> Retrieved:
        """The first retrieval for what `batch.retrieval_items` holds."""
        raise NotImplementedError

    def expert_values(self) -> Tensor:
        """The experts `[K, d]` of the (first) memory."""
        raise NotImplementedError

    def select_experts(self, experts: Tensor) -> Tensor:
        """Some of them: numbers `[...]` → `[..., d]`, at no more cost than these."""
        return self.expert_values()[experts]

    def item_log_probabilities(self, experts: Tensor) -> Tensor | None:
        """What these experts `[E]` would suggest by themselves: log-probabilities `[E, n_items + 1]`, column 0 means nothing.

        None where no loss asks experts to stand for items."""
        return None

    def attribute_items(self, batch: Batch, items: Tensor, edit: Edit | None = None) -> "Attribution":
        """Which experts suggest `items [B, M]` as the next ones. Raises InputError where the model's experts do not predict."""
        raise InputError(f"{self.config.name} mixes its experts into one vector, so no expert suggests an item by itself")


class StreamingModel(Recommender):
    """Can be followed event by event (core/stream.py)."""

    def open_stream(self, room: int) -> Any:
        raise NotImplementedError


@runtime_checkable
class BeginsWithItems(Protocol):
    """Can begin with what another model learned of the same items."""

    def begin_with_items(self, table: Tensor) -> None:
        """`table [n_items + 1, d]` is what that model scores items by, row 0 padding. Raises InputError where it does not fit."""
        ...


class Trace(NamedTuple):
    """What happened inside, for people: one entry per layer."""

    retrieved: list[Retrieved]
    reading: list[Tensor]  # [B, H, k, N] how each interest aggregates the events
    slots: list[Tensor]  # [B, H, k] how the last event reads the interests
    strength: Tensor | None = None  # [B, k, N] how strongly each event was written to each interest, where it is written once

    @property
    def slot_weights(self) -> Tensor:
        """How much of every event each interest took, `[B, k, N]`: as it was written, or as the first layer reads it."""
        return self.reading[0].mean(1) if self.strength is None else self.strength


class TracingModel(Recommender):
    """Can say how it read a history."""

    def trace_reading(self, batch: Batch) -> Trace:
        raise NotImplementedError

    def slot_weights(self, batch: Batch, retrieved: Retrieved) -> Tensor:
        """`trace_reading(batch).slot_weights` alone, for what `retrieve(batch)` found: several times cheaper without the rest."""
        return self.trace_reading(batch).slot_weights


class Attribution(NamedTuple):
    """Who suggests M items. P is k, or k + 1 where a part of the prediction belongs to no expert; it is the last then."""

    experts: Tensor  # [B, k]
    parts: Tensor  # [B, M, P] shares of an item's probability, each row adds up to 1
    held: Tensor  # [B, k, N] how much of every event an expert's slot still holds


# a new one is one file in `peers/`, or in a folder of your own (plugins.py)
MODELS: Registry[type[Recommender]] = Registry("model", MODEL_MODULES)
register, model_class = MODELS.register, MODELS.find_class


def check_data(model: Recommender, dataset: Dataset) -> None:
    """Raises InputError if the model needs to learn from something that the data do not have."""
    if model.reads_times and not dataset.has_times:
        raise InputError(f"{model.config.name} reads when events happened, and {dataset.label} has no times")


def can_retrieve(model: Recommender) -> TypeGuard[RetrievingModel]:
    return isinstance(model, RetrievingModel) and model.retrieves


def as_retrieving_model(model: Recommender) -> RetrievingModel:
    """The model as one that retrieves. Raises InputError if it has no memory."""
    if not can_retrieve(model):
        raise InputError(f"{model.config.name} in this configuration has no interest memory")
    return model


def as_tracing_model(model: Recommender) -> TracingModel:
    """The model as one that can say how it read. Raises InputError if it cannot."""
    if not isinstance(model, TracingModel) or not model.traces:
        raise InputError(f"{model.config.name} does not say how it read a history")
    return model


def can_stream(model: Recommender) -> TypeGuard[StreamingModel]:
    return isinstance(model, StreamingModel) and model.streams
