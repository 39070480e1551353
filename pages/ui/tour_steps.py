"""The guided tour as data: where to go, what to look at, what to do, and a question to bet on before it is measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from elastic_core.runs import Run
from elastic_core.services import tour_answers
from elastic_core.services.tour_answers import Answer, Asked
from pages.ui import cache_compare, shell

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


def touched(key: str, unlike: object) -> Done:
    """The control stands, and elsewhere than where the step put it."""
    return lambda state: state.get(key) is not None and state.get(key) != unlike


def _twin(asked: Asked) -> Answer:
    """Against the second run of the sidebar, or else the run's SASRec twin."""
    now = shell.context()
    other = now.other or Run(asked.checkpoints / asked.run.name.replace("elastic", "sasrec"))
    if not (other.path / "config.json").is_file() or other.name == asked.run.name:
        return Answer(1, "There is no SASRec run on this data here, so nothing was compared. Choose one under “Compare with”.")
    with st.spinner("Ranking everybody’s next film under both runs …"):
        a, b = (cache_compare.judged(run, asked.dataset, lambda name, share: None) for run in (asked.run, other))
    return tour_answers.better(asked, a, b, other.name)


STEPS = (
    Step(
        "One person, the whole way",
        "pages/learn/start.py",
        "A history becomes a query, the query summons a few experts out of many, and through them everything is ranked.",
        "the ten covers on the right. The golden one is what this person really chose next; the model was not shown it.",
        "Press **Remove the last film** and see the list answer.",
        lambda state: bool(state.get("start_edits")),
        "Only the last event is forgotten. How many of the ten suggestions stay?",
        ("All ten", "Five to nine", "Fewer than five"),
        tour_answers.last_event,
        memory=False,
    ),
    Step(
        "Few comparisons, exactly the best",
        "pages/learn/product_keys.py",
        "Each expert’s key is a row sub-key and a column sub-key. A query scores rows and columns apart: only the best of each "
        "can win together.",
        "the counter above the steps, and what it would be without product keys.",
        "Walk on with **Next** to the step **Win**.",
        lambda state: state.get("keys_step") in ("Win", "Gather", "Weigh"),
        "For K experts in a square grid, how many comparisons with keys does the search need?",
        ("K", "2√K, of half the length", "k"),
        tour_answers.comparisons,
        {"keys_step": "Split", "keys_query": "This person"},
    ),
    Step(
        "Why the scores must stay",
        "pages/learn/product_keys.py",
        "The paper’s Algorithm 1 looks experts up by their scores and then drops the scores. A number that no longer matters for "
        "the result cannot learn.",
        "the table of gradients under **Gate**, at the lower end of the page.",
        "Switch **Gate on** off.",
        lambda state: state.get("keys_gate") is False,
        "Without the gate, what becomes of the gradient of query network and sub-keys?",
        ("It stays", "It is exactly zero", "It is halved"),
        tour_answers.starved,
        {"keys_part": "Gate"},
    ),
    Step(
        "Hot for everyone, or theirs?",
        "pages/explore/experts.py",
        "Each expert has a page of its own: who summons it, what it promotes, and whether it matters.",
        "the cards under the title: its load, and the band that a random router would give.",
        "Go to another expert with **Next**, or type a number into **Expert** on the left.",
        lambda state: state.get("expert") is not None,
        "This person’s strongest expert: is it busier than an average one?",
        ("Yes, busier", "No"),
        tour_answers.own_or_common,
    ),
    Step(
        "Looked at is not decisive",
        "pages/explore/journey.py",
        "Attention says where the model looked. What would have changed its mind is another question, and removal answers it.",
        "the list of events with attention and effect side by side.",
        "Change the history: take an event out, or add one.",
        lambda state: bool(state.get("jrn_edits")) or bool(st.query_params.get("jrn_edits")),
        "Is the event that is read the most also the one whose removal matters most for what they chose next?",
        ("Yes, the same", "No, another"),
        tour_answers.looked_at_or_decisive,
        memory=False,
    ),
    Step(
        "Is the memory alive?",
        "pages/explore/traffic.py",
        "A memory of which only a corner is used is an expensive vector. And chance alone makes some experts busier.",
        "the band of a random router behind the load.",
        "Change **what is counted** from people to weight, or look at another group of people.",
        lambda state: touched("trf_measure", state.get("tour_trf_measure"))(state),
        "If experts were drawn at random, how many would nobody summon?",
        ("Almost none", "One in ten or so", "About half"),
        tour_answers.unused_by_chance,
    ),
    Step(
        "Do not trust a map",
        "pages/explore/memory_map.py",
        "Sixty-four numbers squeezed into two cannot keep all distances. The page says how much is lost.",
        "the neighbours in the original space beside those on the map.",
        "Choose an expert on the map or on the left.",
        lambda state: state.get("expert") is not None,
        "How many of an expert’s five nearest neighbours does the flat PCA map keep?",
        ("Four or five", "Two to four", "Fewer than two"),
        tour_answers.map_keeps,
    ),
    Step(
        "When is linear faster?",
        "pages/judge/speed.py",
        "ELASTIC costs O(N·k), SASRec O(N²); but torch’s own attention is very fast, and short histories are short.",
        "the lengths where SASRec wins; they are not hidden.",
        "Change the view, or look at another measure.",
        lambda state: True,
        "Shipped measurement, two cores: against SASRec with fused attention, where is ELASTIC faster?",
        ("At every length", "At some lengths", "Nowhere"),
        tour_answers.faster_when,
        memory=False,
    ),
    Step(
        "Better, or lucky?",
        "pages/judge/compare.py",
        "Two averages always differ. Paired over people, with an interval, the difference says whether it could be chance.",
        "the paired difference and its interval.",
        "Choose a second run, on the page or under **Compare with**.",
        lambda state: state.get("vs") is not None,
        "Is this run better than its SASRec twin by more than chance explains?",
        ("Yes, better", "Cannot be told", "No, worse"),
        _twin,
        memory=False,
    ),
    Step(
        "Train one yourself",
        "pages/build/train.py",
        "Change one thing and train it here. It goes on when you leave. Your own file comes in on the page **Data**.",
        "the estimate beside the button: it is measured on this machine.",
        "Choose a time, or **Start training** if you can wait.",
        lambda state: True,
        "Two runs differ only in their seed. Do they score the same?",
        ("Yes", "No"),
        tour_answers.seeds,
        memory=False,
    ),
    Step(
        "Change the model’s mind",
        "pages/explore/experts.py",
        "The last act: put another expert in its place, for everybody who summons it, and see what it does to them.",
        "the interval around the change. If it includes zero, the swap cannot be told from nothing.",
        "Type a number into **Put in its place expert**, or draw **Another at random**.",
        lambda state: state.get("exp_swap") is not None,
        "The strongest expert replaced by one drawn at random: does NDCG@10 change by more than chance explains?",
        ("Yes", "No"),
        tour_answers.swapped,
        {"exp_part": "Remove or swap", "expert": None},
    ),
)
