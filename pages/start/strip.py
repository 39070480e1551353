"""The whole way of one history as one picture to point at: what each event asks, the grid of experts, the most wanted, the list.

Drawn by strip.js in one piece, so that pointing needs no rerun; only taking something away does.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path as File
from typing import Any

import numpy as np
import streamlit as st

from elastic_core.memory.routing import Routing
from elastic_core.services.person import inspect
from elastic_core.services.person.inspect import Situation, Words
from elastic_core.services.person.path import Path
from elastic_core.services.person.recommend import Moved
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import person, plot, prose, tiles

LARGEST = 64  # squares a side; of more only the chosen and wanted ones are drawn: a finger would not meet them
KEY = "start_strip"
REMOVED, SILENCED, PICKED, OPENED = "removed", "silenced", "picked", "opened"
HERE = File(__file__)
SAYS = prose.of(__file__)
_mount = st.components.v2.component(
    "elastic_strip", css=HERE.with_suffix(".css").read_text("utf-8"), js=HERE.with_suffix(".js").read_text("utf-8")
)


def draw(
    now: Context, start: Situation, here: Situation, path: Path, change: Moved, places: Sequence[int | None], *,
    names: Mapping[int, str], traffic: Routing | None, changed: bool, on_act: Callable[[str, int], None],
) -> bool:  # fmt: skip
    """`places`: where each of the last events of `start` stands among the shown ones of `path`, None for one taken away; `names`:
    what experts stand for; `on_act`: called with what was done, and to which event, from 1, or expert. Returns whether an
    expert's page was asked for."""
    palette, words = shell.palette(), now.words
    catalog = now.dataset.catalog
    titles = inspect.told_apart(change.table["title"].tolist(), catalog.ids[change.table["item"]].tolist())
    shades, earlier = person.colours(now), start.events - len(places)
    gives, can_read = path.gives is not None, path.keeps is not None
    data = {
        "who": f"{now.run.name}~{now.user}",
        "events": [_event(now, start, path, shades, earlier + at, shown) for at, shown in enumerate(places)],
        "grid": _grid(now, here, traffic, path, palette),
        "experts": [_expert(now, here, path, place, names, traffic, places) for place in range(len(path.experts))],
        "list": [
            _item(
                row, titles[at], shades, person.MARKS[row["change"]].format(row["was"] or "seen") if changed else "",
                None if path.gives is None else path.gives[at].tolist(), _numbers(path.without[at]),
                [None if shown is None else _numbers(path.missing[at])[shown] for shown in places],
            )
            for at, row in enumerate(change.table.to_dict("records"))
        ],
        "left": [
            {"name": inspect.split_year(row["title"])[0], "mark": f"now {row['now'] or words.done}"}
            for row in change.gone.to_dict("records")
        ],
        "locked": {
            "remove": shell.locked("start_remove"), "silence": shell.locked("start_silence"), "look": shell.locked("expert"),
        },
        "colours": palette._asdict(),
        "says": _says(words, len(path.experts), path.asks is not None, gives, len(places), earlier, can_read),
    }  # fmt: skip
    truth, rank = here.answer.truth, change.truth_after
    if truth is not None and rank and rank > len(data["list"]):  # what really came next, below the ten
        title, genres = catalog.title(truth), catalog.genres[truth] if catalog.genres else ()
        row = {"item": truth, "rank": rank, "title": title, "genres": genres, "is_truth": True}
        was, none = f"was {change.truth_before}" if changed else "", [None] * len(path.experts)
        data["list"].append(_item(row, inspect.split_year(title)[0], shades, was, None, none, [None] * len(places)))
    result = _mount(
        data=data, key=KEY,
        **{f"on_{what}_change": partial(_acted, what, on_act) for what in (REMOVED, SILENCED, PICKED, OPENED)},
    )  # fmt: skip
    return isinstance(result.get(OPENED), int | float)


def _acted(what: str, on_act: Callable[[str, int], None]) -> None:
    found = (st.session_state.get(KEY) or {}).get(what)
    if isinstance(found, int | float):
        on_act(what, int(found))


def _cover(shades: tiles.Colours, name: str, genres: tuple[str, ...]) -> dict[str, str]:
    colour = shades.of(genres)
    return {"initials": tiles.initials(name), "colour": colour, "ink": tiles.ink(colour)}


def _about(title: str, genres: tuple[str, ...]) -> str:
    return " · ".join([title, *genres])


def _event(now: Context, start: Situation, path: Path, shades: tiles.Colours, place: int, shown: int | None) -> dict[str, Any]:
    catalog, item = now.dataset.catalog, int(start.read.items[place])
    name, genres = inspect.split_year(catalog.title(item))[0], catalog.genres[item] if catalog.genres else ()
    votes = path.asks[shown] if path.asks is not None and shown is not None else None
    return {
        "place": place + 1, "name": name, "about": _about(catalog.title(item), genres), "cover": _cover(shades, name, genres),
        "gone": shown is None, "asks": votes and [list(vote) for vote in votes],
    }  # fmt: skip


def _expert(
    now: Context, here: Situation, path: Path, place: int, names: Mapping[int, str], traffic: Routing | None,
    places: Sequence[int | None],
) -> dict[str, Any]:  # fmt: skip
    expert, catalog = path.experts[place], now.dataset.catalog
    kept = None if path.keeps is None else path.keeps[place]
    sub, name = "", names.get(expert, "")
    if kept is not None and kept.any():
        parts = np.bincount(here.read.items, kept, minlength=catalog.n_items + 1)  # an item met twice counts together
        often = int(np.count_nonzero(kept[here.read.items == parts.argmax()]))
        most = inspect.split_year(catalog.title(int(parts.argmax())))[0] + f" ×{often}" * (often > 1)
        sub = f"{'reads' if path.gives is None else 'holds'}: {parts.max():.0%} {most}"
    votes = ""
    if path.wanted is not None and path.usual is not None:
        votes = f"{path.wanted[place]:.0%} of the votes here; the average person gives it {path.usual[place]:.1%}."
    if traffic is not None:
        votes += f" {traffic.load[expert]:,.0f} of {len(traffic.experts):,} people use it."
    return {
        "id": expert, "rank": place + 1, "name": name,
        "brief": name.removeprefix("suggests ").removeprefix("used by "),
        "quiet": expert in here.silenced, "sub": sub, "votes": votes.strip(),
        "keeps": None if kept is None else [0 if at is None else float(kept[path.places[at]]) for at in places],
    }  # fmt: skip


def _item(
    row: Mapping[str, Any], name: str, shades: tiles.Colours, mark: str, gives: list[float] | None, without: list[float | None],
    missing: list[float | None],
) -> dict[str, Any]:  # fmt: skip
    return {
        "item": str(row["item"]), "rank": row["rank"], "name": name, "about": _about(row["title"], row["genres"]),
        "cover": _cover(shades, name, row["genres"]), "gold": bool(row["is_truth"]), "mark": mark, "gives": gives,
        "without": without, "missing": missing,
    }  # fmt: skip


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _grid(now: Context, here: Situation, traffic: Routing | None, path: Path, palette: plot.Palette) -> dict[str, Any] | None:
    """Colour by load, sub-key scores along the edges; None where there are no keys to look experts up by."""
    if here.found is None or traffic is None or not here.found.halves.shape[2]:
        return None
    side = here.found.halves.shape[2]
    drawn = np.arange(side**2)
    if side > LARGEST:
        asked = {vote.expert for votes in path.asks or [] for vote in votes}
        drawn = np.unique([*path.experts, *asked, *([] if now.expert is None else [now.expert])])
    rows, columns = here.found.halves[0].numpy()
    return {
        "side": side, "drawn": drawn.tolist(), "load": plot.shades(traffic.load, palette.load, low=0, at=drawn),
        "ground": palette.load[0], "people": traffic.load[drawn].astype(int).tolist(),
        "rows": plot.shades(rows, palette.warm), "columns": plot.shades(columns, palette.cool), "picked": now.expert,
    }  # fmt: skip


def _says(words: Words, k: int, votes: bool, gives: bool, shown: int, earlier: int, can_read: bool) -> dict[str, Any]:
    """`k` experts were chosen; do events have `votes`, and suggestions experts that `give` them?"""
    one, many = words.one, words.many
    rest = SAYS("REST", what=f"{words.a} or an expert" if k else words.a)
    holds = "holds" if gives else "reads"
    order = f"what each then {holds}" if can_read else "in order"
    edges = "this person’s votes by row and column" if votes else "how well each row and column fits the query"
    last = f"The last {shown} {many}"
    return {
        **SAYS.named("STRIP", one=one, many=many, did=words.did, holds=holds),
        "rest": rest if gives or not k else f"{rest} {SAYS('NO_VOTES', one=one)}",
        "history": [f"1 · {last}", f"after {earlier:,} earlier" if earlier else "oldest first", last],
        "search": [
            "2 · The search", f"each {one} votes (thin lines)" if votes else "one query asks for experts",
            f"A square is an expert. Stronger colour: more people use it. Strips: {edges}.",
        ],
        "experts": [f"3 · The {k} experts chosen" if votes else f"3 · The {k} best experts", order, "Chosen experts, best first"],
        "list": [
            f"{'4' if k else '2'} · What comes next", "who suggests it" if gives else "best first", "Suggestions, best first",
        ],
        "of": {
            "event": {"experts": f"how much of it is this {one}", "list": f"change without this {one}"},
            "expert": {
                "events": f"dashed: part of what {{}} {holds}",
                "list": "part that {} gives" if gives else "change without expert {}",
            },
            "item": {
                "events": "part of what {} holds" if gives else f"change without the {one}",
                "experts": "part in this suggestion" if gives else "change without the expert",
            },
        },
    }  # fmt: skip
