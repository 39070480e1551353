"""The arguments that commands share, and what is typed into them."""

import argparse
import math
import time
from pathlib import Path
from typing import Any, get_args, get_type_hints

from elastic_core.commands.finding import CHECKPOINTS
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig

Arguments = argparse._ActionsContainer  # a parser, or a group of one


def flag(parser: Arguments, name: str, what: str) -> None:
    parser.add_argument(name, action="store_true", help=what)


def option(parser: Arguments, name: str, default: int | float | str | Path, what: str, told: str = "", **more: Any) -> None:
    """Add an option of the default's type; the help says what that is, or what is `told` of it."""
    told = told or (f"{default:g}" if isinstance(default, float) else str(default))
    parser.add_argument(name, type=type(default), default=default, help=f"{what} (default: {told})", **more)


def run_argument(parser: Arguments, more: str = "") -> None:
    parser.add_argument("run_name", metavar="RUN", help=f"a run folder, or its name below checkpoints/{more}")


def device_option(parser: Arguments, default: str = "cpu") -> None:
    option(parser, "--device", default, "cpu, cuda or auto")


def deadline(arguments: argparse.Namespace) -> float:
    """When `--minutes` are over, by the monotonic clock."""
    return time.monotonic() + (60 * arguments.minutes or math.inf)


def root_option(parser: Arguments, what: str = "where the runs lie") -> None:
    option(parser, "--root", CHECKPOINTS, what, "checkpoints")


def file_options(parser: Arguments) -> None:
    """What a person says of the columns, dates and titles of their own file."""
    columns = (
        "your columns, by name or place: user=…,item=…,time=…,title=…,genres=…; time= where there is none and rows are in order"
    )
    parser.add_argument("--columns", type=split_commas, default=[], help=columns)
    orders = get_args(get_type_hints(DataConfig)["dates"])[1:]
    parser.add_argument("--dates", choices=orders, default="", help="what 03/04/2024 means, where no row of the file tells")
    parser.add_argument("--titles", metavar="FILE", default="", help="a file with titles or genres of the items")


def fold_options(parser: Arguments) -> None:
    """How the events of a file become histories."""
    rules = get_args(get_type_hints(DataConfig)["ties"])[1:]
    parser.add_argument("--ties", choices=rules, default="", help="how events of one person and time are ordered (default: file)")
    option(parser, "--k-core", 5, "fewest events of an item and a person")


def data_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of `data` that `file_options` and `fold_options` ask for."""
    found = {name: getattr(arguments, name) for name in ("dates", "titles", "ties", "k_core")}
    return found | {"columns": mapped(arguments.columns)}


def split_commas(text: str) -> list[str]:
    """`a, b,c` → [a, b, c]."""
    return [part.strip() for part in text.split(",") if part.strip()]


def mapped(pairs: list[str]) -> dict[str, str]:
    """[user=reader, item=book] → {user: reader, item: book}. Raises InputError for anything else."""
    found = dict[str, str]()
    for text in pairs:
        ours, separator, found[ours] = text.partition("=")
        if not separator or not (found[ours] or ours == "time"):
            raise InputError(f"--columns needs pairs such as user=reader, not {text!r}")
    return found
