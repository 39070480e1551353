"""What the app keeps is bounded by bytes, and what it hands out is what was asked for."""

import dataclasses
import gc
import re
import shutil
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly
import plotly.graph_objects as go
import pytest
import streamlit as st
import torch
from hypothesis import given
from hypothesis import strategies as st_

from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.runs import CONFIG, EVENTS, WEIGHTS, Run
from pages.kit import cache, kept
from pages.kit.kept import size

ROOT = Path(__file__).resolve().parents[2]
MADE: list[int] = []


@kept.kept(50)
def array(number: int, megabytes: int, _unhashed: object = None) -> dict[str, np.ndarray]:
    MADE.append(number)
    return {"numbers": np.full(megabytes * 2**17, float(number))}


@kept.kept(50)
def nothing(number: int) -> None:
    MADE.append(number)


@kept.kept(50)
def said(of: cache.Opened, user: int, words: str = "usual") -> dict[str, object]:
    MADE.append(user)
    return {"run": of.run.name, "user": user, "words": words}


@kept.copied(50)
def listed(runs: list[Run], edits: list[int | None]) -> list[str]:
    MADE.append(len(edits))
    return [run.name for run in runs]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(kept, "MOST", 10 * 2**20)
    MADE.clear()
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


def entries() -> int:
    return len(kept.ledger().entries)


def test_what_is_kept_stays_within_the_bytes_and_the_latest_stay() -> None:
    for number in range(30):
        assert array(number, 1, object())["numbers"][0] == number
        assert kept.ledger().total <= kept.MOST
    assert 8 <= entries() <= 10
    before = len(MADE)
    for number in range(22, 30):
        assert array(number, 1)["numbers"][0] == number
    assert len(MADE) == before, "kept, whatever the unhashed argument is"
    array(0, 1)
    assert MADE[-1] == 0, "forgotten and made again"


def test_what_was_used_longest_ago_goes_first() -> None:
    for number in range(9):
        array(number, 1)
    array(0, 1)
    for number in (20, 21, 22):
        array(number, 1)
    before = len(MADE)
    array(0, 1)
    assert len(MADE) == before
    array(1, 1)
    assert len(MADE) == before + 1


def test_one_thing_larger_than_all_is_kept_until_the_next() -> None:
    array(1, 12)
    array(1, 12)
    assert MADE == [1] and entries() == 1
    array(2, 1)
    assert entries() == 1 and kept.ledger().total < 2 * 2**20


def test_what_streamlit_lets_go_leaves_the_ledger_and_nothing_is_kept_as_such() -> None:
    for _ in range(3):
        nothing(1)
    assert MADE == [1] and entries() == 0
    array(1, 1)
    st.cache_resource.clear()
    array(1, 1)
    assert entries() == 1 and kept.ledger().total < 2 * 2**20


def test_a_run_that_changed_is_asked_again_and_nothing_else_is(
    tiny: tuple[Recommender, Dataset, Run], tiny_runs: Path, tmp_path: Path
) -> None:
    """Told apart by run, its files as they are, data and what else is asked; not by the model, nor by how it is asked."""
    (model, data, _), root = tiny, Path(shutil.copytree(tiny_runs, tmp_path / "runs"))
    run, other = Run(root / "tiny"), Run(root / "tiny-peer")
    of, peer = cache.Opened(run, data, model), cache.Opened(other, data, model)
    first = said(of, 3)
    assert said(cache.Opened(Run(root / "tiny"), data, None), user=3, words="usual") is first and MADE == [3]  # type: ignore[arg-type]
    assert said(peer, 3)["run"] == "tiny-peer" and said(of, 4)["user"] == 4
    assert said(cache.Opened(run, dataclasses.replace(data, name="else"), model), 3) is first, "the events tell, not the object"
    assert listed([run, other], [1, None]) == listed([run, other], [1, None]) and listed([other, run], [1, None])[0] == other.name
    made = len(MADE)
    for name in (CONFIG, WEIGHTS, EVENTS):
        (run.path / name).write_bytes((run.path / name).read_bytes() + b" ")
        assert said(of, 3) is not first and listed([run, other], [1, None]) == [run.name, other.name]
    assert len(MADE) == made + 6 and said(peer, 3)["run"] == "tiny-peer" and len(MADE) == made + 6
    listed([run], []).append("of one visitor")
    assert listed([run], []) == [run.name]


def test_many_at_once() -> None:
    problems: list[Any] = []

    def ask(seed: int) -> None:
        for number in np.random.default_rng(seed).integers(0, 25, 60):
            if array(int(number), 1)["numbers"][0] != number:
                problems.append(number)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not problems and kept.ledger().total <= kept.MOST


def test_sizes_are_about_right(tiny: tuple[Recommender, Dataset, Run]) -> None:
    model, data, _ = tiny
    weights = sum(each.numel() * each.element_size() for each in [*model.parameters(), *model.buffers()])
    words = pd.DataFrame({"title": [f"a title of some length, number {i}" for i in range(50_000)], "n": range(50_000)})
    figure = cache.Drawn(go.Figure(go.Scatter(x=np.arange(100_000.0), y=np.arange(100_000.0))))
    for thing, expected in (
        (np.zeros(10**6), 8e6), (torch.zeros(10**6), 4e6), ({"a": [np.zeros(10**5)] * 3}, 8e5), (model, weights),
        (words, words.memory_usage(deep=True).sum()), (["x" * 100 + str(i) for i in range(10**5)], 1.6e7), (figure, 1.6e6),
        (np.array(["x" * 100 + str(i) for i in range(10**5)], dtype=object), 1.6e7),
    ):  # fmt: skip
        assert 0.7 * expected < size(thing) < 2 * expected, (type(thing), size(thing), expected)
    assert size((model, "of somebody else")) < 1000 and size(data) > data.histories.items.nbytes


def test_every_cache_of_objects_is_in_the_ledger_and_every_cache_has_an_end() -> None:
    with pytest.raises(TypeError, match="most"):
        kept.copied()  # type: ignore[call-arg]
    for path in (ROOT / "pages").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        bare = re.findall(r"@st\.cache_resource(?!\n(?:def _shelf|def ledger))", text)
        assert not bare or path.name == "kept.py", f"{path.name}: use kept"
        for bounds, name, asked in re.findall(r"@st\.cache_data(.*)\ndef (\w+)\((.*?)\)", text):
            assert "max_entries" in bounds or not asked, f"{path.name}: {name} has no end"


def test_two_orders_of_the_same_runs_are_two(tiny_runs: Path) -> None:
    """The first page that asked decided for all, and with it which run everybody was shown."""

    def backwards(run: Run) -> tuple[int, ...]:
        return tuple(-ord(letter) for letter in run.name.ljust(20))

    names = [[run.name for run in cache.runs(tiny_runs, order)] for order in (cache.by_name, backwards, cache.by_name)]
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

    figure, light = draw(), cache.Drawn(draw())
    shown = plotly.tools.return_figure_from_figure_or_data(light, validate_figure=True)  # as st.plotly_chart reads it
    assert plotly.io.to_json(shown, validate=False) == plotly.io.to_json(figure)
    assert light.to_html(div_id="a", full_html=False) == figure.to_html(div_id="a", full_html=False)
    assert light.to_dict() is not light.to_dict(), "each visitor has their own"
    assert taken(lambda: cache.Drawn(draw())) < taken(draw) / 3


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
    assert changed.hash == small_world.hash and kept.identity(changed) != kept.identity(small_world) == kept.identity(same)


CELLS = st_.one_of(st_.none(), st_.booleans(), st_.integers(-3, 3), st_.floats(-2, 2), st_.text(max_size=3), st_.just(("a", 1)))
COLUMNS = st_.one_of(
    st_.lists(CELLS, min_size=3, max_size=3),
    st_.lists(st_.floats(-2, 2), min_size=3, max_size=3),
    st_.lists(st_.text("ab", max_size=2), min_size=3, max_size=3),
    st_.lists(st_.integers(0, 2), min_size=3, max_size=3),
)


@given(st_.lists(COLUMNS, min_size=1, max_size=3), st_.data())
def test_tables_are_told_apart_by_every_name_type_and_cell(columns: list[list[Any]], draw: st_.DataObject) -> None:
    """As by what pandas would write of them; a table of what is no plain cell is left to Streamlit."""
    frame = pd.DataFrame({f"c{at}": column for at, column in enumerate(columns)})
    told = kept.cells(frame)
    plain = not isinstance(told, pd.DataFrame)
    assert plain != any(type(cell) is tuple for column in columns for cell in column)
    if not plain:
        return
    assert kept.cells(frame.copy()) == told and kept.identity([1, frame]) == (1, told)
    at, row = draw.draw(st_.integers(0, len(columns) - 1)), draw.draw(st_.integers(0, 2))
    other = [list(column) for column in columns]
    other[at][row] = draw.draw(CELLS.filter(lambda cell: type(cell) is not tuple))
    changed = pd.DataFrame({f"c{at}": column for at, column in enumerate(other)})
    same = repr(changed.to_dict("list")) == repr(frame.to_dict("list")) and changed.dtypes.equals(frame.dtypes)
    assert (kept.cells(changed) == told) == same
    assert kept.cells(frame.rename(columns={"c0": "d"})) != told != kept.cells(frame.set_index(pd.Index([0, 1, 9])))
    assert isinstance(kept.cells(frame.astype({"c0": "category"})), pd.DataFrame), "the order of its names is not among its cells"
