"""Without experts: the vectors that a model scores items by, or its codewords, laid flat. Do those of one kind lie together?"""

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import Quantises
from elastic_core.services.experts.codewords import codewords
from elastic_core.services.map import layouts, trust
from elastic_core.services.map.picture import OTHERS, commonest
from elastic_core.services.map.trust import Region

DRAWN, FEWEST = 4_000, 4  # marks on a map; vectors that make one
NONE = "none known"
KINDS = 7


class Laid(NamedTuple):
    """`table`: item or word, title, kind, x, y. `held`: which part of the variance lies along the two axes. `total`: of how many
    vectors these are."""

    table: pd.DataFrame
    alike: Region
    held: float
    total: int


@torch.inference_mode()
def items(model: Recommender, dataset: Dataset) -> Laid:
    """The items that most events are of; the kind is the genre that is listed first. Raises InputError for a model without."""
    if not model.trained:
        raise InputError(f"{model.config.name} learns no vectors")
    table = model.scorer().table[1:].detach().float().numpy()
    catalog, counts = dataset.catalog, dataset.all_counts()[1:]
    kept = np.sort(np.argsort(-counts, kind="stable")[:DRAWN])
    kinds = [catalog.genres[i + 1][0] if catalog.genres and catalog.genres[i + 1] else NONE for i in kept]
    about = pd.DataFrame({"item": kept + 1, "title": catalog.called(kept + 1)})
    return _laid(table[kept], about, np.array(kinds), len(table))


def lay_words(model: Quantises) -> Laid:
    """All codewords; the kind is the codebook."""
    found = codewords(model).words.detach().float().numpy()
    books, size = found.shape[:2]
    numbers = [*itertools.product(range(1, books + 1), range(1, size + 1))]
    kinds = np.array([f"codebook {book}" for book, _ in numbers])
    about = pd.DataFrame({"item": 0, "title": [f"word {word} of codebook {book}" for book, word in numbers]})
    return _laid(found.reshape(-1, found.shape[-1]), about, kinds, len(numbers))


def _laid(values: np.ndarray, about: pd.DataFrame, kinds: np.ndarray, total: int) -> Laid:
    if len(values) < FEWEST:
        raise InputError(f"a map needs at least {FEWEST} vectors")
    xy = layouts.pca(values)
    held = float(xy.var(0).sum() / layouts.unit(values).var(0).sum())
    known = kinds[kinds != NONE]
    many = len(set(known))
    common = commonest(known, KINDS if many > KINDS + 1 else many)
    shown = np.where(np.isin(kinds, [*common, NONE]), kinds, OTHERS)
    table = about.assign(kind=shown, x=xy[:, 0], y=xy[:, 1])
    return Laid(table, trust.region(values, kinds, (NONE,)), held, total)
