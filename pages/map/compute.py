"""A UMAP that is not in the store: asked for, watched, cancelled. It runs in a process of its own."""

import numpy as np
import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services import public
from elastic_core.services.background.durations import clock
from elastic_core.services.map.jobs import Drawing, Maps
from elastic_core.services.map.layouts import Settings
from pages.frame import shell
from pages.frame.shell import Context

EVERY, PROBLEM = 1.5, "map_problem"


def watch() -> None:
    """The map that is being computed, if one is; the page is drawn anew once when it ends."""
    now = Maps(shell.RUNS).now()
    if now.active:
        st.fragment(_progress, run_every=EVERY, key="map_watch")(now.run)


def offer(now: Context, settings: Settings, experts: np.ndarray, *, aligned: bool = False) -> None:
    """Says that a layout is missing, and how to get it."""
    last = Maps(shell.RUNS).now()
    what = (
        "This aligned layout"
        if aligned
        else f"UMAP with {settings.neighbours} neighbours and least distance {settings.distance:g}"
    )
    if last.active:
        st.info(
            "One map is computed at a time; PCA is shown until then." if last.run != now.run.name else "PCA is shown until then."
        )
        return
    _last(last, now.run.name)
    st.info(f"{what} is not stored for this run yet, so PCA is shown.")
    if shell.off("measurement"):
        return
    st.caption("Computing it takes about a minute; nothing here waits for it.")
    st.button(
        "Compute it", key="map_compute", icon=":material/calculate:", on_click=_submit, args=(now, settings, experts, aligned),
        help="In the background, with three seeds and a control of random vectors. You may leave the page.",
    )  # fmt: skip
    if problem := st.session_state.pop(PROBLEM, ""):
        st.error(shell.plain(problem))


def _submit(now: Context, settings: Settings, experts: np.ndarray, aligned: bool) -> None:
    try:
        Maps(shell.RUNS).submit(now.run, settings, experts, aligned=aligned)
    except InputError as error:
        st.session_state[PROBLEM] = f"{error}."


def _progress(run: str) -> None:
    maps = Maps(shell.RUNS)
    now = maps.now()
    if not now.active:
        st.rerun(scope="app")
    with st.container(border=True):
        of = f"{now.settings.neighbours} neighbours, least distance {now.settings.distance:g}"
        st.progress(now.share, text=f"Map of {shell.plain(run)} ({of}): {now.phase} · {clock(now.seconds)}")
        st.button("Cancel", key="map_cancel", icon=":material/stop_circle:", on_click=maps.cancel, disabled=public.on())
        st.caption("The first layout takes longest, because its code is compiled first.")


def _last(last: Drawing, run: str) -> None:
    if last.run != run:
        return
    if last.state == "interrupted":
        st.warning("The last computation was interrupted (its process ended without a word). What was done is kept.")
    elif last.state == "failed":
        st.error(f"The last computation failed: {shell.plain(last.reason)}")
