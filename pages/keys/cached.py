"""What the page on product keys keeps between reruns (pages/components/cache.py)."""

import pandas as pd

from elastic_core.services.keys import checks, gate, search
from elastic_core.services.keys.gate import GateComparison
from pages.components.cache import OpenRun, cached_data, cached_resource

turning_point = cached_resource(8)(checks.rotate_toy)  # from where on the clock shows what the counter does
toy_routers = cached_data(1, "Training two tiny routers …")(
    gate.train_toy_routers
)  # the same one, trained with a gate and without


@cached_data(32, "One backward pass with the gate, one without …")
def gradient_table(open_run: OpenRun, user: int) -> pd.DataFrame:
    return gate.gradient_table(open_run.model, open_run.dataset, user)


@cached_resource(64)
def ungated_list(open_run: OpenRun, user: int, keep_seen: bool) -> GateComparison:
    """What the gate does to a person's list once the model is trained."""
    return gate.compare_without_gate(open_run.model, open_run.dataset, user, keep_seen)


@cached_data(32, "Searching several hundred people’s experts both ways …")
def search_as_printed(open_run: OpenRun, user: int, k: int, events_ago: int = 0) -> checks.PrintedSearch:
    """Eq. 7 as printed, for this person (the event `events_ago` before their newest) and several hundred others."""
    return checks.search_as_printed(
        search.first_memory(open_run.model).keys, k, checks.people_queries(open_run.model, open_run.dataset, user, ago=events_ago)
    )
