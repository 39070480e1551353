"""Rank everybody's held-out item with a trained run.

Protocols (what the target is ranked against): full = every item the person has not seen; full-seen = every item;
pop100 = 100 items drawn by popularity; uniform100 = 100 unseen items drawn evenly. Numbers of different protocols cannot
be compared. The interval is 95% over people.

Where more than 5% of the targets share their time with the event before them, the order in the file decides what is asked. Then
the number of the same weights stands below for an order drawn by a hash: they learned the file's order, and may have learned from
events that are now to be predicted.

The test split is scored once, when a training ends; then it is printed from the ranks the run keeps. --store is for a run that
was tested before ranks were kept: it is scored again, its ranks are kept, and its log says so.

  elastic evaluate ml-100k-elastic
  elastic evaluate checkpoints/local-toy-elastic --split valid --protocols full --metrics NDCG@10,HR@10
  elastic evaluate ml-100k-elastic --json
  elastic evaluate ml-100k-elastic --last-events 0,1,2,5,20     if only so many events of everybody were known
  elastic evaluate checkpoints/local-old --store
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, cast

import torch
import typer

from elastic_core.commands.options import DeviceOption, JsonOption, RunArgument, split_commas
from elastic_core.commands.run_lookup import Loaded, find_run, load_run, print_note
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.core.evaluate import NAMES, draw_users
from elastic_core.core.histories import Split
from elastic_core.data.preprocessing import list_note
from elastic_core.data.source_catalog import PLANTED, is_available
from elastic_core.data.sources import load
from elastic_core.errors import InputError
from elastic_core.machine import code_commit, find_device
from elastic_core.results.short_histories import score_short_histories
from elastic_core.runs import Run
from elastic_core.runs.ranks import Report, evaluate

TIED_SHARE = 0.05  # share of targets from which equal times may make a number
REASON = "no ranks were kept when it was tested"


def run_command(
    run_name: RunArgument,
    split: Annotated[Literal["test", "valid"], typer.Option(help="Whose last events are asked for.")] = "test",
    protocols: Annotated[
        str, typer.Option(metavar="NAME,…", help=f"Of {', '.join(PROTOCOLS)}; by default all.", show_default=False)
    ] = ",".join(PROTOCOLS),
    metrics: Annotated[str, typer.Option(metavar="NAME,…", help=f"Of {', '.join(NAMES)}.")] = "NDCG@10,HR@10,MRR@10",
    device: DeviceOption = "cpu",
    users: Annotated[int, typer.Option(metavar="N", help="With --split valid: so many, drawn by chance; 0: everybody.")] = 0,
    last_events: Annotated[
        str, typer.Option(metavar="N,…", help="By the last N events of everybody alone, beside popularity.", show_default=False)
    ] = "",
    as_json: JsonOption = False,
    store: Annotated[bool, typer.Option("--store", help="Score a test again whose ranks were not kept, and keep them.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="With --store: what the log says of why.")] = REASON,
) -> None:
    find_device(device)  # a device that is not there is refused before a run is looked for
    run, loaded = find_run(run_name), None
    protocol_names = parse_names(protocols, PROTOCOLS, "protocol")
    protocol_names.sort(key=lambda protocol: protocol != run.protocol)  # first the one that fits
    metric_names = parse_names(metrics, NAMES, "metric")
    if users < 0 or (users and split == "test"):
        raise InputError("--users takes a number of people and goes with --split valid: a test is of everybody")
    if last_events:
        if store or users or as_json:
            raise InputError("--last-events is of everybody, and goes with neither --store nor --json")
        print_short_histories(run_name, split, protocol_names[0], parse_lengths(last_events))
        return
    if store:
        if split != "test":
            raise InputError("--store keeps the ranks of the test split, no other")
        store_ranks(run, device, reason)
    if split == "test" and run.has_report:
        report, times = run.report(), run.last_event("test").get("scored", 1)
        report = replace(report, ranks={name: report.ranks[name] for name in protocol_names if name in report.ranks})
        data_name = run.last_event("start").get("data", run.config.data.source)
        rescored_text = f" Its test was scored {times} times, as it went on after its end." if times > 1 else ""
        print_note(f"From the ranks that the run keeps of its test.{rescored_text}")
    else:
        _, dataset, model = loaded = load_run(run_name, device)
        users_drawn = draw_users(dataset, users)
        report = evaluate(model, dataset, split, protocol_names, device=find_device(device), users=users_drawn)
        data_name = dataset.label
    print_note(f"{run.name} on {data_name} (data {report.data_hash}), {split}, {len(report.users):,} people")
    if run.keeps_seen:
        print_note("The protocol full-seen fits these data: people often choose again what they have seen.")
    if note := list_note(run.n_items()):
        print_note(f"Note: {note}.")
    random_ties_report = under_random_ties(run, report, find_device(device), loaded)
    if not as_json:
        print(report_table(report, metric_names, random_ties_report))
        return
    for ranked, extra_columns in ((report, {}), (random_ties_report, {"ties": "random"})):
        for row in ranked.metric_rows() if ranked else ():
            if row["metric"] in metric_names:
                print(json.dumps({"run": run.name, **extra_columns, **row}))


def parse_names(text: str, known_names: Sequence[str], kind: str) -> list[str]:
    """Names between commas. Raises InputError for one that is not among `known_names`."""
    names = split_commas(text)
    if unknown := [name for name in names if name not in known_names]:
        raise InputError(f"unknown {kind} {unknown[0]!r}; known are {', '.join(known_names)}")
    return names


def parse_lengths(typed: str) -> list[int]:
    """`0,1,2` → [0, 1, 2]. Raises InputError for anything else."""
    lengths = split_commas(typed)
    if wrong := [text for text in lengths if not text.isdecimal() or len(text) > 6]:
        raise InputError(f"--last-events takes numbers of events such as 0,1,2, not {wrong[0]!r}")
    return [int(text) for text in lengths]


def print_short_histories(run_name: str, split: Split, protocol: str, lengths: list[int]) -> None:
    """Print the score of every length that was asked for, and what it is over popularity."""
    run, dataset, model = load_run(run_name)
    n_users_text = f"{dataset.histories.n_users:,} people"
    print_note(f"{run.name} on {dataset.label}, {split}, {n_users_text}, {protocol}; after 0 events: what is popular")
    print(f"{'last events':<13}{'NDCG@10':>18}{'over popularity':>27}")
    for score_row in score_short_histories(model, dataset, lengths, protocol, split=split):
        score, over_popularity = score_row.score, score_row.over_popularity
        interval = f"({over_popularity.low:+.4f} to {over_popularity.high:+.4f})" if score_row.events else ""
        print(f"{score_row.events:<13}{score.mean:>9.4f} ± {1.96 * score.error:.4f}{over_popularity.mean:>+10.4f} {interval}")


def under_random_ties(run: Run, report: Report, device: torch.device, loaded: Loaded | None) -> Report | None:
    """The report of the same weights, people and protocols where a hash orders events of one time, if that is much of what is
    asked; it is said what it means, or why it is not to be had."""
    data, split = run.config.data, cast(Split, report.split)
    if not loaded:
        if data.source == PLANTED or run.last_event("start").get("tied", 1) <= TIED_SHARE:
            return None
        if not is_available(data):
            print_note("Its data are not on this machine, so it is not asked what equal times do to its numbers.")
            return None
    dataset = loaded.dataset if loaded else load(data)
    share = getattr(dataset.ties, split) if dataset.ties and dataset.ties.rule != "random" else 0.0
    if share <= TIED_SHARE:
        return None
    finding = f"{share:.0%} of the targets share their time with the event before them, and the file's order decides"
    try:
        if dataset.hash != report.data_hash:
            raise InputError(f"its data are {dataset.hash} now")
        model = loaded.model if loaded else run.model(dataset).to(device)
    except InputError as error:
        print_note(f"{finding}; what another order gives cannot be said: {error}.")
        return None
    tied_dataset = load(replace(data, ties="random"))
    moved_share = (dataset.target_items(split) != tied_dataset.target_items(split))[report.users].mean()
    print_note(
        f"{finding}. Random ties: a hash decides, and {moved_share:.0%} of people get another target; the weights were trained "
        "in the file's order and may have learned from it."
    )
    return evaluate(model, tied_dataset, split, list(report.ranks), device=device, users=report.users)


def store_ranks(run: Run, device: str, reason: str) -> None:
    """Scores a finished run's test again, with what was trained then, and keeps ranks and numbers.

    The row comes before the ranks: a command that was killed between them can be given again. Raises InputError if ranks are
    there, the run has had no test, or the data is no longer that of its test.
    """
    old_event, start = run.last_event("test"), run.last_event("start")
    if run.has_report:
        raise InputError(f"the run {run.name} keeps the ranks of its test already; a test is scored once")
    if not old_event:
        raise InputError(f"the run {run.name} was not tested yet; its training ends with the test")
    _, dataset, model = load_run(str(run.path), device)
    if start.get("data_hash", dataset.hash) != dataset.hash:
        raise InputError(f"the run {run.name} was tested on data {start['data_hash']}, and {dataset.label} is now {dataset.hash}")
    report = replace(evaluate(model, dataset, "test", PROTOCOLS, device=find_device(device)), commit=code_commit())
    new_values = {
        "users": len(report.users),
        "protocols": report.metrics,
        "errors": report.errors,
        "seconds": round(report.seconds, 2),
    }
    run.append_event({**old_event, **new_values, "commit": report.commit, "rescored": reason})
    run.save_report(report)
    print_note(f"{run.name}: scored again and kept; the log says why: {reason}")


def report_table(report: Report, metrics: list[str], random_ties_report: Report | None) -> str:
    lines = [f"{'protocol':<13}" + "".join(f"{metric:>20}" for metric in metrics)]
    for protocol in report.ranks:
        for name, ranked in ((protocol, report), ("  random ties", random_ties_report)):
            intervals = [ranked.mean_interval(protocol, metric) for metric in metrics] if ranked else []
            lines += [f"{name:<13}" + "".join(f"{i.mean:>11.4f} ± {1.96 * i.error:.4f}" for i in intervals)] if ranked else []
    return "\n".join(lines)
