"""Who suggests an item, and after which event: read off the prediction itself, where a model's slots predict one by one.

With a mixture every item's probability is a sum over parts, p(item) = Σ_s π_s p_s(item). The part an expert contributes, divided
by the sum, is its share of the suggestion; no approximation and nothing taken away. What its slot holds most of is the event the
expert speaks after. For models that mix their experts into one vector there is no such reading.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.core.candidates import Candidates
from elastic_core.core.contract import Attribution, Edit, Retrieved
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender, RetrievingModel, can_retrieve
from elastic_core.services.person.recommend import History, read_batches

CLEAR = 0.25  # of what a slot holds: below that no single event stands for it


class Reason(NamedTuple):
    """Who makes a suggestion. `expert` is None for the part that reads no slot; `after` is a dense item id, None if none stands
    out."""

    expert: int | None
    share: float  # of the item's probability
    after: int | None
    best: tuple[int, float] | None = None  # where no expert has the largest share, the expert with the largest of theirs

    def sentence(self, catalog: Catalog) -> str:
        """`expert 147 (62%), after Alien`, or `no expert (35%), then expert 111 (28%)`."""
        source = "no expert" if self.expert is None else f"expert {self.expert}"
        best = f", then expert {self.best[0]} ({self.best[1]:.0%})" if self.best is not None else ""
        after = f", after {catalog.title(self.after)}" if self.after is not None else ""
        return f"{source} ({self.share:.0%}){best}{after}"


def can_attribute(model: RetrievingModel) -> bool:
    """Whether the model's experts can suggest by themselves (for a setting it may still not say so)."""
    return type(model).attribute_items is not RetrievingModel.attribute_items


@torch.inference_mode()
def attribute_items(model: Recommender, history: History, items: Sequence[int], edit: Edit | None = None) -> Attribution | None:
    """Every part's share of every item, a batch of one; None where the model's experts do not predict by themselves."""
    if not can_retrieve(model) or not len(history.items) or not len(items):
        return None
    try:
        return model.attribute_items(history.batch(model.length), torch.tensor([list(items)]), edit)
    except InputError:
        return None


def find_reasons(model: Recommender, history: History, items: Sequence[int], edit: Edit | None = None) -> list[Reason] | None:
    """The part with the largest share of every item; None where the model's experts do not predict by themselves."""
    attribution = attribute_items(model, history, items, edit)
    if attribution is None:
        return None
    recent, best, rows = history.items[-model.length :], attribution.parts[0].max(-1), []
    experts, event_share = attribution.experts[0].tolist(), attribution.held[0].numpy()[:, -len(recent) :]
    for row, (part, share) in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True)):
        reads = part < len(experts)  # or it reads no slot
        after = int(recent[event_share[part].argmax()]) if reads and event_share[part].max() >= CLEAR else None
        own_parts = attribution.parts[0, row, : len(experts)]
        own = None if reads or not experts else (experts[int(own_parts.argmax())], float(own_parts.max()))
        rows.append(Reason(experts[part] if reads else None, share, after, own))
    return rows


class Agreement(NamedTuple):
    """Do shares of a suggestion say what taking the expert away does? Over people whose likeliest unmet item an expert owns."""

    n_users: int
    owners: float  # part of them whose owner is the expert whose removal lowers the item most
    chance: float  # … if an expert were drawn from theirs
    correlation: float  # mean over people of the rank correlation, over their experts, of share and what removal takes
    shuffled: float  # … with the shares of another person


@torch.inference_mode()
def share_agreement(model: Recommender, dataset: Dataset, most: int = 1_000, keep_seen: bool = False) -> Agreement | None:
    """Shares of everybody's likeliest item (of the met ones, too, with `keep_seen`) against measured removal of each
    of their experts; None where there are no shares."""
    if not can_retrieve(model):
        return None
    candidates, protocol = Candidates(dataset, "test", 0), "full-seen" if keep_seen else "full"
    users = np.sort(np.random.default_rng(0).permutation(len(candidates.ends))[:most])
    shares_by_batch, losses_by_batch = [], []
    for rows, batch in read_batches(model, dataset, users):
        scores = model.scorer()(model.last_state(batch)).float()
        top = scores.masked_fill(~candidates.candidate_mask(protocol, users[rows]), -torch.inf).argmax(1, keepdim=True)
        try:
            attribution = model.attribute_items(batch, top)
        except InputError:
            return None
        suggestion_share, k = attribution.parts[:, 0], attribution.experts.shape[1]
        if k < 2:
            return None
        remaining = [torch.tensor([at for at in range(k) if at != rank]) for rank in range(k)]
        scores_without = (
            model.scorer()(model.last_state(batch, partial(Retrieved.select_ranks, ranks=ranks))).float() for ranks in remaining
        )
        before, *after = (each[:, 1:].log_softmax(1).gather(1, top - 1) for each in (scores, *scores_without))
        is_owned = suggestion_share.argmax(1) < k
        shares_by_batch.append(suggestion_share[is_owned, :k].numpy())
        losses_by_batch.append((before - torch.cat(after, 1))[is_owned].numpy())
    share, loss = np.concatenate(shares_by_batch), np.concatenate(losses_by_batch)
    if not len(share):
        return None
    shuffled_shares = share[np.random.default_rng(0).permutation(len(share))]
    owners = float((share.argmax(1) == loss.argmax(1)).mean())
    # Spearman's correlation of every row. By that name pandas would load scipy.stats, which takes 37 MB.
    losses = pd.DataFrame(loss).rank(axis=1)
    correlation, shuffled = (
        float(pd.DataFrame(each).rank(axis=1).corrwith(losses, axis=1).mean()) for each in (share, shuffled_shares)
    )
    return Agreement(len(share), owners, 1 / share.shape[1], correlation, shuffled)
