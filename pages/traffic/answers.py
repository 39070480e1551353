"""What the Traffic page keeps between reruns: the choices of a group of people and the random router beside them."""

from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.runs import Run
from elastic_core.services.traffic import load
from elastic_core.services.traffic.load import Chance, Measure, Traffic
from pages.kit import cache
from pages.kit.kept import copied


@copied(24, "Drawing random experts a few hundred times …")
def flow(run: Run, model: Recommender, data: Dataset, split: Split, group: str, measure: Measure) -> tuple[Traffic, Chance]:
    """What the people of a group retrieve, and what a random router would give them."""
    routing = cache.traffic(run, model, data, split)
    now = load.traffic(routing, load.group(data, group, split), measure)
    return now, load.simulate_chance(now)


def warm(run: Run, model: Recommender, data: Dataset) -> None:
    """What the first visitor of the page would wait for."""
    flow(run, model, data, "test", load.EVERYBODY, "people")
