"""Names say what they hold: none is a word that, standing alone, says nothing."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Past participles and fillers that hold anything at all, and words that stood for something the field has a name for.
RIDDLES = set(
    "asked asking told said given found made taken shown kept judged handed left even sure foot here some mine many met unmet "
    "judged_people judged_by folding origins shelf ledger desk hand pump hall lane stretches passes ahead eager following "
    "newcomers gauges whole instead gone kit people person who".split()
)
FILE_RIDDLES = RIDDLES | {"words", "frame", "cells", "sheet", "packing"}  # as variables these say what they hold
ALLOWED = {
    "elastic_core/recipes.py": {"JUDGED"}, "elastic_core/data/repeats.py": {"people"}, "pages/data/charts.py": {"many"},
    "elastic_core/results/baselines.py": {"people"},  # spelled in stored files
}  # fmt: skip


def names_of(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a file gives to something, and its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name, node.lineno


def riddles_in(code: str) -> list[tuple[str, int]]:
    return [(name, line) for name, line in names_of(ast.parse(code)) if name.strip("_").lower() in RIDDLES]


def test_no_name_is_a_riddle() -> None:
    riddles = []
    for file in sorted([*ROOT.glob("elastic_core/**/*.py"), *ROOT.glob("pages/**/*.py")]):
        path = file.relative_to(ROOT).as_posix()
        riddles += [path] * (file.stem in FILE_RIDDLES)
        names = riddles_in(file.read_text(encoding="utf-8"))
        riddles += [f"{path}:{line}: {name}" for name, line in names if name not in ALLOWED.get(path, ())]
    assert not riddles, "\n".join(riddles)


@pytest.mark.parametrize(
    "code",
    ["found = 1", "def kept(): ...", "class Shelf: ...", "def put(*, some): ...", "[x for _here in y]", "self.told = 1",
     "import numpy as whole", "with open(a) as said: ...", "MANY = 3", "person: int"],
)  # fmt: skip
def test_a_riddle_is_seen(code: str) -> None:
    assert riddles_in(code)
