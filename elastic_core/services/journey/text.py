"""Versions of a history as text: a short code for addresses, JSON for files, and lists that people paste.

All of it comes from outside and is untrusted: whatever is wrong raises InputError with one sentence, and changes nothing.

    code    <six characters of the base>~<edit>~<edit>…[~c<current>]
    edit    [<parent>.] a<item>-<at> | x<start>-<stop> | m<at>-<to> | r<item>-<item>…      parent: default the version before
"""

import json
import re
from collections import defaultdict
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from elastic_core.data import Dataset
from elastic_core.data.traits import find_titles
from elastic_core.errors import InputError
from elastic_core.services import public
from elastic_core.services.journey.versions import Add, Cut, Move, Replace, Tree, Version, start
from elastic_core.services.person.names import split_year

LONGEST_CODE = 1_200
LARGEST_FILE = 1_000_000
MOST_LINES = 1_000
KIND = "journey"
KINDS: dict[str, type] = {"a": Add, "x": Cut, "m": Move, "r": Replace}
STEP = re.compile(r"(?:(?P<parent>\d{1,4})\.)?(?P<what>[axmr])(?P<numbers>\d{0,9}(?:-\d{1,9})*)", re.ASCII)
LEADING = re.compile(r"^(?:[-*•]\s+|\d{1,3}[.)]\s+)")


def encode(tree: Tree) -> str:
    """The whole tree as a code; empty for an unchanged history."""
    if not tree.versions:
        return ""
    parts = [tree.base.digest]
    for number, version in enumerate(tree.versions):
        edit, parent = version.edit, "" if version.parent == number else f"{version.parent}."
        letter = next(letter for letter, kind in KINDS.items() if kind is type(edit))
        parts.append(parent + letter + "-".join(map(str, edit.items if isinstance(edit, Replace) else vars(edit).values())))
    current = [] if tree.current == len(tree.versions) else [f"c{tree.current}"]
    return "~".join(parts + current)


def short(tree: Tree) -> str:
    """What an address can hold: the whole tree, or only what leads to the current version, or nothing."""
    return next((code for code in (encode(tree), encode(tree.chain())) if len(code) <= LONGEST_CODE), "")


def decode(code: str, fresh: Tree) -> Tree:
    """The tree of a code, grown on the unchanged tree `fresh`."""
    if not code:
        return fresh
    if len(code) > LONGEST_CODE:
        raise InputError(f"a code has at most {LONGEST_CODE:,} characters")
    digest, *steps = code.split("~")
    if digest != fresh.base.digest:
        raise InputError("these edits belong to another person, another moment or other data")
    current = len(steps)
    if steps and re.fullmatch(r"c\d{1,4}", steps[-1], re.ASCII):
        current = int(steps.pop()[1:])
    versions = tuple(_version(step, number) for number, step in enumerate(steps))
    return replace(fresh, versions=versions, current=current)


def _version(step: str, number: int) -> Version:
    found = STEP.fullmatch(step)
    numbers = [int(part) for part in found["numbers"].split("-") if part] if found else []
    if not found or (found["what"] != "r" and len(numbers) != 2) or found["numbers"].startswith("-"):
        raise InputError(f"edit {number + 1} of the code cannot be read")
    edit = Replace(tuple(numbers)) if found["what"] == "r" else KINDS[found["what"]](*numbers)
    return Version(number if found["parent"] is None else int(found["parent"]), edit)


def to_json(dataset: Dataset, tree: Tree) -> str:
    """A file that holds the whole tree. Items are raw ids, so that it can be read and written by hand; no titles."""
    raw = dataset.catalog.ids
    versions = []
    for number, version in enumerate(tree.versions, start=1):
        edit = version.edit
        what: dict[str, Any] = {"do": type(edit).__name__.lower()} | vars(edit)
        if isinstance(edit, Add):
            what["item"] = str(raw[edit.item])
        if isinstance(edit, Replace):
            what["items"] = [str(raw[item]) for item in edit.items]
        versions.append({"version": number, "parent": version.parent, "edit": what})
    base = {"data": tree.base.data, "person": tree.base.user + 1, "events": tree.base.events}
    return json.dumps({"kind": KIND, "format": 1, **base, "current": tree.current, "versions": versions}, indent=1)


def from_json(dataset: Dataset, text: str | bytes) -> Tree:
    """The tree of a file made by `to_json` for the same data. Places count from 0 and items are raw ids."""
    public.refuse("upload")
    if len(text) > LARGEST_FILE:
        raise InputError(f"the file is larger than {LARGEST_FILE // 1_000_000} MB")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("the file is not JSON") from None
    if not isinstance(found, dict) or found.get("kind") != KIND or found.get("format") != 1:
        raise InputError(f'the file holds no versions of a history (it needs "kind": "{KIND}" and "format": 1)')
    user, events = _whole_number(found, "person", "the file") - 1, _whole_number(found, "events", "the file")
    if found.get("data") != dataset.hash:
        raise InputError("the file was made for other data than this run’s")
    if not 0 <= user < dataset.histories.n_users:
        raise InputError(f"there is no person {user + 1}: the data has 1 to {dataset.histories.n_users}")
    fresh, steps = start(dataset, user, events), found.get("versions")
    if not isinstance(steps, list):
        raise InputError('"versions" in the file must be a list')
    versions = tuple(_from_file(dataset, step, f"version {number}") for number, step in enumerate(steps, start=1))
    return replace(fresh, versions=versions, current=_whole_number(found, "current", "the file"))


def _from_file(dataset: Dataset, step: Any, where: str) -> Version:
    edit = step.get("edit") if isinstance(step, dict) else None
    if not isinstance(edit, dict):
        raise InputError(f'{where} of the file has no "edit"')
    parent = _whole_number(step, "parent", where)
    for kind in KINDS.values():
        if kind.__name__.lower() == edit.get("do") and (kind is not Replace or isinstance(edit.get("items"), list)):
            return Version(parent, kind(*(_value(dataset, edit, field.name, where) for field in fields(kind))))
    raise InputError(f"{where} of the file does none of add, cut, move, replace")


def _value(dataset: Dataset, edit: dict[str, Any], name: str, where: str) -> Any:
    if name == "items":
        return tuple(_item(dataset, raw, where) for raw in edit[name])
    return _item(dataset, edit.get(name), where) if name == "item" else _whole_number(edit, name, where)


def _whole_number(found: dict[str, Any], name: str, where: str) -> int:
    value = found.get(name)
    if type(value) is not int or abs(value) > 10**9:
        raise InputError(f'"{name}" in {where} must be a whole number')
    return value


def _item(dataset: Dataset, raw: Any, where: str) -> int:
    if not isinstance(raw, str) or not raw:
        raise InputError(f"{where} of the file names an item that is not a raw id in quotes")
    found = dataset.catalog.find(raw)
    if not found:
        raise InputError(f"{where} of the file names the item {raw[:40]!r}, which the data does not have")
    return found


class Pasted(NamedTuple):
    """The items of a pasted list in its order, and a sentence for every line that is not among them."""

    items: tuple[int, ...]
    problems: tuple[str, ...]


def parse_list(dataset: Dataset, text: str) -> Pasted:
    """One title or raw id per line. A line counts only if it can mean one item; `id:42` is always a raw id."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if len(lines) > MOST_LINES:
        raise InputError(f"a list may have at most {MOST_LINES:,} lines, not {len(lines):,}")
    names = _names(dataset)
    items, problems = list[int](), list[str]()
    for number, line in lines:
        found = _meant(dataset, names, line)
        if len(found) == 1:
            items += found
            continue
        titles = [f"“{dataset.catalog.title(item)}” (id:{dataset.catalog.ids[item]})" for item in found[:3]]
        said = line if len(line) <= 60 else line[:59] + "…"
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        why = f"could be {', '.join(titles)}{more}" if found else "is neither a title nor an id here"
        problems.append(f"Line {number}, “{said}”, {why}.")
    return Pasted(tuple(items), tuple(problems))


def _meant(dataset: Dataset, names: dict[str, list[int]], line: str) -> list[int]:
    """Every item that a line can mean: an exact title or id first, else titles that have all its words."""
    find = dataset.catalog.find  # 0 for an id that is not there
    if line.lower().startswith("id:"):
        item = find(line[3:].strip())
        return [item] if item else []
    bare = LEADING.sub("", line)
    for text in (line, bare):
        exact = [*names.get(_folded_text(text), []), find(text)]
        if any(exact):
            return list(dict.fromkeys(filter(None, exact)))
    found = find_titles(dataset.catalog, bare)
    return found[np.argsort(-dataset.all_counts()[found], kind="stable")].tolist()


def _names(dataset: Dataset) -> dict[str, list[int]]:
    """What people may call an item: its title, the title without the year, with the article in front."""
    names: dict[str, list[int]] = defaultdict(list)
    for item in range(1, dataset.catalog.n_items + 1):
        title = dataset.catalog.title(item)
        name, year = split_year(title)
        bare = title.removesuffix(f"({year})").strip() if year else title
        for known in {_folded_text(each) for each in (title, name, bare, f"{name} ({year})", f"{name} {year}") if each}:
            names[known].append(item)
    return names


def _folded_text(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())
