"""The answer of a study, from what its folder holds: sections of a question, an answer in a word, sentences with their intervals,
tables and pictures. Plain values, which sheet.py and the app draw. Here: what claims are made of; asides.py has the rest."""

from typing import TYPE_CHECKING, Any

import numpy as np

from elastic_core.data.item_features import genre_table
from elastic_core.memory.gaps import BINS, gap_name
from elastic_core.recipes import MEMORIES, STUDIED
from elastic_core.results.statistics import TrainingNoise
from elastic_core.runs.ranks import Interval
from elastic_core.study import asides, asking
from elastic_core.study.asking import METRIC, RECALL
from elastic_core.study.pieces import (
    UNKNOWN,
    Section,
    lines_part,
    megabytes,
    name,
    numbers_text,
    percent,
    points,
    section,
    series,
    share,
    system_names,
    table_part,
    together,
    word,
)
from elastic_core.study.side import Side, cuts_of
from elastic_core.study.verdicts import Found, Question, judged, onwards

if TYPE_CHECKING:
    from elastic_core.study.conduct import Study

FEW_AT_GAP = 20  # people
OVER_PEOPLE = "95% over people"


def answer(study: "Study") -> dict[str, Any]:
    """Everything that is said, in the order in which it is read."""
    side = study.side
    asked = questions(study)
    found = judged({key: one for key, one in asked.items() if not key.startswith("cut ")})
    sections = [
        asides.data(study), _history(side, asked, found), _memory(study, found), _systems(study, found), _by_time(study, found),
        asides.lists_section(side), asides.power(side, found), asides.upcoming(study, side, found), asides.method_section(study),
    ]  # fmt: skip
    known = sum(one.answer != UNKNOWN for one in found.values())
    headline = (
        f"Of {len(found)} questions that were asked together, {known} can be answered."
        if known
        else "Nothing was found: no question can be answered on these data within this budget."
    )
    return {
        "title": f"Which model for {study.data.label}?", "data": study.data.label, "hash": study.data.hash,
        "minutes": study.asked.minutes, "seconds": round(study.clock.seconds, 1), "protocol": study.protocol,
        "headline": headline, "claims": {key: one.answer for key, one in found.items()}, "sections": sections,
    }  # fmt: skip


def questions(study: "Study") -> dict[str, Question]:
    """Everything that a claim may come of: `history`, `cut N`, and by way of holding out `… memory SYSTEM` and `… counting`."""
    found: dict[str, Question] = {}
    for way, side in study.sides.items():
        luck = TrainingNoise.pool_systems([side.values(label) for label in side.systems])
        for own, shared in MEMORIES:
            if {own, shared} <= set(side.systems):
                sides = side.values(own), side.values(shared)
                found[f"{way} memory {own}"] = Question(*sides, luck=luck, cut=side.still_rising(own))
        best, floor = side.best, side.floor
        if best and floor:
            sides = side.values(best), side.values(floor)
            found[f"{way} counting"] = Question(*sides, (True, False), luck, side.still_rising(best))
    if best := study.side.best:
        kept = {label: cut_values(study.side, label) for label in study.side.trained}
        luck = TrainingNoise.pool_systems([every[:, -1] - every[:, 0] for every in kept.values()])
        for at, cut in enumerate(cuts_of(study.side.runs(best)[0])):
            found["history" if at == 0 else f"cut {cut}"] = Question.of_same(kept[best][:, -1], kept[best][:, at], luck)
    return found


def cut_values(side: Side, label: str) -> np.ndarray:
    """NDCG@10 of a trained system, [S, cuts, people]: by how much it reads, all events last."""
    return np.stack([side.measured(run)["cuts"] for run in side.runs(label)])


def _history(side: Side, asked: dict[str, Question], found: dict[str, Found]) -> Section:
    question, best = "How far back does history help?", side.best
    if best is None or "history" not in found:
        return section("history", question, UNKNOWN, ["No system was trained, so nothing can be said."])
    best_name, cuts = name(best), cuts_of(side.runs(best)[0])
    first = found["history"]
    each = [first, *onwards([asked[f"cut {cut}"] for cut in cuts[1:]], first, len(found))]
    helps = next((at for at, one in enumerate(each) if one.answer != "yes"), len(each))  # so many cuts lose something
    start = f"all that {best_name} reads against the last event alone"
    sentences = [f"{word(first, 'Yes', 'No, it harms').capitalize()}: {start}: {numbers_text(first)}."]
    if helps > 1:
        sentences.append(f"Events further back than the last {cuts[helps - 1]} still help: {each[helps - 1].numbers}.")
    if 0 < helps < len(cuts):
        sentences.append(f"Whether those further back than the last {cuts[helps]} do is not known: {numbers_text(each[helps])}.")
    kept = cut_values(side, best).mean(0)
    labels, scores = [*map(str, cuts), "all"], [Interval.from_values(row) for row in kept]
    data, people = side.data, asking.some_people(side.data)
    lengths = data.split_ends("test")[people] - data.histories.offsets[people]
    longer = [f"{int((lengths > cut).sum()):,}" for cut in cuts] + [""]
    rows = [
        (label, f"{one.mean:.4f}", f"{one.low:.4f} to {one.high:.4f}", more)
        for label, one, more in zip(labels, scores, longer, strict=True)
    ]
    chart = lines_part("last events that are read", METRIC, labels, [series(best_name, scores)])
    cut_table = table_part(["last events read", METRIC, OVER_PEOPLE, "people who have more"], rows)
    said, parts = _gaps(side)
    return section("history", question, first.answer, [*sentences, *said], chart, cut_table, *parts)


def _gaps(side: Side) -> tuple[list[str], list[dict[str, Any]]]:
    """Recall by events since the last item of the kind of what came next."""
    data = side.data
    if not genre_table(data.catalog)[0]:
        return ["Of what kind items are is not known (no genres came along), so neither is recall by silence."], []
    gap = asking.since_alike(data)[data.users_with_target("test")]
    wanted = (side.best, *(own for own, _ in MEMORIES), side.floor)
    some = list(dict.fromkeys(label for label in wanted if label and label in side.systems))
    bins = [(gap_name(*each), (gap >= each[0]) & (gap <= each[1])) for each in BINS]
    bins = [(width, where) for width, where in bins if where.sum() >= FEW_AT_GAP]
    if not bins:
        return ["Too few people’s next item is of a kind that they had before: recall by silence is not known."], []
    found = {label: side.values(label, RECALL).mean(0) for label in some}
    curves = {label: [Interval.from_values(mine[where]) for _, where in bins] for label, mine in found.items()}
    rows = [
        (width, f"{int(where.sum()):,}", *(percent(curve[at]) for curve in curves.values()))
        for at, (width, where) in enumerate(bins)
    ]
    near, far, first, last = bins[0][0], bins[-1][0], some[0], some[-1]
    said = (
        f"{name(first)} has the next item among its ten for {percent(curves[first][0])} of people where the last of its kind "
        f"was {near} event ago. It is {percent(curves[first][-1])} where it was {far}; {name(last)}, which only counts, "
        f"has {percent(curves[last][-1])} there."
    )
    head = ["events since the last of its kind", "people", *map(name, some)]
    chart = lines_part(
        head[0], RECALL, [width for width, _ in bins], [series(name(label), curve) for label, curve in curves.items()]
    )
    return [said] if len(bins) > 1 and len(some) > 1 else [], [chart, table_part(head, rows)]


def _memory(study: "Study", found: dict[str, Found]) -> Section:
    side, sentences, answers = study.side, list[str](), list[str]()
    for own, shared in MEMORIES:
        if (one := found.get(f"{side.way} memory {own}")) is None:
            sentences.append(f"{name(own)}: not known, it was not asked ({asides.why(study, side.way, own, shared)}).")
            continue
        answers.append(one.answer)
        many = f"passes over the data in the same time: {side.passes(own):.0f} and {side.passes(shared):.0f}"
        sentences.append(f"{name(own)}: {word(one, 'they pay', 'they cost')}: {numbers_text(one)}; {many}.")
    sentences.append("Own experts minus as many that everybody shares, everything else alike.")
    return section("memory", "Do experts of one’s own pay?", together(answers), sentences)


def _systems(study: "Study", found: dict[str, Found]) -> Section:
    side, costs = study.side, study.costs()
    best, floor = side.best, side.floor
    sentences, one = [], found.get(f"{side.way} counting")
    if one is not None and best and floor:
        what = {"yes": "is better than", "no": "is worse than"}.get(
            one.answer, "is behind" if one.behind else "cannot be told from"
        )
        sentences.append(f"Chosen on validation, {name(best)} {what} {name(floor)}, which only counts: {numbers_text(one)}.")
    result = one.answer if one is not None else UNKNOWN
    reference = floor if best is None or (one is not None and one.behind) else best
    gaps: dict[str, Found] = {}
    if reference is not None:
        every = {label: side.values(label) for label in side.systems}
        mine, luck = every[reference], TrainingNoise.pool_systems(list(every.values()))
        pairs = {label: Question(mine, of, (reference in STUDIED, label in STUDIED), luck) for label, of in every.items()}
        gaps = judged({label: pair for label, pair in pairs.items() if label != reference})
        level = [reference, *(label for label, gap in gaps.items() if gap.answer == UNKNOWN)]
        sentences.append(f"What cannot be told from {name(reference)}: {system_names(level[1:]) or 'none of the others'}.")
        if timed := [label for label in level if label in costs]:
            quick = min(timed, key=lambda label: costs[label]["median"])
            c = costs[quick]
            sentences.append(
                f"The quickest of these is {name(quick)}: an answer takes {1e3 * c['median']:.2f} ms (the middle half "
                f"{1e3 * c['low']:.2f} to {1e3 * c['high']:.2f}) after {c['events']:.0f} events, "
                f"and its numbers {megabytes(c['weights'])}."
            )
    rows, spots = [], []
    for label in side.best_first():
        score, cost = side.mean_of(label), costs.get(label)
        row = [name(label), f"{score.mean:.4f}", f"{score.low:.4f} to {score.high:.4f}"]
        row.append(gaps[label].numbers if label in gaps else "")
        row += [f"{1e3 * cost['median']:.2f}", megabytes(cost["weights"]), megabytes(cost["peak"])] if cost else ["", "", ""]
        rows.append([*row, side.training(label)])
        if cost:
            x = 1e3 * cost["median"]
            spots.append({"name": name(label), "x": x, "y": score.mean, "low": score.low, "high": score.high})
    minus = f"{name(reference)} minus it" if reference else "difference"
    head = ["system", METRIC, OVER_PEOPLE, minus, "ms an answer", "weights", "memory of an answer", "training"]
    chart = points("milliseconds an answer (one person, all items scored)", METRIC, spots)
    question = "Is a trained system worth it, and which, at which speed and size?"
    return section("systems", question, result, sentences, chart, table_part(head, rows))


def _by_time(study: "Study", found: dict[str, Found]) -> Section:
    question = "Does it hold by time, when nothing later was learned from?"
    if (side := study.sides.get("time")) is None:
        why = study.faults.get("time", "it was not asked for (--split)")
        return section("time", question, UNKNOWN, [f"Not known: {why}."])
    data = side.data
    dates = [str(np.datetime64(date, "s").astype("datetime64[D]")) for date in data.dates]  # type: ignore[attr-defined]
    asked = data.users_with_target("test")
    cold = int((data.item_counts()[data.target_items("test")[asked]] == 0).sum())
    sentences = [
        f"Learned from what came before {dates[0]}. {len(asked):,} of {study.data.histories.n_users:,} people have events before "
        f"and after {dates[1]}; they were asked for their first after it, which is an item that nobody had by {dates[0]} for "
        f"{share(cold, len(asked))} of them."
    ]
    answers = []
    for own, _ in MEMORIES:
        if one := found.get(f"time memory {own}"):
            answers.append(one.answer)
            sentences.append(f"Experts of one’s own, {name(own)}: {word(one, 'they pay', 'they cost')}: {numbers_text(one)}.")
    best, floor = side.best, side.floor
    if (one := found.get("time counting")) and best and floor:
        answers.append(one.answer)
        sentences.append(
            f"{name(best)}, chosen on validation, against {name(floor)}: {word(one, 'better', 'worse')}: {numbers_text(one)}."
        )
    if best is None:
        sentences.append("All the time went to leave-one-out. By time, only the systems that count were asked.")
    scores = [(label, side.mean_of(label)) for label in side.best_first()]
    rows = [(name(label), f"{one.mean:.4f}", f"{one.low:.4f} to {one.high:.4f}") for label, one in scores]
    return section("time", question, together(answers), sentences, table_part(["system", METRIC, OVER_PEOPLE], rows))
