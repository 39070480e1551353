"""The same events, held out by the clock: what came before one date is learned from, what came after another is asked.

Leave-one-out lets a model learn from events that others had after the one it is asked for. Here nothing that is learned from is
later than anything that is asked: training ends at the first date, the epoch is chosen on everybody's first event between the
two, and the test is everybody's first event from the second on, read after all that came before it. Who has none is not asked.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy import ndarray

from elastic_core.core.histories import Dataset, Histories, Split, count_numbers
from elastic_core.errors import InputError

SHARES = (0.8, 0.9)  # of all events, before the first date and before the second


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ByTime(Dataset):
    """People in another order: those whom the test asks come first, so that its ranks are of people 0, 1, 2, …"""

    dates: tuple[int, int]  # seconds since 1970
    borders: ndarray  # int64 [2, users]: flat position of everybody's first event from either date on
    tested: int  # people
    validated: ndarray  # int64, who has an event between the dates and one before

    def split_arrays(self) -> tuple[ndarray, ...]:
        return *super().split_arrays(), np.array(self.dates, "<i8")

    def split_ends(self, split: Split) -> ndarray:
        """As of any data. Who joined after the first date is learned nothing from: their first event alone is theirs to read."""
        if split == "test":
            return self.borders[1]
        return np.maximum(self.borders[0], self.histories.offsets[:-1] + 1)

    def users_with_target(self, split: Split) -> ndarray:
        return self.validated if split == "valid" else np.arange(self.tested)

    def target_items(self, split: Split) -> ndarray:
        """int32 [users]: of people who are not asked, some item of theirs."""
        if split == "train":
            raise InputError("the training split has no single target a user")
        last = self.histories.offsets[1:] - 1
        targets: ndarray = self.histories.items[np.minimum(self.borders[0 if split == "valid" else 1], last)]
        return targets

    def item_counts(self) -> ndarray:
        """int64 [n_items + 1]: events of each item before the first date."""
        border, places = np.repeat(self.borders[0], self.histories.lengths), np.arange(len(self.histories.items))
        return count_numbers(self.histories.items, self.catalog.n_items + 1, lambda piece: places[piece] < border[piece])


def by_time(dataset: Dataset, shares: tuple[float, float] = SHARES) -> ByTime:
    """Splits at the dates before which these shares of all events lie.

    Raises InputError where the data have no times, or too few people to be asked in either part.
    """
    if not dataset.has_times:
        raise InputError(f"{dataset.label} has no times, so it cannot be split at a date")
    histories, times = dataset.histories, np.sort(dataset.histories.times)
    first, second = (int(times[min(int(share * len(times)), len(times) - 1)]) for share in shares)
    starts, lengths = histories.offsets[:-1], histories.lengths
    before = np.stack([np.add.reduceat(histories.times < date, starts) for date in (first, second)])  # events, [2, users]
    tested = (before[1] > 0) & (before[1] < lengths)
    validated = (before[0] > 0) & (before[1] > before[0])
    learned = before[0] > 1
    if not tested.any() or not validated.any() or not learned.any():
        raise InputError(f"nobody in {dataset.label} has events before and after the date at {shares[1]:.0%} of all events")
    order = np.concatenate([np.flatnonzero(tested), np.flatnonzero(~tested & (validated | learned))])
    offsets = np.concatenate([[0], np.cumsum(lengths[order])])
    event_indices = np.arange(offsets[-1]) + np.repeat(starts[order] - offsets[:-1], lengths[order])
    same = {field.name: getattr(dataset, field.name) for field in fields(Dataset)}
    moved_histories = Histories(
        histories.items[event_indices], histories.times[event_indices], offsets, histories.user_ids[order]
    )
    return ByTime(
        **same | {"histories": moved_histories, "truth": None, "ties": None}, dates=(first, second),
        borders=offsets[:-1] + before[:, order], tested=int(tested.sum()), validated=np.flatnonzero(validated[order]),
    )  # fmt: skip
