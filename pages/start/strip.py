"""The whole way of one history as one picture to point at: what each event asks, the grid of experts, the most wanted, the list.

Drawn by strip.js in one piece, so that pointing needs no rerun; only taking something away does.
"""

from collections.abc import Callable, Mapping
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
    now: Context, start: Situation, here: Situation, path: Path, change: Moved, *,
    names: Mapping[int, str], traffic: Routing | None, changed: bool, on_act: Callable[[str, int], None],
) -> bool:  # fmt: skip
    """`path`: of the last events of `start`, as they stand in `here`; `names`: what experts stand for; `on_act`: called with what
    was done, and to which event, from 1, or expert. Returns whether an expert's page was asked for."""
    palette, shades, list_now = shell.palette(), person.colours(now), change.table
    events = inspect.history_table(now.dataset, start.read, len(path.places)).to_dict("records")
    titles = inspect.told_apart(list_now["title"], now.dataset.catalog.ids[list_now["item"]])
    titles += [_bare(title) for title in change.below["title"]]
    items = []
    for at, row in enumerate([*list_now.to_dict("records"), *change.below.to_dict("records")]):
        drawn = at < len(list_now)  # what really came next may stand below the ten, where nothing leads to it
        items.append(_thing(shades, titles[at], row) | {
            "item": str(row["item"]), "rank": row["rank"], "gold": row["is_truth"],
            "mark": person.MARKS[row["change"]].format(row["was"] or "seen") if changed else "",
            "gives": path.gives[at].tolist() if drawn and path.gives is not None else None,
            "without": _numbers(path.without[at]) if drawn else [None] * len(path.experts),
            "missing": _numbers(path.missing[at]) if drawn else [None] * len(path.places),
        })  # fmt: skip
    data = {
        "who": f"{now.run.name}~{now.user}",
        "events": [
            _thing(shades, _bare(row["title"]), row) | {
                "place": row["position"], "gone": place is None,
                "asks": None if path.asks is None or place is None else path.asks[at],
            }
            for at, (row, place) in enumerate(zip(events, path.places, strict=True))
        ],
        "grid": _grid(now, here, traffic, path, palette),
        "experts": [_expert(now, here, path, at, names.get(expert, ""), traffic) for at, expert in enumerate(path.experts)],
        "list": items,
        "left": [
            {"name": _bare(row["title"]), "mark": f"now {row['now'] or now.words.done}"} for row in change.gone.to_dict("records")
        ],
        "locked": {
            "remove": shell.locked("start_remove"), "silence": shell.locked("start_silence"), "look": shell.locked("expert"),
        },
        "colours": palette._asdict(), "says": _says(now.words, path, start.events - len(events)),
    }  # fmt: skip
    result = _mount(
        data=data, key=KEY,
        **{f"on_{what}_change": partial(_acted, what, on_act) for what in (REMOVED, SILENCED, PICKED, OPENED)},
    )  # fmt: skip
    return isinstance(result.get(OPENED), int | float)


def _acted(what: str, on_act: Callable[[str, int], None]) -> None:
    found = (st.session_state.get(KEY) or {}).get(what)
    if isinstance(found, int | float):
        on_act(what, int(found))


def _bare(title: str) -> str:
    return inspect.split_year(title)[0]


def _thing(shades: tiles.Colours, name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """An item as a cover and its name; pointed at, the browser says its whole title and its genres."""
    colour = shades.of(row["genres"])
    cover = {"initials": tiles.initials(name), "colour": colour, "ink": tiles.ink(colour)}
    return {"name": name, "about": " · ".join([row["title"], *row["genres"]]), "cover": cover}


def _expert(now: Context, here: Situation, path: Path, place: int, name: str, traffic: Routing | None) -> dict[str, Any]:
    expert, catalog, sub, votes = path.experts[place], now.dataset.catalog, "", []
    kept = None if path.keeps is None else path.keeps[place]
    if kept is not None and kept.any():
        parts = np.bincount(here.read.items, kept, minlength=catalog.n_items + 1)  # an item met twice counts together
        often = int(np.count_nonzero(kept[here.read.items == parts.argmax()]))
        most = _bare(catalog.title(int(parts.argmax()))) + f" ×{often}" * (often > 1)
        sub = f"{'reads' if path.gives is None else 'holds'}: {parts.max():.0%} {most}"
    if path.wanted is not None and path.usual is not None:
        votes += [f"{path.wanted[place]:.0%} of the votes here; the average person gives it {path.usual[place]:.1%}."]
    if traffic is not None:
        votes += [f"{traffic.load[expert]:,.0f} of {len(traffic.experts):,} people use it."]
    return {
        "id": expert, "rank": place + 1, "name": name,
        "brief": name.removeprefix("suggests ").removeprefix("used by "),
        "quiet": expert in here.silenced, "sub": sub, "votes": " ".join(votes),
        "keeps": None if kept is None else [0 if at is None else float(kept[at]) for at in path.places],
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
        asked = {expert for votes in path.asks or [] for expert, _ in votes}
        drawn = np.unique([*path.experts, *asked, *([] if now.expert is None else [now.expert])])
    rows, columns = here.found.halves[0].numpy()
    return {
        "side": side, "drawn": drawn.tolist(), "load": plot.shades(traffic.load, palette.load, low=0, at=drawn),
        "ground": palette.load[0], "people": traffic.load[drawn].astype(int).tolist(),
        "rows": plot.shades(rows, palette.warm), "columns": plot.shades(columns, palette.cool), "picked": now.expert,
    }  # fmt: skip


def _says(words: Words, path: Path, earlier: int) -> dict[str, Any]:
    """The picture's words: did events vote, and does every expert give suggestions of its own?"""
    k, gives = len(path.experts), path.gives is not None
    values = {
        "one": words.one, "many": words.many, "did": words.did, "k": k, "shown": len(path.places), "step": 4 if k else 2,
        "before": f"after {earlier:,} earlier" if earlier else "oldest first", "holds": "holds" if gives else "reads",
        "order": "in order" if path.keeps is None else f"what each then {'holds' if gives else 'reads'}",
    }  # fmt: skip
    rest = SAYS("REST", what=f"{words.a} or an expert" if k else words.a)
    return {
        **SAYS.named("STRIP", **values),
        **SAYS.named("QUERIED" if path.asks is None else "VOTED", **values),
        **SAYS.named("EACH_GIVES" if gives else "MIXED", **values),
        "rest": rest if gives or not k else f"{rest} {SAYS('NO_VOTES', one=words.one)}",
    }
