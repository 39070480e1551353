"""The lesson on product keys: its tables say what the model does, its counts are counted, its checks can fail."""

from pathlib import Path

import pandas as pd
import pytest
import torch

import elastic_core.models as models
from elastic_core.data import Dataset
from elastic_core.layers.product_keys import candidate_ranks, exhaustive
from elastic_core.models.elastic import Elastic, ElasticConfig
from elastic_core.models.sasrec import SASRecConfig
from elastic_core.services import gate_lesson, retrieval_lesson, search_checks
from elastic_core.services.retrieval_lesson import Lesson
from elastic_core.services.search_checks import Check


@pytest.fixture(scope="module")
def model(small_world: Dataset) -> Elastic:
    torch.manual_seed(0)
    config = ElasticConfig(length=16, width=16, layers=1, side=5, k=4, dropout=0.0)
    built = models.build(config, small_world.catalog.n_items).eval().requires_grad_(False)
    assert isinstance(built, Elastic)
    return built


@pytest.fixture(params=["person", "chance", "k beyond the side", "k = 1"])
def lesson(request: pytest.FixtureRequest, model: Elastic, small_world: Dataset) -> Lesson:
    if request.param == "person":
        return retrieval_lesson.of_person(model, small_world, 3)
    return retrieval_lesson.of_chance(4, 16, {"chance": 3, "k beyond the side": 9, "k = 1": 1}[request.param], seed=5)


# --- the steps -------------------------------------------------------------------------------------------------------


def test_a_person_is_shown_what_the_model_retrieves(model: Elastic, small_world: Dataset) -> None:
    lesson = retrieval_lesson.of_person(model, small_world, 3)
    found = model.retrieve(retrieval_lesson._reading(model, small_world, 3, "test"))
    table = retrieval_lesson.gathered(lesson)
    assert table["expert"].tolist() == found.experts[0].tolist()
    assert table["weight"].tolist() == pytest.approx(found.gates[0].tolist())
    vectors = retrieval_lesson.expert_values(lesson, gated=True).pivot(index="place", columns="position", values="value")
    assert torch.allclose(torch.tensor(vectors.to_numpy()).float(), found.interests[0], atol=1e-6)


def test_every_step_follows_from_the_one_before(lesson: Lesson) -> None:
    query, halves = retrieval_lesson.split(lesson), retrieval_lesson.half_scores(lesson)
    assert query["half"].value_counts().tolist() == [lesson.width // 2] * 2
    kept = halves[halves["kept"]]
    assert kept.groupby("half").size().tolist() == [min(lesson.k, lesson.side)] * 2
    assert kept["rank"].max() == min(lesson.k, lesson.side)
    pairs = retrieval_lesson.candidates(lesson)
    assert len(pairs) == min(lesson.k, lesson.side) ** 2
    assert pairs["can_win"].sum() == len(candidate_ranks(lesson.k, lesson.side))
    assert (pairs["can_win"] == (pairs["ranks_product"] <= lesson.k)).all()
    assert pairs["score"].tolist() == pytest.approx((pairs["row_score"] + pairs["column_score"]).tolist())


def test_the_places_are_those_of_all_sums_sorted(lesson: Lesson) -> None:
    table = retrieval_lesson.grid(lesson)
    assert len(table) == lesson.side**2
    best = table.sort_values("score", ascending=False).head(lesson.k)
    assert best["place"].tolist() == list(range(1, lesson.k + 1))
    assert best["candidate"].all()
    assert retrieval_lesson.gathered(lesson)["expert"].tolist() == best["expert"].tolist()


def test_chance_is_repeatable() -> None:
    one, same, other = (retrieval_lesson.of_chance(6, 8, 3, seed) for seed in (1, 1, 2))
    assert torch.equal(one.halves, same.halves) and not torch.equal(one.halves, other.halves)


def test_a_model_without_a_memory_is_refused(small_world: Dataset) -> None:
    sasrec = models.build(SASRecConfig(length=8, width=8), small_world.catalog.n_items)
    with pytest.raises(TypeError, match="no interest memory"):
        retrieval_lesson.first_memory(sasrec)


def test_verdicts_tell_first_place_winners_and_losers_apart(lesson: Lesson) -> None:
    table = retrieval_lesson.grid(lesson)
    places = table.set_index("expert")["place"]
    for begins, group in (("Right", places.eq(1)), ("A winner", places.gt(1)), ("Not among", places.isna())):
        some = places.index[group.fillna(False)][:3]
        assert all(retrieval_lesson.verdict(lesson, expert).startswith(begins) for expert in some)
    assert sorted(retrieval_lesson.guesses(lesson)) == table["expert"].tolist()


# --- cost ------------------------------------------------------------------------------------------------------------


def test_multiplications_are_those_of_the_design() -> None:
    counts = search_checks.operations(16, 64, 8).set_index("search")["multiplications"]
    assert counts.to_dict() == {"every key": 16_384, "product keys": 1_024}
    large = search_checks.operations(512, 64, 8).set_index("search")["multiplications"]
    assert large.to_dict() == {"every key": 16_777_216, "product keys": 32_768}
    assert search_checks.saving(512, 64, 8) == 512
    table = search_checks.operations_by_side(64, 8)
    assert table["side"].max() == 1024 and (table["experts"] >= 8).all()


def test_the_counter_runs_with_the_steps() -> None:
    assert [search_checks.spent(step, 8, 32, 4) for step in range(1, 8)] == [0] + [256] * 6
    assert [search_checks.summed(step, 8, 4) for step in range(1, 8)] == [0] * 3 + [8] * 4


# --- exactness -------------------------------------------------------------------------------------------------------


def test_both_searches_agree_and_nothing_is_lost_in_adding(model: Elastic) -> None:
    keys = retrieval_lesson.first_memory(model).keys
    found = sum((search_checks.check(keys, 4, search_checks.random_queries(16, 200, seed)) for seed in range(3)), Check())
    assert (found.queries, found.agree, found.ties, found.wrong) == (600, 600, 0, 0)
    assert "600 of 600" in found.sentence and "tie" not in found.sentence


def test_ties_are_counted_as_ties() -> None:
    """Two equal sub-keys: either of their experts is right, and the two searches need not choose the same."""
    lesson = retrieval_lesson.of_chance(6, 16, 3, seed=0)
    with torch.no_grad():
        lesson.keys.sub_keys[:, 1:] = lesson.keys.sub_keys[:, :1]
    found = search_checks.check(lesson.keys, 3, search_checks.random_queries(16, 300, seed=0))
    assert found.wrong == 0 and found.agree + found.ties == 300


def test_a_wrong_search_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = retrieval_lesson.of_chance(6, 16, 3, seed=0)
    right = search_checks.top_pairs
    monkeypatch.setattr(search_checks, "top_pairs", lambda halves, k: right(halves.flip(-1), k))
    found = search_checks.check(lesson.keys, 3, search_checks.random_queries(16, 100, seed=0))
    assert found.wrong > 50 and f"{100 - found.wrong} of 100" in found.sentence


# --- Eq. 7 as printed ------------------------------------------------------------------------------------------------


def test_as_printed_the_second_half_is_never_read(model: Elastic, small_world: Dataset) -> None:
    keys = retrieval_lesson.first_memory(model).keys
    queries = search_checks.people_queries(model, small_world, "test", first=7, limit=40)
    found = search_checks.as_printed(keys, 4, queries)
    changed = torch.cat([queries[:, :8], torch.randn(len(queries), 8)], dim=1)
    again = search_checks.as_printed(keys, 4, changed)
    assert found.first["printed"].tolist() == again.first["printed"].tolist()
    assert found.load["printed"].equals(again.load["printed"]) and not found.load["meant"].equals(again.load["meant"])
    assert found.load["meant"].sum() == found.queries == len(queries)
    assert 0 <= found.shared <= found.k and found.kept == found.first["meant"].isin(found.first["printed"]).sum()
    own = retrieval_lesson.of_person(model, small_world, 7)
    assert found.first["meant"].tolist() == own.winners.indices.tolist()


# --- the gate --------------------------------------------------------------------------------------------------------


def test_only_the_gate_teaches_keys_and_query_network(model: Elastic, small_world: Dataset) -> None:
    before = {name: p.clone() for name, p in model.state_dict().items()}
    table = gate_lesson.gradients(model, small_world, user=3).set_index("group")
    assert list(table.index) == list(gate_lesson.GROUPS)
    assert (table["with_gate"] > 0).all()
    router = ["sub-keys", "query network"]
    assert (table.loc[router, "without_gate"] == 0).all() and (table.drop(router)["without_gate"] > 0).all()
    assert table["parameters"].sum() == sum(p.numel() for p in model.parameters())
    assert all(torch.equal(before[name], p) for name, p in model.state_dict().items())
    assert not any(p.requires_grad for p in model.parameters()) and model.memories[0].kind == "softmax"


def test_the_toy_learns_its_keys_only_with_the_gate() -> None:
    curve, moved = gate_lesson.toy()
    ends = moved.set_index("gate")
    assert ends.at["none", "keys_moved"] == 0 and ends.at["softmax", "keys_moved"] > 0.2
    assert ends.at["softmax", "loss"] < 0.5 * ends.at["none", "loss"]
    assert curve.groupby("gate").size().to_dict() == {"none": 200, "softmax": 200}
    short = gate_lesson.ToyConfig(steps=5)
    pd.testing.assert_frame_equal(gate_lesson.toy(short).curve, gate_lesson.toy(short).curve)


def test_what_a_whole_training_says_of_the_gate_is_read_from_the_runs(tmp_path: Path) -> None:
    assert gate_lesson.trained(tmp_path) == ""
    said = gate_lesson.trained(Path(__file__).resolve().parents[1] / "checkpoints")
    assert not said or ("with the gate" in said and "people" in said and "±" in said)


@pytest.mark.parametrize(("first", "second", "k"), [(0.6, -0.3, 4), (-1.0, 1.0, 16), (0.05, 0.9, 1)])
def test_two_numbers_as_a_query_order_points_on_two_lines(first: float, second: float, k: int) -> None:
    lesson = retrieval_lesson.of_sliders(first, second, k)
    table = retrieval_lesson.points(lesson)
    for half, q in (("row", first), ("column", second)):
        part = table[table["half"] == half]
        assert part["score"].tolist() == pytest.approx((part["at"] * q).tolist())
        assert part.sort_values("at", ascending=q < 0)["rank"].tolist() == list(range(1, lesson.side + 1))
    best = exhaustive(lesson.halves[None], k)
    assert lesson.winners.scores.tolist() == pytest.approx(best.scores[0].tolist())
