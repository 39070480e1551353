"""What the journey page keeps between reruns; see kit/cache.py for how things are identified."""

from contextlib import suppress

import numpy as np
import pandas as pd

from elastic_core.errors import InputError
from elastic_core.services.journey import trace
from elastic_core.services.journey.chance import of_version
from elastic_core.services.journey.trace import Aggregation, dispatch
from elastic_core.services.journey.versions import Tree
from elastic_core.services.person import influence as removal
from elastic_core.services.person import inspect, people
from elastic_core.services.person.chance import Chance
from pages.kit import cache
from pages.kit.cache import Opened
from pages.kit.kept import asking, copied, kept

situation = asking(kept(64), inspect.situation_of)  # what a history retrieves and is answered
along = asking(kept(64), trace.along)
dispatched = asking(kept(64), dispatch)
influence = asking(kept(64), removal.influence)  # each of the last events taken away once


@kept(256)
def chance(of: Opened, code: str, base: str, stay: bool, _tree: Tree) -> Chance | None:
    """The last edit beside the same edit elsewhere."""
    return of_version(of.model, of.dataset, _tree, stay)


@kept(64)
def reading(of: Opened, items: np.ndarray, layer: int) -> Aggregation:
    """How the retrieved experts read a history. Raises InputError where there is nothing to read with."""
    return trace.aggregation(of.model, items, layer)


@kept(8)
def everybody(of: Opened, expert: int | None) -> pd.DataFrame:
    """Everybody as one row; the ranks are those of the run's test, where it keeps them."""
    traffic, places = cache.traffic(of) if expert is not None else None, None
    with suppress(InputError, KeyError):
        places = of.run.report().ranks["full-seen" if of.stay else "full"].places
    if places is None or len(places) != of.dataset.histories.n_users:
        places = target_ranks(of)
    return people.people_table(of.dataset, places, traffic, expert)


@copied(8, "Asking one run about everybody …")
def target_ranks(of: Opened) -> np.ndarray:
    """Where everybody's next item stands; among all items where people choose again what they have met."""
    return people.target_ranks(of.model, of.dataset, stay=of.stay)
