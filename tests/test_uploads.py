"""Uploads: what is read is what was meant, every bad row is named by its line, and the shelf keeps, finds and forgets."""

import csv
import dataclasses
import gzip
import io
import json
import shutil
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elastic_core import recipes
from elastic_core.config import PlantedConfig
from elastic_core.data import faults, load
from elastic_core.errors import InputError
from elastic_core.runs import WEIGHTS, Run
from elastic_core.services.data import sheets
from elastic_core.services.data import shelf as uploads
from elastic_core.services.data.cards import at_hand_choices
from elastic_core.services.data.rows import check, guess, is_formula
from elastic_core.services.data.shelf import Shelf, folded, opened
from elastic_core.services.person import people
from elastic_core.services.train.jobs import Jobs

HEAD = "user,item,time,title,genres\n"
ROWS = [(u, (i + u) % 7, 10**9 + 7 * u + i) for u in range(6) for i in range(7)]
GOOD = HEAD + "".join(f'u{u},i{i},{time},"Film, {i}",Drama|War\n' for u, i, time in ROWS)
WORLD = PlantedConfig(users=40, items=40, interests=4, mean_length=20, max_length=40)


def outcome(text: str = GOOD, name: str = "films.csv", k_core: int = 5) -> uploads.Outcome:
    sheet, guessed = opened(name, text.encode())
    return folded(check(sheet, guessed), k_core)


def test_the_template_can_be_uploaded() -> None:
    found = outcome(uploads.TEMPLATE, k_core=2)
    assert found.checked.faults.count == 0 and found.dataset.catalog.n_items == 3
    assert found.dataset.catalog.title(1) == "The First Book"


def test_columns_called_as_the_screen_calls_them_are_known() -> None:
    _, guessed = opened("mine.csv", b"person;item;date\nu1;i1;31.12.2024\n")
    assert [guessed[role] for role in ("user", "item", "time")] == ["person", "item", "date"]


def test_steps_say_what_every_rule_leaves() -> None:
    text = GOOD + "u1,rare,5,,\n" + "u1,i1,soon,,\n" + GOOD.splitlines()[1] + "\n" + "lonely,i1,5,,\n"
    steps = outcome(text).steps.set_index("step")
    assert steps["events"].tolist() == [46, 45, 44, 42]
    assert steps.loc["can be read", "people"] == 7 and steps.loc["after the 5-core", "people"] == 6
    assert steps.loc["after the 5-core", "items"] == 7 and steps["why"].str.len().min() > 10


def test_without_times_the_order_of_the_rows_counts_and_stays(tmp_path: Path) -> None:
    rows = [(f"u{u}", f"i{(3 * i + u) % 7}") for i in range(8) for u in range(6)] + [("u0", "i0"), ("u0", "i0")]
    sheet, guessed = opened("clicks.csv", ("user,item\n" + "".join(f"{u},{i}\n" for u, i in rows)).encode())
    with pytest.raises(InputError, match="needs a column for the time"):
        check(sheet, guessed)
    found = folded(check(sheet, {**guessed, "time": ""}), k_core=5)
    assert not found.dataset.has_times and found.steps.set_index("step").loc["each once", "events"] == len(rows)
    kept = Shelf(tmp_path).keep(found)
    again = load(kept.config)
    assert again.hash == found.dataset.hash and not again.has_times
    assert Shelf(tmp_path).get(kept.id).config == kept.config
    ids = [str(again.catalog.ids[i]) for i in again.histories.of(0)]
    assert ids == [i for u, i in rows if u == "u0"]


@pytest.mark.parametrize("mark", ["\t", ",", " ", "::"])
def test_known_layouts_without_names_are_guessed(mark: str) -> None:
    rated, plain = (f"7{mark}12{mark}3{mark}881250949\n" * 2, f"7{mark}12\n7{mark}13\n")
    assert opened("u.data", rated.encode())[1] == {"user": "column 1", "item": "column 2", "time": "column 4"}
    if mark != "::":
        assert opened("clicks.txt", plain.encode())[1] == {"user": "column 1", "item": "column 2"}
    unknown = f"881250949{mark}7{mark}12{mark}3\n" * 2  # a rating at the end is no time
    assert opened("other.data", unknown.encode())[1] == {}


cells = st.text(alphabet='abc ,"\n=-', max_size=6)
times = st.sampled_from(["1", "2.5", "x", "", "-1", "1e30", "2024-01-05"])
lines = st.lists(st.tuples(cells, cells, times), min_size=1, max_size=30)


@given(lines)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_faults_are_those_of_a_loop_over_lines(rows: list[tuple[str, str, str]]) -> None:
    """The slow twin reads the same file line by line with the standard library alone."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([("user", "item", "time"), *rows])
    expected, at = [], 2
    for user, item, time in rows:
        missing = next((n for n, v in (("user", user), ("item", item)) if v.strip() in ("", "nan")), "")
        control = next((n for n, v in (("user", user), ("item", item)) if "\n" in v.strip()), "")
        if missing or control or time in ("", "x", "-1", "1e30", "2024-01-05"):
            expected.append(at)
        at += 1 + user.count("\n") + item.count("\n")
    numbers, dates = sum(t not in ("", "x", "2024-01-05") for *_, t in rows), sum(t == "2024-01-05" for *_, t in rows)
    try:
        with patch.object(faults, "SHARE", 1.0):  # whatever the share: what is wrong with which row
            found = check(opened("t.csv", out.getvalue().encode())[0], {"user": "user", "item": "item", "time": "time"})
    except InputError as error:
        assert "\n" not in str(error)
        return
    if numbers >= dates:
        assert found.faults.count == len(expected)
        assert [line for line, _ in found.faults.first] == expected[:20]
        assert len(found.events) == len(rows) - len(expected)


def test_only_the_first_faults_are_listed_and_the_rest_counted() -> None:
    found = outcome(GOOD + "u1,i1,9,,\n" * 300 + "u1,i1,soon,,\n" * 30).checked.faults
    assert (len(found.first), found.rest, found.count) == (20, 10, 30)
    assert list(found.table().columns) == ["line", "what is wrong"] and found.table()["line"].iloc[0] == 344


def test_text_parquet_and_packed_files_give_the_same_data() -> None:
    frame = pd.read_csv(io.StringIO(GOOD))
    out = io.BytesIO()
    frame.to_parquet(out)
    codes = {outcome().dataset.hash}
    for name, data in (("f.parquet", out.getvalue()), ("f.csv.gz", gzip.compress(GOOD.encode()))):
        sheet, guessed = opened(name, data)
        codes.add(folded(check(sheet, guessed), 5).dataset.hash)
    assert len(codes) == 1


def test_people_are_found_by_the_ids_of_the_file() -> None:
    raw = ["u_8841", "U_8", "anna", "17", "1"]
    rows = [(u, i, 10**9 + i) for u in raw for i in range(6)]
    data = outcome(HEAD + "".join(f"{u},i{i},{t},Film,\n" for u, i, t in rows), k_core=2).dataset
    ids = data.histories.user_ids.tolist()
    assert ids == ["1", "17", "U_8", "anna", "u_8841"] and [people.own_id(data, user) for user in range(5)] == ["", *ids[1:]]
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
        assert people.by_id(data, text) == found, text
    smaller = outcome(HEAD + "".join(f"{u},i{i},{t},Film,\n" for u, i, t in rows[6:]), k_core=2).dataset
    assert people.same(data, ids.index("anna"), smaller) == smaller.histories.user_ids.tolist().index("anna")
    assert people.same(data, ids.index("u_8841"), smaller) is None
    other = dataclasses.replace(smaller, label="others.csv")
    assert people.same(data, ids.index("anna"), other) is None, "an id of other data is somebody else"
    assert people.same(data, 0, other, own="17") == other.histories.user_ids.tolist().index("17"), "unless the visitor typed it"


def test_columns_are_guessed_by_their_usual_names() -> None:
    def named(*names: str) -> dict[str, list[str]]:
        return {name: ["7"] for name in names}

    assert guess(named("userId", "movieId", "rating", "timestamp")) == {"user": "userId", "item": "movieId", "time": "timestamp"}
    assert guess(named("Customer ID", "ASIN", "unixReviewTime", "Name")) == {
        "user": "Customer ID", "item": "ASIN", "time": "unixReviewTime", "title": "Name",
    }  # fmt: skip
    assert guess(named("Kunde", "Artikel", "Datum")) == {"user": "Kunde", "item": "Artikel", "time": "Datum"}
    assert guess(named("a", "b")) == guess(named("column 1", "column 2", "rating", "when")) == {}


@pytest.mark.parametrize(("text", "runs"), [("=1", True), ("+a", True), ("-5", False), ("-5.5", False), ("@x", True)])
def test_formulas(text: str, runs: bool) -> None:
    assert is_formula(text) is runs


def test_too_many_rows_are_refused_before_they_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MOST_ROWS", 20)
    with pytest.raises(InputError, match="more than 20 rows"):
        opened("t.csv", GOOD.encode())


def test_the_shelf_survives_a_restart_and_can_be_moved(tmp_path: Path) -> None:
    first = Shelf(tmp_path / "uploads")
    kept, world = first.keep(outcome()), first.plant(WORLD)
    assert {k.id for k in Shelf(tmp_path / "uploads").all()} == {kept.id, world.id}
    shutil.move(tmp_path / "uploads", tmp_path / "elsewhere")
    moved = Shelf(tmp_path / "elsewhere").get(kept.id)
    data = load(moved.config)
    assert data.hash == kept.facts["hash"] and data.label == kept.label and data.titles_may_be_shared
    assert load(world.config).truth is not None
    assert set(Shelf(tmp_path / "elsewhere").choices()) <= set(at_hand_choices(Shelf(tmp_path / "elsewhere").choices()))


def test_the_same_rows_are_kept_once(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    one, two = shelf.keep(outcome()), shelf.keep(outcome(k_core=3), label="again")
    assert one.id == two.id and len(shelf.all()) == 1 and two.config.k_core == 3 and two.label.startswith("again")


def test_runs_and_trainings_on_data_are_seen_whatever_their_k_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows kept again with another k-core are the same file; so is a run's relative path."""
    monkeypatch.setattr(Jobs, "_spawn", lambda self, job: None)
    shelf, config = Shelf(tmp_path / "uploads"), recipes.toy()
    before = shelf.keep(outcome())
    run = Run(tmp_path / "local-on-it")
    run.start(dataclasses.replace(config, data=before.config), load(before.config))
    (run.path / WEIGHTS).touch()
    Jobs(tmp_path).submit(dataclasses.replace(config, data=before.config))
    again, world = shelf.keep(outcome(k_core=3)), shelf.plant(WORLD)
    assert again.config != before.config
    assert shelf.runs_on(again.id, tmp_path) == ["local-on-it"] and len(Jobs(tmp_path).needing(again.config)) == 1
    assert shelf.runs_on(world.id, tmp_path) == [] and Jobs(tmp_path).needing(world.config) == []


def test_deleting_leaves_nothing_and_ids_are_never_paths(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "uploads")
    kept = shelf.keep(outcome())
    (tmp_path / "precious").mkdir()
    for wanted in ("../precious", "", ".", kept.id + "/..", str(tmp_path / "precious")):
        with pytest.raises(InputError, match="not kept here"):
            shelf.delete(wanted)
    shelf.delete(kept.id)
    assert list((tmp_path / "uploads").iterdir()) == [] and (tmp_path / "precious").is_dir()


def test_the_shelf_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_KEPT", 1)
    shelf = Shelf(tmp_path)
    shelf.keep(outcome())
    shelf.keep(outcome())
    with pytest.raises(InputError, match="delete one first"):
        shelf.plant(WORLD)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_failing_disk_leaves_nothing_half_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(uploads.os, "replace", full)
    with pytest.raises(InputError, match="could not be stored: No space left"):
        Shelf(tmp_path).keep(outcome())
    assert list(tmp_path.iterdir()) == []


def test_damaged_cards_are_left_out(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    kept = shelf.keep(outcome())
    for name, text in (("0a", "{"), ("0b", "[]"), ("0c", json.dumps({"kind": "file"})), ("0d", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "upload.json").write_text(text)
    assert [k.id for k in shelf.all()] == [kept.id]


def test_a_planted_world_that_cannot_be_drawn_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 4 x interests"):
        Shelf(tmp_path).plant(PlantedConfig(items=3))
    assert not list(tmp_path.iterdir())


def test_two_hundred_thousand_rows() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"user": rng.integers(0, 5000, 200_000), "item": rng.integers(0, 2000, 200_000)})
    frame["time"] = np.arange(len(frame)) + 10**9
    sheet, guessed = opened("t.csv", frame.to_csv(index=False).encode())
    found = folded(check(sheet, guessed), 5)
    assert found.checked.rows == 200_000 and found.dataset.histories.n_users == 5000
