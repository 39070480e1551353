"""Columns are chosen where name and values agree; else a question is asked whose line reads the file, or it is said why not."""

import gzip
import io
import json
import random
import re
import shlex
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from pyarrow import feather, parquet

from elastic_core.commands.options import parse_columns, split_commas
from elastic_core.data.reading import Table, read_interactions
from elastic_core.data.reading.archives import Upload
from elastic_core.errors import InputError
from elastic_core.services.data.upload_store import check_upload, describe_open_question, open_upload

DRAW = random.Random(5)
ROWS: Any = [(u, i, 1_672_700_000 + DRAW.randrange(15_000_000)) for u in range(60) for i in DRAW.sample(range(40), 12)]
DRAW.shuffle(ROWS)
BORN = [f"{1960 + u % 40}-0{1 + u % 9}-11" for u in range(60)]
MADE = [f"{2000 + i % 20}-0{1 + i % 9}-21" for i in range(40)]
WORD = "Amber Basalt Cedar Dune Ember Fjord Glade Harbor Iris Juniper".split()


def cells(u: int, i: int, t: int) -> dict[str, Any]:
    when = datetime.fromtimestamp(t, UTC)
    return {
        "u": u, "i": i, "t": t, "d": when, "mail": f"p{u}@shop.example", "title": f"{WORD[i % 10]} {i}",
        "clerk": "ABC"[t % 3], "born": BORN[u], "made": MADE[i], "kind": ("film", "clip", "show")[t % 3], "n": t % 997,
        "some": f"u{u}" if t % 4 == 0 else "",
    }  # fmt: skip


def moment(t: int) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%dT%H:%M:%SZ}"


def write_table(head: str, row: str, rows: Any = ROWS) -> str:
    return "\n".join([head, *(row.format(**cells(*each)) for each in rows), ""])


def read(data: str | bytes, columns: str = "", name: str = "x.csv") -> Table:
    source = Upload(name, data.encode() if isinstance(data, str) else data)
    return read_interactions(source, parse_columns(split_commas(columns)) if columns else {})


def ask(data: str | bytes, name: str = "x.csv") -> str:
    """Return the sentence; command line and app ask alike."""
    with pytest.raises(InputError) as caught:
        read(data, name=name)
    assert str(caught.value).isprintable()
    return str(caught.value)


def rows_of(table: Table) -> list[Any]:
    return [tuple(row) for row in table.events.to_numpy().tolist()]


TIMED = [(str(u), str(i), t) for u, i, t in ROWS]


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("member_id,birth_date,product_id,purchased", "{u},{born},{i},{d:%Y-%m-%d %H:%M:%S}"),
        ("user_id,movie_id,release_date,rated_at", "{u},{i},{made},{d:%Y-%m-%d %H:%M:%S}"),
        ("user_id,movie_id,last_login_time,watched_ts_ms", "{u},{i},2024-03-01 12:00:00,{t}000"),
        ("user_id,content,title_id,watched_at", "{u},{kind},{i},{d:%Y-%m-%d %H:%M:%S}"),
        ("user_id,anonymous_id,product_id,sentiment,timestamp", "{some},{u},{i},{n},{t}"),
        ("app_id,user_id,sku,etl_tstamp,collector_tstamp", "shop,{u},{i},{d:%Y-%m-%d 03:00:00},{d:%Y-%m-%d %H:%M:%S}"),
        ("device_id,customer_id,sku,product_id,date", ",{u},,{i},{d:%Y-%m-%dT%H:%M:%SZ}"),
        ("event_date,event_timestamp,user_id,user_pseudo_id,item_id", "{d:%Y%m%d},{t}000000,,{u},{i}"),
        ("app_id,created,author.steamid,author.last_played", "{i},{t},{u},{t}.0"),
        (
            "order_id,product_id,shipping_limit_date,customer_id,customer_unique_id,order_purchase_timestamp",
            "o{t}{u},{i},{d:%Y-%m-28 %H:%M:%S},c{t}{u},{u},{d:%Y-%m-%d %H:%M:%S}",
        ),
        ("Date,Time,Item,SKU,Customer ID", "{d:%m/%d/%y},{d:%H:%M:%S},{i},,{u}"),
        ("user,item,time", "{u},{i},{d:%Y-%m-%dT%H:%M:%S}+00:00[Europe/London]"),
        ("user,item,time", '{u},{i},"{d:%m %d, %Y} {d:%H:%M:%S}"'),
        ("user,item,time," + ",".join(f"f{n}" for n in range(70)), "{u},{i},{t}," + ",".join("7" * 70)),
    ],
)
def test_a_certain_name_counts_where_the_values_agree(head: str, row: str) -> None:
    data = write_table(head, row)
    table = read(data)
    assert rows_of(table) == TIMED and not table.faults.count
    again = check_upload(*open_upload("x.csv", data.encode()))  # the app, with the columns that it proposes
    pd.testing.assert_frame_equal(again.events, table.events)


ASKED = [  # names, a row, what is asked, the rows that the line reads
    ("email,item_id,time", "{mail},{i},{t}", r"could be email \(60 values in the first 720 rows\)", ("mail", "i", "t")),
    ("Name,Email,Lineitem name,Lineitem sku,Created at,Paid at", "#{n},{mail},{title},S{i},{d:%Y-%m-%d %H:%M:%S},{d:%Y-%m-%d}",
        "the person could be Email .*; the item could be Lineitem sku .* or Lineitem name", ("mail", "i", "t")),
    ("Profile Name,Start Time,Duration,Title", "P {u},{d:%Y-%m-%d %H:%M:%S},00:43,{title}", "Profile Name .*Title",
        ("u", "title", "t")),
    ("borrowernumber,biblionumber,date_due,issuedate,dateofbirth", "{u},{i},{d:%Y-%m-28},{d:%Y-%m-%d %H:%M:%S},{born}",
        "the person could be borrowernumber", ("u", "i", "t")),
    ("Time,User full name,Affected user,Event context,Description", "{d:%Y-%m-%d %H:%M:%S},P {u},-,x{i},user {u} saw {i}",
        "could be User full name .*; the item could be Event context", ("u", "i", "t")),
    ("src\tdst", "{u}\tx{i}", "if its rows are in order of time, try", ("u", "i", "")),
    ("user,appid,playtime_forever", "{u},{i},{n}", "no column holds times .*say --columns time= if the", ("u", "i", "")),
    ("user_id,item_id,candidate_rank", "{u},{i},{n}", "no column holds times that order a person's events", ("u", "i", "")),
    ("user,item,date", "{u},{i},{d:%H:%M}", r"no column holds times .*'date' holds no moments", ("u", "i", "")),
    ("user,title,started,stopped,view_offset", "{u},{title},{t},{t}9,{n}", "the time could be started", ("u", "title", "t")),
    ("Sale Date,Till,User,Customer Code,Details,Receipt Number", "{d:%Y-%m-%d %H:%M:%S},1,{clerk},C{u},x{i},{u}-{d:%j}",
        "the person could be Customer Code .*; the item could be Details", ("u", "i", "t")),
    ("Buyer Name,Purchase Email,Item Name,Purchase Date,Purchase Time", "P {u},{u}@x.example,{title},{d:%Y-%m-%d},{d:%H:%M:%S}",
        "could be Purchase Email .* or Buyer Name", ("u", "title", "t")),
    ("Order Date,Email,Ticket Type,Event Name,Event ID,ip", "{d:%Y-%m-%d %H:%M:%S},{mail},Hall,{title},{i},10.0.0.{n}",
        "the item could be Event ID .* or Event Name", ("mail", "i", "t")),
    ("Document,Item,Sold-to Party,Material,Item Description,Document Date", "{u}{t},3,{u},M{i},{title},{d:%Y-%m-%d %H:%M:%S}",
        "the person could be Sold-to Party .*; the item could be Item Description", ("u", "title", "t")),
    ("user_id,item_id,begun,noted", "{u},{i},{d:%Y-%m-%d %H:%M:%S},{d:%Y-%m-%dT%H:%M:%S}", "could be begun .* or noted",
        ("u", "i", "t")),
]  # fmt: skip


@pytest.mark.parametrize(("head", "row", "says", "wanted"), ASKED)
def test_the_line_of_a_question_reads_the_right_rows(head: str, row: str, says: str, wanted: tuple[str, str, str]) -> None:
    data = write_table(head, row)
    sentence = ask(data)
    assert re.search(says, sentence)
    assert sentence.startswith(
        describe_open_question(open_upload("x.csv", data.encode())[0]).split(": ")[0]
    )  # the app asks the same
    line = shlex.split(sentence[sentence.index("--columns ") :])[1]
    table = read(data, line)
    users, items, times = wanted
    expected = [cells(*each) for each in ROWS]
    assert [re.sub(r"^[PC] ?|@x.example$", "", str(user)) for user in table.events["user"]] == [
        str(each[users]) for each in expected
    ]
    assert [str(item).strip("Sx") for item in table.events["item"]] == [str(each[items]) for each in expected]
    assert table.timed == bool(times) and (not times or list(table.events["time"]) == [each["t"] for each in expected])


SOLO = sorted((t, i) for u, i, t in ROWS if u < 12)
ONE_PERSON = {
    "Spotify": json.dumps([{"endTime": f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M}", "artistName": f"Band {i % 9}",
        "trackName": f"Song {i}", "msPlayed": t % 9_000} for t, i in SOLO]),
    "Netflix": "Title,Date\n" + "".join(f'"Film {i}","{datetime.fromtimestamp(t, UTC):%m/%d/%y}"\n' for t, i in SOLO),
    "Goodreads": "Book Id,Title,Author,Date Read\n" + "".join(
        f"{n},Book {n},By {n % 7},{datetime.fromtimestamp(t, UTC):%Y/%m/%d}\n" for n, (t, _) in enumerate(SOLO)),
    "Discogs": "Catalog#,Artist,Title,Released,release_id,Date Added\n" + "".join(
        f"C {n},Band {n % 9},Disc {n},{1960 + n % 50},{24_000 + n},{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%S}\n"
        for n, (t, _) in enumerate(SOLO)),
    "reading": "start_timestamp,ASIN,device_family,number_of_page_flips\n" + "".join(
        f"{t},B{i:09},{('phone', 'reader')[t % 2]},{t % 40}\n" for t, i in SOLO),
    "days of a web site": "date,page,visitors,pageviews,time_on_page\n" + "".join(
        f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d},/blog/{i},{t % 40},{t % 90},{t % 200}\n" for t, i in SOLO),
    "devices": "Client IP Address,Device Identifier,Event Start Timestamp,Song Name\n" + "".join(
        f"1.2.3.{t % 9},d{t % 3},{datetime.fromtimestamp(t, UTC):%Y-%m-%dT%H:%M:%SZ},Song {i}\n" for t, i in SOLO),
    "episodes": json.dumps([{"watched_at": f"{datetime.fromtimestamp(t, UTC):%Y-%m-%dT%H:%M:%S.000Z}", "type": "e",
        "episode": {"number": i % 12, "title": f"Part {i}", "ids": {}}, "show": {"title": f"Show {i % 7}"},
        "movie": {"ids": {"x": i} if t % 4 == 0 else None}} for t, i in SOLO]),
    "scrobbles": "uts,artist,track,track_mbid\n" + "".join(f"{t},Band {i % 9},Song {i},m{i}\n" for t, i in SOLO),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_PERSON)
def test_one_persons_own_export_is_called_so(name: str) -> None:
    said = ask(ONE_PERSON[name])
    assert "seems to hold one person's own history" in said and "with a column for the person" in said
    assert said.endswith("or say which column holds people (--columns user=NAME)") and said.count("--columns") == 1


def test_a_row_a_person_and_a_column_an_item_is_no_table_of_events() -> None:
    matrix = "".join(",".join(str((u * i) % 7 - 3.5) for i in range(1, 41)) + "\n" for u in range(60))
    assert "has 40 columns without names, as a table of a row a person and a column an item has" in ask(matrix)


def test_a_report_in_groups_is_called_so() -> None:
    groups = {f"P {u}": [e for e in ROWS if e[0] == u] for u in range(60)}
    lines = [line for name, rows in groups.items() for line in (
        f"{name},,,", *write_table("", ",{d:%m/%d/%Y},{title},9.9", rows)[1:-1].split("\n"), f"All of {name},,,99")]  # fmt: skip
    assert "is a report in groups, whose names stand in 'column 1' on lines of their own: export it as a plain list" in ask(
        "Sales by Customer\nJanuary to December\n\n,Transaction date,Product,Amount\n" + "\n".join(lines)
    )


def test_a_list_beside_the_item_that_comes_next_is_the_history() -> None:
    lists = {u: [i for v, i, _ in ROWS if v == u] for u in range(60)}
    data = "user_id:token\titem_id_list:token_seq\titem_id:token\n" + "".join(
        f"{u}\t{' '.join(map(str, items))}\t{items[-1]}\n" for u, items in lists.items()
    )
    assert "try --columns user=user_id,item=item_id_list,time=" in ask(data)
    assert rows_of(read(data, "item=item_id_list")) == [(str(u), str(i)) for u, items in lists.items() for i in items]


def test_one_row_a_person_is_no_history() -> None:
    data = "customer_id,name,city,last_order,favourite\n" + "".join(
        f"{n},N {n},Town,2023-01-{1 + n % 28:02},P{n % 40}\n" for n in range(300)
    )
    assert "has one row for each 'customer_id', and a history needs several" in ask(data)
    holes = write_table("Invoice,StockCode,InvoiceDate,Customer ID", "{n},{i},{d:%Y-%m-%d %H:%M:%S},{some}")
    assert re.search("nothing in 'Customer ID' on 7.% of the rows, .*: take these rows out of the file", ask(holes))
    lines = write_table("Date,Line Type,Customer Code,User,Sku", "{d:%Y-%m-%d %H:%M:%S},Line,{mail},Tom,{some}")
    assert "nothing in 'Sku' on 7" in ask(lines), "rows of payments stand among those of things"


# --- times -------------------------------------------------------------------------------------------------------------


def test_days_after_the_name_of_the_month() -> None:
    table = read(write_table("user,item,date", "{u},{i},{d:%b-%d-%y}"))
    assert rows_of(table) == [(u, i, t // 86_400 * 86_400) for u, i, t in TIMED]


@pytest.mark.parametrize("form", ["%m-%d %H:%M:%S", "%b %d %H:%M:%S"])
def test_a_year_is_never_made_up(form: str) -> None:
    assert "have no year: write it before them" in ask(write_table("user,item,time", "{u},{i},{d:" + form + "}"))


@settings(max_examples=40, deadline=None)
@given(
    some.sampled_from([pa.int64(), pa.int32(), pa.string(), pa.large_string(), pa.float64(), pa.decimal128(19, 0)]),
    some.sampled_from([pa.int64(), pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.binary()]),
    some.sampled_from([pa.int64(), pa.float64(), pa.float32(), pa.decimal128(24, 3), pa.timestamp("s"), pa.timestamp("ns", "UTC"),
        pa.date64(), pa.string()]),
    some.sampled_from([parquet.write_table, feather.write_feather]),
    some.booleans(),
)  # fmt: skip
def test_every_type_of_arrow_is_read_for_every_role(user: Any, item: Any, time: Any, way: Any, holes: bool) -> None:
    rows = [(u, str(i), t // 86_400 * 86_400) for u, i, t in ROWS]
    columns = [pa.array(part) for part in zip(*rows, strict=True)]
    ids = [columns[0].cast(user), columns[1].cast(pa.string()).cast(item)]
    times = columns[2].cast(pa.timestamp("s")).cast(time) if pa.types.is_temporal(time) else columns[2].cast(time, safe=False)
    if holes:
        times = pa.array([None, *times.to_pylist()[1:]], times.type)
    out = io.BytesIO()
    way(pa.table({"user": ids[0], "item": ids[1], "time": times}), out)
    table = read(out.getvalue(), name="x.parquet")
    exact = 1 if time != pa.float32() else 200  # what four bytes can hold
    assert [row[:2] for row in rows_of(table)] == [(str(u), i) for u, i, _ in rows][holes:] and table.faults.count == holes
    assert all(abs(a[2] - b[2]) < exact for a, b in zip(rows_of(table), rows[holes:], strict=True))


# --- nothing is lost in silence ----------------------------------------------------------------------------------------


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


HEAD = "user_id,item_id,timestamp"
PARTS = [write_table(HEAD, "{u},{i},{t}", ROWS[at : at + 240]).encode() for at in (0, 240, 480)]


@pytest.mark.parametrize("way", ["folder", "zip"])
@pytest.mark.parametrize("kind", ["without names after the first", "columns in another order", "cut off", "beside other things"])
def test_parts_are_read_whole_or_refused(kind: str, way: str, write: Any, tmp_path: Path) -> None:
    files = {f"part-{n}.csv": part for n, part in enumerate(PARTS)}
    if kind.startswith("without"):
        files |= {name: part.split(b"\n", 1)[1] for name, part in list(files.items())[1:]}
    elif kind.startswith("columns"):
        files["part-2.csv"] = write_table("timestamp,x,item_id,user_id", "{t},7,{i},{u}", ROWS[480:]).encode()
        files["part-2.csv"] = write_table("timestamp,item_id,user_id", "{t},{i},{u}", ROWS[480:]).encode()
    elif kind == "cut off":
        files["part-1.csv.gz"] = gzip.compress(files.pop("part-1.csv"))[:-900]
    else:
        files |= {"notes.md": b"some words\n", "z.pdf": b"%PDF-1.4"}
    source: Any = Upload("x.zip", zipped(files))
    if way == "folder":
        for name, data in files.items():
            write(name, data)
        source = tmp_path / "given"
    if kind == "cut off":
        says = r"part-1\.csv\.gz is not a complete archive: download .*, or read the other files without it \(--incomplete skip\)"
        with pytest.raises(InputError, match=says):
            read_interactions(source)
        table = read_interactions(source, skip_torn=True)
        assert rows_of(table) == [*TIMED[:240], *TIMED[480:]]
        assert "part-1.csv.gz is torn and was left out, as you said" in " ".join(table.notes)
        return
    table = read_interactions(source)
    assert rows_of(table) == TIMED
    said = " ".join(table.notes)
    assert "3 files of the same columns were read as one" in said
    assert ("2 of them have no line of names" in said) == kind.startswith("without")
    assert ("left out, without such rows: notes.md, z.pdf" in said) == kind.startswith("beside")


def test_names_that_stand_again_in_the_middle_are_no_event() -> None:
    halves = (write_table("src\tdst", "{u}\t{i}", part) for part in (ROWS[:300], ROWS[300:]))
    table = read("".join(halves), "user=src,item=dst,time=")
    assert rows_of(table) == [row[:2] for row in TIMED]
    assert table.faults.first == ((302, "the names of the columns stand here once more"),)


@pytest.mark.parametrize("way", ["Excel", "CSV"])
def test_lines_around_a_table_are_left_out_and_said(way: str) -> None:
    head, row = "Customer ID,Product ID,Order date,Amount", "{u},{i},{d:%Y-%m-%d %H:%M:%S},9.9"
    data: Any = "\nOrders by customer\nfrom January\n\n" + write_table(head, row) + "\nTotal,,,11385\n"
    if way == "Excel":
        out, lines = io.BytesIO(), [(line.split(",") + [""] * 3)[:4] for line in data.split("\n")]
        pd.DataFrame(lines).replace("", None).to_excel(out, header=False, index=False)
        data = out.getvalue()
    table = read(data)
    assert rows_of(table) == TIMED and table.faults.count == 1 and "is missing" in table.faults.first[0][1]
    assert any(
        "above the names of the columns left out ('Orders by customer" in note
        for note in (*table.notes, dict(table.understood)["layout"])
    )


def test_ids_that_look_alike_are_counted() -> None:
    forms = ("{mail},Caf\u00e9 {i},{t}", "{mail},Cafe\u0301 \u200b{i},{t}", "P{u}@Shop.Example,Caf\u00e9 {i},{t}")
    parts = zip(forms, (ROWS[:400], ROWS[400:700], ROWS[700:]), strict=True)
    table = read("user,item,time\n" + "".join(write_table("", form, rows)[1:] for form, rows in parts))
    said = " ".join(table.notes)
    assert table.events["item"].nunique() == 40 and "40 ids of the item were read without invisible characters" in said
    assert re.search(r"\d+ ids of the user differ from another in capitals alone \(p\d+@shop", said)


def test_lists_in_cells_stay_apart_from_what_stands_beside() -> None:
    lists = {u: [i for v, i, _ in ROWS if v == u] for u in range(60)}
    data = "user_id,items,category\n" + "".join(f'u{u},"{items}",Books\n' for u, items in lists.items())
    table = read(data, "item=items")
    assert rows_of(table) == [(f"u{u}", str(i)) for u, items in lists.items() for i in items] and table.items is None


@pytest.mark.parametrize("shape", ["people", "index", "visits", "answer", "params", "orders", "MongoDB"])
def test_other_shapes_of_json(shape: str) -> None:
    by_person = {u: [{"item": i, "ts": t} for v, i, t in ROWS if v == u] for u in range(60)}
    ordered = [(str(u), str(e["item"]), e["ts"]) for u, events in by_person.items() for e in events]
    if shape == "index":
        frame = pd.DataFrame(ROWS, columns=["user", "item", "time"])
        assert rows_of(read(frame.to_json(orient="index"))) == TIMED
    elif shape == "answer":
        rows = [{"user": u, "item": i, "time": t} for u, i, t in ROWS]
        assert rows_of(read(json.dumps({"response": {"result": "success", "data": {"total": 720, "data": rows}}}))) == TIMED
    elif shape == "orders":
        orders = [{"id": n, "created_at": moment(t), "customer": {"id": u}, "line_items": [{"id": n, "product_id": i}],
            "fulfillments": [{"created_at": moment(t + 9)}]} for n, (u, i, t) in enumerate(ROWS)]  # fmt: skip
        assert rows_of(read(json.dumps({"orders": orders}))) == TIMED
    elif shape == "MongoDB":
        lines = [{"_id": {"$oid": f"{n}"}, "userId": {"$oid": f"{u}"}, "productId": i, "createdAt": {"$date": moment(t)}}
            for n, (u, i, t) in enumerate(ROWS)]  # fmt: skip
        assert rows_of(read("\n".join(map(json.dumps, lines)))) == TIMED
    elif shape == "params":  # of two lists, the one that names items
        lines = [{"event_date": f"{t}", "user_pseudo_id": f"{u}", "params": [{"key": "a", "value": {"int": 1}}, {"key": "b"}],
            "event_timestamp": t * 1_000_000, "items": [{"item_id": i, "price": 9.9}]} for u, i, t in ROWS]  # fmt: skip
        assert rows_of(read("\n".join(map(json.dumps, lines)))) == TIMED
    elif shape == "people":
        data = json.dumps({f"{u}": events for u, events in by_person.items()})
        assert "--columns user=key,item=item,time=ts" in ask(data) and rows_of(read(data, "user=key")) == ordered
    else:
        data = json.dumps([{"visitorId": u, "serverTimestamp": 1, "icons": [{"icon": "x"}], "actions": [
            {"url": e["item"], "timestamp": e["ts"]} for e in events]} for u, events in by_person.items()])  # fmt: skip
        assert "item=url,time=timestamp" in ask(data) and rows_of(read(data, "item=url")) == ordered
