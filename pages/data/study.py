"""The fourth part of the Data page: a study of what pays on chosen data, in the background, and its answer."""

from typing import Any

import streamlit as st

from elastic_core.jobs.job_kinds import Studies
from elastic_core.jobs.queue import Job
from elastic_core.run_config import DataConfig
from elastic_core.study.page import render_page
from elastic_core.study.request import StudyRequest
from pages.components import job_bar, page_context, page_elements, page_text
from pages.components.controls import number_input, place_button
from pages.data import charts

COLOURS = {"yes": "green", "no": "red", "level": "blue"}
MINUTES = 30
PART = "Which model for these data?"
TEXT = page_text.load_page_text(__file__)
PICTURE = TEXT.chart_text("PICTURE")


def show_study() -> None:
    st.write(TEXT("study"))
    choices = page_context.data_choices()
    data_place, time_place = st.columns([3, 1], vertical_alignment="bottom")
    data = choices[data_place.selectbox("Data to study", list(choices), key="dat_study")]
    minutes = float(number_input("Minutes", 1, 600, MINUTES, 5, key="dat_minutes", place=time_place, help="For the whole study"))
    queue = Studies(page_context.RUNS)
    last = queue.latest_study(data)
    _offer_study(queue, last, data, minutes)
    request = last.request if last is not None else StudyRequest(data, minutes)
    if (answer := queue.read_answer(request)) is not None:
        _show_answer(answer)


def _offer_study(queue: Studies, last: Job[StudyRequest] | None, data: DataConfig, minutes: float) -> None:
    """The button, or the bar while a study of these data runs, and what can be done with one that ended early."""
    if last is not None and last.state in ("interrupted", "stopped") and not page_context.is_switched_off(queue.act):
        with page_elements.place_in_row():
            st.warning("The last study of these data ended before it was done. What it found is kept.")
            place_button("Go on", "dat_study_on", job_bar.call_queue, queue, "resume", last.id, type="primary")
        job_bar.show_refusal(queue)
        return
    job_bar.offer_job(
        queue, last, (data, minutes), "dat_study_ask",
        "It runs in the background. You may leave the page. If the machine stops, it goes on after the next start.",
        "Study these data", f"About {minutes:g} minutes on one core",
    )  # fmt: skip


def _show_answer(answer: dict[str, Any]) -> None:
    page_elements.show_heading(page_context.escape_markdown(answer["title"]))
    st.write(page_context.escape_markdown(answer["headline"]))
    st.download_button(
        "The page (HTML)", lambda: render_page(answer), "study.html", "text/html", key="dat_study_page", on_click="ignore",
        icon=":material/download:", help="One file to keep, to send or to print",
    )  # fmt: skip
    for section in answer["sections"]:
        word = section["answer"]
        badge = f" :{COLOURS.get(word, 'gray')}-badge[{page_context.escape_markdown(word)}]" if word else ""
        st.markdown(f"#### {page_context.escape_markdown(section['question'])}{badge}")
        for sentence in section["sentences"]:
            st.write(page_context.escape_markdown(sentence))
        for i, each in enumerate(section["parts"]):
            key, frame = f"dat_study_{section['key']}_{i}", charts.study_table(each)
            if each["kind"] == "table":
                page_elements.show_table(key, frame, None, f"{section['question']} As a table.")
            else:
                alt = f"{each['y_title']} by {each['x_title']}, with intervals"
                page_elements.show_chart(key, charts.draw_study(each, page_context.theme_palette()), frame, PICTURE, alt)
