"""The screens of the app, in the order of the sidebar. A new one is a folder in `pages/` and one line here: what stands around
screens, and all tests of every screen, ask this list. tests/app/test_new_screen.py adds one of four small files; copy those:

    page.py      drawn from top to bottom: `page_context.require_context()` is what it is about
                 (pages/components/page_context.py);
                 pages/components/page_elements.py draws title, charts, tables, confidence notes and footer,
                 pages/components/controls.py what can be set. A plain table:
                 `page_elements.show_table(key, frame, TEXT.chart_text("NAME"), alt,
                 column_config=page_elements.parse_columns(TEXT("COLUMNS")))`, where each column is a paragraph
                 `` `name` Heading | format | width | What it is. `` of text.md
    text.md     its texts, by name (pages/components/page_text.py)
    cached.py    what it keeps between reruns (pages/components/cache.py); the numbers come from a folder of
                 `elastic_core/services/`
    charts.py    its figures (pages/components/plot.py)

Its test is `tests/app/test_NAME_page.py` (tests/app/conftest.py says how a test opens a page and reads what is there).

Limits that hold for every screen are in tests/app/test_rerun_budget.py (time) and tests/app/test_words_on_opening.py (words).
"""

from typing import NamedTuple


class Screen(NamedTuple):
    """`worlds`: it is about a run, and has the switch between made-up world and real films (layout/world_switch.py) above it."""

    folder: str
    title: str  # in the sidebar; README.md has a row of this name
    icon: str  # a name of Material Symbols
    address: str
    worlds: bool = False


SCREENS = (
    Screen("start", "Start", "play_arrow", "", worlds=True),
    Screen("keys", "Product keys", "grid_on", "product-keys", worlds=True),
    Screen("journey", "Journey", "route", "journey", worlds=True),
    Screen("experts", "Experts", "hub", "experts", worlds=True),
    Screen("traffic", "Traffic", "bar_chart", "traffic", worlds=True),
    Screen("map", "Memory map", "scatter_plot", "memory-map", worlds=True),
    Screen("train", "Train", "model_training", "train"),
    Screen("data", "Data", "database", "data"),
    Screen("evidence", "Evidence", "fact_check", "evidence"),
    Screen("speed", "Speed", "speed", "speed"),
    Screen("method", "Method", "menu_book", "method"),
)
