"""Readers, which fold a model's weights for a series of histories: the same states as `last_state`, and weights that changed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from elastic_core import models
from elastic_core.bench.latency import Setting, build_system, draw_histories, timed_pass
from elastic_core.core import elastic_reader, folded
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig
from elastic_core.core.elastic import top_pairs
from elastic_core.core.elastic_reader import ElasticReader
from elastic_core.core.layers import Whitening
from elastic_core.core.sasrec_reader import SASRecReader
from elastic_core.models import Recommender

N_ITEMS = 40


def build(name: str = "elastic", dtype: torch.dtype = torch.float64, **settings: Any) -> Recommender:
    """A model none of whose numbers is zero, or a fold could leave it out unseen."""
    torch.manual_seed(0)
    sizes = {"length": 300, "width": 16, "layers": 2, "k": 3, "n_subkeys": 6, "conv_width": 4 if name == "elastic" else 0}
    kind = ModelConfig.known[name]
    known = {key: value for key, value in {**sizes, **settings}.items() if key in kind.__dataclass_fields__}
    model = models.build(kind(**known), N_ITEMS).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        for module in model.modules():
            if isinstance(module, Whitening):
                module.mean.normal_(0, 0.1)
                module.transform.normal_(0, 0.5)
        model.events.items.weight[0] = 0
    return model.to(dtype)


def read(model: Recommender, batch: Batch) -> Tensor:
    with torch.no_grad():
        return model.prepare_states()[0](batch)


SETTINGS = [
    ("elastic", {}),
    ("elastic", {"layers": 1}),
    ("elastic", {"layers": 3, "gate": "none"}),
    ("elastic", {"conv_width": 0, "k": 5}),
    ("elastic", {"bidirectional": True}),
    ("elastic", {"bidirectional": True, "layers": 3, "conv_width": 0, "gate": "none"}),
    ("elastic", {"bidirectional": True, "layers": 1}),
    ("sasrec", {}),
    ("sasrec", {"folded": True, "layers": 3, "expansion": 2}),
    ("sasrec", {"folded": True, "conv_width": 3, "layers": 1}),
    ("sasrec", {"conv_width": 3}),
]


@pytest.mark.parametrize(("name", "settings"), SETTINGS, ids=str)
@pytest.mark.parametrize("columns", [1, 2, 7, 8, 13, 64, 100, 149, 300])
@torch.no_grad()
def test_a_reader_gives_the_states_of_last_state(name: str, settings: dict[str, Any], columns: int) -> None:
    """One history, several, padded ones and an empty one, of lengths with one chunk and many, full blocks and windows or not."""
    model = build(name, **settings)
    judge = model.prepare_states()[0]
    assert isinstance(judge, ElasticReader | SASRecReader)
    items = torch.randint(1, N_ITEMS + 1, (5, columns))
    padded = items * (torch.arange(columns) >= torch.tensor([0, columns // 3, columns - 1, columns, columns // 2])[:, None])
    for part, is_padded in ((items[:1], False), (items, False), (items, True), (padded, True), (padded[1:2], True)):
        batch = Batch(part, part, padded=is_padded)
        torch.testing.assert_close(judge(batch), model.last_state(batch), atol=1e-11, rtol=1e-11)


@torch.no_grad()
def test_a_reader_of_many_events_and_windows_is_near_in_float32() -> None:
    items = torch.randint(1, N_ITEMS + 1, (2, 2_000))
    for name in ("elastic", "sasrec"):
        for two_way in (False, True):
            model = build(name, torch.float32, length=2_000, bidirectional=two_way)
            batch = Batch(items, items, padded=False)
            torch.testing.assert_close(read(model, batch), model.last_state(batch), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_reader_retrieves_for_what_retrieval_may_read() -> None:
    items = torch.randint(1, N_ITEMS + 1, (4, 30))
    earlier = items * (torch.arange(30) < 20)
    asked = earlier.roll(10, 1)
    batch = Batch(items, asked, padded=False)
    for two_way in (False, True):
        model = build(bidirectional=two_way)
        torch.testing.assert_close(read(model, batch), model.last_state(batch), atol=1e-11, rtol=1e-11)
        assert not torch.allclose(read(model, batch), read(model, Batch(items, items, padded=False)), atol=1e-4)


@pytest.mark.parametrize("few", [0, 1 << 20])
def test_the_best_sums_are_those_of_product_keys(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic_reader, "FEW_SUMS", few)
    for k, n_subkeys in ((1, 2), (3, 4), (9, 3), (8, 32)):
        halves = torch.randn(7, 2, n_subkeys)
        experts, scores = elastic_reader.find_best(halves, k)
        slow = top_pairs(halves, k)
        assert torch.equal(experts, slow.indices) and torch.allclose(scores, slow.scores)


def step(model: Recommender) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    items = torch.randint(1, N_ITEMS + 1, (3, 12))
    model(Batch(items, items)).states.square().sum().backward()
    optimizer.step()


def write_data(model: Recommender) -> None:
    for parameter in model.parameters():
        parameter.data.mul_(1.5)
    for buffer in model.buffers():
        buffer.data.add_(0.1)


def load_others(model: Recommender) -> None:
    model.load_state_dict({name: value + 0.1 for name, value in model.state_dict().items()})


def round_numbers(model: Recommender) -> None:
    model.to(torch.float32)


@pytest.mark.parametrize("change", [step, write_data, load_others, round_numbers])
@pytest.mark.parametrize(("name", "settings"), [("elastic", {}), ("elastic", {"bidirectional": True}), ("sasrec", {})], ids=str)
def test_whoever_prepares_again_reads_by_weights_that_changed(
    name: str, settings: dict[str, Any], change: Callable[[Recommender], None]
) -> None:
    model, items = build(name, **settings), torch.randint(1, N_ITEMS + 1, (3, 20))
    before = read(model, Batch(items, items))
    change(model)
    with torch.no_grad():
        after = model.last_state(Batch(items, items))
    tolerance = 1e-11 if after.dtype == torch.float64 else 1e-5
    torch.testing.assert_close(read(model, Batch(items, items)), after, atol=tolerance, rtol=tolerance)
    assert change is round_numbers or not torch.allclose(before, after, atol=1e-3)


def test_what_learns_or_has_no_reader_is_read_as_ever() -> None:
    model, items = build(dtype=torch.float32), torch.randint(1, N_ITEMS + 1, (3, 20))
    assert model.prepare_states()[0] == model.last_state, "a gradient may be asked for"
    with torch.no_grad():
        assert model.train().prepare_states()[0] == model.last_state
        judge = model.eval().prepare_states()[0]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(judge(Batch(items, items)), model.last_state(Batch(items, items)))
        for settings in (
            {"heads": 2}, {"memory": "none"}, {"memory": "per-layer"}, {"query": "mean"}, {"query_norm": "layer"},
            {"dispatch": "none"},
        ):  # fmt: skip
            other = build(**settings)
            assert other.prepare_states()[0] == other.last_state
        for settings in ({"heads": 2}, {"fused": False}):
            other = build("sasrec", **settings)
            assert other.prepare_states()[0] == other.last_state


# --- what a GPU is given to do ---------------------------------------------------------------------------------------

TIMED = ["elastic", "elastic-two-way", "elastic-slots", "elastic-votes", "sasrec-fused", "sasrec-folded", "lrurec"]


def one_history(length: int) -> Batch:
    items = draw_histories(Setting(length=length, batch=1), torch.device("cpu"))
    return Batch(items, items, padded=False)


@pytest.mark.parametrize("system", TIMED)
def test_what_is_timed_compiles_into_one_graph(system: str) -> None:
    """Of a training step tests/test_contracts.py says so."""
    judge = timed_pass(build_system(system, Setting(length=80, width=8, k=2, n_subkeys=4)).eval(), "last")
    torch._dynamo.reset()
    with torch.inference_mode():
        explained = torch._dynamo.explain(judge)(one_history(80))
    assert not explained.graph_break_count, explained.break_reasons


class Launches(TorchDispatchMode):
    """Counts the operations that do something: on a GPU each is a kernel that is launched, or several; a view is none."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not func.is_view and func.overloadpacket.__name__ != "_unsafe_view"
        return func(*args, **(kwargs or {}))


@torch.no_grad()
def count_launches(system: str, length: int) -> int:
    judge = timed_pass(build_system(system, Setting(length=length, k=8)).eval(), "last")
    with Launches() as launches:
        judge(one_history(length))
    return launches.count


def test_one_history_takes_at_most_two_and_a_half_times_the_launches_of_sasrec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice is wanted. A longer history takes more of them: another level of the query network, and chunks."""
    monkeypatch.setattr(folded, "FEW_ROWS", 0)  # a GPU takes the convolution at once
    counts = {n: [count_launches(system, n) for system in ("sasrec-fused", "elastic", "elastic-two-way")] for n in (64, 1_024)}
    assert counts == {64: [28, 68, 66], 1_024: [28, 100, 83]}
