"""The sections of an answer that claim nothing: the data, the lists, what could have been found, what to try, how it was done."""

from typing import TYPE_CHECKING

import numpy as np

from elastic_core.data.item_features import genre_table
from elastic_core.data.repeats import count_repeats
from elastic_core.machine import CPU, describe_machine
from elastic_core.recipes import MEMORIES
from elastic_core.results.statistics import NoiseParts
from elastic_core.runs.ranks import Interval
from elastic_core.study import asking
from elastic_core.study.asking import METRIC
from elastic_core.study.pieces import (
    UNKNOWN,
    Section,
    name,
    percent,
    section,
    share,
    system_names,
    table_part,
)
from elastic_core.study.plan import LATE, SEEDS
from elastic_core.study.side import Side
from elastic_core.study.verdicts import Found

if TYPE_CHECKING:
    from elastic_core.study.conduct import Study

PARTS = (0.05, 0.1)  # of the best baseline's score: effects worth asking people for
RARE = 5  # training events
TIED = 0.05  # of test targets, from which equal times may make a number
CHOSEN = "what people chose"


def data(study: "Study") -> Section:
    here_, names = study.data, genre_table(study.data.catalog)[0]
    lengths, seen = here_.histories.lengths, here_.item_counts()[here_.target_items("test")]
    low, middle, high = np.quantile(lengths, [0.1, 0.5, 0.9]).astype(int)
    again = count_repeats(here_)
    ties = str(here_.ties) if here_.ties else "not counted" if here_.has_times else "no times: the rows are in order"
    rows = [
        ("people", f"{len(lengths):,}"),
        ("items", f"{here_.catalog.n_items:,}"),
        ("events", f"{lengths.sum():,} ({lengths.sum() / (len(lengths) * here_.catalog.n_items):.2%} of all pairs)"),
        ("events a person", f"{lengths.min():,} to {lengths.max():,}; 10%, half, 90% have at most {low:,}, {middle:,}, {high:,}"),
        ("equal times", ties),
        ("next item was met before", share(again.again, again.people)),
        ("next item is cold: nobody had it in training", share(int((seen == 0).sum()), len(seen))),
        (f"next item is rare: fewer than {RARE} training events", share(int((seen < RARE).sum()), len(seen))),
        ("kinds of items", f"{len(names):,} are known" if names else "not known"),
        *((f"read: {what}", said) for what, said in here_.understood),
        *(("note", note) for note in here_.notes),
    ]
    kept = "stay among the candidates (full-seen)" if study.protocol == "full-seen" else "are left out of the candidates (full)"
    said = f"{share(again.again, again.people)} of people chose next what they had met before, so met items {kept}."
    return section("data", "What is in these data?", "", [said], table_part(["", "here"], rows))


def lists_section(side: Side) -> Section:
    """Coverage, novelty and popularity of everybody's ten."""
    here_, counts = side.data, side.data.item_counts()
    tenth = np.argsort(-counts[1:], kind="stable")[: max(here_.catalog.n_items // 10, 1)] + 1
    shown = {CHOSEN: [here_.target_items("test")[asking.some_people(here_, asking.MOST_LISTED)][:, None]]}
    for label in side.systems:
        shown[name(label)] = [side.measured(run)["lists"] for run in side.runs(label)]
    rows, popular = [], {}
    for whose, each in shown.items():
        new = Interval.from_values(np.mean([asking.novelty(one, counts) for one in each], axis=0))
        popular[whose] = Interval.from_values(np.mean([asking.among(one, tenth) for one in each], axis=0))
        cover = " and ".join(f"{len(np.unique(one[one > 0])) / here_.catalog.n_items:.1%}" for one in each)
        rows.append((whose, cover, f"{new.mean:.2f} ({new.low:.2f} to {new.high:.2f})", percent(popular[whose])))
    sentences = [
        "Coverage: the share of all items that stands in anybody’s ten, of each training (of what people chose: one item a "
        "person). Novelty: -log2 of a listed item’s share of all training events, in bits. High is not better: lists drawn by "
        "chance have both."
    ]
    if best := side.best:
        sentences.append(
            f"{percent(popular[name(best)])} of what {name(best)} lists is of the most popular tenth of items; of what "
            f"people chose next it is {percent(popular[CHOSEN])}."
        )
    head = ["system", "coverage", "novelty, bits (95%)", "of the most popular tenth (95%)"]
    return section("lists", "What are the lists like?", "", sentences, table_part(head, rows))


def power(side: Side, found: dict[str, Found]) -> Section:
    floor, sentences = side.floor, []
    of = float(side.values(floor).mean()) if floor else 0.0
    rows = [
        (question_name(key), f"{one.people:,}", f"{one.could:.4f}", f"{one.could / of:.0%}" if of else "", one.answer)
        for key, one in found.items()
    ]
    for own, shared in MEMORIES if of else ():
        if f"{side.way} memory {own}" in found:
            seen, parts = NoiseParts.from_seeds(side.values(own), side.values(shared)), []
            for part in PARTS:
                people, seeds = seen.users_for(part * of), seen.seeds_for(part * of)
                more = f"{people:,} people" if people else "more people than there are"
                again = f"{seeds} trainings of these people" if seeds else "more trainings than anybody has time for"
                parts.append(f"{part:.0%} ({part * of:.4f}) would take {more} with {seen.n_seeds} trainings, or {again}")
            sentences.append(f"Own against shared experts, {name(own)}: {'; '.join(parts)}.")
    sentences.append(
        "Found four times out of five by the test that is used here, as parts of the best baseline’s score. Two trainings tell "
        "badly how far a training moves a result: take these for sizes."
    )
    head = ["question", "people", "would have been found", "part", "answer"]
    return section("power", "What could have been found with so many people?", "", sentences, table_part(head, rows))


def upcoming(study: "Study", side: Side, found: dict[str, Found]) -> Section:
    """What to try next, and why."""
    sentences, minutes = [], study.asked.minutes
    if rising := [label for label in side.trained if side.still_rising(label)]:
        sentences.append(
            f"More time: {system_names(rising)} still got better when the time was up. The same command with --minutes "
            f"{2 * minutes:g} goes on with what is there and takes {minutes:g} more."
        )
    if left := [label for label in study.asked.labels if not side.runs(label)]:
        sentences.append(f"More time, too: not trained at all were {system_names(left)}.")
    counting, floor = found.get(f"{side.way} counting"), side.floor
    if floor and (counting is None or counting.answer != "yes"):
        numbers = f" ({counting.numbers})" if counting else ""
        sentences.append(f"Until then run {name(floor)}: nothing was found to be better{numbers}, and it needs no training.")
    if study.protocol == "full-seen" and not study.repeat_bias:
        sentences.append(
            "People choose again what they met: train with --set model.repeat_bias=true, a learned number for having been met."
        )
    if study.data.ties and study.data.ties.test > TIED and study.data.ties.rule != "random":
        sentences.append(
            f"{study.data.ties.test:.0%} of test items have the same time as the event before. Ask again with --ties random: "
            "then no order of the file can be learned."
        )
    if not genre_table(study.data.catalog)[0]:
        sentences.append("Say of what kind items are (--titles FILE, with genres): then recall by silence can be asked.")
    if unknown := sum(one.answer == UNKNOWN for one in found.values()):
        sentences.append(f"{unknown} of {len(found)} questions are not known: the section before this says what they would take.")
    return section("next", "What to try next?", "", sentences or ["Nothing stands out: every question has its answer."])


def method_section(study: "Study") -> Section:
    """How all of it was done, and what was left out."""
    runs = [run for side in study.sides.values() for label in side.trained for run in side.runs(label)]
    taken = [float(run.last_event("end").get("seconds", 0)) for run in runs]
    machine, share_ = describe_machine(CPU), study.plan.share
    took = f"; they took {min(taken):.0f} to {max(taken):.0f}" if taken else ""
    sentences = [
        f"{study.asked.minutes:g} minutes were asked for, {study.clock.seconds / 60:.1f} taken. A training has {share_:.0f} "
        f"seconds {CLOCKS[study.asked.clock]}, validation included{took}. "
        f"{study.plan.length} events are read. {SEEDS} trainings a system; the same settings for all, tuned for none.",
        f"{METRIC} of the test, protocol {study.protocol}. Systems are chosen on validation. Intervals of differences are over "
        "people and trainings; p is adjusted for all questions that were asked together (Holm).",
        f"{machine['device']}, threads: {machine['threads']}, load {machine['load_average']}, torch {machine['torch']}, commit "
        f"{machine['commit'] or 'unknown'}, {machine['date']} UTC, data {study.data.hash}.",
    ]
    if study.repeat_bias:
        again = count_repeats(study.side.data, "valid").share
        sentences.append(f"{again:.0%} of people return to an item in validation, so all systems learn a number for seen items.")
    late = [key for key, reason in study.faults.items() if reason == LATE]
    sentences += [f"Left out: {question_name(key)}: {reason}." for key, reason in study.faults.items() if reason != LATE]
    sentences += [f"Left out for lack of time: {'; '.join(map(question_name, late))}."] if late else []
    return section("measured", "How was it measured?", "", sentences)


CLOCKS = {"wall": "by the clock", "processor": "of the processor"}


def why(study: "Study", way: str, *labels: str) -> str:
    """Why a system was not trained."""
    found = (study.faults.get(key) for label in labels for key in (label, f"{way} {label}"))
    return next((reason for reason in found if reason), "the budget did not reach so far")


def question_name(key: str) -> str:
    """A question, a system or a way of holding out, by its key."""
    if key == "history":
        return "all events against the last alone"
    if key in ("last", "time"):
        return "by time" if key == "time" else "leave-one-out"
    way, _, rest = key.partition(" ")
    if way not in ("last", "time"):
        return name(key)
    if rest == "counting":
        what = "the best trained against the best that counts"
    else:
        own = rest.removeprefix("memory ")
        what = f"own against shared experts, {name(own)}" if own != rest else name(rest)
    return what + (", by time" if way == "time" else "")
