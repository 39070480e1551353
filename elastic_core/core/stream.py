"""People followed event by event: what the streams of all models share.

    stream = open_stream(model)            n_users      how many are in it, B
    states = stream.refresh(histories)     states       [B, d], what `model.scorer()` scores the next items from
    states = stream.step(items)            items        [B], one new event for everybody
    stored = stream.stored_state()         stored       name → tensor, the first axis is users
    stream.restore_state(stored, used)     used         [B], how many events each has read since the refresh

All that is remembered of a user between two events lies in `state`. So users who came at different times and have read different
numbers of events advance together: what was stored of them can be cut and joined along the first axis.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from elastic_core.core.contract import Recommender, can_stream
from elastic_core.core.layers import autocast_to, without_autocast
from elastic_core.errors import InputError

StreamState = dict[str, Tensor]


class Stream:
    """B users who advance together. A model's own says in `_read_history` and `_read_event` how it reads; `derived` names what
    follows from the rest of `state` and the weights (`_derive_tensors`), and need not be stored.

    `limited`: positions count from the end of what is read. Were every event the new end, all older events would move back with
    each of them, and nothing that was summed could follow. What streams exactly is one pass over one window whose end lies ahead:
    `refresh` puts a history before the last `room` columns, and every new event takes the next free one. After m events the
    states equal column length - room - 1 + m of *one* batch pass. When the room is used up, `refresh` is due. Where nothing
    counts from an end there is no limit: `events_left` is infinite, and `room` is not used.
    """

    derived: tuple[str, ...] = ()
    limited = False
    grows = False  # whether what is kept grows with what has been read

    def __init__(self, model: Any, room: int) -> None:
        self.model, self.room = model, room
        self.state: StreamState = {}
        self.used = torch.zeros(0, dtype=torch.int64)  # [B] events since the refresh
        self._most, self._alike = 0, True  # of `used`: the largest, and whether all are equal

    # --- what a model says -------------------------------------------------------------------------------------------

    def _read_history(self, history: Tensor, columns: slice) -> tuple[Tensor, StreamState]:
        """Reads `history [B, n]`, which stands in these columns of a full window: the states `[B, d]`, and what is kept."""
        raise NotImplementedError

    def _read_event(self, items: Tensor) -> Tensor:
        """One event for everybody: changes what is kept, returns the states `[B, d]`."""
        raise NotImplementedError

    def _derive_tensors(self, state: StreamState) -> StreamState:
        """`state` without what is derived → what is derived."""
        return {}

    def _rebind_tensors(self) -> None:
        """`state` holds other tensors than before."""

    def _unify_form(self) -> None:
        """Brings `state` into the one form in which it is stored."""

    # --- what all do -------------------------------------------------------------------------------------------------

    @property
    def n_users(self) -> int:
        return len(self.used)

    @property
    def reads(self) -> int:
        """How many events a refresh reads."""
        return int(self.model.length) - (self.room if self.limited else 0)

    @property
    def events_left(self) -> float:
        """Events until a refresh is due: of whoever has least room."""
        return self.room - self._most if self.limited else math.inf

    @torch.inference_mode()
    def refresh(self, history: Tensor) -> Tensor:
        """Begins anew with left-padded histories `[B, n]`, of which the last `reads` columns count; returns states `[B, d]`."""
        history = history[:, -self.reads :]
        with without_autocast(history.device.type):  # sums in bfloat16 would soon stand still
            states, stream_state = self._read_history(history, slice(self.reads - history.shape[1], self.reads))
        self._hold_state(stream_state, torch.zeros(len(history), dtype=torch.int64, device=history.device))
        return states

    @torch.inference_mode()
    def step(self, items: Tensor) -> Tensor:
        """One new event for everybody, `[B]`, and the states `[B, d]` that score the next. Raises InputError when full."""
        if self.limited and self._most >= self.room:
            raise InputError(f"the window has no room for another event; refresh it (every {self.room} events at the latest)")
        if autocast_to(items.device.type):
            with without_autocast(items.device.type):
                states = self._read_event(items)
        else:  # entering a context takes as long as two operations
            states = self._read_event(items)
        self.used += 1
        self._most += 1
        return states

    def stored_state(self) -> StreamState:
        """What has to be stored of everybody; `restore_state` takes it."""
        self._unify_form()
        return {name: part.contiguous() for name, part in self.state.items() if name.rsplit(".", 1)[-1] not in self.derived}

    @torch.inference_mode()
    def restore_state(self, state: StreamState, used: Tensor) -> None:
        """Goes on from what was stored."""
        self._hold_state({**state, **self._derive_tensors(state)}, used)

    def count_numbers(self) -> int:
        """How many numbers are kept for one person between two events, everything counted."""
        return 1 + sum(math.prod(part.shape[1:]) for part in self.state.values())

    def next_positions(self) -> Tensor | float:
        """The positions of the next events, `[d]` or `[B, d]`; 0 without positions."""
        if not self.limited:
            return 0.0
        first = self.model.length - self.room
        return self.model.events.positions[first + self._most if self._alike else first + self.used]

    def _hold_state(self, state: StreamState, used: Tensor) -> None:
        self.state, self.used = state, used.clone()
        self._most = int(used.max()) if len(used) else 0
        self._alike = not len(used) or int(used.min()) == self._most
        if state:
            self._rebind_tensors()


def open_stream(model: Recommender, room: int | None = None) -> Stream:
    """A stream with `room` new events between two refreshes (default: a quarter of what the model reads), without limit where
    nothing counts from an end.

    Raises InputError for a model that does not claim to stream, or a room that leaves no history.
    """
    if not can_stream(model):
        raise InputError(f"{model.config.name} in this configuration cannot be followed event by event")
    room = max(1, model.length // 4) if room is None else room
    if not 1 <= room < model.length:
        raise InputError(f"room must lie in 1 … {model.length - 1}, not {room}")
    model.eval()
    return model.open_stream(room)


def norm_arguments(norm: nn.LayerNorm) -> tuple[Any, ...]:
    """What `torch.layer_norm` is called with after x."""
    return norm.normalized_shape, norm.weight, norm.bias, norm.eps
