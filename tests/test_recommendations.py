"""Lists of the next items: what one user gets alone, filtered, in chunks, and as a file."""

import dataclasses
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elastic_core import recommendations
from elastic_core.commands import main
from elastic_core.core.evaluate import rank_users
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.recommendations import HISTORY, POPULARITY, ItemRanker, top_items
from elastic_core.runs import Run, open_run

Tiny = tuple[Recommender, Dataset, Run]


def test_users_before_their_test_get_what_the_evaluation_ranks(tiny: Tiny) -> None:
    """The rank of the held-out item in the list is the one that its score says, among all items that were not seen."""
    model, data, run = tiny
    found = run.ranker.recommend(before_test=True, k=data.catalog.n_items, seen=False)
    assert found.users == [str(raw) for raw in data.histories.user_ids] and set(found.bases) == {HISTORY}
    ranks = rank_users(model, data, "test", ("full",))["full"]
    targets = data.target_items("test")
    for user, items in enumerate(found.items):
        if targets[user] in data.histories.user_items(user)[: data.split_ends("test")[user] - data.histories.offsets[user]]:
            assert targets[user] not in items, "a list without seen items cannot hold it, and the evaluation counts it as missed"
            assert ranks.above[user] == data.catalog.n_items
            continue
        place = items.tolist().index(targets[user])
        assert ranks.above[user] <= place <= ranks.above[user] + ranks.tied[user]


def test_histories_of_ids_are_what_users_with_them_get(tiny: Tiny) -> None:
    _, data, run = tiny
    ids = data.catalog.ids
    histories = {f"p{u}": [str(ids[i]) for i in data.histories.user_items(u)] for u in range(9)}
    named = run.ranker.recommend(histories=histories, k=5)
    users = run.ranker.recommend([str(u) for u in data.histories.user_ids[:9]], k=5)
    assert named.users == list(histories) and (named.items == users.items).all()
    strangers = [["nobody", *history, "nothing"] for history in histories.values()]
    mixed = run.ranker.recommend(histories=strangers, k=5)
    assert (mixed.items == named.items).all() and (mixed.unknown == 2).all() and (mixed.known == named.known).all()
    assert mixed.users == [str(i) for i in range(9)]
    one = run.recommend(str(data.histories.user_ids[3]), k=5)
    assert one["item"].tolist() == ids[users.items[3]].tolist() and list(one) == [*"user rank item title score basis".split()]
    for user in (int(data.histories.user_ids[3]), [np.int64(data.histories.user_ids[3])], [float(data.histories.user_ids[3])]):
        assert run.recommend(user, k=5).equals(one), "ids are ids, whatever a column of numbers made of them"
    numbers = [[int(raw) for raw in histories["p3"]]]
    assert run.recommend(histories=numbers, k=5)["item"].tolist() == one["item"].tolist()
    with pytest.warns(UserWarning, match=r"1 item of these histories is not in the run's catalogue"):
        assert run.recommend(histories=[["Star Wars", *numbers[0]]], k=5)["item"].tolist() == one["item"].tolist()
    assert run.recommend([]).empty and run.recommend(histories=[]).empty
    for wrong, sentence in (
        ({"users": ["no such user"]}, "no user"), ({"users": [["1"], "1"]}, "histories="), ({"users": 10**6}, "no user"),
        ({"histories": ["1", "2"]}, "a list of item"), ({"histories": [1, 2]}, "a list of item"),
        ({"users": "1", "histories": [["1"]]}, "either users or histories"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            run.recommend(**wrong)


def test_filters_keep_the_order_of_what_is_left(tiny: Tiny) -> None:
    _, data, run = tiny
    users, n_items = [str(u) for u in data.histories.user_ids[:12]], data.catalog.n_items
    whole, ids = run.ranker.recommend(users, k=n_items, seen=True), data.catalog.ids
    assert all(sorted(row) == list(range(1, n_items + 1)) for row in whole.items)
    allowed, denied = {str(i) for i in ids[5:40]}, {str(i) for i in ids[10:20]}
    found = run.ranker.recommend(users, k=n_items, only=[*allowed, "unheard"], exclude=[*denied, "unheard of"], seen=False)
    for row, history, full in zip(found.items, (data.histories.user_items(u) for u in range(12)), whole.items, strict=True):
        left = [i for i in full if str(ids[i]) in allowed - denied and i not in set(history)]
        assert row[row > 0].tolist() == left and not row[len(left) :].any()
    assert not set(found.table["item"]) & denied and set(found.table["item"]) <= allowed
    with pytest.raises(InputError, match="no item is left"):
        run.recommend(users, only=["unheard"])
    for k in (0, recommendations.MAX_ITEMS + 1):
        with pytest.raises(InputError, match="a list has"):
            run.recommend(users, k=k)


def test_a_user_without_a_history_gets_what_is_popular_without_the_data(tiny: Tiny) -> None:
    _, data, run = tiny
    counts = data.item_counts()
    order = np.argsort(-counts[1:], kind="stable") + 1
    alone = ItemRanker(run.model(), run.catalog(), None, run.ranker._counts)
    found = alone.recommend(histories={"new": [], "odd": ["unheard"], "old": [str(data.catalog.ids[1])]}, k=6)
    assert found.bases == [POPULARITY, POPULARITY, HISTORY]
    assert found.items[:2].tolist() == [order[:6].tolist()] * 2 and found.scores[0].tolist() == counts[order[:6]].tolist()
    with pytest.raises(InputError, match="need the data"):
        alone.recommend(["1"])
    with pytest.raises(InputError, match="popular"):
        ItemRanker(run.model(), run.catalog()).recommend(histories=[[]])


def test_chunks_give_the_same(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    _, data, run = tiny
    users = {str(u): [str(data.catalog.ids[i]) for i in data.histories.user_items(u)] for u in range(40)} | {"nobody": []}
    settings = {"k": 9, "exclude": [str(i) for i in data.catalog.ids[3:9]]}
    whole = run.ranker.recommend(histories=users, **settings)
    monkeypatch.setattr(recommendations, "MAX_BATCH", 7)
    monkeypatch.setattr(recommendations, "MOST_SCORES", 3 * (data.catalog.n_items + 1))
    small = run.ranker.recommend(histories=users, **settings)
    assert (small.items == whole.items).all() and small.users == whole.users and small.bases == whole.bases
    np.testing.assert_allclose(small.scores, whole.scores, atol=1e-5)


@given(st.lists(st.lists(st.integers(-2, 2), min_size=6, max_size=6), min_size=1, max_size=4), st.integers(1, 8))
def test_the_best_are_those_of_a_stable_sort(rows: list[list[int]], k: int) -> None:
    scores = torch.tensor(rows).float()
    scores[:, [0, 4]], scores[0, 2] = -torch.inf, -torch.inf
    columns, values = top_items(scores, k)
    for i, row in enumerate(rows):
        left = sorted((c for c in (1, 2, 3, 5) if (i, c) != (0, 2)), key=lambda c: (-row[c], c))[:k]
        assert columns[i].tolist() == left + [0] * (k - len(left))
        assert values[i, : len(left)].tolist() == [row[c] for c in left] and not values[i, len(left) :].isfinite().any()


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_scores_that_are_no_numbers_are_refused(wrong: float) -> None:
    with pytest.raises(InputError, match="diverged"):
        top_items(torch.tensor([[-torch.inf, wrong, 1.0]]), 1)


def test_a_file_holds_everybody_or_is_not_there(tiny_runs: Path, tiny: Tiny, tmp_path: Path) -> None:
    _, data, run = tiny
    whole, folder = run.recommend(k=3, exclude=["1"]), str(tiny_runs / "tiny")
    for name, read in (
        ("top.parquet", pd.read_parquet),
        ("top.csv", lambda path: pd.read_csv(path, dtype={"user": str, "item": str})),
    ):
        assert main(["recommend", folder, "--all", "--out", str(tmp_path / name), "--top", "3", "--exclude", "1"]) == 0
        found = read(tmp_path / name)
        assert found["item"].tolist() == whole["item"].tolist() and found["user"].tolist() == whole["user"].tolist()
        assert found["rank"].tolist() == whole["rank"].tolist() and len(found) == 3 * data.histories.n_users
        np.testing.assert_allclose(found["score"], whole["score"], rtol=1e-5)
    (tmp_path / "left.csv").write_text("old")
    listed = tmp_path / "ids.txt"
    listed.write_text("unheard\n")
    for words in (["left.csv", "--only", str(listed)], ["top.xls"], ["no/such/folder.csv"], ["left.csv", "--edits", "x1"]):
        assert main(["recommend", folder, "--all", "--out", str(tmp_path / words[0]), *words[1:]]) == 2
    assert (tmp_path / "left.csv").read_text() == "old" and not list(tmp_path.glob(".*"))


def test_filters_hold_for_one_person_too(tiny_runs: Path, tiny: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    user, words = str(tiny[1].histories.user_ids[3]), ["recommend", str(tiny_runs / "tiny"), "--csv", "--seen"]

    def listed(*more: str) -> list[str]:
        assert main([*words, "--user", user, *more]) == 0
        return list(pd.read_csv(io.StringIO(capsys.readouterr().out), dtype=str)["id"])

    every = listed("--top", "100")
    assert listed("--exclude", f"{every[0]},{every[2]}", "--top", "4") == [every[1], *every[3:6]]
    assert listed("--only", f"{every[9]},{every[4]},unheard") == [every[4], every[9]]
    assert listed("--only", every[4], "--exclude", every[4]) == []


def test_unknown_filters_and_short_lists_are_counted(tiny_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["recommend", str(tiny_runs / "tiny"), "--all", "--out", str(tmp_path / "top.csv"), "--top", "3"]
    assert main([*words, "--only", "1,2,unheard,of"]) == 0
    said, lists = capsys.readouterr().err, pd.read_csv(tmp_path / "top.csv").groupby("user").size()
    assert "the run does not know 2 of the 4 ids of --only" in said
    assert f"{len(lists):,} lists are shorter, as nothing else is left" in said and "--exclude" not in said
    assert main(words) == 0
    assert "Note:" not in capsys.readouterr().err


def test_a_run_says_what_is_popular_and_an_older_one_asks_its_data(tiny_runs: Path, tiny: Tiny, tmp_path: Path) -> None:
    _, data, run = tiny
    assert run.ranker._counts is not None and (run.ranker._counts == data.item_counts()).all()
    old = tmp_path / "old"
    old.mkdir()
    for name in ("config.json", "model.safetensors", "metrics.jsonl"):
        (old / name).write_bytes((tiny_runs / "tiny" / name).read_bytes())
    table = pd.read_csv(tiny_runs / "tiny" / "items.csv", dtype=str)
    table.drop(columns="events").to_csv(old / "items.csv", index=False)
    assert open_run(old).ranker._counts is None
    assert open_run(old).recommend(histories=[[]], k=4).equals(run.recommend(histories=[[]], k=4))
    table.assign(events="many").to_csv(old / "items.csv", index=False)
    with pytest.raises(InputError, match="no numbers"):
        open_run(old).recommend(histories=[[]])
    assert isinstance(open_run(old).catalog(), Catalog)


def test_items_that_came_after_the_training_are_left_out_and_counted(tiny: Tiny) -> None:
    """The data have a new item in everybody's history, and number all items otherwise."""
    model, data, _ = tiny
    histories, n_items = data.histories, data.catalog.n_items
    shuffled = np.random.default_rng(0).permutation(n_items) + 1
    numbers = np.argsort(np.r_[0, shuffled])  # number here → number there
    catalog = Catalog(np.array(["", *data.catalog.ids[shuffled], "brand new"], dtype=object))
    items = np.insert(numbers[histories.items], histories.offsets[1:], n_items + 1).astype(np.int32)
    offsets = histories.offsets + np.arange(len(histories.offsets))
    grown = dataclasses.replace(histories, items=items, times=np.arange(len(items)), offsets=offsets)
    other = dataclasses.replace(data, catalog=catalog, histories=grown, has_times=False)
    before = ItemRanker(model, data.catalog, lambda: dataclasses.replace(data, has_times=False)).recommend(k=5)
    after = ItemRanker(model, data.catalog, lambda: other).recommend(k=5)
    assert (after.items == before.items).all() and (after.unknown == 1).all() and (after.known == before.known).all()
    counts = ItemRanker(model, data.catalog, lambda: other).popularity
    assert counts.tolist() == [0, *other.item_counts()[numbers[1:]].tolist()]


def test_titles_that_could_not_travel_are_those_of_the_data(tiny: Tiny) -> None:
    model, data, _ = tiny
    user = str(data.histories.user_ids[0])
    named, bare = (ItemRanker(model, Catalog(data.catalog.ids, titles), lambda: data) for titles in (data.catalog.titles, None))
    assert data.catalog.titles is not None and bare.recommend(histories=[["1"]]).table["title"].str.startswith("item ").all()
    assert bare.recommend(user).table["title"].tolist() == named.recommend(user).table["title"].tolist()
