"""Item tables learned by rows: dense learning where every item is met, lazy Adam where not, the same runs, and clear refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import nn

from elastic_core import models, objectives, recipes
from elastic_core.bench.harness import peak_bytes
from elastic_core.core.batches import reading_batch
from elastic_core.core.config import ModelConfig, TrainConfig
from elastic_core.core.contract import Scorer
from elastic_core.core.step import Learner, make_learner
from elastic_core.data import Catalog, Dataset, load
from elastic_core.errors import InputError
from elastic_core.following.stream import open_stream
from elastic_core.models import Recommender
from elastic_core.run_config import RunConfig
from elastic_core.runs import WEIGHTS, Run
from elastic_core.runs.training import train
from elastic_core.scale import bank_files, budget
from elastic_core.scale.distributed import Ranks
from elastic_core.scale.row_bank import RowBank, row_banks
from elastic_core.scale.rows import RowLearner
from elastic_core.scale.sampled_softmax import SharedNegatives, sampled_softmax

WORLD = ("users=40", "items=40", "interests=4", "mean_length=12", "max_length=24")
ROWS = {"model.item_bank": "rows", "objective.loss": "sampled"}
BANK = "events.items"
CPU = torch.device("cpu")
TRAINED = [name for name in models.names() if models.model_class(name).objective]
COMPOSED = {"din", "lisa"}  # their scores are no products with rows of a table
EVERY = {"elastic-slots"}  # its experts stand for every item


def config_of(name: str = "sasrec", **more: Any) -> RunConfig:
    base = recipes.toy(name).override("train.epochs=3", "train.ema_decay=0.9", *(f"data.planted.{x}" for x in WORLD))
    return base.replaced({"model.length": 8, "model.width": 8, "model.dropout": 0.0, **ROWS, **more})


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load(config_of().data)


def learner_of(config: RunConfig, world: Dataset, double: bool = False, ranks: Ranks | None = None) -> Learner:
    torch.manual_seed(0)
    model = models.build(config.model, world.catalog)
    objective = objectives.build(config.objective, world, config.model.length)
    model = model.double() if double else model
    return make_learner(model.train(), objective, config.train, CPU, *([] if ranks is None else [ranks]))


# --- the step --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({*TRAINED} - COMPOSED - EVERY))
def test_where_every_item_is_met_it_is_dense_learning(name: str, world: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a model reads its items for: a gradient that a table kept by rows did not hear of would show here."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)  # Adam makes steps of a whole rate out of a rounding
    apart = name in ("fpmc", "sasrec", "elastic", "bert4rec")  # tables read by histories alone: not every item is in one
    decay, own = 0.0 if apart else 0.1, "own" if apart and name != "fpmc" else "tied"
    adam = {"train.optimizer": ("adam", "adamw")[len(name) % 2], "train.weight_decay": decay, "train.max_grad_norm": 0.05}
    config = config_of(name, **adam, **{"objective.negatives": 2_000, "model.repeats": len(name) % 3 == 0, "model.output": own})
    ours = learner_of(config, world, double=True)
    dense = learner_of(config.replaced({"model.item_bank": "dense"}), world, double=True)
    dense.model.load_state_dict(ours.model.state_dict())
    assert dense.average is not None and ours.average is not None
    dense.average.module.load_state_dict(ours.model.state_dict())
    for learner in (ours, dense):
        torch.manual_seed(1)
        batch = next(learner.objective.epoch(0, 0, 1_000))
        for number in range(4):
            learner.calibrate(world, 0, number)
            learner.step(batch)
    for one, other in ((ours.model, dense.model), (ours.judged(world), dense.judged(world))):
        for key, value in other.state_dict().items():
            torch.testing.assert_close(one.state_dict()[key], value, rtol=1e-7, atol=1e-9, msg=key)


STEPS = some.lists(some.lists(some.lists(some.integers(0, 6), min_size=1, max_size=5), max_size=3), min_size=1, max_size=8)


@settings(max_examples=40, deadline=None)
@given(
    STEPS,
    some.sampled_from(["adam", "adamw"]),
    some.sampled_from([0.0, 0.3]),
    some.sampled_from([0.0, 0.8]),
    some.integers(0, 99),
)
def test_a_row_learns_when_it_is_looked_up_and_then_as_adam_says(
    steps: list[list[list[int]]], optimizer: Any, decay: float, ema: float, seed: int
) -> None:
    """Against the rule written out, row by row, with an average that takes every step."""
    torch.manual_seed(seed)
    train = TrainConfig(optimizer=optimizer, weight_decay=decay, ema_decay=ema, learning_rate=0.1)
    bank, average = (RowBank(7, 3, rule="adam", padding=True).double() for _ in range(2))
    bank.weight = torch.randn(7, 3, dtype=torch.float64)
    bank.weight[0] = 0
    average.weight = bank.weight.clone()
    rows, mean, square, followed = bank.weight.clone(), *(torch.zeros(7, 3, dtype=torch.float64) for _ in range(2)), None
    learner, last = RowLearner(bank, average if ema else None, train), [0] * 7
    for t, looks in enumerate(steps, 1):
        towards = [torch.randn(len(numbers), 3, dtype=torch.float64) for numbers in looks]
        with learner.recorded() as looked_up:
            for numbers, goal in zip(looks, towards, strict=True):
                (bank(torch.tensor(numbers)) * goal).sum().backward()
        learner.step(learner.summed(looked_up))
        for row in range(1, 7):
            hits = [goal[i] for numbers, goal in zip(looks, towards, strict=True) for i, n in enumerate(numbers) if n == row]
            if not hits:
                continue
            for j in range(1, t - last[row]):  # one by one, what momentum does in the steps that missed it
                size = (square[row] / (1 - 0.999**t)).sqrt() + 1e-8
                rows[row] -= 0.1 * (0.9**j * mean[row] / (1 - 0.9**t)) / (0.999 ** (j / 2) * size)
            mean[row] *= 0.9 ** (t - 1 - last[row])
            square[row] *= 0.999 ** (t - 1 - last[row])
            last[row] = t
            g = torch.stack(hits).sum(0) + (decay * rows[row] if optimizer == "adam" else 0)
            mean[row], square[row] = 0.9 * mean[row] + 0.1 * g, 0.999 * square[row] + 0.001 * g * g
            if optimizer == "adamw":
                rows[row] *= 1 - 0.1 * decay
            rows[row] -= 0.1 * (mean[row] / (1 - 0.9**t)) / ((square[row] / (1 - 0.999**t)).sqrt() + 1e-8)
        followed = rows.clone() if followed is None else ema * followed + (1 - ema) * rows
    learner.follow()
    torch.testing.assert_close(bank.weight, rows, rtol=1e-9, atol=1e-12)
    if ema:
        torch.testing.assert_close(average.weight, followed, rtol=1e-9, atol=1e-12)


def test_a_step_makes_nothing_of_the_catalogue_s_size_and_leaves_the_rest_alone(world: Dataset) -> None:
    config = config_of(**{"objective.negatives": 8, "train.weight_decay": 0.1, "train.optimizer": "adamw"})
    torch.manual_seed(0)
    items = 100_000
    model = models.build(config.model, Catalog(np.empty(items + 1, dtype=object))).train()
    objective = objectives.build(config.objective, world, config.model.length)
    objective.softmax = SharedNegatives(torch.cat([torch.zeros(1), torch.ones(items)]), 8)
    learner = make_learner(model, objective, config.train, CPU)
    batch = next(iter(objective.epoch(0, 0, 8)))
    learner.step(batch)
    bank, kept = row_banks(model)[BANK], learner.rows.kept[BANK]
    before = {key: table.clone() for key, table in kept.tables().items()}
    peak = peak_bytes(lambda: learner.step(batch), CPU)
    assert peak < 2 * 4 * items, "two numbers for every item, which the draw of negatives needs, and eight would be a table"
    moved = (bank.weight != before["rows"]).any(1).nonzero().squeeze(1)
    asked = torch.cat([batch.items.flatten(), batch.targets.flatten()]).unique()  # type: ignore[union-attr]
    assert torch.isin(asked[asked > 0], moved).all() and len(moved) <= len(asked) + 8 and not bank.weight[0].any()
    for key, table in kept.tables().items():
        changed = (table != before[key]).nonzero()[:, 0].unique()
        assert torch.isin(changed, torch.cat([moved, torch.zeros(1, dtype=torch.int64)])).all(), key


# --- the files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["tied", "own"])
def test_a_run_is_whole_goes_on_and_is_used_as_any_other(output: str, world: Dataset, tmp_path: Path) -> None:
    config = config_of("elastic", **{"model.bank": "rows", "model.side": 6, "model.k": 2, "model.output": output})

    def breaks(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["epoch"] == 2:
            raise KeyboardInterrupt

    whole, out = train(config, world, tmp_path / "whole"), tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt):
        train(config, world, out, on_event=breaks)
    again = train(config, world, out)
    for name in (WEIGHTS, bank_files.FILE):
        assert (again.path / name).read_bytes() == (whole.path / name).read_bytes()
    assert [row["valid"] for row in again.events("epoch")] == [row["valid"] for row in whole.events("epoch")]
    model, dense = Run(whole.path).model(world), models.build(config.replaced({"model.item_bank": "dense"}).model, world.catalog)
    assert set(model.state_dict()) == set(dense.state_dict()) | {"memories.0.values.weight"}
    dense.load_state_dict(model.state_dict())
    batch = reading_batch(world, torch.arange(9).numpy(), world.ends("test")[:9], 8)
    with torch.inference_mode():
        assert torch.equal(model.score(batch), dense.eval().score(batch))
        streams = [open_stream(m, 2) for m in (model, dense)]
        for stream in streams:
            stream.refresh(batch.items)
        assert torch.equal(*(stream.step(torch.full((9,), 3)) for stream in streams))


# --- refusals and prices ----------------------------------------------------------------------------------------------


def test_what_needs_the_whole_table_says_what_to_choose_instead(world: Dataset) -> None:
    for name in models.names():
        if name in COMPOSED or name not in TRAINED:
            kind = ModelConfig.known[name]
            with pytest.raises(InputError, match=f"{name} has no item table that is learned by rows: take model.item_bank=dense"):
                models.build(kind(item_bank="rows"), world.catalog)
    with pytest.raises(InputError, match=r"needs objective\.loss = sampled"):
        learner_of(config_of(**{"objective.loss": "full"}), world)
    with pytest.raises(InputError, match=r"item_bank = rows is learned by one process.*item_bank=dense"):
        learner_of(config_of(), world, ranks=Ranks(0, 2))
    with pytest.raises(InputError, match=r"interest_weight = 0"):
        config_of("elastic", **{"model.interest_weight": 0.5})
    with pytest.raises(InputError, match="not for elastic-slots"):
        config_of("elastic-slots")

    class Apart(models.model_class("sasrec")):  # type: ignore[misc]
        def scorer(self) -> Scorer:
            return Scorer(self.events.items.weight)

    objective = objectives.build(config_of().objective, world, 8)
    with pytest.raises(InputError, match="scores by other numbers than its item_bank"):
        make_learner(Apart(config_of().model, world.catalog), objective, config_of().train, CPU)


def test_millions_of_items_are_allowed_and_priced_by_rows(world: Dataset) -> None:
    config = config_of(**{"model.width": 64, "objective.negatives": 8})
    catalog = Catalog(np.empty(2_122_933, dtype=object))  # names are not asked for
    outline = models.outline(config.model, catalog)
    assert outline is not None and row_banks(outline)
    with pytest.raises(InputError, match="parameters for"):
        models.outline(config.replaced({"model.width": 128}).model, catalog)
    table, objective = 4 * 64 * 2_122_933, objectives.build(config.objective, world, 8)
    for decay, tables in ((0.9, 8), (0.0, 6)):
        weights = budget.price(config.override(f"train.ema_decay={decay}"), outline, objective, world).weights
        assert tables * table < weights < (tables + 0.1) * table


def test_a_look_up_outside_of_a_step_is_no_learning() -> None:
    bank = RowBank(5, 2, rule="adam", padding=True)
    nn.init.ones_(bank.weight)
    scorer = Scorer.over(bank)
    states, targets = torch.randn(3, 2, requires_grad=True), torch.tensor([1, 2, 3])
    sampled_softmax(states, targets, scorer, torch.tensor([0.0, 0.25, 0.25, 0.25, 0.25]), 4).backward()
    assert states.grad is not None and not bank.weight.requires_grad and not isinstance(bank, Recommender)
