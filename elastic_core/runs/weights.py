"""A model from the file of its weights, which may come from anywhere: nothing in it is executed, and nothing believed."""

from pathlib import Path

import safetensors
import torch
from safetensors.torch import load_file
from torch import Tensor

from elastic_core import models
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Catalog
from elastic_core.errors import InputError, unless_memory
from elastic_core.files import explain_parse_errors, printable_text

LARGEST = 1e12  # of a weight: far beyond any that was learned, far below what float32 overflows from
PROBE = 8  # events of the history that is read to see whether scores come out


def load_model(
    path: Path,
    config: ModelConfig,
    catalog: Catalog,
    name: str,
) -> Recommender:
    """The model on the CPU, in eval mode. Raises InputError, which calls the file `name`, if it is cut short, does not fit, or
    holds weights that are no numbers or give no scores."""
    _check_shapes(path, config, catalog, name)
    weights = read_tensors(path, name)
    model = models.build(config, catalog)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        unless_memory(error)
        raise _unfit_weights(name, " ".join(str(error).split())[:200]) from None
    _check_scores(model.eval(), name)
    return model


def read_tensors(path: Path, name: str) -> dict[str, Tensor]:
    """All tensors of a file, which must be finite. Raises InputError, which calls the file `name` and names the tensor."""
    with explain_parse_errors(name):
        tensors = load_file(path)
    for key, values in tensors.items():
        if values.is_floating_point() and not bool((values.abs() <= LARGEST).all()):  # NaN compares false
            raise InputError(f"{name} holds numbers in {printable_text(key)} that are none, or beyond {LARGEST:g}")
    return tensors


def _check_shapes(path: Path, config: ModelConfig, catalog: Catalog, name: str) -> None:
    """Compares the file's header with the model's outline, before anything of the size of either is made."""
    outline = models.outline(config, catalog)
    if outline is None:  # it can only be told by building it
        return
    with explain_parse_errors(name), safetensors.safe_open(path, framework="pt") as file:
        shapes = {key: file.get_slice(key).get_shape() for key in file.keys()}  # noqa: SIM118, it is no mapping
    for key, values in outline.state_dict().items():
        if shapes.get(key) != list(values.shape):
            shape_there = "missing" if key not in shapes else str(shapes[key])
            raise _unfit_weights(name, f"{key} is {shape_there} where {list(values.shape)} belongs")


def _check_scores(model: Recommender, name: str) -> None:
    """Every weight may be a number, and what follows from them still none."""
    items = torch.arange(1, min(PROBE, model.length, model.n_items) + 1).unsqueeze(0)
    try:
        with torch.inference_mode():
            fine = bool(model.score(Batch(items, items, padded=False))[:, 1:].isfinite().all())
    except RuntimeError as error:  # such as an eigenvalue that does not converge
        unless_memory(error)
        fine = False
    if not fine:
        raise InputError(f"{name} holds weights under which no item gets a score that is a number")


def _unfit_weights(name: str, reason: str) -> InputError:
    return InputError(f"{name} does not fit its configuration: {reason}")
