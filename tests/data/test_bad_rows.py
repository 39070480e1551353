"""One rule for bad rows: up to a tenth is left out and named by its line, the same for a file sent to the app and one named."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from elastic_core.commands import main
from elastic_core.config import DataConfig
from elastic_core.data import load
from elastic_core.data.reading import Table, read_interactions
from elastic_core.data.reading.faults import weigh
from elastic_core.data.reading.packing import Upload
from elastic_core.data.reading.times import Undecided
from elastic_core.errors import InputError
from elastic_core.services.data.shelf import checked, folded, opened

HEAD = "user,item,time\n"
GOOD = [f"u{u},i{(u + i) % 9},{1_600_000_000 + 10 * u + i}" for u in range(12) for i in range(9)]  # 108 rows
BAD = {
    "no user": (",i1,1600000005", "the user is missing"),
    "no item": ("u1,nan,1600000005", "the item is missing"),
    "no time": ("u1,i1,", "the time is missing"),
    "a word for a time": ("u1,i1,soon", "the time 'soon' is no number, as most rows have it"),
    "1970": ("u1,i1,5", "the time is in 1970 where most rows are after 2000"),
    "after 2200": ("u1,i1,1e300", "the time is after the year 2200"),
    "endless": ("u1,i1,inf", "the time 'inf' is no number, as most rows have it"),
    "a long id": (f"u1,{'x' * 300},1600000005", "the item is longer than 200 characters"),
    "a control character": ("u1,i\x1b[2J,1600000005", "the item holds a control character"),
    "another direction": ("u1,\u202eexe.i,1600000005", "the item holds a control character"),
    "a field too many": ("u1,i1,1600000005,6", "4 cells where 3 belong"),
}


def read(text: str) -> Table:
    return read_interactions(Upload("mine.csv", text.encode()))


@pytest.mark.parametrize("name", BAD)
def test_a_row_is_left_out_named_and_told_wherever_the_data_are(name: str, tmp_path: Path) -> None:
    row, what = BAD[name]
    text, path = HEAD + "\n".join([*GOOD[:40], row, *GOOD[40:]]) + "\n", tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    table = read(text)
    assert table.faults.first == ((42, what),) and (table.faults.count, table.faults.rows, len(table.events)) == (1, 109, 108)
    assert list(table.events["user"]) == [row.split(",")[0] for row in GOOD]
    data, sent = load(DataConfig(source=str(path))), folded("mine.csv", checked(*opened("mine.csv", text.encode())), 5)
    assert data.hash == sent.dataset.hash
    assert f"1 of 109 rows cannot be used and was left out (line 42: {what})" in data.notes


def test_the_share_is_exact_and_the_first_lines_are_named() -> None:
    assert read(HEAD + "\n".join([*GOOD, *[BAD["no user"][0]] * 12])).faults.count == 12
    with pytest.raises(InputError, match=r"^mine\.csv, line 110: the user is missing; .*; …: 13 of 121 rows cannot be used, and at"):
        read(HEAD + "\n".join([*GOOD, *[BAD["no user"][0]] * 13]))
    found = [(line, "odd") for line in (9, 3, 7, 5)]
    assert weigh(found, 40, "t.csv").count == 4
    with pytest.raises(InputError, match=r"^t\.csv, line 3: odd; line 5: odd; line 7: odd; …: 4 of 39 rows cannot be used"):
        weigh(found, 39, "t.csv")
    said = weigh(found, 40, "t.csv").sentence()
    assert said == "4 of 40 rows cannot be used and were left out (line 3: odd; line 5: odd; line 7: odd; …)"
    assert weigh([], 0, "t.csv").sentence() == ""


def test_the_command_line_says_what_was_understood_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(HEAD + "\n".join([*GOOD, "u1,i1,soon", ",i2,1600000005"]) + "\n")
    assert main(["data", str(path)]) == 0
    shown = capsys.readouterr()
    said = "2 of 110 rows cannot be used and were left out (line 110: the time 'soon' is no number"
    assert said in shown.err and shown.out.count(said) == 2
    assert re.search(r"read: user +user \(by its name\)\nread: item .*\nread: time +time \(its values tell a moment\)\n", shown.out)
    assert re.search(r"read: rows +108 of 110; .*\nread: from, to +2020-09-13 12:26:40 to 2020-09-13 12:28:38\n", shown.out)


# --- day or month ----------------------------------------------------------------------------------------------------

DAYS = [f"u{u};i{(u + i) % 9};{1 + i:02d}{{0}}{1 + u:02d}{{0}}2024 20:{u:02d}\n" for u in range(12) for i in range(9)]
TOLD = {"day-first": "31{0}12{0}2024", "month-first": "12{0}31{0}2024"}


@pytest.mark.parametrize("order", TOLD)
@pytest.mark.parametrize("mark", "./-")
def test_dates_are_read_as_the_column_decides(order: str, mark: str) -> None:
    """The slow twin takes the numbers of every row apart."""
    rows = [*DAYS, f"u1;i1;{TOLD[order]}\n"]
    table = read("user;item;time;read at that day\n" + "".join(row.format(mark).replace("\n", ";x\n") for row in rows))
    assert table.faults.count == 0
    for row, seconds in zip(rows[:-1], table.events["time"], strict=False):
        a, b, _, hour, minute = (int(part) for part in re.split(r"[^0-9]+", row.format(mark).split(";")[2].strip()))
        day, month = (a, b) if order == "day-first" else (b, a)
        assert datetime.fromtimestamp(seconds, UTC) == datetime(2024, month, day, hour, minute, tzinfo=UTC)
    assert any("read with the " + order[:3] in note for note in table.notes)


def test_dates_that_nothing_decides_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, path = "user;item;time\n" + "".join(DAYS).format("/"), tmp_path / "mine.csv"
    with pytest.raises(Undecided, match="no row tells") as asked:
        checked(*opened("mine.csv", text.encode()))
    assert list(asked.value.readings) == ["day-first", "month-first"]
    path.write_text(text)
    assert main(["data", str(path)]) != 0
    assert "may be 2 January 2024 or 1 February 2024" in capsys.readouterr().err
    assert main(["data", str(path), "--dates", "month-first"]) == 0
    sums = {load(DataConfig(source=str(path), dates=dates)).histories.times.sum() for dates in ("day-first", "month-first")}
    assert len(sums) == 2
    assert read(text.replace("/", ".")).faults.count == 0, "nobody writes the month first with dots"


def test_what_is_said_of_dates_is_about_one_that_may_be_read_two_ways() -> None:
    row = "{};{};{}\n".format
    clear = [row(user, item, f"{day}.02.2024") for user in range(6) for item, day in enumerate(range(13, 20))]
    assert not any("dates such as" in note for note in read("user;item;time\n" + "".join(clear)).notes), "one reading only"
    (note,) = (note for note in read("user;item;time\n" + "".join([*clear, row(1, 1, "03.04.2024")])).notes if "dates such as" in note)
    assert note.startswith("dates such as 03.04.2024 were read with the day first, because other rows")
