"""What the Speed page keeps between reruns: the shipped rows, read again when their file changes."""

from pathlib import Path

import pandas as pd
import streamlit as st

from elastic_core.services.speed import curves


def shipped(checkpoints: Path) -> pd.DataFrame:
    """The shipped measurement; empty if there is none."""
    file = checkpoints / "benchmarks" / "latency.csv"
    return _shipped(str(checkpoints), file.stat().st_mtime_ns if file.is_file() else 0)


def steps(checkpoints: Path) -> pd.DataFrame:
    """The shipped steps of training, taken apart; empty if there are none."""
    file = checkpoints / "benchmarks" / "profile.csv"
    return _steps(str(checkpoints), file.stat().st_mtime_ns if file.is_file() else 0)


@st.cache_data(max_entries=4, show_spinner=False)
def _steps(checkpoints: str, changed: int) -> pd.DataFrame:
    return curves.training_steps(Path(checkpoints))


@st.cache_data(max_entries=4, show_spinner=False)
def _shipped(checkpoints: str, changed: int) -> pd.DataFrame:
    return curves.shipped(Path(checkpoints))
