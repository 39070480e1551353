"""What happens inside a chunk of the causal dispatch (core/dispatch.py), in one kernel each way, for a GPU.

Chunks inherit sums over the chunks before them, which torch adds up; between these and what events are given, the products
inside a chunk, the slots' softmax and the mixture never leave the kernel: of N x d numbers it reads events and queries and
writes the mixture, of N x k numbers it reads three and writes one. On the way back all of it is worked out again.

Per chunk, with events X `[C, d]`, their weights E = e^a `[k, C]`, queries Q `[C, d]`, bias b, the mass of every prefix Z `[k, C]`
and the inherited sums S `[k, d]`:

    A = X Qᵀ, cut to j <= t      L = S Qᵀ + E A      w = softmax_s(b + L / Z)      u = w / Z
    I = Eᵀ u, cut to j <= t      mixed = uᵀ S + Iᵀ X

Written in Triton, which comes with torch's CUDA builds (elsewhere: `pip install triton`). In its interpreter (TRITON_INTERPRET=1)
it is the plain form to rounding, gradients too (tests/test_fused_slots.py). No GPU has run it yet, so nothing takes it unasked.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

LEAST_TILE = 16  # rows of a product: of fewer there is none
WARPS = 8


@triton.jit
def _tiles(n, k, d, BC: tl.constexpr, BK: tl.constexpr, BD: tl.constexpr):
    """Where numbers of a chunk lie, and which of a tile are there: by event and width, slot and event, slot and width."""
    t, a, f = tl.arange(0, BC), tl.arange(0, BK), tl.arange(0, BD)
    by_event, ev = t[:, None] * d + f[None, :], (t[:, None] < n) & (f[None, :] < d)
    by_slot, sl = a[:, None] * n + t[None, :], (a[:, None] < k) & (t[None, :] < n)
    by_sum, su = a[:, None] * d + f[None, :], (a[:, None] < k) & (f[None, :] < d)
    return by_event, ev, by_slot, sl, by_sum, su


@triton.jit
def _shares(
    x, e, q, b, s, z, p, heads, chunks, n, k, d, BC: tl.constexpr, BK: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """What a chunk is given, and all up to its shares: X, Q, E, Z, S, A, L, w, u, I."""
    by_event, ev, by_slot, sl, by_sum, su = _tiles(n, k, d, BC, BK, BD)
    row = (p // (heads * chunks)) * chunks + p % chunks  # of the events, which heads share
    X = tl.load(x + row * n * d + by_event, mask=ev, other=0.0)
    Q = tl.load(q + p * n * d + by_event, mask=ev, other=0.0)
    E = tl.load(e + p * k * n + by_slot, mask=sl, other=0.0)
    Z = tl.load(z + p * k * n + by_slot, mask=sl, other=1.0)
    S = tl.load(s + p * k * d + by_sum, mask=su, other=0.0)
    bias = tl.load(b + p * k * n + by_slot, mask=sl, other=0.0)
    A = _known(tl.dot(X, tl.trans(Q), input_precision="ieee"), BC)
    L = tl.dot(S, tl.trans(Q), input_precision="ieee") + tl.dot(E, A, input_precision="ieee")
    G = tl.where(tl.arange(0, BK)[:, None] < k, bias + L / Z, float("-inf"))
    W = tl.exp(G - tl.max(G, 0)[None, :])
    W = W / tl.sum(W, 0)[None, :]
    U = W / Z
    I = _known(tl.dot(tl.trans(E), U, input_precision="ieee"), BC)  # noqa: E741
    return X, Q, E, Z, S, A, L, W, U, I


@triton.jit
def _known(y, BC: tl.constexpr):
    """Events by events: cut to what each has behind it, j <= t."""
    t = tl.arange(0, BC)
    return tl.where(t[:, None] <= t[None, :], y, 0.0)


@triton.jit
def _forward(
    x, e, q, b, s, z, w, m, heads, chunks, n, k, d, BC: tl.constexpr, BK: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    p = tl.program_id(0)
    by_event, ev, by_slot, sl, _by_sum, _su = _tiles(n, k, d, BC, BK, BD)
    X, _Q, _E, _Z, S, _A, _L, W, U, I = _shares(x, e, q, b, s, z, p, heads, chunks, n, k, d, BC, BK, BD)  # noqa: E741
    M = tl.dot(tl.trans(U), S, input_precision="ieee") + tl.dot(tl.trans(I), X, input_precision="ieee")
    tl.store(w + p * k * n + by_slot, W, mask=sl)
    tl.store(m + p * n * d + by_event, M, mask=ev)


@triton.jit
def _backward(
    x, e, q, b, s, z, dw, dm, dx, de, dq, db, ds, dz, heads, chunks, n, k, d,
    BC: tl.constexpr, BK: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    p = tl.program_id(0)
    by_event, ev, by_slot, sl, by_sum, su = _tiles(n, k, d, BC, BK, BD)
    X, Q, E, Z, S, A, L, W, U, I = _shares(x, e, q, b, s, z, p, heads, chunks, n, k, d, BC, BK, BD)  # noqa: E741
    dW = tl.load(dw + p * k * n + by_slot, mask=sl, other=0.0)
    dM = tl.load(dm + p * n * d + by_event, mask=ev, other=0.0)
    # through the mixture: to the shares u, the events and the sums
    D = _known(tl.dot(X, tl.trans(dM), input_precision="ieee"), BC)
    dU = tl.dot(S, tl.trans(dM), input_precision="ieee") + tl.dot(E, D, input_precision="ieee")
    dE = tl.dot(U, tl.trans(D), input_precision="ieee")
    dX = tl.dot(I, dM, input_precision="ieee")
    dS = tl.dot(U, dM, input_precision="ieee")
    # through the softmax: to what slots are asked
    dW = dW + dU / Z
    dG = W * (dW - tl.sum(W * dW, 0)[None, :])
    dL = dG / Z
    dZ = -(dU * U + dL * L) / Z
    # through the questions
    dS += tl.dot(dL, Q, input_precision="ieee")
    dE += tl.dot(dL, tl.trans(A), input_precision="ieee")
    dA = _known(tl.dot(tl.trans(E), dL, input_precision="ieee"), BC)
    dX += tl.dot(dA, Q, input_precision="ieee")
    dQ = tl.dot(tl.trans(dL), S, input_precision="ieee") + tl.dot(tl.trans(dA), X, input_precision="ieee")
    tl.store(dx + p * n * d + by_event, dX, mask=ev)
    tl.store(dq + p * n * d + by_event, dQ, mask=ev)
    tl.store(de + p * k * n + by_slot, dE, mask=sl)
    tl.store(db + p * k * n + by_slot, dG, mask=sl)
    tl.store(dz + p * k * n + by_slot, dZ, mask=sl)
    tl.store(ds + p * k * d + by_sum, dS, mask=su)


class InsideChunks(torch.autograd.Function):
    """x `[B, 1, c, C, d]`, weights, bias and mass `[B, H, c, k, C]`, queries `[B, H, c, C, d]`, before `[B, H, c, k, d]` → the
    slots' softmax `[B, H, c, k, C]` and the mixture `[B, H, c, C, d]`, all in float32."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weights: Tensor, queries: Tensor, bias: Tensor, before: Tensor, mass: Tensor
    ) -> tuple[Tensor, Tensor]:
        given = tuple(y.contiguous() for y in (x, weights, queries, bias, before, mass))
        slots, mixed = torch.empty_like(given[1]), torch.empty_like(given[2])
        grid, sizes, tiles = _shape(weights, queries)
        _forward[grid](*given, slots, mixed, *sizes, **tiles, num_warps=WARPS)
        ctx.save_for_backward(*given)
        return slots, mixed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        x, weights, queries, bias, before, mass = ctx.saved_tensors
        d_slots, d_mixed = (y.contiguous() for y in gradients)
        dx, de, dq = (torch.empty_like(y) for y in (queries, weights, queries))  # what heads share is added up after it
        db, ds, dz = (torch.empty_like(y) for y in (bias, before, mass))
        grid, sizes, tiles = _shape(weights, queries)
        _backward[grid](
            x, weights, queries, bias, before, mass, d_slots, d_mixed, dx, de, dq, db, ds, dz, *sizes, **tiles, num_warps=WARPS
        )
        return dx.sum(1, keepdim=True), de, dq, db, ds, dz


def _shape(weights: Tensor, queries: Tensor) -> tuple[tuple[int], tuple[int, ...], dict[str, int]]:
    """Programs; heads, chunks, C, k and d; the tiles that hold them."""
    people, heads, chunks, k, n = weights.shape
    d = queries.shape[-1]
    tiles = {name: max(LEAST_TILE, triton.next_power_of_2(size)) for name, size in (("BC", n), ("BK", k), ("BD", d))}
    return (people * heads * chunks,), (heads, chunks, n, k, d), tiles
