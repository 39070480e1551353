"""Complete configurations, as functions: what `train --recipe NAME` uses and `--set section.key=value` changes."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from elastic_core import models
from elastic_core.core import objective as objectives
from elastic_core.core.config import DataConfig, ModelConfig, ObjectiveConfig, PlantedConfig, RunConfig, TrainConfig
from elastic_core.errors import InputError

Settings = TypeVar("Settings", ModelConfig, ObjectiveConfig)


# The grid every other model is tuned on (tuning.py): how SASRec learns best, and how ELASTIC does.
PLAIN = ("train.batch=64", "train.patience=15")
AVERAGED = ("train.batch=32", "train.ema_decay=0.99", "train.optimizer=adamw", "train.weight_decay=0.5")
GRID: dict[str, tuple[str, ...]] = {
    "plain-0.2": (*PLAIN, "model.dropout=0.2"),
    "averaged-0.3": (*AVERAGED, "model.dropout=0.3"),
}
# By validation on MovieLens-100K (checkpoints/tuning.csv); every other model learns as the first point says.
CHOSEN = dict.fromkeys(
    ("clustered", "din", "fpmc", "gru4rec", "hstu", "linformer", "lrurec", "reformer", "routing", "shan", "sma"), "averaged-0.3"
)
# What is tuned beside the registered models: name → the model, what is changed.
ALSO_TUNED: dict[str, tuple[str, tuple[str, ...]]] = {"elastic-slots-memory-none": ("elastic-slots", ("model.memory=none",))}
ALSO_CHOSEN = dict.fromkeys(ALSO_TUNED, "averaged-0.3")
OF_OUR_OWN: dict[str, dict[str, Any]] = {"elastic-slots": {"retrieval": "random"}}  # settings of the objective
RATES = {"elastic-slots": 2e-3}


def toy(model: str = "elastic") -> RunConfig:
    """A planted world of 600 people, learned in well under a minute on one core: for tests and first looks."""
    planted = PlantedConfig(users=600, items=200, interests=8, mean_length=40, max_length=80)
    return RunConfig(
        data=DataConfig(source="planted", planted=planted),
        model=model_settings(model, length=32, width=32, layers=1, dropout=0.1, side=8, k=4),
        objective=objective_settings(model, span=16),
        train=TrainConfig(epochs=12, patience=4, batch=64),
    )


def planted(model: str = "elastic") -> RunConfig:
    """The planted world at its default size: 2,000 people, 16 interests, truth known."""
    return RunConfig(
        data=DataConfig(source="planted"),
        model=model_settings(model, length=64, width=64, layers=2, dropout=0.1, side=8, k=8),
        objective=objective_settings(model, span=32, **OF_OUR_OWN.get(model, {})),
        train=TrainConfig(epochs=60, patience=6, batch=64, ema_decay=0.99, learning_rate=RATES.get(model, 1e-3)),
    )


def planted_64(model: str = "elastic") -> RunConfig:
    """A planted world with many more interests than anybody has experts: 64, of which a person has 4; 1,280 items."""
    few = planted(model)
    world = PlantedConfig(items=1_280, interests=64, interests_per_user=4)
    settings = model_settings(model, length=64, width=64, layers=2, dropout=0.1, side=16, k=4)
    judge = dataclasses.replace(few.train, judged_by="full-seen")  # 46% of the next items were met before
    return dataclasses.replace(few, data=DataConfig(source="planted", planted=world), model=settings, train=judge)


def planted_long(model: str = "elastic") -> RunConfig:
    """A planted world of long histories, 1,200 events each, whose interests fall silent for hundreds: what is remembered?"""
    world = PlantedConfig(
        users=500, items=320, interests=16, interests_per_user=8, mean_length=1_200, max_length=1_200, drift=0.0, noise=0.05,
        determinism=0.9, dwell=0.94,
    )  # fmt: skip
    return RunConfig(
        data=DataConfig(source="planted", planted=world),
        model=model_settings(model, length=1_024, width=64, layers=2, dropout=0.1, side=8, k=8),
        objective=objective_settings(model, span=512, **OF_OUR_OWN.get(model, {})),
        train=TrainConfig(epochs=40, patience=10, batch=16, learning_rate=RATES.get(model, 1e-3), judged_by="full-seen"),
    )


def ml_100k(model: str = "elastic") -> RunConfig:
    """MovieLens-100K: 943 people, 1,349 films. Each model as it did best on validation (checkpoints/LOG.md)."""
    if models.model_class(model).objective and model not in ("sasrec", "elastic", "elastic-slots"):
        return grid_point(model, CHOSEN.get(model, next(iter(GRID))))
    data, shape = DataConfig(source="ml-100k"), {"length": 200, "width": 64, "layers": 2}
    objective = objective_settings(model, span=50, **OF_OUR_OWN.get(model, {}))
    if model == "sasrec":
        train = TrainConfig(epochs=200, patience=15, batch=64)
        return RunConfig(data=data, model=model_settings(model, **shape, dropout=0.2), objective=objective, train=train)
    return RunConfig(
        data=data,
        model=model_settings(model, **shape, dropout=0.3, conv_width=16),
        objective=objective,
        train=TrainConfig(
            epochs=200, patience=10, batch=32, ema_decay=0.99, optimizer="adamw", weight_decay=0.5,
            learning_rate=RATES.get(model, 1e-3),
        ),
    )  # fmt: skip


def grid_point(model: str, point: str) -> RunConfig:
    """MovieLens-100K, learned as one point of the grid says; `model` may be one of `ALSO_TUNED`.

    Raises InputError for an unknown point or model, and for one that learns nothing."""
    if point not in GRID:
        raise InputError(f"unknown point {point!r} of the grid; known are {', '.join(GRID)}")
    model, changes = ALSO_TUNED.get(model, (model, ()))
    if not models.model_class(model).objective:
        raise InputError(f"{model} learns nothing by gradient, so there is nothing to tune")
    return RunConfig(
        data=DataConfig(source="ml-100k"),
        model=model_settings(model, length=200, width=64, layers=2),
        objective=objective_settings(model, span=50, **OF_OUR_OWN.get(model, {})),
        train=TrainConfig(epochs=200),
    ).override(*GRID[point], *changes)


def ml_1m(model: str = "elastic") -> RunConfig:
    """MovieLens-1M: 6,040 people, 3,416 films, full softmax. Made for a GPU."""
    return RunConfig(
        data=DataConfig(source="ml-1m"),
        model=model_settings(model, length=200, width=64, layers=2, dropout=0.2),
        objective=objective_settings(model, span=100),
        train=TrainConfig(epochs=200, patience=10, batch=128),
    )


def ml_1m_cpu(model: str = "elastic") -> RunConfig:
    """MovieLens-1M in 20 minutes of one core: sampled softmax; the same settings for every model, tuned for none."""
    ours = _local(model)
    return RunConfig(
        data=DataConfig(source="ml-1m"),
        model=model_settings(model, length=200, width=64, layers=2, dropout=0.2, **ours),
        objective=objective_settings(model, span=100, loss="sampled", negatives=512, **OF_OUR_OWN.get(model, {})),
        train=TrainConfig(
            epochs=100, minutes=20.0, clock="processor", batch=64, ema_decay=0.99, learning_rate=RATES.get(model, 1e-3),
        ),
    )  # fmt: skip


def ml_1m_converged(model: str = "elastic") -> RunConfig:
    """MovieLens-1M until validation stands still: softmax over all films; otherwise as `ml_1m_cpu`, hours of a core for all."""
    timed = ml_1m_cpu(model)
    train = dataclasses.replace(timed.train, epochs=200, minutes=0.0, patience=10)
    return dataclasses.replace(timed, objective=objective_settings(model, span=100, **OF_OUR_OWN.get(model, {})), train=train)


def video_games(model: str = "elastic") -> RunConfig:
    """Amazon Video Games: 24,303 people, 10,672 games, half of the people with at most 7. The same settings for every model."""
    ours = _local(model)
    return RunConfig(
        data=DataConfig(source="amazon-video-games"),
        model=model_settings(model, length=50, width=64, layers=2, dropout=0.5, **ours),
        objective=objective_settings(model, span=25, loss="sampled", negatives=512, **OF_OUR_OWN.get(model, {})),
        train=TrainConfig(
            epochs=200, patience=10, batch=128, ema_decay=0.99, learning_rate=RATES.get(model, 1e-3),
        ),
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


def studied(label: str, data: DataConfig, length: int, items: int, people: int, judged_by: Any) -> RunConfig:
    """One of `STUDIED` on data of which so much is known; `length` events are read. The same settings for all, tuned for none."""
    model, settings, _ = STUDIED[label]
    loss: dict[str, Any] = {"loss": "full"} if items <= FULL else {"loss": "sampled", "negatives": 512}
    return RunConfig(
        data=data,
        model=model_settings(model, length=length, width=64, layers=2, dropout=0.2, side=16, k=8, **settings),
        objective=objective_settings(model, span=max(length // 2, 1), **loss, **OF_OUR_OWN.get(model, {})),
        train=TrainConfig(
            epochs=200, patience=10, batch=64 if people >= 500 else 16, ema_decay=0.99, learning_rate=RATES.get(model, 1e-3),
            judged_by=judged_by, judged_people=JUDGED,
        ),
    )  # fmt: skip


FULL = 5_000  # items, up to which the exact softmax is worth its time
JUDGED = 2_000  # people whose validation chooses the epoch


def _local(model: str) -> dict[str, Any]:
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
}


def recipe(name: str, model: str = DEFAULT) -> RunConfig:
    """A recipe by name. Raises InputError listing the known ones."""
    if name not in RECIPES:
        raise InputError(f"unknown recipe {name!r}; known are {', '.join(RECIPES)}")
    return RECIPES[name](model)


def model_settings(name: str, **settings: Any) -> ModelConfig:
    """A model's settings, as far as it has them: one recipe serves every model. One that needs no training keeps its own."""
    trained = models.model_class(name).objective
    return _able(ModelConfig.known[name], settings if trained else {})


def objective_settings(model: str, name: str = "", **settings: Any) -> ObjectiveConfig:
    """The settings of the objective `name`, or of the model's own choice, as far as it has them."""
    chosen = name or models.model_class(model).objective or objectives.names()[0]
    return _able(ObjectiveConfig.known[chosen], settings)


def _able(kind: type[Settings], settings: dict[str, Any]) -> Settings:
    known = {f.name for f in dataclasses.fields(kind)}
    return kind(**{key: value for key, value in settings.items() if key in known})
