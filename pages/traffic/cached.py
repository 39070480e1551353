"""What the Traffic page keeps between reruns: the choices of a group of people and the random router beside them."""

from elastic_core.core.histories import Split
from elastic_core.services.traffic import load
from elastic_core.services.traffic.load import Measure, UsageReport
from pages.components import cache
from pages.components.cache import OpenRun, cached_data


@cached_data(24, "Drawing random experts a few hundred times …")
def usage_report(of: OpenRun, split: Split, group: str, measure: Measure) -> UsageReport:
    """What the people of a group retrieve, and what a random router would give them."""
    return load.compare_with_random_router(
        load.select_traffic(cache.route_everybody(of, split), load.group_table(of.dataset, group, split), measure)
    )


def warm_cache(of: OpenRun) -> None:
    """What the first visitor of the page would wait for."""
    usage_report(of, "test", load.EVERYBODY, "people")
