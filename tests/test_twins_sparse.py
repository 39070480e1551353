"""Linformer, Reformer, Sinkhorn, Routing and Clustered attention against slow twins, one history at a time, event by event, in
float64; and against softmax attention, where they become it."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from test_twins_attention import LENGTH, LENGTHS, WIDTH, built, dense, normed, people
from torch import Tensor
from torch.nn import functional

from elastic_core import models
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig, TrainConfig
from elastic_core.core.layers import Attention, eager_attention
from elastic_core.core.objective import AllConfig
from elastic_core.core.step import Optimization
from elastic_core.data import Dataset
from elastic_core.objectives import build as objective
from elastic_core.peers import clustered, sinkhorn
from elastic_core.peers.clustered import ClusteredAttention, ClusteredConfig
from elastic_core.peers.linformer import LinformerConfig, LowRankAttention
from elastic_core.peers.parts.bucket_attention import attend_in_buckets, attend_last, sort_by_bucket
from elastic_core.peers.routing import RoutedAttention, Routing, RoutingConfig
from elastic_core.peers.sinkhorn import SinkhornAttention, SinkhornConfig, balance_rows_and_columns

SHAPE: dict[str, Any] = {"width": WIDTH, "heads": 2, "dropout": 0.0}
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "linformer": ("linformer", {"rank": 5}),
    "reformer": ("reformer", {"buckets": 3, "window": 4}),
    "reformer, three hashes": ("reformer", {"buckets": 4, "window": 3, "rounds": 3}),
    "sinkhorn": ("sinkhorn", {"block": 5}),
    "routing": ("routing", {"clusters": 4, "window": 3}),
    "clustered": ("clustered", {"clusters": 4, "topk": 3}),
    "clustered, plain": ("clustered", {"clusters": 5, "topk": 0}),
}


def mixture(scores: list[Tensor], values: list[Tensor]) -> Tensor:
    weights = torch.stack(scores).exp()
    return sum(w * v for w, v in zip(weights / weights.sum(), values, strict=True))  # type: ignore[return-value]


# --- the twins: what each event of one history reads in one head -----------------------------------------------------


def linformer_twin(a: Any, head: int, own: slice, h: list[Tensor]) -> list[Tensor]:
    q, k, v = ([dense(f, row)[own] for row in h] for f in (a.query, a.key, a.value))
    column = LENGTH - len(h)
    keys, values = (
        [sum(weight[s, column + j] * x[j] for j in range(len(h))) for s in range(len(weight))]
        for weight, x in ((a.key_projection, k), (a.value_projection, v))
    )
    return [mixture([q_t @ key / math.sqrt(len(q_t)) for key in keys], values) for q_t in q]  # type: ignore[operator]


def bucket_twin(a: Any, head: int, own: slice, h: list[Tensor], buckets: list[list[int]], unit: bool) -> list[Tensor]:
    """`buckets[r][t]`. The events of one's bucket so far, its last `window`; all rounds' together, oneself only if alone."""
    q, v = ([dense(f, row)[own] for row in h] for f in (a.query, a.value))
    q = q if unit else [normed(row) for row in q]
    k = [row / row.norm() for row in q] if unit else q
    out = []
    for t in range(len(h)):
        seen = set()
        for bucket in buckets:
            seen |= set([j for j in range(t + 1) if bucket[j] == bucket[t]][-a.window :])
        chosen = sorted(seen - {t}) or [t]
        out.append(mixture([q[t] @ k[j] / math.sqrt(len(q[t])) for j in chosen], [v[j] for j in chosen]))
    return out


def reformer_twin(a: Any, head: int, own: slice, h: list[Tensor]) -> list[Tensor]:
    q, rounds = [dense(a.query, row)[own] for row in h], []
    for rotation in a.rotations[head]:
        found = []
        for row in q:
            turned = [float(row @ direction) for direction in rotation.T]
            turned = (turned + [-x for x in turned])[: a.n_buckets]
            found.append(turned.index(max(turned)))
        rounds.append(found)
    return bucket_twin(a, head, own, h, rounds, unit=True)


def routing_twin(a: Any, head: int, own: slice, h: list[Tensor]) -> list[Tensor]:
    cluster = []
    for row in h:
        near = [float(normed(dense(a.query, row)[own]) @ centroid) for centroid in a.centroids[head]]
        cluster.append(near.index(max(near)))
    return bucket_twin(a, head, own, h, [cluster], unit=False)


def sinkhorn_twin(a: Any, head: int, own: slice, h: list[Tensor]) -> list[Tensor]:
    n, b, zero = len(h), a.block, torch.zeros(own.stop - own.start).double()
    q, k, v = ([dense(f, row)[own] for row in h] for f in (a.query, a.key, a.value))
    m = -(-n // b)
    first, outputs = n - m * b, a.sort.out_features // a.heads  # the oldest block begins before the first event
    at = [[first + i * b + p for p in range(b)] for i in range(m)]  # the event at each place of each block; negative: none
    share = [[0.0] * m for _ in range(m)]
    for i in range(m):
        pooled = [h[j] for j in range(at[i][0] + 1) if j >= 0]
        z = sum(pooled) / len(pooled) if pooled else torch.zeros(WIDTH).double()  # type: ignore[arg-type]
        logits = dense(a.sort, dense(a.pooled, z).clamp_min(0))[head * outputs : (head + 1) * outputs]  # type: ignore[arg-type]
        for j in range(i):
            share[i][j] = math.exp(float(logits[outputs - m + j]) / sinkhorn.TEMPERATURE)
    for step in range(sinkhorn.ITERATIONS + 1):
        if step:
            below = [[sum(share[r][j] for r in range(i + 1)) for j in range(m)] for i in range(m)]
            share = [[x / max(y, 1e-300) for x, y in zip(*rows, strict=True)] for rows in zip(share, below, strict=True)]
        share = [[x / max(sum(row), 1e-300) for x in row] for row in share]
    out = []
    for t in range(n):
        i = (t - first) // b
        seen = [j for j in at[i] if 0 <= j <= t]
        keys, values = [k[j] for j in seen], [v[j] for j in seen]
        for p in range(b):
            blocks = [j for j in range(i) if at[j][p] >= 0]
            if blocks:
                keys.append(sum((share[i][j] * k[at[j][p]] for j in blocks), zero))
                values.append(sum((share[i][j] * v[at[j][p]] for j in blocks), zero))
        out.append(mixture([q[t] @ key / math.sqrt(len(q[t])) for key in keys], values))
    return out


def clustered_twin(a: Any, head: int, own: slice, h: list[Tensor]) -> list[Tensor]:
    n, scale = len(h), math.sqrt(own.stop - own.start)
    q, k, v = ([dense(f, row)[own] for row in h] for f in (a.query, a.key, a.value))
    codes = [[int(row @ direction >= 0) for direction in a.directions[head]] for row in q]
    centres = [codes[c * n // a.clusters] for c in range(a.clusters)]

    def nearest() -> list[int]:
        found = []
        for code in codes:
            differing = [sum(x != y for x, y in zip(code, centre, strict=True)) for centre in centres]
            found.append(differing.index(min(differing)))
        return found

    for _ in range(clustered.ITERATIONS):
        cluster = nearest()
        for c in set(cluster):
            members = [codes[t] for t in range(n) if cluster[t] == c]
            centres[c] = [int(2 * sum(bits) >= len(members)) for bits in zip(*members, strict=True)]
    cluster, out = nearest(), []
    for t in range(n):
        members = [q[j] for j in range(n) if cluster[j] == cluster[t]]
        mean = sum(members) / len(members)  # type: ignore[arg-type]
        shares = torch.stack([mean @ key / scale for key in k]).softmax(0)  # type: ignore[operator]
        top = sorted(range(n), key=lambda j: -float(shares[j]))[: a.topk]
        read = sum((shares[j] * v[j] for j in range(n) if j not in top), torch.zeros_like(v[0]))
        if top:
            read = read + sum(shares[j] for j in top) * mixture([q[t] @ k[j] / scale for j in top], [v[j] for j in top])
        out.append(read)
    return out


TWINS: dict[str, Callable[[Any, int, slice, list[Tensor]], list[Tensor]]] = {
    "linformer": linformer_twin, "reformer": reformer_twin, "sinkhorn": sinkhorn_twin, "routing": routing_twin,
    "clustered": clustered_twin,
}  # fmt: skip


def twin(model: Any, items: list[int]) -> Tensor:
    """States `[n, d]` of one history: SASRec's block around what is read."""
    table, positions, heads = model.events.items.weight, model.events.positions, model.config.heads
    x = [table[item] * math.sqrt(WIDTH) + positions[LENGTH - len(items) + t] for t, item in enumerate(items)]
    e = WIDTH // heads
    for block in model.blocks:
        a, f, h = block.attention, block.feed_forward, [normed(row, block.norm) for row in x]
        read = [TWINS[model.config.name](a, s, slice(s * e, (s + 1) * e), h) for s in range(heads)]
        x = [row + dense(a.output, torch.cat(parts)) for row, *parts in zip(x, *read, strict=True)]
        x = [y + dense(f.outer, functional.gelu(dense(f.inner, normed(y, f.norm)))) for y in x]
    return torch.stack([normed(row, model.norm) for row in x])


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_a_model_is_its_twin(form: str, heads: int) -> None:
    """Every state of every history, and the last one by its shortcut; padded, unpadded and in fewer columns."""
    name, more = FORMS[form]
    model = built(name, heads=heads, **more)
    items = people()[0]
    states, last = model(Batch(items, items)).states, model.last_state(Batch(items, items))
    for row, n in enumerate(LENGTHS):
        own = items[row : row + 1, -n:]
        expected = twin(model, own[0].tolist())
        torch.testing.assert_close(states[row, -n:], expected)
        torch.testing.assert_close(last[row], expected[-1])
        torch.testing.assert_close(model(Batch(own, own, padded=False)).states[0], expected)


# --- where they are softmax attention --------------------------------------------------------------------------------


def alike(attention: Any, causal: bool) -> Attention:
    """SASRec's softmax attention with the same projections."""
    plain = Attention(WIDTH, attention.heads, 0.0, causal=causal)
    shared = {name: x for name, x in attention.state_dict().items() if name in plain.state_dict()}
    plain.load_state_dict(shared)
    return plain.double()


def identity() -> LowRankAttention:
    attention = LowRankAttention(LinformerConfig(**SHAPE, length=LENGTH, rank=LENGTH))
    with torch.no_grad():
        for weight in (attention.key_projection, attention.value_projection):
            weight.copy_(torch.eye(LENGTH))
    return attention


ONE_BLOCK = SinkhornConfig(**SHAPE, length=4 * LENGTH, block=LENGTH)
EXACT: dict[str, tuple[Callable[[], Any], bool, tuple[int, ...]]] = {
    "identity projections": (identity, False, (24, 24)),
    "one block": (lambda: SinkhornAttention(ONE_BLOCK), True, LENGTHS),
    "a cluster for each query": (lambda: ClusteredAttention(ClusteredConfig(**SHAPE, clusters=LENGTH, topk=0)), False, LENGTHS),
    "all keys at the top": (lambda: ClusteredAttention(ClusteredConfig(**SHAPE, clusters=2, topk=LENGTH)), False, LENGTHS),
}


@pytest.mark.parametrize("limit", EXACT)
def test_in_the_limit_it_is_sasrecs_attention(limit: str) -> None:
    """Values and the gradient of what is read."""
    make, causal, lengths = EXACT[limit]
    torch.manual_seed(0)
    attention = make().double().eval()
    plain = alike(attention, causal)
    real = people(lengths)[0] > 0
    x = (torch.randn(*real.shape, WIDTH).double() * real.unsqueeze(-1)).requires_grad_()
    weigh = torch.randn_like(x) * real.unsqueeze(-1)
    found, expected = attention(x, real), plain(x, real)
    torch.testing.assert_close(found[real], expected[real])
    torch.testing.assert_close(attention.forward_last(x, real), plain.forward_last(x, real))
    one, two = (torch.autograd.grad((y * weigh).sum(), x)[0] for y in (found, expected))
    torch.testing.assert_close(one, two)


# --- buckets ---------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    n=some.integers(1, 40), window=some.integers(2, 45), buckets=some.integers(1, 5), rounds=some.integers(1, 3),
    padding=some.integers(0, 40),
)  # fmt: skip
def test_sorted_chunks_are_one_masked_softmax(n: int, window: int, buckets: int, rounds: int, padding: int) -> None:
    """What is read, its gradients, and the last event's shortcut; directly with N x N scores."""
    generator = torch.Generator().manual_seed(n)
    q, k, v, out = torch.randn(4, 2, 2, n, 3, generator=generator).double()
    bucket = torch.randint(buckets, (2, 2, rounds, n), generator=generator)
    real = torch.arange(n) >= torch.tensor([0, min(padding, n)])[:, None]
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    found = sort_by_bucket(bucket, real, window)
    real = torch.cat([real[:, :-1], torch.ones(2, 1, dtype=torch.bool)], 1)
    same = (bucket.unsqueeze(-1) == bucket.unsqueeze(-2)) & real[:, None, None, None, :]  # [B, H, R, N, N]
    same = same.tril()
    later = same.flip(-1).cumsum(-1).flip(-1)  # how many of the bucket lie from there on
    seen = (same & (later <= window)).any(2)
    others = seen & ~torch.eye(n, dtype=torch.bool)
    seen = torch.where(others.any(-1, keepdim=True), others, torch.eye(n, dtype=torch.bool))
    expected = eager_attention(q, k, v, seen, 0.0, causal=False)
    result, there = attend_in_buckets(q, k, v, found, window, 0.0), real[:, None, :, None]
    torch.testing.assert_close(result * there, expected * there)
    torch.testing.assert_close(attend_last(q[:, :, -1:], k, v, found, window), expected[:, :, -1:])
    exact = torch.autograd.grad((expected * there * out).sum(), (q, k, v))
    for x, y in zip(torch.autograd.grad((result * there * out).sum(), (q, k, v)), exact, strict=True):
        torch.testing.assert_close(x, y)


# --- online k-means --------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_centroids_move_to_the_means_and_a_deserted_one_moves_to_who_fits_worst() -> None:
    torch.manual_seed(0)
    attention = RoutedAttention(RoutingConfig(width=WIDTH, window=4, clusters=3)).double()
    x, real = torch.randn(4, LENGTH, WIDTH).double(), people()[0] > 0
    q = functional.normalize(attention.shared_queries(x)[0][:, 0][real], dim=-1)
    start = torch.stack([q[0], -q[0], torch.zeros(WIDTH).double()])  # nobody is nearer to the last than to one of the others
    attention.centroids.copy_(start.unsqueeze(0))
    attention.calibrate(x, real, 0.25)
    fit = q @ q[0]
    for c, members in enumerate((q[fit > 0], q[fit < 0])):
        expected = functional.normalize(0.75 * start[c] + 0.25 * members.mean(0), dim=0)
        torch.testing.assert_close(attention.centroids[0, c], expected)
    torch.testing.assert_close(attention.centroids[0, 2], q[fit.abs().argmin()])


def test_centroids_follow_the_training_and_averaged_weights_have_their_own(small_world: Dataset) -> None:
    torch.manual_seed(0)
    model = models.build(ModelConfig.known["routing"](length=16, width=16, layers=2, clusters=4), small_world.catalog)
    assert isinstance(model, Routing)
    goal = objective(AllConfig(), small_world, 16)
    learner = Optimization(model.train(), goal, TrainConfig(batch=16, ema_decay=0.9, learning_rate=2e-2), torch.device("cpu"))
    start = [x.clone() for x in model.buffers()]
    for i, batch in enumerate(goal.epoch_batches(0, 0, 16)):
        learner.update_statistics(small_world, 0, i)
        learner.step(batch)
    assert all(not torch.allclose(x, y, atol=1e-2) for x, y in zip(start, model.buffers(), strict=True))
    assert model.training
    judged = learner.averaged_model(small_world)
    for x, y in zip(judged.buffers(), model.buffers(), strict=True):
        torch.testing.assert_close(x.norm(dim=-1), torch.ones(1, 4))
        assert not torch.allclose(x, y, atol=1e-3)


# --- balancing -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_balancing_without_end_is_the_shift() -> None:
    """Without end there is no choice left, which is why it stops early."""
    torch.manual_seed(0)
    logits, past = torch.randn(3, 6, 6).double(), torch.ones(6, 6, dtype=torch.bool).tril(-1)
    few, many = (balance_rows_and_columns(logits, past, steps) for steps in (5, 5_000))
    torch.testing.assert_close(few.sum(-1), past.any(-1).double().expand(3, -1))
    torch.testing.assert_close(many, torch.eye(6).roll(1, 0).tril(-1).double().expand(3, -1, -1), atol=2e-3, rtol=0)
    assert (few.amax(-1)[:, 2:] < 0.999).all()
    torch.testing.assert_close(
        balance_rows_and_columns(logits, past, 0)[:, 1:], logits.masked_fill(~past, -1e9).softmax(-1)[:, 1:]
    )


def test_noise_is_drawn_in_training_alone() -> None:
    torch.manual_seed(0)
    attention, x = (
        SinkhornAttention(SinkhornConfig(width=WIDTH, dropout=0.0, length=LENGTH, block=4)),
        torch.randn(2, LENGTH, WIDTH),
    )
    assert torch.equal(attention.eval()(x), attention(x))
    assert not torch.allclose(attention.train()(x), attention(x), atol=1e-4)


# --- what it costs ---------------------------------------------------------------------------------------------------
