"""The words that somebody can read on a screen, in Streamlit's own tree of elements.

Counted are texts, headings of tables and names of controls; not what stands in the data (titles, numbers, options of lists), in
code or within a chart. A word has a letter in it.
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any

SHUT = ("expander", "popover", "tab")
Found = tuple[str, str, str]  # where it stands (shown, panels, help), what kind of element, its text


def words(text: str) -> int:
    """Words with a letter; markup, code, formulas and icons are none."""
    text = re.sub(r"```.*?```|`[^`]*`|\\$[^$]*\\$|:material/\w+:", " ", text, flags=re.DOTALL)
    text = re.sub(r":[a-z]+(-[a-z]+)?\[", " ", re.sub(r"\]\([^)]*\)", " ", text))
    return sum(any(letter.isalpha() for letter in word) for word in re.split(r"[\s·|/]+", text))


def texts(node: Any, shut: bool = False) -> Iterator[Found]:
    """Everything to be read below a node of Streamlit's tree."""
    for child in node.children.values():
        block = getattr(child, "children", None) is not None
        proto = child.proto
        if block:
            kind = str(child.type)
            panel = (proto.popover if kind == "popover" else proto) if kind in SHUT else None
            if panel is not None:
                yield ("panels" if shut else "shown"), kind, str(panel.label)
                if getattr(panel, "help", ""):
                    yield "help", kind, str(panel.help)
            is_open = panel is None or getattr(panel, "expanded", False) or getattr(panel, "open", False)
            yield from texts(child, shut or not is_open)
        else:
            yield from _element(str(child.type), child, proto, "panels" if shut else "shown")


def _element(kind: str, child: Any, proto: Any, where: str) -> Iterator[Found]:
    if getattr(proto, "help", ""):
        yield "help", kind, str(proto.help)
    if kind in ("code", "latex", "empty", "divider", "component", "bidi_component"):
        return
    if kind in ("dataframe", "arrow_data_frame", "table"):
        yield from _headings(child, where)
        return
    if kind == "html":
        body = re.sub(r"(?s)<(style|script|ol|ul)\b.*?</\1>", " ", str(proto.body))
        yield where, kind, html.unescape(re.sub(r"<[^>]*>", " ", body))
        return
    label = getattr(proto, "label", "")
    if label and not str(label).isdecimal():
        yield where, kind, str(label)
    if kind in ("button_group", "radio"):
        for option in proto.options:
            yield where, kind, str(getattr(option, "content", option))
    for part in ("body", "placeholder", "text"):
        if isinstance(text := getattr(proto, part, ""), str) and text:
            yield where, kind, text


def _headings(child: Any, where: str) -> Iterator[Found]:
    given = json.loads(child.proto.columns or "{}") if hasattr(child.proto, "columns") else {}
    for name in child.value.columns:
        column = given.get(str(name), {})
        if not column.get("hidden"):
            yield where, "heading", str(column.get("label") or name)
            if column.get("help"):
                yield "help", "heading", str(column["help"])
