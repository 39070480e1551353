"""What would an autoencoder, fitted to a run's states afterwards, find in their place? The experts' rival for meaning.

Fits a top-k sparse autoencoder (256 latents, 8 active, unless told otherwise) to the states after training prefixes, and asks its
latents what `routing` and `experts` ask experts: do they speak of interests, do their labels hold, does a list move with them?
Each figure stands beside what it would be without the claim; where the run has experts of its own, theirs stand beside it.

  python -m elastic_core latents ml-100k-sasrec
  python -m elastic_core latents ml-100k-elastic --seed 1
"""

import argparse

import numpy as np

from elastic_core.commands.arguments import load_run, options, say
from elastic_core.data import Dataset
from elastic_core.data.traits import genre_table
from elastic_core.errors import InputError
from elastic_core.memory.gauges import gauges
from elastic_core.memory.latents import fit_latents
from elastic_core.memory.routing import routing
from elastic_core.models import Recommender
from elastic_core.services.experts import knobs, overview
from elastic_core.services.experts.ablation import Population

TURNED = 8.0


def configure(parser: argparse.ArgumentParser) -> None:
    options(parser, """
        run_name RUN | text | a run folder, or its name below checkpoints/
        --side N | int 16 | square root of the number of latents
        --active K | int 8 | how many speak at a time
        --seed | int 0 | of the autoencoder
    """)  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    loaded = load_run(arguments.run_name)
    if not 2 <= arguments.side <= 128 or not 1 <= arguments.active <= arguments.side**2:
        raise InputError("--side must lie in 2 … 128 and --active in 1 … side²")
    run, dataset, model = loaded
    told, sides = "its states are mixtures, which an autoencoder of one state does not tell; only its own experts are asked", {}
    if model.retrieves:
        sides["its own experts"] = _asked(model, dataset)
    if not model.scorer().parts:
        say("Fitting latents to its states.")
        latents, fit = fit_latents(model, dataset, arguments.side, arguments.active, seed=arguments.seed)
        sides["latents"] = _asked(latents, dataset)
        told = (
            f"{arguments.side**2} latents, {arguments.active} active, tell {fit.explained:.0%} of the states' variance "
            f"({fit.held_out:.0%} of people they were not fitted to), {fit.states:,} states"
        )
    elif not sides:
        raise InputError(f"{run.name} predicts with several states at once, which an autoencoder does not tell")
    print(f"{run.name} on {dataset.label}, test\n{told}")
    print(f"{'':<52}" + "".join(f"{name:>30}" for name in sides))
    for line in next(iter(sides.values())):
        print(f"{line:<52}" + "".join(f"{cells[line]:>30}" for cells in sides.values()))
    return 0


def _asked(model: Recommender, dataset: Dataset) -> dict[str, str]:
    """Ask what is asked of latents and experts alike; the answers are in words."""
    of, found, held, knob = Population(model, dataset, routing(model, dataset, "test")), gauges(model, dataset), None, None
    if genre_table(dataset.catalog)[0]:
        held = overview.held_out_labels(overview.survey(of))
        try:
            knob = knobs.knob_table([knobs.measure_knobs(of, factors=(TURNED,))]).iloc[0]
        except InputError as error:
            say(f"No knob is turned: {error}.")

    def nulled(value: float, null: float) -> str:
        return "" if np.isnan(value) else f"{value:.2f} ({null:.2f})"

    def turned(name: str, shape: str) -> str:
        ends = [] if knob is None else [format(knob[key], shape) for key in (f"d_{name}", f"{name}_low", f"{name}_high")]
        return "{} ({} to {})".format(*ends) if ends else ""

    return {
        "used by anybody": f"{of.traffic.used:.0%}",
        "odd events ~ even events (of like length)": nulled(found.halves, found.stranger),
        "whole ~ a quarter (another's)": nulled(found.quarter, found.quarter_stranger),
        "R² of log length (from popularity alone)": nulled(found.length, found.length_popularity),
        "R² of genre shares (shuffled)": nulled(found.genres, found.genres_shuffled),
        "labels of one half that hold on the other (chance)": (
            f"{held.holds} of {held.labelled} ({held.by_chance:.0f})" if held else ""
        ),
        f"× {TURNED:g}: share of its genre in the ten": turned("own", "+.2%"),
        "  of another's genre": turned("other", "+.2%"),
        "  NDCG@10": turned("ndcg", "+.4f"),
    }
