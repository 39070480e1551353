"""A run as one file that runs without this package: a program of torch.export or ONNX, checked against the run.

  elastic export ml-100k-elastic --out model.pt2
  elastic export ml-100k-elastic --out model.onnx

It takes histories of dense ids and gives scores of all items, and -inf for the padding; the file holds what the ids mean and how
many events the model reads. In another program:

  files = {"items": "", "length": ""}
  program = torch.export.load("model.pt2", extra_files=files).module()
  ids = ["", *files["items"].splitlines()]
  history = [ids.index("50"), ids.index("181")]
  scores = program(torch.tensor([[0] * (int(files["length"]) - len(history)) + history]))

In ONNX Runtime the input is called items, the output scores; the ids lie in the file's metadata.

Every export is compared with the run over 33 histories; where a score differs by more than 1e-4, nothing is written.
"""

from pathlib import Path
from typing import Annotated

import typer

from elastic_core.commands.options import RunArgument
from elastic_core.commands.run_lookup import open_items, print_note
from elastic_core.errors import InputError
from elastic_core.exported import export_program, save_onnx, save_program


def run_command(
    run_name: RunArgument,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write, .pt2 or .onnx.")],
) -> None:
    if out.suffix not in (".pt2", ".onnx") or not out.parent.is_dir():
        raise InputError(f"--out must be a file ending in .pt2 or .onnx, in a folder that is there, not {out}")
    _, catalog, model = open_items(run_name)
    program = export_program(model)
    difference = program.differs
    if out.suffix == ".onnx":
        difference = save_onnx(program, model, catalog, out)
    else:
        save_program(program, catalog, model.length, out)
    batch_text = "any number of people at a time" if program.any_batch_size else "one person at a time"
    print_note(f"{out}: the last {model.length} events of {batch_text}; scores differ from the run's by {difference:.1g} at most")
