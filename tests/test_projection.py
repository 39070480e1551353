"""Layouts, their store and their trust."""

import builtins
import functools
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_core.data import Dataset
from elastic_core.memory.routing_metrics import mean_overlap
from elastic_core.models import Recommender
from elastic_core.runs import Run
from elastic_core.services.map import compute, trust
from elastic_core.services.map import layouts as p
from elastic_core.services.map import picture as m
from elastic_core.services.map.layouts import Settings, Store

Tiny = tuple[Recommender, Dataset, Run]


def points(n: int = 60, d: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def test_pca_is_centred_ordered_and_keeps_its_signs() -> None:
    values = points() * np.linspace(3, 1, 8)
    xy = p.project_pca(values)
    assert np.allclose(xy.mean(0), 0, atol=1e-5) and xy[:, 0].var() >= xy[:, 1].var()
    centred = p.unit_vectors(values) - p.unit_vectors(values).mean(0)
    _, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    assert np.allclose((xy**2).sum(0), sizes[:2] ** 2, rtol=1e-3)
    assert np.allclose(p.project_pca(values[::-1])[::-1], xy, atol=1e-4), "the order of experts changes nothing, no sign either"
    assert p.project_pca(points(3, 4)).shape == (3, 2)


@pytest.mark.parametrize(("layout_of", "expected"), [("same", 1.0), ("noise", None)])
def test_trust_of_the_identity_is_one_and_agrees_with_scikit_learn(layout_of: str, expected: float | None) -> None:
    values = p.unit_vectors(points(80, 2))
    layout = values if layout_of == "same" else points(80, 2, seed=1)
    from sklearn.manifold import trustworthiness

    mine = trust.measure_trust(values, layout, 10)
    assert mine["trust"] == pytest.approx(trustworthiness(values, layout, n_neighbors=10, metric="cosine"), abs=1e-6)
    if expected:
        assert mine["trust"] == pytest.approx(1) and mine["overlap"] == pytest.approx(1)
    else:
        assert mine["trust"] < 0.7 and mine["overlap"] < 0.4


def test_regions_are_found_where_they_are_and_nowhere_else() -> None:
    centres = points(4, 16, seed=2)
    kind = np.repeat(np.arange(4), 25)
    values = centres[kind] * 5 + points(100, 16)
    alike, low, high, near = trust.measure_region(values, kind.astype(str))
    assert alike > 0.95 and high < 0.4 and low > 0.1 and near == 15
    shuffled = np.random.default_rng(5).permutation(kind).astype(str)
    alike, low, high, _ = trust.measure_region(values, shuffled)
    assert low - 0.05 < alike < high + 0.05
    assert trust.measure_region(values, kind.astype(float)).alike > 0.9


def test_neighbours_beside_are_those_of_brute_force() -> None:
    values, layout = points(), points(60, 2, seed=3)
    table = trust.neighbour_table(values, np.arange(60), layout, 7)
    cosine = p.unit_vectors(values) @ p.unit_vectors(values)[7]
    assert table["in truth"].tolist() == [e for e in np.argsort(-cosine) if e != 7][:15]
    distance = np.linalg.norm(layout - layout[7], axis=1)
    by_distance = [e for e in np.argsort(distance) if e != 7]
    assert table["on map"].tolist() == by_distance[:15]
    assert table["map place"].tolist() == [by_distance.index(e) + 1 for e in table["in truth"]]
    assert table["true?"].sum() == len(set(table["in truth"]) & set(table["on map"]))


def test_a_million_experts_are_sampled_by_load_with_the_needed_ones() -> None:
    load = np.random.default_rng(0).geometric(0.3, 1_000_000) - 1
    must = (0, 5, 999_999, 123_456)
    chosen = p.sample_experts(load, 4_096, must)
    assert len(chosen) == 4_096 == len(set(chosen.tolist())) and set(must) <= set(chosen.tolist())
    assert (np.diff(chosen) > 0).all() and chosen.mean() == pytest.approx(500_000, rel=0.05), "not the first ones"
    for quantile in (0.5, 0.9, 0.99):
        assert np.quantile(load[chosen], quantile) == pytest.approx(np.quantile(load, quantile), abs=1)
    assert np.array_equal(chosen, p.sample_experts(load, 4_096, must))
    values = np.random.default_rng(1).normal(size=(1_000_000, 4)).astype(np.float32)
    drawn = m.by_pca(values, load, must)
    assert len(drawn.experts) == p.DRAWN and set(must) <= set(drawn.experts.tolist())


@settings(max_examples=40, deadline=None)
@given(st.integers(5, 300), st.integers(3, 60), st.sets(st.integers(0, 299), max_size=8), st.integers(0, 5))
def test_samples_have_their_size_and_what_they_must(size: int, most: int, must: set[int], top: int) -> None:
    load = np.random.default_rng(size).integers(0, top + 1, size)
    chosen = p.sample_experts(load, most, tuple(must))
    wanted = {e for e in must if e < size}
    assert len(chosen) == min(size, most) == len(set(chosen.tolist()))
    assert len(wanted) > most or wanted <= set(chosen.tolist())


def test_a_store_comes_back_for_its_own_values_only(tmp_path: Path) -> None:
    run, values = Run(tmp_path), points()
    store = Store(
        np.arange(60), {Settings().key(0): points(60, 2), "evil": points(60, 2)}, about={"hash": p.values_fingerprint(values)}
    )
    path = p.write_store(run, store)
    back = p.read_store(run, values)
    assert back is not None and list(back.layouts) == [Settings().key(0)]
    near = trust.nearest_points(points(60, 2), 5, angles=False)
    assert mean_overlap(near, trust.nearest_points(back.layouts[Settings().key(0)].astype(float), 5, angles=False)) > 0.97
    assert p.read_store(run, values + 1) is None, "more training, another map"
    for content in (path.read_bytes()[:200], b"", b"not a store"):
        path.write_bytes(content)
        assert p.read_store(run, values) is None
    assert not list(path.parent.glob(".*")), "written whole or not at all"


def test_experts_outside_a_layout_are_placed_beside_their_nearest() -> None:
    values = points(50)
    values[49] = values[3] * 2
    store = Store(np.arange(49), {Settings().key(0): np.tile(np.arange(49.0)[:, None], 2)}, about={})
    drawn = m.by_umap(values, store, Settings(), 0, [49, 3])
    assert drawn is not None and drawn.experts[-1] == 49 and drawn.placed.sum() == 1
    near = np.argsort(-(p.unit_vectors(values[:49]) @ p.unit_vectors(values)[49]))[:5]
    assert near[0] == 3 and drawn.xy[-1, 0] == pytest.approx(near.mean())


@pytest.fixture(scope="module", autouse=True)
def interpreted() -> Iterator[None]:
    """UMAP without its compiler, whichever test imports it: the same lines of the package, run by Python. Compiling them takes
    forty seconds."""
    import numba

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(numba.config, "DISABLE_JIT", True)  # some are compiled as umap is imported, others as it is called
        yield


def test_real_umap_is_seeded_and_better_than_noise(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a tenth of the epochs that it takes for so few."""
    usual = compute._fit_umap()
    few = functools.partial(usual.UMAP, n_epochs=50)
    monkeypatch.setattr(compute, "_fit_umap", lambda: SimpleNamespace(UMAP=few))
    run = Run(shutil.copytree(tiny[2].path, tmp_path / "tiny"))
    values, drawn = compute.values_of(run), np.arange(24)
    store = compute.compute_layouts(run, [Settings(5, 0.1)], drawn, lambda done, of, phase: None)
    again = compute.lay_out(values[drawn], Settings(5, 0.1), 1)
    kept = store.layouts[Settings(5, 0.1).key(1)]
    assert np.array_equal(again, kept), "the same seed, the same map"
    found = trust.trust_table(values, p.read_store(run, values), Settings(5, 0.1), drawn)
    assert found["map"].tolist() == ["PCA", "PCA", "UMAP", "UMAP", "UMAP", "UMAP"]
    dealt = np.random.default_rng(0)
    chance = [trust.measure_trust(values[drawn], dealt.permutation(kept), 11)["trust"] for _ in range(100)]
    assert found["neighbours"].unique().tolist() == [11]
    assert found.loc[found["map"] == "UMAP", "trust"].mean() > np.quantile(chance, 0.95), "places that are anybody's do worse"


def test_umap_is_imported_where_nothing_that_it_compiles_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    real = builtins.__import__

    def refuses(name: str, *rest: Any) -> Any:
        if name == "umap" and not numba.config.CACHE_DIR:
            raise RuntimeError("cannot cache function 'rdist': no locator available")
        return real(name, *rest)

    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # is read anew with the folder
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(builtins, "__import__", refuses)
    assert compute._fit_umap().UMAP and Path(numba.config.CACHE_DIR).is_dir()


def test_what_umap_compiles_is_kept_for_the_next_process(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba
    import umap

    monkeypatch.setattr(numba.config, "DISABLE_JIT", False)
    late, early = numba.njit(compute.lay_out), numba.njit("int64(int64)")(lambda x: x)
    for name, function in (("late", late), ("early", early)):
        monkeypatch.setattr(umap.umap_, name, function, raising=False)
    compute._fit_umap()
    assert late.stats.cache_path, "not compiled yet: it will be kept"
    assert not early.stats.cache_path, "compiled where it stands: too late"
