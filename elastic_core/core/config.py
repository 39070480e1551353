"""Settings as plain frozen values, every number within its bounds; what belongs to a run besides: run_config.py.

A model and an objective bring their own settings by subclassing `ModelConfig` or `ObjectiveConfig` in their own file:

    @dataclass(frozen=True, kw_only=True)
    class SASRecConfig(ModelConfig, name="sasrec", label="SASRec"):
        fused: bool = True
        expansion: Annotated[int, Within(1, 16)] = 1
"""

import dataclasses
import functools
import typing
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from elastic_core import files
from elastic_core.core.registry import MODEL_MODULES, OBJECTIVE_MODULES, Registry
from elastic_core.errors import InputError, value_text

LONGEST_TEXT = 10_000  # characters of a setting: a path may be long


class Within(NamedTuple):
    """The bounds of a number, both of them allowed. Written as `Annotated[int, Within(1, 64)]`."""

    low: float
    high: float


class Bounded:
    """Checks every number of a settings class against its bounds, and that no text is a book; the section's name opens the
    sentence."""

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, bounds in bounds_of(type(self)).items():  # type: ignore[arg-type]
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
                raise InputError(f"{self.section}.{name} must be a number, not {value_text(value)}")
            if not bounds.low <= value <= bounds.high:
                raise InputError(f"{self.section}.{name} must lie in {bounds.low:g} … {bounds.high:g}, not {value_text(value)}")
        for field_ in dataclasses.fields(self):  # type: ignore[arg-type]
            check_text(getattr(self, field_.name), f"{self.section}.{field_.name}")


def check_text(value: Any, where: str) -> None:
    """Raises InputError for a text that is a book, or that no page can show."""
    if isinstance(value, str) and (len(value) > LONGEST_TEXT or not files.is_showable(value)):
        raise InputError(
            f"{where} must be at most {LONGEST_TEXT} characters that a page can show, not {files.printable_text(value, 60)!r}"
        )


@functools.cache
def bounds_of(cls: type[Any]) -> dict[str, Within]:
    """The bounded numbers of a settings class."""
    hints = typing.get_type_hints(cls, include_extras=True)
    extras = ((name, extra) for name, hint in hints.items() for extra in getattr(hint, "__metadata__", ()))
    return {name: extra for name, extra in extras if isinstance(extra, Within)}


Count = Annotated[int, Within(1, 10_000_000)]
Share = Annotated[float, Within(0, 1)]
Seed = Annotated[int, Within(0, 2**32 - 1)]
Few = Annotated[int, Within(1, 64)]
Several = Annotated[int, Within(1, 4_096)]
Length = Annotated[int, Within(2, 131_072)]  # events that are read
Weight = Annotated[float, Within(0, 1_000)]  # of a loss beside the main one
ConvWidth = Annotated[int, Within(0, 1_024)]  # events that a convolution goes over; 0: none


class ConfigFamily(Bounded):
    """A family of settings classes, each registered under its name by being defined."""

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""  # what people call it; its name if empty
    known: ClassVar[Registry[Any]]

    def __init_subclass__(cls, name: str = "", label: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.label = label or cls.label
        if not name:  # the head of a family, or what some of it share
            if ConfigFamily in cls.__bases__:
                cls.known = Registry(cls.section, MODEL_MODULES if cls.section == "model" else OBJECTIVE_MODULES)
            return
        home = cls.known.modules.get(name, cls.__module__)  # one of its own package may be on its way there
        other = cls.known.loaded.get(name) if home.split(".")[0] == cls.__module__.split(".")[0] else cls.known[name]
        # `@dataclass` may rebuild a class and a module may be loaded again; the same module and name are the same class
        if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"the name {name!r} is taken by {other.__module__}.{other.__qualname__}; give the new one its own")
        cls.name = name
        cls.known.loaded[name] = cls


@dataclass(frozen=True, kw_only=True)
class ModelConfig(ConfigFamily):
    """Settings that every model has. `length` is the number of events read (N), `width` is d."""

    section: ClassVar[str] = "model"
    length: Length = 200
    width: Annotated[int, Within(2, 8_192)] = 64
    layers: Few = 2
    heads: Annotated[int, Within(1, 128)] = 1
    dropout: Annotated[float, Within(0, 0.99)] = 0.2
    repeat_bias: bool = False  # ours: a learned number that is added to the score of every item seen before
    repeat_counts: bool = False  # … more for each time it was seen (`batches.weigh_repeats`)
    output: Literal["tied", "own"] = "tied"  # ours: `own` scores items by another table than the one events are read by

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % (2 * self.heads):
            raise InputError(f"model.width must be a multiple of 2 x heads = {2 * self.heads}, not {self.width}")


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig(ConfigFamily):
    """Settings that every objective has: the softmax over all items, or over shared negatives with log-Q correction."""

    section: ClassVar[str] = "objective"
    loss: Literal["full", "sampled"] = "full"
    negatives: Count = 512  # `sampled`: shared by a whole step


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Bounded):
    """How a run learns. One epoch shows every training target once (objective `last`: a few of them)."""

    section: ClassVar[str] = "train"
    batch: Annotated[int, Within(1, 1_000_000)] = 64  # rows per step
    epochs: Annotated[int, Within(1, 10_000)] = 100  # the log keeps a row of each
    minutes: Annotated[float, Within(0, 1_000_000)] = 0.0  # budget; 0 means none
    clock: Literal["wall", "processor"] = "wall"  # of the budget and of the log: a busy machine stretches no processor time
    patience: Count = 10
    optimizer: Literal["adam", "adamw"] = "adam"
    learning_rate: Annotated[float, Within(1e-9, 1e9)] = 1e-3
    weight_decay: Annotated[float, Within(0, 100)] = 0.0
    ema_decay: Annotated[float, Within(0, 0.999999)] = 0.0  # running average of the weights, then judged and kept; 0: none
    valid_users: Annotated[int, Within(0, 10_000_000)] = 0  # so many validate, drawn by chance, in every run the same; 0: all
    valid_protocol: Literal["full", "full-seen"] = "full"  # its NDCG@10 chooses the best epoch; full-seen also ranks seen items
    snapshots: bool = False  # keep every epoch's expert loads and values in the run folder (models that retrieve)
    seed: Seed = 0
    device: str = "cpu"
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: Literal["none", "default", "reduce-overhead"] = "none"  # the mode of torch.compile, on a GPU


@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """A model, what it learns from, and how."""

    model: ModelConfig
    objective: ObjectiveConfig
    train: TrainConfig
