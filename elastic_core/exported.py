"""A model as one file that runs without this package, checked against its run: a program of torch.export, or ONNX.

    program = torch.export.load("model.pt2").module()
    scores = program(items)     items [B, length] int64, dense ids, oldest first, 0 on the left where there is no event
                                scores [B, n_items + 1]; column 0, the padding, is -inf; seen items are not left out
    scores = onnxruntime.InferenceSession("model.onnx").run(["scores"], {"items": items})[0]

What the dense ids mean lies in the file, too, as raw ids, one a line, from 1, and so does the length: `items` and `length` of
`torch.export.load(path, extra_files=…)` and of `session.get_modelmeta().custom_metadata_map`.
"""

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from elastic_core import files
from elastic_core.core.batches import Batch
from elastic_core.data import Catalog
from elastic_core.errors import InputError, unless_memory
from elastic_core.models import Recommender, SeenItems

IDS, LENGTH, NEAR, HISTORIES = "items", "length", 1e-4, 33  # the largest difference of a score; histories that are compared


class Scores(nn.Module):
    """Items `[B, length]` → scores `[B, n_items + 1]`."""

    def __init__(self, model: Recommender) -> None:
        super().__init__()
        self.model = model

    def forward(self, items: Tensor) -> Tensor:
        batch, scorer = Batch(items, items), self.model.scorer()
        seen_items = None if scorer.repeat_bias is None else SeenItems(items, torch.arange(items.shape[0], device=items.device))
        scores = scorer(self.model.last_state(batch), seen_items)
        return torch.cat([torch.full_like(scores[:, :1], -torch.inf), scores[:, 1:]], 1)


class ExportedProgram(NamedTuple):
    program: torch.export.ExportedProgram
    differs: float  # the largest difference of a score between it and the model
    any_batch_size: bool  # whether it takes any number of people at a time; else one


def export_program(model: Recommender) -> ExportedProgram:
    """The program, compared with the model over histories of every length.

    Raises InputError for a model without weights, one that torch cannot trace, and where a score differs by more than 1e-4.
    """
    if not model.trained:
        raise InputError(f"{model.config.name} has no weights to export; it is fitted to its data")
    scores = Scores(model.eval().requires_grad_(False)).eval()
    last_error: Exception | None = None
    for n_users in (4, 1):
        shapes = ({0: torch.export.Dim.AUTO if n_users > 1 else None},)
        try:
            with torch.no_grad():
                program = torch.export.export(scores, (_random_histories(model, n_users),), dynamic_shapes=shapes, strict=False)
            return ExportedProgram(program, _largest_difference(scores, program.module(), n_users > 1), n_users > 1)
        except InputError:
            raise
        except Exception as error:  # whatever a tracer meets in an operator
            unless_memory(error)
            last_error = error
    raise InputError(
        f"torch cannot export {model.config.name}: {files.printable_text(str(last_error).strip().splitlines()[0], 150)}"
    )


def save_program(exported: ExportedProgram, catalog: Catalog, length: int, path: Path) -> None:
    """Write the program and what its ids mean, whole or not at all."""
    extra_files = {IDS: "\n".join(map(str, catalog.ids[1:])), LENGTH: str(length)}
    files.write_whole(path, lambda beside: _write_program(exported.program, beside, extra_files))


def _write_program(program: torch.export.ExportedProgram, path: Path, extra_files: dict[str, str]) -> None:
    with path.open("wb") as file:
        torch.export.save(program, file, extra_files=extra_files)


def save_onnx(exported: ExportedProgram, model: Recommender, catalog: Catalog, path: Path) -> float:
    """Write the program as ONNX, whole or not at all, and return the largest difference of a score in ONNX Runtime.

    Raises InputError where the packages are missing, for an operator that ONNX has not, and where a score differs by more than
    1e-4.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 - torch needs it
    except ImportError as error:
        raise InputError(f"ONNX needs {error.name}: pip install onnx onnxscript onnxruntime, or write a .pt2") from None
    try:
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it misses torchvision, which no model here uses
        with warnings.catch_warnings(action="ignore"):
            program = torch.onnx.export(
                exported.program, dynamo=True, verbose=False, input_names=[IDS], output_names=["scores"], optimize=True
            )
    except torch.onnx.errors.OnnxExporterError as error:
        raise InputError(f"ONNX has not all that {model.config.name} needs; a .pt2 has it") from error
    assert program is not None
    program.model.metadata_props.update({IDS: "\n".join(map(str, catalog.ids[1:])), LENGTH: str(model.length)})
    content = program.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(content)

    def run(items: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {IDS: items.numpy()})[0])

    differs = _largest_difference(Scores(model).eval(), run, exported.any_batch_size)
    files.write_whole(path, lambda beside: beside.write_bytes(content))
    return differs


def _random_histories(model: Recommender, n_users: int, seed: int = 0) -> Tensor:
    """Random histories `[n_users, length]`, of one event up to all."""
    generator = torch.Generator().manual_seed(seed)
    items = torch.randint(1, model.n_items + 1, (n_users, model.length), generator=generator)
    for row, events in zip(items, torch.linspace(model.length, 1, n_users).int().tolist(), strict=True):
        row[: model.length - events] = 0
    return items


@torch.no_grad()
def _largest_difference(scores: Scores, run: Callable[[Tensor], Tensor], together: bool) -> float:
    """The largest difference. Raises InputError where it is too large."""
    items = _random_histories(scores.model, HISTORIES, seed=1)
    parts = (items, items[:1]) if together else items.split(1)
    differs = max(float((run(part)[:, 1:] - scores(part)[:, 1:]).abs().max()) for part in parts)
    if not differs <= NEAR:
        raise InputError(f"what is exported of {scores.model.config.name} scores {differs:.2g} otherwise than the run itself")
    return differs
