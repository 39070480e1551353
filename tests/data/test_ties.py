"""Events of one person and time: counted, ordered by a rule, and no source of numbers."""

import json
import math
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_core.commands import main
from elastic_core.core import histories as module
from elastic_core.data import Dataset, load
from elastic_core.data.preprocessing import Rule, preprocess
from elastic_core.data.reading.reader import Table
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig

Event = tuple[str, str, int]
ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["1", "2", "10", "x", "y"]), st.integers(0, 3)), min_size=9, max_size=80
)
PEOPLE, ITEMS, EVENTS = 150, 60, 30
CHANCE = sum(1 / math.log2(rank + 1) for rank in range(1, 11)) / (ITEMS - EVENTS + 1)  # of NDCG@10 among the items not met


def make(rows: list[Event], ties: Rule = "") -> Dataset:
    frame = pd.DataFrame(rows, columns=["user", "item", "time"])
    return preprocess(Table(frame, None, ""), name="t", label="t", licence="", k_core=2, ties=ties)


def events(data: Dataset) -> list[Event]:
    users = np.repeat(data.histories.user_ids, data.histories.lengths)
    return list(zip(users.tolist(), data.catalog.ids[data.histories.items].tolist(), data.histories.times.tolist(), strict=True))


def noise() -> list[Event]:
    """Items without repeats, drawn evenly, six a day: nothing tells what comes next. Sorted by person, day and item."""
    generator = np.random.default_rng(1)
    drawn = [(f"u{user}", generator.permutation(ITEMS)[:EVENTS]) for user in range(PEOPLE)]
    rows = [(user, f"{item:03}", 86_400 * (place // 6)) for user, items in drawn for place, item in enumerate(items)]
    return sorted(rows, key=lambda row: (row[0], row[2], row[1]))


@settings(max_examples=60, deadline=None)
@given(ROWS, st.randoms(use_true_random=False), st.sampled_from([3, 1 << 22]))
def test_a_random_order_is_that_of_no_file_and_reversed_is_the_file_from_its_end(rows: list[Event], chance, piece: int) -> None:  # type: ignore[no-untyped-def]
    with mock.patch.object(module, "PIECE", piece):
        try:
            drawn = make(rows, "random")
        except InputError:
            return
        assert events(make(rows[::-1], "file")) == events(make(rows, "reversed"))
        shuffled = chance.sample(rows, len(rows))
        assert events(make(shuffled, "random")) == events(drawn)
    assert sorted(events(drawn)) == sorted(events(make(rows)))
    after = [(a[0] == b[0], a[2] == b[2]) for a, b in zip(events(drawn), events(drawn)[1:], strict=False)]
    ties, ends = drawn.ties, np.cumsum(drawn.histories.lengths) - 2  # of pairs
    assert ties is not None and ties.events == pytest.approx(sum(a and b for a, b in after) / sum(a for a, _ in after))
    assert ties.test == pytest.approx(np.mean([after[i][1] for i in ends]))
    assert ties.valid == pytest.approx(np.mean([after[i - 1][1] for i in ends]))


def test_a_random_order_is_the_same_on_every_machine_and_another_for_everybody() -> None:
    data = make([(user, item, 7) for user in "abcd" for item in "123456"], "random")
    assert ["".join(data.catalog.ids[data.histories.user_items(user)]) for user in range(4)] == [
        "536421",
        "231645",
        "134526",
        "653214",
    ]


def test_a_file_that_is_newest_first_is_told_from_one_that_is_shuffled() -> None:
    oldest, told = noise(), {}
    shuffled = np.random.default_rng(0).permutation(len(oldest))
    for name, rows in (("oldest", oldest), ("newest", oldest[::-1]), ("shuffled", [oldest[i] for i in shuffled])):
        ties = make(rows).ties
        assert ties is not None and (ties.events, ties.valid, ties.test) == (pytest.approx(25 / 29), 1, 1)
        told[name] = ties.rule, ties.note
    start = "86% of neighbouring events of a person share a time; they stand in the order of the file"
    end = ", and it is by item id (data.ties=random draws it by chance)"
    assert told["oldest"] == ("file", start + end) and told["shuffled"] == ("file", "")
    assert told["newest"] == ("reversed", f"{start}, from its end as it is newest first{end}")
    assert events(make(oldest[::-1])) == events(make(oldest)) != events(make(oldest[::-1], "file"))


def test_noise_that_is_sorted_by_item_gives_chance_once_its_ties_are_random(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trained in the file's order a model knows what comes next; under random ties the same weights do not, nor do those that
    learned from them."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(noise(), columns=["user", "item", "time"]).to_csv("noise.csv", index=False)
    assert main(["data", "noise.csv", "--baskets=no"]) == 0 and "equal times      86% of" in capsys.readouterr().out
    train = ["train", "--recipe=toy", "--model=lrurec", "--set=data.source=noise.csv", "--set=train.learning_rate=0.01"]
    train += ["--set=model.length=32", "--set=model.width=16", "--set=train.epochs=8"]
    found = {}
    for rule in ("file", "random"):
        assert main([*train, f"--set=data.ties={rule}", "--out", rule]) == 0
        capsys.readouterr()
        assert main(["evaluate", rule, "--json", "--protocols=full", "--metrics=NDCG@10"]) == 0
        for row in map(json.loads, capsys.readouterr().out.splitlines()):
            found[rule, row.get("ties", "")] = row
    assert len(found) == 3, "what was learned under random ties has no other number beside it"
    assert found["file", ""]["mean"] > 2 * CHANCE
    for learned, asked in (("file", "random"), ("random", "")):
        row = found[learned, asked]
        assert abs(row["mean"] - CHANCE) < 3 * row["error"] and row["data_hash"] == found["random", ""]["data_hash"]
    assert main(["evaluate", "file", "--protocols=full", "--metrics=NDCG@10"]) == 0
    told = capsys.readouterr()
    assert [line.split()[0] for line in told.out.splitlines()] == ["protocol", "full", "random"]
    assert "100% of the targets share their time" in told.err and "trained in the file's order" in told.err
    (tmp_path / "noise.csv").unlink()
    assert main(["evaluate", "file", "--protocols=full"]) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 2 and "not on this machine" in told.err


def test_where_there_are_no_times_there_is_nothing_to_order(tmp_path: Path) -> None:
    path = tmp_path / "in-order.csv"
    path.write_text("user,item\n" + "".join(f"u{user},{item}\n" for user in range(6) for item in range(6)))
    columns = {"time": ""}
    assert load(DataConfig(source=str(path), columns=columns)).ties is None
    for config in (DataConfig(source=str(path), columns=columns, ties="random"), DataConfig(source="planted", ties="file")):
        with pytest.raises(InputError, match="ties"):
            load(config)
