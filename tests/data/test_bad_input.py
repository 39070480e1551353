"""Bad input is answered with one sentence that names what it is, the line or the column; nothing is unpacked without bound."""

import gzip
import io
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from elastic_core.config import DataConfig
from elastic_core.data import load
from elastic_core.data.reading import packing, read_interactions
from elastic_core.data.reading.packing import Limits, Upload
from elastic_core.errors import InputError

HEAD = "user,item,time\n"
GOOD = HEAD + "".join(f"u{u},i{i},{1_600_000_000 + i}\n" for u in range(6) for i in range(6))


def refused(data: str | bytes | dict[str, Any], name: str = "t.csv", limits: Limits = packing.NO_LIMITS) -> str:
    """The one sentence with which an upload, or a zip of these files, is refused."""
    if isinstance(data, dict):
        data = zipped(data)
    with pytest.raises(InputError) as caught:
        read_interactions(Upload(name, data.encode() if isinstance(data, str) else data), limits=limits)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def zipped(files: dict[str, Any], flags: int = 0) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
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
        ("user,thing,time\na,b,1\n", "no column that is known for the item; it has: user, thing, time"),
        (HEAD + "a,x,1\nb,y,soon\n", "line 3: the time 'soon' is no number"),
        (HEAD + "\na,x,1\n\nb,y,\n", "line 5: the time is missing"),
        (HEAD + "a,x,inf\n", "line 2: the time 'inf' is no date or number that is understood"),
        (HEAD + "a,x,1\nb,y,-5\n", "line 3: the time is before 1970"),
        (HEAD + "a,x,1\n,y,2\n", "line 3: the user is missing"),
        (HEAD + "a,x,1\nb,NaN,2\n", "line 3: the item is missing"),
        (HEAD + "a,x,1\nc,x,1\nb,y,2,9\n", "line 4: 4 cells where 3 belong: 1 of 3 rows cannot be used"),
        (b"user,item,time\na\0b,x,1\n", "t.csv is not a text file (it holds NUL bytes)"),
        ("1\t2\t3\t1600000000\n1\t2\t3\t1600000009\n1\t2\t3\n", "line 3: 3 cells where 4 belong"),
        ("1::2::3::1600000000\n1::2::3::1600000009\n1::2::3::x\n", "line 3: the time 'x' is no number"),
        ("some words\nand some more words\n", "has no columns that a comma, tab, semicolon, bar or space separates"),
        ('{"error": "no such table"}', "no column that is known for the user; it has: error"),
        ('[{"user": 1, "item', "t.csv is not complete JSON (line 1)"),
    ],
)
def test_text(text: str | bytes, says: str) -> None:
    assert says in refused(text)


NPY = io.BytesIO()
np.save(NPY, np.zeros(3))
KINDS: dict[str, tuple[bytes, str]] = {
    "sqlite": (b"SQLite format 3\0" + bytes(99), "is an SQLite database: export the table: sqlite3 -header -csv"),
    "pickle": (b"\x80\x04\x95" + bytes(99), "is a Python pickle, which is never opened"),
    "npy": (NPY.getvalue(), "is a NumPy array"),
    "npz": (zipped({"a.npy": NPY.getvalue()}), "is a NumPy archive"),
    "hdf": (b"\x89HDF\r\n\x1a\n" + bytes(99), "is an HDF5"),
    "7z": (b"7z\xbc\xaf\x27\x1c" + bytes(99), "is an archive of a kind that is not read here: unpack it"),
    "rar": (b"Rar!\x1a\x07" + bytes(99), "is an archive of a kind that is not read here: unpack it"),
    "pdf": (b"%PDF-1.7\n", "is a document or picture"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "is an old Excel workbook (.xls): save the sheet as .xlsx or CSV"),
    "ods": (zipped({"mimetype": "x", "content.xml": "x"}), "is an OpenDocument file: save the sheet as .xlsx or CSV"),
    "docx": (zipped({"[Content_Types].xml": "x", "word/document.xml": "x"}), "is an office document"),
    "html": (b"<!DOCTYPE html><html>", "is a web page or XML, perhaps an error page in place of the download"),
    "sql": (b"-- MySQL dump 10.13\n", "is an SQL dump: load it into its database and export the table as CSV"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS, "),
    "orc": (b"ORC" + bytes(99), "is an ORC file: save the table as Parquet or CSV"),
    "feather": (b"FEA1" + bytes(99), "is a Feather file of version 1"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_table_is_called_what_it_is_by_whatever_name(kind: str) -> None:
    data, says = KINDS[kind]
    for name in ("x.csv", f"x.{kind}"):
        assert says.rstrip(", ") in refused(data, name)
    assert says.rstrip(", ") in refused(gzip.compress(data), "x.gz")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + "".join(f"u,i{i},{i}\n" for i in range(9)), "only one user"),
        (HEAD + "".join(f"u{i},i,{i}\n" for i in range(9)), "only one item"),
        (HEAD + "".join(f"u{u},i{i},1\n" for u in range(9) for i in range(2)), "nothing is left after the 5-core filter"),
    ],
)
def test_too_little_to_learn_from(text: str, says: str, write: Any) -> None:
    with pytest.raises(InputError, match=says):
        load(DataConfig(source=str(write("t.csv", text))))


def test_histories_shorter_than_three_are_refused_whatever_the_core(write: Any) -> None:
    text = HEAD + "".join(f"u{u},i{i},{i}\n" for u in range(9) for i in range(2))
    with pytest.raises(InputError, match="every user needs 3 events"):
        load(DataConfig(source=str(write("t.csv", text)), k_core=0))


def test_torn_archives_and_tables(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD.encode())
    for data, name in ((packed[: len(packed) // 2], "t.csv.gz"), (b"PK\x03\x04 torn", "t.zip"), (zipped({"t.csv": GOOD})[:-9], "u.zip")):
        assert refused(data, name) == f"{name} is not a complete archive: download or pack it again"
    bent = bytearray(zipped({"t.csv": GOOD}))
    bent[60] ^= 0xFF
    assert refused(bytes(bent), "bent.zip") == "bent.zip:t.csv is not a complete archive: download or pack it again"
    frame = pd.DataFrame({"user": ["a", None], "item": ["x", "y"], "time": [1, 2]})
    assert "row 2: the user is missing" in refused(frame.to_parquet(), "n.parquet")
    assert refused(frame.to_parquet()[:-30], "n.parquet").startswith("n.parquet is not a complete Parquet file: write it again")
    frame.to_excel(tmp_path / "n.xlsx")
    assert refused((tmp_path / "n.xlsx").read_bytes()[:-30], "n.xlsx") == "n.xlsx is not a complete archive: download or pack it again"
    assert refused(zipped({"[Content_Types].xml": "x", "xl/x": "x"}), "n.xlsx").startswith("n.xlsx is not a complete Excel file")


def test_archives_that_are_not_read(tmp_path: Path) -> None:
    assert refused({}, "t.zip") == "t.zip holds no table that can be read"
    assert refused(zipped({"t.csv": GOOD}, flags=1), "t.zip") == "t.zip is protected by a password: pack it without one"
    assert "holds another archive: pack the table itself, once" in refused({"in.zip": zipped({"t.csv": GOOD})}, "t.zip")
    assert "holds no single table of interactions (found: a.csv, b.csv)" in refused({"a.csv": GOOD, "b.csv": "a,b\n1,2\n" + GOOD}, "t.zip")
    nested = GOOD.encode()
    for _ in range(300):
        nested = gzip.compress(nested)
    assert "cannot be unpacked" in refused(nested, "deep.gz")
    with tarfile.open(tmp_path / "link.tar", "w") as archive:
        link = tarfile.TarInfo("t.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert "holds no table" in refused((tmp_path / "link.tar").read_bytes(), "link.tar")


@pytest.mark.parametrize(
    "name", ["../slip.csv", "/etc/cron.d/slip.csv", "in/../../slip.csv", "..\\slip.csv", "C:\\slip.csv", "__MACOSX/../../x"]
)
def test_names_outside_an_archive_are_refused_not_ignored(name: str, tmp_path: Path) -> None:
    """Beside a good table too, and nothing is written."""
    packed = tmp_path / "inside" / "slip.zip"
    packed.parent.mkdir()
    packed.write_bytes(zipped({"mine.csv": GOOD, name: "x"}))
    for source in (packed, Upload("slip.zip", packed.read_bytes())):
        with pytest.raises(InputError, match=r"slip\.zip holds a file whose name points outside the archive"):
            read_interactions(source)
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "slip.zip"]


def test_paths_and_names(write: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no source of that name; known are ml-100k"):
        load(DataConfig(source="ml-10k"))
    with pytest.raises(InputError, match="there is no file or folder"):
        load(DataConfig(source="x" * 5_000))
    with pytest.raises(InputError, match="there is no file or folder"):
        read_interactions(tmp_path / "nothing.csv")
    write("a.csv", GOOD)
    folder = write("b.csv", "session_id;movieId;ts\n1;2;1600000000\n2;2;1600000000\n").parent
    with pytest.raises(InputError, match=r"no single table of interactions \(found: a\.csv, b\.csv\): name the file itself"):
        read_interactions(folder)
    for columns, says in (
        ({"user": "who"}, "a.csv has no column 'who' \\(for user\\); it has: user, item, time"),
        ({"user": "4"}, "a.csv has no column '4' \\(for user\\); it has: user, item, time"),
        ({"rating": "time"}, "maps 'rating', which is none of user, item, time, title, genres"),
        ({"user": "item", "item": "item"}, "the column 'item' cannot be two things at once"),
    ):
        with pytest.raises(InputError, match=says):
            read_interactions(folder / "a.csv", columns)
    write("a.csv", "").unlink()
    (folder / "b.csv").unlink()
    with pytest.raises(InputError, match="given holds no table that can be read"):
        read_interactions(folder)


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.zip", "bomb.csv", "twice.zip"])
def test_unpacking_is_bounded_on_the_way(tmp_path: Path, name: str) -> None:
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
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**26


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"user": np.arange(300) % 7, "item": np.arange(300) % 5, "time": np.arange(300)})
    tables = {"t.csv": frame.to_csv(index=False), "t.parquet": frame.to_parquet(), "t.jsonl": frame.to_json(orient="records", lines=True)}
    for name, data in tables.items():
        assert refused(data, name, Limits(rows=200)) == f"{name} has 300 rows; at most 200 are read"
        assert "columns; at most 2 are read" in refused(data, name, Limits(columns=2)) or name == "t.jsonl"
    monkeypatch.setattr(packing, "MOST_BYTES", 2_000)
    for name, data in tables.items():
        if name == "t.parquet":
            with pytest.raises(InputError, match=r"t\.parquet holds more than 2.0 kB when unpacked, which are read at most"):
                packing.members(Upload(name, data if isinstance(data, bytes) else data.encode()))[0].read(most=2_000)
