"""What every system reached, as tables: one row a system, protocol and metric (`result_table`), and from it the leaderboard of
one protocol and the paired differences of one system, as Evidence shows them."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from elastic_core.core.candidates import PROTOCOLS
from elastic_core.core.elastic import MemoryConfig
from elastic_core.data import Dataset
from elastic_core.memory import gaps
from elastic_core.results import baselines
from elastic_core.results.baselines import BaselineComparison
from elastic_core.results.compare import (
    METRIC,
    Claim,
    CompareRuns,
    Comparison,
    average_over_seeds,
    compare_if_ranked,
    find_winner,
    make_claims,
    needs_training,
)
from elastic_core.results.reproduce import System
from elastic_core.results.systems import (
    BASELINES,
    DataSet,
    Systems,
    is_variant,
    join_names,
    our_systems,
    rivals_of,
    shorten_titles,
    system_title,
    variants_of,
)
from elastic_core.runs import WEIGHTS, Run

METRICS = (METRIC, "HR@10", "MRR@10")
# NDCG@10 in Table 2 of the ELASTIC paper on MovieLens-1M. Most probably measured as pop100, whatever its text says.
PAPER = {
    "fpmc": 0.3220, "gru4rec": 0.4033, "sasrec": 0.4190, "bert4rec": 0.3182, "linrec": 0.4158, "hstu": 0.4090, "elastic": 0.4256,
}  # fmt: skip
PAPER_COLUMN = "the paper’s NDCG@10"
# The systems that matter most, of the paper’s table and of newer ones, the baselines, and ours; the others are shown on demand.
MAIN_MODELS = (*BASELINES, "gru4rec", "sasrec", "esasrec", "linrec", "lrurec", "hstu", "lisa", "elastic", "elastic-slots")
MAIN_SYSTEMS = (*map(System, MAIN_MODELS), System("sasrec", "local"))
MOST_NAMED = 4  # systems in a sentence
RIVALS, VARIANTS, OTHERS = "other systems", "its own variants", "other runs here"
LEADERBOARD = (
    "system", "label", "seeds", METRIC, "± 95%", "spread", "beside the baseline", "HR@10", "MRR@10", PAPER_COLUMN, "people",
    "parameters", "weights MB", "seconds", "device", "trained with", "runs",
)  # fmt: skip
DIFFERENCES = (
    "family", "system", "short", "label", "seeds", "n", "A", "B", "difference", "low", "high", "p", "adjusted", "seeds_counted",
    "winner", "claim",
)  # fmt: skip
PROTOCOL_COLUMNS = ("protocol", "n", "A", "B", "difference", "low", "high", "p", "seeds_counted", "winner")


def result_table(
    systems: Mapping[System, Sequence[Run]], protocols: Sequence[str] = PROTOCOLS, metrics: Sequence[str] = METRICS
) -> pd.DataFrame:
    """One row a system, protocol and metric: the mean over users and seeds, half its 95% interval over users, and the standard
    deviation over seeds. Systems whose runs do not all keep ranks of a protocol have no row of it."""
    lines = []
    for system, runs in systems.items():
        reports = [run.report() for run in runs] if all(run.has_report for run in runs) else []
        for protocol in protocols if reports else ():
            if not all(protocol in report.ranks for report in reports):
                continue
            for metric in metrics:
                mean, error, low, high = average_over_seeds(reports, protocol, metric)
                of_seeds = [report.mean_interval(protocol, metric).mean for report in reports]
                spread = statistics.stdev(of_seeds) if len(of_seeds) > 1 else math.nan
                lines.append((system, len(runs), protocol, metric, len(reports[0].users), mean, 1.96 * error, low, high, spread))
    columns = ["system", "seeds", "protocol", "metric", "users", "mean", "half", "low", "high", "spread"]
    return pd.DataFrame(lines, columns=columns)


def ranked_under(systems: Systems, protocol: str) -> Systems:
    """The systems all of whose runs were ranked under a protocol."""
    return {system: runs for system, runs in systems.items() if all(protocol in run.report().ranks for run in runs)}


def best_baseline(systems: Systems, protocol: str) -> System | None:
    """The better of the systems that only count, where any was run."""
    table = result_table({each: systems[each] for each in map(System, BASELINES) if each in systems}, [protocol], [METRIC])
    return None if table.empty else table.loc[table["mean"].idxmax(), "system"]


def compare_system(
    systems: Systems, ours: System, others: Sequence[System], protocol: str, compare: CompareRuns = compare_if_ranked
) -> dict[System, Claim]:
    """`ours` minus each of the others, and what may be claimed of it, adjusted for them all."""
    comparisons = [compare(systems[ours], systems[other], protocol) for other in others]
    return dict(zip(others, make_claims(comparisons), strict=True))


# --- leaderboard ------------------------------------------------------------------------------------------------------


def leaderboard(data_set: DataSet, protocol: str, compare: CompareRuns = compare_if_ranked) -> pd.DataFrame:
    """One row a system that was ranked under this protocol, in the order of the tables.

    Where no baseline was run on these data, those that the trainings were judged beside stand in its place."""
    systems = ranked_under(data_set.systems, protocol)
    measured = result_table(systems, [protocol]).set_index("metric")
    if measured.empty:
        return pd.DataFrame(columns=list(LEADERBOARD))
    cards = baseline_cards(systems, protocol)
    lead_text = _beside_cards(systems, cards) if cards else beside_baseline(systems, protocol, compare)
    first_runs = [runs[0] for runs in systems.values()]
    starts = [run.last_event("start") for run in first_runs]
    weights = [run.path / WEIGHTS for run in first_runs]
    table = pd.DataFrame(
        {
            "system": [system_title(system, runs) for system, runs in systems.items()],
            "label": list(map(str, systems)),
            "seeds": pd.array([len(runs) if needs_training(runs[0]) else None for runs in systems.values()], dtype="Int64"),
            METRIC: measured.loc[[METRIC], "mean"].to_numpy(),
            "± 95%": measured.loc[[METRIC], "half"].to_numpy(),
            "spread": measured.loc[[METRIC], "spread"].to_numpy(),
            "beside the baseline": [lead_text[system] for system in systems],
            "HR@10": measured.loc[["HR@10"], "mean"].to_numpy(),
            "MRR@10": measured.loc[["MRR@10"], "mean"].to_numpy(),
            PAPER_COLUMN: [_paper_value(system, run, protocol) for system, run in zip(systems, first_runs, strict=True)],
            "people": measured.loc[[METRIC], "users"].to_numpy(),
            "parameters": [start.get("parameters", 0) for start in starts],
            "weights MB": [file.stat().st_size / 1e6 if file.exists() else math.nan for file in weights],
            "seconds": [
                statistics.fmean(float(run.last_event("end").get("seconds", 0)) for run in runs) for runs in systems.values()
            ],
            "device": [
                ", ".join(sorted({str(run.last_event("start").get("device", "?")) for run in runs})) for runs in systems.values()
            ],
            "trained with": list(map(settings_text, systems.values())),
            "runs": [", ".join(run.name for run in runs) for runs in systems.values()],
        }
    )[list(LEADERBOARD)]
    if not cards:
        return table
    return pd.concat([_card_rows(cards, table), table], ignore_index=True).astype(table.dtypes)


def main_rows(data_set: DataSet, table: pd.DataFrame, ours: System, *more: System) -> pd.DataFrame:
    """The rows of the systems that matter most, by the recipe of `ours` (beside somebody's own run by the plain one), of `ours`,
    of `more`, and of what is no system; all where they are few."""
    if len(table) <= len(MAIN_SYSTEMS):
        return table

    def is_main(system: System) -> bool:
        alike = system.recipe == ours.recipe or (bool(ours.own) and not system.mark)
        return System(*system[:2]) in MAIN_SYSTEMS and (alike or system.model in BASELINES)

    main = [system for system in data_set.systems if is_main(system)]
    return table[table["label"].isin({*map(str, (*main, ours, *more)), ""})]


def with_chance(table: pd.DataFrame, chance: float | None) -> pd.DataFrame:
    """The same below what a random order of all candidates would reach, where that is known."""
    if chance is None:
        return table
    null = {"system": "Random order", "label": "", METRIC: chance, "beside the baseline": "pure chance", "device": ""}
    null |= {"people": table["people"].iloc[0], "parameters": 0, "trained with": "", "runs": ""}
    return pd.concat([pd.DataFrame([null]).reindex(columns=table.columns), table], ignore_index=True).astype(table.dtypes)


def beside_baseline(systems: Systems, protocol: str, compare: CompareRuns = compare_if_ranked) -> dict[System, str]:
    """How every system stands beside the better of the baselines, in words; adjusted for them all."""
    best = best_baseline(systems, protocol)
    if best is None:
        return dict.fromkeys(systems, "no baseline was run here")
    words = {system: "the best baseline" if system == best else "a baseline" for system in systems if system.model in BASELINES}
    others = [system for system in systems if system not in words]
    name = system_title(best, systems[best])
    for system, claim in compare_system(systems, best, others, protocol, compare).items():
        if claim.comparison is None:
            words[system] = "not compared: measured on other people or candidates"
            continue
        counted = claim.comparison.seeds_counted
        doubt = "" if claim.winner else ", may be chance" if counted else ", trained once: no claim"
        words[system] = _above_or_below(-claim.comparison.difference, name) + doubt
    return words


def baseline_cards(systems: Systems, protocol: str) -> dict[System, list[BaselineComparison]]:
    """What trainings were judged beside, by system, where no baseline was run on these data."""
    if any(system.model in BASELINES for system in systems):
        return {}
    cards = {
        system: [card for run in runs if (card := baselines.read_comparison(run)) and card.protocol == protocol and card.best]
        for system, runs in systems.items()
    }
    return {system: of_system for system, of_system in cards.items() if of_system}


def _beside_cards(systems: Systems, cards: dict[System, list[BaselineComparison]]) -> dict[System, str]:
    """How every system stands beside the best baseline of its own cards, whose intervals hold users only: no claim."""
    words = dict.fromkeys(systems, "no baseline was run here")
    for system, comparisons in cards.items():
        best = comparisons[0].best
        assert best is not None
        lead = statistics.fmean(row.difference for card in comparisons for row in card.rows if row.system == best.system)
        doubt = "trained once: no claim" if len(systems[system]) == 1 else "no claim"
        words[system] = f"{_above_or_below(lead, best.system)}, {doubt}"
    return words


def _card_rows(cards: dict[System, list[BaselineComparison]], like: pd.DataFrame) -> pd.DataFrame:
    """The baselines of the cards as rows; fitted to the same data, so any card has the same."""
    card = next(iter(cards.values()))[0]
    rows = [
        {
            "system": row.system, "label": "", METRIC: row.mean, "± 95%": (row.high - row.low) / 2, "people": card.people,
            "parameters": 0, "device": "", "trained with": "needs no training", "runs": "judged with each training",
            "beside the baseline": "the best baseline" if row == card.best else "a baseline",
        }
        for row in sorted(card.rows, key=lambda row: row.mean)
        if not row.fault
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=like.columns)


def _above_or_below(lead: float, name: str) -> str:
    return f"{'above' if lead > 0 else 'below' if lead < 0 else 'level with'} {name} by {abs(lead):.4f}"


def _paper_value(system: System, run: Run, protocol: str) -> float:
    is_paper_setting = run.config.data.source == "ml-1m" and protocol == "pop100" and not is_variant(system) and not system.mark
    return PAPER.get(system.model, math.nan) if is_paper_setting else math.nan


def settings_text(runs: Sequence[Run]) -> str:
    """What a system was trained with, in one line."""
    model, train = runs[0].config.model, runs[0].config.train
    ends = [run.last_event("end") for run in runs]
    best_epochs = [str(int(end["best_epoch"])) for end in ends if end and end.get("best_epoch")]
    if not best_epochs:
        return "needs no training"
    parts = [f"length {model.length}", f"d {model.width}", f"layers {model.layers}", f"dropout {model.dropout:g}"]
    parts += [f"{train.optimizer} {train.learning_rate:g}", f"batch {train.batch}"]
    if train.weight_decay:
        parts.append(f"decay {train.weight_decay:g}")
    if train.ema_decay:
        parts.append(f"weights averaged {train.ema_decay:g}")
    if train.minutes:
        parts.append(f"{train.minutes:g} minutes" + (" of processor" if train.clock == "processor" else ""))
    parts += [f"objective {runs[0].config.objective.name}", f"chosen by {train.valid_protocol}"]
    return f"{', '.join(parts)}; best epoch {', '.join(best_epochs)}"


# --- differences ------------------------------------------------------------------------------------------------------


def reference_names(data_set: DataSet, table: pd.DataFrame) -> list[str]:
    """The names in `leaderboard` of the systems that the others can be held against: each ELASTIC; where there is none, any."""
    ours = list(map(str, our_systems(data_set.systems)))
    return table.loc[table["label"].isin(ours), "system"].tolist() or table.loc[table["label"] != "", "system"].tolist()


def difference_table(data_set: DataSet, ours: System, protocol: str, compare: CompareRuns = compare_if_ranked) -> pd.DataFrame:
    """A = `ours` minus each of the others with interval, p, p adjusted within its family, and what may be claimed."""
    systems = ranked_under(data_set.systems, protocol)
    if ours not in systems:
        return pd.DataFrame(columns=list(DIFFERENCES))
    name, rows = system_title(ours, systems[ours]), list[dict[str, Any]]()
    for family, others in _comparison_families(systems, ours).items():
        for other, claim in compare_system(systems, ours, others, protocol, compare).items():
            comparison = claim.comparison
            if comparison is None:
                continue
            other_name = system_title(other, systems[other])
            short_name = other_name.partition(": ")[2] if family == VARIANTS else ""
            rows.append({
                "family": family, "system": other_name, "short": short_name or other_name, "label": str(other),
                "seeds": len(systems[other]), "n": comparison.users, "A": comparison.mean_a, "B": comparison.mean_b,
                "difference": comparison.difference, "low": comparison.low, "high": comparison.high, "p": comparison.p,
                "adjusted": claim.adjusted_p, "seeds_counted": comparison.seeds_counted, "winner": claim.winner,
                "claim": claim.claim_text(name, other_name),
            })  # fmt: skip
    return pd.DataFrame(rows, columns=list(DIFFERENCES))


def _comparison_families(systems: Systems, ours: System) -> dict[str, list[System]]:
    """What is asked together: the rivals, its own variants (neither holds a run of somebody's own), and then all others."""
    families: dict[str, list[System]] = {}
    if ours in our_systems(systems) and not ours.own:
        families = {RIVALS: rivals_of(ours, systems), VARIANTS: variants_of(ours, systems)}
    compared = {ours}.union(*families.values())
    rest = [system for system in systems if system not in compared and (not families or system.own)]
    return families | {OTHERS: rest}


def protocol_table(comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """One system minus another, a row a protocol, each asked alone: the columns that a picture of differences needs."""
    rows = [
        {
            "protocol": each.protocol, "n": each.users, "A": each.mean_a, "B": each.mean_b, "difference": each.difference,
            "low": each.low, "high": each.high, "p": each.p, "seeds_counted": each.seeds_counted, "winner": find_winner(each),
        }
        for each in comparisons
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(PROTOCOL_COLUMNS))


def memory_size_table(systems: Systems, ours: System, protocol: str) -> pd.DataFrame:
    """The paper's Figure 5: what a memory of another size reaches, and how much of it is used. A row a √K and k, sorted; systems
    that differ from `ours` in one of these two alone, and itself."""
    sized = {
        system: runs
        for system, runs in ranked_under(systems, protocol).items()
        if system._replace(variant="") == ours and (system == ours or system.variant.startswith(("side-", "k-")))
    }
    table = result_table(sized, [protocol], [METRIC]).set_index("system")
    lines = []
    for system, runs in sized.items():
        model, used = runs[0].config.model, [test["used"] for run in runs if "used" in (test := run.last_event("test"))]
        if not isinstance(model, MemoryConfig):
            continue
        mean, half, users = table.loc[[system], ["mean", "half", "users"]].iloc[0]
        share = statistics.fmean(used) if used else math.nan
        names = ", ".join(run.name for run in runs)
        lines.append((model.n_subkeys, model.k, len(runs), mean, half, share, int(users), names))
    columns = ["√K", "k", "seeds", METRIC, "± 95%", "in use", "people", "runs"]
    return pd.DataFrame(lines, columns=columns).sort_values(["√K", "k"], ignore_index=True)


def system_summary(table: pd.DataFrame, differences: pd.DataFrame, ours: str) -> str:
    """What may be said of one system, in two sentences."""
    rivals = differences[differences["family"] == RIVALS]
    compared, what = (rivals, "other systems") if len(rivals) else (differences, "others")
    if compared.empty:
        lead_text = table.loc[table["system"] == ours, "beside the baseline"].iloc[0]
        return f"{ours} is the only system here." if (table["label"] != "").all() else f"{ours} is {lead_text}."
    ours, *short_names = shorten_titles([ours, *compared["system"]])
    names = pd.Series(short_names, compared.index, dtype=object)
    better, worse = (names[compared["winner"] == side].tolist() for side in ("A", "B"))
    counted = compared["seeds_counted"].astype(bool)
    n_trained_once = int((~counted & (compared["winner"] == "")).sum())
    if not better and not worse:
        note = f" ({n_trained_once} {'was' if n_trained_once == 1 else 'were'} trained only once)" if n_trained_once else ""
        every_other = f"any of {len(compared)} {what}" if len(compared) > 1 else f"the other{' system' * bool(len(rivals))}"
        return f"{ours} is not clearly better or worse than {every_other}{note}."
    if len(better) == len(compared) > 1:
        return f"{ours} is better than all {len(compared)} {what} that it is compared with."
    worse_text = f"worse than {join_names(worse)}" if worse else "no system is clearly better than it"
    sentences = f"{ours} is better than {len(better)} of {len(compared)} {what}, and {worse_text}."
    close = names[counted & (compared["winner"] == "")].tolist()
    if close:
        close_names = f": {'; '.join(close)}" if len(close) <= MOST_NAMED else ""
        sentences += f" It does not differ clearly from {len(close)} {'system' if len(close) == 1 else 'systems'}{close_names}."
    once_text = "Another was" if n_trained_once == 1 else f"Another {n_trained_once} were"
    about_text = "it" if n_trained_once == 1 else "them"
    return sentences + (f" {once_text} trained only once, so we claim nothing about {about_text}." if n_trained_once else "")


# --- worlds whose truth is known --------------------------------------------------------------------------------------


def remembered_by_systems(systems: Mapping[str, Sequence[Run]], world: Dataset) -> pd.DataFrame:
    """What systems remember of a planted world (`gaps.remembered_shares`), the mean over their seeds. Without those of which a
    run keeps no ranks, or was asked of other events, or not of everybody."""
    values = {}
    for name, runs in systems.items():
        reports = [run.report() for run in runs if run.has_report]
        if len(reports) == len(runs) and all(gaps.covers_world(report, world) for report in reports):
            values[name] = np.mean([report.user_values(gaps.PROTOCOL, gaps.METRIC) for report in reports], axis=0)
    return gaps.remembered_shares(values, world)
