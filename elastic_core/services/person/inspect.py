"""Who is this person, what did they choose, and which experts does their history retrieve?"""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.data.item_features import find_items_by_title
from elastic_core.data.source_catalog import GROCERIES
from elastic_core.memory.routing import too_many_experts
from elastic_core.models import Recommender, can_retrieve
from elastic_core.runs.ranks import evaluate
from elastic_core.services.person.names import cut_alike as cut_alike
from elastic_core.services.person.names import item_table
from elastic_core.services.person.names import order_by_words as order_by_words
from elastic_core.services.person.names import split_year as split_year
from elastic_core.services.person.names import told_apart as told_apart
from elastic_core.services.person.recommend import History, batch_of


def first_genres(dataset: Dataset, user: int) -> list[str]:
    """The genres that are listed first for most items, the most frequent first; ties by name. In a made-up world every hobby has
    as many items: there for most of this person's own events."""
    listed = dataset.catalog.genres or ()
    if listed and dataset.truth is not None:
        listed = tuple([listed[i] for i in dataset.histories.user_items(user)])
    return _frequent_users([genres[0] for genres in listed if genres])[:7]


def common_genres(dataset: Dataset, top: int) -> list[str]:
    """The genres that most items have, the most frequent first; ties by name."""
    return _frequent_users(chain.from_iterable(dataset.catalog.genres or ()))[:top]


def _frequent_users(genres: Iterable[str]) -> list[str]:
    return [genre for genre, _ in Counter(sorted(genres)).most_common()]


class ItemWords(NamedTuple):
    """What one item and several are called, and what people did with them."""

    singular: str
    plural: str
    verb: str  # in the past tense
    participle: str
    with_article: str


USUAL_WORDS = ItemWords("item", "items", "chose", "chosen", "an item")


def item_words(dataset: Dataset) -> ItemWords:
    """Films that were watched for MovieLens, products that were bought for groceries, items that were chosen otherwise."""
    if dataset.name.startswith("ml-"):
        return ItemWords("film", "films", "watched", "seen", "a film")
    if dataset.name == GROCERIES:
        return ItemWords("product", "products", "bought", "bought", "a product")
    return USUAL_WORDS


def find_items(dataset: Dataset, text: str, top: int = 50) -> pd.DataFrame:
    """Items whose title has every word of `text`: item, title, events; the most frequent first."""
    items = find_items_by_title(dataset.catalog, text)
    counts = dataset.all_counts()[items]
    table = pd.DataFrame({"item": items, "title": dataset.catalog.titles_of(items), "events": counts})
    return table.sort_values(["events", "item"], ascending=[False, True]).head(top).reset_index(drop=True)


def history_table(dataset: Dataset, history: History, last: int = 12) -> pd.DataFrame:
    """The most recent `last` events, oldest first: position, item, title, genres, and the date where one is known."""
    table = item_table(dataset.catalog, history.items[-last:])
    table.insert(0, "position", np.arange(len(history.items))[-last:] + 1)
    if history.times is not None and dataset.truth is None:
        table["date"] = pd.to_datetime(history.times[-last:], unit="s").strftime("%Y-%m-%d")
    return table


def people_with(dataset: Dataset, item: int) -> pd.DataFrame:
    """Everybody whose readable history has this item: user, events, since (events after it); the most recent first."""
    offsets, places = dataset.histories.offsets[:-1], np.flatnonzero(dataset.histories.items == item)
    users = np.searchsorted(offsets, places, side="right") - 1
    table = pd.DataFrame(
        {"user": users, "events": dataset.readable_lengths()[users], "since": dataset.split_ends("test")[users] - 1 - places}
    )
    return table[table["since"] >= 0].sort_values(["since", "user"]).drop_duplicates("user", ignore_index=True)


def memory_size(model: Recommender) -> int:
    """How many experts a model retrieves from; 0 for a model without a memory."""
    return model.n_experts if can_retrieve(model) else 0


def too_many(model: Recommender) -> str:
    """Why a screen does not show every expert of this model, a sentence; nothing if it does."""
    reason = too_many_experts(model)
    return f"{reason[:1].upper()}{reason[1:]}. Person, journey and recommendations work as with any other." if reason else ""


def good_example(model: Recommender, dataset: Dataset) -> int:
    """A person to open with: of the first 64 with 20 to 120 events, the one whose next item ranks best."""
    lengths = dataset.readable_lengths()
    fits = (lengths >= 20) & (lengths <= 120)
    able = np.flatnonzero(fits if fits.any() else lengths >= 0)[:64]
    return int(able[evaluate(model, dataset, protocols=("full",), users=able).ranks["full"].above.argmin()])


@torch.inference_mode()
def good_household(model: Recommender, dataset: Dataset, named: np.ndarray) -> int:
    """A household to open with: of the 64 with 50 to 600 purchases to whose experts most different names fit, the one of whose
    next basket most is among the ten likeliest. `named [users]`: how many names fit."""
    lengths = dataset.readable_lengths()
    fits = (lengths >= 50) & (lengths <= 600)
    able = np.flatnonzero(fits if fits.any() else lengths >= 0)
    able = able[np.argsort(-named[able], kind="stable")[:64]]
    scores = model.score(batch_of(model, dataset, able))[:, 1:]
    lists = scores.topk(min(10, scores.shape[1])).indices.numpy() + 1
    hits = [np.isin(listed, dataset.next_items(user)).sum() for user, listed in zip(able.tolist(), lists, strict=True)]
    return int(able[np.argmax(hits)])
