"""How far are served scores from a pass that asks the memory anew after every event?

The last events of people of the run's own data are played to `Followed` under several policies. After each event the scores are
held against `model.score` of the same history, which moves the window's end and asks anew: the part of its ten suggestions that
are served, and NDCG@10 of the event that really came next (of which most were trained on: read the difference). Beside them the
null: every refresh gets another person's experts. What differs with a refresh after every event is the window's end alone.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elastic_core.data import Dataset
from elastic_core.data.batches import Batch
from elastic_core.errors import InputError
from elastic_core.layers.interest_memory import Retrieved
from elastic_core.models import Met, Recommender, open_stream
from elastic_core.streaming import Followed, Refresh

TOP = 10
Policies = Mapping[str, tuple[Refresh, int | None]]  # and how much room, where a window has an end: None is a quarter of it
POLICIES: Policies = {
    "never": (Refresh(), None), "every 25": (Refresh(25), None), "every 10": (Refresh(10), None), "every 5": (Refresh(5), None),
    "every event": (Refresh(1), None), "asked every 10, read if more than half moved": (Refresh(10, 0.5), None),
    "room for 25": (Refresh(), 25), "room for 10": (Refresh(), 10), "room for 5": (Refresh(), 5), "room for 1": (Refresh(), 1),
}  # fmt: skip


def measure_drift(
    model: Recommender,
    dataset: Dataset,
    people: int = 100,
    events: int = 50,
    policies: Policies = POLICIES,
) -> list[dict[str, Any]]:
    """A row a policy, and the null under the first: means over people, with the standard error of `same`.

    `same`: part of the fresh pass's ten that are served; `ndcg`, `ndcg_fresh`: of the next event; `asked`, `read`: how often per
    event the memory was asked and a history read again.
    """
    long = np.flatnonzero(np.diff(dataset.histories.offsets) > 2 * events)[:people]
    if not len(long):
        raise InputError(f"{dataset.label} has nobody with more than {2 * events} events")
    whole = [dataset.histories.of(int(user)) for user in long]
    past = torch.stack([_padded(items[: -events - 1], model.length) for items in whole])
    later = torch.from_numpy(np.stack([items[-events - 1 :] for items in whole]).astype(np.int64))
    fresh = _fresh(model, past, later)
    chosen = {name: one for name, one in policies.items() if one[1] is None or open_stream(model).limited}
    rows = [_played(model, name, *one, past, later, fresh) for name, one in chosen.items()]
    first = next(iter(chosen))
    with _strangers(model):
        rows.insert(1, _played(model, f"{first}, another person's experts", *policies[first], past, later, fresh))
    return rows


def _padded(items: np.ndarray, length: int) -> Tensor:
    kept = torch.from_numpy(items[-length:].astype(np.int64))
    return torch.nn.functional.pad(kept, (length - len(kept), 0))


@torch.inference_mode()
def _fresh(model: Recommender, past: Tensor, later: Tensor) -> list[Tensor]:
    """Scores after every event, `[B, n_items + 1]` each, what was read lately out of the running."""
    judge, history, found = model.eval().prepare(), past, []
    for i in range(later.shape[1] - 1):
        history = torch.cat([history[:, 1:], later[:, i : i + 1]], 1)
        found.append(_running(judge(Batch(history, history)), history))
    return found


@torch.inference_mode()
def _played(
    model: Recommender, name: str, policy: Refresh, room: int | None, past: Tensor, later: Tensor, fresh: list[Tensor]
) -> dict[str, Any]:
    followed, names, same, ours, theirs = Followed(model, room, policy), [str(i) for i in range(len(past))], [], [], []
    followed.begin(names, past)
    for i, expected in enumerate(fresh):
        states = followed.step(names, later[:, i].tolist())
        scores = _running(followed.scorer(states, Met.by(Batch(followed.histories, followed.histories))), followed.histories)
        tens = [x.topk(TOP).indices for x in (scores, expected)]
        same.append((tens[0].unsqueeze(2) == tens[1].unsqueeze(1)).any(2).double().mean(1))
        ours.append(_ndcg(scores, later[:, i + 1]))
        theirs.append(_ndcg(expected, later[:, i + 1]))
    each, count = torch.stack(same).mean(0), len(fresh) * len(past)
    return {
        "policy": name, "people": len(past), "events": len(fresh), "same": float(each.mean()),
        "error": float(each.std() / len(each) ** 0.5), "ndcg": float(torch.stack(ours).mean()),
        "ndcg_fresh": float(torch.stack(theirs).mean()), "asked": followed.asked / count, "read": followed.read / count,
    }  # fmt: skip


def _running(scores: Tensor, history: Tensor) -> Tensor:
    found = scores.float().clone().scatter_(1, history, -torch.inf)
    found[:, 0] = -torch.inf
    return found


def _ndcg(scores: Tensor, truth: Tensor) -> Tensor:
    rank = (scores > scores.gather(1, truth[:, None])).sum(1)
    return torch.where(rank < TOP, 1 / (rank + 2.0).log2(), 0.0)


@contextmanager
def _strangers(model: Recommender) -> Iterator[None]:
    """Everybody gets what the memory found for their neighbour in the batch."""

    def turned(module: Any, given: Any, found: Retrieved) -> Retrieved:
        others: dict[str, Any] = {name: x.roll(1, 0) for name, x in found._asdict().items() if isinstance(x, Tensor)}
        return found._replace(**others)

    hooks = [memory.register_forward_hook(turned) for memory in getattr(model, "memories", [])]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
