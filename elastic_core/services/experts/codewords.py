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
from elastic_core.peers.parts.capabilities import Codewords, Quantises
from elastic_core.services.person.recommend import reading

DRAWS, TITLES, FEWEST = 100, 3, 3  # shuffles; titles of a word; items of a half that a label needs


class Words(NamedTuple):
    """`table`, a row a word: book, word (from 1), items, share (of all events), titles, label, held (share of held-out items
    with the label), chance (the same of shuffled items), sure (above 97.5% of shuffles). `books`: book, words, used, held,
    chance, low, high (95% of shuffles), items (held out and labelled)."""

    table: pd.DataFrame
    books: pd.DataFrame
    soft: bool
    genres: bool


def codewords(model: Quantises) -> Codewords:
    with torch.inference_mode():
        return model.codewords()


def judge_words(found: Codewords, dataset: Dataset, draws: int = DRAWS) -> Words:
    """All words of all codebooks."""
    chosen, size = found.chosen.numpy(), found.words.shape[1]
    names, holds = genre_table(dataset.catalog)
    rng = np.random.default_rng([0, 1])  # not the stream that a planted world of this seed was drawn from
    counts = dataset.counts()[1:].astype(float)
    learned = rng.permutation(len(chosen)) % 2 == 0
    genres, shape = holds[1:], (chosen.shape[1], size)
    shuffled = [_judged(chosen[rng.permutation(len(chosen))], size, genres, learned) for _ in range(draws)] if names else []
    labels, held, items = (
        _judged(chosen, size, genres, learned) if names else (np.full(shape, -1), np.full(shape, np.nan), np.zeros(shape))
    )
    popular = np.argsort(-counts, kind="stable")
    rows, books = [], []
    for book in range(chosen.shape[1]):
        null = np.array([draw[1][book] for draw in shuffled]).reshape(len(shuffled), size)
        for word in range(size):
            there = popular[chosen[popular, book] == word]
            known, chance = labels[book, word] >= 0, null[:, word][np.isfinite(null[:, word])]
            rows.append(
                {
                    "book": book + 1, "word": word + 1, "items": len(there), "share": counts[there].sum() / max(counts.sum(), 1),
                    "titles": " · ".join(dataset.catalog.title(int(i) + 1) for i in there[:TITLES]),
                    "label": names[labels[book, word]] if known else "", "held": held[book, word],
                    "chance": chance.mean() if known and len(chance) else np.nan,
                    "sure": bool(known and len(chance) and held[book, word] > np.quantile(chance, 0.975)),
                }
            )  # fmt: skip
        drawn = [_share_held(draw[1][book], draw[2][book]) for draw in shuffled] or [np.nan]
        low, high = np.nanquantile(drawn, (0.025, 0.975))
        books.append(
            {
                "book": book + 1, "words": size, "used": len(np.unique(chosen[:, book])),
                "held": _share_held(held[book], items[book]), "chance": float(np.nanmean(drawn)), "low": float(low),
                "high": float(high), "items": int(items[book].sum()),
            }
        )  # fmt: skip
    return Words(pd.DataFrame(rows), pd.DataFrame(books), found.shares is not None, bool(names))


def _judged(chosen: np.ndarray, size: int, genres: np.ndarray, learned: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every word `[b, w]`: the genre that half of the items gives it (-1: none), which part of its items in the other half
    have it (NaN: none there), and how many those are."""
    books = chosen.shape[1]
    where = (chosen + size * np.arange(books)).T  # [b, n] a word's number among all
    parts = []
    for half in (learned, ~learned):
        flat = where[:, half].ravel()
        total = np.bincount(flat, minlength=books * size).astype(float)
        having = np.stack([np.bincount(flat, np.tile(column, books), books * size) for column in genres[half].T], -1)
        parts.append((total, having))
    (total, having), (rest, kept) = parts
    base = genres[learned].mean(0)
    above = (having - total[:, None] * base) / np.sqrt(np.maximum(total[:, None] * base * (1 - base), 1e-9))
    label = np.where(total >= FEWEST, above.argmax(1), -1)
    right = np.take_along_axis(kept, np.maximum(label, 0)[:, None], 1)[:, 0]
    held = np.where((label >= 0) & (rest > 0), right / np.maximum(rest, 1), np.nan)
    shape = (books, size)
    return label.reshape(shape), held.reshape(shape), np.where(label >= 0, rest, 0).reshape(shape)


def _share_held(held: np.ndarray, items: np.ndarray) -> float:
    """Which part of a codebook's held-out items have the label of their word."""
    return float(np.nansum(held * items) / items.sum()) if items.sum() else np.nan


# --- one history ------------------------------------------------------------------------------------------------------


class Spread(NamedTuple):
    """`table`: book, word, person (share of the history read), everybody (of all events). `books`: book, spread (over how many
    words, as if evenly: e^entropy), low, high (95% of as many events drawn from everybody's)."""

    table: pd.DataFrame
    books: pd.DataFrame
    events: int


def spread(found: Codewords, dataset: Dataset, user: int, length: int) -> Spread:
    """How the last `length` events of a person lie on the words of every codebook."""
    items = np.asarray(reading(dataset, user).items[-length:]) - 1
    counts, rng = dataset.counts()[1:].astype(float), np.random.default_rng(0)
    drawn = rng.choice(len(counts), (200, len(items)), p=counts / counts.sum())
    rows, books = [], []
    size = found.words.shape[1]
    for book in range(found.chosen.shape[1]):
        # how much of every item is in which word, [n_items, w]
        table = np.eye(size)[found.chosen[:, book]] if found.shares is None else found.shares[:, book].double().numpy()
        mine, all_ = table[items].mean(0), counts @ table / counts.sum()
        rows.append(pd.DataFrame({"book": book + 1, "word": np.arange(1, size + 1), "person": mine, "everybody": all_}))
        low, high = limits_of([over(table[row].mean(0)) for row in drawn])
        books.append({"book": book + 1, "spread": over(mine), "low": low, "high": high})
    return Spread(pd.concat(rows, ignore_index=True), pd.DataFrame(books), len(items))


def over(shares: np.ndarray) -> float:
    """Over how many words something is spread, as if evenly: e^entropy, 1 to w."""
    known = shares[shares > 0]
    return float(np.exp(-(known * np.log(known)).sum()))
