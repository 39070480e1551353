"""What came just before: a depth-wise causal convolution (ours)."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

CACHE = 1 << 17  # numbers that all taps go over before the next are fetched: they fit a core's own cache


class LocalConvolution(nn.Module):
    """Depth-wise causal convolution over the last `width` events (ours): k aggregates cannot see short-range order."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.taps = nn.Parameter(torch.randn(width, channels) / width)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, N, d]` → `[B, N, d]`; tap i weighs the event i steps back."""
        exact = x.device.type == "cpu" and x.dtype == self.taps.dtype and not torch.is_autocast_enabled("cpu")
        mixed: Tensor = _Convolution.apply(x, self.taps) if exact else _convolved(x, self.taps.flip(0), 0)
        return mixed

    def last(self, x: Tensor, rows: int = 1) -> Tensor:
        """The last rows of `forward`, `[B, rows, d]`."""
        if rows > 1:
            return self(x[:, -(rows + len(self.taps) - 1) :])[:, -rows:]
        taps = self.taps[: x.shape[1]].flip(0)
        return (x[:, -taps.shape[0] :] * taps).sum(1, keepdim=True)


class _Convolution(torch.autograd.Function):
    """With a gradient of its own for the taps, which torch's convolution spends most of its way back on (on a CPU)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, taps: Tensor) -> Tensor:
        ctx.save_for_backward(x, taps)
        return _convolved(x, taps.flip(0), 0)

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
        return _convolved(given, taps, width - 1), d_taps


def _convolved(x: Tensor, taps: Tensor, first: int) -> Tensor:
    """Row t of `[B, N, d]`: Σ_i taps[i] x[t + i + first - width + 1].

    As an image of height 1 whose channels lie last, as `x` has them: nothing is transposed (on a CPU a quarter of the time)."""
    width, channels = taps.shape
    image = x.unsqueeze(1).permute(0, 3, 1, 2)
    mixed = functional.conv2d(image, taps.T[:, None, None], padding=(0, width - 1), groups=channels)
    return mixed.permute(0, 2, 3, 1).squeeze(1)[:, first : first + x.shape[1]]
