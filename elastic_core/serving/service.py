"""What is answered: lists after histories, and for users whose events are kept.

A user's list follows from the kept events alone, and the model reads them anew for every list: after 200 events that takes
3.7 ms on one core, where a state that followed the user from event to event took 2.3 ms. Users of the data who sent no events
since get what `run.recommend` gives after their whole history.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from elastic_core.errors import InputError
from elastic_core.recommendations import HISTORY, POPULARITY, ItemRanker, Query, allowed_items, find_items
from elastic_core.serving.events import Events

SEEN = 1_000  # so many of a user's last events, at least, are not suggested again


class Conflict(InputError):
    """A user has another number of events than the caller thinks."""


@dataclass(eq=False)
class Request:
    """One of: a list for a `user` or after a `history`; `events` of a user, with a list if `k`; `count` the events of a user, or
    `forget` them."""

    user: str = ""
    history: Sequence[str] | None = None
    events: Sequence[str] | None = None
    after: int | None = None  # the number of events that the caller thinks were kept before
    k: int = 0
    exclude: Sequence[str] = ()
    only: Sequence[str] | None = None
    seen: bool | None = None  # None: as the run's data suggest
    count: bool = False
    forget: bool = False
    answer: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None


class ListService:
    """Answers requests by the batch, in one thread. `with_data`: users of the run's data are known by their ids."""

    def __init__(self, ranker: ItemRanker, events: Events | None = None, with_data: bool = True) -> None:
        self.ranker, self.with_data = ranker, with_data
        self.events = events or Events(None, self.events_to_keep(ranker))
        self._all_items = allowed_items(ranker.catalog)

    @staticmethod
    def events_to_keep(ranker: ItemRanker) -> int:
        """Of every user: what the model reads, and what is not to be suggested again."""
        return max(ranker.model.length, SEEN)

    def answer(self, requests: Sequence[Request]) -> None:
        """Fills in the answer or the error of every request. Events come first, in the order of the requests."""
        self._add_events([request for request in requests if request.events is not None])
        for request in requests:
            if request.forget:
                request.answer |= {"user": request.user, "forgotten": self.events.forget_user(request.user)}
            elif request.count:
                request.answer |= {"user": request.user, "events": self._number_of_events(request.user)}
        self._add_lists([request for request in requests if request.k and request.error is None])

    # --- events --------------------------------------------------------------------------------------------------------

    def _add_events(self, requests: Sequence[Request]) -> None:
        """All in one transaction: one that the disk does not take fails for everybody in it."""
        if not requests:
            return
        try:
            with self.events.transaction():
                for request in requests:
                    self._add(request)
        except Exception as error:
            for request in requests:
                request.error = request.error or error

    def _add(self, request: Request) -> None:
        assert request.events is not None
        total = self._number_of_events(request.user)
        if request.after is not None and request.after != total:
            request.error = Conflict(f"there are {total:,} events of this user, not {request.after:,}")
            return
        if not self.events.count_events(request.user) and self._in_data(request.user):
            # From now on the user's history is the kept events, so it begins with what the data know.
            items = self.ranker.user_history(request.user)[0][-self.events.keep :]
            self.events.add_items(request.user, total - len(items), [str(self.ranker.catalog.ids[item]) for item in items])
        self.events.add_items(request.user, total, request.events)
        unknown_items = find_items(self.ranker.catalog, request.events)[1]
        request.answer |= {"user": request.user, "events": total + len(request.events), "unknown": unknown_items}

    def _number_of_events(self, user: str) -> int:
        stored = self.events.count_events(user)
        return len(self.ranker.user_history(user)[0]) if not stored and self._in_data(user) else stored

    def _in_data(self, user: str) -> bool:
        return self.with_data and user in self.ranker.user_rows

    # --- lists ---------------------------------------------------------------------------------------------------------

    def _add_lists(self, requests: Sequence[Request]) -> None:
        queries = [(request, self._query(request)) for request in requests]
        for empty in (False, True):  # what is popular may not be known: that is an error for users without a history alone
            group = [(request, query) for request, query in queries if (len(query.items) == 0) == empty]
            if not group:
                continue
            try:
                items, scores = self.ranker.rank_items([query for _, query in group], max(request.k for request, _ in group))
            except InputError as error:
                for request, _ in group:
                    request.error = error
                continue
            for (request, _), row, values in zip(group, items.tolist(), scores.tolist(), strict=True):
                request.answer |= {
                    "items": self._suggestions(row[: request.k], values[: request.k]),
                    "basis": POPULARITY if empty else HISTORY,
                }

    def _query(self, request: Request) -> Query:
        filtered = request.exclude or request.only is not None
        allowed = allowed_items(self.ranker.catalog, request.exclude, request.only) if filtered else self._all_items
        seen = self.ranker.keep_seen if request.seen is None else request.seen
        if request.history is not None:
            items, unknown_items = find_items(self.ranker.catalog, request.history)
            request.answer |= {"known": len(items), "unknown": unknown_items}
            return Query(items, allowed, seen=seen)
        stored = self.events.last_items(request.user)
        if not stored and self._in_data(request.user):
            items, times, _ = self.ranker.user_history(request.user)
            return Query(items, allowed, times, seen)
        return Query(find_items(self.ranker.catalog, stored)[0], allowed, seen=seen)

    def _suggestions(self, items: Sequence[int], scores: Sequence[float]) -> list[dict[str, Any]]:
        catalog = self.ranker.catalog
        return [
            {"item": str(catalog.ids[item]), "title": catalog.title(item), "score": score}
            for item, score in zip(items, scores, strict=True)
            if item
        ]
