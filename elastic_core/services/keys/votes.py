"""Who voted for whom: how the searches of single events elect a person's experts (the step *Vote* of the page on product keys).

All is read from the ballots that the model itself counted.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.core.contract import Retrieved
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.services.person.inspect import ItemWords, item_words
from elastic_core.services.person.recommend import retrieve_experts, user_history

LATEST = 40  # events that are drawn one by one: more would be thinner than a line on a phone
EARLIER = 0  # the number under which all events before them stand together


def retrieve_by_vote(model: Recommender, dataset: Dataset, user: int) -> Retrieved:
    """What a person's whole history retrieves, as on every other page; a batch of one."""
    return retrieve_experts(model, user_history(dataset, user))


class VoteTally(NamedTuple):
    """All events that a model reads of a history, of which one is looked at, and the experts that their votes elect."""

    retrieved: Retrieved
    events: pd.DataFrame  # newest first: event (its number in the history, from 1), title
    words: ItemWords
    ago: int = 0  # how many events came after the one that is looked at

    @property
    def newest(self) -> int:
        return int(self.events["event"].iloc[0])

    @property
    def event(self) -> int:
        return self.newest - self.ago

    @property
    def event_options(self) -> list[str]:
        """The events that one may look at, newest first, as they are chosen."""
        return [f"{row.event}. {row.title}" for row in self.events.head(LATEST).itertuples()]

    def select_event(self, chosen: str) -> "VoteTally":
        """Looking at another one of `event_options`."""
        return self._replace(ago=self.event_options.index(chosen))


def tally_votes(model: Recommender, dataset: Dataset, user: int) -> VoteTally:
    """A person's, looking at their newest event."""
    items = user_history(dataset, user).items
    seen = pd.DataFrame({"event": range(1, len(items) + 1), "title": dataset.catalog.titles_of(items)})
    seen = seen.iloc[::-1].head(model.length).reset_index(drop=True)
    return VoteTally(retrieve_by_vote(model, dataset, user), seen, item_words(dataset))


def vote_table(retrieved: Retrieved, newest: int) -> pd.DataFrame:
    """One row a vote, oldest event first; `newest` is the number of the last event.

    `event`, `expert`, `share` of the event's own vote, `votes` (part of all votes) and `row`: the expert's place among the
    retrieved from 0, or how many these are."""
    assert retrieved.ballots is not None
    (experts, votes), numbers = (each[0] for each in retrieved.ballots[:2]), retrieved.experts[0].tolist()  # [N, m] each
    real = votes.sum(1) > 0  # padding has no vote
    experts, votes = experts[real], votes[real]
    voters = torch.arange(newest - len(experts) + 1, newest + 1).repeat_interleave(experts.shape[1])
    table = pd.DataFrame({"event": voters.tolist(), "expert": experts.flatten().tolist()})
    table["share"], table["votes"] = (votes / votes.sum(1, keepdim=True)).flatten().tolist(), votes.flatten().tolist()
    rows = pd.Index(numbers).get_indexer(table["expert"])
    return table.assign(row=np.where(rows < 0, len(numbers), rows))


def vote_sums(retrieved: Retrieved) -> pd.DataFrame:
    """The sums of `vote_table`: one row a retrieved expert, most wanted first, and one for all others together (`expert` <NA>).

    `place` from 1, `expert`, `events` that voted for it, `votes` (part of all), `usual` (its part of everybody's votes) and
    `weight`, its gate; experts are in the order of votes - usual. A history that asks for
    fewer than k experts gets the newest event's next best beside them, without votes."""
    assert retrieved.ballots is not None and retrieved.ballots.mean_vote_share is not None
    numbers = retrieved.experts[0].tolist()
    mean_share = retrieved.ballots.mean_vote_share[retrieved.experts[0]].tolist()
    table = pd.DataFrame({"place": [*range(1, len(numbers) + 1), None], "expert": [*numbers, None]}, dtype="Int64")
    sums = vote_table(retrieved, 0).groupby("row").agg(events=("event", "nunique"), votes=("votes", "sum"))
    return table.join(sums.reindex(table.index, fill_value=0)).assign(
        usual=[*mean_share, 1 - sum(mean_share)], weight=[*retrieved.gates[0].tolist(), 0.0]
    )


def vote_marks(cast: pd.DataFrame, last: int = LATEST) -> pd.DataFrame:
    """What is drawn of `vote_table`: `event`, `row`, `votes`, `share` and `experts` (their numbers), one row a mark.

    Events before the `last` stand together as number `EARLIER`."""
    seen = cast.assign(event=cast["event"].where(cast["event"] > cast["event"].max() - last, EARLIER))
    named = seen.assign(experts=seen["expert"].map("{}".format))
    sums = named.groupby(["event", "row"], as_index=False)
    return sums.agg(
        votes=("votes", "sum"), share=("share", "sum"), experts=("experts", lambda each: ", ".join(dict.fromkeys(each)))
    )
