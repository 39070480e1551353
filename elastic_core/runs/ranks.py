"""What an evaluation found: ranks by protocol, the metrics of people that follow, and the file of a whole test's ranks,
`ranks.safetensors` in a run's folder, which every table and comparison reads:

    <protocol>.above   [users]   candidates above the target, of everybody in order (core/evaluate.py)
    <protocol>.tied    [users]   others with its score; left out where nobody has any
    metadata           split, data_hash, seed (of the sampled candidates), commit (of the code that ranked)

Files of old have `users` [users] besides, 0 … users - 1. Every tensor is uint8, uint16 or int32, the narrowest that holds it.
Every metric at every cutoff follows from these numbers, so nothing else is kept.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import torch
from safetensors.numpy import save_file

from elastic_core.core.candidates import PROTOCOLS, SEED
from elastic_core.core.evaluate import NAMES, ItemScorer, Ranks, expected_metric, expected_metrics, rank_users
from elastic_core.core.histories import Dataset, Split
from elastic_core.errors import InputError
from elastic_core.files import explain_parse_errors
from elastic_core.machine import code_commit

FILE = "ranks.safetensors"
LARGEST = 2**29  # bytes
KINDS: dict[str, type[np.integer[Any]]] = {"U8": np.uint8, "U16": np.uint16, "I32": np.int32}  # as safetensors calls them


class Interval(NamedTuple):
    """A mean over people, its standard error, and the 95% interval of a normal distribution around it."""

    mean: float
    error: float
    low: float
    high: float

    @classmethod
    def from_values(cls, values: np.ndarray) -> "Interval":
        """Of one number a person, float64 [users]."""
        mean = float(values.mean())
        error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return cls(mean, error, mean - 1.96 * error, mean + 1.96 * error)


@dataclass(frozen=True, eq=False)
class Report:
    """What one evaluation found: ranks by protocol, int32 [users] in the order of `users`; the rest is derived.

    `seed` drew the sampled candidates; `commit` is that of the code that ranked, where it is known. `seconds` is what the
    evaluation took, 0 for a report that was read from a file.
    """

    ranks: dict[str, Ranks]
    users: np.ndarray
    split: str
    data_hash: str
    seed: int
    seconds: float
    commit: str = ""

    @cached_property
    def metrics(self) -> dict[str, dict[str, float]]:
        return {
            protocol: {name: float(values.mean()) for name, values in expected_metrics(ranks).items()}
            for protocol, ranks in self.ranks.items()
        }

    @property
    def errors(self) -> dict[str, dict[str, float]]:
        """Standard errors of `metrics`, over people."""
        return {protocol: {name: self.mean_interval(protocol, name).error for name in NAMES} for protocol in self.ranks}

    def user_values(self, protocol: str, metric: str) -> np.ndarray:
        """One metric per person, float64 [users], in the order of `users`. Raises InputError if it was not evaluated.

        Worked out at every call, in 0.1 ms for a thousand people: all metrics take nine times the memory of the ranks."""
        for name, known in ((protocol, self.ranks), (metric, NAMES)):
            if name not in known:
                raise InputError(f"the report has no {name!r}; it has {', '.join(known)}")
        return expected_metric(self.ranks[protocol], metric)

    def mean_interval(self, protocol: str, metric: str) -> Interval:
        return Interval.from_values(self.user_values(protocol, metric))

    def metric_rows(self) -> list[dict[str, Any]]:
        """One plain row per protocol and metric, with everything that a number must carry."""
        common = {"split": self.split, "data_hash": self.data_hash, "seed": self.seed, "users": len(self.users)}
        return [
            {"protocol": protocol, "metric": metric, **self.mean_interval(protocol, metric)._asdict(), **common}
            for protocol in self.ranks
            for metric in NAMES
        ]


def evaluate(
    scorer: ItemScorer,
    dataset: Dataset,
    split: Split = "test",
    protocols: Sequence[str] = PROTOCOLS,
    batch: int = 256,
    device: str | torch.device = "cpu",
    seed: int = SEED,
    users: np.ndarray | None = None,
) -> Report:
    """Score each person's target after the history that `split` lets a model read.

    `users` are dense user numbers (default: everybody); the rest is as of `rank_users`. Raises InputError as that does.
    """
    began = time.perf_counter()
    evaluated = dataset.users_with_target(split) if users is None else np.asarray(users, dtype=np.int64)
    ranks = rank_users(scorer, dataset, split, protocols, evaluated, batch, device, seed)
    return Report(ranks, evaluated, split, dataset.hash, seed, time.perf_counter() - began)


# --- the file ---------------------------------------------------------------------------------------------------------


def write_ranks(report: Report, path: Path) -> None:
    """Fills the file at `path` with a report's ranks. Raises InputError for a report that is not a whole test."""
    if report.split != "test" or not np.array_equal(report.users, np.arange(len(report.users))):
        raise InputError("a run keeps the ranks of its whole test: split test, everybody in order")
    tensors = {f"{protocol}.above": ranks.above for protocol, ranks in report.ranks.items()}
    tensors |= {f"{protocol}.tied": ranks.tied for protocol, ranks in report.ranks.items() if ranks.tied.any()}
    metadata = {
        "split": report.split, "data_hash": report.data_hash, "seed": str(report.seed), "commit": report.commit or code_commit(),
    }  # fmt: skip
    save_file({name: _narrowest_type(values) for name, values in tensors.items()}, path, metadata)


def read_ranks(path: Path, name: str) -> Report:
    """The report that `write_ranks` kept. Raises InputError, which calls the file `name`, if it is damaged."""
    with explain_parse_errors(name), safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        tensors = {key: file.get_tensor(key).astype(np.int32) for key in file.keys()}  # noqa: SIM118, it is no mapping
        protocols = [protocol for protocol in PROTOCOLS if f"{protocol}.above" in tensors]
        if not protocols or metadata.get("split") != "test":
            raise InputError(f"{name} does not hold the ranks of a test under a known protocol")
        n_users = len(tensors[f"{protocols[0]}.above"])
        untied = np.zeros(n_users, np.int32)
        ranks = {name: Ranks(tensors[f"{name}.above"], tensors.get(f"{name}.tied", untied)) for name in protocols}
        data_hash, seed = metadata["data_hash"], int(metadata["seed"])
        return Report(ranks, np.arange(n_users), "test", data_hash, seed, 0.0, metadata.get("commit", ""))


def _narrowest_type(values: np.ndarray) -> np.ndarray:
    """A copy in the first of `KINDS` that holds all of them."""
    return values.astype(next(kind for kind in KINDS.values() if values.max(initial=0) <= np.iinfo(kind).max))
