"""A state of constant size says what a pass over the whole window says, whatever the shape, the history and the cut."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from elastic_core import models
from elastic_core.config import ModelConfig
from elastic_core.data.batches import Batch
from elastic_core.errors import InputError
from elastic_core.models import open_stream
from elastic_core.models.elastic import ElasticStream

N_ITEMS = 40


def elastic(length: int = 24, **settings: object) -> models.Recommender:
    torch.manual_seed(0)
    shape = {"width": 16, "dropout": 0.1, "side": 4, "k": 3, "stride": 4, "window": 2, **settings}
    return models.build(ModelConfig.known["elastic"](length=length, **shape), N_ITEMS).eval()


def padded(lengths: list[int], columns: int, seed: int) -> Tensor:
    items = torch.randint(1, N_ITEMS + 1, (len(lengths), columns), generator=torch.Generator().manual_seed(seed))
    return items * (torch.arange(columns) >= columns - torch.tensor(lengths)[:, None])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    shape=some.fixed_dictionaries(
        {
            "heads": some.sampled_from([1, 2, 4]),
            "layers": some.integers(1, 3),
            "k": some.integers(1, 6),
            "conv_width": some.sampled_from([0, 1, 2, 5, 30]),
            "memory": some.sampled_from(["shared", "per-layer", "none"]),
            "query_norm": some.sampled_from(["whiten", "layer"]),
            "gate": some.sampled_from(["softmax", "sigmoid"]),
        }
    ),
    room=some.integers(1, 23),
    data=some.data(),
)
def test_streaming_equals_one_batch_pass(shape: dict[str, object], room: int, data: some.DataObject) -> None:
    """Every column after the cut; histories of all lengths, the empty one included; weights far from their start."""
    model = elastic(**shape)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter) * parameter.std(correction=0)
    cut = 24 - room
    lengths = data.draw(some.lists(some.integers(0, cut), min_size=1, max_size=4))
    history = padded(lengths, cut, seed=data.draw(some.integers(0, 9)))
    later = torch.randint(1, N_ITEMS + 1, (len(lengths), room))
    window = torch.cat([history, later], dim=1)
    earlier = torch.nn.functional.pad(history, (room, 0))
    with torch.no_grad():
        expected = model(Batch(window, earlier)).states[:, cut:]
    stream = open_stream(model, room)
    stream.refresh(history)
    found = torch.stack([stream.step(later[:, i]) for i in range(room)], dim=1)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)


@torch.no_grad()
def test_a_state_is_summed_in_float32_under_autocast() -> None:
    """500 new events: a state in bfloat16 would stand still long before."""
    model = elastic(length=560, layers=1, conv_width=0, memory="none")  # interests that no rounding of a query can change
    exact, rough = open_stream(model, room=500), open_stream(model, room=500)
    assert isinstance(exact, ElasticStream) and isinstance(rough, ElasticStream)
    history, later = padded([60, 9], 60, seed=5), torch.randint(1, N_ITEMS + 1, (2, 500))
    exact.refresh(history)
    for i in range(500):
        exact.step(later[:, i])
    with torch.autocast("cpu", torch.bfloat16):
        rough.refresh(history)
        for i in range(500):
            rough.step(later[:, i])
    for name, value in vars(rough.states[0]).items():
        assert value.dtype == torch.float32, name
        torch.testing.assert_close(value, getattr(exact.states[0], name), atol=1e-4, rtol=1e-5)


def test_the_state_keeps_its_size_and_the_window_its_limit() -> None:
    model = elastic(conv_width=8)
    stream = open_stream(model, room=10)
    assert isinstance(stream, ElasticStream)
    stream.refresh(padded([1, 14], 14, seed=1))
    size = stream.numbers()
    state, interests, maps = 2 * (3 * (16 + 1) + 7 * 16), 3 * 16, 2 * 3 * (3 * 16)
    assert size == state + interests + maps
    for _ in range(10):
        stream.step(torch.tensor([3, 4]))
    assert stream.numbers() == size and stream.left == 0
    with pytest.raises(InputError, match="room"):
        stream.step(torch.tensor([3, 4]))
    stream.refresh(padded([14, 14], 14, seed=2))
    assert stream.left == 10


@pytest.mark.parametrize(
    "settings",
    [{}, {"heads": 4, "conv_width": 5}, {"conv_width": 0}, {"memory": "per-layer", "layers": 3}, {"memory": "none"}],
    ids=str,
)
def test_everything_that_is_kept_of_a_person_is_counted(settings: dict[str, object]) -> None:
    """Whatever the stream holds beside the model and that grows with the people, found by looking, not by name."""

    def held(thing: object) -> int:
        if isinstance(thing, Tensor):
            return thing.numel()
        parts = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list) else vars(thing).values()
        return sum(
            held(part) for part in parts if isinstance(part, Tensor | list | dict) or hasattr(part, "__dataclass_fields__")
        )

    stream, sizes = open_stream(elastic(**settings), room=10), []
    for people in (1, 2, 3):
        stream.refresh(padded([9] * people, 14, seed=1))
        stream.step(torch.ones(people, dtype=torch.long))
        sizes.append(held({name: part for name, part in vars(stream).items() if name != "model"}))
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] == stream.numbers()


@torch.no_grad()
def test_refreshing_reads_the_last_events_that_fit() -> None:
    model = elastic()
    long = padded([40], 40, seed=3)
    stream = open_stream(model, room=4)
    torch.testing.assert_close(stream.refresh(long), stream.refresh(long[:, -20:]), atol=0, rtol=0)


@torch.no_grad()
def test_moving_the_end_is_another_question() -> None:
    """The limit that the module states: with positions counted from the newest event, the past would have to be read anew."""
    model = elastic()
    window = padded([24], 24, seed=4)
    stream = open_stream(model, room=12)
    stream.refresh(window[:, :12])
    state = stream.step(window[:, 12])
    short = window[:, :13]
    assert not torch.allclose(state, model.last_state(Batch(short, short)), atol=1e-4)
    model.events.positions.zero_()  # type: ignore[union-attr, operator]
    stream.refresh(window[:, :12])
    known = torch.nn.functional.pad(short[:, :12], (1, 0))
    torch.testing.assert_close(stream.step(window[:, 12]), model.last_state(Batch(short, known)), atol=1e-5, rtol=1e-4)


def test_a_room_that_leaves_no_history_is_refused() -> None:
    for room in (0, 24, -1):
        with pytest.raises(InputError, match="room"):
            open_stream(elastic(), room)
    with pytest.raises(InputError, match="constant size"):
        open_stream(elastic(bidirectional=True))
