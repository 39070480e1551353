"""How many words a page shows before anybody clicks: few enough to be read.

Counted is what can be read at once: titles, texts, names of controls and of charts. Not counted: panels that are shut, tooltips,
tables, lists drawn as HTML (items and people), numbers on axes.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import opening_words as words
import pytest
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]

MOST = 150
PAGES = sorted(path.parent.name for path in (ROOT / "pages").glob("*/page.py"))


def read_at_once(app: AppTest) -> Iterator[str]:
    """Every text of the page, without the sidebar."""
    for where, kind, text in words.texts(app.main):
        if where == "shown" and kind != "heading":
            yield text
    for chart in app.main.get("plotly_chart"):
        yield from of_chart(json.loads(chart.proto.spec)["layout"])


def of_chart(layout: dict[str, Any]) -> Iterator[str]:
    """What stands on a chart: its titles, those of its axes and parts, and notes."""
    for name, part in layout.items():
        if name == "title" or name.startswith(("xaxis", "yaxis")):
            title = part if name == "title" else part.get("title", {})
            yield re.sub(r"<[^>]*>", " ", str(title.get("text", "")))
    yield from (re.sub(r"<[^>]*>", " ", str(note.get("text", ""))) for note in layout.get("annotations", []))


@pytest.mark.parametrize("page", PAGES)
def test_few_words_before_a_click(opened: Callable[..., AppTest], page: str) -> None:
    shown = list(read_at_once(opened(f"{page}/page.py", run="tiny", user="6")))
    count = sum(map(words.words, shown))
    print(page, count)
    assert 10 < count <= MOST, "\n".join(f"{words.words(text):4} {text}" for text in shown)
