"""The fused kernel of the causal dispatch, in Triton's interpreter: what it gives and learns is what the plain form does."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from elastic_core.core import dispatch
from elastic_core.core.dispatch import CAP, Maps, causal_dispatch, read_prefixes, weigh

pytest.importorskip("triton", reason="Triton is not installed (pip install -e .[kernels])")


def both(given: tuple[Tensor, ...], **how: Any) -> list[list[Tensor]]:
    """What the plain form and the kernel give, and the gradients of everything that was given."""
    found = []
    for way in ("plain", "fused"):
        own = [x.clone().requires_grad_() for x in given]
        slots, mixed = read_prefixes(own[0], weigh(own[1]), *own[2:], way=way, **how)
        torch.manual_seed(1)
        loss = (slots * torch.randn_like(slots)).sum() + (mixed * torch.randn_like(mixed)).sum()
        found.append([slots, mixed, *torch.autograd.grad(loss, own)])
    return found


@settings(max_examples=12)
@given(
    some.integers(1, 2), some.integers(1, 2), some.integers(1, 40), some.integers(1, 17), some.sampled_from([1, 4, 8, 20]),
    some.integers(0, 17), some.integers(0, 10**6),
)  # fmt: skip
def test_it_is_the_plain_form_for_any_shape(people: int, heads: int, n: int, k: int, d: int, chunk: int, seed: int) -> None:
    torch.manual_seed(seed)
    x, logits = torch.randn(people, n, d), torch.randn(people, heads, k, n)
    queries, bias = torch.randn(people, heads, n, d), torch.randn(people, heads, k, n)
    plain, fused = both((x, logits, queries, bias), chunk=chunk)
    for one, other in zip(plain, fused, strict=True):
        torch.testing.assert_close(other, one, atol=1e-4, rtol=1e-4)


def test_with_padding_the_largest_logits_and_an_earlier_part() -> None:
    """As a layer asks it: padding, logits at their bound, and only the last rows."""
    torch.manual_seed(0)
    people, n, k, d = 3, 45, 4, 8
    real = torch.arange(n) >= torch.tensor([0, 20, 44])[:, None]
    h, (asks, bias, handed) = torch.randn(people, n, d) * real.unsqueeze(-1), torch.randn(3, people, 1, k, d)
    maps = Maps(asks * CAP, torch.randn(1, d, d), bias, handed, torch.randn(1, d, d))
    for last in (0, 20):
        plain, fused = (dispatch.prefixes(h, maps, real, last, way) for way in ("plain", "fused"))
        direct = causal_dispatch(h, maps, real)[:, -last:]
        torch.testing.assert_close(fused, plain, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(fused[real[:, -fused.shape[1] :]], direct[real[:, -fused.shape[1] :]], atol=2e-3, rtol=2e-3)


def test_what_lies_ahead_is_not_read() -> None:
    torch.manual_seed(0)
    x, logits, queries, bias = torch.randn(1, 40, 8), torch.randn(1, 1, 3, 40), torch.randn(1, 1, 40, 8), torch.randn(1, 1, 3, 40)
    later = x.clone()
    later[:, 25:] += 100
    found = [read_prefixes(y, weigh(logits), queries, bias, way="fused")[1][:, :, :25] for y in (x, later)]
    assert torch.equal(*found)
