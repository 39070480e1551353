"""People followed by a running service: their states, when the memory is asked anew, and a file to go on from.

A state says nothing of the events that made it, and whoever asks the memory anew has to read those again. So beside the states
(following/stream.py) the last `length` events of everybody are kept, 8 bytes each.

| `Refresh` | the memory is asked | the history is read again |
| --- | --- | --- |
| `every=0` | when the room is used up: never where nothing counts from an end | then |
| `every=R` | after every R events of a person | then |
| `every=R, moved=s` | after every R events of a person | if more than the part s of the k experts would be others |

Between two readings states are exactly those of one batch pass with the experts of the last one.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save_file
from torch import Tensor

from elastic_core import disk
from elastic_core.errors import InputError
from elastic_core.following.stream import Stream, open_stream
from elastic_core.models import Batch, Met, Recommender, can_retrieve

FORMAT, VERSION = "followed people", "1"
MOST_BYTES = 2**33  # of a file of states


@dataclass(frozen=True)
class Refresh:
    """When to ask the memory anew: see the module's table."""

    every: int = 0
    moved: float = 0.0

    def __post_init__(self) -> None:
        if self.every < 0 or not 0 <= self.moved < 1 or (self.moved and not self.every):
            raise InputError("a refresh is asked for every 0 (never), 1, 2 … events, and `moved` of these lies in 0 … 1")


class Followed:
    """People by name, in the order of their first events."""

    def __init__(self, model: Recommender, room: int | None = None, policy: Refresh = Refresh()) -> None:
        if policy.moved and not can_retrieve(model):
            raise InputError(f"{model.config.name} in this configuration retrieves nothing that could have moved")
        self.model, self.policy, self.stream = model, policy, open_stream(model, room)
        self.scorer = model.scorer()
        self.row: dict[str, int] = {}
        self.histories = torch.zeros(0, model.length, dtype=torch.int64)
        self.states = torch.zeros(0, 0)  # [B, D] after everybody's last event
        self.experts = torch.zeros(0, 0, dtype=torch.int64)  # [B, k] found last, where the policy asks whether they moved
        self.asked = self.read = 0  # how often the memory was asked, and a history read again

    def __len__(self) -> int:
        return len(self.row)

    @torch.inference_mode()
    def begin(self, names: Sequence[str], histories: Tensor) -> Tensor:
        """New people, with what they did until now `[n, N]` (left-padded): their states `[n, D]`."""
        if len(set(names)) < len(names) or any(name in self.row for name in names):
            raise InputError("a person is begun once")
        kept = torch.nn.functional.pad(histories[:, -self.model.length :], (max(self.model.length - histories.shape[1], 0), 0))
        some = self.stream.at([])
        states = some.refresh(kept)
        self.stream.merge(some)
        self.row |= {name: len(self.row) + i for i, name in enumerate(names)}
        self.histories = torch.cat([self.histories, kept])
        self.states = torch.cat([self.states.view(-1, states.shape[1]), states])
        if self.policy.moved:
            found = self._found(kept)
            self.experts = torch.cat([self.experts.view(-1, found.shape[1]), found])
        return states

    @torch.inference_mode()
    def step(self, names: Sequence[str], items: Sequence[int]) -> Tensor:
        """One new event for each of these people, new ones among them: their states `[n, D]`."""
        event = torch.as_tensor(items, dtype=torch.int64)
        if len(set(names)) < len(names) or len(event) != len(names) or (event < 1).any() or (event > self.model.n_items).any():
            raise InputError(f"a step takes one event of each person, items of 1 to {self.model.n_items}")
        new = [i for i, name in enumerate(names) if name not in self.row]
        if new:
            self.begin([names[i] for i in new], event[new].unsqueeze(1))
        known = [i for i in range(len(names)) if i not in set(new)]
        if known:
            self._step(torch.tensor([self.row[names[i]] for i in known]), event[known])
        return self.states[[self.row[name] for name in names]]

    def forget(self, names: Sequence[str]) -> "Stream":
        """Takes people out; returns their states."""
        rows = [self.row[name] for name in names]
        some = self.stream.take(rows)
        stay = [row for name, row in self.row.items() if name not in set(names)]
        self.row = {name: i for i, name in enumerate(name for name in self.row if name not in set(names))}
        self.histories, self.states = self.histories[stay], self.states[stay]
        self.experts = self.experts[stay] if self.policy.moved else self.experts
        return some

    @torch.inference_mode()
    def scores(self, names: Sequence[str], seen: bool = False) -> Tensor:
        """Scores of every item as the next one `[n, n_items + 1]`; -inf for padding and, unless `seen`, for the events kept."""
        rows = torch.tensor([self.row[name] for name in names], dtype=torch.int64)
        histories = self.histories[rows]
        found = self.scorer(self.states[rows], Met.by(Batch(histories, histories))).float().clone()
        if not seen:
            found.scatter_(1, histories, -torch.inf)
        found[:, 0] = -torch.inf
        return found

    def _step(self, rows: Tensor, event: Tensor) -> None:
        histories = torch.cat([self.histories[rows, 1:], event.unsqueeze(1)], 1)
        self.histories[rows] = histories
        due = self._due(rows, histories)
        for again in (False, True):
            some = (due == again).nonzero().flatten()
            if not len(some):
                continue
            part = self.stream.at(rows[some])
            self.states[rows[some]] = part.refresh(histories[some]) if again else part.step(event[some])
            self.stream.put(rows[some], part)
            self.read += len(some) * again

    def _due(self, rows: Tensor, histories: Tensor) -> Tensor:
        """Whose history has to be read again, `[n]`; `histories` with the new events."""
        used = self.stream.used[rows]
        due = used >= self.stream.room if self.stream.limited else torch.zeros_like(used, dtype=torch.bool)
        asks = ((used + 1) % self.policy.every == 0) & ~due if self.policy.every else torch.zeros_like(due)
        if self.policy.moved and (asks | due).any():
            some = (asks | due).nonzero().flatten()
            found, self.asked = self._found(histories[some]), self.asked + len(some)
            before = self.experts[rows[some]]
            moved = (found.unsqueeze(2) != before.unsqueeze(1)).all(2).double().mean(1) > self.policy.moved
            asks[some] &= moved
            now = some[(asks | due)[some]]
            self.experts[rows[now]] = found[(asks | due)[some]]
        return due | asks

    def _found(self, histories: Tensor) -> Tensor:
        assert can_retrieve(self.model)
        read = histories[:, -self.stream.reads :]
        return self.model.retrieve(Batch(read, read)).experts

    # --- a file ------------------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Everybody's state, whole or not at all (safetensors). Raises InputError for numbers that are none, and if the disk does
        not take it; what was there stays."""
        own = {"used": self.stream.used, "histories": self.histories, "states": self.states, "experts": self.experts}
        tensors = {**own, **{f"kept/{name}": part for name, part in self.stream.stored().items()}}
        told = {"format": FORMAT, "version": VERSION, "model": self.model.config.name, "weights": model_fingerprint(self.model)}
        told |= {"room": str(self.stream.room), "people": json.dumps(list(self.row))}
        tensors = {name: part.detach().cpu() for name, part in tensors.items() if part.numel()}
        for name, part in tensors.items():
            if not bool(part.isfinite().all()):
                raise InputError(f"states with numbers in {name} that are none are not kept in {disk.shown(path.name)}")
        disk.write_whole(path, lambda beside: save_file(tensors, beside, told))

    @classmethod
    def load(cls, path: Path, model: Recommender, policy: Refresh = Refresh()) -> "Followed":
        """Goes on from a file. Raises InputError for one that is none, of another version, another model or other weights, of
        other shapes, or with numbers that are none."""
        name = disk.shown(path.name)
        with disk.parsing(name), safetensors.safe_open(disk.regular(path, MOST_BYTES, path.parent), framework="pt") as file:
            told, tensors = file.metadata() or {}, {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118, no mapping
        if told.get("format") != FORMAT:
            raise InputError(f"{name} holds no states of followed people")
        if told.get("version") != VERSION:
            raise InputError(f"{name} is of version {disk.shown(told.get('version'), 20)}; this is {VERSION}")
        if told.get("model") != model.config.name:
            raise InputError(f"{name} holds states of {disk.shown(told.get('model'), 40)}, and this model is {model.config.name}")
        if told.get("weights") != model_fingerprint(model):
            raise InputError(f"{name} was kept with other weights than this model has; its people have to be read again")
        people, room = _people(told, name), told.get("room", "")
        followed = cls(model, int(room) if room.isdecimal() and len(room) < 10 else 0, policy)
        if not people:
            return followed
        followed.row = {person: i for i, person in enumerate(people)}
        kept = followed._checked(tensors, name)
        followed.histories, followed.states = kept.pop("histories"), kept.pop("states")
        used = kept.pop("used")
        followed.stream.restore({key.removeprefix("kept/"): part.clone() for key, part in kept.items()}, used)
        if policy.moved:  # where nobody wrote down what was found last, everything counts as moved
            followed.experts = tensors.get("experts", torch.zeros(0))
            if followed.experts.shape != (len(people), model.config.k):  # type: ignore[attr-defined]
                followed.experts = torch.full((len(people), model.config.k), -1)  # type: ignore[attr-defined]
        return followed

    def _checked(self, tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """The tensors of a file, each of the shape and range that this model's have."""
        probe, n = self.stream.at([]), len(self.row)
        empty = torch.zeros(1, self.model.length, dtype=torch.int64)
        like = {"states": probe.refresh(empty), "histories": empty, "used": probe.used}
        like |= {f"kept/{key}": part for key, part in probe.stored().items()}
        most = {"histories": self.model.n_items, "used": self.stream.room if self.stream.limited else 2**62}
        most |= {f"kept/{key}": bound for key, bound in probe.bounds().items()}
        for key, part in like.items():
            found = tensors.get(key, torch.zeros(0))
            if part.numel() and (found.shape != (n, *part.shape[1:]) or found.dtype != part.dtype):
                belongs = f"{[n, *part.shape[1:]]} of {part.dtype}"
                raise InputError(f"{name} does not fit: {key} is {list(found.shape)} of {found.dtype} where {belongs} belongs")
            if not bool(found.isfinite().all()):
                raise InputError(f"{name} holds numbers in {key} that are none")
            whole, largest = not found.is_floating_point() and found.numel() > 0, most.get(key, 2**62)
            if whole and not 0 <= int(found.min()) <= int(found.max()) <= largest:
                raise InputError(f"{name} holds numbers in {key} beyond 0 … {largest}")
        return {key: tensors[key] if part.numel() else part.new_zeros(n, *part.shape[1:]) for key, part in like.items()}


def model_fingerprint(model: Recommender) -> str:
    """Of a model's settings and weights; a state is worth nothing with others."""
    found = hashlib.sha256(repr(model.config).encode())
    for name, part in sorted(model.state_dict().items()):
        found.update(f"{name} {tuple(part.shape)} {part.dtype}".encode())
        found.update(part.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]


def _people(told: dict[str, str], name: str) -> list[str]:
    try:
        found: Any = disk.parse(told.get("people", ""))
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(person, str) for person in found) or len(set(found)) < len(found):
        raise InputError(f"{name} does not say whose states it holds")
    return found
