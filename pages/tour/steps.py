"""The guided tour as data: where to go, what to look at, what to do, and a question to bet on before it is measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from elastic_core import comparisons
from elastic_core.errors import InputError
from elastic_core.services.evidence import standings
from elastic_core.services.journey.trace import DRAWN
from elastic_core.services.person.inspect import Words
from elastic_core.services.tour import answers as tour_answers
from elastic_core.services.tour.answers import Answer, TourAsked
from elastic_core.services.traffic.load import EVERYBODY
from pages.frame import shell
from pages.kit import cache, judged

Done = Callable[[Mapping[Any, Any]], bool]


@dataclass(frozen=True)
class Step:
    """One stop. `bound`: what the page's controls are set to on arrival, unless the address says otherwise. `done` reads what the
    visitor has set since. `target`: keys of the control that the task names; the first that is on the page is shown."""

    title: str
    page: str
    text: str
    look: str
    task: str
    done: Done
    question: str
    options: tuple[str, ...]
    answer: Callable[[TourAsked], Answer]
    target: tuple[str, ...]
    bound: Mapping[str, Any] = field(default_factory=dict)
    memory: bool = True  # the answer needs a run that retrieves

    def about(self, words: Words) -> "Step":
        """The same with the names that the data gives its items."""
        names = {"one": words.one, "many": words.many, "a": words.a}
        said = {part: getattr(self, part).format(**names) for part in ("text", "look", "task", "question")}
        return replace(self, **said)


def moved(**usual: object) -> Done:
    """One of these controls stands elsewhere than it usually does."""
    return lambda state: any(state.get(key) not in (None, value) for key, value in usual.items())


def _another_event(state: Mapping[Any, Any]) -> bool:
    """Another event than the newest searches."""
    now, chosen = shell.context(), state.get("keys_event")
    newest = now.dataset.ends("test")[now.user] - now.dataset.histories.offsets[now.user]
    return chosen is not None and not str(chosen).startswith(f"{newest}.")


def _dispatched(state: Mapping[Any, Any]) -> bool:
    """N stands elsewhere than the picture of the dispatcher begins with; its control is named by the longest there may be."""
    drawn = {str(key).removeprefix("jrn_dispatched_"): n for key, n in state.items() if str(key).startswith("jrn_dispatched_")}
    return any(n != min(DRAWN, int(most)) for most, n in drawn.items())


def _second(state: Mapping[Any, Any]) -> bool:
    """Another run than the one Evidence begins with, or another question."""
    return moved(cmp_protocol="full", cmp_metric="NDCG@10", cmp_with=state.get("cmp_first"), vs=None)(state)


def _twin(asked: TourAsked) -> Answer:
    """Against the second run of the sidebar, or else the run that Evidence begins with."""
    now = shell.context()
    runs = standings.comparable(cache.scored(asked.checkpoints), asked.dataset)  # in that page's order
    other = now.other.run if now.other else standings.partner([run for run in runs if run.has_weights], asked.run)
    if other is None or other.name == asked.run.name:
        return Answer(None, "There is no other run on this data here, so nothing was compared. Choose one under “Compare with”.")
    try:
        a, b = comparisons.systems(asked.run, other, cache.scored(asked.checkpoints))
        return tour_answers.better(asked, judged.compared(a, b, "full"), other)
    except InputError as problem:
        return Answer(None, f"Nothing was compared: {problem}.")


STEPS = (
    Step(
        "One person, the whole way",
        "start/page.py",
        "A history finds a few experts. These experts rank all items. (**Paper’s model**, above, switches from our variant to "
        "the original.)",
        "**What comes next**. Gold: what this person really chose.",
        "Press **Remove the last {one}**.",
        lambda state: bool(state.get("start_edits")),
        "Without the newest {one}, how many of the ten suggestions stay?",
        ("All ten", "Five to nine", "Fewer than five"),
        tour_answers.last_event,
        ("start_remove", "start_strip", "start_picture"),
        {"start_edits": "", "handed_edits": None},
        memory=False,
    ),
    Step(
        "Few comparisons, exactly the best",
        "keys/page.py",
        "Each expert’s key is a row part and a column part. Good experts need a good row and a good column.",
        "the work so far, **by halves** and **one by one**.",
        "Press **Next** or **Play** until you are at **Win**.",
        lambda state: state.get("keys_step") in ("Win", "Gather", "Weigh", "Vote"),
        "To find the best k of K experts, how many dot products are needed?",
        ("K long ones", "2√K short ones", "k long ones"),
        tour_answers.comparisons,
        ("keys_picture",),
        {"keys_step": "Split", "keys_query": "4 × 4"},
    ),
    Step(
        "Many searches, one choice",
        "keys/page.py",
        "Every {one} of the history searches like this. Each has one vote and splits it among the experts it finds.",
        "the bars: the most votes beyond the average person’s (in brackets) win.",
        "Choose another {one} under **Which {one} searches?**",
        _another_event,
        "This person’s experts win. How many of all votes do they have together?",
        ("Less than a third", "A third to two thirds", "More than two thirds"),
        tour_answers.votes_won,
        ("keys_event", "keys_tally", "keys_picture"),
        {"keys_step": "Vote", "keys_query": "This person"},
    ),
    Step(
        "There and back: the dispatcher",
        "journey/page.py",
        "**Aggregate**: each expert mixes the vectors of the {many} that fit it. **Dispatch**: each {one} takes from the experts "
        "what helps to guess the next one. **A tiny example**, below, has every number.",
        "the two pictures: lines through the experts, and between all pairs.",
        "Point at an expert, then at {a} on the right. Then move the slider **N**.",
        _dispatched,
        "With N {many} and k experts, how many lines does this take?",
        ("N × N", "2 × N × k", "k × k"),
        tour_answers.dispatched,
        ("jrn_dispatched", "jrn_dispatcher"),
        {"jrn_part": "The dispatcher", "jrn_edits": "", "handed_edits": None},
    ),
    Step(
        "How keys learn",
        "keys/page.py",
        "After the search, each expert is multiplied by its share. This is the **gate**: through it training reaches the keys. "
        "(If you do not know *gradients*, skip this stop.)",
        "the table: what can learn, and what cannot (exactly 0).",
        "Switch **Gate** off.",
        lambda state: state.get("keys_gate") is False,
        "Without the gate, how much can the keys learn?",
        ("As much as before", "Nothing", "Half as much"),
        tour_answers.starved,
        ("keys_gate",),
        {"keys_part": "Gate"},
    ),
    Step(
        "Used by many, or by few?",
        "experts/page.py",
        "Some experts are used by many people, some by few. But pure chance makes a difference, too.",
        "**Who uses it?**",
        "Go to another expert: press **Next**.",
        lambda state: state.get("expert") is not None,
        "Compared with pure chance, how many people use this person’s strongest expert?",
        ("More", "About as many", "Fewer"),
        tour_answers.whose,
        ("exp_go_Next",),
        {"expert": None, "exp_part": "People"},
    ),
    Step(
        "Read most, or most decisive?",
        "journey/page.py",
        "The model reads some {many} more than others (*attention*). Removing one shows what really changes the list.",
        "**What matters?**, below.",
        "Press **Remove the last {one}**, or **Add {a}**.",
        lambda state: bool(state.get("jrn_edits")) or bool(st.query_params.get("jrn_edits")),
        "Is the {one} read most also the one whose removal changes most?",
        ("Yes", "No, another"),
        tour_answers.looked_at_or_decisive,
        ("jrn_last",),
        {  # the answer names two of them, by their numbers
            "jrn_part": "What matters?",
            "jrn_edits": "",
            "handed_edits": None,
            "jrn_for": "what came next",
            "jrn_show": "all, latest first",
        },
        memory=False,
    ),
    Step(
        "Is the memory in use?",
        "traffic/page.py",
        "All experts together are the **memory**. If all people use the same few, the others are wasted. But pure chance "
        "is never even.",
        "the grey band in the first chart: pure chance.",
        "Change **Count** or **People**.",
        moved(trf_measure="people", trf_group=EVERYBODY),
        "By pure chance, how many experts would have no users?",
        ("Almost none", "About a tenth", "About half"),
        tour_answers.unused_by_chance,
        ("trf_measure",),
        {"trf_measure": "people"},
    ),
    Step(
        "Do not trust a map",
        "map/page.py",
        "An expert has many numbers, its place on a map only two. So a map cannot keep all distances.",
        "which experts are nearest in truth, and on the map.",
        "Click a mark. (Or type a number into **Expert**, under **More** on the left.)",
        lambda state: state.get("expert") is not None,
        "How many of an expert’s nearest neighbours does this map keep?",
        ("Nearly all", "More than half", "Fewer than half"),
        tour_answers.map_keeps,
        ("map_chart",),
        {"map_layout": "pca", "expert": None},
    ),
    Step(
        "When is ELASTIC faster?",
        "speed/page.py",
        "SASRec is a well-known recommender: every event looks at every other one. With twice the history, it takes up to four "
        "times as long, ELASTIC twice as long. But each of ELASTIC’s lines costs more: fewer lines are not faster at once.",
        "the sentences under the picture.",
        "Choose another part of the page, for example **One new event**.",
        moved(spd_part="Reading a history"),
        "At which lengths is ELASTIC faster than SASRec?",
        ("At every length", "At some lengths", "Nowhere"),
        tour_answers.faster_when,
        ("spd_part",),
        {"spd_part": "Reading a history"},
        memory=False,
    ),
    Step(
        "Better, or lucky?",
        "evidence/page.py",
        "Two averages always differ. Could it be chance?",
        "the **difference** and its **95% interval**.",
        "Choose another **Protocol**, **Metric** or **run**.",
        _second,
        "Is the run chosen on the left better than the one under **Compare with**, beyond chance?",
        ("Yes, better", "Cannot be told", "No, worse"),
        _twin,
        ("cmp_with", "cmp_metric"),
        {"ev_depth": "Two runs"},
        memory=False,
    ),
    Step(
        "Train one yourself",
        "train/page.py",
        "Change one thing and train. It goes on when you leave the page.",
        "the blue box: how long it takes on this machine.",
        "Choose another **Time** or **Model**, or **Start training**.",
        moved(train_time="2 min", train_model="ELASTIC", train_how="A preset"),
        "Two runs differ only in their random seed. Do they score the same?",
        ("Yes", "No"),
        tour_answers.seeds,
        ("train_time",),
        memory=False,
    ),
    Step(
        "Change the model’s mind",
        "experts/page.py",
        "Replace an expert by another one, for everybody who uses it.",
        "the interval. With zero in it, the effect is not clear.",
        "Type a number into **Put this expert in its place**, or press **Another at random**.",
        lambda state: state.get("exp_swap") is not None,
        "If a random expert replaces the strongest one, do the lists change by more than luck (in NDCG@10)?",
        ("Yes", "Cannot be told"),
        tour_answers.swapped,
        ("exp_swap",),
        {"exp_part": "Remove or swap", "expert": None},
    ),
)
