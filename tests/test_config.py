"""Settings: to JSON and back, bounds on every number, one sentence for what cannot be."""

import dataclasses
import math
import typing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from elastic_core import models, recipes
from elastic_core.core.config import ModelConfig, TrainConfig, bounds_of
from elastic_core.errors import InputError
from elastic_core.run_config import FAMILIES, PlantedConfig, RunConfig

SETTINGS = [PlantedConfig, TrainConfig, *(kind for family in FAMILIES.values() for kind in family.known.values())]
JUNK = some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=5) | some.lists(some.integers())


@pytest.mark.parametrize("kind", SETTINGS, ids=lambda kind: kind.__name__)
def test_numbers_have_bounds_and_one_beyond_them_is_one_sentence_that_names_it(kind: type) -> None:
    """`heads=0`, `seed=-1`, NaN: refused when the settings are made, not deep inside a training."""
    kind()
    numbers = {name for name, hint in typing.get_type_hints(kind).items() if hint in (int, float)}
    without = f"{kind.__name__} has numbers without bounds, {sorted(numbers - set(bounds_of(kind)))}"
    assert numbers == set(bounds_of(kind)), f"{without}: write `share: Annotated[float, Within(0, 1)] = 0.3` (core/config.py)"
    for name, bounds in bounds_of(kind).items():
        for value in (bounds.low - 1, bounds.high * 2 + 1, math.nan, math.inf, -math.inf, None, "1", True, 10**400):
            with pytest.raises(InputError, match=name):
                kind(**{name: value})


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_to_json_and_back(name: str) -> None:
    for model in models.model_names():
        config = recipes.recipe(name, model)
        assert RunConfig.from_dict(config.to_dict()) == config


@given(some.sampled_from(["data", "model", "objective", "train"]), some.integers(0, 20), JUNK)
def test_junk_in_a_file_is_refused_or_fits(section: str, place: int, junk: Any) -> None:
    plain = recipes.toy().to_dict()
    keys = list(plain[section])
    plain[section][keys[place % len(keys)]] = junk
    try:
        assert RunConfig.from_dict(plain).to_dict()
    except InputError as error:
        assert "\n" not in str(error)


def test_a_new_name_brings_its_own_settings_and_keeps_the_shared_ones() -> None:
    config = recipes.toy().override("objective.loss=sampled", "model.width=16", "objective.name=last")
    assert config.objective.name == "last"
    assert config.objective.loss == "sampled" and "span" not in dataclasses.asdict(config.objective)
    other = config.override("objective.prefixes_per_user=0", "model.name=sasrec", "objective.name=all")
    assert (other.model.name, other.model.width, other.objective.name) == ("sasrec", 16, "all")
    for setting in ("objective.name=nothing", "model.name=nothing", "train.nothing=1", "model", "model.width=wide"):
        with pytest.raises(InputError):
            config.override(setting)


def test_two_classes_of_one_name_are_refused_and_the_first_stays() -> None:
    first = ModelConfig.known["sasrec"]
    with pytest.raises(ValueError, match="'sasrec' is taken by"):

        class Copy(ModelConfig, name="sasrec"):
            pass

    assert ModelConfig.known["sasrec"] is first
