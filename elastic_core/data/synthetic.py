"""The planted world: people moved by a few interests each, with a known truth behind every event.

An interest is a cluster of items with its own dynamics: from each item three successors (the first ones form one cycle
through the cluster, so that nobody is caught in a loop). A user is a mixture over a few interests that drifts. Each event is

    noise        with chance `noise`: any item, by global popularity (Zipf)
    successor    else, with chance `determinism`: a successor of the last item met in the interest that moves the user
    popularity   else: an item of that interest, by popularity

With `dwell` people stay in an interest for a while, so that the others wait long: who comes back goes on where they were, perhaps
hundreds of events ago. The two held-out events are of any of their interests alike, so that they ask after long silences too.

Items may come again, but never twice in a row. One seed gives the same arrays on every platform: only PCG64, integers and
exactly rounded operations decide (no exp or log of floats), and popularity is rounded to whole numbers.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy import ndarray
from numpy.random import Generator

from elastic_core.core.histories import Catalog, Dataset, Histories, count_numbers
from elastic_core.data.preprocessing import k_core_mask
from elastic_core.errors import InputError
from elastic_core.run_config import PlantedConfig

NAMES = (
    "Jazz, Chess, Baking, Cycling, Gardening, Astronomy, Sailing, Pottery, Poetry, Tennis, Coffee, Origami, Opera, Fishing, "
    "Robots, Yoga, Comics, Skiing, Cheese, Dinosaurs, Ballet, Boxing, Magic, Trains, Knitting, Surfing, Birdwatching, "
    "Football, Chocolate, Photography, Camping, Karate, Philosophy, Drums, Golf, Beekeeping, Sushi, Fashion, Archery, "
    "Mushrooms, Piano, Climbing, Puzzles, Theatre, Volcanoes, Motorbikes, Tea, Painting, Swimming, Hip-Hop, Cats, "
    "Architecture, Rowing, Fairy Tales, Guitar, Barbecue, Crime Novels, Dogs, Horse Riding, Ancient Rome, Board Games, "
    "Juggling, Heavy Metal, Marathons"
)
SUCCESSOR_SHARES = (0.6, 0.25, 0.15)  # an item's first, second and third successor within its interest
NOISE = -1  # the interest of an event that has none
SHORTEST, HELD_OUT = 8, 2
SUCCESSOR_STEPS = np.cumsum(SUCCESSOR_SHARES)[:-1]


@dataclass(frozen=True, eq=False)
class Truth:
    """The planted interests, aligned with the dense ids and events of the Dataset that carries them."""

    interests: tuple[str, ...]
    item_interest: ndarray  # int32 [n_items + 1]; -1 for padding
    event_interest: ndarray  # int32 [events]; -1 for an event drawn from global popularity
    user_mixture: ndarray  # float32 [users, interests], in force at the user's last event; rows sum to 1
    successors: ndarray  # int32 [n_items + 1, 3], dense ids in order of probability; 0 where dropped by the k-core
    popularity: ndarray  # float64 [n_items + 1], relative
    determinism: float
    noise: float

    def oracle(self, items: ndarray, starts: ndarray, ends: ndarray, users: ndarray) -> ndarray:
        """float64 [B, n_items + 1]: the next item's distribution, given who the user is and what truly moved them.

        Reads the events starts[b]:ends[b] of the flat `items`. A ceiling for any model, not a rival: it knows the mixture in
        force and each event's interest. It is exact but for interests that left and came back, and dropped items.
        """
        scores = np.zeros((len(ends), len(self.item_interest)))
        popular = self.popularity / self.popularity.sum()
        member = self.item_interest[None, :] == np.arange(len(self.interests))[:, None]
        within = member * self.popularity
        within = within / np.maximum(within.sum(1, keepdims=True), 1e-300)
        for row, (start, end, user) in enumerate(zip(starts, ends, users, strict=True)):
            scores[row] = self.noise * popular
            for interest in np.flatnonzero(self.user_mixture[user]):
                share = (1 - self.noise) * float(self.user_mixture[user, interest])
                seen_places = np.flatnonzero(self.event_interest[start:end] == interest)
                follow = self.determinism if len(seen_places) else 0.0
                scores[row] += share * (1 - follow) * within[interest]
                if len(seen_places):
                    np.add.at(
                        scores[row], self.successors[items[start + seen_places[-1]]], share * follow * np.array(SUCCESSOR_SHARES)
                    )
            scores[row, [0, int(items[end - 1])]] = 0  # padding, and the item just met: never twice in a row
        return scores


class _World(NamedTuple):
    """The items (0-based): to which interest they belong, how popular they are, what follows them."""

    interest: ndarray  # int64 [items]
    popularity: ndarray  # int64 [items]
    successors: ndarray  # int64 [items, 3]
    by_interest: ndarray  # int64 [items], items grouped by interest
    steps: ndarray  # int64 [items], running sum of popularity in that order
    first: ndarray  # int64 [interests], running sum before the interest's first item
    mass: ndarray  # int64 [interests]


def planted(config: PlantedConfig, k_core: int = 5) -> Dataset:
    """Draw a planted world. Items and users that the k-core drops leave the truth as well."""
    _check_config(config)
    rng = Generator(np.random.PCG64(config.seed))
    world = _draw_items(config, rng)
    lengths = _draw_lengths(config, rng)
    events, interests, mixture = _walk_users(config, world, lengths, rng)
    times = _draw_times(lengths, rng)

    users = np.repeat(np.arange(config.users, dtype=np.int32), lengths)
    keep = k_core_mask(users, events, k_core)
    sizes = count_numbers(users, config.users, lambda piece: keep[piece])
    people_left = np.flatnonzero(sizes)
    if len(people_left) < 2:
        raise InputError(f"the planted world has fewer than two users left after the {k_core}-core filter")
    items_left = np.flatnonzero(count_numbers(events, config.items, lambda piece: keep[piece]))
    dense = np.zeros(config.items, dtype=np.int32)
    dense[items_left] = np.arange(1, len(items_left) + 1)
    events = dense[events[keep]]
    interests = interests[keep]
    times = times[keep]
    named = NAMES.split(", ")
    names = [named[i % len(named)] + (f" ({i // len(named) + 1})" if i >= len(named) else "") for i in range(config.interests)]
    of_item = world.interest[items_left]
    number = pd.Series(world.interest).groupby(world.interest).cumcount().to_numpy()[items_left] + 1  # within its interest
    titles = [f"{names[interest]} {count}" for interest, count in zip(of_item, number, strict=True)]
    return Dataset(
        name="planted",
        label="Planted interests",
        catalog=Catalog(
            np.array(["", *map(str, items_left + 1)], dtype=object),
            np.array(["", *titles], dtype=object),
            ((), *((names[interest],) for interest in of_item)),
        ),
        histories=Histories(
            events,
            times,
            np.concatenate([[0], np.cumsum(sizes[people_left])]),
            np.array([str(user + 1) for user in people_left], dtype=object),
        ),
        licence="Generated; free to use and share.",
        titles_may_be_shared=True,
        truth=Truth(
            interests=tuple(names),
            item_interest=np.concatenate([[NOISE], of_item]).astype(np.int32),
            event_interest=interests,
            user_mixture=mixture[people_left],
            successors=np.concatenate([np.zeros((1, 3), np.int32), dense[world.successors[items_left]]]),
            popularity=np.concatenate([[0.0], world.popularity[items_left]]),
            determinism=config.determinism,
            noise=config.noise,
        ),
    )


def _check_config(config: PlantedConfig) -> None:
    """Say what the bounds of single settings cannot."""
    if config.items < 4 * config.interests:
        raise InputError(f"data.planted.items must be at least 4 x interests = {4 * config.interests}, not {config.items}")
    if config.interests_per_user > config.interests:
        raise InputError(f"data.planted.interests_per_user must lie in 1 to {config.interests}, not {config.interests_per_user}")
    if not SHORTEST <= config.mean_length <= config.max_length:
        raise InputError(f"data.planted needs {SHORTEST} <= mean_length <= max_length")
    if config.popularity > 2:
        raise InputError("data.planted.popularity must lie in 0 to 2, and seed must not be negative")


def _draw_items(config: PlantedConfig, rng: Generator) -> _World:
    interest = rng.permutation(np.arange(config.items) % config.interests)
    rank = rng.permutation(config.items) + 1.0
    popularity = np.maximum(np.rint(1e9 * rank**-config.popularity), 1).astype(np.int64)
    # A random cycle through each interest: shuffle, then group. The successor is the next of the group, wrapping around.
    shuffled = rng.permutation(config.items)
    cycle = shuffled[np.argsort(interest[shuffled], kind="stable")]
    sizes = np.bincount(interest, minlength=config.interests)
    start = np.cumsum(sizes) - sizes
    place = np.arange(config.items) - start[interest[cycle]]
    size = sizes[interest[cycle]]
    # Steps 1, and two distinct random ones in 2…size-1: three different successors, never the item itself.
    second = 2 + np.floor(rng.random(config.items) * (size - 2)).astype(np.int64)
    third = 2 + (second - 2 + 1 + np.floor(rng.random(config.items) * (size - 3)).astype(np.int64)) % (size - 2)
    successors = np.empty((config.items, 3), dtype=np.int64)
    for column, step in enumerate((np.ones_like(second), second, third)):
        successors[cycle, column] = cycle[start[interest[cycle]] + (place + step) % size]
    steps = np.cumsum(popularity[cycle])
    mass = np.add.reduceat(popularity[cycle], start)  # no interest is without items
    return _World(interest, popularity, successors, cycle, steps, np.cumsum(mass) - mass, mass)


def _draw_lengths(config: PlantedConfig, rng: Generator) -> ndarray:
    """A heavy tail (Lomax, shape 2) cut at max_length; the scale makes the cut mean come out at mean_length."""
    room, target = config.max_length - SHORTEST, config.mean_length - SHORTEST
    if target >= room:
        return np.full(config.users, config.max_length, dtype=np.int64)
    scale = target * room / (room - target)
    tail = scale * (1 / np.sqrt(1 - rng.random(config.users)) - 1)
    return SHORTEST + np.floor(np.minimum(tail, room)).astype(np.int64)


def _draw_distinct_interests(config: PlantedConfig, rng: Generator) -> ndarray:
    """int64 [users, interests_per_user]: different interests for each user, drawn without replacement."""
    chosen = np.empty((config.users, 0), dtype=np.int64)
    for slot in range(config.interests_per_user):
        draw = rng.integers(0, config.interests - slot, config.users)
        for used_interest in np.sort(chosen, axis=1).T:
            draw += draw >= used_interest
        chosen = np.column_stack([chosen, draw])
    return chosen


def _walk_users(config: PlantedConfig, world: _World, lengths: ndarray, rng: Generator) -> tuple[ndarray, ndarray, ndarray]:
    """All users step through time side by side; the longest come first, so those still active are always a prefix."""
    users = np.argsort(-lengths, kind="stable")
    begin = (np.cumsum(lengths) - lengths)[users]
    active = np.searchsorted(-lengths[users], -np.arange(int(lengths.max())), side="left")
    slots = _draw_distinct_interests(config, rng)
    weights = rng.integers(1, 100, slots.shape) ** 2
    last = np.full(slots.shape, -1, dtype=np.int64)
    previous = np.full(config.users, -1, dtype=np.int64)
    events_left, events_held = lengths[users], np.zeros(config.users, dtype=np.int64)
    events = np.empty(int(lengths.sum()), dtype=np.int32)
    interests = np.empty(int(lengths.sum()), dtype=np.int32)
    for step, n in enumerate(active.tolist()):
        chance = rng.random((5, n))
        moved = np.flatnonzero(rng.random(n) < config.drift) if step else np.empty(0, dtype=np.int64)
        _drift_tastes(config, moved, slots, weights, last, rng)
        row = np.arange(n)
        running = np.cumsum(weights[:n], axis=1)
        slot = (chance[0][:, None] * running[:, -1:] >= running).sum(1)
        if config.dwell:
            is_held_out = events_left[:n] - step <= HELD_OUT
            stays = ~is_held_out & (rng.random(n) < config.dwell) if step else np.zeros(n, dtype=bool)
            slot = np.where(
                stays, events_held[:n], np.where(is_held_out, np.floor(chance[0] * slots.shape[1]).astype(np.int64), slot)
            )
            events_held[:n] = slot
        interest, before = slots[row, slot], last[row, slot]
        noisy = chance[1] < config.noise
        item = _draw_next_items(config, world, np.where(noisy, NOISE, interest), before, chance[2:])
        item = np.where(item == previous[:n], world.successors[item, 0], item)
        events[begin[:n] + step] = item
        interests[begin[:n] + step] = np.where(noisy, NOISE, interest)
        last[row[~noisy], slot[~noisy]] = item[~noisy]
        previous[:n] = item
    mixture = np.zeros((config.users, config.interests), dtype=np.float32)
    mixture[users[:, None], slots] = 1 / slots.shape[1] if config.dwell else weights / weights.sum(1, keepdims=True)
    return events, interests, mixture


def _draw_next_items(config: PlantedConfig, world: _World, interest: ndarray, before: ndarray, chance: ndarray) -> ndarray:
    """int64 [n]: an item for each user, from the interest (-1: from all) and the last item met in it (-1: none)."""
    # One running sum serves both kinds of popularity draw: the whole of it for noise, the interest's stretch otherwise.
    noisy = interest == NOISE
    low = np.where(noisy, 0, world.first[interest])
    mass = np.where(noisy, world.steps[-1], world.mass[interest])
    place = np.searchsorted(world.steps, low + np.floor(chance[1] * mass).astype(np.int64), side="right")
    follows = ~noisy & (chance[0] < config.determinism) & (before >= 0)
    return np.where(follows, world.successors[before, np.searchsorted(SUCCESSOR_STEPS, chance[2])], world.by_interest[place])


def _drift_tastes(config: PlantedConfig, moved: ndarray, slots: ndarray, weights: ndarray, last: ndarray, rng: Generator) -> None:
    """Tastes change: every one who moves weighs their interests anew; half of them also swap one for another, if they can."""
    weights[moved] = rng.integers(1, 100, (len(moved), slots.shape[1])) ** 2
    swaps = moved[rng.random(len(moved)) < 0.5]
    slot = rng.integers(0, slots.shape[1], len(swaps))
    new_interests = rng.integers(0, config.interests, len(swaps))
    new = ~(slots[swaps] == new_interests[:, None]).any(1)
    slots[swaps[new], slot[new]] = new_interests[new]
    last[swaps[new], slot[new]] = -1


def _draw_times(lengths: ndarray, rng: Generator) -> ndarray:
    """Sittings of a few minutes, with up to a week between them. Seconds since 1970, from the year 2000 on."""
    total, starts = int(lengths.sum()), np.cumsum(lengths) - lengths
    is_near = rng.random(total) < 0.8
    steps = rng.integers(5, 600, total)
    np.copyto(steps, rng.integers(3_600, 604_800, total), where=~is_near)
    steps[starts] = 946_684_800 + rng.integers(0, 86_400 * 365, len(lengths))
    ends = np.add.reduceat(steps, starts)
    steps[starts[1:]] -= ends[:-1]  # so that one running sum serves all people
    return np.cumsum(steps, out=steps)
