"""Lists of another library: this library's own lists, written and read back, have the metrics that the run has."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from elastic_core.commands import main
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.results.foreign_lists import known_cutoffs, rank_lists, read_lists
from elastic_core.runs import Run

Tiny = tuple[Recommender, Dataset, Run]
METRICS = [f"{kind}@{cutoff}" for kind in ("NDCG", "HR", "MRR") for cutoff in (5, 10, 20)]


def write_lists(run: Run, path: Path, k: int, seen: bool) -> pd.DataFrame:
    lists = run.recommend(k=k, before_test=True, seen=seen)
    lists.to_csv(path, index=False)
    return lists


def test_own_lists_have_the_metrics_of_the_run(tiny: Tiny, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, data, run = tiny
    write_lists(run, tmp_path / "lists.csv", 40, seen=True)
    lists = read_lists(pd.read_csv(tmp_path / "lists.csv"), data)
    report, own = rank_lists(lists, data), run.report()
    assert not lists.notes and known_cutoffs(lists, data, "full-seen") == [5, 10, 20]
    for protocol in ("full", "full-seen"):
        settled = (own.ranks[protocol].tied == 0) & (own.ranks[protocol].above < 20)
        assert settled.sum() > 20 and (report.ranks[protocol].above[settled] == own.ranks[protocol].above[settled]).all()
    source = ["--against", str(run.path)]
    assert main(["score", str(tmp_path / "lists.csv"), *source, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0]["protocol"] == run.protocol and {row["metric"] for row in rows} >= set(METRICS[:2])
    for row in rows:
        assert row["mean"] == pytest.approx(own.mean_interval(row["protocol"], row["metric"]).mean, abs=0.01)
    assert main(["score", str(tmp_path / "lists.csv"), *source]) == 0
    shown = capsys.readouterr()
    assert "A - B: " in shown.out and "no difference can be claimed" in shown.out and "learned from" in shown.err


def test_a_list_by_hand(tiny: Tiny) -> None:
    """Seen items leave a list under `full`, the target too, and what is not listed is a miss."""
    _, data, _ = tiny
    target, seen = data.target_items("test"), [data.histories.user_items(user)[:-1] for user in range(data.histories.n_users)]
    new = [next(i for i in range(1, 61) if i not in set(seen[user]) | {target[user]}) for user in range(3)]
    names, ids = data.histories.user_ids, data.catalog.ids
    rows = [
        *((names[0], ids[item], rank) for rank, item in enumerate([seen[0][-1], new[0], target[0]], 1)),
        *((names[1], ids[item], -rank) for rank, item in enumerate([target[1], new[1]])),  # the higher the worse, from the end
        (names[2], ids[new[2]], 1), (names[2], "unheard", 2), ("nobody", ids[1], 1), (names[2], ids[new[2]], 3),
    ]  # fmt: skip
    lists = read_lists(pd.DataFrame(rows, columns=["user", "item", "rank"]), data)
    report = rank_lists(lists, data)
    assert seen[0][-1] != target[0]
    assert report.ranks["full"].above[:3].tolist() == [1, 60, 60] and report.ranks["full-seen"].above[:3].tolist() == [2, 1, 60]
    assert len(lists.notes) == 4 and "77 people have no list" in lists.notes[3] and known_cutoffs(lists, data, "full") == []


def test_what_are_no_lists_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    data = tiny[1]
    for table, sentence in (
        ({"user": ["1"], "item": ["1"]}, "rank is missing"), ({"user": ["1"], "item": ["1"], "rank": ["first"]}, "row 1"),
        ({"user": ["x"], "item": ["1"], "rank": [1]}, "hold no user"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            read_lists(pd.DataFrame(table), data)
    (tmp_path / "lists.csv").write_text("user,item,rank\n1,1,1\n")
    assert main(["score", str(tmp_path / "lists.csv")]) == 2
    assert main(["score", str(tmp_path / "none.csv"), "--data", "planted"]) == 2
    assert np.isfinite(
        rank_lists(read_lists(pd.read_csv(tmp_path / "lists.csv"), data), data).user_values("full", "NDCG@10")
    ).all()
