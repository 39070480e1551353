"""The guided tour as data: where to go, what to look at, what to do, and a question to bet on before it is measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from elastic_core import comparisons
from elastic_core.errors import InputError
from elastic_core.runs import Run, list_runs
from elastic_core.services.compare import standings
from elastic_core.services.tour import answers as tour_answers
from elastic_core.services.tour.answers import Answer, Asked
from elastic_core.services.traffic.load import EVERYBODY
from pages.frame import shell
from pages.kit import judged

Done = Callable[[Mapping[Any, Any]], bool]


@dataclass(frozen=True)
class Step:
    """One stop. `bound`: what the page's controls are set to on arrival. `done` reads what the visitor has set since."""

    title: str
    page: str
    text: str
    look: str
    task: str
    done: Done
    question: str
    options: tuple[str, ...]
    answer: Callable[[Asked], Answer]
    bound: Mapping[str, Any] = field(default_factory=dict)
    memory: bool = True  # the answer needs a run that retrieves


def moved(**usual: object) -> Done:
    """One of these controls stands elsewhere than it usually does."""
    return lambda state: any(state.get(key) not in (None, value) for key, value in usual.items())


def _second(state: Mapping[Any, Any]) -> bool:
    """Another run than the one the Compare page begins with, or another question."""
    return moved(cmp_protocol="full", cmp_metric="NDCG@10", cmp_with=state.get("cmp_first"), vs=None)(state)


def _twin(asked: Asked) -> Answer:
    """Against the second run of the sidebar, or else the run that the Compare page begins with."""
    now = shell.context()
    other = now.other or standings.partner(_tested_on_the_same_data(asked), asked.run)
    if other is None or other.name == asked.run.name:
        return Answer(None, "There is no other run on this data here, so nothing was compared. Choose one under “Compare with”.")
    try:
        a, b = comparisons.systems(asked.run, other, list_runs(asked.checkpoints))
        return tour_answers.better(asked, judged.compared(a, b, "full"), other.name)
    except InputError as problem:
        return Answer(None, f"Nothing was compared: {problem}.")


def _tested_on_the_same_data(asked: Asked) -> list[Run]:
    runs = [run for run in list_runs(asked.checkpoints) if run.last("test") is not None]
    return [run for run in runs if (run.last("start") or {}).get("data_hash") == asked.dataset.hash]


STEPS = (
    Step(
        "One person, the whole way",
        "start/page.py",
        "A history becomes a query, the query retrieves a few experts out of many, and through them everything is ranked.",
        "the ten covers under **What comes next**. The golden one is what this person really chose next; the model was not "
        "shown it.",
        "Press **Remove the last film** (or item) and see the list answer.",
        lambda state: bool(state.get("start_edits")),
        "Only the last one of the history is forgotten. How many of the ten suggestions stay?",
        ("All ten", "Five to nine", "Fewer than five"),
        tour_answers.last_event,
        memory=False,
    ),
    Step(
        "Few comparisons, exactly the best",
        "keys/page.py",
        "Each expert’s key is a row sub-key and a column sub-key. A query scores rows and columns apart: only the best of each "
        "can win together.",
        "the counter below the names of the steps: **Multiplications so far**, and what **Comparing every key** would take.",
        "Walk on with **Next** to the step **Win**.",
        lambda state: state.get("keys_step") in ("Win", "Gather", "Weigh"),
        "For K experts in a square grid, how many comparisons with keys does the search need?",
        ("K", "2√K, of half the length", "k"),
        tour_answers.comparisons,
        {"keys_step": "Split", "keys_query": "This person"},
    ),
    Step(
        "Why the scores must stay",
        "keys/page.py",
        "The paper’s Algorithm 1 looks experts up by their scores and then drops the scores. A number that no longer matters for "
        "the result cannot learn.",
        "the table of gradients under **Look closer**, part **Gate**, at the lower end of the page.",
        "Switch **Gate on** off.",
        lambda state: state.get("keys_gate") is False,
        "Without the gate, what becomes of the gradient (the push to learn) of query network and sub-keys?",
        ("It stays", "It is exactly zero", "It is halved"),
        tour_answers.starved,
        {"keys_part": "Gate"},
    ),
    Step(
        "Hot for everyone, or theirs?",
        "experts/page.py",
        "Each expert has a page of its own: who retrieves it, what it promotes, and whether it matters.",
        "the card **Who retrieves it?**: how many people do, and how many a router that picks at random would send.",
        "Go to another expert with **Next**, or type a number into **Expert** on the left.",
        lambda state: state.get("expert") is not None,
        "This person’s strongest expert: hot for everyone, shared, or theirs?",
        ("Hot for everyone", "Shared", "Theirs"),
        tour_answers.whose,
        {"expert": None, "exp_part": "People"},
    ),
    Step(
        "Looked at is not decisive",
        "journey/page.py",
        "Attention says where the model looked. What would have changed its mind is another question, and removal answers it.",
        "the chart under **Which films are behind it?** (or items): what taking each one away does, and attention beside it.",
        "Change the history: press **Remove the last film**, or **Add a film**.",
        lambda state: bool(state.get("jrn_edits")) or bool(st.query_params.get("jrn_edits")),
        "Is the one that is read the most also the one whose removal matters most for what they chose next?",
        ("Yes, the same", "No, another"),
        tour_answers.looked_at_or_decisive,
        {"jrn_for": "what came next", "jrn_show": "all, latest first"},  # the answer names two of them, by their numbers
        memory=False,
    ),
    Step(
        "Is the memory alive?",
        "traffic/page.py",
        "A memory of which only a corner is used is an expensive vector. And chance alone makes some experts busier.",
        "the grey band behind the bars of **Load of every expert**: what a router that picks at random would give.",
        "Change **Count** from people to **Gate-weighted**, or choose another group under **People**.",
        moved(trf_measure="people", trf_group=EVERYBODY),
        "If experts were drawn at random, how many would nobody retrieve?",
        ("Almost none", "One in ten or so", "About half"),
        tour_answers.unused_by_chance,
        {"trf_measure": "people"},
    ),
    Step(
        "Do not trust a map",
        "map/page.py",
        "An expert is a long row of numbers. Squeezed into two, they cannot keep all distances; the page says how much is lost.",
        "the table beside the map: the nearest experts in truth, and the nearest on the map.",
        "Choose an expert: click a mark on the map, or type a number into **Expert** on the left.",
        lambda state: state.get("expert") is not None,
        "How many of an expert’s nearest neighbours does the flat PCA map keep?",
        ("Nearly all", "More than half", "Fewer than half"),
        tour_answers.map_keeps,
        {"map_layout": "pca", "expert": None},
    ),
    Step(
        "When is linear faster?",
        "speed/page.py",
        "ELASTIC’s cost grows with the length N of a history, SASRec’s with its square. But fused attention is very fast, and "
        "most histories are short.",
        "the two sentences under the controls: at which lengths SASRec wins, and where the lines cross.",
        "Change the **View**, for example to **One new event**.",
        moved(spd_part="Reading a history"),
        "Shipped measurement: against SASRec with fused attention, at which lengths is ELASTIC faster?",
        ("At every length", "At some lengths", "Nowhere"),
        tour_answers.faster_when,
        {"spd_part": "Reading a history"},
        memory=False,
    ),
    Step(
        "Better, or lucky?",
        "compare/page.py",
        "Two averages always differ. Paired over people, with an interval, the difference says whether it could be chance.",
        "the numbers under the verdict: **A − B** and its **95% interval**.",
        "Ask it otherwise: another **Protocol**, another **Metric**, or another run as **B**.",
        _second,
        "Is this run better than its SASRec twin by more than chance explains?",
        ("Yes, better", "Cannot be told", "No, worse"),
        _twin,
        memory=False,
    ),
    Step(
        "Train one yourself",
        "train/page.py",
        "Change one thing and train it here. It goes on when you leave. Your own file comes in on the page **Data**.",
        "the blue estimate above **Start training**: it is measured on this machine.",
        "Choose another **Time** or **Model** and see the estimate change; **Start training** if you can wait.",
        moved(train_time="2 min", train_model="ELASTIC", train_how="A preset"),
        "Two runs differ only in their seed. Do they score the same?",
        ("Yes", "No"),
        tour_answers.seeds,
        memory=False,
    ),
    Step(
        "Change the model’s mind",
        "experts/page.py",
        "The last act: put another expert in its place, for everybody who retrieves it, and see what it does to them.",
        "the interval around the change. If it includes zero, the swap cannot be told from nothing.",
        "Type a number into **Put in its place expert**, or draw **Another at random**.",
        lambda state: state.get("exp_swap") is not None,
        "The strongest expert replaced by one drawn at random: does NDCG@10 change by more than chance explains?",
        ("Yes", "No"),
        tour_answers.swapped,
        {"exp_part": "Remove or swap", "expert": None},
    ),
)
