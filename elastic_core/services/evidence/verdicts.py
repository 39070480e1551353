"""What the runs at hand let us say of the paper's claims: a claim, an answer in a word, and sentences with their numbers.

Nothing is typed in: every number and every answer comes from the comparisons of the result tables (adjusted as there), from
benchmark rows, or from a measurement of a model's memory. An interval that includes zero, a single training, or a p that is not
small enough for so many questions at once is *not known*; the finding says which of them it is.
"""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import pandas as pd

from elastic_core.comparisons import needs_training, power_of
from elastic_core.evaluation import power, verdict
from elastic_core.labels import BUDGET, join_names, named, recipe_in_words
from elastic_core.report import references
from elastic_core.reproduce import REPEATS, System, rows
from elastic_core.services.evidence.systems import FILMS, MADE_UP, Group
from elastic_core.services.speed import curves
from elastic_core.text import minus

Answer = Literal["yes", "in part", "made-up", "it depends", "no", "not known"]
Screen = Literal["systems", "speed", "experts"]
Differences = Callable[[Group, System, str], pd.DataFrame]  # of a data set: one system minus the others, a protocol
PROTOCOL, SEEN = "full", "full-seen"
FLOOR = System("cooccurrence")
ASIDE = re.compile(rf" \(reassembled\)|{BUDGET.pattern}")  # of a place, where there is little room
SMALL, ONCE = "too close to zero", "trained once, may be luck"  # why something is not known


class Finding(NamedTuple):
    """One sentence, and what it stands on. `answer` is about the claim that it belongs to; `why` it is not known, in brief."""

    answer: Answer
    sentence: str
    why: str = ""
    data: str = ""  # key of its group
    where: str = ""  # what it was asked of, in words
    kind: str = ""  # of the data
    system: str = ""  # what is A in the result tables
    runs: tuple[str, ...] = ()
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    other: str = ""  # where people choose again what they know: another answer under `SEEN`

    @property
    def brief(self) -> str:
        """`MovieLens-100K (real films) −0.0012 (too close to zero)`; the sentence says more of the place."""
        place = ASIDE.sub("", self.where) + (f" ({FILMS})" if self.kind == FILMS else "")
        why = "; ".join(filter(None, (self.why, self.other)))
        return minus(f"{place} {self.difference:+.4f}") + (f" ({why})" if why else "")


class Verdict(NamedTuple):
    """`change` is what would change our mind; `screen` where the numbers are shown whole."""

    key: str
    claim: str
    findings: tuple[Finding, ...]
    change: str
    screen: Screen
    command: str = ""  # measures what is missing
    absent: str = ""  # what no run is there for
    note: str = ""  # how all of it was measured
    unit: str = ""  # of the numbers, where they are no NDCG@10

    @property
    def answer(self) -> Answer:
        """Of all findings. Yes where all say so, in part where some do and the rest is not known; no where nothing says yes.
        In part, but only in worlds that we made up, where real data were asked and nothing is known of any."""
        known = {finding.answer for finding in self.findings} - {"not known"}
        unknown = any(finding.answer == "not known" for finding in self.findings)
        if not known:
            return "not known"
        if len(known) > 1 or "it depends" in known:
            return "it depends"
        (only,) = known
        if only != "yes" or not unknown:
            return only
        real = {finding.kind for finding in self.findings} - {MADE_UP}
        return "in part" if not real or real & self._kinds() else "made-up"

    def _kinds(self) -> set[str]:
        return {finding.kind for finding in self.findings if finding.answer == "yes"}

    @property
    def lacking(self) -> list[str]:
        """Kinds of real data that were asked without any yes, where others have one."""
        asked = dict.fromkeys(finding.kind for finding in self.findings)
        return [kind for kind in asked if kind not in (MADE_UP, *self._kinds())]

    @property
    def lines(self) -> dict[str, str]:
        """Every answer that was found, with its data and their numbers; a sentence that stands for itself has no name."""
        if not self.findings or not self.findings[0].where:
            return {"": self.findings[0].sentence if self.findings else self.absent}
        found = {answer: [f.brief for f in self.findings if f.answer == answer] for answer in get_args(Answer)}
        return {answer: f"{', '.join(briefs)}." for answer, briefs in found.items() if briefs}


class Pair(NamedTuple):
    """A is better than B, asked on every data set that has both."""

    key: str
    claim: str
    a: str  # a model of ours
    b: System  # by the same recipe; a floor stands beside every one
    change: str
    told: bool = False  # both by the recipe that tells what was met before


PAIRS = (
    Pair("baseline", "ELASTIC is better than mere counting (co-occurrence).", "elastic", FLOOR,
         "More people; a baseline that counts better."),
    Pair("slots-baseline", "ELASTIC with interest slots (ours) is better than counting.", "elastic-slots", FLOOR,
         "More people, or a baseline that counts better."),
    Pair("sasrec", "ELASTIC is better than SASRec.", "elastic", System("sasrec"),
         "SASRec with more tuning, or longer histories. Its lead may come from the convolution: see the next claim."),
    Pair("sasrec-local", "ELASTIC is better than SASRec, if both mix the last events (our convolution).",
         "elastic", System("sasrec", "local"),
         "More seeds, longer histories. (The convolution mixes the last few items.)"),
    Pair("hstu", "ELASTIC is better than HSTU, if both know what was met before.", "elastic", System("hstu"),
         "Seeds of HSTU on MovieLens-1M; the local convolution for HSTU too.", told=True),
    Pair("memory", "A memory helps: own experts for each person are better than the same few for all.",
         "elastic", System("elastic", "memory-none"),
         "Seeds without a memory; data with more interests than everybody shares."),
    Pair("slots-memory", "With interest slots, a memory helps.", "elastic-slots", System("elastic-slots", "memory-none"),
         "Seeds without a memory on real data; a made-up world with fewer interests than slots."),
    Pair("gate", "Keys that learn are better than random keys.", "elastic", System("elastic", "gate-none"),
         "Seeds of the run whose keys do not learn."),
)  # fmt: skip


def compared(pair: Pair, groups: Sequence[Group], differences: Differences) -> Verdict:
    """A claim that a paired difference answers, one finding a data set."""
    found, missing, lacking = list[Finding](), list[str](), set[str]()
    for group in groups:
        mine = [system for system in references(group.systems) if system.model == pair.a and not system.own]
        a = next((system for system in mine if (system.mark == REPEATS) == pair.told), None)
        if a is None:
            continue
        b = pair.b if pair.b == FLOOR else System(*pair.b[:2], *a.recipe)
        table = differences(group, a, PROTOCOL).set_index("label") if b in group.systems else pd.DataFrame()
        if str(b) not in table.index:
            missing += [group.title]
            lacking |= {group.key}
            continue
        row = table.loc[str(b)]
        together = int(table.loc[table["family"] == row["family"], "seeds_counted"].sum())
        found.append(_finding(group, a, b, row, together, _otherwise(group, a, b, row["who"], differences)))
    absent = f"No finished run on {join_names(missing)}." if missing else "" if found else "No run here."
    alike = [row for row in rows() if row.data in lacking and row.system[:2] == pair.b[:2]]
    lacks = [row for row in alike if (row.system.mark == REPEATS) == pair.told]
    command = f'python -m elastic_core reproduce --only "{lacks[0].name}*"' if lacks else ""
    return Verdict(pair.key, pair.claim, tuple(found), pair.change, "systems", command, absent)


def _otherwise(group: Group, a: System, b: System, who: str, differences: Differences) -> str:
    """In worlds whose people choose again what they know: what ranking the known items, too, says, where it says otherwise."""
    table = differences(group, a, SEEN).set_index("label") if group.kind == MADE_UP else pd.DataFrame()
    if str(b) not in table.index or table.loc[str(b), "who"] == who:
        return ""
    row = table.loc[str(b)]
    said = {"A": "better", "B": "worse", "": "not known"}[row["who"]]
    return minus(f"{SEEN} {row['difference']:+.4f}, {said}")


def _finding(group: Group, a: System, b: System, row: pd.Series, together: int, other: str) -> Finding:
    """`together`: how many comparisons the p of this one was adjusted for, itself among them."""
    low, high, difference = map(float, row[["low", "high", "difference"]])
    counted, sides = bool(row["seeds_counted"]), (group.systems[a], group.systems[b])
    answer: Answer = "not known"
    if row["who"]:
        answer, why, said = ("yes", "", "better") if row["who"] == "A" else ("no", "", "worse")
        said += f" (adjusted p {verdict.p_text(row['adjusted'])})"
    elif not counted:
        why = ONCE
        said = "one side was trained once, so luck in training is not in the interval"
        said += f"; over people alone, only {power.of_interval(low, high):.4f} or more would usually be seen"
    elif verdict.sign(low, high):
        why = f"may be luck among {together} comparisons"
        said = f"asked alone this would be a claim: zero lies outside. But {together} comparisons were made on these data, and 1 "
        said += f"in 20 looks like this by luck; adjusted for that p is {verdict.p_text(row['adjusted'])}, not below "
        said += f"{verdict.LEVEL}"
    else:
        several = all(len(side) > 1 for side in sides)
        could = power_of(*sides, PROTOCOL).detectable() if several else power.of_interval(low, high)
        why, said = SMALL, f"zero lies inside; only {could:.4f} or more would usually be seen (4 times in 5)"
    where = f"{group.title}{recipe_in_words(a)}"
    often = " and ".join(str(len(side)) if needs_training(side[0]) else "none" for side in sides)
    numbers = f"{difference:+.4f} (95% {low:+.4f} to {high:+.4f}; {int(row['n']):,} people, trainings: {often})"
    runs = tuple(run.name for side in sides for run in side)
    said += f". Ranked with known items, too: {other}" if other else ""
    return Finding(answer, minus(f"{where}: {numbers}: {said}."), why, group.key, where, group.kind, named(a, sides[0]), runs,
                   difference, low, high, int(row["n"]), other)  # fmt: skip


# --- speed -----------------------------------------------------------------------------------------------------------


def faster(checkpoints: Path) -> Verdict:
    """When is reading a history faster than with SASRec? From the shipped rows, chosen and timed as the Speed screen does."""
    note, found = "", list[Finding]()
    for peer in ("sasrec-fused", "sasrec-eager"):
        table, column = curves.usual(curves.shipped(checkpoints))
        ratio = curves.versus(table, "elastic", peer, column) if len(table) else pd.Series(dtype=float)
        if ratio.empty:
            continue
        answer: Answer = "yes" if (ratio > 1).all() else "no" if (ratio <= 1).all() else "it depends"
        note = f"Time {curves.TIMES[column]}; {curves.machine(table)}"
        found.append(Finding(answer, f"On a processor: {curves.speed_sentence(table, 'elastic', peer, column)}", n=len(ratio)))
    if found and (card := curves.graphics_card(checkpoints)):
        where = f"On a graphics card ({card['device']}, {card['length']} events)"
        words = f"{where} a training step takes ELASTIC {card['step']} times as long."
        found.append(Finding("no" if float(card["step"]) > 1 else "yes", words, n=1))
    command = "" if found else "nice python -m elastic_core bench --directions forward --threads 1"
    return Verdict("speed", "ELASTIC is faster than SASRec.", tuple(found), "Another machine, batch, d or k.", "speed",
                   command, "" if found else "No benchmark rows came along.", note)  # fmt: skip


def count_sentence(verdicts: Sequence[Verdict]) -> str:
    """`Of 10 claims: 1 yes, 3 yes in part, …`."""
    counts = {answer: sum(each.answer == answer for each in verdicts) for answer in get_args(Answer)}
    said = {"in part": "yes in part", "made-up": "yes in made-up worlds only"}
    parts = [f"{count} {said.get(answer, answer)}" for answer, count in counts.items() if count]
    return f"Of {len(verdicts)} claims: {', '.join(parts)}."


COLUMNS = ("claim", "answer", "data", "difference", "low", "high", "n", "why not known", "runs", "sentence")


def verdict_table(found: Sequence[Verdict]) -> pd.DataFrame:
    """One row a finding, `COLUMNS`."""
    lines = [
        one._asdict() | {"claim": each.claim, "data": one.where, "why not known": one.why, "runs": ", ".join(one.runs)}
        for each in found
        for one in each.findings
    ]
    return pd.DataFrame(lines, columns=list(COLUMNS))
