"""Weights of a finished run as the beginning of another one, over the same items or over a catalogue that has grown."""

import numpy as np
import torch
from torch import Tensor

from elastic_core import files, models
from elastic_core.core.config import ModelConfig
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.runs import MOST_WEIGHTS, WEIGHTS, Run
from elastic_core.runs.weights import load_model


def initial_weights(run: Run, config: ModelConfig, dataset: Dataset) -> Recommender:
    """A model of these settings over the items of `dataset`, with the weights of `run`.

    Items keep what was learned of them by their raw id; a new item starts at the mean of the known ones.
    Of another model it takes the table that items are scored by, if it is one that begins with that (`BeginsWithItems`).
    Raises InputError where the weights do not fit the settings or the items.
    """
    if not models.model_class(run.config.model.name).objective:
        raise InputError(f"the run {run.name} needs no training, so there are no weights of it to begin with")
    if config.name != run.config.model.name:
        model = models.build(config, dataset.catalog)
        if not isinstance(model, models.BeginsWithItems):
            raise InputError(f"the run {run.name} is {run.config.model.name}, whose weights do not fit {config.name}")
        if run.raw_ids() != [str(raw) for raw in dataset.catalog.ids]:
            raise InputError(f"the run {run.name} has other items")
        model.begin_with_items(run.model().scorer().table.detach())
        return model
    path, old, new = files.check_regular_file(run.path / WEIGHTS, MOST_WEIGHTS, run.path), run.catalog(), dataset.catalog
    learned = load_model(path, config, old, name=files.file_name(path, run.path))
    if run.raw_ids() == [str(raw) for raw in new.ids]:
        return learned
    return transfer_items(learned, old, models.build(config, new), new)


def transfer_items(learned: Recommender, old: Catalog, model: Recommender, new: Catalog) -> Recommender:
    """Load the weights of `learned`, a model over the catalogue `old`, into `model`, the same over `new`."""
    # of each new item its old row, 0 for an unknown one
    old_rows = np.array([0, *(old.find_item(str(raw)) for raw in new.ids[1:])])
    if not old_rows.any():
        raise InputError("none of these items is known to the run whose weights it shall begin with")
    # A table of positions may by accident have as many rows as there are items; only tables of items grow with one more item.
    one_more = models.outline(learned.config, old.n_items + 1)
    assert one_more is not None
    weights = learned.state_dict()
    for name, larger in one_more.state_dict().items():
        if larger.shape == weights[name].shape:
            continue
        if len(weights[name]) != old.n_items + 1:
            raise InputError(f"{name} grows with the items in another way than a row each, so it cannot take new ones")
        weights[name] = _item_rows(weights[name], torch.from_numpy(old_rows))
    model.load_state_dict(weights)
    return model


def _item_rows(table: Tensor, old_rows: Tensor) -> Tensor:
    """A table `[n_old + 1, …]` in the order of `old_rows [n_new + 1]`, with the mean row for unknown items; row 0 is padding."""
    rows = table[old_rows].clone()
    is_unknown = old_rows == 0
    is_unknown[0] = False
    if table.is_floating_point():
        rows[is_unknown] = table[1:].mean(0)
    return rows
