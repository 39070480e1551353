"""The dispatcher on vectors of two numbers, small enough to follow on paper (no projections, one head)."""

from typing import NamedTuple

import numpy as np
import torch

ITEMS = {"Chess 1": (1.0, 0.0), "Chess 2": (0.8, 0.2), "Golf 1": (0.0, 1.0)}
EXPERTS = {"A": (2.0, 0.0), "B": (0.0, 2.0)}
VOTES = (0.6, 0.4)  # with slots: each expert's share of them


class Example(NamedTuple):
    """E experts, N items, vectors of d numbers. The last item gets a mix back."""

    fits: np.ndarray  # [E, N] dot products of experts and items
    shares: np.ndarray  # [E, N] softmax over items; with slots over experts
    parts: np.ndarray  # [E, N] of which items what an expert holds is made
    holds: np.ndarray  # [E, d] the items' vectors, mixed by these
    says: np.ndarray  # [E, d] with slots what it holds and its own vector times its share of the votes; else what it holds
    fits_back: np.ndarray  # [E] dot products of the last item and what it compares itself with
    back: np.ndarray  # [E] how much of each expert the last item gets
    alone: np.ndarray  # [E, N] what each expert alone would say of the items
    scores: np.ndarray  # [N] dot products of what it gets and the items; with slots probabilities, mixed by `back`

    @property
    def first(self) -> np.ndarray:
        """Each expert's part of the highest score."""
        parts = self.back * self.alone[:, self.scores.argmax()]
        return np.asarray(parts / parts.sum())


def example(slots: bool) -> Example:
    """Return every number: aggregate (Equation 2), dispatch (Equation 3), scores; with `slots` as slots/gated_slots.py has it."""
    items, experts = np.array(list(ITEMS.values())), np.array(list(EXPERTS.values()))
    fits = experts @ items.T
    shares = _softmax(fits, axis=0 if slots else 1)
    parts = shares.copy()
    for at in range(len(ITEMS) if slots else 0):  # a newer item pushes out as much as its share
        parts[:, :at] *= 1 - shares[:, at : at + 1]
    holds = parts @ items
    says = holds + np.array(VOTES)[:, None] * experts if slots else holds
    fits_back = (says if slots else experts) @ items[-1]
    back, alone = _softmax(fits_back), _softmax(says @ items.T) if slots else says @ items.T
    return Example(fits, shares, parts, holds, says, fits_back, back, alone, back @ alone)


def _softmax(of: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.asarray(torch.from_numpy(of).softmax(axis))
