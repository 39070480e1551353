"""What a training stands beside: chance; and users of whom little is known, beside popularity."""

import statistics

import numpy as np
import pytest

from elastic_core.commands import main
from elastic_core.data import Dataset
from elastic_core.models import Recommender, build
from elastic_core.peers.popularity import PopularityConfig
from elastic_core.results import baselines
from elastic_core.results.baselines import ONLY_UNSEEN, WITH_SEEN
from elastic_core.results.short_histories import score_short_histories
from elastic_core.runs import Run
from elastic_core.runs.ranks import evaluate

Tiny = tuple[Recommender, Dataset, Run]


def test_few_events_lie_between_popularity_and_the_whole_history(tiny: Tiny) -> None:
    model, data, run = tiny
    nothing, one, all_ = score_short_histories(model, data, [0, 1, 10_000], "full-seen")
    floor = build(PopularityConfig(), data.catalog)
    floor.fit(data)
    assert nothing.score.mean == evaluate(floor, data, "test", ["full-seen"]).mean_interval("full-seen", "NDCG@10").mean
    assert nothing.over_popularity.mean == 0 and all_.score == evaluate(model, data, "test", ["full-seen"]).mean_interval(
        "full-seen", "NDCG@10"
    )
    assert one.over_popularity.mean == pytest.approx(one.score.mean - nothing.score.mean)
    values = []
    for user in range(data.histories.n_users):  # by hand
        last, target = data.histories.user_items(user)[-2:]
        history = [[str(data.catalog.ids[last])]]
        listed = run.recommend(histories=history, k=data.catalog.n_items, seen=True)["item"]
        place = listed.tolist().index(str(data.catalog.ids[target])) + 1
        values.append(1 / np.log2(1 + place) if place <= 10 else 0.0)
    assert one.score.mean == pytest.approx(np.mean(values), abs=1e-6)


def test_the_command_prints_a_line_a_length(tiny: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tiny[2].path)
    assert main(["evaluate", run, "--last-events", "0,1,2", "--protocols", "full"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and lines[1].startswith("0 ") and "to" in lines[3]
    for words in (["--last-events", "-1"], ["--last-events", "few"], ["--last-events", "1", "--json"]):
        assert main(["evaluate", run, *words]) == 2


def test_chance_is_what_random_scores_get(small_world: Dataset) -> None:
    rng = np.random.default_rng(0)

    class Noise:
        length = 2

        def score(self, batch):  # type: ignore[no-untyped-def]
            import torch

            return torch.from_numpy(rng.random((len(batch.items), small_world.catalog.n_items + 1)))

    for protocol in (ONLY_UNSEEN, WITH_SEEN):
        drawn = [evaluate(Noise(), small_world, protocols=(protocol,)).metrics[protocol]["NDCG@10"] for _ in range(40)]
        error = statistics.stdev(drawn) / len(drawn) ** 0.5
        assert abs(statistics.fmean(drawn) - baselines.random_ndcg(small_world, protocol)) < 4 * error < 0.03
