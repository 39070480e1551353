"""A DataFrame is read as its CSV and its Parquet file are: the same histories, the same faults, the same questions."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elastic_core
from elastic_core.data import Dataset
from elastic_core.data.frames import FILE
from elastic_core.errors import InputError

NAMES = {"user": "visitor", "item": "page", "time": "at"}
KINDS = {
    "text": lambda numbers: [f"id {number}" for number in numbers],
    "whole": lambda numbers: numbers,
    "category": lambda numbers: pd.Categorical([f"id {number}" for number in numbers]),
    "nullable": lambda numbers: pd.array(numbers, dtype="Int64"),
    "float": lambda numbers: numbers.astype(float),
}
TIMES = {
    "seconds": lambda hours: 1_700_000_000 + 3_600 * hours,
    "stamps": lambda hours: pd.Timestamp("2024-02-01 10:00") + pd.to_timedelta(hours, unit="h"),
    "zoned": lambda hours: pd.Timestamp("2024-02-01 10:00", tz="Europe/Berlin") + pd.to_timedelta(hours, unit="h"),
    "text": lambda hours: (pd.Timestamp("2024-02-01 10:00") + pd.to_timedelta(hours, unit="h")).strftime("%Y-%m-%d %H:%M:%S"),
}


def make_frame(seed: int = 0, user: str = "text", item: str = "text", time: str = "stamps", rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    users, items, hours = (rng.integers(0, most, rows) for most in (20, 30, 5 * rows))
    return pd.DataFrame({"visitor": KINDS[user](users), "page": KINDS[item](items), "at": TIMES[time](hours)})


def load(source: pd.DataFrame | Path, **settings: object) -> Dataset:
    return elastic_core.load(source, **{**NAMES, "k_core": 2, **settings})


@settings(max_examples=25)
@given(st.integers(0, 99), st.sampled_from(list(KINDS)), st.sampled_from(list(KINDS)), st.sampled_from(list(TIMES)))
def test_a_frame_its_csv_and_its_parquet_give_the_same_histories(
    tmp_path_factory: pytest.TempPathFactory, seed: int, user: str, item: str, time: str
) -> None:
    frame, folder = make_frame(seed, user, item, time), tmp_path_factory.mktemp("same")
    frame.to_csv(folder / "clicks.csv", index=False)
    frame.to_parquet(folder / "clicks.parquet")
    sources = (frame, folder / "clicks.csv", folder / "clicks.parquet", frame.set_index(["visitor", "at"]))
    data = [load(source) for source in sources]
    assert len({each.hash for each in data}) == 1
    for each in data[1:]:
        assert each.catalog.ids.tolist() == data[0].catalog.ids.tolist()
        assert each.histories.user_ids.tolist() == data[0].histories.user_ids.tolist()
        assert (each.histories.times == data[0].histories.times).all()


def test_bad_rows_are_told_as_those_of_a_file(tmp_path: Path) -> None:
    frame = make_frame()
    frame.loc[7, "visitor"], frame.loc[9, "page"] = None, ""
    frame.to_parquet(tmp_path / "clicks.parquet")
    of_file = load(tmp_path / "clicks.parquet")
    told: list[str] = []
    data = load(frame, progress=told.append)
    assert data.hash == of_file.hash and data.notes == of_file.notes
    assert "2 of 400 rows cannot be used" in data.notes[0] and any("2 of 400 rows" in sentence for sentence in told)
    assert "2 of 400 rows" in data._repr_html_()
    frame.loc[:100, "page"] = None
    frame.to_parquet(tmp_path / "clicks.parquet")
    sentences = []
    for source in (frame, tmp_path / "clicks.parquet"):
        with pytest.raises(InputError, match="at most a tenth") as refused:
            load(source)
        sentences.append(str(refused.value).replace("clicks.parquet", "DataFrame"))
    assert sentences[0] == sentences[1]


def test_what_a_frame_does_not_say_is_asked_for_in_python() -> None:
    frame = make_frame().rename(columns={"visitor": "a", "page": "b"})
    with pytest.raises(InputError, match="user='a', item='b', time='at'") as asked:
        elastic_core.load(frame)
    arguments = dict(re.findall(r"(\w+)='(\w+)'", str(asked.value).rpartition("try ")[2]))
    assert elastic_core.load(frame, **arguments).hash == load(make_frame(), k_core=5).hash  # type: ignore[arg-type]
    twice = pd.concat([make_frame(), make_frame()[["page"]]], axis=1)
    for wrong, options, sentence in (
        (twice, {}, "two columns 'page'"), (make_frame(), {"titles": pd.DataFrame({"page": ["x"]})}, "columns item and title"),
        (make_frame(), {"titles": {"x": "X"}, "item": ""}, "name their column"), (7, {}, "not a int"),
        ("ml-100k", {"titles": {"x": "X"}}, "a file of titles"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            load(wrong, **options)  # type: ignore[arg-type]


def test_titles_of_a_frame_are_a_column_a_mapping_a_frame_or_a_file(tmp_path: Path) -> None:
    frame = make_frame(item="whole")
    titles = {item: f"Page no. {item}" for item in range(30)}
    table = pd.DataFrame({"item": list(titles), "title": list(titles.values())})
    table.to_csv(tmp_path / "titles.csv", index=False)
    column = frame.assign(called=frame["page"].map(titles))
    renamed = table.rename(columns={"item": "page"})
    given = [
        load(frame, titles=titles), load(frame, titles=pd.Series(titles)), load(frame, titles=renamed),
        load(frame, titles=tmp_path / "titles.csv"), load(column, title="called"),
    ]  # fmt: skip
    for data in given:
        assert data.catalog.titles_of(range(1, 4)) == [f"Page no. {data.catalog.ids[item]}" for item in range(1, 4)]
        assert data.hash == given[0].hash


def test_data_know_how_they_are_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_frame().to_csv("clicks.csv", index=False)
    data = load("clicks.csv", ties="random")  # type: ignore[arg-type]
    monkeypatch.chdir("/")
    assert elastic_core.load(data.config).hash == data.hash and data.config.ties == "random"
    frame = load(make_frame())
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_bytes(frame.files[FILE])
    assert load(tmp_path / FILE).hash == frame.hash and frame.config.source == FILE and not data.files


def test_data_print_in_a_line_and_in_a_notebook_as_a_table() -> None:
    data = load(make_frame(), titles={"id 1": "<b>bold</b>"})
    assert re.fullmatch(r"DataFrame: 20 people, 30 items, 400 events \(hash [0-9a-f]{16}\)", repr(data))
    assert "<td>20</td>" in data._repr_html_()
