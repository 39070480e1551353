"""All experts of a memory as squares to click, or to walk over with the arrow keys. No chart library: they are there at once.

Everything that reaches the browser is a number, one of our colours or one of our words.
"""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.kit.plot import Palette

LARGEST = 64  # squares a side; of more only the retrieved ones are drawn: a finger would not meet them
PICKED = "picked"
CSS = """
svg { width: 100%; max-height: 410px; display: block; outline-offset: 2px }
svg:focus-visible { outline: 2px solid var(--st-primary-color) }
rect[data-e] { cursor: pointer }
text { font-family: var(--st-font); pointer-events: none; text-anchor: middle; dominant-baseline: central }
.locked rect[data-e] { cursor: default }
.told { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
"""
_mount = st.components.v2.component("elastic_squares", css=CSS, js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"))


def draw(
    table: pd.DataFrame, colours: Palette, *, key: str, alt: str, on_pick: Callable[[], None], selected: int | None = None,
    silenced: Collection[int] = (), locked: bool = False,
) -> None:  # fmt: skip
    """Background by load, retrieved ones filled with their rank, sub-key scores along the edges; `table` as from
    `inspect.experts_table`. `picked(key)` is what was chosen last, for `on_pick`."""
    side = int(table["row"].max()) + 1
    load = table.set_index("expert")["load"]
    shades = np.array(_shades(load.to_numpy(), colours.load, low=0), dtype=object)
    drawn = load.index.to_numpy()
    if side > LARGEST:
        drawn = np.unique([*table.loc[table["rank"] > 0, "expert"], *([] if selected is None else [selected])])
    rows, columns = (table.drop_duplicates(name).sort_values(name)[f"{name}_score"].to_numpy() for name in ("row", "column"))
    retrieved = table[table["rank"] > 0].sort_values("rank")
    data: dict[str, Any] = {
        "side": side, "drawn": drawn.tolist(), "load": shades[load.index.get_indexer(drawn)].tolist(), "ground": colours.load[0],
        "people": load.loc[drawn].astype(int).tolist(), "rows": _shades(rows, colours.warm),
        "columns": _shades(columns, colours.cool), "selected": selected, "locked": locked, "alt": alt,
        "retrieved": [
            {"expert": int(expert), "rank": int(rank), "quiet": int(expert) in silenced}
            for expert, rank in retrieved[["expert", "rank"]].itertuples(index=False)
        ],
        "colours": {"lit": colours.lit, "ground": colours.ground, "picked": colours.picked, "muted": colours.muted},
    }  # fmt: skip
    _mount(data=data, key=key, on_picked_change=on_pick)


def picked(key: str) -> int | None:
    """Which square was chosen, for a callback."""
    found = (st.session_state.get(key) or {}).get(PICKED)
    return int(found) if isinstance(found, (int, float)) else None


def _shades(values: np.ndarray, ramp: tuple[str, ...], low: float | None = None) -> list[str]:
    """A colour of the ramp for each value, `#rrggbb`."""
    low = float(values.min()) if low is None else low
    at = (values - low) / max(float(values.max()) - low, 1e-9) * (len(ramp) - 1)
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in ramp])
    mixed = np.stack([np.interp(at, np.arange(len(ramp)), channel) for channel in stops.T], axis=1).round().astype(int)
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in mixed.tolist()]
