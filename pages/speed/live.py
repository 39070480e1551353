"""The part of the Speed page that measures: what to measure, the start button, and the progress of a running measurement."""

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.jobs.kinds import Measurement, Measurements
from elastic_core.services import public
from elastic_core.services.speed import costs, curves, measure
from elastic_core.services.speed.plan import Plan, all_systems
from pages.kit import shell, view, waiting
from pages.kit.control import bound, button, number

CANCELLED = "spd_cancelled"  # the id of what the visitor cancelled
EVERY = 2.0  # seconds; each redraw takes time from what is measured


def plan() -> Plan | None:
    """What the controls ask for; None where they ask for something impossible, which is then said."""
    usual = Plan()
    lengths = bound(
        st.pills, "History lengths", measure.LENGTHS, default=list(usual.lengths), selection_mode="multi", key="spd_lengths"
    )
    systems = bound(st.multiselect, "Systems", all_systems(), default=list(usual.systems), key="spd_systems")
    with view.row("top"):
        batch = bound(st.selectbox, "Histories at a time", (1, 8, 32, 128), index=1, key="spd_batch", width=150)
        threads = number(
            "Threads", 1, measure.cores(), usual.threads, key="spd_threads", width=130,
            help="Two share the work of many histories. Beside another program that works, one is faster.",
        )  # fmt: skip
        repeats = number("Repeats", 3, 50, usual.repeats, key="spd_repeats", width=130)
        k = bound(st.selectbox, "k", (2, 4, 8, 16, 32), index=2, key="spd_k", width=110, help="Experts retrieved")
        side = bound(st.selectbox, "√K", (8, 16, 32, 64, 128), index=1, key="spd_side", width=110, help="Side of the memory")
    try:
        made = Plan(
            lengths=tuple(sorted(lengths)), systems=tuple(systems), histories=batch, threads=int(threads), repeats=int(repeats),
            k=k, side=side,
        )  # fmt: skip
    except InputError as error:
        st.warning(f"{shell.plain(error).capitalize()}.")
        return None
    if made.left_out():
        many = ", ".join(f"{n:,}" for n in made.left_out())
        st.caption(f"{costs.LABELS['sasrec-eager']}, is left out at N = {many}: too much memory.")
    return made


def act(what: str, *arguments: object) -> None:
    """A button's callback: submit or stop."""
    if waiting.act(Measurements(shell.RUNS), what, *arguments):
        if what == "submit":
            st.session_state["spd_source"] = curves.MEASURED
        st.session_state[CANCELLED] = arguments[0] if what == "stop" else None


def panel() -> Measurement | None:
    """Controls, button and progress; returns the measurement of this machine that answers."""
    all_of_them = Measurements(shell.RUNS)
    found, shown = all_of_them.latest(), all_of_them.shown()
    active = found is not None and found.active
    with st.expander("Measure on this machine", icon=":material/timer:", expanded=active, key="spd_panel"):
        wanted = plan()
        held = shell.off("measurement")
        button(
            "Start measuring", "spd_start", act, "submit", wanted, icon="play_arrow", type="primary",
            disabled=wanted is None or active or held, help="You may leave the page meanwhile.",
        )  # fmt: skip
        st.caption("This takes one to three minutes. Leave the machine alone meanwhile, or it will look slower than it is.")
    waiting.refused(all_of_them)
    state, share = (found.state, found.share) if found else ("", 0.0)
    st.fragment(_progress, run_every=EVERY if active else None, key="spd_live")(state, share)
    if found and shown and shown.id != found.id:
        st.caption(f"“{curves.MEASURED.capitalize()}” shows the one before it, which finished.")
    return shown


def _progress(drawn: str, share: float) -> None:
    """The bar while it runs; the whole page again when there is something new to draw."""
    all_of_them = Measurements(shell.RUNS)
    problem, found = waiting.go_on(all_of_them), all_of_them.latest()
    if (found.state if found else "") != drawn or (found and found.active and found.share != share):
        st.rerun(scope="app")
    if problem:
        st.error(f"No measurement can begin now: {shell.plain(problem)}.")
    gone = st.session_state.get(CANCELLED)
    if gone and all(each.id != gone for each in all_of_them.all()):  # it still waited, and leaves no trace
        st.caption("Cancelled before it began.")
        if found is None or not found.active:  # what became of an older one was said before
            return
    if found is None:
        return
    if found.active:
        with st.container(border=True, key="spd_running"):
            st.progress(found.share, text=f"Measuring: {waiting.stage(all_of_them, found)}")
            if found.state == "not responding":
                st.warning("Nothing has been heard for a minute. The machine may be asleep or very busy.")
            button(
                "Cancel", "spd_cancel", act, "stop", found.id, icon="stop_circle", disabled=public.on() or found.stopping,
                help="Ends at once. What is measured so far stays.",
            )  # fmt: skip
    elif found.state == "failed":
        st.error(f"The last measurement failed: {shell.plain(found.reason)}")
        with st.expander("What it said"):
            st.code(found.log or "nothing", language=None)
    elif found.state in ("interrupted", "stopped"):
        st.caption(f"The last measurement was {'cancelled' if found.state == 'stopped' else found.state}.")
