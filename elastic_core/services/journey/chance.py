"""The last edit of a version beside the same edit on other events of the same history: what would any other have done?"""

import numpy as np

from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.services.journey.versions import Add, Cut, Edit, Move, Replace, Tree, in_words, reading
from elastic_core.services.person.chance import MOST, Chance, Version, compare_acts


def of_version(model: Recommender, dataset: Dataset, tree: Tree, stay: bool = False) -> Chance | None:
    """What the edit that made the current version changed, and what the same edit changes elsewhere. None for the original, for
    another history altogether, and where there is nowhere else."""
    if not tree.current:
        return None
    version = tree.versions[tree.current - 1]
    before, edit = tree.contents[version.parent], version.edit
    if isinstance(edit, Replace) or not before.items or not tree.here.items:
        return None

    def made(other: Edit) -> Version:
        return Version(reading(dataset, tree.base, before.after(other, tree.n_items)), name=in_words(dataset, other, before))

    others = [made(other) for other in elsewhere(edit, before.items, tree.n_items, model.length)]
    return compare_acts(model, Version(reading(dataset, tree.base, before)), made(edit), others, stay)


def elsewhere(edit: Edit, items: tuple[int, ...], n_items: int, length: int) -> list[Edit]:
    """The same edit on other events that the model reads, or with other items: up to `MOST` of them, drawn at random."""
    count, rng = len(items), np.random.default_rng(0)
    first = max(count - length, 0)
    if isinstance(edit, Add):
        unmet = np.setdiff1d(np.arange(1, n_items + 1), [*items, edit.item])
        return [Add(int(item), edit.at) for item in rng.permutation(unmet)[:MOST]]
    if isinstance(edit, Cut):
        wide = edit.stop - edit.start
        able: list[Edit] = [Cut(at, at + wide) for at in range(first, count - wide + 1) if at != edit.start]
    else:
        assert isinstance(edit, Move)
        to_an_end, places = edit.to in (0, count - 1), [at for at in range(first, count) if at != edit.at]
        moves = [Move(at, edit.to if to_an_end else at + edit.to - edit.at) for at in places]
        able = [move for move in moves if 0 <= move.to < count and move.to != move.at]
    return [able[row] for row in sorted(rng.permutation(len(able))[:MOST])]
