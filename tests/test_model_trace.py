"""The links of the picture on the start page are the model's own numbers, and its removals are what a rerun would measure."""

import numpy as np
import pytest
import torch

import elastic_core.models as models
from elastic_core.core.config import ModelConfig
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.services.edits import Remove, Silence
from elastic_core.services.person.attribution import attribute_items
from elastic_core.services.person.edited_history import edit_items
from elastic_core.services.person.model_trace import ExpertEffect, largest_effect, share_list, trace_model
from elastic_core.services.person.prediction import predict_user
from elastic_core.services.person.recommend import scale_experts
from elastic_core.services.person.slot_contents import largest_items, summarize_slot


@pytest.fixture(scope="module")
def slots(small_world: Dataset) -> Recommender:
    torch.manual_seed(0)
    config = ModelConfig.known["elastic-slots"](length=16, width=16, n_subkeys=4, k=3)
    return models.build(config, small_world.catalog).eval()


def test_votes_shares_and_removals_are_the_model_s(small_world: Dataset, slots: Recommender) -> None:
    """After an edit of each kind: a silenced expert keeps nothing and gives nothing."""
    first = predict_user(slots, small_world, 7).active_experts[0]
    edits = [Remove(2, 2), Silence(first)]
    here = predict_user(slots, small_world, 7, edits)
    shown = list(range(here.n_events - 5, here.n_events))
    found, items = trace_model(slots, here, shown), here.recommendation.table["item"].tolist()
    assert here.retrieved is not None and here.retrieved.ballots is not None and found.votes is not None
    assert found.experts == here.retrieved.experts[0].tolist() and found.indices == shown
    for votes, place in zip(found.votes, shown, strict=True):
        at = place - here.n_events  # from the end, as the model reads
        assert [expert for expert, _ in votes] == here.retrieved.ballots.experts[0, at].tolist()
        assert sum(share for _, share in votes) == pytest.approx(1, abs=1e-5)
    assert found.vote_share is not None and found.suggestion_share is not None and found.event_share is not None
    every = here.retrieved.votes
    assert every is not None
    np.testing.assert_allclose(found.vote_share, every[0, found.experts])
    shares = attribute_items(slots, here.history, items, scale_experts({first: 0}))
    assert shares is not None
    away = found.experts.index(first)
    left = [at for at in range(3) if at != away]
    np.testing.assert_allclose(found.suggestion_share[:, left], shares.parts[0, :, :2], atol=1e-6)
    assert not found.suggestion_share[:, away].any() and not found.event_share[away].any()
    assert np.isnan(found.without_expert[:, away]).all()
    chances = here.recommendation.chances
    for at in left:
        less = predict_user(slots, small_world, 7, [*edits, Silence(found.experts[at])])
        np.testing.assert_allclose(found.without_expert[:, at], less.recommendation.chances[items] / chances[items], rtol=2e-3)
        assert found.ranks_without_expert[:, at].tolist() == less.recommendation.ranks[items].tolist()
    assert not found.ranks_without_expert[:, away].any()
    weights = chances[items] / chances[items].sum()
    parts = share_list(found, chances[items])
    assert parts is not None and parts == pytest.approx(
        [sum(weight * share for weight, share in zip(weights, column, strict=True)) for column in found.suggestion_share.T]
    )
    numbers = edit_items(small_world, 7, edits).numbers.tolist()
    for at, place in enumerate(shown):  # an item that is taken away comes back into the running, unless all are
        again = predict_user(slots, small_world, 7, [*edits, Remove(numbers[place], numbers[place])]).recommendation
        same = np.flatnonzero((here.recommendation.ranks > 0) & (again.ranks > 0))
        rest = again.chances[items] / again.chances[same].sum()
        np.testing.assert_allclose(found.without_event[:, at], rest / chances[items], rtol=2e-3)


def test_the_expert_with_the_largest_effect_loses_most_suggestions_then_moves_most() -> None:
    """Silenced experts do not count."""

    def effect(*ranks: list[int]) -> ExpertEffect | None:
        each = np.array(ranks).T
        falls = np.where(each > 0, 0.9, np.nan)
        falls[0, -1] = 0.5
        return largest_effect([7, 8, 9], each, falls)

    assert effect([1, 2, 3], [2, 1, 3], [1, 3, 2]) == pytest.approx((9, 0, 2, 0.5)), "as many moved: the larger fall decides"
    assert effect([1, 3, 2], [0, 0, 0], [1, 2, 3]) == pytest.approx((7, 0, 2, 0.1))
    assert effect([1, 2, 4], [3, 2, 1], [2, 3, 1]) == pytest.approx((7, 1, 0, 0.1))
    assert effect([1, 2, 3], [1, 2, 3], [0, 0, 0]) == pytest.approx((7, 0, 0, 0.1)), "nothing moves: the larger fall decides"
    assert effect([0, 0, 0], [0, 0, 0], [0, 0, 0]) is None


def test_a_slot_is_summed_up_and_its_expert_s_name_is_held_against_it(small_world: Dataset) -> None:
    catalog = small_world.catalog
    genres = catalog.genres or ()
    first = 1
    other = next(item for item in range(2, catalog.n_items + 1) if genres[item] != genres[first])
    items, name = np.array([first, other, first, other]), genres[first][0]
    mostly = summarize_slot(small_world, items, np.array([0.3, 0.1, 0.3, 0.3]), name)
    assert mostly is not None and (mostly.item, mostly.times, mostly.fits) == (first, 2, True)
    assert mostly.share == pytest.approx(0.6) == mostly.named_share
    hardly = summarize_slot(small_world, items, np.array([0.1, 0.4, 0.1, 0.4]), name)
    assert hardly is not None and hardly.item == other and hardly.fits is False and hardly.named_share == pytest.approx(0.2)
    unnamed = summarize_slot(small_world, items, np.array([0.1, 0.4, 0.1, 0.4]), "")
    assert unnamed is not None and unnamed.fits is unnamed.named_share is None
    assert summarize_slot(small_world, items, np.zeros(4), name) is None
    assert largest_items(items, np.array([0.1, 0.4, 0.1, 0.4]), 3) == [(other, pytest.approx(0.8)), (first, pytest.approx(0.2))]


def test_what_mixes_or_has_no_experts_says_less(small_world: Dataset) -> None:
    peer = models.build(ModelConfig.known["sasrec"](length=16, width=16), small_world.catalog).eval()
    here = predict_user(peer, small_world, 3)
    found = trace_model(peer, here, range(here.n_events)[-12:])
    assert found.experts == [] and found.votes is found.suggestion_share is found.event_share is None
    assert found.without_event.shape == (10, min(here.n_events, 12)) and np.isfinite(found.without_event).all()
