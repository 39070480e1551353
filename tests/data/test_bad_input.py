"""Bad input is answered with one sentence that names what it is, the line or the column. Up to a tenth of the rows is left out
and named, the same for a file sent to the app and one named; nothing is unpacked without bound."""

import gzip
import io
import re
import tracemalloc
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from elastic_core.commands import main
from elastic_core.data import load
from elastic_core.data.reading import Table, archives, read_interactions
from elastic_core.data.reading.archives import Limits, Upload
from elastic_core.data.reading.bad_rows import weigh_faults
from elastic_core.data.reading.time_columns import Undecided
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig
from elastic_core.services.data.upload_store import check_upload, open_upload, preprocess_upload

HEAD = "user,item,time\n"
GOOD = [f"u{u},i{(u + i) % 9},{1_600_000_000 + 10 * u + i}" for u in range(12) for i in range(9)]  # 108 rows
TABLE = HEAD + "\n".join(GOOD)


def read(data: str | bytes, name: str = "t.csv", limits: Limits = archives.NO_LIMITS) -> Table:
    return read_interactions(Upload(name, data.encode() if isinstance(data, str) else data), limits=limits)


def refused(*what: Any) -> str:
    """The one sentence with which an upload is refused."""
    with pytest.raises(InputError) as caught:
        read(*what)
    assert len(str(caught.value)) < 500 and str(caught.value).isprintable()
    return str(caught.value)


def zipped(files: dict[str, Any], flags: int = 0) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
            archive.infolist()[-1].flag_bits |= flags
    return out.getvalue()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "t.csv is empty"),
        ("\n \n", "t.csv is empty"),
        (HEAD, "no rows below its header"),
        (HEAD + "\na,x,1\n\nb,y,\n", "t.csv, line 5: the time is missing: 1 of 2 rows cannot be used, and at most a tenth"),
        (HEAD + "a,x,inf\n", "line 2: the time 'inf' is no date or number that is understood"),
        (HEAD + "a,x,1\nc,x,1\nb,y,2,9\n", "line 4: 4 cells where 3 belong"),
        (b"user,item,time\na\0b,x,1\n", "t.csv is not a text file in UTF-8 (it holds NUL bytes)"),
        ("1::2::3::1600000000\n1::2::3::1600000009\n1::2::3::x\n", "line 3: the time 'x' is no number"),
        (HEAD + "a,x\n", "t.csv has no columns: its first line and those below have no equal number of cells"),
        ("some words\nand some more words\n", "semicolon, bar or space separates; write one event a line, as in user,item,time"),
        ("7:\n1,4,2019-01-02\n2,3,2019-01-05\n", "write one event a line, as in user,item,time"),
        ("1 5 6 7\n2 6\n3 6 7\n4 1 2 3 4 5\n", "write one event a line, as in user,item,time"),
        (HEAD + "a,x,636824826150000000\n" * 3, "do not count seconds or parts of them since 1970: write them as 2023-12-31"),
        ("a,b\r".encode("utf-16-be") * 9, "is not a text file in UTF-8 (it holds NUL bytes): save the table as CSV in UTF-8"),
        ('{"error": "no such table"}', "which column is the person and the item and the time; no column looks like the person"),
        ('[{"user": 1, "item', "t.csv is not complete JSON (line 1)"),
    ],
)
def test_text(text: str | bytes, says: str) -> None:
    assert says in refused(text)


NPY = b"\x93NUMPY\x01\0"
KINDS: dict[str, tuple[bytes, str]] = {
    "sqlite": (b"SQLite format 3\0", "is an SQLite database: export the table: sqlite3 -header -csv"),
    "pickle": (b"\x80\x04\x95", "is a Python pickle, which is never opened"), "npy": (NPY, "is a NumPy array"),
    "npz": (zipped({"a.npy": NPY}), "is a NumPy archive"), "hdf": (b"\x89HDF\r\n\x1a\n", "is an HDF5"),
    "7z": (b"7z\xbc\xaf\x27\x1c", "is an archive of a kind that is not read"), "pdf": (b"%PDF-1.7\n", "is a document or picture"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an old Excel workbook (.xls): save the sheet as .xlsx or CSV"),
    "ods": (zipped({"mimetype": "x"}), "is an OpenDocument file"), "sql": (b"-- MySQL dump 10.13\n", "is an SQL dump"),
    "docx": (zipped({"[Content_Types].xml": "x", "word/a": "x"}), "is an office document"), "orc": (b"ORC\0", "is an ORC file"),
    "html": (b"<!DOCTYPE html><html>", "is a web page or XML"), "lfs": (b"version https://git-lfs.x/v1\n", "is a pointer of Git"),
    "xml": (b'\xef\xbb\xbf<?xml version="1.0"?>\n<votes>', "is a web page or XML"),
    "xz": (b"\xfd7zXZ\0", "unpack it, and give the table inside"), "bz2": (b"BZh9", "unpack it, and give the table inside"),
    "tar": (bytes(257) + b"ustar", "is a tar archive: unpack it (tar -xf FILE)"),
    "feather": (b"FEA1", "is a Feather file of version 1"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_table_is_called_what_it_is_by_whatever_name(kind: str) -> None:
    data, says = KINDS[kind]
    assert all(says in refused(data, name) for name in ("x.csv", f"x.{kind}")) and says in refused(gzip.compress(data), "x.gz")


@pytest.mark.parametrize(
    ("users", "items", "core", "says"),
    [(1, 9, 5, "only one user"), (9, 1, 5, "only one item"), (9, 2, 5, "nothing is left"), (9, 2, 0, "user needs 3 events")],
)
def test_too_little_to_learn_from(users: int, items: int, core: int, says: str, write: Any) -> None:
    path = write("t.csv", HEAD + "".join(f"u{u},i{i},{i}\n" for u in range(users) for i in range(items)))
    with pytest.raises(InputError, match=says):
        load(DataConfig(source=str(path), k_core=core))


def test_data_that_are_too_small_are_called_so(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("t.csv", TABLE)
    notes = load(DataConfig(source=str(path))).notes
    few = "only 12 people are left: with fewer than 50"
    short = "a list of ten holds all of the 9 items, so NDCG@10 and HR@10 tell"
    assert any(few in note for note in notes) and any(short in note for note in notes)
    assert main(["data", str(path)]) == 0
    shown = capsys.readouterr()
    assert all(said[1:] in part for said in (few, short) for part in (shown.out, shown.err))
    assert short in " ".join(preprocess_upload("t.csv", check_upload(*open_upload("t.csv", TABLE.encode())), 5).dataset.notes)


@pytest.mark.parametrize("words", [["--user", "-u0"], ["--history", "-v00_xK,v01"]])
def test_an_id_may_begin_with_a_dash(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for typed in (words, ["=".join(words)]):
        assert main(["recommend", "nothing", *typed]) == 2
        assert "there is no run 'nothing'" in capsys.readouterr().err, "the id is no fault"


# --- a tenth ---------------------------------------------------------------------------------------------------------

NONE, EARLY, LATE, FEW = "is missing", "is before 1970", "is after the year 2200", "is in 1970 where most rows are after 2000"
WORDS = ["", "  ", "NA", "N/A", "#N/A", "NULL", "None", "nan", "<NA>", "\\N", "undefined", "-", "?", "n.a.", "[NULL]", "*"]
TIMES = {"0": FEW, "86400": FEW, "1970-01-01 00:00": FEW, "": NONE, "NaT": NONE, "NULL": NONE, "-2": EARLY}
TIMES |= {"0001-01-01 00:00": EARLY, "253402214400": LATE, "9999-12-31 00:00": LATE}
TIMES |= {odd: f"{odd!r} is no {what}, as most rows have it" for odd, what in (("soon", "number"), ("2019-02-29 10:00", "date"))}
BAD = (
    {f"{word},i1,1600000005": "the user is missing" for word in WORDS}
    | {f"u1,{word},1600000005": "the item is missing" for word in WORDS}
    | {f"u1,i1,{time}": f"the time {what}" for time, what in TIMES.items()}
    | {f"u1,{item},1600000005": "the item holds a control character" for item in ("i\x1b[2J", "\u202eexe.i")}
    | {f"u1,{'x' * 300},1600000005": "the item is longer than 200 characters", "u1,i1,1600000005,6": "4 cells where 3 belong"}
)


@pytest.mark.parametrize("row", BAD)
def test_a_few_bad_rows_are_left_out_and_named_by_their_line(row: str) -> None:
    iso = [f"{line[:-10]}{datetime.fromtimestamp(int(line[-10:]), UTC):%Y-%m-%d %H:%M:%S}" for line in GOOD]
    good = iso if ":" in row else GOOD
    table = read(HEAD + "\n".join([*good[:40], row, *good[40:90], row, *good[90:]]))
    assert table.faults.first == ((42, BAD[row]), (93, BAD[row])) and (table.faults.count, table.faults.rows) == (2, 110)
    found = [f"{user},{item},{time}" for user, item, time in table.events.itertuples(index=False)]
    assert found == GOOD
    said = dict(table.understood)["rows"]
    assert said.startswith(f"108 of 110; 2 of 110 rows cannot be used and were left out (line 42: {BAD[row]}; line 93: ")


def test_the_share_is_exact_and_the_first_lines_are_named() -> None:
    assert read(TABLE + "\n,i,1600000000" * 12).faults.count == 12
    assert "line 110: the user is missing; line 111:" in refused(TABLE + "\n,i,1600000000" * 13)
    found = [(line, "odd") for line in (9, 3, 7, 5)]
    with pytest.raises(InputError, match=r"^t\.csv, line 3: odd; line 5: odd; line 7: odd; …: 4 of 39 rows cannot be used"):
        weigh_faults(found, 39, "t.csv")
    said = weigh_faults(found, 40, "t.csv").sentence()
    assert said == "4 of 40 rows cannot be used and were left out (line 3: odd; line 5: odd; line 7: odd; …)"
    assert weigh_faults([], 0, "t.csv").sentence() == ""


def test_it_is_said_what_was_understood_and_left_out_wherever_the_data_are(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TABLE + "\nu1,i1,soon\n,i2,1600000005\n"
    path = str(write("t.csv", text))
    assert main(["data", path]) == 0
    shown, data = capsys.readouterr(), load(DataConfig(source=path))
    assert data.hash == preprocess_upload("t.csv", check_upload(*open_upload("t.csv", text.encode())), 5).dataset.hash
    said = "2 of 110 rows cannot be used and were left out (line 110: the time 'soon' is no number"
    assert said in shown.err and shown.out.count(said) == 2 and any(said in note for note in data.notes)
    assert re.search(r"user +user \(by its name\)\n.*item .*\n.*time +time \(its values tell a moment\)\n", shown.out)
    assert re.search(r"rows +108 of 110; .*\n.*from, to +2020-09-13 12:26:40 to 2020-09-13 12:28:38\n", shown.out)


# --- day or month ----------------------------------------------------------------------------------------------------

DAYS = [f"u{u};i{(u + i) % 9};{1 + i:02d}{{0}}{1 + u:02d}{{0}}2024 20:{u:02d}\n" for u in range(12) for i in range(9)]
TOLD = {"day-first": "31{0}12{0}2024", "month-first": "12{0}31{0}2024"}


@pytest.mark.parametrize("order", TOLD)
@pytest.mark.parametrize("mark", "./-")
def test_dates_are_read_as_the_column_decides(order: str, mark: str) -> None:
    """The slow twin takes the numbers of every row apart."""
    table = read("user;item;time\n" + "".join(row.format(mark) for row in [*DAYS, f"u1;i1;{TOLD[order]}\n"]))
    for row, seconds in zip(DAYS, table.events["time"], strict=False):
        a, b, _, hour, minute = map(int, re.split(r"[^0-9]+", row.format(mark).split(";")[2].strip()))
        day, month = (a, b) if order == "day-first" else (b, a)
        assert datetime.fromtimestamp(seconds, UTC) == datetime(2024, month, day, hour, minute, tzinfo=UTC)
    assert table.faults.count == 0 and any("read with the " + order[:3] in note for note in table.notes)
    clear = read("user;item;time\n" + "".join(f"u{n};i;{n}{mark}02{mark}2024\n" for n in range(13, 29)))
    assert not any("dates such as" in note for note in clear.notes), "nobody could read these otherwise"


def test_dates_that_nothing_decides_are_asked_for(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    text = "user;item;time\n" + "".join(DAYS).format("/")
    with pytest.raises(Undecided, match="no row tells") as asked:
        check_upload(*open_upload("t.csv", text.encode()))
    assert list(asked.value.readings) == ["day-first", "month-first"]
    path = str(write("t.csv", text))
    assert main(["data", path]) != 0
    assert "may be 2 January 2024 or 1 February 2024" in capsys.readouterr().err
    assert main(["data", path, "--dates", "month-first"]) == 0
    assert len({load(DataConfig(source=path, dates=dates)).histories.times.sum() for dates in ("day-first", "month-first")}) == 2
    assert read(text.replace("/", ".")).faults.count == 0, "nobody writes the month first with dots"


# --- archives, folders, bounds ---------------------------------------------------------------------------------------


def test_what_is_said_of_columns_fits_a_file_without_their_names(tmp_path: Path) -> None:
    """Places where there are two; a file of titles of which only the names are left."""
    bare, titles = tmp_path / "bare.csv", tmp_path / "titles.csv"
    bare.write_text("\n".join(f"u{user},{1_600_000_000 + 10 * user}" for user in range(40)))
    with pytest.raises(InputError, match="say which is which by their places, as in --columns user=PLACE"):
        read_interactions(bare, {"time": "2"})
    titles.write_text("item,title\n")
    (tmp_path / "t.csv").write_text(TABLE)
    with pytest.raises(InputError) as caught:
        read_interactions(tmp_path / "t.csv", titles=str(titles))
    assert "titles.csv" in str(caught.value) and str(caught.value).isprintable()


def test_torn_archives_and_tables(tmp_path: Path) -> None:
    bent, packed = bytearray(zipped({"t.csv": TABLE})), gzip.compress(TABLE.encode())
    bent[60] ^= 0xFF
    frame = pd.DataFrame({"user": ["a", None], "item": ["x", "y"], "time": [1, 2]})
    frame.to_excel(tmp_path / "t.xlsx")
    excel = (tmp_path / "t.xlsx").read_bytes()
    for data in (packed[: len(packed) // 2], b"PK\x03\x04 torn", zipped({"t.csv": TABLE})[:-9], excel[:-30]):
        assert refused(data, "t") == "t is not a complete archive: download or pack it again"
    assert refused(bytes(bent), "t.zip") == "t.zip:t.csv is not a complete archive: download or pack it again"
    assert "row 2: the user is missing" in refused(frame.to_parquet(), "n.parquet")
    assert refused(frame.to_parquet()[:-30], "n.pq").startswith("n.pq is not a complete Parquet file: write it again")
    assert refused(zipped({"[Content_Types].xml": "x", "xl/x": "x"})).startswith("t.csv is not a complete Excel file")


def test_archives_that_are_not_read() -> None:
    assert refused(zipped({})) == "t.csv holds no table that can be read"
    assert refused(zipped({"t.csv": TABLE}, 1)) == "t.csv is protected by a password: pack it without one"
    assert "holds another archive: pack the table itself, once" in refused(zipped({"in.zip": zipped({"t.csv": TABLE})}))
    packed = TABLE.encode()
    for times in range(1, 6):
        packed = gzip.compress(packed)
        if times < 3:
            assert len(read(packed, "t.csv.gz").events) == len(GOOD)
    assert refused(packed, "t.csv.gz").endswith("is packed more than twice: pack the table itself, once")


@pytest.mark.parametrize("name", ["../x.csv", "/etc/cron.d/x", "in/../../x.csv", "..\\x.csv", "C:\\x.csv", "__MACOSX/../../x"])
def test_names_outside_an_archive_are_refused_not_ignored(name: str, tmp_path: Path) -> None:
    """Beside a good table too, and nothing is written."""
    packed = tmp_path / "inside" / "slip.zip"
    packed.parent.mkdir()
    packed.write_bytes(zipped({"mine.csv": TABLE, name: "x"}))
    for source in (packed, Upload("slip.zip", packed.read_bytes())):
        with pytest.raises(InputError, match=r"slip\.zip holds a file whose name points outside the archive"):
            read_interactions(source)
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "slip.zip"]


def test_paths_and_names(write: Any, tmp_path: Path) -> None:
    for source, says in (("ml-10k", "no source of that name; known are ml-100k"), ("x" * 5_000, "there is no file or folder")):
        with pytest.raises(InputError, match=says):
            load(DataConfig(source=source))
    with pytest.raises(InputError, match="there is no file or folder"):
        read_interactions(tmp_path / "nothing.csv")
    path, other = write("a.csv", TABLE), write("b.csv", "session_id;movieId;ts\n1;2;1600000000\n2;2;1600000000\n")
    with pytest.raises(InputError, match=r"no single table of interactions \(found: a\.csv, b\.csv\): give one alone"):
        read_interactions(path.parent)
    for columns, says in (
        *(({"user": name}, rf"a.csv has no column '{name}' \(for user\); it has: user, item, time") for name in ("who", "4")),
        ({"rating": "time"}, "maps 'rating', which is none of user, item, time, title, genres"),
        ({"user": "item", "item": "item"}, "the column 'item' cannot be two things at once"),
    ):
        with pytest.raises(InputError, match=says):
            read_interactions(path, columns)
    other.unlink()
    path.unlink()
    with pytest.raises(InputError, match="given holds no table that can be read"):
        read_interactions(path.parent)


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.zip", "bomb.csv", "twice.zip"])
def test_unpacking_is_bounded_on_the_way(name: str) -> None:
    """Of 64 MB of rows no more is ever held than the bound (here 1 MB), a piece and what was packed; whatever the file says."""
    rows = (HEAD + "user,item,1600000000\n" * 3).encode() * 2**20
    data = rows if name == "bomb.csv" else gzip.compress(rows, 1)
    data = zipped({"a.csv.gz": data}) if name == "twice.zip" else zipped({"a.csv": rows}) if name == "bomb.zip" else data
    del rows
    tracemalloc.start()
    try:
        assert "would unpack to more than 1.0 MB, which is the limit" in refused(data, name, Limits(unpacked=2**20))
        if name != "bomb.csv":
            assert "would grow more than 30 times when unpacked" in refused(data, name, Limits(ratio=30))
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_tables_are_bounded() -> None:
    frame = pd.DataFrame({"user": np.arange(300) % 7, "item": np.arange(300) % 5, "time": np.arange(300)})
    for data in (frame.to_csv(index=False), frame.to_parquet(), frame.to_json(orient="records", lines=True)):
        assert refused(data, "t", Limits(rows=200)) == "t has 300 rows; at most 200 are read"
        assert "columns; at most 1 are read" in refused(data, "t", Limits(columns=1))
    with pytest.raises(InputError, match=r"t holds more than 2,000 bytes when unpacked, which are read at most"):
        archives.list_members(Upload("t", frame.to_parquet()))[0].read(most=2_000)
