"""Product keys and the interest memory (Eq. 4-7): exact, and able to learn only when the scores gate the experts."""

import numpy as np
import pytest
import torch
from elastic_core.layers.usual_votes import PART_RIDGE, RIDGE
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import elastic_core.models as models
from elastic_core.data.batches import Batch
from elastic_core.errors import InputError
from elastic_core.layers.interest_memory import InterestMemory, Retrieved, SharedInterests, balance_penalty
from elastic_core.layers.product_keys import ProductKeys, candidate_ranks, exhaustive, top_pairs
from elastic_core.layers.voting import VotingMemory
from elastic_core.models.elastic import Elastic, ElasticConfig
from elastic_core.models.with_memory import MemoryConfig, interest_memory

QUERIES, EXAMPLES = 128, 100  # a hypothesis example is a batch of random cases: 12,800 in all


@st.composite
def half_scores(draw: st.DrawFn, min_side: int = 1, max_side: int = 32) -> Tensor:
    """`[QUERIES, 2, side]`: smooth, or quantised to a few levels so that many pairs tie."""
    side = draw(st.integers(min_side, max_side))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    halves = torch.randn(QUERIES, 2, side, generator=generator)
    levels = draw(st.sampled_from([None, 1, 2, 4]))
    return halves if levels is None else (halves * levels).round() / levels


@st.composite
def searches(draw: st.DrawFn) -> tuple[Tensor, int]:
    halves = draw(half_scores())
    side = halves.shape[-1]
    k = draw(st.one_of(st.integers(1, min(2 * side, side**2)), st.integers(1, side**2), st.just(side**2)))
    return halves, k


def all_sums(halves: Tensor) -> Tensor:
    """Every key's score, `[B, side²]`, spelled out apart from the code under test."""
    side = halves.shape[-1]
    return torch.stack([halves[:, 0, n // side] + halves[:, 1, n % side] for n in range(side**2)], dim=1)


# --- the search ------------------------------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES, deadline=None)
@given(searches())
def test_product_keys_equal_brute_force(search: tuple[Tensor, int]) -> None:
    """Same scores, ties included; the chosen keys are distinct and have those scores."""
    halves, k = search
    found, slow = top_pairs(halves, k), exhaustive(halves, k)
    assert found.indices.shape == found.scores.shape == (QUERIES, k)
    assert torch.equal(found.scores, slow.scores)
    sums = all_sums(halves)
    assert torch.equal(sums.gather(1, found.indices), found.scores)
    assert torch.equal(sums.sort(dim=1, descending=True).values[:, :k], found.scores)
    assert (found.indices.sort(dim=1).values.diff(dim=1) > 0).all()


@settings(max_examples=20, deadline=None)
@given(half_scores(max_side=12))
def test_without_ties_the_same_keys_in_the_same_order(halves: Tensor) -> None:
    halves = halves.double() + torch.randn(halves.shape, dtype=torch.float64) * 1e-6
    k = min(6, halves.shape[-1] ** 2)
    assert torch.equal(top_pairs(halves, k).indices, exhaustive(halves, k).indices)


@settings(max_examples=20, deadline=None)
@given(half_scores(max_side=12), st.floats(-8, 8, width=16))
def test_only_order_decides(halves: Tensor, shift: float) -> None:
    """What is added to all of one half moves every sum alike; exchanging the halves transposes the grid."""
    side = halves.shape[-1]
    halves = halves.double()
    k = min(5, side**2)
    before = top_pairs(halves, k).scores
    moved = halves + torch.tensor([[shift], [0.0]], dtype=torch.float64)
    assert torch.allclose(top_pairs(moved, k).scores, before + shift, atol=1e-12)
    turned = top_pairs(halves.flip(1), k)
    assert torch.equal(turned.scores, before)
    transposed = turned.indices % side * side + turned.indices // side
    assert torch.equal(all_sums(halves).gather(1, transposed), before)


@given(st.integers(1, 1024), st.integers(1, 32))
@settings(max_examples=200, deadline=None)
def test_the_staircase_is_small_and_complete(k: int, side: int) -> None:
    ranks = candidate_ranks(k, side)
    bound = sum(k // i for i in range(1, k + 1))
    assert len(ranks) <= bound
    assert len(ranks) == bound or k > side
    assert len(set(ranks)) == len(ranks)
    inside = {(i, j) for i in range(side) for j in range(side) if (i + 1) * (j + 1) <= k}
    assert set(ranks) == inside
    assert len(ranks) >= min(k, side**2)


def test_every_step_of_the_staircase_is_needed() -> None:
    """For each candidate there are scores under which it wins, so none can be left out."""
    side, k = 6, 7
    for i, j in candidate_ranks(k, side):
        halves = torch.zeros(1, 2, side)
        halves[0, 0], halves[0, 1] = -1.0 * (torch.arange(side) > i), -1.0 * (torch.arange(side) > j)
        halves += torch.arange(side) * -1e-3
        assert i * side + j in top_pairs(halves, k).indices[0].tolist()


# --- the keys --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cosine", [True, False])
def test_a_key_is_two_sub_keys_side_by_side(cosine: bool) -> None:
    """A sum of half scores is the inner product with the full key of width d, so the flat search is the same search."""
    torch.manual_seed(0)
    keys, query = ProductKeys(16, 5, cosine), torch.randn(QUERIES, 16)
    first, second = keys.sub_keys.detach()
    halves = query.unflatten(-1, (2, -1))
    if cosine:
        unit = torch.nn.functional.normalize
        first, second, halves = unit(first, dim=-1), unit(second, dim=-1), unit(halves, dim=-1) * 4.0
    full = torch.stack([torch.cat([a, b]) for a in first for b in second])
    assert torch.allclose(halves.flatten(1) @ full.T, all_sums(keys(query).detach()), atol=1e-5)


def test_with_cosine_no_sub_key_wins_by_its_length() -> None:
    torch.manual_seed(0)
    keys, query = ProductKeys(16, 5), torch.randn(QUERIES, 16)
    before = keys(query)
    with torch.no_grad():
        keys.sub_keys[0, 3] *= 100
    assert torch.allclose(keys(query * 7), before, atol=1e-5)


def test_each_half_sees_its_own_half_of_the_query() -> None:
    """Eq. 7 prints q1 twice; the second half reads q2."""
    torch.manual_seed(0)
    keys, query = ProductKeys(16, 5), torch.randn(3, 16)
    other = query.clone()
    other[:, 8:] = torch.randn(3, 8)
    assert torch.equal(keys(query)[:, 0], keys(other)[:, 0])
    assert not torch.allclose(keys(query)[:, 1], keys(other)[:, 1])


# --- the memory ------------------------------------------------------------------------------------------------------


def memory(
    gate: str = "softmax", query: str = "network", norm: str = "whiten", k: int = 4, side: int = 5, scores: str = "cosine",
    elect: str = "most", erase_length: bool = False, pooled: bool = False, expected: bool = False,
) -> InterestMemory:  # fmt: skip
    torch.manual_seed(0)
    shape = {"length": 24, "width": 16, "heads": 2, "side": side, "k": k, "stride": 4, "window": 0}
    how = {"query": query, "query_norm": norm, "scores": scores, "gate": gate, "elect": elect}
    how |= {"erase_length": erase_length, "pooled": pooled, "expected": expected}
    made = interest_memory(MemoryConfig(**how, **shape))  # type: ignore[arg-type]
    assert isinstance(made, InterestMemory)
    return made


def histories(batch: int = 6, length: int = 24, width: int = 16) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    real = torch.arange(length) >= torch.arange(batch)[:, None] * 3
    return torch.randn(batch, length, width, generator=generator), real


def assert_same(one: Retrieved, other: Retrieved) -> None:
    assert torch.equal(one.experts, other.experts)
    for a, b in zip(one, other, strict=True):
        assert (a is None) == (b is None)
        assert a is None or torch.allclose(a.float(), b.float(), atol=1e-5)


@pytest.mark.parametrize("norm", ["whiten", "layer", "batch", "none"])
@pytest.mark.parametrize("query", ["network", "mean", "votes", "unusual", "erased", "pooled", "expected"])
def test_padding_is_invisible_and_people_do_not_meet(query: str, norm: str) -> None:
    unusual, (x, real) = {"query": "votes", "elect": "unusual"}, histories()
    more = {"unusual": {}, "erased": {"erase_length": True}, "pooled": {"pooled": True}, "expected": {"expected": True}}
    known = {**unusual, **more[query]} if query in more else {"query": query}
    asked = memory(norm=norm, **known).eval()  # type: ignore[arg-type]
    asked.calibrate(x, real)
    found = asked(x, real)
    assert_same(asked(torch.where(real.unsqueeze(-1), x, 1e3), real), found)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    assert_same(asked(x[order], real[order]), Retrieved(*(None if part is None else part[order] for part in found)))
    assert_same(asked(x[2:3], real[2:3]), Retrieved(*(None if part is None else part[2:3] for part in found)))


@pytest.mark.parametrize("norm", ["whiten", "layer", "batch", "none"])
def test_how_scores_are_made_is_a_setting_of_its_own(norm: str) -> None:
    """The length of a sub-key counts with `dot` and does not with `cosine`, whatever normalises the query."""
    for scores in ("cosine", "dot"):
        model = teller(query_norm=norm, scores=scores).eval()
        asked, batch = model.memories[0], person_batch()
        assert isinstance(asked, InterestMemory)
        before = model.retrieve(batch)
        with torch.no_grad():
            asked.keys.sub_keys *= 3
        after = model.retrieve(batch).halves
        torch.testing.assert_close(after, before.halves * (1 if scores == "cosine" else 3), atol=1e-4, rtol=1e-4)
        if scores == "dot":
            direct = torch.einsum("bhd,hsd->bhs", before.query.unflatten(-1, (2, -1)), asked.keys.sub_keys / 3)
            torch.testing.assert_close(before.halves, direct, atol=1e-4, rtol=1e-4)
    assert teller(query_norm=norm).config.scores == "cosine"


def test_renaming_the_sub_keys_renames_the_experts_and_nothing_else() -> None:
    asked, (x, real) = memory().eval(), histories()
    before, side = asked(x, real), asked.keys.side
    rows, columns = torch.randperm(side), torch.randperm(side)
    with torch.no_grad():
        asked.keys.sub_keys.copy_(torch.stack([asked.keys.sub_keys[0, rows], asked.keys.sub_keys[1, columns]]))
        asked.values.weight.copy_(asked.values.weight.view(side, side, -1)[rows][:, columns].flatten(0, 1))
    after = asked(x, real)
    assert torch.allclose(after.interests, before.interests, atol=1e-5)
    named = rows[after.experts // side] * side + columns[after.experts % side]
    assert torch.equal(named, before.experts)


def test_the_average_query_does_not_know_the_order_of_events() -> None:
    asked, (x, _) = memory(query="mean").eval(), histories()
    real = torch.ones(x.shape[:2], dtype=torch.bool)
    assert_same(asked(x[:, torch.randperm(x.shape[1])], real), asked(x, real))


@pytest.mark.parametrize("gate", ["softmax", "sigmoid", "none"])
def test_experts_are_gated_by_their_scores(gate: str) -> None:
    asked, (x, real) = memory(gate).eval(), histories()
    found = asked(x, real)
    assert (found.scores.diff(dim=1) <= 0).all() and (found.gates.diff(dim=1) <= 0).all()
    assert torch.allclose(found.interests, asked.values(found.experts) * found.gates.unsqueeze(-1))
    expected = {"softmax": found.scores.softmax(1) * 4, "sigmoid": found.scores.sigmoid(), "none": torch.ones(6, 4)}
    assert torch.allclose(found.gates, expected[gate])
    kept = found.keep(torch.tensor([0, 2]))
    assert torch.equal(kept.experts, found.experts[:, [0, 2]]) and torch.equal(kept.interests, found.interests[:, [0, 2]])


@pytest.mark.parametrize("norm", ["whiten", "layer", "batch", "none"])
@pytest.mark.parametrize("query", ["network", "mean"])
def test_the_raw_query_is_the_one_before_normalisation(query: str, norm: str) -> None:
    asked, (x, real) = memory(query=query, norm=norm), histories()
    asked.calibrate(x, real)
    found = asked(x, real)
    assert torch.equal(found.raw, asked.query_network(x, real)) and torch.equal(found.query, asked.norm(found.raw))
    shared = SharedInterests(16, 4)(x, real)
    assert shared.raw.shape == shared.query.shape == (6, 0)


# --- what the queries are normalised with ----------------------------------------------------------------------------


def person_batch(rows: int = 300, length: int = 24) -> Batch:
    """Histories of all lengths, the empty one included, and a recall that is not the whole of them."""
    items = torch.randint(1, 31, (rows, length), generator=torch.Generator().manual_seed(2))
    items = items * (torch.arange(length) >= length - torch.arange(rows)[:, None] % (length + 1))
    return Batch(items, torch.nn.functional.pad(items[:, :-5], (5, 0)))


def teller(**more: object) -> Elastic:
    """A model with weights far from their start, so that its queries are anything but white."""
    torch.manual_seed(0)
    model = models.build(ElasticConfig(length=24, width=16, layers=2, dropout=0.3, side=4, k=4, stride=4, **more), 30)  # type: ignore[arg-type]
    assert isinstance(model, Elastic)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("memory", ["shared", "per-layer"])
@pytest.mark.parametrize(("query", "norm"), [("network", "whiten"), ("mean", "whiten"), ("network", "batch"), ("mean", "batch")])
@torch.no_grad()
def test_after_a_calibration_the_queries_of_that_batch_are_white(
    query: str, norm: str, memory: str, bidirectional: bool, training: bool
) -> None:
    model = teller(query=query, query_norm=norm, memory=memory, bidirectional=bidirectional).train(training)
    batch = person_batch()
    model.calibrate(batch)
    assert model.training == training and all(part.training == training for part in model.modules())
    model.eval()  # dropout would blur what the second layer asks; normalisation is the same in both modes
    found = model._encode(Batch(batch.retrieval_items, batch.retrieval_items))[1]
    assert len(found) == (2 if memory == "per-layer" else 1)
    for asked in (*found, model.retrieve(batch), model.train().retrieve(batch)):
        wanted = torch.linalg.eigvalsh(asked.raw.T.cov(correction=0))
        assert wanted[0] < 0.5 * wanted[-1]  # the raw queries are not white
        spread = asked.query.T.cov(correction=0)
        torch.testing.assert_close(asked.query.mean(0), torch.zeros(16), atol=1e-3, rtol=0)
        if norm == "batch":
            torch.testing.assert_close(spread.diagonal(), torch.ones(16), atol=0.02, rtol=0)
        else:
            white = wanted / wanted.clamp_min(1e-3 * wanted[-1])  # quiet axes stay below the floor
            torch.testing.assert_close(torch.linalg.eigvalsh(spread), white, atol=0.02, rtol=0)
            assert spread.diagonal().mean() > 0.7  # and they are few here


def test_a_step_of_training_changes_no_statistics() -> None:
    model, batch = teller().train(), person_batch()
    model.calibrate(batch, 0.3)
    before = {name: value.clone() for name, value in model.named_buffers()}
    model(batch).states.sum().backward()
    model.last_state(batch)
    assert before and all(torch.equal(value, before[name]) for name, value in model.named_buffers())
    model.calibrate(batch, 0.3)
    moved = [name for name, value in model.named_buffers() if not torch.equal(value, before[name])]
    assert {name.rsplit(".", 1)[1] for name in moved} == {"mean", "covariance", "transform"}


@pytest.mark.parametrize("more", [{"query_norm": "layer"}, {"query_norm": "none"}, {"memory": "none"}])
def test_where_there_is_nothing_to_calibrate_nothing_happens(more: dict[str, object]) -> None:
    model = teller(**more).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.calibrate(person_batch())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@torch.no_grad()
def test_a_calibration_in_bfloat16_is_one_in_float32() -> None:
    exact, rough, batch = teller(), teller(), person_batch()
    exact.calibrate(batch)
    with torch.autocast("cpu", torch.bfloat16):
        rough.calibrate(batch)
    assert all(torch.equal(value, rough.state_dict()[name]) for name, value in exact.state_dict().items())


@torch.no_grad()
def test_only_the_two_way_form_asks_each_memory_with_its_layers_input() -> None:
    """PKM-ACT: the causal form asks every memory with the same events, or later ones would reach an earlier position."""
    for bidirectional in (False, True):
        model, batch = teller(memory="per-layer", bidirectional=bidirectional).eval(), person_batch()
        first, second = model.memories
        second.load_state_dict(first.state_dict())
        found = model._encode(batch)[1]
        assert torch.equal(found[0].raw, found[1].raw) == (not bidirectional)


# --- learning --------------------------------------------------------------------------------------------------------


def gradients(gate: str, query: str = "network", k: int = 4, balance: float = 0.0) -> dict[str, float]:
    """The largest gradient of every parameter of a whole model after one next-item loss."""
    torch.manual_seed(0)
    config = ElasticConfig(length=24, width=16, layers=2, dropout=0.0, side=4, k=k, gate=gate, query=query)  # type: ignore[arg-type]
    model = models.build(config, 30)
    items = torch.randint(1, 31, (8, 24))
    encoded = model(Batch(items[:, :-1], items[:, :12], padded=False))
    logits = model.scorer()(encoded.states)[..., 1:]
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), items[:, 1:].flatten() - 1)
    (loss + balance * encoded.auxiliary["balance"]).backward()
    return {name: 0.0 if p.grad is None else float(p.grad.abs().max()) for name, p in model.named_parameters()}


@pytest.mark.parametrize("query", ["network", "mean"])
@pytest.mark.parametrize("gate", ["softmax", "sigmoid"])
def test_with_a_gate_every_parameter_learns(gate: str, query: str) -> None:
    assert [name for name, size in gradients(gate, query).items() if size == 0.0] == []


def test_without_a_gate_keys_and_query_network_never_learn() -> None:
    """Algorithm 1 as printed drops the scores: its router stays as it was drawn."""
    still = {name for name, size in gradients("none").items() if size == 0.0}
    assert still == {name for name in gradients("none") if ".keys." in name or ".query_network." in name}


def test_one_expert_under_a_softmax_is_no_gate_at_all() -> None:
    """A softmax over one score is always 1: with k = 1 only the sigmoid gate learns its keys."""
    assert gradients("softmax", k=1)["memories.0.keys.sub_keys"] == pytest.approx(0.0, abs=1e-9)
    assert gradients("sigmoid", k=1)["memories.0.keys.sub_keys"] > 0


def test_the_balance_term_alone_moves_keys_but_does_not_teach_them() -> None:
    """It is zero when sub-keys are used evenly, positive when one takes all."""

    def penalty(halves: Tensor, votes: Tensor | None = None) -> float:
        return float(balance_penalty(Retrieved(*[torch.zeros(0)] * 4, halves, torch.zeros(0), torch.zeros(0), votes)))

    even, one = torch.zeros(5, 2, 8), torch.zeros(5, 2, 8)
    one[..., 3] = 50.0
    assert penalty(even) == pytest.approx(0.0, abs=1e-5) and penalty(one) == pytest.approx(np.log(8), rel=1e-3)
    assert penalty(one, torch.eye(64)) == pytest.approx(0.0, abs=1e-5)  # events vote: all experts count, not rows and columns
    assert penalty(even, torch.eye(64)[:2]) == pytest.approx(np.log(32), rel=1e-3)
    assert gradients("none", balance=1.0)["memories.0.keys.sub_keys"] > 0


@torch.no_grad()
def test_unusual_votes_are_held_against_everybodys() -> None:
    """What is usual, from every event and every person written out, told in two parts; experts by how far above it they are."""
    asked, (x, real) = memory(query="votes", k=3, norm="layer", elect="unusual").eval(), histories()
    assert isinstance(asked, VotingMemory) and asked.usual is not None
    asked.log_half_life.fill_(np.log(1e9))
    asked.calibrate(x[:4], real[:4], 1.0)
    asked.calibrate(x[4:], real[4:], 2 / 6)
    people = []
    for row in range(6):
        people.append([])
        for event in x[row][real[row]]:
            every, votes = exhaustive(asked.keys(asked.norm(event)[None]), 25), np.zeros(25)
            votes[every.indices[0].numpy()] = every.scores[0].softmax(-1).numpy()
            people[-1].append(votes)
    usual = np.mean([votes for person in people for votes in person], 0)
    above = np.stack([(np.mean(person, 0) - usual) * np.sqrt(len(person)) for person in people])
    excess = above / np.sqrt(np.square(above).mean(0))
    found = asked(x, real)
    assert found.votes is not None and found.excess is not None
    np.testing.assert_allclose(asked.usual.mean.numpy(), usual, rtol=1e-4)
    np.testing.assert_allclose(found.excess.numpy(), excess, rtol=0.02, atol=0.02)
    for row in range(6):
        assert found.experts[row].tolist() == np.argsort(-found.excess[row].numpy(), kind="stable")[:3].tolist()
        lift = found.votes[row, found.experts[row]].numpy() / usual[found.experts[row]]
        np.testing.assert_allclose(found.gates[row].numpy(), 3 * lift / lift.sum(), rtol=1e-3)


@torch.no_grad()
def test_how_many_events_there_are_decides_nothing_where_the_unusual_is_elected() -> None:
    """People whose events are drawn from all: by most votes long histories get the same experts, by unusual ones none do."""
    generator = torch.Generator().manual_seed(3)
    pool = torch.randn(200, 16, generator=generator) + torch.randn(16, generator=generator)
    shared = {}
    for elect, erased, pooled in (("most", 0, 0), ("unusual", 0, 0), ("unusual", 1, 0), ("unusual", 1, 1)):
        asked = memory(query="votes", norm="none", k=3, elect=elect, erase_length=bool(erased), pooled=bool(pooled)).eval()
        assert isinstance(asked, VotingMemory)
        asked.log_half_life.fill_(np.log(1e6))
        lengths = torch.randint(20, 101, (2_000, 1), generator=generator)
        asked.calibrate(pool[torch.randint(200, (2_000, 100), generator=generator)], torch.arange(100) < lengths)
        for events in (4, 400):
            chosen = asked(pool[torch.randint(200, (300, events), generator=generator)], None).experts
            shared[elect, erased, pooled, events] = float((chosen[:150, :, None] == chosen[150:, None, :]).any(2).float().mean())
    assert shared["most", 0, 0, 400] > shared["most", 0, 0, 4] + 0.2
    for how in ((0, 0), (1, 0), (1, 1)):
        assert abs(shared["unusual", *how, 400] - shared["unusual", *how, 4]) < 0.05


@torch.no_grad()
def test_what_a_history_reads_as_is_taken_out_of_its_votes_as_written_out() -> None:
    """Ridge regression by hand, told in two parts: log n from the mean question, every expert's votes from what that says."""
    asked, (x, real) = memory(query="votes", k=3, norm="layer", elect="unusual", erase_length=True).eval(), histories(12)
    plain = memory(query="votes", k=3, norm="layer", elect="unusual").eval()
    real = torch.arange(24) >= torch.arange(12)[:, None] * 2 - 1
    x = x + (torch.arange(12)[:, None, None] / 4) * torch.randn(
        16, generator=torch.Generator().manual_seed(5)
    )  # long ones differ
    for each in (asked, plain):
        assert isinstance(each, VotingMemory)
        each.log_half_life.fill_(np.log(1e9))
        each.calibrate(x[:8], real[:8], 1.0)
        each.calibrate(x[8:], real[8:], 4 / 12)
    plain.load_state_dict(asked.state_dict(), strict=False)  # the same questions of the same keys, nothing erased
    events = [asked.norm(x[row][real[row]]).numpy().astype(float) for row in range(12)]
    mean = np.stack([each.mean(0) for each in events]) - np.concatenate(events).mean(0)
    log = np.log([len(each) for each in events])
    products = mean.T @ mean / 12
    ridge = RIDGE * np.diag(products).mean() * np.eye(16)
    said = mean @ np.linalg.solve(products + ridge, mean.T @ (log - log.mean()) / 12)
    found, before = asked(x, real), plain(x, real)
    assert found.votes is not None and found.excess is not None and before.excess is not None
    size = before.excess / (before.votes - plain.usual.mean)  # type: ignore[union-attr, operator]
    above = (before.votes - plain.usual.mean).double().numpy()  # type: ignore[union-attr, operator]
    left = above - np.outer(said, said @ above / (said @ said))
    np.testing.assert_allclose((found.excess / size).numpy(), left, rtol=0.02, atol=1e-4)
    assert np.abs(np.corrcoef(np.c_[above, said].T)[-1, :-1]).max() > 0.5
    assert np.abs(left.T @ said).max() < 1e-9 < np.abs((found.excess / size).numpy().T @ said).max() < 1e-3
    torch.testing.assert_close(found.votes, before.votes)  # the votes stay what they are


@torch.no_grad()
def test_votes_are_counted_as_somebody_would_count_them() -> None:
    """Event by event with every key written out: a softmax over all is one vote, halved every half-life; ranks by votes."""
    asked, (x, real) = memory(query="votes", k=3).eval(), histories()
    found = asked(x, real)
    assert found.votes is not None
    life = float(asked.log_half_life.exp())
    for row in range(1, 6):
        count, total = np.zeros(25), 0.0
        for place in np.flatnonzero(real[row].numpy()):
            every = exhaustive(asked.keys(asked.norm(x[row, place])[None]), 25)
            weight = 0.5 ** ((x.shape[1] - 1 - place) / life)
            count[every.indices[0].numpy()] += weight * every.scores[0].softmax(-1).numpy()
            total += weight
        np.testing.assert_allclose(found.votes[row].numpy(), count / total, atol=1e-5)
        most = np.sort(count)[::-1][:3]
        assert found.experts[row].tolist() == np.argsort(-count, kind="stable")[:3].tolist()
        np.testing.assert_allclose(found.gates[row].numpy(), 3 * most / most.sum(), rtol=1e-3)


@torch.no_grad()
@pytest.mark.parametrize("erase_length", [False, True])
def test_votes_are_pooled_as_written_out(erase_length: bool) -> None:
    """Told in two parts; by hand, of everybody's standard scores that the same memory has unpooled."""
    x, real = histories(12)
    x = x + (torch.arange(12)[:, None, None] / 4) * torch.randn(16, generator=torch.Generator().manual_seed(5))
    found = {}
    for pooled in (False, True):
        asked = memory(query="votes", k=3, norm="layer", elect="unusual", erase_length=erase_length, pooled=pooled).eval()
        assert isinstance(asked, VotingMemory)
        asked.log_half_life.fill_(np.log(1e9))
        asked.calibrate(x[:8], real[:8], 1.0)
        asked.calibrate(x[8:], real[8:], 4 / 12)
        excess = asked(x, real).excess
        assert excess is not None
        found[pooled] = excess.double().numpy()
    values, vectors = np.linalg.eigh(found[False].T @ found[False] / 12)
    pooled_ = found[False] @ vectors @ np.diag(values.clip(0) ** 0.5) @ vectors.T
    np.testing.assert_allclose(found[True], pooled_ / np.sqrt(np.square(pooled_).mean(0)), atol=0.03)
    np.testing.assert_allclose(np.square(found[True]).mean(0), 1, atol=0.02)  # every expert stands out for somebody
    assert np.abs(found[True] - found[False]).max() > 0.2


@pytest.mark.parametrize("erase_length", [False, True])
@torch.no_grad()
def test_votes_are_those_that_another_half_lets_expect_as_written_out(erase_length: bool) -> None:
    """Told in two parts; by hand, of the standard scores of halves and wholes by the same memory without expectation."""
    x, real = histories(12)
    x = x + (torch.arange(12)[:, None, None] / 4) * torch.randn(16, generator=torch.Generator().manual_seed(5))
    made = {}
    for expected in (False, True):
        how = {"erase_length": erase_length, "pooled": not expected, "expected": expected}
        made[expected] = memory(query="votes", k=3, norm="layer", elect="unusual", **how).eval()
        made[expected].log_half_life.fill_(np.log(1e9))
        made[expected].calibrate(x, real, 1.0)
    plain, asked = made[False], made[True]
    assert isinstance(plain, VotingMemory) and isinstance(asked, VotingMemory) and plain.usual is not None
    plain.usual.pool.copy_(torch.eye(len(plain.usual.pool)))

    def scores(part: torch.Tensor) -> np.ndarray:
        excess = plain(x, part).excess
        assert excess is not None
        return excess.double().numpy()

    chosen = torch.rand(real.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    whole, one, two = scores(real), scores(real & chosen), scores(real & ~chosen)
    stays = (one.T @ two + two.T @ one) / 24  # of who has no two parts they are 0
    part = whole.T @ whole / 12 - stays
    pool = np.linalg.solve(part + PART_RIDGE * np.trace(part) / len(part) * np.eye(len(part)), stays)
    found = asked(x, real).excess
    assert found is not None
    wanted = whole @ pool
    np.testing.assert_allclose(found.double().numpy(), wanted / np.sqrt(np.square(wanted).mean(0)), atol=0.03)
    assert np.abs(found.double().numpy() - whole).max() > 0.2


def test_pooled_votes_and_erased_lengths_are_for_unusual_ones() -> None:
    for known, reason in (
        ({"pooled": True}, "model.pooled needs model.elect = unusual"),
        ({"erase_length": True}, "model.erase_length needs model.elect = unusual"),
        ({"query": "votes", "elect": "unusual", "pooled": True, "side": 64}, "a model.side of at most 32, not 64"),
    ):
        with pytest.raises(InputError, match=reason):
            MemoryConfig(**known)  # type: ignore[arg-type]
