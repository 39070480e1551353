"""What a trained run recommends: to a person of its data, to all of them, or after a history that you give.

  python -m elastic_core recommend ml-100k-elastic --user 42
  python -m elastic_core recommend ml-100k-elastic --user 42 --edits="-12,x7,x9*2"
  python -m elastic_core recommend ml-100k-elastic --history "50,181,172" --top 5
  python -m elastic_core recommend ml-100k-elastic --titles "Star Wars; Empire Strikes Back; Fargo"
  python -m elastic_core recommend ml-100k-elastic --all --out top.parquet
  python -m elastic_core recommend ml-100k-elastic --all --out top.csv --top 20 --exclude 50,181 --only in-stock.txt

Raw ids are those of the data's own files, oldest first. A title may be cut short as long as only one item fits it. A history
that you give needs nothing but the run's folder, wherever it lies.
Edits are those of an address of the app (elastic_core/services/edits.py).
For a person, the history ends before the held-out test item; the list marks that item where it appears. Where a run's experts
predict by themselves, each suggestion says whose it is, with the expert's share of its probability, and after which item.

With --all everybody's list goes into a file, Parquet or CSV by its name: user, rank, item, title, score, basis. These are the
next items after everything that the data hold of a person (with --before-test: as --user reads them). It is written some hundred
people at a time and put in place when it is whole. From Python the same is `elastic_core.open_run(FOLDER).recommend()`.
"""

import csv
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from elastic_core import files
from elastic_core.commands.arguments import add_options, find_run, load_run, open_items, print_note, split_commas
from elastic_core.data import Catalog, Dataset, load
from elastic_core.data.item_features import find_items_by_title
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.recommendations import ItemRanker, Recommendations, write_lists
from elastic_core.runs import Run
from elastic_core.runs import items as run_items
from elastic_core.services.edits import apply_edits, check_edits, parse_edits
from elastic_core.services.person.attribution import Reason, find_reasons
from elastic_core.services.person.inspect import memory_size
from elastic_core.services.person.recommend import History, rank_items, scale_experts, user_history

NOTHING_LEFT = "as nothing else is left for these people (--seen also suggests seen items)"
SHOWN = 8
MOST_IDS = 2**28  # bytes of a file of ids


def configure(parser: ArgumentParser) -> None:
    add_options(parser, "run_name RUN | text | a run folder, or its name below checkpoints/")
    user_options = parser.add_mutually_exclusive_group(required=True)
    add_options(user_options, """
        --user ID | text | a person's raw id
        --history IDS | text | raw item ids, oldest first, separated by commas
        --all | flag | everybody in the data, into a file (with --out)
        --titles TITLES | text | titles or parts of them, oldest first, separated by semicolons
    """)  # fmt: skip
    add_options(parser, """
        --top | int 10 | how many
        --edits EDITS | text | with something changed, as -12,+50,x7,x9*2: without event 12, with item 50, without expert 7, …
        --seen | flag | also recommend what is in the history (default: where people mostly choose such)
        --unseen | flag | recommend nothing that is in the history
        --csv | flag | CSV instead of the table
        --out FILE | path | with --all: the file, .parquet or .csv
        --before-test | flag | with --all: before the held-out item, as --user reads people
        --exclude IDS | text | with --all: never suggest these items; ids with commas, or a file of one a line
        --only IDS | text | with --all: suggest these items alone; ids with commas, or a file of one a line
    """)  # fmt: skip


def run(arguments: Namespace) -> int:
    if arguments.top < 1:
        raise InputError(f"--top must be at least 1, not {arguments.top}")
    for_everybody = arguments.out or arguments.exclude or arguments.only is not None or arguments.before_test
    if for_everybody and not arguments.all:
        raise InputError("--out, --exclude, --only and --before-test go with --all")
    if arguments.seen and arguments.unseen:
        raise InputError("say either --seen or --unseen")
    return write_everybody(arguments) if arguments.all else print_list(arguments)


def keeps_seen(arguments: Namespace, run: Run) -> bool:
    """Whether lists hold items of the history, too: as was said, else as fits the run's data, which is told."""
    if not (arguments.seen or arguments.unseen) and run.keeps_seen:
        print_note("Lists hold seen items, too, as people mostly choose such (--unseen leaves them out).")
    return not arguments.unseen and (arguments.seen or run.keeps_seen)


# --- one list ------------------------------------------------------------------------------------------------------------


def print_list(arguments: Namespace) -> int:
    """Prints the list of one user, or after a history that was typed."""
    model, data, history = read_history(arguments)
    catalog = data.catalog if isinstance(data, Dataset) else data
    edits = parse_edits(arguments.edits or "")
    check_edits(edits, len(history.items), catalog.n_items, memory_size(model))
    edited = apply_edits(history.items, edits)
    history = history.edited(edited) if edits else history
    edit = scale_experts(edited.scales)
    recent = [catalog.title(item) for item in history.items[-SHOWN:].tolist()]
    print_note("after " + ", ".join(["…", *recent] if len(history.items) > SHOWN else recent))

    keep_seen = keeps_seen(arguments, find_run(arguments.run_name))
    table = rank_items(model, data, history, arguments.top, edit, keep_seen).table
    table.insert(2, "id", [catalog.ids[item] for item in table["item"]])
    why = find_reasons(model, history, table["item"].tolist(), edit)
    if arguments.csv:
        print(with_reasons(table, why, catalog).to_csv(index=False), end="")
    else:
        print_table(table, why, catalog)
    return 0


def read_history(arguments: Namespace) -> tuple[Recommender, Dataset | Catalog, History]:
    """The model, the data (of typed items the catalogue alone), and the history that the list follows."""
    if arguments.user is not None:
        _, dataset, model = load_run(arguments.run_name)
        return model, dataset, user_history(dataset, dataset.user_number(arguments.user))
    _, catalog, model = open_items(arguments.run_name)
    by_id = arguments.history is not None
    items = items_by_id(catalog, arguments.history) if by_id else items_by_title(catalog, arguments.titles)
    if not items:
        raise InputError("the history is empty")
    return model, catalog, History(np.array(items, dtype=np.int64))


def with_reasons(table: pd.DataFrame, why: list[Reason] | None, catalog: Catalog) -> pd.DataFrame:
    """The table with the columns expert, share and after, where the model's experts predict by themselves."""
    if why is None:
        return table
    return table.assign(
        expert=[reason.expert for reason in why],
        share=[round(reason.share, 4) for reason in why],
        after=["" if reason.after is None else catalog.title(reason.after) for reason in why],
    )


def print_table(table: pd.DataFrame, why: list[Reason] | None, catalog: Catalog) -> None:
    for place, row in enumerate(table.to_dict("records")):
        mark = "  <- what came next" if row.get("is_truth") else ""
        print(f"{row['rank']:>3}  {row['score']:8.3f}  {row['id']:>8}  {row['title']}{mark}")
        if why is not None:
            print(f"{'':>24}{why[place].sentence(catalog)}")


def items_by_id(catalog: Catalog, typed: str) -> list[int]:
    """Dense ids of raw ids between commas; one that holds a comma stands in quotes."""
    cells = next(csv.reader([typed], skipinitialspace=True), [])
    return [catalog.index(raw.strip()) for raw in cells if raw.strip()]


def items_by_title(catalog: Catalog, typed: str) -> list[int]:
    """Dense ids of titles, or parts of them, between semicolons."""
    return [item_by_title(catalog, part.strip()) for part in typed.split(";") if part.strip()]


def item_by_title(catalog: Catalog, text: str) -> int:
    """The one item whose title is, or else starts with, or else contains, `text`."""
    titles = {item: catalog.title(item) for item in find_items_by_title(catalog, text).tolist()}
    equal = [item for item, title in titles.items() if title.lower() == text.lower()]
    starting = [item for item, title in titles.items() if title.lower().startswith(text.lower())]
    for items in (equal, starting, list(titles)):
        if len(items) == 1:
            return items[0]
    examples = "; ".join(list(titles.values())[:4])
    raise InputError(f"{len(titles)} items fit the title {text!r}" + (f", such as {examples}" if examples else ""))


# --- everybody's lists ---------------------------------------------------------------------------------------------------


def write_everybody(arguments: Namespace) -> int:
    """Writes everybody's list into a file."""
    if arguments.out is None:
        raise InputError("--all needs a file to write: --out top.parquet or --out top.csv")
    if arguments.edits:
        raise InputError("--edits is for one person or history, not for --all")
    run, catalog, model = open_items(arguments.run_name)
    settings = run.config.data if arguments.before_test else replace(run.config.data, k_core=0)  # whoever can have a list
    data = load(settings, print_note)
    counts = run_items.read_counts(run.path / run_items.FILE, run.path)
    ranker = ItemRanker(model, catalog, lambda: data, counts, keeps_seen(arguments, run))
    exclude = read_ids(arguments.exclude) if arguments.exclude else []
    only = None if arguments.only is None else read_ids(arguments.only)
    for option, ids in (("--exclude", exclude), ("--only", only or [])):
        if unknown := ranker.find_items(ids)[1]:
            print_note(f"Note: the run does not know {unknown:,} of the {len(ids):,} ids of {option}.")
    chunks = ranker.recommend_chunks(k=arguments.top, exclude=exclude, only=only, before_test=arguments.before_test)
    short = Counter[str]()  # lists with nothing in them, with less than was wanted, or without a history behind them
    users = write_lists(arguments.out, count_short_lists(show_progress(chunks, data.histories.n_users), short))
    print_note(f"{users:,} people's lists are in {arguments.out}")
    for what, lists in short.items():
        print_note(f"Note: {lists:,} lists {what}.")
    if data.people_left_out:
        print_note(f"Note: {data.people_left_out:,} people have too few events for a history, and no list.")
    return 0


def count_short_lists(chunks: Iterator[Recommendations], short: Counter[str]) -> Iterator[Recommendations]:
    """The same chunks; `short` counts the lists that are empty, and those with fewer items than were wanted."""
    for chunk in chunks:
        filled = (chunk.items > 0).sum(axis=1)
        less = (filled > 0) & (filled < chunk.items.shape[1])
        short[f"are empty, {NOTHING_LEFT}"] += int((filled == 0).sum())
        short[f"are shorter, {NOTHING_LEFT}"] += int(less.sum())
        short["hold what is popular, as the run knows no item of these people"] += int((chunk.known == 0).sum())
        short["leave out events of items that the run does not know"] += int(((chunk.unknown > 0) & (chunk.known > 0)).sum())
        yield chunk
    for what in [what for what, lists in short.items() if not lists]:
        del short[what]


def show_progress(chunks: Iterator[Recommendations], users: int) -> Iterator[Recommendations]:
    """The same chunks, with a line on a terminal that says how many users are done."""
    done = 0
    for chunk in chunks:
        yield chunk
        done += len(chunk.users)
        if sys.stderr.isatty():
            print(f"\r{done:,} of {users:,} people", end="\n" if done >= users else "", file=sys.stderr, flush=True)


def read_ids(typed: str) -> list[str]:
    """Ids with commas between them, or one a line of a file."""
    path = Path(typed)
    if path.is_file():
        return [line.strip() for line in files.read_text(path, MOST_IDS, path.parent).splitlines() if line.strip()]
    if path.suffix in (".txt", ".csv"):
        raise InputError(f"there is no file {typed}")
    return split_commas(typed)
