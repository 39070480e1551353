"""LISA (Wu et al., WWW 2021): linear-time self-attention by histograms of codewords.

Items are sums of codewords (peers/parts/codebooks.py), and attention goes to the codewords that a history has, instead of to its
events (Eq. 8-11 and Algorithm 1): linear in the length, no N x N. Events are codes, one word of each codebook. A head per
codebook b attends to the words, by how often they occurred:

    c_t[b, w] = Σ_{j<=t} e^{-δ (t - j)} [code_b(j) = w]                   (Eq. 10; δ is in the authors' configurations alone)
    T_b[v, w] = exp((Z_b[v] Q_b)·(Z_b[w] K_b) / √d)                      one table for everybody
    y_t = Σ_b Σ_w a_t[b, w] Z_b[w] V_b,   a_t[b, w] ∝ c_t[b, w] T_b[code_b(t), w]

which is softmax attention to the words at hand, each of them for all events that have it. With soft codes c counts shares, and
the query is still the one best word of its event. Both ways, c_t counts e^{-δ |t - j|} for all j. A constant in a row of T
cancels, so rows are scaled by their largest entry, and bounded below by e^-30.

| `form` | histories are written in | items are scored by | words of each of the 8 books |
| --- | --- | --- | --- |
| `base` | the best word of each codebook | the same sums of words | 128 (ML-1M), 256 |
| `soft` | softmax mixtures of each codebook's words | a plain item table | 16 |
| `mini` | the best word of few | sums of more words of other books | 32, and as `base` |
| `plain` (ours) | the best word of each codebook, for attention alone | a plain item table | 128 |
| `frozen` | words of codes that stay as they are | the same sums of words | 128 |

In `plain` an event beside the attention is its row of the item table, too, not a sum of words. It is a control: what is lost by
attention to histograms, and what by learning items as sums of words (RESULTS)?

`frozen` is the paper's 4.9: codes of a model with ordinary attention. Where a training begins with a run of another model
(`elastic train --from`), codes and first words are its item table's by residual k-means; words go on learning, codes do not. In
the paper that model learns in codebooks, too. Without such a run the codes are chance.

With `output` = `own` every form is scored by a plain table of its own.

What the paper leaves open, and what is done here:
- *Order.* The paper says nothing of positions. In the authors' code attention reads none: counts decay by e^-0.1 an event
  (`decay`), and learned positions are added to what goes around the attention. Not here: at the event that is scored such a
  position, counted from the end, is the same for everybody. Without it a stream has no limit.
- *Several layers.* The paper has one and proposes further codebooks for the outputs (3.4.1): each further layer here writes its
  input, normalised, in codebooks of its own.
- *The rest of the layer* is SASRec's here as everywhere: pre-norm, GELU. Attention has no norm before it, as it reads codes. Q, K
  and V are of each codebook, and there is no output projection, as in the authors' code. Their loss has one negative, ours all
  items.
- `heads` has no meaning: every codebook is a head.

Symbols: B people, N events, b codebooks, w words, d width.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import Dropout, EventEmbedding, FeedForward, in_full_precision
from elastic_core.core.stream import Stream, StreamState
from elastic_core.errors import InputError
from elastic_core.models import (
    Batch,
    Catalog,
    Encoded,
    Few,
    Judge,
    ModelConfig,
    Scorer,
    StreamingModel,
    Variant,
    Within,
    register,
)
from elastic_core.peers.parts.codebooks import Codebooks, FixedCodes, ItemCodes
from elastic_core.peers.parts.distinct import distinct_items

CHUNK = 32
CAP = 30.0  # nats
ITEM_SCALE = 0.02  # standard deviation of what items are scored by, as in EventEmbedding
CODED_SCALE = 0.1  # of what only codes are found from: at 0.02 the first steps turn every item into others' codes


@dataclass(frozen=True, kw_only=True)
class LisaConfig(ModelConfig, name="lisa", label="LISA"):
    layers: Few = 1
    form: Literal["base", "soft", "mini", "plain", "frozen"] = "base"
    codebooks: Few = 8
    codewords: Annotated[int, Within(1, 1_024)] = 128  # of each codebook that the sequence is written in
    target_codewords: Annotated[int, Within(1, 1_024)] = 128  # `mini`: of each codebook that items are scored by
    decay: Annotated[float, Within(0, 1)] = 0.1  # how fast counts fade, per event


# --- attention -------------------------------------------------------------------------------------------------------


class AttentionTables(NamedTuple):
    """What attention needs of the codebooks, whoever asks."""

    weights: Tensor  # [b · w, w] row (b, v): T_b[v]
    values: Tensor  # [b · w, d] Z_b[w] V_b


class HistogramAttention(nn.Module):
    """One head for each of `books` codebooks; `decay` is δ per event."""

    def __init__(self, width: int, books: int, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.query, self.key, self.value = (nn.Parameter(torch.empty(books, width, width)) for _ in range(3))
        for weight in (self.query, self.key, self.value):
            nn.init.normal_(weight, std=width**-0.5)

    @in_full_precision
    def attention_tables(self, words: Tensor) -> AttentionTables:
        """Of codebooks `[b, w, d]`."""
        logits = (words @ self.query) @ (words @ self.key).transpose(-1, -2) / math.sqrt(words.shape[-1])
        top = logits.detach().amax(-1, keepdim=True)
        return AttentionTables((logits - top).clamp_min(-CAP).exp().flatten(0, 1), (words @ self.value).flatten(0, 1))

    def forward(self, chosen: Tensor, counted: Tensor, tables: AttentionTables, last: bool = False) -> Tensor:
        """chosen `[B, N, b]`, counted `[B, N, b, w]` (zero on padding) → `[B, N, d]`, or of the last event alone `[B, 1, d]`."""
        if last:
            return attend_to_counts(final_counts(counted, self.decay).unsqueeze(1), chosen[:, -1:], *tables)
        return attend_to_counts(prefix_counts(counted, self.decay), chosen, *tables)


@in_full_precision
def event_shares(counted: Tensor, chosen: Tensor, weights: Tensor, decay: float) -> Tensor:
    """What `attend_to_counts` at the last event comes to for every event, `[B, b, N]`, from counted `[B, N, b, w]` and the last
    event's codes `[B, b]`: an event's part in the mass of its words. Each codebook's add up to 1 (0 where nothing is counted)."""
    n, words = counted.shape[1], counted.shape[-1]
    row = chosen + words * torch.arange(chosen.shape[-1], device=chosen.device)
    ago = torch.arange(n - 1, -1, -1, device=counted.device, dtype=counted.dtype)
    mass = torch.einsum("n,nbsw,bsw->bsn", torch.exp(-decay * ago), counted.transpose(0, 1), functional.embedding(row, weights))
    total = mass.sum(-1, keepdim=True)
    return mass / (total + (total == 0))


@in_full_precision
def prefix_counts(counted: Tensor, decay: float, chunk: int = CHUNK) -> Tensor:
    """c_t of every t: `[B, N, b, w]` → the same. Inside a chunk a product with e^{-δ (t - j)}; between them carried on."""
    n = counted.shape[1]
    chunk = min(chunk, n)
    x = functional.pad(counted.flatten(2), (0, 0, 0, -n % chunk)).unflatten(1, (-1, chunk))  # [B, c, C, b w]
    place = torch.arange(chunk, device=x.device, dtype=x.dtype)
    inside = torch.exp(-decay * (place[:, None] - place).clamp_min(0)).tril() @ x
    carry = torch.exp(-decay * (place + 1)).unsqueeze(1)  # [C, 1]
    parts, state = [], torch.zeros_like(inside[:, 0, :1])
    for own in inside.unbind(1):
        parts.append(own + carry * state)
        state = parts[-1][:, -1:]
    return torch.cat(parts, 1)[:, :n].view_as(counted)


@in_full_precision
def final_counts(counted: Tensor, decay: float) -> Tensor:
    """c of the last event, `[B, b, w]`, from either side."""
    ago = torch.arange(counted.shape[1] - 1, -1, -1, device=counted.device, dtype=counted.dtype)
    return torch.einsum("n,nbsw->bsw", torch.exp(-decay * ago), counted.transpose(0, 1))


@in_full_precision
def attend_to_counts(counts: Tensor, chosen: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    """counts `[B, N, b, w]`, the askers' codes `[B, N, b]` → `[B, N, d]`; zeros where nothing has been counted."""
    row = chosen + counts.shape[-1] * torch.arange(chosen.shape[-1], device=chosen.device)
    shares = counts * functional.embedding(row, weights)
    mass = shares.sum(-1, keepdim=True)
    return (shares * (mass + (mass == 0)).reciprocal()).flatten(-2) @ values


# --- the model -------------------------------------------------------------------------------------------------------


class SharedTables(NamedTuple):
    """What is the same for every history."""

    codes: ItemCodes | None  # of every item, row 0 padding; None: those of a batch are found when it is there
    tables: list[AttentionTables]  # one a layer


class Layer(nn.Module):
    """Histogram attention and feed-forward layer on `[B, N, d]`; all but the first have codebooks of their own."""

    def __init__(self, config: LisaConfig, first: bool) -> None:
        super().__init__()
        soft = config.form == "soft"
        self.norm = None if first else nn.LayerNorm(config.width)
        self.codebooks = None if first else Codebooks(config.width, config.codebooks, config.codewords, 0.3, 1.0, soft)
        self.attention = HistogramAttention(config.width, config.codebooks, config.decay)
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.width, config.dropout)

    def layer_codes(self, x: Tensor) -> ItemCodes:
        assert self.codebooks is not None and self.norm is not None
        return self.codebooks(self.norm(x))

    def add_attention(self, x: Tensor, y: Tensor) -> Tensor:
        """Events and what attention gives them."""
        return self.feed_forward(x + self.dropout(y))


@register(LisaConfig)
class Lisa(StreamingModel):
    """See the module's table."""

    objective = "all"
    variants = (
        Variant("LISA-Base", {}, "Attention to how often codewords occurred; items are sums of codewords."),
        Variant("LISA-Soft", {"form": "soft", "codewords": 16}, "Items belong to codewords in parts; a plain table scores them."),
        Variant("LISA-Mini", {"form": "mini", "codewords": 32}, "Few codewords for the history, more to score items by."),
        Variant("LISA with a plain table", {"form": "plain"}, "A control: codewords for attention alone, items as everywhere."),
    )
    causal = streams = True
    config: LisaConfig

    def __init__(self, config: LisaConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout, positions=False)
        tied, soft = self.output is None, config.form == "soft"
        apart = tied and config.form == "mini"
        scale = event_scale = ITEM_SCALE * self.events.scale
        if apart or config.form == "base" or not tied:  # no table scores by these numbers, they are for codes alone
            nn.init.normal_(self.events.items.weight, std=CODED_SCALE)
            event_scale = CODED_SCALE * self.events.scale
        self.codebooks: Codebooks | FixedCodes
        if config.form == "frozen":
            self.codebooks = FixedCodes(self.n_items, config.width, config.codebooks, config.codewords, scale)
            self.events.items.weight.requires_grad_(False)  # what codes were found from: it learns no more
        else:
            self.codebooks = Codebooks(config.width, config.codebooks, config.codewords, scale, event_scale, soft)
        self.targets = Codebooks(config.width, config.codebooks, config.target_codewords, scale, event_scale) if apart else None
        self.layers = nn.ModuleList(Layer(config, first=not i) for i in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    # --- passes ------------------------------------------------------------------------------------------------------

    def forward(self, batch: Batch) -> Encoded:
        return Encoded(self._encode(batch, SharedTables(None, self._layer_tables())))

    def last_state(self, batch: Batch) -> Tensor:
        return self._encode(batch, SharedTables(None, self._layer_tables()), last=True)[:, -1]

    def scorer(self) -> Scorer:
        books = self.target_codebooks
        if books is None:
            return super().scorer()
        sums = self.all_codes().vectors[1:] if isinstance(books, FixedCodes) else books.sum_codewords(self._item_contents()[1:])
        counts = self.config.repeat_counts
        return Scorer(functional.pad(sums / self.events.scale, (0, 0, 1, 0)), repeat_bias=self.repeat_bias, repeat_counts=counts)

    def prepare_states(self) -> tuple[Judge, Scorer]:
        """Finds the codes of all items and composes all tables once."""
        scorer, ready = self.scorer(), self.shared_tables()
        return lambda batch: self._encode(batch, ready, last=True)[:, -1], scorer

    def last_weights(self, batch: Batch) -> Tensor:
        """`AttentionModel`: what attention to words comes to for the events that have them; a codebook is a head."""
        ready = self.shared_tables()
        real, codes, weights = batch.mask, self._event_codes(batch.items, ready.codes), []
        x = self.events.add_positions(self.event_vectors(batch.items, codes), real)
        for i, (layer, tables) in enumerate(zip(self.layers, ready.tables, strict=True)):
            assert isinstance(layer, Layer)
            codes = layer.layer_codes(x) if i else codes
            counted = self.count_codewords(codes, real)
            weights.append(event_shares(counted, codes.chosen[:, -1], tables.weights, self.config.decay))
            x = layer.add_attention(x, layer.attention(codes.chosen, counted, tables))
        return torch.stack(weights)

    def codebook_shape(self) -> tuple[int, int]:
        """`QuantisedModel`."""
        return self.config.codebooks, self.config.codewords

    def saved_per_event(self, columns: int) -> int:
        return self.saved_by_blocks() + self.config.codebooks * (8 * self.config.codewords + 3 * self.config.width)

    def open_stream(self, room: int) -> "LisaStream":
        return LisaStream(self, room)

    # --- codes -------------------------------------------------------------------------------------------------------

    @property
    def target_codebooks(self) -> Codebooks | FixedCodes | None:
        """The codebooks that items are scored by; None where they have a plain table."""
        return self.codebooks if self.config.form in ("base", "frozen") and self.output is None else self.targets

    def begin_with_items(self, table: Tensor) -> None:
        """`BeginsWithItems`: the codes of `frozen` are found from a table `[n_items + 1, d]` that another model scores by."""
        if not isinstance(self.codebooks, FixedCodes):
            raise InputError(f"items of another model give codes to form=frozen; this is form={self.config.form}")
        if table.shape != self.events.items.weight.shape:
            raise InputError(f"its items are {table.shape[-1]} numbers wide, those of this model {self.config.width}")
        with torch.no_grad():
            self.events.items.weight.copy_(table)
        self.codebooks.fit_table(table * self.events.scale)

    def all_codes(self) -> ItemCodes:
        """Of every item, row 0 padding."""
        if isinstance(self.codebooks, FixedCodes):
            return self.codebooks(torch.arange(self.n_items + 1, device=self.codebooks.chosen.device))
        return self.codebooks(self._item_contents())

    def shared_tables(self) -> SharedTables:
        return SharedTables(self.all_codes(), self._layer_tables())

    def _item_contents(self) -> Tensor:
        """What codebooks are given of items, `[n_items + 1, d]`."""
        return self.events.items.weight * self.events.scale

    def _layer_tables(self) -> list[AttentionTables]:
        books = [self.codebooks, *(layer.codebooks for layer in self.layers[1:])]
        return [layer.attention.attention_tables(own.words) for layer, own in zip(self.layers, books, strict=True)]  # type: ignore[union-attr, operator]

    def _event_codes(self, items: Tensor, known: ItemCodes | None) -> ItemCodes:
        if known is not None:
            return known.select_codes(items)
        if isinstance(self.codebooks, FixedCodes):
            return self.codebooks(items)
        there, where = distinct_items(items, len(self.events.items.weight))
        return self.codebooks(self.events.embed_items(there)).select_codes(where)

    def event_vectors(self, items: Tensor, codes: ItemCodes) -> Tensor:
        """What events are beside the attention: sums of words, or items of a plain table."""
        return self.events.embed_items(items) if self.config.form == "plain" else codes.vectors

    def _encode(self, batch: Batch, ready: SharedTables, last: bool = False) -> Tensor:
        """States at every position, or of the last event alone."""
        real = batch.mask
        codes = self._event_codes(batch.items, ready.codes)
        x = self.events.add_positions(self.event_vectors(batch.items, codes), real)
        for i, (layer, tables) in enumerate(zip(self.layers, ready.tables, strict=True)):
            assert isinstance(layer, Layer)
            codes = layer.layer_codes(x) if i else codes
            ends = last and i == len(self.layers) - 1
            y = layer.attention(codes.chosen, self.count_codewords(codes, real), tables, last=ends)
            x = layer.add_attention(x[:, -1:] if ends else x, y)
        return self.norm(x)

    def count_codewords(self, codes: ItemCodes, real: Tensor | None) -> Tensor:
        """How much each word counts at each event `[B, N, b, w]`, nothing on padding."""
        counted = codes.codeword_weights(self.config.codewords)
        return counted if real is None else counted * real[..., None, None]


# --- streaming -------------------------------------------------------------------------------------------------------


class LisaStream(Stream):
    """A person's state of constant size: a histogram for each layer, L·b·w numbers (paper's 4.8), and nothing else.

    Nothing counts from an end: after any number of events the state equals one pass over all of them.
    """

    def __init__(self, model: Lisa, room: int) -> None:
        super().__init__(model, room)
        with torch.inference_mode():
            self.ready = model.shared_tables()

    def _read_history(self, history: Tensor, columns: slice) -> tuple[Tensor, StreamState]:
        model, real, state = self.model, history > 0, StreamState()
        codes = model._event_codes(history, self.ready.codes)
        x = model.event_vectors(history, codes) * real.unsqueeze(-1)
        for i, (layer, tables) in enumerate(zip(model.layers, self.ready.tables, strict=True)):
            codes = layer.layer_codes(x) if i else codes
            counted = model.count_codewords(codes, real)
            state[f"{i}.counts"] = final_counts(counted, model.config.decay)  # [B, b, w]
            x = layer.add_attention(x, layer.attention(codes.chosen, counted, tables))
        return model.norm(x[:, -1]), state

    def _read_event(self, items: Tensor) -> Tensor:
        model, keep = self.model, math.exp(-self.model.config.decay)
        codes = model._event_codes(items.unsqueeze(1), self.ready.codes)
        x = model.event_vectors(items.unsqueeze(1), codes)
        for i, (layer, tables) in enumerate(zip(model.layers, self.ready.tables, strict=True)):
            codes, counts = layer.layer_codes(x) if i else codes, self.state[f"{i}.counts"]
            counts.mul_(keep).add_(model.count_codewords(codes, None)[:, 0])
            x = layer.add_attention(x, attend_to_counts(counts.unsqueeze(1), codes.chosen, *tables))
        return model.norm(x[:, -1])
