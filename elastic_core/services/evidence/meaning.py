"""Do experts stand for something, and what decides which ones a person gets? Measured on the models of runs, each number beside
what it would be if the claim were false. A pass over many people takes seconds, so rows are kept in a file:

    checkpoints/meaning.csv                 came along
    checkpoints/jobs/evidence/meaning.csv   measured in the app

    python -m elastic_core.services.evidence.meaning checkpoints RUN ...    measures runs and prints such a file

A row names the weights it was measured on and counts for no others. Where a run came along without weights, rows that came along
with it are of those it had.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from elastic_core import files
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.machine import code_commit
from elastic_core.memory import recovery, routing_metrics
from elastic_core.memory.recovery import NULLS, TRAINED, UNTRAINED
from elastic_core.models import Recommender
from elastic_core.results.claims import TOO_CLOSE, TRAINED_ONCE, Answer, Finding, Verdict
from elastic_core.results.statistics import half_width_of_mean
from elastic_core.results.systems import DataSet, is_variant, system_label
from elastic_core.runs import Run, run_folder
from elastic_core.services import public
from elastic_core.services.evidence.fingerprints import weights_fingerprint
from elastic_core.text import true_minus

# The model and every one in which the claim is broken, as the columns call them.
COLUMNS = ("trained", "new_keys", "noise_values", "swapped_values", "untrained")
COLUMN_OF_READING = dict(zip((TRAINED, *NULLS, UNTRAINED), COLUMNS, strict=True))
ORACLE = "who knows every event’s interest"
NAMES = ("run", "weights", "commit")  # text, even where it looks like a number
Progress = Callable[[float], None]


@dataclass(frozen=True)
class MeaningRow(routing_metrics.RoutingMetrics):
    """One run, asked on the test split. Scores are adjusted mutual information; NaN where the truth is not known."""

    run: str
    weights: str
    commit: str
    events: int  # whose interest is compared with the expert that reads them, as in the next five
    trained: float
    new_keys: float
    noise_values: float
    swapped_values: float
    untrained: float
    strongest_trained: float  # a person's strongest expert against their heaviest interest, as in the next five
    strongest_new_keys: float
    strongest_noise_values: float
    strongest_swapped_values: float
    strongest_untrained: float
    ceiling: float


def measure_meaning(run: Run, model: Recommender, dataset: Dataset, report_progress: Progress) -> MeaningRow:
    """Raises InputError for a model without a memory, or where too few people have a history."""
    if not model.retrieves:
        raise InputError(f"{run.name} has no memory, so its experts cannot be asked")
    report_progress(0.0)
    parts = len(COLUMN_OF_READING) + 1 if dataset.truth is not None else 1
    metrics = routing_metrics.measure_routing(model, dataset, report_progress=lambda share: report_progress(share / parts))
    names = [*COLUMNS, *(f"strongest_{column}" for column in COLUMNS), "ceiling"]
    scores: dict[str, Any] = dict.fromkeys(names, math.nan) | {"events": 0}
    if dataset.truth is not None:
        for i, (name, column) in enumerate(COLUMN_OF_READING.items(), 2):
            other = model if name == TRAINED else recovery.break_memory(model, dataset.catalog, name)
            score = recovery.measure_recovery(other, dataset, shuffles=1)
            scores[column], scores[f"strongest_{column}"] = score.events.ami, score.strongest.ami
            scores["events"] = score.events.labelled
            report_progress(i / parts)
        scores["ceiling"] = recovery.best_possible_ami(dataset, model.length)
    return MeaningRow(**vars(metrics), run=run.name, weights=weights_fingerprint(run), commit=code_commit(), **scores)


def recovery_table(row: MeaningRow) -> pd.DataFrame:
    """What the experts tell of the planted interests, a row for the run and for each model in which the claim is broken.

    Columns: model, people (strongest expert ~ heaviest interest), events (the expert that takes an event ~ its interest)."""
    scores = [(name, getattr(row, f"strongest_{column}"), getattr(row, column)) for name, column in COLUMN_OF_READING.items()]
    table = pd.DataFrame([*scores, (ORACLE, row.ceiling, 1.0)], columns=["model", "people", "events"])
    return table.round(3).replace(-0.0, 0.0)


def row_files(root: Path) -> tuple[Path, Path]:
    """What came along, and what was measured here."""
    return root / "meaning.csv", root / "jobs" / "evidence" / "meaning.csv"


def read_meaning(file: Path) -> list[MeaningRow]:
    """The rows of a file; none of one that is missing or of another form."""
    try:
        types = {field.name: field.type for field in fields(MeaningRow)}
        plain = pd.read_csv(file, dtype=dict.fromkeys(NAMES, str))[list(types)].astype(types)
    except (OSError, ValueError, KeyError, OverflowError):  # what is not found, no file, no table, no number
        return []
    return [MeaningRow(**line) for line in plain.to_dict("records")]


def of_runs(root: Path, runs: Sequence[Run]) -> dict[str, MeaningRow]:
    """By name: the rows that were measured on the weights these runs have now, or came along with runs that have none."""
    shipped_rows, local_rows = (read_meaning(file) for file in row_files(root))
    rows, rows_without_weights = (
        {(row.run, row.weights): row for row in (*shipped_rows, *local_rows)},
        {row.run: row for row in shipped_rows},
    )
    names = {name for name, _ in rows}
    readings = [
        rows.get((run.name, weights_fingerprint(run))) if run.has_weights else rows_without_weights.get(run.name)
        for run in runs
        if run.name in names
    ]
    return {row.run: row for row in readings if row is not None}


def keep_meaning(root: Path, row: MeaningRow) -> None:
    """Adds a row to those that were measured here. Raises InputError in public mode, or where the disk takes nothing."""
    public.refuse_in_public("measurement")
    file = row_files(root)[1]
    other_rows = [old for old in read_meaning(file) if old.run != row.run][-99:]
    with files.explain_write_errors(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(file, text([*other_rows, row]))


def text(rows: Sequence[MeaningRow]) -> str:
    return pd.DataFrame([asdict(row) for row in rows]).to_csv(index=False, float_format="%.6g")


# --- what may be said ------------------------------------------------------------------------------------------------


def find_verdicts(data_sets: Sequence[DataSet], rows: dict[str, MeaningRow]) -> list[Verdict]:
    """One finding a system that was measured; its trainings are asked together."""
    measured = [
        (group, f"{system_label(system)} on {group.title}", measured_rows)
        for group in data_sets
        for system, runs in group.systems.items()
        if not is_variant(system) and (measured_rows := [rows[run.name] for run in runs if run.name in rows])
    ]
    planted = [each for each in measured if not math.isnan(each[2][0].trained)]
    no_run_text = "No run has been measured yet."
    return [
        Verdict(
            "meaning", "Experts stand for interests, in worlds whose interests we know.",
            tuple(_recovery_finding(*each) for each in planted), "A broken model that does as well, or more seeds.", "experts",
            absent="" if planted else no_run_text,
            unit="The score is 0 by chance and 1 if perfect. The number is the lead over the best of the broken models.",
        ),
        Verdict(
            "interest", "A person’s experts follow their taste, not only their activity.",
            tuple(_metric_finding(*each) for each in measured),
            "Parts of a history that find other experts.",
            "experts", absent="" if measured else no_run_text,
            unit="The number is the share of experts that a quarter of the history finds again, less a stranger’s share.",
        ),
    ]  # fmt: skip


def _recovery_finding(group: DataSet, where: str, rows: list[MeaningRow]) -> Finding:
    # [trainings, the model and the broken ones]
    scores = np.array([[getattr(row, column) for column in COLUMNS] for row in rows])
    trained_score, *null_scores = scores.mean(0)
    margins = (scores[:, 0] - scores[:, 1:].max(1)).tolist()
    n, nulls_text = (
        rows[0].events,
        ", ".join(f"{name} {value:.3f}" for name, value in zip((*NULLS, UNTRAINED), null_scores, strict=True)),
    )
    start = f"an event’s expert tells its interest with {trained_score:.3f} of 1 (AMI, {n:,} events). Broken models: {nulls_text}"
    unit = "as the score minus that of the best broken model"
    return _make_finding(start, "beyond the best of these", margins, 0.0, unit, group, where, rows, n)


def _metric_finding(group: DataSet, where: str, rows: list[MeaningRow]) -> Finding:
    mean = {f.name: statistics.fmean(getattr(row, f.name) for row in rows) for f in fields(MeaningRow) if f.type is float}
    genres = ""
    if not math.isnan(mean["genres"]):
        genres = f", genres with {mean['genres']:.2f} (shuffled {mean['genres_shuffled']:.2f})"
    start = (
        f"a random quarter of a history finds {mean['quarter']:.0%} of the person’s experts again, a stranger’s "
        f"{mean['quarter_stranger']:.0%} ({rows[0].users:,} people). Experts tell log length with R² {mean['length']:.2f} "
        f"(popularity {mean['length_popularity']:.2f}){genres}"
    )
    over_people = 1.96 / math.sqrt(rows[0].users)  # a difference of two shares has a standard deviation of 1 at most
    margins = [row.quarter - row.quarter_stranger for row in rows]
    unit = "as the share of a person’s experts that are found again, minus a stranger’s share"
    return _make_finding(start, "beyond the stranger", margins, over_people, unit, group, where, rows, rows[0].users)


def _make_finding(
    start: str,
    beyond: str,
    margins: list[float],
    wide: float,
    unit: str,
    group: DataSet,
    where: str,
    rows: list[MeaningRow],
    n: int,
) -> Finding:
    """Over trainings by Student's t, and `wide` more for people; one training claims nothing. `unit`: what the number counts."""
    mean, runs = statistics.fmean(margins), tuple(row.run for row in rows)
    if len(margins) < 2:
        once = true_minus(f"{where}: {start}: {mean:+.3f} {beyond}; {TRAINED_ONCE}.")
        return Finding("not known", once, TRAINED_ONCE, group.key, where, runs=runs, difference=mean, n=n, unit=unit)
    half = half_width_of_mean(margins) + wide
    low, high = mean - half, mean + half
    answer: Answer = "yes" if low > 0 else "no" if high < 0 else "not known"
    numbers = f"{mean:+.3f} {beyond} (95% {low:+.3f} to {high:+.3f}, {len(margins)} trainings)"
    why = TOO_CLOSE if answer == "not known" else ""
    return Finding(
        answer, true_minus(f"{where}: {start}: {numbers}."), why, group.key, where, runs=runs, difference=mean, low=low,
        high=high, n=n, unit=unit,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m elastic_core.services.evidence.meaning", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("runs", nargs="+")
    arguments = parser.parse_args()
    rows, loaded = list[MeaningRow](), dict[str, Dataset]()
    for name in arguments.runs:
        run = Run(run_folder(arguments.root, name))
        key = str(run.config.data)
        loaded[key] = loaded.get(key) or load(run.config.data)
        rows.append(measure_meaning(run, run.model(loaded[key]), loaded[key], lambda share: None))
    sys.stdout.write(text(rows))


if __name__ == "__main__":
    main()
