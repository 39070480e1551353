"""Parts of readers: a model as it reads a series of histories, with everything that depends on its weights alone worked out once.

A reader (elastic_reader.py, sasrec_reader.py) is made by `prepare_states` and forgotten with the series, so what is folded never
outlives a change of the weights. Its numbers are those of `last_state` up to rounding, in fewer operations: short histories cost
operations rather than arithmetic. All is folded in float64, and products are added to what is there.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.batches import Batch
from elastic_core.core.contract import Recommender
from elastic_core.core.layers import FeedForward, LocalConvolution, autocast_to
from elastic_core.core.stream import norm_arguments

FEW_ROWS = 512  # for which other operations are quicker


def can_fold(model: Recommender) -> bool:
    """Whether a reader may stand for `last_state`: nothing learns, and a head is as wide as the model."""
    precise = next(model.parameters()).dtype in (torch.float32, torch.float64)
    return precise and model.config.heads == 1 and not model.training and not torch.is_grad_enabled()


def can_read_batch(model: Recommender, batch: Batch) -> bool:
    """Whether the reader reads it, or leaves it to `last_state`: what is rounded, and what is refused for its length."""
    return not autocast_to(batch.items.device.type) and batch.items.shape[1] <= model.length


def double(layer: nn.Linear) -> Tensor:
    """Return a layer's weight `[in, out]` in float64."""
    return layer.weight.double().T


class FoldedFeedForward:
    """`layers.FeedForward` of rows `[M, d]`, which are overwritten."""

    def __init__(self, layer: FeedForward) -> None:
        self.norm = norm_arguments(layer.norm)
        self.inner, self.outer = (linear.weight.T.contiguous() for linear in (layer.inner, layer.outer))
        self.inner_bias, self.outer_bias = layer.inner.bias.clone(), layer.outer.bias.clone()

    def __call__(self, x: Tensor) -> Tensor:
        hidden = torch.addmm(self.inner_bias, torch.layer_norm(x, *self.norm), self.inner)
        hidden = functional.gelu(hidden.T).T if len(hidden) < FEW_ROWS else functional.gelu(hidden)  # over short rows it is slow
        return x.addmm_(hidden, self.outer).add_(self.outer_bias)


class FoldedConvolution:
    """`layers.LocalConvolution` of `h [B, N, d]`, added to x."""

    def __init__(self, layer: LocalConvolution) -> None:
        self.taps, self.rows = layer.taps.flip(0), layer.taps.clone().unbind(0)
        self.kernel = self.taps.T[:, None, None].contiguous()

    def add_to(self, x: Tensor, h: Tensor) -> None:
        """Of all rows, `x [B, N, d]`: of few on a processor tap by tap, else as `fused_ops.convolve_rows`."""
        n = h.shape[1]
        if len(h) * n < FEW_ROWS and h.device.type == "cpu":
            for i, tap in enumerate(self.rows[:n]):
                x[:, i:].addcmul_(h[:, : n - i], tap)
            return
        image, (width, channels) = h.unsqueeze(1).permute(0, 3, 1, 2), self.taps.shape
        local = torch.conv2d(image, self.kernel, padding=(0, width - 1), groups=channels)
        x.add_(local.permute(0, 2, 3, 1).squeeze(1)[:, :n])

    def add_last(self, x: Tensor, h: Tensor) -> None:
        """Of the last row, `x [B, d]`."""
        taps = self.taps[-h.shape[1] :]
        x.add_((h[:, -len(taps) :] * taps).sum(1))


class FoldedAttention:
    """Maps of an attention with one head after which its keys and values are the events themselves, the scale included."""

    def __init__(self, query: nn.Linear, key: nn.Linear, value: nn.Linear, output: nn.Linear) -> None:
        dtype, keys = query.weight.dtype, double(key).T / len(query.weight) ** 0.5
        self.query, self.query_bias = (double(query) @ keys).to(dtype), (query.bias.double() @ keys).to(dtype)
        self.output = (double(value) @ double(output)).to(dtype)
        self.output_bias = (value.bias.double() @ double(output) + output.bias).to(dtype)
