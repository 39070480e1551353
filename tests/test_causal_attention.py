"""Causal attention with dropout on a CPU against attention written out: the same noise, the same numbers, the same gradients."""

from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from elastic_core.core import causal_attention as stretches
from elastic_core.core.fused_ops import dropout_factors
from elastic_core.core.layers import eager_attention, fused_attention


@settings(max_examples=40)
@given(
    some.integers(1, 4), some.sampled_from([1, 2]), some.integers(1, 23), some.sampled_from([1, 5, 8, 64]),
    some.sampled_from([1, 60, 10_000]), some.sampled_from([0.0, 0.4]), some.integers(0, 10**6),
)  # fmt: skip
def test_in_stretches_it_is_the_attention_written_out(
    people: int, heads: int, n: int, rows: int, cache: int, p: float, seed: int
) -> None:
    """The twin drops what the stretches dropped, told by their noise; what it does not tell are weights of later events."""
    torch.manual_seed(seed)
    inputs, out = [torch.randn(people, heads, n, 4) for _ in range(3)], torch.randn(people, heads, n, 4)
    dropped = torch.zeros(people * heads, n, n)
    places: list[tuple[slice, slice, slice]] = []

    def listed(q: torch.Tensor) -> list[tuple[slice, slice, slice]]:
        places[:] = stretches_of(q)
        return places

    def told(w: torch.Tensor, p: float) -> torch.Tensor | None:
        found = dropout_factors(w, p)
        people_, rows_, before = places[told.calls]  # type: ignore[attr-defined]
        dropped[people_, rows_, before] = 1.0 if found is None else found
        told.calls += 1  # type: ignore[attr-defined]
        return found

    told.calls, stretches_of = 0, stretches._chunk_ranges  # type: ignore[attr-defined]
    found = []
    with (
        mock.patch.multiple(stretches, ROWS=rows, CACHE=cache, _chunk_ranges=listed, dropout_factors=told),
        mock.patch("elastic_core.core.layers.dropout", lambda w, p: w * dropped.view_as(w)),
    ):
        for work in (
            lambda q, k, v: stretches.causal_attention(q, k, v, p),
            lambda q, k, v: eager_attention(q, k, v, None, p, True),
        ):
            q, k, v = (x.clone().requires_grad_() for x in inputs)
            read = work(q, k, v)
            found.append([read.detach(), *torch.autograd.grad(read, (q, k, v), out)])
    assert told.calls == len(places)  # type: ignore[attr-defined]
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_as_many_weights_are_dropped_as_asked_and_none_of_them_twice() -> None:
    torch.manual_seed(0)
    q = torch.zeros(40, 1, 150, 150)
    read = fused_attention(
        q, q, torch.eye(150).expand(40, 1, -1, -1), None, 0.3, True
    )  # identity values: what is read are the weights
    early = torch.ones(150, 150).tril().bool()
    assert not read[..., ~early].any() and float((read[..., early] == 0).float().mean()) == pytest.approx(0.3, abs=0.005)
    kept = (read * torch.arange(1, 151).unsqueeze(1))[..., early]
    torch.testing.assert_close(kept[kept > 0], torch.full_like(kept[kept > 0], 1 / 0.7), atol=1e-3, rtol=0)
    assert float(read.sum(-1).mean()) == pytest.approx(1, abs=0.01)
