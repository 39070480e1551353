"""What models say of themselves where no expert can be asked: the weights of their attention."""

from typing import Any

import numpy as np
import pytest
import torch
from test_contracts import ALL, N_ITEMS, Case, histories, reading
from torch import Tensor, nn

from elastic_core import models
from elastic_core.core import layers
from elastic_core.core.batches import Batch
from elastic_core.data import Catalog
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import AttentionModel

GENRES = ((), *((("Comedy", "Drama")[i % 2],) if i % 5 else () for i in range(N_ITEMS)))
CATALOG = Catalog(
    np.array(["", *map(str, range(N_ITEMS))], dtype=object), np.array(["", *map(str, range(N_ITEMS))], dtype=object), GENRES
)


def asked(case: Case, shortest: int = 1, **more: Any) -> tuple[Recommender, Batch, Tensor | None]:
    """A model in float64, histories of different lengths, and what it says of its weights."""
    model, batch = case.build(CATALOG, **more).double(), reading(histories(shortest=shortest))
    times = torch.randint(1, 5_000, batch.items.shape, generator=torch.Generator().manual_seed(3)).cumsum(1)
    batch = Batch(batch.items, batch.items, times=times * (batch.items > 0))
    if not isinstance(model, AttentionModel):
        return model, batch, None
    with torch.no_grad():
        for parameter in model.parameters():  # at the start some attentions are so flat that every mistake looks right
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(7), dtype=parameter.dtype))
        return model, batch, model.last_weights(batch)


ATTENDING = [case for case in ALL if hasattr(models.model_class(case.name), "last_weights")]
attending = pytest.mark.parametrize("case", ATTENDING, ids=str)


def test_the_systems_with_weights_are_known() -> None:
    known = {"sasrec", "bert4rec", "linrec", "hstu", "linformer", "sma", "shan", "lisa"}
    assert known <= {case.name for case in ATTENDING}


@attending
def test_weights_are_of_events_alone_and_padding_changes_none(case: Case) -> None:
    model, batch, weights = asked(case)
    assert weights is not None and isinstance(model, AttentionModel)
    assert (weights.shape[1], weights.shape[3]) == batch.items.shape
    assert weights.isfinite().all() and not weights[~batch.real[None, :, None].expand_as(weights)].any()
    row = torch.tensor([2])
    events = int(batch.real[2].sum())
    short = batch.select_rows(row)
    assert batch.times is not None
    short = Batch(short.items[:, -events:], short.items[:, -events:], times=batch.times[2:3, -events:], padded=False)
    with torch.no_grad():
        alone = model.last_weights(short)
    assert alone is not None and torch.allclose(alone[:, 0], weights[:, 2, :, -events:], atol=1e-9)


def with_values(model: Recommender) -> list[nn.Module]:
    """Its attentions whose values are a layer of their own. Of others a test may say what their weights are, as three below."""
    return [unit for unit in model.modules() if isinstance(getattr(unit, "value", None), nn.Module) and hasattr(unit, "query")]


@pytest.mark.parametrize("case", [case for case in ATTENDING if with_values(case.build())], ids=str)
def test_weights_are_what_the_model_multiplies_events_by(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something is added to the value of one event; what the output layer is given answers by its weight."""
    model, batch, weights = asked(case, shortest=16, layers=1)
    assert weights is not None
    unit, columns, seen = with_values(model)[0], batch.items.shape[1], list[Tensor]()
    more = int(getattr(model, "masks", False))
    extra = torch.zeros(len(batch.items), columns + more, dtype=torch.float64, requires_grad=True)

    def value(_: nn.Module, __: Any, out: Tensor) -> Tensor:
        return out + extra[:, -out.shape[1] :].unsqueeze(-1)

    def output(_: nn.Module, given: tuple[Tensor]) -> None:
        seen.append(given[0])

    linear = layers.linear

    def product(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none") -> Tensor:
        if weight is unit.output.weight:  # type: ignore[union-attr]
            output(unit, (x,))
        found = linear(x, weight, bias, activation)
        return value(unit, x, found) if weight is unit.value.weight else found  # type: ignore[union-attr]

    monkeypatch.setattr(layers, "linear", product)  # where layers are not called but their weights are used
    hooks = [unit.value.register_forward_hook(value), unit.output.register_forward_pre_hook(output)]  # type: ignore[union-attr]
    model.last_state(batch)
    for hook in hooks:
        hook.remove()
    heads = weights.shape[2]
    mixed = seen[-1][:, -1].unflatten(-1, (heads, -1))[..., 0]  # [B, H]: one number of every head
    for head in range(heads):
        (slope,) = torch.autograd.grad(mixed[:, head].sum(), extra, retain_graph=True)
        assert torch.allclose(slope[:, :columns], weights[0, :, head], atol=1e-9)


@pytest.mark.parametrize("times", ["none", "previous"])
def test_hstu_weighs_by_silu(times: str) -> None:
    """Written out: SiLU(q·k + b[distance] + c[bucket]) / n for every event and head."""
    model, batch, weights = asked(Case("hstu", {"time_bias": times, "heads": 2}), layers=1)
    assert weights is not None and batch.times is not None

    def silu(x: np.ndarray) -> np.ndarray:
        return np.asarray(x / (1 + np.exp(-x)))

    with torch.no_grad():
        unit: Any = next(model.units.children())  # type: ignore[union-attr]
        x = model.events(batch.items).numpy()  # type: ignore[operator]
        asks, tells = (np.split(layer.weight.numpy(), 2)[1] for layer in (unit.uq_projection, unit.vk_projection))
        distance, gap = unit.distance.numpy(), None if unit.gap is None else unit.gap.numpy()
    n, half = batch.items.shape[1], 8
    for row in range(len(x)):
        z = [(e - e.mean()) / np.sqrt(e.var() + 1e-6) for e in x[row]]
        for j in range(n):
            bias = distance[n - 1 - j]
            if gap is not None:
                seconds = max(int(batch.times[row, -1] - batch.times[row, j]), 1)
                bias += gap[min(int(np.log(np.float32(seconds)) / 0.301), 128)]
            q, k = silu(asks @ z[-1]), silu(tells @ z[j])
            for head in range(2):
                part = slice(head * half, (head + 1) * half)
                expected = silu(q[part] @ k[part] + bias) / n if batch.real[row, j] else 0.0
                assert float(weights[0, row, head, j]) == pytest.approx(float(expected), abs=1e-7)


def test_shan_is_a_mean_of_its_events_by_these_weights() -> None:
    for settings in ({}, {"intensity": "state"}, {"intensity": "event"}):
        model, batch, weights = asked(Case("shan", settings))
        assert weights is not None
        with torch.no_grad():
            events = model.events(batch.items)  # type: ignore[operator]
            assert torch.allclose(model.last_state(batch), (weights[0, :, 0, :, None] * events).sum(1), atol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"form": "soft", "codewords": 16}], ids=str)
def test_lisa_attends_to_the_events_that_have_its_words(settings: dict[str, Any]) -> None:
    """Written out: every event gives its words, times their place in T and e^-δ an event, and takes its part of the mass."""
    model, batch, weights = asked(Case("lisa", settings), layers=1)
    assert weights is not None
    with torch.no_grad():
        ready, read = model.shared_tables(), model.prediction_batch(batch)  # type: ignore[operator]
        codes, table = model._event_codes(read.items, ready.codes), ready.tables[0].weights.numpy()  # type: ignore[operator]
        counted, size = model.count_codewords(codes, read.real).numpy(), model.config.codewords  # type: ignore[operator, attr-defined]
    columns = read.items.shape[1]
    for row in range(len(read.items)):
        for book in range(counted.shape[2]):
            code = int(codes.chosen[row, -1, book])
            words = table[book * size + code]
            parts = [np.exp(-0.1 * (columns - 1 - j)) * float(counted[row, j, book] @ words) for j in range(columns)]
            expected = np.array(parts) / sum(parts)
            shown = expected[:-1] if model.masks else expected  # of a full history the mask's oldest event made room
            assert np.allclose(weights[0, row, book, -len(shown) :].detach().numpy(), shown, atol=1e-6)


@pytest.mark.parametrize("name", ["sma", "shan"])
def test_intensities_modulate_the_weights(name: str) -> None:
    """With φ log(1 + e^(…)) = 1 everywhere the weights are those of plain attention: heads add up to 1."""
    case = Case(name, {"intensity": "state"})
    model, batch, weights = asked(case)
    assert isinstance(model, AttentionModel) and weights is not None
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if key.endswith("intensity.outer"):
                parameter.zero_()
            elif key.endswith(("intensity.log_scale", "intensity.base")):
                parameter.fill_(0.0 if key.endswith("scale") else np.log(np.e - 1))
        plain = model.last_weights(batch)
    assert plain is not None and torch.allclose(plain.sum(-1), torch.ones_like(plain.sum(-1)), atol=1e-6)
    assert not torch.allclose(weights.sum(-1), torch.ones_like(weights.sum(-1)), atol=1e-2)
