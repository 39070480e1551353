"""Weights over a catalogue that has grown: what was learned of an item goes with its raw id, and a new item starts where its
genres, its decade and the words of its title would put it.

That is a ridge regression from features to the rows of each item table, its strength chosen by generalized cross-validation
(Golub, Heath & Wahba 1979). Without features in common a new item starts at the mean row. Measured in checkpoints/LOG.md: new
films come into a good order among themselves, and hardly ever into a list of ten before they are learned.
"""

import re
from collections import Counter

import numpy as np
import torch
from torch import Tensor

from elastic_core import disk, models
from elastic_core.core.config import ModelConfig
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Catalog, Dataset
from elastic_core.data.traits import trait_table
from elastic_core.errors import InputError
from elastic_core.runs import MOST_WEIGHTS, WEIGHTS, Run
from elastic_core.runs.weights import model_from
from elastic_core.scale.row_bank import row_banks

STRENGTHS = np.logspace(-2, 4, 25)
SHARED, MOST_WORDS = 2, 2_000  # a word of a title says something of items only if as many have it; so many are used


def weights_for(run: Run, config: ModelConfig, dataset: Dataset) -> Recommender:
    """Return a run's weights in a model of other settings over these items. Raises InputError where they do not fit."""
    if not models.model_class(run.config.model.name).objective:
        raise InputError(f"the run {run.name} needs no training, so there are no weights of it to begin with")
    if config.name != run.config.model.name:
        raise InputError(f"the run {run.name} is {run.config.model.name}, whose weights do not fit {config.name}")
    path, old, new = disk.regular(run.path / WEIGHTS, MOST_WEIGHTS, run.path), run.catalog(), dataset.catalog
    learned = model_from(path, config, old, name=disk.file_name(path, run.path), tables=run.load_bank)
    return learned if run.raw_ids() == [str(raw) for raw in new.ids] else grown(learned, old, models.build(config, new), new)


def grown(learned: Recommender, old: Catalog, model: Recommender, new: Catalog) -> Recommender:
    """Return `model`, built over `new`, with the weights `learned` over `old`.

    Raises InputError where the two have no item in common or weights do not fit, and for tables that are kept outside of the
    weights (`rows`)."""
    if row_banks(model):
        raise InputError("tables of which a step touches single rows cannot take new items: set model.item_bank=dense")
    where = np.array([0, *(old.find(str(raw)) for raw in new.ids[1:])])  # of each new number the old one, 0 for an unknown item
    if not where.any():
        raise InputError("none of these items is known to the run whose weights it shall begin with")
    rows_of_all, before = FeatureRows(where, features(new)), learned.state_dict()
    larger = models.outline(learned.config, old.n_items + 1)  # tells tables of items from what has as many rows by accident
    assert larger is not None
    tables = {name for name, values in larger.state_dict().items() if values.shape != before[name].shape}
    for name in tables:
        if before[name].shape[:1] != (old.n_items + 1,):
            raise InputError(f"{name} grows with the items in another way than a row each, so it cannot take new ones")
    model.load_state_dict({name: rows_of_all(values) if name in tables else values for name, values in before.items()})
    return model


def features(catalog: Catalog) -> np.ndarray:
    """Return which items have which traits and words of titles, of those that items share: float64 `[n_items + 1, F]`."""
    _, traits = trait_table(catalog)
    titles = np.full(catalog.n_items + 1, "") if catalog.titles is None else catalog.titles
    words = [set(re.findall(r"[^\W\d_]{3,}", str(title).lower())) for title in titles]
    often = Counter(word for said in words for word in said)
    place = {word: at for at, (word, n) in enumerate(often.most_common(MOST_WORDS)) if n >= SHARED}
    found = np.zeros((catalog.n_items + 1, len(place)))
    for item, said in enumerate(words):
        found[item, [place[word] for word in said if word in place]] = 1
    return np.concatenate([traits.astype(np.float64), found], 1)


class FeatureRows:
    """Turns a table of the old items into one of the new: known rows as they were, the others as their features say."""

    def __init__(self, where: np.ndarray, features: np.ndarray) -> None:
        self.where, self.known = torch.from_numpy(where), where > 0
        self.unknown = ~self.known & (np.arange(len(where)) > 0)
        mean = features[self.known].mean(0)
        self.left, self.sizes, self.right = np.linalg.svd(features[self.known] - mean, full_matrices=False)
        self.asked = features[self.unknown] - mean

    def __call__(self, table: Tensor) -> Tensor:
        """`[n_old + 1, …]` → `[n_new + 1, …]`; row 0 stays."""
        out = table[self.where].clone()
        if not self.unknown.any() or not table.is_floating_point():
            return out
        rows = out[torch.from_numpy(self.known)].double().flatten(1).numpy()
        out[torch.from_numpy(self.unknown)] = torch.from_numpy(self.predicted(rows)).to(out.dtype).reshape(-1, *table.shape[1:])
        return out

    def predicted(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the known items `[n, D]` → of the unknown ones, by the ridge whose generalized cross-validation is least."""
        middle = rows.mean(0)
        inside, total = self.left.T @ (rows - middle), ((rows - middle) ** 2).sum()
        best, shrunk = np.inf, np.zeros(len(self.sizes))  # nothing but the mean row
        for strength in (*STRENGTHS, np.inf):
            kept = self.sizes**2 / (self.sizes**2 + strength)
            free = len(rows) - 1 - kept.sum()
            error = (total - ((2 * kept - kept**2) @ (inside**2).sum(1))) / free**2 if free > 0 else np.inf
            if error < best:
                best, shrunk = error, np.divide(kept, self.sizes, out=np.zeros_like(kept), where=self.sizes > 1e-9)
        return np.asarray(middle + self.asked @ self.right.T @ (shrunk[:, None] * inside))
