"""Is a run's memory alive, and what do its experts stand for?

Prints how many experts anybody retrieves, how evenly (entropy 1 = uniform, with what a uniformly random router would
give), the spectrum of the query before and after normalisation, and four figures of whether the choice of experts speaks of
interests or of activity, each beside what it would be by chance. On the planted world, where the truth is known, also how well
experts recover the planted interests, beside models in which keys or values are broken, and what the model remembers: its share
of the oracle by how many events ago the interest of what came next last showed. That is told of a model without a memory, too.

  elastic routing planted-elastic
  elastic routing ml-100k-elastic --split valid
"""

from typing import Annotated

import numpy as np
import typer

from elastic_core.commands.options import RunArgument
from elastic_core.commands.run_lookup import load_run
from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.memory import gaps
from elastic_core.memory.recovery import Score, best_possible_ami, compare_with_nulls
from elastic_core.memory.routing import route_users
from elastic_core.memory.routing_metrics import measure_routing
from elastic_core.models import Recommender
from elastic_core.runs.ranks import evaluate


def run_command(
    run_name: RunArgument,
    split: Annotated[Split, typer.Option(help="Whose histories.")] = "test",
) -> None:
    loaded_run, dataset, model = load_run(run_name)
    if not model.retrieves:
        if dataset.truth is None:
            raise InputError(f"{loaded_run.name} has no interest memory, so nothing is routed")
        print(f"{loaded_run.name} on {dataset.label} has no interest memory, so nothing is routed")
        _print_memory(model, dataset)
        return
    now = route_users(model, dataset, split)
    low, high, chance = now.random_router()
    busiest = np.argsort(-now.load)[:5]
    users, k = now.experts.shape
    print(f"{loaded_run.name} on {dataset.label}, {split}, {users:,} people, {k} experts each")
    print(f"experts used        {now.used_share:.1%} of {len(now.load)} (a random router: {chance:.1%})")
    print(f"load entropy        {now.entropy:.3f} of uniform; Gini {now.gini:.3f}")
    print(f"load, least - most  {now.load.min()} - {now.load.max()} people (a random router, 95%: {low[0]:.0f} - {high[-1]:.0f})")
    print(f"busiest             {', '.join(f'expert {e} ({now.load[e]} people)' for e in busiest)}")
    print(f"query spectrum      raw {_spectrum_text(now.raw_spectrum)}; as the keys see it {_spectrum_text(now.spectrum)}")
    print(f"raw query's first axis against log history length: |correlation| {now.length_correlation:.2f}")
    _print_routing_metrics(model, dataset, split)
    if dataset.truth is not None:
        _print_recovery(model, dataset)
        _print_memory(model, dataset)


def _print_routing_metrics(model: Recommender, dataset: Dataset, split: Split) -> None:
    metrics = measure_routing(model, dataset, split)
    print(f"interest or activity? ({metrics.users:,} people with 8 events or more; in brackets what it is without the claim)")
    for words, value, null, without in (
        ("experts of odd events found again by even ones", metrics.halves, "people of like length", metrics.stranger),
        ("experts of a history found again by a quarter", metrics.quarter, "another's quarter", metrics.quarter_stranger),
        ("R² of log length, people held out", metrics.length, "popularity of the items alone", metrics.length_popularity),
        ("R² of log length where all events are random ones", metrics.count, "a router of interests", 0.0),
        ("R² of genre shares, people held out", metrics.genres, "experts shuffled", metrics.genres_shuffled),
    ):
        if value == value:
            print(f"  {words:<50} {value:.2f} ({null} {without:.2f})")
    print(f"  what kinds of items are in a history tells log length with R² {metrics.length_kinds:.2f} by itself")


def _print_recovery(model: Recommender, dataset: Dataset) -> None:
    most = best_possible_ami(dataset, model.length)
    print("recovery of the planted interests (adjusted mutual information; in brackets with the truth shuffled)")
    print(f"  {'':<28} strongest expert ~ heaviest interest   expert that reads an event ~ its interest")
    for name, scores in compare_with_nulls(model, dataset).items():
        print(f"  {name:<28} {_score_text(scores.strongest):<38} {_score_text(scores.events)}")
    print(f"  {'knowing every interest':<28} {most:.3f}")


def _print_memory(model: Recommender, dataset: Dataset) -> None:
    values = evaluate(model, dataset, "test", (gaps.PROTOCOL,)).user_values(gaps.PROTOCOL, gaps.METRIC)
    over_all, *parts = gaps.remembered_shares({"": values}, dataset).to_dict("records")
    print(f"what it remembers: {over_all['share']:.2f} of the oracle's {gaps.METRIC} ({gaps.PROTOCOL})")
    for row in parts:
        print(f"  interest last showed {row['gap']:>5} events ago   {row['share']:.2f}   ({row['people']} people)")


def _spectrum_text(spectrum: np.ndarray) -> str:
    return " ".join(f"{share:.2f}" for share in spectrum[:4]) + " …"


def _score_text(score: Score) -> str:
    return f"{score.ami:.3f} ({score.ami_chance:.3f})"
