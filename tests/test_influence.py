"""Leave one out: the batch equals one removal after another, and attention is compared with it, not believed."""

import math

import numpy as np
import pytest
import torch

import elastic_core.models as models
from elastic_core.core.batches import history_batch
from elastic_core.core.config import ModelConfig
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.sasrec import SASRecConfig
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.peers.cooccurrence import CooccurrenceConfig
from elastic_core.peers.gru4rec import GRU4RecConfig
from elastic_core.peers.popularity import PopularityConfig
from elastic_core.services.person.influence import LAST, measure_influence, rank_agreement
from elastic_core.services.person.recommend import History, user_history

MEMORY = ElasticConfig(length=16, width=16, layers=1, n_subkeys=6, k=4)
PLAIN = ElasticConfig(length=16, width=16, layers=1, n_subkeys=6, k=4, dispatch="none")
PEER = SASRecConfig(length=16, width=16, layers=1)


def built(config: ModelConfig, data: Dataset) -> Recommender:
    torch.manual_seed(1)
    model = models.build(config, data.catalog.n_items).eval()
    model.fit(data)
    return model


def one_by_one(model: Recommender, items: np.ndarray, target: int, without: int | None) -> tuple[float, int]:
    """The slow twin: one history through the model, log-chance and rank by sorting, in plain Python."""
    left = [int(item) for i, item in enumerate(items) if i != without]
    scores = model.score(history_batch(left, model.length))[0].tolist()
    running = [i for i in range(1, len(scores)) if i not in set(items.tolist()) or i == target]
    best = max(scores[i] for i in running)
    total = math.log(sum(math.exp(scores[i] - best) for i in running)) + best
    ranked = sorted(running, key=lambda i: (-scores[i], i))
    return scores[target] - total, ranked.index(target) + 1


@pytest.mark.parametrize("config", [MEMORY, PLAIN, PEER, CooccurrenceConfig()], ids=["memory", "no dispatch", "sasrec", "floor"])
@pytest.mark.parametrize("user", [0, 7])
def test_the_batch_equals_one_by_one(small_world: Dataset, config: ModelConfig, user: int) -> None:
    model, read = built(config, small_world), user_history(small_world, user)
    assert read.truth is not None
    found = measure_influence(model, small_world, read)
    with torch.inference_mode():
        chance, rank = one_by_one(model, read.items, read.truth, None)
        assert found.rank == rank and len(found.table) == min(LAST, len(read.items))
        assert found.table["position"].tolist() == list(range(len(read.items) - len(found.table) + 1, len(read.items) + 1))
        for row in found.table.to_dict("records"):
            without, moved = one_by_one(model, read.items, read.truth, row["position"] - 1)
            assert row["change"] == pytest.approx(chance - without, abs=2e-4)
            assert abs(row["places"] - (moved - rank)) <= 1  # a near tie may fall either way in another batch shape
            assert row["item"] == read.items[row["position"] - 1]


def test_attention_only_where_a_model_shows_it(small_world: Dataset) -> None:
    read = user_history(small_world, 7)
    assert read.truth is not None
    seen = measure_influence(built(MEMORY, small_world), small_world, read)
    assert seen.table["attention"].notna().sum() == min(len(read.items), 16) and seen.agreement is not None
    assert seen.agreement.n == min(len(read.items), 16)
    assert seen.agreement.low <= seen.agreement.correlation <= seen.agreement.high
    assert "does not explain" in seen.sentence and f"{seen.agreement.correlation:+.2f}" in seen.sentence
    peer = measure_influence(built(PEER, small_world), small_world, read)
    assert peer.agreement is not None and peer.table["attention"].sum() == pytest.approx(1)
    for config in (PLAIN, GRU4RecConfig(length=16, width=16, layers=1)):
        blind = measure_influence(built(config, small_world), small_world, read)
        assert blind.table["attention"].isna().all() and blind.agreement is None and "no attention" in blind.sentence


def test_a_model_that_reads_nothing_is_known(small_world: Dataset) -> None:
    read = user_history(small_world, 7)
    assert read.truth is not None
    for config, nothing in ((PopularityConfig(), True), (PEER, False)):
        assert measure_influence(built(config, small_world), small_world, read).is_zero == nothing


def test_events_that_are_not_read_change_nothing(small_world: Dataset) -> None:
    user = int(np.argmax(small_world.histories.lengths))
    read = user_history(small_world, user)
    assert read.truth is not None and len(read.items) > 20
    found = measure_influence(built(PEER, small_world), small_world, read).table
    unread = found[found["position"] <= len(read.items) - 16]
    assert len(unread) and unread["change"].abs().max() < 1e-5 and (unread["places"] == 0).all()


def test_agreement_is_spearman() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=40), rng.normal(size=40)
    found = rank_agreement(a, b)
    assert found is not None
    ranks = [np.argsort(np.argsort(column)) for column in (a, b)]
    squared = float(((ranks[0] - ranks[1]) ** 2).sum())
    assert found.correlation == pytest.approx(1 - 6 * squared / (40 * (40**2 - 1)))
    same, opposite = rank_agreement(a, a**3), rank_agreement(a, -a)
    assert same is not None and same.correlation == pytest.approx(1) and opposite is not None
    assert opposite.correlation == pytest.approx(-1)
    assert rank_agreement(a, np.zeros(40)) is None and rank_agreement(a[:4], b[:4]) is None
    a[:37] = np.nan
    assert rank_agreement(a, b) is None


def test_what_cannot_be_asked_is_said(small_world: Dataset) -> None:
    model = built(PEER, small_world)
    with pytest.raises(InputError, match="at least two"):
        measure_influence(model, small_world, History(np.array([3]), 5))
    for wrong in (0, small_world.catalog.n_items + 1):
        with pytest.raises(InputError, match="no item number"):
            measure_influence(model, small_world, History(np.array([3, 4]), wrong))
    assert len(measure_influence(model, small_world, History(np.array([3, 4]), 5)).table) == 2
