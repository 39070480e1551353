"""What the journey page keeps between reruns; see kit/cache.py for how things are identified."""

from contextlib import suppress

import numpy as np
import pandas as pd

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender, Trace
from elastic_core.runs import Run
from elastic_core.services.journey import shown, trace
from elastic_core.services.journey.chance import of_version
from elastic_core.services.journey.text import encode
from elastic_core.services.journey.trace import Aggregation, Along, Dispatch, dispatch
from elastic_core.services.journey.versions import Tree
from elastic_core.services.person import influence as removal
from elastic_core.services.person import inspect, people
from elastic_core.services.person.chance import Chance
from elastic_core.services.person.inspect import Situation
from elastic_core.services.person.recommend import Reading
from pages.frame.shell import Context
from pages.journey import charts
from pages.kit import cache, plot
from pages.kit.kept import copied, kept


@kept(64)
def situation(run: Run, model: Recommender, data: Dataset, read: Reading, stay: bool = False) -> Situation:
    """What a history retrieves and is answered; do its items `stay` in the running?"""
    return inspect.situation_of(model, data, read, stay=stay)


def chance(run: Run, model: Recommender, data: Dataset, tree: Tree, stay: bool) -> Chance | None:
    """The last edit beside the same edit elsewhere."""
    return _chance(run, model, data, encode(tree.chain()), tree.base.digest, stay, tree)


@kept(256)
def _chance(run: Run, model: Recommender, data: Dataset, code: str, base: str, stay: bool, _tree: Tree) -> Chance | None:
    return of_version(model, data, _tree, stay)


def _inside(run: Run, model: Recommender, items: np.ndarray) -> Trace | None:
    return cache.traced(run, model, items) if model.retrieves else None


@kept(64)
def influence(run: Run, model: Recommender, data: Dataset, read: Reading, stay: bool) -> removal.Influence:
    """Each of the last events taken away once."""
    return removal.influence(model, data, read, stay=stay, trace=_inside(run, model, read.items))


@kept(64)
def along(run: Run, model: Recommender, data: Dataset, user: int, stay: bool) -> Along:
    """One person at up to 40 moments of their history."""
    return trace.along(model, data, user, stay=stay)


@kept(64)
def reading(run: Run, model: Recommender, data: Dataset, items: np.ndarray, layer: int) -> Aggregation:
    """How the retrieved experts read a history. Raises InputError where there is nothing to read with."""
    return trace.aggregation(model, items, layer, trace=_inside(run, model, items))


@kept(64)
def dispatched(run: Run, model: Recommender, data: Dataset, items: np.ndarray, events: int) -> Dispatch:
    """What experts take of the last events, and what these get back. Raises InputError where there is no dispatcher."""
    return dispatch(model, data, items, events)


def dispatch_table(found: Dispatch) -> pd.DataFrame:
    """One row an event and expert: event (from 1, the oldest that is drawn), title, expert, held, back."""
    n, k = found.back.shape
    return pd.DataFrame(
        {
            "event": np.repeat(np.arange(1, n + 1), k), "title": np.repeat(np.array(found.titles, dtype=object), k),
            "expert": np.tile(found.experts, n), "held": found.held.T.ravel(), "back": found.back.ravel(),
        }
    )  # fmt: skip


def way(now: Context, moment: int, dark: bool, stay: bool) -> tuple[cache.Drawn, Along, Along | None, int, int]:
    """The figure of the whole journey with what it shows: both runs' ranks, experts drawn, experts in all."""
    other = now.other
    return _way([run for run in (now.run, other) if run], now.dataset, now.user, moment, dark, stay, now)


@kept(64)
def _way(
    runs: list[Run], data: Dataset, user: int, moment: int, dark: bool, stay: bool, _now: Context
) -> tuple[cache.Drawn, Along, Along | None, int, int]:
    mine, other = along(_now.run, _now.model, _now.dataset, user, stay), None
    if _now.other is not None:
        other = along(_now.other, cache.opened(_now.other, _now.dataset), _now.dataset, user, stay)
    experts, count = shown.busiest(mine.experts, moment) if len(mine.experts) else (mine.experts, 0)
    names = (_now.run.name, _now.other.name if _now.other else "")
    figure = charts.along(mine.ranks, experts, moment, plot.palette(dark), other.ranks if other else None, names)
    return cache.Drawn(figure), mine, other, int(experts["expert"].nunique()), count


@kept(8)
def everybody(run: Run, model: Recommender, data: Dataset, expert: int | None) -> pd.DataFrame:
    """Everybody as one row; the ranks are those of the run's test, where it keeps them."""
    traffic = cache.traffic(run, model, data) if expert is not None else None
    return people.people_table(data, _standing(run, model, data), traffic, expert)


def _standing(run: Run, model: Recommender, data: Dataset) -> np.ndarray:
    protocol = "full-seen" if cache.repeats(data).stay else "full"
    if run.has_report:
        with suppress(InputError, KeyError):
            ranks = run.report().ranks[protocol]
            if len(ranks.above) == data.histories.n_users:
                return ranks.places
    return target_ranks(run, model, data)


@copied(8, "Asking one run about everybody …")
def target_ranks(run: Run, model: Recommender, data: Dataset) -> np.ndarray:
    """Where everybody's next item stands; among all items where people choose again what they have met."""
    return people.target_ranks(model, data, stay=cache.repeats(data).stay)
