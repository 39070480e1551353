"""One pass over all prefixes of the causal dispatch (core/dispatch.py) with its way back written out, for a CPU.

The same operation as torch differentiates it, in fewer passes: a gradient that has several sources is added to where it is, by
the product itself, and not made and added up afterwards; and sums over chunks go chunk by chunk, because torch's own sum along
anything but the last dimension takes ten times as long on a CPU. What is kept for the way back has d or k numbers an event;
events by events (A, I) is worked out again.

Per chunk, with events X `[C, d]`, their weights E = e^a `[k, C]`, queries Q `[C, d]`, bias b, the mass of every prefix Z `[k, C]`
and the sums S `[k, d]` of what came before:

    A = X Qᵀ, cut to j <= t      L = S Qᵀ + E A      w = softmax_s(b + L / Z)      u = w / Z
    I = Eᵀ u, cut to j <= t      mixed = uᵀ S + Iᵀ X

and back, with D = X dmixedᵀ, cut to j <= t:

    du = S dmixedᵀ + E D         dg = w (dw + du / Z - Σ_s w (dw + du / Z))      dL = dg / Z      dA = Eᵀ dL, cut to j <= t
    dX = I dmixed + dA Q + Eᵀ dR      dE = u Dᵀ + dL Aᵀ + dR Xᵀ + (dZ of all later events)      dQ = dLᵀ S + dAᵀ X
    dS = u dmixed + dL Q         dR = dS of all later chunks      dZ = -(du u + dL L) / Z      db = dg
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elastic_core.core import dispatch
from elastic_core.core.layers import without_autocast


class ReadChunks(torch.autograd.Function):
    """x `[B, 1, c, C, d]`, weights and bias `[B, H, c, k, C]`, queries `[B, H, c, C, d]`, and of what came before the history, or
    None, total `[B, H, k, d]` and mass `[B, H, k]` → the slots' softmax `[B, H, c, k, C]` and the mixture `[B, H, c, C, d]`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weights: Tensor, queries: Tensor, bias: Tensor, total: Tensor | None, mass: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        events = x.expand(-1, weights.shape[1], -1, -1, -1).flatten(0, 2)
        e, q, b = (y.flatten(0, 2) for y in (weights, queries, bias))
        s = earlier(torch.bmm(e, events).view(*weights.shape[:4], -1))
        z = weights.cumsum(-1)
        z += earlier(z[..., -1:].contiguous())
        if total is not None and mass is not None:
            s += total.unsqueeze(2)
            z += mass[:, :, None, :, None]
        if not z[:, :, 0, :, 0].all():  # a prefix without events reads zeros, and must not divide by next to nothing
            z += z == 0
        s, z = s.flatten(0, 2), z.flatten(0, 2)
        logits = _asked(events, e, q, s)[1]
        w = torch.softmax(torch.addcdiv(b, logits, z), -2)
        u = w / z
        mixed = torch.bmm(u.mT, s).baddbmm_(torch.bmm(e.mT, u).triu_().mT, events)
        ctx.save_for_backward(events, e, q, s, z, w)
        ctx.set_materialize_grads(False)
        ctx.shape, ctx.started = weights.shape, total is not None
        return w.view(weights.shape), mixed.view(queries.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        with without_autocast("cpu"):
            return _back(ctx, *gradients)


def _back(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
    x, e, q, s, z, w = ctx.saved_tensors
    d_w, d_mixed = (None if y is None else y.flatten(0, 2) for y in gradients)
    a, logits = _asked(x, e, q, s)
    u = w / z
    inside = torch.bmm(e.mT, u).triu_()
    if d_mixed is None:
        d_mixed = torch.zeros_like(q)
    # through the mixture: to the shares u, the events and the sums
    far = torch.bmm(x, d_mixed.mT).triu_()
    d_u = torch.bmm(s, d_mixed.mT).baddbmm_(e, far)
    d_e, d_x, d_s = torch.bmm(u, far.mT), torch.bmm(inside, d_mixed), torch.bmm(u, d_mixed)
    # through the softmax: to what slots are asked
    d_w = d_u / z if d_w is None else torch.addcdiv(d_w, d_u, z)
    d_b = torch._softmax_backward_data(d_w, w, -2, w.dtype)
    d_logits = d_b / z
    d_z = d_u.mul_(u).addcmul_(d_logits, logits).div_(z).neg_()
    # through the questions
    d_a = torch.bmm(e.mT, d_logits).triu_()
    d_q = torch.bmm(d_logits.mT, s).baddbmm_(d_a.mT, x)
    d_s.baddbmm_(d_logits, q)
    d_e.baddbmm_(d_logits, a.mT)
    d_x.baddbmm_(d_a, q)
    # through the sums: what a chunk leaves is read by all chunks after it
    d_s = d_s.view(*ctx.shape[:4], -1)
    left = later(d_s).flatten(0, 2)
    d_x.baddbmm_(e.mT, left)
    d_e.baddbmm_(left, x.mT)
    of_chunk = d_z.sum(-1).view(ctx.shape[:4])
    n = d_z.shape[-1]
    d_e += torch.matmul(d_z, d_z.new_ones(n, n).tril_())  # what an event adds to is the mass of all from its own on
    d_e += later(of_chunk).flatten(0, 2).unsqueeze(-1)
    d_e, d_b = (y.view(ctx.shape) for y in (d_e, d_b))
    d_x, d_q = (y.view(*ctx.shape[:3], *y.shape[1:]) for y in (d_x, d_q))
    start = (d_s.sum(2), of_chunk.sum(2)) if ctx.started else (None, None)
    return d_x.sum(1, keepdim=True) if ctx.shape[1] > 1 else d_x, d_e, d_q, d_b, *start


def earlier(x: Tensor) -> Tensor:
    """Sums over all chunks before each one, `[B, H, c, …]`: one after the other, so that none depends on what follows it."""
    out = torch.empty_like(x)
    own, sums = x.unbind(2), out.unbind(2)
    sums[0].zero_()
    for i in range(1, len(own)):
        torch.add(sums[i - 1], own[i - 1], out=sums[i])
    return out


def later(x: Tensor) -> Tensor:
    """Sums over all chunks after each one, `[B, H, c, …]`."""
    out = torch.empty_like(x)
    own, sums = x.unbind(2), out.unbind(2)
    sums[-1].zero_()
    for i in reversed(range(len(own) - 1)):
        torch.add(sums[i + 1], own[i + 1], out=sums[i])
    return out


def _asked(x: Tensor, e: Tensor, q: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """A, event j (rows) to t, and L: cut, not multiplied, because what lies ahead may be too large for a float."""
    a = torch.bmm(x, q.mT).triu_()
    return a, torch.bmm(s, q.mT).baddbmm_(e, a)


# --- which kernel reads the prefixes ---------------------------------------------------------------------------------


def read_chunks(
    x: Tensor, weights: Tensor, queries: Tensor, bias: Tensor, start: dispatch.Sums | None, way: str = ""
) -> tuple[Tensor, Tensor]:
    """As the core's, in this `way`; "" chooses."""
    way = way or ("written" if x.device.type == "cpu" and not torch.compiler.is_compiling() else "plain")
    if way == "plain":
        return dispatch.read_chunks(x, weights, queries, bias, start)
    if way == "written":
        found: tuple[Tensor, Tensor] = ReadChunks.apply(x, weights, queries, bias, *(start or (None, None)))
        return found
    from elastic_core.scale.fused_slots import InsideChunks  # Triton is an extra

    found = InsideChunks.apply(x, weights, queries, bias, *dispatch.inherited(x, weights, start))
    return found
