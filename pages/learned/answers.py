"""What the page has worked out before somebody asks."""

from pathlib import Path

from elastic_core import disk
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.runs import Run
from elastic_core.services.learned import verdicts
from elastic_core.services.learned.verdicts import Verdict
from pages.frame import shell
from pages.kit import judged
from pages.kit.kept import kept


def faster(root: Path) -> Verdict:
    """When ELASTIC is faster than SASRec, from the benchmark's rows; read again when they change."""
    file = root / "benchmarks" / "latency.csv"
    return _faster(str(root), disk.stamp(file))


@kept(4)
def _faster(root: str, stamp: tuple[int, ...]) -> Verdict:
    return verdicts.faster(Path(root))


def warm(run: Run, model: Recommender, data: Dataset) -> None:
    """What the first visitor of the page would wait for: of all runs, whichever is opened first. Results shows the same."""
    groups, _ = judged.groups(shell.RUNS)
    for pair in verdicts.PAIRS:
        verdicts.compared(pair, groups, judged.differences)
