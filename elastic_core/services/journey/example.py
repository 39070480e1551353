"""The paper's dispatcher on vectors of two numbers, small enough to follow on paper (no projections, one head)."""

from typing import NamedTuple

import numpy as np

ITEMS = {"Chess 1": (1.0, 0.0), "Chess 2": (0.8, 0.2), "Golf 1": (0.0, 1.0)}
EXPERTS = {"A": (2.0, 0.0), "B": (0.0, 2.0)}


class Example(NamedTuple):
    """E experts, N items, vectors of d numbers. The last item gets a mix back."""

    fits: np.ndarray  # [E, N] dot products of experts and items
    shares: np.ndarray  # [E, N] softmax over items
    holds: np.ndarray  # [E, d] the items' vectors, mixed by the shares
    back: np.ndarray  # [E] softmax over experts of the last item's fits
    mixed: np.ndarray  # [d] what the experts hold, mixed by these
    scores: np.ndarray  # [N] dot products of that and the items


def example() -> Example:
    """Return every number of the example: aggregate (Equation 2), dispatch (Equation 3), scores."""
    items, experts = np.array(list(ITEMS.values())), np.array(list(EXPERTS.values()))
    fits = experts @ items.T
    shares, back = np.exp(fits), np.exp(fits[:, -1])
    shares, back = shares / shares.sum(1, keepdims=True), back / back.sum()
    holds = shares @ items
    return Example(fits, shares, holds, back, back @ holds, items @ (back @ holds))
