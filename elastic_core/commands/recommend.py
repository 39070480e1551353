"""What a trained run recommends: to a person of its data, to all of them, or after a history that you give.

  elastic recommend groceries-elastic-slots --user 42
  elastic recommend local-my-clicks-elastic --user cust-075
  elastic recommend ml-100k-elastic --user 42 --edits "-12,x7,x9*2" --exclude 50,181
  elastic recommend ml-100k-elastic --history "50,181,172" --top 5
  elastic recommend ml-100k-elastic --titles "Star Wars; Empire Strikes Back; Fargo"
  elastic recommend ml-100k-elastic --all --out top.parquet
  elastic recommend ml-100k-elastic --all --out top.csv --top 20 --exclude 50,181 --only in-stock.txt

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
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from tqdm import tqdm

from elastic_core import files
from elastic_core.commands.options import CsvOption, JsonOption, RunArgument, split_commas
from elastic_core.commands.run_lookup import find_run, load_run, open_items, print_note
from elastic_core.data import Catalog, Dataset, load
from elastic_core.data.item_features import find_items_by_title
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.recommendations import ItemRanker, Recommendations, allowed_items, find_items, write_lists
from elastic_core.runs import Run
from elastic_core.runs import items as run_items
from elastic_core.services.edits import apply_edits, check_edits, parse_edits
from elastic_core.services.person.attribution import Reason, find_reasons
from elastic_core.services.person.inspect import memory_size
from elastic_core.services.person.recommend import History, rank_items, scale_experts, user_history

NOTHING_LEFT = "as nothing else is left for these people (--seen also suggests seen items)"
TITLES_SHOWN = 8
MOST_IDS = 2**28  # bytes of a file of ids
Filters = tuple[list[str], list[str] | None]  # ids that are never suggested, and ids that are suggested alone; None: any


def run_command(
    run_name: RunArgument,
    user: Annotated[str | None, typer.Option(metavar="ID", help="A person's raw id.")] = None,
    history: Annotated[str | None, typer.Option(metavar="IDS", help="Raw item ids, oldest first, separated by commas.")] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Everybody in the data, into a file (with --out).")] = False,
    titles: Annotated[
        str | None, typer.Option(metavar="TITLES", help="Titles or parts of them, oldest first, separated by semicolons.")
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="How many.")] = 10,
    edits: Annotated[
        str,
        typer.Option(
            metavar="EDITS",
            show_default=False,
            help="With something changed, as -12,+50,x7,x9*2: without event 12, with item 50, without expert 7, …",
        ),
    ] = "",
    seen: Annotated[
        bool, typer.Option("--seen", help="Also what is in the history; by default where people often choose such.")
    ] = False,
    unseen: Annotated[bool, typer.Option("--unseen", help="Nothing that is in the history.")] = False,
    as_csv: CsvOption = False,
    as_json: JsonOption = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="With --all: the file, .parquet or .csv.")] = None,
    before_test: Annotated[
        bool, typer.Option("--before-test", help="With --all: before the held-out item, as --user reads people.")
    ] = False,
    exclude: Annotated[
        str,
        typer.Option(metavar="IDS", help="Never suggest these; ids with commas, or a file of one a line.", show_default=False),
    ] = "",
    only: Annotated[
        str | None,
        typer.Option(metavar="IDS", help="Suggest these alone; ids with commas, or a file of one a line."),
    ] = None,
) -> None:
    if top < 1:
        raise InputError(f"--top must be at least 1, not {top}")
    if (user is not None) + (history is not None) + (titles is not None) + everybody != 1:
        raise InputError("say whose list: one of --user, --history, --titles and --all")
    if (out or before_test) and not everybody:
        raise InputError("--out and --before-test go with --all")
    if seen and unseen:
        raise InputError("say either --seen or --unseen")
    keep_seen = True if seen else False if unseen else None
    if not everybody:
        model, data, items = read_history(run_name, user, history, titles)
        filters = read_filters(data.catalog if isinstance(data, Dataset) else data, exclude, only)
        print_list(run_name, model, data, items, top, edits, keep_seen, filters, as_csv, as_json)
    elif out is None:
        raise InputError("--all needs a file to write: --out top.parquet or --out top.csv")
    elif edits:
        raise InputError("--edits is for one person or history, not for --all")
    else:
        write_everybody(run_name, out, top, keep_seen, before_test, exclude, only)


def keeps_seen(choice: bool | None, run: Run) -> bool:
    """Whether lists hold items of the history, too: as was said, else as fits the run's data, which is told."""
    if choice is None and run.keeps_seen:
        print_note("Lists hold seen items, too, as people often choose such (--unseen leaves them out).")
    return run.keeps_seen if choice is None else choice


# --- one list ------------------------------------------------------------------------------------------------------------


def read_history(
    run_name: str, user: str | None, typed_ids: str | None, typed_titles: str | None
) -> tuple[Recommender, Dataset | Catalog, History]:
    """The model, the data (of typed items the catalogue alone), and the history that the list follows."""
    if user is not None:
        run, dataset, model = load_run(run_name)
        if dataset.find_user(user) is None and dataset.people_left_out:
            return model, dataset.catalog, short_history(run, model, dataset.catalog, user)
        items_read = user_history(dataset, dataset.user_number(user))
        print_note("Read without the held-out last event, which is marked; --all writes lists after all events.")
        return model, dataset, items_read
    _, catalog, model = open_items(run_name)
    items = items_by_id(catalog, typed_ids) if typed_ids is not None else items_by_title(catalog, typed_titles or "")
    if not items:
        raise InputError("the history is empty")
    return model, catalog, History(np.array(items, dtype=np.int64))


def short_history(run: Run, model: Recommender, catalog: Catalog, user: str) -> History:
    """All events of a person who has too few for a test, as --all reads them. Raises InputError for one who is not there."""
    data = load(replace(run.config.data, k_core=0))
    data.user_number(user)  # raises
    items, times, _ = ItemRanker(model, catalog, lambda: data).user_history(user)
    print_note("This person has too few events for a test, so the list follows all of them.")
    return History(items, times=times)


def print_list(
    run_name: str,
    model: Recommender,
    data: Dataset | Catalog,
    history: History,
    top: int,
    typed_edits: str,
    seen: bool | None,
    filters: Filters,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Print what the model recommends after a history with these edits."""
    catalog = data.catalog if isinstance(data, Dataset) else data
    edits = parse_edits(typed_edits)
    check_edits(edits, len(history.items), catalog.n_items, memory_size(model))
    edited_history = apply_edits(history.items, edits)
    history = history.apply_edits(edited_history) if edits else history
    edit = scale_experts(edited_history.scales)
    recent = [catalog.title(item) for item in history.items[-TITLES_SHOWN:].tolist()]
    print_note("after " + ", ".join(["…", *recent] if len(history.items) > TITLES_SHOWN else recent))

    allowed = allowed_items(catalog, *filters).numpy()
    table = rank_items(model, data, history, top, edit, keeps_seen(seen, find_run(run_name)), allowed).table
    table.insert(2, "id", [catalog.ids[item] for item in table["item"]])
    reasons = find_reasons(model, history, table["item"].tolist(), edit)
    if as_csv:
        print(with_reasons(table, reasons, catalog).to_csv(index=False), end="")
    elif as_json:
        print(with_reasons(table, reasons, catalog).to_json(orient="records", lines=True), end="")
    else:
        print_table(table, reasons, catalog)


def with_reasons(table: pd.DataFrame, reasons: list[Reason] | None, catalog: Catalog) -> pd.DataFrame:
    """The table with the columns expert, share and after, where the model's experts predict by themselves."""
    if reasons is None:
        return table
    return table.assign(
        expert=[reason.expert for reason in reasons],
        share=[round(reason.share, 4) for reason in reasons],
        after=["" if reason.after is None else catalog.title(reason.after) for reason in reasons],
    )


def print_table(table: pd.DataFrame, reasons: list[Reason] | None, catalog: Catalog) -> None:
    for place, row in enumerate(table.to_dict("records")):
        mark = "  <- what came next" if row.get("is_truth") else ""
        print(f"{row['rank']:>3}  {row['score']:8.3f}  {row['id']:>8}  {row['title']}{mark}")
        if reasons is not None:
            print(f"{'':>24}{reasons[place].sentence(catalog)}")


def items_by_id(catalog: Catalog, text: str) -> list[int]:
    """Dense ids of raw ids between commas; one that holds a comma stands in quotes."""
    cells = next(csv.reader([text], skipinitialspace=True), [])
    return [catalog.item_number(raw.strip()) for raw in cells if raw.strip()]


def items_by_title(catalog: Catalog, text: str) -> list[int]:
    """Dense ids of titles, or parts of them, between semicolons."""
    return [item_by_title(catalog, part.strip()) for part in text.split(";") if part.strip()]


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


def write_everybody(
    run_name: str, out: Path, top: int, seen: bool | None, before_test: bool, typed_exclude: str, typed_only: str | None
) -> None:
    """Write everybody's list into a file."""
    run, catalog, model = open_items(run_name)
    settings = run.config.data if before_test else replace(run.config.data, k_core=0)  # whoever can have a list
    data = load(settings, print_note)
    counts = run_items.read_counts(run.path / run_items.FILE, run.path)
    ranker = ItemRanker(model, catalog, lambda: data, counts, keeps_seen(seen, run))
    excluded_ids, only_ids = read_filters(catalog, typed_exclude, typed_only)
    chunks = ranker.recommend_chunks(k=top, exclude=excluded_ids, only=only_ids, before_test=before_test)
    short_list_counts = Counter[str]()  # lists with nothing in them, with less than was wanted, or without a history behind them
    users = write_lists(out, count_short_lists(show_progress(chunks, data.histories.n_users), short_list_counts))
    print_note(f"{users:,} people's lists are in {out}")
    for reason, lists in short_list_counts.items():
        print_note(f"Note: {lists:,} lists {reason}.")
    if data.people_left_out:
        print_note(f"Note: {data.people_left_out:,} people have too few events for a history, and no list.")


def count_short_lists(chunks: Iterator[Recommendations], counts: Counter[str]) -> Iterator[Recommendations]:
    """The same chunks; into `counts` go the lists that are empty, and those with fewer items than were wanted."""
    for chunk in chunks:
        filled = (chunk.items > 0).sum(axis=1)
        is_shorter = (filled > 0) & (filled < chunk.items.shape[1])
        counts[f"are empty, {NOTHING_LEFT}"] += int((filled == 0).sum())
        counts[f"are shorter, {NOTHING_LEFT}"] += int(is_shorter.sum())
        counts["hold what is popular, as the run knows no item of these people"] += int((chunk.known == 0).sum())
        counts["leave out events of items that the run does not know"] += int(((chunk.unknown > 0) & (chunk.known > 0)).sum())
        yield chunk
    for reason in [reason for reason, lists in counts.items() if not lists]:
        del counts[reason]


def show_progress(chunks: Iterator[Recommendations], users: int) -> Iterator[Recommendations]:
    """The same chunks, with a bar on a terminal that shows how many users are done."""
    with tqdm(total=users, unit=" people", disable=not sys.stderr.isatty()) as bar:
        for chunk in chunks:
            yield chunk
            bar.update(len(chunk.users))


def read_filters(catalog: Catalog, typed_exclude: str, typed_only: str | None) -> Filters:
    """What is never suggested, and what alone; a note says how many of the ids the run does not know."""
    excluded_ids = read_ids(typed_exclude) if typed_exclude else []
    only_ids = None if typed_only is None else read_ids(typed_only)
    for option, ids in (("--exclude", excluded_ids), ("--only", only_ids or [])):
        if unknown := find_items(catalog, ids)[1]:
            print_note(f"Note: the run does not know {unknown:,} of the {len(ids):,} ids of {option}.")
    return excluded_ids, only_ids


def read_ids(text: str) -> list[str]:
    """Ids with commas between them, or one a line of a file."""
    path = Path(text)
    if path.is_file():
        return [line.strip() for line in files.read_text(path, MOST_IDS, path.parent).splitlines() if line.strip()]
    if path.suffix in (".txt", ".csv"):
        raise InputError(f"there is no file {text}")
    return split_commas(text)
