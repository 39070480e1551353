"""The result tables: what every system reached under one protocol, how it stands beside the best baseline, and one ELASTIC minus
each of the others. The numbers are those of `python -m elastic_core report`."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import pandas as pd

from elastic_core import report
from elastic_core.comparisons import needs_training
from elastic_core.data import load
from elastic_core.labels import BUDGET, FLOORS, join_names, named
from elastic_core.reproduce import System
from elastic_core.runs import WEIGHTS, Run
from elastic_core.services.evidence.systems import Group
from elastic_core.services.train import beside
from elastic_core.services.train.beside import Beside
from elastic_core.tables import Asked, Systems

PAPER = "the paper’s NDCG@10"
PAPER_NOTE = "The paper’s values come from its own test and its own MovieLens-1M. They were not measured here."
FAMILIES = {"peers": "other systems", "its own variants": "its own variants", "others": "other runs here"}
# The systems of the paper's table that matter most, what only counts, and ours; all others are shown on demand.
KINDS = ("popularity", "cooccurrence", "gru4rec", "sasrec", "linrec", "hstu", "lisa", "elastic", "elastic-slots")
MATTER = (*map(System, KINDS), System("sasrec", "local"))
SYSTEMS = (
    "system", "label", "seeds", "NDCG@10", "± 95%", "spread", "beside the baseline", "HR@10", "MRR@10", PAPER, "people",
    "parameters", "weights MB", "seconds", "device", "trained with", "runs",
)  # fmt: skip
DIFFERENCES = (
    "family", "system", "short", "label", "seeds", "n", "A", "B", "difference", "low", "high", "p", "adjusted", "seeds_counted",
    "who", "claim",
)  # fmt: skip


def standings(group: Group, protocol: str, compare: Asked) -> pd.DataFrame:
    """One row a system that was ranked under this protocol, in the order of the tables."""
    ranked = under(group.systems, protocol)
    found = report.measured_systems(ranked, protocol)
    if found.empty:
        return pd.DataFrame(columns=list(SYSTEMS))
    known = cards(ranked, protocol)
    told = carded(ranked, known) if known else baseline(ranked, protocol, compare)
    found = (
        found.rename(columns={report.PAPER_COLUMN: PAPER}) if report.PAPER_COLUMN in found else found.assign(**{PAPER: math.nan})
    )
    seeds = [len(runs) if needs_training(runs[0]) else None for runs in ranked.values()]
    weights = [runs[0].path / WEIGHTS for runs in ranked.values()]
    table = found.assign(**{
        "label": list(map(str, ranked)), "seeds": pd.array(seeds, dtype="Int64"),
        "beside the baseline": [told[system] for system in ranked],
        "weights MB": [file.stat().st_size / 1e6 if file.exists() else math.nan for file in weights],
        "trained with": list(map(settings_text, ranked.values())),
        "spread": found["spread"].astype(float), PAPER: found[PAPER].astype(float),
    })[list(SYSTEMS)]  # fmt: skip
    return pd.concat([_counting(known, table), table], ignore_index=True).astype(table.dtypes) if known else table


def matters(group: Group, table: pd.DataFrame, *more: System) -> pd.DataFrame:
    """The rows of the ten systems that matter by any budget, of `more`, and of what is no system; all where they are few."""
    if len(table) <= len(MATTER):
        return table
    plain = [system for system in group.systems if system._replace(budget="") in MATTER]
    return table[table["label"].isin({*map(str, (*plain, *more)), ""})]


def with_chance(table: pd.DataFrame, chance: float | None) -> pd.DataFrame:
    """The same below what a random order of all candidates would reach, where that is known."""
    if chance is None:
        return table
    null = {"system": "Random order", "label": "", "NDCG@10": chance, "beside the baseline": "pure chance", "device": ""}
    null |= {"people": table["people"].iloc[0], "parameters": 0, "trained with": "", "runs": ""}
    return pd.concat([pd.DataFrame([null]).reindex(columns=table.columns), table], ignore_index=True).astype(table.dtypes)


def cards(systems: Systems, protocol: str) -> dict[System, list[Beside]]:
    """What trainings were judged beside (`beside.json`), by system, where no baseline was run on these data."""
    if any(map(_floor, systems)):
        return {}
    found = {system: [card for run in runs if (card := beside.kept(run)) and card.protocol == protocol and card.best]
             for system, runs in systems.items()}  # fmt: skip
    return {system: kept for system, kept in found.items() if kept}


def carded(systems: Systems, known: dict[System, list[Beside]]) -> dict[System, str]:
    """How every system stands beside the best baseline of its own cards, whose intervals hold people only: no claim."""
    told = dict.fromkeys(systems, "no baseline was run here")
    for system, mine in known.items():
        best = mine[0].best
        assert best is not None
        ahead = statistics.fmean(row.difference for card in mine for row in card.rows if row.system == best.system)
        why = "trained once: no claim" if len(systems[system]) == 1 else "no claim"
        told[system] = f"{_side(ahead, best.system)}, {why}"
    return told


def _counting(known: dict[System, list[Beside]], like: pd.DataFrame) -> pd.DataFrame:
    """The baselines of the cards as rows; fitted to the same data, so any card has the same."""
    card = next(iter(known.values()))[0]
    same = {"label": "", "people": card.people, "parameters": 0, "device": "", "trained with": "needs no training"}
    rows = [
        same | {
            "system": row.system, "NDCG@10": row.mean, "± 95%": (row.high - row.low) / 2, "runs": "judged with each training",
            "beside the baseline": "the best baseline" if row == card.best else "a baseline",
        }
        for row in sorted(card.rows, key=lambda row: row.mean) if not row.fault
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=like.columns)


def fitting(group: Group) -> str:
    """The protocol to open these data with. That of the claims, where baselines were run. Else as result cards are judged: do
    people choose again what they have met? Planted worlds know it; of other data a card says it, if there is one."""
    if any(map(_floor, group.systems)):
        return beside.PROTOCOL
    runs = [run for of in group.systems.values() for run in of]
    if runs and runs[0].config.data.source == "planted":
        return beside.fitting(load(runs[0].config.data))
    return next((card.protocol for run in runs if (card := beside.kept(run))), beside.PROTOCOL)


def under(systems: Systems, protocol: str) -> Systems:
    """The systems all of whose runs were ranked under a protocol."""
    return {system: runs for system, runs in systems.items() if all(protocol in run.report().ranks for run in runs)}


def baseline(systems: Systems, protocol: str, compare: Asked) -> dict[System, str]:
    """How every system stands beside the better of the baselines that need no training, in words; adjusted for them all."""
    means = {floor: systems[floor][0].report().metrics[protocol]["NDCG@10"] for floor in filter(_floor, systems)}
    if not means:
        return dict.fromkeys(systems, "no baseline was run here")
    best = max(means, key=lambda floor: means[floor])
    name, others = named(best, systems[best]), [system for system in systems if system not in means]
    told = {floor: "the best baseline" if floor == best else "a baseline" for floor in means}
    for system, claim in report.against(systems, best, others, protocol, compare):
        if claim.found is None:
            told[system] = "not compared: measured on other people or candidates"
        else:
            why = "" if claim.who else ", may be chance" if claim.found.seeds_counted else ", trained once: no claim"
            told[system] = _side(-claim.found.difference, name) + why
    return told


def _floor(system: System) -> bool:
    return system.model in FLOORS


def _side(ahead: float, name: str) -> str:
    return f"{'above' if ahead > 0 else 'below' if ahead < 0 else 'level with'} {name} by {abs(ahead):.4f}"


def rivals(group: Group, table: pd.DataFrame) -> list[str]:
    """The names in `standings` of the systems that the others can be held against: each ELASTIC; where there is none, any."""
    ours = list(map(str, report.references(group.systems)))
    return table.loc[table["label"].isin(ours), "system"].tolist() or table.loc[table["label"] != "", "system"].tolist()


def system_differences(group: Group, ours: System, protocol: str, compare: Asked) -> pd.DataFrame:
    """A = `ours` minus each of the others with interval, p, p adjusted within its family, and what may be claimed."""
    systems = under(group.systems, protocol)
    if ours not in systems:
        return pd.DataFrame(columns=list(DIFFERENCES))
    rows: list[dict[str, Any]] = []
    for family, others in _families(systems, ours).items():
        for system, claim in report.against(systems, ours, others, protocol, compare):
            if claim.found is None:
                continue
            found, name = claim.found, named(ours, systems[ours])
            better = {"A": f"{name} is better", "B": f"{claim.name} is better"}.get(claim.who, claim.words)
            short = claim.name.partition(": ")[2] if family == "its own variants" else claim.name
            rows.append(vars(found) | {
                "family": FAMILIES[family], "system": claim.name, "short": short or claim.name, "label": str(system),
                "seeds": len(claim.runs), "n": found.users, "A": found.mean_a, "B": found.mean_b, "adjusted": claim.adjusted,
                "who": claim.who, "claim": better,
            })  # fmt: skip
    return pd.DataFrame(rows, columns=list(DIFFERENCES))


def _families(systems: Systems, ours: System) -> dict[str, list[System]]:
    """Those of the report, which hold no run of somebody's own, and then all others."""
    found: dict[str, list[System]] = {}
    if ours in report.references(systems) and not ours.own:
        found = report.families(systems, ours)
    # the other ELASTIC is compared in its own table already, as in the report
    taken = {ours}.union(*found.values())
    own = [system for system in systems if system not in taken and (not found or system.own)]
    return found | {"others": own}


def settings_text(runs: Sequence[Run]) -> str:
    """What a system was trained with, in one line."""
    run = runs[0]
    model, train = run.config.model, run.config.train
    epochs = [int(end["best_epoch"]) for each in runs if (end := each.last("end")) and end.get("best_epoch")]
    if not epochs:
        return "needs no training"
    parts = [f"length {model.length}", f"d {model.width}", f"layers {model.layers}", f"dropout {model.dropout:g}"]
    parts += [f"{train.optimizer} {train.learning_rate:g}", f"batch {train.batch}"]
    parts += [f"decay {train.weight_decay:g}"] if train.weight_decay else []
    parts += [f"weights averaged {train.ema_decay:g}"] if train.ema_decay else []
    parts += [f"{train.minutes:g} minutes" + (" of processor" if train.clock == "processor" else "")] if train.minutes else []
    parts += [f"objective {run.config.objective.name}", f"chosen by {train.judged_by}"]
    return ", ".join(parts) + f"; best epoch {', '.join(map(str, epochs))}"


def system_summary(table: pd.DataFrame, differences: pd.DataFrame, ours: str) -> str:
    """What may be said of one system, in two sentences."""
    peers = differences[differences["family"] == FAMILIES["peers"]]
    against, what = (peers, "systems of others (our own variants are not counted)") if len(peers) else (differences, "others")
    names = against["system"].str.replace(BUDGET, "", regex=True)
    ahead, behind = (names[against["who"] == side].tolist() for side in ("A", "B"))
    if against.empty:
        beside = table.loc[table["system"] == ours, "beside the baseline"].iloc[0]
        return f"{ours} is the only system here." if (table["label"] != "").all() else f"{ours} is {beside}."
    counted = against["seeds_counted"].astype(bool)
    once = int((~counted & (against["who"] == "")).sum())
    note = f" ({once} trained once)" if once else ""
    if not ahead and not behind:
        return f"As far as we know, {ours} is neither better nor worse than any of {len(against)} {what}{note}."
    first = f"{ours} is better than {len(ahead)} of {len(against)} {what}, and worse than {join_names(behind) or 'none'}."
    close = names[counted & (against["who"] == "")].tolist()
    first += f" {len(close)} {'is' if len(close) == 1 else 'are'} too close to call: {join_names(close)}." if close else ""
    return first + (f" {once} trained only once, so nothing is claimed." if once else "")
