"""Drawn files are read as they were drawn; in stretches as whole; and every line that is left out is the one a loop finds."""

import re
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from elastic_core.data import load
from elastic_core.data.reading import Table, archives, bad_rows, delimited_text, read_interactions
from elastic_core.data.reading.archives import Upload
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig

NAMES = [("user", "item", "time", "note"), ("UserID", "movieId", "Timestamp", "x"), ("Kunde", "Artikel", "Datum", "Gerät")]
TIMES: dict[str, Any] = {  # seconds → cell, and what is kept of them
    "seconds": (str, lambda t: t),
    "milliseconds": (lambda t: str(1_000 * t + t % 1_000), lambda t: t + t % 1_000 / 1_000),
    "ISO": (lambda t: f"{moment(t):%Y-%m-%dT%H:%M:%S}", lambda t: t),
    "ISO, offset": (lambda t: f"{moment(t) + timedelta(minutes=330):%Y-%m-%d %H:%M:%S}+05:30", lambda t: t),
    "German": (lambda t: f"{moment(t):%d.%m.%Y %H:%M:%S}", lambda t: t),
    "American": (lambda t: f"{moment(t).month}/{moment(t).day}/{moment(t):%Y %H:%M}", lambda t: t // 60 * 60),
}
TELLING = 1_545_696_000  # 25 December
ids = some.sampled_from(["7", "12", "007", "u_7", "Zoë", "é9", "a b", "B00X", "-5", "1e3", "9223372036854775808"])


def moment(t: int) -> datetime:
    return datetime.fromtimestamp(t, UTC)


def rows_of(table: Table) -> list[Any]:
    return list(table.events.itertuples(index=False, name=None))


@settings(max_examples=100)
@given(
    some.lists(some.tuples(ids, ids, some.integers(946_684_801, 1_750_000_000)), min_size=4, max_size=25),
    some.lists(some.text("ab 1,;|\t:\"\n'", max_size=8), min_size=26, max_size=26),
    *map(some.sampled_from, ([",", ";", "\t", "|", "::"], ["none", "all", "needed"])),
    *map(some.sampled_from, (["utf-8", "utf-8-sig", "utf-16", "latin-1"], ["\n", "\r\n"], sorted(TIMES), [None, *NAMES])),
    some.permutations(range(4)),
)
def test_what_was_drawn_is_read(
    rows: Any, notes: list[str], mark: str, quotes: str, encoding: str, end: str, form: str, names: Any, order: list[int]
) -> None:
    """Rows, a note with anything in it, separator, quotes, encoding, line ends, a form of times, names or none, and an order."""
    spelt, kept = TIMES[form]
    rows = [*rows, ("7", "12", TELLING)]

    def cell(value: str) -> str:
        quoted = quotes == "all" or (quotes == "needed" and re.search(f'[\n"{mark}]', value))
        return '"' + value.replace('"', '""') + '"' if quoted else value

    lines = [[u, i, spelt(t), note] for (u, i, t), note in zip(rows, notes, strict=False)]
    for line in lines:
        if quotes == "none" or names is None:
            line[3] = re.sub(r"[^ab1 ]", "", line[3])
    table = [[*names], *lines] if names else lines
    data = end.join(mark.join(cell(line[at]) for at in order) for line in table) + end
    places = {} if names else {ours: str(order.index(at) + 1) for at, ours in enumerate(("user", "item", "time"))}
    found = read_interactions(Upload("x.csv", data.encode(encoding)), places)
    assert [(u, i, round(t, 3)) for u, i, t in rows_of(found)] == [(u, i, kept(t)) for u, i, t in rows]
    assert not found.faults.count


# --- in stretches ----------------------------------------------------------------------------------------------------

HEAD, WHOLE = 256, 2**26  # what is looked at: the same of both
LAYOUTS = {  # header, a row
    "csv": ("user,item,time,title\n", '{u},{i},{t},"{x}"\n'),
    "tsv": ("time\tuser_id\tother\titem_id\n", "{t}\t{u}\tx\t{i}\n"),
    "u.data": ("", "{u}\t{i}\t3\t{t}\n"),
    "ratings.dat": ("", "{u}::{i}::3::{t}\n"),
    "aligned": ("user item   time\n", "{u:>4} {i:>6} {t}\n"),
    "JSON lines": ("", '{{"user": "{u}", "item": "{i}", "time": "{t}"}}\n'),
}
TITLES = ["x", 'said ""no"", twice', "a\nb", "a\n\nb", "3\n\n\n4"]
ODD = ["blank", "short", "long", "NULL user", "NULL item", "NULL time", "soon"]


def found(data: bytes, stretch: int) -> tuple[Any, ...] | str:
    """All that is read, or why nothing is; however many rows are bad."""
    with (
        patch.object(delimited_text, "HEAD", HEAD),
        patch.object(delimited_text, "STRETCH", stretch),
        patch.object(bad_rows, "SHARE", 1.0),
    ):
        try:
            table = read_interactions(Upload("x.txt", data))
        except InputError as error:
            return str(error)
    items = None if table.items is None else table.items.to_numpy().tolist()
    lost = [line for line, _ in table.faults.first], table.faults.count, table.faults.rows
    return rows_of(table), lost, items, table.notes, [said for said in table.understood if said[0] != "rows"]


@settings(max_examples=70)
@given(
    *map(some.sampled_from, (sorted(LAYOUTS), ["utf-8", "latin-1"], ["seconds", "milliseconds", "ISO"])),
    some.lists(
        some.sampled_from(ODD)
        | some.tuples(some.sampled_from(["7", "12", "é1"]), some.integers(1, 99), some.sampled_from(TITLES)),
        max_size=60,
    ),
    some.integers(400, 900),
)
def test_stretches_are_the_whole_and_faults_those_of_a_loop(
    name: str, encoding: str, form: str, rows: list[Any], stretch: int
) -> None:
    head, row = LAYOUTS[name]
    spelt, kept = TIMES[form]
    out, good, bad = head, list[Any](), list[int]()
    rows = [each for n, each in enumerate(rows) if isinstance(each, tuple) or each not in rows[:n]]  # mostly good ones
    for n, each in enumerate([("7", 1, "x")] * 14 + rows):
        line, at = out.count("\n") + 1, 1_546_300_800 + 60 * n
        if each == "blank":
            out += "\n"
            continue
        u, i, x = each if isinstance(each, tuple) else ("9", "5", "x")
        u, i, t = "NULL" if each == "NULL user" else u, "NULL" if each == "NULL item" else str(i), spelt(at)
        t = "NULL" if each == "NULL time" else each if each == "soon" else t
        cells = row.format(u=u, i=i, t=t, x=x)
        out += "one\n" if each == "short" else cells.replace(t, f"{t}::{t},{t}\t{t} | {t}") if each == "long" else cells
        if isinstance(each, tuple):
            good.append((u, i, kept(at)))
        else:
            bad.append(line)
    data = out.encode(encoding)
    whole = found(data, WHOLE)
    assert not isinstance(whole, str)
    assert [(u, i, round(t, 3)) for u, i, t in whole[0]] == good
    assert whole[1] == (bad[:20], len(bad), len(good) + len(bad))
    assert found(data, stretch) == whole


@pytest.mark.parametrize("stretch", [300, 400, 700])
def test_stretches_of_other_forms_are_the_whole(stretch: int) -> None:
    people = [(u, [(7 * u + k) % 40 for k in range(3 + u % 5)]) for u in range(60)]
    forms = [
        "user,items\n" + "".join(f'{u},"{items}"\n' for u, items in people),
        "user,item,time\n" + "".join(f"u{n % 7},é{n % 5},{n % 12 + 1}/{n % 28 + 1}/2024\n" for n in range(60)),
    ]
    for data in [form.encode() for form in forms] + [forms[1].encode("utf-16")]:
        with (
            patch.object(delimited_text, "HEAD", HEAD),
            patch.object(delimited_text, "STRETCH", stretch * (1 + (data[:1] == b"\xff"))),
        ):
            parts = read_interactions(Upload("x.csv", data), {"time": ""} if b"items" in data else {})
        whole = read_interactions(Upload("x.csv", data), {"time": ""} if b"items" in data else {})
        assert rows_of(parts) == rows_of(whole) and parts.notes == whole.notes and parts.understood == whole.understood


@pytest.mark.parametrize("name", ["csv", "ratings.dat"])
def test_a_long_file_becomes_the_same_data_without_being_held(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """60,000 events with repeats and ties: the same catalogue, people, order and hash; in memory numbers and a stretch's text."""
    generator, (header, row) = np.random.default_rng(0), LAYOUTS[name]
    drawn = zip(*(generator.integers(1, most, 60_000).tolist() for most in (900, 400, 3_000)), strict=True)
    lines = [row.format(u=user, i=item, t=1_546_300_800 + time, x=f"film {item}") for user, item, time in drawn]
    (tmp_path / name).write_text(header + "".join(lines + lines[:500]))
    whole = load(DataConfig(source=str(tmp_path / name)))
    monkeypatch.setattr(delimited_text, "STRETCH", 2**15)
    monkeypatch.setattr(archives.Member, "read", lambda *_: pytest.fail("it was read whole"))
    pool, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        long = load(DataConfig(source=str(tmp_path / name)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    assert long.hash == whole.hash and long.notes == whole.notes and long.understood == whole.understood
    assert "502 rows that repeat user, item and time exactly" in long.notes[0]
    assert list(long.catalog.ids) == list(whole.catalog.ids) and list(long.histories.user_ids) == list(whole.histories.user_ids)
    assert (long.histories.times == whole.histories.times).all() and long.histories.items.dtype == np.int32
    assert long.catalog.titles is None or list(long.catalog.titles) == list(whole.catalog.titles)
    assert peak < 60 * 60_500 + 2**22 and pool.max_memory() < 2**22
