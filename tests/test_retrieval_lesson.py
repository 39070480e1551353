"""The lesson on product keys: its tables say what the model does, its counts are counted, its checks can fail."""

import copy
import functools
import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import elastic_core.models as models
from elastic_core.core.batches import history_batch
from elastic_core.core.elastic import Elastic, ElasticConfig, candidate_ranks, search_exhaustively
from elastic_core.core.sasrec import SASRecConfig
from elastic_core.data import Dataset
from elastic_core.services.keys import checks, frames, gate, search, votes
from elastic_core.services.keys.checks import Check
from elastic_core.services.keys.search import Lesson
from elastic_core.services.person import recommend
from elastic_core.slots.elastic_votes import ElasticVotesConfig


@pytest.fixture(scope="module")
def model(small_world: Dataset) -> Elastic:
    torch.manual_seed(0)
    config = ElasticConfig(length=16, width=16, layers=1, n_subkeys=5, k=4, dropout=0.0)
    built = models.build(config, small_world.catalog.n_items).eval().requires_grad_(False)
    assert isinstance(built, Elastic)
    return built


@pytest.fixture(params=["person", "chance", "k beyond the side", "k = 1"])
def lesson(request: pytest.FixtureRequest, model: Elastic, small_world: Dataset) -> Lesson:
    if request.param == "person":
        return search.lesson_of_user(model, small_world, 3)
    return search.random_lesson(4, 16, {"chance": 3, "k beyond the side": 9, "k = 1": 1}[request.param], seed=5)


# --- the steps -------------------------------------------------------------------------------------------------------


def test_a_person_is_shown_what_the_model_retrieves(model: Elastic, small_world: Dataset) -> None:
    lesson = search.lesson_of_user(model, small_world, 3)
    found = model.retrieve(recommend.batch_of(model, small_world, np.array([3])))
    table = lesson.winner_rows
    assert table["expert"].tolist() == found.experts[0].tolist()
    assert table["weight"].tolist() == pytest.approx(found.gates[0].tolist())
    shown = frames.search_frames(lesson)
    vectors, shares = torch.tensor(shown["vectors"]), torch.tensor([each["share"] for each in shown["winners"]])
    gated = vectors * (shares * lesson.weights.sum())[:, None]
    assert torch.allclose(gated, found.interests[0], atol=1e-6)


def test_every_step_follows_from_the_one_before(lesson: Lesson) -> None:
    halves = lesson.half_scores
    kept = halves[halves["kept"]]
    assert kept.groupby("half").size().tolist() == [min(lesson.k, lesson.n_subkeys)] * 2
    assert kept["rank"].max() == min(lesson.k, lesson.n_subkeys)
    pairs = lesson.candidates
    assert len(pairs) == min(lesson.k, lesson.n_subkeys) ** 2
    assert pairs["can_win"].sum() == len(candidate_ranks(lesson.k, lesson.n_subkeys))
    assert (pairs["can_win"] == (pairs["ranks_product"] <= lesson.k)).all()
    assert pairs["score"].tolist() == pytest.approx((pairs["row_score"] + pairs["column_score"]).tolist())


def test_the_picture_shows_what_every_sum_one_by_one_would_give(lesson: Lesson) -> None:
    shown, best = frames.search_frames(lesson), search_exhaustively(lesson.halves[None], lesson.k)
    assert [each["expert"] for each in shown["winners"]] == best.indices[0].tolist()
    assert [each["score"] for each in shown["winners"]] == pytest.approx(best.scores[0].tolist())
    for half, order in enumerate(shown["order"]):
        scores = shown["scores"][half]
        assert order == sorted(range(lesson.n_subkeys), key=lambda at: -scores[at])[: len(order)]
    won = {pair["place"]: pair for pair in shown["pairs"] if pair["place"]}
    assert sorted(won) == list(range(1, lesson.k + 1)) and all(pair["can"] for pair in won.values())
    assert [won[n + 1]["row"] * lesson.n_subkeys + won[n + 1]["column"] for n in range(lesson.k)] == best.indices[0].tolist()
    assert sum(pair["can"] for pair in shown["pairs"]) == shown["counts"]["pairs"]
    assert sum(each["share"] for each in shown["winners"]) == pytest.approx(1)
    json.dumps(shown)  # all of it travels


@settings(max_examples=60, deadline=None)
@given(first=st.integers(0, 71), second=st.integers(0, 71), k=st.integers(1, 4))
def test_wherever_the_sliders_stand_the_search_by_halves_finds_what_whole_keys_find(first: int, second: int, k: int) -> None:
    lesson = search.lesson_of_angles(5 * first, 5 * second, k)
    found = checks.check_search(lesson.keys, k, lesson.query[None])
    assert found.agree == 1, "no ties either, so that one can bet on a place"
    assert len(frames.search_frames(lesson)["pairs"]) == k * k


def test_a_model_without_a_memory_is_refused(small_world: Dataset) -> None:
    sasrec = models.build(SASRecConfig(length=8, width=8), small_world.catalog.n_items)
    with pytest.raises(TypeError, match="no interest memory"):
        search.first_memory(sasrec)


# --- votes -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def voting(small_world: Dataset) -> Elastic:
    torch.manual_seed(0)
    config = ElasticVotesConfig(length=16, width=16, layers=1, n_subkeys=5, k=4, dropout=0.0, votes=2)
    built = models.build(config, small_world.catalog.n_items).eval().requires_grad_(False)
    assert isinstance(built, Elastic)
    batch = history_batch(small_world.histories.user_items(0)[-16:].astype("int64"), 16)
    built.calibrate(batch)
    return built


def test_what_each_event_finds_is_what_it_votes_for_and_the_sums_elect(voting: Elastic, small_world: Dataset) -> None:
    election = votes.tally_votes(voting, small_world, 3)
    found = election.retrieved
    cast, sums = votes.vote_table(found, election.newest), votes.vote_sums(found)
    assert cast["event"].unique().tolist() == sorted(election.events["event"]) and len(election.events) == 16
    for ago, event in enumerate(election.events["event"]):
        assert (looked := election.select_event(election.event_options[ago])).event == event and looked.ago == ago
        lesson, own = search.lesson_of_user(voting, small_world, 3, ago=ago), cast[cast["event"] == event]
        assert own["expert"].tolist() == lesson.winners.indices.tolist()
        assert own["share"].tolist() == pytest.approx(lesson.weights.tolist(), abs=1e-6)
    assert sums["expert"][:4].tolist() == found.experts[0].tolist() and sums["votes"].sum() == pytest.approx(1)
    by_hand = cast.groupby("expert")["votes"].sum()
    assert sums["votes"][:4].tolist() == pytest.approx(by_hand[sums["expert"][:4]].tolist())
    usual = voting.memories[0].mean_vote_share.numpy()
    beyond = (by_hand - usual[by_hand.index]).sort_values(ascending=False)
    assert (
        sums["expert"][:4].tolist() == beyond.head(4).index.tolist()
        and sums["usual"][:4].tolist() == usual[sums["expert"][:4].astype(int)].tolist()
    )
    assert cast.groupby("event")["votes"].sum().tolist() == pytest.approx([1 / 16] * 16)


def test_marks_leave_no_vote_out_and_a_place_without_votes_is_empty(voting: Elastic, small_world: Dataset) -> None:
    cast = votes.vote_table(votes.retrieve_by_vote(voting, small_world, 3), 40)
    drawn = votes.vote_marks(cast, last=5)
    assert sorted(drawn["event"].unique()) == [votes.EARLIER, 36, 37, 38, 39, 40]
    for row, part in drawn.groupby("row"):
        assert part["votes"].sum() == pytest.approx(cast.loc[cast["row"] == row, "votes"].sum())
    one = voting.retrieve(history_batch(small_world.histories.user_items(3)[:1].astype("int64"), 16))
    sums = votes.vote_sums(one)
    assert sums["events"].tolist() == [1, 1, 0, 0, 0] and sums["votes"][2:].sum() == 0
    assert (sums["weight"][:2] > 0.5).all() and (sums["weight"][2:] < 1e-3).all()


# --- cost ------------------------------------------------------------------------------------------------------------


def test_multiplications_are_those_of_the_design() -> None:
    for n_subkeys, k, long, short in ((16, 8, 16_384, 1_024), (512, 8, 16_777_216, 32_768)):
        counted = frames.count_scores(search.random_lesson(n_subkeys, 64, k, seed=0))
        assert (counted["long_multiplications"], counted["multiplications"]) == (long, short)
    assert frames.count_scores(search.lesson_of_angles(0, 0, 3)) == {
        "short": 8, "multiplications": 16, "pairs": 5, "long": 16, "long_multiplications": 64
    }  # fmt: skip


# --- exactness -------------------------------------------------------------------------------------------------------


def test_both_searches_agree_and_nothing_is_lost_in_adding(model: Elastic) -> None:
    keys = search.first_memory(model).keys
    found = functools.reduce(
        Check.add_check, (checks.check_search(keys, 4, checks.random_queries(16, 200, seed)) for seed in range(3))
    )
    assert (found.queries, found.agree, found.ties, found.n_wrong) == (600, 600, 0, 0)
    assert "600 of 600" in found.sentence and "tie" not in found.sentence


def test_ties_are_counted_as_ties() -> None:
    """Two equal sub-keys: either of their experts is right, and the two searches need not choose the same."""
    lesson = search.random_lesson(6, 16, 3, seed=0)
    with torch.no_grad():
        lesson.keys.sub_keys[:, 1:] = lesson.keys.sub_keys[:, :1]
    found = checks.check_search(lesson.keys, 3, checks.random_queries(16, 300, seed=0))
    assert found.n_wrong == 0 and found.agree + found.ties == 300


def test_a_wrong_search_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = search.random_lesson(6, 16, 3, seed=0)
    right = checks.top_pairs
    monkeypatch.setattr(checks, "top_pairs", lambda halves, k: right(halves.flip(-1), k))
    found = checks.check_search(lesson.keys, 3, checks.random_queries(16, 100, seed=0))
    assert found.n_wrong > 50 and f"{100 - found.n_wrong} of 100" in found.sentence


def test_a_memory_too_large_to_write_out_is_searched_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = search.random_lesson(16, 16, 5, seed=1), search.random_lesson(300, 16, 5, seed=1)
    assert len(small.values) and not len(large.values)
    for lesson in (small, large):
        found = checks.check_search(lesson.keys, lesson.k, lesson.query[None])
        assert (found.queries, found.agree, found.n_wrong) == (1, 1, 0)
        assert frames.search_frames(lesson)["counts"]["long"] == lesson.n_subkeys**2
    right = checks.top_pairs
    monkeypatch.setattr(checks, "top_pairs", lambda halves, k: right(halves.flip(-1), k))
    assert checks.check_search(large.keys, 5, large.query[None]).n_wrong == 1


# --- Eq. 7 as printed ------------------------------------------------------------------------------------------------


def test_as_printed_the_second_half_is_never_read(model: Elastic, small_world: Dataset) -> None:
    keys = search.first_memory(model).keys
    queries = checks.people_queries(model, small_world, first=7, ago=0)
    found = checks.search_as_printed(keys, 4, queries)
    changed = torch.cat([queries[:, :8], torch.randn(len(queries), 8)], dim=1)
    again = checks.search_as_printed(keys, 4, changed)
    assert found.used_printed == again.used_printed and found.queries == len(queries)
    assert 0 <= found.overlap <= found.k and 0 <= found.shared <= found.k
    twice = checks.search_as_printed(keys, 4, torch.cat([queries[:, :8], queries[:, :8]], dim=1))
    assert twice.overlap == twice.shared == twice.k and twice.used == twice.used_printed == found.used_printed
    own, printed = (keys(each)[:1] for each in (queries, torch.cat([queries[:, :8], queries[:, :8]], dim=1)))
    first, mistaken = (set(search_exhaustively(halves, 4).indices[0].tolist()) for halves in (own, printed))
    assert first == set(search.lesson_of_user(model, small_world, 7).winners.indices.tolist())
    assert found.overlap == len(first & mistaken)


# --- the gate --------------------------------------------------------------------------------------------------------


def test_only_the_gate_teaches_keys_and_query_network(model: Elastic, small_world: Dataset) -> None:
    before = {name: p.clone() for name, p in model.state_dict().items()}
    table = gate.gradient_table(model, small_world, user=3).set_index("group")
    assert list(table.index) == list(gate.GROUPS)
    assert (table["with_gate"] > 0).all()
    router = ["row and column keys", "query network"]
    assert (table.loc[router, "without_gate"] == 0).all() and (table.drop(router)["without_gate"] > 0).all()
    assert table["parameters"].sum() == sum(p.numel() for p in model.parameters())
    assert all(torch.equal(before[name], p) for name, p in model.state_dict().items())
    assert not any(p.requires_grad for p in model.parameters()) and model.memories[0].kind == "softmax"


def test_a_list_without_its_gate_is_that_of_a_copy_that_has_none(model: Elastic, small_world: Dataset) -> None:
    twin = copy.deepcopy(model)
    for memory in twin.memories:
        memory.kind = "none"
    for user in range(8):
        found = gate.compare_without_gate(model, small_world, user, keep_seen=False)
        expected = recommend.rank_items(twin, small_world, recommend.user_history(small_world, user))
        assert found.change.table["item"].tolist() == expected.table["item"].tolist()
        assert found.change.truth_after == expected.truth_rank and len(found.chance) == gate.TRIES
        assert all(0 <= new <= 10 for new in found.chance)
    assert set(gate.compare_without_gate(twin, small_world, 0, keep_seen=False).chance) == {
        0
    }  # equal weights, however they are dealt


def test_the_toy_learns_its_keys_only_with_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    curve, ends = gate.train_toy_routers()
    assert ends.at["none", "keys_moved"] == 0 and ends.at["softmax", "keys_moved"] > 0.2
    assert ends.at["softmax", "loss"] < 0.5 * ends.at["none", "loss"]
    assert curve.groupby("gate").size().to_dict() == {"none": 200, "softmax": 200}
    monkeypatch.setattr(gate, "STEPS", 5)
    pd.testing.assert_frame_equal(gate.train_toy_routers()[0], gate.train_toy_routers()[0])
