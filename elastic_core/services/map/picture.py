"""One map of the experts: which are drawn and where, what colours them, and how people name a set of them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from elastic_core.errors import InputError
from elastic_core.services import public
from elastic_core.services.map import layouts

NO_GENRE, NO_INTEREST, OTHERS = "none stands out", "reads nothing", "others"
COLOURS = {
    "load": "How many people use it",
    "genre": "What its people like",
    "row": "Row",
    "column": "Column",
    "interest": "True interest",
    "last": "Last epoch in use",
}
WRITTEN = 1_200  # characters of a set that fit in an address
LONGEST = 200_000  # bytes of an uploaded file


class Map(NamedTuple):
    """`experts [n]` at `xy [n, 2]`; `placed`: not part of the layout, put beside their nearest afterwards."""

    kind: str
    experts: np.ndarray
    xy: np.ndarray
    placed: np.ndarray
    span: float | None = None  # how far the axes reach, where several maps are seen at one scale

    @property
    def laid(self) -> np.ndarray:
        return self.experts[~self.placed]


def by_pca(values: np.ndarray, load: np.ndarray, always: Sequence[int]) -> Map:
    """Everybody, or a sample by decile of load with `always` in it."""
    experts = layouts.sample(load, layouts.DRAWN, tuple(always))
    return Map("PCA", experts, layouts.pca(values[experts]), np.zeros(len(experts), dtype=bool))


def by_umap(values: np.ndarray, store: layouts.Store, settings: layouts.Settings, seed: int, always: Sequence[int]) -> Map | None:
    """The stored layout, and `always` too, at the mean place of their five nearest; None where it was never computed."""
    xy = store.get(settings, seed)
    if xy is None:
        return None
    missing = np.setdiff1d(np.array(always, dtype=np.int64), store.experts)
    similar = layouts.unit(values[missing]) @ layouts.unit(values[store.experts]).T
    nearest = np.argsort(-similar, axis=1, kind="stable")[:, :5]
    experts, xy = np.concatenate([store.experts, missing]), np.concatenate([xy, xy[nearest].mean(1)])
    return Map("UMAP", experts, xy, np.arange(len(experts)) >= len(store.experts))


def at_epoch(kind: str, aligned: np.ndarray, epoch: int) -> Map:
    """Take one of several layouts of all experts, `[E, K, 2]`."""
    xy = aligned[epoch]
    return Map(f"Aligned {kind}", np.arange(len(xy)), xy, np.zeros(len(xy), dtype=bool), float(np.abs(aligned).max()) * 1.08)


def marks(drawn: Map, table: pd.DataFrame, found: np.ndarray, retrieved: Mapping[int, int]) -> pd.DataFrame:
    """List every mark: expert, row, column, load, x, y, colour, retrieved. `found`: what colours all experts; `retrieved`: the
    ranks of this person's, 0 for the others."""
    some = table.loc[drawn.experts, ["expert", "row", "column", "load"]].reset_index(drop=True)
    x, y = drawn.xy.T
    return some.assign(x=x, y=y, colour=found[drawn.experts], retrieved=some["expert"].map(retrieved).fillna(0).astype(int))


def offered(table: pd.DataFrame) -> dict[str, str]:
    """Return the colourings that this run and its data allow, and what they show."""
    needed = {"genre": "people_genre", "interest": "interest", "last": "last_used"}
    return {name: shows for name, shows in COLOURS.items() if needed.get(name, name) in table}


def labels(table: pd.DataFrame, colour: str) -> np.ndarray:
    """One label (text) or number an expert. A genre only where its lift's interval lies above 1."""
    if colour == "genre":
        sure = table["people_low"].gt(1)
        return table["people_genre"].where(sure, NO_GENRE).fillna(NO_GENRE).to_numpy(dtype=str)
    if colour == "interest":
        return table["interest"].replace("", NO_INTEREST).to_numpy(dtype=str)
    if colour in ("row", "column"):
        return (colour + " " + table[colour].astype(str)).to_numpy(dtype=str)
    return table["load" if colour == "load" else "last_used"].to_numpy(dtype=float)


def commonest(found: np.ndarray, most: int = 7) -> list[str]:
    """The labels that most experts have, the commonest first, what stands for nothing last."""
    names, counts = np.unique(found[~np.isin(found, (NO_GENRE, NO_INTEREST))], return_counts=True)
    return names[np.argsort(-counts, kind="stable")][:most].tolist()


def pick(text: str, table: pd.DataFrame) -> tuple[list[int], list[str]]:
    """Experts that a text names, and the parts that name none: `12, 40-47, row 3, column 5, Comedy, dead`."""
    parts = [part.strip() for part in re.split(r"[,;.]", text[:20_000]) if part.strip()]
    found = [_experts_named(part, table) for part in parts]
    unknown = [part[:30] for part, experts in zip(parts, found, strict=True) if not experts]
    return sorted(set().union(*found)), unknown


def _experts_named(part: str, table: pd.DataFrame) -> list[int]:
    low = part.lower()
    if span := re.fullmatch(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?", part):
        return table.index[int(span[1]) : int(span[2] or span[1]) + 1].tolist()
    if line := re.fullmatch(r"(row|column)\s+(\d{1,6})", low):
        return table.index[table[line[1]] == int(line[2])].tolist()
    if low == "dead":
        return table.index[table["load"] == 0].tolist()
    found: set[int] = set()
    for colour in ("genre", "interest"):
        if colour in offered(table):
            names = pd.Series(labels(table, colour)).str.lower()
            found.update(names.index[names.str.contains(low, regex=False) & ~names.isin([NO_GENRE, NO_INTEREST])].tolist())
    return sorted(found)


def ranges_text(experts: Sequence[int]) -> str:
    """A set as short text, runs as ranges: `3-7.12.40`."""
    numbers = np.unique(np.array(experts, dtype=np.int64))
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1) if len(numbers) else []
    return ".".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def to_file(run: str, data_hash: str, sets: dict[str, list[int]]) -> str:
    return json.dumps({"kind": "expert sets", "run": run, "hash": data_hash, "sets": sets}, indent=1)


def from_file(content: bytes, size: int) -> tuple[str, str, dict[str, list[int]]]:
    """Run, hash of its values and sets of a file that `to_file` wrote. Raises InputError for anything else."""
    public.refuse("upload")
    if len(content) > LONGEST:
        raise InputError(f"the file is larger than {LONGEST // 1000} kB")
    try:
        plain = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InputError("the file is not JSON") from None
    sets = plain.get("sets") if isinstance(plain, dict) else None
    if not isinstance(sets, dict) or plain.get("kind") != "expert sets" or len(sets) > 50:
        raise InputError("the file does not hold sets of experts")
    for name, experts in sets.items():
        if not isinstance(experts, list) or not all(type(e) is int and 0 <= e < size for e in experts):
            raise InputError(f"the set {name[:40]!r} names experts that this run does not have (0 to {size - 1})")
    clean = {" ".join(name.split())[:40] or "set": sorted(set(experts)) for name, experts in sets.items()}
    return str(plain.get("run", ""))[:80], str(plain.get("hash", ""))[:16], clean
