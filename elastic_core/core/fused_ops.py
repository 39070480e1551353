"""What a processor does quicker than torch would have it: the same numbers in fewer passes over memory.

A linear layer with its activation, the noise of dropout, sums over chunks, a convolution with a gradient of its own. Every one
has a slow twin in the tests. The first two are not used while torch compiles a model: it finds the same by itself.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

# --- a linear layer, its bias and a GELU -----------------------------------------------------------------------------

ONE_PASS = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
LEAST_ROWS = 1 << 13  # for fewer, preparing the weights costs what it saves, and every new number of rows another compiled kernel


def linear_in_one_pass(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none") -> Tensor:
    """`layers.linear` where `fits_one_pass`.

    torch's own product writes the bias first, adds the product to it and reads all of it again for the activation. oneDNN does it
    in one (it is what torch.compile calls)."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, [], "none")
    return product


def fits_one_pass(x: Tensor, weight: Tensor) -> bool:
    """Whether the product is one of float32 on a CPU of which nothing is to be differentiated."""
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


def dropout_factors(x: Tensor, p: float) -> Tensor | None:
    """What `dropout` multiplies `x` by, on a CPU; None where nothing or everything is dropped, elsewhere, and if compiled."""
    dropped = round(p * LEVELS)
    if x.device.type != "cpu" or dropped in (0, LEVELS) or torch.compiler.is_compiling():
        return None
    bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)
    factors = torch.empty(x.shape, dtype=x.dtype)
    torch.ge(bits[: x.numel()].view(x.shape), dropped - LEVELS // 2, out=factors)
    return factors.mul_(LEVELS / (LEVELS - dropped))


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


# --- a depth-wise causal convolution ----------------------------------------------------------------------------------


def convolve_rows(x: Tensor, taps: Tensor, first: int) -> Tensor:
    """Row t of `[B, N, d]`: Σ_i taps[i] x[t + i + first - width + 1].

    As an image of height 1 whose channels lie last, as `x` has them: nothing is transposed (on a CPU a quarter of the time)."""
    width, channels = taps.shape
    image = x.unsqueeze(1).permute(0, 3, 1, 2)
    mixed = functional.conv2d(image, taps.T[:, None, None], padding=(0, width - 1), groups=channels)
    return mixed.permute(0, 2, 3, 1).squeeze(1)[:, first : first + x.shape[1]]


CACHE = 1 << 17  # numbers that all taps go over before the next are fetched: they fit a core's own cache


def causal_convolution(x: Tensor, taps: Tensor) -> Tensor:
    """`layers.LocalConvolution` on a CPU, in one precision: tap i weighs the event i steps back."""
    mixed: Tensor = _Convolution.apply(x, taps)
    return mixed


class _Convolution(torch.autograd.Function):
    """With a gradient of its own for the taps, which torch's convolution spends most of its way back on (on a CPU)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, taps: Tensor) -> Tensor:
        ctx.save_for_backward(x, taps)
        return convolve_rows(x, taps.flip(0), 0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, taps = ctx.saved_tensors
        (gradient,) = gradients
        n, width = x.shape[1], len(taps)
        d_taps = torch.zeros_like(taps)
        users_at_once, rows = max(1, CACHE // x[0].numel()), max(width, CACHE // x.shape[2])  # a few people, or a part of one
        for at in range(0, len(x), users_at_once):
            for begin in range(0, n, rows):
                heard, came = x[at : at + users_at_once], gradient[at : at + users_at_once, begin : begin + rows]
                for i in range(min(begin + came.shape[1], width)):
                    late = max(i - begin, 0)  # there is nothing before the first event
                    end = begin + came.shape[1] - i
                    d_taps[i] += (heard[:, begin + late - i : end] * came[:, late:]).sum((0, 1))
        return convolve_rows(gradient, taps, width - 1), d_taps
