"""What a model and a training may take is known from formulas: a sentence with the number and the bound, and nothing is built."""

import dataclasses
import time
import tracemalloc
from typing import Any

import pytest
import torch

from elastic_core import models, objectives, recipes, training_time
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.step import Optimization
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig, PlantedConfig
from elastic_core.runs.training import train
from elastic_core.scale import budget
from elastic_core.services.train import presets
from elastic_core.training_time import _SavedTensors

TRAINED = [name for name in models.model_names() if models.model_class(name).objective]
HUGE = ElasticConfig(n_subkeys=4_096, width=8_192, layers=64, memory="per-layer", length=131_072)


@pytest.fixture(scope="module")
def world() -> Dataset:
    planted = PlantedConfig(users=120, items=150, interests=4, mean_length=60, max_length=64)
    return load(DataConfig(source="planted", planted=planted))


@pytest.mark.parametrize("variant", presets.list_variants(), ids=lambda variant: variant.label)
def test_an_outline_has_the_shapes_of_the_model(variant: presets.Variant) -> None:
    config = recipes.model_settings(variant.model, **variant.settings)
    outline, real = models.outline(config, 70), models.build(config, 70)
    if not real.trained:
        assert outline is None
        return
    assert outline is not None
    assert {name: part.shape for name, part in outline.state_dict().items()} == {
        name: part.shape for name, part in real.state_dict().items()
    }
    assert all(part.is_meta for part in (*outline.parameters(), *outline.buffers()))


def test_a_model_beyond_the_budget_is_one_sentence_and_is_never_built() -> None:
    began = time.process_time()
    with pytest.raises(InputError, match=r"9,\d{3},\d{3},\d{3},\d{3} parameters for 1,000 items; at most 200,000,000"):
        models.build(HUGE, 1_000)
    assert time.process_time() - began < 8  # the most layers there may be
    tracemalloc.start()
    with pytest.raises(InputError, match="at most 200,000,000"):
        models.build(dataclasses.replace(HUGE, layers=2), 1_000)
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()


def test_the_form_and_the_trainer_refuse_it_alike(world: Dataset, tmp_path: Any) -> None:
    config = presets.make_config(world, presets.find_variant("ELASTIC"), presets.BUDGETS[1])
    with pytest.raises(InputError, match=r"256,\d{3},\d{3} parameters .* at most 200,000,000"):
        presets.changed_config(config, {"model.n_subkeys": 2_000})
    with pytest.raises(InputError, match="must lie in 1 … 64, not 100000"):
        presets.changed_config(config, {"model.layers": 100_000})
    wide = dataclasses.replace(recipes.toy(), model=dataclasses.replace(recipes.toy().model, n_subkeys=3_000))
    with pytest.raises(InputError, match="parameters"):
        train(wide, world, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (name, {key: value})
        for name in TRAINED
        for key, value in {"layers": 4, "heads": 4, "width": 64, "k": 32, "expansion": 4, "fused": False}.items()
        if hasattr(recipes.toy(name).model, key)
    ],
)
def test_the_price_of_a_step_is_no_less_than_what_it_keeps(world: Dataset, name: str, change: dict[str, Any]) -> None:
    config = recipes.toy(name).override("train.batch=16", *(f"model.{key}={value}" for key, value in change.items()))
    model = models.build(config.model, world.catalog)
    objective = objectives.build(config.objective, world, config.model.length)
    learner, kept = Optimization(model, objective, config.train, torch.device("cpu")), _SavedTensors()
    longest = max(objective.epoch_batches(0, 0, config.train.batch), key=lambda batch: batch.items.numel())
    with torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda saved: saved):
        learner.backward(learner.loss(longest))
    most = sum(kept.sizes.values())
    found = budget.estimate_memory(config, model, objective, world)
    told = (
        f"{name}: a step keeps {most:,} bytes, and its price is {found.total:,}: define saved_per_event (elastic_core/models.py)"
    )
    assert most <= found.total and found.step <= 8 * most, told
    assert found.weights == 16 * sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("width", [8, 64])
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("linformer", {"heads": 4, "rank": 128}), ("reformer", {"rounds": 3, "heads": 4}),
        ("sinkhorn", {"block": 64, "heads": 4}), ("sinkhorn", {}), ("routing", {"heads": 4}),
        ("clustered", {"heads": 4}), ("clustered", {"topk": 0}),
        ("hstu", {"time_bias": "previous"}), ("hstu", {"heads": 4}), ("linrec", {}),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_long_history_keeps_is_no_more_than_its_price(name: str, more: dict[str, Any], width: int) -> None:
    model = models.build(ModelConfig.known[name](length=400, width=width, layers=2, **more), 30).train()
    items, kept = torch.randint(1, 31, (2, 400)) * (torch.arange(400) >= torch.tensor([[0], [10]])), _SavedTensors()
    with torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda saved: saved):
        model(Batch(items, items, times=torch.arange(400).expand_as(items) * 3_600)).states.sum().backward()
    for parameter in model.parameters():
        kept.sizes.pop(parameter.untyped_storage().data_ptr(), None)
    numbers, priced = sum(kept.sizes.values()) / 4, 2 * 400 * 2 * model.saved_per_event(400)
    assert numbers <= priced <= 4 * numbers, (numbers / 1600, model.saved_per_event(400))


@pytest.mark.parametrize("name", TRAINED)
def test_a_probe_stays_within_its_room_and_nothing_is_built_that_would_not(
    world: Dataset, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many rows as fit are timed; where fewer than a handful do, it is the price by formula, no less than what was found."""
    config = recipes.toy(name).override("train.batch=64")
    model = models.build(config.model, world.catalog)
    objective = objectives.build(config.objective, world, config.model.length)
    price, tried = budget.estimate_memory(config, model, objective, world), list[_SavedTensors]()
    monkeypatch.setattr(training_time, "TIMED", 0)
    monkeypatch.setattr(training_time, "_SavedTensors", lambda: tried.append(_SavedTensors()) or tried[-1])
    monkeypatch.setattr(training_time, "ROOM", price.weights + (price.step + price.held) // 3)
    timed = training_time.estimate_training(config, world)
    assert timed.is_timed and 0 < timed.epoch_seconds < timed.seconds
    assert price.weights + max(sum(kept.sizes.values()) for kept in tried) <= training_time.ROOM
    monkeypatch.setattr(models, "build", None)
    monkeypatch.setattr(training_time, "ROOM", price.weights)
    priced = training_time.estimate_training(config, world)
    assert not priced.is_timed and priced.memory_mb >= timed.memory_mb
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert priced.parameters == timed.parameters == parameters and priced.steps == timed.steps


def test_a_step_beyond_the_memory_is_one_sentence_before_anything_is_written(
    world: Dataset, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "memory_bytes", lambda device: 2**22)
    with pytest.raises(InputError, match=r"about [\d.]+ MB of memory .* at most 2\.0 MB are allowed here"):
        train(recipes.toy(), world, tmp_path / "run")
    assert not [path for path in (tmp_path / "run").iterdir() if path.name != ".lock"]


@pytest.mark.parametrize(
    "asked",
    [
        {"users": 10_000_000, "mean_length": 100_000, "max_length": 100_000},  # 10¹² events
        {"users": 1_000_000, "mean_length": 1_000, "max_length": 1_000},  # 10⁹
        {"users": 10_000_000},
        {"users": 1_000_000, "items": 2_000_000, "interests": 500_000},
        {"users": 100_000, "interests": 1_000, "items": 4_000, "interests_per_user": 1_000},
    ],
)
def test_a_planted_world_that_is_too_large_is_one_sentence(asked: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"data\.planted would be a world of .* at most 1,000,000,000 are drawn"):
        PlantedConfig(**asked)


def test_every_recipe_and_preset_is_within_the_budget() -> None:
    for name in recipes.RECIPES:
        for model in TRAINED:
            config = recipes.recipe(name, model)
            outline = models.outline(config.model, 4_000)
            assert outline is not None and sum(p.numel() for p in outline.parameters()) < 5_000_000
