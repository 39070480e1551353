"""After how many events of silence does a run still know an interest, and where in it somebody was? Planted worlds only.

Prints, for runs on one planted world, by how many events ago the interest of what came next last showed: 1 / rank of what came
next among the items of its interest, and to which share of the interests that the person never had less is given. Beside them
the planted oracle, and popularity. The world for it is planted-long: 1,200 events each, silences of hundreds.
--write keeps the rows in checkpoints/benchmarks/recall.csv, which Evidence and RESULTS.md show; rows of the same run are
replaced.

  python -m elastic_core recall planted-long-elastic
  python -m elastic_core recall planted-long-sasrec planted-long-gru4rec
  python -m elastic_core recall "planted-long-*" --write
"""

import argparse
import fnmatch

import pandas as pd

from elastic_core import disk
from elastic_core.commands.arguments import CHECKPOINTS, find_run, options, say
from elastic_core.data import load
from elastic_core.disk import write_text
from elastic_core.errors import InputError
from elastic_core.machine import commit
from elastic_core.memory import recall
from elastic_core.memory.gaps import gaps
from elastic_core.memory.recall import ORACLE, POPULARITY, read_recall
from elastic_core.runs import list_runs

FILE = CHECKPOINTS / recall.FILE


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or names (patterns) below checkpoints/")
    options(parser, f"""
        --split | test/valid test | which held-out event
        --write | flag | keep the rows in {FILE}
    """)  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    chosen = [find_run(name) for name in _run_names(arguments.runs)]
    first = chosen[0].config.data
    if other := [run.name for run in chosen if run.config.data != first]:
        raise InputError(f"{other[0]} is of another world than {chosen[0].name}")
    dataset = load(first, say)
    found = {ORACLE: recall.of_oracle(dataset, arguments.split), POPULARITY: recall.of_popularity(dataset, arguments.split)}
    for here in chosen:
        say(here.name)
        found[here.name] = recall.of_model(here.model(dataset), dataset, arguments.split)
        table = recall.by_gap(found, gaps(dataset, arguments.split))
        if arguments.write:  # one by one: what is measured is not lost by what comes after it
            _write_rows(table.assign(world=dataset.hash, split=arguments.split, commit=commit()))
    print(recall_text(table))
    return 0


def _run_names(names: list[str]) -> list[str]:
    """Patterns stand for the finished runs that they fit."""
    there = [run.name for run in list_runs(CHECKPOINTS) if run.finished]
    found = [name for given in names for name in (fnmatch.filter(there, given) if set(given) & set("*?[") else [given])]
    if not found:
        raise InputError(f"no finished run fits {' '.join(names)}")
    return list(dict.fromkeys(found))


def recall_text(table: pd.DataFrame) -> str:
    """One block a measure, a line a system, a column a range of gaps."""
    systems, ranges = (list(dict.fromkeys(table[name])) for name in ("system", "gap"))
    lines = []
    for measure, words in (
        ("place", "1 / rank within the interest"),
        ("found", "of interests never had, given less (chance: 0.50)"),
    ):
        lines.append(f"{words:<52}" + "".join(f"{gap:>9}" for gap in ranges))
        wide = table.pivot(index="system", columns="gap", values=measure).loc[systems, ranges]
        lines += [f"  {name:<50}" + "".join(f"{value:>9.2f}" for value in row) for name, *row in wide.itertuples()]
    people = table.drop_duplicates("gap")["people"]
    return "\n".join([*lines, f"{'people':<52}" + "".join(f"{count:>9,}" for count in people)])


def _write_rows(table: pd.DataFrame) -> None:
    old = read_recall(FILE)
    key = ["world", "split", "system"]
    old = old[~pd.MultiIndex.from_frame(old[key]).isin(pd.MultiIndex.from_frame(table[key]))]
    with disk.said(FILE):
        FILE.parent.mkdir(parents=True, exist_ok=True)
    write_text(FILE, pd.concat([old, table]).to_csv(index=False, float_format="%.6g"))
