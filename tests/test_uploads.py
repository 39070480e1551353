"""Uploads: what is read is what was meant, as on the command line; every bad row is named; the shelf keeps, finds and forgets."""

import csv
import dataclasses
import io
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elastic_core import recipes
from elastic_core.data import load
from elastic_core.data.reading import read_interactions
from elastic_core.data.reading.archives import Upload
from elastic_core.data.reading.time_columns import Undecided
from elastic_core.errors import InputError
from elastic_core.jobs.job_kinds import Trainings
from elastic_core.run_config import PlantedConfig
from elastic_core.runs import WEIGHTS, Run
from elastic_core.services.data import upload_store as uploads
from elastic_core.services.data.cards import at_hand_choices
from elastic_core.services.data.upload_store import UploadStore, check_upload, open_upload, preprocess_upload
from elastic_core.services.person import user_lookup

HEAD = "user,item,time,title,genres\n"
ROWS = [(u, (i + u) % 7, 10**9 + 7 * u + i) for u in range(6) for i in range(7)]
GOOD = HEAD + "".join(f'u{u},i{i},{time},"Film, {i}",Drama|War\n' for u, i, time in ROWS)
WORLD = PlantedConfig(users=40, items=40, interests=4, mean_length=20, max_length=40)


def outcome(text: str = GOOD, name: str = "films.csv", k_core: int = 5) -> uploads.FileOutcome:
    sheet, guessed = open_upload(name, text.encode())
    return preprocess_upload(sheet.label, check_upload(sheet, guessed), k_core)


# --- reading -------------------------------------------------------------------------------------------------------------


def lines(row: str, head: str = "") -> str:
    return head + "".join(row.format(u=u, i=i, t=t) + "\n" for u, i, t in ROWS)


def zipped(**files: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.csv", text)
    return out.getvalue()


NAMES = "user,item,time\n"
PLAIN = lines("u{u},i{i},{t}", NAMES)
REFUSED: dict[str, str | bytes] = {
    "nothing": "", "names alone": NAMES, "names that say nothing": PLAIN.replace("user,item", "a,b"),
    "no times": lines("{u},{i}", "user,item\n"), "numbers alone": lines("{t},{u},{i},3"),
    "day or month": lines("{u},{i},0{u}/03/2024", NAMES), "years": lines("{u},{i},201{i}", NAMES),
    "bad times": lines("{u},{i},x{t}", NAMES), "prose": "Dear user,\n\nno table here.\n" * 9, "zeros": b"\0" * 99,
    "a web page": "<html><body>404</body></html>", "a pickle": b"\x80\x04K\x01.", "a torn zip": zipped(a=PLAIN)[:-9],
    "two tables": zipped(a="x\n1\n", b="y\n2\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_command_line_and_app_refuse_alike(kind: str, tmp_path: Path) -> None:
    """What they read, they read alike: tests/data/test_reading.py."""
    data = REFUSED[kind]
    data = data.encode() if isinstance(data, str) else data
    (tmp_path / "mine.csv").write_bytes(data)
    for read in (lambda: read_interactions(tmp_path / "mine.csv"), lambda: check_upload(*open_upload("mine.csv", data))):
        with pytest.raises(InputError, match=r"mine\.csv|time") as refused:
            read()
        assert "\n" not in str(refused.value)


def test_what_only_its_owner_knows_is_asked_once() -> None:
    """Which columns, where the file does not name them; which day, where no row tells."""
    sheet, guessed = open_upload("mine.csv", lines("3,{u},{i},04/03/2024").encode())
    assert guessed == {} and sheet.sample.column_names[-1] == "column 4"
    guessed = dict(zip(("user", "item", "time"), sheet.sample.column_names[1:], strict=True))
    with pytest.raises(Undecided) as asked:
        check_upload(sheet, guessed)
    assert list(asked.value.readings.values()) == ["4 March 2024", "3 April 2024"]
    days = {order: check_upload(sheet, guessed, order).events["time"].iloc[0] // 86_400 for order in asked.value.readings}  # type: ignore[arg-type]
    assert days == {"day-first": 19_786, "month-first": 19_816}


def test_titles_come_from_a_second_file() -> None:
    sheet, guessed = open_upload("mine.csv", PLAIN.encode())
    films = "itemId,title,genres\n" + "".join(f"i{i},Film {i},War\n" for i in range(7))
    table = check_upload(sheet, guessed, titles=Upload("films.csv", films.encode()))
    assert preprocess_upload(sheet.label, table, 5).dataset.catalog.title(1) == "Film 0"
    with pytest.raises(InputError, match="needs a column for the item"):
        check_upload(sheet, guessed, titles=Upload("films.csv", b"a,b\n1,2\n"))


def test_the_template_can_be_uploaded() -> None:
    found = outcome(uploads.TEMPLATE, k_core=2)
    assert found.table.faults.count == 0 and found.dataset.catalog.n_items == 3
    assert found.dataset.catalog.title(1) == "The First Book"


def test_steps_say_what_every_rule_leaves() -> None:
    text = GOOD + f"u1,rare,{10**9},,\n" + "u1,i1,soon,,\n" + GOOD.splitlines()[1] + f"\nlonely,i1,{10**9},,\n"
    steps = outcome(text).steps.set_index("step")
    assert steps["events"].tolist() == [46, 45, 44, 42]
    assert steps.loc["can be read", "people"] == 7 and steps.loc["not too rare", "people"] == 6
    assert steps.loc["not too rare", "items"] == 7 and steps["why"].str.len().min() > 10


def test_without_times_the_order_of_the_rows_counts_and_stays(tmp_path: Path) -> None:
    rows = [(f"u{u}", f"i{(3 * i + u) % 7}") for i in range(8) for u in range(6)] + [("u0", "i0"), ("u0", "i0")]
    sheet, guessed = open_upload("clicks.csv", ("user,item\n" + "".join(f"{u},{i}\n" for u, i in rows)).encode())
    with pytest.raises(InputError, match="needs a column for the time"):
        check_upload(sheet, guessed)
    found = preprocess_upload(sheet.label, check_upload(sheet, {**guessed, "time": ""}), k_core=5)
    assert not found.dataset.has_times and found.steps.set_index("step").loc["each once", "events"] == len(rows)
    kept = UploadStore(tmp_path).store_upload(found)
    again = load(kept.config)
    assert again.hash == found.dataset.hash and not again.has_times
    assert UploadStore(tmp_path).get(kept.id).config == kept.config
    ids = [str(again.catalog.ids[i]) for i in again.histories.user_items(0)]
    assert ids == [i for u, i in rows if u == "u0"]


cells = st.text(alphabet='abc ,"\n-', max_size=6)
times = st.sampled_from([str(10**9), "1000000000.5", "x", "", "-1", "1e30", "2024-01-05"])


@given(st.lists(st.tuples(cells, cells, times), max_size=4))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_faults_are_those_of_a_loop_over_lines(odd: list[tuple[str, str, str]]) -> None:
    """The slow twin looks at one row after another, with the standard library alone."""
    out, expected, line = io.StringIO(PLAIN), list[int](), 2 + len(ROWS)
    out.seek(0, io.SEEK_END)
    csv.writer(out, lineterminator="\n").writerows(odd)
    for *ids, time in odd:
        bare = [re.sub(r'^"(.+)"$|^""$', r"\1", one.strip(), flags=re.DOTALL).strip() for one in ids]
        if not time.startswith("1000000000") or any(one in ("", "-", "--") or "\n" in one for one in bare):
            expected.append(line)
        line += 1 + sum(one.count("\n") for one in ids)
    found = check_upload(*open_upload("t.csv", out.getvalue().encode()))
    assert [line for line, _ in found.faults.first] == expected
    assert len(found.events) == len(ROWS) + len(odd) - len(expected)


def test_only_the_first_faults_are_listed_and_the_rest_counted() -> None:
    found = outcome(GOOD + f"u1,i1,{10**9},,\n" * 300 + "u1,i1,soon,,\n" * 30).table.faults
    assert (len(found.first), found.rest, found.count) == (20, 10, 30)
    assert list(found.table().columns) == ["line", "what is wrong"] and found.table()["line"].iloc[0] == 344


def test_two_hundred_thousand_rows() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"user": rng.integers(0, 5000, 200_000), "item": rng.integers(0, 2000, 200_000)})
    frame["time"] = np.arange(len(frame)) + 10**9
    found = outcome(frame.to_csv(index=False))
    assert found.table.faults.rows == 200_000 and found.dataset.histories.n_users == 5000


def test_people_are_found_by_the_ids_of_the_file() -> None:
    raw = ["u_8841", "U_8", "anna", "17", "1"]
    rows = [(u, i, 10**9 + i) for u in raw for i in range(6)]
    data = outcome(HEAD + "".join(f"{u},i{i},{t},Film,\n" for u, i, t in rows), k_core=2).dataset
    ids = data.histories.user_ids.tolist()
    assert ids == ["1", "17", "U_8", "anna", "u_8841"] and [user_lookup.own_id(data, user) for user in range(5)] == ["", *ids[1:]]
    for text, found in (
        (" u_8841 ", [4]),
        ("ANNA", [3]),
        ("u_8", [2]),
        ("_88", [4]),
        ("8", [2, 4]),
        ("1", [0]),
        ("x", []),
        (" ", []),
    ):
        assert user_lookup.find_users(data, text) == found, text
    smaller = outcome(HEAD + "".join(f"{u},i{i},{t},Film,\n" for u, i, t in rows[6:]), k_core=2).dataset
    assert user_lookup.same_user(data, ids.index("anna"), smaller) == smaller.histories.user_ids.tolist().index("anna")
    assert user_lookup.same_user(data, ids.index("u_8841"), smaller) is None
    other = dataclasses.replace(smaller, label="others.csv")
    assert user_lookup.same_user(data, ids.index("anna"), other) is None, "an id of other data is somebody else"
    assert user_lookup.same_user(data, 0, other, own_id="17") == other.histories.user_ids.tolist().index("17"), (
        "unless the visitor typed it"
    )


# --- the shelf -----------------------------------------------------------------------------------------------------------


def test_the_shelf_survives_a_restart_and_can_be_moved(tmp_path: Path) -> None:
    first = UploadStore(tmp_path / "uploads")
    kept, world = first.store_upload(outcome()), first.plant(WORLD)
    assert {k.id for k in UploadStore(tmp_path / "uploads").list_stored()} == {kept.id, world.id}
    shutil.move(tmp_path / "uploads", tmp_path / "elsewhere")
    moved = UploadStore(tmp_path / "elsewhere").get(kept.id)
    data = load(moved.config)
    assert data.hash == kept.facts["hash"] and data.label == kept.label and data.titles_may_be_shared
    assert load(world.config).truth is not None
    assert set(UploadStore(tmp_path / "elsewhere").list_choices()) <= set(
        at_hand_choices(UploadStore(tmp_path / "elsewhere").list_choices())
    )


def test_the_same_rows_are_kept_once(tmp_path: Path) -> None:
    shelf = UploadStore(tmp_path)
    one, two = shelf.store_upload(outcome()), shelf.store_upload(outcome(k_core=3), label="again")
    assert one.id == two.id and len(shelf.list_stored()) == 1 and two.config.k_core == 3 and two.label.startswith("again")


def test_runs_and_trainings_on_data_are_seen_whatever_their_k_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows kept again with another k-core are the same file; so is a run's relative path."""
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)
    shelf, config = UploadStore(tmp_path / "uploads"), recipes.toy()
    before = shelf.store_upload(outcome())
    run = Run(tmp_path / "local-on-it")
    run.write_start(dataclasses.replace(config, data=before.config), load(before.config))
    (run.path / WEIGHTS).touch()
    Trainings(tmp_path).submit(dataclasses.replace(config, data=before.config))
    again, world = shelf.store_upload(outcome(k_core=3)), shelf.plant(WORLD)
    assert again.config != before.config
    assert shelf.runs_on(again.id, tmp_path) == ["local-on-it"] and len(Trainings(tmp_path).active_on_data(again.config)) == 1
    assert shelf.runs_on(world.id, tmp_path) == [] and Trainings(tmp_path).active_on_data(world.config) == []


def test_deleting_leaves_nothing_and_ids_are_never_paths(tmp_path: Path) -> None:
    shelf = UploadStore(tmp_path / "uploads")
    kept = shelf.store_upload(outcome())
    (tmp_path / "precious").mkdir()
    for wanted in ("../precious", "", ".", kept.id + "/..", str(tmp_path / "precious")):
        with pytest.raises(InputError, match="not kept here"):
            shelf.delete_data(wanted)
    shelf.delete_data(kept.id)
    assert list((tmp_path / "uploads").iterdir()) == [] and (tmp_path / "precious").is_dir()


def test_the_shelf_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_KEPT", 1)
    shelf = UploadStore(tmp_path)
    shelf.store_upload(outcome())
    shelf.store_upload(outcome())
    with pytest.raises(InputError, match="delete one first"):
        shelf.plant(WORLD)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_failing_disk_leaves_nothing_half_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(uploads.os, "replace", full)
    with pytest.raises(InputError, match="could not be stored: No space left"):
        UploadStore(tmp_path).store_upload(outcome())
    assert list(tmp_path.iterdir()) == []
