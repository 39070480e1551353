"""The answer of a study, from what its folder holds: sections of a question, an answer in a word, sentences with their intervals,
tables and charts. Plain values, which page.py and the app draw. Here: what claims are made of; background.py has the rest."""

from typing import TYPE_CHECKING, Any

import numpy as np

from elastic_core.data.item_features import genre_table
from elastic_core.memory.gaps import BINS, gap_name
from elastic_core.recipes import MEMORIES, STUDIED
from elastic_core.results.statistics import TrainingNoise
from elastic_core.runs.ranks import Interval
from elastic_core.study import background, measurements
from elastic_core.study.holdout import Holdout, cuts_of
from elastic_core.study.measurements import METRIC, RECALL
from elastic_core.study.parts import (
    LEVEL,
    UNKNOWN,
    Section,
    answer_word,
    combine_answers,
    make_lines,
    make_points,
    make_section,
    make_series,
    make_table,
    megabytes_text,
    numbers_text,
    percent_text,
    share_text,
    system_name,
    system_names,
)
from elastic_core.study.questions import MARGIN, Finding, Question, answer_in_turn, answer_together

if TYPE_CHECKING:
    from elastic_core.study.train import Study

MIN_AT_GAP = 20  # users
OVER_USERS = "95% over people"


def answer_study(study: "Study") -> dict[str, Any]:
    """Everything that is said, in the order in which it is read."""
    holdout = study.holdout
    questions = ask_questions(study)
    findings = answer_together({key: question for key, question in questions.items() if not key.startswith("cut ")})
    sections = [
        background.describe_data(study), _answer_history(holdout, questions, findings), _answer_memory(study, findings),
        _answer_systems(study, findings), _answer_by_time(study, findings), background.describe_lists(holdout),
        background.describe_power(holdout, findings), background.suggest_next(study, holdout, findings),
        background.describe_method(study),
    ]  # fmt: skip
    known = sum(finding.answer != UNKNOWN for finding in findings.values())
    headline = (
        f"Of {len(findings)} questions that were asked together, {known} can be answered."
        if known
        else "Nothing was found: no question can be answered on these data within this budget."
    )
    return {
        "title": f"Which model for {study.data.label}?", "data": study.data.label, "hash": study.data.hash,
        "minutes": study.request.minutes, "seconds": round(study.clock.seconds, 1), "protocol": study.protocol,
        "headline": headline, "claims": {key: finding.answer for key, finding in findings.items()}, "sections": sections,
    }  # fmt: skip


def ask_questions(study: "Study") -> dict[str, Question]:
    """Everything that a claim may come of: `history`, `cut N`, and by way of holding out `… memory SYSTEM` and `… counting`."""
    questions: dict[str, Question] = {}
    for split, holdout in study.holdouts.items():
        margin = worthwhile_difference(holdout)
        noise = TrainingNoise.pool_systems([holdout.values(label) for label in holdout.systems])
        for own, shared in MEMORIES:
            if {own, shared} <= set(holdout.systems):
                pair = holdout.values(own), holdout.values(shared)
                questions[f"{split} memory {own}"] = Question(*pair, noise=noise, cut=holdout.still_rising(own), margin=margin)
        best, baseline = holdout.best, holdout.best_baseline
        if best and baseline:
            pair = holdout.values(best), holdout.values(baseline)
            questions[f"{split} counting"] = Question(*pair, (True, False), noise, holdout.still_rising(best), margin)
    if best := study.holdout.best:
        scores = {label: scores_by_cut(study.holdout, label) for label in study.holdout.trained}
        noise = TrainingNoise.pool_systems([each[:, -1] - each[:, 0] for each in scores.values()])
        for at, cut in enumerate(cuts_of(study.holdout.finished_runs(best)[0])):
            key = "history" if at == 0 else f"cut {cut}"
            questions[key] = Question.of_same(
                scores[best][:, -1], scores[best][:, at], noise, worthwhile_difference(study.holdout)
            )
    return questions


def worthwhile_difference(holdout: Holdout) -> float:
    """`MARGIN` of what counting reaches on validation, in NDCG@10: what differs by less is level."""
    return MARGIN * holdout.valid(holdout.best_baseline) if holdout.best_baseline else 0.0


def scores_by_cut(holdout: Holdout, label: str) -> np.ndarray:
    """NDCG@10 of a trained system, [S, cuts, users]: by how much it reads, all events last."""
    return np.stack([holdout.read_measured(run)["cuts"] for run in holdout.finished_runs(label)])


# --- how far back does history help? --------------------------------------------------------------------------------------


def _answer_history(holdout: Holdout, questions: dict[str, Question], findings: dict[str, Finding]) -> Section:
    question, best = "How far back does history help?", holdout.best
    if best is None or "history" not in findings:
        return make_section("history", question, UNKNOWN, ["No system was trained, so nothing can be said."])
    cuts, first = cuts_of(holdout.finished_runs(best)[0]), findings["history"]
    each = [first, *answer_in_turn([questions[f"cut {cut}"] for cut in cuts[1:]], first, len(findings))]
    helping = next((at for at, finding in enumerate(each) if finding.answer != "yes"), len(each))  # so many cuts lose something
    compared = f"all that {system_name(best)} reads against the last event alone"
    sentences = [f"{answer_word(first, 'Yes', 'No, it harms', 'Hardly').capitalize()}: {compared}: {numbers_text(first)}."]
    if helping > 1:
        sentences.append(f"Events further back than the last {cuts[helping - 1]} still help: {each[helping - 1].numbers}.")
    if 0 < helping < len(cuts):
        unknown = numbers_text(each[helping])
        sentences.append(f"Whether events further back than the last {cuts[helping]} help is not known: {unknown}.")
    intervals = [Interval.from_values(row) for row in scores_by_cut(holdout, best).mean(0)]
    labels, dataset, users = [*map(str, cuts), "all"], holdout.data, measurements.sample_users(holdout.data)
    lengths = dataset.split_ends("test")[users] - dataset.histories.offsets[users]
    longer = [f"{int((lengths > cut).sum()):,}" for cut in cuts] + [""]
    rows = [
        (label, f"{one.mean:.4f}", f"{one.low:.4f} to {one.high:.4f}", count)
        for label, one, count in zip(labels, intervals, longer, strict=True)
    ]
    chart = make_lines("last events that are read", METRIC, labels, [make_series(system_name(best), intervals)])
    table = make_table(["last events read", METRIC, OVER_USERS, "people who have more"], rows)
    more_sentences, more_parts = _recall_by_gap(holdout)
    return make_section("history", question, first.answer, [*sentences, *more_sentences], chart, table, *more_parts)


def _recall_by_gap(holdout: Holdout) -> tuple[list[str], list[dict[str, Any]]]:
    """Recall by events since the last item of the kind of what came next."""
    dataset = holdout.data
    if not genre_table(dataset.catalog)[0]:
        return ["Of what kind items are is not known (no genres came along), so neither is recall by silence."], []
    gaps = measurements.events_since_alike(dataset)[dataset.users_with_target("test")]
    wanted = (holdout.best, *(own for own, _ in MEMORIES), holdout.best_baseline)
    labels = list(dict.fromkeys(label for label in wanted if label and label in holdout.systems))
    bins = [(gap_name(*edges), (gaps >= edges[0]) & (gaps <= edges[1])) for edges in BINS]
    bins = [(width, users) for width, users in bins if users.sum() >= MIN_AT_GAP]
    if not bins:
        return ["Too few people’s next item is of a kind that they had before: recall by silence is not known."], []
    recall = {label: holdout.values(label, RECALL).mean(0) for label in labels}
    curves = {label: [Interval.from_values(values[users]) for _, users in bins] for label, values in recall.items()}
    rows = [
        (width, f"{int(users.sum()):,}", *(percent_text(curve[at]) for curve in curves.values()))
        for at, (width, users) in enumerate(bins)
    ]
    near, far, first, last = bins[0][0], bins[-1][0], labels[0], labels[-1]
    sentence = (
        f"{system_name(first)} has the next item among its ten for {percent_text(curves[first][0])} of people where the last of "
        f"its kind was {near} event ago. It is {percent_text(curves[first][-1])} where it was {far}; {system_name(last)}, which "
        f"only counts, has {percent_text(curves[last][-1])} there."
    )
    columns = ["events since the last of its kind", "people", *map(system_name, labels)]
    series = [make_series(system_name(label), curve) for label, curve in curves.items()]
    chart = make_lines(columns[0], RECALL, [width for width, _ in bins], series)
    return [sentence] if len(bins) > 1 and len(labels) > 1 else [], [chart, make_table(columns, rows)]


# --- do personal experts pay? ---------------------------------------------------------------------------------------------


def _answer_memory(study: "Study", findings: dict[str, Finding]) -> Section:
    holdout, sentences, answers = study.holdout, list[str](), list[str]()
    for own, shared in MEMORIES:
        if (finding := findings.get(f"{holdout.split} memory {own}")) is None:
            reason = background.why_not_trained(study, holdout, own, shared)
            sentences.append(f"{system_name(own)}: not known, it was not asked ({reason}).")
            continue
        answers.append(finding.answer)
        pace = f"passes over the data in the same time: {holdout.mean_epochs(own):.0f} and {holdout.mean_epochs(shared):.0f}"
        verdict = answer_word(finding, "personal experts pay", "personal experts cost", "personal and shared experts are level")
        sentences.append(f"{system_name(own)}: {verdict}: {numbers_text(finding)}; {pace}.")
    sentences.append("The difference is personal experts minus as many that everybody shares; everything else is alike.")
    return make_section("memory", "Do personal experts pay?", combine_answers(answers), sentences)


# --- which system? --------------------------------------------------------------------------------------------------------


def _answer_systems(study: "Study", findings: dict[str, Finding]) -> Section:
    holdout, costs = study.holdout, study.read_costs()
    best, baseline = holdout.best, holdout.best_baseline
    sentences, finding = [], findings.get(f"{holdout.split} counting")
    if finding is not None and best and baseline:
        verdict = {"yes": "is better than", "no": "is worse than", LEVEL: "is level with"}.get(
            finding.answer, "is behind" if finding.behind else "cannot be told from"
        )
        numbers = numbers_text(finding)
        sentences.append(
            f"Chosen on validation, {system_name(best)} {verdict} {system_name(baseline)}, which only counts: {numbers}."
        )
    reference = baseline if best is None or (finding is not None and finding.behind) else best
    gaps: dict[str, Finding] = {}
    if reference is not None:
        values = {label: holdout.values(label) for label in holdout.systems}
        noise = TrainingNoise.pool_systems(list(values.values()))
        pairs = {
            label: Question(
                values[reference], other, (reference in STUDIED, label in STUDIED), noise, margin=worthwhile_difference(holdout)
            )
            for label, other in values.items()
            if label != reference
        }
        gaps = answer_together(pairs)
        level, unknown = ([label for label, gap in gaps.items() if gap.answer == answer] for answer in (LEVEL, UNKNOWN))
        sentences.append(
            f"Of those that were trained to the end or only count, level with {system_name(reference)}: "
            f"{system_names(level) or 'none of the others'}; cannot be told from it: {system_names(unknown) or 'none'}."
        )
        if timed := [label for label in (reference, *level, *unknown) if label in costs]:
            quickest = min(timed, key=lambda label: costs[label]["median"])
            cost = costs[quickest]
            sentences.append(
                f"The quickest of these is {system_name(quickest)}: an answer takes {1e3 * cost['median']:.2f} ms (middle half "
                f"{1e3 * cost['low']:.2f} to {1e3 * cost['high']:.2f}) after {cost['events']:.0f} events, "
                f"and its numbers {megabytes_text(cost['weights'])}."
            )
    rows, points = [], []
    for label in [*holdout.best_first(holdout.systems), *holdout.best_first(holdout.stopped)]:
        score, label_cost = holdout.mean_of(label), costs.get(label)
        row = [system_name(label), f"{score.mean:.4f}", f"{score.low:.4f} to {score.high:.4f}"]
        row.append(gaps[label].numbers if label in gaps else "")
        if label_cost:
            milliseconds = 1e3 * label_cost["median"]
            row += [f"{milliseconds:.2f}", megabytes_text(label_cost["weights"]), megabytes_text(label_cost["peak"])]
            points.append({"name": system_name(label), "x": milliseconds, "y": score.mean, "low": score.low, "high": score.high})
        else:
            row += ["", "", ""]
        rows.append([*row, holdout.describe_training(label)])
    difference = f"{system_name(reference)} minus it" if reference else "difference"
    columns = ["system", METRIC, OVER_USERS, difference, "ms an answer", "weights", "memory of an answer", "training"]
    chart = make_points("milliseconds an answer (one person, all items scored)", METRIC, points)
    question = "Is a trained system worth it, and which, at which speed and size?"
    answer = finding.answer if finding is not None else UNKNOWN
    return make_section("systems", question, answer, sentences, chart, make_table(columns, rows))


# --- does it hold by time? ------------------------------------------------------------------------------------------------


def _answer_by_time(study: "Study", findings: dict[str, Finding]) -> Section:
    question = "Does it hold by time, when nothing later was learned from?"
    if (holdout := study.holdouts.get("time")) is None:
        why = study.faults.get("time", "it was not asked for (--split)")
        return make_section("time", question, UNKNOWN, [f"Not known: {why}."])
    dataset = holdout.data
    dates = [str(np.datetime64(date, "s").astype("datetime64[D]")) for date in dataset.dates]  # type: ignore[attr-defined]
    users = dataset.users_with_target("test")
    cold = int((dataset.item_counts()[dataset.target_items("test")[users]] == 0).sum())
    sentences = [
        f"Learned from what came before {dates[0]}. {len(users):,} of {study.data.histories.n_users:,} people have events before "
        f"and after {dates[1]}; they were asked for their first after it, which is an item that nobody had by {dates[0]} for "
        f"{share_text(cold, len(users))} of them."
    ]
    answers = []
    for own, _ in MEMORIES:
        if finding := findings.get(f"time memory {own}"):
            answers.append(finding.answer)
            verdict = answer_word(finding, "they pay", "they cost", "level with shared ones")
            sentences.append(f"Personal experts, {system_name(own)}: {verdict}: {numbers_text(finding)}.")
    best, baseline = holdout.best, holdout.best_baseline
    if (finding := findings.get("time counting")) and best and baseline:
        answers.append(finding.answer)
        verdict = answer_word(finding, "better", "worse")
        compared = f"{system_name(best)}, chosen on validation, against {system_name(baseline)}"
        sentences.append(f"{compared}: {verdict}: {numbers_text(finding)}.")
    if best is None:
        sentences.append("All the time went to leave-one-out. By time, only the systems that count were asked.")
    scores = [(label, holdout.mean_of(label)) for label in holdout.best_first(holdout.systems)]
    rows = [(system_name(label), f"{one.mean:.4f}", f"{one.low:.4f} to {one.high:.4f}") for label, one in scores]
    return make_section("time", question, combine_answers(answers), sentences, make_table(["system", METRIC, OVER_USERS], rows))
