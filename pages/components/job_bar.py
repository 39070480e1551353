"""Jobs that pages ask for: the button, and the bar while one runs, for all who look. They are drawn again by themselves; the page
is drawn anew once when one is over, and shows what it found."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.jobs.queue import Job, Queue, start_next, worker_alive
from elastic_core.services import public
from elastic_core.services.durations import format_clock
from pages.components import page_context, page_elements
from pages.components.controls import place_button

REFRESH_SECONDS = 1.5  # seconds; each redraw takes time from what is computed


def call_queue(queue: Queue[Any], what: str, *arguments: object) -> bool:
    """A button's callback: submit, stop, resume or discard. False: it was refused, and `show_refusal` says why."""
    try:
        getattr(queue, what)(*arguments)
    except InputError as error:
        st.session_state[_problem_key(queue)] = str(error)
        return False
    st.session_state.pop(_problem_key(queue), None)
    return True


def show_refusal(queue: Queue[Any]) -> None:
    """Why what was last asked for cannot be, if it cannot."""
    if problem := st.session_state.get(_problem_key(queue)):
        st.error(f"{page_context.escape_markdown(problem[:1].upper() + problem[1:])}.")


def start_next_job(queue: Queue[Any]) -> str:
    """Lets the queue go on; why it cannot, if it cannot."""
    try:
        start_next(queue.root)
    except InputError as error:
        return str(error)
    return ""


def describe_stage(queue: Queue[Any], job: Job[Any]) -> str:
    """What a job is at, for the text of a bar."""
    if job.state == "queued":
        return "Waiting for its turn" if worker_alive(queue.folder) else "Starting a process …"
    if job.stopping:
        return "Stopping …"
    return f"{page_context.escape_markdown(job.text or 'Reading what it needs')} · {format_clock(job.seconds)}"


def show_bars(queue: Queue[Any], jobs: Sequence[Job[Any]], key: str, title: Callable[[Any], str] = lambda job: "") -> None:
    """Bars of those that are not over; `title` says in Markdown which one it is."""
    active = tuple(job.id for job in jobs if job.active)
    if active:
        st.fragment(_draw_bars, run_every=REFRESH_SECONDS, key=key)(queue, active, key, title)


def offer_job(
    queue: Queue[Any], last: Job[Any] | None, arguments: tuple[object, ...], key: str, caption: str, label: str, help: str
) -> None:
    """The button that asks for `submit(*given)`; while `last`, somebody's, is not over its bar, and after it what went wrong."""
    if last is not None and last.active:
        show_bars(queue, [last], f"{key}_watch")
        return
    if last is not None and last.state == "finished" and st.session_state.get(f"{key}_over") != last.id:
        st.session_state[f"{key}_over"] = last.id  # it may have ended while this page was drawn: look for its result once more
        st.rerun()
    if last is not None and last.state == "failed":
        st.error(f"The last try failed: {page_context.escape_markdown(last.reason)}")
    elif last is not None and last.state == "interrupted":
        st.warning("The last try was interrupted (its process ended suddenly).")
    with page_elements.place_in_row():
        st.caption(caption, width="stretch")
        if not page_context.is_switched_off(queue.act):
            place_button(label, key, call_queue, queue, "submit", *arguments, icon="science", help=help)
    show_refusal(queue)


def _draw_bars(queue: Queue[Any], ids: tuple[str, ...], key: str, title: Callable[[Any], str]) -> None:
    problem = start_next_job(queue)
    active = [job for job in queue.list_jobs() if job.id in ids and job.active]
    if len(active) < len(ids):
        st.rerun(scope="app")
    for job in active:
        with st.container(border=True, key=f"{key}_{job.id}"):
            named = title(job)
            st.progress(job.share, text=f"{named}: {describe_stage(queue, job)}" if named else describe_stage(queue, job))
            if job.state == "not responding":
                st.warning("Nothing has been heard for a minute. The machine may be asleep or very busy.")
            place_button(
                "Cancel", f"{key}_stop_{job.id}", call_queue, queue, "stop", job.id, icon="stop_circle",
                disabled=public.is_public() or job.stopping, help="Ends it for everybody who waits for it.",
            )  # fmt: skip
    if problem:
        st.error(f"Nothing can begin now: {page_context.escape_markdown(problem)}.")


def _problem_key(queue: Queue[Any]) -> str:
    return f"{queue.kind}_problem"
