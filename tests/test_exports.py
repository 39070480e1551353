"""Exports: nothing that a spreadsheet would run, nothing lost, always valid JSON."""

import io
import json

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from elastic_core.services.exports import to_csv, to_json
from elastic_core.text import FORMULA, spreadsheet_cell

texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00\r"), max_size=20)


@given(st.lists(st.tuples(texts, st.integers(-5, 5), st.floats(allow_nan=False, width=32)), max_size=8))
def test_csv_gives_every_row_back_and_no_text_cell_is_a_formula(rows: list[tuple[str, int, float]]) -> None:
    table = pd.DataFrame(rows, columns=["title", "n", "x"])
    back = pd.read_csv(io.StringIO(to_csv(table)), keep_default_na=False, dtype={"title": str})
    assert not any(text.lstrip(" ").startswith(FORMULA) for text in back["title"])
    assert [t if t != f"'{raw}" else raw for t, raw in zip(back["title"], table["title"], strict=True)] == list(table["title"])
    assert list(back["n"]) == list(table["n"])


def test_formulas_are_only_neutralised_where_they_are() -> None:
    assert spreadsheet_cell("=1+1") == "'=1+1" and spreadsheet_cell("  @x") == "'  @x" and spreadsheet_cell("-5") == "'-5"
    assert spreadsheet_cell("Se7en (1995)") == "Se7en (1995)" and spreadsheet_cell(-5) == -5
    assert "'=HYPERLINK" in to_csv(pd.DataFrame({"=HYPERLINK(1)": ["a"]}))


def test_json_is_valid_whatever_the_table_holds() -> None:
    table = pd.DataFrame({"x": [1.0, np.nan, np.inf], "g": [("a", "b"), (), ("c",)], "t": pd.to_datetime(["2020-01-01"] * 3)})
    settings = {"k": np.int64(8), "when": pd.NaT, "shape": np.arange(2), 3: {"deep": float("nan")}}
    back = json.loads(to_json({"one": table}, settings))
    assert back["tables"]["one"][1]["x"] is None and back["tables"]["one"][0]["g"] == ["a", "b"]
    assert back["settings"] == {"k": 8, "when": None, "shape": [0, 1], "3": {"deep": None}}
