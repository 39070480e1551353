"""LinRec, HSTU and eSASRec against slow twins: one history at a time, position by position, in float64, by the formulas."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from elastic_core import models
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig
from elastic_core.errors import InputError
from elastic_core.peers.hstu import HSTU
from elastic_core.peers.linrec import LinearAttention, LinRecConfig, read_past

N_ITEMS, LENGTH, WIDTH = 30, 24, 12
LENGTHS = (24, 1, 2, 13)


def built(name: str, **settings: Any) -> Any:
    """A model in float64 with every parameter far from its start, so that no bias or scale hides behind a zero or a one."""
    shape = {"length": LENGTH, "width": WIDTH, "layers": 2, "dropout": 0.1, **settings}
    torch.manual_seed(3)  # of hashes and centroids
    model = models.build(ModelConfig.known[name](**shape), N_ITEMS)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.4 + (1.0 if p.shape == (WIDTH,) else 0.0))
    return model.double().eval()


def people(lengths: tuple[int, ...] = LENGTHS, columns: int = LENGTH) -> tuple[Tensor, Tensor]:
    """Left-padded items and times, minutes to weeks apart, some at once."""
    generator = torch.Generator().manual_seed(1)
    there = torch.arange(columns) >= columns - torch.tensor(lengths)[:, None]
    items = torch.randint(1, N_ITEMS + 1, there.shape, generator=generator)
    steps = (torch.rand(there.shape, generator=generator) * 15).exp().long() * torch.randint(
        0, 3, there.shape, generator=generator
    )
    return items * there, (900_000_000 + steps.cumsum(1)) * there


def inputs(model: Any, items: list[int]) -> list[Tensor]:
    """Item plus position, counted back from the last event."""
    table, positions = model.events.items.weight, model.events.positions
    return [table[item] * math.sqrt(WIDTH) + positions[LENGTH - len(items) + t] for t, item in enumerate(items)]


def normed(x: Tensor, layer: Any = None, epsilon: float = 1e-5) -> Tensor:
    x = (x - x.mean()) / (x.var(correction=0) + epsilon).sqrt()
    return x if layer is None else layer.weight * x + layer.bias


def silu(x: Tensor) -> Tensor:
    return x / (1 + (-x).exp())


def unit(x: Tensor) -> Tensor:
    x = torch.where(x > 0, x, x.exp() - 1)  # elu
    return x / x.square().sum().sqrt()


def dense(layer: Any, x: Tensor) -> Tensor:
    return layer.weight @ x + (0 if layer.bias is None else layer.bias)


def attend(block: Any, x: list[Tensor], heads: int, read: Callable[[Tensor, list[Tensor], list[Tensor]], Tensor]) -> list[Tensor]:
    """What a block's attention gives every position: `read` says what one head's query has of keys and values so far."""
    a, h, e = block.attention, [normed(row, block.norm) for row in x], WIDTH // heads
    q, k, v = ([dense(f, row).split(e) for row in h] for f in (a.query, a.key, a.value))  # [position][head]
    attended = []
    for t in range(len(x)):
        of_heads = [read(q[t][s], [row[s] for row in k[: t + 1]], [row[s] for row in v[: t + 1]]) for s in range(heads)]
        attended.append(dense(a.output, torch.cat(of_heads)))
    return attended


def read_linearly(query: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    total = torch.zeros_like(query)
    for key, value in zip(keys, values, strict=True):
        total += (unit(query) @ unit(key)) * value
    return total / math.sqrt(len(query))


def read_by_softmax(query: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    fits = [math.exp(float(query @ key) / math.sqrt(len(query))) for key in keys]
    total = torch.zeros_like(query)
    for fit, value in zip(fits, values, strict=True):
        total += fit / sum(fits) * value
    return total


def linrec_twin(model: Any, items: list[int]) -> Tensor:
    """States `[n, d]` of one history."""
    x = inputs(model, items)
    for block in model.blocks:
        f, after = block.feed_forward, []
        for before, attended in zip(x, attend(block, x, model.config.heads, read_linearly), strict=True):
            y = before + attended
            after.append(y + dense(f.outer, functional.gelu(dense(f.inner, normed(y, f.norm)))))
        x = after
    return torch.stack([normed(row, model.norm) for row in x])


def hstu_twin(model: Any, items: list[int], times: list[int]) -> Tensor:
    """States `[n, d]` of one history."""
    x, heads = inputs(model, items), model.config.heads
    e = WIDTH // heads
    for layer in model.units:
        z = [normed(row, epsilon=1e-6) for row in x]
        u, q = zip(*(silu(layer.uq_projection.weight @ row).split(WIDTH) for row in z), strict=True)
        v, k = zip(*(silu(layer.vk_projection.weight @ row).split(WIDTH) for row in z), strict=True)
        after = []
        for i in range(len(x)):
            read = torch.zeros(WIDTH).double()
            for j in range(i + 1):
                bias = layer.distance[i - j]
                if layer.gap is not None:
                    bias = bias + layer.gap[min(int(math.log(max(times[i] - times[j], 1)) / 0.301), 128)]
                for own in (slice(s * e, (s + 1) * e) for s in range(heads)):
                    read[own] += silu(q[i][own] @ k[j][own] + bias) / LENGTH * v[j][own]
            after.append(x[i] + dense(layer.output, u[i] * normed(read, epsilon=1e-6)))
        x = after
    return torch.stack([normed(row, model.norm) for row in x])


def esasrec_twin(model: Any, items: list[int]) -> Tensor:
    """States `[n, d]` of one history."""
    x = inputs(model, items)
    for block in model.blocks:
        f, after = block.feed_forward, []
        for before, attended in zip(x, attend(block, x, model.config.heads, read_by_softmax), strict=True):
            y = before + torch.sigmoid(dense(block.attention_gate, before)) * attended
            z = normed(y, block.feed_forward_norm)
            worked_out = dense(f.outer, silu(dense(f.gate, z)) * dense(f.inner, z))
            after.append(y + torch.sigmoid(dense(block.feed_forward_gate, y)) * worked_out)
        x = after
    return torch.stack([normed(row, model.norm) for row in x])


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize(
    ("name", "more"),
    [("linrec", {}), ("hstu", {}), ("hstu", {"time_bias": "previous"}), ("esasrec", {})],
    ids=str,
)
@torch.no_grad()
def test_a_model_is_its_twin(name: str, more: dict[str, Any], heads: int) -> None:
    """Every state of every history, and the last one by its shortcut; padded, unpadded and in fewer columns."""
    model = built(name, heads=heads, **more)
    items, times = people()
    batch = Batch(items, items, times=times)
    states, last = model(batch).states, model.last_state(batch)
    for row, n in enumerate(LENGTHS):
        own, when = items[row, -n:].tolist(), times[row, -n:].tolist()
        twin = {"linrec": linrec_twin, "esasrec": esasrec_twin}.get(name)
        expected = hstu_twin(model, own, when) if twin is None else twin(model, own)
        torch.testing.assert_close(states[row, -n:], expected)
        torch.testing.assert_close(last[row], expected[-1])
        alone = Batch(items[row : row + 1, -n:], items[row : row + 1, -n:], times=times[row : row + 1, -n:], padded=False)
        torch.testing.assert_close(model(alone).states[0], expected)


# --- LinRec ----------------------------------------------------------------------------------------------------------


def direct(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.transpose(-1, -2)).tril() @ v


def recurrent(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    state, out = torch.zeros(*q.shape[:2], q.shape[-1], v.shape[-1], dtype=q.dtype), []
    for t in range(q.shape[2]):
        state = state + k[:, :, t, :, None] * v[:, :, t, None, :]
        out.append((q[:, :, t, None, :] @ state)[:, :, 0])
    return torch.stack(out, 2)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(n=some.integers(1, 70), chunk=some.integers(1, 80), padding=some.integers(0, 70), heads=some.integers(1, 2))
def test_chunks_change_nothing(n: int, chunk: int, padding: int, heads: int) -> None:
    """What is read and all gradients: in chunks, directly with N x N products, and one event at a time."""
    generator = torch.Generator().manual_seed(n)
    q, k, v, out = torch.randn(4, 2, heads, n, 5, generator=generator)
    q, k = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)
    k[1, :, : min(padding, n)] = 0
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    found = read_past(q, k, v, chunk)
    gradients = torch.autograd.grad(found, (q, k, v), out)
    for form in (direct, recurrent):
        exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
        expected = form(*exact)
        torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
        for x, y in zip(gradients, torch.autograd.grad(expected, exact, out.double()), strict=True):
            torch.testing.assert_close(x.double(), y, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_at_the_end_it_reads_what_the_published_formula_reads() -> None:
    """Which reads the whole history from everywhere; before the end, the causal form does not."""
    causal = LinearAttention(LinRecConfig(width=WIDTH)).double()
    x = torch.randn(3, LENGTH, WIDTH).double()
    q, k = (functional.elu(f(x)) for f in (causal.query, causal.key))
    q, k = q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True)
    published = causal.output(q @ (k.mT @ causal.value(x)) / math.sqrt(WIDTH))
    torch.testing.assert_close(causal(x)[:, -1], published[:, -1])
    assert not torch.allclose(causal(x)[:, :-1], published[:, :-1], atol=1e-3)


class Largest(TorchDispatchMode):
    """The most numbers that any tensor held."""

    most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        sizes = [x.numel() for x in (found if isinstance(found, tuple | list) else [found]) if isinstance(x, Tensor)]
        self.most = max(self.most, *sizes, 0)
        return found


def test_nothing_grows_with_the_square_of_a_length() -> None:
    """Forward and backward hold no more than N x 64 numbers at a time; N x N and N x d x d are sixteen times as many."""
    attention, x = LinearAttention(LinRecConfig(width=32)), torch.randn(1, 1_024, 32)
    with Largest() as seen:
        attention(x).sum().backward()
    assert 1_024 * 32 <= seen.most <= 1_024 * 64


def test_sums_are_float32_under_autocast() -> None:
    """3,000 equal events: a sum in bfloat16 stops at 256."""
    with torch.autocast("cpu", torch.bfloat16):
        q = torch.ones(1, 1, 3_000, 1, dtype=torch.bfloat16)
        found = read_past(q, q, q)
    assert found.dtype == torch.float32 and found[0, 0, -1, 0] == 3_000


# --- HSTU ------------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_times_count_as_differences_and_are_needed_to_learn_only() -> None:
    model = built("hstu", time_bias="previous")
    assert isinstance(model, HSTU)
    items, times = people()
    plain = Batch(items, items)
    timed, shifted = (model(Batch(items, items, times=times + by)).states for by in (0, 86_400))
    torch.testing.assert_close(shifted[items > 0], timed[items > 0])
    assert not torch.allclose(model(plain).states[items > 0], timed[items > 0], atol=1e-3)
    for unit_ in model.units:
        unit_.gap.zero_()
    torch.testing.assert_close(model(plain).states, model(Batch(items, items, times=times)).states)
    with pytest.raises(InputError, match="times of events"):
        model.train()(plain)
