"""An act beside chance: every number is what the lists would show, one by one; nothing is drawn twice or from what was done."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
import torch

import elastic_core.models as models
from elastic_core.core.config import ModelConfig
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.sasrec import SASRecConfig
from elastic_core.data import Dataset
from elastic_core.data.repeats import Repeats, count_repeats
from elastic_core.models import Recommender
from elastic_core.services.edits import Add, Edit, Remove, Scale, Silence
from elastic_core.services.journey import trace
from elastic_core.services.person import inspect
from elastic_core.services.person.attention import trace_history
from elastic_core.services.person.edited_history import EditedHistory, edit_user
from elastic_core.services.person.null_edits import MOST, NullEdits, compare_edits, null_of_last_edit
from elastic_core.services.person.prediction import predict_user
from elastic_core.services.person.recommend import (
    compare_lists,
    rank_items,
    retrieve_experts,
    scale_experts,
    user_history,
)
from elastic_core.slots.elastic_slots import ElasticSlotsConfig

ELASTIC = ElasticConfig(length=16, width=16, layers=2, n_subkeys=6, k=4)
SLOTS = ElasticSlotsConfig(length=16, width=16, layers=1, n_subkeys=6, k=4)
PEER = SASRecConfig(length=16, width=16, layers=1)


def built(config: ModelConfig, data: Dataset) -> Recommender:
    torch.manual_seed(1)
    return models.build(config, data.catalog.n_items).eval()


def slow(model: Recommender, data: Dataset, before: EditedHistory, after: EditedHistory, keep_seen: bool) -> tuple[int, int, int]:
    """As the pages draw it: two lists, and what moved between them."""
    lists = [
        rank_items(model, data, each.history, edit=scale_experts(each.scales), keep_seen=keep_seen) for each in (before, after)
    ]
    change = compare_lists(*lists)
    known = change.table[change.table["was"] > 0]
    furthest = int((known["was"] - known["rank"]).abs().max())
    return int(change.truth_before or 0) - int(change.truth_after or 0), furthest, len(change.lost_rows)


@pytest.mark.parametrize("config", [ELASTIC, SLOTS, PEER], ids=["elastic", "slots", "sasrec"])
@pytest.mark.parametrize("keep_seen", [False, True])
def test_every_number_is_what_the_lists_show(small_world: Dataset, config: ModelConfig, keep_seen: bool) -> None:
    model, user = built(config, small_world), int(np.argmax(small_world.histories.lengths))
    history = user_history(small_world, user)
    retrieved = retrieve_experts(model, history).experts[0].tolist() if model.retrieves else []
    # Silencing what one history retrieves leaves the others of the batch with unequal numbers of experts.
    scales = dict(zip(retrieved[:3], (0.0, 0.0, 2.0), strict=False))
    before = EditedHistory(history, scales)
    count = len(history.items)
    shorter = [before.remove_events(at, 1, small_world.catalog) for at in reversed(range(count - model.length, count))]
    null = compare_edits(model, before, shorter[0], shorter[1:], keep_seen)
    assert null.n == len(shorter) - 1
    for row, edited in zip(null.table.to_dict("records"), shorter, strict=True):
        places, furthest, gone = slow(model, small_world, before, edited, keep_seen)
        assert abs(row["places"] - places) <= 1 and abs(row["replaced"] - gone) <= 1  # near ties in another batch shape
        assert abs(row["furthest"] - furthest) <= 1


def test_the_last_edit_is_judged_from_where_it_was_made(small_world: Dataset) -> None:
    model, last = built(ELASTIC, small_world), int(small_world.readable_lengths()[5])
    first = Remove(last, last)
    base = predict_user(model, small_world, 5, [first])
    strongest = base.active_experts[0]
    null = null_of_last_edit(model, small_world, 5, [first, Silence(strongest)])
    assert null is not None
    assert null.table["done"].tolist() == [f"without expert {e}" for e in base.active_experts]
    end = predict_user(model, small_world, 5, [first, Silence(strongest)])
    assert null.table["replaced"].iloc[0] == len(compare_lists(base.recommendation, end.recommendation).lost_rows)


def test_counts_and_ranges_are_of_the_others() -> None:
    found = NullEdits(pd.DataFrame({"done": list("abcde"), "places": [3.0, -3, 1, 0, 2], "furthest": [7, 2, 1, 9, 2],
                                 "replaced": [0, 1, 2, 0, 0]}))  # fmt: skip
    assert found.rows("watched")[0][1:] == ("3", "1.5 (0 to 3)", "1 of 4")
    assert found.rows("watched")[1][1:] == ("7", "2 (1 to 9)", "1 of 4")
    assert found.rows("watched")[2][1:] == ("0", "0.5 (0 to 2)", "–"), "nobody is asked how many reached nothing"
    unknown = NullEdits(found.table.assign(places=np.nan))
    assert len(unknown.rows("watched")) == 2


@pytest.mark.parametrize("edit", [Remove(9, 9), Remove(7, 10), Add((7,)), Add((7, 3)), Silence(0), Scale(0, 3.0)], ids=str)
def test_an_edit_is_done_elsewhere_once_each(small_world: Dataset, edit: Edit) -> None:
    model, user = built(ELASTIC, small_world), int(np.argmax(small_world.histories.lengths))
    before = predict_user(model, small_world, user, n_events=12)
    if isinstance(edit, Silence | Scale):  # of one that the history retrieves
        edit = dataclasses.replace(edit, expert=before.experts[1])
    after = predict_user(model, small_world, user, [edit], n_events=12)
    null = null_of_last_edit(model, small_world, user, [edit], n_events=12)
    assert null is not None and 1 <= null.n <= MOST
    others = {Remove: 12 - getattr(edit, "last", 0) + getattr(edit, "first", 0) - 1, Add: null.n}
    assert null.n == others.get(type(edit), len(before.experts) - 1)
    assert null.table["replaced"].iloc[0] == len(compare_lists(before.recommendation, after.recommendation).lost_rows)
    truth = (before.recommendation.truth_rank or 0) - (after.recommendation.truth_rank or 0)
    assert abs(null.table["places"].iloc[0] - truth) <= 1


def test_what_changes_nothing_or_is_another_history_has_no_null(small_world: Dataset) -> None:
    model, n = built(ELASTIC, small_world), int(small_world.readable_lengths()[5])
    absent = next(e for e in range(model.n_experts) if e not in predict_user(model, small_world, 5).experts)  # type: ignore[operator, arg-type]
    own = (Add((7, 8)), Remove(1, n))
    nothing: list[tuple[Edit, ...]] = [
        (Remove(2, 2), Remove(2, 2)), (Silence(absent),), (Scale(absent, 2.0),), own, (Remove(1, n),),
    ]  # fmt: skip
    for edits in nothing:
        assert null_of_last_edit(model, small_world, 5, edits) is None, edits
    null = null_of_last_edit(model, small_world, 5, [*own, Remove(n + 1, n + 1)])
    assert null is not None and not null.truth_known and null.n == 1
    assert edit_user(small_world, 5, [Remove(1, n)]).history.items.tolist() == user_history(small_world, 5).items.tolist()


def test_what_experts_read_is_named_whole_and_beside_the_others(small_world: Dataset) -> None:
    model, user = built(ELASTIC, small_world), int(np.argmax(small_world.histories.lengths))
    items = user_history(small_world, user).items
    assert len(items) > 16  # longer than what is read
    found = trace.read_items(small_world, items, trace_history(model, items))
    assert found.groupby(["layer", "expert"])["weight"].sum().to_numpy() == pytest.approx(1.0, abs=1e-5)
    assert found.groupby(["layer", "expert"])["others"].sum().to_numpy() == pytest.approx(1.0, abs=1e-5)
    assert found["layer"].max() == 2 and found["event"].max() == len(items) and found["event"].nunique() == 16
    assert (items[found["event"] - 1] == found["item"]).all()
    cells = trace.bin_aggregation(model, items, 2).cells
    second = found[found["layer"] == 2]
    assert second["weight"].to_numpy() == pytest.approx(cells["weight"].to_numpy(), abs=1e-6)
    said = trace.reading_texts(found)
    for expert, of in found[found["layer"] == 1].groupby("expert"):
        sums = of.groupby("title")[["weight", "others"]].sum().sort_values("weight")
        told = said[int(expert)].split(";")[0].removeprefix("layer 1: ")  # type: ignore[call-overload]
        first, beside = sums.iloc[-1], re.search(r"other slots: ([\d.]+)% on average\)", told)
        assert float(told.split("%")[0]) == pytest.approx(100 * first["weight"], abs=0.51)
        assert inspect.split_year(str(first.name))[0] in told
        assert beside is not None and float(beside[1]) == pytest.approx(100 * first["others"], abs=0.51)


def test_repeats_are_counted_and_stay_in_the_running(small_world: Dataset) -> None:
    histories, model = small_world.histories, built(PEER, small_world)
    met = [histories.user_items(user)[-1] in histories.user_items(user)[:-1] for user in range(histories.n_users)]
    found = count_repeats(small_world)
    assert (found.again, found.people) == (sum(met), len(met)) and 0 < found.again < found.people
    user = met.index(True)
    for stay in (False, True):
        here = predict_user(model, small_world, user, keep_seen=stay)
        unmet = small_world.catalog.n_items - len(set(here.history.items.tolist())) + 1  # what comes next takes part, met or not
        assert here.recommendation.n_candidates == (small_world.catalog.n_items if stay else unmet)
    assert not Repeats(9, 100).stay and Repeats(10, 100).stay
