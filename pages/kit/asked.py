"""What memories answered when they were asked what they stand for, for every page that shows it; it takes a pass over everybody,
so it is asked for in the background and kept (services/evidence)."""

from pathlib import Path

from elastic_core.jobs.kinds import Meanings
from elastic_core.runs import Run
from elastic_core.services.evidence import meaning
from elastic_core.services.evidence.meaning import MeaningRow
from pages.kit import cache, shell, waiting
from pages.kit.kept import kept


def rows(root: Path) -> dict[str, MeaningRow]:
    """By run: rows that were measured on the weights it has now."""
    return _rows(root, cache.everyone(root), *meaning.files(root))


def row(run: Run, key: str) -> MeaningRow | None:
    """The row of a run; where there is none, the button that asks for it, or the bar of who asked."""
    if (found := _rows(shell.RUNS, [run], *meaning.files(shell.RUNS)).get(run.name)) is None:
        queue = Meanings(shell.RUNS)
        waiting.offer(
            queue, queue.latest(**queue.about(run)), (run,), key,
            "Not measured for this run: do its experts follow interests?", "Measure it now",
            "In the background, ten seconds to a minute; kept for everybody. You may leave the page.",
        )  # fmt: skip
    return found


@kept(64)
def _rows(root: Path, runs: list[Run], *files: Path) -> dict[str, MeaningRow]:
    return meaning.of_runs(root, runs)
