"""Residual quantisation with codebooks (LISA's Eq. 2, after LightRec): a vector as a sum of words, one of each codebook.

    code_b = argmax_w r_b W Z_b[w]ᵀ      r_0 = x,  r_{b+1} = r_b - Z_b[code_b]      x ≈ Σ_b Z_b[code_b]

An argmax has no gradient. Learned through is softmax(r_b W Z_bᵀ / τ): the step forward takes the best word alone, the step back
sees the softmax (straight-through estimator). `soft` takes the softmax both ways: x ≈ Σ_b Σ_w p_b[w] Z_b[w].

Codes are found in float32, under autocast too: rounding would choose other words.
"""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from elastic_core.core.layers import in_full_precision

PIECE = 2_048  # vectors that are composed together: what is kept of a softmax over words does not grow with the catalogue


TEMPERATURE = 0.7
START = 2.0  # nats: the standard deviation of fresh logits; with much less all words are alike, and a soft code says nothing


class ItemCodes(NamedTuple):
    """Vectors in words. `shares` is what gradient reaches the codes through; without, a word is its code's alone."""

    chosen: Tensor  # [..., b] int64
    shares: Tensor | None  # [..., b, w], each row adds up to 1
    vectors: Tensor  # [..., d] the sum of the words

    def select_codes(self, index: Tensor) -> "ItemCodes":
        """Those of some vectors: codes of `[M]`, index `[...]`."""
        flat = index.flatten()  # whole rows are moved, there and back

        def select_rows(x: Tensor) -> Tensor:
            return x.index_select(0, flat).unflatten(0, index.shape)

        return ItemCodes(
            select_rows(self.chosen), None if self.shares is None else select_rows(self.shares), select_rows(self.vectors)
        )

    def codeword_weights(self, words: int) -> Tensor:
        """How much each word counts, `[..., b, w]`."""
        if self.shares is not None:
            return self.shares
        none = torch.zeros(*self.chosen.shape, words, dtype=self.vectors.dtype, device=self.vectors.device)
        return none.scatter_(-1, self.chosen.unsqueeze(-1), 1.0)


class Codebooks(nn.Module):
    """`books` codebooks of `words` words each for vectors `[..., d]`, whose numbers have the standard deviation `event_scale`;
    that of a sum of words is `scale`."""

    def __init__(self, width: int, books: int, words: int, scale: float, event_scale: float, soft: bool = False) -> None:
        super().__init__()
        self.soft = soft
        self.words = nn.Parameter(torch.empty(books, words, width))
        word_scale = scale / books**0.5
        nn.init.normal_(self.words, std=word_scale)
        self.similarity = nn.Parameter(torch.eye(width) * (START * TEMPERATURE / (event_scale * word_scale * width**0.5)))

    def forward(self, x: Tensor) -> ItemCodes:
        return encode_vectors(x, self.words, self.similarity, self.soft)

    def sum_codewords(self, x: Tensor) -> Tensor:
        """The sums of words alone, `[M, d]`, piece by piece; the way back finds the words anew."""
        if not torch.is_grad_enabled():
            return torch.cat([self(piece).vectors for piece in x.split(PIECE)])
        again = partial(checkpoint, lambda piece: self(piece).vectors, use_reentrant=False, preserve_rng_state=False)
        return torch.cat([again(piece) for piece in x.split(PIECE)])


@in_full_precision
def encode_vectors(x: Tensor, words: Tensor, similarity: Tensor, soft: bool) -> ItemCodes:
    """x `[..., d]` in words `[b, w, d]`; similarity `[d, d]`."""
    keys = words @ similarity.T / TEMPERATURE
    rest, total, chosen, shares = x, torch.zeros_like(x), [], []
    learning = torch.is_grad_enabled()
    for key, book in zip(keys, words, strict=True):
        logits = rest @ key.T
        code = logits.argmax(-1)
        if soft or learning:
            share = logits.softmax(-1)
            if not soft:
                share = torch.zeros_like(share).scatter_(-1, code.unsqueeze(-1), 1.0) + (share - share.detach())
            shares.append(share)
        word = share @ book if soft or learning else book[code]
        rest, total = rest - word, total + word
        chosen.append(code)
    return ItemCodes(torch.stack(chosen, -1), torch.stack(shares, -2) if shares else None, total)
