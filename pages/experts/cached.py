"""What the Experts page keeps between reruns. See pages/components/cache.py."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from elastic_core.jobs.job_kinds import Ablations
from elastic_core.memory.routing import RoutedUsers
from elastic_core.services.edits import Edits
from elastic_core.services.experts import ablation, expert_users, items, overview, steering
from elastic_core.services.experts.overview import Survey
from elastic_core.services.experts.steering import TurnedList
from elastic_core.services.person.edited_history import edit_user
from elastic_core.services.person.recommend import Scales
from pages.components import cache, page_context
from pages.components.cache import OpenRun, cached_data, cached_resource

MOST_TURNS = 256  # whose cost is remembered
TAKING = "Taking the expert away from everybody who retrieves it …"


@dataclass(frozen=True, eq=False)
class Subject(OpenRun):
    """A run, opened, and its population's survey: what every part of the page asks about."""

    survey: Survey

    @property
    def traffic(self) -> RoutedUsers:
        return self.survey.traffic


def survey_run(open_run: OpenRun) -> Subject:
    return Subject(open_run.run, open_run.dataset, open_run.model, cache.survey_experts(open_run))


def warm_cache(open_run: OpenRun) -> None:
    """Make what the first visitor of the page would wait for."""
    expert_table(survey_run(open_run))


@cached_resource(4)
def expert_table(subject: Subject) -> pd.DataFrame:
    """Return all experts. Shared: never change it."""
    table = overview.expert_table(subject.survey)
    return (
        table.assign(name=[cache.expert_name(subject, expert) for expert in table["expert"]])
        if cache.expert_names(subject)
        else table
    )


@cached_resource(16)
def list_experts(subject: Subject, status: str, effects: pd.DataFrame | None, columns: tuple[str, ...]) -> pd.DataFrame:
    """List the experts of a status, or all, the busiest first, with the columns that are known; `effects` of removing each are
    some of them. Shared, too."""
    table = expert_table(subject) if status == "all" else expert_table(subject).query("status == @status")
    if effects is not None:
        renamed_effects = effects.rename(columns={"low": "d_low", "high": "d_high"}).drop(columns=["n", "d_rank_median"])
        table = table.merge(renamed_effects, on="expert", how="left")
    table = table.sort_values("load", ascending=False, kind="stable", ignore_index=True)
    return table[[name for name in columns if name in table]]


@cached_data(4)
def dead_by_chance(subject: Subject) -> tuple[int, float]:
    """Count how many experts carry a label, and how many would by chance."""
    return subject.survey.by_chance()


@cached_data(256)
def example_users(subject: Subject, expert: int) -> pd.DataFrame:
    """Return people of an expert, with what it reads."""
    return expert_users.example_users(subject, subject.survey, expert)


alone = cached_data(512)(items.rank_by_expert)
pushes = cached_data(256, TAKING)(items.measure_pushes)
effects = cached_data(512, TAKING)(ablation.measure_effects)
_few = cached_resource(512)(ablation.remove_from_few)


@cached_data(512, TAKING)
def measure_removal(subject: Subject, expert: int) -> dict[Hashable, Any]:
    """Return the first row of `effects` alone."""
    return ablation.effect_row(
        "",
        ablation.remove_expert(
            subject, expert, ablation.rank_edited(subject, ablation.retrieving_users(subject.traffic, expert))
        ),
    )


def measure_matched_removal(subject: Subject, expert: int) -> dict[Hashable, Any] | None:
    """Return the same of a few experts as busy, pooled; those of one group have the same ones."""
    others = ablation.equally_busy_experts(subject.traffic, expert)
    return _measure_others(subject, others) if others else None


@cached_data(512, "Removing experts that as many people use …")
def _measure_others(subject: Subject, others: list[int]) -> dict[Hashable, Any]:
    return ablation.effect_row("", pd.concat([_few(subject, other) for other in others]))


def named_genres(subject: Subject) -> np.ndarray | None:
    """Return the place among all genres of every expert's name, int64 [K], -1 where no name holds; None without genres."""
    genres = subject.survey.genres
    places = {genre: place for place, genre in enumerate(genres)}
    return (
        np.array([places.get(cache.expert_name(subject, expert), -1) for expert in range(subject.survey.size)])
        if genres
        else None
    )


@cached_resource(64)
def turned_list(subject: Subject, user: int, edits: Edits, keep_seen: bool) -> TurnedList:
    """Return somebody's list before and after their experts are turned."""
    return steering.turn_list(
        subject.model, subject.dataset, edit_user(subject.dataset, user, edits), named_genres(subject), keep_seen
    )


def all_effects(subject: Subject) -> pd.DataFrame | None:
    """Return the effect of removing each expert, if somebody has had it computed."""
    return Ablations(page_context.RUNS).read_effects(subject.run, subject.dataset.hash)


@cached_resource(1)
def _turn_costs() -> dict[object, pd.DataFrame]:
    """Hold what turns cost everybody. No cached function measures it, because a bar moves meanwhile."""
    return {}


def known_cost(subject: Subject, scales: Scales) -> pd.DataFrame | None:
    """Return what a turn costs everybody, if somebody has asked."""
    return _turn_costs().get((subject.cache_key(), *sorted(scales.items())))


def measure_cost(subject: Subject, scales: Scales, report_progress: Callable[[float], None]) -> pd.DataFrame:
    """Ask. Hold nobody up: two visitors at once measure the same twice, and whoever moves on leaves nothing behind."""
    costs, cost = _turn_costs(), steering.turn_cost(subject, scales, report_progress)
    for oldest in list(costs)[: max(len(costs) - MOST_TURNS, 0)]:
        costs.pop(oldest, None)
    costs[subject.cache_key(), *sorted(scales.items())] = cost
    return cost
