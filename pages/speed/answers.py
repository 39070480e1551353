"""What the Speed page keeps between reruns: the shipped rows, read again when their file changes."""

from pathlib import Path

import pandas as pd
import streamlit as st

from elastic_core.services.speed import curves


def shipped(checkpoints: Path) -> pd.DataFrame:
    """The shipped measurement; empty if there is none."""
    file = checkpoints / "benchmarks" / "latency.csv"
    return _shipped(str(checkpoints), file.stat().st_mtime_ns if file.is_file() else 0)


@st.cache_data(max_entries=4, show_spinner=False)
def _shipped(checkpoints: str, changed: int) -> pd.DataFrame:
    return curves.shipped(Path(checkpoints))
