"""One map of the experts: which are drawn and where, and what colours them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from elastic_core.services.map import layouts

NO_NAME, NO_INTEREST, OTHERS = "no name", "reads nothing", "others"
COLOURS = {
    "load": "How many people use it",
    "name": "Name",
    "row": "Row",
    "column": "Column",
    "interest": "True interest",
    "last": "Last epoch in use",
}


class Map(NamedTuple):
    """`experts [n]` at `xy [n, 2]`; `placed`: not part of the layout, put beside their nearest afterwards."""

    kind: str
    experts: np.ndarray
    xy: np.ndarray
    placed: np.ndarray

    @property
    def laid_out_experts(self) -> np.ndarray:
        return self.experts[~self.placed]


def by_pca(values: np.ndarray, load: np.ndarray, always: Sequence[int]) -> Map:
    """Everybody, or a sample by decile of load with `always` in it."""
    experts = layouts.sample_experts(load, layouts.DRAWN, tuple(always))
    return Map("PCA", experts, layouts.project_pca(values[experts]), np.zeros(len(experts), dtype=bool))


def by_umap(values: np.ndarray, store: layouts.Store, settings: layouts.Settings, seed: int, always: Sequence[int]) -> Map | None:
    """The stored layout, and `always` too, at the mean place of their five nearest; None where it was never computed."""
    xy = store.get(settings, seed)
    if xy is None:
        return None
    missing = np.setdiff1d(np.array(always, dtype=np.int64), store.experts)
    similar = layouts.unit_vectors(values[missing]) @ layouts.unit_vectors(values[store.experts]).T
    nearest = np.argsort(-similar, axis=1, kind="stable")[:, :5]
    experts, xy = np.concatenate([store.experts, missing]), np.concatenate([xy, xy[nearest].mean(1)])
    return Map("UMAP", experts, xy, np.arange(len(experts)) >= len(store.experts))


def map_marks(drawn: Map, table: pd.DataFrame, labels: np.ndarray, retrieved: Mapping[int, int]) -> pd.DataFrame:
    """List every mark: expert, row, column, load, x, y, colour, retrieved. `found`: what colours all experts; `retrieved`: the
    ranks of this person's, 0 for the others."""
    marks = table.loc[drawn.experts, ["expert", "row", "column", "load"]].reset_index(drop=True)
    x, y = drawn.xy.T
    return marks.assign(x=x, y=y, colour=labels[drawn.experts], retrieved=marks["expert"].map(retrieved).fillna(0).astype(int))


def colour_choices(table: pd.DataFrame) -> dict[str, str]:
    """Return the colourings that this run and its data allow, and what they show."""
    needed = {"last": "last_used"}
    return {name: shows for name, shows in COLOURS.items() if needed.get(name, name) in table}


def colour_labels(table: pd.DataFrame, colour: str) -> np.ndarray:
    """One label (text) or number an expert."""
    if colour == "name":
        return table["name"].replace("", NO_NAME).to_numpy(dtype=str)
    if colour == "interest":
        return table["interest"].replace("", NO_INTEREST).to_numpy(dtype=str)
    if colour in ("row", "column"):
        return (colour + " " + table[colour].astype(str)).to_numpy(dtype=str)
    return table["load" if colour == "load" else "last_used"].to_numpy(dtype=float)


def most_common(labels: np.ndarray, most: int = 7) -> list[str]:
    """The labels that most experts have, the commonest first, what stands for nothing last."""
    names, counts = np.unique(labels[~np.isin(labels, (NO_NAME, NO_INTEREST))], return_counts=True)
    return names[np.argsort(-counts, kind="stable")][:most].tolist()
