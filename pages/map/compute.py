"""A UMAP that is not in the store: asked for, watched, cancelled. It runs in a process of its own."""

import numpy as np
import streamlit as st

from elastic_core.services.background.queue import Task
from elastic_core.services.map.jobs import MapAsked, Maps
from elastic_core.services.map.layouts import Settings
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import waiting
from pages.map import words


def watch() -> None:
    """The maps that are being computed, if any are; the page is drawn anew once when one ends."""
    maps = Maps(shell.RUNS)
    active = [job for job in maps.all() if job.active]
    waiting.watch(maps, active, "map_watch", _title)
    if any(not job.share for job in active):
        st.caption(words.SAYS("FIRST_TIME"))


def offer(now: Context, settings: Settings, experts: np.ndarray, *, aligned: bool = False) -> None:
    """Says that a layout is missing, and how to get it."""
    maps = Maps(shell.RUNS)
    wanted = {"run": now.run.name, "neighbours": settings.neighbours, "distance": settings.distance, "aligned": aligned}
    last = maps.latest(**wanted)
    if last is not None and last.active:
        st.info(words.SAYS("UNTIL"))
        return
    what = f"UMAP with {settings.neighbours} neighbours and distance {settings.distance:g}"
    st.info(words.SAYS("MISSING", what="This map" if aligned else what))
    waiting.offer(
        maps, last, (now.run, settings, experts, aligned), "map_compute",
        words.SAYS("COMPUTE"), "Compute it", "From three random starts, and for random numbers, too.",
    )  # fmt: skip


def _title(job: Task[MapAsked]) -> str:
    return f"Map of {shell.plain(job.asked.title)}"
