"""Fast code against its slow twin, written out here from the equations."""

import math
import subprocess
import sys
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as some
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from elastic_core import models
from elastic_core.core import dispatch, fused_ops, layers
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig
from elastic_core.core.dispatch import (
    CAP,
    CausalDispatcher,
    Dispatcher,
    FoldedMaps,
    TwoWayDispatcher,
    read_prefixes,
    soft_exponential,
)
from elastic_core.core.elastic import QueryNetwork
from elastic_core.core.layers import Attention, LocalConvolution, Whitening
from elastic_core.slots import gated_slots
from elastic_core.slots.elastic_slots import ElasticSlots, ElasticSlotsConfig

WIDTH = 12
heads_and_local = pytest.mark.parametrize(("heads", "local"), [(1, 0), (1, 3), (3, 0), (2, 4)])


def given(rows: int = 3, length: int = 70, k: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    """Events, interests and the mask of left-padded histories, the first full."""
    torch.manual_seed(1)
    real = torch.arange(length) >= torch.tensor([0, *torch.randint(1, length, (rows - 1,)).tolist()])[:, None]
    return torch.randn(rows, length, WIDTH) * real.unsqueeze(-1), torch.randn(rows, k, WIDTH), real


def randomised(layer: nn.Module) -> nn.Module:
    """Every parameter random, so that no bias or scale hides behind a zero or a one."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * (0.4 if p.dim() > 1 else 0.2) + (1.0 if p.dim() == 1 else 0.0))
    return layer.double().eval()


def textbook_attention(q: Tensor, k: Tensor, v: Tensor, heads: int, allowed: Tensor | None = None) -> Tensor:
    """softmax(q kᵀ / √d_h) v, head by head; nothing folded."""
    out = []
    for qh, kh, vh in zip(q.chunk(heads, -1), k.chunk(heads, -1), v.chunk(heads, -1), strict=True):
        scores = qh @ kh.transpose(-1, -2) / math.sqrt(qh.shape[-1])
        if allowed is not None:
            scores = scores.masked_fill(~allowed[:, None, :], -torch.inf)
        out.append(scores.softmax(-1) @ vh)
    return torch.cat(out, -1)


def local_twin(layer: Dispatcher, h: Tensor) -> Tensor | float:
    if layer.local is None:
        return 0.0
    out = torch.zeros_like(h)
    for t in range(h.shape[1]):
        for back, tap in enumerate(layer.local.taps):
            if back <= t:
                out[:, t] += tap * h[:, t - back]
    return out


@heads_and_local
@torch.no_grad()
def test_the_folded_two_way_dispatcher_is_textbook_attention(heads: int, local: int) -> None:
    """Eq. 2-3: P attends to X, X attends to P, with every key and value of the long side computed."""
    layer = randomised(TwoWayDispatcher(WIDTH, heads, 0.1, local))
    assert isinstance(layer, TwoWayDispatcher)
    x, p, real = (y.double() if y.is_floating_point() else y for y in given())
    h = layer.norm(x) * real.unsqueeze(-1)
    p2 = layer.interest_feed_forward(p + textbook_attention(layer.query1(p), layer.key1(h), layer.value1(h), heads, real))
    n = layer.interest_norm(p2)
    mixed = layer.output(textbook_attention(layer.query2(h), layer.key2(n), layer.value2(n), heads))
    expected = layer.feed_forward(x + mixed + local_twin(layer, h))

    found, carried = layer(x, p, real)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(carried, p2)
    torch.testing.assert_close(layer(x, p, real, last=True)[0], expected[:, -1:])


@heads_and_local
@torch.no_grad()
def test_the_causal_dispatcher_is_a_recomputation_for_every_prefix(heads: int, local: int) -> None:
    """At every t: aggregate the events up to t with the direct formula, then dispatch to event t alone."""
    layer = randomised(CausalDispatcher(WIDTH, heads, 0.1, local)).float()  # its running sums are float32 anyway
    assert isinstance(layer, CausalDispatcher)
    x, p, real = given()
    h = layer.norm(x) * real.unsqueeze(-1)
    local_part = local_twin(layer, h)
    expected = torch.zeros_like(x)
    for t in range(x.shape[1]):
        row, past = h[:, t : t + 1], h[:, : t + 1]
        mixed = torch.cat([_dispatched(layer, head, row, past, p, real[:, : t + 1]) for head in range(heads)], -1)
        beside = local_part[:, t : t + 1] if isinstance(local_part, Tensor) else 0.0
        expected[:, t : t + 1] = layer.feed_forward(x[:, t : t + 1] + layer.output(mixed) + beside)

    found, same = layer(x, p, real)
    torch.testing.assert_close(found[real], expected[real], atol=1e-4, rtol=1e-4)
    assert same is p
    torch.testing.assert_close(layer(x, p, real, last=True)[0], expected[:, -1:], atol=1e-4, rtol=1e-4)


def _dispatched(layer: CausalDispatcher, head: int, row: Tensor, past: Tensor, p: Tensor, real: Tensor) -> Tensor:
    """Head `head` of what event t reads, `[B, 1, d/H]`: slots P + M_t W_V1, M_t the softmax average of the past."""
    size = WIDTH // layer.heads
    own = slice(head * size, (head + 1) * size)
    logits = layer.query1(p)[..., own] @ layer.key1(past)[..., own].transpose(-1, -2) / math.sqrt(size)
    logits = (CAP * torch.tanh(logits / CAP)).masked_fill(~real[:, None, :], -torch.inf)
    weights = logits.softmax(-1).nan_to_num()
    aggregated = weights @ layer.value1(past)[..., own]  # [B, k, d/H]
    # W_K2 and W_V2 take head h of the aggregate to head h of the slot's key and value; P enters with its full width
    key = layer.key2(p)[..., own] + aggregated @ layer.key2.weight[own, own].T
    value = layer.value2(p)[..., own] + aggregated @ layer.value2.weight[own, own].T
    slots = (layer.query2(row)[..., own] @ key.transpose(-1, -2) / math.sqrt(size)).softmax(-1)
    return slots @ value


def causal_dispatch(h: Tensor, maps: FoldedMaps, real: Tensor | None) -> Tensor:
    """Return what every event of `h [B, N, d]` is given, `[B, N, d]`: the equations as they are written, with N x k x d numbers.

    Slot s holds a softmax average of the past, M_t[s] = Σ_{j<=t} e^{a_j[s]} h_j / Σ_{j<=t} e^{a_j[s]} with a_j[s] = asks[s] · h_j
    (softly bounded), event t weighs the slots by w_t = softmax_s(bias[s] · h_t + (query h_t) · M_t[s]) and is given
    Σ_s w_t[s] (given[s] + carried M_t[s])."""
    weights = dispatch.weigh_events(h, maps, real).transpose(-1, -2)  # e^a, [B, H, N, k]
    mass = weights.cumsum(2).clamp_min(dispatch.LEAST)
    memory = (weights.unsqueeze(-1) * h[:, None, :, None, :]).cumsum(2) / mass.unsqueeze(-1)  # M [B, H, N, k, d]
    asked = torch.einsum("hji,bni->bhnj", maps.query, h)
    slots = (torch.einsum("bhnj,bhnkj->bhnk", asked, memory) + torch.einsum("bhkd,bnd->bhnk", maps.bias, h)).softmax(-1)
    through = maps.values.unsqueeze(2) + torch.einsum("bhnkj,hje->bhnke", memory, maps.carried)
    return torch.einsum("bhnk,bhnke->bne", slots, through)


@settings(max_examples=30, deadline=None, derandomize=True)
@hypothesis.example(rows=2, length=1, k=4, heads=3, padded=False, seed=4)  # no choice among one event: gradients of 0
@hypothesis.given(
    rows=some.integers(1, 3),
    length=some.sampled_from([1, 2, 31, 32, 33, 64, 70, 97]),
    k=some.integers(1, 5),
    heads=some.integers(1, 3),
    padded=some.booleans(),
    seed=some.integers(0, 99),
)
def test_prefix_slots_equal_the_direct_sum(rows: int, length: int, k: int, heads: int, padded: bool, seed: int) -> None:
    """The operation, in float32, against N x k x d running sums in float64: numbers and gradients. Chunk borders do
    not show; the last row, new events one by one and what people are shown are the same operation."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    real = paddings(rows, length, seed) if padded else None
    h = drawn(rows, length, WIDTH) if real is None else drawn(rows, length, WIDTH) * real.unsqueeze(-1)
    each, everybody = (rows, heads, k, WIDTH), (heads, WIDTH, WIDTH)
    maps = FoldedMaps(*(0.5 * drawn(*shape) for shape in (each, everybody, each, each, everybody)))
    given, slow = ([y.to(kind).requires_grad_() for y in (h, *maps)] for kind in (torch.float32, torch.float64))
    found = dispatch.read_causally(given[0], FoldedMaps(*given[1:]), real)
    expected = causal_dispatch(slow[0], FoldedMaps(*slow[1:]), real)
    weight = drawn(*found.shape)
    gradients = (torch.autograd.grad((y * weight).sum(), of, retain_graph=True) for y, of in ((found, given), (expected, slow)))
    end = 1 + seed % length  # so many rows alone, as the last layer of a training has them
    alone = dispatch.read_causally(given[0], FoldedMaps(*given[1:]), real, end)
    of_end = (torch.autograd.grad((y * weight[:, -end:]).sum(), of) for y, of in ((alone, given), (expected[:, -end:], slow)))
    for fast, exact in ((found, expected), (alone, expected[:, -end:])):
        assert (fast - exact).abs().max() <= 1e-5 * exact.abs().max().clamp_min(1)
    for way_back in (list(zip(*gradients, strict=True)), list(zip(*of_end, strict=True))):
        most = max(float(exact.abs().max()) for _, exact in way_back)  # one that is 0 is a difference of such numbers
        for fast, exact in way_back:
            error, own = float((fast - exact).abs().max()), float(exact.abs().max())
            assert error <= 1e-5 * (max(own, 1) if own > 1e-9 else max(most, 1))

    with torch.no_grad():
        torch.testing.assert_close(dispatch.read_last(h, maps, real), found[:, -1:], atol=1e-4, rtol=1e-4)
        reading, slots = dispatch.trace_slots(h, maps, real)
        logits = CAP * torch.tanh(torch.einsum("bhkd,bnd->bhkn", slow[1], slow[0]) / CAP)
        logits = logits if real is None else logits.masked_fill(~real[:, None, None], -torch.inf)
        torch.testing.assert_close(reading, logits.softmax(-1).nan_to_num().float(), atol=1e-5, rtol=1e-5)
        given_last = torch.einsum("bhk,bhke->be", slots, maps.values) + torch.einsum(
            "bhk,bhkn,bnd,hde->be", slots, reading, h, maps.carried
        )
        torch.testing.assert_close(given_last, found[:, -1], atol=1e-4, rtol=1e-4)


def test_prefix_slots_are_the_same_in_chunks_of_any_size() -> None:
    """Up to 600 chunks, groups of groups of them: what a chunk inherits is the sum of all before it."""
    torch.manual_seed(3)
    x, queries = torch.randn(2, 600, WIDTH), torch.randn(2, 2, 600, WIDTH)
    weights, bias = soft_exponential(torch.randn(2, 2, 4, 600)), torch.randn(2, 2, 4, 600)
    whole = read_prefixes(x, weights, queries, bias, chunk=600)
    for chunk in (1, 2, 7, 37, 300):
        for found, expected in zip(read_prefixes(x, weights, queries, bias, chunk=chunk), whole, strict=True):
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("size", [CAP, -CAP])
def test_prefix_slots_stay_finite_before_the_first_event(size: float) -> None:
    """Padding, then events of the largest (or smallest) weight there can be: the padded rows and all gradients stay finite."""
    torch.manual_seed(4)
    logits = size * (1 - 0.1 * torch.rand(2, 1, 4, 40))
    logits.requires_grad_()
    real = torch.arange(40) >= 21
    given = torch.randn(2, 40, WIDTH), torch.randn(2, 1, 40, WIDTH), torch.zeros(2, 1, 4, 40)
    x, queries, bias = (y.requires_grad_() for y in given)
    found = read_prefixes(x * real[:, None], logits.exp() * real, queries, bias)
    sum(y.sum() for y in found).backward()
    for value in (*found, *(y.grad for y in (logits, x, queries, bias))):
        assert value is not None and value.isfinite().all()
    assert not found[1][:, :, ~real].any()  # a prefix without events reads zeros


def rounded(x: Tensor) -> Tensor:
    return x.bfloat16().float()


@heads_and_local
@torch.no_grad()
def test_the_causal_dispatcher_sums_in_float32_under_autocast(heads: int, local: int) -> None:
    """From the normalised events to the slots' mixture, for all rows and for the last; the same weights and events without
    autocast give the same numbers. What follows may be rounded."""
    layer = randomised(CausalDispatcher(WIDTH, heads, 0.1, local)).float()
    assert isinstance(layer, CausalDispatcher)
    x, p, real = given(length=512)
    h, p = rounded(layer.norm(x)), rounded(p)

    def parts() -> list[Tensor]:
        maps = layer.fold_maps(p)
        forms = (dispatch.weigh_events, dispatch.read_causally, dispatch.read_last)
        traced = dispatch.trace_slots(h, maps, real)
        return [*maps, *dispatch.sum_history(h, maps, real), *(form(h, maps, real) for form in forms), *traced]

    expected = parts()
    exact, last = layer(x, p, real)[0], layer(x, p, real, last=True)[0]
    with torch.autocast("cpu", torch.bfloat16):
        for value, wanted in zip(parts(), expected, strict=True):
            assert value.dtype == torch.float32 and torch.equal(value, wanted)
        for value, wanted in ((layer(x, p, real)[0][real], exact[real]), (layer(x, p, real, last=True)[0], last)):
            assert (value - wanted).abs().mean() < 0.01 * wanted.abs().mean()
        assert all(part.dtype == torch.float32 for part in layer.attention_weights(x, p, real))


@pytest.mark.parametrize("rows", [3, fused_ops.LEAST_ROWS])
@pytest.mark.parametrize("activation", ["none", "gelu"])
@pytest.mark.parametrize("with_bias", [True, False])
def test_a_product_in_one_pass_is_torchs_own(rows: int, activation: str, with_bias: bool) -> None:
    """The same numbers with and without autograd, and gradients where they are asked for; under autocast, torch's own."""
    torch.manual_seed(3)
    x, weight, bias = torch.randn(2, rows, 5), torch.randn(7, 5), torch.randn(7) if with_bias else None
    exact = functional.linear(x.double(), weight.double(), None if bias is None else bias.double())
    expected = (functional.gelu(exact) if activation == "gelu" else exact).float()
    torch.testing.assert_close(layers.linear(x, weight, bias, activation), expected, atol=1e-5, rtol=1e-5)
    for turned in (weight.requires_grad_(), weight.T.contiguous().T):  # weights that lie the other way
        with torch.no_grad():
            torch.testing.assert_close(layers.linear(x, turned, bias, activation), expected, atol=1e-5, rtol=1e-5)
    found = layers.linear(x, weight, bias, activation)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert torch.autograd.grad(found.sum(), weight)[0].abs().sum() > 0
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert layers.linear(x, weight, bias, activation).dtype == torch.bfloat16


def test_a_server_keeps_few_compiled_kernels() -> None:
    """oneDNN compiles one for every number of rows; 500 of them held 220 MB."""
    script = """
import torch
from elastic_core import machine
from elastic_core.core import fused_ops
machine.prepare_to_serve()
weight = torch.randn(64, 64)
multiply = lambda rows: fused_ops.linear_in_one_pass(torch.randn(rows, 64), weight, None, "none")
multiply(2_000)
before = machine.peak_memory()
for rows in range(1_000, 1_500):
    multiply(rows)
print((machine.peak_memory() - before) / 2**20)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert float(done.stdout) < 100


def test_adding_in_place_keeps_the_greater_precision_and_the_gradient() -> None:
    x, y = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3)
    for kind in (torch.float32, torch.bfloat16, torch.float64):
        made = (2 * x).to(kind)
        found = layers.add_in_place(made, y)
        assert found.dtype == torch.result_type(made, y) and (found is made) == (kind != torch.bfloat16)
        torch.testing.assert_close(torch.autograd.grad(found.sum(), x)[0], torch.full((4, 3), 2.0))


@torch.no_grad()
def test_weights_stay_finite_however_large_the_logits() -> None:
    weights = soft_exponential(torch.tensor([-1e6, -40.0, 0.0, 40.0, 1e6]))
    assert weights.isfinite().all() and (weights > 0).all() and weights[2] == 1


@torch.no_grad()
def test_the_local_convolution_reads_the_past_only() -> None:
    layer = LocalConvolution(WIDTH, 4)
    x = torch.randn(2, 9, WIDTH)
    expected = torch.stack([sum(layer.taps[i] * x[:, t - i] for i in range(min(4, t + 1))) for t in range(9)], 1)
    torch.testing.assert_close(layer(x), expected)
    torch.testing.assert_close(layer.forward_last(x), expected[:, -1:])
    torch.testing.assert_close(layer.forward_last(x[:, :2]), expected[:, 1:2])


def paddings(rows: int, length: int, seed: int) -> Tensor:
    """Masks of left-padded rows: the first full, the second empty, the rest of any length."""
    events = torch.randint(0, length + 1, (rows,), generator=torch.Generator().manual_seed(seed))
    events[:2] = torch.tensor([length, 0])[:rows]
    return torch.arange(length) >= length - events[:, None]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("experts", [0, 5])
@settings(max_examples=8, deadline=None, derandomize=True)
@hypothesis.given(
    rows=some.integers(2, 6), length=some.integers(1, 13), heads=some.sampled_from([1, 3]), seed=some.integers(0, 99)
)
def test_padded_attention_is_textbook_attention(
    fused: bool, causal: bool, experts: int, rows: int, length: int, heads: int, seed: int
) -> None:
    """Causal among the events or not, open to the experts, deaf to padding: states and gradients of a twin that is given a
    mask for every pair. An empty history is its last column alone."""
    layer = randomised(Attention(WIDTH, heads, 0.1, causal=causal, fused=fused))
    torch.manual_seed(seed)
    real, x = paddings(rows, length, seed), torch.randn(rows, length, WIDTH).double().requires_grad_()
    extra = torch.randn(rows, experts, WIDTH).double().requires_grad_() if experts else None
    wanted = torch.randn(rows, length, WIDTH).double()
    place = real.clone()
    place[:, -1] = True

    keys = x if extra is None else torch.cat([extra, x], 1)
    pairs = place[:, None, :] & (torch.ones(length, length).tril().bool() if causal else torch.tensor(True))
    pairs = torch.cat([torch.ones(rows, length, experts, dtype=torch.bool), pairs | torch.eye(length).bool()], 2)
    heads_out = []
    for q, k, v in zip(*(part.chunk(heads, -1) for part in (layer.query(x), layer.key(keys), layer.value(keys))), strict=True):
        heads_out.append((q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~pairs, -torch.inf).softmax(-1) @ v)
    expected = layer.output(torch.cat(heads_out, -1))

    found, of = layer(x, real, extra), [x, *layer.parameters()] if extra is None else [x, extra, *layer.parameters()]
    assert found.isfinite().all()
    torch.testing.assert_close(found[place], expected[place])
    torch.testing.assert_close(layer.forward_last(x, real, extra), expected[:, -1:])
    both = [torch.autograd.grad(((y - wanted)[place] ** 2).sum(), of, retain_graph=True) for y in (found, expected)]
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other)
    assert not both[0][0][~place].any()
    full = torch.ones_like(real)
    torch.testing.assert_close(layer(x, None, extra), layer(x, full, extra))
    torch.testing.assert_close(layer.forward_last(x, None, extra), layer.forward_last(x, full, extra))


class Largest(TorchDispatchMode):
    """Remembers how many numbers the largest tensor has that any operation made, gradients included."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for made in out if isinstance(out, tuple | list) else (out,):
            if isinstance(made, Tensor) and made.untyped_storage().nbytes() >= made.numel():  # not a view of fewer
                self.numbers = max(self.numbers, made.numel())
        return out


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("sasrec", {}), ("sasrec", {"conv_width": 4}), ("elastic", {}), ("elastic", {"dispatch": "none"}),
        ("elastic", {"bidirectional": True}), ("bert4rec", {}), ("linrec", {}),
        ("sasrec", {"fused": False}),
    ],
)  # fmt: skip
def test_no_model_makes_something_of_the_size_of_all_pairs(name: str, settings: dict[str, Any]) -> None:
    """Padded histories, a whole pass with its gradients and a last state; but for the one that stores them all. (In training
    with dropout torch's CPU kernel does.)"""
    model = models.build(ModelConfig.known[name](length=160, width=16, dropout=0.0, **settings), 30)
    items = torch.randint(1, 31, (6, 160)) * paddings(6, 160, 9)
    with Largest() as largest:
        model(Batch(items, items)).states.sum().backward()
        model.last_state(Batch(items, items))
    assert (largest.numbers < 6 * 160 * 160 / 2) == settings.get("fused", True)


@pytest.mark.parametrize("length", [16, 61, 64])
@torch.no_grad()
def test_windows_are_full_attention_while_the_history_fits(length: int) -> None:
    """Up to N = stride · window the linear-cost query network is the paper's."""
    torch.manual_seed(4)
    full, windowed = QueryNetwork(64, WIDTH, 2, stride=4, window=None), QueryNetwork(64, WIDTH, 2, stride=4, window=16)
    windowed.load_state_dict(full.state_dict())
    x, _, real = given(length=length)
    torch.testing.assert_close(windowed(x, real), full(x, real))
    narrow = QueryNetwork(64, WIDTH, 2, stride=4, window=2)
    narrow.load_state_dict(full.state_dict())
    assert not torch.allclose(narrow(x, real), full(x, real), atol=1e-3)


def skewed(rows: int) -> Tensor:
    """Queries `[rows, d]` that are nearly one-dimensional and far from the origin."""
    generator = torch.Generator().manual_seed(5)
    one, other = (torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=generator))[0] for _ in range(2))
    mixing = one * torch.logspace(0, -1, WIDTH)[:, None] @ other
    return (torch.randn(rows, WIDTH) @ mixing + 3).double()


def spread(x: Tensor) -> Tensor:
    """Covariance `[d, d]` over the rows, divided by their number."""
    return x.T.cov(correction=0)


@pytest.mark.parametrize("training", [True, False])
@torch.no_grad()
def test_whitening_decorrelates_what_scaling_could_not(training: bool) -> None:
    """A query that is nearly one-dimensional comes out with every direction alike; scaling leaves its directions unlike."""
    torch.manual_seed(5)
    layer, x = Whitening(WIDTH).double().train(training), skewed(2_000)
    layer.update_statistics(x, 1.0)
    torch.testing.assert_close(layer(x).mean(0), torch.zeros(WIDTH).double(), atol=1e-9, rtol=0)
    torch.testing.assert_close(spread(layer(x)), torch.eye(WIDTH).double(), atol=1e-9, rtol=0)
    assert torch.linalg.cond(spread(x / x.std(0))) > 10
    later = layer(skewed(20_000))
    assert later.mean(0).abs().max() < 0.2
    torch.testing.assert_close(spread(later), torch.eye(WIDTH).double(), atol=0.25, rtol=0)


@settings(max_examples=30, deadline=None, derandomize=True)
@hypothesis.given(some.lists(some.tuples(some.integers(2, 9), some.floats(0.01, 0.9)), min_size=1, max_size=6))
def test_statistics_that_move_are_those_of_the_weighted_queries(steps: list[tuple[int, float]]) -> None:
    """Mean and covariance after any steps are the moments of all queries together, each batch with the weight left to it."""
    torch.manual_seed(6)
    whitening = Whitening(WIDTH).double()
    seen, weights = torch.empty(0, WIDTH).double(), torch.empty(0).double()
    for i, (rows, rate) in enumerate([(7, 1.0), *steps]):
        queries = skewed(rows) + 2 * i
        seen = torch.cat([seen, queries])
        weights = torch.cat([weights * (1 - rate), torch.full((rows,), rate / rows).double()])
        whitening.update_statistics(queries, rate)
        mean, covariance = weights @ seen, seen.T.cov(correction=0, aweights=weights)
        torch.testing.assert_close(whitening.mean, mean)
        torch.testing.assert_close(whitening.covariance, covariance)


@torch.no_grad()
def test_the_floor_keeps_quiet_axes_quiet() -> None:
    x = torch.randn(500, 2).double() * torch.tensor([1.0, 1e-4]).double()
    layer = Whitening(2).double()
    layer.update_statistics(x, 1.0)
    first, second = spread(layer(x)).diagonal()
    assert float(first) == pytest.approx(1) and 1e-6 < float(second) < 1e-4


def test_one_query_teaches_nothing_and_what_is_not_a_number_is_refused() -> None:
    layer = Whitening(WIDTH).double()
    layer.update_statistics(skewed(50), 1.0)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    layer.update_statistics(skewed(1), 1.0)
    with pytest.raises(torch.linalg.LinAlgError):
        layer.update_statistics(skewed(3).index_fill(0, torch.tensor([1]), torch.nan), 1.0)
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())


# --- gated slots -----------------------------------------------------------------------------------------------------


def slow_slots(x: Tensor, steps: Tensor) -> Tensor:
    """The recurrence as it is written, event by event, of steps `[B, k, N]`: M `[B, N, k, d]`."""
    held, every = x.new_zeros(len(x), steps.shape[1], x.shape[2]), []
    for t in range(x.shape[1]):
        step = steps[:, :, t].unsqueeze(-1)
        held = (1 - step) * held + step * x[:, t].unsqueeze(1)
        every.append(held)
    return torch.stack(every, 1)


@settings(max_examples=30, deadline=None, derandomize=True)
@hypothesis.given(
    n=some.integers(1, 50), k=some.integers(1, 5), chunk=some.sampled_from([1, 4, 16, 48]),
    sharp=some.sampled_from([0.1, 1.0, 9.0, 99.0]), first=some.floats(0, 0.99),
)  # fmt: skip
def test_gated_slots_equal_their_recurrence(n: int, k: int, chunk: int, sharp: float, first: float) -> None:
    """Whatever the length and the chunk, from whichever chunk on; strengths near 0 and as near 1 as they get; gradients too."""
    generator = torch.Generator().manual_seed(n * 7 + k)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, steps = drawn(2, n, 6).requires_grad_(), (sharp * drawn(2, k, n)).sigmoid()
    steps = steps * (torch.arange(n) >= n // 3)  # padding in front
    steps = steps.clamp_max(1 - gated_slots.LEAST).detach().requires_grad_()
    queries, bias = drawn(2, n, 6), drawn(2, k, n)
    held = slow_slots(x, steps)
    slots = (torch.einsum("bnd,bnkd->bkn", queries, held) + bias).softmax(1)
    expected = torch.einsum("bkn,bnkd->bnd", slots, held)
    decay, events = gated_slots.factor_steps(steps, chunk), gated_slots.cut_events(x, chunk)
    found = gated_slots.read_slots(x, decay, queries, bias)
    skipped = int(first * n) // chunk
    rows = torch.cat([events, gated_slots.inherit_states(events, decay)], 2)[:, skipped:]
    later = gated_slots.hold_rows(rows, gated_slots.Decay(*(factor[:, skipped:] for factor in decay)), 1)
    torch.testing.assert_close(later[:, : n - skipped * chunk, :k], held[:, skipped * chunk :])
    assert not later[:, :, k].any()
    every = gated_slots.hold_rows(torch.cat([events, gated_slots.inherit_states(events, decay)], 2), decay)[:, :n]
    last = gated_slots.hold_last(x, gated_slots.held_events(steps))
    torch.testing.assert_close(every, held)
    torch.testing.assert_close(last, held[:, -1])
    torch.testing.assert_close(found, (slots, expected))
    torch.testing.assert_close(gated_slots.held_events(steps) @ x, held[:, -1])
    weight, weights = drawn(2, n, 6), drawn(*every.shape)
    for slow, fast in (
        ((expected * weight).sum(), (found[1] * weight).sum()),
        ((held * weights).sum(), (every * weights).sum()),
        ((held[:, -1] * weights[:, 0]).sum(), (last * weights[:, 0]).sum()),
    ):
        torch.testing.assert_close(*(torch.autograd.grad(y, (x, steps), retain_graph=True) for y in (fast, slow)))


@settings(max_examples=30, deadline=None, derandomize=True)
@hypothesis.given(n=some.integers(1, 300), sharp=some.sampled_from([0.0, 0.5, 3.0]), seed=some.integers(0, 99))
@torch.no_grad()
def test_what_every_slot_has_forgotten_changes_no_slot(n: int, sharp: float, seed: int) -> None:
    """Whoever reads all finds the same from that column on, for histories of any length in one batch."""
    generator = torch.Generator().manual_seed(seed)
    x, steps = torch.randn(3, n, 6, generator=generator), (sharp * torch.randn(3, 4, n, generator=generator) - 1).sigmoid()
    steps = steps * (torch.arange(n) >= torch.tensor([[0], [n // 2], [n]])).unsqueeze(1)
    column = int(torch.randint(n, (), generator=generator))
    first = gated_slots.first_held(gated_slots.held_events(steps[..., : column + 1].double()), 3)
    assert 0 <= first <= max(column - 3, 0)
    held = slow_slots(x.double(), steps.double())[:, column:]
    found = slow_slots(x[:, first:].double(), steps[..., first:].double())[:, column - first :]
    torch.testing.assert_close(found, held, atol=1e-6, rtol=0)


@torch.no_grad()
def test_a_pass_that_leaves_out_what_is_forgotten_equals_one_that_reads_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of long, short and padded histories in one batch."""
    torch.manual_seed(0)
    config = ElasticSlotsConfig(length=900, width=16, layers=2, dropout=0.0, n_subkeys=4, k=3, conv_width=4)
    model, items = models.build(config, 50).eval(), torch.randint(1, 51, (4, 900))
    assert isinstance(model, ElasticSlots)
    items[1, :500], items[2, :890] = 0, 0
    batch, found = Batch(items, items), model.retrieve(Batch(items, items))
    first_read = lambda: model._first_read(steps := model.slot_weights(batch, found), gated_slots.held_events(steps.double()))  # noqa: E731
    assert 300 < first_read() < 900
    skipping = model.last_state(batch)
    torch.testing.assert_close(skipping, model(batch).states[:, -1], atol=1e-5, rtol=1e-5)
    monkeypatch.setattr(gated_slots, "FORGOTTEN", 0.0)
    assert first_read() == 0
    torch.testing.assert_close(skipping, model.last_state(batch), atol=2e-6, rtol=2e-6)


@torch.no_grad()
def test_recent_shares_are_exponential_averages_over_real_events() -> None:
    weights, real = torch.rand(2, 3, 141), torch.arange(141) >= torch.tensor([[0], [13]])
    weights, lives = weights * real.unsqueeze(1), torch.tensor([1.0, 10.0])
    kept, counted, seen = 0.5 ** (1 / lives), torch.zeros(2, 3, 2), torch.zeros(2, 1, 2)
    found = gated_slots.recent_shares(weights, real, lives)
    for t in range(141):
        counted, seen = counted * kept + weights[:, :, t].unsqueeze(-1), seen * kept + real[:, t, None, None]
        torch.testing.assert_close(found[..., t], counted / seen.clamp_min(1e-12))
    torch.testing.assert_close(gated_slots.count_recent(weights, lives), counted)
