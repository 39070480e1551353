"""What would an autoencoder, fitted to a run's states afterwards, find in their place? The experts' rival for meaning.

Fits a top-k sparse autoencoder (256 latents, 8 active, unless told otherwise) to the states after training prefixes, and asks its
latents what `routing` and `experts` ask experts: do they speak of interests, do their labels hold, does a list move with them?
Each figure stands beside what it would be without the claim; where the run has experts of its own, theirs stand beside it.

  python -m elastic_core latents ml-100k-sasrec
  python -m elastic_core latents ml-100k-elastic --seed 1
"""

import argparse
from typing import NamedTuple

import numpy as np

from elastic_core.commands.arguments import load_run, options, say
from elastic_core.data import Dataset
from elastic_core.data.traits import genre_table
from elastic_core.errors import InputError
from elastic_core.memory.gauges import Gauges, gauges
from elastic_core.memory.latents import fit_latents
from elastic_core.memory.routing import Routing, routing
from elastic_core.models import Recommender
from elastic_core.services.experts import knobs, overview

TURNED = 8.0


def configure(parser: argparse.ArgumentParser) -> None:
    options(parser, """
        run_name RUN | text | a run folder, or its name below checkpoints/
        --side N | int 16 | square root of the number of latents
        --active K | int 8 | how many speak at a time
        --seed | int 0 | of the autoencoder
    """)  # fmt: skip


class Found(NamedTuple):
    """What is asked of latents and experts alike."""

    traffic: Routing
    gauges: Gauges
    held: overview.HeldOut | None
    knob: dict[str, float] | None


def run(arguments: argparse.Namespace) -> int:
    loaded = load_run(arguments.run_name)
    if not 2 <= arguments.side <= 128 or not 1 <= arguments.active <= arguments.side**2:
        raise InputError("--side must lie in 2 … 128 and --active in 1 … side²")
    run, dataset, model = loaded
    told, sides = "its states are mixtures, which an autoencoder of one state does not tell; only its own experts are asked", {}
    if model.retrieves:
        sides["its own experts"] = _ask(model, dataset)
    if not model.scorer().parts:
        say("Fitting latents to its states.")
        latents, fit = fit_latents(model, dataset, arguments.side, arguments.active, seed=arguments.seed)
        sides["latents"] = _ask(latents, dataset)
        told = (
            f"{arguments.side**2} latents, {arguments.active} active, tell {fit.explained:.0%} of the states' variance "
            f"({fit.held_out:.0%} of people they were not fitted to), {fit.states:,} states"
        )
    elif not sides:
        raise InputError(f"{run.name} predicts with several states at once, which an autoencoder does not tell")
    print(f"{run.name} on {dataset.label}, test\n{told}")
    print(f"{'':<52}" + "".join(f"{name:>30}" for name in sides))
    for words, cell in _LINES:
        print(f"{words:<52}" + "".join(f"{cell(found):>30}" for found in sides.values()))
    return 0


def _ask(model: Recommender, dataset: Dataset) -> Found:
    traffic, held, knob = routing(model, dataset, "test"), None, None
    if genre_table(dataset.catalog)[0]:
        held = overview.held_out_labels(overview.survey(model, dataset, traffic))
        try:
            knob = knobs.knob_table([knobs.measure_knobs(model, dataset, traffic, factors=(TURNED,))]).iloc[0].to_dict()
        except InputError as error:
            say(f"No knob is turned: {error}.")
    return Found(traffic, gauges(model, dataset), held, knob)


def _interval(found: Found, name: str, shape: str) -> str:
    ends = [format(found.knob[key], shape) for key in (f"d_{name}", f"{name}_low", f"{name}_high")] if found.knob else None
    return "{} ({} to {})".format(*ends) if ends else ""


def _nulled(value: float, null: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f} ({null:.2f})"


_LINES = (
    ("used by anybody", lambda f: f"{f.traffic.used:.0%}"),
    ("odd events ~ even events (of like length)", lambda f: _nulled(f.gauges.halves, f.gauges.stranger)),
    ("whole ~ a quarter (another's)", lambda f: _nulled(f.gauges.quarter, f.gauges.quarter_stranger)),
    ("R² of log length (from popularity alone)", lambda f: _nulled(f.gauges.length, f.gauges.length_popularity)),
    ("R² of genre shares (shuffled)", lambda f: _nulled(f.gauges.genres, f.gauges.genres_shuffled)),
    (
        "labels of one half that hold on the other (chance)",
        lambda f: f"{f.held.holds} of {f.held.labelled} ({f.held.by_chance:.0f})" if f.held else "",
    ),
    (f"× {TURNED:g}: share of its genre in the ten", lambda f: _interval(f, "own", "+.2%")),
    ("  of another's genre", lambda f: _interval(f, "other", "+.2%")),
    ("  NDCG@10", lambda f: _interval(f, "ndcg", "+.4f")),
)
