"""One small world of people and times, written as many programs write it: it is read as it was, or a sentence says why not."""

import gzip
import io
import json
import random
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from elastic_core.commands.options import parse_columns, split_commas
from elastic_core.data.reading import Table, read_interactions
from elastic_core.data.reading.archives import Upload
from elastic_core.errors import InputError
from elastic_core.services.data.upload_store import check_upload, open_upload

DRAW, START, DAY = random.Random(1), 1_546_300_800, 86_400  # 2019-01-01
WORLD: Any = [(str(u), str(i), START + DRAW.randrange(15_000_000)) for u in range(1, 13) for i in DRAW.sample(range(21, 41), 10)]
DRAW.shuffle(WORLD)


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def text(head: str, row: str, rows: Any = WORLD) -> str:
    """Lines of `row` below `head`: `u` and `i` are the ids, `t` the seconds, `d` the moment, `n` the number of the row."""
    lines = [row.format(u=u, i=i, t=t, d=moment(t), n=n) for n, (u, i, t) in enumerate(rows, 1)]
    return "\n".join([*([head] if head else []), *lines, ""])


def grain(seconds: int, rows: Any = WORLD) -> Any:
    return [(u, i, t // seconds * seconds) for u, i, t in rows]


def rows_of(table: Table) -> list[Any]:
    return [(*row[:2], *(round(time, 3) for time in row[2:])) for row in table.events.to_numpy().tolist()]


def read(data: str | bytes, name: str = "x.csv", columns: str = "") -> Table:
    """Read as the command line does, and as the app: alike."""
    source = Upload(name, data.encode() if isinstance(data, str) else data)
    table = read_interactions(source, parse_columns(split_commas(columns)) if columns else {})
    if not columns:
        again = check_upload(*open_upload(name, source.data))
        pd.testing.assert_frame_equal(again.events, table.events)
        assert again.faults == table.faults and dict(again.understood) == dict(table.understood)
    return table


# --- times: how a moment is written, and to how many seconds ---------------------------------------------------------

WRITTEN = {
    "%Y%m%d": DAY, "%Y%m%d%H%M%S": 1, "%Y-%m-%d %H:%M:%S": 1, "%Y-%m-%dT%H:%M:%SZ": 1,
    "%Y-%m-%dT%H:%M:%S.000000000Z": 1, "%Y-%m-%d %H:%M:%S UTC": 1,
    "%d.%m.%Y %H:%M:%S": 1, "%d.%m.%y": DAY, "%m/%d/%y %H:%M": 60, "%m/%d/%Y %I:%M\u202f%p": 60, "%d/%m/%Y %H:%M +0000": 60,
    "%d-%b-%y %H.%M.%S": 1, '"%b %d, %Y"': DAY, "[%d/%b/%Y:%H:%M:%S +0000]": 1, "%a %b %d %H:%M:%S +0000 %Y": 1,
    '"%a, %d %b %Y %H:%M:%S GMT"': 1, "%Y年%m月%d日 %H:%M": 60,
    "%Y_%m_%d": DAY,
}  # fmt: skip
MONTHS = "janvier Februar marzo avril Mai junio juillet".split()
SPELT: dict[str, tuple[int, Any]] = {
    "seconds as 1.5e+09": (1, "{:.9e}".format), "seconds.0": (1, float), "decimal comma": (1, '"{},0"'.format),
    "thousands": (1, '"{:,}"'.format), "milliseconds": (1, "{}000".format), "microseconds": (1, "{}000000".format),
    "nanoseconds": (1, "{}000000000".format), "minutes": (60, lambda t: t // 60),
    "days": (DAY, lambda t: t // DAY), "days of Excel": (DAY, lambda t: t // DAY + 25_569),
    "days of Excel with a clock": (1, lambda t: f"{t / DAY + 25_569:.12f}"),
    "zones by turns": (1, lambda t: f"{moment(t + t % 5 * 3_600):%Y-%m-%d %H:%M:%S}+0{t % 5}:00"),
    "some without a zone": (1, lambda t: moment(t).replace(tzinfo=UTC if t % 2 else None).isoformat()),
    "Central Europe": (1, lambda t: f"{moment(t + 3_600):%Y-%m-%d %H:%M:%S} CET"),
    "months in German, French, Spanish": (DAY, lambda t: f"{moment(t).day}. {MONTHS[moment(t).month - 1]} {moment(t).year}"),
} | {form: (kept, lambda t, form=form: moment(t).strftime(form)) for form, kept in WRITTEN.items()
}  # fmt: skip


@pytest.mark.parametrize("form", SPELT)
def test_a_time_is_a_moment_in_whatever_form(form: str) -> None:
    kept, write = SPELT[form]
    table = read("user,item,time\n" + "".join(f"{u},{i},{write(t)}\n" for u, i, t in WORLD))
    assert [(u, i, t // kept * kept if kept > 1 else t) for u, i, t in rows_of(table)] == grain(kept)
    assert not table.faults.count
    assert dict(table.understood)["from, to"][:10] == f"{moment(min(t for _, _, t in WORLD)):%Y-%m-%d}"


@pytest.mark.parametrize("row", ["{d:%Y-%m-%d %H:%M:%S}.{n:03}", "{d:%d.%m.%Y %H:%M:%S}.{n:03}", "{t}.{n:03}", "{t}{n:03}"])
def test_fractions_of_a_second_keep_the_order(row: str) -> None:
    found = rows_of(read(text("user,item,time", "{u},{i}," + row)))
    assert found == [(u, i, round(t + n / 1_000, 3)) for n, (u, i, t) in enumerate(WORLD, 1)]


# --- text: which column is what, and how it lies ---------------------------------------------------------------------

ALIKE = [  # names and a row; or a row without names, where it is known or said which is which
    # the time is what columns hold, not what they are called
    ("user,item,time,timestamp", "{u},{i},{n},{t}"), ("user,item,time,timestamp", "{u},{i},{d:%H:%M},{t}"),
    ("user,item,date,created_at", "{u},{i},{d:%Y-%m-%d},{d:%Y-%m-%d %H:%M:%S}"), ("user,item,date,rated_at", "{u},{i},1999,{t}"),
    ("user,date,hourmin,item,time_ms", "{u},{d:%Y%m%d},{d:%H%M},{i},{t}000"), ("user,item,timestamp,ts", "{u},{i},,{t}"),
    # a day and a clock
    ("user,item,date,time", "{u},{i},{d:%Y-%m-%d},{d:%H:%M:%S}"),
    ("user,item,order_date,order_time", "{u},{i},{d:%Y%m%d},{d:%H%M%S}"),
    # people and items
    ("user,item,item_id,time", "{u},Gadget,{i},{t}"), ("sid,uid,iid,time", "s{n},{u},{i},{t}"), ("time,item,user", "{t},{i},{u}"),
    (",user,item,time", "{n},{u},{i},{t}"), ("user,item,time,time", "{u},{i},{t},{t}"),
    ("t.user_id,t.item_id,t.ts", "{u},{i},{t}"),
    ("asin,parent_asin,reviewerID,unixReviewTime", "v{n},{i},{u},{t}"), ("user, item, time", " {u} , {i},{t} "),
    ("user,item,time", "{u:<9},{i:>9},{t}"), ("MovieID::UserID::Rating::Timestamp", "{i}::{u}::4::{t}"),
    ("user_id:token\titem_id:token\trating:float\ttimestamp:float", "{u}\t{i}\t4\t{t}"),
    ("", "{u}\t{i}\t3\t{t}"), ("", "{u},{i},{t}"), ("playerId,id_game,playedAt", "{u},{i},{t}"),
    ("Customer ID,ASIN,unixReviewTime", "{u},{i},{t}"), ("Kunde,Artikel,Datum", "{u},{i},{t}"),
    # separators, quotes, what stands around
    ("user\ttitle\titem\ttime", '{u}\t"{n} x\t{i}\t{t}'), ("user,title,item,time", '{u},"The ""9"", or: a\nb",{i},{t}'),
    ('"user","item","time"', '"{u}","{i}","{t}"'), ("'user','title','item','time'", "'{u}','a, b','{i}','{t}'"),
    ("user,title,item,time", '{u},"a \\"b\\", c",{i},{t}'), ("user;item;time;price (EUR, incl. tax, 19,00)", "{u};{i};{t};1,5"),
    ("user,item,time,title", '{u},{i},{t},"a\n9,8,1546300800,b"'), ("user|item|time", "{u}|{i}|{t}"), ("", "{u}\x01{i}\x01{t}"),
    ("user\titem\ttime", "{u}\t{i}\t{t}"),
    ("  user   item        time", "{u:>6} {i:>6}  {t}"), ("user,item,time", "{u},{i},{t},"),
    ('"user" "item" "time"', '"{n}" {u} {i} {t}'),
    ("sep=;\nuser;item;time", "{u};{i};{t}"), ("# from a tool\n# user,item,time are below\nuser,item,time", "{u},{i},{t}"),
    ("", "{{'reviewerID': '{u}', 'asin': '{i}', 'helpful': [0, 1], 'unixReviewTime': {t}}}"),
    ("", '{{"user": {u}, "item": "{i}", "time": {t}, "seen": {{"on": "tv"}}}}\n'),
    # as said
    ("who,what,when,item,user", "{u},{i},{t},x,y", "user=who,item=what,time=when"),
    ("a,b,c", "{i},{t},{u}", "user=3,item=1,time=2"), ("", "{u}\t{t}\t{i}\tfilm", "user=1,item=3,time=2"),
    ("", "{u},{t},{i}", "user=column 1,item=column 3,time=column 2"), ("", "{u}\t{t}\t{i}\t7", "user=1,item=3,time=2"),
    ("a::b::c::d", "{i}::{u}::4::{t}", "user=b,item=a,time=d"),
]  # fmt: skip
HEAD, PLAIN = "user,item,time", text("user,item,time", "{u},{i},{t}")
LONE = "".join(text("", "{u},{i},{t}," + '"' * (n in (50, 52)) + "film", [row]) for n, row in enumerate(WORLD))
JSON = [json.dumps({"user": int(u), "item": i, "time": t}) for u, i, t in WORLD]
ORDERED = sorted(WORLD, key=lambda row: int(row[0]))  # as lists of a person give it
LISTS = {u: [i for v, i, _ in ORDERED if u == v][: 3 + int(u)] for u, _, _ in ORDERED}
UNTIMED, PAIRS = [(u, i) for u, items in LISTS.items() for i in items], [row[:2] for row in WORLD]
WHOLE = {u: [(i, t) for v, i, t in ORDERED if u == v] for u in LISTS}
CASES: dict[str, Any] = {  # text, columns, rows
    **{" / ".join(each).replace("\n", "~"): (text(*each[:2]), each[2] if len(each) > 2 else "", WORLD) for each in ALIKE},
    "Datum, Uhrzeit": (text("user;item;Datum;Uhrzeit", "{u};{i};{d:%d.%m.%Y};{d:%H:%M}"), "", grain(60)),
    "two lone quotes": (HEAD + ",title\n" + LONE, "", WORLD),
    "ids with .0 in some rows": (text(HEAD, "{u}.0,{i},{t}", WORLD[:9]) + text("", "{u},{i},{t}", WORLD[9:]), "", WORLD),
    **{f"ids as {way}": (text(HEAD, f'="{way}",{{i}},{{t}}' if way[0] == "0" else f"{way},{{i}},{{t}}"), "", [
        (way.format(u=u), i, t) for u, i, t in WORLD]) for way in ("00{u}", "{u}" + 20 * "0", "#NA{u}", "{u}e3", "v{u}.0")},
    "users and items alone": (text("", "{u} {i}"), "", PAIRS),
    "no time, as said": (text("user,item,score", "{u},{i},4.5"), "time=", PAIRS),
    "blank lines and CRLF": ("\r\n  \r\n" + PLAIN.replace("\n", "\r\n\r\n"), "", WORLD),
    "a mark before UTF-8": ("\ufeff" + PLAIN, "", WORLD),
    "UTF-16": (PLAIN.encode("utf-16"), "", WORLD),
    "latin-1": (text("Käufer,item,time", "é{u},{i},{t}").encode("latin-1"), "user=Käufer", [
        ("é" + u, i, t) for u, i, t in WORLD]),
    "GBK": (text("用户,商品,时间", "{u},{i},{t}").encode("gbk"), "user=用户,item=商品,time=时间", WORLD),
    "a JSON array": ("[" + ",\n".join(JSON) + "]", "", WORLD),
    "JSON of lists": (json.dumps(WORLD), "user=1,item=2,time=3", WORLD),
    "JSON split": (pd.DataFrame(WORLD, columns=["user", "item", "time"]).to_json(orient="split"), "", WORLD),
    "JSON of columns": (pd.DataFrame(WORLD, columns=["user", "item", "time"]).to_json(), "", WORLD),
    "JSON of sessions": ("\n".join(
        json.dumps({"session": u, "events": [{"aid": i, "ts": t} for i, t in WHOLE[u]]}) for u in LISTS), "", ORDERED),
    "ids beyond 2^53 in JSON": ("\n".join(JSON).replace('"user": ', '"user": 9007199254740993'), "", [
        ("9007199254740993" + u, i, t) for u, i, t in WORLD]),
    "lists in cells": (
        "user,items\n" + "".join(f'{u},"{[*map(int, i)]}"\n' for u, i in LISTS.items()), "time=,item=items", UNTIMED),
    "times in cells": ("user\titem\ttime\n" + "".join(
        f"{u}\t{' '.join(i for i, _ in both)}\t{' '.join(str(t) for _, t in both)}\n" for u, both in WHOLE.items()), "", ORDERED),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_every_kind_of_text_is_the_same_world(kind: str) -> None:
    data, columns, rows = CASES[kind]
    table = read(data, "x.txt", columns)
    assert rows_of(table) == rows and not table.faults.count
    said = dict(table.understood)
    assert said["rows"].startswith(f"{len(rows):,} of ") and {"user", "item"} <= {*said} and ("time" in said) == table.timed


@pytest.mark.parametrize(
    ("head", "row", "says"),
    [
        ("", "{u}\t{t}\t{i}\t7", r"does not name its columns \(1 = '\d+', 2 = '1[0-9]{9}', .*try --columns user=1,item=3,time=2"),
        (
            "who,thing,time",
            "{u},{i},{t}",
            "which column is the person and the item; the person could be who .*try --columns user=who,item=thing,time=time",
        ),
        (
            "user,item,score",
            "{u},{i},4.5",
            "no column holds times that order a person's events.*say --columns time= if the rows are in order",
        ),
        (
            "user,item,begun,noted",
            "{u},{i},{d:%Y-%m-%d %H:%M},{d:%Y-%m-%dT%H:%M}",
            "the time could be begun .* or noted .*try --columns user=user,item=item,time=begun",
        ),
        ("user,item,time", "{u},{i},{d:%Y%m}", "tells only the year or month"),
        ("user,item,time", "{u},{i},{d:%Y}", "tells only the year or month"),
        ("user,item,time", "{u},{i},{d:%d%m%Y}", "have their year at the end: write them as 2023-12-31"),
        ("user,item,time", "{u},{i},{d:%m%d%Y}", "have their year at the end: write them as 2023-12-31"),
        ("user,item,date", "{u},{i},{d:%y%m%d}", r"no column holds times .* \('date' holds no moments\)"),
        ("user,item,time", "{u},{i},{d:%G-W%V-%u}", "no date or number that is understood; .*; write times as 2023-12-31"),
        ("user,item,time", "{u},{i},{d:%Y-%j}", "no date or number that is understood; .*; write times as 2023-12-31 18:50:22"),
        ("user,item,time", "{u},{i},soon", "the time 'soon' is no date or number that is understood"),
        ("user,item,time", "{u},{i},02/0{d.month}/2019", "no row tells which: say it with data.dates=day-first or month-first"),
    ],
)
def test_what_cannot_be_known_is_asked_for(head: str, row: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_interactions(Upload("x.csv", text(head, row).encode()))


# --- packed, many, binary --------------------------------------------------------------------------------------------


def zipped(files: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def saved(way: Any, user: Any = None, item: Any = None, time: Any = None, rows: Any = WORLD) -> bytes:
    """The world in a file of Parquet or the like, with these types."""
    ids, out = [(int(u), i, t) for u, i, t in rows], io.BytesIO()
    columns = zip(("user", "item", "time"), zip(*ids, strict=True), (user, item, time), strict=True)
    way(pa.table({name: pa.array(cells).cast(kind) if kind else pa.array(cells) for name, cells, kind in columns}), out)
    return out.getvalue()


def stream(table: Any, out: Any) -> None:
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)


def covered(table: Any, out: Any) -> None:
    with pd.ExcelWriter(out) as book:
        pd.DataFrame({"about": ["exported in May"]}).to_excel(book, sheet_name="About", index=False)
        table.to_pandas().to_excel(book, sheet_name="Data", index=False)


GZ, PARQUET = gzip.compress(PLAIN.encode()), parquet.write_table
HALVES = [text(HEAD, "{u},{i},{t}", part) for part in (WORLD[:50], WORLD[50:])]
MONTHLY = {f"log-{n + 1}.csv": text(HEAD, "{u},{i},{t}", WORLD[n * 10 : n * 10 + 10]) for n in reversed(range(12))}
YEARS = {"2018/x.csv": HALVES[0], "2019/x.csv": HALVES[1]}
PACKED: dict[str, tuple[Any, str]] = {  # bytes and a name, or the files of a folder
    "gz": (GZ, "x.csv.gz"), "gz named csv": (GZ, "x.csv"), "named gz, packed by nobody": (PLAIN, "x.csv.gz"),
    "two gz in one": (b"".join(gzip.compress(part.encode()) for part in (PLAIN[:999], PLAIN[999:])), "X.CSV.GZ"),
    "zip of gz": (zipped({"x.csv.gz": GZ}), "x.zip"),
    "zip beside prose and litter": (zipped({"a/x.csv": PLAIN, "a/README.md": "# words\n", "__MACOSX/._x.csv": "\0"}), "x.csv"),
    "parts in a zip, one name": (zipped(YEARS), "years.zip"), "parts in a zip, 10 after 9": (zipped(MONTHLY), "x.zip"),
    "parts, 10 after 9": (MONTHLY, ""), "parts, one name": (YEARS, ""),
    "parts to train and test": ({"test.csv": HALVES[1], "train.csv": HALVES[0]}, ""),
    "parts, packed": ({f"part-{n}.csv.gz": gzip.compress(HALVES[n].encode()) for n in (0, 1)} | {"_SUCCESS": ""}, ""),
    "events and other things": (
        {"a.csv": PLAIN, "b.csv": "item,label\n21,x\n", "c.pdf": "%PDF-1.4", "n.db": "SQLite format 3\0"}, ""),
    "MovieLens": ({"u1.base": "1\t21\t3\t9\n", "u.data": text("", "{u}\t{i}\t3\t{t}"), "u.user": "1|24|M|x|85711\n"}, ""),
    "Parquet": (saved(PARQUET), "part-0"), "Parquet, floats": (saved(PARQUET, pa.float64()), "x.parquet"),
    "Parquet, moments": (saved(PARQUET, time=pa.timestamp("s")), "x.parquet"),
    "Parquet, zone": (saved(PARQUET, time=pa.timestamp("s", "Europe/Berlin")), "x.parquet"),
    "Parquet, bytes and decimals": (saved(PARQUET, pa.decimal128(38, 0), pa.binary()), "x.csv"),
    "Parquet, dictionaries": (saved(PARQUET, item=pa.dictionary(pa.int32(), pa.string())), "x.parquet"),
    "parts of Parquet": ({f"p{n}.parquet": saved(PARQUET, rows=part) for n, part in enumerate((WORLD[:50], WORLD[50:]))}, ""),
    "Feather": (saved(feather.write_feather, time=pa.timestamp("s")), "x.feather"), "Arrow": (saved(stream), "x.arrow"),
    "Excel": (saved(lambda table, out: table.to_pandas().to_excel(out, index=False), time=pa.timestamp("s")), "x.xlsx"),
    "Excel below a cover": (saved(covered), "x.xlsx"),
    "Excel named csv": (saved(lambda table, out: table.to_pandas().to_excel(out, index=False)), "x.csv"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PACKED)
def test_every_way_of_packing_and_storing_is_the_same_world(kind: str, write: Any, tmp_path: Path) -> None:
    data, name = PACKED[kind]
    table = read(data, name) if name else read_interactions([write(*each) for each in data.items()] and tmp_path / "given")
    assert rows_of(table) == WORLD and not table.faults.count
    assert any("files of the same columns were read as one" in note for note in table.notes) == kind.startswith("parts")


# --- what is said of it ----------------------------------------------------------------------------------------------


def test_it_is_always_said_what_was_understood() -> None:
    data = text("uid\titem\titem_id\ttime\tcreated_at", "{u}\tGadget\t{i}\t{n}\t{d:%d.%m.%Y %H:%M:%S}")
    table = read_interactions(Upload("x.csv", data.encode()))
    first, last = (f"{moment(edge(t for _, _, t in WORLD)):%Y-%m-%d %H:%M:%S}" for edge in (min, max))
    assert dict(table.understood) == {
        "user": "uid (by its name)", "item": "item_id (by its name; 'item' has one value in the first 120 rows)",
        "layout": "tabs separate the columns",
        "time": "created_at (its values tell a moment, more than 'time')", "rows": "120 of 120", "from, to": f"{first} to {last}",
    }  # fmt: skip
    assert any("read with the day first, because other rows have a number above 12 there" in note for note in table.notes)


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%d.%m.%Y %H:%M:%S"])
def test_a_day_and_a_clock_in_words_are_a_time_whatever_the_column_is_called(form: str) -> None:
    data = text("u,i,at,note", "{u},{i},{d:" + form + "},10:30")
    table = read_interactions(Upload("x.csv", data.encode()))
    assert rows_of(table) == WORLD and dict(table.understood)["time"] == "at (its values tell a moment)"


@pytest.mark.parametrize(
    ("head", "row", "more", "says"),
    [
        ("", "{u},{i},{t}", "", "the first line holds no names, so it was taken for data and the columns were numbered"),
        ("user,item,time", "{u},{i},{t}000", "", "times were taken for milliseconds, because of their size"),
        ("user,item,time", "{u},{i},60{n:07}", "", "most times are not of 1995 to 2035"),
        ("user,item,time", "{u},{i},{n}", "", "too small for seconds since 1970: only their order can be trusted"),
        ("user,item,time", "{u}.0,{i},{t}", "", "ids of the user such as 12.0 were taken for 12"),
        ("user,item,time,time", "{u},{i},{t},{t}", "", "two columns are called 'time'; the later one is now"),
        ("user,item,time", "{u},{i},{t}", "guest,{i},{t}", "the person 'guest' has 50% of all rows"),
        ("user,item,time", "ü{u},{i},{t}", "", r"the file is not UTF-8 \(line 2\); it was read as cp1252"),
    ],
)
def test_what_is_odd_is_said(head: str, row: str, more: str, says: str) -> None:
    table = read((text(head, row) + (text("", more) if more else "")).encode("latin-1"))
    assert re.search(says, "; ".join([*table.notes, *dict(table.understood).values()]))


# --- titles ----------------------------------------------------------------------------------------------------------

TITLES = {i: f"Señor {i}, The (1990)" for i in sorted({i for _, i, _ in WORLD})}
FLAGS = "|".join(str(int(at in (5, 18))) for at in range(19))
TOKENS = "user_id:token\titem_id:token\trating:float\ttimestamp:float"
ITEM = "item_id:token\t{}:token_seq\t{}:float\t{}:token_seq\n"
LAYOUTS = {  # names and a row of the events; a file of titles, its names and a row
    "u.data": ("", "{u}\t{i}\t3\t{t}", "u.item", "", "{i}|{x}|01-Jan-1995||url|" + FLAGS),
    "ratings.dat": ("", "{u}::{i}::3::{t}", "movies.dat", "", "{i}::{x}::Comedy|Western"),
    "ratings.csv": ("userId, movieId, rating, timestamp", "{u}, {i}, 3.5, {t}", "movies.csv", "movieId,title,genres\n",
        '{i},"{x}",Comedy|Western'),
    "ml.inter": (TOKENS, "{u}\t{i}\t3\t{t}", "ml.item", ITEM.format("movie_title", "release_year", "class"),
        "{i}\t{x:.13}\t1990\tComedy Western"),
    "ml-20m.inter": (TOKENS, "{u}\t{i}\t3\t{t}", "ml-20m.item", ITEM.format("movie_name", "year", "genre"),
        "{i}\t{x}\t1990\tComedy|Western"),
}  # fmt: skip


@pytest.mark.parametrize("how", ["file", "folder", "zip", "--titles"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_titles_beside_the_events_in_any_encoding(name: str, how: str, write: Any) -> None:
    encoding = "latin-1" if how in ("folder", "zip") else "utf-8"
    head, row, beside, names, item = LAYOUTS[name]
    titles = (names + "\n".join(item.format(i=i, x=title) for i, title in TITLES.items())).encode(encoding)
    path, near = write(name, text(head, row)), write("elsewhere/t" if how == "--titles" else beside, titles)
    packed = Upload("ml.zip", zipped({f"ml/{one.name}": one.read_bytes() for one in (path, near)}))
    source: Any = {"folder": path.parent, "zip": packed}
    table = read_interactions(source.get(how, path), titles=str(near) if how == "--titles" else "")
    assert rows_of(table) == WORLD and table.items is not None
    assert dict(zip(table.items["item"], table.items["title"], strict=True)) == TITLES
    assert set(table.items["genres"]) == {("Comedy", "Western")}


def test_titles_in_the_events_are_those_where_an_item_has_one() -> None:
    for head in ("user,item,time,title", "user,item,time,name"):  # of reviews, of people
        table = read(text(head, "{u},{i},{t},by {u}"))
        assert table.items is None and any("says many things of one item" in note for note in table.notes)
    rows = ["21,,", '21,"Late, one",A|B', "22,\x1bOne <b>,A|B", "24,a,", "25,b,", "26,c,", "27,d,", "21,Other,", "23,,"]
    table = read("user,item,time,title,genres\n" + "".join(f"u,{row[:2]},{START}{row[2:]}\n" for row in rows))
    assert table.items is not None
    assert table.items.to_numpy().tolist()[:2] == [["21", "Late, one", ("A", "B")], ["22", "One <b>", ("A", "B")]]
    assert table.items.to_numpy().tolist()[-1] == ["23", "", ()]
    assert "1 titles held control characters, which were taken out" in table.notes


def test_a_file_of_another_layout_costs_only_the_titles(write: Any) -> None:
    path, movies = write("ratings.csv", PLAIN), write("movies.csv", "year;studio\n1999;Warner\n2001;Fox\n")
    table = read_interactions(path)
    assert rows_of(table) == WORLD and table.items is None
    assert "movies.csv beside it is no table of item and title that is understood, so items have no titles" in table.notes
    with pytest.raises(InputError, match=r"movies\.csv needs a column for the item and one for its title"):
        read_interactions(path, titles=str(movies))
