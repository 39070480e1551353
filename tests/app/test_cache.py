"""What pages keep between reruns is what was asked for, of runs and data as they are now, and has an end."""

import dataclasses
import gc
import re
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import plotly
import plotly.graph_objects as go
import pytest
import streamlit as st

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.run_config import DataConfig
from elastic_core.runs import CONFIG, EVENTS, WEIGHTS, Run
from pages.components import cache

ROOT = Path(__file__).resolve().parents[2]
MADE: list[object] = []


@cache.cached_resource(50)
def shared(of: cache.OpenRun, user: int, words: str = "usual", _unhashed: object = None) -> dict[str, object]:
    MADE.append(user)
    return {"run": of.run.name, "user": user, "words": words}


@cache.cached_data(50)
def copied(runs: list[Run], edits: list[int | None]) -> list[str]:
    MADE.append(len(edits))
    return [run.name for run in runs]


@cache.cached_resource(50)
def of_table(table: pd.DataFrame, file: Path) -> object:
    MADE.append(table)
    return object()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    MADE.clear()
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


def test_a_run_that_changed_is_asked_again_and_nothing_else_is(
    tiny: tuple[Recommender, Dataset, Run], tiny_runs: Path, tmp_path: Path
) -> None:
    """Told apart by run, its files as they are, data and what else is asked; not by the model."""
    (model, data, _), root = tiny, Path(shutil.copytree(tiny_runs, tmp_path / "runs"))
    run, other = Run(root / "tiny"), Run(root / "tiny-peer")
    of, peer = cache.OpenRun(run, data, model), cache.OpenRun(other, data, model)
    first = shared(of, 3, _unhashed=object())
    assert shared(cache.OpenRun(Run(root / "tiny"), data, None), 3, _unhashed=object()) is first and MADE == [3]  # type: ignore[arg-type]
    assert shared(peer, 3)["run"] == "tiny-peer" and shared(of, 4)["user"] == 4
    assert shared(cache.OpenRun(run, dataclasses.replace(data, name="else"), model), 3, _unhashed=0) is first, "its events tell"
    assert copied([run, other], [1, None]) == copied([run, other], [1, None]) and copied([other, run], [1, None])[0] == other.name
    made = len(MADE)
    for name in (CONFIG, WEIGHTS, EVENTS):
        (run.path / name).write_bytes((run.path / name).read_bytes() + b" ")
        assert shared(of, 3) is not first and copied([run, other], [1, None]) == [run.name, other.name]
    assert len(MADE) == made + 6 and shared(peer, 3)["run"] == "tiny-peer" and len(MADE) == made + 6
    copied([run], []).append("of one visitor")
    assert copied([run], []) == [run.name]


def test_tables_and_files_are_told_apart_by_what_is_in_them(tmp_path: Path) -> None:
    file = tmp_path / "file"
    table = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [("g",), ()]})
    first = of_table(table, file)
    assert of_table(pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [("g",), ()]}), file) is first
    others = [
        table.rename(columns={"a": "d"}), table.set_index(pd.Index([0, 5])), table.astype({"a": float}),
        table.assign(a=[1, 3]), table.assign(b=["x", "None"]), table.assign(c=[("g",), ("h",)]),
    ]  # fmt: skip
    assert len({id(of_table(other, file)) for other in others} | {id(first)}) == len(others) + 1
    file.write_text("now it is there")
    assert of_table(table, file) is not first


def test_every_cache_has_an_end_and_knows_runs() -> None:
    with pytest.raises(TypeError, match="max_entries"):
        cache.cached_data()  # type: ignore[call-arg]
    for path in (ROOT / "pages").rglob("*.py"):
        bare = re.findall(r"st\.cache_(?:data|resource)\b", path.read_text(encoding="utf-8"))
        assert path.name == "cache.py" or not bare, f"{path}: use pages/components/cache.py"


def test_data_that_cannot_be_had_are_asked_for_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(config: DataConfig) -> Dataset:
        MADE.append(config)
        raise InputError("there is no network")

    monkeypatch.setattr(cache, "load", fail)
    for seconds in (600, 600, 0, 0):
        monkeypatch.setattr(cache, "RETRY_SECONDS", seconds)
        with pytest.raises(InputError, match="no network"):
            cache.load_dataset(DataConfig())
    assert len(MADE) == 3


def test_two_orders_of_the_same_runs_are_two(tiny_runs: Path) -> None:
    """The first page that asked decided for all, and with it which run everybody was shown."""

    def backwards(run: Run) -> tuple[int, ...]:
        return tuple(-ord(letter) for letter in run.name.ljust(20))

    names = [
        [run.name for run in cache.list_openable_runs(tiny_runs, order)] for order in (cache.by_name, backwards, cache.by_name)
    ]
    assert names == [["tiny", "tiny-peer"], ["tiny-peer", "tiny"], ["tiny", "tiny-peer"]]


def test_a_drawn_figure_is_shown_like_any_other_and_takes_a_fraction_of_it() -> None:
    def draw() -> go.Figure:
        people = np.column_stack([np.arange(1000), [f"title {i}" for i in range(1000)]]).astype(object)
        notes = [{"x": 1, "y": 1, "text": "a", "font": {"size": 9}} for _ in range(20)]
        return go.Figure(go.Scatter(x=np.arange(1000), y=np.arange(1000), customdata=people)).update_layout(annotations=notes)

    def taken(make: Callable[[], object]) -> int:
        make()  # what plotly keeps of every kind of part
        tracemalloc.start()
        try:
            made = [make() for _ in range(5)]
            gc.collect()
            return tracemalloc.get_traced_memory()[0] // len(made)
        finally:
            tracemalloc.stop()

    figure, light = draw(), cache.StoredFigure(draw())
    shown = plotly.tools.return_figure_from_figure_or_data(light, validate_figure=True)  # as st.plotly_chart reads it
    assert plotly.io.to_json(shown, validate=False) == plotly.io.to_json(figure)
    assert light.to_html(div_id="a", full_html=False) == figure.to_html(div_id="a", full_html=False)
    assert light.to_dict() is not light.to_dict(), "each visitor has their own"
    assert taken(lambda: cache.StoredFigure(draw())) < taken(draw) / 3


def test_no_kind_of_data_is_hashed_event_by_event() -> None:
    """For a class that it does not know Streamlit copies and hashes all that it holds: 110 ms a rerun on groceries."""
    assert {Dataset, *Dataset.__subclasses__()} <= set(cache.HASH_FUNCS)


@pytest.mark.parametrize("change", ["titles", "genres", "times", "has_times"])
def test_data_of_the_same_events_are_told_apart_by_all_that_a_page_shows(change: str, small_world: Dataset) -> None:
    """Two files may have the same events under other titles, or a correction of their times."""
    catalog, histories = small_world.catalog, small_world.histories
    other = {
        "titles": {"catalog": dataclasses.replace(catalog, titles=np.array(["", *["other"] * catalog.n_items], dtype=object))},
        "genres": {"catalog": dataclasses.replace(catalog, genres=None)},
        "times": {"histories": dataclasses.replace(histories, times=histories.times + 1)},
        "has_times": {"has_times": False},
    }[change]
    changed, same = dataclasses.replace(small_world, **other), dataclasses.replace(small_world)
    assert changed.hash == small_world.hash and cache.data_key(changed) != cache.data_key(small_world) == cache.data_key(same)
