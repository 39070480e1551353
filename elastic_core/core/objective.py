"""The contract of an objective, and the list of them. A new one is one file in `elastic_core/objectives/`, or in a folder that
ELASTIC_PLUGINS names: a configuration with its settings, and a class with `@register` that says by `refusal_reason` which
models may not learn from it, and by `epoch_rows` what it shows. Copy objectives/last.py; one for causal models begins from `All`
below, which cuts long histories into tiles; one that draws what it asks is objectives/cloze.py. Its settings are in the command
line (`--set objective.name=NAME`, `--set objective.share=0.1`) and the app by being fields; a number has its bounds, `share:
Annotated[float, Within(0, 1)] = 0.3`, and its help in the app is a line `objective.share: …` in pages/train/text.md.

An objective draws its own batches, decided by (seed, epoch, rank of how many) alone, so that an interrupted run can repeat
them; it returns the *sum* of its loss and the number of targets behind it, because means of batches would give the targets
of short batches more weight than those of long ones; and it declares what a target's score may depend on (`shows`), which
the no-peeking test holds every model to.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from elastic_core.core.batches import Batch, SeenItems, left_pad, left_pad_times, needed_columns
from elastic_core.core.config import ObjectiveConfig, Within
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Dataset
from elastic_core.core.registry import OBJECTIVE_MODULES, Registry
from elastic_core.core.softmax import SharedNegatives, Softmax, full_softmax
from elastic_core.errors import InputError

POOL = 16  # batches that are sorted by length together


class EpochRows(NamedTuple):
    """What an epoch shows: row r of a batch ends before the flat position `last[r]` and has `wide[r]` targets up to it."""

    users: np.ndarray  # [R]
    last: np.ndarray  # [R] flat position of the last target
    wide: np.ndarray  # [R] how many targets end there


class LossSum(NamedTuple):
    """`total` summed over the batch's `targets` (nats), and the model's auxiliary losses (`Encoded`), not yet weighted."""

    total: Tensor
    targets: int
    auxiliary: Mapping[str, Tensor]
    summed: Mapping[str, Tensor] = {}


class Objective:
    """Bound to a data set and a model's length. A new objective says which rows it shows and, if need be, how a batch looks.

    `shows`: what the state that scores a target may depend on. `past`: events before the target only, never its own item or
    time. `others`: every event but the target itself.
    """

    shows: ClassVar[Literal["past", "others"]] = "past"

    def __init__(self, config: ObjectiveConfig, dataset: Dataset, length: int) -> None:
        self.config, self.length = config, length
        self.stored = self.dataset = dataset
        self.successors = dataset.next_targets(np.random.default_rng(0))
        self.starts, self.ends = dataset.histories.offsets[:-1], dataset.split_ends("train")
        self.softmax: Softmax = full_softmax
        if config.loss == "sampled":
            self.softmax = SharedNegatives(torch.from_numpy(dataset.item_counts()), config.negatives)

    @classmethod
    def refusal_reason(cls, model: Recommender) -> str:
        """Why this model, as configured, cannot learn from it honestly; empty if it can."""
        raise NotImplementedError

    def epoch_rows(self, rng: np.random.Generator) -> EpochRows:
        """What one epoch shows, before it is shuffled."""
        raise NotImplementedError

    def make_batch(self, rows: EpochRows, rng: np.random.Generator) -> Batch:
        """Events up to the last target, exclusive, and at each of the last `wide` positions its successor as the target.

        Of `items [B, columns]`, left-padded with 0, column c of row r is the event at the flat position `last[r] - columns + c`,
        and column c of `targets` what is asked for after it: an item, or 0, which leaves the position out. To ask for something
        else `replace(super().batch(rows, rng), targets=…)`; `self.dataset.histories.items` has the items by flat position, of a
        person from `self.starts[user]` to before `self.ends[user]`, where held-out events begin. To read other events, build a
        `Batch` of at most `self.length` columns (`needed_columns` says how many the events need). A row may be without a target,
        not without an event; who asks for fewer than `wide` says overrides `epoch_size` with what is expected."""
        histories = self.dataset.histories
        columns = needed_columns(rows.last - self.starts[rows.users], self.length)
        items = left_pad(histories, rows.users, rows.last, columns)
        targets = left_pad(histories, rows.users, rows.last, columns, self.successors)
        is_target = torch.arange(columns) >= columns - torch.from_numpy(rows.wide)[:, None]
        times = left_pad_times(self.dataset, rows.users, rows.last, columns)
        return Batch(items, items, targets * (is_target & (items > 0)), times, padded=bool((items[:, 0] == 0).any()))

    def loss(self, model: Recommender, batch: Batch) -> LossSum:
        """Softmax cross-entropy of every target of the batch."""
        places = batch.places
        encoded, scorer = model(batch), model.scorer()
        targets, states = places.items, encoded.gather_targets(places, batch.items.shape[1])
        seen = None
        if scorer.repeat_bias is not None:
            seen = SeenItems(batch.items, places.rows, places.columns if self.shows == "past" else None)
        return LossSum(self.softmax(states, targets, scorer, seen), len(targets), encoded.auxiliary, encoded.summed)

    # --- one epoch, the same for every objective ---------------------------------------------------------------------

    def epoch_batches(self, number: int, seed: int, batch: int, rank: int = 0, ranks: int = 1) -> Iterator[Batch]:
        """The batches of one epoch, of about `batch` rows of like lengths; of each batch, a rank's share.

        However many ranks there are, together they see the batches that one would. Raises InputError for a batch of fewer rows
        than ranks."""
        rng = np.random.default_rng([seed, number, 2])
        self.dataset = self.stored.reorder_events(rng)
        self.successors = self.dataset.next_targets(rng)
        rows = self.epoch_rows(np.random.default_rng([seed, number]))
        if not len(rows.users):
            return
        rng = np.random.default_rng([seed, number, 0, 1])
        for chosen in self._batch_by_length(rows, np.random.default_rng([seed, number, 1]), batch):
            if len(chosen) < ranks:
                raise InputError(f"a step of {len(chosen)} rows cannot be shared by {ranks} processes; take a larger train.batch")
            full_batch = self.make_batch(EpochRows(*(column[chosen] for column in rows)), rng)
            yield full_batch if ranks == 1 else full_batch.select_rows(slice(rank, None, ranks))

    def epoch_size(self, batch: int) -> tuple[int, float]:
        """Steps of an epoch, and targets per step: what a step's sum is divided by, the same for every step."""
        rows = self.epoch_rows(np.random.default_rng(0))
        steps = _count_steps(len(rows.users), batch)
        return steps, max(float(rows.wide.sum()) / steps, 1.0)

    def _batch_by_length(self, rows: EpochRows, rng: np.random.Generator, size: int) -> list[np.ndarray]:
        """Shuffled batches of rows with like lengths (sorted inside random pools), so that little is spent on padding."""
        lengths = np.minimum(rows.last - self.starts[rows.users], self.length)
        steps = _count_steps(len(lengths), size)
        order = rng.permutation(len(lengths))
        borders = np.linspace(0, len(order), steps + 1).round().astype(int)
        batches = []
        for first in range(0, steps, POOL):
            edges = borders[first : first + POOL + 1]
            pool = order[edges[0] : edges[-1]]
            batches += np.split(pool[np.argsort(lengths[pool], kind="stable")], edges[1:-1] - edges[0])
        return [batches[i] for i in rng.permutation(steps)]


def _count_steps(rows: int, batch: int) -> int:
    return max(1, -(-rows // batch))


def tile_targets(
    targets: np.ndarray, span: int, rng: np.random.Generator, split_short: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cuts the last `targets [U]` (> 0) places of histories into as few stretches of at most `span` as will do.

    Returns, per stretch, the index of its history, how far its end is from the history's, and its width. Where there is room
    the borders are random, so that they move between epochs and no more is read for it. `split_short` cuts a history that
    one stretch would hold in two at a random place.
    """
    count = -(-targets // span)
    slack = count * span - targets
    newest = np.where(count == 1, targets, span - rng.integers(0, slack + 1))
    if split_short:
        cut = rng.integers(1, targets + 1)
        newest, count = np.where(count == 1, cut, newest), np.where((count == 1) & (cut < targets), 2, count)
    rows_of_tiles = np.repeat(np.arange(len(targets)), count)
    index = np.arange(len(rows_of_tiles)) - np.repeat(np.cumsum(count) - count, count)
    back = np.where(index == 0, 0, newest[rows_of_tiles] + (index - 1) * span)
    wide = np.where(index == 0, newest[rows_of_tiles], np.minimum(span, targets[rows_of_tiles] - back))
    return rows_of_tiles, back, wide


# --- the list --------------------------------------------------------------------------------------------------------

OBJECTIVES: Registry[type[Objective]] = Registry("objective", OBJECTIVE_MODULES)
register, objective_class = OBJECTIVES.register, OBJECTIVES.find_class


def objective_names() -> tuple[str, ...]:
    return tuple(sorted(OBJECTIVES))


def build(config: ObjectiveConfig, dataset: Dataset, length: int) -> Objective:
    return objective_class(config.name)(config, dataset, length)


def honest_objectives(model: Recommender) -> tuple[str, ...]:
    """What this model, as configured, may learn from: its own choice first. Empty for a model that needs no training."""
    if not model.trained:
        return ()
    able = [name for name in objective_names() if not OBJECTIVES[name].refusal_reason(model)]
    return tuple(sorted(able, key=lambda name: (name != model.objective, name)))


def check_objective(objective: str, model: Recommender) -> None:
    """Raises InputError if this model, as configured, would see its own targets under `objective`."""
    reason = objective_class(objective).refusal_reason(model)
    if reason:
        able = ", ".join(honest_objectives(model)) or "none: it needs no training"
        raise InputError(f"{model.config.name} cannot learn from the objective {objective!r}: {reason}; it can from: {able}")


# --- window ----------------------------------------------------------------------------------------------------------

# `window` (ours): many targets from one pass of a causal encoder, one retrieval for all of them.
#
# What is retrieved comes from before the window's first target: there the situation is exactly that of serving, and later
# targets use a retrieval that is up to a window old, as a live system that refreshes its retrieval now and then would.


@dataclass(frozen=True, kw_only=True)
class WindowConfig(ObjectiveConfig, name="window"):
    span: Annotated[int, Within(1, 131_072)] = 100  # targets that share one retrieval, at most
    retrieval: Literal["whole", "random"] = "whole"  # from all events before the cut, or three times in four from a random part


@register(WindowConfig)
class Window(Objective):
    config: WindowConfig

    @classmethod
    def refusal_reason(cls, model: Recommender) -> str:
        if not model.causal:
            return "its states read later events"
        return "it is asked with a mask" if model.masks else ""

    def epoch_rows(self, rng: np.random.Generator) -> EpochRows:
        users = np.flatnonzero(self.ends - self.starts > 1)
        span = min(self.config.span, self.length)
        # a short history is cut in two: as one window, its retrieval would always read a single event
        rows_of_tiles, back, wide = tile_targets((self.ends - self.starts - 1)[users], span, rng, split_short=True)
        return EpochRows(users[rows_of_tiles], self.ends[users[rows_of_tiles]] - 1 - back, wide)

    def make_batch(self, rows: EpochRows, rng: np.random.Generator) -> Batch:
        cuts = rows.last + 1 - rows.wide  # the first target; everything before it may be read
        columns = needed_columns(cuts - self.starts[rows.users], self.length)
        earlier_items = left_pad(self.dataset.histories, rows.users, cuts, columns)
        if self.config.retrieval == "random":
            earlier_items = random_parts(earlier_items, rng)
        return replace(super().make_batch(rows, rng), retrieval_items=earlier_items)


def random_parts(items: Tensor, rng: np.random.Generator) -> Tensor:
    """What `retrieval=random` reads (ours): left-padded histories `[B, n]` → random parts of them, in order.

    Three rows in four keep 1 … all events, the logarithm of the number even, so that what is retrieved cannot follow from how
    much somebody watched."""
    is_event = (items > 0).numpy()
    n_events = is_event.sum(1)
    n_wanted = np.ceil(np.exp(rng.random(len(items)) * np.log(np.maximum(n_events, 1)))).astype(np.int64)
    n_wanted = np.where(rng.random(len(items)) < 0.25, n_events, n_wanted)
    luck = np.where(is_event, rng.random(items.shape), np.inf)
    selected = luck.argsort(1).argsort(1) < n_wanted[:, None]
    order = selected.argsort(1, kind="stable")  # what is dropped to the left, the rest in its order
    return torch.from_numpy(np.take_along_axis(items.numpy() * selected, order, 1)[:, -max(int(n_wanted.max()), 1) :].copy())


# --- all positions ---------------------------------------------------------------------------------------------------

# `all`: every position predicts its successor, for causal encoders. Long histories are cut into tiles.


@dataclass(frozen=True, kw_only=True)
class AllConfig(ObjectiveConfig, name="all"):
    pass


@register(AllConfig)
class All(Objective):
    @classmethod
    def refusal_reason(cls, model: Recommender) -> str:
        if not model.causal:
            return "its states read later events"
        if model.retrieves:
            return "its retrieval would read the targets"
        return "it is asked with a mask" if model.masks else ""

    def epoch_rows(self, rng: np.random.Generator) -> EpochRows:
        users = np.flatnonzero(self.ends - self.starts > 1)  # every train event but the first is a target
        rows_of_tiles, back, wide = tile_targets((self.ends - self.starts - 1)[users], self.length, rng, split_short=False)
        return EpochRows(users[rows_of_tiles], self.ends[users[rows_of_tiles]] - 1 - back, wide)
