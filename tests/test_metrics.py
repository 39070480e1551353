"""Metrics against definitions written out slowly."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_core.core.evaluate import NAMES, Ranks, expected_metrics, rank_targets
from elastic_core.errors import InputError


def gain(name: str, place: int) -> float:
    """The metric of a target at a 0-based place."""
    kind, cutoff = name.split("@")
    if place >= int(cutoff):
        return 0.0
    return {"NDCG": 1 / math.log2(place + 2), "HR": 1.0, "MRR": 1 / (place + 1)}[kind]


def slow(scores: list[float], target: int, candidates: list[int], name: str) -> float:
    """The mean over every order of the candidates that the scores allow: all tie-breaks, one by one. Nothing where the target is
    none of them."""
    if target not in candidates:
        return 0.0
    others = [i for i in candidates if i != target]
    above = sum(scores[i] > scores[target] for i in others)
    ties = [i for i in others if scores[i] == scores[target]]
    orders = list(permutations([target, *ties]))
    return sum(gain(name, above + order.index(target)) for order in orders) / len(orders)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_expected_metrics_are_the_mean_over_all_orders_of_ties(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 30))
    values = [-math.inf, *(float(v) for v in range(max(2, n // 3)))]
    scores = [math.nan, *data.draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))]  # padding may be anything
    target = data.draw(st.integers(1, n))
    candidates = sorted(data.draw(st.sets(st.integers(1, n))))
    ties = sum(scores[i] == scores[target] for i in candidates)
    if ties > 6:  # 7! orders at most
        candidates = [i for i in candidates if scores[i] != scores[target] or i == target]
    mask = torch.zeros(1, n + 1, dtype=torch.bool)
    mask[0, candidates] = True
    mask[0, 0] = True  # padding never counts, even if marked
    found = expected_metrics(rank_targets(torch.tensor([scores]), torch.tensor([target]), mask))
    assert tuple(found) == NAMES
    for name in NAMES:
        assert found[name] == pytest.approx([slow(scores, target, candidates, name)], abs=1e-12), name


@given(n=st.integers(1, 400), target=st.integers(1, 400))
def test_a_constant_scorer_gets_chance_level(n: int, target: int) -> None:
    scores, everything = torch.zeros(1, n + 1), torch.ones(1, n + 1, dtype=torch.bool)
    found = expected_metrics(rank_targets(scores, torch.tensor([min(target, n)]), everything))
    for cutoff in (5, 10, 20):
        assert found[f"HR@{cutoff}"][0] == min(cutoff, n) / n
    for name in NAMES:
        assert found[name][0] == pytest.approx(sum(gain(name, place) for place in range(n)) / n, rel=1e-12)


def test_every_clear_rank_gets_its_gain() -> None:
    found = expected_metrics(Ranks(np.arange(30), np.zeros(30, dtype=np.int64)))
    for name in NAMES:
        assert found[name] == pytest.approx([gain(name, place) for place in range(30)], abs=1e-15)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_diverged_model_is_refused(bad: float) -> None:
    scores = torch.zeros(3, 5)
    scores[1, 2] = bad
    with pytest.raises(InputError, match="1 of 3 users"):
        rank_targets(scores, torch.tensor([1, 1, 1]), torch.ones(3, 5, dtype=torch.bool))
