"""A history that somebody types: titles or ids, one a line. It is untrusted; a line that is not understood is named."""

import re
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from elastic_core.data import Dataset
from elastic_core.data.item_features import find_items_by_title
from elastic_core.errors import InputError
from elastic_core.services.person.names import split_year

MOST_LINES = 200
LEADING = re.compile(r"^(?:[-*•]\s+|\d{1,3}[.)]\s+)")


class TypedItems(NamedTuple):
    """The items of a typed list in its order, and a sentence for every line that is not among them."""

    items: tuple[int, ...]
    problems: tuple[str, ...]


def parse_items(dataset: Dataset, text: str) -> TypedItems:
    """One title or raw id per line. A line counts only if it can mean one item; `id:42` is always a raw id."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if len(lines) > MOST_LINES:
        raise InputError(f"a list may have at most {MOST_LINES:,} lines, not {len(lines):,}")
    names = _split_names(dataset)
    items, problems = list[int](), list[str]()
    for number, line in lines:
        matches = _find_meant(dataset, names, line)
        if len(matches) == 1:
            items += matches
            continue
        titles = [f"“{dataset.catalog.title(item)}” (id:{dataset.catalog.ids[item]})" for item in matches[:3]]
        line_text = line if len(line) <= 60 else line[:59] + "…"
        more_text = f" and {len(matches) - 3} more" if len(matches) > 3 else ""
        reason = f"could be {', '.join(titles)}{more_text}" if matches else "is neither a title nor an id here"
        problems.append(f"Line {number}, “{line_text}”, {reason}.")
    return TypedItems(tuple(items), tuple(problems))


def _find_meant(dataset: Dataset, names: dict[str, list[int]], line: str) -> list[int]:
    """Every item that a line can mean: an exact title or id first, else titles that have all its words."""
    find = dataset.catalog.find_item  # 0 for an id that is not there
    if line.lower().startswith("id:"):
        item = find(line[3:].strip())
        return [item] if item else []
    bare_text = LEADING.sub("", line)
    for text in (line, bare_text):
        exact = [*names.get(_folded_text(text), []), find(text)]
        if any(exact):
            return list(dict.fromkeys(filter(None, exact)))
    matches = find_items_by_title(dataset.catalog, bare_text)
    return matches[np.argsort(-dataset.all_counts()[matches], kind="stable")].tolist()


def _split_names(dataset: Dataset) -> dict[str, list[int]]:
    """What people may call an item: its title, the title without the year, with the article in front."""
    names: dict[str, list[int]] = defaultdict(list)
    for item in range(1, dataset.catalog.n_items + 1):
        title = dataset.catalog.title(item)
        name, year = split_year(title)
        bare_text = title.removesuffix(f"({year})").strip() if year else title
        for known_name in {_folded_text(each) for each in (title, name, bare_text, f"{name} ({year})", f"{name} {year}") if each}:
            names[known_name].append(item)
    return names


def _folded_text(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())
