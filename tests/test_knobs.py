"""Experts turned up, turned down and lent: shares multiplied exactly, and lists that move towards what an expert stands for."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from elastic_core import models, recipes
from elastic_core.commands.experts import table_text
from elastic_core.core.batches import reading_batch
from elastic_core.data import Dataset, load
from elastic_core.data.item_features import genre_table
from elastic_core.errors import InputError
from elastic_core.memory.routing import route_users
from elastic_core.models import Recommender, as_retrieving_model, as_tracing_model
from elastic_core.run_config import DataConfig, PlantedConfig
from elastic_core.runs import Run
from elastic_core.runs.training import train
from elastic_core.services.experts import ablation, knobs, steering
from elastic_core.services.experts.ablation import EvaluationContext
from elastic_core.services.person.edited_history import EditedHistory
from elastic_core.services.person.recommend import rank_items, scale_experts, user_history

USERS = np.arange(6)


@pytest.fixture(scope="module")
def slots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recommender, Dataset]:
    """Interest slots trained for some seconds."""
    world = PlantedConfig(users=300, items=120, interests=8, interests_per_user=3, mean_length=40, max_length=60)
    config = recipes.toy("elastic-slots").override(
        "train.epochs=4", "train.learning_rate=0.008", "model.n_subkeys=4", "model.k=3"
    )
    config = dataclasses.replace(config, data=DataConfig(source="planted", planted=world))
    path, dataset = tmp_path_factory.mktemp("knobs") / "run", load(config.data)
    train(config, dataset, path)
    return Run(path).model(), dataset


def up(model: Recommender, ranks: np.ndarray, factor: float) -> ablation.Edit:
    """One rank of each row turned."""
    factors = np.ones((len(ranks), as_retrieving_model(model).config.k))  # type: ignore[attr-defined]
    factors[np.arange(len(ranks)), ranks] = factor
    return knobs.turn_ranks(model, factors, np.full(len(ranks), -1))


def scores(model: Recommender, dataset: Dataset, edit: ablation.Edit | None = None) -> torch.Tensor:
    batch = reading_batch(dataset, USERS, dataset.split_ends("test")[USERS], model.length)
    with torch.inference_mode():
        return model.scorer()(as_retrieving_model(model).last_state(batch, edit))


def test_what_experts_take_is_what_a_trace_says(
    slots: tuple[Recommender, Dataset], tiny: tuple[Recommender, Dataset, Run]
) -> None:
    for model, dataset in (slots, tiny[:2]):
        batch = reading_batch(dataset, USERS, dataset.split_ends("test")[USERS], model.length)
        with torch.inference_mode():
            found = as_tracing_model(model).slot_weights(batch, as_retrieving_model(model).retrieve(batch))
            torch.testing.assert_close(found, as_tracing_model(model).trace_reading(batch).slot_weights)


def test_a_turned_slot_has_its_share_multiplied(slots: tuple[Recommender, Dataset]) -> None:
    """One layer, so nothing but the mixture reads the slots: recounted from the parts."""
    model, dataset = slots
    assert len(model.layers) == 1  # type: ignore[arg-type]
    batch = reading_batch(dataset, USERS, dataset.split_ends("test")[USERS], model.length)
    vectors, shares = model.scorer().split_mixture(model.last_state(batch))
    each = model.scorer().logits(vectors)[..., 1:].log_softmax(-1)
    for factor in (0.25, 3.0):
        turned = shares.clone()
        turned[:, 1] += np.log(factor)
        want = (each + turned.log_softmax(-1).unsqueeze(-1)).logsumexp(1)
        found = scores(model, dataset, up(model, np.full(len(USERS), 1), factor))[:, 1:]
        torch.testing.assert_close(found, want, atol=1e-4, rtol=1e-4)
    without = shares.clone()
    without[:, 1] = -torch.inf
    want = (each + without.log_softmax(-1).unsqueeze(-1)).logsumexp(1)
    torch.testing.assert_close(scores(model, dataset, up(model, np.full(len(USERS), 1), 0.0))[:, 1:], want, atol=1e-4, rtol=1e-4)


def test_a_knob_at_one_changes_nothing_and_in_elastic_it_is_the_gate(
    slots: tuple[Recommender, Dataset], tiny: tuple[Recommender, Dataset, Run]
) -> None:
    for model, dataset in (slots, tiny[:2]):
        same = scores(model, dataset, up(model, np.zeros(len(USERS), int), 1.0))
        torch.testing.assert_close(same[:, 1:], scores(model, dataset)[:, 1:], atol=1e-4, rtol=1e-5)  # shares are summed anew
    model, dataset, _ = tiny

    def by_hand(found: ablation.Retrieved) -> ablation.Retrieved:
        factors = torch.ones_like(found.gates)
        factors[:, 2] = 5.0
        return found._replace(interests=found.interests * factors.unsqueeze(-1), gates=found.gates * factors)

    torch.testing.assert_close(scores(model, dataset, up(model, np.full(len(USERS), 2), 5.0)), scores(model, dataset, by_hand))


def test_lent_experts_take_the_place_of_the_weakest(slots: tuple[Recommender, Dataset]) -> None:
    model, dataset = slots
    batch = reading_batch(dataset, USERS, dataset.split_ends("test")[USERS], model.length)
    before, lent = as_retrieving_model(model).retrieve(batch), np.arange(len(USERS))
    after = knobs.turn_ranks(model, np.tile([1.0, 1.0, 4.0], (len(USERS), 1)), lent)(before)
    assert after.experts[:, -1].tolist() == lent.tolist() and torch.equal(after.experts[:, :-1], before.experts[:, :-1])
    value = as_retrieving_model(model).expert_values()[torch.from_numpy(lent)] * before.gates[:, -1:]
    torch.testing.assert_close(after.interests[:, -1], value)
    assert after.turned is not None and after.turned.tolist() == [[1.0, 1.0, 4.0]] * len(USERS)


def test_lists_move_towards_what_an_expert_stands_for_and_not_towards_another(slots: tuple[Recommender, Dataset]) -> None:
    model, dataset = slots
    table = knobs.knob_table(
        [knobs.measure_knobs(EvaluationContext(model, dataset, route_users(model, dataset)), factors=(0.0, 8.0))]
    ).set_index("knob")
    down, up = table.loc["own, × 0"], table.loc["own, × 8"]
    assert up["own_low"] > 0 > down["own_high"]
    assert up["d_own"] > up["other_high"] and down["d_own"] < down["other_low"]
    assert up["beyond_low"] > 0 > down["beyond_high"], "more than another of the person's experts does for the same genre"
    assert np.isnan(table.loc["lent, × 8", "d_instead"])
    assert up["d_ndcg"] < 0 and list(table.index[2:]) == ["lent, × 1", "lent, × 8"]
    assert "+" in table_text(table.reset_index())


def test_runs_judged_together_are_the_means_of_every_person() -> None:
    nan = np.nan

    def run(people: pd.DataFrame, knob: str = "own, × 0") -> pd.DataFrame:
        return pd.concat({knob: people}, names=["knob", "user"])

    one = pd.DataFrame({"own": [0.1, nan, -0.3, nan], "other": [0.0, nan, 0.1, nan], "instead": nan, "ndcg": 0.0})
    two = pd.DataFrame({"own": [0.3, 0.2, -0.1, nan], "other": [0.2, 0.0, 0.1, nan], "instead": 0.1, "ndcg": 1.0})
    row = knobs.knob_table([run(one), run(two)]).iloc[0]
    assert row["people"] == 3 and row["d_own"] == pytest.approx((0.2 + 0.2 - 0.2) / 3)
    assert row["d_other"] == pytest.approx((0.1 + 0 + 0.1) / 3) and row["d_ndcg"] == pytest.approx((0.5 + 1 + 0.5) / 3)
    assert row["d_instead"] == pytest.approx(0.1)
    assert row["d_gap"] == pytest.approx(row["d_own"] - row["d_other"]) and row["gap_low"] < row["d_gap"] < row["gap_high"]
    for wrong in (run(two.head(3)), run(two, "own, × 2"), pd.concat([run(two), run(two, "own, × 2")])):
        with pytest.raises(InputError, match="same people with the same knobs"):
            knobs.knob_table([run(one), wrong])


def test_a_model_that_learned_nothing_is_not_moved_by_it(small_world: Dataset) -> None:
    """The null: with random experts a knob stirs the list, towards one block of items as much as towards another."""
    torch.manual_seed(0)
    model = models.build(recipes.toy("elastic-slots").model, small_world.catalog).eval()
    row = knobs.knob_table(
        [knobs.measure_knobs(EvaluationContext(model, small_world, route_users(model, small_world)), factors=(8.0,))]
    ).iloc[0]
    assert abs(row["d_own"]) < 0.1


def test_nobody_is_lent_what_they_have(small_world: Dataset) -> None:
    """With as many experts as everybody retrieves there is none to lend, and that ends."""
    torch.manual_seed(0)
    model = models.build(recipes.toy("elastic-slots").override("model.n_subkeys=2").model, small_world.catalog).eval()
    traffic = route_users(model, small_world)
    if len(np.unique(knobs.expert_genres(EvaluationContext(model, small_world, traffic)))) < 2:
        pytest.skip("the four stand for one block")
    table = knobs.knob_table([knobs.measure_knobs(EvaluationContext(model, small_world, traffic), factors=(2.0,))]).set_index(
        "knob"
    )
    assert table.loc["own, × 2", "people"] == 60 and table.loc["lent, × 1", "people"] == 0


def test_data_without_genres_say_so(tiny: tuple[Recommender, Dataset, Run]) -> None:
    model, dataset, _ = tiny
    bare = dataclasses.replace(dataset, catalog=type(dataset.catalog).from_count(dataset.catalog.n_items))
    with pytest.raises(InputError, match="no genres"):
        knobs.measure_knobs(EvaluationContext(model, bare, route_users(model, dataset)))


def test_a_turn_of_one_person_is_the_knob_and_its_null_the_same_turn_of_others(slots: tuple[Recommender, Dataset]) -> None:
    """The list, its shares and every random turn recounted one by one."""
    model, dataset = slots
    traffic = route_users(model, dataset)
    means = knobs.expert_genres(EvaluationContext(model, dataset, traffic))
    history, own = user_history(dataset, 3), traffic.experts[3].tolist()
    genres, holds = genre_table(dataset.catalog)
    first = set(rank_items(model, dataset, history).table["item"])
    turns = {(1.0, 4.0, 1.0): {own[1]: 4.0}, (0.0, 1.0, 2.0): {own[0]: 0.0, own[2]: 2.0, 10**6: 3.0}}
    for factors, scales in turns.items():
        turned = steering.turn_list(model, dataset, EditedHistory(history, scales), means)
        by_hand = rank_items(model, dataset, history, edit=scale_experts(scales))
        if 0.0 not in factors:
            knob = knobs.turn_ranks(model, np.array([factors]), np.array([-1]))
            assert by_hand.table["item"].tolist() == rank_items(model, dataset, history, edit=knob).table["item"].tolist()
        assert turned.change.table["item"].tolist() == by_hand.table["item"].tolist()
        assert turned.table["expert"].tolist() == [expert for expert in own if expert in scales]
        row = turned.table.iloc[0]
        genre = means[row["expert"]]
        assert row["genre"] == genres[genre] and row["after"] == holds[by_hand.table["item"], genre].mean()
        assert row["chance_after"] == pytest.approx(by_hand.chances @ holds[:, genre])
        dealt = steering.deal_factors(np.array(factors), 40, seed=0)
        assert len({tuple(order) for order in dealt}) == len(dealt) > 1
        new, shares = [], []
        for order in dealt:
            assert sorted(order) == sorted(factors) and tuple(order) != factors
            edit = scale_experts(dict(zip(own, order.tolist(), strict=True)))
            items = rank_items(model, dataset, history, edit=edit).table["item"]
            new.append(len(set(items) - first))
            shares.append(holds[items, genre].mean())
        assert turned.null_new.tolist() == new
        assert (row["null"], row["low"]) == pytest.approx((np.median(shares), np.quantile(shares, 0.025)))
    alike = EditedHistory(history, dict.fromkeys(own, 2.0))
    assert not len(steering.turn_list(model, dataset, alike, means).null_new)
    unchanged = steering.turn_list(model, dataset, EditedHistory(history), means)
    assert unchanged.table.empty and unchanged.change.counts["same"] == 10


def test_the_cost_of_a_turn_is_that_of_everybody_whom_it_touches(
    slots: tuple[Recommender, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, dataset = slots
    of = EvaluationContext(model, dataset, traffic := route_users(model, dataset))
    expert = int(traffic.load.argmax())
    told: list[float] = []
    table = steering.turn_cost(of, {expert: 4.0}, told.append)
    users = ablation.retrieving_users(traffic, expert)
    before = ablation.rank_edited(of, users)
    make = lambda some: up(model, ablation.ranks_of(traffic, expert, some), 4.0)  # noqa: E731
    after = ablation.rank_edited(of, users, make)
    assert table["n"].tolist() == [len(users)] * 2 and table["touched"][0] == len(users)
    assert table["d_ndcg"][0] == pytest.approx((after["ndcg"] - before["ndcg"]).mean())
    assert told[-1] == 1.0 and told == sorted(told)
    silenced = steering.turn_cost(of, {expert: 0.0}, told.append)
    removed = ablation.remove_expert(of, expert, before)
    assert silenced["d_ndcg"][0] == pytest.approx((removed["ndcg_after"] - removed["ndcg"]).mean())
    monkeypatch.setattr(steering, "SAMPLE", 50)
    two = np.argsort(traffic.load)[-2:].tolist()
    some = steering.turn_cost(of, {two[0]: 0.0, two[1]: 0.0}, told.append)  # some retrieve one of them, some both
    assert some["n"][0] == 50 and some["touched"][0] == len(
        np.union1d(*(ablation.retrieving_users(traffic, each) for each in two))
    )
