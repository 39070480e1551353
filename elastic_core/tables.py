"""Markdown tables of what the named runs measured on the test split (Table 2 and 3 from our own runs, nobody else's numbers)."""

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from elastic_core.evaluation.candidates import PROTOCOLS
from elastic_core.reproduce import Row, status
from elastic_core.runs import Run

METRICS = ("NDCG@10", "HR@10")


def table(chosen: Iterable[Row], root: Path, protocol: str = "full") -> str:
    """Markdown, a section per data set, with 95% intervals over people; `protocol` may be `all` (NDCG@10 under each).

    With several seeds the mean is of their means, the interval the mean of theirs, and their spread stands beside it.
    """
    groups: dict[str, dict[str, list[Run]]] = {}
    for row in chosen:
        if status(row, root) == "finished":
            groups.setdefault(row.data, {}).setdefault(row.label, []).append(Run(row.folder(root)))
    return "\n\n".join(_section(data, labels, protocol) for data, labels in groups.items()) or "nothing is finished yet"


def _section(data: str, labels: dict[str, list[Run]], protocol: str) -> str:
    some = next(iter(labels.values()))[0]
    start, test = some.last("start") or {}, some.last("test") or {}
    if protocol == "all":
        measured = [(name, METRICS[0]) for name in PROTOCOLS]
        heads = [f"{name} {metric}" for name, metric in measured]
        what = "all protocols"
    else:
        measured, heads, what = [(protocol, metric) for metric in METRICS], list(METRICS), f"protocol {protocol}"
    heads = ["system", "seeds", *(f"{head} ± 95%" for head in heads), "spread of seeds", "parameters", "experts used", "device"]
    lines = [
        f"{start.get('data', data)}, data {start.get('data_hash', '?')}, test split, {what}, {test.get('users', 0):,} people",
        "",
        "| " + " | ".join(heads) + " |",
        "|" + " --- |" * len(heads),
    ]
    lines += ["| " + " | ".join(_cells(label, runs, measured)) + " |" for label, runs in labels.items()]
    return "\n".join(lines)


def _cells(label: str, runs: list[Run], measured: list[tuple[str, str]]) -> list[str]:
    tests: list[dict[str, Any]] = [run.last("test") or {} for run in runs]
    starts = [run.last("start") or {} for run in runs]
    cells = [label, str(len(runs))]
    for protocol, metric in measured:
        mean = statistics.fmean(test["protocols"][protocol][metric] for test in tests)
        errors = [test["errors"][protocol][metric] for test in tests if "errors" in test]
        cells.append(f"{mean:.4f}" + (f" ± {1.96 * statistics.fmean(errors):.4f}" if errors else ""))
    protocol, metric = measured[0]
    values = [test["protocols"][protocol][metric] for test in tests]
    used = [test["used"] for test in tests if "used" in test]
    devices = sorted({str(start.get("device", "?")) for start in starts})
    return [
        *cells,
        f"{statistics.stdev(values):.4f}" if len(values) > 1 else "",
        f"{starts[0].get('parameters', 0):,}",
        f"{statistics.fmean(used):.0%}" if used else "",
        ", ".join(devices),
    ]
