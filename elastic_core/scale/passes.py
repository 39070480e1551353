"""The same in fewer passes over memory: the loss without ever holding all logits, and what a processor does quicker than torch
would have it: a linear layer with its activation, the noise of dropout, the gradient of a convolution."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.batches import Met
from elastic_core.core.contract import Scorer
from elastic_core.core.layers import autocast_to, convolved

# --- the exact softmax -----------------------------------------------------------------------------------------------

# Logits are made, turned into probabilities and into their own gradient chunk by chunk: a pass finds them in the cache.


CHUNK_BYTES = 1 << 20  # logits that are worked on together: as many as a processor's cache holds
LARGE = 10_000  # items: a larger catalogue is gone through in stretches, for its table no longer lies in a cache


def exact_softmax(states: Tensor, targets: Tensor, scorer: Scorer, met: Met | None) -> Tensor:
    """`full_softmax` of a scorer without `pairs`."""
    vectors, shares = scorer.split(states)
    again, work = None if met is None else scorer.again, _FullSoftmax
    if len(scorer.table) > LARGE:
        from elastic_core.scale.catalogue import StretchedSoftmax as work  # type: ignore[assignment]

    return work.apply(vectors, shares.float(), scorer.table, scorer.bias, again, targets, met)


class _FullSoftmax(torch.autograd.Function):
    """-Σ_m log Σ_p e^{shares[m, p]} softmax(table · vectors[m, p] + bias)[targets[m]], without ever holding all logits.

    Logits are made, turned into probabilities and into their own gradient chunk by chunk, so a pass over them finds them in
    the cache, and nothing of size M x P x n_items is kept for the way back. With posterior r over the parts of a target, the
    gradient is r_p (softmax_p - 1[target]) for the logits and -r_p for the log shares. Under autocast the three products have
    half-precision factors, and all else is float32.
    """

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, shares: Tensor, table: Tensor, bias: Tensor | None, again: Tensor | None, targets: Tensor,
        met: Met | None,
    ) -> Tensor:  # fmt: skip
        m, parts, d = vectors.shape
        device = vectors.device.type
        half = autocast_to(device) or torch.float32
        flat, items = vectors.to(half).reshape(m, parts * d), table[1:].to(half)
        needs = any(x is not None and x.requires_grad for x in (vectors, shares, table, bias, again))
        d_vectors, d_shares = torch.empty(m, parts, d, device=flat.device), torch.empty_like(shares)
        d_table, total = torch.zeros_like(table, dtype=torch.float32), torch.zeros((), device=flat.device)
        d_bias = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
        d_again, seen = None if again is None else torch.zeros((), device=flat.device), None
        rows = max(1, CHUNK_BYTES // (4 * parts * len(items)) if device == "cpu" else m)
        for at in range(0, m, rows):
            part = slice(at, at + rows)
            v = flat[part].reshape(-1, d)  # [R P, d]
            logits = (v @ items.T).float()
            if bias is not None:
                logits += bias[1:].float()
            if again is not None and met is not None:
                seen = met.among(len(items), part)[:, 1:].repeat_interleave(parts, 0)
                logits += again.float() * seen
            goal = (targets[part] - 1).repeat_interleave(parts).unsqueeze(1)  # [R P, 1]
            right = logits.gather(1, goal).view(-1, parts)
            shown, norm = probabilities(logits)  # the logits are gone
            log_p = right - norm.view(-1, parts) + shares[part]
            found = log_p.logsumexp(1, keepdim=True)
            total -= found.sum()
            if needs:
                posterior = (log_p - found).exp()
                d_shares[part] = -posterior
                weight = posterior.view(-1, 1)
                gradient = (shown if parts == 1 else shown.mul_(weight)).scatter_add_(1, goal, -weight)
                rough = gradient.to(half)
                d_vectors[part] = (rough @ items).view(-1, parts, d)
                d_table[1:] += rough.T @ v
                if d_bias is not None:
                    d_bias[1:] += gradient.sum(0)
                if d_again is not None and seen is not None:
                    d_again += (gradient * seen).sum()
        ctx.found = (d_vectors.to(vectors.dtype), d_shares, d_table.to(table.dtype), d_bias, d_again)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = gradients
        return (*(None if x is None else x * scale for x in ctx.found), None, None)


def probabilities(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Logits `[R, V]`, which are overwritten → their softmax and log-sum-exp `[R]`.

    torch's softmax is two to four times as fast as its exponential (on a CPU) and keeps the normaliser to itself; but the largest
    of V probabilities is at least 1/V, so its logarithm gives it without loss."""
    top = logits.amax(1)
    shown = torch.softmax(logits, 1, out=logits if logits.device.type == "cpu" else None)
    return shown, top - shown.amax(1).log()


# --- a linear layer, its bias and a GELU -----------------------------------------------------------------------------

ONE_PASS = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
LEAST_ROWS = 256  # fewer are not worth preparing the weights for


def linear_in_one_pass(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> Tensor | None:
    """`core.layers.linear` in float32 on a CPU, where nothing is to be differentiated; None elsewhere.

    torch's own product writes the bias first, adds the product to it and reads all of it again for the activation. oneDNN does it
    in one (it is what torch.compile calls)."""
    if not _one_pass(x, weight):
        return None
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, [], "none")


def _one_pass(x: Tensor, weight: Tensor) -> bool:
    return (
        ONE_PASS
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and x.numel() >= LEAST_ROWS * x.shape[-1]
        and not torch.is_autocast_enabled("cpu")
        and not (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad))
    )


# --- dropout: one draw of 64 bits decides on four numbers -------------------------------------------------------------

# torch's own draws a uniform number for each, one after the other, which took a quarter of a training step; 16 bits hold any p to
# 1/65,536, and what is kept is scaled by exactly what is kept on average.
LEVELS = 1 << 16


def noise(x: Tensor, p: float) -> Tensor | None:
    """What `dropout` multiplies `x` by, on a CPU; None where nothing or everything is dropped, elsewhere, and if compiled."""
    dropped = round(p * LEVELS)
    if x.device.type != "cpu" or dropped in (0, LEVELS) or torch.compiler.is_compiling():
        return None
    bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)
    kept = torch.empty(x.shape, dtype=x.dtype)
    torch.ge(bits[: x.numel()].view(x.shape), dropped - LEVELS // 2, out=kept)
    return kept.mul_(LEVELS / (LEVELS - dropped))


# --- sums over chunks ------------------------------------------------------------------------------------------------


def sums_before(x: Tensor) -> Tensor:
    """Return sums over all chunks before each one, `[B, H, c, ., .]`: products with a triangle of ones, a group of chunks at a
    time, because torch's own sum along this dimension takes many times as long on a CPU."""
    size = min(x.shape[2], 16)
    groups = functional.pad(x, (0, 0, 0, 0, 0, -x.shape[2] % size)).unflatten(2, (-1, size))
    before = (x.new_ones(size, size).tril_(-1) @ groups.flatten(4)).view(groups.shape)
    if groups.shape[2] > 1:
        before = before + sums_before(groups.sum(3)).unsqueeze(3)
    return before.flatten(2, 3)[:, :, : x.shape[2]]


# --- a convolution's gradient ----------------------------------------------------------------------------------------

CACHE = 1 << 17  # numbers that all taps go over before the next are fetched: they fit a core's own cache


def convolution(x: Tensor, taps: Tensor) -> Tensor | None:
    """`core.layers.LocalConvolution` on a CPU, in one precision; None elsewhere."""
    exact = x.device.type == "cpu" and x.dtype == taps.dtype and not torch.is_autocast_enabled("cpu")
    return _Convolution.apply(x, taps) if exact else None


class _Convolution(torch.autograd.Function):
    """With a gradient of its own for the taps, which torch's convolution spends most of its way back on (on a CPU)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, taps: Tensor) -> Tensor:
        ctx.save_for_backward(x, taps)
        return convolved(x, taps.flip(0), 0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, taps = ctx.saved_tensors
        (given,) = gradients
        n, width = x.shape[1], len(taps)
        d_taps = torch.zeros_like(taps)
        some, rows = max(1, CACHE // x[0].numel()), max(width, CACHE // x.shape[2])  # a few people, or a part of one
        for at in range(0, len(x), some):
            for begin in range(0, n, rows):
                heard, came = x[at : at + some], given[at : at + some, begin : begin + rows]
                for i in range(min(begin + came.shape[1], width)):
                    late = max(i - begin, 0)  # there is nothing before the first event
                    end = begin + came.shape[1] - i
                    d_taps[i] += (heard[:, begin + late - i : end] * came[:, late:]).sum((0, 1))
        return convolved(given, taps, width - 1), d_taps
