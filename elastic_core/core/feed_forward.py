"""Position-wise feed-forward layer: `x + W2 dropout(gelu(W1 norm(x)))`."""

from torch import Tensor, nn

from elastic_core.core.dropout import Dropout
from elastic_core.core.products import add, linear


class FeedForward(nn.Module):
    """Pre-norm residual feed-forward layer on `[..., d]`; `expansion` is its hidden width in multiples of d."""

    def __init__(self, width: int, dropout: float, expansion: int = 1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, expansion * width)
        self.outer = nn.Linear(expansion * width, width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.dropout(linear(self.norm(x), self.inner.weight, self.inner.bias, "gelu"))
        return add(self.dropout(linear(hidden, self.outer.weight, self.outer.bias)), x)
