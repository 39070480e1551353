"""LISA's three claims of cost (Wu et al., WWW 2021), measured by its own protocols; the paper's figures stand beside ours.

    codes    Table 2: a file that holds the item table, 4·n·d bytes, against one that holds its codebooks and codes,
             ⌈n·b·⌈log2 w⌉ / 8⌉ + 4·b·w·d (n items, b books of w words). Untrained, as bytes do not depend on what was learned;
             d = 128, 8 books. A row has items as `length`, words of a book as `side`, the bytes of the plain file as `peak` and
             of the codes' as `saved`; its time is that of the export
    step     Figure 6: one more event of one person after N; LISA-256 keeps its counts, the Transformer (SASRec of one layer) its
             keys and values. Whole layers, scores of the catalogue left out
    op       4.5 and Table 5: attention alone, a fixed number of events a batch. LISA-W attends to W words in 8 books from codes
             (its tables are looked up); the others from vectors, projections to queries, keys and values included, nothing
             behind the mixture. Linformer's rank is 128 and it reads both ways, as in the paper; the others are causal

What the paper calls Transformer keeps N x N scores: that is `WRITTEN`. `FUSED` is the null that it does not have.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from elastic_core import models
from elastic_core.bench.events import EVENT, ROOM, STEP, after_events
from elastic_core.bench.latency import ITEMS, OP, Setting, systems, yardsticks
from elastic_core.bench.store import Row, figures
from elastic_core.bench.timing import Contestant, Part, measure_rows, once, peak_bytes, row_of
from elastic_core.core.layers import written_out
from elastic_core.errors import InputError
from elastic_core.following.stream import Stream, open_stream
from elastic_core.models import Recommender
from elastic_core.peers.linformer import LinformerConfig, LowRankAttention
from elastic_core.peers.lisa import HistogramAttention, Lisa
from elastic_core.peers.parts.codebooks import Codes
from elastic_core.recipes import model_settings
from elastic_core.tables import markdown

WIDTH, WIDE, BOOKS, RANK = 128, 1_024, 8, 128
CODES, BYTES = "codes", "bytes"  # rows and direction
WRITTEN, FUSED, LINFORMER = "Transformer, written out", "Transformer, fused", "Linformer"
LISAS = {"LISA-128": 16, "LISA-256": 32}  # words of each of the eight books
STEPPERS = ("LISA-256", "Transformer")
TABLE_2 = {"Alibaba": (80_000, 256), "ML-1M": (3_416, 128), "Video Games": (33_487, 256), "ML-25M": (32_720, 256)}  # items, words
READ = (256, 2_048, 16_384, 65_536)  # events before the step
LENGTHS = (128, 512, 1_024, 2_048, 4_096, 8_192, 16_384)


# --- what is measured ------------------------------------------------------------------------------------------------


def parts(device: torch.device, rounds: int = 5) -> Iterator[Part]:
    """Yield what there is to measure, the quick ones first."""
    for items, words in TABLE_2.values():
        for form in ("base", "mini"):
            wanted = [{"system": _form_name(form), "rows": CODES, "width": WIDTH, "length": items}]
            yield f"codes of {items:,} items", partial(codes, device, items, words, form), wanted
    after = [{"system": name, "rows": STEP, "width": WIDTH, "length": n} for name in STEPPERS for n in READ]
    yield "one more event", partial(online, device, READ, rounds), after
    for width, n in (*((WIDTH, n) for n in LENGTHS), (WIDE, LENGTHS[-1])):
        few = 1 if n >= 8_192 else rounds  # seconds each, and nearly all of it plain products
        work = partial(alone, device, Setting(length=n, width=width, k=0, side=0, layers=1), few)
        wanted = [{"system": name, "rows": OP, "width": width, "length": n} for name in (*LISAS, WRITTEN, FUSED, LINFORMER)]
        yield f"attention alone, d = {width}, N = {n:,}", work, wanted


def codes(device: torch.device, items: int, words: int, form: str) -> list[Row]:
    """The export of one data set's item table."""
    own = {"words": words} if form == "base" else {"form": form, "words": LISAS["LISA-256"], "target_words": words}
    torch.manual_seed(0)
    model = models.build(model_settings("lisa", width=WIDTH, length=2, books=BOOKS, **own), items).to(device)
    told = {"rows": CODES} | Setting(length=items, width=WIDTH, k=BOOKS, side=words, layers=1, histories=1).told
    found = list[tuple[int, bytes]]()
    taken = once(lambda: found.append(compress(model)), device)
    ((plain, packed),) = found
    more = {"peak": plain, "saved": len(packed)}
    return [row_of("lisa", _form_name(form), told | {"direction": BYTES}, [taken], more, device)]


def compress(model: Recommender) -> tuple[int, bytes]:
    """Return, of a LISA that scores items by codes, bytes of a file that holds the item table itself, float32, and a file of
    codes, of ⌈log2 w⌉ bits each, and codebooks, those of histories too where they have some; in safetensors format. Raises
    InputError for every other model: it scores items by a plain table."""
    if not isinstance(model, Lisa) or model.target_codebooks is None:
        raise InputError(f"{model.config.name} in this configuration scores items by a plain table, which has no codes")
    packed = {"n_items": torch.tensor(model.n_items)}
    for name, books in {"items": model.target_codebooks, "histories": model.codebooks}.items():
        if name == "items" or books is not model.target_codebooks:
            packed[f"{name}.words"] = words = books.words.detach().cpu()
            packed[f"{name}.codes"] = torch.from_numpy(pack(model.item_codes(books).cpu().numpy(), bits_of(words.shape[1])))
    return len(save({"items": model.scorer().table.detach().cpu()})), save(packed)


def bits_of(words: int) -> int:
    """Bits that tell so many words apart."""
    return max(words - 1, 0).bit_length()


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes `[…]` below 2^bits as a stream of bits, row by row, the highest bit first: uint8 `[⌈codes · bits / 8⌉]`."""
    places = np.arange(bits - 1, -1, -1)
    return np.packbits((codes.reshape(-1, 1) >> places & 1).astype(np.uint8))


def online(device: torch.device, lengths: Sequence[int], rounds: int) -> list[Row]:
    """One more event of one person; `saved` are the bytes kept of them."""
    torch.manual_seed(0)
    found = []
    transformer = systems()[yardsticks()["S"][0]][0]  # the model whose attention is the paper's Transformer
    for n in lengths:
        told = {"rows": STEP} | Setting(length=n, direction=EVENT, width=WIDTH, k=0, side=0, layers=1, histories=1).told
        for name, model in zip(STEPPERS, ("lisa", transformer), strict=True):
            found.append(after_events(name, told, _after(model, n, device), 1, 50, device))
    return measure_rows("lisa", found, device, rounds=rounds, warmup=1)


def _after(name: str, length: int, device: torch.device) -> Stream:
    """Somebody of whom `length` events were read. Who keeps all of them, and would read them in quadratic time, is given as many
    drawn keys and values: a step's time does not depend on what they are."""
    settings = {"form": "mini", "words": LISAS["LISA-256"]} if name == "lisa" else {}
    model = models.build(model_settings(name, length=length + ROOM, width=WIDTH, layers=1, dropout=0.0, **settings), ITEMS)
    stream = open_stream(model.to(device).eval(), ROOM)
    stream.refresh(torch.randint(1, ITEMS + 1, (1, 2 if stream.grows else length), device=device))
    if stream.grows:
        kept = stream.stored()
        drawn = {part: torch.randn_like(x) if x.is_floating_point() else torch.zeros_like(x) for part, x in kept.items()}
        stream.restore(drawn, torch.zeros(1, dtype=torch.int64))
    return stream


def attentions(setting: Setting, device: torch.device | None = None) -> dict[str, Callable[[], Tensor]]:
    """Every attention on the batch of one setting, what it is given made before: `[B, N, d]` each."""
    torch.manual_seed(0)
    b, n, d = setting.batch, setting.length, setting.width
    x, project = torch.randn(b, n, d, device=device), nn.Linear(d, 3 * d, bias=False, device=device)
    low = LowRankAttention(LinformerConfig(width=d, dropout=0.0, length=n, rank=RANK)).to(device)

    def heads() -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = project(x).unsqueeze(1).chunk(3, -1)
        return q, k, v

    def linformer() -> Tensor:
        q, k, v = heads()
        return functional.scaled_dot_product_attention(q, low.of_keys @ k, low.of_values @ v)[:, 0]

    def lisa(words: int) -> Callable[[], Tensor]:
        attention = HistogramAttention(d, BOOKS, decay=0.1).to(device)
        tables = attention.tables(torch.randn(BOOKS, words, d, device=device))
        chosen = Codes(torch.randint(words, (b, n, BOOKS), device=device), None, x)
        return lambda: attention(chosen.chosen, chosen.counted(words), tables)

    return {
        **{name: lisa(words) for name, words in LISAS.items()},
        WRITTEN: lambda: written_out(*heads(), None, 0.0, True)[:, 0],
        FUSED: lambda: functional.scaled_dot_product_attention(*heads(), is_causal=True)[:, 0],
        LINFORMER: linformer,
    }


@torch.inference_mode()
def alone(device: torch.device, setting: Setting, rounds: int) -> list[Row]:
    """Time and, at the paper's width, peak memory of every attention on the same number of events; one round is one pass each."""
    found = []
    for name, job in attentions(setting, device).items():
        peak = {}
        if setting.width == WIDTH:
            peak = {"peak": peak_bytes(job, device)}  # and warmed up
        elif name not in (WRITTEN, FUSED):
            job()
        found.append(Contestant(name, {"rows": OP, **setting.told}, job, also=peak.copy))
    return measure_rows("lisa", found, device, rounds=rounds, warmup=0, seconds=1.0)


# --- what it says ----------------------------------------------------------------------------------------------------


class Claim(NamedTuple):
    """A figure of ours beside the paper's; NaN: not measured, and not in the paper as a number."""

    question: str  # what is compared, and with what
    system: str
    where: str
    here: float
    paper: float


SMALLER = "Item table: times smaller than in float32"
LATER = "One more event: its time over that after 256"
FASTER = "One more event: times faster than the Transformer with kept keys and values"
AHEAD = "Attention alone: times faster is LISA-128 than"
LIGHTER = "Attention alone: times less memory than the Transformer, written out"
# By question: the metric, and what is so of both sides; then system | for what | the paper's figure | of what | over what.
# The paper's are from Tables 2 and 5, and from words: 0.11 ms a step whatever the length, a Transformer 0.98 after 2K and 1.50
# after 64K; 57x; "almost identical speed". Both sides of a ratio are from one machine, number of threads and code.
CLAIMS = {
    SMALLER: ("peak/saved", "rows=codes; width=128", """
        LISA-Base | Alibaba     | 24.26 | system=LISA-Base; length=80000
        LISA-Base | ML-1M       |  3.19 | system=LISA-Base; length=3416
        LISA-Base | Video Games | 13.02 | system=LISA-Base; length=33487
        LISA-Base | ML-25M      | 12.78 | system=LISA-Base; length=32720
        LISA-Mini | Alibaba     | 18.45 | system=LISA-Mini; length=80000
        LISA-Mini | ML-1M       |  2.51 | system=LISA-Mini; length=3416
        LISA-Mini | Video Games | 10.62 | system=LISA-Mini; length=33487
        LISA-Mini | ML-25M      | 10.44 | system=LISA-Mini; length=32720
    """),
    LATER: ("processor", "rows=step; width=128", """
        LISA-256    | 2,048  |   1 | system=LISA-256; length=2048     | length=256
        LISA-256    | 16,384 |   1 | system=LISA-256; length=16384    | length=256
        LISA-256    | 65,536 |   1 | system=LISA-256; length=65536    | length=256
        Transformer | 2,048  | nan | system=Transformer; length=2048  | length=256
        Transformer | 16,384 | nan | system=Transformer; length=16384 | length=256
        Transformer | 65,536 | nan | system=Transformer; length=65536 | length=256
    """),
    FASTER: ("processor", "rows=step; width=128", """
        LISA-256 | 256    | nan                | system=Transformer; length=256   | system=LISA-256
        LISA-256 | 2,048  | 8.909090909090908  | system=Transformer; length=2048  | system=LISA-256
        LISA-256 | 16,384 | nan                | system=Transformer; length=16384 | system=LISA-256
        LISA-256 | 65,536 | 13.636363636363637 | system=Transformer; length=65536 | system=LISA-256
    """),
    AHEAD: ("processor", "rows=op", f"""
        {WRITTEN} | N = 128, d = 128      | nan | system={WRITTEN}; length=128; width=128 | system=LISA-128
        {WRITTEN} | N = 2,048, d = 128    | nan | system={WRITTEN}; length=2048; width=128 | system=LISA-128
        {WRITTEN} | N = 16,384, d = 128   | nan | system={WRITTEN}; length=16384; width=128 | system=LISA-128
        {WRITTEN} | N = 16,384, d = 1,024 |  57 | system={WRITTEN}; length=16384; width=1024 | system=LISA-128
        {FUSED} | N = 128, d = 128      | nan | system={FUSED}; length=128; width=128 | system=LISA-128
        {FUSED} | N = 2,048, d = 128    | nan | system={FUSED}; length=2048; width=128 | system=LISA-128
        {FUSED} | N = 16,384, d = 128   | nan | system={FUSED}; length=16384; width=128 | system=LISA-128
        {FUSED} | N = 16,384, d = 1,024 | nan | system={FUSED}; length=16384; width=1024 | system=LISA-128
        {LINFORMER} | N = 128, d = 128      | nan | system={LINFORMER}; length=128; width=128 | system=LISA-128
        {LINFORMER} | N = 2,048, d = 128    | nan | system={LINFORMER}; length=2048; width=128 | system=LISA-128
        {LINFORMER} | N = 16,384, d = 128   |   1 | system={LINFORMER}; length=16384; width=128 | system=LISA-128
        {LINFORMER} | N = 16,384, d = 1,024 | nan | system={LINFORMER}; length=16384; width=1024 | system=LISA-128
    """),
    LIGHTER: ("peak", f"rows=op; width=128; system={WRITTEN}", f"""
        LISA-128 | N = 512, d = 128    |  2.94 | length=512   | system=LISA-128
        LISA-128 | N = 2,048, d = 128  |  9.55 | length=2048  | system=LISA-128
        LISA-128 | N = 16,384, d = 128 | 78.26 | length=16384 | system=LISA-128
        LISA-256 | N = 512, d = 128    |  1.50 | length=512   | system=LISA-256
        LISA-256 | N = 2,048, d = 128  |  4.87 | length=2048  | system=LISA-256
        LISA-256 | N = 16,384, d = 128 | 39.93 | length=16384 | system=LISA-256
        {LINFORMER} | N = 512, d = 128    |  2.46 | length=512   | system={LINFORMER}
        {LINFORMER} | N = 2,048, d = 128  |  8.49 | length=2048  | system={LINFORMER}
        {LINFORMER} | N = 16,384, d = 128 | 65.53 | length=16384 | system={LINFORMER}
        {FUSED} | N = 512, d = 128    | nan | length=512   | system={FUSED}
        {FUSED} | N = 2,048, d = 128  | nan | length=2048  | system={FUSED}
        {FUSED} | N = 16,384, d = 128 | nan | length=16384 | system={FUSED}
    """),
}  # fmt: skip


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Work out every claim from the rows."""
    found = []
    for question, (metric, both, table) in CLAIMS.items():
        for line in table.strip().splitlines():
            system, where, paper, sides = (cell.strip() for cell in line.split("|", 3))
            here = figures(rows, f"here | {metric} | {both}; {sides}").get("here", math.nan)
            found.append(Claim(question, system, where, here, float(paper)))
    return found


def as_markdown(rows: Sequence[Row]) -> str:
    """A small table a question: ours, and in brackets the paper's."""
    tables: dict[str, dict[str, dict[str, str]]] = {}
    for claim in claims(rows):
        told = _figure(claim.here) + ("" if claim.paper != claim.paper else f" ({_figure(claim.paper)})")
        tables.setdefault(claim.question, {}).setdefault(claim.system, {})[claim.where] = told
    return "\n\n".join(
        markdown([question, *next(iter(lines.values()))], [[name, *cells.values()] for name, cells in lines.items()])
        for question, lines in tables.items()
    )


def _form_name(form: str) -> str:
    return f"LISA-{form.capitalize()}"


def _figure(value: float) -> str:
    return "–" if value != value else f"{value:.2f}" if value < 100 else f"{value:.0f}"
