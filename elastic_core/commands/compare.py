"""Is run A better than run B? From the ranks that both keep of their tests; no model is opened.

Prints A - B with its 95% interval and p, which count the noise of people and of training seeds. Give all the runs of a side
that differ only in their seed, separated by commas. With one run of something that is trained, the noise of training is
not counted, and nothing is claimed.

  python -m elastic_core compare ml-100k-elastic ml-100k-sasrec
  python -m elastic_core compare ml-100k-elastic ml-100k-sasrec --protocol pop100 --metric HR@10
  python -m elastic_core compare ml-100k-elastic,ml-100k-elastic-seed1 ml-100k-sasrec,ml-100k-sasrec-seed1

With --power: which difference so many people and seeds find four times out of five, and what a smaller one would take.
"""

import argparse

from elastic_core.commands.arguments import find_run, options
from elastic_core.comparisons import compare_runs, power_of
from elastic_core.core.evaluate import NAMES, PROTOCOLS
from elastic_core.evaluation import verdict
from elastic_core.evaluation.compare import Comparison
from elastic_core.evaluation.power import Noise

SHARES = (0.025, 0.05, 0.1)  # the paper's gain for its memory is the first


def configure(parser: argparse.ArgumentParser) -> None:
    options(parser, f"""
        a RUN_A | words | a run folder or name; several seeds separated by commas
        b RUN_B | words | the other
        --protocol | text full | one of {", ".join(PROTOCOLS)}
        --power | flag | also say which difference could have been found
        --metric | text NDCG@10 | one of {", ".join(NAMES)}
    """)  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    a, b = ([find_run(name) for name in side] for side in (arguments.a, arguments.b))
    found = compare_runs(a, b, arguments.protocol, arguments.metric)
    print(comparison_text(found, ", ".join(arguments.a), ", ".join(arguments.b)))
    if arguments.power:
        print(power_text(power_of(a, b, arguments.protocol, arguments.metric), found.mean_b))
    return 0


def power_text(noise: Noise, of: float) -> str:
    """What could have been found, as text; `of` is the mean that parts are parts of."""
    seen = noise.detectable()
    if not of:
        return (
            f"found four times out of five with {noise.n:,} people and {noise.runs} seeds: {seen:.4f}; B is 0, which has no parts"
        )
    lines = [f"found four times out of five with {noise.n:,} people and {noise.runs} seeds: {seen:.4f} ({seen / of:.1%} of B)"]
    for share in SHARES:
        seeds, people = noise.seeds_for(share * of), noise.people_for(share * of)
        with_seeds = f"{seeds} seeds of these people" if seeds else "more people, whatever the seeds"
        with_people = f"{people:,} people with {noise.runs} seeds" if people else "more seeds, whatever the people"
        lines.append(f"  {share:.1%} of B ({share * of:.4f}) would take {with_seeds}, or {with_people}")
    return "\n".join(lines)


def comparison_text(found: Comparison, a: str, b: str) -> str:
    spread = ""
    if len(found.means_a) > 1 or len(found.means_b) > 1:
        spread = f"\nspread over seeds: A {found.spread_a:.4f}, B {found.spread_b:.4f}"
    return (
        f"{found.metric}, protocol {found.protocol}, test split, {found.users:,} people\n"
        f"A {a}: {found.mean_a:.4f}\nB {b}: {found.mean_b:.4f}\n"
        f"A - B: {verdict.numbers(found)}{spread}\n"
        f"{verdict.sentence(found, a, b)}"
    )
