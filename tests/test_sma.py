"""Self-modulating attention: its twin event by event, its point process against what is known of such, and what it may know."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_contracts import learning, peeks, shown
from torch import Tensor
from torch.nn import functional

from elastic_core import models, recipes
from elastic_core.core.batches import Batch, history_batch
from elastic_core.core.config import TrainConfig
from elastic_core.core.histories import Histories
from elastic_core.core.step import Optimization
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.peers.parts.intensity import TIME_UNIT, EventClock, Intensity, mark_table
from elastic_core.peers.sma import SMA, SMAConfig
from elastic_core.runs.training import train
from elastic_core.services.train import estimate

GENRES = ((), ("a",), ("a", "b"), ("b",), (), ("c", "a", "b"), ("c",), ("a",))
CATALOG = replace(Catalog.from_count(7), genres=GENRES)
YEAR = 365 * 86_400
FORMS: list[dict[str, Any]] = [
    {"intensity": "state"},
    {"intensity": "state", "heads": 2},
    {"intensity": "event"},
    {"intensity": "event", "heads": 2},
]
forms = pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form.values())))


def built(catalog: Catalog | int = CATALOG, spread: float = 0.0, **form: Any) -> SMA:
    """With `spread`, weights far from their start."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {"length": 8, "width": 8, "layers": 2, "dropout": 0.0, "ctreg_weight": 1.0, **form}
    model = models.build(SMAConfig(**shape), catalog).eval()
    assert isinstance(model, SMA)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += spread * torch.randn_like(parameter)
        model.events.items.weight[0] = 0
        model.mean_interval.fill_(2.5)
    return model


def odd_times() -> Batch:
    """Full, short and empty histories; gaps of nothing, of seconds and of years, and events out of order."""
    items = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 2], [0, 0, 0, 5, 2, 2, 1, 4], [0] * 8, [0, 0, 0, 0, 0, 0, 0, 6]])
    steps = torch.tensor([[9, 0, 5, 0, 3 * YEAR, -90, 4_000, 0], [0, 0, 0, 9, 70, 30 * YEAR, 1, 800], [0] * 8, [0] * 7 + [3]])
    targets = functional.pad(items[:, 1:], (0, 1), value=3) * (items > 0)
    return Batch(items, items, targets, 10**9 + steps.cumsum(1))


# --- written out -----------------------------------------------------------------------------------------------------


def rates(part: Intensity, h: Tensor, s: float | Tensor) -> Tensor:
    """λ of every mark as the paper writes it, `[E]`, or `[E, times]` for several times."""
    found, kernels = [], part.endogenous.weight.view(part.marks, -1, len(h))
    for k in range(part.marks):
        inside = kernels[k] @ h
        g = [torch.sigmoid(inside[r] + part.exogenous[k, r] * s) for r in range(len(inside))]
        phi = part.log_scale[k].exp()
        x = sum(part.outer[k, r] * g[r] for r in range(len(g))) + part.base[k]
        found.append(phi * torch.log(1 + torch.exp(x / phi)))
    return torch.stack(found)


def norm(part: torch.nn.LayerNorm, x: Tensor) -> Tensor:
    return (x - x.mean()) / (x.var(correction=0) + part.eps).sqrt() * part.weight + part.bias


def apart(model: SMA, before: int, after: int) -> float:
    return math.log(1 + max(after - before, 0) / TIME_UNIT) / float(model.mean_interval)


def slow(model: SMA, items: list[int], times: list[int]) -> tuple[Tensor, list[float]]:
    """One history without padding, event by event: states `[n, d]`, and −R of every interval of every layer."""
    c, n, terms = model.config, len(items), []
    kinds = model.marks[items]
    gaps = [apart(model, times[i], times[i + 1]) for i in range(n - 1)]
    since, until = [1.0, *gaps], [*gaps, 1.0]
    assert model.events.positions is not None
    x = [model.events.items.weight[item] * math.sqrt(c.width) + model.events.positions[i - n] for i, item in enumerate(items)]
    for block in model.blocks:
        at, wide = block.attention, c.width // c.heads
        h_in = [norm(block.norm, row) for row in x]
        weights, h = torch.zeros(c.heads, n, n, dtype=torch.float64), []
        for i in range(n):
            parts = []
            for head in range(c.heads):
                own = slice(head * wide, (head + 1) * wide)
                scores = [at.query(h_in[i])[own] @ at.key(h_in[j])[own] / math.sqrt(wide) for j in range(i + 1)]
                weights[head, i, : i + 1] = torch.stack(scores).softmax(0)
                parts.append(sum(weights[head, i, j] * at.history(h_in[j])[own] for j in range(i + 1)))
            h.append(torch.cat(parts))  # type: ignore[arg-type]
        out = []
        for i in range(n):
            mixed = torch.zeros(c.width, dtype=torch.float64)
            for j in range(i + 1):
                if c.intensity == "state":
                    factor = rates(at.intensity, h[i], since[i]) @ kinds[j]
                else:
                    factor = rates(at.intensity, h[j], until[j] if j < i else 1.0) @ kinds[j]
                mixed += factor * weights[:, i, j].repeat_interleave(wide) * at.value(h_in[j])
            y = x[i] + at.output(mixed)
            forward = block.feed_forward
            out.append(y + forward.outer(functional.gelu(forward.inner(norm(forward.norm, y)))))
        for i, gap in enumerate(gaps):
            fine = torch.linspace(0, gap, 2_001, dtype=torch.float64)
            integral = torch.trapezoid(rates(at.intensity, h[i], fine).mean(0), fine)
            terms.append(float(integral - (rates(at.intensity, h[i], gap) @ kinds[i + 1]).log()))
        x = out
    return torch.stack([norm(model.norm, row) for row in x]), terms


@forms
@torch.no_grad()
def test_it_is_what_it_is_event_by_event(form: dict[str, Any]) -> None:
    """States of every row, the last state alone, and CTReg with its integral by a fine sum; odd times, padding and emptiness."""
    model, batch = built(spread=0.4, **form).double(), odd_times()
    assert batch.times is not None
    encoded, last, terms = model(batch), model.last_state(batch), []
    assert encoded.states.isfinite().all() and last.isfinite().all()
    torch.testing.assert_close(last, encoded.states[:, -1])
    for row in (0, 1, 3):
        real = batch.items[row] > 0
        states, found = slow(model, batch.items[row][real].tolist(), batch.times[row][real].tolist())
        torch.testing.assert_close(encoded.states[row][real], states)
        terms += found
    n_targets = int((batch.targets > 0).sum())  # type: ignore[operator]
    assert float(encoded.summed["ctreg"]) / n_targets == pytest.approx(sum(terms) / len(terms), rel=1e-4)
    still = replace(batch, times=batch.times.flip(1))
    assert (model(still).states - encoded.states)[:2].abs().max() > 1e-3  # when things happened matters


def test_ctreg_finds_the_rates_of_a_poisson_process() -> None:
    """The closed form: with intervals of mean 1 and marks of shares 0.8 and 0.2, the likeliest intensities are 1.6 and 0.4."""
    torch.manual_seed(0)
    part, h = Intensity(4, 2), torch.ones(1_000, 4)
    took = torch.distributions.Exponential(1.0).sample((1_000,))
    took = took / took.mean()
    kinds = functional.one_hot((torch.arange(1_000) % 5 == 0).long(), 2).float()
    optimiser = torch.optim.Adam(part.parameters(), lr=0.03)
    for _ in range(120):
        optimiser.zero_grad()
        part.interval_surprise(h, took, kinds).mean().backward()
        optimiser.step()
    for since in (0.2, 1.0, 2.0):
        found = part(h[0], torch.tensor(since))
        torch.testing.assert_close(found, torch.tensor([1.6, 0.4]), atol=0.12, rtol=0)


# --- what it may know ------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_the_published_interval_would_be_caught(small_world: Dataset) -> None:
    class Published(SMA):
        def _event_clock(self, batch: Batch) -> EventClock:
            clock = super()._event_clock(batch)
            return clock._replace(since=clock.until)

    torch.manual_seed(0)
    model = Published(built(small_world.catalog, length=16).config, small_world.catalog).eval()
    assert max(moved for moved, _ in peeks(model, shown(small_world, lambda world: learning("all", world)))) > 1e-4


@forms
@torch.no_grad()
def test_what_is_not_known_is_a_usual_interval(form: dict[str, Any]) -> None:
    model, items = built(spread=0.3, **form), odd_times().items
    usual = round(60 * math.expm1(2.5))
    timed = Batch(items, items, times=torch.arange(8).expand(4, 8) * usual)
    torch.testing.assert_close(model(Batch(items, items)).states, model(timed).states, atol=1e-4, rtol=1e-3)
    kept = [5, 2, 7]
    alone, known = history_batch(kept, 8), history_batch(kept, 8, [70, 80, 90_000])
    assert known.times is not None and known.times[0].tolist() == [0] * 5 + [70, 80, 90_000] and alone.times is None
    assert not torch.allclose(model.score(alone), model.score(known), atol=1e-5)


def test_data_without_times_is_one_sentence_before_anything_is_written(small_world: Dataset, tmp_path: Path) -> None:
    timeless, said = replace(small_world, has_times=False), r"sma reads when events happened, and .* has no times"
    with pytest.raises(InputError, match=said):
        train(recipes.toy("sma"), timeless, tmp_path / "run")
    with pytest.raises(InputError, match=said):
        estimate.estimate_time(recipes.toy("sma"), timeless)
    assert not (tmp_path / "run").exists()


@torch.no_grad()
def test_calibration_learns_the_usual_interval() -> None:
    model, items = built(), torch.tensor([[1, 2, 3], [0, 4, 5], [0, 0, 6]])
    model.calibrate(Batch(items, items, times=torch.tensor([[0, 60, 60], [0, 10, 370], [0, 0, 5]])))
    assert float(model.mean_interval) == pytest.approx((math.log(2) + 0 + math.log(7)) / 3)
    before = model.mean_interval.clone()
    for times in (None, torch.zeros(3, 3, dtype=torch.int64)):
        model.calibrate(Batch(items, items, times=times), 0.5)
    assert float(model.mean_interval) == pytest.approx(float(before) / 2)  # the first of them knew nothing
    model.mean_interval.zero_()  # data whose events all happen at once
    assert model(Batch(items, items, times=torch.zeros(3, 3, dtype=torch.int64))).states.isfinite().all()


def test_marks_are_shares_of_genres() -> None:
    half, third = 1 / 2, 1 / 3
    a, ab, b, none, abc, c = [1, 0, 0, 0], [half, half, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [third] * 3 + [0], [0, 0, 1, 0]
    np.testing.assert_allclose(mark_table(CATALOG, 9), [[0] * 4, a, ab, b, none, abc, c, a], rtol=1e-6)
    for most, wide in ((1, 1), (2, 2), (3, 3), (4, 4)):  # the rarest are one, with those that have none
        table = mark_table(CATALOG, most)
        assert table.shape == (8, wide)
        np.testing.assert_allclose(table.sum(1), [0] + [1] * 7, rtol=1e-6)
    assert mark_table(CATALOG, 3)[4].tolist() == mark_table(CATALOG, 3)[6].tolist() == [0, 0, 1]
    assert mark_table(Catalog.from_count(3), 9).tolist() == [[0], [1], [1], [1]]


# --- learning --------------------------------------------------------------------------------------------------------


def hurried(people: int = 40, events: int = 24, n: int = 12) -> Dataset:
    """A world in which the step to the next item is 1 after a short interval and 5 after a long one: times alone can tell."""
    rng = np.random.default_rng(0)
    late = rng.random((people, events)) < 0.5
    gaps = np.where(late, 40_000, 30) + rng.integers(0, 10, late.shape)
    steps = np.where(late, 5, 1)
    starts = rng.integers(0, n, (people, 1))
    items = (starts + np.concatenate([np.zeros((people, 1), int), steps[:, :-1].cumsum(1)], 1)) % n + 1
    flat = Histories(
        items.astype(np.int32).ravel(), (10**9 + gaps.cumsum(1)).ravel(), np.arange(people + 1) * events,
        np.array([str(i) for i in range(people)], dtype=object),
    )  # fmt: skip
    return Dataset(name="hurried", label="hurried", catalog=Catalog.from_count(n), histories=flat, licence="")


@pytest.mark.parametrize(("form", "most"), [("state", 0.23), ("event", 0.46)])
def test_it_learns_what_only_time_can_tell(form: str, most: float) -> None:
    """Without the clock one of two items is a guess, ln 2 = 0.69 nats; with it the loss falls below a third of that, or two
    thirds where the newest event has a usual interval."""
    world = hurried()
    model = built(world.catalog, intensity=form, length=24, width=16, layers=1)
    learner = Optimization(
        model.train(), learning("all", world, length=24), TrainConfig(learning_rate=2e-2, batch=40), torch.device("cpu")
    )
    loss, sides = [], []
    for epoch in range(100):
        for batch in learner.objective.epoch_batches(epoch, 0, 40):
            learner.update_statistics(world, epoch, epoch)
            learned = learner.step(batch)
            loss.append(learned.total / learned.targets)
            sides.append(learned.auxiliary["ctreg"])
    assert loss[-1] < most and sides[-1] < sides[0] - 0.02  # CTReg comes second: intensities serve the prediction first
