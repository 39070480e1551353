"""Bad input is answered with one sentence that names the line or the column."""

import gzip
import tracemalloc
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from elastic_core.config import DataConfig
from elastic_core.data import files, load
from elastic_core.data.interactions import read
from elastic_core.errors import InputError

HEAD = "user,item,time\n"
GOOD = HEAD + "".join(f"u{u},i{i},{i}\n" for u in range(6) for i in range(6))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "t.csv is empty"),
        ("\n\n", "t.csv is empty"),
        (HEAD, "no rows below its header"),
        ("user,thing,time\na,b,1\n", "no column for item; it has: user, thing, time"),
        ("1,2,3\n1,2,3\n", "no column for user; it has: 1, 2, 3"),
        (HEAD + "a,x,1\nb,y,soon\n", "line 3: the time is not a number"),
        (HEAD + "\na,x,1\n\nb,y,soon\n", "line 5: the time is not a number"),
        (HEAD + "a,x,soon\n", "line 2: the time is not a number"),
        (HEAD + "a,x,inf\n", "line 2: the time is not a number"),
        (HEAD + "a,x,2001-01-01\nb,y,2001-13-01\n", "line 3: the time is not a date such as"),
        (HEAD + "a,x,1\nb,y,-5\n", "line 3: the time is before 1970"),
        (HEAD + "a,x,1\nb,y,1e300\n", "line 3: the time is after the year 2200"),
        (HEAD + 'a,x,1\n"b,y,2\nc,x,3\n', "line 3: a quotation mark is never closed"),
        (HEAD + "a,x,1\nb,y,\n", "line 3: the time is missing"),
        (HEAD + "a,x,1\n,y,2\n", "line 3: the user is missing"),
        (HEAD + "a,x,1\nb,nan,2\n", "line 3: the item is missing"),
        (HEAD + "a,x,1\nb,y,2,9\n", "line 3: not the number of fields"),
        (HEAD + "a,x,1,7\nb,y,2,9\n", "line 2: not the number of fields"),
        (HEAD.encode() + b"a,x,1\nb,\xe9t\xe9,2\n", "line 3: not UTF-8"),
        (HEAD.encode("utf-16"), "line 1: not UTF-8"),
        (b"user,item,time\na\0b,x,1\n", "not a text file"),
    ],
)
def test_csv(text, says, write):
    with pytest.raises(InputError) as caught:
        read(write("t.csv", text))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("u.data", "1\t2\t3\t4\n1\t2\t3\n", "line 2: the time is missing"),
        ("u.data", "1\t2\t3\t4\n1\t2\t3\t4\t5\n", "line 2: not the number of fields"),
        ("ratings.dat", "1::2::3::4\n1::2::3::x\n", "line 2: the time is not a number"),
        ("s.txt", "1 2\n1 2 3\n", "line 2: not the number of fields"),
        ("s.txt", "1 2\n1\n", "line 2: the item is missing"),
    ],
)
def test_other_layouts(name, text, says, write):
    with pytest.raises(InputError, match=says):
        read(write(name, text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + "".join(f"u,i{i},{i}\n" for i in range(9)), "only one user"),
        (HEAD + "".join(f"u{i},i,{i}\n" for i in range(9)), "only one item"),
        (HEAD + "".join(f"u{u},i{i},1\n" for u in range(9) for i in range(2)), "nothing is left after the 5-core filter"),
    ],
)
def test_too_little_to_learn_from(text, says, write):
    with pytest.raises(InputError, match=says):
        load(DataConfig(source=str(write("t.csv", text))))


def test_histories_shorter_than_three_are_refused_whatever_the_core(write):
    text = HEAD + "".join(f"u{u},i{i},{i}\n" for u in range(9) for i in range(2))
    with pytest.raises(InputError, match="every user needs 3 events"):
        load(DataConfig(source=str(write("t.csv", text)), k_core=0))


def test_torn_archives(write):
    packed = gzip.compress(GOOD.encode())
    with pytest.raises(InputError, match="not a complete gzip file"):
        read(write("t.csv.gz", packed[: len(packed) // 2]))
    with pytest.raises(InputError, match="not a complete gzip file"):
        read(write("u.csv.gz", GOOD))
    with pytest.raises(InputError, match="not a complete zip file"):
        read(write("t.zip", b"PK\x03\x04 torn"))
    whole = write("whole.zip", b"")
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("t.csv", GOOD)
    bent = bytearray(whole.read_bytes())
    bent[60] ^= 0xFF
    with pytest.raises(InputError, match=r"t\.csv in bent\.zip is damaged"):
        read(write("bent.zip", bytes(bent)))


def test_torn_parquet_and_parquet_rows(write, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="not a complete Parquet file"):
        read(write("t.parquet", b"PAR1 torn"))
    pd.DataFrame({"user": ["a", None], "item": ["x", "y"], "time": [1, 2]}).to_parquet(tmp_path / "n.parquet")
    with pytest.raises(InputError, match="row 2: the user is missing"):
        read(tmp_path / "n.parquet")

    def absent(*_, **__):
        raise ImportError("pyarrow")

    monkeypatch.setattr(pd, "read_parquet", absent)
    with pytest.raises(InputError, match="needs the package pyarrow"):
        read(tmp_path / "n.parquet")


def test_paths_and_names(write, tmp_path):
    with pytest.raises(InputError, match="no source of that name; known are ml-100k"):
        load(DataConfig(source="ml-10k"))
    with pytest.raises(InputError, match="there is no file or folder"):
        load(DataConfig(source="x" * 5_000))
    with pytest.raises(InputError, match="there is no file or folder"):
        read(tmp_path / "nothing.csv")
    write("a.csv", GOOD)
    folder = write("b.csv", GOOD).parent
    with pytest.raises(InputError, match=r"no single table of interactions \(found: a\.csv, b\.csv\)"):
        read(folder)
    with pytest.raises(InputError, match="'who' \\(for user\\); it has: user, item, time"):
        read(folder / "a.csv", {"user": "who"})
    with pytest.raises(InputError, match="maps 'rating'"):
        read(folder / "a.csv", {"rating": "time"})


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.zip", "bomb.csv", "twice.zip"])
def test_unpacking_is_bounded_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Of 64 MB of zeros no more is ever held than the bound (here 1 MB), a piece and what was packed; whatever the file says."""
    monkeypatch.setattr(files, "MOST_BYTES", 2**20)
    zeros = bytes(2**26)
    if name == "bomb.csv":
        (tmp_path / name).write_bytes(zeros)
    elif name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(zeros, 1))
    else:
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            inner = ("a.csv.gz", gzip.compress(zeros, 1)) if name == "twice.zip" else ("a.csv", zeros)
            archive.writestr(*inner)
    del zeros
    tracemalloc.start()
    with pytest.raises(InputError, match=r"more than 1\.0 MB when unpacked"):
        load(DataConfig(source=str(tmp_path / name)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25
