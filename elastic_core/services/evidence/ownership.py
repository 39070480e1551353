"""How often does a first suggestion belong to one expert: the one with the largest share of it is also the one whose removal
lowers it most? Measured on the test split, for everybody. A pass takes minutes, so rows are kept beside the runs:

    python -m elastic_core.services.evidence.ownership checkpoints RUN ...    measures runs and adds them to ownership.csv
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pandas as pd

from elastic_core import files
from elastic_core.core.candidates import Candidates
from elastic_core.data import Dataset, load
from elastic_core.data.repeats import count_repeats
from elastic_core.data.source_catalog import PLANTED
from elastic_core.errors import InputError
from elastic_core.machine import code_commit
from elastic_core.models import Recommender
from elastic_core.results.compare import CompareRuns, compare_if_ranked
from elastic_core.results.systems import DataSet, System, main_protocol, system_label
from elastic_core.runs import Run, open_run
from elastic_core.services.evidence.fingerprints import weights_fingerprint
from elastic_core.services.person.attribution import share_agreement

FILE = "ownership.csv"


@dataclass(frozen=True)
class OwnershipRow:
    """One run. For `belongs` of `n_users` the first suggestion belongs to an expert. On average it would for `chance` of them if
    the expert were drawn from the k of the person. `led`: people whose first suggestion has its largest share from an expert,
    not from the rest of the model."""

    run: str
    weights: str
    commit: str
    k: int
    n_users: int
    led: int
    belongs: int
    chance: float


def measure_ownership(run: Run, model: Recommender, dataset: Dataset) -> OwnershipRow:
    """Raises InputError for a model whose experts do not suggest by themselves."""
    n_users = len(Candidates(dataset, "test", 0).ends)
    agreement = share_agreement(model, dataset, n_users, count_repeats(dataset).stay)
    if agreement is None:
        raise InputError(f"{run.name} mixes its experts into one vector, so no suggestion is one expert’s")
    led, k = agreement.n_users, round(1 / agreement.chance)
    belongs, chance = round(led * agreement.owners), led * agreement.chance
    return OwnershipRow(run.name, weights_fingerprint(run), code_commit(), k, n_users, led, belongs, chance)


def read_ownership(root: Path) -> list[OwnershipRow]:
    """The rows of `ownership.csv`; none where there is no such file."""
    path = root / FILE
    if not path.exists():
        return []
    names = [field.name for field in fields(OwnershipRow)]
    table = pd.read_csv(path, dtype={"run": str, "weights": str, "commit": str})[names]
    return [OwnershipRow(**row) for row in table.to_dict("records")]


def write_ownership(root: Path, rows: Sequence[OwnershipRow]) -> Path:
    """Adds rows to the file; of one run the newest row stays."""
    by_name = {row.run: row for row in (*read_ownership(root), *rows)}
    path = root / FILE
    files.write_text(path, pd.DataFrame([asdict(row) for row in by_name.values()]).to_csv(index=False, float_format="%.6g"))
    return path


def ownership_table(
    measured: Sequence[DataSet], rows: Sequence[OwnershipRow], compare: CompareRuns = compare_if_ranked
) -> pd.DataFrame:
    """A row a system of which runs were measured: data, whether they are `made up`, system, k, `belongs` and `chance` (parts of
    all people), runs, people, and `change`: its NDCG@10 by the protocol of claims, relative to that of the same model as it is
    usually trained, with an interval (`low`, `high`); NaN for the usual one itself."""
    by_name, lines = {row.run: row for row in rows}, []
    for data_set in measured:
        for system, runs in data_set.systems.items():
            measured_rows = [by_name[run.name] for run in runs if run.name in by_name]
            if not measured_rows:
                continue
            belongs, chance, n_users = (
                sum(getattr(row, name) for row in measured_rows) for name in ("belongs", "chance", "n_users")
            )
            usual = data_set.systems.get(System(system.model, budget=system.budget), [])
            comparison = compare(runs, usual, main_protocol(data_set.systems)) if usual and usual != runs else None
            change = low = high = math.nan
            if comparison is not None:
                absolute = (comparison.difference, comparison.low, comparison.high)
                change, low, high = (each / comparison.mean_b for each in absolute)
            lines.append((
                data_set.title, runs[0].config.data.source == PLANTED, system_label(system), measured_rows[0].k,
                belongs / n_users, chance / n_users, len(measured_rows), measured_rows[0].n_users, change, low, high,
            ))  # fmt: skip
    columns = ["data", "made up", "system", "k", "belongs", "chance", "runs", "people", "change", "low", "high"]
    return pd.DataFrame(lines, columns=columns).sort_values(["made up", "data", "k"], ignore_index=True)


def ownership_sentence(table: pd.DataFrame) -> str:
    """Is there a setting on real data in which the first suggestion belongs to an expert for half of the people, at a cost of no
    more than 1% of NDCG@10?"""
    real, made_up = table[~table["made up"].astype(bool)], table[table["made up"].astype(bool)]
    texts = []
    if len(made_up):
        texts.append(f"In made-up worlds it does for {made_up['belongs'].min():.0%} of the people or more.")
    if len(real):
        best = real.loc[real["belongs"].idxmax()]
        most = f"{best['belongs']:.0%} (by chance {best['chance']:.0%}): {best['data']}, k = {best['k']}"
        is_half = ((real["belongs"] >= 0.5) & ~(real["low"] < -0.01)).any()
        verdict = "it does for half of the people in some setting" if is_half else "no setting reaches half of the people"
        texts.append(f"On real data {verdict}; the most is {most}.")
    return " ".join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m elastic_core.services.evidence.ownership", description=__doc__)
    parser.add_argument("root", type=Path, help="the folder that holds ownership.csv")
    parser.add_argument("runs", nargs="+", type=Path, help="folders of runs with weights")
    arguments = parser.parse_args()
    for folder in arguments.runs:
        run = open_run(folder)
        dataset = load(run.config.data)
        write_ownership(arguments.root, [measure_ownership(run, run.model(dataset), dataset)])


if __name__ == "__main__":
    main()
