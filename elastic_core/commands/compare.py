"""Is run A better than run B? Both are judged on the same people and candidates, and the differences are tested.

Prints A - B with a 95% bootstrap interval over people and the p of a sign-flip permutation test. Several runs that
differ in their seed can be given for either side, separated by commas: their average is compared.

  python -m elastic_core compare ml-100k-elastic ml-100k-sasrec
  python -m elastic_core compare ml-100k-elastic ml-100k-sasrec --protocol pop100 --metric HR@10
  python -m elastic_core compare ml-100k-elastic,ml-100k-elastic-seed1 ml-100k-sasrec,ml-100k-sasrec-seed1
"""

import argparse

from elastic_core.commands.finding import listed, load_run
from elastic_core.errors import InputError
from elastic_core.evaluation.candidates import PROTOCOLS
from elastic_core.evaluation.compare import Comparison, compare_many
from elastic_core.evaluation.evaluate import Report, evaluate
from elastic_core.evaluation.metrics import NAMES
from elastic_core.machine import find_device


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="RUN_A", type=listed, help="a run folder or name; several seeds separated by commas")
    parser.add_argument("b", metavar="RUN_B", type=listed, help="the other")
    parser.add_argument("--protocol", default="full", help=f"one of {', '.join(PROTOCOLS)} (default: full)")
    parser.add_argument("--metric", default="NDCG@10", help=f"one of {', '.join(NAMES)} (default: NDCG@10)")
    parser.add_argument("--split", default="test", help="test or valid (default: test)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or auto (default: cpu)")


def run(arguments: argparse.Namespace) -> int:
    if arguments.metric not in NAMES:
        raise InputError(f"unknown metric {arguments.metric!r}; known are {', '.join(NAMES)}")
    a, b = ([_report(name, arguments) for name in side] for side in (arguments.a, arguments.b))
    print(as_text(compare_many(a, b, arguments.protocol, arguments.metric), ", ".join(arguments.a), ", ".join(arguments.b)))
    return 0


def _report(name: str, arguments: argparse.Namespace) -> Report:
    _, dataset, model = load_run(name, arguments.device)
    return evaluate(model, dataset, arguments.split, (arguments.protocol,), device=find_device(arguments.device))


def as_text(found: Comparison, a: str, b: str) -> str:
    unsure = found.low <= 0 <= found.high
    verdict = "no difference can be claimed" if unsure else f"{a if found.difference > 0 else b} is better"
    spread = ""
    if len(found.means_a) > 1 or len(found.means_b) > 1:
        spread = f"\nspread over seeds: A {found.spread_a:.4f}, B {found.spread_b:.4f}"
    return (
        f"{found.metric}, protocol {found.protocol}, {found.users:,} people\n"
        f"A {a}: {found.mean_a:.4f}\nB {b}: {found.mean_b:.4f}\n"
        f"A - B: {found.difference:+.4f}, 95% interval {found.low:+.4f} to {found.high:+.4f}, p = {found.p:.4f}{spread}\n"
        f"{verdict}"
    )
