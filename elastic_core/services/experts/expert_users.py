"""Who retrieves an expert, from the strongest to the nearly: bands, examples, and what of their histories it reads.

Bands, by margin (see overview.py). Of those who retrieve it: `top` the highest quarter, `just in` the lowest quarter, `middle`
the rest. Of the others: `just out`, as many as are just in and at least FEWEST_OUT, with the smallest gap; `out`, the rest.
"""

import numpy as np
import pandas as pd
import torch

from elastic_core.models import Batch, Recommender, as_retrieving_model, as_tracing_model
from elastic_core.services.experts.ablation import EvaluationContext
from elastic_core.services.experts.overview import Survey
from elastic_core.services.person.attribution import can_attribute
from elastic_core.services.person.recommend import batch_of
from elastic_core.services.person.user_lookup import sample_indices

TOP, MIDDLE, IN, OUT, FAR = "top", "middle", "just in", "just out", "out"
BANDS = (TOP, MIDDLE, IN, OUT, FAR)
FEWEST_OUT = 10
EACH, ITEMS = 2, 4  # people of a band, items of a person


def rank_users(survey: Survey, expert: int) -> pd.DataFrame:
    """Set out everybody and this expert, one row a user: score, margin, rank among their experts (0 = not retrieved), and
    band."""
    retrieved, margins = survey.traffic.experts == expert, survey.margins(expert)
    retrieves, order = retrieved.any(1), np.argsort(-margins, kind="stable")
    holders_in_order, others_in_order = order[retrieves[order]], order[~retrieves[order]]
    quarter = max(len(holders_in_order) // 4, 1)
    bands = np.full(survey.n_users, FAR, dtype=object)
    bands[others_in_order[: max(quarter, FEWEST_OUT)]] = OUT
    bands[holders_in_order] = MIDDLE
    bands[holders_in_order[-quarter:]] = IN
    bands[holders_in_order[:quarter]] = TOP
    rank = np.where(retrieves, retrieved.argmax(1) + 1, 0)
    return pd.DataFrame({"score": survey.scores(expert), "margin": margins, "rank": rank, "band": bands})


def example_users(context: EvaluationContext, survey: Survey, expert: int) -> pd.DataFrame:
    """Choose people from every band, the band's own middle first, and at random among the rest of those who retrieve it: group,
    user, score, margin, rank (0 = not retrieved), events, items, shares, times (the shares over those that the items have of the
    events that the model reads), empty (the part of the slot that nothing fills yet).

    `items` are up to four of the person's history of which the expert holds, or reads, most, `shares` of it; where the model does
    not say so, the most recent, shares empty."""
    ranked = rank_users(survey, expert).sort_values("margin", ascending=False, kind="stable")
    groups = {band: ranked[ranked["band"] == band] for band in (TOP, MIDDLE, IN, OUT)}
    groups[IN] = groups[IN].iloc[::-1]  # closest to the cut-off first
    middle = np.abs(np.arange(len(groups[MIDDLE])) - len(groups[MIDDLE]) / 2)
    groups[MIDDLE] = groups[MIDDLE].iloc[np.argsort(middle, kind="stable")]
    chosen = {name: group.head(EACH) for name, group in groups.items()}
    rest = ranked[ranked["rank"] > 0].drop(pd.concat(chosen.values()).index, errors="ignore").sort_index()
    chosen["random"] = rest.iloc[sample_indices(len(rest), EACH + 1, seed=expert)]
    frame = pd.concat(chosen, names=["group", "user"]).reset_index()
    frame["events"] = context.dataset.readable_lengths()[frame["user"]]
    read, frame["empty"] = _most_read_items(context, frame)
    frame["items"] = [tuple(items.index.tolist()) for items in read]
    known = [items.dropna() for items in read]
    frame["shares"] = [tuple(items["share"].tolist()) for items in known]
    frame["times"] = [tuple((items["share"] / items["even"]).tolist()) for items in known]
    return frame


@torch.inference_mode()
def _most_read_items(context: EvaluationContext, ranked: pd.DataFrame) -> tuple[list[pd.DataFrame], list[float]]:
    """Return, of each history, the items (index) of which the expert holds, or reads, most: `share`, their part of it, and
    `even`, their part of the history; and which part of the slot all events leave empty. Where the model does not say so, the
    most recent, without numbers."""
    batch = batch_of(context.model, context.dataset, ranked["user"].to_numpy())
    event_shares, read, empty = _event_shares(context.model, batch), [], []
    for row, (items, rank) in enumerate(zip(batch.items.numpy(), ranked["rank"], strict=True)):
        real = items > 0
        if event_shares is None or not rank:
            read.append(pd.DataFrame({"share": np.nan, "even": np.nan}, items[real][::-1][:ITEMS]))
            empty.append(0.0)
        else:
            events = pd.DataFrame({"share": event_shares[row, rank - 1][real], "even": 1 / real.sum()})
            read.append(events.groupby(items[real]).sum().nlargest(ITEMS, "share"))
            empty.append(max(1 - float(events["share"].sum()), 0.0))
    return read, empty


def _event_shares(model: Recommender, batch: Batch) -> np.ndarray | None:
    """float32 [B, k, N]: the part of what an expert holds, or reads, that each event is; None where the model does not say."""
    retrieving = as_retrieving_model(model)
    if can_attribute(retrieving):
        attribution = retrieving.attribute_items(batch, torch.ones(len(batch.items), 1, dtype=torch.int64))
        if attribution is not None:
            return np.asarray(attribution.held.numpy())
    if not model.traces:
        return None
    weights = as_tracing_model(model).trace_reading(batch).slot_weights
    return np.asarray((weights / weights.sum(2, keepdim=True).clamp(min=1e-9)).numpy())
