"""The loss against one written out: mixtures, a bias, what was met before, in chunks of any size, with every gradient."""

import math
from collections.abc import Callable
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from elastic_core import models, recipes
from elastic_core.core import softmax
from elastic_core.core.batches import Batch, reading_batch
from elastic_core.core.contract import REACH
from elastic_core.core.softmax import full_softmax, sampled_softmax
from elastic_core.data import Dataset
from elastic_core.models import Scorer, SeenItems
from elastic_core.objectives import build


def plain(states: Tensor, targets: Tensor, scorer: Scorer, seen: SeenItems) -> Tensor:
    """Row by row, item by item."""
    every = list(range(1, len(scorer.table)))
    return _written_out(states, targets, scorer, seen, lambda target: (every, [0.0] * len(every)))


def plain_sampled(states: Tensor, targets: Tensor, scorer: Scorer, seen: SeenItems, proposal: Tensor, negatives: int) -> Tensor:
    """The same over the target and what is drawn, each corrected for how often it is."""
    drawn = torch.multinomial(proposal, negatives, replacement=True).tolist()
    rarity = {item: -math.log(float(proposal[item]) * negatives) for item in drawn}

    def items_of(target: int) -> tuple[list[int], list[float]]:
        others = [item for item in drawn if item != target]
        return [target, *others], [0.0, *(rarity[item] for item in others)]

    return _written_out(states, targets, scorer, seen, items_of)


def _written_out(
    states: Tensor, targets: Tensor, scorer: Scorer, met: SeenItems, items_of: Callable[[int], tuple[list[int], list[float]]]
) -> Tensor:
    """`items_of` a target: the items that its softmax goes over, and what is added to their logits."""
    total = torch.zeros(())
    (vectors, shares), bias = scorer.split_mixture(states), scorer.repeat_bias
    for m, target in enumerate(targets.tolist()):
        events = met.items[met.row[m]]
        seen = (events if met.upto is None else events[: int(met.upto[m]) + 1]).tolist()
        weight = [math.log(1 + 10 * seen.count(item)) / math.log(11) for item in range(len(scorer.table))]
        items, added = items_of(target)
        parts = []
        for vector, share in zip(vectors[m], shares[m], strict=True):
            logits = [
                scorer.table[item] @ vector
                + more
                + (0 if scorer.bias is None else scorer.bias[item])
                + (0 if bias is None else bias * (weight[item] if scorer.repeat_counts else float(item in seen)))
                for item, more in zip(items, added, strict=True)
            ]
            parts.append(torch.stack(logits).log_softmax(0)[items.index(target)] + share)
        total = total - torch.stack(parts).logsumexp(0)
    return total


@settings(max_examples=150)
@given(
    some.integers(1, 6), some.sampled_from([0, 1, 3]), some.integers(2, 9), some.booleans(), some.booleans(), some.booleans(),
    some.sampled_from([64, 1 << 20]), some.integers(0, 10**6), some.sampled_from([0, 1, 5]),
)  # fmt: skip
def test_the_softmax_is_the_one_written_out(
    rows: int, parts: int, items: int, biased: bool, past: bool, counted: bool, chunk: int, seed: int, negatives: int
) -> None:
    """Over all items, or over the target and so many `negatives`."""
    torch.manual_seed(seed)
    d = 4
    inputs = {
        "states": torch.randn(rows, parts * (d + 1) if parts else d), "table": torch.randn(items + 1, d),
        "bias": torch.randn(items + 1), "again": torch.randn(()) * 3,
    }  # fmt: skip
    met = SeenItems(
        torch.randint(0, items + 2, (3, 5)), torch.randint(0, 3, (rows,)), torch.randint(0, 5, (rows,)) if past else None
    )
    targets = torch.randint(1, items + 1, (rows,))
    proposal = torch.rand(items + 1) + 0.1
    proposal[0] = 0
    more = {"proposal": proposal / proposal.sum(), "negatives": negatives} if negatives else {}
    found = []
    for work in (sampled_softmax, plain_sampled) if negatives else (full_softmax, plain):
        given_to = {name: value.clone().requires_grad_() for name, value in inputs.items()}
        scorer = Scorer(given_to["table"], given_to["bias"] if biased else None, parts, given_to["again"], counted)
        with mock.patch.object(softmax, "CHUNK_BYTES", chunk):
            torch.manual_seed(seed)  # the same draw for both
            total = -2 * work(given_to["states"], targets, scorer, seen=met, **more)
            total.backward()
        again = given_to["again"].grad  # none where nobody has met anything
        found.append(
            [
                total.detach(),
                given_to["states"].grad,
                torch.zeros(()) if again is None else again,
                given_to["table"].grad[1:],  # type: ignore[index]
                given_to["bias"].grad if biased else torch.zeros(()),
            ]
        )
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("model", ["elastic-slots", "sasrec"])
def test_every_model_learns_and_serves_what_having_been_met_adds(model: str, small_world: Dataset) -> None:
    """Scores of what a history holds move by the number, others do not; and the number has a gradient."""
    torch.manual_seed(0)
    config = recipes.toy(model).override("model.repeat_bias=true", "model.dropout=0")
    made = models.build(config.model, small_world.catalog).eval()
    users = torch.arange(5).numpy()
    batch = reading_batch(small_world, users, small_world.split_ends("test")[users], made.length)
    held = SeenItems.from_batch(batch).seen_mask(small_world.catalog.n_items).bool()
    before = made.score(batch).detach()
    assert made.repeat_weight is not None
    with torch.no_grad():
        made.repeat_weight.fill_(-1.0)
    moved = made.score(batch).detach() - before
    if made.scorer().parts:  # a mixture of probabilities: met ones lose, the others share what they lose
        assert (moved[held] < -REACH / 2).all() and (moved[:, 1:][~held[:, 1:]] > 0).all()
    else:
        torch.testing.assert_close(moved[held], torch.full_like(moved[held], -REACH), atol=1e-3, rtol=1e-3)
        assert moved[:, 1:][~held[:, 1:]].abs().max() < 1e-4
    objective = build(config.objective, small_world, made.length)
    loss = objective.loss(made.train(), next(iter(objective.epoch_batches(0, 0, 16))))
    loss.total.backward()
    assert made.repeat_weight.grad is not None and made.repeat_weight.grad.abs() > 0


def test_an_event_that_lies_ahead_is_not_met_yet() -> None:
    met = SeenItems(torch.tensor([[0, 3, 5, 9, 3]]), torch.zeros(3, dtype=torch.long), torch.tensor([0, 2, 4]))
    assert [set(row.nonzero()[:, 0].tolist()) for row in met.seen_mask(8)] == [set(), {3, 5}, {3, 5}]
    weights = met._replace(counted=True).seen_mask(8)
    assert weights[2, 3] > weights[2, 5] == weights[1, 3] == 1, "twice weighs more than once, which weighs 1"
    batch = Batch(met.items, met.items)
    assert set(SeenItems.from_batch(batch).seen_mask(8)[0].nonzero()[:, 0].tolist()) == {3, 5}
