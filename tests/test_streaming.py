"""A kept state says what a pass over everything says, whatever the shape, the history and the cut, and whoever comes and goes."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from elastic_core import models
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig
from elastic_core.core.contract import Retrieved
from elastic_core.core.elastic_stream import ElasticStream
from elastic_core.core.stream import open_stream
from elastic_core.errors import InputError
from elastic_core.models import Recommender

N_ITEMS = 40
FOLLOWED = ("elastic", "elastic-slots", "sasrec", "gru4rec", "lrurec", "mamba4rec", "fpmc", "linrec", "lisa")
ENDLESS = {"elastic-slots", "gru4rec", "lrurec", "mamba4rec", "fpmc", "lisa"}  # no window ends
every = pytest.mark.parametrize("name", FOLLOWED)


def made(name: str, length: int = 24, shaken: float = 0.3, **settings: object) -> Recommender:
    """With weights far from their start."""
    torch.manual_seed(0)
    kind = ModelConfig.known[name]
    common = {"width": 16, "dropout": 0.1, "n_subkeys": 4, "k": 3, "codewords": 5, "codebooks": 3, **settings}
    shape = {key: value for key, value in common.items() if key in kind.__dataclass_fields__}
    model = models.build(kind(length=length, **shape), N_ITEMS).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += shaken * torch.randn_like(parameter) * parameter.std(correction=0)
        for path, usual in model.named_buffers():
            if path.endswith(".mean_vote_share"):  # as after training; with equal shares, ties are the rule
                usual += 1e-3 * torch.rand_like(usual)
    return model


def elastic(length: int = 24, **settings: object) -> Recommender:
    return made("elastic", length, shaken=0.0, **settings)


def padded(lengths: list[int], columns: int, seed: int) -> Tensor:
    items = torch.randint(1, N_ITEMS + 1, (len(lengths), columns), generator=torch.Generator().manual_seed(seed))
    return items * (torch.arange(columns) >= columns - torch.tensor(lengths)[:, None])


SHAPES = {
    "elastic": {
        "heads": some.sampled_from([1, 2, 4]), "layers": some.integers(1, 3), "k": some.integers(1, 6),
        "conv_width": some.sampled_from([0, 1, 2, 5, 30]), "memory": some.sampled_from(["shared", "per-layer", "none"]),
        "query_norm": some.sampled_from(["whiten", "layer"]), "gate": some.sampled_from(["softmax", "none"]),
    },
    "elastic-slots": {
        "layers": some.integers(1, 3), "k": some.integers(1, 6), "conv_width": some.sampled_from([0, 1, 5, 30]),
        "memory": some.sampled_from(["shared", "none"]), "votes": some.integers(1, 4),
    },
    "sasrec": {
        "heads": some.sampled_from([1, 2, 4]), "layers": some.integers(1, 3), "conv_width": some.sampled_from([0, 1, 5, 30]),
        "expansion": some.integers(1, 2),
    },
    "linrec": {"heads": some.sampled_from([1, 2, 4]), "layers": some.integers(1, 3)},
    "gru4rec": {"layers": some.integers(1, 3)}, "lrurec": {"layers": some.integers(1, 3)},
    "fpmc": {"width": some.sampled_from([8, 16])},
    "lisa": {"form": some.sampled_from(["base", "soft", "mini", "plain", "frozen"])},
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_streaming_equals_one_batch_pass(name: str) -> None:
    """Every column after the cut; histories of all lengths, the empty one included."""

    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(shape=some.fixed_dictionaries(SHAPES[name]), room=some.integers(1, 23), data=some.data())
    def holds(shape: dict[str, object], room: int, data: some.DataObject) -> None:
        model, cut = made(name, **shape), 24 - room
        lengths = data.draw(some.lists(some.integers(0, cut), min_size=1, max_size=4))
        history = padded(lengths, cut, seed=data.draw(some.integers(0, 9)))
        later = torch.randint(1, N_ITEMS + 1, (len(lengths), room))
        with torch.no_grad():
            window = torch.cat([history, later], dim=1)
            expected = model(Batch(window, torch.nn.functional.pad(history, (room, 0)))).states[:, cut:]
        stream = open_stream(model, room)
        stream.refresh(history)
        found = torch.stack([stream.step(later[:, i]) for i in range(room)], dim=1)
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)

    holds()


@pytest.mark.parametrize(("name", "events"), [("elastic", 1_000), ("elastic-slots", 1_500)])
@torch.no_grad()
def test_a_thousand_events_are_one_pass_over_them(name: str, events: int) -> None:
    """Without positions a model of length 16 goes on for ever; ELASTIC's window has to be as long, and its memory everybody's."""
    settings = {"width": 4, "layers": 1, "k": 2, "n_subkeys": 2, "conv_width": 3, "memory": "none", "repeat_bias": False}
    model = made(name, 16 + events if name == "elastic" else 16, **settings)
    window = padded([16 + events], 16 + events, seed=1)
    stream = open_stream(model, events if name == "elastic" else None)
    found = [stream.refresh(window[:, :16]), *(stream.step(window[:, 16 + i]) for i in range(events))]
    expected = model(Batch(window, window, padded=False)).states[:, 15:]
    torch.testing.assert_close(torch.stack(found, 1), expected, atol=2e-4, rtol=1e-3)
    assert stream.events_left == (0 if name == "elastic" else math.inf)


@every
@torch.no_grad()
def test_people_who_came_at_different_times_advance_together_as_they_do_alone(name: str) -> None:
    """What was stored of each is joined along the first axis, in any order."""
    model, later, met = made(name), torch.randint(1, N_ITEMS + 1, (5, 12)), [0, 3, 1, 5, 2]
    streams, alone = [], []
    for who, n in enumerate((12, 0, 5, 7, 1)):
        stream = open_stream(model, 12)
        stream.refresh(padded([n], 12, seed=n))
        for i in range(met[who]):
            stream.step(later[who : who + 1, i])
        stored = {key: part.clone() for key, part in stream.stored_state().items()}
        streams.append((stored, stream.used.clone()))
        alone.append([stream.step(later[who : who + 1, i])[0] for i in range(met[who], 12)])
    order = [2, 0, 4, 1, 3]
    together = open_stream(model, 12)
    together.restore_state(
        {key: torch.cat([streams[who][0][key] for who in order]) for key in streams[0][0]},
        torch.cat([streams[who][1] for who in order]),
    )
    assert together.n_users == 5 and together.events_left == (12 - max(met) if together.limited else math.inf)
    for i in range(7):
        states = together.step(torch.stack([later[who, met[who] + i] for who in order]))
        torch.testing.assert_close(states, torch.stack([alone[who][i] for who in order]), atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_state_is_summed_in_float32_under_autocast() -> None:
    """500 new events: a state in bfloat16 would stand still long before."""
    model = elastic(length=560, layers=1, conv_width=0, memory="none")  # interests that no rounding of a query can change
    exact, rough = open_stream(model, room=500), open_stream(model, room=500)
    history, later = padded([60, 9], 60, seed=5), torch.randint(1, N_ITEMS + 1, (2, 500))
    exact.refresh(history)
    for i in range(500):
        exact.step(later[:, i])
    with torch.autocast("cpu", torch.bfloat16):
        rough.refresh(history)
        for i in range(500):
            rough.step(later[:, i])
    for name, value in rough.state.items():
        assert value.dtype == torch.float32, name
        torch.testing.assert_close(value, exact.state[name], atol=1e-4, rtol=1e-5)


def test_the_state_keeps_its_size_and_the_window_its_limit() -> None:
    model = elastic(conv_width=8)
    stream = open_stream(model, room=10)
    assert isinstance(stream, ElasticStream)
    stream.refresh(padded([1, 14], 14, seed=1))
    size = stream.count_numbers()
    state, interests, maps = 2 * (3 * (16 + 1) + 8 * 16), 3 * 16, 2 * 3 * (3 * 16)
    assert size == state + interests + maps + 1
    for _ in range(10):
        stream.step(torch.tensor([3, 4]))
    assert stream.count_numbers() == size and stream.events_left == 0
    with pytest.raises(InputError, match="room"):
        stream.step(torch.tensor([3, 4]))
    stream.refresh(padded([14, 14], 14, seed=2))
    assert stream.events_left == 10


@every
def test_everything_that_is_kept_of_a_person_is_counted(name: str) -> None:
    """Whatever the stream holds beside the model and that grows with the people, found by looking, not by name."""

    def held(thing: object, met: set[int]) -> int:
        if isinstance(thing, Tensor):
            storage = thing.untyped_storage()
            new = storage.data_ptr() not in met
            met.add(storage.data_ptr())
            return thing.numel() if new else 0
        if isinstance(thing, Retrieved):  # of what is kept
            return 0
        parts = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list | tuple) else ()
        return sum(held(part, met) for part in parts)

    stream, sizes = open_stream(made(name, heads=2), room=10), []
    for people in (1, 2, 3):
        stream.refresh(padded([9] * people, 14, seed=1))
        stream.step(torch.ones(people, dtype=torch.long))
        sizes.append(held({key: part for key, part in vars(stream).items() if key != "model"}, set()))
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] == stream.count_numbers()


@every
@torch.no_grad()
def test_refreshing_reads_the_last_events_that_fit_and_keeps_float32(name: str) -> None:
    stream, long = open_stream(made(name), room=4), padded([40], 40, seed=3)
    torch.testing.assert_close(stream.refresh(long), stream.refresh(long[:, 40 - stream.reads :]), atol=0, rtol=0)
    assert (stream.events_left == math.inf) == (name in ENDLESS)
    with torch.autocast("cpu", torch.bfloat16):
        stream.refresh(long)
        stream.step(long[:, 0])
    assert {part.dtype for part in stream.state.values()} <= {torch.float32, torch.int64}


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
    with pytest.raises(InputError, match="event by event"):
        open_stream(elastic(bidirectional=True))


@every
@torch.no_grad()
def test_what_is_stored_goes_on_where_it_was(name: str) -> None:
    """A stream restored from the numbers that have to be kept; what follows from them is worked out."""
    model, later = made(name), torch.randint(1, N_ITEMS + 1, (3, 6))
    stream, again = open_stream(model, room=10), open_stream(model, room=10)
    stream.refresh(padded([9, 0, 4], 9, seed=8))
    for i in range(3):
        stream.step(later[:, i])
    stored = {key: part.clone() for key, part in stream.stored_state().items()}
    again.restore_state(stored, stream.used.clone())
    for i in range(3, 6):
        torch.testing.assert_close(again.step(later[:, i]), stream.step(later[:, i]), atol=1e-6, rtol=1e-5)
    if name == "elastic":  # slots, interests and the convolution's window; how they are asked follows
        assert sum(part[0].numel() for part in stored.values()) == 2 * (3 * (16 + 1) + 8 * 16) + 3 * 16
