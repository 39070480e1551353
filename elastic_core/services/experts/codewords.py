"""What does a codeword stand for? The items that share it, a genre where they have one, and how one history is spread.

A word's label is the genre that is furthest above its share of all items, among one half of the items (drawn once). It is judged
on the other half: how many of the word's items there have the genre. The null does all of this for items whose codes were
shuffled among them, so that words keep their sizes and have nothing in common.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.data.traits import genre_table
from elastic_core.memory.routing import limits_of
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import Codewords, Quantises
from elastic_core.services.person.recommend import user_history

DRAWS, TITLES, FEWEST = 100, 3, 3  # shuffles; titles of a word; items of a half that a label needs


class Words(NamedTuple):
    """One codebook. `table`, a row a word: word (from 1), items, share (of all events), titles, label, held (share of held-out
    items with the label), chance (the same of shuffled items), sure (above 97.5% of shuffles)."""

    table: pd.DataFrame
    used: int  # words that any item has
    items: int  # held out and labelled
    held: float  # share of these with the label of their word
    chance: float  # the same of shuffled items
    limits: tuple[float, float]  # 95% of shuffles
    genres: bool


def codewords(model: Quantises) -> Codewords:
    with torch.inference_mode():
        return model.codewords()


def judge_words(model: Quantises, dataset: Dataset, book: int) -> Words:
    """Judge all words of a codebook (from 1)."""
    found = codewords(model)
    chosen, size = found.chosen[:, book - 1].numpy(), found.words.shape[1]
    names, holds = genre_table(dataset.catalog)
    genres = holds[1:] if names else np.zeros((len(chosen), 1))
    rng = np.random.default_rng([0, 1])  # not the stream that a planted world of this seed was drawn from
    learned = rng.permutation(len(chosen)) % 2 == 0
    orders = [np.arange(len(chosen)), *(rng.permutation(len(chosen)) for _ in range(DRAWS))]  # the true words, and shuffled ones
    judged = [_judged(chosen[order], size, genres, learned) for order in orders]
    labels, held, items = map(np.stack, zip(*judged, strict=True))
    counts = dataset.counts()[1:]
    popular = np.argsort(-counts, kind="stable")
    titles = dataset.catalog.called(popular + 1)
    of_word = pd.DataFrame({"count": counts[popular], "title": titles}).groupby(chosen[popular] + 1)
    table = of_word.agg(items=("count", "size"), share=("count", "sum"), titles=("title", lambda of: " · ".join(of[:TITLES])))
    table = table.reindex(pd.RangeIndex(1, size + 1, name="word")).fillna({"items": 0, "share": 0, "titles": ""}).reset_index()
    null = pd.DataFrame(held[1:])
    table = table.astype({"items": int}).assign(
        share=table["share"] / max(counts.sum(), 1), label=np.array([*names, ""], dtype=object)[labels[0]], held=held[0],
        chance=null.mean().where(labels[0] >= 0), sure=held[0] > null.quantile(0.975),
    )  # fmt: skip
    right, *drawn = np.nansum(held * items, axis=1) / np.maximum(items.sum(1), 1)
    used = len(np.unique(chosen))
    return Words(table, used, int(items[0].sum()), right, float(np.mean(drawn)), limits_of(drawn), bool(names))


def _judged(chosen: np.ndarray, size: int, genres: np.ndarray, learned: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of every word `[w]` the genre that half of the items gives it (-1: none), which part of its items in the other half
    have it (NaN: none there), and how many those are."""
    (total, having), (rest, kept) = (
        (np.bincount(chosen[half], minlength=size), np.stack([np.bincount(chosen[half], of, size) for of in genres[half].T], 1))
        for half in (learned, ~learned)
    )
    base = genres[learned].mean(0)
    expected = total[:, None] * base
    above = (having - expected) / np.sqrt(np.maximum(expected * (1 - base), 1e-9))
    label = np.where(total >= FEWEST, above.argmax(1), -1)
    asked = np.where(label >= 0, rest, 0)
    return label, np.where(asked > 0, kept[np.arange(size), label] / np.maximum(asked, 1), np.nan), asked


# --- one history ------------------------------------------------------------------------------------------------------


class Spread(NamedTuple):
    """`table`: book, word, person (share of the history read), everybody (of all events). `books`: book, spread (over how many
    words, as if evenly: e^entropy), low, high (95% of as many events drawn from everybody's)."""

    table: pd.DataFrame
    books: pd.DataFrame
    events: int


def spread(model: Recommender, dataset: Dataset, user: int) -> Spread:
    """Return how the events of a person that a model reads lie on the words of every codebook."""
    items = user_history(dataset, user).items[-model.length :] - 1
    found = codewords(model)  # type: ignore[arg-type]
    counts, rng = dataset.counts()[1:].astype(float), np.random.default_rng(0)
    drawn = rng.choice(len(counts), (200, len(items)), p=counts / counts.sum())
    tables, books = [], []
    for book, chosen in enumerate(found.chosen.T):
        # how much of every item is in which word, [n_items, w]
        words = np.eye(found.words.shape[1])[chosen] if found.shares is None else found.shares[:, book].double().numpy()
        table = pd.DataFrame({"person": words[items].mean(0), "everybody": counts @ words / counts.sum()})
        table.insert(0, "book", book + 1)
        table.insert(1, "word", table.index + 1)
        low, high = limits_of([over(words[row].mean(0)) for row in drawn])
        books.append({"book": book + 1, "spread": over(table["person"].to_numpy()), "low": low, "high": high})
        tables.append(table)
    return Spread(pd.concat(tables, ignore_index=True), pd.DataFrame(books), len(items))


def over(shares: np.ndarray) -> float:
    """Return over how many words something is spread, as if evenly: e^entropy, 1 to w."""
    known = shares[shares > 0]
    return float(np.exp(-(known * np.log(known)).sum()))
