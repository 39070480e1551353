"""How far back a model looks and depends, how codewords are used, and where items lie: known answers, and nulls that hold."""

import numpy as np
import torch

import elastic_core.models as models
from elastic_core.core.sasrec import SASRecConfig
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.peers.cooccurrence import CooccurrenceConfig
from elastic_core.peers.fpmc import FPMCConfig
from elastic_core.peers.lisa import LisaConfig
from elastic_core.peers.parts.capabilities import Codewords, Quantises
from elastic_core.services.keys import search
from elastic_core.services.map import items
from elastic_core.services.traffic import reach


def test_who_reads_only_the_last_events_has_no_reach(small_world: Dataset) -> None:
    model: Recommender = models.build(SASRecConfig(length=2, width=16, layers=1), small_world.catalog).eval()
    found = reach.reach(model, small_world).table
    assert found["effect"].iloc[:2].sum() > 0.999 < found["weight"].iloc[:2].sum()  # of any other nothing is read
    assert min(found["effect"].iloc[:2].min(), found["weight"].iloc[:2].min()) > 0.1
    assert abs(found[["even", "effect", "weight"]].sum() - 1).max() < 1e-6
    lengths = small_world.ends("test") - small_world.histories.offsets[:-1]
    events = np.minimum(lengths[lengths >= reach.FEWEST], reach.LAST)
    assert found["even"].iloc[0] <= 1 / events.min() + 1e-9 and found["even"].iloc[0] >= 1 / events.max() - 1e-9
    bare = models.build(CooccurrenceConfig(), small_world.catalog)
    bare.fit(small_world)
    assert reach.reach(bare, small_world).table["weight"].isna().all()


def test_a_random_assignment_is_within_its_own_band(small_world: Dataset) -> None:
    n, rng = small_world.catalog.n_items, np.random.default_rng(5)
    chosen = np.stack([rng.integers(6, size=n), np.zeros(n, dtype=int)], 1)
    found = reach.use(Codewords(torch.from_numpy(chosen), torch.zeros(2, 6, 4), None), small_world)
    first, second = (found.table[found.table["book"] == book] for book in (1, 2))
    assert ((first["share"] >= first["low"]) & (first["share"] <= first["high"])).mean() >= 4 / 6
    assert second.sort_values("rank")["share"].round(9).tolist() == [1, 0, 0, 0, 0, 0]
    assert second.loc[second["rank"] == 1, "high"].iloc[0] < 0.7 and np.isclose(first["share"].sum(), 1)
    one = reach.use(Codewords(torch.from_numpy(chosen[:, 1:]), torch.zeros(1, 6, 4), None), small_world)
    assert np.isclose(one.even, 1) and one.chance[0] > 2


def test_planted_kinds_lie_together_and_shuffled_ones_do_not(small_world: Dataset) -> None:
    torch.manual_seed(0)
    model = models.build(FPMCConfig(width=16), small_world.catalog)
    truth = small_world.truth
    assert truth is not None
    _, low, high, _ = items.items(model, small_world).alike
    assert low < 0.4 and high < 0.5
    with torch.no_grad():
        places = torch.randn(4, 16)[torch.from_numpy(truth.item_interest[1:]).long()]
        model.scorer().table[1:] = places + 0.1 * torch.randn_like(places)
    found = items.items(model, small_world)
    assert found.alike.alike > 0.9 > found.alike.high and set(found.table["kind"]) == set(truth.interests)
    assert found.total == len(found.table) == small_world.catalog.n_items


def test_codewords_are_laid_flat_and_keys_are_counted(small_world: Dataset) -> None:
    model = models.build(LisaConfig(width=16, length=16, books=3, words=5), small_world.catalog).eval()
    assert isinstance(model, Quantises)
    found = items.lay_words(model)
    assert len(found.table) == 15 and found.table["kind"].nunique() == 3
    assert "15 in all" in search.instead(model, small_world, 3)
    peer = models.build(SASRecConfig(width=16, length=16), small_world.catalog)
    assert f"{min(int(small_world.histories.lengths[3]) - 1, 16)} events of person 4" in search.instead(peer, small_world, 3)
