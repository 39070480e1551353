"""Lists that another library made, ranked under the protocols of this one: a table of user, item and rank.

Of a list only its first places are known. A target among them has its place; a target that is not among them stands last. So
NDCG, HR and MRR are exact up to the length of the shortest list, and no further. Items that are no candidates under a protocol
(under `full`: what the person has seen before the test, the target too) are taken out of the lists first.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from elastic_core.core.candidates import SEED, Candidates
from elastic_core.core.evaluate import CUTOFFS, Ranks, missed_rank
from elastic_core.core.histories import Dataset
from elastic_core.errors import InputError
from elastic_core.recommendations import id_text
from elastic_core.runs.ranks import Report

PROTOCOLS = ("full", "full-seen")  # those that rank against all items; lists say nothing of drawn ones
COLUMNS = ("user", "item", "rank")


class ForeignLists(NamedTuple):
    """Everybody's list in the data's own numbers, best first. `notes`: what could not be used, sentences without their stop."""

    users: np.ndarray  # int64 [rows], ascending
    items: np.ndarray  # int64 [rows]
    notes: tuple[str, ...]


def read_lists(table: pd.DataFrame, dataset: Dataset) -> ForeignLists:
    """Raises InputError where a column is missing, a rank is no number, or nobody of the data has a list."""
    if missing_columns := [name for name in COLUMNS if name not in table]:
        raise InputError(f"lists need the columns {', '.join(COLUMNS)}; {', '.join(missing_columns)} is missing")
    ranks = pd.to_numeric(table["rank"], errors="coerce")
    if ranks.isna().any():
        raise InputError(f"row {int(ranks.isna().argmax()) + 1} of the lists has no number for a rank")
    numbers = {str(raw): number for number, raw in enumerate(dataset.histories.user_ids)}
    users = table["user"].map(id_text).map(numbers).fillna(-1).astype(np.int64)
    items = table["item"].map(lambda raw: dataset.catalog.find_item(id_text(raw))).astype(np.int64)
    is_known = (users >= 0) & (items > 0)
    rows = pd.DataFrame({"user": users, "item": items, "rank": ranks})[is_known]
    rows = rows.sort_values(["user", "rank"], kind="stable").drop_duplicates(["user", "item"])
    if rows.empty:
        raise InputError(f"the lists hold no user and item of {dataset.label}")
    n_without = dataset.histories.n_users - rows["user"].nunique()
    counts = (
        (int((users < 0).sum()), "rows are of users that the data do not have"),
        (int(((users >= 0) & (items == 0)).sum()), "rows are of items that the data do not have, and were left out"),
        (int(is_known.sum()) - len(rows), "rows repeat a user and item"),
        (n_without, "people have no list, which counts as a miss"),
    )
    notes = [f"{count:,} {what}" for count, what in counts if count]
    lists = ForeignLists(rows["user"].to_numpy(), rows["item"].to_numpy(), tuple(notes))
    if len(_candidates_of(lists, Candidates(dataset, "test", SEED), "full")[0]) == len(lists.users):
        notes.append("no list holds an item that its person has seen, but full-seen ranks those, too: use full")
    return lists._replace(notes=tuple(notes))


def rank_lists(lists: ForeignLists, dataset: Dataset) -> Report:
    """A report of the test split under `PROTOCOLS`; a target outside its list is missed."""
    candidates, all_users = Candidates(dataset, "test", SEED), np.arange(dataset.histories.n_users)
    ranks = {}
    for protocol in PROTOCOLS:
        users, items = _candidates_of(lists, candidates, protocol)
        place = np.arange(len(users)) - np.searchsorted(users, users)  # in the user's own list, from 0
        hit = items == candidates.targets[users]
        above = np.full(len(all_users), missed_rank(dataset.catalog.n_items), dtype=np.int32)
        above[users[hit]] = place[hit]
        ranks[protocol] = Ranks(above, np.zeros_like(above))
    return Report(ranks, all_users, "test", dataset.hash, SEED, 0.0)


def known_cutoffs(lists: ForeignLists, dataset: Dataset, protocol: str) -> list[int]:
    """The cutoffs up to which nine in ten of the lists there are reach; where the others do not, a hit may be missed."""
    users, _ = _candidates_of(lists, Candidates(dataset, "test", SEED), protocol)
    lengths = np.bincount(users, minlength=dataset.histories.n_users)[np.unique(lists.users)]
    return [cutoff for cutoff in CUTOFFS if np.quantile(lengths, 0.1) >= cutoff]


def _candidates_of(lists: ForeignLists, candidates: Candidates, protocol: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the lists whose items are candidates under a protocol."""
    candidate_lists = candidates.list_candidates(protocol, np.arange(len(candidates.targets)))
    left_out = candidate_lists.rows * candidates.columns + candidate_lists.items
    keep = ~np.isin(lists.users * candidates.columns + lists.items, left_out)
    return lists.users[keep], lists.items[keep]
