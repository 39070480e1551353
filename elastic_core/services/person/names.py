"""Titles as people say them, and ids as their own files have them."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from elastic_core.data import Catalog

YEAR = re.compile(r"^(?P<name>.*\S)\s*\((?P<year>\d{4})\)\s*$")
ARTICLE = re.compile(r"^(?P<rest>.+), (?P<article>The|A|An|Il|La|Le|Les|El|Das|Der|Die)$")


def split_year(title: str) -> tuple[str, str]:
    """`Piano, The (1993)` → (`The Piano`, `1993`); the year is empty where there is none."""
    match = YEAR.match(title)
    name, year = (match["name"], match["year"]) if match else (title, "")
    article_match = ARTICLE.match(name)
    return (f"{article_match['article']} {article_match['rest']}" if article_match else name), year


def told_apart(titles: Sequence[str], ids: Sequence[object]) -> list[str]:
    """Return titles without their years, and with the id where two of a list are called the same: some data have a film twice."""
    title_counts = Counter(titles)
    named = [(split_year(title)[0], of) for title, of in zip(titles, ids, strict=True)]
    return [f"{name} (id {of})" if title_counts[title] > 1 else name for title, (name, of) in zip(titles, named, strict=True)]


def cut_alike(names: Sequence[str], room: int) -> list[str]:
    """Names for a place with room for so many letters: where the end of two different ones would be cut and the rest is the same,
    their middle is cut instead and the last word stays, `Frozen d…budget`."""
    beginnings = Counter(name[: room - 1] for name in set(names))

    def cut(name: str) -> str:
        if len(name) <= room or beginnings[name[: room - 1]] < 2:
            return name
        last = name.split()[-1]
        end = last if len(last) <= room - 4 else last[1 + room // 3 - room :]
        return f"{name[: room - 1 - len(end)].rstrip()}…{end}"

    return [cut(name) for name in names]


def order_by_words(titles: Sequence[str]) -> list[int]:
    """The indices of titles in their order, but a title with a word of three letters or more comes before all that contain these
    letters only within a longer word: whoever types `tea` means `Tea bags`, not `Steaks`."""
    words = [set(re.findall(r"\w{3,}", title.lower())) for title in titles]
    owners: dict[str, int] = {}
    for at, own_words in enumerate(words):
        for word in own_words:
            owners.setdefault(word, at)
    order: dict[int, None] = {}  # in the order of insertion
    waiting = set[int]()

    def place(at: int) -> None:
        if at in order or at in waiting:
            return
        waiting.add(at)
        inner = {word[i:j] for word in words[at] for i in range(1, len(word) - 2) for j in range(i + 3, len(word) + 1)}
        for part in sorted(inner & owners.keys(), key=owners.__getitem__):
            place(owners[part])
        waiting.discard(at)
        order[at] = None

    for at in range(len(titles)):
        place(at)
    return [*order]


def item_table(catalog: Catalog, items: Sequence[int] | np.ndarray) -> pd.DataFrame:
    """Return what items are: item, title, genres."""
    genres = [catalog.genres[item] if catalog.genres else () for item in items]
    return pd.DataFrame({"item": items, "title": catalog.titles_of(items), "genres": genres})


def raw_ids(catalog: Catalog, items: Sequence[int] | np.ndarray) -> str:
    """A history for a command line: one line of CSV."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow([catalog.ids[item] for item in items])
    return buffer.getvalue()
