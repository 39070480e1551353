"""What came of the last training, where it was seen running: it stays until somebody puts it away."""

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.jobs.job_kinds import Training, Trainings
from elastic_core.results.baselines import ONLY_UNSEEN
from elastic_core.services import public
from elastic_core.services.person import inspect, user_lookup
from elastic_core.services.train import outcome, run_table
from elastic_core.services.train.outcome import TrainingOutcome
from pages.components import cache, model_usage, page_context, page_elements, page_text
from pages.components.controls import place_button
from pages.train.jobs import call_queue

START, JOURNEY = "start/page.py", "journey/page.py"
ABOUT = page_text.load_page_text(__file__).chart_text("outcome")
OPEN = "train_opens"


def show_result() -> None:
    job = Trainings(page_context.RUNS).last_tested()
    if job is None:
        return
    try:
        result = outcome.describe_outcome(job.run, cache.list_openable_runs(page_context.RUNS))
    except InputError as error:
        st.error(
            f"The training {page_context.escape_markdown(job.run.name)} cannot be shown: {page_context.escape_markdown(error)}."
        )
        return
    with st.container(border=True, key="train_result"):
        word = "Stopped and tested" if job.state == "stopped" else "Trained and tested"
        page_elements.show_heading(f"{word}: {page_context.escape_markdown(job.run.name)}")
        text_column, list_column = st.columns([2, 3], gap="medium")
        with text_column:
            _show_score(job, result)
        with list_column:
            _show_verdict(result)
        _place_actions(job, result)
        with st.expander("Use this model", icon=":material/rocket_launch:"):
            model_usage.show_model_usage(job.run)
        _show_table(job, result)


def _show_score(job: Training, result: TrainingOutcome) -> None:
    if result.score is None:
        return
    n_people = f", {result.beside.people:,} people" if result.beside else ""
    protocol = result.beside.protocol if result.beside else ONLY_UNSEEN
    st.metric(f"NDCG@10 ({protocol}, test)", f"{result.score.mean:.4f}")
    if protocol != ONLY_UNSEEN:
        st.caption("Ranked among all items, because people here often return to what they have already seen.")
    st.caption(f"95% interval {result.score.low:.4f} to {result.score.high:.4f}{n_people}.")
    if line := run_table.hit_line(job.run.last_event("test"), inspect.USUAL_WORDS, protocol != ONLY_UNSEEN):
        st.caption(line)
    if result.beside is None:
        st.caption("Simple counting has not been tested on these people.")
        return
    for row in result.beside.rows:
        text = (
            f" cannot be tested: {page_context.escape_markdown(row.fault)}."
            if row.fault
            else f": {row.mean:.4f} ({row.low:.4f} to {row.high:.4f})."
        )
        st.caption(page_context.escape_markdown(row.system) + text)
    st.caption(f"A random order: {result.beside.chance:.4f}.")


def _show_verdict(result: TrainingOutcome) -> None:
    """Our own sentences; what they quote of the run are numbers and reasons."""
    for line in (result.verdict, page_context.escape_markdown(result.why)):
        if line:
            st.markdown(line)
    if result.advice:
        st.markdown(f"**What to try next.** {' '.join(result.advice)}")
    if result.seeds:
        st.caption(result.seeds)


def _place_actions(job: Training, result: TrainingOutcome) -> None:
    context = page_context.current_context()
    whom = "with my person" if context is not None and context.run.config.data == job.config.data else "this run"
    off, key = public.is_public(), job.id
    with page_elements.place_in_row("top"):
        for page, name, icon in ((START, f"Open {whom}", "play_arrow"), (JOURNEY, "Open on Journey", "route")):
            kind = "primary" if page == START else "secondary"
            place_button(name, f"train_open_{page[:5]}_{key}", _open_run, job, page, icon=icon, type=kind)
        if result.longer is not None:
            place_button(
                "Again, twice as long",
                f"train_longer_{key}",
                call_queue,
                "submit",
                result.longer,
                icon="more_time",
                disabled=off,
                help="Trains a new run with the same settings",
            )
        if result.again is not None:
            place_button(
                "Train another seed", f"train_again_{key}", call_queue, "submit", result.again, icon="casino", disabled=off,
                help="Trains a new run with the same settings and other random numbers",
            )  # fmt: skip
        if result.beside is None:
            place_button("Test simple counting", f"train_judge_{key}", call_queue, "resume", key, disabled=off)
        place_button(
            "Put away", f"train_away_{key}", call_queue, "discard", key, icon="close", disabled=off, help="The run itself stays."
        )
    _follow_opened_run()


def _open_run(job: Training, page: str) -> None:
    """The run, and the same person where they are in its data: by the same data, or by an own id."""
    context = page_context.current_context()
    page_context.select_run(job.run.name)
    st.session_state[OPEN] = page
    if context is None or context.run.config.data == job.config.data:
        return
    try:
        data = cache.load_dataset(job.config.data)
        user = user_lookup.same_user(context.dataset, context.user, data, st.session_state.get(page_context.OWN_ID))
        if user is None:
            user = cache.example_user(cache.open_run(job.run, data))
    except InputError:  # the sidebar will say what cannot be opened
        return
    page_context.select_user(user, keep_expert=False)


def _follow_opened_run() -> None:
    """After the callback, when the list on the left has opened the run."""
    page = st.session_state.pop(OPEN, None)
    if page is not None:
        page_context.open_page(page)


def _show_table(job: Training, result: TrainingOutcome) -> None:
    table = result.table(job.run.name)
    if result.beside is None or table.empty:
        return
    panel = st.expander("As a table", on_change="rerun", key=f"train_beside_{job.id}")
    if panel.open:
        with panel:
            alt = f"{job.run.name} beside simple counting: NDCG@10 with intervals, and differences"
            page_elements.show_table(
                "train_beside", table, ABOUT, alt, column_config=page_elements.number_columns("%.4f", *table.columns[1:])
            )
