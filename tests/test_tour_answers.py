"""The tour's answers against the plain way of counting."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from shipped import shipped_run

from elastic_core.core.evaluate import Ranks
from elastic_core.data import Dataset
from elastic_core.data.repeats import count_repeats
from elastic_core.memory.routing import random_load_limits, route_users
from elastic_core.models import Recommender
from elastic_core.results.compare import ONCE_SENTENCE, compare_reports
from elastic_core.runs import Run
from elastic_core.runs.ranks import Report
from elastic_core.services.edits import Remove
from elastic_core.services.person.model_trace import strongest_expert
from elastic_core.services.person.prediction import predict_user
from elastic_core.services.tour import measured_answers
from elastic_core.services.tour.measured_answers import TourContext


@pytest.fixture(scope="module")
def asked(tiny: tuple[Recommender, Dataset, Run]) -> TourContext:
    model, dataset, run = tiny
    return TourContext(run, model, dataset, 3, route_users(model, dataset, "test"), run.path.parent)


def test_how_many_suggestions_stay(asked: TourContext) -> None:
    last = int(asked.dataset.readable_lengths()[3])
    before, after = (
        set(predict_user(asked.model, asked.dataset, 3, edits, keep_seen=True).recommendation.table["item"])
        for edits in ((), (Remove(last, last),))
    )
    stay = len(before & after)
    found = measured_answers.last_event(asked)
    assert found.reason.startswith(f"{stay} of the ten") and found.option == (0 if stay == 10 else 1 if stay >= 5 else 2)


def test_without_the_gate_keys_and_query_network_learn_nothing(asked: TourContext) -> None:
    found = measured_answers.answer_starved_keys(asked)
    assert found.option == 1 and "row and column keys" in found.reason.lower()


def test_a_map_that_is_the_space_keeps_every_neighbour_and_noise_few() -> None:
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, 80)
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)  # on a circle, cosine and distance order alike
    assert measured_answers.neighbours_kept(circle, circle) == 1.0
    assert measured_answers.neighbours_kept(circle, rng.normal(size=(80, 2))) < 0.2


def test_strongest_expert_and_load(asked: TourContext) -> None:
    assert asked.traffic is not None
    assert count_repeats(asked.dataset).stay, "so that the list of the start page holds what was met"
    expert = strongest_expert(asked.model, predict_user(asked.model, asked.dataset, 3, keep_seen=True))
    load = int((asked.traffic.experts == expert).sum())
    found, (low, high) = measured_answers.answer_holders(asked), random_load_limits(asked.traffic)
    assert f"Expert {expert} is the strongest of person 4. {load} of {len(asked.traffic.experts)} people use it" in found.reason
    assert f"If experts were chosen at random, it would be {low} to {high}." in found.reason
    assert found.option == (0 if load > high else 2 if load < low else 1)


def test_seeds_are_compared_by_name(asked: TourContext, tmp_path: Path) -> None:
    assert measured_answers.answer_seeds(asked).option is None and "only one seed" in measured_answers.answer_seeds(asked).reason


def test_neighbours_of_many_experts_are_judged_in_bounded_memory() -> None:
    values = np.random.default_rng(0).normal(size=(6_000, 4)).astype(np.float32)
    tracemalloc.start()
    kept = measured_answers.neighbours_kept(values, values[:, :2], 15)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < kept < 0.5 and most < 150e6, "all distances of 6,000 would be 290 MB"


def test_what_was_not_measured_is_no_answer(asked: TourContext, tmp_path: Path) -> None:
    assert measured_answers.faster_when(asked._replace(checkpoints=tmp_path)).option is None


def test_who_is_better_is_answered_only_where_training_noise_is_counted(asked: TourContext) -> None:
    high, low = (
        [Report({"full": Ranks(np.full(80, place, np.int32), np.zeros(80, np.int32))}, np.arange(80), "test", "abc", 0, 0.0)] * 2
        for place in (0, 5)
    )
    peer = shipped_run("planted-sasrec")
    won = measured_answers.answer_better(asked, compare_reports(high, low), peer)
    assert won.option == 0 and "SASRec is" not in won.reason and peer.name not in won.reason, "names that people know"
    lost = measured_answers.answer_better(asked, compare_reports(low, high), peer)
    assert lost.option == 2 and "−" in lost.reason and "SASRec is better than ELASTIC" in lost.reason
    once = measured_answers.answer_better(asked, compare_reports(high[:1], low), peer)
    assert once.option == 1 and once.reason.startswith(ONCE_SENTENCE) and "is better" not in once.reason
