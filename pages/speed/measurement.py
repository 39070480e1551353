"""The part of the Speed page that measures: what to measure, the start button, and the progress of a running measurement."""

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.jobs.job_kinds import Measurement, Measurements
from elastic_core.services.speed import costs, curves, measure
from elastic_core.services.speed.plan import Plan, all_systems
from pages.components import job_bar, page_context, page_elements
from pages.components.controls import bind_widget, number_input, place_button


def choose_plan() -> Plan | None:
    """What the controls ask for; None where they ask for something impossible, which is then said."""
    usual = Plan()
    lengths = bind_widget(
        st.pills, "History lengths", measure.LENGTHS, default=list(usual.lengths), selection_mode="multi", key="spd_lengths"
    )
    systems = bind_widget(st.multiselect, "Systems", all_systems(), default=list(usual.systems), key="spd_systems")
    with page_elements.place_in_row("top"):
        batch = bind_widget(st.selectbox, "Histories at a time", (1, 8, 32, 128), index=1, key="spd_batch", width=150)
        threads = number_input(
            "Threads", 1, measure.usable_cores(), usual.threads, key="spd_threads", width=130,
            help="Two share the work of many histories. Beside another program that works, one is faster.",
        )  # fmt: skip
        repeats = number_input("Repeats", 3, 50, usual.repeats, key="spd_repeats", width=130)
        k = bind_widget(st.selectbox, "k", (2, 4, 8, 16, 32), index=2, key="spd_k", width=110, help="Experts retrieved")
        n_subkeys = bind_widget(
            st.selectbox, "√K", (8, 16, 32, 64, 128), index=1, key="spd_side", width=110, help="Side of the memory"
        )
    try:
        plan = Plan(
            lengths=tuple(sorted(lengths)), systems=tuple(systems), histories=batch, threads=int(threads), repeats=int(repeats),
            k=k, n_subkeys=n_subkeys,
        )  # fmt: skip
    except InputError as error:
        st.warning(f"{page_context.escape_markdown(error).capitalize()}.")
        return None
    if plan.left_out():
        lengths_text = ", ".join(f"{n:,}" for n in plan.left_out())
        st.caption(f"{costs.LABELS['sasrec-eager']}, is left out at N = {lengths_text}: too much memory.")
    return plan


def submit_plan(plan: Plan) -> None:
    """A button's callback."""
    if job_bar.call_queue(Measurements(page_context.RUNS), "submit", plan):
        st.session_state["spd_source"] = curves.MEASURED


def show_panel() -> Measurement | None:
    """Controls, button and progress; returns the measurement of this machine that answers."""
    jobs = Measurements(page_context.RUNS)
    latest_job, result_job = jobs.latest_job(), jobs.last_with_rows()
    is_active = latest_job is not None and latest_job.active
    with st.expander("Measure on this machine", icon=":material/timer:", key="spd_panel"):
        plan = choose_plan()
        is_locked = page_context.is_switched_off("measurement")
        place_button(
            "Start measuring", "spd_start", submit_plan, plan, icon="play_arrow", type="primary",
            disabled=plan is None or is_active or is_locked, help="You may leave the page meanwhile.",
        )  # fmt: skip
        st.caption("This takes one to three minutes. Leave the machine alone meanwhile, or it will look slower than it is.")
    job_bar.show_refusal(jobs)
    if latest_job is None:
        return result_job
    job_bar.show_bars(jobs, [latest_job], "spd", lambda job: "Measuring")
    if latest_job.state == "failed":
        st.error(f"The last measurement failed: {page_context.escape_markdown(latest_job.reason)}")
        with st.expander("What it said"):
            st.code(latest_job.log or "nothing", language=None)
    elif latest_job.state in ("interrupted", "stopped"):
        st.caption(f"The last measurement was {'cancelled' if latest_job.state == 'stopped' else 'interrupted'}.")
    if result_job and result_job.id != latest_job.id:
        st.caption(f"“{curves.MEASURED.capitalize()}” shows the one before it, which finished.")
    return result_job
