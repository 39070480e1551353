"""The links of the picture on the start page are the model's own numbers, and its removals are what a rerun would measure."""

import numpy as np
import pytest
import torch

import elastic_core.models as models
from elastic_core.core.config import ModelConfig
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.services.person import inspect
from elastic_core.services.person.attribution import attributed, genres_suggested
from elastic_core.services.person.path import path
from elastic_core.services.person.recommend import places_left, silence


@pytest.fixture(scope="module")
def slots(small_world: Dataset) -> Recommender:
    torch.manual_seed(0)
    config = ModelConfig.known["elastic-slots"](length=16, width=16, side=4, k=3)
    return models.build(config, small_world.catalog).eval()


def test_votes_shares_and_removals_are_the_model_s(small_world: Dataset, slots: Recommender) -> None:
    """After an edit of each kind: a silenced expert keeps nothing and gives nothing."""
    first = inspect.after(slots, small_world, 7, []).heard[0]
    edits = [-2, first]
    here = inspect.after(slots, small_world, 7, edits)
    shown = list(range(here.events - 5, here.events))
    found, items = path(slots, here, shown), here.answer.table["item"].tolist()
    assert here.found is not None and here.found.ballots is not None and found.asks is not None
    assert found.experts == here.found.experts[0].tolist() and found.places == shown
    for votes, place in zip(found.asks, shown, strict=True):
        at = place - here.events  # from the end, as the model reads
        assert [expert for expert, _ in votes] == here.found.ballots.experts[0, at].tolist()
        assert sum(share for _, share in votes) == pytest.approx(1, abs=1e-5)
    assert found.wanted is not None and found.gives is not None and found.keeps is not None
    every = here.found.votes
    assert every is not None
    np.testing.assert_allclose(found.wanted, every[0, found.experts])
    shares = attributed(slots, here.read, items, silence([first]))
    assert shares is not None
    away = found.experts.index(first)
    left = [at for at in range(3) if at != away]
    np.testing.assert_allclose(found.gives[:, left], shares.parts[0, :, :2], atol=1e-6)
    assert not found.gives[:, away].any() and not found.keeps[away].any() and np.isnan(found.without[:, away]).all()
    for at in left:
        less = inspect.after(slots, small_world, 7, [*edits, found.experts[at]])
        np.testing.assert_allclose(found.without[:, at], less.answer.chances[items] / here.answer.chances[items], rtol=2e-3)
    kinds = genres_suggested(found.experts, found.gives, [("all", str(at)) for at in range(len(items))])
    assert found.experts[away] not in kinds and set(kinds.values()) == {"all"}, "named by what it gives, if anything"
    known = inspect.after(slots, small_world, 7).events
    whole = places_left(known, edits)
    for at, place in enumerate(shown):  # an item that is taken away comes back into the running, unless all are
        again = inspect.after(slots, small_world, 7, [*edits, -whole[place] - 1])
        same = np.flatnonzero((here.answer.ranks > 0) & (again.answer.ranks > 0))
        rest = again.answer.chances[items] / again.answer.chances[same].sum()
        np.testing.assert_allclose(found.missing[:, at], rest / here.answer.chances[items], rtol=2e-3)


def test_one_event_always_stays_and_no_change_counts_twice() -> None:
    assert places_left(4, [None, -1, -1, 7]) == [1, 2]
    assert places_left(3, [None, None, None, -1]) == [0] and places_left(2, [-9, -2]) == [0]


def test_what_mixes_or_has_no_experts_says_less(small_world: Dataset) -> None:
    peer = models.build(ModelConfig.known["sasrec"](length=16, width=16), small_world.catalog).eval()
    here = inspect.after(peer, small_world, 3)
    found = path(peer, here, range(here.events)[-12:])
    assert found.experts == [] and found.asks is found.gives is found.keeps is None
    assert found.missing.shape == (10, min(here.events, 12)) and np.isfinite(found.missing).all()
