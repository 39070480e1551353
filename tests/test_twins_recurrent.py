"""GRU4Rec, FPMC, LRURec and Mamba4Rec against their equations, event by event in float64; and scans against their recurrences."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor, nn

from elastic_core import models
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig
from elastic_core.models import Recommender
from elastic_core.peers.fpmc import FPMC
from elastic_core.peers.gru4rec import GRU4Rec
from elastic_core.peers.lrurec import FASTEST, SLOWEST, LinearRecurrence, LRURec, linear_scan, pole_powers
from elastic_core.peers.mamba4rec import CHUNK, HEADS, STATE, TAPS, Mamba4Rec, SelectiveState, read_last, scan_states
from elastic_core.peers.parts.recurrent import RecurrentBlock

N_ITEMS, LENGTH, WIDTH = 12, 13, 4
FORMS = [
    ("gru4rec", {}),
    ("gru4rec", {"layers": 3}),
    ("fpmc", {}),
    ("lrurec", {}),
    ("lrurec", {"layers": 3}),
    ("mamba4rec", {}),
    ("mamba4rec", {"layers": 3}),
]
every = pytest.mark.parametrize(("name", "shape"), FORMS, ids=str)


def made(name: str, shape: dict[str, object]) -> Recommender:
    """In float64, every weight far from its start, so that no bias or norm hides behind a zero or a one."""
    torch.manual_seed(0)
    config = ModelConfig.known[name](**{"length": LENGTH, "width": WIDTH, "layers": 2, "dropout": 0.3, **shape})
    model = models.build(config, N_ITEMS).double().eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            if not key.endswith(("decay", "angle", "gain")):
                p.add_(0.4 * torch.randn_like(p))
    return model


def histories(lengths: tuple[int, ...] = (LENGTH, 1, 0, 6), columns: int = LENGTH, seed: int = 1) -> Tensor:
    items = torch.randint(1, N_ITEMS + 1, (len(lengths), columns), generator=torch.Generator().manual_seed(seed))
    return items * (torch.arange(columns) >= columns - torch.tensor(lengths)[:, None])


def linear(weight: Tensor, x: list[float] | Tensor, bias: Tensor) -> Tensor:
    return (weight * torch.as_tensor(x, dtype=torch.float64)).sum(1) + bias


def normed(norm: nn.Module, x: Tensor) -> Tensor:
    assert isinstance(norm, nn.LayerNorm)
    centred = x - x.mean()
    return centred / ((centred**2).mean() + norm.eps).sqrt() * norm.weight + norm.bias


# --- the twins: one history without padding → the states after each of its events ---------------------------------------


def gru_twin(model: GRU4Rec, items: list[int]) -> list[Tensor]:
    """Gate by gate, event by event."""
    xs = [model.events.items.weight[item] / 0.02 for item in items]
    for unit in model.units:
        assert isinstance(unit, nn.GRU)
        (wr, wz, wc), (ur, uz, uc) = unit.weight_ih_l0.chunk(3), unit.weight_hh_l0.chunk(3)
        (ar, az, ac), (br, bz, bc) = unit.bias_ih_l0.chunk(3), unit.bias_hh_l0.chunk(3)
        h, hs = torch.zeros(model.hidden).double(), []
        for x in xs:
            reset = 1 / (1 + torch.exp(-(linear(wr, x, ar) + linear(ur, h, br))))
            keep = 1 / (1 + torch.exp(-(linear(wz, x, az) + linear(uz, h, bz))))
            candidate = torch.tanh(linear(wc, x, ac) + reset * linear(uc, h, bc))
            h = keep * h + (1 - keep) * candidate
            hs.append(h)
        xs = hs
    return [linear(model.projection.weight, h, model.projection.bias) for h in xs]


def fpmc_twin(model: FPMC, items: list[int]) -> list[Tensor]:
    """A state is what all items' scores are made of: the twin sums them factor by factor, for every item."""
    half = model.last.weight.shape[1]
    found = []
    for t in range(1, len(items) + 1):
        scores = []
        for item in range(N_ITEMS + 1):
            chain = sum(model.next.weight[item, f] * model.last.weight[items[t - 1], f] for f in range(half))
            taste = 0.0
            if model.seen_factors is not None:
                for f in range(half):
                    sums = sum(model.seen_factors.weight[one, f] for one in items[:t])
                    taste += model.next.weight[item, half + f] * sums / t**0.5
            scores.append(chain + taste)
        found.append(torch.stack([torch.as_tensor(score) for score in scores]))
    return found


def lru_twin(model: LRURec, items: list[int]) -> list[Tensor]:
    """h ← λh + γ(Bx + b), written with Python's complex numbers, channel by channel."""
    xs = [normed(model.norm, model.events.items.weight[item] * math.sqrt(WIDTH)) for item in items]
    for block in model.blocks:
        assert isinstance(block, RecurrentBlock) and isinstance(block.recurrence, LinearRecurrence)
        unit, out = block.recurrence, []
        channels = len(unit.decay)
        rates = [(math.exp(float(nu)), math.exp(float(theta))) for nu, theta in zip(unit.decay, unit.angle, strict=True)]
        poles = [math.exp(-nu) * complex(math.cos(theta), math.sin(theta)) for nu, theta in rates]
        h = [0j] * channels
        for x in xs:
            pairs = linear(unit.inner.weight, x, unit.inner.bias).tolist()
            given = [complex(*pairs[2 * c : 2 * c + 2]) * math.exp(float(unit.gain[c])) for c in range(channels)]
            h = [poles[c] * h[c] + given[c] for c in range(channels)]
            # Re(C h): the columns of `outer` are the real parts of C and minus its imaginary parts, in turn
            told = linear(unit.outer.weight, [part for one in h for part in (one.real, one.imag)], unit.outer.bias)
            out.append(after_recurrence(block, x, told))
        xs = out
    return xs


def after_recurrence(block: RecurrentBlock, x: Tensor, told: Tensor) -> Tensor:
    x = normed(block.norm, x + told)
    inner = linear(block.inner.weight, x, block.inner.bias)
    inner = 0.5 * inner * (1 + torch.erf(inner / math.sqrt(2)))  # gelu
    return normed(block.final_norm, x + linear(block.outer.weight, inner, block.outer.bias))


def silu(x: Tensor) -> Tensor:
    return x / (1 + torch.exp(-x))


def mamba_twin(model: Mamba4Rec, items: list[int]) -> list[Tensor]:
    """S ← aS + Δ v Bᵀ, number by number, event by event."""
    xs = [normed(model.norm, model.events.items.weight[item] * math.sqrt(WIDTH)) for item in items]
    for block in model.blocks:
        assert isinstance(block, RecurrentBlock) and isinstance(block.recurrence, SelectiveState)
        unit, out, told_before = block.recurrence, [], []
        size = 2 * WIDTH // HEADS
        state = torch.zeros(HEADS, size, STATE).double()
        for x in xs:
            z, u, delta = (unit.inner.weight @ x).split([2 * WIDTH, 2 * WIDTH + 2 * STATE, HEADS])
            told_before.append(u)
            u = unit.taps_bias + sum(unit.taps[TAPS - 1 - i] * told_before[-1 - i] for i in range(min(TAPS, len(told_before))))
            v, keys, queries = silu(u).split([2 * WIDTH, STATE, STATE])
            y = torch.zeros(2 * WIDTH).double()
            for head in range(HEADS):
                step = math.log1p(math.exp(float(delta[head] + unit.step[head])))
                fades = math.exp(-math.exp(float(unit.decay[head])) * step)
                for p in range(size):
                    number = float(v[head * size + p])
                    for n in range(STATE):
                        state[head, p, n] = fades * state[head, p, n] + step * number * keys[n]
                    y[head * size + p] = state[head, p] @ queries + unit.skip[head] * number
            y = y * silu(z)
            y = y / ((y**2).mean() + 1e-5).sqrt() * unit.norm.weight
            out.append(after_recurrence(block, x, unit.outer.weight @ y))
        xs = out
    return xs


def scored(model: Recommender, items: list[int]) -> list[Tensor]:
    """Scores of all items after each of the events, `[n_items + 1]`."""
    if isinstance(model, FPMC):
        return fpmc_twin(model, items)
    if isinstance(model, GRU4Rec):
        return [linear(model.events.items.weight, h, torch.zeros(1)) for h in gru_twin(model, items)]
    if isinstance(model, Mamba4Rec):
        return [linear(model.events.items.weight, x, torch.zeros(1)) for x in mamba_twin(model, items)]
    assert isinstance(model, LRURec)
    return [linear(model.events.items.weight, x, model.bias) for x in lru_twin(model, items)]


@every
@torch.no_grad()
def test_every_state_is_the_one_written_out(name: str, shape: dict[str, object]) -> None:
    """Full, short, long and empty histories in one padded batch, at every position; the last state; an unpadded batch."""
    model, items = made(name, shape), histories()
    states, last, scorer = model(Batch(items, items)).states, model.last_state(Batch(items, items)), model.scorer()
    assert states.isfinite().all() and scorer(last).isfinite().all()
    for row, history in enumerate(items):
        events = history[history > 0].tolist()
        if not events:
            continue
        expected = torch.stack(scored(model, events))
        torch.testing.assert_close(scorer(states[row, -len(events) :])[:, 1:], expected[:, 1:], atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(scorer(last[row])[1:], expected[-1, 1:], atol=1e-9, rtol=1e-9)
    full = items[:1]
    torch.testing.assert_close(model(Batch(full, full, padded=False)).states, states[:1], atol=1e-9, rtol=1e-9)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(n=some.one_of(some.sampled_from([1, CHUNK - 1, CHUNK, CHUNK + 1]), some.integers(1, 100)), seed=some.integers(0, 99))
def test_states_in_chunks_are_those_of_event_after_event(n: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    v, keys, queries, steps, state = drawn(2, n, 2, 3), drawn(2, n, 4), drawn(2, n, 4), drawn(2, n, 2).exp(), drawn(2, 2, 3, 4)
    fading = -steps * torch.tensor([0.02, 1.0])
    y, after = scan_states(v, keys, queries, steps, fading, state)
    for t in range(n):
        written = (steps[:, t, :, None] * v[:, t])[..., None] * keys[:, t, None, None]
        state = fading[:, t].exp()[..., None, None] * state + written
        torch.testing.assert_close(y[:, t], (state * queries[:, t, None, None]).sum(-1))
    torch.testing.assert_close(after, state)
    last, after = read_last(v, keys, queries[:, -1], steps, fading, torch.zeros_like(state))
    expected, state = scan_states(v, keys, queries, steps, fading, torch.zeros_like(state))
    torch.testing.assert_close(last, expected[:, -1])
    torch.testing.assert_close(after, state)


# --- the scan ---------------------------------------------------------------------------------------------------------


def stepped(u: Tensor, poles: Tensor) -> Tensor:
    h, every_h = torch.zeros_like(u[:, 0]), []
    for t in range(u.shape[1]):
        h = poles * h + u[:, t]
        every_h.append(h)
    return torch.stack(every_h, 1)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(n=some.one_of(some.sampled_from([1, 2, 3, 4, 5, 8, 9]), some.integers(1, 70)), seed=some.integers(0, 99))
def test_a_scan_equals_its_recurrence_and_so_do_its_gradients(n: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    u, weight = (torch.randn(2, n, 5, dtype=torch.complex128, generator=generator) for _ in range(2))
    sizes = torch.tensor([0.0, 0.3, 0.8, 0.99, 0.9999], dtype=torch.float64)
    poles = torch.polar(sizes, 7 * torch.rand(5, dtype=torch.float64, generator=generator))
    u.requires_grad_()
    poles.requires_grad_()
    fast, slow = linear_scan(u, poles), stepped(u, poles)
    torch.testing.assert_close(fast, slow)
    gradients = [torch.autograd.grad((h * weight).sum().real, (u, poles)) for h in (fast, slow)]
    torch.testing.assert_close(*gradients)
    single = linear_scan(u.detach().to(torch.complex64), poles.detach().to(torch.complex64))
    torch.testing.assert_close(single.to(torch.complex128), slow.detach(), atol=1e-5 * max(1.0, n**0.5), rtol=1e-5)
    torch.testing.assert_close(pole_powers(poles, n), torch.stack([poles**j for j in range(1, n + 1)]))


def test_a_recurrence_begins_on_its_ring_and_decay_leaves_it_there() -> None:
    """|λ| as published, γ = √(1 − |λ|²); and no weight decay on what says so."""
    layer = LinearRecurrence(WIDTH, 4_000)
    sizes = layer.poles().abs().detach()
    assert FASTEST - 1e-5 <= float(sizes.min()) < 0.81 and 0.98 < float(sizes.max()) <= SLOWEST + 1e-5
    torch.testing.assert_close(layer.gain.exp().detach(), (1 - sizes**2).sqrt(), atol=1e-4, rtol=1e-3)
    angles = layer.angle.exp().detach()
    assert 0 <= float(angles.min()) < 0.1 and 6.1 < float(angles.max()) <= 2 * math.pi + 1e-5
    model = made("lrurec", {})
    kept = {id(p) for group in model.parameter_groups() if group.get("weight_decay") == 0.0 for p in group["params"]}
    assert (
        kept == {id(p) for key, p in model.named_parameters() if key.endswith((".decay", ".angle", ".gain"))} and len(kept) == 6
    )


def test_a_scan_makes_nothing_of_the_size_of_all_pairs() -> None:
    """And keeps the states alone for its gradient."""
    n, channels = 300, 2
    u = torch.randn(1, n, channels, dtype=torch.complex64, requires_grad=True)
    poles = torch.full((channels,), 0.9 + 0.1j, requires_grad=True)
    sizes: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: (sizes.append(x.untyped_storage().nbytes()), x)[1], lambda x: x):
        linear_scan(u, poles).real.sum().backward()
    assert sum(sizes) <= 8 * (n + 1) * channels + 64
