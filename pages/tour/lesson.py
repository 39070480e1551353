"""For the teacher: a plan of two lessons over the tour, and the answers for the run and the person in view, behind a button."""

from typing import NamedTuple

import streamlit as st

from elastic_core.services.keys.search import Lesson
from elastic_core.services.person.recommend import user_history
from pages.components import cache, page_context, page_text
from pages.tour import worksheet
from pages.tour.steps import STEPS, measured

TEXT = page_text.load_page_text(__file__)
SHOWN = "class_answers"
TOY = {"keys_q1": 250, "keys_q2": 120, "keys_toy_k": 3}  # the controls of the 4 × 4 on Product keys, as they stand at first


class Part(NamedTuple):
    """Minutes `start` to `end`, the stops that fit into them, and what to ask before the answer is shown."""

    start: int
    end: int
    stops: tuple[int, ...]
    ask: str


PLAN = tuple(
    Part(*map(int, when.split("-")), tuple(map(int, stops.split(", "))), ask)
    for when, (stops, ask) in TEXT.named_paragraphs("plan").items()
)


def minutes(stop: int) -> str:
    """Return when a stop has its turn, as `6-16`."""
    part = next(part for part in PLAN if stop in part.stops)
    return f"{part.start}-{part.end}"


@st.dialog("A lesson of 45 minutes, and a second one", width="large")
def show() -> None:
    st.markdown(TEXT("lesson"))
    rows = "\n".join(f"| {part.start}-{part.end} | {_named(part.stops)} | {part.ask} |" for part in PLAN)
    st.markdown(f"| Minutes | Stop of the tour | Ask before you show the answer |\n| --- | --- | --- |\n{rows}")
    if st.toggle("Show the answers", key=SHOWN):
        _answers()


def _named(stops: tuple[int, ...]) -> str:
    return "; ".join(f"{stop} {STEPS[stop - 1].title.rstrip('?')}" for stop in stops)


def _answers() -> None:
    now = page_context.require_context()
    st.markdown(TEXT("answers", run=page_context.escape_markdown(now.run.name), person=now.user + 1))
    told, bar = [], st.progress(0.0)
    for stop, step in enumerate(STEPS, start=1):
        step = step.about(now.item_words)
        bar.progress(stop / len(STEPS), f"Stop {stop} of {len(STEPS)}")
        answer = measured(step)
        right = TEXT("none") if answer is None or answer.option is None else f"**{step.options[answer.option]}.**"
        told.append(f"{stop}. {step.question} {right} {page_context.escape_markdown(answer.reason) if answer else ''}")
    bar.empty()
    st.markdown("\n".join(told))
    lesson = toy()
    st.markdown(TEXT("grid", k=lesson.k))
    st.html(worksheet.grid(lesson, solved=True))


def toy() -> Lesson:
    """Return the 4 × 4 as Product keys shows it now to this visitor."""
    first, second, k = (int(st.session_state.get(key, usual)) for key, usual in TOY.items())
    return cache.lesson_of_angles(first, second, max(k, 1))


def sheet() -> worksheet.Sheet:
    """Return what a worksheet says of the view that is open."""
    now = page_context.require_context()
    items = user_history(now.dataset, now.user).items[-worksheet.LAST :]
    last = tuple(now.dataset.catalog.title(int(item)) for item in items)
    when = tuple(map(minutes, range(1, len(STEPS) + 1)))
    return worksheet.Sheet(now.run.name, now.user + 1, last, when, toy(), now.item_words)
