"""Products over N x d numbers with few passes: what a pass over memory costs is more than what it computes.

Without autograd a linear layer, its bias and a GELU are one pass (oneDNN), and what is added is added in place.
"""

import torch
from torch import Tensor
from torch.nn import functional

ONE_PASS = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
LEAST_ROWS = 256  # fewer are not worth preparing the weights for


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none") -> Tensor:
    """x Wᵀ + b of `[..., d]`, then `none` or `gelu`.

    torch's own product writes the bias first, adds the product to it and reads all of it again for the activation. In float32 on
    a CPU, where nothing is to be differentiated, oneDNN does it in one (it is what torch.compile calls)."""
    if _one_pass(x, weight):
        found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, [], "none")
        return found
    y = functional.linear(x, weight, bias)
    return functional.gelu(y) if activation == "gelu" else y


def _one_pass(x: Tensor, weight: Tensor) -> bool:
    return (
        ONE_PASS
        and not torch.compiler.is_compiling()  # which finds it by itself
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and x.numel() >= LEAST_ROWS * x.shape[-1]
        and not torch.is_autocast_enabled("cpu")
        and not (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad))
    )


def add_product(total: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """total + a @ b, into `total` itself: what costs is a pass over N x d numbers. `b` may lack leading dimensions of `a`."""
    b = b.to(total.dtype).expand(*a.shape[:-2], -1, -1)
    total.flatten(0, -3).baddbmm_(a.to(total.dtype).flatten(0, -3), b.flatten(0, -3))
    return total


def add(y: Tensor, x: Tensor) -> Tensor:
    """x + y, into `y` itself unless it is of the lesser precision. `y` must be the caller's own."""
    return y.add_(x) if y.dtype == torch.promote_types(x.dtype, y.dtype) else x + y


def through(p: Tensor, maps: Tensor) -> Tensor:
    """Return interests `[B, k, d]` through each of `[m, d, o]` in one product, `[B, m, k, o]`."""
    return linear(p, maps.transpose(1, 2).flatten(0, 1)).unflatten(-1, maps.shape[::2]).transpose(1, 2)
