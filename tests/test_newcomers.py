"""Of whom little is known: what is read, what is compared, and where nothing is known, popularity."""

import numpy as np
import pytest

from elastic_core.commands import main
from elastic_core.data import Dataset
from elastic_core.evaluation.newcomers import after_few
from elastic_core.models import Recommender, build
from elastic_core.peers.popularity import PopularityConfig
from elastic_core.runs import Run
from elastic_core.runs.ranks import evaluate
from elastic_core.services.person.recommend import recommend

Tiny = tuple[Recommender, Dataset, Run]


def test_few_events_lie_between_popularity_and_the_whole_history(tiny: Tiny) -> None:
    model, data, _ = tiny
    nothing, one, all_ = after_few(model, data, [0, 1, 10_000], "full-seen")
    floor = build(PopularityConfig(), data.catalog)
    floor.fit(data)
    assert nothing.score.mean == evaluate(floor, data, "test", ["full-seen"]).interval("full-seen", "NDCG@10").mean
    assert nothing.beyond.mean == 0 and all_.score == evaluate(model, data, "test", ["full-seen"]).interval(
        "full-seen", "NDCG@10"
    )
    assert one.beyond.mean == pytest.approx(one.score.mean - nothing.score.mean)
    values = []
    for user in range(data.histories.n_users):  # by hand
        last, target = data.histories.of(user)[-2:]
        table = recommend(model, data, [int(last)], data.catalog.n_items, exclude_seen=False)
        place = table["item"].tolist().index(int(target)) + 1
        values.append(1 / np.log2(1 + place) if place <= 10 else 0.0)
    assert one.score.mean == pytest.approx(np.mean(values), abs=1e-6)


def test_the_command_prints_a_line_a_length(tiny: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tiny[2].path)
    assert main(["evaluate", run, "--last", "0,1,2", "--protocols", "full"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and lines[1].startswith("0 ") and "to" in lines[3]
    for words in (["--last", "-1"], ["--last", "few"], ["--last", "1", "--json"]):
        assert main(["evaluate", run, *words]) == 2
