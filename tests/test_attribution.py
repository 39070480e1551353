"""Who suggests an item: shares that add up, experts and events recounted by hand, and silence where nobody can say."""

import re

import numpy as np
import pandas as pd
import pytest
import torch

from elastic_core import models
from elastic_core.core.batches import history_batch
from elastic_core.core.config import ModelConfig
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.services.experts import expert_users
from elastic_core.services.experts.ablation import EvaluationContext
from elastic_core.services.person.attribution import CLEAR, find_reasons, share_agreement
from elastic_core.services.person.prediction import predict_user
from elastic_core.services.person.recommend import rank_items, scale_experts, user_history
from elastic_core.services.person.slot_contents import summarize_slot

ITEMS = [3, 1, 7, 20]


def built(world: Dataset, **settings: object) -> models.Recommender:
    torch.manual_seed(1)
    shape = {"length": 24, "width": 16, "layers": 2, "dropout": 0.0, "n_subkeys": 4, "k": 3, **settings}
    model = models.build(ModelConfig.known["elastic-slots"](**shape), world.catalog).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "log" not in name:
                parameter += 0.3 * torch.randn_like(parameter)
    return model


@torch.no_grad()
def test_shares_are_the_parts_of_the_probability_and_events_those_the_slots_hold(small_world: Dataset) -> None:
    model = built(small_world)
    batch = history_batch(user_history(small_world, 5).items, model.length)
    found = model.attribute_items(batch, torch.tensor([ITEMS]))  # type: ignore[operator]
    assert found.parts.shape == (1, 4, 4) and found.experts.tolist() == model.retrieve(batch).experts.tolist()  # type: ignore[operator]
    torch.testing.assert_close(found.parts.sum(-1), torch.ones(1, 4))
    scorer, state = model.scorer(), model.last_state(batch)
    vectors, shares = scorer.split_mixture(state)
    each = (scorer.logits(vectors)[0, :, 1:].softmax(-1) * shares[0].exp().unsqueeze(-1))[:, torch.tensor(ITEMS) - 1]
    torch.testing.assert_close(found.parts[0], (each / each.sum(0)).T)
    torch.testing.assert_close(each.sum(0).log(), scorer(state)[0, ITEMS])
    # what a slot holds, step by step: an event comes in with its strength, all before it fade by as much
    strength, held = model.trace_reading(batch).slot_weights[0], np.zeros((3, batch.items.shape[1]))  # type: ignore[operator]
    for t in range(held.shape[1]):
        step = strength[:, t].numpy()[:, None]
        held = held * (1 - step)
        held[:, t] = step[:, 0]
    np.testing.assert_allclose(found.held[0].numpy(), held, atol=1e-5)


def test_a_reason_names_the_largest_part_and_an_event_only_where_one_stands_out(small_world: Dataset) -> None:
    model, read = built(small_world), user_history(small_world, 5)
    table = rank_items(model, small_world, read, top=10).table
    why = find_reasons(model, read, table["item"].tolist())
    assert why is not None and len(why) == len(table)
    experts = predict_user(model, small_world, 5).active_experts
    found = model.attribute_items(history_batch(read.items, model.length), torch.tensor([table["item"].tolist()]))  # type: ignore[operator]
    for one, parts in zip(why, found.parts[0], strict=True):
        assert one.share == pytest.approx(float(parts.max())) and one.expert in (None, *experts)
        if one.expert is None:
            best = int(parts[: len(experts)].argmax())
            assert one.after is None and one.best == (experts[best], pytest.approx(float(parts[best]), rel=1e-5))
            assert re.match(rf"no expert \(\d+%\), then expert {experts[best]} \(", one.sentence(small_world))
        else:
            slot = experts.index(one.expert)
            clear = float(found.held[0, slot].max()) >= CLEAR
            assert (one.after is not None) == clear and f"expert {one.expert} (" in one.sentence(small_world)
            assert one.after is None or one.after in read.items
    silenced = experts[0]
    after = find_reasons(model, read, table["item"].tolist(), scale_experts({silenced: 0}))
    assert after is not None and all(one.expert != silenced for one in after)


@torch.no_grad()
def test_experts_say_of_a_slot_what_the_first_screen_says(small_world: Dataset) -> None:
    """The examples of an expert's people, and the strip: what the slot still holds, not what was ever written into it."""
    model, user = built(small_world), 5
    history = user_history(small_world, user)
    held = model.attribute_items(history.batch(model.length), torch.ones(1, 1, dtype=torch.int64)).held[0].numpy()  # type: ignore[operator]
    for rank, event_share in enumerate(held, 1):
        contents = summarize_slot(small_world, history.items, event_share[-len(history.items) :], "")
        ranked = pd.DataFrame({"user": [user], "rank": [rank]})
        ((items,), _) = expert_users._most_read_items(EvaluationContext(model, small_world, None), ranked)  # type: ignore[arg-type]
        assert contents is not None and items.index[0] == contents.item
        assert items["share"].iloc[0] == pytest.approx(contents.share, rel=1e-4)


@torch.no_grad()
def test_an_expert_taken_away_leaves_the_other_slots_as_they_were(small_world: Dataset) -> None:
    """Its events go to no slot: what the others hold, say and how they compare with each other does not change."""
    model, batch = built(small_world, layers=1), history_batch(user_history(small_world, 5).items, 24)
    expert = int(model.retrieve(batch).experts[0, 1])  # type: ignore[operator]
    scorer = model.scorer()
    before, _ = scorer.split_mixture(model.last_state(batch))
    after, after_shares = scorer.split_mixture(model.last_state(batch, edit=scale_experts({expert: 0})))  # type: ignore[call-arg]
    torch.testing.assert_close(after[0, :2], before[0, [0, 2]])
    assert after_shares[0, 3] < -1e3 and after_shares[0, :3].exp().sum() == pytest.approx(1)
    whole = model.attribute_items(batch, torch.tensor([ITEMS]))  # type: ignore[operator]
    less = model.attribute_items(batch, torch.tensor([ITEMS]), scale_experts({expert: 0}))  # type: ignore[operator]
    torch.testing.assert_close(less.held, whole.held[:, [0, 2]])


def test_models_that_mix_their_experts_into_one_vector_give_no_reasons(small_world: Dataset) -> None:
    read = user_history(small_world, 5)
    plain = models.build(ModelConfig.known["elastic"](length=24, width=16, n_subkeys=4, k=3), small_world.catalog).eval()
    peer = models.build(ModelConfig.known["sasrec"](length=24, width=16), small_world.catalog).eval()
    assert all(find_reasons(model, read, ITEMS) is None for model in (plain, built(small_world, memory="none"), peer))
    assert share_agreement(plain, small_world) is None
    with pytest.raises(InputError, match="one vector"):
        plain.attribute_items(history_batch(read.items, 24), torch.tensor([ITEMS]))  # type: ignore[operator]


@torch.no_grad()
def test_shares_and_measured_removal_person_by_person(small_world: Dataset) -> None:
    """With one layer, and shares that do not know what was written, what removal takes follows from the shares exactly."""
    model = built(small_world, layers=1)
    model.layers[0].recency.zero_()  # type: ignore[index, union-attr, operator]
    found = share_agreement(model, small_world, most=30)
    assert found is not None and found.chance == pytest.approx(1 / 3) and found.correlation > found.shuffled
    hits = people = 0
    for user in range(small_world.histories.n_users):
        read = user_history(small_world, user)
        batch = history_batch(read.items, model.length)
        item = int(rank_items(model, small_world, read, top=1).table["item"].iloc[0])
        scorer, state = model.scorer(), model.last_state(batch)
        shares = scorer.split_mixture(state)[1][0].exp()
        parts = model.attribute_items(batch, torch.tensor([[item]])).parts[0, 0]  # type: ignore[operator]
        if int(parts.argmax()) == 3:
            continue
        lost = []
        for rank in range(3):
            expert = int(model.retrieve(batch).experts[0, rank])  # type: ignore[operator]
            after = scorer(model.last_state(batch, edit=scale_experts({expert: 0})))[0, item]  # type: ignore[call-arg]
            want = torch.log1p(-parts[rank]) - torch.log1p(-shares[rank])  # p' = (p - π p_s) / (1 - π)
            if user < 5:
                torch.testing.assert_close(after - scorer(state)[0, item], want, atol=1e-3, rtol=1e-3)
            lost.append(float(scorer(state)[0, item] - after))
        people, hits = people + 1, hits + (int(np.argmax(lost)) == int(parts[:3].argmax()))
    everybody = share_agreement(model, small_world)
    assert everybody is not None and everybody.n_users == people
    assert everybody.owners == pytest.approx(hits / people, abs=1.01 / people)  # one near tie
