"""How a history is read, moment by moment and link by link; typed histories; the tiny example."""

import dataclasses
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
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.run_config import DataConfig
from elastic_core.services.journey import trace as journey_trace
from elastic_core.services.journey.trace import trace_dispatch
from elastic_core.services.journey.typed_items import parse_items
from elastic_core.services.person.attention import attention_weights
from elastic_core.services.person.model_trace import trace_model
from elastic_core.services.person.prediction import predict_history, predict_user
from elastic_core.services.person.recommend import History, rank_items, user_history
from elastic_core.slots import gated_slots
from elastic_core.slots.elastic_slots import ElasticSlotsConfig
from pages.components import page_text

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def model(small_world: Dataset) -> Recommender:
    torch.manual_seed(0)
    return models.build(ElasticConfig(length=16, width=16, layers=2, n_subkeys=6, k=4), small_world.catalog.n_items).eval()


@pytest.fixture(scope="module")
def films() -> Dataset:
    titles = ["", "Heat (1995)", "Piano, The (1993)", "Alien (1979)", "Aliens (1986)", "187 (1997)", "Twin (1990)", "Twin (1999)"]
    ids = np.array(["", "11", "12", "13", "14", "15", "187", "b-7"], dtype=object)
    genres = ((), *[("Drama",)] * 7)
    histories = Histories(np.arange(1, 8, dtype=np.int32), np.arange(7), np.array([0, 7]), np.array(["u"], dtype=object))
    catalog = Catalog(ids, np.array(titles, dtype=object), genres)
    return Dataset(name="films", label="films", catalog=catalog, histories=histories, licence="own", titles_may_be_shared=True)


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
    found = parse_items(films, line)
    assert found.items == expected and not found.problems


def test_every_line_that_is_not_understood_is_named(films: Dataset) -> None:
    found = parse_items(films, "Heat\n\n187\nTwin\nnothing like it\nid:99\nb-7\n")
    assert found.items == (1, 7)
    assert [problem.split(",")[0] for problem in found.problems] == ["Line 3", "Line 4", "Line 5", "Line 6"]
    assert "“187 (1997)” (id:15)" in found.problems[0] and "“Twin (1990)” (id:187)" in found.problems[0]
    assert "neither a title nor an id" in found.problems[2]
    with pytest.raises(InputError, match="at most 200 lines"):
        parse_items(films, "Heat\n" * 201)


@given(st.text(max_size=200))
@settings(max_examples=80, deadline=None)
def test_no_line_is_lost(films: Dataset, text: str) -> None:
    found = parse_items(films, text)
    assert len(found.items) + len(found.problems) == sum(bool(line.strip()) for line in text.splitlines())


@pytest.mark.parametrize("slots", [True, False])
def test_the_dispatcher_gives_back_what_the_model_reads(small_world: Dataset, model: Recommender, slots: bool) -> None:
    """Every event's row is the reading of the history that ends with it, by the experts of the whole; an expert holds what all
    other screens say."""
    config = ElasticSlotsConfig(length=16, width=16, layers=2, n_subkeys=6, k=4)
    able = models.build(config, small_world.catalog).eval() if slots else model
    items, n = user_history(small_world, 5).items, 6
    found = trace_dispatch(able, small_world, items, n)
    here = predict_user(able, small_world, 5)
    assert found.apart == slots and found.experts == here.active_experts
    assert (found.links, found.pairs) == (2 * n * 4, n * n)
    assert found.held.shape == (4, n) and found.back.shape == (n, 4) and (found.back.sum(1) <= 1 + 1e-5).all()
    event_share = trace_model(able, here, []).event_share
    assert event_share is not None
    np.testing.assert_allclose(found.held, event_share[:, -n:], atol=1e-6)
    np.testing.assert_allclose(found.older, event_share[:, :-n].sum(1), atol=1e-6)
    assert (event_share.sum(1) <= 1 + 1e-5).all() and (slots or event_share.sum(1) == pytest.approx(np.ones(4), abs=1e-5))
    whole = history_batch(items, 16)
    with torch.inference_mode():
        for end in range(n):
            part = history_batch(items[: len(items) - n + end + 1], 16)
            alone = able.trace_reading(dataclasses.replace(part, retrieval_items=whole.items))  # type: ignore[operator]
            np.testing.assert_allclose(found.back[end], alone.slots[-1][0].mean(0), atol=1e-5)
            through = (alone.slots[-1][0, 0] @ alone.reading[-1][0, 0])[-len(items) :]  # one head
            first, share = found.reached[end][0]
            titles = small_world.catalog.titles_of(items[: len(items) - n + end + 1])
            total = sum(float(part) for part, title in zip(through[-len(titles) :], titles, strict=True) if title == first)
            assert share == pytest.approx(total, abs=1e-5)
            assert f"% {first}" in found.describe_return(end).split("The largest parts of this mix are")[1]
    for wrong in (0, len(items) + 1):
        with pytest.raises(InputError, match="of this history 1 to"):
            trace_dispatch(able, small_world, items, wrong)


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
    told = page_text.load_page_text(str(ROOT / "pages/journey/sentences.py"))
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
    holds = gated_slots.hold_last(items.unsqueeze(0), gated_slots.held_events(shares.T.unsqueeze(0)))[0]
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


def test_a_history_up_to_a_moment_is_the_evaluation_s(small_world: Dataset, model: Recommender) -> None:
    whole = user_history(small_world, 4)
    n = len(whole.items)
    last = user_history(small_world, 4, n)
    assert last.items.tolist() == whole.items.tolist() and last.truth == whole.truth
    mine, theirs = predict_history(model, small_world, whole), predict_user(model, small_world, 4, n_events=n)
    assert mine.experts == theirs.experts and mine.recommendation.table.equals(theirs.recommendation.table)
    early = user_history(small_world, 4, 3)
    assert early.items.tolist() == whole.items[:3].tolist() and early.truth == whole.items[3]


@pytest.mark.parametrize("config", [None, SASRecConfig(length=16, width=16, layers=1)])
def test_along_time_equals_moment_after_moment(small_world: Dataset, model: Recommender, config: SASRecConfig | None) -> None:
    able = model if config is None else models.build(config, small_world.catalog.n_items).eval()
    found = journey_trace.trace_moments(able, small_world, 6, most=9)
    items = small_world.histories.user_items(6)
    assert found.ranks["event"].tolist()[0] == 1 and found.ranks["event"].tolist()[-1] == len(items) - 1 and len(found.ranks) == 9
    assert found.ranks["part"].tolist()[-1] == "test" and found.ranks["part"].tolist()[0] == "training"
    for row in found.ranks.to_dict("records"):
        read = user_history(small_world, 6, row["event"])
        one = rank_items(able, small_world, read)
        assert row["item"] == read.truth == items[row["event"]]
        assert row["rank"] == one.truth_rank and row["running"] == one.n_candidates
        if config is None:
            retrieved = found.experts[found.experts["event"] == row["event"]]
            assert retrieved["expert"].tolist() == predict_history(able, small_world, read).experts
    assert found.experts.empty == (config is not None)


def test_no_moment_lies_inside_the_last_basket() -> None:
    data = load(DataConfig(source="groceries"))
    model = models.build(SASRecConfig(length=16, width=8, layers=1), data.catalog.n_items).eval()
    valid, test = (data.readable_lengths(split) for split in ("valid", "test"))
    user = int(np.flatnonzero((data.histories.lengths - test > 2) & (test - valid > 2) & (test < 40))[0])
    ranks = journey_trace.trace_moments(model, data, user, most=1000).ranks
    assert ranks["event"].tolist() == list(range(1, test[user] + 1)) and ranks["part"].tolist()[-1] == "test"
    counts = ranks["part"].value_counts()
    assert counts["training"] == valid[user] - 1 and counts["validation"] == test[user] - valid[user]
    assert ranks["item"].tolist()[-1] == data.target_items("test")[user]


def test_aggregation_keeps_every_weight(small_world: Dataset, model: Recommender) -> None:
    items = user_history(small_world, int(np.argmax(small_world.histories.lengths))).items
    assert len(items) > 16  # longer than what is read
    for layer in (0, 1):
        found = journey_trace.bin_aggregation(model, items, layer + 1, bins=5)
        trace = model.trace_reading(history_batch(items, model.length))  # type: ignore[operator]
        assert found.layers == 2 and found.cells["first"].min() == len(items) - 15 and found.cells["last"].max() == len(items)
        assert found.cells.groupby("place")["weight"].sum().to_numpy() == pytest.approx(1, abs=1e-5)
        by_hand = trace.reading[layer][0].mean(0)[1, -16:].tolist()
        row = found.cells[found.cells["place"] == 2].iloc[0]
        first, last = int(row["first"]) - (len(items) - 15), int(row["last"]) - (len(items) - 15)
        assert row["weight"] == pytest.approx(sum(by_hand[first : last + 1]), abs=1e-6)
        assert found.slots["reads"].sum() == pytest.approx(1, abs=1e-5)
    weights = attention_weights(model, History(items))
    assert weights is not None and np.nansum(weights) == pytest.approx(1, abs=1e-5) and np.isnan(weights[: len(items) - 16]).all()
    with pytest.raises(InputError):
        journey_trace.bin_aggregation(models.build(SASRecConfig(), small_world.catalog.n_items), items, 1)


def test_layers_that_share_one_reading_are_one_to_look_at(small_world: Dataset) -> None:
    torch.manual_seed(1)
    model = models.build(ElasticSlotsConfig(length=16, width=16, layers=2, n_subkeys=6, k=4), small_world.catalog.n_items).eval()
    items = user_history(small_world, 3).items
    first, second = (journey_trace.bin_aggregation(model, items, layer) for layer in (1, 2))
    assert first.layers == 1 and first.cells.equals(second.cells) and first.slots.equals(second.slots)


def test_the_experts_of_now_are_always_drawn(small_world: Dataset, model: Recommender) -> None:
    found = journey_trace.trace_moments(model, small_world, 6)
    for moment in (1, 7, 15):
        shown, count = journey_trace.busiest_experts(found.experts, moment, most=6)
        at = found.experts[found.experts["event"] <= moment]["event"].max()
        assert set(found.experts[found.experts["event"] == at]["expert"]) <= set(shown["expert"])
        assert shown["expert"].nunique() == 6 and count == found.experts["expert"].nunique()
