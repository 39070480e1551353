"""The catalogue: raw id <-> dense id 1…n <-> title. Dense id 0 is padding everywhere.

Dense ids follow the natural order of the raw ids ("2" before "10", "b2" before "b10"), so they depend on which items
are there and not on who met them first.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from elastic_core.errors import InputError

YEAR = re.compile(r"\S\s*\((\d{3})\d\)\s*$")  # up to its decade


@dataclass(frozen=True, eq=False)
class Catalog:
    """What the dense ids mean. Every sequence has n_items + 1 entries; entry 0 is padding and empty."""

    ids: np.ndarray
    titles: np.ndarray | None = None
    genres: tuple[tuple[str, ...], ...] | None = None

    @classmethod
    def numbered(cls, n_items: int) -> Self:
        """Items called 1 … n_items, of which nothing else is known."""
        return cls(np.array(["", *map(str, range(1, n_items + 1))], dtype=object))

    @property
    def n_items(self) -> int:
        return len(self.ids) - 1

    def title(self, item: int) -> str:
        """The title, or the raw id where there is none; one without letters as `item <raw id>`."""
        if not 1 <= item <= self.n_items:
            raise InputError(f"there is no item number {item}: the catalogue has 1 to {self.n_items}")
        known = str(self.titles[item]) if self.titles is not None else ""
        raw = str(self.ids[item])
        return known or (raw if any(map(str.isalpha, raw)) else f"item {raw}")

    def find(self, raw_id: str) -> int:
        """The dense id of a raw id, 0 for one that is not in the catalogue."""
        return self._index.get(str(raw_id), 0)

    def index(self, raw_id: str) -> int:
        """The dense id of a raw id. Raises InputError for one that is not in the catalogue."""
        found = self.find(raw_id)
        if not found:
            raise InputError(f"the catalogue has no item {str(raw_id)!r}")
        return found

    def search(self, text: str) -> np.ndarray:
        """Dense ids whose title (or raw id, where there are no titles) contains every word of `text`; case is ignored."""
        words = text.lower().split()
        return np.array([i + 1 for i, name in enumerate(self._lowered) if all(word in name for word in words)], dtype=np.int64)

    @cached_property
    def genre_table(self) -> tuple[tuple[str, ...], np.ndarray]:
        """Every genre by name, and which items have which, float32 [n_items + 1, G]; none where nothing is known of them."""
        listed = self.genres or ((),) * (self.n_items + 1)
        names = tuple(sorted({genre for genres in listed for genre in genres}))
        where = {name: i for i, name in enumerate(names)}
        holds = np.zeros((len(listed), len(names)), np.float32)
        for item, genres in enumerate(listed):
            holds[item, [where[genre] for genre in genres]] = 1
        return names, holds

    @cached_property
    def trait_table(self) -> tuple[tuple[str, ...], np.ndarray]:
        """As `genre_table`, what an item may be called: its genres, and the decade of a year that ends its title ("1970s")."""
        names, holds = self.genre_table
        of = np.array([_decade(str(title)) for title in (np.full(len(self.ids), "") if self.titles is None else self.titles)])
        decades = tuple(np.unique(of[of != ""]).tolist())
        return names + decades, np.concatenate([holds, *((of == decade)[:, None].astype(np.float32) for decade in decades)], 1)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {str(raw): dense for dense, raw in enumerate(self.ids) if dense}

    @cached_property
    def _lowered(self) -> list[str]:
        return [self.title(item).lower() for item in range(1, self.n_items + 1)]


def _decade(title: str) -> str:
    found = YEAR.search(title)
    return f"{found[1]}0s" if found else ""


