"""What the runs at hand let us say of the paper's claims: a claim, an answer in a word, and sentences with their numbers.

Nothing is typed in: every number and every answer comes from the comparisons of the result tables, adjusted as there. An interval
that includes zero, a single training, or a p that is not small enough for so many questions at once is *not known*; the finding
says which of them it is.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import pandas as pd

from elastic_core.results.compare import METRIC, needs_training, noise_of_comparison, p_text, side_of_zero
from elastic_core.results.reproduce import OWN_REPEATS, REPEATS, System, planned_runs
from elastic_core.results.statistics import LEVEL, detectable_from_interval
from elastic_core.results.systems import (
    DataSet,
    best_by_validation,
    fair_sasrec,
    join_names,
    main_protocol,
    our_systems,
    recipe_label,
    system_label,
    system_title,
)
from elastic_core.results.table import best_baseline
from elastic_core.runs import Run
from elastic_core.text import true_minus

Answer = Literal["yes", "it depends", "no", "not known"]
MARKS: dict[Answer, str] = {"yes": "▲", "it depends": "▲▼", "no": "▼"}
LEVEL_MARK, UNKNOWN_MARK = "○", "?"  # several trainings that cannot be told apart, and one training
Screen = Literal["systems", "speed", "experts"]
Differences = Callable[[DataSet, System, str], pd.DataFrame]  # of a data set: one system minus the others, under a protocol
COUNTING, SASREC = System("cooccurrence"), System("sasrec")  # COUNTING: stands for the best of those that count
TOO_CLOSE, TRAINED_ONCE = "too close to zero", "trained once, so it may be luck"  # why something is not known
COLUMNS = ("claim", "answer", "data", "difference", "low", "high", "n", "why not known", "runs", "sentence")


class Finding(NamedTuple):
    """One sentence, and what it stands on. `answer` is about the claim that it belongs to; `why` it is not known, in brief."""

    answer: Answer
    sentence: str
    why: str = ""
    data: str = ""  # key of its data set
    where: str = ""  # what it was asked of, in words
    against: str = ""  # the system that it was set against
    system: str = ""  # what is A in the result tables
    runs: tuple[str, ...] = ()
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    protocol: str = ""  # how it was ranked; empty where the number is no NDCG@10
    unit: str = ""  # what the number counts, where it is no NDCG@10

    @property
    def mark(self) -> str:
        """What stands in the grid of claims: ▲ yes, ▼ no, ○ several trainings that cannot be told apart, ? one training."""
        return MARKS.get(self.answer, UNKNOWN_MARK if self.why == TRAINED_ONCE else LEVEL_MARK)

    @property
    def brief(self) -> str:
        """`MovieLens-100K, against SASRec: −0.0012 NDCG@10 under full (95%: −0.0094 to +0.0070), too close to zero`; the sentence
        where there is no number."""
        if math.isnan(self.difference):
            return self.sentence
        place = f"{self.where}, against {self.against}" if self.against else self.where
        interval = "" if math.isnan(self.low) else f"(95%: {self.low:+.4f} to {self.high:+.4f})"
        unit = self.unit or (f"{METRIC} under {self.protocol}" if self.protocol else "")
        number = " ".join(filter(None, (f"{place}: {self.difference:+.4f}", unit, interval)))
        return ", ".join(filter(None, (true_minus(number), self.why)))


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

    def marks_by_data(self) -> dict[str, str]:
        """By the key of a data set: every mark that its findings have, each once."""
        marks = dict[str, str]()
        for finding in self.findings:
            marks[finding.data] = marks.get(finding.data, "") + finding.mark * (finding.mark not in marks.get(finding.data, ""))
        return marks


class Question(NamedTuple):
    """Is A better than B? Asked on every data set that has both."""

    key: str
    claim: str
    a: str  # a model of ours
    b: System  # by the same recipe; a baseline stands beside every one
    change: str
    with_repeats: bool = False  # both by a recipe that tells what was met before


QUESTIONS = (
    Question(
        "baseline", "ELASTIC beats the best counting system.", "elastic", COUNTING,
        "More people, or a baseline that counts better.",
    ),
    Question(
        "slots-baseline", "ELASTIC with interest slots (ours) beats the best counting system.",
        "elastic-slots", COUNTING,
        "More people, or a baseline that counts better.",
    ),
    Question(
        "sasrec", "ELASTIC beats SASRec with the same convolution.", "elastic", SASREC,
        "More seeds, or longer histories. Where SASRec was run without ELASTIC’s convolution, a lead may come from that.",
    ),
    Question(
        "hstu", "ELASTIC beats HSTU if both know what a person has seen.", "elastic", System("hstu"),
        "More seeds, or HSTU with the local convolution.", with_repeats=True,
    ),
    Question(
        "memory", "Choosing experts for each person helps.", "elastic",
        System("elastic", "memory-none"), "More seeds without a memory, or data with more interests than people share.",
    ),
    Question(
        "slots-memory", "With interest slots, choosing experts for each person helps.", "elastic-slots",
        System("elastic-slots", "memory-none"),
        "More seeds without a memory on real data, or a made-up world with fewer interests than slots.",
    ),
    Question(
        "gate", "Learned keys are better than random keys.", "elastic", System("elastic", "gate-none"),
        "More seeds of the run whose keys do not learn.",
    ),
)  # fmt: skip


def answer_question(question: Question, data_sets: Sequence[DataSet], differences: Differences) -> Verdict:
    """A claim that a paired difference answers, one finding a data set."""
    findings, missing_systems = list[Finding](), list[tuple[DataSet, System]]()
    for data_set in data_sets:
        a = _asked_system(question, data_set)
        if a is None:
            continue
        b = _control_system(question, a, data_set)
        table = (
            differences(data_set, a, main_protocol(data_set.systems))
            if b in data_set.systems
            else pd.DataFrame(columns=["label"])
        )
        row = _row_of(table, b)
        if row is None:
            missing_systems.append((data_set, b))
            continue
        seeds_together = int(table.loc[table["family"] == row["family"], "seeds_counted"].sum())
        findings.append(_make_finding(data_set, a, b, row, seeds_together))
    titles = join_names([data_set.title for data_set, _ in missing_systems])
    absent = f"No finished run on {titles}." if missing_systems else "" if findings else "No run here."
    command = _command_for(missing_systems)
    return Verdict(question.key, question.claim, tuple(findings), question.change, "systems", command, absent)


def _asked_system(question: Question, data_set: DataSet) -> System | None:
    """A by the recipe that validates best, of those where the control has several seeds, too."""
    recipes = [system for system in our_systems(data_set.systems) if system.model == question.a and not system.own]
    if question.with_repeats:
        recipes = [system for system in recipes if system.mark in (REPEATS, OWN_REPEATS)]
    return best_by_validation(recipes, data_set.systems, lambda one: (_control_system(question, one, data_set),))


def _control_system(question: Question, a: System, data_set: DataSet) -> System:
    """The system that A must be better than. Against SASRec it is the fairer of two: the one with the same convolution, where it
    was run. What beats only a model that lacks a part of its own may owe its lead to that part. Against counting it is the system
    that counts best on these data."""
    if question.b == SASREC:
        return fair_sasrec(a, data_set.systems)
    if question.b == COUNTING:
        return best_baseline(data_set.systems, main_protocol(data_set.systems)) or COUNTING
    return System(*question.b[:2], *a.recipe)


def _row_of(table: pd.DataFrame, system: System) -> pd.Series | None:
    rows_of = table[table["label"] == str(system)]
    return rows_of.iloc[0] if len(rows_of) else None


def _command_for(missing_systems: Sequence[tuple[DataSet, System]]) -> str:
    """What would run the first of these systems that is planned on its data."""
    missing_pairs = {(data_set.key, system) for data_set, system in missing_systems}
    name = next((row.name for row in planned_runs() if (row.data, row.system) in missing_pairs), "")
    return f'elastic reproduce --only "{name}*"' if name else ""


def _make_finding(data_set: DataSet, a: System, b: System, row: pd.Series, seeds_together: int) -> Finding:
    """`seeds_together`: how many comparisons the p of this one was adjusted for, itself among them."""
    low, high, difference = map(float, row[["low", "high", "difference"]])
    sides, main = (data_set.systems[a], data_set.systems[b]), main_protocol(data_set.systems)
    answer: Answer = "not known"
    if row["winner"]:
        answer, why = ("yes" if row["winner"] == "A" else "no"), ""
        words = f"{'better' if row['winner'] == 'A' else 'worse'} (adjusted p {p_text(row['adjusted'])})"
    else:
        why, words = _why_not_known(sides, main, low, high, bool(row["seeds_counted"]), row["adjusted"], seeds_together)
    where, against = f"{data_set.title}{recipe_label(a)}", system_label(b._replace(budget=""))
    trainings = " and ".join(str(len(side)) if needs_training(side[0]) else "none" for side in sides)
    basis_text = f"{int(row['n']):,} people, trainings: {trainings}; protocol {main}"
    numbers = f"{difference:+.4f} (95% {low:+.4f} to {high:+.4f}; {basis_text})"
    return Finding(
        answer, true_minus(f"{where}, against {against}: {numbers}: {words}."), why, data_set.key, where,
        against, system_title(a, sides[0]), tuple(run.name for side in sides for run in side), difference, low, high,
        int(row["n"]), main,
    )  # fmt: skip


def _why_not_known(
    sides: tuple[list[Run], list[Run]],
    protocol: str,
    low: float,
    high: float,
    seeds_counted: bool,
    adjusted: float,
    seeds_together: int,
) -> tuple[str, str]:
    """Why nothing is claimed, in brief, and as the rest of a sentence."""
    seen = "or more would usually be noticed"
    if not seeds_counted:
        words = "one side was trained once, so luck in training is not in the interval; over people alone, only "
        return TRAINED_ONCE, f"{words}{detectable_from_interval(low, high):.4f} {seen}"
    if side_of_zero(low, high):
        return f"may be luck among {seeds_together} comparisons", (
            f"asked alone this would be a claim: zero lies outside. But {seeds_together} comparisons were made on these data, "
            f"and 1 in 20 looks like this by luck; adjusted for that p is {p_text(adjusted)}, not below {LEVEL}"
        )
    if all(len(side) > 1 for side in sides):
        detectable = noise_of_comparison(sides[0], sides[1], protocol).detectable_difference()
    else:
        detectable = detectable_from_interval(low, high)
    return TOO_CLOSE, f"zero lies inside; only {detectable:.4f} {seen} (4 times in 5)"


def verdict_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """One row a finding, `COLUMNS`."""
    lines = [
        {**each._asdict(), "claim": verdict.claim, "data": each.where, "why not known": each.why, "runs": ", ".join(each.runs)}
        for verdict in verdicts
        for each in verdict.findings
    ]
    return pd.DataFrame(lines, columns=list(COLUMNS))
