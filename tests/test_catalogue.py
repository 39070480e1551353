"""Catalogues of millions in small: the same losses, gradients, ranks and worlds, whatever the size of the pieces."""

from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from elastic_core import models, recipes
from elastic_core.core import evaluate as evaluation
from elastic_core.core import histories
from elastic_core.core.batches import Batch
from elastic_core.core.evaluate import PROTOCOLS, drawn_people, rank_people
from elastic_core.data import Dataset, planted
from elastic_core.errors import InputError
from elastic_core.models import Met, Scorer
from elastic_core.run_config import PlantedConfig
from elastic_core.runs import training as loop
from elastic_core.runs.ranks import Report, evaluate
from elastic_core.scale import sampled_softmax as shared
from elastic_core.scale import stretches
from elastic_core.scale.sampled_softmax import negative_proposal, sampled_softmax


def sampled_plainly(states: Tensor, targets: Tensor, scorer: Scorer, proposal: Tensor, negatives: int, met: Met) -> Tensor:
    """Row by row, draw by draw."""
    drawn = torch.multinomial(proposal, negatives, replacement=True).tolist()
    vectors, shares = scorer.split(states)
    assert scorer.again is not None
    total = torch.zeros(())
    for m, target in enumerate(targets.tolist()):
        seen = set(met.items[met.row[m]].tolist())
        others = [item for item in drawn if item != target]
        parts = []
        for vector, share in zip(vectors[m], shares[m], strict=True):
            logits = [
                scorer.table[item] @ vector
                + (0 if scorer.bias is None else scorer.bias[item])
                + scorer.again * (item in seen)
                - (0 if place == 0 else (proposal[item] * negatives).log())
                for place, item in enumerate([target, *others])
            ]
            parts.append(torch.stack(logits).log_softmax(0)[0] + share)
        total = total - torch.stack(parts).logsumexp(0)
    return total


@settings(max_examples=60, deadline=None)
@given(
    some.integers(1, 6), some.sampled_from([0, 1, 3]), some.booleans(), some.booleans(), some.sampled_from([64, 1 << 20]),
    some.integers(0, 10**6),
)  # fmt: skip
def test_the_sampled_softmax_is_the_one_written_out(
    rows: int, parts: int, biased: bool, sparse: bool, chunk: int, seed: int
) -> None:
    items, d, found = 12, 4, []
    generator = torch.Generator().manual_seed(seed)
    values = [
        torch.randn(shape, generator=generator) for shape in ((rows, parts * (d + 1) or d), (items + 1, d), (items + 1,), ())
    ]
    met = Met(*(torch.randint(0, high, shape, generator=generator) for high, shape in ((items + 1, (3, 5)), (3, (rows,)))))
    targets = torch.randint(1, items + 1, (rows,), generator=generator)
    proposal = negative_proposal(torch.arange(items + 1))
    for work in (partial(sampled_softmax, sparse=sparse), sampled_plainly):
        states, table, bias, again = (value.clone().requires_grad_() for value in values)
        torch.manual_seed(seed)
        with mock.patch.object(shared, "CHUNK_BYTES", chunk):
            total = -2 * work(states, targets, Scorer(table, bias if biased else None, parts, again), proposal, 7, met)
        total.backward()
        assert table.grad is not None and table.grad.is_sparse == (sparse and work is not sampled_plainly)
        found.append([total.detach(), states.grad, table.grad.to_dense(), again.grad, *([bias.grad] if biased else [])])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def ranked(model: models.Recommender, dataset: Dataset, large: int, numbers: int) -> Report:
    with mock.patch.object(evaluation, "LARGE", large), mock.patch.object(stretches, "NUMBERS", numbers):
        return evaluate(model, dataset, "test", PROTOCOLS, batch=25)


@pytest.mark.parametrize("name", ["elastic", "elastic-slots", "lrurec", "din", "lisa"])
def test_ranks_are_the_same_in_stretches(name: str, small_world: Dataset) -> None:
    """A bias, a mixture, pairs, composed tables, and what having been met adds. Every table has each of its rows several times,
    so that items tie."""
    torch.manual_seed(0)
    model = models.build(recipes.toy(name).override("model.repeats=true").model, small_world.catalog).eval()
    with torch.no_grad():
        assert model.met is not None
        model.met.fill_(-0.01)
        table = next(x for n, x in model.named_parameters() if x.ndim == 2 and len(x) > small_world.catalog.n_items)
        table[1:] = table[1 + torch.arange(len(table) - 1) % 40] * 20
    whole = ranked(model, small_world, 10**6, 1)
    assert name == "lisa" or max(ranks.tied.max() for ranks in whole.ranks.values()) > 0
    for numbers in (50, 3_000, 10**6):
        found = ranked(model, small_world, 0, numbers)
        for protocol, ranks in whole.ranks.items():
            unlike = (found.ranks[protocol].above != ranks.above) | (found.ranks[protocol].tied != ranks.tied)
            assert unlike.mean() < 0.02, f"{protocol}: {unlike.sum()} of {len(unlike)}"  # a score's last digit may tell


def test_exact_scores_have_exact_ranks_and_broken_ones_are_refused(small_world: Dataset) -> None:
    """Whole numbers are added up without rounding: above and tied are the very same."""

    class Whole(models.Recommender):
        objective = "all"

        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            self.n_items, self.length, self.met = small_world.catalog.n_items, 8, torch.nn.Parameter(torch.tensor(0.1))
            self.table = torch.randint(-3, 4, (self.n_items + 1, 4), generator=torch.Generator().manual_seed(0)).float()

        def last_state(self, batch: Batch) -> torch.Tensor:
            return self.table[batch.items[:, -1]]

        def scorer(self) -> Scorer:
            return Scorer(self.table, again=self.again)

    model = Whole()
    whole = ranked(model, small_world, 10**6, 1)
    for numbers in (50, 1_777, 10**6):
        found = ranked(model, small_world, 0, numbers)
        for protocol, ranks in whole.ranks.items():
            assert np.array_equal(found.ranks[protocol].above, ranks.above) and ranks.above.dtype == np.int32
            assert np.array_equal(found.ranks[protocol].tied, ranks.tied)
    model.table[7] = torch.nan
    with pytest.raises(InputError, match="diverged"):
        ranked(model, small_world, 0, 50)


@pytest.mark.parametrize("piece", [1, 997])
def test_a_world_does_not_depend_on_the_pieces_it_is_drawn_in(piece: int) -> None:
    config = PlantedConfig(users=60, items=400, interests=8, mean_length=20, max_length=60, popularity=1.5)
    worlds = []
    for size in (histories.PIECE, piece):
        with mock.patch.object(histories, "PIECE", size):
            data = planted(config)
            worlds.append([data.hash, data.histories.times, data.all_counts(), data.counts(), data.truth.event_interest])  # type: ignore[union-attr]
    assert 0 < len(worlds[0][1]) < 60 * 20 * 1.2
    assert all(np.array_equal(one, other) for one, other in zip(*worlds, strict=True))


def test_people_are_drawn_once_and_validate_alone(small_world: Dataset, tmp_path: Path) -> None:
    config = recipes.toy().override("train.epochs=1", "train.judged_people=7")
    watched = mock.patch("elastic_core.core.train.rank_people", side_effect=rank_people)
    with watched as judge, mock.patch.object(loop.Recorder, "test"):
        loop.train(config, small_world, tmp_path / "run")
    users = judge.call_args.args[4]
    assert len(users) == 7 == len(set(users.tolist())) and np.array_equal(users, drawn_people(small_world, 7))
    assert drawn_people(small_world, 0) is drawn_people(small_world, small_world.histories.n_users) is None
