"""The sections of an answer that claim nothing: the data, the lists, what could have been found, what to try, how it was done."""

from typing import TYPE_CHECKING

import numpy as np

from elastic_core.data.item_features import genre_table
from elastic_core.data.repeats import count_repeats
from elastic_core.machine import CPU, describe_machine
from elastic_core.recipes import MEMORIES
from elastic_core.results.statistics import NoiseParts
from elastic_core.runs.ranks import Interval
from elastic_core.study import measurements
from elastic_core.study.holdout import Holdout
from elastic_core.study.measurements import METRIC
from elastic_core.study.parts import (
    LEVEL,
    UNKNOWN,
    Section,
    make_section,
    make_table,
    percent_text,
    share_text,
    system_name,
    system_names,
)
from elastic_core.study.plan import OUT_OF_TIME
from elastic_core.study.questions import MARGIN, Finding

if TYPE_CHECKING:
    from elastic_core.study.train import Study

EFFECTS = (0.05, 0.1)  # of the best baseline's score: effects worth asking people for
RARE = 5  # training events
TIED = 0.05  # of test targets, from which equal times may make a number
CHOSEN = "what people chose"
CLOCK_WORDS = {"wall": "by the clock", "processor": "of the processor"}
RECIPE_WORDS = {
    "plain": "nothing of it",
    "repeat-bias": "a number for seen items",
    "repeat-counts": "a number for how often an item was seen",
    "repeat-bias-own-output": "a number for seen items and an output table of its own",
}


def describe_data(study: "Study") -> Section:
    dataset, genres = study.data, genre_table(study.data.catalog)[0]
    lengths, seen = dataset.histories.lengths, dataset.item_counts()[dataset.target_items("test")]
    low, middle, high = np.quantile(lengths, [0.1, 0.5, 0.9]).astype(int)
    repeats = count_repeats(dataset)
    ties = str(dataset.ties) if dataset.ties else "not counted" if dataset.has_times else "no times: the rows are in order"
    rows = [
        ("people", f"{len(lengths):,}"),
        ("items", f"{dataset.catalog.n_items:,}"),
        ("events", f"{lengths.sum():,} ({lengths.sum() / (len(lengths) * dataset.catalog.n_items):.2%} of all pairs)"),
        ("events a person", f"{lengths.min():,} to {lengths.max():,}; 10%, half, 90% have at most {low:,}, {middle:,}, {high:,}"),
        ("equal times", ties),
        ("next item was seen before", share_text(repeats.again, repeats.people)),
        ("next item is cold: nobody had it in training", share_text(int((seen == 0).sum()), len(seen))),
        (f"next item is rare: fewer than {RARE} training events", share_text(int((seen < RARE).sum()), len(seen))),
        ("kinds of items", f"{len(genres):,} are known" if genres else "not known"),
        *((f"read: {what}", understood) for what, understood in dataset.understood),
        *(("note", note) for note in dataset.notes),
    ]
    place = "stay among the candidates (full-seen)" if study.protocol == "full-seen" else "are left out of the candidates (full)"
    sentence = (
        f"{share_text(repeats.again, repeats.people)} of people chose next what they had seen before, so seen items {place}."
    )
    return make_section("data", "What is in these data?", "", [sentence], make_table(["", "here"], rows))


def describe_lists(holdout: Holdout) -> Section:
    """Coverage, novelty and popularity of everybody's ten."""
    dataset, counts = holdout.data, holdout.data.item_counts()
    tenth = np.argsort(-counts[1:], kind="stable")[: max(dataset.catalog.n_items // 10, 1)] + 1
    users = measurements.sample_users(dataset, measurements.MAX_LISTED)
    lists_of = {CHOSEN: [dataset.target_items("test")[users][:, None]]}
    for label in holdout.systems:
        lists_of[system_name(label)] = [holdout.read_measured(run)["lists"] for run in holdout.finished_runs(label)]
    rows, popular = [], {}
    for whose, each in lists_of.items():
        novelty = Interval.from_values(np.mean([measurements.score_novelty(lists, counts) for lists in each], axis=0))
        popular[whose] = Interval.from_values(np.mean([measurements.share_among(lists, tenth) for lists in each], axis=0))
        coverage = " and ".join(f"{len(np.unique(lists[lists > 0])) / dataset.catalog.n_items:.1%}" for lists in each)
        rows.append(
            (whose, coverage, f"{novelty.mean:.2f} ({novelty.low:.2f} to {novelty.high:.2f})", percent_text(popular[whose]))
        )
    sentences = [
        "Coverage is the share of all items that stands in anybody’s ten, for each training (of what people chose: one item a "
        "person). Novelty is -log2 of a listed item’s share of all training events, in bits. High is not better: lists drawn by "
        "chance have both."
    ]
    if best := holdout.best:
        sentences.append(
            f"{percent_text(popular[system_name(best)])} of what {system_name(best)} lists is of the most popular tenth of "
            f"items; of what people chose next it is {percent_text(popular[CHOSEN])}."
        )
    columns = ["system", "coverage", "novelty, bits (95%)", "of the most popular tenth (95%)"]
    return make_section("lists", "What are the lists like?", "", sentences, make_table(columns, rows))


def describe_power(holdout: Holdout, findings: dict[str, Finding]) -> Section:
    baseline, sentences = holdout.best_baseline, []
    score = float(holdout.values(baseline).mean()) if baseline else 0.0
    rows = [
        (
            question_name(key),
            f"{one.users:,}",
            f"{one.detectable:.4f}",
            f"{one.detectable / score:.0%}" if score else "",
            one.answer,
        )
        for key, one in findings.items()
    ]
    for own, shared in MEMORIES if score else ():
        if f"{holdout.split} memory {own}" in findings:
            noise, texts = NoiseParts.from_seeds(holdout.values(own), holdout.values(shared)), []
            for part in EFFECTS:
                users, seeds = noise.users_for(part * score), noise.seeds_for(part * score)
                more_users = f"{users:,} people" if users else "more people than there are"
                more_seeds = f"{seeds} trainings of these people" if seeds else "more trainings than anybody has time for"
                effect = f"{part:.0%} ({part * score:.4f})"
                texts.append(f"{effect} would take {more_users} with {noise.n_seeds} trainings, or {more_seeds}")
            sentences.append(f"Personal against shared experts, {system_name(own)}: {'; '.join(texts)}.")
    sentences.append(
        "An effect counts as found if the test that is used here finds it four times out of five; parts are of the best "
        "baseline’s score. Two trainings tell badly how far a training moves a result: take these for sizes."
    )
    columns = ["question", "people", "would have been found", "part", "answer"]
    return make_section("power", "What could have been found with so many people?", "", sentences, make_table(columns, rows))


def suggest_next(study: "Study", holdout: Holdout, findings: dict[str, Finding]) -> Section:
    sentences, minutes = [], study.request.minutes
    if rising := [label for label in holdout.trained if holdout.still_rising(label)]:
        sentences.append(
            f"More time: {system_names(rising)} still got better when the time was up. The same command with --minutes "
            f"{2 * minutes:g} goes on with what is there and takes {minutes:g} more."
        )
    if untrained := [label for label in study.request.systems if not holdout.finished_runs(label)]:
        sentences.append(f"More time, too: not trained at all were {system_names(untrained)}.")
    counting, baseline = findings.get(f"{holdout.split} counting"), holdout.best_baseline
    if baseline and (counting is None or counting.answer != "yes"):
        numbers = f" ({counting.numbers})" if counting else ""
        reason = (
            "the best trained system is level with it"
            if counting and counting.answer == LEVEL
            else "nothing was found to be better"
        )
        sentences.append(f"Until then run {system_name(baseline)}: {reason}{numbers}, and it needs no training.")
    if study.protocol == "full-seen" and study.recipe == "plain":
        sentences.append(
            "People choose again what they have seen: train with --set model.repeat_bias=true, a learned number for seen items."
        )
    if study.data.ties and study.data.ties.test > TIED and study.data.ties.rule != "random":
        sentences.append(
            f"{study.data.ties.test:.0%} of test items have the same time as the event before. Ask again with --ties random: "
            "then no order of the file can be learned."
        )
    if not genre_table(study.data.catalog)[0]:
        sentences.append("Say of what kind items are (--titles FILE, with genres): then recall by silence can be asked.")
    if unknown := sum(finding.answer == UNKNOWN for finding in findings.values()):
        sentences.append(
            f"{unknown} of {len(findings)} questions are not known: the section before this says what they would take."
        )
    return make_section("next", "What to try next?", "", sentences or ["Nothing stands out: every question has its answer."])


def describe_method(study: "Study") -> Section:
    """How all of it was done, and what was left out."""
    runs = [run for each in study.holdouts.values() for label in each.trained for run in each.finished_runs(label)]
    seconds = [float(run.last_event("end").get("seconds", 0)) for run in runs]
    machine, plan, holdout = describe_machine(CPU), study.plan, study.holdout
    took = f"; they took {min(seconds):.0f} to {max(seconds):.0f}" if seconds else ""
    rounds = ""
    if len(plan.rounds) > 1:
        rounds = (
            f"{len(plan.systems)} systems were trained for {plan.rounds[0]:.0f} seconds each and the best third of them, by "
            f"validation, for {plan.rounds[1]:.0f}. Finalists are the best system with personal experts, the same with shared "
            "ones, and the best of the others. "
        )
    sentences = [
        f"{study.request.minutes:g} minutes were asked for, {study.clock.seconds / 60:.1f} taken. {rounds}A finalist is trained "
        f"{holdout.seeds} times, for {plan.share:.0f} seconds {CLOCK_WORDS[study.request.clock]}, validation included{took}. "
        f"{plan.length} events are read. The settings are the same for all systems, tuned for none.",
        f"{METRIC} of the test, protocol {study.protocol}. Systems are chosen on validation. Intervals of differences are over "
        "people and trainings; every p is multiplied by the number of questions that were asked together (Bonferroni). *Level* "
        f"means that a difference of {MARGIN:.0%} of the best baseline’s validation score can be ruled out, either way.",
        f"{machine['device']}, threads: {machine['threads']}, load {machine['load_average']}, torch {machine['torch']}, commit "
        f"{machine['commit'] or 'unknown'}, {machine['date']} UTC, data {study.data.hash}.",
        *_describe_recipe(study),
    ]
    late = [key for key, reason in study.faults.items() if reason == OUT_OF_TIME]
    sentences += [f"Left out: {question_name(key)}: {reason}." for key, reason in study.faults.items() if key not in late]
    sentences += [f"Left out for lack of time: {'; '.join(map(question_name, late))}."] if late else []
    return make_section("measured", "How was it measured?", "", sentences)


def _describe_recipe(study: "Study") -> list[str]:
    """What all systems learn because people often return, and why."""
    scores = study.recipe_scores
    if study.recipe == "plain" and not scores:
        return []
    share = count_repeats(study.holdout.data, "valid").share
    tried = "; ".join(f"{RECIPE_WORDS[recipe]} {score:.4f}" for recipe, score in scores.items())
    reason = f"{share:.0%} of people return to an item in validation, so it was tried what helps ({tried})"
    return [f"{reason}; all systems learn {RECIPE_WORDS[study.recipe]}."]


def why_not_trained(study: "Study", holdout: Holdout, *labels: str) -> str:
    for label in labels:
        for key in (label, f"{holdout.split} {label}"):
            if key in study.faults:
                return study.faults[key]
    if any(label in holdout.stopped for label in labels):
        return "other systems were ahead on validation"
    return "the budget did not reach so far"


def question_name(key: str) -> str:
    """A question, a system or a way of holding out, by its key."""
    if key == "history":
        return "all events against the last alone"
    if key in ("last", "time"):
        return "by time" if key == "time" else "leave-one-out"
    split, _, rest = key.partition(" ")
    if split not in ("last", "time"):
        return system_name(key)
    if rest == "counting":
        name = "the best trained against the best that counts"
    else:
        own = rest.removeprefix("memory ")
        name = f"personal against shared experts, {system_name(own)}" if own != rest else system_name(rest)
    return name + (", by time" if split == "time" else "")
