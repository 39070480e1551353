"""Titles and genres of items: from the rows of the events themselves, or from a file beside them."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from elastic_core.data.reading.cell_text import Spellings, clean_cell, to_text
from elastic_core.data.reading.column_roles import NAMES, usual_key
from elastic_core.text import strip_controls

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
        self.spellings = {name: Spellings() for name in names}
        self.pairs = {name: DataFrame({"item": [], "text": []}, dtype=np.int32) for name in names}  # what is said of an item

    def add(self, items: np.ndarray, columns: Mapping[str, Any]) -> None:
        for name in self.names:
            texts_of_items = DataFrame({"item": items, "text": self.spellings[name].add(columns[name])})
            self.pairs[name] = pd.concat([self.pairs[name], texts_of_items.drop_duplicates()]).drop_duplicates()

    def build_table(self, ids: list[str], notes: list[str]) -> DataFrame | None:
        """Return item, title, genres of all `ids`, by their numbers; what is said of several spellings is what the first says."""
        items = DataFrame({"item": ids}, dtype=object)
        for name in self.names:
            texts = np.array([clean_cell(text) for text in self.spellings[name].texts], dtype=object)
            pairs = self.pairs[name].assign(text=texts[self.pairs[name]["text"]]).query("text != ''").drop_duplicates()
            again = pairs["item"].duplicated()
            if pairs["item"][again].nunique() > 0.2 * (~again).sum():
                notes.append(
                    f"the column for the {name} says many things of one item, so it was not taken for what items are called"
                )
                continue
            cells = pairs[~again].set_index("item")["text"].reindex(range(len(ids)), fill_value="").tolist()
            items[name] = pd.Series(clean_titles(cells, notes) if name == "title" else split_genres(cells), dtype=object)
        return items.drop_duplicates("item") if len(items.columns) > 1 else None


def extract_items(table: Any, headed: bool, notes: list[str]) -> DataFrame | None:
    """Return item, title, genres of a table of items, by the names of its columns; None where it says nothing of items."""
    names = list(table.column_names)
    columns = dict(zip(("item", "title", "genres"), names[: 3 if len(names) == 3 else 2], strict=False))
    if headed:
        keys = {ours: [usual_key(name) for name in names] for ours in ("item", "title", "genres")}
        columns = {ours: names[keys[ours].index(key)] for ours in keys for key in NAMES[ours][::-1] if key in keys[ours]}
    if "item" not in columns or len(columns) < 2:
        return None
    frame = DataFrame({ours: [clean_cell(text) for text in to_text(table[name]).to_pylist()] for ours, name in columns.items()})
    if "title" in frame:
        years = to_text(table["release_year"]).fill_null("").to_pylist() if "release_year" in names else [""] * len(frame)
        titles = [f"{text} ({y})" if text and y.isdigit() else text for text, y in zip(frame["title"], years, strict=True)]
        frame["title"] = clean_titles(titles, notes)
    if not headed and len(names) == 24:  # u.item: 19 flags at the end
        rows = zip(*(table[name].to_pylist() for name in names[-19:]), strict=True)
        frame["genres"] = [tuple(genre for genre, flag in zip(GENRES_100K, row, strict=True) if flag == "1") for row in rows]
    elif "genres" in frame:
        spaced = "class" in names and not frame["genres"].str.contains("|", regex=False).any()  # as RecBole writes them
        frame["genres"] = split_genres((frame["genres"].str.replace(" ", "|") if spaced else frame["genres"]).tolist())
    return frame[frame["item"] != ""].drop_duplicates("item").astype(object)


def clean_titles(cells: list[str], notes: list[str]) -> list[str]:
    """Return titles that stay text, and say what was odd about them."""
    cleaned = [strip_controls(text).strip() for text in cells]
    if odd := sum(text.strip() != clean for text, clean in zip(cells, cleaned, strict=True)):
        notes.append(f"{odd:,} titles held control characters, which were taken out")
    if long := sum(len(text) > LONGEST for text in cleaned):
        notes.append(f"{long:,} titles were cut to {LONGEST} characters")
    if marked := sum(bool(re.search(r"<[a-zA-Z/!]", text)) for text in cleaned):
        notes.append(f"{marked:,} titles hold HTML, which is shown as text and never run")
    return [text[:LONGEST] for text in cleaned]


def split_genres(cells: list[str]) -> list[tuple[str, ...]]:
    """Split at bars; where no cell has any, at semicolons or commas."""
    mark = next((mark for mark in "|;," if any(mark in text for text in cells)), "|")
    parts = ([strip_controls(part).strip(" []'\"")[:60] for part in text.split(mark)] for text in cells)
    return [tuple(part for part in row if part and part != NO_GENRE)[:20] for row in parts]
