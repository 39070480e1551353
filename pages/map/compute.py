"""A UMAP that is not in the store: asked for, watched, cancelled. It runs in a process of its own."""

import numpy as np
import streamlit as st

from elastic_core.services.map.jobs import Drawing, Maps
from elastic_core.services.map.layouts import Settings
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import waiting


def watch() -> None:
    """The maps that are being computed, if any are; the page is drawn anew once when one ends."""
    maps = Maps(shell.RUNS)
    active = [job for job in maps.all() if job.active]
    waiting.watch(maps, active, "map_watch", _title)
    if any(not job.share for job in active):
        st.caption("The first takes longest: its code is compiled.")


def offer(now: Context, settings: Settings, experts: np.ndarray, *, aligned: bool = False) -> None:
    """Says that a layout is missing, and how to get it."""
    maps = Maps(shell.RUNS)
    wanted = {"run": now.run.name, "neighbours": settings.neighbours, "distance": settings.distance, "aligned": aligned}
    last = maps.latest(**wanted)
    if last is not None and last.active:
        st.info("PCA is shown until it is there.")
        return
    what = f"UMAP with {settings.neighbours} neighbours and least distance {settings.distance:g}"
    st.info(f"{'This aligned layout' if aligned else what} is not stored for this run yet; PCA is shown.")
    waiting.offer(
        maps, last, (now.run, settings, experts, aligned), "map_compute",
        "It takes about a minute; nothing waits for it.", "Compute it",
        "In the background, three seeds and a control of random vectors.",
    )  # fmt: skip


def _title(job: Drawing) -> str:
    return f"Map of {shell.plain(job.title)}"
