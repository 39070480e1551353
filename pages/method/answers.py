"""What the Method page keeps between reruns."""

from collections.abc import Callable

import streamlit as st

from elastic_core.runs import Run
from elastic_core.services.method import effects
from elastic_core.services.method.effects import Effect
from pages.frame import shell
from pages.kit import cache


def effect(question: str, run: Run, make: Callable[[], Effect]) -> Effect:
    """What a question costs; made again when a run or a benchmark has changed."""
    benchmarks = tuple((path.name, path.stat().st_mtime_ns) for path in sorted((shell.RUNS / "benchmarks").glob("*.csv")))
    return _effect(question, str(run.path), cache.everyone(shell.RUNS), benchmarks, make)


@st.cache_data(max_entries=256, show_spinner=False)
def _effect(
    question: str, run: str, runs: cache.Stamped, benchmarks: tuple[tuple[str, int], ...],
    _make: Callable[[], Effect],
) -> Effect:  # fmt: skip
    return _make()


@st.cache_data(show_spinner=False)
def peeking() -> Effect:
    """Does a later event move an earlier state? The same for everybody."""
    return effects.of_peeking()
