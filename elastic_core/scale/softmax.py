"""The loss (core/objective.py) without ever holding all logits: made, turned into probabilities and into their own gradient chunk
by chunk, so that a pass over them finds them in the cache."""

from typing import Any

import torch
from torch import Tensor

from elastic_core.core.batches import Met
from elastic_core.core.contract import Scorer
from elastic_core.core.layers import autocast_to

CHUNK_BYTES = 1 << 20  # logits that are worked on together: as many as a processor's cache holds
LARGE = 10_000  # items: a larger catalogue is gone through in stretches, for its table no longer lies in a cache


def exact(states: Tensor, targets: Tensor, scorer: Scorer, met: Met | None) -> Tensor:
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
