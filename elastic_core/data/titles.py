"""Titles and genres that lie in a file beside the events: u.item, movies.dat, movies.csv, *.item."""

import io
from collections.abc import Iterable, Sequence

import pandas as pd

from elastic_core.data.files import Bundle
from elastic_core.errors import InputError

# The order of the 19 flags at the end of each line of u.item, as its README and u.genre give it.
GENRES_100K = (
    "unknown|Action|Adventure|Animation|Children's|Comedy|Crime|Documentary|Drama|Fantasy|Film-Noir|Horror|Musical|Mystery"
    "|Romance|Sci-Fi|Thriller|War|Western"
)
NO_GENRE = ("", "(no genres listed)")


def read_titles(bundle: Bundle, events: str) -> pd.DataFrame | None:
    """item, title, genres from the companion of the events file, or None when it has none."""
    companion = {"u.data": "u.item", "ratings.dat": "movies.dat", "ratings.csv": "movies.csv"}.get(events)
    if events.endswith(".inter"):
        companion = events.removesuffix(".inter") + ".item"
    if companion is None or companion not in bundle.members:
        return None
    read = {"u.item": _u_item, "movies.dat": movies_dat, "movies.csv": _movies_csv}.get(companion, _recbole_item)
    try:
        return read(bundle.read(companion)).drop_duplicates("item")
    except (KeyError, IndexError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{bundle.describe(companion)} does not have the layout its name promises") from None


def movies_dat(data: bytes) -> pd.DataFrame:
    """MovieLens-1M: `id::title (year)::genre|genre`, latin-1."""
    return _rows(line.split("::") for line in data.decode("latin-1").splitlines() if line)


def _u_item(data: bytes) -> pd.DataFrame:
    """MovieLens-100K: `id|title (year)|...|19 flags`, latin-1."""
    rows, genres = [], GENRES_100K.split("|")
    for line in data.decode("latin-1").splitlines():
        if line:
            parts = line.split("|")
            flags = zip(genres, parts[-19:], strict=True)
            rows.append((parts[0], parts[1], "|".join(genre for genre, flag in flags if flag == "1")))
    return _rows(rows)


def _movies_csv(data: bytes) -> pd.DataFrame:
    frame = pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False)
    return _rows(zip(frame["movieId"], frame["title"], frame["genres"], strict=True))


def _recbole_item(data: bytes) -> pd.DataFrame:
    """RecBole's typed header; the year stands apart from the title, and genres are split by spaces."""
    frame = pd.read_csv(io.BytesIO(data), sep="\t", quoting=3, dtype=str, keep_default_na=False)
    frame.columns = [str(column).split(":")[0] for column in frame.columns]
    years = frame["release_year"] if "release_year" in frame else [""] * len(frame)
    titles = [f"{title} ({year})" if year.isdigit() else title for title, year in zip(frame["movie_title"], years, strict=True)]
    genres = frame["class"].str.replace(" ", "|") if "class" in frame else [""] * len(frame)
    return _rows(zip(frame["item_id"], titles, genres, strict=True))


def _rows(rows: Iterable[Sequence[str]]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows), columns=["item", "title", "genres"], dtype=object)
    frame["genres"] = [tuple(part for part in text.split("|") if part not in NO_GENRE) for text in frame["genres"]]
    return frame
