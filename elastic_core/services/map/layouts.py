"""Layouts of the experts in two dimensions: PCA at once, UMAP from a store on disk.

Experts are compared by direction (cosine), so every layout starts from values of unit length. UMAP is slow and never runs
in the app: compute.py does it in a process of its own and writes the store, one compressed .npz per run:

    experts int32 [n]             which experts were laid out
    about   uint8 (JSON)          hash of the value table, versions, settings
    umap-15-0.1-0 float16 [n, 2]  neighbours, least distance, seed
    null-15-0.1-0 float16 [n, 2]  the same UMAP of random vectors of equal number and width

A store belongs to one value table; after more training it is ignored and computed anew.
"""

import hashlib
import json
import re
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elastic_core import files
from elastic_core.runs import Run

NEIGHBOURS, DISTANCES, SEEDS = (5, 15, 50), (0.0, 0.1, 0.5), (0, 1, 2)
MAPS = (*((seed, "umap") for seed in SEEDS), (0, "null"))  # of every setting: from which random start, and of what
LAID_OUT, DRAWN = 4_096, 16_000  # most experts in one layout, most marks on one map
FOLDER, STORE = "maps", "umap.npz"
DAMAGED = (OSError, EOFError, OverflowError, TypeError, NotImplementedError, zipfile.BadZipFile, zlib.error)  # what readers raise
MOST_STORE = 2**26  # bytes, packed and unpacked: all settings of the most experts are a third of it


def unit_vectors(values: np.ndarray) -> np.ndarray:
    """float32 [n, d] of length 1; an expert of zeros stays where it is."""
    values = np.asarray(values, dtype=np.float32)
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)


def values_fingerprint(values: np.ndarray) -> str:
    """Sixteen hex digits that change with the value table."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<f4").tobytes()).hexdigest()[:16]


def random_like(values: np.ndarray) -> np.ndarray:
    """As many random vectors of the same width: what a map of nothing looks like."""
    return np.random.default_rng(0).normal(size=values.shape).astype(np.float32)


def project_pca(values: np.ndarray) -> np.ndarray:
    """Return every expert along the two principal axes, float32 [n, 2]; the largest entry of each is positive."""
    vectors = unit_vectors(values)
    centred = vectors - vectors.mean(0)
    axes = np.linalg.svd(np.linalg.qr(centred, mode="r"), full_matrices=False)[2][:2]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(1)[:, None], axis=1)
    return (centred @ (axes * np.sign(largest)).T).astype(np.float32)


def sample_experts(load: np.ndarray, most: int, always: tuple[int, ...] = ()) -> np.ndarray:
    """At most `most` experts, sorted: `always`, and from each decile of the load what is its share. Never simply the first."""
    size = len(load)
    if size <= most:
        return np.arange(size)
    required, rng = np.intersect1d(always, np.arange(size))[:most].astype(np.int64), np.random.default_rng(0)
    order = np.lexsort((rng.random(size), load))  # ties of load, as many dead experts are, fall into deciles at random
    parts = [part[~np.isin(part, required)] for part in np.array_split(order, 10)]
    cumulative_sizes = np.cumsum([0, *map(len, parts)])
    quotas = np.diff(cumulative_sizes * (most - len(required)) // cumulative_sizes[-1])
    chosen = [required, *(rng.choice(part, quota, replace=False) for part, quota in zip(parts, quotas, strict=True))]
    return np.sort(np.concatenate(chosen))


class Settings(NamedTuple):
    """What one UMAP was asked for."""

    neighbours: int = 15
    distance: float = 0.1

    def key(self, seed: int, kind: str = "umap") -> str:
        return f"{kind}-{self.neighbours}-{self.distance:g}-{seed}"


@dataclass(eq=False)
class Store:
    """What a run's store holds for one value table."""

    experts: np.ndarray
    layouts: dict[str, np.ndarray] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    def get(self, settings: Settings, seed: int, kind: str = "umap") -> np.ndarray | None:
        layout = self.layouts.get(settings.key(seed, kind))
        return None if layout is None else layout.astype(np.float32)


def read_store(run: Run, values: np.ndarray) -> Store | None:
    """The store that belongs to this value table, or nothing: none there, damaged, or of other weights."""
    try:
        path = files.check_regular_file(run.path / FOLDER / STORE, MOST_STORE, run.path)
        with zipfile.ZipFile(path) as file:
            if sum(part.file_size for part in file.infolist()) > MOST_STORE:
                return None
        with np.load(path, allow_pickle=False) as packed:
            parts = {name: packed[name] for name in packed.files}
        about = files.parse_json(parts.pop("about").tobytes().decode("utf-8"))
        experts = parts.pop("experts").astype(np.int64)
    except (*DAMAGED, ValueError, KeyError):
        return None
    if not isinstance(about, dict) or about.get("hash") != values_fingerprint(values) or experts.ndim != 1:
        return None
    if not len(experts) or experts.min() < 0 or experts.max() >= len(values):
        return None
    layouts = {
        key: xy for key, xy in parts.items()
        if re.fullmatch(r"(umap|null)-\d+-[\d.]+-\d+", key) and xy.shape == (len(experts), 2) and _is_finite(xy)
    }  # fmt: skip
    return Store(experts, layouts, about)


def _is_finite(xy: np.ndarray) -> bool:
    return xy.dtype.kind == "f" and bool(np.isfinite(xy).all())


def write_store(run: Run, store: Store) -> Path:
    """Whole or not at all. Coordinates are centred and kept in half precision, a thousandth of the map's width."""
    path = run.path / FOLDER / STORE
    with files.explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    parts: dict[str, np.ndarray] = {key: _half_precision(xy) for key, xy in store.layouts.items()}
    about = np.frombuffer(json.dumps(store.about, sort_keys=True).encode(), dtype=np.uint8)
    parts |= {"experts": store.experts.astype(np.int32), "about": about}

    def save(beside: Path) -> None:
        with beside.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **parts)

    files.write_whole(path, save)
    return path


def _half_precision(xy: np.ndarray) -> np.ndarray:
    """Centred and scaled to ten units wide, so that half precision is fine enough."""
    xy = xy.astype(np.float64)
    every = tuple(range(xy.ndim - 1))
    xy = xy - (xy.max(every) + xy.min(every)) / 2
    return (xy * (5 / max(float(np.abs(xy).max()), 1e-12))).astype(np.float16)
