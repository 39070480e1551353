"""What the runs at hand let us say: a question, an answer in a word, and sentences with their numbers.

Nothing is typed in: every number and every answer comes from the comparisons of the Results screen (adjusted as there), from
benchmark rows, or from a measurement of a model's memory. An interval that includes zero, or a single training, is *not known*;
then the sentence says which difference would have been found.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import pandas as pd

from elastic_core.comparisons import needs_training, power_of
from elastic_core.evaluation import power, verdict
from elastic_core.labels import MET, named, plainly, recipe_in_words, recipe_of
from elastic_core.report import references
from elastic_core.reproduce import rows
from elastic_core.services.results.systems import OWN, Group
from elastic_core.services.speed import curves

Answer = Literal["yes", "in part", "it depends", "no", "not known"]
Screen = Literal["results", "compare", "speed", "experts", "map", "traffic"]
Differences = Callable[[Group, str, str], pd.DataFrame]  # of a data set: one system (its label) minus the others, a protocol
PROTOCOL = "full"
FLOOR = "cooccurrence"


@dataclass(frozen=True)
class Finding:
    """One sentence, and what it stands on. `answer` is about the question that it belongs to."""

    answer: Answer
    sentence: str
    data: str = ""  # key of its group
    where: str = ""  # what it was asked of, in words
    system: str = ""  # what is A in the Results screen
    runs: tuple[str, ...] = ()
    difference: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    n: int = 0

    @property
    def brief(self) -> str:
        """`MovieLens-100K (+0.0150, 95% +0.0039 to +0.0261)`"""
        if math.isnan(self.low):
            return f"{self.where} ({self.difference:+.4f}, trained once)"
        return f"{self.where} ({self.difference:+.4f}, 95% {self.low:+.4f} to {self.high:+.4f})"


@dataclass(frozen=True)
class Verdict:
    """`change` is what would change our mind; `screen` where the numbers are shown whole."""

    key: str
    question: str
    findings: tuple[Finding, ...]
    change: str
    screen: Screen
    command: str = ""  # measures what is missing
    absent: str = ""  # what no run is there for
    note: str = ""  # how all of it was measured

    @property
    def answer(self) -> Answer:
        """Of all findings. Yes where all say so, in part where some do and the rest is not known; no where nothing says yes."""
        known = {finding.answer for finding in self.findings} - {"not known"}
        unknown = any(finding.answer == "not known" for finding in self.findings)
        if not known:
            return "not known"
        if len(known) > 1 or "it depends" in known:
            return "it depends"
        (only,) = known
        return "in part" if only == "yes" and unknown else only

    @property
    def line(self) -> str:
        """All of it in one sentence: every answer with its data, the first of each with difference, interval and n."""
        parts = []
        for answer in ("yes", "no", "it depends", "not known"):
            mine = [finding for finding in self.findings if finding.answer == answer]
            if mine and not mine[0].where:
                return mine[0].sentence
            if mine:
                parts.append(f"{answer} on {_listed([mine[0].brief, *(finding.where for finding in mine[1:])])}")
        said = "; ".join(parts)
        return f"{said[:1].upper()}{said[1:]}." if said else self.absent


@dataclass(frozen=True)
class Pair:
    """A is better than B, asked on every data set that has both."""

    key: str
    question: str
    a: str  # kind of the system: a label, or its beginning before ` (… minutes)`
    b: str
    change: str
    told: bool = False  # both by the recipe that tells what was met before


PAIRS = (
    Pair("baseline", "Does ELASTIC beat co-occurrence, which only counts what follows what?", "elastic", FLOOR,
         "More people, for a narrower interval; a baseline that counts better."),
    Pair("slots-baseline", "Does ELASTIC with interest slots beat co-occurrence?", "elastic-slots", FLOOR,
         "More people, or a baseline that counts better."),
    Pair("sasrec", "Does ELASTIC beat SASRec?", "elastic", "sasrec",
         "SASRec tuned further, longer histories; on MovieLens-1M, seeds and no limit of minutes."),
    Pair("hstu", "Does ELASTIC beat HSTU, where both are told what was met before?", "elastic", "hstu",
         "Seeds of HSTU on MovieLens-1M; the local convolution for HSTU too.", told=True),
    Pair("memory", "Does ELASTIC’s memory matter: own experts, or the same for everybody?", "elastic", "elastic (memory-none)",
         "Seeds without a memory; data with more interests than everybody shares."),
    Pair("slots-memory", "Does it matter with interest slots?", "elastic-slots", "elastic-slots (memory-none)",
         "Seeds without a memory on real data; a planted world with fewer interests than slots."),
    Pair("gate", "Does the gate matter, or does a router that never learns do as well?", "elastic", "elastic (gate-none)",
         "Seeds of the run without a gate."),
)  # fmt: skip


def compared(pair: Pair, groups: Sequence[Group], differences: Differences) -> Verdict:
    """A question that a paired difference answers, one finding a data set."""
    found, missing, lacking = list[Finding](), list[str](), set[str]()
    for group in groups:
        mine = [label for label in references(group.systems) if label.split(" ")[0] == pair.a and OWN not in label]
        a = next((label for label in mine if (MET in label) == pair.told), None)
        if a is None:
            continue
        b = next((label for label in group.systems if _same(label, pair.b, a)), None)
        table = differences(group, a, PROTOCOL) if b is not None else pd.DataFrame(columns=["label"])
        row = table[table["label"] == b]
        if row.empty:
            missing += [group.title]
            lacking |= {group.key}
            continue
        found.append(_finding(pair, group, a, str(b), row.iloc[0]))
    absent = f"No finished run on {_listed(missing)}." if missing else "" if found else "No run here answers it."
    lacks = [row for row in rows() if row.data in lacking and plainly(row.label) == pair.b and (MET in row.label) == pair.told]
    command = f'python -m elastic_core reproduce --only "{lacks[0].name}*"' if lacks else ""
    return Verdict(pair.key, pair.question, tuple(found), pair.change, "results", command, absent)


def _same(label: str, wanted: str, a: str) -> bool:
    """Floors stand beside every recipe, other systems beside their own: `sasrec (20 minutes)` beside `elastic (20 minutes)`."""
    return label == (wanted if wanted == FLOOR else f"{wanted} {recipe_of(a)}".strip())


def _finding(pair: Pair, group: Group, a: str, b: str, row: pd.Series) -> Finding:
    low, high, difference = float(row["low"]), float(row["high"]), float(row["difference"])
    counted = bool(row["seeds_counted"])
    numbers = f"{difference:+.4f} (95% {low:+.4f} to {high:+.4f}; {int(row['n']):,} people, {_trainings(group, a, b)}"
    adjusted = f", adjusted p {verdict.chance(row['adjusted'])})" if counted else ")"
    recipe = recipe_in_words(recipe_of(a))
    start = f"{group.title}{recipe}: {numbers}{adjusted}"
    runs = tuple(run.name for label in (a, b) for run in group.systems[label])

    def said(answer: Answer, why: str) -> Finding:
        where, ours = f"{group.title}{recipe}", named(a, group.systems[a])
        return Finding(answer, f"{start}: {why}.", group.key, where, ours, runs, difference, low, high, int(row["n"]))

    if row["who"]:
        return said("yes", "better") if row["who"] == "A" else said("no", "worse")
    sides = group.systems[a], group.systems[b]
    several = counted and all(len(side) > 1 for side in sides)
    could = power_of(*sides, PROTOCOL).detectable() if several else power.of_interval(low, high)
    if not counted:
        why = f"one side trained once; {could:.4f} would have been found over people alone"
    elif verdict.sign(low, high):
        why = "not after the adjustment for all that is asked beside it"
    else:
        why = f"{could:.4f} would have been found"
    return said("not known", why)


def _trainings(group: Group, a: str, b: str) -> str:
    """How often either was trained."""
    said = [str(len(runs)) if needs_training(runs[0]) else "none" for runs in (group.systems[a], group.systems[b])]
    return f"trainings: {said[0]} and {said[1]}"


# --- speed -----------------------------------------------------------------------------------------------------------


def faster(checkpoints: Path) -> Verdict:
    """When is reading a history faster than with SASRec? From the shipped rows, chosen and timed as the Speed screen does."""
    change = "Another machine, batch, d or k; a GPU."
    note = ""
    found: list[Finding] = []
    for peer in ("sasrec-fused", "sasrec-eager"):
        table, column = curves.usual(curves.shipped(checkpoints))
        ratio = curves.versus(table, "elastic", peer, column) if len(table) else pd.Series(dtype=float)
        if ratio.empty:
            continue
        answer: Answer = "yes" if (ratio > 1).all() else "no" if (ratio <= 1).all() else "it depends"
        note = f"Time {curves.TIMES[column]}; {curves.machine(table)}"
        found.append(Finding(answer, curves.words(table, "elastic", peer, column), n=len(ratio)))
    return Verdict("speed", "Is ELASTIC faster than SASRec?", tuple(found), change, "speed",
                   "" if found else "nice python -m elastic_core bench --passes forward --threads 1",
                   "" if found else "No benchmark rows came along.", note)  # fmt: skip


def counted(verdicts: Sequence[Verdict]) -> str:
    """`Of 9 questions: 1 yes, 3 in part, …`."""
    counts = {answer: sum(each.answer == answer for each in verdicts) for answer in get_args(Answer)}
    said = {"in part": "yes in part"}
    parts = [f"{count} {said.get(answer, answer)}" for answer, count in counts.items() if count]
    return f"Of {len(verdicts)} questions: {', '.join(parts)}."


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


COLUMNS = ("question", "answer", "data", "difference", "low", "high", "n", "runs", "sentence")


def table(found: Sequence[Verdict]) -> list[tuple[object, ...]]:
    """One row a finding, `COLUMNS`."""
    return [
        (each.question, one.answer, one.where, one.difference, one.low, one.high, one.n, ", ".join(one.runs), one.sentence)
        for each in found
        for one in each.findings
    ]
