"""Residual quantisation with codebooks (LISA's Eq. 2, after LightRec): a vector as a sum of words, one of each codebook.

    code_b = argmax_w r_b W Z_b[w]ᵀ      r_0 = x,  r_{b+1} = r_b - Z_b[code_b]      x ≈ Σ_b Z_b[code_b]

An argmax has no gradient. Learned through is softmax(r_b W Z_bᵀ / τ): the step forward takes the best word alone, the step back
sees the softmax (straight-through estimator). `soft` takes the softmax both ways: x ≈ Σ_b Σ_w p_b[w] Z_b[w].

Codes are found in float32, under autocast too: rounding would choose other words.

Items may also keep the codes that they were given (`FixedCodes`): those of a table that another model learned, found by residual
k-means (`residual_kmeans`).
"""

import warnings
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
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


class FixedCodes(nn.Module):
    """Items whose codes stay as they were given, in words that are learned. Fresh ones are drawn by chance: what is a code worth?

    `chosen` `[n_items + 1, b]`, row 0 for padding."""

    chosen: Tensor

    def __init__(self, n_items: int, width: int, books: int, words: int, scale: float) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.empty(books, words, width))
        nn.init.normal_(self.words, std=scale / books**0.5)
        self.register_buffer("chosen", torch.empty(n_items + 1, books, dtype=torch.int64).random_(words))

    def forward(self, items: Tensor) -> ItemCodes:
        """Of items by number, `[...]`."""
        chosen = self.chosen[items]
        rows = chosen + self.words.shape[1] * torch.arange(chosen.shape[-1], device=chosen.device)
        return ItemCodes(chosen, None, functional.embedding(rows, self.words.flatten(0, 1)).sum(-2))

    def fit_table(self, table: Tensor) -> None:
        """Codes and words of the items of a table `[n_items + 1, d]`, row 0 padding."""
        chosen, words = residual_kmeans(table[1:], *self.words.shape[:2])
        with torch.no_grad():
            self.chosen.copy_(functional.pad(chosen, (0, 0, 1, 0)))
            self.words[:, : words.shape[1]] = words


def residual_kmeans(vectors: Tensor, books: int, words: int) -> tuple[Tensor, Tensor]:
    """`[M, d]` → codes `[M, b]` and words `[b, w, d]`: each codebook clusters what those before it left. w is `words`, or M if
    there are fewer vectors."""
    from sklearn.cluster import KMeans  # a second to import, for this alone
    from sklearn.exceptions import ConvergenceWarning

    rest, codes, centres = vectors.detach().double().cpu().numpy(), [], []
    for _ in range(books):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # where less is left than there are words
            clusters = KMeans(min(words, len(rest)), n_init=1, random_state=0).fit(rest)
        codes.append(torch.from_numpy(clusters.labels_).long())
        centres.append(torch.from_numpy(clusters.cluster_centers_))
        rest = rest - clusters.cluster_centers_[clusters.labels_]
    return torch.stack(codes, -1).to(vectors.device), torch.stack(centres).to(vectors)


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
