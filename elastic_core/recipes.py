"""Complete configurations, as functions: what `train --recipe NAME` uses and `--set section.key=value` changes."""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from elastic_core import models
from elastic_core.core import objective as objectives
from elastic_core.core.config import ModelConfig, ObjectiveConfig, TrainConfig
from elastic_core.core.histories import Dataset
from elastic_core.data.repeats import count_repeats, fitting_protocol
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig, PlantedConfig, RunConfig

Settings = TypeVar("Settings", ModelConfig, ObjectiveConfig)
Section = dict[str, Any]  # of a section, by name

# The grid every other model is tuned on (results/grid.py): how SASRec learns best, and how ELASTIC does.
PLAIN = ("train.batch=64", "train.patience=15")
AVERAGED = ("train.batch=32", "train.ema_decay=0.99", "train.optimizer=adamw", "train.weight_decay=0.5")
GRID: dict[str, tuple[str, ...]] = {
    "plain-0.2": (*PLAIN, "model.dropout=0.2"),
    "averaged-0.3": (*AVERAGED, "model.dropout=0.3"),
}
# By validation on MovieLens-100K (checkpoints/tuning.csv); every other model learns as the first point says.
CHOSEN = dict.fromkeys(
    "clustered din esasrec fpmc gru4rec hstu linformer lrurec mamba4rec reformer routing shan sma".split(), "averaged-0.3"
)
# What is tuned beside the registered models: name → the model, what is changed.
ALSO_TUNED: dict[str, tuple[str, tuple[str, ...]]] = {"elastic-slots-memory-none": ("elastic-slots", ("model.memory=none",))}
ALSO_CHOSEN = dict.fromkeys(ALSO_TUNED, "averaged-0.3")
OF_OUR_OWN: dict[str, Section] = {"elastic-slots": {"retrieval": "random"}}  # settings of the objective
SAMPLED: Section = {"loss": "sampled", "negatives": 512}
RATES = {"elastic-slots": 2e-3}


def toy(model: str = "elastic") -> RunConfig:
    """A planted world of 600 people, learned in well under a minute on one core: for tests and first looks."""
    planted = PlantedConfig(users=600, items=200, interests=8, mean_length=40, max_length=80)
    return RunConfig(
        data=DataConfig(source="planted", planted=planted),
        model=model_settings(model, length=32, width=32, layers=1, dropout=0.1, n_subkeys=8, k=4),
        objective=objective_settings(model, span=16),
        train=TrainConfig(epochs=12, patience=4, batch=64),
    )


def planted(model: str = "elastic") -> RunConfig:
    """The planted world at its default size: 2,000 people, 16 interests, truth known."""
    return _make_config(
        model, DataConfig(source="planted"), {"length": 64, "dropout": 0.1, "n_subkeys": 8, "k": 8}, {"span": 32},
        {"epochs": 60, "patience": 6, "batch": 64, "ema_decay": 0.99},
    )  # fmt: skip


def planted_64(model: str) -> RunConfig:
    """A planted world with many more interests than anybody has experts: 64, of which a person has 4; 1,280 items."""
    few, world = planted(model), PlantedConfig(items=1_280, interests=64, interests_per_user=4)
    settings = model_settings(model, length=64, width=64, layers=2, dropout=0.1, n_subkeys=16, k=4)
    judge = replace(few.train, valid_protocol="full-seen")  # 46% of the next items were met before
    return replace(few, data=DataConfig(source="planted", planted=world), model=settings, train=judge)


def planted_long(model: str) -> RunConfig:
    """A planted world of long histories, 1,200 events each, whose interests fall silent for hundreds: what is remembered?"""
    world = PlantedConfig(
        users=500, items=320, interests=16, interests_per_user=8, mean_length=1_200, max_length=1_200, drift=0.0, noise=0.05,
        determinism=0.9, dwell=0.94,
    )  # fmt: skip
    return _make_config(
        model, DataConfig(source="planted", planted=world), {"length": 1_024, "dropout": 0.1, "n_subkeys": 8, "k": 8},
        {"span": 512}, {"epochs": 40, "patience": 10, "batch": 16, "valid_protocol": "full-seen"},
    )  # fmt: skip


def ml_100k(model: str) -> RunConfig:
    """MovieLens-100K: 943 people, 1,349 films. Each model as it did best on validation (checkpoints/LOG.md)."""
    if models.model_class(model).objective and model not in ("sasrec", "elastic", "elastic-slots"):
        return grid_point(model, CHOSEN.get(model, next(iter(GRID))))
    shape: Section = {"length": 200, "dropout": 0.3, "conv_width": 16}
    train: Section = {"epochs": 200, "patience": 10, "batch": 32, "ema_decay": 0.99, "optimizer": "adamw", "weight_decay": 0.5}
    if model == "sasrec":
        shape, train = {"length": 200, "dropout": 0.2}, {"epochs": 200, "patience": 15, "batch": 64}
    return _make_config(model, DataConfig(source="ml-100k"), shape, {"span": 50}, train)


def grid_point(model: str, point: str) -> RunConfig:
    """MovieLens-100K, learned as one point of the grid says; `model` may be one of `ALSO_TUNED`.

    Raises InputError for an unknown point or model, and for one that learns nothing."""
    if point not in GRID:
        raise InputError(f"unknown point {point!r} of the grid; known are {', '.join(GRID)}")
    model, changes = ALSO_TUNED.get(model, (model, ()))
    if not models.model_class(model).objective:
        raise InputError(f"{model} learns nothing by gradient, so there is nothing to tune")
    plain: Section = {"epochs": 200, "learning_rate": 1e-3}
    return _make_config(model, DataConfig(source="ml-100k"), {"length": 200}, {"span": 50}, plain).override(
        *GRID[point], *changes
    )


def ml_1m(model: str) -> RunConfig:
    """MovieLens-1M: 6,040 people, 3,416 films, full softmax. Made for a GPU."""
    return RunConfig(
        data=DataConfig(source="ml-1m"),
        model=model_settings(model, length=200, width=64, layers=2, dropout=0.2),
        objective=objective_settings(model, span=100),
        train=TrainConfig(epochs=200, patience=10, batch=128),
    )


def ml_1m_cpu(model: str = "elastic") -> RunConfig:
    """MovieLens-1M in 20 minutes of one core: sampled softmax; the same settings for every model, tuned for none."""
    return _make_config(
        model, DataConfig(source="ml-1m"), {"length": 200, "dropout": 0.2, **_local_convolution(model)}, {"span": 100, **SAMPLED},
        {"epochs": 100, "minutes": 20.0, "clock": "processor", "batch": 64, "ema_decay": 0.99},
    )  # fmt: skip


def ml_1m_converged(model: str) -> RunConfig:
    """MovieLens-1M until validation stands still: softmax over all films; otherwise as `ml_1m_cpu`, hours of a core for all."""
    timed = ml_1m_cpu(model)
    train = replace(timed.train, epochs=200, minutes=0.0, patience=10)
    return replace(timed, objective=objective_settings(model, span=100, **OF_OUR_OWN.get(model, {})), train=train)


def video_games(model: str) -> RunConfig:
    """Amazon Video Games: 24,303 people, 10,672 games, half of the people with at most 7. The same settings for every model."""
    shape, taught = {"length": 50, "dropout": 0.5, **_local_convolution(model)}, {"span": 25, **SAMPLED}
    train: Section = {"epochs": 200, "patience": 10, "batch": 128, "ema_decay": 0.99}
    return _make_config(model, DataConfig(source="amazon-video-games"), shape, taught, train)


def groceries(model: str) -> RunConfig:
    """A year of groceries in 20 minutes of one core: 2,404 households, 1,323 products. The same settings for every model: seen
    products stay among the candidates, and a learned number says so, since households buy most things again."""
    shape: Section = {"length": 200, "dropout": 0.2, "repeat_bias": True, **_local_convolution(model)}
    train: Section = {"epochs": 100, "minutes": 20.0, "clock": "processor", "patience": 10, "batch": 64, "ema_decay": 0.99}
    return _make_config(
        model, DataConfig(source="groceries"), shape, {"span": 100, **SAMPLED}, {**train, "valid_protocol": "full-seen"}
    )  # fmt: skip


def checkins(model: str) -> RunConfig:
    """Check-ins in New York in 8 minutes of one core: 1,083 people, 5,135 places. As groceries, but the learned number counts how
    often a place was seen, since three in four check-ins return to one."""
    shape: Section = {"length": 200, "dropout": 0.2, "repeat_bias": True, "repeat_counts": True, **_local_convolution(model)}
    train: Section = {"epochs": 100, "minutes": 8.0, "clock": "processor", "patience": 10, "batch": 64, "ema_decay": 0.99}
    return _make_config(
        model, DataConfig(source="checkins-nyc"), shape, {"span": 100, **SAMPLED}, {**train, "valid_protocol": "full-seen"}
    )  # fmt: skip


# What a study of anybody's clicks trains (study/), first what a small budget takes up: by label (labels.py) the model, its
# settings and what it is called there.
STUDIED: dict[str, tuple[str, dict[str, Any], str]] = {
    "elastic-slots": ("elastic-slots", {"conv_width": 16}, "Interest slots"),
    "elastic-slots (memory-none)": ("elastic-slots", {"conv_width": 16, "memory": "none"}, "Interest slots that all share"),
    "sasrec (local)": ("sasrec", {"conv_width": 16}, "SASRec with convolution"),
    "elastic": ("elastic", {"conv_width": 16}, "ELASTIC"),
    "elastic (memory-none)": ("elastic", {"conv_width": 16, "memory": "none"}, "ELASTIC without memory"),
    "sasrec": ("sasrec", {}, "SASRec"),
    "gru4rec": ("gru4rec", {}, "GRU4Rec"),
    "lrurec": ("lrurec", {}, "LRURec"),
    "hstu": ("hstu", {}, "HSTU"),
}
# Personal experts against the same number of shared ones, all else alike.
MEMORIES = (("elastic-slots", "elastic-slots (memory-none)"), ("elastic", "elastic (memory-none)"))


def settings_for(name: str, dataset: Dataset, minutes: float, seed: int, device: str) -> RunConfig:
    """A model, or a system by its label in `STUDIED`, with settings that follow from the size of the data, as in a study. Where
    people often return to what they know, a learned number says so.

    Raises InputError for an unknown model, and for data that nobody can load again."""
    if dataset.config is None:
        raise InputError(f"{dataset.label} were not loaded by elastic_core.load, so no run could find them again")
    valid_protocol, learned = repeat_settings(dataset)
    sizes = (usual_length(dataset), dataset.catalog.n_items, dataset.histories.n_users)
    config = study_recipe(name, dataset.config, *sizes, valid_protocol, learned)
    return replace(config, train=replace(config.train, minutes=minutes, seed=seed, device=device))


def repeat_settings(dataset: Dataset) -> tuple[Any, Section]:
    """How validation ranks these data, and what a model learns besides where people often return to what they know."""
    again = count_repeats(dataset, "valid").share
    return fitting_protocol(dataset), {"repeat_bias": True} if again >= REPEATS else {}


def usual_length(dataset: Dataset) -> int:
    """Nine in ten people's whole history, in eights, from 16 to LONGEST."""
    usual = float(np.quantile(dataset.histories.lengths, 0.9))
    return int(min(LONGEST, max(16, 8 * math.ceil(usual / 8))))


def study_recipe(
    label: str, data: DataConfig, length: int, items: int, n_users: int, valid_protocol: Any, more: Section | None = None
) -> RunConfig:
    """One of `STUDIED`, or any model, on data of which so much is known; `length` events are read. The same settings for all,
    tuned for none, and `more` of the model."""
    model, settings, _ = STUDIED.get(label, (label, _local_convolution(label), ""))
    loss: Section = {"loss": "full"} if items <= FULL else SAMPLED
    batch = 64 if n_users >= 500 else 16
    shape: Section = {"length": length, "dropout": 0.2, "n_subkeys": 16, "k": 8, **settings, **(more or {})}
    return _make_config(
        model, data, shape, {"span": max(length // 2, 1), **loss},
        {
            "epochs": 200, "patience": 10, "batch": batch, "ema_decay": 0.99, "valid_protocol": valid_protocol,
            "valid_users": JUDGED,
        },
    )  # fmt: skip


LONGEST = 200  # events that are read, where histories are so long
REPEATS = 0.2  # of validation's targets, from which a learned number for seen items is worth having
FULL = 5_000  # items, up to which the exact softmax is worth its time
JUDGED = 2_000  # people whose validation chooses the epoch


def _make_config(model: str, data: DataConfig, shape: Section, taught: Section, train: Section) -> RunConfig:
    """A configuration with two layers, 64 wide, and with what a model of ours sets of its own."""
    rate: Section = {"learning_rate": RATES.get(model, 1e-3)}
    return RunConfig(
        data=data,
        model=model_settings(model, width=64, layers=2, **shape),
        objective=objective_settings(model, **taught, **OF_OUR_OWN.get(model, {})),
        train=TrainConfig(**rate | train),
    )


def _local_convolution(model: str) -> dict[str, Any]:
    """The convolution that is not SASRec's; models without one do not know the setting."""
    return {} if model == "sasrec" else {"conv_width": 16}


DEFAULT = "elastic"
PEER = "sasrec"  # what it is timed against
RECIPES: dict[str, Callable[[str], RunConfig]] = {
    "toy": toy,
    "planted": planted,
    "planted-64": planted_64,
    "planted-long": planted_long,
    "ml-100k": ml_100k,
    "ml-1m-cpu": ml_1m_cpu,
    "ml-1m-converged": ml_1m_converged,
    "ml-1m": ml_1m,
    "video-games": video_games,
    "groceries": groceries,
    "checkins-nyc": checkins,
}


def recipe(name: str, model: str = DEFAULT) -> RunConfig:
    """A recipe by name. Raises InputError listing the known ones."""
    if name not in RECIPES:
        raise InputError(f"unknown recipe {name!r}; known are {', '.join(RECIPES)}")
    return RECIPES[name](model)


def model_settings(name: str, **settings: Any) -> ModelConfig:
    """A model's settings, as far as it has them: one recipe serves every model. One that needs no training keeps its own."""
    trained = models.model_class(name).objective
    return _known_settings(ModelConfig.known[name], settings if trained else {})


def objective_settings(model: str, name: str = "", **settings: Any) -> ObjectiveConfig:
    """The settings of the objective `name`, or of the model's own choice, as far as it has them."""
    chosen = name or models.model_class(model).objective or objectives.objective_names()[0]
    return _known_settings(ObjectiveConfig.known[chosen], settings)


def _known_settings(kind: type[Settings], settings: dict[str, Any]) -> Settings:
    known = {f.name for f in fields(kind)}
    return kind(**{key: value for key, value in settings.items() if key in known})
