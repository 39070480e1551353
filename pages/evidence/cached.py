"""What the Evidence page keeps between reruns, besides the comparisons that other screens share (pages/components/results.py)."""

from pathlib import Path

from elastic_core.results.claims import Verdict
from elastic_core.services.evidence import speed
from pages.components import page_context, results
from pages.components.cache import OpenRun, cached_resource


def speed_verdict(root: Path) -> Verdict:
    """When ELASTIC is faster than SASRec, from the benchmark's rows; read again when they change."""
    return _speed_verdict(root, root / "benchmarks.csv")


@cached_resource(4)
def _speed_verdict(root: Path, file: Path) -> Verdict:
    return speed.speed_verdict(root)


def warm_cache(open_run: OpenRun) -> None:
    """What the first visitor of the page would wait for: of all runs, whichever is opened first."""
    measured, _ = results.measured_data(page_context.RUNS)
    for _ in results.answer_questions(measured):
        pass
