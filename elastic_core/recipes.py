"""Complete configurations, as functions: what `train --recipe NAME` uses and `--set section.key=value` changes."""

import dataclasses
from collections.abc import Callable
from typing import Any

import elastic_core.models as models
from elastic_core.config import DataConfig, ModelConfig, PlantedConfig, RunConfig, TrainConfig
from elastic_core.errors import InputError


def toy(model: str = "elastic") -> RunConfig:
    """A planted world of 600 people, learned in well under a minute on one core: for tests and first looks."""
    planted = PlantedConfig(users=600, items=200, interests=8, mean_length=40, max_length=80)
    shape = {"length": 32, "width": 32, "layers": 1, "dropout": 0.1}
    return RunConfig(
        data=DataConfig(source="planted", planted=planted),
        model=_model(model, {**shape, "side": 8, "k": 4}),
        train=_train(model, epochs=12, patience=4, batch=64, window=16),
    )


def planted(model: str = "elastic") -> RunConfig:
    """The planted world at its default size: 2,000 people, 16 interests, truth known."""
    return RunConfig(
        data=DataConfig(source="planted"),
        model=_model(model, {"length": 64, "width": 64, "layers": 2, "dropout": 0.1, "side": 8, "k": 8}),
        train=_train(model, epochs=60, patience=6, batch=64, window=32, average=0.99),
    )


def ml_100k(model: str = "elastic") -> RunConfig:
    """MovieLens-100K: 943 people, 1,349 films. Each model as it did best on validation (checkpoints/LOG.md)."""
    shape = {"length": 200, "width": 64, "layers": 2}
    if model == "sasrec":
        return RunConfig(
            data=DataConfig(source="ml-100k"),
            model=_model(model, {**shape, "dropout": 0.2}),
            train=_train(model, epochs=60, patience=15, batch=64),
        )
    return RunConfig(
        data=DataConfig(source="ml-100k"),
        model=_model(model, {**shape, "dropout": 0.3, "local": 16}),
        train=_train(model, epochs=60, patience=10, batch=32, window=50, average=0.99, optimizer="adamw", weight_decay=0.5),
    )


def ml_1m(model: str = "elastic") -> RunConfig:
    """MovieLens-1M: 6,040 people, 3,416 films, full softmax. Made for a GPU."""
    return RunConfig(
        data=DataConfig(source="ml-1m"),
        model=_model(model, {"length": 200, "width": 64, "layers": 2, "dropout": 0.2}),
        train=_train(model, epochs=200, patience=10, batch=128, window=100),
    )


def ml_1m_cpu(model: str = "elastic") -> RunConfig:
    """MovieLens-1M in 70 minutes on one core: sampled softmax; the same settings for every model, tuned for none."""
    return RunConfig(
        data=DataConfig(source="ml-1m"),
        model=_model(model, {"length": 200, "width": 64, "layers": 2, "dropout": 0.2, "local": 16}),
        train=_train(model, epochs=100, minutes=70.0, batch=64, window=100, loss="sampled", negatives=512, average=0.99),
    )


RECIPES: dict[str, Callable[[str], RunConfig]] = {
    "toy": toy,
    "planted": planted,
    "ml-100k": ml_100k,
    "ml-1m-cpu": ml_1m_cpu,
    "ml-1m": ml_1m,
}


def recipe(name: str, model: str = "elastic") -> RunConfig:
    """A recipe by name. Raises InputError listing the known ones."""
    if name not in RECIPES:
        raise InputError(f"unknown recipe {name!r}; known are {', '.join(RECIPES)}")
    return RECIPES[name](model)


def _model(name: str, settings: dict[str, Any]) -> ModelConfig:
    """The model's settings, as far as it has them: one recipe serves every model. One that needs no training keeps its own."""
    if name not in models.names():
        raise InputError(f"unknown model {name!r}; known are {', '.join(models.names())}")
    kind = ModelConfig.known[name]
    if not models.model_class(name).objectives:
        return kind()
    known = {f.name for f in dataclasses.fields(kind)}
    return kind(**{key: value for key, value in settings.items() if key in known})


def _train(name: str, **settings: Any) -> TrainConfig:
    """The model's own default objective; a load-balance term where it retrieves."""
    objectives = models.model_class(name).objectives
    balance = 0.3 if name == "elastic" else 0.0
    return TrainConfig(objective=objectives[0] if objectives else "all", balance=balance, **settings)
