"""What a visitor can train with one click: sizes by time budget, the variants of Table 3, one thing changed."""

import dataclasses
import functools
import types
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from elastic_core import models, objectives, text
from elastic_core.core.config import ModelConfig, TrainConfig
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Variant
from elastic_core.recipes import model_settings, objective_settings, repeat_settings
from elastic_core.run_config import RENAMES, RunConfig
from elastic_core.runs import CONFIG, Run


class Budget(NamedTuple):
    """Minutes of training, and the size of model that learns something in them on one core."""

    name: str
    minutes: float
    shape: dict[str, Any]
    span: int


class Setting(NamedTuple):
    """One field of a configuration, as a form needs it. `kind`: int, float, bool, choice or text."""

    key: str  # model.n_subkeys, train.seed, …
    kind: "Kind"
    value: Any
    choices: tuple[Any, ...] = ()


USUAL = {"width": 64, "layers": 2, "dropout": 0.2, "n_subkeys": 16, "k": 8}
BUDGETS = (
    Budget("30 s", 0.5, {"length": 32, "width": 32, "layers": 2, "dropout": 0.1, "n_subkeys": 8, "k": 4}, 16),
    Budget("2 min", 2.0, {"length": 50, **USUAL}, 25),
    Budget("5 min", 5.0, {"length": 100, **USUAL}, 50),
    Budget("20 min", 20.0, {"length": 512, **USUAL}, 128),
)
Kind = Literal["int", "float", "bool", "choice", "text"]
KINDS: dict[Any, Kind] = {int: "int", float: "float", bool: "bool"}
Named = TypeVar("Named")
BALANCE = 0.1
LEARNING_RATE = 3e-3  # a short budget is better spent with larger steps than the recipes take


def list_variants() -> tuple[Variant, ...]:
    """Every system by the names its models give: those with most to say first, baselines last."""
    kinds = {name: models.model_class(name) for name in models.model_names()}
    order = sorted(kinds, key=lambda name: (not kinds[name].objective, -len(kinds[name].variants)))
    plain = "A registered model with its own defaults."
    return tuple(
        dataclasses.replace(variant, model=name)
        for name in order
        for variant in (kinds[name].variants or (Variant(ModelConfig.known[name].label or name, {}, plain),))
    )


def find_variant(label: str) -> Variant:
    """Raises InputError for a label that is not in the list."""
    return _variant_label(label, list_variants(), "label", "model")


def find_budget(name: str) -> Budget:
    """Raises InputError for a budget that is not in the list."""
    return _variant_label(name, BUDGETS, "name", "time budget")


def _variant_label(label: str, known: tuple[Named, ...], name: str, what: str) -> Named:
    """The first that is called so: a plug-in may take a label that is taken."""
    for preset in known:
        if getattr(preset, name) == label:
            return preset
    raise InputError(f"unknown {what} {label!r}; known are {', '.join(getattr(preset, name) for preset in known)}")


def size_text(config: RunConfig) -> str:
    """How large the model is, in one line: the time that is chosen decides it, too."""
    model, parts = config.model, list[str]()
    if hasattr(model, "n_subkeys") and hasattr(model, "k"):
        parts.append(f"{model.n_subkeys**2:,} experts, {model.k} for each person")
    if models.model_class(model.name).objective:
        parts.append(f"width {model.width}")
    return ", ".join([*parts, f"the latest {model.length} events"])


def longer_budget(config: RunConfig, length: float) -> str:
    """The first time whose preset reads at least `length` events, where this model finds experts and reads fewer."""
    reads = hasattr(config.model, "n_subkeys") and config.model.length < length
    return next((b.name for b in BUDGETS if reads and b.shape["length"] >= length), "")


def make_config(dataset: Dataset, chosen: Variant, time: Budget, seed: int = 0) -> RunConfig:
    """A complete configuration: this system on this data within this time. Where people return to what they know, validation
    ranks that, too, as the test does."""
    assert dataset.config is not None
    valid_protocol, learned = repeat_settings(dataset)
    model = model_settings(chosen.model, **{**time.shape, **learned, "balance_weight": BALANCE, **chosen.settings})
    return RunConfig(
        data=dataset.config,
        model=model,
        objective=objective_settings(chosen.model, chosen.objective, span=time.span),
        # snapshots: the pages show how a memory grew
        train=TrainConfig(
            minutes=time.minutes,
            epochs=200,
            learning_rate=LEARNING_RATE,
            snapshots=True,
            seed=seed,
            valid_protocol=valid_protocol,
        ),
    )


def twin_config(config: RunConfig, chosen: Variant) -> RunConfig:
    """The same data, sizes and training with another system: what both have in common is kept."""
    kind = ModelConfig.known[chosen.model]
    own = {f.name for f in dataclasses.fields(kind)}
    shared = {f.name for f in dataclasses.fields(ModelConfig)}
    keep = own if config.model.name == chosen.model else own & shared
    if not models.model_class(chosen.model).objective:
        keep = set()
    settings = {name: value for name, value in dataclasses.asdict(config.model).items() if name in keep}
    objective = objective_settings(chosen.model, chosen.objective, **dataclasses.asdict(config.objective))
    return RunConfig(data=config.data, model=kind(**{**settings, **chosen.settings}), objective=objective, train=config.train)


def form_settings(config: RunConfig, section: Literal["model", "objective", "train"]) -> list[Setting]:
    """The fields of one section, in the order of the class, with what a form must know about each. An objective's begin with its
    name: those that this model may learn from."""
    part = getattr(config, section)
    hints, first = get_type_hints(type(part)), list[Setting]()
    if section == "objective":
        able = _possible_objectives(config.model) or (part.name,)
        first = [Setting("objective.name", "choice", part.name, able if part.name in able else (part.name, *able))]
    for field in dataclasses.fields(part):
        hint = hints[field.name]
        if get_origin(hint) is types.UnionType:
            hint = next(each for each in get_args(hint) if each is not type(None))
        choices = get_args(hint) if get_origin(hint) is Literal else ()
        kind = "choice" if choices else KINDS.get(hint, "text")
        first.append(Setting(f"{section}.{field.name}", kind, getattr(part, field.name), choices))
    return first


def changed_config(config: RunConfig, values: dict[str, Any]) -> RunConfig:
    """A copy with fields such as `model.n_subkeys` replaced. Raises InputError with one sentence if it cannot work."""
    named = config.replace_values({key: value for key, value in values.items() if key in RENAMES})
    lost = {path for path, _, value in config.differences(named) if value is None}  # settings that the newly named have not
    new_config = named.replace_values({key: value for key, value in values.items() if key not in lost and key not in RENAMES})
    if models.model_class(new_config.model.name).objective and new_config.objective.name not in _possible_objectives(
        new_config.model
    ):
        objectives.check_objective(new_config.objective.name, _outline_model(new_config.model))  # says why not
    return new_config


def config_differences(one: RunConfig, other: RunConfig) -> list[str]:
    """`model.n_subkeys: 16 → 32`, … : what sets two configurations apart."""
    return [
        f"{path}: {' → '.join('absent' if value is None else str(value) for value in values)}"
        for path, *values in one.differences(other)
    ]


def train_command(config_file: str, out: str) -> str:
    """What trains the same run in a terminal."""
    return text.shell_command("python", "-m", "elastic_core", "train", "--config", config_file, "--out", out)


def retrain_command(run: Run) -> str:
    """What trains a run once more, beside the first."""
    return train_command(f"{run.place}/{CONFIG}", f"checkpoints/local-again-{run.name.removeprefix('local-')}")


def _possible_objectives(model: ModelConfig) -> tuple[str, ...]:
    """The objectives that it may learn from. A form asks at every rerun."""
    return _honest_objectives(model, tuple(objectives.objective_names()))


@functools.lru_cache(maxsize=64)
def _honest_objectives(model: ModelConfig, known: tuple[str, ...]) -> tuple[str, ...]:
    return objectives.honest_objectives(_outline_model(model))


def _outline_model(model: ModelConfig) -> models.Recommender:
    """What it may learn from can be asked of its shapes alone: the answer depends neither on its size nor on the catalogue.

    Raises InputError for a model beyond the budget."""
    return models.outline(model, 2) or models.build(dataclasses.replace(model, width=2 * model.heads, length=2), 2)
