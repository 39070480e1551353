"""The dispatcher as a picture to point at: events, experts and the lines between them, beside every event with every event."""

from pathlib import Path
from typing import Any

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.journey.dispatch import LEAST, MOST, Dispatch
from elastic_core.services.person import inspect
from elastic_core.services.person.inspect import Situation
from pages.frame import shell
from pages.frame.shell import Context
from pages.journey import answers, state
from pages.kit import cache, plot, view
from pages.kit.control import bound

EVENTS, SHOWN = "jrn_dispatched", 12
CSS = """
.dispatcher { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 1fr); gap: .5rem 1.5rem; color: var(--st-text-color);
  container-type: inline-size }
svg { width: 100%; display: block; overflow: visible; font-family: var(--st-font) }
text { font-size: 12px; fill: currentColor }
.head { font-weight: 600 }
.thing { cursor: default; outline: none }
.thing:focus-visible text, .on text { font-weight: 700; text-decoration: underline }
.expert rect { fill: var(--st-background-color); stroke: var(--st-border-color) }
.expert.on rect { stroke: var(--st-text-color); stroke-width: 2 }
path { fill: none; stroke: var(--st-text-color) }
.take { stroke: #d55e00 }
.back { stroke: #0b86c9 }
.some .lines path:not(.on) { stroke-opacity: .04 }
.some .lines .on { stroke-opacity: 1 }
.told { grid-column: 1 / -1; padding: .35rem .5rem; min-height: 1.4rem; font: .82rem var(--st-font); border-radius: .4rem;
  background: var(--st-secondary-background-color) }
@media (max-width: 640px) {
  .dispatcher { grid-template-columns: minmax(0, 1fr) }
  text { font-size: 17px }
  .pairs { max-width: 140px }
  .pairs text { font-size: 13px }
}
"""
_mount = st.components.v2.component(
    "elastic_dispatcher", css=CSS, js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)
ABOUT = view.About(
    "How do experts read a history without every event looking at every other?",
    "Only the drawn events are read, with the experts of the whole history. Orange: what each expert takes of each event, or how "
    "it spreads its reading. Blue: how much each event reads each expert, from when it was the newest. Mean over heads.",
    "A thick line says where the model looks, not what would change without it. With few events N² is the smaller number.",
    r"2 \cdot N \cdot k \;\text{against}\; N^2",
    "tests/test_journey.py::test_the_dispatcher_gives_back_what_the_model_reads",
)


def draw(now: Context, here: Situation) -> None:
    """The heading, the slider for N, the picture and what it saves."""
    words = inspect.words(now.dataset)
    st.subheader("The dispatcher: experts stand between the events", anchor=False)
    most = min(here.events_read, MOST)
    events = most
    if most > LEAST:
        events = int(
            bound(
                st.slider, f"N, the last {words.many} drawn", LEAST, most, min(SHOWN, most), key=f"{EVENTS}_{most}",
                called="Events drawn",
            )
        )  # fmt: skip
    try:
        found = answers.dispatched(now.run, now.model, now.dataset, here.read.items, events)
    except InputError as error:
        st.write(state.sentence(error))
        return
    n, k = len(found.titles), len(found.experts)
    saved = "fewer" if found.links < found.pairs else "not fewer yet"
    st.markdown(
        f"Each expert collects from all {words.many}, then each {words.one} reads the experts: **2 · {n} · {k} = {found.links:,} "
        f"lines**, {saved} than **{n}² = {found.pairs:,}** between all pairs. From {found.cheaper_from} {words.many} on it saves "
        f"work; at 1,000 it is {2_000 * k:,} against 1,000,000."
    )
    _mount(data=_data(now, found, words), key="jrn_dispatcher")
    view.explain(ABOUT)
    view.remember("dispatcher", answers.dispatch_table(found))


def _data(now: Context, found: Dispatch, words: inspect.Words) -> dict[str, Any]:
    palette = plot.palette(shell.is_dark())
    evidence = cache.evidence(now.run, now.model, now.dataset, now.split)
    labels = [evidence.label(expert) if evidence else None for expert in found.experts]
    names = [
        f"{expert} {label.genres[0]}" if label and not label.weak else f"expert {expert}"
        for expert, label in zip(found.experts, labels, strict=True)
    ]
    titles, n = [inspect.split_year(title)[0] for title in found.titles], len(found.titles)
    return {
        "events": titles, "experts": names, "takes": found.takes.round(4).tolist(), "back": found.back.round(4).tolist(),
        "colours": {"muted": palette.muted},
        "says": {
            "heads": [f"{n} {words.many}", "aggregate → dispatch", f"the same {n}"],
            "pairs": f"{n}² = {found.pairs:,} lines",
            "alt": f"{n} {words.many}, {len(names)} experts and the lines between them. Arrow keys walk.",
            "rest": "Point at an expert: what it takes, and who reads it. Point right: what one gets back.",
            "take": "{} goes to" if found.written else "{} is read by",
            "back": "{} gets back from", "expert": "{} takes" if found.written else "{} reads", "nothing": "nobody, more than 1%",
        },
    }  # fmt: skip
