"""Can a map be trusted? Its neighbourhoods against those of the original space, beside the same for random vectors.

Trustworthiness (Venna and Kaski, 2001): 1 if every neighbour on the map is one in the original space, less the further away
false neighbours really are. Overlap: the share of an expert's nearest in the original space that are among its nearest on
the map. Original space: angles between expert values (cosine); map: distance on the page.
"""

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd

from elastic_core.memory.routing import limits_of
from elastic_core.memory.routing_metrics import mean_overlap
from elastic_core.services.map import layouts as projection
from elastic_core.services.map.layouts import Settings, Store, unit_vectors
from elastic_core.services.person.user_lookup import sample_indices

MOST = 1_500  # experts judged at most: the full matrix of distances is needed
OF = {"umap": "experts", "null": "random vectors"}
DRAWS = 200  # of sets at random, for the limits of 95%


def nearest_points(points: np.ndarray, count: int, *, angles: bool) -> np.ndarray:
    """int64 [n, count]: every point's nearest others, by angle or by distance; ties by number."""
    if angles:
        vectors = unit_vectors(points)
        distances = 1 - vectors @ vectors.T
    else:
        points = points.astype(np.float64)
        squares = (points**2).sum(1)
        distances = squares[:, None] + squares - 2 * points @ points.T
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :count]


def judged_neighbours(size: int) -> int:
    """How many neighbours are judged: trustworthiness is defined for fewer than half of the points."""
    return max(min(15, (size - 1) // 2), 1)


def measure_trust(values: np.ndarray, layout: np.ndarray, count: int) -> dict[str, float]:
    """Return overlap and trustworthiness of one map: 1 - 2 / (n k (2n - 3k - 1)) · sum over the map's neighbours of how far
    they rank beyond k in the original space."""
    size, original, map_neighbours = (
        len(values),
        nearest_points(values, len(values), angles=True),
        nearest_points(layout, count, angles=False),
    )
    rank_beyond = np.take_along_axis(original.argsort(1), map_neighbours, axis=1) + 1 - count
    trust = 1 - 2 * np.maximum(rank_beyond, 0).sum() / (size * count * (2 * size - 3 * count - 1))
    return {"trust": float(trust), "overlap": mean_overlap(original[:, :count], map_neighbours)}


def trust_table(values: np.ndarray, store: Store | None, settings: Settings, experts: np.ndarray) -> pd.DataFrame:
    """map, of (experts, random), seed, trust, overlap, neighbours: PCA, UMAP with three seeds, and both of random vectors."""
    vectors = {"umap": values[experts], "null": projection.random_like(values[experts])}
    rows: list[tuple] = [("PCA", kind, None, projection.project_pca(vectors[kind])) for kind in vectors]
    if store is not None and np.array_equal(store.experts, experts):
        rows += [("UMAP", kind, seed, store.get(settings, seed, kind)) for seed, kind in projection.MAPS]
    keep = sample_indices(len(experts), MOST, seed=0)
    count = judged_neighbours(len(keep))
    judged_maps = [
        {"map": name, "of": OF[kind], "seed": seed, **measure_trust(vectors[kind][keep], xy[keep], count), "neighbours": count}
        for name, kind, seed, xy in rows if xy is not None
    ]  # fmt: skip
    return pd.DataFrame(judged_maps).astype({"seed": "Int64"})


def map_agreement(store: Store, settings: Settings, count: int) -> float | None:
    """How far maps of different seeds have the same neighbours: mean overlap over pairs of seeds."""
    layouts = [xy for seed in projection.SEEDS if (xy := store.get(settings, seed)) is not None]
    near = [nearest_points(xy[:MOST], count, angles=False) for xy in layouts]
    pairs = [mean_overlap(*pair) for pair in itertools.combinations(near, 2)]
    return float(np.mean(pairs)) if pairs else None


def neighbour_table(values: np.ndarray, experts: np.ndarray, layout: np.ndarray, expert: int) -> pd.DataFrame:
    """List its nearest in the original space, the best first, with cosine and place on the map; its nearest on the map, and
    which of them are in both lists."""
    at, count = int(np.flatnonzero(experts == expert)[0]), judged_neighbours(len(experts))
    vectors = unit_vectors(values[experts])
    cosine, distance = vectors @ vectors[at], np.linalg.norm(layout - layout[at], axis=1)
    cosine[at], distance[at] = -2, np.inf
    by_distance, top = np.argsort(distance, kind="stable"), np.argsort(-cosine, kind="stable")[:count]
    return pd.DataFrame(
        {
            "in truth": experts[top], "cosine": cosine[top], "map place": by_distance.argsort()[top] + 1,
            "on map": experts[by_distance[:count]], "true?": np.isin(by_distance[:count], top),
        }
    )  # fmt: skip


class Region(NamedTuple):
    """How alike the `near` nearest in the original space are, and 95% limits with shuffled labels."""

    alike: float
    low: float
    high: float
    near: int


def measure_region(values: np.ndarray, labels: np.ndarray, nothing: tuple[str, ...] = ()) -> Region:
    """Do like experts lie together in the original space?

    Text: mean share of an expert's nearest with its label, over experts whose label is not in `nothing`. Numbers: the
    correlation of an expert's with the mean of its nearest.
    """
    sampled = projection.sample_experts(np.arange(len(values)), MOST)
    labels, count, rng = labels[sampled], judged_neighbours(len(sampled)), np.random.default_rng(0)
    near = nearest_points(values[sampled], count, angles=True)

    def measure_likeness(labels_at: np.ndarray) -> float:
        if labels_at.dtype.kind in "OUS":
            named = ~np.isin(labels_at, nothing)
            return float((labels_at[near[named]] == labels_at[named, None]).mean()) if named.any() else 0.0
        means = labels_at[near].mean(1)
        return float(np.corrcoef(labels_at, means)[0, 1]) if labels_at.std() > 0 and means.std() > 0 else 0.0

    return Region(measure_likeness(labels), *limits_of([measure_likeness(rng.permutation(labels)) for _ in range(DRAWS)]), count)
