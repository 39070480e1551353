"""The contract, for every model in the registry and every variant of ELASTIC. A new model file is tested by being there."""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from elastic_core import models, objectives, recipes
from elastic_core.core import step
from elastic_core.core.batches import Batch, reading_batch
from elastic_core.core.config import ModelConfig, ObjectiveConfig, TrainConfig
from elastic_core.core.objective import Window, WindowConfig, tile_targets
from elastic_core.core.step import Optimization
from elastic_core.core.stream import open_stream
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.models import Encoded, Mixture, Recommender, can_retrieve
from elastic_core.objectives import Objective
from elastic_core.run_config import DataConfig, RunConfig
from elastic_core.runs import Run

TINY = {"length": 16, "width": 16, "layers": 2, "dropout": 0.0, "n_subkeys": 4, "k": 3}
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

    def build(self, catalog: Catalog | int = N_ITEMS, **more: Any) -> Recommender:
        torch.manual_seed(0)
        return models.build(self.config(**more), catalog).eval()

    def ready(self, world: Dataset) -> Recommender:
        """One that scores: a model that needs no training is fitted."""
        model = self.build(world.catalog)
        model.fit(world)
        return model


UNREACHED = ("memories.0.query_network", "memories.0.keys", "memories.0.norm")  # Algorithm 1 as printed
VARIANTS = [
    Case("elastic", {"bidirectional": True, "heads": 2}),
    Case("elastic", {"query_norm": "layer", "heads": 2}),
    Case("elastic", {"memory": "per-layer", "conv_width": 0}),
    Case("elastic", {"memory": "none"}),
    Case("elastic", {"query": "mean", "dispatch": "none"}),
    Case("elastic", {"dispatch": "none", "bidirectional": True}),
    Case("elastic-votes", {"memory": "per-layer", "bidirectional": True}),
    Case("elastic-votes", {"output": "own", "interest_weight": 0.0}),
    Case("elastic", {"gate": "none"}, UNREACHED),
    Case("elastic", {"output": "own", "repeat_bias": True}),
    Case("elastic-slots", {"memory": "none", "conv_width": 0}),
    Case("elastic-slots", {"query": "mean", "interest_weight": 0.0}),
    Case("elastic-slots", {"output": "own", "repeat_bias": True, "repeat_counts": True}),
    Case("linrec", {"heads": 2}),
    Case("hstu", {"time_bias": "previous", "heads": 2}),
    Case("lisa", {"form": "soft", "codewords": 16}),
    Case("lisa", {"form": "mini", "codewords": 32, "output": "own"}),
    Case("lisa", {"form": "plain", "layers": 1}),
    Case("lisa", {"form": "frozen"}, ("events.items",)),  # what its codes were found from
    Case("reformer", {"rounds": 3, "window": 3, "heads": 2}),
    Case("routing", {"clusters": 3, "window": 4}),
    Case("clustered", {"clusters": 4, "topk": 3}),
    Case("sma", {"ctreg_weight": 0.1, "heads": 2}),
    Case("sma", {"intensity": "event", "ctreg_weight": 0.1, "repeat_bias": True}),
    Case("din", {"recency": True}),
    Case("din", {"intensity": "event", "ctreg_weight": 0.1, "repeat_bias": True, "repeat_counts": True}),
    Case("shan", {"intensity": "state", "ctreg_weight": 0.1, "repeat_bias": True}),
    Case("sasrec", {"fused": False, "heads": 2}),
    Case("sasrec", {"conv_width": 3, "repeat_bias": True}),
    Case("sasrec", {"repeat_bias": True, "repeat_counts": True}),
    *(Case(name, {"output": "own"}) for name in ("sasrec", "bert4rec", "lrurec")),
]
ALL = [*(Case(name) for name in models.model_names()), *VARIANTS]
TRAINED = [case for case in ALL if models.model_class(case.name).objective]
OBJECTIVES = [
    (case, name)
    for case in TRAINED
    for name in objectives.honest_objectives(models.outline(case.config(), N_ITEMS) or case.build())
]

COMPLETE = {"all", "last", "window"}  # objectives of which an epoch shows every training target
LEAST = {"shan": 0.5}  # of the loss is left: its state is a mean of the very vectors that it is compared with

SCORED = {"sasrec", "elastic-slots", "lrurec", "din", "lisa"}  # by products, a mixture, a bias, pairs and composed tables
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


def reading(items: Tensor, retrieval: Tensor | None = None) -> Batch:
    times = torch.arange(items.shape[1]).expand_as(items) * 3_600 * (items > 0)  # for models that read the clock
    return Batch(items, items if retrieval is None else retrieval, times=times, padded=bool((items[:, 0] == 0).any()))


def learning(name: str, dataset: Dataset, length: int = 16, **more: Any) -> Objective:
    kind = ObjectiveConfig.known[name]
    known = {f.name for f in dataclasses.fields(kind)}
    settings = {"span": 5, "prefixes_per_user": 3, **more}
    return objectives.build(kind(**{key: value for key, value in settings.items() if key in known}), dataset, length)


def learner(model: Recommender, dataset: Dataset, **settings: Any) -> Optimization:
    train = TrainConfig(**{"batch": 16, "seed": 3, **settings})  # type: ignore[arg-type]
    return Optimization(
        model.train(), learning(objectives.honest_objectives(model)[0], dataset, model.length), train, torch.device("cpu")
    )


@trained
def test_a_step_waits_for_no_device(case: Case, small_world: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """On torch's `meta` device, which has shapes and no numbers, so whoever asks it for one fails; as on a GPU, all that is not a
    processor's own form runs. A GPU that is asked in every step idles while the next one is prepared."""
    device, train, made_of = torch.device("meta"), TrainConfig(batch=16, seed=3, ema_decay=0.9), torch.tensor

    def tensor(data: Any, **how: Any) -> Tensor:
        assert how.get("device") != device, "numbers of the processor's are copied there: that is waited for, too"
        return made_of(data, **how)

    model = case.build(small_world.catalog, dropout=0.1).to(device).train()
    for loss in ("full", "sampled") if str(case) in SCORED or "repeat_bias" in case.settings else ("full",):
        made = Optimization(
            model, learning(objectives.honest_objectives(model)[0], small_world, loss=loss, negatives=8), train, device
        )
        batch = next(made.objective.epoch_batches(0, 3, 16))
        if loss == "full" and str(case) in SCORED:
            learned = made.step(batch.to(device))
        else:  # clipped and updated all alike
            learned = made.loss(batch.to(device))
            made.backward(learned)
        assert learned.total.device == device and learned.targets == int((batch.targets > 0).sum())
        with pytest.raises(RuntimeError, match="meta"):
            learned.total.item()
        monkeypatch.setattr(torch, "tensor", tensor)  # what is kept is copied once


COMPILED = [  # what is timed; of two the backward pass is taken apart as well, which takes several times as long
    (Case("elastic"), "aot_eager"),
    (Case("elastic", {"bidirectional": True}), "eager"),
    (Case("elastic-slots"), "aot_eager"),
    (Case("sasrec"), "eager"),
    (Case("lrurec"), "eager"),
]


@pytest.mark.parametrize(("case", "how"), COMPILED, ids=str)
def test_compiled_it_is_one_graph_and_the_same(
    case: Case, how: str, small_world: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `torch.compile` takes it apart, without the machine code that would be made of it."""
    monkeypatch.setitem(step.COMPILERS, "cpu", how)
    counters, found = torch._dynamo.utils.counters, []
    for mode in ("none", "default"):
        torch._dynamo.reset()
        counters.clear()
        model = case.build(small_world.catalog, layers=1, length=8).train()
        made = learner(model, small_world, compile=mode)
        batch = next(made.objective.epoch_batches(0, 3, 16)).to("cpu")
        loss = made.loss(batch)
        made.backward(loss)
        found.append([loss.total.detach(), *(p.grad for p in model.parameters() if p.grad is not None)])
    assert counters["stats"]["unique_graphs"] == 1 and not counters["graph_break"]
    torch.testing.assert_close(*found)


def test_what_cannot_be_compiled_is_refused(small_world: Dataset) -> None:
    with pytest.raises(InputError, match="for a GPU"):
        learner(Case("sasrec").build(small_world.catalog), small_world, compile="default")


@pytest.mark.parametrize("name", sorted({case.name for case in TRAINED}))
def test_items_are_scored_by_the_table_that_was_asked_for_or_the_model_refuses(name: str) -> None:
    try:
        model = models.build(recipes.toy(name).override("model.output=own").model, N_ITEMS)
    except InputError as refusal:
        assert "take model.output=tied" in str(refusal) and models.model_class(name).scorer is not Recommender.scorer
        return
    scored, read = model.output, model.events.items
    assert scored is not None and model.scorer().table.data_ptr() == scored.weight.data_ptr() != read.weight.data_ptr()
    assert len(model.scorer().table) == N_ITEMS + 1 and not scored.weight[0].any() and scored.weight[1:].std() > 0


# --- shapes and numbers ----------------------------------------------------------------------------------------------


@every
@torch.no_grad()
def test_shapes_and_finite_scores(case: Case, small_world: Dataset) -> None:
    model, batch = case.ready(small_world), reading(histories())
    scores = model.score(batch)
    assert scores.shape == (6, small_world.catalog.n_items + 1)
    assert scores[:, 1:].isfinite().all()
    assert model.length == case.config().length
    if model.trained:
        encoded, scorer = model(batch), model.scorer()
        wide = scorer.parts * (16 + 1) if scorer.parts else 16 if scorer.pairs is None else encoded.states.shape[-1]
        assert encoded.states.shape == (6, 16, wide) and encoded.states.isfinite().all()
        assert {*encoded.auxiliary, *encoded.summed} <= set(model.auxiliary_weights())
        assert len(scorer.table) == small_world.catalog.n_items + 1
        items = torch.tensor([3, 1, 7, 2, 2, 9])
        vectors, shares = scorer.split_mixture(encoded.states[:, -1])
        logits = scorer.logits(vectors)
        torch.testing.assert_close(scorer.score_items(vectors, items), logits[..., items])
        torch.testing.assert_close(scorer.score_own_item(vectors, items), logits[torch.arange(6), :, items])
        torch.testing.assert_close(shares.exp().sum(-1), torch.ones(6))
        if scorer.parts:
            torch.testing.assert_close(scorer(encoded.states[:, -1]).exp().sum(-1), torch.ones(6))


@trained
@torch.no_grad()
def test_the_last_state_is_the_last_of_all_states(case: Case) -> None:
    """Of full, padded and empty histories."""
    model = case.build()
    for items in (histories(), histories(shortest=16), histories().masked_fill(torch.arange(6)[:, None] == 2, 0)):
        every = model(model.prediction_batch(reading(items))).states
        assert every.isfinite().all()
        torch.testing.assert_close(model.last_state(reading(items)), every[:, -1], atol=1e-5, rtol=1e-4)


@every
@torch.no_grad()
def test_the_promise_that_nothing_is_padded_only_saves_time(case: Case, small_world: Dataset) -> None:
    model = case.ready(small_world)
    for columns in (16, 13):  # blocks and windows of the query network are full, or not
        items = histories(shortest=16)[:, :columns]
        promised, asked = (model.score(replace(reading(items), padded=padded)) for padded in (False, True))
        torch.testing.assert_close(promised, asked, atol=1e-5, rtol=1e-4)


def told(model: Recommender, batch: Batch) -> Tensor:
    """What a pass says of every event: its state, or where pairs hold what is learned, the logits of all items."""
    states, scorer = model(batch).states[batch.real], model.scorer()
    return states if scorer.pairs is None else scorer.logits(states)[..., 1:]


@trained
def test_a_step_in_bfloat16_is_a_step(case: Case) -> None:
    """What a GPU trains in: states and gradients stay near those of float32, and the search in float32 itself."""
    model, batch = case.build(), reading(histories(32, seed=1))
    exact = told(model, batch).detach()
    with torch.autocast("cpu", torch.bfloat16):
        rough = told(model, batch).detach().float()
        if can_retrieve(model):
            found = model.retrieve(batch)
            assert found.halves.dtype == found.scores.dtype == found.interests.dtype == torch.float32
        told(model.train(), batch).float().square().sum().backward()
    assert (rough - exact).abs().mean() < 0.05 * exact.abs().mean()
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


@pytest.mark.parametrize("case", TRAINED, ids=str)
def test_same_seed_same_numbers(case: Case, small_world: Dataset) -> None:
    def losses() -> list[float]:
        made = learner(case.build(small_world.catalog, layers=1, dropout=0.3), small_world)
        return [float(made.step(batch).total) for batch, _ in zip(made.objective.epoch_batches(0, 3, 16), range(2), strict=False)]

    assert losses() == pytest.approx(losses(), rel=1e-6)  # a product adds in another order where memory begins elsewhere


@every
def test_saved_and_loaded_it_scores_the_same(case: Case, small_world: Dataset, tmp_path: Path) -> None:
    config = RunConfig(data=DataConfig(source="planted"), model=case.config(), objective=WindowConfig(), train=TrainConfig())
    model = case.ready(small_world)
    run = Run(tmp_path / "run")
    run.write_start(config, small_world)
    run.save_weights(model)
    users = np.arange(8)
    batch = reading_batch(small_world, users, small_world.split_ends("test")[users], model.length)
    with torch.no_grad():
        assert torch.equal(Run(run.path).model(small_world).score(batch), model.score(batch))


# --- learning --------------------------------------------------------------------------------------------------------


@trained
def test_gradient_reaches_every_parameter(case: Case, small_world: Dataset) -> None:
    """With two exceptions that are the point: without a gate, keys and query network learn nothing (Algorithm 1), and codes of
    another model's items stay."""
    model = case.build(small_world.catalog, balance_weight=0.0).train()
    objective = learning(objectives.honest_objectives(model)[0], small_world)
    batch = max(objective.epoch_batches(0, 3, 64), key=lambda b: int(b.real.sum()))
    loss = objective.loss(model, batch)
    (loss.total + sum(loss.summed.values())).backward()
    silent = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()}
    expected = {name for name, _ in model.named_parameters() if name.startswith(case.deaf)} if case.deaf else set()
    assert silent == expected


@trained
def test_the_optimiser_is_given_every_parameter_once(case: Case) -> None:
    model = case.build()
    given = [p for group in model.parameter_groups() for p in group["params"]]
    assert len(given) == len(set(given)) and set(given) == set(model.parameters())


@trained
def test_a_tiny_batch_can_be_learned_by_heart(case: Case, small_world: Dataset) -> None:
    made, least = learner(case.build(small_world.catalog, layers=1), small_world, learning_rate=3e-2), LEAST.get(case.name, 0.4)
    batch = next(iter(made.objective.epoch_batches(0, 3, 8)))
    made.targets_per_step = max(float((batch.targets > 0).sum()), 1.0)  # type: ignore[operator]
    losses: list[float] = []
    while len(losses) < 150 and (not losses or losses[-1] > least * losses[0]):
        losses.append(float(made.step(batch).total))
    assert losses[-1] <= least * losses[0]


@trained
def test_calibration_changes_statistics_and_nothing_else(case: Case) -> None:
    """What no gradient learns is set by `calibrate` alone: a pass in training mode leaves every buffer as it was."""
    model, batch = case.build().train(), reading(histories(32, seed=2))
    before = {name: x.clone() for name, x in model.state_dict().items()}
    model(batch)
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
    model.calibrate(batch)
    parameters = {name for name, _ in model.named_parameters()}
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items() if name in parameters)


# --- honesty ---------------------------------------------------------------------------------------------------------


@trained
@torch.no_grad()
def test_causal_tells_the_truth(case: Case) -> None:
    """Changing items after t leaves the states up to t alone, if and only if the model says so. What it retrieves from stays."""
    model, items = case.build(), histories(8, shortest=8)
    retrieval = torch.nn.functional.pad(items[:, :6], (10, 0))
    before = model(reading(items, retrieval)).states
    moved = False
    for t in (5, 9, 14):
        changed = items.clone()
        changed[:, t + 1 :] = items[:, t + 1 :] % N_ITEMS + 1
        after = model(reading(changed, retrieval)).states
        assert not torch.allclose(after[:, -1], before[:, -1], atol=1e-4)
        same = torch.allclose(after[:, : t + 1], before[:, : t + 1], atol=1e-6)
        moved |= not same
        assert same or not model.causal
    assert moved or model.causal


def changed_events(dataset: Dataset, shows: str, seed: int) -> tuple[Dataset, np.ndarray]:
    """The same histories with what an objective must not show replaced, items and times; and where, per person.

    `past`: every event from a random one on. `others`: one random event alone."""
    rng, old = np.random.default_rng(seed), dataset.histories
    begins = old.offsets[:-1] + rng.integers(1, old.lengths)
    owner, place = np.repeat(np.arange(old.n_users), old.lengths), np.arange(len(old.items))
    hidden = place >= begins[owner] if shows == "past" else place == begins[owner]
    n = dataset.catalog.n_items
    items = np.where(hidden, (old.items - 1 + rng.integers(1, n, len(old.items))) % n + 1, old.items).astype(np.int32)
    times = old.times + hidden * rng.integers(3_600, 90 * 86_400, len(old.items))
    return replace(dataset, histories=replace(old, items=items, times=times)), begins


def places(dataset: Dataset) -> Dataset:
    """The same histories with each event's own position (from 1) in place of its item: batches then say what they hold."""
    old = dataset.histories
    items = np.arange(1, len(old.items) + 1, dtype=np.int32)
    return replace(dataset, catalog=Catalog.from_count(len(items)), histories=replace(old, items=items))


Shown = list[tuple[Batch, Batch, Tensor]]


def shown(dataset: Dataset, objective: Callable[[Dataset], Objective]) -> Shown:
    """Every training batch of an epoch as it is, as it is where what targets must not see has changed, and which those are."""
    assert dataset.has_times
    shows = objective(dataset).shows
    other, begins = changed_events(dataset, shows, seed=7)
    found: Shown = []
    for where, batch, changed in zip(
        *(objective(world).epoch_batches(0, 3, 64) for world in (places(dataset), dataset, other)), strict=True
    ):
        assert where.targets is not None
        place = where.targets.numpy() - 1
        begin = begins[np.searchsorted(dataset.histories.offsets, place, side="right") - 1]
        checked = (place >= 0) & (place <= begin if shows == "past" else place == begin)
        found.append((batch, changed, torch.from_numpy(checked)))
    return found


def peeks(model: Recommender, batches: Shown) -> Iterator[tuple[float, int]]:
    """Per training batch: how far the states of targets move when what they must not see changes, and how many there are."""
    for batch, changed, checked in batches:
        one, other = model(batch).states, model(changed).states
        if isinstance(one, Mixture):
            assert all(torch.equal(a, b) for a, b in zip(batch.places[:2], changed.places[:2], strict=True))
            at_targets = checked[batch.places[:2]]
            assert at_targets.sum() == checked.sum(), "every target has its mixture"
            moved = torch.cat([(a - b).abs().flatten(1) for a, b in zip(one, other, strict=True)], 1).amax(1)[at_targets]
        else:
            moved = (one - other).abs().amax(-1)
            assert not checked[:, : -moved.shape[1]].any(), "states begin at or before the first target"
            moved = moved[checked[:, -moved.shape[1] :]]
        yield (float(moved.max()) if len(moved) else 0.0), len(moved)


@pytest.fixture(scope="module")
def epochs(small_world: Dataset) -> dict[str, Shown]:
    """What every objective shows; models read it and leave it as it is."""
    return {name: shown(small_world, lambda world, name=name: learning(name, world)) for name in objectives.objective_names()}


@honest
@torch.no_grad()
def test_no_peeking(case: Case, objective: str, small_world: Dataset, epochs: dict[str, Shown]) -> None:
    """With the objective's own batches: what its leak rule hides may change, items and times; the states that score may not."""
    model = case.build(small_world.catalog)
    found = list(peeks(model, epochs[objective]))
    assert max(moved for moved, _ in found) <= 1e-5
    assert sum(count for _, count in found) > (100 if objective in COMPLETE else 5)


@torch.no_grad()
def test_the_peeking_test_has_teeth(small_world: Dataset, epochs: dict[str, Shown]) -> None:
    """Caught: a two-way encoder on all positions, a model that reads the clock of the next event, an objective that lets the
    retrieval read its window. The first is refused by name as well."""
    model = Case("elastic", {"bidirectional": True}).build(small_world.catalog)
    assert max(moved for moved, _ in peeks(model, epochs["all"])) > 1e-2
    for name in ("all", "window", "cloze"):
        with pytest.raises(InputError, match=name):
            objectives.check_objective(name, model)

    class NextClock(models.model_class("sasrec")):  # type: ignore[misc]
        def forward(self, batch: Batch) -> Encoded:
            gap = batch.times.roll(-1, 1) - batch.times
            return Encoded(super().forward(batch).states + (gap / 86_400).tanh().unsqueeze(-1))

    torch.manual_seed(0)
    late = NextClock(Case("sasrec").config(), small_world.catalog).eval()
    assert max(moved for moved, _ in peeks(late, epochs["all"])) > 1e-2

    class Generous(Window):
        def make_batch(self, rows: Any, rng: np.random.Generator) -> Batch:
            made = super().make_batch(rows, rng)
            return replace(made, retrieval_items=made.items)

    causal = Case("elastic").build(small_world.catalog)
    assert (
        max(moved for moved, _ in peeks(causal, shown(small_world, lambda world: Generous(WindowConfig(span=5), world, 16))))
        > 1e-3
    )


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("objective", objectives.objective_names())
def test_training_shows_train_events_alone(objective: str, ranks: int, small_world: Dataset) -> None:
    """Held-out events are never an input nor a target, and all ranks have equally many steps. Objectives that show all there
    is (`last`: of every prefix) show every train target once."""
    ends, owner = (
        small_world.split_ends("train"),
        np.repeat(np.arange(small_world.histories.n_users), small_world.histories.lengths),
    )
    world = places(small_world)
    seen, steps = np.zeros(len(owner), dtype=int), set()
    for rank in range(ranks):
        batches = list(learning(objective, world, prefixes_per_user=0).epoch_batches(1, 3, 16, rank, ranks))
        steps.add(len(batches))
        for batch in batches:
            assert batch.targets is not None
            for tensor in (batch.items, batch.retrieval_items, batch.targets):
                there = tensor[(tensor > 0) & (tensor <= len(owner))].numpy() - 1
                assert (there < ends[owner[there]]).all()
            np.add.at(seen, batch.targets[batch.targets > 0].numpy() - 1, 1)
    place = np.arange(len(owner))
    wanted = (place > small_world.histories.offsets[owner]) & (place < ends[owner])
    assert len(steps) == 1 and seen[place >= ends[owner]].sum() == 0
    if objective in COMPLETE:
        assert np.array_equal(seen, wanted.astype(int))
    assert seen[wanted].any()


class Even(Recommender):
    """Finds every item equally likely; the gradient of its bias then tells what every target weighed."""

    objective, causal = "all", True

    def __init__(self, n_items: int, masks: bool) -> None:
        super().__init__(Case("sasrec").config(), Catalog.from_count(n_items))
        self.masks, self.bias = masks, torch.nn.Parameter(torch.zeros(n_items + 1))

    def forward(self, batch: Batch) -> Encoded:
        return Encoded(torch.zeros(*batch.items.shape, 1))

    def scorer(self) -> models.Scorer:
        return models.Scorer(torch.zeros(len(self.bias), 1), self.bias)


def weights(objective: str, world: Dataset, batch: int, epochs: int) -> np.ndarray:
    """What training targets weigh in the steps of some epochs, relative to their mean: `[targets]`; where they are drawn at
    random, the means of every person's last target and of their others."""
    kind = objectives.objective_class(objective)
    model = Even(world.catalog.n_items, masks=bool(kind.refusal_reason(Even(1, masks=False))))
    train = TrainConfig(batch=batch, learning_rate=1e-9, seed=3)
    made = Optimization(model, learning(objective, world, prefixes_per_user=0), train, torch.device("cpu"))
    total = torch.zeros(world.catalog.n_items)
    for epoch in range(epochs):
        for shown in made.objective.epoch_batches(epoch, 3, batch):
            made.step(shown)
            assert model.bias.grad is not None
            total += model.bias.grad[1:]
    found = (total.max() - total).numpy()  # held-out events are no target: their gradient is the largest
    owner = np.repeat(np.arange(world.histories.n_users), world.histories.lengths)
    place = np.arange(len(owner))
    target = (place > world.histories.offsets[owner]) & (place < world.split_ends("train")[owner]) & (found > 1e-6 * found.max())
    if epochs > 1:
        last = place == world.split_ends("train")[owner] - 1
        means = [np.bincount(owner[part], found[part]) / np.bincount(owner[part]) for part in (target & last, target & ~last)]
        found, target = np.concatenate([means[0].mean(keepdims=True), means[1]]), np.s_[:]
    return found[target] / found[target].mean()


def asked_for(objective: Objective, epoch: int) -> list[int]:
    """Every target of an epoch, as often as it is one."""
    return sorted(int(item) for batch in objective.epoch_batches(epoch, 3, 16) for item in batch.targets[batch.targets > 0])  # type: ignore[index]


@pytest.mark.parametrize("objective", objectives.objective_names())
def test_every_target_weighs_the_same_whatever_batch_it_is_in(objective: str, small_world: Dataset) -> None:
    """Batches hold rows of like lengths; means of batches gave the heaviest target 36 times the weight of the lightest. Where
    chance draws the targets of an epoch, as `cloze` does, they weigh the same in the mean of many."""
    world = places(small_world)
    made = learning(objective, world, prefixes_per_user=0)
    by_chance = asked_for(made, 1) != asked_for(made, 2)
    small, large = (weights(objective, world, batch, 25 if by_chance else 1) for batch in (4, 24))
    for found in (small, large):
        assert found.max() / found.min() < (2 if by_chance else 1.001)
    np.testing.assert_allclose(small, large, rtol=0.6 if by_chance else 1e-3)


@settings(max_examples=200, deadline=None)
@given(
    targets=some.lists(some.integers(1, 60), min_size=1, max_size=20),
    span=some.integers(1, 25),
    split=some.booleans(),
    seed=some.integers(0, 99),
)
def test_tiles_cover_every_target_once_and_are_no_more_than_needed(targets: list[int], span: int, split: bool, seed: int) -> None:
    """The same budget for every objective: no more is read than the targets ask for, though borders move."""
    lengths = np.array(targets)
    which, back, wide = tile_targets(lengths, span, np.random.default_rng(seed), split)
    for i, n in enumerate(lengths):
        covered = [place for b, w in zip(back[which == i], wide[which == i], strict=True) for place in range(b, b + w)]
        assert sorted(covered) == list(range(n))
        needed = -(-n // span)
        assert (which == i).sum() in ({needed} if needed > 1 or not split else {1, 2})
    assert wide.max() <= span


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
        with pytest.raises(InputError, match="event by event"):
            open_stream(model, room)
        return
    cut = model.length - room
    window = torch.cat([histories(length=cut), torch.randint(1, N_ITEMS + 1, (6, room))], dim=1)
    retrieval = torch.nn.functional.pad(window[:, :cut], (room, 0))
    expected = model(reading(window, retrieval)).states
    stream = open_stream(model, room)
    found = [stream.refresh(window[:, :cut]), *(stream.step(window[:, cut + i]) for i in range(room))]
    torch.testing.assert_close(torch.stack(found, 1), expected[:, cut - 1 :], atol=2e-5, rtol=1e-4)
