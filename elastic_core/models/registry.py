"""The contract every model keeps, and the list of models. A new model is one file here with `@register`."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

from torch import Tensor, nn

from elastic_core.config import ModelConfig, Objective
from elastic_core.data.batches import Batch
from elastic_core.errors import InputError


class Encoded(NamedTuple):
    """States `[B, N, d]` and a scalar to add to the loss (load balance; 0.0 for most models)."""

    states: Tensor
    penalty: Tensor | float = 0.0


class Recommender(nn.Module):
    """What the trainer, the evaluation, the bench and the app use; they never ask which model they hold.

    A trainable model defines `forward`, `last_state` and `logits`; a floor defines `fit` and `score`.
    """

    causal: bool = False  # the state at t depends on the events up to t (and on what `Batch.recall` holds) only
    objectives: ClassVar[tuple[Objective, ...]] = ()  # what it may honestly learn from, the default first; empty = training-free
    retrieves: bool = False  # has an interest memory: `retrieve(batch)` answers
    streams: bool = False  # a state of constant size takes one event at a time and equals a batch pass (streaming.py opens it)

    def __init__(self, config: ModelConfig, n_items: int) -> None:
        super().__init__()
        self.config, self.n_items, self.length = config, n_items, config.length

    def forward(self, batch: Batch) -> Encoded:
        """States at every position, for training."""
        raise TypeError(f"{self.config.name} is not trained")

    def last_state(self, batch: Batch) -> Tensor:
        """The state `[B, d]` that scores the next item; may skip what the last position does not need."""
        raise TypeError(f"{self.config.name} has no states")

    def logits(self, states: Tensor) -> Tensor:
        """States `[..., d]` → scores `[..., n_items + 1]`; column 0 is padding and means nothing."""
        raise TypeError(f"{self.config.name} has no states")

    def item_table(self) -> Tensor:
        """The table `[n_items + 1, d]` of the scores, for sampled softmax."""
        raise TypeError(f"{self.config.name} has no item table")

    def expert_values(self) -> Tensor:
        """The experts `[K, d]` of the (first) memory, for models that retrieve."""
        raise TypeError(f"{self.config.name} has no memory")

    def score(self, batch: Batch) -> Tensor:
        """Scores of every item as the next one, `[B, n_items + 1]`."""
        return self.logits(self.last_state(batch))

    def check(self, objective: str) -> None:
        """Raises InputError if this model, as configured, would see its own targets under `objective`."""
        if objective not in self.honest_objectives():
            able = ", ".join(self.honest_objectives()) or "none: it needs no training"
            raise InputError(f"{self.config.name} cannot learn from the objective {objective!r}; it can from: {able}")

    def honest_objectives(self) -> tuple[Objective, ...]:
        return self.objectives

    def fit(self, dataset: Any) -> None:
        """Training-free models learn here, from train events only. They keep nothing in their state: opening a run fits again."""


_models: dict[str, type[Recommender]] = {}
R = TypeVar("R", bound=type[Recommender])


def register(config: type[ModelConfig]) -> Callable[[R], R]:
    """Ties a model class to its settings. Raises ValueError if the name is taken."""

    def add(cls: R) -> R:
        if config.name in _models and _models[config.name].__qualname__ != cls.__qualname__:
            raise ValueError(f"a model named {config.name!r} exists already: {_models[config.name].__qualname__}")
        _models[config.name] = cls
        return cls

    return add


def build(config: ModelConfig, n_items: int) -> Recommender:
    """A fresh model. Raises InputError for an unknown name, listing the known ones."""
    if config.name not in _models:
        raise InputError(f"unknown model {config.name!r}; known are {', '.join(names())}")
    return _models[config.name](config, n_items)


def names() -> tuple[str, ...]:
    return tuple(sorted(_models))


def model_class(name: str) -> type[Recommender]:
    return _models[name]
