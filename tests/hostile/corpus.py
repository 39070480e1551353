"""Files that a careless or hostile visitor may send, made here in a few lines each. Every one has exactly one right answer:
a sentence that refuses it, or a dataset with the oddity reported.
"""

import gzip
import io
import pickle
import random
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

HEAD = "user,item,time\n"
USERS, ITEMS = 6, 7


def rows(users: int = USERS, items: int = ITEMS, time: Callable[[int], object] = lambda i: 1_000_000_000 + i) -> list[list[str]]:
    """Everybody meets everything, each in another order: survives the 5-core whole."""
    return [[f"u{u}", f"i{(i + u) % items}", str(time(u * items + i))] for u in range(users) for i in range(items)]


def text(*extra: str, head: str = HEAD, mark: str = ",", **shape: object) -> str:
    """A good file, and some more lines at its end."""
    return head + "".join(f"{line}\n" for line in [*(mark.join(row) for row in rows(**shape)), *extra])  # type: ignore[arg-type]


GOOD = text()


def zipped(*members: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def parquet(frame: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.to_parquet(out, index=False)
    return out.getvalue()


def frame(**more: object) -> pd.DataFrame:
    table = pd.DataFrame(rows(), columns=["user", "item", "time"])
    return table.assign(**{"time": table["time"].astype("int64"), **more})


def titled(*titles: str, mark: str = ",") -> str:
    """The good file with a title column; the first items get these titles."""
    named = dict(zip((f"i{i}" for i in range(ITEMS)), titles, strict=False))
    lines = [mark.join([*row, '"' + named.get(row[1], "Plain").replace('"', '""') + '"']) for row in rows()]
    return mark.join(["user", "item", "time", "title"]) + "\n" + "\n".join(lines) + "\n"


def encrypted() -> bytes:
    """A zip whose member claims to be encrypted."""
    data = bytearray(zipped(("a.csv", GOOD.encode())))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def noise(size: int) -> bytes:
    return random.Random(0).randbytes(size)


@dataclass(frozen=True)
class Case:
    """`refused`: a part of the sentence; else `said`: a part of the notes and row errors of the dataset it becomes."""

    id: str
    name: str
    make: Callable[[], bytes]
    refused: str = ""
    said: str = ""
    left_out: int = 0
    mapping: dict[str, str] | None = None


def case(id: str, content: str | bytes | Callable[[], bytes], *, name: str = "mine.csv", **answer: object) -> Case:
    make = content if callable(content) else lambda: content.encode() if isinstance(content, str) else content
    return Case(id, name, make, **answer)  # type: ignore[arg-type]


CASES = [
    # nothing, or not a table
    case("empty", b"", refused="is empty"),
    case("blank-lines", "\n\n  \n", refused="is empty"),
    case("header-only", HEAD, refused="no rows below its header"),
    case("binary", lambda: noise(5000), refused="not a text file"),
    case("nul-bytes", GOOD.replace("u1", "u\0", 1), refused="NUL bytes"),
    case("pickle-as-csv", pickle.dumps([1, 2, 3]), refused="pickle, which this page never opens"),
    case("pickle-protocol-0", pickle.dumps({"user": 1}, protocol=0), refused="mine.csv"),
    case("wrong-ending", GOOD, name="mine.exe", refused="not a file this page reads"),
    case("no-ending", GOOD, name="mine", refused="not a file this page reads"),
    case("twenty-one-megabytes", lambda: b"a" * (21 * 2**20), refused="at most 20 MB"),
    case("json", '{"user": "a", "item": "b", "time": 1}', refused="no rows below its header"),
    case("workbook", lambda: zipped(("[Content_Types].xml", b"x")), name="m.zip", refused="spreadsheet workbook"),
    # columns
    case("missing-column", GOOD.replace("item", "thing", 1), refused="a column for the item"),
    case("million-columns", "a," * 10**6 + "b\n1\n", refused="at most 50"),
    case("one-column-twice", GOOD, mapping={"user": "user", "item": "user", "time": "time"}, refused="two things at once"),
    case("unknown-column", GOOD, mapping={"user": "user", "item": "item", "time": "when"}, refused="no column 'when'"),
    case("duplicate-header", text(head="user,item,time,user\n").replace("\nu", "\nu", 1), refused="none of its"),
    case("same-name-twice", titled("A").replace("title", "user", 1), said="two columns are called 'user'"),
    case("control-characters-in-header", GOOD.replace("user", "us\x07er", 1), said=""),
    case("no-header", "\n".join(f"{u},{i},{1000 + i}" for u in range(6) for i in range(6)), refused="needs a column"),
    case(
        "no-header-mapped", "\n".join(f"{u},{i},{1000 + i}" for u in range(6) for i in range(6)),
        mapping={"user": "column 1", "item": "column 2", "time": "column 3"}, said="taken for data",
    ),
    # encodings and line ends
    case("byte-order-mark", b"\xef\xbb\xbf" + GOOD.encode(), said="byte order mark"),
    case("utf-16", GOOD.encode("utf-16"), said="UTF-16"),
    case("torn-utf-16", GOOD.encode("utf-16")[:-1], refused="not a text file"),
    case("latin-1", titled("Amélie").encode("latin-1"), said="Latin-1"),
    case("windows-1252", titled("“Quoted”").encode("cp1252"), said="Latin-1"),
    case("carriage-returns", GOOD.replace("\n", "\r"), said="Macintosh"),
    case("windows-lines", GOOD.replace("\n", "\r\n")),
    case("semicolons", text(head="user;item;time\n", mark=";"), said="semicolons"),
    case("tabs", text(head="user\titem\ttime\n", mark="\t"), name="mine.tsv", said="tabs"),
    # rows
    case("ragged", text("u1,i1", "u1,i1,5,6,7"), said="cells where the first line has 3", left_out=2),
    case("quoted-newlines", titled("First\nsecond line"), said="control characters"),
    case("open-quotation", text('u1,"i1,5'), refused="never closed"),
    case("quotation-inside", text('u1,"i"1,5'), said="quotation mark inside", left_out=1),
    case("very-long-cell", text(f"u1,{'x' * 200_000},5"), said="far too long", left_out=1),
    case("long-id", text(f"u1,{'x' * 300},5"), said="longer than 200", left_out=1),
    case("missing-ids", text(",i1,5", "u1,nan,5"), said="the user is missing", left_out=2),
    case("control-characters-in-ids", text("u1,i\x1b[2J,5"), said="control character", left_out=1),
    case("direction-marks-in-ids", text("u1,\u202eexe.i,5"), said="control character", left_out=1),
    case("duplicated-rows", text(*(",".join(row) for row in rows()[:9])), said="9 rows that repeat"),
    case("blank-lines-between", GOOD.replace("\n", "\n\n")),
    # times
    case("words-as-time", text("u1,i1,soon"), said="line 44: the time is not a number", left_out=1),
    case("negative-time", text("u1,i1,-5"), said="before 1970", left_out=1),
    case("huge-time", text("u1,i1,1e300"), said="after the year 2200", left_out=1),
    case("nan-and-infinity", text("u1,i1,NaN", "u1,i1,inf"), said="the time is missing", left_out=2),
    case("mixed-times", text("u1,i1,2024-01-05", "u2,i2,2024-13-45"), said="not a number", left_out=2),
    case("dates-and-a-number", text("u1,i1,5", time=lambda i: f"2024-01-{1 + i % 28:02d}"), said="not a date", left_out=1),
    case("milliseconds", text(time=lambda i: 1_000_000_000_000 + i * 1000), said="milliseconds"),
    case("impossible-dates", text(time=lambda i: f"31/13/{2000 + i}"), refused="rows cannot be used"),
    # too little
    case("one-user", text(users=1), refused="only one user"),
    case("one-item", HEAD + "".join(f"u{i},x,{i}\n" for i in range(9)), refused="only one item"),
    case("short-histories", HEAD + "".join(f"u{u},i{i},{i}\n" for u in range(9) for i in range(2)), refused="nothing is left"),
    # titles
    case("formulas", titled('=HYPERLINK("http://x")', "+1+1", "-2+3", "@SUM(A1)"), said="4 titles look like formulas"),
    case("script", titled("<script>alert(1)</script>", "<img src=x onerror=alert(1)>"), said="2 titles hold HTML"),
    case("markdown", titled("![x](http://x/y.png)", "**bold**", "[a](javascript:alert(1))")),
    case("right-to-left-and-emoji", titled("\u202egpj.exe", "🎬 مرحبا", "👩\u200d🚀"), said="1 titles held control characters"),
    case("long-title", titled("x" * 5000), said="cut to 200"),
    # names
    case("path-traversal", GOOD, name="../../etc/cron.d/mine.csv", said="never used as a path"),
    case("windows-path", GOOD, name="C:\\Users\\x\\mine.csv", said="never used as a path"),
    case("endless-name", GOOD, name="x" * 5000 + ".csv", said="shortened"),
    case("odd-name", GOOD, name="a\n\x1b]0;b\x07\u202e.csv", said="shortened"),
    # archives
    case("good-gzip", gzip.compress(GOOD.encode()), name="mine.csv.gz"),
    case("good-zip", zipped(("mine.csv", GOOD.encode())), name="mine.zip"),
    case("truncated-gzip", gzip.compress(GOOD.encode())[:-20], name="mine.csv.gz", refused="not a complete gzip"),
    case("not-a-gzip", GOOD, name="mine.csv.gz", refused="not a complete gz file"),
    case("two-gzip-members", gzip.compress(GOOD.encode()) * 2, name="mine.csv.gz", refused="more than one gzip member"),
    case("gzip-bomb", lambda: gzip.compress(b"0" * (120 * 2**20), 1), name="mine.csv.gz", refused="mine.csv.gz would"),
    case("gzip-as-csv", gzip.compress(GOOD.encode()), said="really a gz file"),
    case("two-members", zipped(("a.csv", b"x"), ("b.csv", b"y")), name="mine.zip", refused="holds 2 files"),
    case("no-member", zipped(), name="mine.zip", refused="holds 0 files"),
    case("absolute-member", zipped(("/etc/passwd.csv", GOOD.encode())), name="mine.zip", refused="points outside"),
    case("climbing-member", zipped(("../../x.csv", GOOD.encode())), name="mine.zip", refused="points outside"),
    case("zip-bomb", lambda: zipped(("a.csv", b"0" * (30 * 2**20))), name="mine.zip", refused="grow more than 200 times"),
    case("encrypted-zip", encrypted, name="mine.zip", refused="protected by a password"),
    case("nested-zip", zipped(("b.zip", zipped(("a.csv", GOOD.encode())))), name="mine.zip", refused="holds another archive"),
    case("torn-zip", zipped(("a.csv", GOOD.encode()))[:-30], name="mine.zip", refused="not a complete zip"),
    case("lying-zip", lambda: bytes(_lying()), name="mine.zip", refused="not a complete zip"),
    case("deflate-noise", zlib.compress(GOOD.encode()), refused="not a text file"),
    # Parquet
    case("good-parquet", parquet(frame(title="=1+1")), name="mine.parquet", said="titles look like formulas"),
    case("parquet-as-csv", parquet(frame()), said="really a Parquet file"),
    case("csv-as-parquet", GOOD, name="mine.parquet", refused="not a complete Parquet file"),
    case("torn-parquet", parquet(frame())[:-40], name="mine.parquet", refused="not a complete Parquet file"),
    case("parquet-noise", b"PAR1" + noise(3000) + b"PAR1", name="mine.parquet", refused="not a complete Parquet file"),
    case("nested-parquet", parquet(frame(tags=[["a"]] * USERS * ITEMS)), name="m.parquet", said="nested things"),
    case("only-nested", parquet(pd.DataFrame({"user": [["a"]], "item": [{"b": 1}]})), name="m.parquet", refused="only nested"),
    case("wide-parquet", parquet(frame(**{f"c{i}": 1 for i in range(60)})), name="m.parquet", refused="at most 50"),
    case("tall-parquet", lambda: parquet(pd.DataFrame({"user": ["a"] * 2_000_001})), name="m.parquet", refused="at most 2,0"),
    case("dates-in-parquet", parquet(frame(time=pd.date_range("2024-01-01", periods=USERS * ITEMS))), name="m.parquet"),
]  # fmt: skip


def _lying() -> bytearray:
    """A zip that declares a smaller file than it holds."""
    data = bytearray(zipped(("a.csv", GOOD.encode())))
    for at in (22, data.index(b"PK\x01\x02") + 24):
        data[at : at + 4] = (10).to_bytes(4, "little")
    return data
