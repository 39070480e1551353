"""What the Method page keeps between reruns."""

from collections.abc import Callable

from elastic_core import disk
from elastic_core.runs import Run
from elastic_core.services.method import effects
from elastic_core.services.method.effects import Effect
from pages.frame import shell
from pages.kit import cache
from pages.kit.kept import copied


def effect(question: str, run: Run, make: Callable[[], Effect]) -> Effect:
    """What a question costs; made again when a run or a benchmark has changed."""
    benchmarks = str([disk.stamp(path) for path in sorted((shell.RUNS / "benchmarks").glob("*.csv"))])
    return _effect(question, run, cache.everyone(shell.RUNS), benchmarks, make)


@copied(256)
def _effect(question: str, run: Run, runs: list[Run], benchmarks: str, _make: Callable[[], Effect]) -> Effect:
    return _make()


@copied(1)
def peeking() -> Effect:
    """Does a later event move an earlier state? The same for everybody."""
    return effects.of_peeking()
