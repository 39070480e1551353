"""What a trained run recommends: to a person of its data, or after a history that you give.

  python -m elastic_core recommend ml-100k-elastic --user 42
  python -m elastic_core recommend ml-100k-elastic --history "50,181,172" --top 5
  python -m elastic_core recommend ml-100k-elastic --titles "Star Wars; Empire Strikes Back; Fargo"

Raw ids are those of the data's own files, oldest first. A title may be cut short as long as only one item fits it.
For a person, the history ends before the held-out test item; the list marks that item where it appears. Where a run's experts
predict by themselves, each suggestion says whose it is, with the expert's share of its probability, and after which item.
"""

import argparse

import numpy as np

from elastic_core.commands.finding import listed, load_run, say
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.services.person.attribution import reasons
from elastic_core.services.person.recommend import Reading, recommend

SHOWN = 8


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_name", metavar="RUN", help="a run folder, or its name below checkpoints/")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--user", metavar="ID", help="a person's raw id")
    who.add_argument("--history", metavar="IDS", type=listed, help="raw item ids, oldest first, separated by commas")
    who.add_argument("--titles", metavar="TITLES", help="titles or parts of them, oldest first, separated by semicolons")
    parser.add_argument("--top", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--seen", action="store_true", help="also recommend what is in the history")
    parser.add_argument("--csv", action="store_true", help="CSV instead of the table")


def run(arguments: argparse.Namespace) -> int:
    if arguments.top < 1:
        raise InputError(f"--top must be at least 1, not {arguments.top}")
    _, dataset, model = load_run(arguments.run_name)
    who = person(dataset, arguments.user) if arguments.user is not None else history(dataset.catalog, arguments)
    items = dataset.histories.of(who)[:-1].tolist() if isinstance(who, int) else who
    say("after " + ", ".join([*(["…"] if len(items) > SHOWN else []), *(dataset.catalog.title(i) for i in items[-SHOWN:])]))
    found = recommend(model, dataset, who, top=arguments.top, exclude_seen=not arguments.seen)
    why = reasons(model, Reading(np.asarray(items, dtype=np.int64)), found["item"].tolist())
    if why is not None:
        after = ["" if one.after is None else dataset.catalog.title(one.after) for one in why]
        found = found.assign(expert=[one.expert for one in why], share=[round(one.share, 4) for one in why], after=after)
    if arguments.csv:
        print(found.to_csv(index=False), end="")
        return 0
    for place, row in enumerate(found.to_dict("records")):
        mark = "  <- what came next" if row.get("is_truth") else ""
        print(f"{row['rank']:>3}  {row['score']:8.3f}  {dataset.catalog.ids[row['item']]:>8}  {row['title']}{mark}")
        if why is not None:
            print(f"{'':>24}{why[place].sentence(dataset)}")
    return 0


def person(dataset: Dataset, raw: str) -> int:
    """The dense number of a raw user id."""
    found = np.flatnonzero(dataset.histories.user_ids.astype(str) == raw)
    if not len(found):
        ids = dataset.histories.user_ids
        raise InputError(f"{dataset.label} has no user {raw!r}; there are {len(ids):,}, for example {ids[0]} and {ids[-1]}")
    return int(found[0])


def history(catalog: Catalog, arguments: argparse.Namespace) -> list[int]:
    """Dense ids of what was typed."""
    if arguments.history is not None:
        items = [catalog.index(raw) for raw in arguments.history]
    else:
        items = [by_title(catalog, part.strip()) for part in arguments.titles.split(";") if part.strip()]
    if not items:
        raise InputError("the history is empty")
    return items


def by_title(catalog: Catalog, text: str) -> int:
    """The one item whose title is, or else starts with, or else contains, `text`."""
    candidates = catalog.search(text).tolist()
    lowered = text.lower()
    for fits in (str.__eq__, str.startswith):
        closer = [i for i in candidates if fits(catalog.title(i).lower(), lowered)]
        if len(closer) == 1:
            return int(closer[0])
    if len(candidates) != 1:
        some = "; ".join(catalog.title(i) for i in candidates[:4])
        raise InputError(f"{len(candidates)} items fit the title {text!r}" + (f", such as {some}" if some else ""))
    return int(candidates[0])
