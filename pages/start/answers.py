"""What the start page keeps between reruns; see kit/cache.py for how things are identified."""

import numpy as np

from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.runs import Run
from elastic_core.services.person import attribution
from elastic_core.services.person.attribution import Agreement
from elastic_core.services.person.inspect import Situation
from elastic_core.services.person.path import Path, path
from pages.frame.shell import Context
from pages.kit import cache
from pages.kit.kept import copied, kept

PEOPLE = 200  # who are asked whether the owner of their first suggestion is the expert whose removal lowers it most


def links(now: Context, here: Situation, shown: list[int]) -> Path:
    """What asks, keeps and gives what in this situation."""
    return _links(now.run, now.model, now.dataset, here.read.items, here.silenced, here.stay, shown, here)


@kept(64)
def _links(
    run: Run, model: Recommender, data: Dataset, items: np.ndarray, silenced: object, stay: bool, shown: list[int],
    _here: Situation,
) -> Path:  # fmt: skip
    return path(model, _here, shown)


@copied(12)
def owners(run: Run, model: Recommender, data: Dataset) -> Agreement | None:
    """Do shares say what a removal does? Of some people; None for a model without shares."""
    return attribution.share_agreement(model, data, PEOPLE, stay=cache.repeats(data).stay)
