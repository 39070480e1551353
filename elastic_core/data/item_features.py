"""What items may be called, and are found by: titles, genres, and the decade of a year that ends a title."""

import functools
import re

import numpy as np

from elastic_core.core.histories import Catalog

YEAR = re.compile(r"\S\s*\((\d{3})\d\)\s*$")  # up to its decade
Traits = tuple[tuple[str, ...], np.ndarray]


@functools.lru_cache(maxsize=4)
def genre_table(catalog: Catalog) -> Traits:
    """Every genre by name, and which items have which, float32 [n_items + 1, G]; none where nothing is known of them."""
    genres_of_items = catalog.genres or ((),) * (catalog.n_items + 1)
    names = tuple(sorted({genre for genres in genres_of_items for genre in genres}))
    genre_index = {name: i for i, name in enumerate(names)}
    holds = np.zeros((len(genres_of_items), len(names)), np.float32)
    for item, genres in enumerate(genres_of_items):
        holds[item, [genre_index[genre] for genre in genres]] = 1
    return names, holds


@functools.lru_cache(maxsize=4)
def trait_table(catalog: Catalog) -> Traits:
    """As `genre_table`, with the decades of titles beside the genres ("1970s")."""
    names, holds = genre_table(catalog)
    titles = np.full(len(catalog.ids), "") if catalog.titles is None else catalog.titles
    of = np.array([f"{match[1]}0s" if (match := YEAR.search(str(title))) else "" for title in titles])
    decades = tuple(np.unique(of[of != ""]).tolist())
    return names + decades, np.concatenate([holds, *((of == decade)[:, None].astype(np.float32) for decade in decades)], 1)


def find_items_by_title(catalog: Catalog, text: str) -> np.ndarray:
    """Dense ids whose title (or raw id, where there are no titles) contains every word of `text`; case is ignored."""
    words = text.lower().split()
    return np.array(
        [i + 1 for i, name in enumerate(_lower_names(catalog)) if all(word in name for word in words)], dtype=np.int64
    )


@functools.lru_cache(maxsize=4)
def _lower_names(catalog: Catalog) -> list[str]:
    return [catalog.title(item).lower() for item in range(1, catalog.n_items + 1)]
