"""Load, chance and recovery on a world whose truth is known."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from shipped import CHECKPOINTS, shipped_run

from elastic_core import models
from elastic_core.commands import main
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig
from elastic_core.core.contract import Retrieved, RetrievingModel
from elastic_core.data import Dataset, load
from elastic_core.data.synthetic import NOISE
from elastic_core.errors import InputError
from elastic_core.memory import gaps
from elastic_core.memory.recovery import (
    NULLS,
    TRAINED,
    UNTRAINED,
    best_possible_ami,
    break_memory,
    compare_with_nulls,
    measure_recovery,
)
from elastic_core.memory.routing import RoutedUsers, check_expert_count, route_users, too_many_experts
from elastic_core.memory.routing_metrics import measure_routing
from elastic_core.recipes import recipe
from elastic_core.results.store import load as load_runs
from elastic_core.services.data import cards


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load(recipe("planted").data)


def test_shipped_planted_run_beats_popularity_widely_and_its_memory_lives(world: Dataset) -> None:
    run = shipped_run("planted-elastic")
    floor = shipped_run("planted-popularity").last_event("test")
    test = run.last_event("test")
    assert test and floor
    for protocol, values in test["protocols"].items():
        assert values["NDCG@10"] > 2 * floor["protocols"][protocol]["NDCG@10"], protocol
    found = route_users(run.model(), world, "test")
    assert found.used_share >= 0.9 and found.entropy >= 0.85
    assert (found.used_share, found.entropy) == pytest.approx((test["used"], test["entropy"]), abs=2e-3)


def test_the_gauges_of_the_query_ask_every_history_once(world: Dataset) -> None:
    """The raw query is what the retrieval itself started from, not a second pass through the query network."""
    model = shipped_run("planted-elastic").model()
    passes: list[np.ndarray] = []
    network = model.memories[0].query_network  # type: ignore[index, union-attr]
    network.register_forward_hook(lambda module, given, asked: passes.append(asked.detach().numpy()))  # type: ignore[union-attr, operator]
    found = route_users(model, world, "valid", batch=200)
    people = world.histories.n_users
    assert len(passes) == -(-people // 200)
    raw = np.concatenate(passes)
    shares = np.linalg.svd(raw - raw.mean(0), compute_uv=False) ** 2
    assert found.raw_spectrum == pytest.approx(shares / shares.sum(), abs=1e-6)


def test_recovery_stands_beside_models_with_broken_keys_and_values(world: Dataset) -> None:
    """Each null breaks what it names and nothing else, and never the model itself; a model without a memory is refused."""
    model = shipped_run("planted-elastic").model()
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    for null in NULLS:
        other = break_memory(model, world.catalog, null)
        changed = {name for name, value in other.state_dict().items() if not torch.equal(value, kept[name])}
        assert changed == {"memories.0.keys.sub_keys" if "keys drawn" in null else "memories.0.values.weight"}
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())
    scores = compare_with_nulls(model, world, n_users=250, shuffles=4)
    assert list(scores) == [TRAINED, *NULLS, UNTRAINED]
    assert scores[TRAINED].strongest.ami > scores["keys drawn anew"].strongest.ami + 0.05
    assert scores["values replaced by noise"].strongest == scores[TRAINED].strongest  # values decide nothing about who is asked
    for found in (scores[UNTRAINED].strongest, scores[UNTRAINED].events):
        assert abs(found.ami) < 0.08 and abs(found.ami_chance) < 0.02
    assert scores[TRAINED].strongest.ami < best_possible_ami(world, model.length) < 1
    with pytest.raises(InputError, match="planted world"):
        measure_recovery(shipped_run("planted-sasrec").model(), world)
    with pytest.raises(InputError, match="no null"):
        break_memory(model, world.catalog, "nonsense")


class Rule(RetrievingModel):
    """A router by a rule that is known: history `[N]` → k experts."""

    objective, retrieves, n_experts = "window", True, 64

    def __init__(self, world: Dataset, rule: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__(ModelConfig(length=64), world.catalog)
        self.rule, self.nothing = rule, torch.nn.Parameter(torch.zeros(1))

    def retrieve(self, batch: Batch) -> Retrieved:
        experts = np.stack([self.rule(row[row > 0]) for row in batch.retrieval_items.numpy()])
        nothing = torch.zeros(len(experts), 0)
        return Retrieved(nothing, torch.from_numpy(experts), *[nothing] * 5)


def test_the_gauges_tell_a_router_of_interests_from_one_of_activity(world: Dataset) -> None:
    assert world.truth is not None
    of_item, rng = world.truth.item_interest, np.random.default_rng(0)
    ours = measure_routing(
        Rule(world, lambda items: np.argsort(-np.bincount(of_item[items], minlength=16), kind="stable")[:2]), world
    )
    active = measure_routing(Rule(world, lambda items: (np.arange(2) + int(10 * np.log(len(items)))) % 64), world)
    random = measure_routing(Rule(world, lambda items: rng.choice(64, 2, replace=False)), world)
    assert ours.halves > 0.7 > 0.3 > ours.stranger and ours.quarter > 0.6 > 0.3 > ours.quarter_stranger
    assert ours.genres > 0.5 and ours.length < 0.1 and abs(ours.genres_shuffled) < 0.05
    assert ours.length_kinds == active.length_kinds < 0.1  # of the world, not of the router
    assert active.count > 0.9 and abs(ours.count) < 0.05 and abs(random.count) < 0.05
    assert active.length > 0.9 and active.genres < 0.1 and active.quarter < 0.1
    assert active.halves - active.stranger < 0.1  # who is as active gets the same experts
    for value in (random.halves, random.stranger, random.quarter):
        assert abs(value - 2 / 64) < 0.02
    assert abs(random.length) < 0.05 and abs(random.genres) < 0.05


def test_what_is_remembered_is_a_share_of_the_oracle_by_gap(world: Dataset) -> None:
    """The oracle itself has all of it; gaps are counted by hand; a model of the last item's successors forgets."""
    assert world.truth is not None
    gap, oracle = gaps.events_since_interest(world), gaps.oracle_values(world)
    for user in (0, 7, 500, 1999):
        start, end = world.histories.offsets[user], world.split_ends("test")[user]
        events = world.truth.event_interest[start:end].tolist()[::-1]
        interest = world.truth.event_interest[end]
        assert gap[user] == (events.index(interest) + 1 if interest != NOISE and interest in events else 0)
    perfect = gaps.share_by_gap(oracle, oracle, gap)
    assert perfect["share"].tolist() == pytest.approx([1.0] * 5) and perfect["people"].sum() == (gap > 0).sum()
    local = shipped_run("planted-cooccurrence").report().user_values("full-seen", "NDCG@10")
    shares = gaps.share_by_gap(local, oracle, gap)["share"].to_numpy()
    assert shares[0] > 0.6 and shares[0] > shares[2] + 0.3 and shares[2] > shares[4]
    curves = cards.remembered_by_runs(load_runs(CHECKPOINTS), world)  # of every system on this world, with a memory or without
    control = "SASRec with a local convolution"
    counting = {"Popularity", "Co-occurrence"}
    assert set(curves["system"]) == {*counting, "SASRec", control, "ELASTIC", "ELASTIC with interest slots"}
    whole, *own = curves[curves["system"] == "Co-occurrence"].to_dict("records")
    assert [row["share"] for row in own] == pytest.approx(shares) and sum(row["people"] for row in own) == (gap > 0).sum()
    assert (whole["gap"], whole["people"]) == (gaps.ALL, len(gap)) and whole["share"] == pytest.approx(
        local.mean() / oracle.mean()
    )
    reports = [shipped_run(f"planted-sasrec{seed}").report() for seed in ("", "-seed1", "-seed2")]
    seeds = [report.user_values("full-seen", "NDCG@10") for report in reports]
    mean = gaps.share_by_gap(np.mean(seeds, axis=0), oracle, gap)["share"].tolist()
    assert curves[curves["system"] == "SASRec"]["share"].tolist()[1:] == pytest.approx(mean)
    variant = cards.system_of("planted-elastic-memory-none")
    assert variant in set(cards.remembered_by_runs(load_runs(CHECKPOINTS), world, "planted-elastic-memory-none")["system"])
    with pytest.raises(InputError, match="planted"):
        gaps.events_since_interest(replace(world, truth=None))


def test_a_random_router_lies_in_its_own_chance_band_and_a_collapsed_one_does_not() -> None:
    rng = np.random.default_rng(0)
    people, k, size = 400, 8, 64
    experts = np.stack([rng.choice(size, k, replace=False) for _ in range(people)])

    def of(chosen: np.ndarray) -> RoutedUsers:
        load = np.bincount(chosen.ravel(), minlength=size)
        return RoutedUsers(chosen, np.ones(chosen.shape), load, load.astype(float), np.ones(1), np.ones(1), 0.0)

    fair, collapsed = of(experts), of(experts % k)
    low, high, used = fair.random_router()
    inside = (np.sort(fair.load) >= low) & (np.sort(fair.load) <= high)
    assert inside.mean() > 0.8 and used == 1.0
    assert fair.entropy > 0.99 and fair.gini < 0.15
    assert collapsed.used_share == k / size and collapsed.gini > 0.8 and collapsed.entropy < 0.6


def test_a_model_without_a_memory_is_asked_what_it_remembers(tiny_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["routing", str(tiny_runs / "tiny-peer")]) == 0
    printed = capsys.readouterr().out
    assert "nothing is routed" in printed and "experts used" not in printed
    assert re.search(r"^what it remembers: 0\.\d\d of the oracle's NDCG@10 \(full-seen\)$", printed, re.MULTILINE)


def test_what_looks_at_every_expert_says_that_there_are_too_many(world: Dataset) -> None:
    largest, larger = (
        models.build(ModelConfig.known["elastic"](width=8, n_subkeys=n_subkeys, k=2), world.catalog) for n_subkeys in (256, 257)
    )
    assert not too_many_experts(largest)
    with pytest.raises(InputError, match="66,049 experts, and up to 65,536"):
        check_expert_count(larger)
