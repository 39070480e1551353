"""Lists of the next items: for users by their ids, or after histories that are given.

    run = elastic_core.open_run("checkpoints/demo/ml-100k-elastic")
    run.recommend(["196", "22"], k=5)                                       users of the run's data, by their ids there
    run.recommend(histories=[["50", "181"], ["172"]])                       after histories of item ids, oldest first
    run.recommend(histories={"anna": ["50", "181"]}, exclude=["172"])       the same, with names
    run.recommend()                                                         every user in the data

Users need the data that the run learned from; histories need only the run's folder. Items that the run does not know are left out
and counted. A user without a history gets the most popular items, where the run knows them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy import ndarray
from torch import Tensor

from elastic_core import files
from elastic_core.core.batches import histories_batch
from elastic_core.core.evaluate import MOST_SCORES
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender

Id = str | int
Users = Id | Iterable[Id] | None
Histories = Mapping[Any, Iterable[Id]] | Iterable[Iterable[Id]]
MAX_BATCH = 256  # histories in one forward pass
MAX_ITEMS = 10_000  # of one list
HISTORY, POPULARITY = "history", "popularity"
PARQUET, CSV = ".parquet", ".csv"


@dataclass(frozen=True, eq=False)
class Query:
    """One list to make."""

    items: ndarray  # int64 [n] dense ids of the whole history, oldest first
    allowed: Tensor  # bool [n_items + 1] the items that may be suggested
    times: ndarray | None = None  # int64 [n] seconds, where they are known
    seen: bool = False  # also suggest items of the history


@dataclass(frozen=True, eq=False)
class Recommendations:
    """One list a user, best first. Where fewer than k items are left, the last places hold item 0 and the score -inf."""

    catalog: Catalog
    users: list[str]  # ids or names; for histories without names their numbers, from 0
    items: ndarray  # int64 [B, k] dense ids
    scores: ndarray  # float32 [B, k]; in lists that rest on popularity, training events
    known: ndarray  # int64 [B] events of the history
    unknown: ndarray  # int64 [B] events that were left out, because the run does not know their items

    @property
    def bases(self) -> list[str]:
        """What each list rests on: the user's history, or popularity."""
        return [HISTORY if events else POPULARITY for events in self.known]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a suggestion: user, rank, item (its id in the data), title, score, basis."""
        rows, ranks = np.nonzero(self.items)
        items = self.items[rows, ranks]
        return pd.DataFrame(
            {
                "user": np.array(self.users, dtype=object)[rows],
                "rank": ranks + 1,
                "item": self.catalog.ids[items].astype(str).astype(object),
                "title": np.array([self.catalog.title(int(item)) for item in items], dtype=object),
                "score": self.scores[rows, ranks],
                "basis": np.array(self.bases, dtype=object)[rows],
            }
        )


def find_items(catalog: Catalog, ids: Iterable[Id]) -> tuple[ndarray, int]:
    """Dense ids int64 of the items that a catalogue has, and the number of those it has not."""
    dense = np.array([catalog.find_item(id_text(raw)) for raw in ids], dtype=np.int64)
    return dense[dense > 0], int((dense == 0).sum())


def allowed_items(catalog: Catalog, exclude: Iterable[Id] = (), only: Iterable[Id] | None = None) -> Tensor:
    """Which items may be suggested, bool `[n_items + 1]`."""
    allowed = torch.ones(catalog.n_items + 1, dtype=torch.bool)
    if only is not None:
        allowed[:] = False
        allowed[find_items(catalog, only)[0]] = True
    allowed[find_items(catalog, exclude)[0]] = False
    allowed[0] = False  # padding
    return allowed


class ItemRanker:
    """Makes lists with one model, again and again.

    `load_data` gives the data, when a user is first asked for by id; `counts` are the training events of every item,
    int64 [n_items + 1]; `keep_seen`: lists hold items of the history, too, unless somebody says otherwise.
    """

    def __init__(
        self,
        model: Recommender,
        catalog: Catalog,
        load_data: Callable[[], Dataset] | None = None,
        counts: ndarray | None = None,
        keep_seen: bool = False,
    ) -> None:
        self.model, self.catalog, self.keep_seen = model.eval(), catalog, keep_seen
        self._load_data, self._counts = load_data, counts
        with torch.inference_mode():
            self._score = model.prepare_scores()

    # --- what is known of users and items ------------------------------------------------------------------------------

    @cached_property
    def dataset(self) -> Dataset:
        """Raises InputError where the data cannot be had."""
        if self._load_data is None:
            raise InputError("users by their ids need the data that the run learned from; give histories of items")
        dataset = self._load_data()
        if self.catalog.titles is None and dataset.catalog.titles is not None:  # a licence keeps some out of run folders
            titles = dict(zip(dataset.catalog.ids.astype(str), dataset.catalog.titles, strict=True))
            known = np.array([titles.get(str(raw), "") for raw in self.catalog.ids], dtype=object)
            self.catalog = replace(self.catalog, titles=known)
        return dataset

    @cached_property
    def item_numbers(self) -> ndarray:
        """The number that the run gave every item of the data, int64 [n_items + 1]; 0 for an item that it does not know."""
        return np.array([self.catalog.find_item(str(raw)) for raw in self.dataset.catalog.ids], dtype=np.int64)

    @cached_property
    def user_rows(self) -> dict[str, int]:
        """The number of every user of the data, by id."""
        return {str(raw): row for row, raw in enumerate(self.dataset.histories.user_ids)}

    @cached_property
    def popularity(self) -> Tensor:
        """Training events of every item, float `[n_items + 1]`. Raises InputError where neither run nor data tell."""
        if self._counts is not None:
            return torch.from_numpy(self._counts).float()
        if self._load_data is None:
            raise InputError("nothing is known of this user, and this run does not know what is popular")
        counts = np.zeros(self.catalog.n_items + 1, dtype=np.int64)
        np.add.at(counts, self.item_numbers, self.dataset.item_counts())
        return torch.from_numpy(counts).float()

    def user_history(self, user: str, before_test: bool = False) -> tuple[ndarray, ndarray | None, int]:
        """Dense items and times of a user of the data, and how many events were left out, as the run does not know their items.
        `before_test`: without the held-out test event and what follows it."""
        row, histories = self.user_rows[user], self.dataset.histories
        end = self.dataset.split_ends("test")[row] if before_test else histories.offsets[row + 1]
        events = slice(histories.offsets[row], end)
        items = self.item_numbers[histories.items[events]]
        known = items > 0
        times = histories.times[events][known] if self.dataset.has_times else None
        return items[known], times, int((~known).sum())

    # --- lists ---------------------------------------------------------------------------------------------------------

    def recommend(self, users: Users = None, k: int = 10, **options: Any) -> Recommendations:
        """The `k` best next items for each of `users`: an id or ids of users in the data, None for all of them.

        `options` are those of `recommend_chunks`, among them `histories`.
        Raises InputError for a user who is not in the data, and where no item is left.
        """
        chunks = list(self.recommend_chunks(users, k, **options))
        if not chunks:
            none = np.zeros(0, dtype=np.int64)
            return Recommendations(self.catalog, [], np.zeros((0, k), np.int64), np.zeros((0, k), np.float32), none, none)
        arrays = (np.concatenate([getattr(c, name) for c in chunks]) for name in ("items", "scores", "known", "unknown"))
        return Recommendations(self.catalog, [user for chunk in chunks for user in chunk.users], *arrays)

    def recommend_chunks(
        self,
        users: Users = None,
        k: int = 10,
        *,
        histories: Histories | None = None,
        exclude: Iterable[Id] = (),
        only: Iterable[Id] | None = None,
        seen: bool | None = None,
        before_test: bool = False,
    ) -> Iterator[Recommendations]:
        """As `recommend`, some hundred users at a time, so that memory does not grow with their number.

        histories: in place of users, lists of item ids, oldest first, which may have names. exclude: ids of items never to
        suggest. only: ids of the items to choose from. Ids that the run does not know change nothing in either. seen: also
        suggest items of the history (None: as `keep_seen` says). before_test: users of the data before their test event.
        """
        if not 1 <= k <= MAX_ITEMS:
            raise InputError(f"a list has 1 to {MAX_ITEMS:,} items, not {k}")
        allowed = allowed_items(self.catalog, exclude, only)
        if not allowed.any():
            raise InputError("no item is left to suggest: the run knows none that `only` allows and `exclude` does not take away")
        names, named = self._resolve_users(users, histories)
        keep = self.keep_seen if seen is None else seen
        for start in range(0, len(names), MAX_BATCH):
            chunk = names[start : start + MAX_BATCH]
            if named is None:
                histories_read = [self.user_history(name, before_test) for name in chunk]
            else:
                histories_read = [
                    (items, None, unknown) for items, unknown in (self._read_history(named[name]) for name in chunk)
                ]
            items, scores = self.rank_items([Query(items, allowed, times, keep) for items, times, _ in histories_read], k)
            known, unknown = np.array([(len(items), unknown) for items, _, unknown in histories_read]).T
            yield Recommendations(self.catalog, chunk, items, scores, known, unknown)

    @torch.inference_mode()
    def rank_items(self, queries: Sequence[Query], k: int) -> tuple[ndarray, ndarray]:
        """Dense items int64 and scores float32 `[B, k]`, best first. Raises InputError where a query has no history and nobody
        knows what is popular."""
        items, scores = np.zeros((len(queries), k), np.int64), np.full((len(queries), k), -np.inf, np.float32)
        # One forward pass takes histories that are alike: with or without times; an empty one needs none.
        groups: dict[tuple[bool, bool], list[int]] = {}
        for row, query in enumerate(queries):
            groups.setdefault((len(query.items) == 0, query.times is None), []).append(row)
        size = max(1, min(MAX_BATCH, MOST_SCORES // (self.catalog.n_items + 1)))
        for group in groups.values():
            for start in range(0, len(group), size):
                rows = group[start : start + size]
                best, values = top_items(self._score_queries([queries[row] for row in rows]), k)
                items[rows], scores[rows] = best.numpy(), values.numpy()
        return items, scores

    def _score_queries(self, queries: Sequence[Query]) -> Tensor:
        """`[B, n_items + 1]` for queries that are alike; -inf for what may not be suggested."""
        if len(queries[0].items):
            times = [query.times for query in queries if query.times is not None]
            batch = histories_batch([query.items for query in queries], self.model.length, times or None)
            scores = self._score(batch).float()
        else:
            scores = self.popularity.expand(len(queries), -1)
        allowed = [query.allowed for query in queries]
        shared = all(mask is allowed[0] for mask in allowed)
        scores = scores.masked_fill(~(allowed[0] if shared else torch.stack(allowed)), -torch.inf)
        for row, query in zip(scores, queries, strict=True):
            if not query.seen:
                row[torch.from_numpy(np.asarray(query.items, dtype=np.int64))] = -torch.inf
        return scores

    def _resolve_users(self, users: Users, histories: Histories | None) -> tuple[list[str], Mapping[str, Iterable[Id]] | None]:
        """The names of the lists, and the histories that were given; None for users of the data."""
        if histories is not None:
            if users is not None:
                raise InputError("say either users or histories")
            named = histories if isinstance(histories, Mapping) else dict(enumerate(histories))
            return [str(name) for name in named], {str(name): history for name, history in named.items()}
        if users is None:
            return list(self.user_rows), None
        listed = [users] if isinstance(users, str) or not isinstance(users, Iterable) else list(users)
        if any(not isinstance(user, str) and isinstance(user, Iterable) for user in listed):
            raise InputError("users are ids; lists of items are histories=[['50', '181'], …]")
        ids = [id_text(user) for user in listed]
        if missing := [user for user in ids if user not in self.user_rows]:
            known = self.dataset.histories.user_ids
            raise InputError(
                f"{self.dataset.label} has no user {missing[0]!r} ({len(missing):,} of these are not in it); "
                f"there are {len(known):,}, for example {known[0]} and {known[-1]}"
            )
        return ids, None

    def _read_history(self, history: Iterable[Id]) -> tuple[ndarray, int]:
        if isinstance(history, str) or not isinstance(history, Iterable):
            raise InputError("a history is a list of item ids, as in histories=[['50', '181']]")
        return find_items(self.catalog, history)


def id_text(raw: object) -> str:
    """An id as data have it: 12 and 12.0, as a column of numbers may hold them, are the text 12."""
    return str(int(raw)) if isinstance(raw, float) and raw.is_integer() else str(raw)


def top_items(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Scores `[B, n]` → columns and values `[B, k]`, best first, equal ones by column; 0 and -inf where none is left.

    -inf marks what may not be suggested. Raises InputError for NaN and +inf.
    """
    if not bool((scores.amax(1) < torch.inf).all()):  # NaN wins every maximum
        raise InputError("the model gives scores that are no numbers: it has diverged")
    size = min(k, scores.shape[1])
    values, columns = scores.topk(size)
    # Where several items tie for the last place, topk takes any of them. These few rows are sorted whole.
    tied = ((scores >= values[:, -1:]).sum(1) > size) & (values[:, -1] > -torch.inf)
    for row in tied.nonzero().flatten().tolist():
        columns[row] = scores[row].argsort(descending=True, stable=True)[:size]
    columns = columns.sort(1).values
    values, order = scores.gather(1, columns).sort(dim=1, descending=True, stable=True)
    columns = columns.gather(1, order).masked_fill(values == -torch.inf, 0)
    missing = (0, k - size)
    return torch.nn.functional.pad(columns, missing), torch.nn.functional.pad(values, missing, value=-torch.inf)


# --- files -------------------------------------------------------------------------------------------------------------


def write_lists(path: Path, chunks: Iterable[Recommendations]) -> int:
    """Writes the table into a Parquet or CSV file, whole or not at all, and returns the number of users.

    Raises InputError for another ending than .parquet or .csv, where the folder is missing, and if the disk does not take it.
    """
    if path.suffix not in (PARQUET, CSV):
        raise InputError(f"{path} must end in {PARQUET} or {CSV}")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write lists in")
    users = 0

    def tables() -> Iterator[pd.DataFrame]:
        nonlocal users
        for chunk in chunks:
            users += len(chunk.users)
            yield chunk.table

    write = _write_parquet if path.suffix == PARQUET else _write_csv
    files.write_whole(path, lambda beside: write(beside, tables()))
    return users


def _write_csv(path: Path, tables: Iterable[pd.DataFrame]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for number, table in enumerate(tables):
            table.to_csv(file, index=False, header=number == 0, lineterminator="\n")


def _write_parquet(path: Path, tables: Iterable[pd.DataFrame]) -> None:
    import pyarrow
    from pyarrow import parquet

    writer: Any = None
    try:
        for table in tables:
            chunk = pyarrow.Table.from_pandas(table, preserve_index=False)
            writer = writer or parquet.ParquetWriter(path, chunk.schema, compression="zstd")
            writer.write_table(chunk.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()
