"""The words of a page lie in `text.md` beside it, so that they can be read, searched and changed without reading code.

A section is a heading `## name` and what follows. `{values}` are filled in as `str.format` does. What is said about a chart is a
section, too: its first paragraph is the question that the chart answers, the next say how it is computed, and paragraphs that
begin with `Careful:`, `Formula:` or `Test:` are what they say.
"""

import functools
from pathlib import Path
from typing import Any, NamedTuple

MARKS = ("Careful:", "Formula:", "Test:")


class ChartText(NamedTuple):
    """What to say about a chart. `test` is the test that guards its numbers, as `file::test`."""

    question: str
    computed: str
    misread: str
    formula: str = ""
    test: str = ""


class PageText(NamedTuple):
    """The sections of one page."""

    path: Path
    sections: dict[str, str]

    def __call__(self, name: str, /, **values: object) -> str:
        """Return a section as Markdown with its values filled in. Raises KeyError for a name or value that is not there."""
        return self.sections[name].format(**values) if values else self.sections[name]

    def named_paragraphs(self, name: str, /, **values: object) -> dict[str, Any]:
        """Return what a section says by name, its paragraphs being `name: text`; a name may stand in backticks. `|` makes a
        list of a text."""
        parted = (paragraph.split(": ", 1) for paragraph in self(name, **values).split("\n\n"))
        return {each.strip("`"): [part.strip() for part in text.split("|")] if "|" in text else text for each, text in parted}

    def chart_text(self, name: str) -> ChartText:
        """Return what a section says about a chart."""
        return parse_chart_text(self.sections[name])

    def chart_texts(self, names: str) -> list[ChartText]:
        """Return the same of several sections, their names parted by spaces."""
        return [self.chart_text(name) for name in names.split()]


def parse_chart_text(section: str) -> ChartText:
    """Return the parts of a section that explains a chart. Raises ValueError where question or warning is missing."""
    marked, plain = dict.fromkeys(MARKS, ""), []
    for paragraph in section.split("\n\n"):
        mark = next((mark for mark in MARKS if paragraph.startswith(mark)), "")
        if mark:
            marked[mark] = paragraph.removeprefix(mark).strip()
        else:
            plain.append(paragraph)
    if not plain or not marked["Careful:"]:
        raise ValueError(f"a chart's words need a question and a paragraph Careful:, not {section[:60]!r}")
    question, *computed = plain
    return ChartText(question, "\n\n".join(computed), *(marked[mark] for mark in MARKS))


def all_chart_texts() -> list[ChartText]:
    """Return what all pages say about charts."""
    files = sorted(Path(__file__).parents[1].glob("*/text.md"))
    return [
        parse_chart_text(section)
        for file in files
        for section in _read_sections(file).sections.values()
        if "\n\nCareful:" in section
    ]


@functools.cache
def _read_sections(path: Path) -> PageText:
    sections: dict[str, str] = {}
    for part in ("\n" + path.read_text(encoding="utf-8")).split("\n## ")[1:]:
        name, _, body = part.partition("\n")
        if name.strip() in sections:
            raise ValueError(f"{path} has two sections {name.strip()!r}")
        paragraphs = (
            paragraph if paragraph.startswith("|") else " ".join(line.strip() for line in paragraph.splitlines())
            for paragraph in body.strip().split("\n\n")
        )  # a table keeps its lines
        sections[name.strip()] = "\n\n".join(paragraphs)
    return PageText(path, sections)


def load_page_text(module_file: str) -> PageText:
    """Return the words of the page that the module at `module_file` (its `__file__`) belongs to."""
    return _read_sections(Path(module_file).parent / "text.md")
