"""Titles and genres of items: from the rows of the events themselves, or from a file beside them."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from elastic_core.data.reading.cells import Spellings, clean_cell, spelt
from elastic_core.text import calm

# The order of the 19 flags at the end of each line of u.item, as its README and u.genre give it.
GENRES_100K = (
    "unknown|Action|Adventure|Animation|Children's|Comedy|Crime|Documentary|Drama|Fantasy|Film-Noir|Horror|Musical|Mystery"
    "|Romance|Sci-Fi|Thriller|War|Western"
).split("|")
BESIDE = re.compile(
    r"(?i)(u\.item|(movies?|items?|products?|books?|games?|songs?|titles|catalog(ue)?)\.(dat|csv|tsv|txt|parquet))$"
)
LONGEST, NO_GENRE = 200, "(no genres listed)"


class Titles:
    """What the events' own rows say of items: the first that says something speaks, where an item says one thing."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.known: dict[str, dict[int, str]] = {name: {} for name in names}
        self.against: dict[str, set[int]] = {name: set() for name in names}  # items of which a second thing is said

    def add(self, items: np.ndarray, columns: Mapping[str, Any]) -> None:
        for name, column in columns.items():
            spellings = Spellings()
            pairs = DataFrame({"item": items, "text": spellings.numbers(column)}).drop_duplicates()
            texts = [clean_cell(text) for text in spellings.texts]
            for item, number in pairs.to_numpy().tolist():
                if texts[number] and self.known[name].setdefault(item, texts[number]) != texts[number]:
                    self.against[name].add(item)

    def table(self, ids: list[str], notes: list[str]) -> DataFrame | None:
        """Return item, title, genres of all `ids`, by their numbers; what is said of several spellings is what the first says."""
        kept = [name for name in self.names if len(self.against[name]) <= 0.2 * len(self.known[name])]
        for name in set(self.names) - set(kept):
            notes.append(f"the column for the {name} says many things of one item, so it was not taken for what items are called")
        if not kept:
            return None
        found = DataFrame({"item": ids}, dtype=object)
        for name in kept:
            cells = [self.known[name].get(number, "") for number in range(len(ids))]
            found[name] = pd.Series(tame(cells, notes) if name == "title" else genres(cells), dtype=object)
        return found.drop_duplicates("item")


def of_items(table: Any, named: Mapping[str, str], headed: bool, notes: list[str]) -> DataFrame | None:
    """Return item, title, genres of a table of items whose columns are `named`; None where it says nothing of items."""
    names = list(table.column_names)
    flags = not headed and len(names) == 24  # u.item: 19 flags at the end
    named = named if headed else {"item": names[0], "title": names[1], **({"genres": names[2]} if len(names) == 3 else {})}
    if "item" not in named or not {"title", "genres"} & set(named) or len(names) < 2:
        return None
    cells = {ours: [clean_cell(text) for text in spelt(table[name]).to_pylist()] for ours, name in named.items()}
    found = DataFrame({"item": cells["item"]}, dtype=object)
    if "title" in cells:
        years = table["release_year"].to_pylist() if "release_year" in names else [""] * len(table)
        found["title"] = tame(
            [f"{text} ({y})" if text and y and y.isdigit() else text for text, y in zip(cells["title"], years, strict=True)],
            notes,
        )
    if flags:
        rows = zip(*(table[name].to_pylist() for name in names[-19:]), strict=True)
        found["genres"] = [tuple(genre for genre, flag in zip(GENRES_100K, row, strict=True) if flag == "1") for row in rows]
    elif "genres" in cells:
        spaced = "class" in names and not any("|" in text for text in cells["genres"])  # as RecBole writes them
        found["genres"] = genres([text.replace(" ", "|") for text in cells["genres"]] if spaced else cells["genres"])
    return found[found["item"] != ""].drop_duplicates("item")


def tame(cells: list[str], notes: list[str]) -> list[str]:
    """Return titles that stay text, and say what was odd about them."""
    calmed = [calm(text).strip() for text in cells]
    counts = (
        (sum(a.strip() != b for a, b in zip(cells, calmed, strict=True)), "titles held control characters, which were taken out"),
        (sum(len(text) > LONGEST for text in calmed), f"titles were cut to {LONGEST} characters"),
        (sum(bool(re.search(r"<[a-zA-Z/!]", text)) for text in calmed), "titles hold HTML, which is shown as text and never run"),
    )
    notes += [f"{count:,} {what}" for count, what in counts if count]
    return [text[:LONGEST] for text in calmed]


def genres(cells: list[str]) -> list[tuple[str, ...]]:
    """Split at bars; where no cell has any, at semicolons or commas."""
    mark = next((mark for mark in "|;," if any(mark in text for text in cells)), "|")
    parts = ([calm(part).strip(" []'\"")[:60] for part in text.split(mark)] for text in cells)
    return [tuple(part for part in row if part and part != NO_GENRE)[:20] for row in parts]
