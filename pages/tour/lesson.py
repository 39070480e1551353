"""For the teacher: a plan of two lessons over the tour, and the answers for the run and the person in view, behind a button."""

from typing import NamedTuple

import streamlit as st

from elastic_core.services.keys.search import Lesson
from elastic_core.services.person.recommend import user_history
from pages.components import cache, page_context, page_text
from pages.tour import worksheet
from pages.tour.steps import STEPS, fill_words, measure_answer

TEXT = page_text.load_page_text(__file__)
ANSWERS_SHOWN = "class_answers"
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


def minutes_of_stop(stop: int) -> str:
    """Return when a stop has its turn, as `6-16`."""
    part = next(part for part in PLAN if stop in part.stops)
    return f"{part.start}-{part.end}"


@st.dialog("A lesson of 45 minutes, and a second one", width="large")
def show_lesson() -> None:
    st.markdown(TEXT("lesson"))
    rows = "\n".join(f"| {part.start}-{part.end} | {_name_stops(part.stops)} | {part.ask} |" for part in PLAN)
    st.markdown(f"| Minutes | Stop of the tour | Ask before you show the answer |\n| --- | --- | --- |\n{rows}")
    if st.toggle("Show the answers", key=ANSWERS_SHOWN):
        _show_answers()


def _name_stops(stops: tuple[int, ...]) -> str:
    return "; ".join(f"{stop} {STEPS[stop - 1].title.rstrip('?')}" for stop in stops)


def _show_answers() -> None:
    context = page_context.require_context()
    st.markdown(TEXT("answers", run=page_context.escape_markdown(context.run.name), person=context.user + 1))
    lines, bar = [], st.progress(0.0)
    for stop, step in enumerate(STEPS, start=1):
        step = fill_words(step)
        bar.progress(stop / len(STEPS), f"Stop {stop} of {len(STEPS)}")
        answer = measure_answer(step)
        right = TEXT("none") if answer is None or answer.option is None else f"**{step.options[answer.option]}.**"
        lines.append(f"{stop}. {step.question} {right} {page_context.escape_markdown(answer.reason) if answer else ''}")
    bar.empty()
    st.markdown("\n".join(lines))
    lesson = toy_lesson()
    st.markdown(TEXT("grid", k=lesson.k))
    st.html(worksheet.grid_html(lesson, with_solution=True))


def toy_lesson() -> Lesson:
    """Return the 4 × 4 as Product keys shows it now to this visitor."""
    first, second, k = (int(st.session_state.get(key, usual)) for key, usual in TOY.items())
    return cache.lesson_of_angles(first, second, max(k, 1))


def fill_worksheet() -> worksheet.Worksheet:
    """Return what a worksheet says of the view that is open."""
    context = page_context.require_context()
    items = user_history(context.dataset, context.user).items[-worksheet.LAST :]
    titles = tuple(context.dataset.catalog.title(int(item)) for item in items)
    minutes = tuple(map(minutes_of_stop, range(1, len(STEPS) + 1)))
    return worksheet.Worksheet(context.run.name, context.user + 1, titles, minutes, toy_lesson(), context.item_words)
