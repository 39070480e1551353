"""What came of a training, in sentences that follow from its numbers: how good, why it ended, what to try next."""

import statistics
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import pandas as pd

from elastic_core.core.train import ALL_DONE, NO_MINUTES, NO_PATIENCE
from elastic_core.errors import InputError
from elastic_core.results import baselines
from elastic_core.results.baselines import ONLY_UNSEEN, BaselineComparison
from elastic_core.results.compare import METRIC, needs_training, with_its_seeds
from elastic_core.run_config import RunConfig
from elastic_core.runs import Run
from elastic_core.runs.ranks import Interval
from elastic_core.services.train import presets
from elastic_core.text import escape_markdown

COLUMNS = ["system", METRIC, "low", "high", "this run minus it", "from", "to"]
SEED_GAP = 0.0058  # standard deviation of the gap between two seeds of ml-100k-elastic, from three; tests/test_outcome.py
ALIVE = 0.8  # of the experts that a random router would use: fewer are worth a word


class TrainingOutcome(NamedTuple):
    """`score` is None for a run without a test; `longer` and `again` are trainings worth a click."""

    score: Interval | None
    beside: BaselineComparison | None
    why: str
    verdict: str
    advice: tuple[str, ...]
    seeds: str
    longer: RunConfig | None
    again: RunConfig | None

    def table(self, name: str) -> pd.DataFrame:
        """The run and what it stands beside, the best first, chance last. Of a run minus itself there is nothing."""
        rows: list[list[Any]] = []
        if self.score is not None:
            rows.append([name, self.score.mean, self.score.low, self.score.high, None, None, None])
        if self.beside is not None:
            rows += [[r.system, r.mean, r.low, r.high, r.difference, r.d_low, r.d_high] for r in self.beside.rows if not r.fault]
            rows.append(["a random order", self.beside.chance, None, None, None, None, None])
        table = pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(COLUMNS[1:], float))
        return table.sort_values(METRIC, ascending=False, ignore_index=True)


def describe_outcome(run: Run, among: Iterable[Run] = ()) -> TrainingOutcome:
    """Reads the run's files alone. `among`: where its other seeds may be found. Raises InputError for files that are none."""
    epochs, end = run.events("epoch"), run.last_event("end") or {}
    comparison = baselines.read_comparison(run)
    protocol = comparison.protocol if comparison is not None else ONLY_UNSEEN
    score = run.report().mean_interval(protocol, METRIC) if run.has_report else None
    best, config = int(end.get("best_epoch") or 0), run.config
    rising = bool(epochs) and best >= len(epochs) - 1 and not _ended_by_patience(end)
    advice = [_time_text(epochs, best, end), _use_text(run, epochs)]
    if _ended_by_patience(end) and len(epochs) > 1:
        advice.reverse()
    seeds, again = _compare_seeds(run, list(among), protocol)
    longer, name = None, "minutes" if config.train.minutes else "epochs"
    if rising:
        with suppress(InputError):  # beyond the bounds
            longer = presets.changed_config(config, {f"train.{name}": 2 * getattr(config.train, name)})
    return TrainingOutcome(
        score, comparison, _why_it_ended(end, len(epochs), best), _verdict_text(comparison, needs_training(run)),
        tuple(filter(None, advice)), seeds, longer, again,
    )  # fmt: skip


def _ended_by_patience(end: dict[str, Any]) -> bool:
    return str(end.get("reason", "")).startswith(NO_PATIENCE)


def _why_it_ended(end: dict[str, Any], epochs: int, best: int) -> str:
    reason = str(end.get("reason", ""))
    where = f"best epoch {best} of {epochs}" if epochs else ""
    if reason == "needs no training":
        return "It needs no training; it was counted and tested."
    if _ended_by_patience(end):
        return f"It stopped by itself: {reason} ({where})."
    if reason == "asked to stop":
        return f"It was stopped by hand in epoch {epochs}. The best weights until then were tested ({where})."
    if reason == ALL_DONE:
        return f"It stopped because all {epochs} epochs were done ({where})."
    if reason.startswith(NO_MINUTES):
        return f"It stopped because its time was up: {reason} ({where}; the last epoch may be incomplete)."
    return f"It ended: {reason or 'without a word'} ({where or 'no epoch'})."


def _verdict_text(comparison: BaselineComparison | None, trained: bool) -> str:
    row = comparison.best if comparison is not None else None
    if comparison is None or row is None:
        return ""
    gap = f"{row.difference:+.4f}, 95% interval {row.d_low:+.4f} to {row.d_high:+.4f} over {comparison.people:,} people"
    only = f"{escape_markdown(row.system)}, a system that only counts"  # a file of the run names it
    if row.d_high < 0:
        return f"**Worse than {only}** ({gap}). As it stands, counting is the better recommender here."
    if row.d_low > 0:
        moved = " The model was trained once, so this may still be the luck of one training." if trained else ""
        return f"**Better than {only}** ({gap}).{moved}"
    return f"**No clear difference from {only}** ({gap})."


def _time_text(epochs: list[dict[str, Any]], best: int, end: dict[str, Any]) -> str:
    if not epochs:
        return ""
    if len(epochs) < 2:
        return "The time was enough for hardly one epoch. Give it more time, or choose a smaller model."
    if _ended_by_patience(end):
        if not 0 < best < len(epochs):
            return ""
        fell = epochs[best - 1]["loss"] > epochs[-1]["loss"]
        rest = (
            "Its training loss still fell after that, so it learns its data by heart. Try more dropout, or a smaller model."
            if fell
            else ""
        )
        return f"Longer training will not help, because epoch {best} was its best. {rest or 'Try a smaller learning rate.'}"
    if best >= len(epochs) - 1:
        return "It was still getting better when it ended, so train longer."
    return f"It has not got better since epoch {best} of {len(epochs)}. Change something before you give it more time."


def _use_text(run: Run, epochs: list[dict[str, Any]]) -> str:
    """The null of `used`: a router that picks k of K at random, for so many people."""
    test, model = run.last_event("test") or {}, run.config.model
    used = test.get("used", epochs[-1].get("used") if epochs else None)
    n_subkeys, k, n_users = getattr(model, "n_subkeys", 0), getattr(model, "k", 0), test.get("users", 0)
    if used is None or not n_subkeys or not n_users:
        return ""
    expected = 1 - (1 - min(k / n_subkeys**2, 1)) ** n_users
    if used >= ALIVE * expected:
        return ""
    return (
        f"Only {used:.0%} of the {n_subkeys**2:,} experts are used by anybody; by pure chance it would be "
        f"{expected:.0%}. Raise the balance weight, or choose a smaller memory (√K)."
    )


def _compare_seeds(run: Run, among: list[Run], protocol: str) -> tuple[str, RunConfig | None]:
    """What is known of other seeds, and the configuration of the next one."""
    if not needs_training(run) or not run.has_report:
        return "", None
    seed_runs = with_its_seeds(run, among)
    seeds_run = {other.config.train.seed for other in seed_runs}
    again = presets.changed_config(
        run.config, {"train.seed": next(seed for seed in range(len(seeds_run) + 1) if seed not in seeds_run)}
    )
    if len(seed_runs) < 2:
        return (
            f"One training is not a result. On MovieLens-100K two seeds of ELASTIC usually differ by {SEED_GAP:.4f}. Train a "
            "second one before you believe a gap of that size."
        ), again
    values = [other.report().mean_interval(protocol, METRIC).mean for other in seed_runs]
    listed, apart = ", ".join(f"{value:.4f}" for value in values), max(values) - min(values)
    mean = statistics.fmean(values)
    return f"{len(values)} seeds of it are here: {listed}. Their mean is {mean:.4f}, and they lie {apart:.4f} apart.", again
