"""What the Journey page keeps between reruns; see kit/cache.py for how things are identified."""

import numpy as np

from elastic_core.services.journey import trace
from elastic_core.services.journey.trace import Aggregation
from elastic_core.services.person.influence import influence as influence_of
from pages.kit.cache import Opened
from pages.kit.kept import asking, kept

along = asking(kept(64), trace.along)
dispatched = asking(kept(64), trace.dispatch)
influence = asking(kept(64), influence_of)  # each of the last events taken away once


@kept(64)
def aggregation(of: Opened, items: np.ndarray, layer: int) -> Aggregation:
    """How the retrieved experts read a history. Raises InputError where there is nothing to read with."""
    return trace.aggregation(of.model, items, layer)
