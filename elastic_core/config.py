"""What a run is, as plain frozen values: to JSON and back, unknown keys refused.

A model brings its own settings by subclassing `ModelConfig` in its own file:

    @dataclass(frozen=True, kw_only=True)
    class SASRecConfig(ModelConfig, name="sasrec"):
        fused: bool = True
"""

import dataclasses
import types
import typing
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin

from elastic_core.errors import InputError

T = TypeVar("T")
Objective = Literal["all", "last", "window"]


@dataclass(frozen=True, kw_only=True)
class PlantedConfig:
    """The planted world (data/synthetic.py): how many people, items and interests, and how noisy."""

    users: int = 2_000
    items: int = 800
    interests: int = 16
    mean_length: int = 80
    max_length: int = 400
    interests_per_user: int = 3
    drift: float = 0.02
    noise: float = 0.1
    popularity: float = 1.0
    determinism: float = 0.6
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Where the histories come from: a source name (`ml-100k`, `planted`, …) or the path of a file.

    `columns` maps user, item, time, title, genres to the file's own names; time to "" where the rows are in order, without one.
    """

    source: str = "ml-100k"
    k_core: int = 5
    columns: dict[str, str] = field(default_factory=dict)
    planted: PlantedConfig = PlantedConfig()


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Settings that every model has. `length` is the number of events read (N), `width` is d."""

    length: int = 200
    width: int = 64
    layers: int = 2
    heads: int = 1
    dropout: float = 0.2

    name: ClassVar[str] = ""
    known: ClassVar[dict[str, type["ModelConfig"]]] = {}

    def __init_subclass__(cls, name: str, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # `@dataclass` may rebuild a class; the same qualified name is the same class, another is a clash.
        if name in cls.known and cls.known[name].__qualname__ != cls.__qualname__:
            raise ValueError(f"two models are named {name!r}: {cls.known[name].__qualname__} and {cls.__qualname__}")
        cls.name = name
        cls.known[name] = cls

    def __post_init__(self) -> None:
        if self.length < 2:
            raise InputError(f"model.length must be at least 2, not {self.length}")
        if self.width < 2 or self.width % (2 * self.heads):
            raise InputError(f"model.width must be a multiple of 2 x heads = {2 * self.heads}, not {self.width}")
        if self.layers < 1:
            raise InputError(f"model.layers must be at least 1, not {self.layers}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"model.dropout must lie in [0, 1), not {self.dropout}")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How a run learns. One `epoch` shows every training target about once (objectives `all`, `window`)."""

    objective: Objective = "all"
    cuts: int = 4  # `last`: random prefixes per person and epoch; 0 means every prefix
    window: int = 100  # `window`: targets that share one retrieval
    loss: Literal["full", "sampled"] = "full"
    negatives: int = 512  # `sampled`: shared negatives per step, log-Q corrected
    batch: int = 64
    epochs: int = 100
    minutes: float = 0.0  # wall-clock budget; 0 means none
    patience: int = 10
    optimizer: Literal["adam", "adamw"] = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    clip: float = 5.0
    snapshots: bool = False  # keep every epoch's expert loads and values in the run folder (models that retrieve)
    average: float = 0.0  # decay per step of a running average of the weights, which is then what is judged and kept; 0 = none
    balance: float = 0.0  # weight of the marginal-entropy term on the sub-keys (models that retrieve)
    seed: int = 0
    device: str = "cpu"
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        for name in ("batch", "epochs", "patience", "window", "negatives"):
            if getattr(self, name) < 1:
                raise InputError(f"train.{name} must be at least 1, not {getattr(self, name)}")
        if self.cuts < 0 or self.minutes < 0:
            raise InputError("train.cuts and train.minutes must not be negative")
        if not 0 <= self.average < 1:
            raise InputError(f"train.average must lie in [0, 1), not {self.average}")
        if not self.learning_rate > 0:
            raise InputError(f"train.learning_rate must be positive, not {self.learning_rate}")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides a run: the data, the model and how it learns."""

    data: DataConfig
    model: ModelConfig
    train: TrainConfig

    def to_dict(self) -> dict[str, Any]:
        plain = dataclasses.asdict(self)
        plain["model"] = {"name": self.model.name, **plain["model"]}
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """The inverse of `to_dict`. Raises InputError naming a key that is unknown, missing or of the wrong type."""
        _only({"data", "model", "train"}, plain, "")
        for part in ("data", "model", "train"):
            if not isinstance(plain.get(part), dict):
                raise InputError(f"the configuration lacks the section {part!r}")
        model = dict(plain["model"])
        name = model.pop("name", None)
        if name not in ModelConfig.known:
            raise InputError(f"unknown model {name!r}; known are {', '.join(sorted(ModelConfig.known))}")
        return cls(
            data=_build(DataConfig, plain["data"], "data"),
            model=_build(ModelConfig.known[name], model, "model"),
            train=_build(TrainConfig, plain["train"], "train"),
        )

    def override(self, *settings: str) -> Self:
        """A copy with settings such as `model.width=32` or `train.seed=1` replaced."""
        plain = self.to_dict()
        for setting in settings:
            path, separator, text = setting.partition("=")
            keys = path.split(".")
            target: Any = plain
            for key in keys[:-1]:
                target = target.get(key) if isinstance(target, dict) else None
            if not separator or not isinstance(target, dict) or keys[-1] not in target:
                raise InputError(f"cannot set {setting!r}: write section.key=value with a key that exists")
            target[keys[-1]] = _parse(text, target[keys[-1]], path)
        return type(self).from_dict(plain)


def _only(allowed: set[str], plain: dict[str, Any], where: str) -> None:
    for key in plain:
        if key not in allowed:
            raise InputError(f"unknown key {where + key!r}; known are {', '.join(sorted(allowed))}")


def _build(cls: type[T], plain: dict[str, Any], where: str) -> T:
    hints = typing.get_type_hints(cls)
    names = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    _only(names, plain, where + ".")
    values = {}
    for key, value in plain.items():
        hint = hints[key]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint) and isinstance(value, dict):
            value = _build(hint, value, f"{where}.{key}")
        elif not _fits(value, hint):
            raise InputError(f"{where}.{key} must be {_describe(hint)}, not {value!r}")
        values[key] = float(value) if hint is float else value
    return cls(**values)


def _fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin is types.UnionType:
        return any(_fits(value, part) for part in get_args(hint))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _describe(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    return getattr(hint, "__name__", str(hint))


def _parse(text: str, current: Any, path: str) -> Any:
    if isinstance(current, bool):
        if text.lower() not in ("true", "false"):
            raise InputError(f"{path} must be true or false, not {text!r}")
        return text.lower() == "true"
    if isinstance(current, int | float):
        try:
            return int(text) if isinstance(current, int) else float(text)
        except ValueError:
            raise InputError(f"{path} must be a number, not {text!r}") from None
    if isinstance(current, str):
        return text
    raise InputError(f"{path} cannot be set from the command line")
