"""The search as one picture that moves from step to step: played, paused, stepped through, and for the 4 × 4 turned by sliders.

Python hands over numbers (`services/keys/frames.py`), our colours and our words; the browser draws, and searches only the 4 × 4
while its sliders move. What it shows goes into the address when things are calm.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from elastic_core.services.keys.frames import search_frames
from elastic_core.services.keys.search import TOY_DEGREES
from pages.components import page_context
from pages.keys import sentences

LARGEST = 32  # squares a side; of more only the kept rows and columns are drawn
KEY, MOVED = "keys_picture", "moved"
MOST = 4  # experts that one may want of the 4 × 4
_SCRIPT_FILE = Path(__file__)
_mount = st.components.v2.component(
    "elastic_search",
    css=_SCRIPT_FILE.with_suffix(".css").read_text(encoding="utf-8"),
    js=_SCRIPT_FILE.with_suffix(".js").read_text("utf-8"),
)


def show_search(scene: Any, step: str, texts: dict[str, str], locked_parts: dict[str, bool], on_move: Callable[[], None]) -> None:
    """A `steps.Scene` at a step. With another name the picture begins anew; where it has angles, the 4 × 4, the browser may turn
    its query. `moved()` is what was shown last, for `on_move`."""
    lesson, toy = scene.lesson, None
    if scene.angles is not None:
        keys = lesson.keys.sub_keys.double().round(decimals=2).tolist()
        values = lesson.values.double().round(decimals=1).tolist()
        toy = {"keys": keys, "values": values, "angles": list(scene.angles), "k": lesson.k, "most": MOST}
    quiet = {"bet": ""} if "tour" in st.query_params else {}  # which has a bet of its own
    data = {
        "name": scene.name, "steps": list(scene.steps), "step": step, "found": search_frames(lesson), "toy": toy,
        "largest": LARGEST, "says": texts, "words": sentences.PICTURE | quiet, "note": scene.note, "locked": locked_parts,
        "colours": page_context.theme_palette()._asdict(),
    }  # fmt: skip
    _mount(data=data, key=KEY, on_moved_change=on_move)


def browser_state() -> dict[str, Any]:
    """What the browser showed last, checked: `step`, and of the 4 × 4 `angles` and `k`. Empty where it says nothing of ours."""
    value = (st.session_state.get(KEY) or {}).get(MOVED)
    if not isinstance(value, dict) or not isinstance(value.get("step"), str):
        return {}
    state = {"step": value["step"]}
    angles, k = value.get("angles"), value.get("k")
    if isinstance(angles, list) and len(angles) == len(TOY_DEGREES) and all(isinstance(x, (int, float)) for x in angles):
        state["angles"] = tuple(int(x) % 360 for x in angles)
    if isinstance(k, (int, float)) and 1 <= k <= MOST:
        state["k"] = int(k)
    return state
