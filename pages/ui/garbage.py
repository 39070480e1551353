"""Keeps the collection of garbage short, because everybody waits for it.

Streamlit collects all cyclic garbage after each rerun, and nobody's page runs meanwhile. Looking through what torch, pandas and
plotly alone keep takes 0.2 s, far longer than most pages. So whatever survives a slow collection is set aside (`gc.freeze`), and
later ones look only at what is new. Now and then all of it is looked at again, so that what was alive by chance is freed.
"""

import gc
import time

SLOW = 0.01  # seconds; what a collection may take before its survivors are set aside
AGAIN = 600.0  # seconds between two looks at everything


class Keeper:
    """A callback of the collector."""

    def __init__(self) -> None:
        self.began = 0.0
        self.looked = time.monotonic()

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2:
            return
        if phase == "start":
            if time.monotonic() - self.looked > AGAIN:
                self.looked = time.monotonic()
                gc.unfreeze()
            self.began = time.thread_time()
        elif time.thread_time() - self.began > SLOW:
            gc.freeze()


def keep_short() -> None:
    """Called by the frame on every rerun; does something once in a process."""
    if not any(isinstance(callback, Keeper) for callback in gc.callbacks):
        gc.callbacks.append(Keeper())
