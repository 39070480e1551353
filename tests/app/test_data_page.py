"""The Data page: real cards, an upload from first row to the Train page, and a world whose truth is on the screen."""

import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import healthy, press, said
from streamlit.testing.v1 import AppTest

from elastic_core.errors import InputError
from elastic_core.memory.recovery import NULLS, TRAINED, UNTRAINED
from elastic_core.run_config import DataConfig
from elastic_core.services.data import cards
from elastic_core.services.data.upload_store import UploadStore
from pages.components import cache, plot
from pages.data import charts

PAGE = "data/page.py"
HEAD = "card,book,read_at,name\n"
ROWS = "".join(f"u{u},b{(i + u) % 7},{10**9 + 7 * u + i},=Book {(i + u) % 7}\n" for u in range(6) for i in range(7))
Visit = Callable[..., AppTest]


def upload(app: AppTest, text: str | bytes, name: str = "books.csv") -> AppTest:
    data = text if isinstance(text, bytes) else text.encode()
    return healthy(app.file_uploader(key="dat_file").set_value((name, data, "text/csv")).run())


def choose(app: AppTest, role: str, column: str) -> AppTest:
    box = next(box for box in app.selectbox if str(box.key).startswith(f"dat_{role}_"))
    return healthy(box.set_value(column).run())


def test_the_runs_own_data_is_shown_first(opened: Visit) -> None:
    app = opened(PAGE, run="tiny", user="5")
    numbers = {metric.label: metric.value for metric in app.metric}
    assert int(numbers["People"].replace(",", "")) > 10 and numbers["Density"].endswith("%")
    text = said(app)
    assert "Person 5 has" in text and "Licence" in text and "How exact is the copy?" in text
    press(app, "Count them all")
    assert "people" in app.dataframe[-1].value.columns


def test_a_file_goes_from_first_row_to_the_train_page(opened: Visit, app_runs: Path) -> None:
    app = opened(PAGE, dat_part="Bring your own")
    upload(app, HEAD + ROWS + "u1,b1,soon,x\n")
    assert "choose the column for: Person (user)." in said(app), "the others have usual names"
    choose(app, "user", "card")
    assert "1 of 43 rows cannot be used" in said(app)
    (preview, understood, faults, steps) = (frame.value for frame in app.dataframe)
    assert len(preview) == 6, "a longer one would scroll in place of the page"
    assert preview["name"].iloc[0].startswith("'=Book"), "the preview cannot be run by a spreadsheet either"
    assert dict(understood.to_numpy().tolist()) == {
        "person": "card (as you said)", "item": "book (by its name)", "time": "read_at (its values tell a moment)",
        "title": "name (by its name)", "rows": "42 of 43", "from … to": "2001-09-09 01:46:40 to 2001-09-09 01:47:21",
    }  # fmt: skip
    assert faults["line"].tolist() == [44]
    assert steps["events"].tolist() == ["43", "42", "42", "42"]
    press(app, "Keep these data")
    (kept,) = UploadStore(app_runs / "uploads").list_stored()
    assert "Kept as" in " ".join(str(s.value) for s in app.success) and kept.facts["people"] == 6
    app.switch_page("train/page.py").run()
    assert kept.label in app.selectbox(key="train_data").options
    train = opened("train/page.py", train_data=kept.label, train_time="30 s")
    assert train.selectbox(key="train_data").value == kept.label


def test_what_a_file_does_not_say_is_asked(opened: Visit) -> None:
    """Which column is what, where none has a name; which part of a date is the day, where no row tells; what items are called."""
    rows = [json.dumps([3, f"u{u}", f"b{(i + u) % 7}", f"0{1 + i}/03/2024"]) for u in range(6) for i in range(7)]
    app = upload(opened(PAGE, dat_part="Bring your own"), "\n".join(row[1:-1].replace(", ", ";") for row in rows), "loans.txt")
    assert "choose the column for: Person (user), Item, Time" in said(app) and "holds no names" in said(app)
    for role, column in (("user", "column 2"), ("item", "column 3"), ("time", "column 4")):
        choose(app, role, column)
    (asked,) = app.radio
    assert asked.value is None and "No row of the file tells" in asked.label and "rows can be read" not in said(app)
    assert asked.options == ["1 March 2024 (day first)", "3 January 2024 (month first)"]
    healthy(asked.set_value("month-first").run())
    assert "All 42 rows can be read" in said(app) and "2024-01-03 00:00:00 to 2024-07-03 00:00:00" in str(app.dataframe[1].value)
    titles = next(box for box in app.file_uploader if str(box.key).startswith("dat_titles"))
    healthy(titles.set_value(("books.csv", b"item;title\n" + b"".join(b"b%d;Book %d\n" % (i, i) for i in range(7)), "")).run())
    press(app, "Keep these data")
    press(app, "Look at it")
    assert re.search(r"judged by the place it gives to \*\*Book [0-6]\*\*", said(app)) and "How was it read?" in said(app)


def test_an_archive_is_read_without_its_torn_part_when_asked(opened: Visit) -> None:
    lines, packed = ROWS.splitlines(keepends=True), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.csv", HEAD + "".join(lines[:36]))
        archive.writestr("b.csv.gz", gzip.compress((HEAD + "".join(lines[36:])).encode())[:-20])
    app = upload(opened(PAGE, dat_part="Bring your own"), packed.getvalue(), "books.zip")
    assert "b.csv.gz is not a complete archive" in app.error[0].value and "--incomplete" not in app.error[0].value
    press(app, "Read the other files without it")
    assert not app.error and "b.csv.gz is torn and was left out, as you said" in said(app)


def test_a_file_without_times_is_taken_in_its_order(opened: Visit, app_runs: Path) -> None:
    app = opened(PAGE, dat_part="Bring your own")
    upload(app, "user,item\n" + "".join(f"u{u},b{(i + u) % 7}\n" for i in range(7) for u in range(6)))
    assert "choose the column for: Time" in said(app)
    choose(app, "time", "– order of rows –")
    assert "All 42 rows can be read" in said(app)
    assert not [box for box in app.selectbox if str(box.key).startswith("dat_ties_")]
    press(app, "Keep these data")
    (kept,) = UploadStore(app_runs / "uploads").list_stored()
    assert kept.config.columns == {"user": "user", "item": "item", "time": ""}
    press(app, "Look at it")
    assert not app.exception and app.metric[0].value == "6"


def test_many_equal_times_are_told_and_may_be_put_in_a_random_order(opened: Visit, app_runs: Path) -> None:
    app = opened(PAGE, dat_part="Bring your own")
    days = "".join(f"u{u},b{(i + u) % 7},{86_400 * (i // 4)}\n" for u in range(6) for i in range(7))
    upload(app, "user,item,time\n" + days)
    box = next(box for box in app.selectbox if str(box.key).startswith("dat_ties_"))
    assert box.value == "file" and "Equal times: 83% of events have the same time" in said(app)
    healthy(box.set_value("random").run())
    assert "a hash decides" in said(app)
    press(app, "Keep these data")
    (kept,) = UploadStore(app_runs / "uploads").list_stored()
    assert kept.config.ties == "random"
    press(app, "Look at it")
    assert not app.exception and "a hash decides" in said(app)


def test_what_is_kept_can_be_looked_at_and_deleted(opened: Visit, app_runs: Path) -> None:
    app = opened(PAGE, dat_part="Plant a world", dat_users="100", dat_items="60", dat_interests="4")
    press(app, "Keep this world")
    (kept,) = UploadStore(app_runs / "uploads").list_stored()
    assert kept.config.planted.users == 100 and kept.config.planted.interests == 4
    press(app, "Which model?")
    assert app.selectbox(key="dat_study").value == kept.label
    app = opened(PAGE, dat_part="Bring your own")
    press(app, "Look at it")
    assert app.selectbox(key="dat_source").value == kept.label and app.metric[0].value == "100"
    again = opened(PAGE, dat_part="Bring your own")
    assert kept.label.split(" ·")[0] in said(again), "it survives a restart"
    UploadStore(app_runs / "uploads").delete_data(kept.id)
    assert "Nothing yet" in said(opened(PAGE, dat_part="Bring your own"))


def test_a_file_that_was_deleted_is_shown_no_more(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("user,item,time\n" + "".join(f"u{user},{item},{item}\n" for user in range(6) for item in range(6)))
    config = DataConfig(source=str(path))
    shown = cache.load_dataset(config)
    assert cache.load_dataset(config) is shown
    path.unlink()
    with pytest.raises(InputError, match="there is no file"):
        cache.load_dataset(config)


def test_a_world_that_cannot_be_drawn_says_so(opened: Visit) -> None:
    app = opened(PAGE, dat_part="Plant a world", dat_items="40", dat_interests="32")
    assert "cannot be drawn" in app.error[0].value and "4 x interests" in app.error[0].value


def test_experts_are_scored_in_the_background_when_asked(opened: Visit, work_done: Callable[[], None]) -> None:
    app = opened(PAGE, dat_part="Plant a world", dat_users="100")
    press(app, "Measure it now")
    assert not [f for f in app.dataframe if "events" in f.value.columns and "model" in f.value.columns]
    work_done()
    healthy(app.run())
    table = next(f.value for f in app.dataframe if {"model", "people", "events"} <= set(f.value.columns))
    assert table["model"].tolist() == [TRAINED, *NULLS, UNTRAINED, "who knows every event’s interest"]
    assert table[["people", "events"]].stack().between(-1, 1).all()
    assert "What does it remember?" in [head.value for head in app.subheader]


def test_figures_in_both_themes_stay_small(small_world) -> None:  # type: ignore[no-untyped-def]
    table = cards.interest_blocks(small_world)
    for colours in (plot.LIGHT, plot.DARK):
        cells = charts.draw_interest_blocks(table, colours).data[0].z
        assert cells.size <= 16_000 and cells.shape[0] == 5
        picture = charts.draw_split(cards.split_table(small_world, 0), colours)
        assert [len(trace.x) for trace in picture.data][1:] == [1, 1]
        assert len({trace.marker.symbol for trace in picture.data}) == 3, "told apart without colour"
        charts.draw_interest_path(cards.interest_path(small_world, 0), colours)
    assert charts.format_range(3, 3) == "3" and charts.format_range(1000, 1999) == "1,000–1,999"
