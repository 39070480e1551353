"""Delimited text. How it lies (encoding, separator, quotes, names) is found by looking at its beginning; pyarrow then parses a
stretch of whole lines at a time, all cells as text.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import charset_normalizer
import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from elastic_core.data.reading.archives import AS_CSV, MOST_BYTES, GuardedFile, Member, refuse_large
from elastic_core.data.reading.column_roles import is_usual
from elastic_core.errors import InputError

STRETCH, HEAD, LINES, LONGEST_NAME = 2**26, 2**18, 400, 100  # bytes parsed at a time; bytes and lines looked at
FIELD, RUN = "\x1f", "  "  # stand for :: and for any number of spaces
SPOKEN = {"\t": "tabs", FIELD: "::", "\x01": "^A", ",": "commas", ";": "semicolons", "|": "bars", " ": "spaces", RUN: "spaces"}
Quote = tuple[str | Literal[False], str | Literal[False]]  # the mark, and what escapes it
UNQUOTED: Quote = (False, False)
QUOTES: tuple[Quote, ...] = (('"', False), ('"', "\\"), ("'", False), UNQUOTED, (False, "\\"))
TYPED = re.compile(
    r"[-+]?[0-9][0-9.,eE:/+\-TZ ]*( UTC| [AaPp][Mm])?|[0-9]{1,4}[-/. ][^\W\d]{3,9}[-/. ][0-9]{2,4}.*"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [0-9]{2} .*[0-9]{4}"
)
ACCENT = rb"(?<![\x80-\xff])(?:[\x80\x91-\xff]|[\xc0-\xff]{2}(?=[A-Za-z])|(?<=[A-Za-z])[\xc0-\xff]{2})(?![\x80-\xff])"
ENCODINGS = "cp1252 gb18030 cp1251 cp932 cp949 big5".split()  # that a text which is no UTF-8 may have
SUFFIX = re.compile(r":(token|token_seq|float|float_seq)$")


class Part(NamedTuple):
    """Rows of a table, and the lines that are none."""

    table: Any  # a batch of records
    start: int  # the line, or row, that the first one stands on
    lines: np.ndarray | None = None  # of every row, where they do not follow each other
    bad: tuple[tuple[int, str], ...] = ()

    def line(self, row: int) -> int:
        return self.start + row if self.lines is None else int(self.lines[row])


def to_batch(table: Any) -> Any:
    """Return a table as one batch of records."""
    return pa.record_batch([column.combine_chunks() for column in table.columns], names=table.column_names)


class Layout(NamedTuple):
    """How a text lies: `names` of all columns, whether the first line gave them, how many lines stand `above` the first row."""

    separator: str
    quote: Quote
    names: tuple[str, ...]
    headed: bool
    above: int

    @property
    def delimiter(self) -> str:
        return " " if self.separator == RUN else self.separator

    def normalize(self, data: bytes) -> bytes:
        """Return lines in which one character separates the cells."""
        if self.separator == FIELD:
            return data.replace(b"::", FIELD.encode())
        return re.sub(rb"(?m)[ \t]+", b" ", re.sub(rb"(?m)^[ \t]+|[ \t]+\r?$", b"", data)) if self.separator == RUN else data


def read_pieces(file: GuardedFile, notes: list[str]) -> Iterator[bytes]:
    """Yield the text in UTF-8, whole lines at a time. Raises InputError for what is no text."""
    data, rest, line, encoding = file.read(STRETCH), b"", 1, ""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    decoder = codecs.getincrementaldecoder("utf-16")("replace") if wide else None
    notes += ["the file is UTF-16 text"] if wide else []
    while data or rest:
        more = len(data) == STRETCH
        data = decoder.decode(data, not more).encode() if decoder else data
        rest += data if b"\n" in data[:HEAD] else data.replace(b"\r", b"\n")
        if b"\0" in rest[:HEAD]:
            raise InputError(f"{file.member.label} is not a text file in UTF-8 (it holds NUL bytes): {AS_CSV} in UTF-8")
        cut = _end_lines(rest) if more else len(rest)
        if cut:
            piece, rest = rest[:cut], rest[cut:]
            if not piece.isascii():
                encoding = encoding or _find_encoding(piece, line, notes)
                piece = piece.decode(encoding, "replace").encode()
            line += piece.count(b"\n")
            yield piece.removeprefix(codecs.BOM_UTF8)
        elif len(rest) > (MOST_BYTES if rest[:1] in b"[{" else 2 * STRETCH):
            raise InputError(f"{file.member.label} has a line of more than {len(rest) >> 20} MB, as no table does")
        data = file.read(STRETCH) if more else b""


def detect_layout(head: bytes, member: Member, mapping: Mapping[str, str], notes: list[str]) -> Layout:
    """Return how a text lies, judging by its first lines. `mapping` gives names of columns that were said. Raises InputError for
    too many columns, and where no separator makes columns of it."""
    text = re.split(r"\r\n|\n|\r", head.decode("utf-8", "replace"))
    text = text[:-1] if len(text) > 1 and (len(head) >= HEAD or not text[-1]) else text
    above = next((at for at, line in enumerate(text) if not _is_above(line, text[at:])), 0)
    places = [at for at, line in enumerate(text[: above + LINES]) if at >= above and line.strip()]
    lines = [text[at] for at in places]
    cut = _cut_lines(lines)
    for title_lines in range(1, min(10, len(lines) - 3)) if cut is None else ():
        below = _cut_lines(lines[title_lines:])
        if below is not None and below.width > 2 and below.share > 0.95 and not any(map(_is_typed, below.rows[0])):
            count_text = "one line" if title_lines == 1 else f"{title_lines} lines"
            notes.append(f"{count_text} above the names of the columns left out ({lines[0][:40]!r} …)")
            cut, above = below, places[title_lines]
            break
    if cut is None:
        raise InputError(
            f"{member.label} has no columns: its first line and those below have no equal number of cells that a comma, tab, "
            "semicolon, bar or space separates; write one event a line, as in user,item,time"
        )
    refuse_large(0, cut.width, member)
    names, headed = _name_columns(cut, mapping, notes)
    if cut.separator != ",":
        notes.append(f"{SPOKEN[cut.separator]} separate the columns")
    return Layout(cut.separator, cut.quote, tuple(names), headed, above + headed)


def parse_lines(data: bytes, layout: Layout, wanted: list[str], start: int) -> Part:
    """Return the rows of whole lines, of which the first stands on line `start`, with the columns that are wanted."""
    data = layout.normalize(data)
    ends = data.count(b"\n") + (not data.endswith(b"\n"))
    quote = layout.quote if layout.quote[0] and layout.quote[0].encode() in data else (False, layout.quote[1])
    table, bad = _parse_by_arrow(data, layout, quote, wanted)
    unclosed = _count_unclosed(data, layout.delimiter, quote[0]) if table.num_rows < ends and quote[0] else 0
    if unclosed > 0:
        other, more = _parse_by_arrow(data, layout, UNQUOTED, wanted)
        gained = other.num_rows - len(more) - table.num_rows + len(bad)
        if gained > 2 or (unclosed > 1 and other.num_rows >= table.num_rows):  # a torn end never closes one, and gives two
            quote, table, bad = UNQUOTED, other, more
    if table.num_rows == ends:
        return Part(table, start)
    lines, odd, width = list[int](), list[tuple[int, str]](), len(layout.names)
    for line, cells in _split_rows(io.StringIO(data.decode("utf-8", "replace"), None), layout.delimiter, quote):
        if len(cells) == width:
            lines.append(start + line)
        elif layout.delimiter.join(cells).strip():
            odd.append((start + line, f"{len(cells)} cells where {width} belong"))
    return Part(table, start, np.array(lines), tuple(odd))


def _count_unclosed(data: bytes, separator: str, mark: str) -> int:
    """Return how many more cells begin with a quotation mark than end with one: so many marks are no quotation. A mark that is
    all of a line's cell may end one that began on a line before."""
    between, quote = re.escape(separator).encode(), mark.encode()
    data = data.replace(quote + quote, b"")
    begins, ends = rb"(?<![^" + between + rb"\n])" + quote, quote + rb"(?![^" + between + rb"\r\n])"
    alone = rb"(?<![^" + between + rb"\n])" + ends
    return len(re.findall(begins, data)) - len(re.findall(ends, data)) - len(re.findall(alone, data))


def _parse_by_arrow(data: bytes, layout: Layout, quote: Quote, wanted: list[str], block: int = 2**22) -> tuple[Any, list[str]]:
    """Return the table of text, and the text of what is no row."""
    bad = list[str]()

    def leave_out(row: Any) -> str:
        bad.append(row.text)
        return "skip"

    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(block_size=block, column_names=list(layout.names)),
            arrow_csv.ParseOptions(
                delimiter=layout.delimiter, quote_char=quote[0], escape_char=quote[1], newlines_in_values=bool(quote[0]),
                ignore_empty_lines=True, invalid_row_handler=leave_out,
            ),
            arrow_csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), null_values=[]
            ),
        )  # fmt: skip
    except pa.ArrowInvalid as error:
        if len(data) > block:  # a row that is longer
            return _parse_by_arrow(data, layout, quote, wanted, len(data) + 1)
        raise InputError(f"the table cannot be parsed ({str(error)[:120]}): {AS_CSV} with ordinary rows") from None
    return to_batch(table), bad


# --- looking ---------------------------------------------------------------------------------------------------------


def _is_above(line: str, lines: list[str]) -> bool:
    """Whether a line belongs to no table: empty, a comment, or Excel's sep=."""
    comment = line[:1] in ("#", "%") and any(other.strip() and other[0] != line[0] for other in lines)
    return not line.strip() or comment or line.lstrip('\ufeff"').startswith("sep=")


class CutLines(NamedTuple):
    """Lines cut into cells: a share of them, the first left out, has the most usual width."""

    separator: str
    quote: Quote
    rows: list[list[str]]
    width: int
    share: float

    @property
    def likely(self) -> tuple[bool, bool, int]:
        """How likely its separator is, beside others."""
        holes = self.separator == " " and any(not cell.strip() for row in self.rows[:50] for cell in row[:-1])
        wide = self.separator != RUN and round(self.share, 2) > 0.9
        return self.separator not in (" ", RUN), not holes, self.width if wide else 0


def _cut_lines(lines: list[str]) -> CutLines | None:
    """Return the lines cut by the separator and the quotes that give most of them the same number of cells."""
    candidates = list[CutLines]()
    for separator in SPOKEN:
        mark, cuts = {FIELD: "::", RUN: " "}.get(separator, separator), list[CutLines]()
        for quote in QUOTES if any(mark in line for line in lines[:2]) else ():
            if quote in (QUOTES[0], UNQUOTED) or any(str(mark) in line for mark in quote if mark for line in lines):
                rows = _cut_cells(lines, separator, quote)
                width, often = Counter(map(len, rows[1:] or rows)).most_common(1)[0] if rows else (0, 0)
                share = often / max(1, len(rows) - 1)
                if width > 1 and share >= 0.6 and _begins_table(rows, width):
                    cuts.append(CutLines(separator, quote, rows, width, share))
        if cuts:
            candidates.append(max(cuts, key=lambda cut: (len(cut.rows[0]) == cut.width, round(cut.share, 2))))
    return max(candidates, key=lambda cut: cut.likely, default=None)


def _begins_table(rows: list[list[str]], width: int) -> bool:
    """Whether the first line has as many cells; or one fewer, where others end in a separator, or begin with their number."""
    body = [row for row in rows[1:] if len(row) == width]
    ends = not any(row[-1].strip() for row in body) or len({row[0] for row in body}) == len(body) > 1
    return len(rows[0]) == width or (len(rows[0]) == width - 1 and ends)


def _cut_cells(lines: list[str], separator: str, quote: Quote) -> list[list[str]]:
    if separator == RUN:
        return [line.split() for line in lines]
    ends = (line.replace("::", FIELD if separator == FIELD else "::") + "\n" for line in lines)
    try:
        return [cells for _, cells in _split_rows(ends, separator, quote, bool(quote[0]) and separator != " ")]
    except csv.Error:
        return []


def _split_rows(lines: Iterable[str], separator: str, quote: Quote, spaced: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of every row that is not empty, with how many lines stand above it."""
    above, before = 0, csv.field_size_limit(STRETCH)
    try:
        reader = csv.reader(
            lines, delimiter=separator, skipinitialspace=spaced, quotechar=quote[0] or None, escapechar=quote[1] or None,
            quoting=csv.QUOTE_MINIMAL if quote[0] else csv.QUOTE_NONE,
        )  # fmt: skip
        for cells in reader:
            if cells:
                yield above, cells
            above = reader.line_num
    finally:
        csv.field_size_limit(before)


def _name_columns(cut: CutLines, mapping: Mapping[str, str], notes: list[str]) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether the first line gave them."""
    first, body = [cell.strip() for cell in cut.rows[0]], [row for row in cut.rows[1:] if len(row) == cut.width]
    names = [SUFFIX.sub("", "".join(c for c in cell.strip("\"'") if c.isprintable()).strip())[:LONGEST_NAME] for cell in first]
    usual, mapped = sum(map(is_usual, names)), any(name in names for name in mapping.values() if name and not name.isdecimal())
    if len(first) < cut.width:
        names.insert(0 if any(row[-1].strip() for row in body) else len(names), "")
    elif usual < 2 and not mapped and body:
        columns = [sum(map(_is_typed, column)) > 0.8 * len(body) for column in zip(*body, strict=True)]
        alike = {(_is_typed(cell), typed) for cell, typed in zip(first, columns, strict=True)}
        like_rows = (True, True) in alike or (not usual and any(map(_is_typed, first)))
        if like_rows or not (usual or (False, True) in alike):
            notes.append("the first line holds no names, so it was taken for data and the columns were numbered")
            return [f"column {i}" for i in range(1, cut.width + 1)], False
    for at, name in enumerate(names):
        names[at] = name or f"column {at + 1}"
        if names[at] in names[:at]:
            notes.append(f"two columns are called {name!r}; the later one is now {name!r} with its number")
            names[at] = f"{name} ({at + 1})"
    return names, True


def _is_typed(cell: str) -> bool:
    return bool(TYPED.fullmatch(cell.strip("\"' ")))


def _find_encoding(data: bytes, line: int, notes: list[str]) -> str:
    """Return the encoding of a text that is not ASCII, and say so where it is not UTF-8."""
    decoded = data.decode("utf-8", "replace")
    if "\ufffd" not in decoded:
        return "utf-8"
    line += decoded.count("\n", 0, decoded.index("\ufffd"))
    if decoded.count("\ufffd") < 0.02 * len(re.findall(rb"[\xc2-\xf4]", data)):
        notes.append(f"bytes that are no UTF-8 (line {line}) are shown as \ufffd")
        return "utf-8"
    sample = b"\n".join(text for text in data[: 4 * HEAD].split(b"\n") if not text.isascii())
    accents = len(re.findall(ACCENT, sample)) >= 0.6 * len(re.findall(rb"[\x80-\xff]+", sample))  # of a script as ours
    guess = None if accents else charset_normalizer.from_bytes(sample, cp_isolation=ENCODINGS).best()
    name = guess.encoding if guess else ENCODINGS[0]
    notes.append(f"the file is not UTF-8 (line {line}); it was read as {name}, so check the accents")
    return name


def _end_lines(data: bytes) -> int:
    """Return how many bytes are whole lines; a cell in quotes that goes on over lines stays in one piece where marks pair up."""
    last = cut = data.rfind(b"\n") + 1
    odd = data.count(b'"', 0, cut) % 2
    for _ in range(1_000 if odd else 0):
        before = data.rfind(b"\n", 0, cut - 1) + 1
        odd ^= data.count(b'"', before, cut) % 2
        cut = before
        if not odd or not cut:
            break
    return cut if cut and not odd else last
