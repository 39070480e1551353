"""Rank everybody's held-out item with a trained run.

Protocols (what the target is ranked against): full = every item the person has not seen; full-seen = every item;
pop100 = 100 items drawn by popularity; uniform100 = 100 unseen items drawn evenly. Numbers of different protocols cannot
be compared. The interval is 95% over people.

  python -m elastic_core evaluate ml-100k-elastic
  python -m elastic_core evaluate checkpoints/local-toy-elastic --split valid --protocols full --metrics NDCG@10,HR@10
  python -m elastic_core evaluate ml-100k-elastic --json
"""

import argparse
import json

from elastic_core.commands.finding import listed, load_run, say
from elastic_core.errors import InputError
from elastic_core.evaluation.candidates import PROTOCOLS
from elastic_core.evaluation.evaluate import Report, evaluate
from elastic_core.evaluation.metrics import NAMES
from elastic_core.machine import find_device


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_name", metavar="RUN", help="a run folder, or its name below checkpoints/")
    parser.add_argument("--split", default="test", help="test or valid (default: test)")
    parser.add_argument(
        "--protocols", type=listed, default=list(PROTOCOLS), help=f"comma-separated (default: {','.join(PROTOCOLS)})"
    )
    parser.add_argument("--metrics", type=listed, default=["NDCG@10", "HR@10", "MRR@10"], help=f"of {','.join(NAMES)}")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or auto (default: cpu)")
    parser.add_argument("--json", action="store_true", help="one JSON row per protocol and metric instead of the table")


def run(arguments: argparse.Namespace) -> int:
    for metric in arguments.metrics:
        if metric not in NAMES:
            raise InputError(f"unknown metric {metric!r}; known are {', '.join(NAMES)}")
    found, dataset, model = load_run(arguments.run_name, arguments.device)
    device = find_device(arguments.device)
    report = evaluate(model, dataset, arguments.split, arguments.protocols, device=device)
    say(f"{found.name} on {dataset.label} (data {dataset.hash}), {arguments.split}, {len(report.users):,} people")
    print(as_json(report, found.name, arguments.metrics) if arguments.json else as_table(report, arguments.metrics))
    return 0


def as_table(report: Report, metrics: list[str]) -> str:
    lines = [f"{'protocol':<12}" + "".join(f"{metric:>20}" for metric in metrics)]
    for protocol in report.per_user:
        intervals = [report.interval(protocol, metric) for metric in metrics]
        lines.append(f"{protocol:<12}" + "".join(f"{i.mean:>11.4f} ± {1.96 * i.error:.4f}" for i in intervals))
    return "\n".join(lines)


def as_json(report: Report, name: str, metrics: list[str]) -> str:
    return "\n".join(json.dumps({"run": name, **row}) for row in report.rows() if row["metric"] in metrics)
