"""Do a run's experts follow interests? What was measured of it, for every page that shows it.

It takes a pass over everybody, so it is a job in the background, and its rows are kept (services/evidence)."""

from pathlib import Path

from elastic_core.jobs.job_kinds import Meanings
from elastic_core.runs import Run
from elastic_core.services.evidence import meaning
from elastic_core.services.evidence.meaning import MeaningRow
from pages.components import cache, job_bar, page_context
from pages.components.cache import cached_resource


def meaning_rows(root: Path) -> dict[str, MeaningRow]:
    """By run: rows that were measured on the weights it has now."""
    return _read_rows(root, cache.all_runs(root), *meaning.row_files(root))


def meaning_row(run: Run, key: str) -> MeaningRow | None:
    """The row of a run; where there is none, the button that measures it, or the bar while somebody does."""
    row = _read_rows(page_context.RUNS, [run], *meaning.row_files(page_context.RUNS)).get(run.name)
    if row is None:
        queue = Meanings(page_context.RUNS)
        job_bar.offer_job(
            queue, queue.latest_job(**queue.make_request(run)), (run,), key,
            "Not measured for this run: do its experts follow interests?", "Measure it now",
            "In the background, ten seconds to a minute; kept for everybody. You may leave the page.",
        )  # fmt: skip
    return row


@cached_resource(64)
def _read_rows(root: Path, runs: list[Run], *files: Path) -> dict[str, MeaningRow]:
    return meaning.of_runs(root, runs)
