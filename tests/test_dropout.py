"""Noise by sixteen bits: as much of it as asked for, the same for the same seed, and nothing but noise."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from elastic_core.core.fused_ops import LEVELS
from elastic_core.core.layers import Dropout, dropout, eager_attention, fused_attention


@settings(max_examples=40, deadline=None)
@given(
    some.lists(some.integers(0, 7), min_size=1, max_size=3), some.floats(0.0, 1.0), some.integers(0, 2**31),
    some.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)  # fmt: skip
def test_every_element_is_dropped_or_scaled_and_so_is_its_gradient(
    shape: list[int], p: float, seed: int, dtype: torch.dtype
) -> None:
    x = torch.ones(shape, dtype=dtype, requires_grad=True)
    torch.manual_seed(seed)
    y = dropout(x, p)
    y.sum().backward()
    torch.manual_seed(seed)
    assert torch.equal(dropout(x, p), y) and torch.equal(y, x.grad)
    dropped = round(p * LEVELS)
    scale = torch.tensor(LEVELS / max(LEVELS - dropped, 1), dtype=dtype)
    assert ((y == 0) | (y == scale)).all() and y.dtype == dtype
    assert dropped not in (0, LEVELS) or torch.equal(y, x * (dropped == 0))


@pytest.mark.parametrize("p", [1 / LEVELS * 40, 0.2, 0.5, 0.97])
def test_as_many_are_dropped_as_asked_wherever_they_lie(p: float) -> None:
    """Over a million elements, in each of the four places that share a draw, and no element follows from its neighbour."""
    torch.manual_seed(0)
    gone = (dropout(torch.ones(1 << 20), p) == 0).double()
    sd = (p * (1 - p)) ** 0.5
    assert abs(gone.mean() - p) < 5 * sd / 2**10
    for place in range(4):
        assert abs(gone[place::4].mean() - p) < 5 * sd / 2**9
    for apart in (1, 2, 4):
        together = (gone[apart:] * gone[:-apart]).mean()
        assert abs(together - p * p) < 5 * (p * p * (1 - p * p) + 1e-9) ** 0.5 / 2**9


def test_it_rests_while_serving_and_refuses_what_is_no_probability() -> None:
    x = torch.randn(5)
    assert Dropout(0.4).eval()(x) is x and Dropout(0.0)(x) is x
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="p must lie"):
            dropout(x, p)


def test_attention_drops_weights_and_keeps_their_mean() -> None:
    """Where all events are read; of the causal form: test_causal_attention.py."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind()
    still = fused_attention(q, k, v, None, 0.0, False)
    noisy = torch.stack([fused_attention(q, k, v, None, 0.3, False) for _ in range(4_000)])
    error = noisy.std(0) / 4_000**0.5
    assert (noisy.std(0) > 0.01).any() and ((noisy.mean(0) - still).abs() < 5 * error + 1e-6).all()
    torch.testing.assert_close(eager_attention(q, k, v, None, 0.0, False), still, atol=1e-6, rtol=1e-5)
