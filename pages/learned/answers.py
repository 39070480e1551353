"""What the page has worked out before somebody asks."""

from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.runs import Run
from elastic_core.services.learned import verdicts
from pages.frame import shell
from pages.kit import judged


def warm(run: Run, model: Recommender, data: Dataset) -> None:
    """What the first visitor of the page would wait for: of all runs, whichever is opened first. Results shows the same."""
    groups, _ = judged.groups(shell.RUNS)
    for pair in verdicts.PAIRS:
        verdicts.compared(pair, groups, judged.differences)
