"""What a run is: where its data come from, its model, what it learns from and how; to JSON and back, unknown keys refused."""

import dataclasses
import functools
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin

from elastic_core.core.config import (
    Bounded,
    ConfigFamily,
    FitConfig,
    ModelConfig,
    ObjectiveConfig,
    Seed,
    Share,
    TrainConfig,
    Within,
    check_text,
)
from elastic_core.errors import InputError, value_text

FORMAT, OLDEST = 3, 1  # of the settings as they are written down; the oldest carried no number
MOST_DRAWN = 1_000_000_000  # numbers of a planted world: some minutes and 3 GB

T = TypeVar("T")
N = TypeVar("N", bound=ConfigFamily)


@dataclass(frozen=True, kw_only=True)
class PlantedConfig(Bounded):
    """The planted world (data/synthetic.py): how many people, items and interests, and how noisy."""

    section: ClassVar[str] = "data.planted"
    users: Annotated[int, Within(2, 10_000_000)] = 2_000
    items: Annotated[int, Within(2, 4_000_000)] = 800
    interests: Annotated[int, Within(1, 1_000_000)] = 16
    mean_length: Annotated[int, Within(1, 1_000_000)] = 80
    max_length: Annotated[int, Within(1, 100_000)] = 400
    interests_per_user: Annotated[int, Within(1, 1_000)] = 3
    drift: Share = 0.02
    noise: Share = 0.1
    popularity: Annotated[float, Within(0, 100)] = 1.0
    determinism: Share = 0.6
    dwell: Share = 0.0  # chance to stay in an interest from event to event; then the held-out ones are of any interest alike
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        events = self.users * min(self.mean_length, self.max_length)
        numbers = events * (8 + self.interests_per_user) + self.users * self.interests + 8 * self.items
        if numbers > MOST_DRAWN:
            raise InputError(
                f"data.planted would be a world of {self.users:,} users and about {events:,} events, which takes {numbers:,} "
                f"numbers to draw; at most {MOST_DRAWN:,} are drawn"
            )


@dataclass(frozen=True, kw_only=True)
class DataConfig(Bounded):
    """Where the histories come from: a source name (`ml-100k`, `planted`, …) or the path of a file.

    `columns` maps user, item, time, title, genres to the file's own names; time to "" where the rows are in order, without one.
    `dates` says what 03/04/2024 means in a file where no row tells, `titles` is a file with titles or genres of the items. `ties`
    orders a person's events of one time: as in the file, as in the file from its end, or by a hash; "" is `file`, or `reversed`
    where the file has the newest events first. `baskets` says whether events of one person and time are a set, and the last set
    is held out as a whole (data/baskets.py); "" is `yes` for a file in which most events share a time with the one before.
    `incomplete=skip` reads a folder or an archive without the files in it that are torn, which are otherwise refused.
    """

    section: ClassVar[str] = "data"
    source: str = "ml-100k"
    k_core: Annotated[int, Within(0, 1_000_000)] = 5
    columns: dict[str, str] = field(default_factory=dict)
    planted: PlantedConfig = PlantedConfig()
    dates: Literal["", "day-first", "month-first"] = ""
    titles: str = ""
    ties: Literal["", "file", "reversed", "random"] = ""
    baskets: Literal["", "yes", "no"] = ""
    incomplete: Literal["", "skip"] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = [*self.columns, *self.columns.values()]
        if len(pairs) > 40 or not all(isinstance(name, str) for name in pairs):
            raise InputError(f"data.columns must map names to names, not {value_text(self.columns)}")
        for name in pairs:
            check_text(name, "data.columns")
        if self.baskets == "yes" and self.ties:
            raise InputError("data.baskets=yes leaves no order inside a basket: data.ties has nothing to say")

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """From plain values, as `RunConfig.from_dict`. Raises InputError."""
        return _build_section(cls, plain, cls.section)


@dataclass(frozen=True, kw_only=True)
class RunConfig(FitConfig):
    """Everything that decides a run: the data, the model, what it learns from and how."""

    data: DataConfig

    def to_dict(self) -> dict[str, Any]:
        parts = {part: dataclasses.asdict(getattr(self, part)) for part in PARTS}
        parts |= {part: {"name": getattr(self, part).name, **parts[part]} for part in FAMILIES}
        return {"format": FORMAT, **parts}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """The inverse of `to_dict`. Raises InputError naming a key that is unknown, missing or of the wrong type.

        Settings of another format are read as far as they mean the same today."""
        number = plain.get("format", OLDEST)
        try:
            return cls._from_parts({key: value for key, value in plain.items() if key != "format"})
        except InputError as error:
            if number == FORMAT:
                raise
            raise InputError(f"{error}; elastic convert RUN brings a run of an older version up to date") from None

    @classmethod
    def _from_parts(cls, plain: dict[str, Any]) -> Self:
        _check_keys(set(PARTS), plain, "")
        for part in PARTS:
            if not isinstance(plain.get(part), dict):
                raise InputError(f"the configuration lacks the section {part!r}")
        return cls(
            data=DataConfig.from_dict(plain["data"]),
            model=_build_member(ModelConfig, plain["model"]),
            objective=_build_member(ObjectiveConfig, plain["objective"]),
            train=_build_section(TrainConfig, plain["train"], "train"),
        )

    def override(self, *settings: str) -> Self:
        """A copy with settings such as `model.width=32` or `train.seed=1` replaced.

        `objective.name=last` (or `model.name`) takes the new one's own settings and keeps those that both have.
        """
        plain = self.to_dict()
        for setting in settings:
            path, separator, text = setting.partition("=")
            holder, key = _section_of(plain, path)
            if not separator or holder is None:
                raise InputError(f"cannot set {setting!r}: write section.key=value with a key that exists")
            _set_value(plain, path, _parse_value(text, holder[key], path))
        return type(self).from_dict(plain)

    def differences(self, other: "RunConfig") -> list[tuple[str, Any, Any]]:
        """The settings that differ: path, value here (None where there is none), value there."""
        own_settings, other_settings = (dict(_iterate_settings(config.to_dict())) for config in (self, other))
        paths = dict.fromkeys([*own_settings, *other_settings])
        return [
            (path, own_settings.get(path), other_settings.get(path))
            for path in paths
            if own_settings.get(path) != other_settings.get(path)
        ]

    def replace_values(self, values: dict[str, Any]) -> Self:
        """The same with values instead of text. Raises InputError naming a key that does not exist."""
        plain = self.to_dict()
        for path, value in values.items():
            _set_value(plain, path, value)
        return type(self).from_dict(plain)


def _iterate_settings(plain: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings by their path, `a.b.c`."""
    for key, value in plain.items():
        if isinstance(value, dict) and key != "columns":
            yield from _iterate_settings(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _section_of(plain: dict[str, Any], path: str) -> tuple[dict[str, Any] | None, str]:
    """The section of nested settings that holds `a.b.c`, and c; no section where there is no such key."""
    *sections, key = path.split(".")
    holder: Any = plain
    for section in sections:
        holder = holder.get(section) if isinstance(holder, dict) else None
    return (holder if isinstance(holder, dict) and key in holder else None), key


def _set_value(plain: dict[str, Any], path: str, value: Any) -> None:
    holder, key = _section_of(plain, path)
    if holder is None:
        raise InputError(f"there is no setting {path!r}")
    holder[key] = value
    if path in RENAMES:
        plain[path.split(".")[0]] = _rename_family(RENAMES[path], holder)


PARTS = ("data", "model", "objective", "train")
FAMILIES: dict[str, type[ConfigFamily]] = {"model": ModelConfig, "objective": ObjectiveConfig}
RENAMES = {f"{part}.name": family for part, family in FAMILIES.items()}


def known_settings(part: str, section: dict[str, Any]) -> dict[str, Any]:
    """The settings of a part of the configuration, by name, as they are where nothing is said: those of the model or objective
    that the section names. Raises InputError for an unknown one."""
    if part in FAMILIES:
        return {"name": section.get("name"), **dataclasses.asdict(FAMILIES[part].known.find_class(section.get("name"))())}
    return dataclasses.asdict({"data": DataConfig, "train": TrainConfig}[part]())


def _build_member(family: type[N], plain: dict[str, Any]) -> N:
    """The member of a family that `plain` names, with its settings."""
    settings = dict(plain)
    kind: type[N] = family.known.find_class(settings.pop("name", None))
    return _build_section(kind, settings, family.section)


def _rename_family(family: type[ConfigFamily], plain: dict[str, Any]) -> dict[str, Any]:
    """Settings under a new name: the new class's own, and those it shares with the old one, where it knows their value."""
    kind = family.known.find_class(plain["name"])
    hints, own = _type_hints(kind), {f.name for f in dataclasses.fields(kind)}
    shared_settings = {key: value for key, value in plain.items() if key in own and _fits_hint(value, hints[key])}
    return {"name": plain["name"], **dataclasses.asdict(kind(**shared_settings))}


def _check_keys(allowed: set[str], plain: dict[str, Any], where: str) -> None:
    for key in plain:
        if key not in allowed:
            raise InputError(f"unknown key {value_text(where + key)}; known are {', '.join(sorted(allowed))}")


@functools.cache
def _type_hints(cls: type[Any]) -> dict[str, Any]:
    """They take longer than reading the file that they are asked for."""
    return typing.get_type_hints(cls)


def _build_section(cls: type[T], plain: dict[str, Any], where: str) -> T:
    hints = _type_hints(cls)  # type: ignore[arg-type]
    names = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    _check_keys(names, plain, where + ".")
    values = {}
    for key, value in plain.items():
        hint = hints[key]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint) and isinstance(value, dict):
            value = _build_section(hint, value, f"{where}.{key}")
        elif not _fits_hint(value, hint):
            raise InputError(f"{where}.{key} must be {_describe_hint(hint)}, not {value_text(value)}")
        values[key] = float(value) if hint is float and abs(value) < 1e300 else value
    return cls(**values)


def _fits_hint(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin is types.UnionType:
        return any(_fits_hint(value, part) for part in get_args(hint))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _describe_hint(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    return getattr(hint, "__name__", str(hint))


def _parse_value(text: str, current: Any, path: str) -> Any:
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
