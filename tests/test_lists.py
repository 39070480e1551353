"""Lists for many people: what one person is answered alone, filtered, in stretches, and as a file."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elastic_core import lists
from elastic_core.commands import main
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.lists import HISTORY, POPULAR, Lister, best
from elastic_core.models import Recommender
from elastic_core.runs import Run, open_run
from elastic_core.services.person.recommend import recommend

Tiny = tuple[Recommender, Dataset, Run]


def test_everybody_gets_what_the_command_answers_one_person(tiny: Tiny) -> None:
    model, data, run = tiny
    found = run.recommend(before_test=True, k=7)
    assert found.people == [str(raw) for raw in data.histories.user_ids] and set(found.bases) == {HISTORY}
    for user in range(data.histories.n_users):
        met = (
            data.targets("test")[user] in data.histories.of(user)[:-1]
        )  # then the command leaves what really came in the running
        alone = recommend(model, data, data.histories.of(user)[:-1] if met else user, 7)
        assert found.items[user].tolist() == alone["item"].tolist()
        np.testing.assert_allclose(found.scores[user], alone["score"], atol=1e-5)


def test_histories_of_ids_are_what_people_with_them_get(tiny: Tiny) -> None:
    _, data, run = tiny
    ids = data.catalog.ids
    histories = {f"p{u}": [str(ids[i]) for i in data.histories.of(u)] for u in range(9)}
    named, people = run.recommend(histories, k=5), run.recommend([str(u) for u in data.histories.user_ids[:9]], k=5)
    assert named.people == list(histories) and (named.items == people.items).all()
    strangers = [["nobody", *history, "nothing"] for history in histories.values()]
    mixed = run.recommend(strangers, k=5)
    assert (mixed.items == named.items).all() and (mixed.unknown == 2).all() and (mixed.known == named.known).all()
    assert mixed.people == [str(i) for i in range(9)]
    assert run.recommend(str(data.histories.user_ids[3]), k=5).items.tolist() == people.items[3:4].tolist()
    assert not run.recommend([]).people
    for wrong, sentence in ((["no such person"], "no person"), ([["1"], "1"], "a list of item ids"), ([1, 2], "a list of item")):
        with pytest.raises(InputError, match=sentence):
            run.recommend(wrong)  # type: ignore[arg-type]


def test_filters_keep_the_order_of_what_is_left(tiny: Tiny) -> None:
    _, data, run = tiny
    who, every = [str(u) for u in data.histories.user_ids[:12]], data.catalog.n_items
    whole, ids = run.recommend(who, k=every, seen=True), data.catalog.ids
    assert all(sorted(row) == list(range(1, every + 1)) for row in whole.items)
    allowed, denied = {str(i) for i in ids[5:40]}, {str(i) for i in ids[10:20]}
    found = run.recommend(who, k=every, only=[*allowed, "unheard"], exclude=[*denied, "unheard of"])
    for row, history, full in zip(found.items, (data.histories.of(u) for u in range(12)), whole.items, strict=True):
        left = [i for i in full if str(ids[i]) in allowed - denied and i not in set(history)]
        assert row[row > 0].tolist() == left and not row[len(left) :].any()
    assert not set(found.table["item"]) & denied and set(found.table["item"]) <= allowed
    with pytest.raises(InputError, match="no item is left"):
        run.recommend(who, only=["unheard"])
    for k in (0, lists.MOST + 1):
        with pytest.raises(InputError, match="a list has"):
            run.recommend(who, k=k)


def test_of_whom_nothing_is_known_gets_what_is_popular_without_the_data(tiny: Tiny) -> None:
    _, data, run = tiny
    counts = data.counts()
    order = np.argsort(-counts[1:], kind="stable") + 1
    alone = Lister(run.model(), run.catalog(), None, run.lister._counts)
    found = alone.recommend({"new": [], "odd": ["unheard"], "old": [str(data.catalog.ids[1])]}, k=6)
    assert found.bases == [POPULAR, POPULAR, HISTORY]
    assert found.items[:2].tolist() == [order[:6].tolist()] * 2 and found.scores[0].tolist() == counts[order[:6]].tolist()
    with pytest.raises(InputError, match="need the data"):
        alone.recommend(["1"])
    with pytest.raises(InputError, match="popular"):
        Lister(run.model(), run.catalog()).recommend([[]])


def test_a_stretch_at_a_time_gives_the_same(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of people, and of a large catalogue."""
    _, data, run = tiny
    who = {str(u): [str(data.catalog.ids[i]) for i in data.histories.of(u)] for u in range(40)} | {"nobody": []}
    settings = {"k": 9, "exclude": [str(i) for i in data.catalog.ids[3:9]]}
    whole = run.recommend(who, **settings)
    monkeypatch.setattr(lists, "LARGE", 10)
    monkeypatch.setattr(lists, "TOGETHER", 7)
    monkeypatch.setattr("elastic_core.scale.stretches.NUMBERS", 7 * 11)
    small = run.recommend(who, **settings)
    assert (small.items == whole.items).all() and small.people == whole.people and small.bases == whole.bases
    np.testing.assert_allclose(small.scores, whole.scores, atol=1e-5)


@given(st.lists(st.lists(st.integers(-2, 2), min_size=6, max_size=6), min_size=1, max_size=4), st.integers(1, 8))
def test_the_best_are_those_of_a_stable_sort(rows: list[list[int]], k: int) -> None:
    scores, running = torch.tensor(rows).float(), torch.tensor([False, True, True, True, False, True])
    values, columns = best(scores, k, running, torch.zeros(1, dtype=torch.int64), torch.full((1,), 2))
    for i, row in enumerate(rows):
        left = sorted((c for c in (1, 2, 3, 5) if (i, c) != (0, 2)), key=lambda c: (-row[c], c))[:k]
        assert columns[i].tolist() == left + [0] * (k - len(left))
        assert values[i, : len(left)].tolist() == [row[c] for c in left] and not values[i, len(left) :].isfinite().any()


def test_scores_that_are_none_are_refused() -> None:
    nothing = torch.zeros(0, dtype=torch.int64)
    for wrong in (torch.nan, torch.inf):
        with pytest.raises(InputError, match="diverged"):
            best(torch.tensor([[0.0, wrong, 1.0]]), 1, torch.ones(3, dtype=torch.bool), nothing, nothing)


def test_a_file_holds_everybody_or_is_not_there(tiny_runs: Path, tiny: Tiny, tmp_path: Path) -> None:
    _, data, run = tiny
    whole, folder = run.recommend(k=3, exclude=["1"]).table, str(tiny_runs / "tiny")
    for name, read in (
        ("top.parquet", pd.read_parquet),
        ("top.csv", lambda path: pd.read_csv(path, dtype={"person": str, "item": str})),
    ):
        assert main(["recommend", folder, "--all", "--out", str(tmp_path / name), "--top", "3", "--exclude", "1"]) == 0
        found = read(tmp_path / name)
        assert found["item"].tolist() == whole["item"].tolist() and found["person"].tolist() == whole["person"].tolist()
        assert found["rank"].tolist() == whole["rank"].tolist() and len(found) == 3 * data.histories.n_users
        np.testing.assert_allclose(found["score"], whole["score"], rtol=1e-5)
    (tmp_path / "left.csv").write_text("old")
    listed = tmp_path / "ids.txt"
    listed.write_text("unheard\n")
    for words in (["left.csv", "--only", str(listed)], ["top.xls"], ["no/such/folder.csv"], ["left.csv", "--silence", "1"]):
        assert main(["recommend", folder, "--all", "--out", str(tmp_path / words[0]), *words[1:]]) == 2
    assert (tmp_path / "left.csv").read_text() == "old" and not list(tmp_path.glob(".*"))


def test_a_run_says_what_is_popular_and_an_older_one_asks_its_data(tiny_runs: Path, tiny: Tiny, tmp_path: Path) -> None:
    _, data, run = tiny
    assert run.lister._counts is not None and (run.lister._counts == data.counts()).all()
    old = tmp_path / "old"
    old.mkdir()
    for name in ("config.json", "model.safetensors", "metrics.jsonl"):
        (old / name).write_bytes((tiny_runs / "tiny" / name).read_bytes())
    table = pd.read_csv(tiny_runs / "tiny" / "items.csv", dtype=str)
    table.drop(columns="events").to_csv(old / "items.csv", index=False)
    assert open_run(old).lister._counts is None
    assert open_run(old).recommend([[]], k=4).items.tolist() == run.recommend([[]], k=4).items.tolist()
    table.assign(events="many").to_csv(old / "items.csv", index=False)
    with pytest.raises(InputError, match="no numbers"):
        open_run(old).recommend([[]])
    assert isinstance(open_run(old).catalog(), Catalog)


def test_other_items_than_the_data_hold_are_refused(tiny: Tiny) -> None:
    model, data, _ = tiny
    other = dataclasses.replace(data, catalog=Catalog.numbered(data.catalog.n_items - 1))
    with pytest.raises(InputError, match="other items"):
        Lister(model, data.catalog, lambda: other).recommend()


def test_titles_that_could_not_travel_are_those_of_the_data(tiny: Tiny) -> None:
    model, data, _ = tiny
    person = str(data.histories.user_ids[0])
    named, bare = (Lister(model, Catalog(data.catalog.ids, titles), lambda: data) for titles in (data.catalog.titles, None))
    assert data.catalog.titles is not None and bare.recommend([["1"]]).table["title"].str.startswith("item ").all()
    assert bare.recommend(person).table["title"].tolist() == named.recommend(person).table["title"].tolist()
