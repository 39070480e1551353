"""What screens show of runs without experts: numbers with a known answer, and nulls that stay where nothing is to be found."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

import elastic_core.models as models
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig
from elastic_core.core.sasrec import SASRecConfig
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.peers.gru4rec import GRU4RecConfig
from elastic_core.peers.lisa import LisaConfig
from elastic_core.peers.lrurec import LRURecConfig
from elastic_core.peers.parts.capabilities import Codewords
from elastic_core.peers.popularity import PopularityConfig
from elastic_core.peers.sma import SMAConfig
from elastic_core.services.experts import codewords, intensities, weights
from elastic_core.services.person.recommend import user_history

SMALL = {"length": 32, "width": 16, "layers": 1}


def built(config: ModelConfig, data: Dataset) -> Recommender:
    torch.manual_seed(1)
    return models.build(config, data.catalog).eval()


class Telling(models.model_class("popularity")):  # type: ignore[misc]
    """A model whose score is the sum of what its events weigh, so that an event's weight is its effect."""

    def of(self, batch: Batch) -> Tensor:
        """What every event weighs: by its item, so that places tell nothing."""
        return ((batch.items * 7919) % 101 + 1) * batch.real

    def score(self, batch: Batch) -> Tensor:
        scores = torch.zeros(len(batch.items), self.n_items + 1)
        scores[:, 1:] += self.of(batch).sum(1, keepdim=True) / 5_000 * (torch.arange(self.n_items) == 4)
        return scores

    def last_weights(self, batch: Batch) -> Tensor:
        return self.of(batch).float()[None, :, None]


def test_weights_that_are_the_effects_agree_and_strangers_do_not(small_world: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Telling(PopularityConfig(length=64), small_world.catalog)
    monkeypatch.setattr(
        "elastic_core.services.person.influence.reading", lambda *of: type(user_history(*of))(user_history(*of).items, 5, None)
    )
    found = weights.looked(model, small_world, 7)
    assert found.weights and found.found.agreement is not None and found.found.agreement.correlation > 0.99
    assert abs(found.others) < 0.35 and found.shuffled[0] < 0 < found.shuffled[1] < 0.9
    crowd = weights.weights_of_everybody(model, small_world)
    assert crowd.own[0] > 0.99 and abs(crowd.null[0]) < 0.3 and crowd.difference[0] > crowd.difference[1]


def test_people_of_like_length_are(small_world: Dataset) -> None:
    lengths = small_world.histories.lengths
    for user in (0, int(lengths.argmax()), int(lengths.argmin())):
        like = weights.like(small_world, user)
        assert user not in like and len(set(like.tolist())) == weights.LIKE
        apart = np.abs(np.delete(lengths, user) - lengths[user])
        assert np.abs(lengths[like] - lengths[user]).max() <= 2 * np.sort(apart)[weights.LIKE - 1]


def test_who_has_no_weights_is_told_why(small_world: Dataset) -> None:
    told = ((GRU4RecConfig(**SMALL), "one state"), (LRURecConfig(**SMALL), "one state"), (PopularityConfig(), "counts"))
    for config, why in told:
        model = built(config, small_world)
        model.fit(small_world)
        assert why in weights.why_none(model)
        found = weights.looked(model, small_world, 3)
        assert not found.weights and found.found.agreement is None
    peer = weights.looked(built(SASRecConfig(**SMALL), small_world), small_world, 3)
    assert peer.weights and peer.people == weights.LIKE and peer.found.table["usual"].notna().any()


def writing(chosen: Tensor, words: Tensor) -> SimpleNamespace:
    """A model that writes items in these words and reads twelve events."""
    return SimpleNamespace(codewords=lambda: Codewords(chosen, words, None), length=12)


def test_labels_of_planted_words_hold_and_shuffled_ones_do_not(small_world: Dataset) -> None:
    """Book 1 writes the true interest, book 2 nothing: the first one's labels hold on items that no label was made from."""
    truth = small_world.truth
    assert truth is not None
    rng, n = np.random.default_rng(0), small_world.catalog.n_items
    chosen = np.stack([truth.item_interest[1:], rng.integers(4, size=n)], 1)
    model = writing(torch.from_numpy(chosen).long(), torch.zeros(2, 6, 3))
    first, second = (codewords.judge_words(model, small_world, book) for book in (1, 2))
    assert first.held == 1 and first.held > first.limits[1] and first.used == 4 and len(first.table) == 6
    assert second.limits[0] <= second.held <= second.limits[1]
    assert first.chance == pytest.approx(0.25, abs=0.12)
    table = first.table
    assert table["items"].sum() == n and table["share"].sum() == pytest.approx(1) and table["label"].iloc[4:].eq("").all()
    assert table["sure"].iloc[:4].sum() >= 3
    popular = small_world.counts()[1:]
    of = np.flatnonzero(chosen[:, 0] == 0)
    best = of[np.argsort(-popular[of], kind="stable")][0] + 1
    assert table["titles"].iloc[0].split(" · ")[0] == small_world.catalog.title(int(best))


def test_a_history_of_one_word_is_on_one_word(small_world: Dataset) -> None:
    n = small_world.catalog.n_items
    chosen = torch.stack([torch.zeros(n).long(), torch.arange(n) % 3], 1)
    found = codewords.spread(writing(chosen, torch.zeros(2, 3, 4)), small_world, 5)
    assert found.books["spread"].iloc[0] == pytest.approx(1) and found.events == 12
    assert found.books["low"].iloc[1] <= 3 and (found.books["low"] <= found.books["high"]).all()
    per = found.table.groupby("book")[["person", "everybody"]].sum().to_numpy()
    assert per == pytest.approx(1)
    items = user_history(small_world, 5).items[-12:] - 1
    mine = found.table[found.table["book"] == 2]["person"].to_numpy()
    assert mine == pytest.approx(np.bincount(items % 3, minlength=3) / 12)
    soft = built(LisaConfig(form="soft", words=8, books=2, **SMALL), small_world)
    table = codewords.spread(soft, small_world, 5).table
    assert table.groupby("book")["person"].sum().to_numpy() == pytest.approx(1, abs=1e-5)


def test_surprise_of_constant_intensities_is_the_constant(small_world: Dataset) -> None:
    model = built(SMAConfig(**SMALL), small_world)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("intensity.outer"):
                parameter.zero_()
    found = intensities.surprise(model, small_world)
    assert found is not None and found.people == 60
    assert found.own == pytest.approx(found.null, abs=1e-5) and abs(found.difference[0]) < 1e-5
    shown = intensities.intensities(model, small_world, 3)
    assert shown is not None and shown.own == pytest.approx(1, abs=1e-5) and shown.marks == 4
    assert shown.table["intensity"].to_numpy() == pytest.approx(1, abs=1e-5)
    assert shown.table["event"].max() == small_world.histories.lengths[3] - 1
    assert intensities.surprise(built(SASRecConfig(**SMALL), small_world), small_world) is None
    assert intensities.intensities(built(SASRecConfig(**SMALL), small_world), small_world, 3) is None
