"""Product keys and the interest memory (Eq. 4-7): exact, and able to learn only when the scores gate the experts."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import elastic_core.models as models
from elastic_core.core.batches import Batch
from elastic_core.core.contract import LEAST_VOTES, Retrieved, VoteTally, balance_penalty
from elastic_core.core.elastic import (
    Elastic,
    ElasticConfig,
    InterestMemory,
    MemoryConfig,
    ProductKeys,
    candidate_ranks,
    make_interest_memory,
    search_exhaustively,
    top_pairs,
)
from elastic_core.slots.voting import VotingConfig, VotingMemory

QUERIES, EXAMPLES = 128, 50  # a hypothesis example is a batch of random cases: 6,400 in all


@st.composite
def half_scores(draw: st.DrawFn) -> Tensor:
    """`[QUERIES, 2, side]`: smooth, or quantised to a few levels so that many pairs tie."""
    n_subkeys = draw(st.integers(1, 32))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    halves = torch.randn(QUERIES, 2, n_subkeys, generator=generator)
    levels = draw(st.sampled_from([None, 1, 2, 4]))
    return halves if levels is None else (halves * levels).round() / levels


@st.composite
def searches(draw: st.DrawFn) -> tuple[Tensor, int]:
    halves = draw(half_scores())
    n_subkeys = halves.shape[-1]
    k = draw(st.one_of(st.integers(1, min(2 * n_subkeys, n_subkeys**2)), st.integers(1, n_subkeys**2), st.just(n_subkeys**2)))
    return halves, k


def all_sums(halves: Tensor) -> Tensor:
    """Every key's score, `[B, side²]`, spelled out apart from the code under test."""
    n_subkeys = halves.shape[-1]
    return torch.stack([halves[:, 0, n // n_subkeys] + halves[:, 1, n % n_subkeys] for n in range(n_subkeys**2)], dim=1)


# --- the search ------------------------------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES, deadline=None)
@given(searches())
def test_product_keys_equal_brute_force(search: tuple[Tensor, int]) -> None:
    """Same scores, ties included; the chosen keys are distinct and have those scores."""
    halves, k = search
    found, slow = top_pairs(halves, k), search_exhaustively(halves, k)
    assert found.indices.shape == found.scores.shape == (QUERIES, k)
    assert torch.equal(found.scores, slow.scores)
    sums = all_sums(halves)
    assert torch.equal(sums.gather(1, found.indices), found.scores) and torch.equal(sums.gather(1, slow.indices), slow.scores)
    assert torch.equal(sums.sort(dim=1, descending=True).values[:, :k], found.scores)
    assert (found.indices.sort(dim=1).values.diff(dim=1) > 0).all()


@given(st.integers(1, 1024), st.integers(1, 32))
@settings(max_examples=200, deadline=None)
def test_the_staircase_is_small_and_complete(k: int, n_subkeys: int) -> None:
    ranks = candidate_ranks(k, n_subkeys)
    bound = sum(k // i for i in range(1, k + 1))
    assert len(ranks) <= bound
    assert len(ranks) == bound or k > n_subkeys
    assert len(set(ranks)) == len(ranks)
    inside = {(i, j) for i in range(n_subkeys) for j in range(n_subkeys) if (i + 1) * (j + 1) <= k}
    assert set(ranks) == inside
    assert len(ranks) >= min(k, n_subkeys**2)


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


# --- the memory ------------------------------------------------------------------------------------------------------


def memory(
    gate: str = "softmax", query: str = "network", norm: str = "whiten", k: int = 4, n_subkeys: int = 5, **more: object
) -> InterestMemory:
    torch.manual_seed(0)
    shape = {"length": 24, "width": 16, "heads": 2, "n_subkeys": n_subkeys, "k": k}
    if query == "votes":
        return VotingMemory(VotingConfig(**shape, **more), norm, gate)  # type: ignore[arg-type]
    made = make_interest_memory(MemoryConfig(query=query, **shape, **more), norm, gate)  # type: ignore[arg-type]
    assert isinstance(made, InterestMemory)
    return made


def histories(batch: int = 6, length: int = 24, width: int = 16) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    real = torch.arange(length) >= torch.arange(batch)[:, None] * 3
    return torch.randn(batch, length, width, generator=generator), real


def assert_same(one: Retrieved, other: Retrieved) -> None:
    assert torch.equal(one.experts, other.experts)
    for a, b in zip((*one, one.votes, *(one.ballots or ())), (*other, other.votes, *(other.ballots or ())), strict=True):
        assert type(a) is type(b)
        assert not isinstance(a, Tensor) or torch.allclose(a.float(), b.float(), atol=3e-5)


def of(found: Retrieved, people: Tensor | slice) -> Retrieved:
    """What was found for some of them."""
    ballots = (
        None if found.ballots is None else VoteTally(*(part[people] for part in found.ballots[:2]), found.ballots.mean_vote_share)
    )
    own = {n: x[people] for n, x in found._asdict().items() if isinstance(x, Tensor)}
    return found._replace(ballots=ballots, **own)


@pytest.mark.parametrize("norm", ["whiten", "layer"])
@pytest.mark.parametrize("query", ["network", "mean", "votes"])
def test_padding_is_invisible_and_people_do_not_meet(query: str, norm: str) -> None:
    asked, (x, real) = memory(query=query, norm=norm).eval(), histories()
    asked.calibrate(x, real)
    found = asked(x, real)
    assert_same(asked(torch.where(real.unsqueeze(-1), x, 1e3), real), found)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    assert_same(asked(x[order], real[order]), of(found, order))
    assert_same(asked(x[2:3], real[2:3]), of(found, slice(2, 3)))


def test_renaming_the_sub_keys_renames_the_experts_and_nothing_else() -> None:
    asked, (x, real) = memory().eval(), histories()
    before, n_subkeys = asked(x, real), asked.keys.n_subkeys
    rows, columns = torch.randperm(n_subkeys), torch.randperm(n_subkeys)
    with torch.no_grad():
        asked.keys.sub_keys.copy_(torch.stack([asked.keys.sub_keys[0, rows], asked.keys.sub_keys[1, columns]]))
        asked.values.weight.copy_(asked.values.weight.view(n_subkeys, n_subkeys, -1)[rows][:, columns].flatten(0, 1))
    after = asked(x, real)
    assert torch.allclose(after.interests, before.interests, atol=1e-5)
    named = rows[after.experts // n_subkeys] * n_subkeys + columns[after.experts % n_subkeys]
    assert torch.equal(named, before.experts)


def test_the_average_query_does_not_know_the_order_of_events() -> None:
    asked, (x, _) = memory(query="mean").eval(), histories()
    real = torch.ones(x.shape[:2], dtype=torch.bool)
    assert_same(asked(x[:, torch.randperm(x.shape[1])], real), asked(x, real))


@pytest.mark.parametrize("gate", ["softmax", "none"])
def test_experts_are_gated_by_their_scores(gate: str) -> None:
    asked, (x, real) = memory(gate).eval(), histories()
    found = asked(x, real)
    assert (found.scores.diff(dim=1) <= 0).all() and (found.gates.diff(dim=1) <= 0).all()
    assert torch.allclose(found.interests, asked.values(found.experts) * found.gates.unsqueeze(-1))
    expected = {"softmax": found.scores.softmax(1) * 4, "none": torch.ones(6, 4)}
    assert torch.allclose(found.gates, expected[gate])
    kept = found.select_ranks(torch.tensor([0, 2]))
    assert torch.equal(kept.experts, found.experts[:, [0, 2]]) and torch.equal(kept.interests, found.interests[:, [0, 2]])


# --- what the queries are normalised with ----------------------------------------------------------------------------


def person_batch(rows: int = 300, length: int = 24) -> Batch:
    """Histories of all lengths, the empty one included, and a recall that is not the whole of them."""
    items = torch.randint(1, 31, (rows, length), generator=torch.Generator().manual_seed(2))
    items = items * (torch.arange(length) >= length - torch.arange(rows)[:, None] % (length + 1))
    return Batch(items, torch.nn.functional.pad(items[:, :-5], (5, 0)))


def teller(**more: object) -> Elastic:
    """A model with weights far from their start, so that its queries are anything but white."""
    torch.manual_seed(0)
    model = models.build(ElasticConfig(length=24, width=16, layers=2, dropout=0.3, n_subkeys=4, k=4, **more), 30)  # type: ignore[arg-type]
    assert isinstance(model, Elastic)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("memory", ["shared", "per-layer"])
@pytest.mark.parametrize(("query", "norm"), [("network", "whiten"), ("mean", "whiten")])
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
        white = wanted / wanted.clamp_min(1e-3 * wanted[-1])  # quiet axes stay below the floor
        torch.testing.assert_close(torch.linalg.eigvalsh(spread), white, atol=0.02, rtol=0)
        assert spread.diagonal().mean() > 0.7  # and they are few here


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
    config = ElasticConfig(length=24, width=16, layers=2, dropout=0.0, n_subkeys=4, k=k, gate=gate, query=query)  # type: ignore[arg-type]
    model = models.build(config, 30)
    items = torch.randint(1, 31, (8, 24))
    encoded = model(Batch(items[:, :-1], items[:, :12], padded=False))
    logits = model.scorer()(encoded.states)[..., 1:]
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), items[:, 1:].flatten() - 1)
    (loss + balance * encoded.auxiliary["balance"]).backward()
    return {name: 0.0 if p.grad is None else float(p.grad.abs().max()) for name, p in model.named_parameters()}


def test_one_expert_under_a_softmax_is_no_gate_at_all() -> None:
    """A softmax over one score is always 1."""
    assert gradients("softmax", k=1)["memories.0.keys.sub_keys"] == pytest.approx(0.0, abs=1e-9)


def test_the_balance_term_alone_moves_keys_but_does_not_teach_them() -> None:
    """It is zero when sub-keys are used evenly, positive when one takes all."""

    def penalty(halves: Tensor) -> float:
        return float(balance_penalty(Retrieved(*[torch.zeros(0)] * 4, halves, torch.zeros(0), torch.zeros(0))))

    even, one = torch.zeros(5, 2, 8), torch.zeros(5, 2, 8)
    one[..., 3] = 50.0
    assert penalty(even) == pytest.approx(0.0, abs=1e-5) and penalty(one) == pytest.approx(np.log(8), rel=1e-3)
    assert gradients("none", balance=1.0)["memories.0.keys.sub_keys"] > 0


# --- votes -----------------------------------------------------------------------------------------------------------


def voting(n_subkeys: int = 5, k: int = 4, width: int = 16, **settings: Any) -> VotingMemory:
    torch.manual_seed(0)
    return VotingMemory(VotingConfig(width=width, n_subkeys=n_subkeys, k=k, **{"votes": 2, **settings}), "layer", "softmax")


def best_of(asked: VotingMemory, event: Tensor) -> list[tuple[int, float]]:
    """Every expert for one event `[d]`, best first, with its score: all pairs of sub-keys written out."""
    rows, columns = asked.keys(asked.norm(event[None]))[0].tolist()
    every = [(i * len(columns) + j, row + column) for i, row in enumerate(rows) for j, column in enumerate(columns)]
    return sorted(every, key=lambda one: -one[1])


def election(asked: VotingMemory, events: list[Tensor], m: int) -> tuple[dict[int, float], dict[int, float]]:
    """One person's votes, event by event: what everybody got, and how much they are wanted, also the newest one's best k."""
    votes = dict[int, float]()
    for event in events:
        best = best_of(asked, event)[:m]
        total = sum(np.exp(score - best[0][1]) for _, score in best)
        for expert, score in best:
            votes[expert] = votes.get(expert, 0.0) + np.exp(score - best[0][1]) / total / len(events)
    filled = dict(votes)
    for rank, (expert, _) in enumerate(best_of(asked, events[-1])[: asked.k], 1):
        filled[expert] = filled.get(expert, 0.0) + LEAST_VOTES / rank
    usual = asked.mean_vote_share.tolist()
    return votes, {a: got - usual[a] if got > 2 * LEAST_VOTES else got / LEAST_VOTES - 4 for a, got in filled.items()}


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    n_subkeys=st.integers(2, 7), m=st.integers(1, 6), k=st.integers(1, 12), n=st.integers(1, 20), usual=st.booleans(),
    empty=st.sampled_from([0.0, 0.3]), seed=st.integers(0, 99),
)  # fmt: skip
@torch.no_grad()
def test_votes_are_counted_as_somebody_would_count_them(
    n_subkeys: int, m: int, k: int, n: int, usual: bool, empty: float, seed: int
) -> None:
    """Its slow twin, whatever stands on padding; of equally wanted experts (m = 1) either may be found."""
    m, k = min(m, n_subkeys**2), min(k, n_subkeys**2)
    asked = voting(n_subkeys, k, votes=m).double().eval()
    asked.mean_vote_share.copy_(usual * torch.rand(n_subkeys**2).double().softmax(0))
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(5, n, 16, generator=generator, dtype=torch.float64)
    lengths = (torch.rand(5, generator=generator) * (n + 1) * (1 + empty) - empty * n).floor().clamp(0, n)
    real = torch.arange(n) >= n - lengths[:, None]
    found = asked(x, real)
    assert found.votes is not None
    for row, experts in enumerate(found.experts.tolist()):
        at = real[row].nonzero().flatten().tolist()
        assert float(found.votes[row].sum()) == pytest.approx(1.0 if at else 0.0) and len(set(experts)) == k
        if not at:
            continue  # nobody asks: which experts these are is nobody's business
        votes, wanted = election(asked, [x[row, place] for place in at], m)
        counted = torch.zeros(n_subkeys**2, dtype=torch.float64)
        counted[list(votes)] = torch.tensor(list(votes.values()), dtype=torch.float64)
        torch.testing.assert_close(found.votes[row], counted)
        got = [wanted[expert] for expert in experts]
        assert got == pytest.approx(sorted(wanted.values(), reverse=True)[:k], rel=1e-9, abs=1e-15)
        share = np.maximum(got, 0) + LEAST_VOTES
        np.testing.assert_allclose(found.gates[row].numpy(), k * share / share.sum(), rtol=1e-9)
        np.testing.assert_allclose(found.scores[row].numpy(), np.log(share), rtol=1e-9)
    torch.testing.assert_close(found.interests, asked.values(found.experts) * found.gates.unsqueeze(-1))
    assert_same(asked(torch.where(real.unsqueeze(-1), x, 1e3), real), found)


@pytest.mark.parametrize("sharp", [1.0, 1e3])
@torch.no_grad()
def test_a_history_that_asks_for_fewer_gets_the_newest_events_next_best(sharp: float) -> None:
    """However far they are behind: with scores so far apart that their exponential is nothing, too."""
    asked = voting(k=9, votes=2).eval()
    assert asked.keys.log_temperature is not None
    asked.keys.log_temperature += np.log(sharp)
    x, real = torch.randn(8, 7, 16), torch.zeros(8, 7, dtype=torch.bool)
    real[:, 5:] = True
    x[:, 5] = x[:, 4]  # the event before the newest
    found = asked(x, real)
    for row, experts in enumerate(found.experts.tolist()):
        voted = {expert for event in x[row, 5:] for expert, _ in best_of(asked, event)[:2]}
        sure = {int(one) for one in (found.votes[row] > 2 * LEAST_VOTES).nonzero()}  # type: ignore[index]
        assert sure <= voted and {*experts[: len(sure)]} == sure
        newest = [expert for expert, _ in best_of(asked, x[row, -1]) if expert not in sure]
        assert experts[len(sure) :] == newest[: 9 - len(sure)] and len(set(experts)) == 9
        assert (found.gates[row, len(sure) :] < 1e-4).all() and found.gates[row].sum() == pytest.approx(9)


def test_the_gradient_of_votes_is_that_of_their_sums() -> None:
    """By differences, of all that is learned; with one expert an event nothing is chosen between: learners vote for more."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 4, dtype=torch.float64, generator=generator)
    real = torch.arange(5) >= torch.tensor([[0], [2]])
    for m, learning in ((2, False), (3, False), (1, False), (1, True), (2, True)):
        asked = voting(3, 4, width=4, votes=m).double().train(learning)
        names = [name for name, _ in asked.named_parameters()]

        def interests(*values: Tensor, asked: VotingMemory = asked, names: list[str] = names) -> Tensor:
            found: Tensor = functional_call(asked, dict(zip(names, values, strict=True)), (x, real)).interests
            return found

        assert torch.autograd.gradcheck(interests, tuple(asked.parameters()))
        asked(x, real).interests.square().sum().backward()
        still = {name for name, p in asked.named_parameters() if p.grad is None or float(p.grad.abs().max()) < 1e-12}
        assert still == ({*names} - {"values.weight"} if m == 1 and not learning else set())


@torch.no_grad()
def test_events_of_one_item_ask_once_and_everybodys_mean_is_what_is_usual() -> None:
    asked, items = voting().eval(), torch.randint(1, 6, (4, 9))
    items[2, :6] = 0
    content = torch.randn(6, 16)
    content[0] = 0
    asked.calibrate(content[items], items > 0)
    once, each = asked(content[items], items > 0, items), asked(content[items], items > 0)
    assert_same(once, each)
    assert once.votes is not None
    mean = (once.votes * (items > 0).sum(1, keepdim=True)).sum(0) / (items > 0).sum()
    torch.testing.assert_close(asked.mean_vote_share, mean)
    before = asked.mean_vote_share.clone()
    asked.calibrate(content[items[:1]], items[:1] > 0, rate=0.0)
    assert torch.equal(asked.mean_vote_share, before)


def test_while_learning_an_event_votes_for_more_and_best_of_them_are_those_it_serves() -> None:
    """The m of serving are the first of a learner's 4·m, in the same proportions; a memory of fewer experts gives all it has."""
    asked, (x, real) = voting(n_subkeys=5, votes=4), histories()
    asked.calibrate(x, real)
    learning, serving = asked.train()(x, real).ballots, asked.eval()(x, real).ballots
    assert learning is not None and serving is not None
    assert (learning.experts.shape[-1], serving.experts.shape[-1]) == (16, 4)
    assert torch.equal(learning.experts[real][:, :4], serving.experts[real])
    first = learning.votes[real][:, :4]
    parts = first / first.sum(-1, keepdim=True), serving.votes[real] / serving.votes[real].sum(-1, keepdim=True)
    torch.testing.assert_close(*parts)
    for ballots in (learning, serving):
        torch.testing.assert_close(ballots.votes.sum((1, 2)), real.any(1).float())
    few = voting(n_subkeys=2, k=2, votes=4).train()(x, real).ballots
    assert few is not None and few.experts.shape[-1] == 4


@settings(max_examples=20, deadline=None, derandomize=True)
@given(acts=st.lists(st.sampled_from(["ask", "ask", "content", "keys", "norm", "temperature", "double", "more"]), max_size=8))
@torch.no_grad()
def test_what_items_asked_is_remembered_only_while_nothing_changed(acts: list[str]) -> None:
    """A memory that has served a while finds what one that never served finds, after whatever happened to either."""
    asked, content, generator = voting().eval(), torch.randn(40, 16), torch.Generator().manual_seed(len(acts))
    for act in [*acts, "ask"]:
        match act:
            case "content":
                content[3:9] += 1
            case "keys":
                asked.keys.sub_keys.mul_(torch.rand(asked.keys.sub_keys.shape, generator=generator))
            case "norm":
                asked.calibrate(torch.randn(4, 6, 16), None)
            case "temperature":
                asked.keys.log_temperature.data = asked.keys.log_temperature.data + 0.5  # type: ignore[union-attr]
            case "double":
                asked, content = asked.double(), content.double()
            case "more":
                content = torch.cat([content, torch.randn(30, 16).to(content)])
        items = torch.randint(0, len(content), (3, 7), generator=generator)
        never = deepcopy(asked)
        never._cache = None
        with torch.inference_mode(act == "keys"):
            assert_same(asked(content[items], items > 2, items), never(content[items], items > 2, items))


@torch.no_grad()
def test_an_item_is_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, content, searched = voting().eval(), torch.randn(9, 16), list[int]()
    before = asked.keys.forward
    monkeypatch.setattr(asked.keys, "forward", lambda query: searched.append(len(query)) or before(query))
    items = torch.arange(1, 9).view(2, 4)
    first = asked(content[items], None, items)
    searches, searched[:] = sum(searched), []
    assert_same(asked(content[items], None, items), first)
    assert searches >= 8 and not searched


class Largest(TorchDispatchMode):
    """How many numbers the largest tensor has that is made meanwhile."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.numbers = max(self.numbers, *(x.numel() for x in tree_leaves(made) if isinstance(x, Tensor)), 0)
        return made


def test_nothing_of_the_memory_s_size_is_made() -> None:
    """Of 262,144 experts, there and back; the table itself is only looked up."""
    asked, (b, n) = voting(512, 8, votes=4), (2, 16)
    asked.values.weight.requires_grad_(False)  # its gradient is of its size
    with Largest() as largest:
        found = asked(torch.randn(b, n, 16), None)
        found.interests.square().sum().backward()
    assert largest.numbers <= b * n * 2 * 512
    assert asked.keys.sub_keys.grad is not None and asked.keys.sub_keys.grad.any()
