"""A long table, read a stretch at a time, is what reading it whole gives: rows, faults and their lines, refusals, titles."""

import gzip
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from elastic_core.config import DataConfig
from elastic_core.data import files, load, stretches
from elastic_core.data.interactions import Table, read
from elastic_core.errors import InputError

WHOLE = 2**26
good = some.sampled_from(["u1", "u2", "7", "12", "ä", " x"])
ids = some.sampled_from(["u1", "u2", "nan", ""])
seconds = some.sampled_from(["100", "100.5", "97", "1700000000", "1e9"])
milliseconds = some.sampled_from(["1700000000000", "1700000000123"])
dates = some.sampled_from(["2024-12-31T20:15:00", "2024-12-31", "1970-01-02 00:00:01+00:00"])
odd = some.sampled_from(["", "nan", "soon", "-5", "99999999999", "31.12.2024", "2024-12-31"])
ODD: dict[str, Callable[[str], str]] = {
    "blank": lambda row: "\n",
    "short": lambda row: "one,cell\n",
    "long": lambda row: row.format("a", "b", "3").replace("\n", "\t,::9\n"),
}
LAYOUTS = {  # header, a row of user, item and time
    "t.csv": ("user,item,time\n", "{},{},{}\n"),
    "t.tsv": ("time\tuser_id\tother\titem_id\ttitle\n", "{2}\t{0}\tx\t{1}\tfilm {1}\n"),
    "u.data": ("", "{}\t{}\t3\t{}\n"),
    "ratings.dat": ("", "{}::{}::3::{}\n"),
}


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return [tuple(map(str, row)) for row in table.events.itertuples(index=False, name=None)]


def found(path: Path, stretch: int) -> tuple[Any, ...] | str:
    """All that is read of a file, or why it is refused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "STRETCH", stretch)
        try:
            table = read(path)
        except InputError as error:
            return str(error)
    there = set(table.events["item"].astype(str))
    known = None if table.items is None else table.items.itertuples(index=False, name=None)
    items = None if known is None else sorted(row for row in known if row[0] in there)
    return rows_of(table), list(table.events.columns), items, table.faults, table.notes


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    some.sampled_from(list(LAYOUTS)),
    some.sampled_from([seconds, milliseconds, dates]).flatmap(
        lambda times: some.lists(some.tuples(good, good, times), min_size=9)
    ),
    some.lists(some.tuples(some.integers(0, 99), some.sampled_from(list(ODD)) | some.tuples(ids, ids, odd)), max_size=3),
    some.sampled_from([64, 100, 257, 700]),
    some.integers(1, 9),
    some.booleans(),
)
def test_stretches_are_the_whole(
    tmp_path: Path, name: str, rows: list[Any], others: list[Any], stretch: int, times: int, packed: bool
) -> None:
    """Good rows, some times over, and among them a few that are odd."""
    header, row = LAYOUTS[name]
    lines = [row.format(*each) for each in rows * times]
    if name == "u.data":  # is known by its numbers
        lines = [line.replace("u", "1").replace("ä", "5").replace("x", "6").strip(" ") for line in lines]
    for place, other in others:
        line = ODD[other](row) if isinstance(other, str) else row.format(other[0] or "nan", other[1] or "nan", other[2])
        lines.insert(place % (len(lines) + 1), line)
    data = (header + "".join(lines)).encode()
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(data) if packed else data)
    parts, whole = found(path, stretch), found(path, WHOLE)
    if {"short", "long"} <= {other for _, other in others}:
        # a line that is too long has its text read line by line, where one that is too short lacks fields, not what they hold
        parts, whole = (without_reasons(each) for each in (parts, whole))
    assert parts == whole


def without_reasons(read: tuple[Any, ...] | str) -> Any:
    """Only the lines that are left out."""
    if isinstance(read, str):
        return re.findall(r"line \d+", read)
    rows, columns, items, faults, notes = read
    return rows, columns, items, [line for line, _ in faults.first], faults.rows, notes


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_long_file_becomes_the_same_data_without_being_held(name: str, tmp_path: Path) -> None:
    """60,000 events with repeats and ties: the same catalogue, people, order and hash; in memory one stretch's text."""
    generator, (header, row) = np.random.default_rng(0), LAYOUTS[name]
    drawn = zip(*(generator.integers(1, most, 60_000).tolist() for most in (900, 400, 3_000)), strict=True)
    lines = [row.format(user, item, 10**9 + time) for user, item, time in drawn]
    path = tmp_path / name
    path.write_text(header + "".join(lines + lines[:500]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "STRETCH", WHOLE)
        whole = load(DataConfig(source=str(path)))
        patch.setattr(stretches, "STRETCH", 2**15)
        patch.setattr(files.Bundle, "read", lambda *_: pytest.fail("it was read whole"))
        tracemalloc.start()
        long = load(DataConfig(source=str(path)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (
        long.hash == whole.hash
        and long.notes == whole.notes
        and "502 rows that repeat user, item and time exactly" in long.notes[0]
    )
    assert list(long.catalog.ids) == list(whole.catalog.ids) and list(long.histories.user_ids) == list(whole.histories.user_ids)
    assert (long.histories.times == whole.histories.times).all() and long.histories.items.dtype == np.int32
    assert long.catalog.titles is None or list(long.catalog.titles) == list(whole.catalog.titles)
    assert peak < 60 * 60_500 + 2**22


def test_what_cannot_be_cut_is_read_whole(tmp_path: Path) -> None:
    """A quoted cell that goes on over a cut, and dates that must be told apart by all rows."""
    cut = "user,item,time,title\n" + "".join(f'u{i % 7},i{i % 5},{i},"a\nb"\n' for i in range(40))
    dates = "user,item,time\n" + "".join(f"u{i % 7},i{i % 5},{i % 12 + 1}/{i % 28 + 1}/2024\n" for i in range(40))
    for name, text in (("cut.csv", cut), ("dates.csv", dates)):
        (tmp_path / name).write_text(text)
        assert found(tmp_path / name, 64) == found(tmp_path / name, WHOLE)


@pytest.mark.parametrize(
    ("text", "says"),
    [("u,i,\xff\n", "line 41: not UTF-8"), ("u,i,1\n" * 9 + 'u,"i,1\n', "line 50: a quotation mark is never closed")],
)
def test_a_refusal_names_the_line_of_the_file(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"user,item,time\n" + b"a,b,1\n" * 39 + text.encode("latin-1"))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(InputError, match=says):
        patch.setattr(stretches, "STRETCH", 80)
        read(tmp_path / "t.csv")


def test_too_many_rows_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("user,item,time\n" + "a,b,1\n" * 100)
    monkeypatch.setattr(stretches, "STRETCH", 100)
    monkeypatch.setattr(stretches, "MOST_ROWS", 50)
    with pytest.raises(InputError, match="more than 50 rows, which are read at most"):
        read(tmp_path / "t.csv")
