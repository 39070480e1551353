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
from elastic_core.models import Recommender
from elastic_core.services.journey import chance as of_journey
from elastic_core.services.journey import trace, versions
from elastic_core.services.journey.versions import Add, Cut, Move, Replace
from elastic_core.services.person import chance, inspect, recommend
from elastic_core.services.person.attention import trace_history
from elastic_core.services.person.chance import Chance, Version
from elastic_core.services.person.recommend import answer, moved, reading, silence
from elastic_core.slots.elastic_slots import ElasticSlotsConfig

ELASTIC = ElasticConfig(length=16, width=16, layers=2, side=6, k=4)
SLOTS = ElasticSlotsConfig(length=16, width=16, layers=1, side=6, k=4)
PEER = SASRecConfig(length=16, width=16, layers=1)


def built(config: ModelConfig, data: Dataset) -> Recommender:
    torch.manual_seed(1)
    return models.build(config, data.catalog.n_items).eval()


def slow(model: Recommender, data: Dataset, before: Version, after: Version, stay: bool) -> tuple[int, int, int]:
    """As the pages draw it: two lists, and what moved between them."""
    lists = []
    for read, silenced, _ in (before, after):
        edit = silence(silenced)
        lists.append(answer(model, data, read, edit=edit, stay=stay))
    change = moved(*lists)
    known = change.table[change.table["was"] > 0]
    furthest = int((known["was"] - known["rank"]).abs().max())
    return int(change.truth_before or 0) - int(change.truth_after or 0), furthest, len(change.gone)


@pytest.mark.parametrize("config", [ELASTIC, SLOTS, PEER], ids=["elastic", "slots", "sasrec"])
@pytest.mark.parametrize("stay", [False, True])
def test_every_number_is_what_the_lists_show(small_world: Dataset, config: ModelConfig, stay: bool) -> None:
    model, user = built(config, small_world), int(np.argmax(small_world.histories.lengths))
    read = reading(small_world, user)
    retrieved = recommend.retrieved(model, read).experts[0].tolist() if model.retrieves else []
    # Silencing what one history retrieves leaves the others of the batch with unequal numbers of experts.
    silenced = frozenset(retrieved[:2])
    before = Version(read, silenced)
    others = chance.removals(model, small_world, before, [len(read.items) - 1])
    assert len(others) == min(model.length, len(read.items)) - 1
    found = chance.compare_acts(model, before, Version(read.without_last(), silenced), others, stay)
    assert found is not None and found.n == len(others)
    for row, version in zip(found.table.to_dict("records"), [Version(read.without_last(), silenced), *others], strict=True):
        places, furthest, gone = slow(model, small_world, before, version, stay)
        assert abs(row["places"] - places) <= 1 and abs(row["replaced"] - gone) <= 1  # near ties in another batch shape
        assert abs(row["furthest"] - furthest) <= 1


def test_the_last_edit_is_judged_from_where_it_was_made(small_world: Dataset) -> None:
    model = built(ELASTIC, small_world)
    base = inspect.after(model, small_world, 5, [None])
    strongest = base.heard[0]
    found = chance.of_edits(model, small_world, 5, [None, strongest])
    assert found is not None
    assert found.table["done"].tolist() == [f"without expert {e}" for e in base.heard]
    end = inspect.after(model, small_world, 5, [None, strongest])
    assert found.table["replaced"].iloc[0] == len(moved(base.answer, end.answer).gone)
    short = dataclasses.replace(reading(small_world, 5), items=np.array([3]), times=None)
    assert chance.removals(model, small_world, Version(short), [0]) == []


def test_counts_and_ranges_are_of_the_others() -> None:
    found = Chance(pd.DataFrame({"done": list("abcde"), "places": [3.0, -3, 1, 0, 2], "furthest": [7, 2, 1, 9, 2],
                                 "replaced": [0, 1, 2, 0, 0]}))  # fmt: skip
    assert found.rows("watched")[0][1:] == ("3", "1.5 (all: 0 to 3)", "1 of 4")
    assert found.rows("watched")[1][1:] == ("7", "2 (all: 1 to 9)", "1 of 4")
    assert found.rows("watched")[2][1:] == ("0", "0.5 (all: 0 to 2)", "–"), "nobody is asked how many reached nothing"
    unknown = Chance(found.table.assign(places=np.nan))
    assert len(unknown.rows("watched")) == 2


@pytest.mark.parametrize("edit", [Cut(3, 4), Cut(1, 4), Move(2, 0), Move(2, 3), Add(7, 2)])
def test_an_edit_of_a_journey_is_done_elsewhere_once_each(small_world: Dataset, edit: versions.Edit) -> None:
    model, user = built(ELASTIC, small_world), int(np.argmax(small_world.histories.lengths))
    tree = versions.start(small_world, user, 12).then(edit)
    others = of_journey.elsewhere(edit, tree.original, tree.n_items, model.length)
    assert others and edit not in others and len(set(others)) == len(others) <= chance.MOST
    assert {type(other) for other in others} == {type(edit)}
    found = of_journey.of_version(model, small_world, tree)
    mine, before = (
        inspect.situation_of(model, small_world, versions.read_version(small_world, tree, at)).answer for at in (1, 0)
    )
    assert found is not None and found.n == len(others)
    assert found.table["replaced"].iloc[0] == len(moved(before, mine).gone)
    assert of_journey.of_version(model, small_world, tree.go(0)) is None
    assert of_journey.of_version(model, small_world, tree.then(Replace((1, 2)))) is None


def test_what_experts_read_is_named_whole_and_beside_the_others(small_world: Dataset) -> None:
    model, user = built(ELASTIC, small_world), int(np.argmax(small_world.histories.lengths))
    items = reading(small_world, user).items
    assert len(items) > 16  # longer than what is read
    found = trace.reads(small_world, items, trace_history(model, items))
    assert found.groupby(["layer", "expert"])["weight"].sum().to_numpy() == pytest.approx(1.0, abs=1e-5)
    assert found.groupby(["layer", "expert"])["others"].sum().to_numpy() == pytest.approx(1.0, abs=1e-5)
    assert found["layer"].max() == 2 and found["event"].max() == len(items) and found["event"].nunique() == 16
    assert (items[found["event"] - 1] == found["item"]).all()
    cells = trace.aggregation(model, items, 2).cells
    second = found[found["layer"] == 2]
    assert second["weight"].to_numpy() == pytest.approx(cells["weight"].to_numpy(), abs=1e-6)
    said = trace.by_name(found)
    for expert, of in found[found["layer"] == 1].groupby("expert"):
        sums = of.groupby("title")[["weight", "others"]].sum().sort_values("weight")
        told = said[int(expert)].split(";")[0].removeprefix("layer 1: ")  # type: ignore[call-overload]
        first, beside = sums.iloc[-1], re.search(r"\(other experts: ([\d.]+)%", told)
        assert float(told.split("%")[0]) == pytest.approx(100 * first["weight"], abs=0.51)
        assert inspect.split_year(str(first.name))[0] in told
        assert beside is not None and float(beside[1]) == pytest.approx(100 * first["others"], abs=0.51)


def test_repeats_are_counted_and_stay_in_the_running(small_world: Dataset) -> None:
    histories, model = small_world.histories, built(PEER, small_world)
    met = [histories.of(user)[-1] in histories.of(user)[:-1] for user in range(histories.n_users)]
    found = inspect.repeats(small_world)
    assert (found.again, found.people) == (sum(met), len(met)) and 0 < found.again < found.people
    user = met.index(True)
    for stay in (False, True):
        here = inspect.after(model, small_world, user, stay=stay)
        unmet = small_world.catalog.n_items - len(set(here.read.items.tolist())) + 1  # what comes next takes part, met or not
        assert here.answer.running == (small_world.catalog.n_items if stay else unmet)
    assert not inspect.Repeats(9, 100).stay and inspect.Repeats(10, 100).stay
