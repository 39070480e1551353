"""How one history is read: which experts it retrieves at every moment, how they aggregate it, and who else retrieves them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.core.batches import Batch
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender, Trace, as_retrieving_model, as_tracing_model
from elastic_core.services.person.attention import trace_history
from elastic_core.services.person.names import item_table, split_year
from elastic_core.services.person.recommend import History, rank_scores, score_batch, stack_histories
from elastic_core.services.person.slot_contents import largest_items
from elastic_core.services.person.user_lookup import evenly_spaced

BINS = 48
MOMENTS = 40


class HistoryTrace(NamedTuple):
    """`ranks`: event, item, title, rank, running, part (training, validation, test). `experts`: event, expert, place, gate."""

    ranks: pd.DataFrame
    experts: pd.DataFrame


@torch.inference_mode()
def trace_moments(model: Recommender, dataset: Dataset, user: int, most: int = MOMENTS, keep_seen: bool = False) -> HistoryTrace:
    """The same person at many moments until their test: what was retrieved after `event` events, and where the next item stood.

    In a basket that is held out there is no order, so no moment lies inside the last one."""
    items = dataset.histories.user_items(user).astype(np.int64)
    valid, test = (int(dataset.readable_lengths(split)[user]) for split in ("valid", "test"))
    ends = evenly_spaced(min(test, len(items) - 1), most) + 1
    histories = [History(items[:end], int(items[end])) for end in ends]
    batch = stack_histories(histories, model.length)
    scores = score_batch(model, batch).numpy()
    places = [rank_scores(row, history, keep_seen)[1] for row, history in zip(scores, histories, strict=True)]
    ranks = item_table(dataset.catalog, items[ends]).drop(columns="genres").assign(
        rank=[each[item] for each, item in zip(places, items[ends], strict=True)], running=[each.max() for each in places],
        part=np.select([ends >= test, ends >= valid], ["test", "validation"], "training"),
    )  # fmt: skip
    ranks.insert(0, "event", ends)
    if not model.retrieves:
        return HistoryTrace(ranks, pd.DataFrame(columns=["event", "place", "expert", "gate"]))
    retrieved = as_retrieving_model(model).retrieve(batch)
    experts = every_pair(event=ends, place=range(1, retrieved.experts.shape[1] + 1))
    return HistoryTrace(
        ranks, experts.assign(expert=retrieved.experts.numpy().ravel(), gate=retrieved.gates.numpy().ravel().astype(float))
    )


def busiest_experts(experts: pd.DataFrame, moment: int, most: int = 18) -> tuple[pd.DataFrame, int]:
    """Of experts retrieved along time, the rows of those retrieved at (or last before) `moment` and of those with the most
    weight in all, at most `most` experts; and how many there were."""
    totals = experts.groupby("expert")["gate"].sum().sort_values(ascending=False, kind="stable")
    latest = experts["event"][experts["event"] <= moment].max()
    now = experts["expert"][experts["event"] == latest]
    chosen = pd.unique(np.array([*now, *totals.index]))[:most]
    return experts[experts["expert"].isin(chosen)].reset_index(drop=True), len(totals)


def span_titles(dataset: Dataset, items: np.ndarray, cells: pd.DataFrame) -> list[str]:
    """A name for each span of events, in order: the event's title, or the first and the last one's."""
    names = []
    for first, last in cells[["first", "last"]].drop_duplicates().itertuples(index=False):
        begins, ends = (split_year(title)[0] for title in dataset.catalog.titles_of(items[[first - 1, last - 1]]))
        names.append(f"event {first}, {begins}" if first == last else f"events {first} to {last}, {begins} … {ends}")
    return names


def every_pair(**columns: Iterable[object]) -> pd.DataFrame:
    """A row for every combination of these values, those of the last column changing first."""
    return pd.MultiIndex.from_product(columns.values(), names=columns).to_frame(index=False)


class Aggregation(NamedTuple):
    """One layer, averaged over heads. `cells`: place, expert, first, last (events from 1), weight (an expert's sum to 1).
    `slots`: place, expert, reads (how the last event reads the experts; they sum to 1). `layers`: how many there are to
    look at; 1 where all layers share one reading."""

    cells: pd.DataFrame
    slots: pd.DataFrame
    layers: int


def bin_aggregation(model: Recommender, items: np.ndarray, layer: int, bins: int = BINS) -> Aggregation:
    """How each retrieved expert reads the history in a layer, from 1, and how the last event reads them. Raises InputError
    without a dispatcher."""
    trace, count = trace_history(model, items), min(len(items), model.length)
    experts, reads = trace.retrieved[layer - 1].experts[0].numpy(), trace.slots[layer - 1][0].mean(0).numpy()
    slots = pd.DataFrame({"place": range(1, len(experts) + 1), "expert": experts, "reads": reads})
    edges = evenly_spaced(count + 1, bins + 1)
    spans = pd.DataFrame({"first": edges[:-1] + 1, "last": edges[1:]}) + len(items) - count
    weights = np.add.reduceat(trace.reading[layer - 1][0].mean(0)[:, -count:].numpy().astype(float), edges[:-1], axis=1)
    cells = slots[["place", "expert"]].merge(spans, how="cross").assign(weight=weights.ravel())
    return Aggregation(cells, slots, len({id(each) for each in trace.reading}))


def read_items(dataset: Dataset, items: np.ndarray, trace: Trace) -> pd.DataFrame:
    """What every retrieved expert reads of a history that was traced, by name, in every layer: layer, place, expert, event (from
    1), item, title, weight (of this expert's reading, mean over heads), others (the mean of the person's other experts), even
    (were all events alike)."""
    count = min(len(items), trace.reading[0].shape[-1])
    weights = np.stack([layer[0].mean(0)[:, -count:].double().numpy() for layer in trace.reading])  # [layers, k, count]
    layers, k, _ = weights.shape
    mean_of_others = (weights.sum(1, keepdims=True) - weights) / (k - 1) if k > 1 else np.full_like(weights, np.nan)
    events = range(len(items) - count + 1, len(items) + 1)
    table = every_pair(layer=range(1, layers + 1), place=range(1, k + 1), event=events)
    table.insert(2, "expert", np.concatenate([retrieval.experts[0].numpy() for retrieval in trace.retrieved]).repeat(count))
    read = items[table["event"] - 1]
    return table.assign(
        item=read, title=dataset.catalog.titles_of(read), weight=weights.ravel(), others=mean_of_others.ravel(), even=1 / count
    )


def reading_texts(readings: pd.DataFrame) -> dict[int, str]:
    """For every expert of the first retrieval, the two that it reads most, beside this person's others: `16% Fargo (2.0%
    in the other slots), 5.1% Heat (1.3% in the other slots)`, layer after layer. An item met twice counts together."""
    of_items = readings.groupby(["expert", "layer", "item", "title"], sort=False)
    sums = of_items[["weight", "others"]].sum(min_count=1).assign(times=of_items.size()).reset_index()
    sums = sums.sort_values("weight", ascending=False, kind="stable")  # what was met first comes first where weights are equal
    text_of = {}
    for expert, of_expert in sums.groupby("expert"):
        text_of_layer = {layer: _two_most(rows) for layer, rows in of_expert.groupby("layer")}
        same = len(set(text_of_layer.values())) == 1  # as where an event is written to its expert only once
        text_of[int(expert)] = (
            text_of_layer[1] if same else "; ".join(f"layer {layer}: {text}" for layer, text in text_of_layer.items())
        )
    return text_of


def _two_most(rows: pd.DataFrame) -> str:
    most = rows.head(2)
    names = []
    for row in most.itertuples():
        others = "" if np.isnan(row.others) else f" (this person’s other slots: {_share_text(row.others)} on average)"
        names.append(f"{_share_text(row.weight)} {split_year(row.title)[0]}{others}")
    return ", ".join(names)


def _share_text(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


# --- the dispatcher, link by link --------------------------------------------------------------------------------------

LEAST, MOST = 2, 40  # events that are drawn
LEAST_PART = 0.01  # of what an event or a slot has: smaller parts are not named
REACHED = 3  # items that are told of those that an event reads through its experts


def opening_events(n_read: int, k: int) -> int:
    """How many events the picture opens with: more than 3k, so that 2·N·k lines are visibly fewer than N²; fewer only where
    fewer are read."""
    return min(n_read, MOST, 3 * k + 2)


class Dispatch(NamedTuple):
    """The last N events that a model reads: what its experts collect from them, and what these get back.

    `held` [k, N]: which part of what an expert can hold, or reads in the first layer, is an event; a row sums to 1 with `older`
    [k], the same of all earlier events, and what is still empty. `back` [N, k]: how much an event reads each expert in the last
    layer, from when it was the newest; a row sums to 1, or to less where a part reads no expert. `reached` [N]: the items that an
    event reads through its experts, the most first, each with its part: `back` times what the experts had collected then.
    `apart`: does every expert predict by itself?"""

    titles: list[str]
    experts: list[int]
    held: np.ndarray
    older: np.ndarray
    back: np.ndarray
    reached: list[list[tuple[str, float]]]
    apart: bool

    @property
    def table(self) -> pd.DataFrame:
        """One row an event and expert: event (from 1, the oldest that is drawn), title, expert, held, back."""
        table = every_pair(event=range(1, len(self.titles) + 1), expert=self.experts)
        table.insert(1, "title", np.repeat(np.array(self.titles, dtype=object), len(self.experts)))
        return table.assign(held=self.held.T.ravel(), back=self.back.ravel())

    @property
    def links(self) -> int:
        """Aggregate and dispatch together."""
        return 2 * self.held.size

    @property
    def pairs(self) -> int:
        """What every event looking at every event would take."""
        return len(self.titles) ** 2

    def describe_filling(self, event: int) -> str:
        """One sentence: which slots an event fills, counted from 0."""
        shares = self.held[:, event].tolist()
        parts = [(share, f"of the slot of expert {expert}") for share, expert in zip(shares, self.experts, strict=True)]
        return f"{_bare_title(self.titles[event])} fills {_list_parts(parts) or 'no slot by more than 1%'}."

    def describe_return(self, event: int) -> str:
        """One or two sentences: what an event, counted from 0, gets back from the experts, and what it learns through them."""
        shares = self.back[event].tolist()
        parts = [(share, f"from expert {expert}") for share, expert in zip(shares, self.experts, strict=True)]
        sentence = f"{_bare_title(self.titles[event])} gets back {_list_parts(parts) or 'nothing'}."
        if items := _list_parts([(share, _bare_title(title)) for title, share in self.reached[event]]):
            sentence += f" The largest parts of this mix are {items}."
            if event < len(self.titles) - 1:
                title = _bare_title(self.titles[event])
                sentence += f" Nothing after {title} is in this mix, because each slot is read as it was at that moment."
        return sentence

    def describe_slot(self, place: int) -> str:
        """One sentence: what the slot of an expert, counted from 0, holds of these events."""
        sums: dict[str, float] = {}
        for title, share in zip(self.titles, self.held[place], strict=True):
            sums[title] = sums.get(title, 0.0) + float(share)
        older = float(self.older[place])
        parts = [(share, _bare_title(title)) for title, share in sums.items()]
        text = _list_parts(parts, most=4, last=f"{_share_text(older)} older ones" if older >= LEAST_PART else "")
        empty = 1 - older - float(self.held[place].sum())
        sentence = f"The slot of expert {self.experts[place]} holds {text or 'nothing yet'}."
        return f"{sentence} All weights add up to {_share_text(1 - empty)}." if empty >= LEAST_PART else sentence


@torch.inference_mode()
def trace_dispatch(model: Recommender, dataset: Dataset, items: np.ndarray, events: int) -> Dispatch:
    """The last `events` of a history `items`, read with the experts that the whole history retrieves.

    Raises InputError for a model without a dispatcher, and for less than one event."""
    most = min(len(items), model.length)
    if not 1 <= events <= most:
        raise InputError(f"of this history 1 to {most} events are read, not {events}")
    ends = range(len(items) - events + 1, len(items) + 1)
    prefixes = stack_histories([History(items[:end]) for end in ends], model.length)
    trace = as_tracing_model(model).trace_reading(
        Batch(prefixes.items, prefixes.items[-1:].expand(events, -1), padded=prefixes.padded)
    )
    held, experts = trace.reading[0][-1].mean(0).numpy().astype(float), trace.retrieved[0].experts[0].tolist()
    through_experts = torch.einsum("bhk,bhkn->bn", trace.slots[-1], trace.reading[-1]).double() / trace.slots[-1].shape[1]
    return Dispatch(
        dataset.catalog.titles_of(items[-events:]), experts, held[:, -events:], held[:, :-events].sum(1),
        trace.slots[-1].mean(1).numpy().astype(float),
        [_most_read(dataset, items[:end], row) for end, row in zip(ends, through_experts.numpy(), strict=True)],
        trace.strength is not None,
    )  # fmt: skip


def _most_read(dataset: Dataset, items: np.ndarray, weights: np.ndarray) -> list[tuple[str, float]]:
    """The titles with the most weight among `items`, of whose last ones `weights` are; what was met twice counts together."""
    n_read = min(len(items), len(weights))
    largest = largest_items(items[-n_read:], weights[-n_read:], REACHED)
    return [(dataset.catalog.title(item), share) for item, share in largest]


def _bare_title(title: str) -> str:
    return split_year(title)[0]


def _list_parts(parts: list[tuple[float, str]], most: int = 3, last: str = "") -> str:
    """`38% from expert 7, 20% from expert 3 and 12% from expert 5`: the largest parts, as far as they are told, and `last`."""
    largest = sorted((part for part in parts if part[0] >= LEAST_PART), reverse=True)[:most]
    texts = [*(f"{_share_text(share)} {text}" for share, text in largest), *([last] if last else [])]
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else "".join(texts)
