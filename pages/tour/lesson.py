"""For the teacher: a plan of two lessons over the tour, and the answers for the run and the person in view, behind a button."""

from typing import NamedTuple

import streamlit as st

from elastic_core.services.keys import search
from elastic_core.services.keys.search import Lesson
from elastic_core.services.person.recommend import reading
from pages.frame import shell
from pages.kit import prose
from pages.tour import worksheet
from pages.tour.steps import STEPS, measured

SAYS = prose.of(__file__)
SHOWN = "class_answers"
TOY = {"keys_q1": 250, "keys_q2": 120, "keys_toy_k": 3}  # the controls of the 4 × 4 on Product keys, as they stand at first


class Part(NamedTuple):
    """Minutes `start` to `end`, the stops that fit into them, and what to ask before the answer is shown."""

    start: int
    end: int
    stops: tuple[int, ...]
    ask: str


PLAN = (
    Part(0, 5, (1,), "Who is this person? Remove one item: how much of the list stays? Then everybody takes another person."),
    Part(5, 18, (2, 3), "On paper: the 4 × 4 of the worksheet. Which squares win? Then: which items voted for which expert?"),
    Part(18, 28, (4,), "Draw 6 items and 2 experts. How many lines there and back (24), how many between all pairs (36)?"),
    Part(28, 33, (7,), "Is the item that is read most also the one that decides most? Find a person for whom it is not."),
    Part(33, 38, (10,), "Which model would you take for which length?"),
    Part(38, 45, (11,), "Is the better one really better, or only lucky? Then read the claims under Evidence together."),
    Part(45, 52, (5,), "With the gate off, what still learns?"),
    Part(52, 58, (6,), "Who uses this expert? How many people would it be by pure chance?"),
    Part(58, 67, (8, 9), "Is the memory used evenly? Which neighbours on the map are not really neighbours?"),
    Part(67, 80, (12,), "Each group changes one thing and trains for 30 seconds. (One training runs, the others wait.)"),
    Part(80, 90, (13,), "Replace an expert for everybody. Is zero in the interval?"),
)


def minutes(stop: int) -> str:
    """Return when a stop has its turn, as `6-16`."""
    part = next(part for part in PLAN if stop in part.stops)
    return f"{part.start}-{part.end}"


@st.dialog("A lesson of 45 minutes, and a second one", width="large")
def show() -> None:
    st.markdown(SAYS("lesson"))
    rows = "\n".join(f"| {part.start}-{part.end} | {_named(part.stops)} | {part.ask} |" for part in PLAN)
    st.markdown(f"| Minutes | Stop of the tour | Ask before you show the answer |\n| --- | --- | --- |\n{rows}")
    if st.toggle("Show the answers", key=SHOWN):
        _answers()


def _named(stops: tuple[int, ...]) -> str:
    return "; ".join(f"{stop} {STEPS[stop - 1].title.rstrip('?')}" for stop in stops)


def _answers() -> None:
    now = shell.context()
    st.markdown(SAYS("answers", run=shell.plain(now.run.name), person=now.user + 1))
    told, bar = [], st.progress(0.0)
    for stop, step in enumerate(STEPS, start=1):
        step = step.about(now.words)
        bar.progress(stop / len(STEPS), f"Stop {stop} of {len(STEPS)}")
        answer = measured(step)
        right = SAYS("none") if answer is None or answer.option is None else f"**{step.options[answer.option]}.**"
        told.append(f"{stop}. {step.question} {right} {shell.plain(answer.reason) if answer else ''}")
    bar.empty()
    st.markdown("\n".join(told))
    lesson = toy()
    st.markdown(SAYS("grid", k=lesson.k))
    st.html(worksheet.grid(lesson, solved=True))


def toy() -> Lesson:
    """Return the 4 × 4 as Product keys shows it now to this visitor."""
    first, second, k = (int(st.session_state.get(key, usual)) for key, usual in TOY.items())
    return search.of_angles(first, second, max(k, 1))


def sheet() -> worksheet.Sheet:
    """Return what a worksheet says of the view that is open."""
    now = shell.context()
    items = reading(now.dataset, now.user).items[-worksheet.LAST :]
    last = tuple(now.dataset.catalog.title(int(item)) for item in items)
    when = tuple(map(minutes, range(1, len(STEPS) + 1)))
    return worksheet.Sheet(now.run.name, now.user + 1, last, when, toy(), now.words)
