"""What makes a step of training fast leaves its numbers as they were."""

from itertools import islice
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from elastic_core import models, objectives, recipes
from elastic_core.core import fused_ops
from elastic_core.core.batches import Batch
from elastic_core.core.dispatch import CHUNK, chunk_length
from elastic_core.core.elastic import Elastic
from elastic_core.core.layers import LocalConvolution
from elastic_core.data import Dataset


@settings(max_examples=30)
@given(some.integers(1, 3), some.integers(1, 30), some.integers(1, 6), some.integers(1, 300), some.integers(0, 10**6))
def test_the_convolution_and_its_gradients_are_those_of_shifted_products(
    rows: int, n: int, width: int, together: int, seed: int
) -> None:
    """However many numbers are worked on together, of several people or of a part of one."""
    torch.manual_seed(seed)
    layer, x, weight = LocalConvolution(4, width).double(), torch.randn(rows, n, 4, dtype=torch.float64), torch.rand(rows, n, 4)
    found = []
    for work in (layer, lambda x: sum(torch.nn.functional.pad(x, (0, 0, i, 0))[:, :n] * tap for i, tap in enumerate(layer.taps))):
        own = x.clone().requires_grad_()
        with mock.patch.object(fused_ops, "CACHE", together):
            out = work(own)
            found.append([out.detach(), *torch.autograd.grad((out * weight).sum(), (own, layer.taps))])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    for last in range(1, n + 1):
        torch.testing.assert_close(layer.forward_last(x, last), found[0][0][:, -last:])


def test_chunks_add_up_to_a_history_or_to_little_more() -> None:
    for n in range(1, 2_000):
        chunk = chunk_length(n)
        assert 1 <= chunk <= CHUNK * 3 // 2 and -n % chunk <= (0 if n % 8 == 0 and n < 200 else 9), n


@pytest.mark.parametrize("name", ["window", "last"])
@pytest.mark.parametrize("variant", Elastic.variants, ids=lambda variant: variant.label)
def test_rows_without_targets_are_left_out_of_the_last_layer_and_of_nothing_else(
    variant: models.Variant, name: str, small_world: Dataset
) -> None:
    """The loss and every gradient, beside those of a pass over all rows."""
    settings_ = {"layers": 2, "dropout": 0.0, "length": 24, **variant.settings}
    config = recipes.toy().override(*(f"model.{key}={str(value).lower()}" for key, value in settings_.items())).model
    torch.manual_seed(0)
    model = models.build(config, small_world.catalog)
    if objectives.objective_class(name).refusal_reason(model):
        pytest.skip("it cannot learn from this")
    taught = objectives.build(recipes.objective_settings("elastic", name, span=5), small_world, model.length)
    fewer = 0
    for batch in islice(taught.epoch_batches(0, 0, 8), 8):
        found = []
        for columns in (Batch.target_columns, property(lambda batch: 0)):
            with mock.patch.object(Batch, "target_columns", columns):
                loss = taught.loss(model, batch)
            parts = loss.total, *loss.auxiliary.values(), *loss.summed.values()
            gradients = torch.autograd.grad(sum(parts), list(model.parameters()), allow_unused=True)  # type: ignore[arg-type]
            found.append([*parts, *(torch.zeros(()) if each is None else each for each in gradients)])
        fewer += 0 < batch.target_columns < batch.items.shape[1]
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, atol=2e-4, rtol=2e-4)
    assert fewer > 3
