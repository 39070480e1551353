"""Every layout, plain and packed, reads to the same table."""

import gzip
import zipfile
from itertools import cycle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from elastic_core.data import interactions
from elastic_core.data.interactions import read
from elastic_core.errors import InputError

ROWS = [("7", "30", 100), ("7", "4", 105), ("12", "30", 90), ("12", "30", 95)]
TITLES = {"4": "Señor, The (1990)", "30": 'A "Quoted" Film (1995)'}


def u_item(item: str) -> str:
    flags = ["0"] * 19
    flags[5] = flags[18] = "1"
    return "|".join([item, TITLES[item], "01-Jan-1995", "", "url", *flags])


LAYOUTS = {
    "u.data": ("".join(f"{u}\t{i}\t3\t{t}\n" for u, i, t in ROWS), "u.item", "\n".join(map(u_item, TITLES)).encode("latin-1")),
    "ratings.dat": (
        "".join(f"{u}::{i}::3::{t}\n" for u, i, t in ROWS),
        "movies.dat",
        "\n".join(f"{i}::{title}::Comedy|Western" for i, title in TITLES.items()).encode("latin-1"),
    ),
    "ratings.csv": (
        "userId,movieId,rating,timestamp\r\n" + "".join(f"{u},{i},3.5,{t}\r\n" for u, i, t in ROWS),
        "movies.csv",
        pd.DataFrame({"movieId": TITLES.keys(), "title": TITLES.values(), "genres": "Comedy|Western"})
        .to_csv(index=False)
        .encode(),
    ),
    "ml.inter": (
        "user_id:token\titem_id:token\trating:float\ttimestamp:float\n" + "".join(f"{u}\t{i}\t3\t{t}\n" for u, i, t in ROWS),
        "ml.item",
        b"item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
        + "".join(f"{i}\t{title[:-7]}\t{title[-5:-1]}\tComedy Western\n" for i, title in TITLES.items()).encode(),
    ),
}


def pack(kind: str, path: Path, files: list[Path]) -> Path:
    if kind == "folder":
        return path.parent
    if kind == "zip":
        target = path.parent / "all.zip"
        with zipfile.ZipFile(target, "w") as archive:
            for file in files:
                archive.write(file, f"inside/{file.name}")
        return target
    if kind == "gz":
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
        return path.with_name(path.name + ".gz")
    return path


@pytest.mark.parametrize("kind", ["file", "gz", "zip", "folder"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_known_layouts_with_titles(name, kind, write):
    content, companion, titles = LAYOUTS[name]
    path, beside = write(name, content), write(companion, titles)
    table = read(pack(kind, path, [path, beside]))
    assert list(table.events[["user", "item", "time"]].itertuples(index=False, name=None)) == ROWS
    assert table.items is not None
    items = table.items.set_index("item")
    assert items["title"].to_dict() == TITLES
    assert set(items["genres"]) == {("Comedy", "Western")}


def test_sequence_form_keeps_repeats_and_has_no_time(write):
    table = read(write("any.txt", "1 5\n1 5\n2 5\n"))
    assert not table.timed
    assert table.events.to_numpy().tolist() == [["1", "5"], ["1", "5"], ["2", "5"]]


@pytest.mark.parametrize(
    "text",
    [
        "1 5\n2 5\n",
        "1\t5\t3\t99\n2\t5\t3\t98\n",
        "1::5::3::99\n2::5::3::98\n",
        "user,item,time\n1,5,9\n2,5,8\n",
        "uid,sid\n1,5\n2,5",
    ],
)
def test_rows_that_are_in_order_need_and_keep_no_time(text, write):
    table = read(write("any.txt", text), {"time": ""})
    assert not table.timed
    assert table.events.to_numpy().tolist() == [["1", "5"], ["2", "5"]]


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
@pytest.mark.parametrize("header", ["uid,asin,ts", "User_ID,ITEM,Timestamp", "session_id,movieId,date"])
def test_automatic_names_and_separators(separator, header, write):
    text = "\n".join([header, "a,x,5", "b,NA,6"]).replace(",", separator)
    assert read(write("t.csv", text)).events.to_numpy().tolist() == [["a", "x", 5], ["b", "NA", 6]]


def test_column_mapping_with_titles(write):
    path = write("t.csv", 'who,what,when,label,kinds\na,x,1,"Comma, The",A|B\nb,x,2,ignored,C\nb,y,3,,\n')
    table = read(path, {"user": "who", "item": "what", "time": "when", "title": "label", "genres": "kinds"})
    assert table.items is not None
    assert table.items.to_numpy().tolist() == [["x", "Comma, The", ("A", "B")], ["y", "", ()]]


def test_parquet_agrees_with_csv(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"user": [1, 1, 2], "item": [9.0, 8.0, 9.0], "time": pd.to_datetime([10, 20, 30], unit="s")})
    frame.to_parquet(tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet").events.to_numpy().tolist() == [["1", "9", 10], ["1", "8", 20], ["2", "9", 30]]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (["978300019", "978300020"], [978300019, 978300020]),
        (["978300019123", "978300019124"], [978300019.123, 978300019.124]),
        (["1.5", "2"], [1.5, 2.0]),
        (["2001-01-01", "2001-01-02T00:00:01Z"], [978307200, 978393601]),
        (["2001-01-01 01:00:00+01:00", "2001-01-01 00:00:01"], [978307200, 978307201]),
    ],
)
def test_times_in_seconds_milliseconds_and_dates(written, seconds, write):
    path = write("t.csv", "user,item,time\n" + "".join(f"u,i,{value}\n" for value in written))
    assert read(path).events["time"].tolist() == seconds


def test_byte_order_mark_and_blank_lines(write):
    assert len(read(write("t.csv", "\ufeffuser,item,time\na,x,1\n\nb,y,2\n\n")).events) == 2


numbers = some.sampled_from(["7", "12", "0", "-3", "9223372036854775807", "1000000"])
spelt = some.sampled_from(["007", "+7", " 7", "7 ", "7.0", "1e3", "9223372036854775808", "", "1_0", "-0", "٣"])
SHAPES = {
    "t.csv": ("user,item,rating,time", "{0},{1},{3},{2}"),
    "t.tsv": ("user_id\titem_id\ttimestamp", "{0}\t{1}\t{2}"),
    "q.csv": ('"user","item","time"', "{0},{1},{2}"),
    "u.data": ("", "{0}\t{1}\t{3}\t{2}"),
}


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    some.sampled_from(list(SHAPES)),
    some.lists(some.tuples(numbers, numbers, numbers, some.sampled_from(["3.5", "4", "ä"]))),
    some.lists(some.tuples(numbers | spelt, numbers | spelt, some.just("100"), some.just("4")), max_size=2),
    some.lists(some.sampled_from(["\n", "\r\n"]), min_size=1, max_size=3),
    some.booleans(),
)
def test_whole_numbers_read_as_such_are_what_their_text_is(
    tmp_path: Path, name: str, rows: list[Any], odd: list[Any], ends: list[str], last: bool
) -> None:
    """Ids and times, faults and refusals: the same as when nothing is read as a number."""
    header, row = SHAPES[name]
    lines = [*([header] if header else []), *(row.format(*each) for each in rows + odd)]
    text = "".join(line + end for line, end in zip(lines, cycle(ends), strict=False))
    (tmp_path / name).write_bytes((text if last else text.rstrip("\r\n")).encode())
    found = []
    for fast in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not fast:
                patch.setattr(interactions, "_whole_numbers", lambda *_, **__: None)
            try:
                table = read(tmp_path / name)
            except InputError as error:
                found.append(str(error))
            else:
                found.append([*map(tuple, table.events.astype(str).to_numpy().tolist()), table.faults, table.notes])
    assert found[0] == found[1]


def test_whole_numbers_are_read_as_such_where_they_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interactions, "_table", lambda *_, **__: pytest.fail("it was read as text"))
    for name, (header, row) in SHAPES.items():
        if name != "q.csv":
            (tmp_path / name).write_text("\n".join([header] * bool(header) + [row.format(7, 30, 100, 4.5)] * 3))
            assert read(tmp_path / name).events.to_numpy().tolist() == [["7", "30", 100]] * 3
