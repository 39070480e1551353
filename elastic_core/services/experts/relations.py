"""The neighbours of an expert: its row and column, experts with like vectors, experts retrieved together, itself in training."""

import numpy as np
import pandas as pd
import torch

from elastic_core.evaluation.verdict import wilson
from elastic_core.memory import whole
from elastic_core.memory.routing import Routing
from elastic_core.models import Recommender, memory_of
from elastic_core.runs import Run
from elastic_core.services.experts.overview import Survey
from elastic_core.services.person.inspect import grid
from elastic_core.services.traffic import over_time


def _vectors(model: Recommender) -> np.ndarray:
    """The experts' vectors at length one, [K, d]. Raises InputError where there are too many."""
    whole.check_size(model)
    values = memory_of(model).expert_values().detach().float()
    return torch.nn.functional.normalize(values, dim=-1).numpy()


def siblings(found: Survey, model: Recommender, expert: int) -> pd.DataFrame:
    """Everybody in the same row (sharing the row sub-key) and in the same column: line, expert, row, column, load, status,
    cosine (of its vector with this expert's). The expert itself stands in both lines."""
    every = _others(found, model, expert)
    lines = [
        every[every[line] == place].assign(line=line) for line, place in zip(("row", "column"), found.place(expert), strict=True)
    ]
    return pd.concat(lines, ignore_index=True)[["line", "expert", "row", "column", "load", "status", "cosine"]]


def nearest(found: Survey, model: Recommender, expert: int, top: int = 8) -> pd.DataFrame:
    """Experts with the most similar vectors: expert, row, column, cosine, load, status."""
    every = _others(found, model, expert).drop(index=expert)
    return every.sort_values("cosine", ascending=False, kind="stable", ignore_index=True).head(top)


def _others(found: Survey, model: Recommender, expert: int) -> pd.DataFrame:
    """All experts: expert, row, column, cosine with this one, load, status."""
    found.place(expert)
    vectors = _vectors(model)
    return grid(found.side).assign(cosine=vectors @ vectors[expert], load=found.traffic.load, status=found.status())


def usual_cosine(model: Recommender, expert: int) -> tuple[float, float]:
    """Mean and 97.5% quantile of this expert's cosine with all others: what "similar" has to exceed."""
    vectors = _vectors(model)
    others = np.delete(vectors @ vectors[expert], expert)
    return float(others.mean()), float(np.quantile(others, 0.975))


def retrieved_together(traffic: Routing, expert: int, top: int | None = 8) -> pd.DataFrame:
    """Who is retrieved by the same people: expert, together (people), expected (were the two independent), lift, low, high.

    n people retrieve this expert, a share q of everybody the other; expected = n·q and lift = together / expected. The interval
    is Wilson's for the share of the n, divided by q. Sorted by its lower bound; only experts met at least once.
    """
    users = np.flatnonzero((traffic.experts == expert).any(1))
    together = np.bincount(traffic.experts[users].ravel(), minlength=len(traffic.load))
    together[expert] = 0
    others, n = np.flatnonzero(together), len(users)
    count, share = together[others], traffic.load[others] / len(traffic.experts)
    low, high = wilson(count / max(n, 1), max(n, 1))
    frame = pd.DataFrame(
        {"expert": others, "together": count, "expected": n * share, "lift": count / np.maximum(n * share, 1e-12)}
    )
    frame["low"], frame["high"] = low / np.maximum(share, 1e-12), high / np.maximum(share, 1e-12)
    frame = frame.sort_values(["low", "together", "expert"], ascending=[False, False, True], ignore_index=True)
    return frame if top is None else frame.head(top)


def lines(found: Survey, expert: int) -> dict[str, float]:
    """What its row and its column do: loads summed over the line, and what an even share would be."""
    row, column = found.place(expert)
    grid = found.traffic.load.reshape(found.side, found.side)
    even = found.traffic.experts.size / found.side
    return {"row": float(grid[row].sum()), "column": float(grid[:, column].sum()), "even": even}


def load_by_epoch(run: Run, expert: int) -> pd.DataFrame:
    """epoch, load (validation people who retrieved it), usual (mean over experts). Empty for runs without snapshots; a
    damaged one is left out."""
    loads = over_time.load_by_epoch(run)
    if not 0 <= expert < loads.shape[1]:
        return pd.DataFrame(columns=["epoch", "load", "usual"])
    return pd.DataFrame({"load": loads[expert], "usual": loads.mean(axis=1)}).rename_axis("epoch").reset_index()
