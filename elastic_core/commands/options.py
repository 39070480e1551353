"""Options that several commands share, and what is made of them."""

import math
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from elastic_core.errors import InputError
from elastic_core.recipes import recipe
from elastic_core.run_config import DataConfig

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run folder, or its name below checkpoints/.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, one row a line, instead of the table.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV instead of the table.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting, as in model.k=16. May be given again."),
]
DeviceOption = Annotated[str, typer.Option(metavar="DEVICE", help="cpu, cuda or auto.")]

# what a person says of the columns, dates and titles of their own file
ColumnsOption = Annotated[
    str,
    typer.Option(
        metavar="user=…,item=…", show_default=False,
        help="Your columns, by name or place: user=…,item=…,time=…,title=…,genres=…; time= where rows are in order, without one.",
    ),
]  # fmt: skip
DatesOption = Annotated[
    Literal["day-first", "month-first"] | None, typer.Option(help="What 03/04/2024 means, where no row of the file tells.")
]
TitlesOption = Annotated[
    str, typer.Option("--titles", metavar="FILE", show_default=False, help="A file with titles or genres of the items.")
]
IncompleteOption = Annotated[Literal["skip"] | None, typer.Option(help="Leave out files of a folder or archive that are torn.")]

# how the events of a file become histories
TiesOption = Annotated[
    Literal["file", "reversed", "random"] | None,
    typer.Option(help="How events of one person and time are ordered (default: file)."),
]
BasketsOption = Annotated[
    Literal["yes", "no"] | None,
    typer.Option(help="Whether events at one time are a set (default: yes where most events are)."),
]
KCoreOption = Annotated[
    int | None, typer.Option(metavar="N", help="Fewest events of an item and of a person (default: 5).", show_default=False)
]


def split_commas(text: str) -> list[str]:
    """`a, b,c` → [a, b, c]."""
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_columns(pairs: list[str]) -> dict[str, str]:
    """[user=reader, item=book] → {user: reader, item: book}. Raises InputError for anything else."""
    columns = dict[str, str]()
    for text in pairs:
        role, separator, columns[role] = text.partition("=")
        if not separator or not (columns[role] or role == "time"):
            raise InputError(f"--columns needs pairs such as user=reader, not {text!r}")
    return columns


def data_settings(
    columns: str = "",
    dates: str | None = None,
    titles: str = "",
    incomplete: str | None = None,
    ties: str | None = None,
    baskets: str | None = None,
    k_core: int | None = None,
) -> dict[str, Any]:
    """The settings of `data` that these options change."""
    option_values = {
        "dates": dates,
        "titles": titles,
        "incomplete": incomplete,
        "ties": ties,
        "baskets": baskets,
        "k_core": k_core,
    }
    settings: dict[str, Any] = {name: value for name, value in option_values.items() if value not in (None, "")}
    return settings | ({"columns": parse_columns(split_commas(columns))} if columns else {})


def data_config(source: str, settings: dict[str, Any], changes: list[str]) -> DataConfig:
    """What is to be read: a named source, or a file by its full path, so that it is found again from elsewhere. `changes` are
    settings of the data as they are typed, such as data.planted.seed=1."""
    path = Path(source).expanduser()
    values = {"source": str(path.resolve()) if path.exists() else source, "k_core": DataConfig.k_core, **settings}
    return recipe("planted").replace_values({f"data.{name}": value for name, value in values.items()}).override(*changes).data


def end_time(minutes: float) -> float:
    """When so many minutes are over, by the monotonic clock; 0 minutes never are."""
    return time.monotonic() + (60 * minutes or math.inf)
