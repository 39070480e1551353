"""One rule for bad rows: a file sent to the app and the same file on the command line lose the same rows and say the same."""

import io
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_core.commands import main
from elastic_core.config import DataConfig
from elastic_core.data import load
from elastic_core.data.events import Undecided
from elastic_core.data.faults import SHARE, Faults, weigh
from elastic_core.data.interactions import read
from elastic_core.errors import InputError
from elastic_core.services.data.rows import check
from elastic_core.services.data.shelf import folded, opened

HEAD = "user,item,time\n"
GOOD = [f"u{u},i{(u + i) % 9},{1_000_000 + 10 * u + i}" for u in range(12) for i in range(9)]  # 108 rows
BAD = {
    "no user": (",i1,5", "the user is missing"),
    "no item": ("u1,nan,5", "the item is missing"),
    "no time": ("u1,i1,", "the time is missing"),
    "a word for a time": ("u1,i1,soon", "the time is not a number (seconds since 1970), as most rows have it"),
    "before 1970": ("u1,i1,-5", "the time is before 1970"),
    "after 2200": ("u1,i1,1e300", "the time is after the year 2200"),
    "endless": ("u1,i1,inf", "the time is not a number (seconds since 1970), as most rows have it"),
    "a long id": (f"u1,{'x' * 300},5", "the item is longer than 200 characters"),
    "a control character": ("u1,i\x1b[2J,5", "the item holds a control character"),
    "another direction": ("u1,\u202eexe.i,5", "the item holds a control character"),
    "a field too many": ("u1,i1,5,6", ""),
}  # fmt: skip


def by_upload(text: str) -> tuple[pd.DataFrame, Faults]:
    sheet, guessed = opened("mine.csv", text.encode())
    checked = check(sheet, guessed)
    return checked.events, checked.faults


def by_file(text: str, path: Path) -> tuple[pd.DataFrame, Faults]:
    path.write_text(text, encoding="utf-8")
    table = read(path)
    return table.events, table.faults


@pytest.mark.parametrize("name", BAD)
def test_both_ways_lose_the_same_row_and_name_its_line(name: str, tmp_path: Path) -> None:
    row, what = BAD[name]
    text = HEAD + "\n".join([*GOOD[:40], row, *GOOD[40:]]) + "\n"
    (sent, one), (named, two) = by_upload(text), by_file(text, tmp_path / "mine.csv")
    assert one.count == two.count == 1 and one.rows == two.rows == 109 and one.first[0][0] == two.first[0][0] == 42
    assert not what or one.first == two.first == ((42, what),)
    pd.testing.assert_frame_equal(sent, named, check_dtype=False)
    assert len(named) == 108
    data = load(DataConfig(source=str(tmp_path / "mine.csv")))
    assert data.hash == folded(check(*opened("mine.csv", text.encode())), 5).dataset.hash
    assert f"1 of 109 rows cannot be used and was left out (line 42: {two.first[0][1]})" in data.notes


@given(st.lists(st.tuples(st.integers(0, len(GOOD)), st.sampled_from(sorted(BAD))), max_size=30))
@settings(max_examples=60)
def test_both_ways_agree_on_any_mixture(tmp_path_factory: pytest.TempPathFactory, bad: list[tuple[int, str]]) -> None:
    rows = list(GOOD)
    for at, name in bad:
        rows.insert(at, BAD[name][0])
    text, path = HEAD + "\n".join(rows) + "\n", tmp_path_factory.mktemp("mine") / "mine.csv"
    if len(bad) > SHARE * len(rows):
        for way in (lambda: by_upload(text), lambda: by_file(text, path)):
            with pytest.raises(
                InputError, match=rf"mine.csv, line \d+: .*{len(bad)} of {len(rows)} rows cannot be used, and at most"
            ):
                way()
        return
    (sent, one), (named, two) = by_upload(text), by_file(text, path)
    pd.testing.assert_frame_equal(sent, named, check_dtype=False)
    assert one.count == two.count == len(bad) and [line for line, _ in one.first] == [line for line, _ in two.first]
    assert list(named["user"]) == [row.split(",")[0] for row in GOOD]


DAYS = [f"u{u};i{(u + i) % 9};{1 + i:02d}{{0}}{1 + u:02d}{{0}}2024 20:{u:02d}\n" for u in range(12) for i in range(9)]
TOLD = {"day-first": "31{0}12{0}2024", "month-first": "12{0}31{0}2024"}


@pytest.mark.parametrize("order", TOLD)
@pytest.mark.parametrize("mark", "./-")
def test_dates_are_read_as_the_column_decides(order: str, mark: str, tmp_path: Path) -> None:
    """Both ways, semicolons and names with spaces; the slow twin takes the numbers of every row apart."""
    rows = [*DAYS, f"u1;i1;{TOLD[order]}\n"]
    text = "user;item;time;read at that day\n" + "".join(row.format(mark).replace("\n", ";x\n") for row in rows)
    (sent, one), (named, two) = by_upload(text), by_file(text, tmp_path / "mine.csv")
    pd.testing.assert_frame_equal(sent, named, check_dtype=False)
    assert one.count == two.count == 0
    for row, seconds in zip(rows[:-1], named["time"], strict=False):
        a, b, _, hour, minute = (int(part) for part in re.split(r"[^0-9]+", row.format(mark).split(";")[2].strip()))
        day, month = (a, b) if order == "day-first" else (b, a)
        assert datetime.fromtimestamp(seconds, UTC) == datetime(2024, month, day, hour, minute, tzinfo=UTC)
    assert any("read with the " + order[:3] in note for note in read(tmp_path / "mine.csv").notes)


def test_dates_that_nothing_decides_are_asked_for_both_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, path = "user;item;time\n" + "".join(DAYS).format("/"), tmp_path / "mine.csv"
    with pytest.raises(Undecided, match="no row tells") as asked:
        by_upload(text)
    assert list(asked.value.readings) == ["day-first", "month-first"]
    path.write_text(text)
    assert main(["data", str(path)]) != 0
    assert "may be 2 January 2024 or 1 February 2024" in capsys.readouterr().err
    assert main(["data", str(path), "--dates", "month-first"]) == 0
    hashes = {load(DataConfig(source=str(path), dates=dates)).histories.times.sum() for dates in ("day-first", "month-first")}
    assert len(hashes) == 2
    assert by_upload(text.replace("/", "."))[1].count == 0, "nobody writes the month first with dots"


def test_what_is_said_of_dates_is_about_one_that_may_be_read_two_ways(tmp_path: Path) -> None:
    row, path = "{};{};{}\n".format, tmp_path / "mine.csv"
    clear = [row(user, item, f"{day}.02.2024") for user in range(6) for item, day in enumerate(range(13, 20))]
    path.write_text("user;item;time\n" + "".join(clear))
    assert not any("dates such as" in note for note in read(path).notes), "nobody could read these otherwise"
    path.write_text("user;item;time\n" + "".join([*clear, row(1, 1, "03.04.2024")]))
    (note,) = (note for note in read(path).notes if "dates such as" in note)
    assert note.startswith("dates such as 03.04.2024 were read with the day first, because other rows")


def test_the_share_is_exact_and_the_first_lines_are_named() -> None:
    found = [(line, "odd") for line in (9, 3, 7, 5)]
    assert weigh(found, 40, "t.csv").count == 4
    with pytest.raises(InputError, match=r"^t\.csv, line 3: odd; line 5: odd; line 7: odd; …: 4 of 39 rows cannot be used"):
        weigh(found, 39, "t.csv")
    said = weigh(found, 40, "t.csv").sentence()
    assert said == "4 of 40 rows cannot be used and were left out (line 3: odd; line 5: odd; line 7: odd; …)"
    assert weigh([], 0, "t.csv").sentence() == ""


def test_the_command_line_says_it_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(HEAD + "\n".join([*GOOD, "u1,i1,soon", ",i2,5"]) + "\n")
    assert main(["data", str(path)]) == 0
    shown = capsys.readouterr()
    said = "2 of 110 rows cannot be used and were left out (line 110: the time is not a number"
    assert said in shown.err and said in shown.out


def test_parquet_rows_and_units(tmp_path: Path) -> None:
    frame = pd.read_csv(io.StringIO(HEAD + "\n".join(GOOD)))
    frame["time"] = pd.to_datetime(frame["time"], unit="s")
    frame.loc[7, "user"] = None
    frame.to_parquet(tmp_path / "mine.parquet")
    table = read(tmp_path / "mine.parquet")
    assert table.faults.first == ((8, "the user is missing"),) and table.faults.counted == "row" and len(table.events) == 107
    (tmp_path / "ms.csv").write_text(HEAD + "\n".join(f"{row}000000" for row in GOOD))
    assert read(tmp_path / "ms.csv").notes == ("times were taken for milliseconds, because of their size",)


@pytest.mark.parametrize(
    "name",
    ["../slip.csv", "/etc/cron.d/slip.csv", "in/../../slip.csv", "..\\slip.csv", "C:\\slip.csv", "../out/", "__MACOSX/../../x"],
)
def test_names_outside_an_archive_are_refused_not_ignored(name: str, tmp_path: Path) -> None:
    """Both ways, beside a good table too."""
    packed = tmp_path / "inside" / "slip.zip"
    packed.parent.mkdir()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("mine.csv", HEAD + "\n".join(GOOD))
        archive.writestr(zipfile.ZipInfo(name), "x" if not name.endswith("/") else "")
    for way in (lambda: read(packed), lambda: opened("slip.zip", packed.read_bytes())):
        with pytest.raises(InputError, match=r"slip\.zip holds a file whose name points outside the archive"):
            way()
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "slip.zip"]
