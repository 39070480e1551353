"""Versions of an edited history: the tree keeps everything, text from outside changes nothing, readings are what they say."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

import elastic_core.models as models
from elastic_core.core.batches import history_batch
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.histories import Catalog, Histories
from elastic_core.core.sasrec import SASRecConfig
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.memory.routing import routing
from elastic_core.models import Recommender
from elastic_core.services.experts.evidence import of_histories
from elastic_core.services.journey import shown as journey_shown
from elastic_core.services.journey import trace as journey_trace
from elastic_core.services.journey import versions
from elastic_core.services.journey.text import LONGEST_CODE, decode, encode, from_json, parse_list, short, to_json
from elastic_core.services.journey.trace import dispatch
from elastic_core.services.journey.versions import Add, Base, Contents, Cut, Edit, Move, Replace, Tree, Version
from elastic_core.services.person import inspect, people
from elastic_core.services.person.attention import attention
from elastic_core.services.person.inspect import after
from elastic_core.services.person.path import path
from elastic_core.services.person.recommend import Reading, answer, reading
from elastic_core.slots import gated_slots
from elastic_core.slots.elastic_slots import ElasticSlotsConfig
from pages.kit import prose

ROOT = Path(__file__).resolve().parents[1]
N_ITEMS = 12
FRESH = Tree(Base("hash", 3, 5), (1, 2, 3, 4, 5), N_ITEMS)


@pytest.fixture(scope="module")
def model(small_world: Dataset) -> Recommender:
    torch.manual_seed(0)
    return models.build(ElasticConfig(length=16, width=16, layers=2, side=6, k=4), small_world.catalog.n_items).eval()


@pytest.fixture(scope="module")
def films() -> Dataset:
    titles = ["", "Heat (1995)", "Piano, The (1993)", "Alien (1979)", "Aliens (1986)", "187 (1997)", "Twin (1990)", "Twin (1999)"]
    ids = np.array(["", "11", "12", "13", "14", "15", "187", "b-7"], dtype=object)
    genres = ((), *[("Drama",)] * 7)
    histories = Histories(np.arange(1, 8, dtype=np.int32), np.arange(7), np.array([0, 7]), np.array(["u"], dtype=object))
    catalog = Catalog(ids, np.array(titles, dtype=object), genres)
    return Dataset(name="films", label="films", catalog=catalog, histories=histories, licence="own", titles_may_be_shared=True)


def edits(contents: Contents) -> st.SearchStrategy[Edit]:
    """Edits that fit these contents."""
    count, item = len(contents.items), st.integers(1, N_ITEMS)
    fit: list[st.SearchStrategy[Edit]] = [
        st.builds(Add, item, st.integers(0, count)),
        st.builds(Replace, st.lists(item, max_size=6).map(tuple)),
    ]
    if count:
        spans = st.tuples(st.integers(0, count - 1), st.integers(1, count)).filter(lambda pair: pair[0] < pair[1])
        fit += [spans.map(lambda pair: Cut(*pair)), st.builds(Move, st.integers(0, count - 1), st.integers(0, count - 1))]
    return st.one_of(fit)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Grown by edits, going elsewhere in between."""
    tree = FRESH
    for _ in range(draw(st.integers(0, 8))):
        tree = tree.go(draw(st.integers(0, len(tree.versions))))
        tree = tree.then(draw(edits(tree.here)))
    return tree.go(draw(st.integers(0, len(tree.versions))))


@given(trees(), st.data())
@settings(max_examples=80, deadline=None)
def test_undo_takes_back_and_nothing_is_lost(tree: Tree, data: st.DataObject) -> None:
    edit = data.draw(edits(tree.here))
    grown = tree.then(edit)
    assert grown.undo().here == tree.here and grown.undo().current == tree.current
    assert grown.contents[: len(tree.contents)] == tree.contents  # every earlier version is as it was
    assert grown.undo().then(edit) == grown  # redo is the same version, not a copy
    assert tree.go(0).here.items == FRESH.original and FRESH.undo() == FRESH
    assert tree.chain().here == tree.here and len(tree.chain().versions) == len(tree.path(tree.current)) - 1


@given(trees(), st.data())
@settings(max_examples=60, deadline=None)
def test_an_edit_is_what_lists_do(tree: Tree, data: st.DataObject) -> None:
    """The slow twin: each edit by plain slicing; origins always point at the same item of the original."""
    before, edit = list(tree.here.items), data.draw(edits(tree.here))
    after = tree.then(edit).here
    if isinstance(edit, Add):
        expected = [*before[: edit.at], edit.item, *before[edit.at :]]
    elif isinstance(edit, Cut):
        expected = before[: edit.start] + before[edit.stop :]
    elif isinstance(edit, Move):
        rest = before[: edit.at] + before[edit.at + 1 :]
        expected = [*rest[: edit.to], before[edit.at], *rest[edit.to :]]
    else:
        expected = list(edit.items)
    assert list(after.items) == expected and len(after.origins) == len(expected)
    assert all(FRESH.original[o] == item for item, o in zip(after.items, after.origins, strict=True) if o >= 0)
    assert after.own == (tree.here.own or isinstance(edit, Replace))


@given(trees())
@settings(max_examples=80, deadline=None)
def test_a_code_and_a_file_bring_the_same_tree_back(tree: Tree) -> None:
    if tree.versions:
        assert decode(encode(tree), FRESH) == tree
    assert decode(short(tree), FRESH).here == tree.here
    assert len(short(tree)) <= LONGEST_CODE


def test_a_large_tree_still_links_to_the_current_version() -> None:
    tree = FRESH
    for number in range(150):
        tree = tree.go(0).then(Replace(tuple(1 + (number >> i) % 2 for i in range(8))))
    assert len(encode(tree)) > LONGEST_CODE and decode(short(tree), FRESH).here == tree.here
    wide = FRESH.then(Replace((12,) * 2_000))
    assert short(wide) == ""
    with pytest.raises(InputError, match="at most 5,000 events"):
        FRESH.then(Replace((12,) * 5_001))
    with pytest.raises(InputError, match="at most 200 versions"):
        Tree(FRESH.base, FRESH.original, N_ITEMS, (Version(0, Cut(0, 1)),) * 201).go(0)


near_codes = st.lists(st.sampled_from([FRESH.base.digest, *"~axmrc.-190", "99999"])).map("".join)


@given(st.one_of(st.text(max_size=80), near_codes, st.from_regex(rf"{FRESH.base.digest}(~(\d\.)?[axmr]\d?-?\d?){{1,4}}(~c\d)?")))
@settings(max_examples=200, deadline=None)
def test_a_hostile_code_is_refused_in_one_sentence_or_makes_a_sound_tree(code: str) -> None:
    try:
        tree = decode(code, FRESH)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert decode(encode(tree), FRESH).here == tree.here and len(tree.contents) == len(tree.versions) + 1
    assert FRESH.versions == () and FRESH.here.items == FRESH.original


def test_a_code_for_somebody_else_is_refused() -> None:
    code = encode(FRESH.then(Cut(0, 1)))
    with pytest.raises(InputError, match="another person"):
        decode(code, Tree(Base("hash", 4, 5), FRESH.original, N_ITEMS))


def grown(data: Dataset) -> Tree:
    tree = versions.start(data, 2, 8)
    return tree.then(Add(7, 3)).then(Move(0, 4)).go(1).then(Cut(2, 4)).then(Replace((5, 6, 7))).go(2)


def test_a_file_brings_the_same_tree_back(small_world: Dataset) -> None:
    tree = grown(small_world)
    text = to_json(small_world, tree)
    assert from_json(small_world, text) == tree == from_json(small_world, text.encode())
    assert small_world.catalog.title(7) in versions.versions_table(small_world, tree).loc[1, "what"]
    assert versions.versions_table(small_world, tree)["follows"].tolist()[1:] == [0, 1, 1, 3]


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_a_hostile_file_is_refused_in_one_sentence(small_world: Dataset, data: st.DataObject) -> None:
    """Anything, and good files with one value replaced by anything."""
    leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    anything = st.recursive(leaf, lambda x: st.lists(x) | st.dictionaries(st.text(), x))
    good = json.loads(to_json(small_world, grown(small_world)))
    where = data.draw(st.sampled_from([*good, "step", "edit", "whole", "bytes"]))
    text: str | bytes
    if where == "bytes":
        text = data.draw(st.binary())
    elif where == "whole":
        text = json.dumps(data.draw(anything))
    else:
        step = data.draw(st.sampled_from(good["versions"]))
        place = {"step": step, "edit": step["edit"]}.get(where, good)
        place[data.draw(st.sampled_from(sorted(place))) if place is not good else where] = data.draw(anything)
        text = json.dumps(good)
    try:
        tree = from_json(small_world, text)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert from_json(small_world, to_json(small_world, tree)) == tree


def test_files_that_are_too_much_or_for_other_data_are_refused(small_world: Dataset, films: Dataset) -> None:
    text = to_json(small_world, grown(small_world))
    with pytest.raises(InputError, match="other data"):
        from_json(films, text)
    with pytest.raises(InputError, match="not JSON"):
        from_json(small_world, "[" * 100_000)
    with pytest.raises(InputError, match="larger than 1 MB"):
        from_json(small_world, " " * 1_000_001)
    changed = text.replace(f'"item": "{small_world.catalog.ids[7]}"', '"item": "no-such-id"')
    with pytest.raises(InputError, match="version 1 of the file names the item 'no-such-id'"):
        from_json(small_world, changed)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Heat (1995)", (1,)),
        ("heat", (1,)),
        ("  - HEAT  ", (1,)),
        ("2. The Piano", (2,)),
        ("Piano, The", (2,)),
        ("piano 1993", (2,)),
        ("Alien", (3,)),  # exact, although another title contains it
        ("13", (3,)),
        ("b-7", (7,)),
        ("id:187", (6,)),
        ("187 (1997)", (5,)),
        ("Twin (1990)", (6,)),
    ],
)
def test_a_line_that_means_one_item(films: Dataset, line: str, expected: tuple[int, ...]) -> None:
    found = parse_list(films, line)
    assert found.items == expected and not found.problems


def test_every_line_that_is_not_understood_is_named(films: Dataset) -> None:
    found = parse_list(films, "Heat\n\n187\nTwin\nnothing like it\nid:99\nb-7\n")
    assert found.items == (1, 7)
    assert [problem.split(",")[0] for problem in found.problems] == ["Line 3", "Line 4", "Line 5", "Line 6"]
    assert "“187 (1997)” (id:15)" in found.problems[0] and "“Twin (1990)” (id:187)" in found.problems[0]
    assert "neither a title nor an id" in found.problems[2]
    with pytest.raises(InputError, match="at most 1,000 lines"):
        parse_list(films, "Heat\n" * 1_001)


@given(st.text(max_size=200))
@settings(max_examples=80, deadline=None)
def test_no_line_is_lost(films: Dataset, text: str) -> None:
    found = parse_list(films, text)
    assert len(found.items) + len(found.problems) == sum(bool(line.strip()) for line in text.splitlines())


@pytest.mark.parametrize("slots", [True, False])
def test_the_dispatcher_gives_back_what_the_model_reads(small_world: Dataset, model: Recommender, slots: bool) -> None:
    """Every event's row is the reading of the history that ends with it, by the experts of the whole; an expert holds what all
    other screens say."""
    config = ElasticSlotsConfig(length=16, width=16, layers=2, side=6, k=4)
    able = models.build(config, small_world.catalog).eval() if slots else model
    items, n = reading(small_world, 5).items, 6
    found = dispatch(able, small_world, items, n)
    here = after(able, small_world, 5)
    assert found.apart == slots and found.experts == here.heard
    assert (found.links, found.pairs) == (2 * n * 4, n * n)
    assert found.held.shape == (4, n) and found.back.shape == (n, 4) and (found.back.sum(1) <= 1 + 1e-5).all()
    keeps = path(able, here, []).keeps
    assert keeps is not None
    np.testing.assert_allclose(found.held, keeps[:, -n:], atol=1e-6)
    np.testing.assert_allclose(found.older, keeps[:, :-n].sum(1), atol=1e-6)
    assert (keeps.sum(1) <= 1 + 1e-5).all() and (slots or keeps.sum(1) == pytest.approx(np.ones(4), abs=1e-5))
    whole = history_batch(items, 16)
    with torch.inference_mode():
        for end in range(n):
            part = history_batch(items[: len(items) - n + end + 1], 16)
            alone = able.trace(dataclasses.replace(part, retrieval_items=whole.items))  # type: ignore[operator]
            np.testing.assert_allclose(found.back[end], alone.slots[-1][0].mean(0), atol=1e-5)
    for wrong in (0, len(items) + 1):
        with pytest.raises(InputError, match="of this history 1 to"):
            dispatch(able, small_world, items, wrong)


ITEMS = {"Chess 1": (1.0, 0.0), "Chess 2": (0.8, 0.2), "Golf 1": (0.0, 1.0)}
EXPERTS = {"A": (2.0, 0.0), "B": (0.0, 2.0)}
VOTES = (0.6, 0.4)  # of the experts


def vector(of: Iterable[float]) -> str:
    return f"({', '.join(f'{value:.2g}' for value in of)})"


def percents(of: Iterable[float]) -> list[str]:
    return [f"{share:.0%}" for share in of]


def scores(of: Iterable[float]) -> str:
    return ", ".join(f"{name} {score:.2f}" for name, score in zip(ITEMS, of, strict=True))


def test_the_tiny_example_is_attention_there_and_back_or_slots() -> None:
    """No number of it stands there that the model's own functions do not give."""
    items, experts = torch.tensor(list(ITEMS.values())), torch.tensor(list(EXPERTS.values()))
    told = prose.of(str(ROOT / "pages/journey/words.py"))
    text = told("EXAMPLE")
    holds = scaled_dot_product_attention(experts, items, items, scale=1.0)
    mixed = scaled_dot_product_attention(items[-1:], experts, holds, scale=1.0)
    assert all(f"**{vector(each)}**" in text for each in holds.tolist()) and scores((mixed[0] @ items.T).tolist()) in text
    for at, fits in enumerate(experts @ items.T):
        cells = [f"{fit:.1f} → {share}" for fit, share in zip(fits, percents(fits.softmax(0).tolist()), strict=True)]
        assert " | ".join([f"**{'AB'[at]}** {vector(experts[at].tolist())}", *cells]) in text
    assert "gets {} of A and {} of B back".format(*percents((experts @ items[-1]).softmax(0).tolist())) in text
    text = told("EXAMPLE_SLOTS")
    shares = (items @ experts.T).softmax(1)
    holds = gated_slots.hold(items.unsqueeze(0), shares.unsqueeze(0))[0, -1]
    left = [shares[at] * (1 - shares[at + 1 :]).prod(0) for at in range(3)]
    says = holds + torch.tensor(VOTES)[:, None] * experts
    back, alone = (says @ items[-1]).softmax(0), (says @ items.T).softmax(1)
    for at, name in enumerate(EXPERTS):
        cells = zip(
            (items @ experts[at]).tolist(), percents(shares[:, at].tolist()), percents(x[at].item() for x in left), strict=True
        )
        row = [f"**{name}** {vector(experts[at].tolist())}", *(f"{fit:.1f} → {share} → {end}" for fit, share, end in cells)]
        assert " | ".join([*row, f"**{vector(holds[at].tolist())}**"]) in text
        own = f"{VOTES[at]:.0%} × {vector(experts[at].tolist())}"
        assert f"{name} {vector(holds[at].tolist())} + {own} = **{vector(says[at].tolist())}**" in text
        assert f"{name}: {scores(alone[at].tolist())}" in text and f"{(says @ items[-1])[at]:.2f} ({name})" in text
    assert "Softmax: {} of A, {} of B".format(*percents(back.tolist())) in text
    assert f"mix these scores: {scores((back @ alone).tolist())}" in text
    assert f"{back[1] * alone[1, 2] / (back @ alone)[2]:.0%} comes from B" in text


def test_the_original_version_is_the_evaluation_s_reading(small_world: Dataset, model: Recommender) -> None:
    whole = reading(small_world, 4)
    tree = versions.start(small_world, 4, len(whole.items))
    read = versions.read_version(small_world, tree)
    assert read.items.tolist() == whole.items.tolist() and read.truth == whole.truth
    mine, theirs = inspect.situation_of(model, small_world, read), after(model, small_world, 4)
    assert mine.heard == theirs.heard and mine.answer.table.equals(theirs.answer.table)
    assert versions.read_version(small_world, tree.then(Replace((1, 2)))).truth is None
    for wrong in (0, len(whole.items) + 1):
        with pytest.raises(InputError):
            versions.start(small_world, 4, wrong)


@pytest.mark.parametrize("config", [None, SASRecConfig(length=16, width=16, layers=1)])
def test_along_time_equals_moment_after_moment(small_world: Dataset, model: Recommender, config: SASRecConfig | None) -> None:
    able = model if config is None else models.build(config, small_world.catalog.n_items).eval()
    found = journey_trace.along(able, small_world, 6, most=9)
    items = small_world.histories.of(6)
    assert found.ranks["event"].tolist()[0] == 1 and found.ranks["event"].tolist()[-1] == len(items) - 1 and len(found.ranks) == 9
    assert found.ranks["part"].tolist()[-1] == "test" and found.ranks["part"].tolist()[0] == "training"
    for row in found.ranks.to_dict("records"):
        read = versions.read_version(small_world, versions.start(small_world, 6, row["event"]))
        one = answer(able, small_world, read)
        assert row["item"] == read.truth == items[row["event"]]
        assert row["rank"] == one.truth_rank and row["running"] == one.running
        if config is None:
            retrieved = found.experts[found.experts["event"] == row["event"]]
            assert retrieved["expert"].tolist() == inspect.situation_of(able, small_world, read).heard
    assert found.experts.empty == (config is not None)


def test_aggregation_keeps_every_weight(small_world: Dataset, model: Recommender) -> None:
    items = reading(small_world, int(np.argmax(small_world.histories.lengths))).items
    assert len(items) > 16  # longer than what is read
    for layer in (0, 1):
        found = journey_trace.aggregation(model, items, layer + 1, bins=5)
        trace = model.trace(history_batch(items, model.length))  # type: ignore[operator]
        assert found.layers == 2 and found.cells["first"].min() == len(items) - 15 and found.cells["last"].max() == len(items)
        assert found.cells.groupby("place")["weight"].sum().to_numpy() == pytest.approx(1, abs=1e-5)
        by_hand = trace.reading[layer][0].mean(0)[1, -16:].tolist()
        row = found.cells[found.cells["place"] == 2].iloc[0]
        first, last = int(row["first"]) - (len(items) - 15), int(row["last"]) - (len(items) - 15)
        assert row["weight"] == pytest.approx(sum(by_hand[first : last + 1]), abs=1e-6)
        assert found.slots["reads"].sum() == pytest.approx(1, abs=1e-5)
    weights = attention(model, Reading(items))
    assert weights is not None and np.nansum(weights) == pytest.approx(1, abs=1e-5) and np.isnan(weights[: len(items) - 16]).all()
    with pytest.raises(InputError):
        journey_trace.aggregation(models.build(SASRecConfig(), small_world.catalog.n_items), items, 1)


def test_layers_that_share_one_reading_are_one_to_look_at(small_world: Dataset) -> None:
    torch.manual_seed(1)
    model = models.build(ElasticSlotsConfig(length=16, width=16, layers=2, side=6, k=4), small_world.catalog.n_items).eval()
    items = reading(small_world, 3).items
    first, second = (journey_trace.aggregation(model, items, layer) for layer in (1, 2))
    assert first.layers == 1 and first.cells.equals(second.cells) and first.slots.equals(second.slots)


def test_the_ribbon_shows_every_state(small_world: Dataset) -> None:
    tree = versions.start(small_world, 2, 10)
    kept = journey_shown.ribbon_rows(small_world, tree, last=4)
    assert kept["item"].tolist() == list(tree.original[-4:]) and set(kept["state"]) == {"kept"}
    edited = tree.then(Cut(7, 9)).then(Add(5, 3)).then(Move(7, 0))
    table = journey_shown.ribbon_rows(small_world, edited, last=4)
    by_state = table.groupby("state")["item"].apply(list).to_dict()
    assert by_state["removed"] == list(tree.original[7:9]) and by_state["added"] == [5]
    assert table[table["state"] != "removed"]["place"].is_monotonic_increasing
    own = journey_shown.ribbon_rows(small_world, tree.then(Replace((5, 6))), last=4)
    assert own["item"].tolist() == [5, 6] and set(own["state"]) == {"kept"}


def test_the_experts_of_now_are_always_drawn(small_world: Dataset, model: Recommender) -> None:
    found = journey_trace.along(model, small_world, 6)
    for moment in (1, 7, 15):
        shown, count = journey_shown.busiest(found.experts, moment, most=6)
        at = found.experts[found.experts["event"] <= moment]["event"].max()
        assert set(found.experts[found.experts["event"] == at]["expert"]) <= set(shown["expert"])
        assert shown["expert"].nunique() == 6 and count == found.experts["expert"].nunique()


def test_genre_shares_are_of_what_is_read(small_world: Dataset, model: Recommender) -> None:
    found = of_histories(model, small_world, routing(model, small_world, "test"))
    assert found is not None
    for user in (0, 11):
        genres = [g for item in reading(small_world, user).items[-16:] for g in small_world.catalog.genres[item]]  # type: ignore[index]
        for column, name in enumerate(found.genres):
            assert found.shares[user, column] * min(16, len(reading(small_world, user).items)) == pytest.approx(
                genres.count(name)
            )


def test_people_are_found_by_what_sets_them_apart(small_world: Dataset, model: Recommender) -> None:
    lengths = small_world.histories.lengths - 1
    assert people.by_length(small_world)["events"].tolist() == sorted(lengths.tolist(), reverse=True)[:8]
    assert people.by_length(small_world, longest=False)["events"].iloc[0] == lengths.min()
    ranks = people.target_ranks(model, small_world)
    for user in (0, 5, 59):
        assert ranks[user] == answer(model, small_world, reading(small_world, user)).truth_rank
    found = people.gains(np.array([4.0, 1.0, 9.0]), np.array([1.0, 8.0, 9.0]))
    assert found["user"].tolist() == [1, 2, 0] and found["doublings"].tolist() == [3, 0, -2]
    genre = small_world.catalog.genres[1][0]  # type: ignore[index]
    table = people.by_genre(small_world, genre)
    best = table.iloc[0]
    own = [genre in small_world.catalog.genres[i] for i in reading(small_world, int(best["user"])).items]  # type: ignore[index]
    assert best["share"] == pytest.approx(np.mean(own)) and table["share"].is_monotonic_decreasing
    assert people.by_genre(small_world, "no such genre").empty
