"""Experts kept by rows: the same learning as over the whole table, nothing of the table's size in a step or on disk, no loss."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_trainer import left_by_kills

from elastic_core import models, objectives, recipes
from elastic_core.bench.harness import peak_bytes
from elastic_core.core.elastic import ElasticConfig, InterestMemory
from elastic_core.core.step import Learner, make_learner
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.memory.routing import too_many_experts
from elastic_core.models import learned_numbers, memory_of
from elastic_core.run_config import RunConfig
from elastic_core.runs import RESUME, WEIGHTS, Run
from elastic_core.runs.training import train
from elastic_core.scale import bank_files, budget
from elastic_core.scale.row_bank import RowBank, row_banks
from elastic_core.scale.row_rules import EPS
from elastic_core.services.experts.ablation import Population
from elastic_core.services.experts.overview import survey

WORLD = ("users=40", "items=40", "interests=4", "mean_length=12", "max_length=24")
SMALL = ("length=8", "width=8", "side=6", "k=2", "bank=rows", "bank_rate=0.05")
BASE = recipes.toy().override("train.epochs=3", "train.ema_decay=0.9", *(f"data.planted.{x}" for x in WORLD))
CONFIG = BASE.override(*(f"model.{x}" for x in SMALL))
BANK = "memories.0.values"


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load(CONFIG.data)


def learner_of(config: RunConfig, world: Dataset, double: bool = False) -> Learner:
    torch.manual_seed(0)
    model = models.build(config.model, world.catalog)
    objective = objectives.build(config.objective, world, config.model.length)
    return make_learner(model.double() if double else model, objective, config.train, torch.device("cpu"))


# --- the step --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        ("model.interest_weight=0.5", "train.max_grad_norm=0.05"),
        ("model.memory=per-layer", "model.layers=2"),
        ("model.name=elastic-slots", "model.query=mean"),
        ("model.query=votes", "model.votes=3"),
        ("model.name=elastic-slots", "model.query=votes"),
    ],
)
def test_a_step_by_rows_is_the_same_rule_over_the_whole_table(
    world: Dataset, settings: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin has its experts as a parameter, one gradient for all rows, one norm, and averages that take every step."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)  # the losses are float32 whatever the weights are, and Adam
    monkeypatch.setattr(torch, "float32", torch.float64)  # makes steps of a whole rate out of a rounding
    named = [x for x in settings if "name" in x]
    config = BASE.override(*named, "model.dropout=0", *(x for x in settings if x not in named), *(f"model.{x}" for x in SMALL))
    ours, train_ = learner_of(config, world, double=True), config.train
    twin = models.build(dataclasses.replace(config.model, bank="dense"), world.catalog).double()
    twin.load_state_dict(ours.model.state_dict())
    tables = {name: module.values.weight for name, module in twin.named_modules() if isinstance(module, InterestMemory)}
    rest = [p for p in twin.parameters() if not any(p is table for table in tables.values())]
    adam = torch.optim.Adam(rest, lr=train_.learning_rate, weight_decay=train_.weight_decay)
    squares = {name: torch.zeros(len(table), dtype=torch.float64) for name, table in tables.items()}
    averages: dict[str, torch.Tensor] = {}
    weights = twin.auxiliary_weights()
    ours.model.train()
    twin.train()
    for epoch in range(2):
        for batch in ours.objective.epoch(epoch, 0, train_.batch):
            ours.step(batch)
            loss = ours.objective.loss(twin, batch)
            twin.zero_grad()
            summed = sum(weights[name] * value for name, value in loss.summed.items())
            ((loss.total + summed) / ours.targets_per_step + sum(weights[n] * v for n, v in loss.auxiliary.items())).backward()
            torch.nn.utils.clip_grad_norm_(twin.parameters(), train_.max_grad_norm)
            adam.step()
            with torch.no_grad():
                for name, table in tables.items():
                    assert table.grad is not None
                    squares[name] += table.grad.square().mean(1)
                    table -= 0.05 * table.grad / (squares[name].sqrt() + EPS).unsqueeze(1)
                for key, value in twin.state_dict().items():
                    averages[key] = averages[key].lerp(value, 0.1) if key in averages else value.clone()
    ours.rows.follow()
    assert ours.average is not None
    kept = ours.average.module.state_dict()
    for key, value in twin.state_dict().items():
        assert torch.allclose(ours.model.state_dict()[key], value, rtol=1e-9, atol=1e-10), key
        if value.is_floating_point() and key in dict(twin.named_parameters()):
            assert torch.allclose(kept[key], averages[key], rtol=1e-9, atol=1e-10), f"average of {key}"


@pytest.mark.parametrize(("query", "people"), [("network", 8), ("votes", 2)])  # where events ask, every one has 2·√K scores
def test_a_step_makes_nothing_of_the_memory_s_size(world: Dataset, query: str, people: int) -> None:
    config = CONFIG.override("model.side=1024", f"model.query={query}")
    learner = learner_of(config, world)
    learner.model.train()
    batch = next(iter(learner.objective.epoch(0, 0, people)))
    learner.step(batch)
    bank = row_banks(learner.model)[BANK]
    before, known = bank.weight.clone(), learner.rows.kept[BANK].known()
    assert peak_bytes(lambda: learner.step(batch), torch.device("cpu")) < 1024**2, "a byte for every expert is too much"
    moved = (bank.weight != before).any(1).nonzero().squeeze(1)
    both = torch.cat([known, learner.rows.kept[BANK].known()]).unique()
    assert len(moved) and torch.isin(moved, both).all() and len(both) <= 4 * len(batch.items) * config.model.k  # type: ignore[attr-defined]


# --- the files -------------------------------------------------------------------------------------------------------


def numbers(run: Run) -> Any:
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in run.events("epoch") + run.events("test")]
    return rows, (run.path / WEIGHTS).read_bytes(), (run.path / bank_files.FILE).read_bytes()


@pytest.fixture(scope="module")
def trained(world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(CONFIG, world, tmp_path_factory.mktemp("rows") / "whole")


def test_an_end_before_any_write_loses_nothing(world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIG.override("train.epochs=2")
    left = left_by_kills(monkeypatch, config, world, tmp_path / "run")
    expected = numbers(Run(left[-1]))
    for out in left:
        assert numbers(train(config, world, out)) == expected, out
    assert len(left) > 10


def test_what_is_written_holds_changed_rows_only(world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with the table as it was drawn they are what was judged, to the bit."""
    judged: list[torch.Tensor] = []
    save, sizes, out = Run.save_weights, dict[str, int](), tmp_path / "large"

    def saves(run: Run, model: torch.nn.Module, *changed: Any) -> None:
        judged.append(row_banks(model)[BANK].weight.clone())
        save(run, model, *changed)

    def look(event: dict[str, Any]) -> None:
        sizes.update({file.name: file.stat().st_size for file in out.iterdir()} if event["event"] == "test" else {})

    monkeypatch.setattr(Run, "save_weights", saves)
    run = train(CONFIG.override("model.side=512", "train.epochs=2"), world, out, on_event=look)
    weights, table = load_file(run.path / WEIGHTS), load_file(run.path / bank_files.FILE)[BANK]
    known = weights[f"{BANK}.numbers"]
    assert torch.equal(memory_of(run.model(world)).expert_values(), judged[-1])
    assert 0 < (judged[-1] != table).any(1).sum() <= len(known) and f"{BANK}.weight" not in weights
    assert sizes[bank_files.FILE] > 10 * (sizes[WEIGHTS] + sizes[RESUME])


@pytest.fixture(scope="module")
def broken_off(world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def breaks(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["epoch"] == 2:
            raise KeyboardInterrupt

    folder = tmp_path_factory.mktemp("resume") / "run"
    with pytest.raises(KeyboardInterrupt):
        train(CONFIG, world, folder, on_event=breaks)
    return folder


def test_what_was_left_of_another_training_is_refused(broken_off: Path, world: Dataset, trained: Run) -> None:
    files = {name: (broken_off / name).read_bytes() for name in (RESUME, bank_files.FILE, WEIGHTS)}
    table = load_file(broken_off / bank_files.FILE)[BANK].clone()
    for other in ({BANK: table[1:]}, {BANK: table * float("nan")}, {"x": table}, {BANK: table.double()}, None):
        (broken_off / bank_files.FILE).unlink()
        if other is not None:
            save_file({key: value.contiguous() for key, value in other.items()}, broken_off / bank_files.FILE)
        for use in (lambda: train(CONFIG, world, broken_off), lambda: Run(broken_off).model(world)):
            with pytest.raises(InputError, match=r"bank\.safetensors"):
                use()
        (broken_off / bank_files.FILE).write_bytes(files[bank_files.FILE])
    weights = load_file(broken_off / WEIGHTS)
    for key, value in ((f"{BANK}.numbers", weights[f"{BANK}.numbers"] + 30), (f"{BANK}.rows", weights[f"{BANK}.rows"][1:])):
        save_file({**weights, key: value.contiguous()}, broken_off / WEIGHTS)
        with pytest.raises(InputError, match=r"model\.safetensors does not fit its configuration: memories\.0\.values"):
            Run(broken_off).model(world)
    (broken_off / WEIGHTS).write_bytes(files[WEIGHTS])
    assert numbers(train(CONFIG, world, broken_off)) == numbers(trained)  # and whole files go on


# --- how large it may be ----------------------------------------------------------------------------------------------


def test_sixteen_million_experts_are_allowed_and_priced_by_rows_and_more_are_not(world: Dataset) -> None:
    large = ElasticConfig(side=4096, width=64, bank="rows")
    outline = models.outline(large, world.catalog)
    assert outline is not None and learned_numbers(outline) > 2**30
    with pytest.raises(InputError, match="numbers in its experts; at most"):
        models.outline(dataclasses.replace(large, width=128), world.catalog)
    with pytest.raises(InputError, match="parameters for"):
        models.outline(dataclasses.replace(large, bank="dense"), world.catalog)
    objective = objectives.build(CONFIG.objective, world, CONFIG.model.length)
    for decay, tables in ((0.9, 3), (0.0, 2)):
        config = dataclasses.replace(CONFIG, model=large).override(f"train.ema_decay={decay}")
        weights = budget.price(config, outline, objective, world).weights
        assert tables * 2**32 < weights < tables * 2**32 + 2**28


def test_what_looks_at_every_expert_says_that_there_are_too_many(world: Dataset, tmp_path: Path) -> None:
    config = CONFIG.override("model.side=257")
    with pytest.raises(InputError, match=r"train\.snapshots keeps every expert .* has 66,049 experts"):
        train(config.override("train.snapshots=true"), world, tmp_path)
    assert not too_many_experts(models.build(CONFIG.model, world.catalog))
    model = models.build(config.model, world.catalog).eval()
    with pytest.raises(InputError, match="66,049 experts, and up to 65,536"):
        survey(Population(model, world, None))  # type: ignore[arg-type]
    plain = json.loads(json.dumps(CONFIG.to_dict()))
    assert RunConfig.from_dict(plain) == CONFIG and isinstance(model.memories[0].values, RowBank)  # type: ignore[index, union-attr]
