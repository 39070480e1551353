"""The Method page keeps its word: what it names exists, and what it quotes stands in the results."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import said
from streamlit.testing.v1 import AppTest

from pages.components import page_text

PAGE = "method/page.py"
ROOT = Path(__file__).resolve().parents[2]
TEXT = page_text.load_page_text(str(ROOT / "pages" / PAGE))
Visit = Callable[..., AppTest]


def cells(section: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()[2:]]


@pytest.mark.parametrize("row", cells(TEXT("EQUATIONS TABLE")), ids=lambda row: row[0])
def test_every_module_and_every_test_that_is_named_exists(row: list[str]) -> None:
    for file, name in (row[2].split(": "), row[3].split("::")):
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_numbers_are_quoted_from_the_results() -> None:
    """Every mean with its interval, and every difference."""
    results = (ROOT / "checkpoints" / "RESULTS.md").read_text(encoding="utf-8").replace("**", "")  # bold: may be claimed
    text = TEXT.path.read_text(encoding="utf-8")
    means, differences = re.findall(r"0\.\d{4}\s±\s0\.\d{4}", text), re.findall(r"[+-]0\.\d{4}\s\([+-][^)]*\)", text)
    assert len(means) > 15 and len(differences) > 9
    assert not [number for number in (*means, *differences) if " ".join(number.split()) not in results]


def test_the_average_drop_follows_from_the_papers_table() -> None:
    full, without = (0.4256, 0.6619, 0.3517, 0.4546, 0.7767, 0.3597), (0.4132, 0.6515, 0.3387, 0.4433, 0.7699, 0.3470)
    drop = 1 - sum(b / a for a, b in zip(full, without, strict=True)) / 6
    assert f"{drop:.2%} without the memory" in TEXT("question g")


@pytest.mark.parametrize("run", ["tiny", "tiny-peer"])
def test_nine_questions_each_with_what_it_costs(opened: Visit, run: str) -> None:
    app = opened(PAGE, run=run)
    panels = [panel for panel in app.expander if panel.label not in ("More", "Teaching", "Class", "Share or reproduce")]
    assert [panel.label[:6] for panel in panels] == [f"**{key}.**" for key in "abcdefghi"]
    assert all("**Here:**" in panel.markdown[0].value and "**Measured:**" in panel.markdown[0].value for panel in panels)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("Ablations", "makes recommendations worse"),
        ("Equations and tests", ""),
        ("Words and metrics", "NDCG@10"),
        ("Limits and sources", "SASRec"),
    ],
)
def test_every_part_has_a_link(opened: Visit, part: str, words: str) -> None:
    app = opened(PAGE, run="tiny", mth_part=part)
    assert app.segmented_control(key="mth_part").value == part and words in said(app)
    if part == "Ablations":
        table = app.dataframe[0].value.set_index("variant")
        assert len(table) == 10 and table.loc["ELASTIC", "paper, ML-1M"] == "0.4256"
