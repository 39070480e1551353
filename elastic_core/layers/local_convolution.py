"""What came just before: a depth-wise causal convolution (ours)."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class LocalConvolution(nn.Module):
    """Depth-wise causal convolution over the last `width` events (ours): k aggregates cannot see short-range order."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.taps = nn.Parameter(torch.randn(width, channels) / width)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, N, d]` → `[B, N, d]`; tap i weighs the event i steps back.

        As an image of height 1 whose channels lie last, as `x` has them: nothing is transposed (on a CPU a quarter of the time).
        """
        width, channels = self.taps.shape
        image, taps = x.unsqueeze(1).permute(0, 3, 1, 2), self.taps.flip(0).T[:, None, None]
        mixed = functional.conv2d(image, taps, padding=(0, width - 1), groups=channels)
        return mixed.permute(0, 2, 3, 1).squeeze(1)[:, : x.shape[1]]

    def last(self, x: Tensor) -> Tensor:
        """The last row of `forward`, `[B, 1, d]`."""
        taps = self.taps[: x.shape[1]].flip(0)
        return (x[:, -taps.shape[0] :] * taps).sum(1, keepdim=True)
