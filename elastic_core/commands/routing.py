"""Is a run's memory alive, and what do its experts stand for?

Prints how many experts anybody retrieves, how evenly (entropy 1 = uniform, with what a uniformly random router would
give), the spectrum of the query before and after normalisation, and how far the raw query merely follows history length.
On the planted world, where the truth is known, also how well experts recover the planted interests, beside chance.

  python -m elastic_core routing ml-100k-elastic
  python -m elastic_core routing planted-elastic
"""

import argparse

import numpy as np

from elastic_core.commands.finding import load_run
from elastic_core.errors import InputError
from elastic_core.memory.recovery import Score, recover
from elastic_core.memory.routing import routing

SPLITS = ("test", "valid", "train")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_name", metavar="RUN", help="a run folder, or its name below checkpoints/")
    parser.add_argument("--split", default="test", choices=SPLITS, help="whose histories (default: test)")


def run(arguments: argparse.Namespace) -> int:
    found, dataset, model = load_run(arguments.run_name)
    if not model.retrieves:
        raise InputError(f"{found.name} has no interest memory, so nothing is routed")
    now = routing(model, dataset, arguments.split)
    low, high, chance = now.chance()
    busiest = np.argsort(-now.load)[:5]
    print(f"{found.name} on {dataset.label}, {arguments.split}, {len(now.experts):,} people, {now.experts.shape[1]} experts each")
    print(f"experts used        {now.used:.1%} of {len(now.load)} (a random router: {chance:.1%})")
    print(f"load entropy        {now.entropy:.3f} of uniform; Gini {now.gini:.3f}")
    print(f"load, least - most  {now.load.min()} - {now.load.max()} people (a random router, 95%: {low[0]:.0f} - {high[-1]:.0f})")
    print(f"busiest             {', '.join(f'expert {e} ({now.load[e]} people)' for e in busiest)}")
    print(f"query spectrum      raw {_shares(now.raw_spectrum)}; as the keys see it {_shares(now.spectrum)}")
    print(f"raw query's first axis against log history length: |correlation| {now.length_correlation:.2f}")
    if dataset.truth is not None:
        scores = recover(model, dataset)
        print("recovery of the planted interests (purity / adjusted mutual information, chance in brackets)")
        print(f"  strongest expert ~ heaviest interest of a person   {_line(scores.strongest)}")
        print(f"  all retrieved experts ~ heaviest interest          {_line(scores.retrieved)}")
        print(f"  expert that reads an event ~ the event's interest  {_line(scores.events)}")
    return 0


def _shares(spectrum: np.ndarray) -> str:
    return " ".join(f"{share:.2f}" for share in spectrum[:4]) + " …"


def _line(score: Score) -> str:
    ami = f"{score.ami:.3f} ({score.ami_chance:.3f}, 97.5%: {score.ami_chance_high:.3f})"
    return f"{score.purity:.3f} ({score.purity_chance:.3f}) / {ami}"
