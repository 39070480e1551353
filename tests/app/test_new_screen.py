"""A folder of four small files and a line in the list is a screen: a page to begin from. It follows the person in view, has a
chart with words and a table, says how sure it is, and says so where the data lack what it shows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from driving import charts, healthy, said
from streamlit.testing.v1 import AppTest

from elastic_core.data import Dataset
from pages.layout import screens
from pages.layout.screens import Screen

PAGE = '''"""Diary: which kinds did this person choose, one after the other?"""

import streamlit as st

from pages.diary import cached, charts
from pages.components import page_context
from pages.components import cache, page_elements, page_text, user_cards
from pages.components.controls import number_input

TEXT = page_text.load_page_text(__file__)

context = page_context.require_context()
page_elements.show_title("What did this person choose, and when?")
st.write(TEXT("IDEA", person=context.user + 1, many=context.item_words.plural))
last = int(number_input("Latest", 5, 100, 30, key="diary_last", width=150))
table = cached.history(context.dataset, context.user, last)
if context.dataset.catalog.genres is None:
    st.info(TEXT("NO_GENRES"))
else:
    figure = cache.cached_figure(charts.strip, table, user_cards.genre_colours(context).by_genre, page_context.theme_palette())
    alt = f"The last {len(table)} events of person {context.user + 1}, by genre."
    page_elements.show_chart("diary_strip", figure, table, TEXT.chart_text("STRIP"), alt)
page_elements.show_confidence_notes([TEXT("SURE")])
page_elements.show_footer("elastic recommend", f"checkpoints/{context.run.name}", "--user", context.user, diary_last=last)
'''
WORDS = """What the Diary page says, by name. How this file is read: pages/components/page_text.py.

## IDEA

The {many} of person {person}, the oldest at the left.

## NO_GENRES

These data say nothing of genres.

## STRIP

When did this person choose which genre?

Each mark is an event, at the genre that is listed first for its item.

Careful: An item may have more than one genre.

## SURE

**Order.** Events of one time stand in the order of the file.
"""
CACHED = '''"""What the Diary page keeps between reruns."""

import pandas as pd

from elastic_core.data import Dataset
from elastic_core.services.person import inspect, recommend
from pages.components.cache import cached_resource


@cached_resource(64)
def history(dataset: Dataset, user: int, last: int) -> pd.DataFrame:
    """The latest events of a person before the test: position, title, genres."""
    return inspect.history_table(dataset, recommend.user_history(dataset, user), last)[["position", "title", "genres"]]
'''
CHARTS = '''"""Figures of the Diary page. Pure: tables in, plotly figures out."""

import pandas as pd
import plotly.graph_objects as go

from elastic_core.text import escape_plotly
from pages.components.plot import Palette, style_figure


def strip(table: pd.DataFrame, colours: dict[str, str], palette: Palette) -> go.Figure:
    """Events of `table` (position, title, genres) as marks, a line for each genre."""
    first = [genres[0] if genres else "" for genres in table["genres"]]
    figure = go.Figure()
    figure.add_scatter(
        x=table["position"], y=[escape_plotly(genre) for genre in first], mode="markers",
        text=[escape_plotly(title) for title in table["title"]],
        marker_color=[colours.get(genre, palette.muted) for genre in first], hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    return style_figure(figure, palette, height=260, xaxis_title="event")
'''


@pytest.fixture
def diary(app_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The app with the screen, opened on person 5."""
    folder = tmp_path / "pages" / "diary"
    folder.mkdir(parents=True)
    for name, text in (("page.py", PAGE), ("text.md", WORDS), ("cached.py", CACHED), ("charts.py", CHARTS)):
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(screens, "SCREENS", (*screens.SCREENS, Screen(str(folder), "Diary", "menu_book", "diary", worlds=True)))
    app = AppTest.from_file(str(Path(screens.__file__).parents[1] / "navigation.py"), default_timeout=90)
    app.query_params.update({"run": "tiny", "user": "5", "diary_last": "7"})
    return healthy(app.run().switch_page(str(folder / "page.py")).run())


def test_it_follows_the_person_and_shows_a_chart_of_their_events(diary: AppTest) -> None:
    assert diary.title[0].value == "What did this person choose, and when?"
    assert "The items of person 5" in said(diary) and "Order." in said(diary)
    (chart,) = charts(diary)
    assert len(chart.data[0].y) == 7, "the address sets its control"
    before = chart.data[0].text
    healthy(diary.number_input(key="user").set_value(6).run())
    assert "of person 6" in said(diary) and charts(diary)[0].data[0].text != before


def test_where_the_data_have_no_genres_it_says_so(
    diary: AppTest, changed_data: Callable[[Callable[[Dataset], Dataset]], None]
) -> None:
    changed_data(lambda data: replace(data, catalog=replace(data.catalog, genres=None)))
    healthy(diary.run())
    assert "say nothing of genres" in said(diary) and not charts(diary)
