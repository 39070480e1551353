"""The contract, for every model in the registry and every variant of ELASTIC. A new model file is tested by being there."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from elastic_core import models
from elastic_core.config import DataConfig, ModelConfig, RunConfig, TrainConfig
from elastic_core.data import Dataset
from elastic_core.data.batches import Batch, Sampler, reading_batch
from elastic_core.errors import InputError
from elastic_core.objectives import next_item_loss
from elastic_core.runs import Run
from elastic_core.streaming import open_stream

TINY = {"length": 16, "width": 16, "layers": 2, "dropout": 0.0, "side": 4, "k": 3, "stride": 4, "window": 2}
N_ITEMS = 50


@dataclass(frozen=True)
class Case:
    """A model and what is special about it. `deaf`: parameters that the loss cannot reach, by the start of their names."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    deaf: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{key}={value}" for key, value in self.settings.items())])

    def config(self, **more: Any) -> ModelConfig:
        kind = ModelConfig.known[self.name]
        known = {f.name for f in dataclasses.fields(kind)}
        return kind(**{key: value for key, value in {**TINY, **self.settings, **more}.items() if key in known})

    def build(self, n_items: int = N_ITEMS, **more: Any) -> models.Recommender:
        torch.manual_seed(0)
        return models.build(self.config(**more), n_items).eval()

    def ready(self, world: Dataset) -> models.Recommender:
        """One that scores: a model that needs no training is fitted."""
        model = self.build(world.catalog.n_items)
        model.fit(world)
        return model


UNREACHED = ("memories.0.query_network", "memories.0.keys", "memories.0.norm")  # Algorithm 1 as printed
VARIANTS = [
    Case("elastic", {"form": "two-way"}),
    Case("elastic", {"heads": 2}),
    Case("elastic", {"form": "two-way", "heads": 2}),
    Case("elastic", {"memory": "per-layer"}),
    Case("elastic", {"memory": "per-layer", "form": "two-way"}),
    Case("elastic", {"memory": "none"}),
    Case("elastic", {"query": "mean"}),
    Case("elastic", {"dispatch": "none"}),
    Case("elastic", {"dispatch": "none", "form": "two-way"}),
    Case("elastic", {"gate": "sigmoid"}),
    Case("elastic", {"gate": "none"}, UNREACHED),
    Case("elastic", {"query_norm": "layer"}),
    Case("elastic", {"query_norm": "batch"}),
    Case("elastic", {"query_norm": "none"}),
    Case("elastic", {"scores": "dot"}),
    Case("elastic", {"local": 0}),
    Case("sasrec", {"fused": False}),
    Case("sasrec", {"heads": 2}),
]
ALL = [*(Case(name) for name in models.names()), *VARIANTS]
TRAINED = [case for case in ALL if models.model_class(case.name).objectives]
OBJECTIVES = [(case, objective) for case in TRAINED for objective in case.build().honest_objectives()]

every = pytest.mark.parametrize("case", ALL, ids=str)
trained = pytest.mark.parametrize("case", TRAINED, ids=str)
honest = pytest.mark.parametrize(("case", "objective"), OBJECTIVES, ids=lambda part: str(part))


def histories(rows: int = 6, length: int = 16, seed: int = 0, shortest: int = 1) -> Tensor:
    """Left-padded random histories `[rows, length]` of different lengths, the first of them full."""
    generator = torch.Generator().manual_seed(seed)
    items = torch.randint(1, N_ITEMS + 1, (rows, length), generator=generator)
    real = torch.randint(shortest, length + 1, (rows,), generator=generator)
    real[0] = length
    return items * (torch.arange(length) >= length - real[:, None])


def reading(items: Tensor, recall: Tensor | None = None) -> Batch:
    return Batch(items, items if recall is None else recall, padded=bool((items[:, 0] == 0).any()))


def training(objective: str, **more: Any) -> TrainConfig:
    return TrainConfig(**{"objective": objective, "window": 5, "cuts": 3, "batch": 16, "seed": 3, **more})  # type: ignore[arg-type]


# --- shapes and numbers ----------------------------------------------------------------------------------------------


@every
@torch.no_grad()
def test_shapes_and_finite_scores(case: Case, small_world: Dataset) -> None:
    model, batch = case.ready(small_world), reading(histories())
    scores = model.score(batch)
    assert scores.shape == (6, small_world.catalog.n_items + 1)
    assert scores[:, 1:].isfinite().all()
    assert model.length == case.config().length
    if model.objectives:
        states = model(batch).states
        assert states.shape == (6, 16, 16) and states.isfinite().all()
        assert model.item_table().shape == (small_world.catalog.n_items + 1, 16)
        torch.testing.assert_close(model.logits(states), states @ model.item_table().T)


@trained
@torch.no_grad()
def test_the_last_state_is_the_last_of_all_states(case: Case) -> None:
    """Of full, padded and empty histories."""
    model = case.build()
    for items in (histories(), histories(shortest=16), histories().masked_fill(torch.arange(6)[:, None] == 2, 0)):
        assert model(reading(items)).states.isfinite().all()
        torch.testing.assert_close(model.last_state(reading(items)), model(reading(items)).states[:, -1], atol=1e-5, rtol=1e-4)


@every
@torch.no_grad()
def test_the_promise_that_nothing_is_padded_only_saves_time(case: Case, small_world: Dataset) -> None:
    model = case.ready(small_world)
    for columns in (16, 13):  # blocks and windows of the query network are full, or not
        items = histories(shortest=16)[:, :columns]
        promised, asked = (model.score(Batch(items, items, padded=padded)) for padded in (False, True))
        torch.testing.assert_close(promised, asked, atol=1e-5, rtol=1e-4)


@trained
def test_a_step_in_bfloat16_is_a_step(case: Case) -> None:
    """What a GPU trains in: states and gradients stay near those of float32, and the search in float32 itself."""
    model, batch = case.build(), reading(histories(32, seed=1))
    exact, real = model(batch).states.detach(), batch.real
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(batch).states.detach().float()
        if model.retrieves and case.config().memory != "none":  # type: ignore[attr-defined]
            found = model.retrieve(batch)  # type: ignore[operator]
            assert found.halves.dtype == found.scores.dtype == found.interests.dtype == torch.float32
        model.train()(batch).states.float()[real].square().sum().backward()
    assert (rough - exact)[real].abs().mean() < 0.05 * exact[real].abs().mean()
    reached = [p.grad for p in model.parameters() if p.grad is not None]
    assert reached and all(gradient.isfinite().all() for gradient in reached)


@every
@torch.no_grad()
def test_padding_and_company_are_invisible(case: Case, small_world: Dataset) -> None:
    """Neither more padding on the left nor who else is in the batch changes a score."""
    model, short = case.ready(small_world), histories(5, 9, shortest=2)
    alone = model.score(reading(short))
    for width in (10, 13, 16):
        padded = torch.nn.functional.pad(short, (width - 9, 0))
        torch.testing.assert_close(model.score(reading(padded)), alone, atol=1e-5, rtol=1e-4)
        crowd = torch.cat([histories(4, width, seed=1), padded])
        torch.testing.assert_close(model.score(reading(crowd))[4:], alone, atol=1e-5, rtol=1e-4)


@trained
def test_same_seed_same_numbers(case: Case, small_world: Dataset) -> None:
    def losses() -> list[float]:
        model = case.build(small_world.catalog.n_items, dropout=0.3).train()
        train = training(model.honest_objectives()[0])
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        found = []
        for batch, _ in zip(Sampler(small_world, train, model.length).epoch(0), range(3), strict=False):
            loss, penalty = next_item_loss(model, batch, train)
            optimizer.zero_grad()
            (loss + penalty).backward()
            optimizer.step()
            found.append(float(loss.detach()))
        return found

    assert losses() == losses()


@every
def test_saved_and_loaded_it_scores_the_same(case: Case, small_world: Dataset, tmp_path: Path) -> None:
    config = RunConfig(data=DataConfig(source="planted"), model=case.config(), train=TrainConfig())
    model = case.ready(small_world)
    run = Run(tmp_path / "run")
    run.start(config, small_world)
    run.save_weights(model)
    users = np.arange(8)
    batch = reading_batch(small_world, users, small_world.ends("test")[users], model.length)
    with torch.no_grad():
        assert torch.equal(Run(run.path).model(small_world).score(batch), model.score(batch))


# --- learning --------------------------------------------------------------------------------------------------------


@trained
def test_gradient_reaches_every_parameter(case: Case, small_world: Dataset) -> None:
    """With one exception that is the point: without a gate, keys and query network learn nothing (Algorithm 1)."""
    model = case.build(small_world.catalog.n_items).train()
    train = training(model.honest_objectives()[0], batch=64)
    batch = max(Sampler(small_world, train, model.length).epoch(0), key=lambda b: int(b.real.sum()))
    next_item_loss(model, batch, train)[0].backward()
    silent = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()}
    expected = {name for name, _ in model.named_parameters() if name.startswith(case.deaf)} if case.deaf else set()
    assert silent == expected


@trained
def test_a_tiny_batch_can_be_learned_by_heart(case: Case, small_world: Dataset) -> None:
    model = case.build(small_world.catalog.n_items, layers=1).train()
    train = training(model.honest_objectives()[0], batch=8)
    batch = next(iter(Sampler(small_world, train, model.length).epoch(0)))
    optimizer = torch.optim.Adam(model.parameters(), 3e-2)
    losses: list[float] = []
    while len(losses) < 150 and (not losses or losses[-1] > 0.25 * losses[0]):
        loss, _ = next_item_loss(model, batch, train)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] <= 0.25 * losses[0]


# --- honesty ---------------------------------------------------------------------------------------------------------


@trained
@torch.no_grad()
def test_causal_tells_the_truth(case: Case) -> None:
    """Changing items after t leaves the states up to t alone, if and only if the model says so. What it recalls stays."""
    model, items = case.build(), histories(8, shortest=8)
    recall = torch.nn.functional.pad(items[:, :6], (10, 0))
    before = model(reading(items, recall)).states
    moved = False
    for t in (5, 9, 14):
        changed = items.clone()
        changed[:, t + 1 :] = items[:, t + 1 :] % N_ITEMS + 1
        after = model(reading(changed, recall)).states
        assert not torch.allclose(after[:, -1], before[:, -1], atol=1e-4)
        same = torch.allclose(after[:, : t + 1], before[:, : t + 1], atol=1e-6)
        moved |= not same
        assert same or not model.causal
    assert moved or model.causal


def changed_futures(dataset: Dataset, seed: int) -> tuple[Dataset, np.ndarray]:
    """The same histories with every event from a random one on replaced, per person; and where the change begins."""
    rng, old = np.random.default_rng(seed), dataset.histories
    begins = old.offsets[:-1] + rng.integers(1, old.lengths)
    owner = np.repeat(np.arange(old.n_users), old.lengths)
    later = np.arange(len(old.items)) >= begins[owner]
    shifted = (old.items - 1 + rng.integers(1, dataset.catalog.n_items, len(old.items))) % dataset.catalog.n_items + 1
    return replace(dataset, histories=replace(old, items=np.where(later, shifted, old.items).astype(np.int32))), begins


def places(dataset: Dataset) -> Dataset:
    """The same histories with each event's own position (from 1) in place of its item: batches then say what they hold."""
    old = dataset.histories
    return replace(dataset, histories=replace(old, items=np.arange(1, len(old.items) + 1, dtype=np.int32)))


def peeks(model: models.Recommender, dataset: Dataset, train: TrainConfig) -> Iterator[tuple[float, int]]:
    """Per training batch: how far the states of targets move when those targets and all later events change, and how many."""
    other, begins = changed_futures(dataset, seed=7)
    samplers = [Sampler(world, train, model.length).epoch(0) for world in (places(dataset), dataset, other)]
    for where, batch, changed in zip(*samplers, strict=True):
        assert where.targets is not None
        owner = np.searchsorted(dataset.histories.offsets, where.targets.numpy() - 1, side="right") - 1
        before_change = (where.targets.numpy() > 0) & (where.targets.numpy() - 1 <= begins[owner])
        checked = torch.from_numpy(before_change)
        moved = (model(batch).states - model(changed).states).abs().amax(-1)[checked]
        yield (float(moved.max()) if len(moved) else 0.0), len(moved)


@honest
@torch.no_grad()
def test_no_peeking(case: Case, objective: str, small_world: Dataset) -> None:
    """With the sampler's own batches: a target and everything after it may change, the state that scores it may not."""
    model = case.build(small_world.catalog.n_items)
    found = list(peeks(model, small_world, training(objective)))
    assert max(moved for moved, _ in found) <= 1e-5
    assert sum(count for _, count in found) > 100


@torch.no_grad()
def test_the_peeking_test_has_teeth(small_world: Dataset) -> None:
    """A two-way encoder trained on all positions would see its answers, and is refused for it."""
    model = Case("elastic", {"form": "two-way"}).build(small_world.catalog.n_items)
    assert max(moved for moved, _ in peeks(model, small_world, training("all"))) > 1e-2
    for objective in ("all", "window"):
        with pytest.raises(InputError, match=objective):
            model.check(objective)


@pytest.mark.parametrize("objective", ["all", "window", "last"])
def test_training_shows_every_train_target_and_no_held_out_event(objective: str, small_world: Dataset) -> None:
    """Held-out events are never an input nor a target; an epoch with cuts = 0 has every train target exactly once."""
    ends, owner = small_world.ends("train"), np.repeat(np.arange(small_world.histories.n_users), small_world.histories.lengths)
    seen = np.zeros(len(owner), dtype=int)
    for batch in Sampler(places(small_world), training(objective, cuts=0), 16).epoch(1):
        assert batch.targets is not None
        for tensor in (batch.items, batch.recall, batch.targets):
            there = tensor[tensor > 0].numpy() - 1
            assert (there < ends[owner[there]]).all()
        np.add.at(seen, batch.targets[batch.targets > 0].numpy() - 1, 1)
    place = np.arange(len(owner))
    wanted = (place > small_world.histories.offsets[owner]) & (place < ends[owner])
    assert np.array_equal(seen, wanted.astype(int))


@torch.no_grad()
def test_fused_and_eager_attention_give_the_same_numbers() -> None:
    fused, eager = Case("sasrec", {"heads": 2}).build(), Case("sasrec", {"heads": 2, "fused": False}).build()
    eager.load_state_dict(fused.state_dict())
    for items in (histories(), histories(shortest=16), histories().masked_fill(torch.arange(6)[:, None] == 2, 0)):
        real = items > 0
        torch.testing.assert_close(fused.last_state(reading(items)), eager.last_state(reading(items)), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(fused(reading(items)).states[real], eager(reading(items)).states[real], atol=1e-5, rtol=1e-4)


# --- streaming -------------------------------------------------------------------------------------------------------


@every
@torch.no_grad()
def test_who_claims_to_stream_equals_the_batch_pass_event_by_event(case: Case) -> None:
    """One pass over a window against a state that never sees it; who does not claim it is refused."""
    model, room = case.build(), 7
    if not model.streams:
        with pytest.raises(InputError, match="constant size"):
            open_stream(model, room)
        return
    cut = model.length - room
    window = torch.cat([histories(length=cut), torch.randint(1, N_ITEMS + 1, (6, room))], dim=1)
    recall = torch.nn.functional.pad(window[:, :cut], (room, 0))
    expected = model(reading(window, recall)).states
    stream = open_stream(model, room)
    found = [stream.refresh(window[:, :cut]), *(stream.step(window[:, cut + i]) for i in range(room))]
    torch.testing.assert_close(torch.stack(found, 1), expected[:, cut - 1 :], atol=2e-5, rtol=1e-4)
