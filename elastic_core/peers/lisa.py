"""LISA (Wu et al., WWW 2021): linear-time self-attention by histograms of codewords.

Items are sums of codewords (peers/parts/codebooks.py), and attention goes to the codewords that a history has
(peers/parts/histogram_attention.py).

| `form` | histories are written in | items are scored by | words of each of the 8 books |
| --- | --- | --- | --- |
| `base` | the best word of each codebook | the same sums of words | 128 (ML-1M), 256 |
| `soft` | softmax mixtures of each codebook's words | a plain item table | 16 |
| `mini` | the best word of few | sums of more words of other books; `target_words` = 0: a plain table | 32, and as `base` |

With `output` = `own` every form is scored by a plain table of its own.

What the paper leaves open, and what is done here:
- *Order.* The paper says nothing of positions. In the authors' code attention reads none: counts decay by e^-0.1 an event
  (`decay`), and learned positions are added to what goes around the attention. Here that is `positions`, off: at the event that
  is scored such a position, counted from the end, is the same for everybody. Without it a stream has no limit.
- *Several layers.* The paper has one and proposes further codebooks for the outputs (3.4.1): each further layer here writes its
  input, normalised, in codebooks of its own.
- *The rest of the layer* is SASRec's here as everywhere: pre-norm, GELU. Attention has no norm before it, as it reads codes. Q, K
  and V are of each codebook, and there is no output projection, as in the authors' code. Their loss has one negative, ours all
  items.
- *Both ways* (`bidirectional`): counts of all events, decaying to both sides. What is asked is a mask (objective `cloze`).
- `heads` has no meaning: every codebook is a head.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig, Within
from elastic_core.core.contract import Encoded, Judge, Scorer, Streams, Variant
from elastic_core.core.histories import Catalog
from elastic_core.core.layers import Dropout, EventEmbedding, FeedForward
from elastic_core.core.registry import register
from elastic_core.following.stream import Kept, Stream
from elastic_core.peers.parts.capabilities import Codewords
from elastic_core.peers.parts.codebooks import Codebooks, Codes
from elastic_core.peers.parts.distinct import distinct
from elastic_core.peers.parts.histogram_attention import HistogramAttention, Tables, attend, event_shares, final_counts

ITEM_SCALE = 0.02  # standard deviation of what items are scored by, as in EventEmbedding
CODED_SCALE = 0.1  # of what only codes are found from: at 0.02 the first steps turn every item into others' codes


@dataclass(frozen=True, kw_only=True)
class LisaConfig(ModelConfig, name="lisa"):
    label: ClassVar[str] = "LISA"
    layers: Annotated[int, Within(1, 64)] = 1
    form: Literal["base", "soft", "mini"] = "base"
    books: Annotated[int, Within(1, 64)] = 8
    words: Annotated[int, Within(1, 1_024)] = 128  # of each codebook that the sequence is written in
    target_words: Annotated[int, Within(0, 1_024)] = 128  # `mini`: of each codebook that items are scored by; 0: a plain table
    temperature: Annotated[float, Within(0.01, 100)] = 0.7
    decay: Annotated[float, Within(0, 1)] = 0.1  # how fast counts fade, per event
    positions: bool = False
    bidirectional: bool = False
    expansion: Annotated[int, Within(1, 16)] = 1


class Ready(NamedTuple):
    """What is the same for every history."""

    codes: Codes | None  # of every item, row 0 padding; None: those of a batch are found when it is there
    tables: list[Tables]  # one a layer


class Layer(nn.Module):
    """Histogram attention and feed-forward layer on `[B, N, d]`; all but the first have codebooks of their own."""

    def __init__(self, config: LisaConfig, first: bool) -> None:
        super().__init__()
        soft = config.form == "soft"
        self.norm = None if first else nn.LayerNorm(config.width)
        self.codebooks = (
            None if first else Codebooks(config.width, config.books, config.words, 0.3, 1.0, config.temperature, soft)
        )
        self.attention = HistogramAttention(config.width, config.books, config.decay, config.bidirectional)
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.width, config.dropout, config.expansion)

    def codes(self, x: Tensor) -> Codes:
        assert self.codebooks is not None and self.norm is not None
        found: Codes = self.codebooks(self.norm(x))
        return found

    def mix(self, x: Tensor, y: Tensor) -> Tensor:
        """Events and what attention gives them."""
        mixed: Tensor = self.feed_forward(x + self.dropout(y))
        return mixed


@register(LisaConfig)
class Lisa(Streams):
    """See the module's table."""

    objective = "all"
    variants = (
        Variant("LISA-Base", {}, "Attention to how often codewords occurred; items are sums of codewords."),
        Variant("LISA-Soft", {"form": "soft", "words": 16}, "Items belong to codewords in parts; a plain table scores them."),
        Variant("LISA-Mini", {"form": "mini", "words": 32}, "Few codewords for the history, more for the items that are scored."),
        Variant("LISA, two-way", {"bidirectional": True}, "Counts of all events; learned by filling in masked ones.", "cloze"),
    )
    config: LisaConfig

    def __init__(self, config: LisaConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.causal = self.streams = not config.bidirectional
        self.masks = config.bidirectional
        inputs = self.n_items + config.bidirectional  # the mask is the last one
        self.events = EventEmbedding(inputs, config.length, config.width, config.dropout, config.positions)
        tied, soft = self.output is None, config.form == "soft"
        apart = tied and config.form == "mini" and config.target_words
        scale = given = ITEM_SCALE * self.events.scale
        if apart or config.form == "base" or not tied:  # no table scores by these numbers, they are for codes alone
            nn.init.normal_(self.events.items.weight, std=CODED_SCALE)
            given = CODED_SCALE * self.events.scale
        self.codebooks = Codebooks(config.width, config.books, config.words, scale, given, config.temperature, soft)
        own = Codebooks(config.width, config.books, config.target_words, scale, given, config.temperature) if apart else None
        self.targets = own
        self.layers = nn.ModuleList(Layer(config, first=not i) for i in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    # --- passes ------------------------------------------------------------------------------------------------------

    def forward(self, batch: Batch) -> Encoded:
        return Encoded(self._encode(batch, Ready(None, self._tables())))

    def last_state(self, batch: Batch) -> Tensor:
        return self._encode(self.asked(batch), Ready(None, self._tables()), last=True)[:, -1]

    def asked(self, batch: Batch) -> Batch:
        """Both ways: the mask behind the history; of a full one the oldest event makes room."""
        if not self.masks:
            return batch
        keep = min(batch.items.shape[1], self.length - 1)
        items = functional.pad(batch.items[:, -keep:], (0, 1), value=self.n_items + 1)
        times = None if batch.times is None else functional.pad(batch.times[:, -keep:], (0, 1))
        return replace(batch, items=items, retrieval_items=items, targets=None, times=times)

    def scorer(self) -> Scorer:
        books = self.target_codebooks
        if books is None:
            return super().scorer()
        table = books.compose(self._everything()[1:]) / self.events.scale
        return Scorer(functional.pad(table, (0, 0, 1, 0)), again=self.again)

    def reading(self) -> tuple[Judge, Scorer]:
        """Finds the codes of all items and composes all tables once."""
        scorer, ready = self.scorer(), self.ready()
        return lambda batch: self._encode(self.asked(batch), ready, last=True)[:, -1], scorer

    def last_weights(self, batch: Batch) -> Tensor:
        """`Attends`: what attention to words comes to for the events that have them; a codebook is a head. What a mask gives
        itself is left out."""
        asked, columns, ready = self.asked(batch), batch.items.shape[1], self.ready()
        real, codes, found = asked.real if asked.padded else None, self._codes(asked.items, ready.codes), []
        x = self.events.place(codes.vectors, real)
        for i, (layer, tables) in enumerate(zip(self.layers, ready.tables, strict=True)):
            assert isinstance(layer, Layer)
            codes = layer.codes(x) if i else codes
            counted = self.counted(codes, real)
            found.append(event_shares(counted, codes.chosen[:, -1], tables.weights, self.config.decay))
            x = layer.mix(x, layer.attention(codes.chosen, counted, tables))
        weights = torch.stack(found)[..., : -1 if self.masks else None]
        return functional.pad(weights, (columns - weights.shape[-1], 0))

    def codewords(self) -> Codewords:
        """`Quantises`: of the first layer, in which histories are written."""
        codes = self.codebooks(self._everything()[1:])
        soft = self.config.form == "soft"
        return Codewords(codes.chosen, self.codebooks.words, codes.shares if soft else None)

    def codebooks_of(self) -> tuple[int, int]:
        """`Quantises`."""
        return self.config.books, self.config.words

    def kept_per_event(self, columns: int) -> int:
        return super().kept_per_event(columns) + self.config.books * (8 * self.config.words + 3 * self.config.width)

    def open_stream(self, room: int) -> "LisaStream":
        return LisaStream(self, room)

    # --- codes -------------------------------------------------------------------------------------------------------

    @property
    def target_codebooks(self) -> Codebooks | None:
        """The codebooks that items are scored by; None where they have a plain table."""
        return self.codebooks if self.config.form == "base" and self.output is None else self.targets

    def item_codes(self, books: Codebooks) -> Tensor:
        """The codes of all items, `[n_items, b]`."""
        with torch.no_grad():
            return torch.cat([books(piece).chosen for piece in self._everything()[1:].split(2_048)])

    def ready(self) -> Ready:
        return Ready(self.codebooks(self._everything(masks=True)), self._tables())

    def _everything(self, masks: bool = False) -> Tensor:
        """What codebooks are given of items, `[n_items + 1, d]`; with the mask, if there is one and it is asked for."""
        weight = self.events.items.weight
        return (weight if masks else weight[: self.n_items + 1]) * self.events.scale

    def _tables(self) -> list[Tables]:
        books = [self.codebooks, *(layer.codebooks for layer in list(self.layers)[1:])]
        return [layer.attention.tables(own.words) for layer, own in zip(self.layers, books, strict=True)]  # type: ignore[union-attr, operator]

    def _codes(self, items: Tensor, known: Codes | None) -> Codes:
        if known is not None:
            return known.at(items)
        there, where = distinct(items, len(self.events.items.weight))
        found: Codes = self.codebooks(self.events.content(there))
        return found.at(where)

    def _encode(self, batch: Batch, ready: Ready, last: bool = False) -> Tensor:
        """States at every position, or of the last event alone."""
        real = batch.real if batch.padded else None
        codes = self._codes(batch.items, ready.codes)
        x = self.events.place(codes.vectors, real)
        for i, (layer, tables) in enumerate(zip(self.layers, ready.tables, strict=True)):
            assert isinstance(layer, Layer)
            codes = layer.codes(x) if i else codes
            ends = last and i == len(self.layers) - 1
            y = layer.attention(codes.chosen, self.counted(codes, real), tables, last=ends)
            x = layer.mix(x[:, -1:] if ends else x, y)
        states: Tensor = self.norm(x)
        return states

    def counted(self, codes: Codes, real: Tensor | None) -> Tensor:
        """How much each word counts at each event `[B, N, b, w]`, nothing on padding."""
        counted = codes.counted(self.config.words)
        return counted if real is None else counted * real[..., None, None]


# --- streaming -------------------------------------------------------------------------------------------------------


class LisaStream(Stream):
    """A person's state of constant size: a histogram for each layer, L·b·w numbers (paper's 4.8), and nothing else.

    Without `positions` nothing counts from an end: after any number of events the state equals one pass over all of them.
    """

    def __init__(self, model: Lisa, room: int) -> None:
        super().__init__(model, room, limited=model.config.positions)
        with torch.inference_mode():
            self.ready = model.ready()

    def _start(self, history: Tensor, columns: slice) -> tuple[Tensor, Kept]:
        model, real, kept = self.model, history > 0, Kept()
        codes = model._codes(history, self.ready.codes)
        x = (codes.vectors + model.events.where(columns)) * real.unsqueeze(-1)
        for i, (layer, tables) in enumerate(zip(model.layers, self.ready.tables, strict=True)):
            codes = layer.codes(x) if i else codes
            counted = model.counted(codes, real)
            kept[f"{i}.counts"] = final_counts(counted, model.config.decay)  # [B, b, w]
            x = layer.mix(x, layer.attention(codes.chosen, counted, tables))
        return model.norm(x[:, -1]), kept

    def _next(self, items: Tensor) -> Tensor:
        model, keep = self.model, math.exp(-self.model.config.decay)
        codes = model._codes(items.unsqueeze(1), self.ready.codes)
        where = self.where()
        x = codes.vectors + (where.view(-1, 1, codes.vectors.shape[-1]) if isinstance(where, Tensor) else where)
        for i, (layer, tables) in enumerate(zip(model.layers, self.ready.tables, strict=True)):
            codes, counts = layer.codes(x) if i else codes, self.kept[f"{i}.counts"]
            counts.mul_(keep).add_(model.counted(codes, None)[:, 0])
            x = layer.mix(x, attend(counts.unsqueeze(1), codes.chosen, *tables))
        state: Tensor = model.norm(x[:, -1])
        return state
