"""What the Traffic page keeps between reruns: the choices of a group of people and the random router beside them."""

import pandas as pd

from elastic_core.core.histories import Split
from elastic_core.services.traffic import load, over_time
from elastic_core.services.traffic.load import Measure, UsageReport
from pages.components import cache
from pages.components.cache import OpenRun, cached_data


@cached_data(24, "Drawing random experts a few hundred times …")
def usage_report(open_run: OpenRun, split: Split, group: str, measure: Measure) -> UsageReport:
    """What the people of a group retrieve, and what a random router would give them."""
    return load.compare_with_random_router(
        load.select_traffic(cache.route_everybody(open_run, split), load.group_table(open_run.dataset, group, split), measure)
    )


@cached_data(8)
def epochs_to_play(open_run: OpenRun, files: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How the memory filled while the run learned. `files`: how many epochs are kept so far."""
    return over_time.epochs_to_play(open_run.run)


def warm_cache(open_run: OpenRun) -> None:
    """What the first visitor of the page would wait for."""
    usage_report(open_run, "test", load.EVERYBODY, "people")
