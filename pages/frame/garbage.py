"""Keeps the collection of garbage short, because everybody waits for it.

Streamlit would collect all cyclic garbage after each rerun, and nobody's page runs meanwhile. It is told not to
(`runner.postScriptGC`); the frame does it every few seconds, however many visitors there are. Looking through what torch, pandas
and plotly alone keep takes 0.2 s, far longer than most pages. So whatever survives a slow collection is set aside (`gc.freeze`),
and later ones look only at what is new. Once a minute all of it is looked at again, so that visitors who have left and what else
was alive by chance are freed, and the memory goes back to the system: glibc keeps large pieces apart, and threads share their
places.
"""

import ctypes
import gc
import sys
import time
from contextlib import suppress

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # as malloc.h has them
LARGE, PLACES = 2**22, 2  # bytes that are asked of the system and given back at once; glibc's places for all threads
PAUSE = 3.0  # seconds between two collections
SLOW = 0.01  # seconds; what a collection may take before its survivors are set aside
AGAIN = 60.0  # seconds between two looks at everything
SOON, MUCH = 10.0, 200_000  # and seconds if so many objects have come since: what is set aside dies unseen, between what lives


class Keeper:
    """A callback of the collector."""

    def __init__(self) -> None:
        self.began = 0.0
        self.looked = self.collected = time.monotonic()
        self.left = 0  # objects after the last look
        self.everything = False

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2:
            return
        if phase == "start":
            self.collected = time.monotonic()
            since, more = time.monotonic() - self.looked, sys.getallocatedblocks() - self.left
            self.everything = since > AGAIN or (since > SOON and more > MUCH)
            if self.everything:
                self.looked = time.monotonic()
                gc.unfreeze()
            self.began = time.thread_time()
            return
        if self.everything:
            self.left = sys.getallocatedblocks()
            _glibc("malloc_trim", 0)  # which keeps freed memory between what is still used
        if self.everything or time.thread_time() - self.began > SLOW:
            gc.freeze()


def keep_short() -> None:
    """Called by the frame on every rerun; does something once in a process."""
    if not any(isinstance(callback, Keeper) for callback in gc.callbacks):
        gc.callbacks.append(Keeper())
        _glibc("mallopt", M_MMAP_THRESHOLD, LARGE)  # else it learns from each large tensor to put the next between small things
        _glibc("mallopt", M_ARENA_MAX, PLACES)  # else each thread has its own, and every rerun is another thread


def collect() -> None:
    """Called by the frame at the end of every rerun, when all is on the screen; does something every few seconds."""
    keeper = next((callback for callback in gc.callbacks if isinstance(callback, Keeper)), None)
    if keeper is not None and time.monotonic() - keeper.collected > PAUSE:
        keeper.collected = time.monotonic()
        gc.collect()


def _glibc(name: str, *given: int) -> None:
    """Elsewhere there is nothing to do."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(None), name)(*given)
