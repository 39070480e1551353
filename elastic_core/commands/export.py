"""A run as one file that runs without this package: a program of torch.export or ONNX, checked against the run.

  python -m elastic_core export ml-100k-elastic --out model.pt2
  python -m elastic_core export ml-100k-elastic --out model.onnx

It takes histories of dense ids and gives scores of all items; the file holds what the ids mean. In another program:

  files = {"items": ""}
  program = torch.export.load("model.pt2", extra_files=files).module()
  ids = ["", *files["items"].splitlines()]
  scores = program(torch.tensor([[0] * (200 - 2) + [ids.index("50"), ids.index("181")]]))

In ONNX Runtime the input is called items, the output scores; the ids lie in the file's metadata.

Every export is compared with the run over 33 histories; where a score differs by more than 1e-4, nothing is written.
"""

import argparse
from pathlib import Path

from elastic_core.commands.arguments import add_options, open_items, print_note
from elastic_core.errors import InputError
from elastic_core.exported import export, save, save_onnx


def configure(parser: argparse.ArgumentParser) -> None:
    add_options(parser, "run_name RUN | text | a run folder, or its name below checkpoints/")
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help="the file to write, .pt2 or .onnx")


def run(arguments: argparse.Namespace) -> int:
    if arguments.out.suffix not in (".pt2", ".onnx") or not arguments.out.parent.is_dir():
        raise InputError(f"--out must be a file ending in .pt2 or .onnx, in a folder that is there, not {arguments.out}")
    _, catalog, model = open_items(arguments.run_name)
    program = export(model)
    differs = program.differs
    if arguments.out.suffix == ".onnx":
        differs = save_onnx(program, model, catalog, arguments.out)
    else:
        save(program, catalog, arguments.out)
    many = "any number of people at a time" if program.people else "one person at a time"
    print_note(
        f"{arguments.out}: the last {model.length} events of {many}; scores differ from the run's by {differs:.1g} at most"
    )
    return 0
