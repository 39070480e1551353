"""What the Journey page keeps between reruns (pages/components/cache.py)."""

import numpy as np
from pandas import DataFrame

from elastic_core.errors import InputError
from elastic_core.services.journey import trace
from elastic_core.services.journey.trace import Aggregation, Dispatch, HistoryTrace
from elastic_core.services.person import influence
from elastic_core.services.person.attention import trace_history
from elastic_core.services.person.influence import Influence
from elastic_core.services.person.recommend import History, Scales
from pages.components.cache import OpenRun, cached_resource


@cached_resource(64)
def trace_moments(open_run: OpenRun, user: int, keep_seen: bool) -> HistoryTrace:
    """The same person at many moments."""
    return trace.trace_moments(open_run.model, open_run.dataset, user, keep_seen=keep_seen)


@cached_resource(64)
def trace_dispatch(open_run: OpenRun, items: np.ndarray, events: int) -> Dispatch:
    """The last `events`, read with the experts that the whole history retrieves. Raises InputError without a dispatcher."""
    return trace.trace_dispatch(open_run.model, open_run.dataset, items, events)


@cached_resource(64)
def event_influence(open_run: OpenRun, history: History, scales: Scales, keep_seen: bool) -> Influence:
    """Each of the last events taken away once."""
    return influence.measure_influence(open_run.model, open_run.dataset, history, scales, keep_seen)


@cached_resource(64)
def bin_aggregation(open_run: OpenRun, items: np.ndarray, layer: int) -> Aggregation:
    """How the retrieved experts read a history. Raises InputError where there is nothing to read with."""
    return trace.bin_aggregation(open_run.model, items, layer)


@cached_resource(64)
def expert_reads(open_run: OpenRun, items: np.ndarray) -> tuple[DataFrame | None, dict[int, str]]:
    """What every retrieved expert reads of a history, by name, and what it holds or reads most, in words; nothing for a model
    that does not say."""
    try:
        traced = trace_history(open_run.model, items)
    except InputError:
        return None, {}
    table = trace.read_items(open_run.dataset, items, traced)
    return table, {expert: f"slot: {names}" for expert, names in trace.reading_texts(table).items()}
