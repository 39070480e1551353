"""What the app asks of the core: recommendations, what-if changes, people and experts, on a small planted world."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import elastic_core.models as models
from elastic_core import recipes
from elastic_core.core.batches import history_batch
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.sasrec import SASRecConfig
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.memory.routing import route_users
from elastic_core.memory.user_experts import user_experts
from elastic_core.models import Recommender
from elastic_core.run_config import DataConfig, PlantedConfig
from elastic_core.runs.ranks import evaluate
from elastic_core.services.edits import Remove, Silence
from elastic_core.services.person import inspect
from elastic_core.services.person.model_trace import strongest_expert
from elastic_core.services.person.prediction import predict_user
from elastic_core.services.person.recommend import History, compare_lists, rank_items, user_history
from elastic_core.services.train import presets
from elastic_core.slots.elastic_slots import ElasticSlotsConfig

SIDE, K = 6, 4


@pytest.fixture(scope="module")
def data() -> Dataset:
    planted = PlantedConfig(users=120, items=80, interests=4, mean_length=20, max_length=40)
    return load(DataConfig(source="planted", planted=planted))


@pytest.fixture(scope="module")
def model(data: Dataset) -> Recommender:
    torch.manual_seed(0)
    return models.build(ElasticConfig(length=16, width=16, layers=1, n_subkeys=SIDE, k=K), data.catalog.n_items).eval()


def test_a_reading_stops_before_the_target(data: Dataset) -> None:
    read = user_history(data, 3)
    assert read.items.tolist() == data.histories.user_items(3)[:-1].tolist() and read.truth == data.histories.user_items(3)[-1]
    with pytest.raises(InputError, match="no user"):
        user_history(data, data.histories.n_users)


def test_the_list_is_the_sorted_scores_without_what_was_seen(data: Dataset, model: Recommender) -> None:
    read = user_history(data, 5)
    found = rank_items(model, data, read, top=10)
    scores = model.score(history_batch(read.items, model.length))[0].detach().numpy().copy()
    seen = set(read.items.tolist()) - {read.truth}
    rest = [i for i in range(1, data.catalog.n_items + 1) if i not in seen]
    expected = sorted(rest, key=lambda i: -scores[i])
    assert found.table["item"].tolist() == expected[:10]
    assert found.n_candidates == len(rest)
    assert read.truth is not None and found.truth_rank == expected.index(read.truth) + 1
    assert found.chances.sum() == pytest.approx(1, abs=1e-5) and found.chances[0] == 0


@pytest.mark.parametrize("variant", presets.list_variants(), ids=lambda variant: variant.label)
def test_everybody_is_answered_as_they_are_judged(data: Dataset, variant: presets.Variant) -> None:
    """Whatever a model reads of a history, times included, the app gives it what the evaluation gives it."""
    torch.manual_seed(0)
    small = {"length": 16, "width": 16, "layers": 2, "n_subkeys": SIDE, "k": K, "codewords": 16}
    config = recipes.model_settings(variant.model, **{**small, **variant.settings})
    asked = models.build(config, data.catalog).eval()
    asked.fit(data)
    with torch.no_grad():
        for part in asked.parameters():
            part.add_(0.1 * torch.randn_like(part))
    people = np.arange(8)
    for protocol, keep_seen in (("full-seen", True), ("full", False)):
        judged = evaluate(asked, data, protocols=(protocol,), users=people).ranks[protocol]
        found = [rank_items(asked, data, user_history(data, user), keep_seen=keep_seen).truth_rank for user in people]
        for rank, above, tied in zip(found, judged.above, judged.tied, strict=True):
            missed = above == data.catalog.n_items  # seen before: the app shows it all the same
            assert rank is not None and (missed or above < rank <= above + tied + 1)


def test_no_edit_moves_nothing(data: Dataset, model: Recommender) -> None:
    here = rank_items(model, data, user_history(data, 1))
    change = compare_lists(here, here)
    assert change.counts == {"new": 0, "up": 0, "down": 0, "same": 10}
    assert change.summary("films").startswith("The list did not move")
    assert change.lost_rows.empty and change.truth_before == change.truth_after


def test_moves_add_up(data: Dataset, model: Recommender) -> None:
    start, last = predict_user(model, data, 2), int(data.readable_lengths()[2])
    here = predict_user(model, data, 2, [Remove(last, last), Remove(last - 1, last - 1)])
    change = compare_lists(start.recommendation, here.recommendation)
    assert sum(change.counts.values()) == 10 and change.counts["new"] == len(change.lost_rows)
    for row in change.table.to_dict("records"):
        assert row["was"] == start.recommendation.ranks[row["item"]]
        assert {"up": row["rank"] < row["was"], "down": row["rank"] > row["was"]}.get(row["change"], True)
    assert here.n_events == start.n_events - 2


def test_of_a_next_basket_is_said_how_much_the_list_guesses(data: Dataset, model: Recommender) -> None:
    """Before and after; what leaves the list keeps its star, and is named first."""
    start, last = predict_user(model, data, 2), int(data.readable_lengths()[2])
    before = start.recommendation
    after = predict_user(model, data, 2, [Remove(last, last), Remove(last - 1, last - 1)]).recommendation
    lost = compare_lists(before, after).lost_rows["item"].tolist()
    assert lost, "else the acts above say nothing"
    stay = next(item for item in before.table["item"] if item not in lost)
    basket = [lost[-1], stay]
    held = [each._replace(table=each.table.assign(is_truth=each.table["item"].isin(basket))) for each in (before, after)]
    change = compare_lists(*held)
    assert change.n_true == (2, 1) and change.basket_guessed == "Of the ten suggestions, 2 were in the next basket; now it is 1."
    assert change.summary("films").startswith(f"★ {data.catalog.title(lost[-1])}")
    assert compare_lists(*reversed(held)).basket_guessed == "Of the ten suggestions, 1 was in the next basket; now it is 2."
    assert (
        compare_lists(held[0], held[0]).basket_guessed == "With and without your changes, 2 of the ten were in the next basket."
    )


def test_only_active_experts_are_counted_as_the_same(data: Dataset, model: Recommender) -> None:
    start = predict_user(model, data, 2)
    assert start.others_retrieved(start) == f"The {K} experts are the same as before."
    silenced = predict_user(model, data, 2, [Silence(start.experts[0])])
    assert silenced.others_retrieved(start) == f"The {K - 1} remaining experts are the same as before."


def test_silencing_is_taking_the_row_out_and_leaves_the_model_alone(data: Dataset, model: Recommender) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    start = predict_user(model, data, 4)
    strongest = start.active_experts[0]
    here = predict_user(model, data, 4, [Silence(strongest)])
    assert here.active_experts == start.active_experts[1:] and len(start.active_experts) == K
    batch = history_batch(start.history.items, model.length)
    by_hand = model.scorer()(model.last_state(batch, edit=lambda r: r.select_ranks(torch.arange(1, K))))[0]  # type: ignore[call-arg]
    order = [i for i in here.recommendation.ranks.argsort() if here.recommendation.ranks[i] > 0]
    assert torch.all(by_hand[order][:-1] >= by_hand[order][1:])
    assert not np.allclose(here.recommendation.chances, start.recommendation.chances)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_strongest_is_the_one_whose_removal_changes_the_list_most(data: Dataset) -> None:
    torch.manual_seed(3)
    slots = models.build(ElasticSlotsConfig(length=16, width=16, layers=1, n_subkeys=SIDE, k=K, dropout=0.0), data.catalog).eval()
    others = 0
    for user in range(12):
        start = predict_user(slots, data, user, keep_seen=True)
        changes = {}
        for expert in start.active_experts:
            change = compare_lists(
                start.recommendation, predict_user(slots, data, user, [Silence(expert)], keep_seen=True).recommendation
            )
            changes[expert] = change.counts["new"]
        strongest = strongest_expert(slots, start)
        assert strongest is not None and changes[strongest] == max(changes.values())
        others += strongest != start.active_experts[0]
        here = predict_user(slots, data, user, [Silence(strongest)], keep_seen=True)
        assert strongest_expert(slots, here) in here.active_experts and strongest not in here.active_experts
        assert strongest_expert(slots, predict_user(slots, data, user, [*map(Silence, start.active_experts)])) is None
    assert others, "else it is the first all the same"


def test_one_expert_always_stays(data: Dataset, model: Recommender) -> None:
    start = predict_user(model, data, 4)
    here = predict_user(model, data, 4, [*map(Silence, start.active_experts)])
    assert np.isfinite(here.recommendation.chances).all() and here.recommendation.chances.sum() == pytest.approx(1, abs=1e-5)


def test_the_experts_table_agrees_with_the_search(data: Dataset, model: Recommender) -> None:
    here, traffic = predict_user(model, data, 9), route_users(model, data, "test")
    assert here.retrieved is not None
    table = user_experts(model, data, 9)
    assert table["expert"].tolist() == here.active_experts and table["rank"].tolist() == list(range(1, K + 1))
    assert table["score"].tolist() == pytest.approx(here.retrieved.all_scores[0].topk(K).values.tolist())
    assert table["load"].tolist() == traffic.load[here.active_experts].tolist()
    assert (table["row"] * SIDE + table["column"] == table["expert"]).all()


def test_people_are_found_by_what_they_had(data: Dataset) -> None:
    item = int(user_history(data, 0).items[-1])
    people = inspect.people_with(data, item)
    expected = {u for u in range(data.histories.n_users) if item in data.histories.user_items(u)[:-1]}
    assert set(people["user"]) == expected and people["user"].is_unique
    for row in people.to_dict("records"):
        assert data.histories.user_items(row["user"])[row["events"] - 1 - row["since"]] == item
    found = inspect.find_items(data, data.catalog.title(item))
    assert item in set(found["item"]) and found["events"].is_monotonic_decreasing


def test_a_model_without_memory_still_answers(data: Dataset) -> None:
    peer = models.build(SASRecConfig(length=16, width=16, layers=1), data.catalog.n_items).eval()
    here = predict_user(peer, data, 3)
    assert here.retrieved is None and here.active_experts == [] and len(here.recommendation.table) == 10


def test_the_example_has_enough_history_and_the_best_rank(data: Dataset, model: Recommender) -> None:
    user = inspect.good_example(model, data)
    able = [u for u in range(data.histories.n_users) if 20 <= len(user_history(data, u).items) <= 120][:64]
    assert user in able
    histories = {u: user_history(data, u) for u in able}
    new = [u for u, history in histories.items() if history.truth not in history.items]
    assert user in new, "the next item of the example is new to the person"
    ranks = {u: rank_items(model, data, histories[u]).truth_rank or 0 for u in new}
    assert ranks[user] == min(ranks.values())


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Piano, The (1993)", ("The Piano", "1993")),
        ("Heat (1995)", ("Heat", "1995")),
        ("2001", ("2001", "")),
        ("(1994)", ("(1994)", "")),
        ("Postino, Il (1994)", ("Il Postino", "1994")),
    ],
)
def test_years_and_articles(title: str, expected: tuple[str, str]) -> None:
    assert inspect.split_year(title) == expected


@given(st.lists(st.text("ab,", max_size=12), max_size=6), st.integers(6, 9))
def test_names_that_begin_alike_lose_their_middle(names: list[str], room: int) -> None:
    cut = inspect.cut_alike(names, room)
    for name, label in zip(names, cut, strict=True):
        others = {other for other in names if other != name and other[: room - 1] == name[: room - 1]}
        assert label == name if len(name) <= room or not others else len(label) <= room and label[-1:] == name[-1:]
    assert inspect.cut_alike(["Vaso de cerâmica azul", "Vaso de cerâmica preto", "Café"], 15) == [
        "Vaso de ce…azul", "Vaso de c…preto", "Café"
    ]  # fmt: skip


def test_two_entries_of_one_title_are_told_apart() -> None:
    titles = ["Chasing Amy (1997)", "Heat (1995)", "Chasing Amy (1997)"]
    assert inspect.told_apart(titles, [246, 273, 268]) == ["Chasing Amy (id 246)", "Heat", "Chasing Amy (id 268)"]


def test_the_history_table_is_the_end_of_the_history(data: Dataset) -> None:
    read = user_history(data, 6)
    table = inspect.history_table(data, read, last=5)
    assert table["item"].tolist() == read.items[-5:].tolist() and table["position"].tolist()[-1] == len(read.items)
    assert len(inspect.history_table(data, History(read.items[:2]), last=5)) == 2
