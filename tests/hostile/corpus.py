"""Files that a careless or hostile visitor may send, made here in a few lines each. Every one has exactly one right answer:
a sentence that refuses it, or a dataset with the oddity reported.
"""

import bz2
import gzip
import io
import lzma
import pickle
import random
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

HEAD = "user,item,time\n"
USERS, ITEMS = 6, 7


def rows(users: int = USERS, items: int = ITEMS, time: Callable[[int], object] = lambda i: 1_000_000_000 + i) -> list[list[str]]:
    """Everybody meets everything, each in another order: survives the 5-core whole."""
    return [[f"u{u}", f"i{(i + u) % items}", str(time(u * items + i))] for u in range(users) for i in range(items)]


def text(*extra: str, head: str = HEAD, mark: str = ",", **shape: object) -> str:
    """A good file, and some more lines at its end."""
    return head + "".join(f"{line}\n" for line in [*(mark.join(row) for row in rows(**shape)), *extra])  # type: ignore[arg-type]


GOOD = text()
NAMELESS = "\n".join(f"{u},{i},{1000 + i}" for u in range(6) for i in range(6))
HALVES = ["\n".join(",".join(row) for row in rows()[half]) + "\n" for half in (slice(0, 21), slice(21, None))]
SHEET = "<worksheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><sheetData>"
LAUGHS = "<!DOCTYPE l [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>" for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
) + "]>"  # fmt: skip
SQUEEZERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 1), "bz2": bz2.compress, "xz": lambda data: lzma.compress(data, preset=0),
    "zst": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
}  # fmt: skip


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


def tarred(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def arrow(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return out.getvalue()


def excel(frame: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.to_excel(out, index=False)
    return out.getvalue()


def as_json(*, lines: bool) -> str:
    return str(frame().to_json(orient="records", lines=lines))


def cell(place: str, value: str) -> str:
    return f"<c r='{place}' t='inlineStr'><is><t>{value}</t></is></c>"


def workbook(rows: str, before: str = "") -> bytes:
    """A workbook with this inside its only sheet, as no program writes it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(excel(pd.DataFrame()))) as plain, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name in plain.namelist():
            made.writestr(name, plain.read(name) if "sheet1" not in name else f"{before}{SHEET}{rows}</sheetData></worksheet>")
    return out.getvalue()


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
    case("binary", lambda: noise(5000), refused="not a text file"),
    case("pickle-protocol-0", pickle.dumps({"user": 1}, protocol=0), refused="no columns"),
    case("twenty-one-megabytes", lambda: b"a" * (21 * 2**20), name="../\x1b[2J\u202emine.csv", refused="at most 20.0 MB"),
    # what its name does not say, its bytes do
    case("no-ending", GOOD, name="mine"),
    case("wrong-ending", GOOD, name="mine.exe"),
    case("gzip-as-csv", gzip.compress(GOOD.encode())),
    case("csv-as-gzip", GOOD, name="mine.csv.gz"),
    case("parquet-as-csv", parquet(frame())),
    case("csv-as-parquet", GOOD, name="mine.parquet"),
    # columns
    case("missing-column", GOOD.replace("item", "thing", 1), refused="a column for the item"),
    case("many-columns", "a," * 2_001 + "b\n" + "1," * 2_001 + "2\n", refused="at most 2,000"),
    case("one-column-twice", GOOD, mapping={"user": "user", "item": "user", "time": "time"}, refused="two things at once"),
    case("unknown-column", GOOD, mapping={"user": "user", "item": "item", "time": "when"}, refused="no column 'when'"),
    case("a-name-too-many", text(head="user,item,time,user\n"), refused="its first line and those below have no equal number"),
    case("same-name-twice", titled("A").replace("title", "user", 1), said="two columns are called 'user'"),
    case("control-characters-in-header", GOOD.replace("user", "us\x07er", 1)),
    case("no-header", NAMELESS, refused="a column for the user"),
    case(
        "no-header-mapped", NAMELESS, mapping={"user": "column 1", "item": "column 2", "time": "column 3"},
        said="the first line holds no names",
    ),
    # encodings and line ends
    case("byte-order-mark", b"\xef\xbb\xbf" + GOOD.encode()),
    case("utf-16", GOOD.encode("utf-16"), said="UTF-16"),
    case("torn-utf-16", GOOD.encode("utf-16")[:-1], said="line 43", left_out=1),
    case("latin-1", titled("Amélie").encode("latin-1"), said="not UTF-8"),
    case("windows-1252", titled("“Quoted”").encode("cp1252"), said="cp1252"),
    case("carriage-returns", GOOD.replace("\n", "\r")),
    case("windows-lines", GOOD.replace("\n", "\r\n")),
    case("semicolons", text(head="user;item;time\n", mark=";"), said="semicolons"),
    case("tabs", text(head="user\titem\ttime\n", mark="\t"), name="mine.tsv", said="tabs"),
    # rows
    case("ragged", text("u1,i1", "u1,i1,5,6,7"), said="cells where 3 belong", left_out=2),
    case("quoted-newlines", titled("First\nsecond line"), said="control characters"),
    case("open-quotation", text('u1,"i1,soon'), said="line 44", left_out=1),
    case("quotation-inside", text('u1,"i"1,soon'), said="line 44", left_out=1),
    case("very-long-cell", text(f"u1,{'x' * 200_000},5"), said="longer than 200", left_out=1),
    case("duplicated-rows", text(*(",".join(row) for row in rows()[:9])), said="9 rows that repeat"),
    case("blank-lines-between", GOOD.replace("\n", "\n\n")),
    # times
    case("mixed-times", text("u1,i1,2024-01-05", "u2,i2,2024-13-45"), said="no number", left_out=2),
    case("dates-and-a-number", text("u1,i1,5", time=lambda i: f"2024-01-{1 + i % 28:02d}"), said="no date", left_out=1),
    case("milliseconds", text(time=lambda i: 1_000_000_000_000 + i * 1000), said="milliseconds"),
    case("impossible-dates", text(time=lambda i: f"31/13/{2000 + i}"), refused="rows cannot be used"),
    # too little
    # titles
    case("formulas", titled('=HYPERLINK("http://x")', "+1+1", "-2+3", "@SUM(A1)")),
    case("script", titled("<script>alert(1)</script>", "<img src=x onerror=alert(1)>"), said="2 titles hold HTML"),
    case("markdown", titled("![x](http://x/y.png)", "**bold**", "[a](javascript:alert(1))")),
    case("right-to-left-and-emoji", titled("\u202egpj.exe", "🎬 مرحبا", "👩\u200d🚀"), said="1 titles held control characters"),
    case("long-title", titled("x" * 5000), said="cut to 200"),
    # names
    case("path-traversal", GOOD, name="../../etc/cron.d/mine.csv"),
    case("windows-path", GOOD, name="C:\\Users\\x\\mine.csv"),
    case("endless-name", GOOD, name="x" * 5000 + ".csv"),
    case("odd-name", GOOD, name="a\n\x1b]0;b\x07\u202e.csv"),
    case("odd-name-refused", b"\0" * 99, name="../a\n\x1b]0;b\x07\u202e" + "x" * 5000, refused="a ]0;bxxx"),
    # packed
    *(
        case(f"good-{end}", squeeze(GOOD.encode()), name=f"mine.csv.{end}", refused="" if end == "gz" else "unpack it, and give")
        for end, squeeze in SQUEEZERS.items()
    ),
    case("good-zip", zipped(("mine.csv", GOOD.encode())), name="mine.zip"),
    case("good-tar", tarred(("mine.csv", GOOD.encode())), name="mine.tgz", refused="is a tar archive"),
    case("parts", zipped(*((f"{half[:2]}.csv", (HEAD + half).encode()) for half in HALVES)), name="mine.zip", said="2 files"),
    case("bytes-after-gzip", gzip.compress(GOOD.encode()) + b"evil" * 9, name="mine.csv.gz", refused="not a complete archive"),
    case("two-members", zipped(("a.csv", b"x"), ("b.csv", b"y")), name="mine.zip", refused="no single table"),
    case("climbing-tar", tarred(("../../x.csv", GOOD.encode())), name="mine.tgz", refused="is a tar archive: unpack it"),
    case("lying-zip", lambda: bytes(_lying()), name="mine.zip", refused="not a complete archive"),
    case("deflate-noise", zlib.compress(GOOD.encode()), refused="not a text file"),
    # bombs
    *(
        case(f"bomb-{end}", lambda squeeze=squeeze: squeeze(b"0" * (110 * 2**20)), name=f"mine.csv.{end}", refused="mine.csv.")
        for end, squeeze in SQUEEZERS.items()
    ),
    case("zip-bomb", lambda: zipped(("a.csv", b"0" * (30 * 2**20))), name="mine.zip", refused="grow more than 200 times"),
    case("tar-bomb", lambda: tarred(("a.csv", b"0" * (110 * 2**20))), name="mine.tgz", refused="is a tar archive"),
    case("workbook-bomb", lambda: workbook(cell("A1", "x" * 30_000_000)), name="m.xlsx", refused="would grow"),
    case("far-cell", lambda: workbook(f"<row r='200000'>{cell('CV200000', 'x')}</row>"), name="m.xlsx", refused="no rows below"),
    case("laughs", lambda: workbook(f"<row r='1'>{cell('A1', '&k;')}</row>", LAUGHS), name="m.xlsx", refused="m.xlsx"),
    case("arrow-bomb", lambda: arrow(pa.table({"a": pa.nulls(5_000_000, pa.int64())})), name="m.arrow", refused="at most 2,0"),
    case("a-name-a-line", "".join(f'{{"k{i}": 1}}\n' for i in range(3_000)), name="m.jsonl", refused="at most 2,000"),
    case("deep-json", "[" * 100_000, name="m.json", refused="not complete JSON"),
    case("deep-literals", "{'a': " + "(" * 100_000, name="m.json", refused="not complete JSON"),
    # JSON, Excel, Parquet, Arrow
    case("json-lines", as_json(lines=True), name="mine.jsonl"),
    case("json-list", as_json(lines=False), name="mine.json"),
    case("torn-json", as_json(lines=True)[:-9], name="mine.jsonl", said="no whole JSON object", left_out=1),
    case("good-workbook", lambda: excel(frame()), name="mine.xlsx"),
    case("empty-workbook", lambda: workbook(""), name="mine.xlsx", refused="is empty"),
    case("good-parquet", parquet(frame(title="=1+1")), name="mine.parquet"),
    case("parquet-noise", b"PAR1" + noise(3000) + b"PAR1", name="mine.parquet", refused="not a complete Parquet file"),
    case("nested-parquet", parquet(frame(tags=[["a"]] * USERS * ITEMS)), name="m.parquet"),
    case("nested-ids", lambda: parquet(frame(user=[{"b": 1}] * USERS * ITEMS)), name="m.parquet", refused="column for the user"),
    case("wide-parquet", parquet(frame(**{f"c{i}": 1 for i in range(2_000)})), name="m.parquet", refused="at most 2,000"),
    case("tall-parquet", lambda: parquet(pd.DataFrame({"user": ["a"] * 2_000_001})), name="m.parquet", refused="at most 2,0"),
    case("dates-in-parquet", parquet(frame(time=pd.date_range("2024-01-01", periods=USERS * ITEMS))), name="m.parquet"),
    case("good-arrow", lambda: arrow(pa.Table.from_pandas(frame())), name="mine.feather"),
    case("torn-arrow", lambda: arrow(pa.Table.from_pandas(frame()))[:-40], name="mine.arrow", refused="not a complete Arrow"),
]  # fmt: skip


def _lying() -> bytearray:
    """A zip that declares a smaller file than it holds."""
    data = bytearray(zipped(("a.csv", GOOD.encode())))
    for at in (22, data.index(b"PK\x01\x02") + 24):
        data[at : at + 4] = (10).to_bytes(4, "little")
    return data
