"""The vectors of a trained run as tables: of its items, its experts and its users."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import pandas as pd
import torch

from elastic_core.core.batches import reading_batch
from elastic_core.core.contract import Recommender, as_retrieving_model
from elastic_core.core.histories import Catalog, Dataset
from elastic_core.errors import InputError

Kind = Literal["items", "experts", "users"]
KINDS = ("items", "experts", "users")
BATCH = 256  # users that are read together


@torch.inference_mode()
def embedding_table(model: Recommender, kind: str, catalog: Catalog, load_data: Callable[[], Dataset]) -> pd.DataFrame:
    """A row a vector, float32, by id or number.

    items: the table that scores them. experts: the memory's vectors, which everybody shares. users: the state after everything
    that the data hold of them; of a model that mixes several vectors these one after another, then the logarithms of their
    shares. Raises InputError for a model without such vectors.
    """
    if kind not in KINDS:
        raise InputError(f"there are embeddings of {', '.join(KINDS)}, not of {kind!r}")
    if not model.trained:
        raise InputError(f"{model.config.name} counts and has no embeddings")
    if kind == "items":
        ids = pd.Index(catalog.ids[1:].astype(str).astype(object), name="item")
        return pd.DataFrame(model.scorer().table[1:].float().numpy(), index=ids)
    if kind == "experts":
        values = as_retrieving_model(model).expert_values().float().numpy()
        return pd.DataFrame(values, index=pd.RangeIndex(len(values), name="expert"))
    dataset = load_data()
    numbers, ends = np.arange(dataset.histories.n_users), dataset.histories.offsets[1:]
    chunks = (numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH))
    states = [model.last_state(reading_batch(dataset, users, ends[users], model.length)) for users in chunks]
    ids = pd.Index(dataset.histories.user_ids.astype(str).astype(object), name="user")
    return pd.DataFrame(torch.cat(states).float().numpy(), index=ids)
