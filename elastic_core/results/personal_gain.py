"""When do personal experts pay? Personal minus shared experts, everything else alike, against how many interests share an expert.

In made-up worlds the number of interests is known, on real data it is counted (data/interest_count.py) and lies in
`interests.csv` beside the runs. Whoever has k experts of their own has no use for them where k shared ones cover everything.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from elastic_core.data import load
from elastic_core.data.interest_count import count_interests
from elastic_core.data.source_catalog import PLANTED, is_available
from elastic_core.files import write_text
from elastic_core.machine import code_commit
from elastic_core.results.compare import CompareRuns, compare_if_ranked, make_claims
from elastic_core.results.reproduce import LONG_HISTORY, RETRIEVED, System, planned_runs
from elastic_core.results.systems import OURS, DataSet, best_by_validation, main_protocol, model_label
from elastic_core.text import true_minus

FILE = "interests.csv"
COLUMNS = ["data", "hash", "users", "items", "interests", "largest", "chance", "commit"]
SHARED = "memory-none"


def write_interest_counts(root: Path, tell: Callable[[str], None] = print) -> Path:
    """Counts the interests of all real data of the plan that are on this machine; what is not stays as it was counted."""
    rows = {row["data"]: row for row in read_interest_counts(root).to_dict("records")}
    for name, config in {row.data: row.config.data for row in planned_runs() if row.config.data.source != PLANTED}.items():
        if not is_available(config):
            tell(f"{name}: not on this machine")
            continue
        dataset = load(config)
        count = count_interests(dataset)
        rows[name] = {
            "data": name, "hash": dataset.hash, "users": dataset.histories.n_users, "items": dataset.catalog.n_items,
            "interests": count.interests, "largest": round(float(count.singular_values[0]), 4),
            "chance": round(count.chance, 4), "commit": code_commit(),
        }  # fmt: skip
        tell(f"{name}: {count.interests} interests")
    path = root / FILE
    write_text(path, pd.DataFrame(list(rows.values()), columns=COLUMNS).to_csv(index=False))
    return path


def read_interest_counts(root: Path) -> pd.DataFrame:
    """The table of `write_interest_counts`; empty where there is none."""
    path = root / FILE
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=COLUMNS)


def personal_gains(
    measured: Sequence[DataSet], interests: pd.DataFrame, compare: CompareRuns = compare_if_ranked
) -> pd.DataFrame:
    """A row a pair: title of the data, with the length that is read where it is not the usual one, whether they are `made up`,
    model, k, interests, interests an expert, NDCG@10 by the protocol of claims, personal minus shared with its interval, winner
    (`A`: personal), trainings of each, users."""
    known = dict(zip(interests["hash"], interests["interests"], strict=True))
    pairs = [(data_set, *pair) for data_set in measured for pair in _pairs(data_set)]
    comparisons = [
        compare(data_set.systems[own], data_set.systems[shared], main_protocol(data_set.systems))
        for data_set, own, shared in pairs
    ]
    rows = []
    for (data_set, own, shared), claim in zip(pairs, make_claims(comparisons), strict=True):
        run, comparison = data_set.systems[own][0], claim.comparison
        is_made_up = run.config.data.source == PLANTED
        count = run.config.data.planted.interests if is_made_up else known.get(data_set.hash)
        if comparison is None or not count:
            continue
        k = int(run.config.model.k)  # type: ignore[attr-defined]
        rows.append((
            data_set.title + (", last 1,000 events" if own.mark == LONG_HISTORY else ""),
            is_made_up, model_label(own.model), k, int(count), count / k,
            comparison.difference, comparison.low, comparison.high, claim.winner,
            min(len(data_set.systems[own]), len(data_set.systems[shared])), comparison.users,
        ))  # fmt: skip
    columns = [
        "data", "made up", "model", "k", "interests", "interests an expert", "difference", "low", "high", "winner", "seeds",
        "people",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).sort_values(["made up", "model", "k", "interests"], ignore_index=True)


def _pairs(data_set: DataSet) -> Iterator[tuple[System, System]]:
    """Our systems with personal experts, and the same with shared ones; of one model and k one pair, by the recipe that validates
    best, and one of longer histories."""
    for model in OURS:
        for k in RETRIEVED:
            yield from _pair(data_set, System(model, f"k{k}"), System(model, f"k{k}-{SHARED}"))
        plain = [each for each in data_set.systems if each.model == model and not (each.variant or each.own)]
        for is_long in (False, True):
            of_length = [system for system in plain if (system.mark == LONG_HISTORY) == is_long]
            best = best_by_validation(of_length, data_set.systems, lambda one: (one._replace(variant=SHARED),))
            if best is not None:
                yield from _pair(data_set, best, best._replace(variant=SHARED))


def _pair(data_set: DataSet, own: System, shared: System) -> Iterator[tuple[System, System]]:
    if {own, shared} <= data_set.systems.keys():
        yield own, shared


def gain_sentence(gains: pd.DataFrame) -> str:
    """What the pairs say together: where personal experts may be called better."""
    texts, claimed = [], gains[gains["winner"] == "A"]
    for is_made_up, name in ((False, "on real data"), (True, "in made-up worlds")):
        part = gains[gains["made up"] == is_made_up]
        if len(part):
            texts.append(f"in {(part['winner'] == 'A').sum()} of {len(part)} comparisons {name}")
    if not texts:
        return "No model was trained with personal and with shared experts on the same data."
    question = "Is it better to choose experts for each person than to give everybody the same experts?"
    sentence = f"{question} Yes {' and '.join(texts)}."
    if claimed.empty:
        return sentence
    least = f"{claimed['interests an expert'].min():.3g}"
    best = claimed.loc[claimed["difference"].idxmax()]
    gain = true_minus(f"{best['difference']:+.4f} ({best['low']:+.4f} to {best['high']:+.4f})")
    return (
        f"{sentence} Where it is better, there are at least {least} interests for each expert. The largest gain that we can "
        f"claim is {gain} in NDCG@10, for {best['model']} ({best['data']})."
    )
