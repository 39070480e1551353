"""DIN and SHAN, the hosts of self-modulating attention: their twins pair by pair and event by event, and what they cannot see."""

import itertools
import math
from typing import Any

import pytest
import torch
from test_sma import CATALOG, apart, odd_times, rates
from torch import Tensor

from elastic_core import models
from elastic_core.bench import latency
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig
from elastic_core.core.contract import SeenItems
from elastic_core.core.softmax import full_softmax
from elastic_core.errors import InputError
from elastic_core.peers import din
from elastic_core.peers.shan import SHORT

DIN: list[dict[str, Any]] = [
    {},
    {"recency": True, "repeat_bias": True},
    {"intensity": "event", "ctreg_weight": 1.0},
    {"intensity": "event", "recency": True, "ctreg_weight": 1.0},
]
SHAN: list[dict[str, Any]] = [
    {},
    {"intensity": "state", "ctreg_weight": 1.0},
]


def ids(form: dict[str, Any]) -> str:
    return "-".join(map(str, form.values())) or "plain"


def built(name: str, form: dict[str, Any], catalog: Any = CATALOG, spread: float = 0.4) -> Any:
    """In float64, with weights far from their start."""
    torch.manual_seed(0)
    shape = {"length": 8, "width": 8, "dropout": 0.0, **form}
    kind = ModelConfig.known[name]
    model: Any = models.build(kind(**{key: value for key, value in shape.items() if hasattr(kind, key)}), catalog).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += spread * torch.randn_like(parameter)
        table = model.items.weight if name == "din" else model.events.items.weight
        table[0] = 0
        table *= 0.05 if name == "din" else 0.2
        model.mean_interval.fill_(2.5)
        if model.repeat_weight is not None:
            model.repeat_weight.fill_(-0.25)  # what was met is counted in float32, where 30 of these are no rounded number
    return model


def prelu(x: Tensor, slope: Tensor) -> Tensor:
    return torch.stack([a if a > 0 else s * a for a, s in zip(x, slope, strict=True)])


def explained(model: Any, h: list[Tensor], kinds: Tensor, gaps: list[float]) -> list[float]:
    """−R of every interval, the integral by a fine sum."""
    terms = []
    for i, gap in enumerate(gaps):
        fine = torch.linspace(0, gap, 2_001, dtype=torch.float64)
        integral = torch.trapezoid(rates(model.intensity, h[i], fine).mean(0), fine)
        terms.append(float(integral - (rates(model.intensity, h[i], gap) @ kinds[i + 1]).log()))
    return terms


# --- DIN -------------------------------------------------------------------------------------------------------------


def matters(model: Any, event: Tensor, candidate: Tensor) -> Tensor:
    """a(e_j, e_c) of one pair."""
    unit = model.unit
    hidden = unit.event(event) + unit.product(event * candidate) + unit.candidate(candidate)
    return unit.outer(prelu(hidden, unit.activation.weight)).squeeze()


def din_twin(model: Any, items: list[int], times: list[int]) -> tuple[Tensor, list[float]]:
    """One history without padding: the scores after every event `[n, n_items + 1]`, and −R of every interval."""
    c, e = model.config, model.items.weight * 50  # of unit variance at the start: 1 / 0.02
    gaps = [apart(model, *pair) for pair in itertools.pairwise(times)]
    kinds, since, h, lam = model.marks[items], [1.0, *gaps], [], []
    for i, item in enumerate(items):
        found = [matters(model, e[past], e[item]) * e[past] for past in items[: i + 1]]
        h.append(sum(found, torch.zeros(c.width).double()) / len(found))
        lam.append(rates(model.intensity, h[i], since[i]) @ kinds[i] if c.intensity == "event" else torch.tensor(1.0).double())
    scores = torch.full((len(items), model.n_items + 1), -math.inf).double()
    for t in range(len(items)):
        for candidate in range(1, model.n_items + 1):
            v = torch.zeros(c.width).double()
            for j in range(t + 1):
                w = lam[j] * (model.recency[t - j].exp() if c.recency else 1)
                v += w * matters(model, e[items[j]], e[candidate]) * e[items[j]]
            again = 30 * model.repeat_weight if c.repeat_bias and candidate in items[: t + 1] else 0
            scores[t, candidate] = v @ model.items.weight[candidate] + model.bias[candidate] + again
    return scores, explained(model, h, kinds, gaps) if c.ctreg_weight else []


@pytest.mark.parametrize("form", DIN, ids=ids)
@torch.no_grad()
def test_din_is_its_twin_pair_by_pair(form: dict[str, Any]) -> None:
    """Scores of every item after every event, of one's own item, and prepared; CTReg; odd times, padding and emptiness."""
    model, batch = built("din", form), odd_times()
    assert batch.times is not None and batch.targets is not None
    encoded, scorer, judged, terms = model(batch), model.scorer(), model.prepare_scores()(batch), []
    assert judged.isfinite().all()
    for row in (0, 1, 3):
        real = batch.real[row]
        expected, found = din_twin(model, batch.items[row][real].tolist(), batch.times[row][real].tolist())
        columns = real.nonzero().squeeze(1)
        states, met = encoded.states[row][real], SeenItems(batch.items, torch.full_like(columns, row), columns)
        torch.testing.assert_close(scorer(states, met)[:, 1:], expected[:, 1:])
        torch.testing.assert_close(judged[row, 1:], expected[-1, 1:])
        own = batch.targets[row][real]
        if not model.config.repeat_bias:
            own_scores = scorer.score_own_item(states.unsqueeze(-2), own).squeeze(-1)
            torch.testing.assert_close(own_scores, expected.gather(1, own[:, None])[:, 0])
            torch.testing.assert_close(full_softmax(states, own, scorer), -expected.log_softmax(1).gather(1, own[:, None]).sum())
        terms += found
    torch.testing.assert_close(judged[2, 1:], model.bias[1:])  # of nobody all there is to tell is popularity
    if terms:
        assert float(encoded.summed["ctreg"]) / int((batch.targets > 0).sum()) == pytest.approx(sum(terms) / len(terms), rel=1e-4)


def test_what_is_worked_in_chunks_is_the_same_and_so_are_its_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch, found = built("din", {}), odd_times(), []
    assert batch.targets is not None
    for chunk in (din.CHUNK, 1):
        monkeypatch.setattr(din, "CHUNK", chunk)
        model.zero_grad()
        loss = full_softmax(model(batch).states[batch.targets > 0], batch.targets[batch.targets > 0], model.scorer())
        loss.backward()
        found.append([loss.detach(), *(p.grad.clone() for p in model.parameters())])
    assert all(gradient.any() for gradient in found[0])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_the_bench_times_din_with_its_scores() -> None:
    model = latency.build_system("din", latency.Setting(length=8, width=8))
    items = torch.randint(1, latency.ITEMS + 1, (2, 8))
    for rows, shape in (("last", (2,)), ("all", (2, 8))):
        latency.timed_pass(model, rows)(Batch(items, items, padded=False)).square().mean().backward()
        assert latency.timed_pass(model, rows)(Batch(items, items)).shape == (*shape, latency.ITEMS + 1)
    assert model.unit.product.weight.grad is not None  # type: ignore[union-attr]


# --- SHAN ------------------------------------------------------------------------------------------------------------


def shan_twin(model: Any, items: list[int], times: list[int]) -> tuple[Tensor, list[float]]:
    """One history without padding, event by event: states `[n, d]`, and −R of every interval."""
    c, zero = model.config, torch.zeros(model.config.width).double()
    x = [model.events.items.weight[item] * 0.3 / 0.02 for item in items]
    gaps = [apart(model, *pair) for pair in itertools.pairwise(times)]
    kinds, since, shares, h = model.marks[items], [1.0, *gaps], [], []
    for t in range(len(items)):
        u = model.base_user + model.user_projection.weight @ (sum(x[: t + 1], zero) / (t + 1))
        first = max(t + 1 - SHORT, 0)
        omega = [zero[0]] * len(items)
        choices = [torch.exp(u @ model.both(x[j]).relu()) for j in range(first, t + 1)]
        total = sum(choices)
        if first:
            alpha = torch.stack([u @ model.long(x[j]).relu() for j in range(first)]).softmax(0)
            beyond = torch.exp(u @ model.both(sum((alpha[j] * x[j] for j in range(first)), zero)).relu())
            total = total + beyond
            omega[:first] = [beyond / total * alpha[j] for j in range(first)]
        omega[first : t + 1] = [choice / total for choice in choices]
        shares.append(omega)
        h.append(sum((omega[j] * x[j] for j in range(t + 1)), zero))
    states = []
    for t in range(len(items)):
        plain = c.intensity == "none"
        parts = [shares[t][j] * x[j] * (1 if plain else rates(model.intensity, h[t], since[t]) @ kinds[j]) for j in range(t + 1)]
        states.append(sum(parts, zero))
    return torch.stack(states), explained(model, h, kinds, gaps) if c.ctreg_weight else []


@pytest.mark.parametrize("form", SHAN, ids=ids)
@torch.no_grad()
def test_shan_is_its_twin_event_by_event(form: dict[str, Any]) -> None:
    model, batch, terms = built("shan", form), odd_times(), []
    assert batch.times is not None and batch.targets is not None
    encoded, last = model(batch), model.last_state(batch)
    assert encoded.states.isfinite().all()
    torch.testing.assert_close(last, encoded.states[:, -1])
    for row in (0, 1, 3):
        real = batch.real[row]
        states, found = shan_twin(model, batch.items[row][real].tolist(), batch.times[row][real].tolist())
        torch.testing.assert_close(encoded.states[row][real], states)
        terms += found
    if terms:
        assert float(encoded.summed["ctreg"]) / int((batch.targets > 0).sum()) == pytest.approx(sum(terms) / len(terms), rel=1e-4)


# --- both ------------------------------------------------------------------------------------------------------------


def test_ctreg_without_intensities_is_one_sentence() -> None:
    for name in ("din", "shan"):
        with pytest.raises(InputError, match="ctreg_weight is of intensities"):
            ModelConfig.known[name](ctreg_weight=0.1)
