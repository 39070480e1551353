"""Is run A better than run B? From the ranks that both keep of their tests; no model is opened.

Prints A - B with its 95% interval and p, which count the noise of people and of training seeds. Give all the runs of a side
that differ only in their seed, separated by commas. With one run of something that is trained, the noise of training is
not counted, and nothing is claimed.

  elastic compare ml-100k-elastic ml-100k-sasrec
  elastic compare ml-100k-elastic ml-100k-sasrec --protocol pop100 --metric HR@10
  elastic compare ml-100k-elastic,ml-100k-elastic-seed1 ml-100k-sasrec,ml-100k-sasrec-seed1

With --power: which difference so many people and seeds find four times out of five, and what a smaller one would take.
"""

import json
from dataclasses import asdict
from typing import Annotated

import numpy as np
import typer

from elastic_core.commands.options import JsonOption, split_commas
from elastic_core.commands.run_lookup import find_run, print_note
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.core.evaluate import NAMES
from elastic_core.results.compare import (
    Comparison,
    claim_sentence,
    compare_runs,
    needs_training,
    noise_of_comparison,
    numbers_text,
)
from elastic_core.results.statistics import NoiseParts
from elastic_core.runs import Run

BUDGET = ("minutes", "clock", "epochs", "patience")
SHARES = (0.025, 0.05, 0.1)  # the paper's gain for its memory is the first


def run_command(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="A run folder or name; several seeds separated by commas.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="The other.")],
    protocol: Annotated[str, typer.Option(help=f"One of {', '.join(PROTOCOLS)}.")] = "full",
    power: Annotated[bool, typer.Option("--power", help="Also say which difference could have been found.")] = False,
    metric: Annotated[str, typer.Option(help=f"One of {', '.join(NAMES)}.")] = "NDCG@10",
    as_json: JsonOption = False,
) -> None:
    a, b = ([find_run(name) for name in split_commas(side)] for side in (run_a, run_b))
    comparison = compare_runs(a, b, protocol, metric)
    if as_json:
        finite_values = {name: None if value != value else value for name, value in asdict(comparison).items()}  # NaN is no JSON
        print(json.dumps({"a": run_a, "b": run_b, **finite_values}))
        return
    print(comparison_text(comparison, run_a, run_b))
    if note := budget_note(a[0], b[0]):
        print_note(note)
    if power:
        print(power_text(noise_of_comparison(a, b, protocol, metric), comparison.mean_b))


def comparison_text(comparison: Comparison, a: str, b: str) -> str:
    lines = [
        f"{comparison.metric}, protocol {comparison.protocol}, test split, {comparison.users:,} people",
        f"A {a}: {comparison.mean_a:.4f}",
        f"B {b}: {comparison.mean_b:.4f}",
        f"A - B: {numbers_text(comparison)}",
    ]
    if len(comparison.means_a) > 1 or len(comparison.means_b) > 1:
        spread_a, spread_b = (
            np.std(means, ddof=1) if len(means) > 1 else np.nan for means in (comparison.means_a, comparison.means_b)
        )
        lines.append(f"spread over seeds: A {spread_a:.4f}, B {spread_b:.4f}")
    return "\n".join([*lines, f"{claim_sentence(comparison, a, b)} (p is of this pair alone; the tables adjust for all.)"])


def budget_note(a: Run, b: Run) -> str:
    """How the budgets of two trainings differ, if they do: then a difference is not the model's alone."""
    if not (needs_training(a) and needs_training(b)):
        return ""
    pairs = [(name, getattr(a.config.train, name), getattr(b.config.train, name)) for name in BUDGET]
    texts = [f"{name} {ours} and {theirs}" for name, ours, theirs in pairs if ours != theirs]
    return f"their budgets differ: {', '.join(texts)}" if texts else ""


def power_text(noise: NoiseParts, mean_b: float) -> str:
    """What could have been found, as text, and as a share of B's mean."""
    detectable = noise.detectable_difference()
    start = f"found four times out of five with {noise.n:,} people and {noise.n_seeds} seeds: {detectable:.4f}"
    if not mean_b:
        return f"{start}; B is 0, which has no parts"
    lines = [f"{start} ({detectable / mean_b:.1%} of B)"]
    for share in SHARES:
        difference = share * mean_b
        seeds, users = noise.seeds_for(difference), noise.users_for(difference)
        with_seeds = f"{seeds} seeds of these people" if seeds else "more people, whatever the seeds"
        with_users = f"{users:,} people with {noise.n_seeds} seeds" if users else "more seeds, whatever the people"
        lines.append(f"  {share:.1%} of B ({difference:.4f}) would take {with_seeds}, or {with_users}")
    return "\n".join(lines)
