"""Does a long history pay on your own clicks, do experts of one's own, and what is worth running? One page answers.

Reads and describes the data, counts, trains a few systems twice for the same time each, holds out everybody's last event
and, by the clock, all after a date; then writes one page of HTML that stands alone. Every sentence has its interval, and
"not known" is an answer. Killed at any moment, the same command goes on; with more --minutes, with what is there.

  python -m elastic_core study my-clicks.csv --minutes 30
  python -m elastic_core study my-clicks.csv --columns user=visitor,item=page,time=at --minutes 30
  python -m elastic_core study ml-100k --minutes 6 --split last
  python -m elastic_core study planted --set planted.items=1280 --set planted.interests=64 --minutes 10
"""

import dataclasses
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

import torch

from elastic_core.commands.arguments import (
    CHECKPOINTS,
    add_file_options,
    add_options,
    add_preprocessing_options,
    data_settings,
    print_note,
)
from elastic_core.machine import keep_threads
from elastic_core.recipes import STUDIED, recipe
from elastic_core.run_config import DataConfig
from elastic_core.services.durations import format_clock, format_duration
from elastic_core.study.asked import StudyAsked
from elastic_core.study.conduct import PAGE, Study
from elastic_core.study.plan import NOW, WAYS

EVERY = 15.0  # seconds between two lines of progress where nobody watches


def configure(parser: ArgumentParser) -> None:
    add_options(parser, f"""
        source SOURCE | text | a file or folder of your own, or a named source
        --minutes | float 30 | for all of it
        --clock | {"/".join(NOW)} processor | of the minutes: a busy machine stretches no processor time (of one thread)
        --split | {"/".join(WAYS)}/both both | hold out the last event, all after a date, or both
        --systems | words {",".join(STUDIED)} | some of {",".join(STUDIED)} (default: as the time allows)
    """)  # fmt: skip
    add_file_options(parser)
    add_preprocessing_options(parser)
    setting = "a setting of the data, such as planted.seed=1"
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=setting)
    add_options(parser, "--out FOLDER | path | the study's folder (default: one below checkpoints/studies)")


def run(arguments: Namespace) -> int:
    ways = list(WAYS) if arguments.split == "both" else [arguments.split]
    plain = {"data": dataclasses.asdict(data_config(arguments)), "minutes": arguments.minutes, "ways": ways}
    request = StudyAsked.read(plain | {"labels": arguments.systems, "clock": arguments.clock})
    folder = arguments.out or CHECKPOINTS / "studies" / request.name
    with keep_threads():
        if request.clock == "processor":  # it counts the time of all threads
            torch.set_num_threads(1)
        result = Study(request, folder, Progress()).conduct()
    if sys.stderr.isatty():
        print_note("")
    print(study_text(result))
    print(folder / PAGE)
    return 0


def data_config(arguments: Namespace) -> DataConfig:
    """What the arguments ask to be read. A file is called by its full path, so that the study is found again from elsewhere."""
    path = Path(arguments.source).expanduser()
    source = str(path.resolve()) if path.exists() else arguments.source
    settings = {f"data.{name}": value for name, value in {"source": source, **data_settings(arguments)}.items()}
    return recipe("planted").replaced(settings).override(*(f"data.{setting}" for setting in arguments.set)).data


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
        self.told, self.step = 0.0, ""

    def __call__(self, done: float, of: float, text: str) -> None:
        line = f"{format_clock(done)}  {text} · {format_duration(max(of - done, 0))} left"
        step = text.partition(", epoch")[0]
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{line[:110]}")
            sys.stderr.flush()
        elif step != self.step or time.monotonic() - self.told > EVERY:
            self.told, self.step = time.monotonic(), step
            print_note(line)
