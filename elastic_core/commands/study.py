"""Does a long history pay on your own clicks, do personal experts, and which model is worth running? One page answers.

Reads and describes the data, counts, trains all systems briefly, the best third longer and the finalists twice for the same
time each; holds out everybody's last event and, by the clock, all after a date; then writes one page of HTML that stands
alone. Every sentence has its interval, and "level" and "not known" are answers. Killed at any moment, the same command goes on;
with more --minutes, with what is there.

  elastic study planted --minutes 30             a made-up world, whose answers are known
  elastic study my-clicks.csv --minutes 30
  elastic study my-clicks.csv --columns user=visitor,item=page,time=at --minutes 30
  elastic study ml-100k --minutes 6 --split last
  elastic study planted --set planted.items=1280 --set planted.interests=64 --minutes 10
"""

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import torch
import typer

from elastic_core.commands.options import (
    BasketsOption,
    ColumnsOption,
    DatesOption,
    IncompleteOption,
    KCoreOption,
    TiesOption,
    TitlesOption,
    data_config,
    data_settings,
    split_commas,
)
from elastic_core.commands.run_lookup import print_note
from elastic_core.machine import keep_threads
from elastic_core.recipes import STUDIED
from elastic_core.runs.checkpoints import CHECKPOINTS
from elastic_core.services.durations import format_clock, format_duration
from elastic_core.study.plan import SPLITS
from elastic_core.study.request import StudyRequest
from elastic_core.study.train import PAGE, Study

EVERY = 15.0  # seconds between two lines of progress where nobody watches


def run_command(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A file or folder of your own, or a named source.")],
    minutes: Annotated[float, typer.Option(metavar="N", help="For all of it.")] = 30,
    clock: Annotated[
        Literal["wall", "processor"], typer.Option(help="Of the minutes; a busy machine stretches no processor time.")
    ] = "processor",
    split: Annotated[
        Literal["last", "time", "both"], typer.Option(help="Hold out the last event, all after a date, or both.")
    ] = "both",
    systems: Annotated[
        str, typer.Option(metavar="NAME,…", show_default=False, help=f"Some of {', '.join(STUDIED)}; by default as time allows.")
    ] = "",
    columns: ColumnsOption = "",
    dates: DatesOption = None,
    titles: TitlesOption = "",
    incomplete: IncompleteOption = None,
    ties: TiesOption = None,
    baskets: BasketsOption = None,
    k_core: KCoreOption = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the data, such as planted.seed=1.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The study's folder; by default one below checkpoints/studies.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON instead of sentences.")] = False,
) -> None:
    settings = data_settings(columns, dates, titles, incomplete, ties, baskets, k_core)
    data = data_config(source, settings, [f"data.{change}" for change in changes or ()])
    splits, labels = list(SPLITS) if split == "both" else [split], split_commas(systems) if systems else list(STUDIED)
    values = {"data": dataclasses.asdict(data), "minutes": minutes, "splits": splits, "systems": labels, "clock": clock}
    request = StudyRequest.from_dict(values)
    folder = out or CHECKPOINTS / "studies" / request.name
    with keep_threads():
        if request.clock == "processor":  # it counts the time of all threads
            torch.set_num_threads(1)
        result = Study(request, folder, Progress()).run()
    if sys.stderr.isatty():
        print_note("")
    print(json.dumps(result) if as_json else study_text(result))
    print_note(f"The page: {folder / PAGE}") if as_json else print(folder / PAGE)


def study_text(result: dict[str, object]) -> str:
    """The answer for a terminal: questions, answers and sentences."""
    lines = [str(result["title"]), str(result["headline"])]
    for section in result["sections"]:  # type: ignore[attr-defined]
        answer = f" {section['answer']}" if section["answer"] else ""
        lines += ["", f"{section['question']}{answer}", *(f"  {sentence}" for sentence in section["sentences"])]
    return "\n".join(lines)


class Progress:
    """One line that is drawn again; where nobody watches, a line at every new step and now and then."""

    def __init__(self) -> None:
        self.printed_at, self.step = 0.0, ""

    def __call__(self, done: float, of: float, text: str) -> None:
        if text.endswith("."):  # a sentence that stays
            print_note(f"\r\033[K{text}" if sys.stderr.isatty() else text)
            return
        line = f"{format_clock(done)}  {text} · at most {format_duration(max(of - done, 0))} of work left"
        step = text.partition(", epoch")[0]
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{line[:110]}")
            sys.stderr.flush()
        elif step != self.step or time.monotonic() - self.printed_at > EVERY:
            self.printed_at, self.step = time.monotonic(), step
            print_note(line)
