"""What the app says about an expert, against slow twins: loops over people, sorted lists, sets, the layer's own dispatch."""

import dataclasses
import io

import numpy as np
import pandas as pd
import pytest
import torch

import elastic_core.models as models
from elastic_core import recipes
from elastic_core.commands import main
from elastic_core.core.batches import reading_batch
from elastic_core.core.candidates import Candidates
from elastic_core.core.contract import Retrieved
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.histories import Catalog
from elastic_core.data import Dataset
from elastic_core.data.item_features import genre_table, trait_table
from elastic_core.data.repeats import fitting_protocol
from elastic_core.errors import InputError
from elastic_core.memory.item_clusters import cluster_users
from elastic_core.memory.routing import route_users
from elastic_core.models import Recommender
from elastic_core.results.statistics import interval_over_users
from elastic_core.runs import Run
from elastic_core.runs.ranks import evaluate
from elastic_core.services.experts import ablation, items, overview, relations
from elastic_core.services.experts import expert_users as expert_people
from elastic_core.services.experts.ablation import EvaluationContext
from elastic_core.services.experts.evidence import (
    Evidence,
    ExpertName,
    check_names,
    count_fitting_names,
    count_names,
    count_names_by_chance,
    learning_half,
    name_experts,
)
from elastic_core.services.experts.overview import Survey, hot_experts
from elastic_core.services.traffic.load import compare_with_random_router, select_traffic

World = tuple[Recommender, Dataset, Survey]


@pytest.fixture(scope="module")
def world(tiny: tuple[Recommender, Dataset, Run]) -> World:
    model, dataset, _ = tiny
    return model, dataset, overview.survey_experts(EvaluationContext(model, dataset, route_users(model, dataset, "test")))


@pytest.fixture(scope="module")
def busy(world: World) -> int:
    return int(world[2].traffic.load.argmax())


def of(world: World) -> EvaluationContext:
    return EvaluationContext(world[0], world[1], world[2].traffic)


def killed(found: Survey, expert: int) -> Survey:
    """The same survey, had nobody retrieved this expert (their next best stands in)."""
    chosen = found.traffic.experts.copy()
    for user in np.flatnonzero((chosen == expert).any(1)):
        chosen[user, chosen[user] == expert] = np.setdiff1d(np.arange(found.size), [*chosen[user], expert])[0]
    load = np.bincount(chosen.ravel(), minlength=found.size)
    weighted = np.bincount(chosen.ravel(), weights=found.traffic.gates.ravel(), minlength=found.size)
    traffic = dataclasses.replace(found.traffic, experts=chosen, load=load, traffic=weighted)
    return dataclasses.replace(found, traffic=traffic, of_people=dataclasses.replace(found.of_people, experts=chosen))


def removed(world: World, expert: int, most: int | None = None) -> pd.DataFrame:
    """Everybody who retrieves an expert, or some of them, with it and without."""
    before = ablation.rank_edited(of(world), ablation.retrieving_users(world[2].traffic, expert, most))
    return ablation.remove_expert(of(world), expert, before)


# --- removing and swapping -------------------------------------------------------------------------------------------


def alone(model: Recommender, dataset: Dataset, user: int, edit: object) -> tuple[float, set[int]]:
    """Rank of the truth and the ten likeliest for one person, the long way."""
    ends, target = dataset.split_ends("test"), int(dataset.target_items("test")[user])
    batch = reading_batch(dataset, np.array([user]), ends[[user]], model.length)
    scores = model.scorer()(model.last_state(batch, edit=edit))[0].detach().numpy().copy()  # type: ignore[call-arg]
    seen = dataset.histories.items[dataset.histories.offsets[user] : ends[user]].tolist()
    left_out = {0} if fitting_protocol(dataset) == "full-seen" else {0, *seen}
    others = [item for item in range(len(scores)) if item not in left_out and item != target]
    above, tied = (scores[others] > scores[target]).sum(), (scores[others] == scores[target]).sum()
    running = [item for item in range(len(scores)) if item not in left_out]
    return above + tied / 2 + 1, set(sorted(running, key=lambda item: -scores[item])[:10])


def test_removing_an_expert_equals_a_loop_over_people_and_changes_no_weight(world: World, busy: int) -> None:
    model, dataset, found = world
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    people = removed(world, busy)
    assert people.index.tolist() == [u for u in range(found.n_users) if busy in found.traffic.experts[u]]
    for user, row in people.head(25).iterrows():
        rest = torch.tensor([r for r, e in enumerate(found.traffic.experts[user]) if e != busy])
        before, old = alone(model, dataset, user, lambda f: f)
        after, new = alone(model, dataset, user, lambda f, rest=rest: f.select_ranks(rest))
        assert (row["rank"], row["rank_after"]) == (before, after)
        assert row["replaced"] == len(new - old)
    row = ablation.effect_row("", people)
    moved, gained = people["rank_after"] - people["rank"], (people["ndcg_after"] - people["ndcg"]).to_numpy()
    assert row["d_rank_mean"] == pytest.approx(moved.mean()) and row["d_rank_median"] == np.median(moved)
    words = {"worse": -1, "better": 1, "unclear": 0, "same": 0, "few": 0}
    clear = row["p"] < 0.05 and not row["low"] <= 0 <= row["high"]
    assert words[ablation.effect_verdict(row)] == clear * np.sign(row["d_ndcg"])
    assert (row["d_ndcg"], (row["low"], row["high"])) == (pytest.approx(gained.mean()), interval_over_users(gained))
    protocol = fitting_protocol(dataset)
    judged = evaluate(model, dataset, protocols=[protocol], users=people.index.to_numpy()).user_values(protocol, "NDCG@10")
    assert np.allclose(people["ndcg"], judged)
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


def test_an_item_is_called_by_its_genres_and_its_decade(small_world: Dataset) -> None:
    titles = np.array(["", "Alien (1979)", "Piano, The (1993)", "2001: A Space Odyssey", "Odd (19)", "Kid (1921) "], dtype=object)
    genres = ((), ("Horror", "Sci-Fi"), ("Drama",), ("Sci-Fi",), (), ())
    names, holds = trait_table(Catalog(np.array(["", *"abcde"], dtype=object), titles, genres))
    assert names == ("Drama", "Horror", "Sci-Fi", "1920s", "1970s", "1990s")
    assert [[names[i] for i in np.flatnonzero(row)] for row in holds] == [
        [], ["Horror", "Sci-Fi", "1970s"], ["Drama", "1990s"], ["Sci-Fi"], [], ["1920s"]
    ]  # fmt: skip
    assert trait_table(Catalog.from_count(3))[1].shape == (4, 0)
    assert trait_table(small_world.catalog)[0] == genre_table(small_world.catalog)[0]  # no years in a planted world


def test_a_genre_of_ones_own_is_beyond_shuffled_ones_only_where_it_was_put(small_world: Dataset) -> None:
    """An expert whose vector points at one block of items, beside one drawn at random."""
    torch.manual_seed(0)
    model = models.build(recipes.toy("elastic-slots").model, small_world.catalog).eval()
    genres, holds = genre_table(small_world.catalog)
    with torch.no_grad():
        table = model.events.items.weight  # type: ignore[union-attr]
        model.memories[0].values.weight[7] = torch.from_numpy(holds[:, 1]) @ table  # type: ignore[index, union-attr]
    asked = EvaluationContext(model, small_world, route_users(model, small_world))
    found, random = (items.preferred_genre(asked, expert) for expert in (7, 8))
    assert found is not None and found[0] == genres[1] and found[1] > found[2] > 1
    assert random is not None and random[1] < found[1]


def test_the_yardstick_is_as_busy_and_taken_from_its_own_people(world: World, busy: int) -> None:
    found = world[2]
    loads = np.sort(found.traffic.load[found.traffic.load > 0])
    for expert in np.flatnonzero(found.traffic.load)[::7].tolist():
        others = ablation.equally_busy_experts(found.traffic, expert)
        assert len(set(others)) == 5 and expert not in others
        ranks = np.searchsorted(loads, found.traffic.load[others]) - np.searchsorted(loads, found.traffic.load[expert])
        assert np.abs(ranks).max() < 2 * ablation.GROUP  # next in load, ties anywhere among themselves
    few = [ablation.remove_from_few(of(world), e) for e in ablation.equally_busy_experts(found.traffic, busy)]
    for e, people in zip(ablation.equally_busy_experts(found.traffic, busy), few, strict=True):
        assert 0 < len(people) <= ablation.FEW
        pd.testing.assert_frame_equal(people, removed(world, e).loc[people.index])
    pooled = pd.concat(few)
    table = ablation.measure_effects(of(world), busy, ablation.draw_used_expert(found.traffic, busy))
    assert len(table) == 5 and table["n"][2] == len(pooled) and table["n"][4] > 0
    gained = pooled["ndcg_after"] - pooled["ndcg"]
    assert table["d_ndcg"][2] == pytest.approx(gained.mean())


def test_a_swap_equals_a_loop_over_people_and_leaves_out_who_has_the_other_already(world: World, busy: int) -> None:
    model, dataset, found = world
    without = ~(found.traffic.experts == busy).any(1)
    other = int(np.bincount(found.traffic.experts[without].ravel(), minlength=found.size).argmax())
    before = ablation.rank_edited(of(world), ablation.retrieving_users(found.traffic, busy))
    people = ablation.swap_expert(of(world), busy, other, before)
    theirs = found.traffic.experts[people.index]
    assert len(people) and not (theirs == other).any() and (theirs == busy).any(1).all()
    value = model.expert_values()[other]  # type: ignore[operator]

    def exchange(old: Retrieved) -> Retrieved:
        here = old.experts == busy
        gate = old.gates[here]
        return old._replace(interests=torch.where(here.unsqueeze(-1), value * gate, old.interests))

    for user, rank in people["rank_after"].head(25).items():
        assert rank == alone(model, dataset, user, exchange)[0]
    same = ablation.swap_expert(
        of(world)._replace(traffic=killed(found, busy).traffic),
        other,
        busy,
        ablation.rank_edited(of(world), np.flatnonzero(~without)),
    )
    assert len(same)  # an expert that nobody retrieves can still be put in


def test_all_effects_at_once_equal_one_by_one(world: World) -> None:
    found = world[2]
    heard: list[float] = []
    table = ablation.remove_each(of(world), report_progress=heard.append).set_index("expert")
    assert heard == sorted(heard) and set(table.index) == set(np.flatnonzero(found.traffic.load))
    below, above, expected = ablation.count_clear_effects(table)
    assert (below, above) == ((table["high"] < 0).sum(), (table["low"] > 0).sum()) and expected == pytest.approx(len(table) / 20)
    for expert in list(table.index)[::6]:
        row = ablation.effect_row("", removed(world, int(expert)))
        assert table.loc[expert, "n"] == row["n"]
        for name in ("d_ndcg", "low", "high", "d_rank_median"):
            assert table.loc[expert, name] == pytest.approx(row[name], nan_ok=True), name


@pytest.mark.parametrize("settings", [
    {"bidirectional": True}, {"memory": "per-layer"}, {"dispatch": "none"}, {"heads": 2}, {"gate": "none", "query_norm": "layer"},
])  # fmt: skip
def test_every_variant_answers(small_world: Dataset, settings: dict[str, object]) -> None:
    torch.manual_seed(0)
    config = ElasticConfig(length=16, width=16, layers=2, n_subkeys=4, k=3, conv_width=4, **settings)  # type: ignore[arg-type]
    model = models.build(config, small_world.catalog.n_items).eval()
    asked = EvaluationContext(model, small_world, traffic := route_users(model, small_world, "test"))
    found, expert = overview.survey_experts(asked), int(traffic.load.argmax())
    assert len(overview.expert_table(found)) == 16
    people = expert_people.example_users(asked, found, expert)
    assert (people["shares"].str.len() > 0).any() == (config.dispatch == "linear")
    pushes = items.measure_pushes(asked, expert)
    assert ("direct" in pushes.table) == (config.dispatch != "none") and "measured" in pushes.table
    rows = ablation.measure_effects(asked, expert, ablation.draw_used_expert(traffic, expert))
    assert rows["n"].iloc[0] == traffic.load[expert] and rows[["d_ndcg", "replaced"]].notna().all().all()


# --- items -----------------------------------------------------------------------------------------------------------


def test_the_direct_road_is_what_the_layer_dispatches(world: World, busy: int) -> None:
    """Per person: what the layer's own slots give, with all slots but the expert's empty, and nothing aggregated."""
    model, dataset, found = world
    users, ranks = np.nonzero(found.traffic.experts == busy)
    total = torch.zeros(model.config.width)
    for user, rank in zip(users, ranks, strict=True):
        batch = reading_batch(dataset, np.array([user]), dataset.split_ends("test")[[user]], model.length)
        trace = model.trace_reading(batch)  # type: ignore
        for layer, slots in zip(model.layers, trace.slots, strict=True):  # type: ignore[arg-type]
            only = torch.zeros_like(slots)
            only[:, :, rank] = slots[:, :, rank]
            own_bias = layer.output.bias / layer.heads
            fixed = layer.fold_maps(trace.retrieved[0].interests).values - own_bias
            total += (only.unsqueeze(2) @ fixed).sum(1)[0, 0].detach()
    state = total / len(users)
    expected = model.scorer()((state - state.mean()) * model.norm.weight).detach().numpy()  # type: ignore[union-attr]
    pushes = items.measure_pushes(of(world), busy)
    assert np.allclose(pushes.table["direct"], expected[1:], atol=1e-5)
    up, down = items.most_pushed(pushes.table, "direct", top=5)
    assert up["direct"].is_monotonic_decreasing and down["direct"].is_monotonic_increasing
    assert up["item"].iloc[0] == int(expected[1:].argmax()) + 1


def test_the_measured_push_is_the_mean_difference_over_people(world: World, busy: int) -> None:
    model, dataset, found = world
    users, ranks = np.nonzero(found.traffic.experts == busy)
    changes, logs = [], []
    for user, rank in zip(users, ranks, strict=True):
        batch = reading_batch(dataset, np.array([user]), dataset.split_ends("test")[[user]], model.length)
        rest = torch.tensor([r for r in range(found.traffic.experts.shape[1]) if r != rank])
        having = model.scorer()(model.last_state(batch))[0, 1:].detach()
        lacking = model.scorer()(model.last_state(batch, edit=lambda f, rest=rest: f.select_ranks(rest)))[0, 1:].detach()  # type: ignore
        changes.append(having - lacking - (having - lacking).mean())
        logs.append(having.log_softmax(0) - lacking.log_softmax(0))
    mean, times = torch.stack(changes).mean(0).numpy(), torch.stack(logs).mean(0).exp().numpy()
    pushes = items.measure_pushes(of(world), busy)
    table = pushes.table
    assert np.allclose(table["measured"], mean, atol=1e-5)
    assert (table["n"] == len(users)).all()  # the tiny catalogue has fewer items than count as near the top
    assert np.allclose(table["times"], times, rtol=1e-4)
    assert ((table["low"] <= table["times"]) & (table["times"] <= table["high"])).all()
    ranks_of = [pd.Series(x).rank() for x in (table["direct"], mean)]
    assert pushes.agreement == pytest.approx(float(np.corrcoef(*ranks_of)[0, 1]), abs=1e-3)


# --- people ----------------------------------------------------------------------------------------------------------


def test_margins_spread_and_bands_against_sorted_scores(world: World, busy: int) -> None:
    _, _, found = world
    every = np.stack([found.scores(expert) for expert in range(found.size)], axis=1)
    k = found.traffic.experts.shape[1]
    assert np.allclose(found.spread(), every.std(0), atol=1e-5)
    ordered, margins, people = -np.sort(-every, axis=1), found.margins(busy), expert_people.rank_users(found, busy)
    for user in range(found.n_users):
        own, retrieved = every[user, busy], busy in found.traffic.experts[user]
        assert margins[user] == pytest.approx(own - ordered[user, k if retrieved else k - 1], abs=1e-5)
        assert (margins[user] >= 0) == retrieved
        assert people["rank"][user] == ((every[user] > own).sum() + 1 if retrieved else 0)
        assert (people["score"][user], people["margin"][user]) == (own, margins[user])
    bands = people["band"].to_numpy()
    lowest = {band: margins[bands == band].min() for band in expert_people.BANDS if (bands == band).any()}
    assert list(lowest.values()) == sorted(lowest.values(), reverse=True) and lowest["just in"] >= 0 > lowest["just out"]


def test_examples_are_of_their_band_and_show_what_the_expert_reads(world: World, busy: int) -> None:
    model, dataset, found = world
    people = expert_people.example_users(of(world), found, busy)
    bands = expert_people.rank_users(found, busy)["band"]
    assert set(people["group"]) == {"top", "middle", "just in", "just out", "random"} and people["user"].is_unique
    for row in people.itertuples():
        assert row.group == "random" or bands[row.user] == row.group
        history = dataset.histories.user_items(row.user)[: row.events].tolist()
        assert set(row.items) <= set(history) and (len(row.shares) > 0) == (row.rank > 0)
        if row.rank:
            batch = reading_batch(dataset, np.array([row.user]), dataset.split_ends("test")[[row.user]], model.length)
            trace = model.trace_reading(batch)  # type: ignore
            weights = trace.reading[0][0, :, row.rank - 1].mean(0)
            read = history[-model.length :]
            share = sum(float(w.detach()) for w, item in zip(weights[-len(read) :], read, strict=True) if item == row.items[0])
            assert row.times[0] == pytest.approx(share / (read.count(row.items[0]) / len(read)), abs=1e-3)
            assert row.shares[0] == pytest.approx(share, abs=1e-5) and found.traffic.experts[row.user, row.rank - 1] == busy
    assert people["user"].tolist() == expert_people.example_users(of(world), found, busy)["user"].tolist()


# --- what it stands for ----------------------------------------------------------------------------------------------


def test_lifts_are_ratios_of_means_and_a_shuffle_seldom_passes() -> None:
    rng, people, genres = np.random.default_rng(0), 600, ("A", "B", "C", "D", "E")
    shares = rng.dirichlet(np.ones(5) * 2, people).astype(np.float32)
    chosen = np.stack([rng.choice(40, 4, replace=False) for _ in range(people)])
    fan = np.flatnonzero(shares[:, 1] > 0.35)
    chosen[fan, 0] = 40  # expert 40 is retrieved by those who like B
    evidence = Evidence(genres, chosen, shares, shares.mean(0))
    frame, label = evidence.genre_table(40).set_index("genre"), evidence.label(40)
    assert label.genres == ("B",) and not label.is_weak and label.n == len(fan)
    assert frame.loc["B", "lift"] == pytest.approx(shares[fan, 1].mean() / shares[:, 1].mean(), rel=1e-4)
    mean = [shares[rng.choice(fan, len(fan)), 1].mean() / shares[:, 1].mean() for _ in range(4000)]
    low, high = np.quantile(mean, [0.005, 0.995])  # 95% for five genres together is 99% for each
    assert frame.loc["B", "low"] == pytest.approx(low, rel=0.03) and frame.loc["B", "high"] == pytest.approx(high, rel=0.03)
    assert evidence.count_labelled() - 1 <= 4 and len(evidence.top_genres) == 41  # 40 experts at random: about two pass at 5 %
    own = Evidence(genres, chosen, np.repeat(shares[:, None], 4, axis=1), shares)  # reads its people's histories evenly
    assert own.genre_table(40)["lift"].to_numpy() == pytest.approx(np.ones(5)) and own.count_labelled() == 0
    assert Evidence(genres, chosen[:3], shares[:3], shares.mean(0)).label(40).genres == ()  # too few people


def test_a_name_holds_where_the_genre_was_put_and_nowhere_by_chance() -> None:
    """Ten experts, each with people who have half as much again of one genre; the eleventh has people of all sorts."""
    rng = np.random.default_rng(0)
    experts = rng.integers(0, 11, (2_000, 1))
    shares = rng.dirichlet(np.full(10, 3.0), 2_000)
    rows = np.flatnonzero(experts[:, 0] < 10)
    shares[rows, experts[rows, 0]] *= 1.5
    evidence = Evidence(tuple("abcdefghij"), experts, shares, shares.mean(0))
    names = name_experts(evidence)
    assert {expert: name.genre for expert, name in names.items() if name.holds} == dict(enumerate("abcdefghij"))
    assert all(1.2 < name.lift < 1.8 and name.n > 50 for name in names.values() if name.holds)
    assert count_names(evidence) == 10 and count_names_by_chance(evidence) < 1


def test_names_say_what_people_choose_next_and_names_dealt_at_random_do_not(world: World) -> None:
    """Everybody has one expert, and it is called what they chose next."""
    _, dataset, _ = world
    genres, holds = trait_table(dataset.catalog)
    own = holds[dataset.histories.items[dataset.split_ends("test")]].argmax(1)
    names = {place: ExpertName(genres[place], 2.0, 1.5, 20) for place in np.unique(own).tolist()}
    check = check_names(names, dataset, own[:, None])
    assert check is not None and check.named == len(names)
    tested = dataset.histories.items[dataset.split_ends("test")][~learning_half(len(own))]
    assert check.share == pytest.approx(holds[tested].max(1).mean())
    assert check.low <= check.dealt <= check.high and check.dealt < check.share
    weak = {expert: ExpertName(name.genre, 1.0, 0.9, 20) for expert, name in names.items()}
    assert check_names(weak, dataset, own[:, None]) is None, "what does not hold is no name"


def test_clusters_of_item_vectors_are_dealt_by_what_a_history_has_more_of(world: World) -> None:
    model, dataset, _ = world
    chosen = cluster_users(model, dataset, 4, 2)
    assert chosen.shape == (dataset.histories.n_users, 2) and (chosen[:, 0] != chosen[:, 1]).all()
    assert len(np.unique(chosen)) == 4
    assert np.array_equal(chosen, cluster_users(model, dataset, 4, 2))


def test_status_table_and_recovered_interests(world: World, busy: int) -> None:
    _, dataset, found = world
    dead = killed(found, busy)
    assert dead.status()[busy] == "dead" and overview.label_expert(dead, busy).text == "no label"  # type: ignore[union-attr]
    low, high = found.band
    drawn = compare_with_random_router(
        select_traffic(found.traffic, np.ones(found.n_users, dtype=bool), "people"), draws=400
    ).each
    assert (low, high) == pytest.approx(drawn, abs=1)  # the same band as on the page about traffic, there by simulation
    for load, status in zip(found.traffic.load, found.status(), strict=True):
        assert status == ("dead" if load == 0 else "hot" if load > high else "cold" if load < low else "usual")
    table = overview.expert_table(found)
    assert table["expert"].tolist() == list(range(found.size)) and table["traffic"].sum() == pytest.approx(1)
    assert dataset.truth is not None and found.interest_counts is not None
    assert (
        found.interest_counts.to_numpy().sum() <= found.n_users * 200
        and ((table["purity"] >= 1 / 4) | (table["events"] == 0)).all()
    )
    labelled, by_chance = found.by_chance()
    assert 0 <= labelled <= found.size and by_chance >= 0
    with pytest.raises(InputError, match="no expert"):
        found.place(found.size)


def test_hot_experts_of_a_person(world: World) -> None:
    _, _, found = world
    retrieved = found.traffic
    for user in range(0, found.n_users, 4):
        frame = overview.hot_experts(retrieved, user)
        assert frame["expert"].tolist() == retrieved.experts[user].tolist()
        for row in frame.itertuples():
            gates = [float(retrieved.gates[u][retrieved.experts[u] == row.expert].sum()) for u in range(found.n_users)]
            assert row.times == pytest.approx(row.gate / np.mean(gates), rel=1e-4)
            assert row.load_rank == (retrieved.load > row.load).sum() + 1 and row.share == row.load / found.n_users
            assert row.kind == found.status()[row.expert]


# --- neighbours ------------------------------------------------------------------------------------------------------


def test_retrieved_together_by_brute_force(world: World, busy: int) -> None:
    _, _, found = world
    sets = [set(row) for row in found.traffic.experts.tolist()]
    frame = relations.retrieved_together(found.traffic, busy, top=found.size).set_index("expert")
    for other in range(found.size):
        both = sum({busy, other} <= s for s in sets) if other != busy else 0
        assert (other in frame.index) == (both > 0)
        if both:
            expected = sum(busy in s for s in sets) * sum(other in s for s in sets) / len(sets)
            assert frame.loc[other, "together"] == both and frame.loc[other, "lift"] == pytest.approx(both / expected)
            assert frame.loc[other, "low"] <= frame.loc[other, "lift"] <= frame.loc[other, "high"]


def test_rows_columns_and_like_vectors(world: World, busy: int) -> None:
    model, _, found = world
    every, lines = relations.cosine_table(found, model, busy), relations.line_loads(found, busy)
    for line, number in zip(("row", "column"), found.place(busy), strict=True):
        frame = relations.same_line(every, busy, line)
        assert set(frame[line]) == {number} and lines[line] == frame["load"].sum() and len(frame) == found.n_subkeys
    values = model.expert_values().detach().numpy()  # type: ignore[operator]
    near = relations.nearest_experts(every, busy, top=3)
    cosine = lambda e: values[e] @ values[busy] / np.linalg.norm(values[e]) / np.linalg.norm(values[busy])  # noqa: E731
    assert near["expert"].tolist() == sorted((e for e in range(found.size) if e != busy), key=lambda e: -cosine(e))[:3]
    assert near["cosine"].tolist() == pytest.approx([cosine(e) for e in near["expert"]], rel=1e-4)


def test_a_dead_expert_has_plain_empty_answers(world: World, busy: int) -> None:
    model, dataset, found = world
    dead = killed(found, busy)
    nobody = ablation.effect_row(
        "", ablation.compare_ranks(*(ablation.rank_edited(of(world), np.zeros(0, int)) for _ in range(2)))
    )
    assert nobody["n"] == 0 and np.isnan(nobody["d_ndcg"])
    pushes = items.measure_pushes(of((model, dataset, dead)), busy)
    assert "measured" not in pushes.table and "direct" in pushes.table and np.isnan(pushes.agreement)
    assert relations.retrieved_together(dead.traffic, busy).empty
    assert set(expert_people.rank_users(dead, busy)["band"]) == {"just out", "out"}


@pytest.mark.parametrize("protocol", ["full", "full-seen"])
def test_candidates_stay_those_of_the_evaluation(world: World, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ten suggestions are drawn from what the protocol ranks."""
    monkeypatch.setattr(ablation, "fitting_protocol", lambda dataset: protocol)
    dataset = world[1]
    users = np.arange(10)
    mask = Candidates(dataset, "test", 0).candidate_mask(protocol, users).numpy()
    top = ablation.top_ten(ablation.rank_edited(of(world), users))
    assert all(mask[u, top[u]].all() for u in users)


def test_the_command_prints_the_table_and_one_expert(
    tiny: tuple[Recommender, Dataset, Run], tiny_peer: tuple[Recommender, Dataset, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    run, peer = str(tiny[2].path), str(tiny_peer[2].path)
    assert main(["experts", run, "--effects", "--csv", "--sort", "spread"]) == 0
    table = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert len(table) == 64 and table["spread"].is_monotonic_decreasing and {"d_ndcg_low", "purity", "people_genre"} <= {*table}
    assert main(["experts", run, "--expert", str(table.loc[table["load"].idxmax(), "expert"])]) == 0
    assert "without expert" in (said := capsys.readouterr().out) and "label" in said
    user = tiny[1].histories.user_ids[7]
    assert main(["experts", run, "--user", str(user), "--csv"]) == 0
    own, hot = pd.read_csv(io.StringIO(capsys.readouterr().out)), hot_experts(route_users(tiny[0], tiny[1], "test"), 7)
    assert own[["expert", "load"]].to_numpy().tolist() == hot[["expert", "load"]].to_numpy().tolist()
    assert own["status"].tolist() == hot["kind"].tolist()
    for words, why in (
        ([run, "--expert", "64"], "no expert 64"),
        ([run, "--expert", "3", "--swap", "64"], "no expert 64"),
        ([run, "--sort", "x"], "--sort"),
        ([run, "--user", "nobody"], "nobody"),
        ([run, "--user", str(user), "--expert", "3"], "--user"),
        ([peer], "no interest memory"),
    ):
        assert main(["experts", *words]) == 2 and why in capsys.readouterr().err


def test_a_name_fits_a_person_of_whom_its_expert_holds_much_of_that_genre() -> None:
    genres, experts = ("Tea", "Bread"), np.array([[0, 1], [0, 1], [1, 2]])
    base = np.array([[0.2, 0.5], [0.2, 0.2], [0.2, 0.2]])
    reading = np.array([[[0.4, 0.1], [0.1, 0.9]], [[0.29, 0.1], [0.1, 0.45]], [[0.9, 0.3], [0.9, 0.9]]])
    names = {0: ExpertName("Tea", 2.0, 1.5, 9), 1: ExpertName("Bread", 2.0, 1.5, 9), 2: ExpertName("Tea", 2.0, 0.9, 9)}
    fitting = count_fitting_names(names, Evidence(genres, experts, reading, base))
    assert fitting.tolist() == [1, 1, 0], "0.9 is not twice 0.5, 0.29 is no three in ten, the last name does not hold"
    assert count_fitting_names(names, Evidence(genres, experts, base, base.mean(0))).tolist() == [2, 2, 1]
