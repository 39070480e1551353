"""What the start page keeps between reruns; see kit/cache.py for how things are identified."""

import numpy as np

from elastic_core.services.person import attribution
from elastic_core.services.person.attribution import Agreement
from elastic_core.services.person.inspect import Situation
from elastic_core.services.person.path import Path, path
from pages.kit import cache
from pages.kit.cache import Opened
from pages.kit.kept import copied, kept

PEOPLE = 200  # who are asked whether the owner of their first suggestion is the expert whose removal lowers it most


@kept(64)
def links(of: Opened, items: np.ndarray, silenced: object, stay: bool, shown: list[int], _here: Situation) -> Path:
    """What asks, keeps and gives what in this situation."""
    return path(of.model, _here, shown)


@copied(12)
def owners(of: Opened) -> Agreement | None:
    """Do shares say what a removal does? Of some people; None for a model without shares."""
    return attribution.share_agreement(of.model, of.dataset, PEOPLE, stay=cache.repeats(of.dataset).stay)
