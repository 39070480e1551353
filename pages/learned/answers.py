"""What the page keeps between reruns: what was measured of memories, read again when a file changes."""

from pathlib import Path

import streamlit as st

from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.runs import Run, list_runs
from elastic_core.services.learned import meaning as asked
from elastic_core.services.learned import verdicts
from elastic_core.services.learned.meaning import Row
from pages.frame import shell
from pages.kit import judged
from pages.kit.cache import Stamped, stamped


def meaning(root: Path) -> dict[str, Row]:
    """By run: rows that were measured on the weights it has now."""
    known = {row.run for file in asked.files(root) for row in asked.read(file)}
    return _meaning(str(root), stamped(run for run in list_runs(root) if run.name in known), _stamps(root))


def warm(run: Run, model: Recommender, data: Dataset) -> None:
    """What the first visitor of the page would wait for: of all runs, whichever is opened first. Results shows the same."""
    groups, _ = judged.groups(shell.RUNS)
    for pair in verdicts.PAIRS:
        verdicts.compared(pair, groups, judged.differences)


@st.cache_data(max_entries=8, show_spinner=False)
def _meaning(root: str, runs: Stamped, stamps: tuple[int, ...]) -> dict[str, Row]:
    return asked.of_runs(Path(root), [Run(Path(path)) for path, _ in runs])


def _stamps(root: Path) -> tuple[int, ...]:
    return tuple(file.stat().st_mtime_ns if file.is_file() else 0 for file in asked.files(root))
