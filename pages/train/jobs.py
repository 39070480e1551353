"""The part of the Train page that moves: what runs, what waits, what needs a decision."""

import streamlit as st

from elastic_core.jobs.job_kinds import Training, Trainings
from elastic_core.jobs.queue import worker_alive
from elastic_core.jobs.training_watch import watch_training
from elastic_core.services import public
from elastic_core.services.train import run_table
from pages.components import job_bar, page_context, page_elements, plot
from pages.components.controls import place_button
from pages.components.page_context import escape_markdown
from pages.train import charts

EVERY = 3.0  # seconds; a redraw must be done well before the next, on a machine that is busy training


def show_jobs() -> None:
    """Draws the jobs, again every few seconds while one is active; the whole page once when one changes its state."""
    jobs = Trainings(page_context.RUNS)
    job_bar.start_next_job(jobs)
    all_jobs = jobs.list_jobs()
    states, any_active = {job.id: job.state for job in all_jobs}, any(job.active for job in all_jobs)
    st.fragment(_show_jobs, run_every=EVERY if any_active else None, key="train_live")(states)


def show_status_line() -> None:
    """For who opens the page: that something goes on, or is done, further down, below the button that starts it."""
    jobs = Trainings(page_context.RUNS)
    active_jobs = [job for job in jobs.list_jobs() if job.active]
    tested_job = jobs.last_tested()
    if active_jobs:
        more_text = f" {len(active_jobs) - 1} more waiting." if len(active_jobs) > 1 else ""
        st.markdown(
            f":material/model_training: {escape_markdown(active_jobs[0].run.name)} is in training.{more_text} "
            "[See it below](#now)."
        )
    elif tested_job is not None:
        st.markdown(f":material/task_alt: {escape_markdown(tested_job.run.name)} is trained and tested. [See the result](#now).")


def show_heading() -> None:
    """Where the status line leads."""
    if Trainings(page_context.RUNS).list_jobs():
        st.header("Trainings", anchor="now")


def call_queue(action: str, *arguments: object) -> None:
    """A button's callback: submit, stop, resume or discard; a refusal is shown as its sentence."""
    job_bar.call_queue(Trainings(page_context.RUNS), action, *arguments)


def show_curves(job: Training) -> None:
    """The learning curves so far, side by side, and their table. Drawn again every few seconds, so nothing opens below them."""
    frame = run_table.training_curves([job.run])
    figures = charts.draw_curves(frame, page_context.theme_palette())
    for place, (column, figure) in zip(st.columns(len(figures)), figures.items(), strict=True):
        place.plotly_chart(figure, key=f"train_now_{column}", alt=charts.describe_curve(column, frame), config=plot.CONFIG)
    with st.expander("Show as table"):
        st.dataframe(frame, hide_index=True, alt="Learning curves as numbers, one row for each epoch")


def _show_jobs(drawn_states: dict[str, str]) -> None:
    jobs = Trainings(page_context.RUNS)
    problem = job_bar.start_next_job(jobs)
    all_jobs = jobs.list_jobs()
    if {job.id: job.state for job in all_jobs} != drawn_states:
        st.rerun(scope="app")
    if problem:
        st.error(f"No training can begin now: {escape_markdown(problem)}.")
    job_bar.show_refusal(jobs)
    page_elements.show_unreadable_folders(
        jobs.list_unreadable(), "no training", "train_odd", lambda name: call_queue("discard", name)
    )
    for job in all_jobs:
        if job.state in ("running", "not responding"):
            _show_running(job)
        elif job.state == "interrupted":
            _show_interrupted(job)
        elif job.state == "failed":
            _show_failed(job)
    _show_queue(jobs, [job for job in all_jobs if job.state == "queued"])


def _show_running(job: Training) -> None:
    watch = watch_training(job)
    with st.container(border=True, key="train_running"):
        st.subheader(f"Training {escape_markdown(job.run.name)}")
        if job.state == "not responding":
            st.warning("The training has said nothing for a minute. The machine may be asleep or very busy.")
        st.progress(watch.share, text=f"{escape_markdown(watch.phase)} · {watch.clock}")
        with page_elements.place_in_row("top"):
            st.metric("Whole epochs", watch.epochs)
            st.metric("Loss", "–" if watch.loss is None else f"{watch.loss:.3f}")
            st.metric("Best validation NDCG@10", "–" if watch.best is None else f"{watch.best:.3f}")
            if watch.used is not None:
                st.metric("Experts in use", f"{watch.used:.0%}")
        place_button(
            "Stop and keep the best", f"train_stop_{job.id}", call_queue, "stop", job.id, icon="stop_circle",
            disabled=job.stopping or public.is_public(), help="It ends after this step, and the best weights so far are tested.",
        )  # fmt: skip
        if watch.epochs:
            show_curves(job)
        else:
            st.caption("The curves begin after the first epoch.")


def _show_interrupted(job: Training) -> None:
    with st.container(border=True):
        st.warning(f"The training {escape_markdown(job.run.name)} was interrupted: its process ended suddenly.")
        _place_choice(job, "Continue", "It goes on after its last whole epoch. The result is the same as without the break.")


def _show_failed(job: Training) -> None:
    with st.container(border=True):
        st.error(f"The training {escape_markdown(job.run.name)} failed: {escape_markdown(job.reason)}")
        with st.expander("Its last words"):
            st.code(job.log or "nothing", language=None)
        _place_choice(job, "Try again", "Trains with the same settings once more.")


def _place_choice(job: Training, label: str, help_text: str) -> None:
    with page_elements.place_in_row("top"):
        is_off = public.is_public()
        place_button(label, f"train_resume_{job.id}", call_queue, "resume", job.id, help=help_text, disabled=is_off)
        place_button(
            "Discard", f"train_discard_{job.id}", call_queue, "discard", job.id, help="Deletes it for good.", disabled=is_off
        )


def _show_queue(jobs: Trainings, queued_jobs: list[Training]) -> None:
    if queued_jobs:
        st.markdown("**Waiting.** One training runs at a time, so that the pages stay quick.")
        if not worker_alive(jobs.folder) and not public.is_public():
            st.caption("A process is starting …")
    for place, job in enumerate(queued_jobs, start=1):
        with page_elements.place_in_row():
            st.write(f"{place}. {escape_markdown(job.run.name)} · {escape_markdown(run_table.system_name(job.config))}")
            place_button(
                "Take out", f"train_out_{job.id}", call_queue, "stop", job.id, type="tertiary", disabled=public.is_public()
            )
