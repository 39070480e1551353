"""The neighbours of an expert: its row and column, experts with like vectors, experts retrieved together, itself in training."""

import numpy as np
import pandas as pd
import torch

from elastic_core.memory.routing import RoutedUsers
from elastic_core.memory.user_experts import expert_grid
from elastic_core.models import Recommender, as_retrieving_model
from elastic_core.results.statistics import wilson_interval
from elastic_core.services.experts.overview import Survey


def cosine_table(survey: Survey, model: Recommender, expert: int) -> pd.DataFrame:
    """Compare all experts: expert, row, column, load, status, cosine of its vector with this expert's."""
    values = as_retrieving_model(model).expert_values().detach().float()
    vectors = torch.nn.functional.normalize(values, dim=-1).numpy()
    return expert_grid(survey.n_subkeys).assign(
        load=survey.traffic.load, status=survey.status(), cosine=vectors @ vectors[expert]
    )


def same_line(every: pd.DataFrame, expert: int, line: str) -> pd.DataFrame:
    """Return, of all experts (`cosine_table`), this one and those in the same "row" or "column" (sharing its sub-key)."""
    part = every[every[line] == every[line][expert]].reset_index(drop=True)
    part.insert(0, "line", line)
    return part


def nearest_experts(every: pd.DataFrame, expert: int, top: int = 8) -> pd.DataFrame:
    """Return, of all experts (`cosine_table`), those with the most similar vectors: expert, row, column, cosine, load, status."""
    other_experts = every.drop(index=expert).sort_values("cosine", ascending=False, kind="stable", ignore_index=True)
    return other_experts.head(top)[["expert", "row", "column", "cosine", "load", "status"]]


def mean_cosine(every: pd.DataFrame, expert: int) -> tuple[float, float]:
    """Return mean and 97.5% quantile of this expert's cosine with all others: what "similar" has to exceed."""
    other_experts = every["cosine"].drop(index=expert)
    return other_experts.mean(), other_experts.quantile(0.975)


def retrieved_together(traffic: RoutedUsers, expert: int, top: int = 8) -> pd.DataFrame:
    """Find who is retrieved by the same people: expert, together (people), expected (were the two independent), lift, low, high.

    n people retrieve this expert, a share q of everybody the other; expected = n·q and lift = together / expected. The interval
    is Wilson's for the share of the n, divided by q. Sorted by its lower bound; only experts met at least once.
    """
    users = np.flatnonzero((traffic.experts == expert).any(1))
    joint_counts = np.bincount(traffic.experts[users].ravel(), minlength=len(traffic.load))
    joint_counts[expert] = 0
    other_experts, n = np.flatnonzero(joint_counts), max(len(users), 1)
    count, share = joint_counts[other_experts], traffic.load[other_experts] / len(traffic.experts)
    low, high = wilson_interval(count / n, n)
    frame = pd.DataFrame({"expert": other_experts, "together": count, "expected": n * share})
    frame = frame.assign(lift=frame["together"] / frame["expected"], low=low / share, high=high / share)
    return frame.sort_values(["low", "together", "expert"], ascending=[False, False, True], ignore_index=True).head(top)


def line_loads(survey: Survey, expert: int) -> dict[str, float]:
    """Say what its row and its column do: loads summed over the line, and what an even share would be."""
    row, column = survey.place(expert)
    grid = survey.traffic.load.reshape(survey.n_subkeys, survey.n_subkeys)
    even_share = survey.traffic.experts.size / survey.n_subkeys
    return {"row": float(grid[row].sum()), "column": float(grid[:, column].sum()), "even": even_share}
